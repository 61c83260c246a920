"""What lets a corpus be large: tokens as numbers, passages read when asked for, approximate vectors, mapped files."""

import hashlib
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path

import bm25s
import faiss
import numpy as np
import pytest
from typer.testing import CliRunner

from ragqa.cli import app
from ragqa.errors import ConfigError, IndexMismatchError
from ragqa.index import build_index, encoded, index_info, open_index, passages, portions, verify_index
from ragqa.index import passages as index_passages
from ragqa.index.manifest import describe_files, read_manifest, write_manifest
from ragqa.retrieval import analysis, bm25, dense, retrievers_for
from ragqa.retrieval.analysis import keys_of, places_of
from ragqa.retrieval.bm25 import load_bm25, write_bm25
from ragqa.retrieval.dense import DenseRetriever
from ragqa.retrieval.ranking import Rankable
from ragqa.settings.config import IndexingConfig, RetrievalConfig
from ragqa.types import ModelInfo
from tests.index.test_indexing import in_memory
from tests.support.fakes import FakeEncoder, passage
from tests.support.made import build_bm25, save_bm25, scored_bm25, tie_order

pytestmark = pytest.mark.long

K1, B = 1.2, 0.75
APPROXIMATE = ["SQ8", "SQfp16", "HNSW16", "HNSW16_SQ8", "IVF16,Flat", "IVF16,SQ8", "IVF16,SQfp16"]


def random_texts(n_texts, seed=1):
    """Lists of up to 30 of 60 words, common and rare ones; some lists are empty."""
    random = np.random.default_rng(seed)
    return [[f"w{int(n)}" for n in random.zipf(1.4, size=random.integers(31)) % 60] for _ in range(n_texts)]


class TestKeys:
    def test_the_first_64_bits_of_blake2b(self):
        [key] = keys_of(["ragú"])
        assert int(key).to_bytes(8, "little") == hashlib.blake2b("ragú".encode(), digest_size=8).digest()

    def test_places_keep_order_and_repeats_and_leave_out_what_is_absent(self):
        keys = np.array([3, 5, 9], dtype=np.uint64)
        wanted = np.array([9, 4, 3, 9, 10, 0], dtype=np.uint64)
        assert places_of(wanted, keys).tolist() == [2, 0, 2]
        assert places_of(wanted, keys[:0]).tolist() == []


class TestScoresInBlocks:
    def test_as_bm25s_itself_builds_them(self, monkeypatch):
        texts = random_texts(200)
        monkeypatch.setattr(bm25, "BLOCK_TOKENS", 100)
        monkeypatch.setattr(analysis, "CHUNK_TOKENS", 70)
        ours = build_bm25(texts, K1, B)
        vocabulary = {}
        numbers = [[vocabulary.setdefault(token, len(vocabulary)) for token in text] for text in texts]
        theirs = bm25s.BM25(k1=K1, b=B, method="lucene", backend="numpy")
        theirs.index((numbers, vocabulary), create_empty_token=False, show_progress=False)
        assert len(ours.vocabulary) == len(vocabulary)
        for token in [*vocabulary, "absent"]:
            found = ours.scores_of([token, token])
            expected = theirs.get_tokens_ids([token, token])
            assert (found is None) == (not expected)
            if found is not None:
                np.testing.assert_allclose(found, theirs.get_scores_from_ids(expected), rtol=1e-6)

    def test_blocks_change_nothing(self, monkeypatch, tmp_path):
        texts = random_texts(120)
        save_bm25(build_bm25(texts, K1, B), tmp_path / "whole")
        for block, chunk in ((1, 1), (50, 7), (10_000, 100)):
            monkeypatch.setattr(bm25, "BLOCK_TOKENS", block)
            monkeypatch.setattr(analysis, "CHUNK_TOKENS", chunk)
            save_bm25(build_bm25(iter(texts), K1, B), tmp_path / str(block))
            for path in (tmp_path / "whole").iterdir():
                assert path.read_bytes() == (tmp_path / str(block) / path.name).read_bytes()

    def test_tables_in_a_row_are_the_table_of_all(self):
        texts = random_texts(60)
        parts = [analysis.token_table(part) for part in (texts[:20], [], texts[20:21], texts[21:])]
        ours, whole = analysis.joined_tables(parts), analysis.token_table(texts)
        for name in ("numbers", "starts", "vocabulary"):
            assert np.array_equal(getattr(ours, name), getattr(whole, name))

    @pytest.mark.parametrize(("block", "at_once"), [(17, 61), (50, 100), (10_000, 10_000)])
    def test_written_in_pieces_are_the_files_of_the_whole(self, monkeypatch, tmp_path, block, at_once):
        texts = random_texts(120)
        save_bm25(build_bm25(texts, K1, B), tmp_path / "whole")
        monkeypatch.setattr(bm25, "BLOCK_TOKENS", block)
        monkeypatch.setattr(bm25, "BLOCK_SCORES", at_once)
        monkeypatch.setattr(bm25, "VOCABULARY_AT_ONCE", at_once)
        folder = bm25.CountsFolder(tmp_path / "counts", 0)
        portions = [texts[:50], texts[50:51], texts[51:]]  # each with a vocabulary of its own
        blocks = [counts for part in portions for counts in bm25.counted(analysis.token_table(part))]
        for number, counts in enumerate(blocks):
            folder.write(number, counts)
        folder = bm25.CountsFolder(tmp_path / "counts", len(blocks))
        steps = list(write_bm25(folder, K1, B, tmp_path / "pieces"))
        assert steps[0][0] == 0
        assert steps[-1][0] == steps[-1][1] > 0
        for path in (tmp_path / "whole").iterdir():
            assert path.read_bytes() == (tmp_path / "pieces" / path.name).read_bytes()

    def test_counts_take_as_few_bytes_as_they_can(self):
        [counts] = bm25.counted(analysis.token_table([["a"] * 300, ["b"], ["a", "b", "b"]]))
        assert (counts.texts.dtype, counts.times.dtype) == (np.uint8, np.uint16)
        assert (counts.texts.tolist(), sorted(counts.times.tolist())) in (
            ([0, 2, 1, 2], [1, 1, 2, 300]),
            ([1, 2, 0, 2], [1, 1, 2, 300]),
        )

    @pytest.mark.parametrize("texts", [[[], []], [[]]])
    def test_no_token_at_all(self, tmp_path, texts):
        save_bm25(build_bm25(texts, K1, B), tmp_path / "whole")
        list(write_bm25(tuple(bm25.counted(analysis.token_table(texts))), K1, B, tmp_path / "pieces"))
        for path in (tmp_path / "whole").iterdir():
            assert path.read_bytes() == (tmp_path / "pieces" / path.name).read_bytes()
        assert load_bm25(tmp_path / "pieces").scores_of(["a"]) is None

    def test_windows_are_texts_put_together(self):
        texts = random_texts(60)
        windows = np.array([[max(0, n - 2), min(60, n + 3)] for n in range(60)])
        joined = build_bm25([[token for text in texts[a:b] for token in text] for a, b in windows], K1, B)
        ours = scored_bm25(analysis.token_table(texts), K1, B, windows)
        for name in ("data", "indices", "indptr"):
            assert np.array_equal(ours.scores[name], joined.scores[name])

    def test_a_vocabulary_that_does_not_fit_is_refused(self, tmp_path):
        save_bm25(build_bm25([["a", "b"], ["b"]], K1, B), tmp_path)
        for wrong in (np.zeros(3, np.uint64), np.zeros(2, np.int64), np.zeros((2, 1), np.uint64)):
            np.save(tmp_path / "vocabulary.npy", wrong)
            with pytest.raises(IndexMismatchError, match="expected the files of a BM25 index"):
                load_bm25(tmp_path)

    def test_no_array_is_unpickled(self, tmp_path):
        save_bm25(build_bm25([["a", "b"], ["b"]], K1, B), tmp_path)
        np.save(tmp_path / "vocabulary.npy", np.array([{}, {}]), allow_pickle=True)
        with pytest.raises(IndexMismatchError, match="expected the files of a BM25 index"):
            load_bm25(tmp_path)


ROWS = tuple(passage(f"{n % 7}:{n:04}", f"Rule {n % 400} binds firm {n * n % 997}.") for n in range(2500))


@pytest.fixture
def indexes(tmp_path, monkeypatch):
    monkeypatch.setattr("ragqa.index.build.open_stream", lambda *_: in_memory(ROWS))
    return tmp_path / "indexes"


def build(indexes, name="demo", encoder=None, **config):
    encoder = encoder or FakeEncoder()
    return build_index(name, Path("rows"), indexes=indexes, config=IndexingConfig(**config), encoder=encoder)


class TestPassageFile:
    def test_a_sequence_like_the_tuple_it_was_made_of(self, indexes):
        build(indexes)
        found = open_index("demo", indexes).passages
        assert tuple(found) == ROWS
        assert len(found) == 2500
        assert [found[n] for n in (0, 2499, -1, -2500)] == [ROWS[n] for n in (0, 2499, -1, -2500)]
        assert found[3:1200:7] == ROWS[3:1200:7]
        for position in (2500, -2501):
            with pytest.raises(IndexError, match="expected a position below 2,500"):
                found[position]

    def test_no_passage_is_read_but_the_first_the_last_and_those_found(self, indexes):
        def retrieved():
            index = open_index("demo", indexes)
            made = retrievers_for(index, FakeEncoder(), RetrievalConfig())
            return index, [retriever.retrieve("Rule 7 binds firm 49.", 10) for retriever in made]

        build(indexes)
        _, expected = retrieved()
        found = {hit.passage for ranking in expected for hit in ranking.hits}
        needed = {0, len(ROWS) - 1, *(ROWS.index(passage) for passage in found)}
        file = indexes / "demo" / "passages.jsonl"
        lines = file.read_bytes().split(b"\n")
        file.write_bytes(b"\n".join(line if n in needed else b"x" * len(line) for n, line in enumerate(lines)))
        reseal(indexes)
        index, rankings = retrieved()
        assert rankings == expected
        for ranking in rankings:  # what two rankings find is parsed once
            assert all(hit.passage is index.passages[ROWS.index(hit.passage)] for hit in ranking.hits)

    def test_a_line_that_is_none_is_said_when_it_is_asked_for(self, indexes):
        build(indexes)
        folder = indexes / "demo"
        lines = (folder / "passages.jsonl").read_bytes().split(b"\n")
        lines[1] = b"x" * len(lines[1])
        (folder / "passages.jsonl").write_bytes(b"\n".join(lines))
        reseal(indexes)
        found = open_index("demo", indexes).passages
        assert found[2] == ROWS[2]
        for ask in (lambda: found[1], lambda: tuple(found)):
            with pytest.raises(IndexMismatchError, match=r"passages\.jsonl does not hold one passage a line"):
                ask()
        with pytest.raises(IndexMismatchError, match=r"does not hold one passage a line.*ragqa index build demo"):
            verify_index("demo", indexes)

    def test_from_several_threads(self, indexes):
        build(indexes)
        found = open_index("demo", indexes).passages
        with ThreadPoolExecutor(4) as pool:
            assert tuple(pool.map(found.__getitem__, range(2500))) == ROWS

    def test_what_is_read_at_opening_is_mapped(self, indexes):
        build(indexes)
        index = open_index("demo", indexes)
        arrays = [value for value in vars(index.passages).values() if isinstance(value, np.ndarray)]
        assert len(arrays) == 1  # where lines begin
        for array in (index.order, index.hidden, *arrays):
            assert isinstance(array.base, np.memmap)
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
        assert np.array_equal(index.order, tie_order(ROWS))


class TestPositionOf:
    def test_as_a_dict_of_all(self, indexes):
        build(indexes)
        found = open_index("demo", indexes).position_of
        assert dict(found) == {row.passage_id: n for n, row in enumerate(ROWS)}
        assert (found.get("9:9999"), "1:0001" in found, "" in found) == (None, True, False)

    def test_ids_with_the_same_key(self, indexes, monkeypatch):
        rows = ROWS[:20]
        ids = np.array([[7] * 20, range(20)], dtype=np.uint64)
        for module in (portions, index_passages):
            monkeypatch.setattr(module, "keys_of", lambda texts: np.array([7 for _ in texts], np.uint64))
        found = passages.PositionOf(rows, ids)
        assert [found[row.passage_id] for row in rows] == list(range(20))
        assert "absent" not in found

    @pytest.mark.parametrize(
        ("file", "change", "message"),
        [
            ("ids", lambda rows: np.stack([rows[0], np.roll(rows[1], 1)]), "passages.ids.npy names other passages"),
            ("order", lambda rows: rows[::-1], "passages.order.npy is not the order of the ids"),
            ("hidden", lambda rows: ~rows, "passages.hidden.npy hides other passages"),
        ],
    )
    def test_verify_compares_them_with_the_passages(self, indexes, file, change, message):
        build(indexes)
        path = indexes / "demo" / f"passages.{file}.npy"
        np.save(path, change(np.load(path)))
        reseal(indexes)
        assert open_index("demo", indexes)
        with pytest.raises(IndexMismatchError, match=message):
            verify_index("demo", indexes)

    @pytest.mark.parametrize("file", ["ids", "order", "hidden", "offsets"])
    def test_arrays_of_another_shape_type_or_with_objects_are_refused(self, indexes, file):
        build(indexes)
        path = indexes / "demo" / f"passages.{file}.npy"
        rows = np.load(path)
        for wrong in (rows[..., :-1], rows.astype(np.float32), np.array([None] * 2500, dtype=object)):
            np.save(path, wrong, allow_pickle=True)
            reseal(indexes)
            with pytest.raises(IndexMismatchError, match=rf"passages\.{file}\.npy"):
                open_index("demo", indexes)


def reseal(indexes, **changes):
    folder = indexes / "demo"
    write_manifest(replace(read_manifest(folder), files=describe_files(folder, 3), **changes), folder)


class TestKindsOfVectors:
    @pytest.mark.parametrize("kind", APPROXIMATE)
    def test_an_index_of_each(self, indexes, kind):
        build(indexes, name="exact")
        manifest = build(indexes, vectors=kind)
        assert manifest.vectors == kind
        assert verify_index("demo", indexes) == index_info("demo", indexes) == manifest
        index, exact = open_index("demo", indexes), open_index("exact", indexes)
        effort = getattr(index.vectors, "nprobe", None) or (index.vectors.hnsw.efSearch if "HNSW" in kind else 0)
        assert manifest.search_effort == effort == {"IVF": 4, "HNS": 512}.get(kind[:3], 0)
        stored, kept = (one.vectors.reconstruct_n(0, 2500) for one in (exact, index))
        assert np.abs(kept - stored).max() < 0.02
        config = RetrievalConfig()
        ours, theirs = (retrievers_for(one, FakeEncoder(), config)[2] for one in (index, exact))  # dense
        questions = [f"firm {n} is bound by rule {n * 3}" for n in range(20)]
        both = [[{hit.passage for hit in r.retrieve(text, 20).hits} for r in (ours, theirs)] for text in questions]
        assert np.mean([len(found & expected) / 20 for found, expected in both]) > (
            0.7 if "IVF" in kind or "SQ8" in kind else 0.85
        )
        if Path("/proc/self/maps").exists():
            assert str(indexes / "demo" / "dense.faiss") in Path("/proc/self/maps").read_text()

    @pytest.mark.parametrize("kind", ["Flat", *APPROXIMATE])
    def test_hidden_passages_are_never_returned_and_ties_go_by_id(self, tmp_path, kind):
        random = np.random.default_rng(4)
        rows = random.normal(size=(1000, 16)).astype(np.float32)
        n_equal = 4 if "HNSW" in kind else 40  # more of them cut a graph off from the rest
        rows[:n_equal] = rows[0]  # equal however they are rounded
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        names = [passage(f"{1000 - n:04}") for n in range(1000)]
        hidden = np.arange(1000) % 3 == 0
        dense.write_vectors(rows, tmp_path / "dense.faiss", kind)
        encoder = FakeEncoder()
        encoder.encode_query = lambda text: rows[:1]
        index = dense.read_vectors(tmp_path / "dense.faiss", kind)
        retriever = DenseRetriever(index, Rankable(names, tie_order(names), hidden), encoder)
        equal = sorted(names[n].passage_id for n in range(n_equal) if not hidden[n])
        for top_k in range(1, len(equal) + 1):
            found = [hit.passage.passage_id for hit in retriever.retrieve("x", top_k).hits]
            assert found == equal[:top_k]
        everything = {hit.passage.passage_id for hit in retriever.retrieve("x", 1000).hits}
        assert not everything & {names[n].passage_id for n in np.flatnonzero(hidden)}
        assert len(everything) > 150  # a quarter of the groups, at least

    def test_product_quantisation(self, tmp_path):
        random = np.random.default_rng(4)
        rows = random.normal(size=(10_000, 4)).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        dense.check_size("IVF4,PQ2", len(rows))
        dense.write_vectors(rows, tmp_path / "dense.faiss", "IVF4,PQ2")
        index = dense.read_vectors(tmp_path / "dense.faiss", "IVF4,PQ2")
        assert not dense.poor_vectors(index, "IVF4,PQ2")
        assert np.sum(index.reconstruct_n(0, 10_000) * rows, axis=1).mean() > 0.97

    def test_rows_are_read_in_pieces_and_repeated_as_asked(self, tmp_path, monkeypatch):
        monkeypatch.setattr(dense, "ADDED_AT_ONCE", 3)
        rows = np.array([2, 0, 0, 1, 2, 2, 1])
        dense.write_vectors(np.eye(3, dtype=np.float32), tmp_path / "v.faiss", rows=rows)
        assert np.array_equal(dense.read_vectors(tmp_path / "v.faiss").reconstruct_n(0, 7), np.eye(3)[rows])

    @pytest.mark.parametrize(
        ("kind", "n_rows"),
        [
            *product(["Flat", *APPROXIMATE, "IVF200,SQ8"], [12_000, 1]),
            pytest.param("IVF4,PQ4", 12_000, marks=pytest.mark.slow),
            pytest.param("IVF4,PQ4", 1, marks=pytest.mark.slow),
        ],
    )
    def test_the_file_is_what_faiss_writes(self, tmp_path, monkeypatch, kind, n_rows):
        """In blocks, from a file of vectors, as of an index in memory; one vector leaves most groups empty."""
        monkeypatch.setattr(dense, "ADDED_AT_ONCE", 700)
        random = np.random.default_rng(4)
        rows = random.normal(size=(12_000, 8)).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        (tmp_path / "rows").write_bytes(rows.tobytes())
        places = random.integers(len(rows), size=n_rows)
        index = dense.empty_index(kind, 8)
        if not index.is_trained:
            sample = rows[places] if n_rows > 1 else rows
            index.train(sample)
        trained = dense.empty_index(kind, 8)
        monkeypatch.setattr(dense, "empty_index", lambda *_: trained)
        if n_rows == 1 and not trained.is_trained:
            trained.train(rows)
        if "IVF" in kind:
            index.nprobe = dense.search_effort(kind)
        elif "HNSW" in kind:
            index.hnsw.efSearch = dense.search_effort(kind)
        for start in range(0, n_rows, 700):
            index.add(rows[places[start : start + 700]])
        faiss.write_index(index, str(tmp_path / "expected.faiss"))
        on_disk = encoded.VectorFile(tmp_path / "rows", len(rows), 8)
        dense.write_vectors(on_disk, tmp_path / "found.faiss", kind, places)
        assert (tmp_path / "found.faiss").read_bytes() == (tmp_path / "expected.faiss").read_bytes()

    def test_training_again_gives_the_same_file(self, indexes):
        one, two = build(indexes, name="one", vectors="IVF16,SQ8"), build(indexes, name="two", vectors="IVF16,SQ8")
        assert one.files == two.files

    def test_vectors_that_are_none_are_found_in_every_kind(self, tmp_path):
        rows = np.full((2500, 8), 0.01, dtype=np.float32)
        for kind in ("Flat", "SQfp16", "HNSW16"):
            dense.write_vectors(rows, tmp_path / "v.faiss", kind)
            assert dense.poor_vectors(dense.read_vectors(tmp_path / "v.faiss", kind), kind)


class TestRefusedKinds:
    @pytest.mark.parametrize(
        "kind",
        ["", "flat", "Flat ", "IVF", "IVF0,Flat", "IVF4096", "PCA64,Flat", "HNSW32,Flat", "LSH", "IVF9,PQ0", "a;b"],
    )
    def test_what_is_no_kind(self, kind):
        with pytest.raises(ConfigError, match=f"vectors must be Flat, SQ8, .*, got {re.escape(repr(kind))}; change"):
            IndexingConfig(vectors=kind)

    def test_on_the_command_line(self, indexes):
        result = CliRunner().invoke(app, ["index", "build", "x", "--source", "rows", "--vectors", "IVF"])
        assert isinstance(result.exception, ConfigError)
        assert "vectors must be" in str(result.exception)

    @pytest.mark.parametrize(("kind", "needed"), [("IVF65,SQ8", "2,535"), ("IVF4,PQ4", "9,984")])
    def test_too_few_passages_to_learn_from(self, indexes, kind, needed):
        with pytest.raises(
            ConfigError, match=f"{kind}' need at least {needed} passages to learn from, found 2,500; ch"
        ):
            build(indexes, vectors=kind)
        assert not (indexes / "demo").exists()

    def test_numbers_that_cannot_be_divided_are_refused_before_all_is_encoded(self, indexes, monkeypatch):
        monkeypatch.setattr(dense, "PQ_GROUPS", 1)
        asked = []

        class Encoder(FakeEncoder):
            def encode(self, texts):
                asked.append(len(texts))
                return super().encode(texts)

        with pytest.raises(ConfigError, match="can make of 64 numbers, found 'IVF4,PQ48'.*choose --vectors"):
            build(indexes, encoder=Encoder(), vectors="IVF4,PQ48")
        assert asked == [512]

    @pytest.mark.parametrize(("built", "said"), [("Flat", "SQ8"), ("SQ8", "Flat"), ("IVF8,SQ8", "IVF16,SQ8")])
    def test_another_kind_than_the_manifest_says(self, indexes, built, said):
        build(indexes, vectors=built)
        reseal(indexes, vectors=said)
        with pytest.raises(
            IndexMismatchError, match=f"expected a FAISS index '{said}' of inner products in dense.faiss"
        ):
            open_index("demo", indexes)

    def test_the_command_that_rebuilds_names_the_kind(self, indexes):
        build(indexes, vectors="IVF16,SQ8")
        stranger = FakeEncoder()
        stranger.info = ModelInfo("other", "f" * 64)
        with pytest.raises(IndexMismatchError, match="--encoder fake-encoder --vectors IVF16,SQ8"):
            retrievers_for(open_index("demo", indexes), stranger, RetrievalConfig())

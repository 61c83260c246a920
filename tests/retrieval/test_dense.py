"""Vectors: FAISS files, order of ties, and the real encoder (marker ``model``)."""

import json
import logging
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import faiss
import numpy as np
import pytest
from safetensors.numpy import save_file

from ragqa.errors import IndexMismatchError, ModelError
from ragqa.infra.disk_cache import RecentResults
from ragqa.loading import load_encoder
from ragqa.models.inference.weights import ADAPTER_CONFIG, ADAPTER_WEIGHTS
from ragqa.retrieval import encoder as encoder_module
from ragqa.retrieval import local_models
from ragqa.retrieval.dense import DenseRetriever, check_unit_rows, read_vectors, write_vectors
from ragqa.retrieval.encoder import BertEncoder, SentenceTransformerEncoder, covers
from ragqa.retrieval.local_models import EMBEDDED, EMBEDDED_SHA256, weights_of
from ragqa.retrieval.ranking import Rankable
from ragqa.types import ModelInfo
from tests.support.fakes import FakeEncoder, passage
from tests.support.made import tie_order
from tests.support.processor import has_bf16


class TableEncoder:
    """Vectors by text, and how often it was asked."""

    info = ModelInfo("table", "3" * 64)

    def __init__(self, table):
        self.table, self.calls = table, []

    def encode(self, texts):
        self.calls.append(list(texts))
        return np.array([self.table[text] for text in texts], dtype=np.float32)

    def encode_query(self, text):
        return self.encode([text])


def unit(*numbers):
    return np.array(numbers, dtype=np.float32) / np.linalg.norm(numbers)


def retriever(tmp_path, vectors: dict[str, np.ndarray], question=(1.0, 0.0), hidden=()):
    passages = [passage(name) for name in vectors]
    mask = np.array([name in hidden for name in vectors])
    write_vectors(np.stack(list(vectors.values())), tmp_path / "dense.faiss")
    encoder = TableEncoder({"question": unit(*question)})
    return DenseRetriever(
        read_vectors(tmp_path / "dense.faiss"), Rankable(passages, tie_order(passages), mask), encoder
    )


def ids(ranking):
    return [hit.passage.passage_id for hit in ranking.hits]


def test_hidden_passages_are_never_returned(tmp_path):
    vectors = {"a": unit(1, 0), "b": unit(1, 0), "c": unit(1, 1), "d": unit(0, 1)}
    dense = retriever(tmp_path, vectors, hidden={"a", "c"})
    assert [ids(dense.retrieve("question", n)) for n in (1, 2, 9)] == [["b"], ["b", "d"], ["b", "d"]]


class TestDenseRetriever:
    def test_cosine_written_out(self, tmp_path):
        dense = retriever(tmp_path, {"a": unit(3, 4), "b": unit(4, 3), "c": unit(-1, 0)})
        ranking = dense.retrieve("question", 10)
        assert ranking.retriever == dense.name == "dense"
        assert ids(ranking) == ["b", "a", "c"]
        assert [hit.score for hit in ranking.hits] == pytest.approx([4 / 5, 3 / 5, -1.0])
        assert all(type(hit.score) is float for hit in ranking.hits)

    def test_ties_go_by_passage_id_also_at_the_cut(self, tmp_path):
        vectors = {name: unit(1, 1) for name in "zyxwvutsrqponmlkjihgfedcba"} | {"0": unit(1, 0)}
        dense = retriever(tmp_path, vectors)
        assert ids(dense.retrieve("question", 4)) == ["0", "a", "b", "c"]
        assert ids(dense.retrieve("question", 100)) == ["0", *"abcdefghijklmnopqrstuvwxyz"]

    @pytest.mark.parametrize("top_k", [1, 2, 3, 4, 1000])
    def test_at_most_top_k(self, tmp_path, top_k):
        dense = retriever(tmp_path, {"a": unit(1, 0), "b": unit(1, 1), "c": unit(0, 1)})
        assert ids(dense.retrieve("question", top_k)) == ["a", "b", "c"][:top_k]

    @pytest.mark.parametrize(("question", "top_k"), [("", 5), (" \n\t", 5), ("question", 0)])
    def test_nothing_asked(self, tmp_path, question, top_k):
        dense = retriever(tmp_path, {"a": unit(1, 0)})
        assert dense.retrieve(question, top_k).hits == ()

    def test_as_a_plain_sort_of_all_cosines(self, tmp_path):
        random = np.random.default_rng(7)
        rows = random.normal(size=(300, 8)).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        dense = retriever(tmp_path, {f"{n:03}": row for n, row in enumerate(rows)}, question=(1, 0, 0, 0, 0, 0, 0, 0))
        expected = sorted(range(300), key=lambda n: (-rows[n, 0], n))[:50]
        assert ids(dense.retrieve("question", 50)) == [f"{n:03}" for n in expected]

    def test_threads_get_the_same_ranking(self, tmp_path):
        dense = retriever(tmp_path, {f"{n:03}": unit(n + 1, 3) for n in range(200)})
        with ThreadPoolExecutor(4) as pool:
            assert len(set(pool.map(lambda _: dense.retrieve("question", 20), range(60)))) == 1

    def test_another_dimension_says_rebuild(self, tmp_path):
        dense = retriever(tmp_path, {"a": unit(1, 0, 0)}, question=(1, 0))
        with pytest.raises(IndexMismatchError, match="vectors of 3 numbers.* makes 2; rebuild"):
            dense.retrieve("question", 1)

    def test_a_question_vector_that_is_not_one(self, tmp_path):
        dense = retriever(tmp_path, {"a": unit(1, 0)}, question=(np.nan, 0.0))
        with pytest.raises(ModelError, match="not finite or not of length 1"):
            dense.retrieve("question", 1)


class TestVectorFiles:
    def test_memory_mapped(self, tmp_path):
        path = tmp_path / "dense.faiss"
        write_vectors(np.eye(3, dtype=np.float32), path)
        index = read_vectors(path)
        assert (index.ntotal, index.d) == (3, 3)
        if Path("/proc/self/maps").exists():
            assert str(path) in Path("/proc/self/maps").read_text()

    def test_deleted_file_stays_readable_while_open(self, tmp_path):
        dense = retriever(tmp_path, {"a": unit(3, 4), "b": unit(4, 3)})
        (tmp_path / "dense.faiss").unlink()
        assert ids(dense.retrieve("question", 2)) == ["b", "a"]

    @pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:60], lambda data: b"x" * len(data)])
    def test_damaged_file(self, tmp_path, damage):
        path = tmp_path / "dense.faiss"
        write_vectors(np.eye(30, dtype=np.float32), path)
        path.write_bytes(damage(path.read_bytes()))
        with pytest.raises(IndexMismatchError, match=r"expected FAISS vectors in dense\.faiss"):
            read_vectors(path)

    def test_missing_file(self, tmp_path):
        with pytest.raises(IndexMismatchError, match="No such file"):
            read_vectors(tmp_path / "dense.faiss")

    def test_another_kind_of_index(self, tmp_path):
        index = faiss.IndexFlatL2(2)
        index.add(np.eye(2, dtype=np.float32))
        faiss.write_index(index, str(tmp_path / "dense.faiss"))
        with pytest.raises(IndexMismatchError, match="'Flat' of inner products in dense.faiss, found IndexFlatL2"):
            read_vectors(tmp_path / "dense.faiss")

    @pytest.mark.parametrize(
        "vectors",
        [np.ones(3), np.ones((2, 3)), np.eye(3), np.array([[np.nan, 1.0]] * 2), np.zeros((2, 4)), np.zeros((2, 0))],
        ids=["one row", "length", "count", "nan", "zero", "no dimension"],
    )
    def test_no_unit_rows(self, vectors):
        with pytest.raises(ModelError, match="expected 2 vectors of length 1 from the encoder table"):
            check_unit_rows(vectors.astype(np.float32), 2, "table")


class TestWeights:
    def test_embedded_package_missing(self, monkeypatch):
        monkeypatch.setattr(local_models, "find_spec", lambda name: None)
        with pytest.raises(ModelError, match="expected the weights of all-MiniLM-L6-v2.*found none; reinstall"):
            weights_of(EMBEDDED)

    def test_embedded_weights_altered(self, monkeypatch, tmp_path):
        monkeypatch.setattr(local_models, "EMBEDDED_PACKAGE", "stand_in_package")
        (tmp_path / "stand_in_package" / "model").mkdir(parents=True)
        (tmp_path / "stand_in_package" / "__init__.py").touch()
        (tmp_path / "stand_in_package" / "model" / "model.safetensors").write_bytes(b"altered")
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(ModelError, match=f"sha256 {EMBEDDED_SHA256}, found [0-9a-f]{{64}}; reinstall it"):
            weights_of(EMBEDDED)

    def test_folder_with_one_and_with_two_files(self, tmp_path):
        (tmp_path / "model.safetensors").write_bytes(b"one")
        one = weights_of(str(tmp_path))
        assert one.folder == tmp_path
        assert one.sha256 == "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"  # of b"one"
        (tmp_path / "2_Dense").mkdir()
        (tmp_path / "2_Dense" / "model.safetensors").write_bytes(b"two")
        assert weights_of(str(tmp_path)).sha256 != one.sha256

    def test_pickled_weights_are_not_loaded(self, tmp_path):
        (tmp_path / "pytorch_model.bin").write_bytes(b"\x80")
        with pytest.raises(ModelError, match="safetensors weights .*found none .pickled weights are not loaded."):
            weights_of(str(tmp_path))

    @pytest.mark.parametrize("name", ["nobody/no-such-model", "not a name", "../../etc", ""])
    def test_neither_folder_nor_downloaded(self, name, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ModelError, match="all-MiniLM-L6-v2, which is bundled"):
            weights_of(name)

    def test_unreadable_weights(self, tmp_path):
        (tmp_path / "model.safetensors").mkdir()
        with pytest.raises(ModelError, match="cannot be read"):
            weights_of(str(tmp_path))

    @pytest.mark.model  # imports torch
    def test_a_folder_that_is_no_model(self, tmp_path):
        (tmp_path / "model.safetensors").write_bytes(b"nothing")
        with pytest.raises(ModelError, match="found one that cannot be loaded"):
            SentenceTransformerEncoder(str(tmp_path))


@pytest.fixture(scope="module", params=["OpenVINO", "sentence-transformers"])
def minilm(request):
    return BertEncoder(precision="fp32") if request.param == "OpenVINO" else SentenceTransformerEncoder()


TEXTS = ["A firm must keep records.", "Lake Baikal is deep. " * 300, "", "😀 \x00 \u200e", "A firm must keep records."]


@pytest.mark.model
class TestLocalEncoders:
    def test_info(self, minilm):
        assert (minilm.info.name, minilm.info.fingerprint) == ("all-MiniLM-L6-v2", EMBEDDED_SHA256)
        assert minilm.info.precision.startswith("fp32")

    def test_shape_dtype_length_and_order(self, minilm):
        vectors = minilm.encode(TEXTS)
        assert vectors.shape == (5, 384)
        assert vectors.dtype == np.float32
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(5), abs=1e-5)
        for row, text in enumerate(TEXTS):
            assert vectors[row] == pytest.approx(minilm.encode([text])[0], abs=1e-5)

    def test_as_sentence_transformers_itself(self, minilm):
        from sentence_transformers import SentenceTransformer

        theirs = SentenceTransformer(str(weights_of(EMBEDDED).folder), device="cpu", local_files_only=True)
        expected = theirs.encode(TEXTS, show_progress_bar=False, normalize_embeddings=True)
        assert minilm.encode(TEXTS) == pytest.approx(expected, abs=1e-5)
        assert minilm.encode_query(TEXTS[0]) == pytest.approx(expected[:1], abs=1e-5)

    def test_near_in_meaning_is_near_in_cosine(self, minilm):
        question, near, far = minilm.encode(
            ["How long are records kept?", "Keep files for six years.", "Baikal is deep."]
        )
        assert question @ near > question @ far + 0.2

    def test_no_text(self, minilm):
        assert minilm.encode([]).shape == (0, 384)

    @pytest.mark.parametrize("text", ["\ud800", "a\udfff", "x" * 100_000])
    def test_odd_text(self, minilm, text):
        assert np.isfinite(minilm.encode([text])).all()
        assert np.isfinite(minilm.encode([text, text])).all()

    def test_batches_hold_the_token_budget_longest_first(self, monkeypatch):
        from sentence_transformers import SentenceTransformer

        texts = [f"{'word ' * n}{number}" for number, n in enumerate((1, 400, 30, 7, 250, 30, 100, 90, 80) * 6)]
        batches = []
        unit_vectors = lambda model, batch, **_options: batches.append(batch) or np.eye(len(batch), 384)  # noqa: E731
        monkeypatch.setattr(SentenceTransformer, "encode_document", unit_vectors)
        SentenceTransformerEncoder().encode(texts)
        assert sorted(text for batch in batches for text in batch) == sorted(texts)
        tokens = {text: min(256, text.count("word") + 3) for text in texts}
        lengths = [tokens[text] for batch in batches for text in batch]
        assert lengths == sorted(lengths, reverse=True)
        assert all(len(batch) * tokens[batch[0]] <= encoder_module.TOKENS_PER_BATCH for batch in batches)
        assert len(batches) > 1

    def test_a_question_is_remembered_within_bounds(self, minilm, monkeypatch):
        monkeypatch.setattr(RecentResults.__init__, "__defaults__", (2,))
        fresh = BertEncoder(precision="fp32") if isinstance(minilm, BertEncoder) else SentenceTransformerEncoder()
        one, two, one_again, _three, still_one, two_again = (
            fresh.encode_query(text) for text in ("one", "two", "one", "three", "one", "two")
        )
        assert one is one_again is still_one
        assert two_again is not two

    def test_sentences_are_computed_once_and_an_index_does_not_displace_them(self, monkeypatch):
        computed = []
        encoded = BertEncoder._encoded
        monkeypatch.setattr(
            BertEncoder, "_encoded", lambda self, texts: computed.append(len(texts)) or encoded(self, texts)
        )
        monkeypatch.setattr(encoder_module, "LONGEST_REMEMBERED", 4)
        fresh = BertEncoder(precision="fp32")
        first = fresh.encode(["one", "two", "one"])
        assert (fresh.encode(["two", "three", "one"])[[2, 0, 2]] == first).all()
        fresh.encode(["one", "two", "three", "four", "five"])
        assert computed == [2, 1, 5]
        assert (fresh.encode(["one", "two"]) == first[:2]).all()
        assert computed == [2, 1, 5, 0]

    def test_what_is_shared_cannot_be_changed(self, minilm):
        for texts in (["one"], ["one", "two"]):
            with pytest.raises(ValueError, match="read-only"):
                minilm.encode(texts)[0, 0] = 1.0
        with pytest.raises(ValueError, match="read-only"):
            minilm.encode_query("one")[0, 0] = 1.0

    def test_from_several_threads(self, minilm):
        texts = [f"Rule {n} binds the firm." for n in range(24)]
        expected = minilm.encode(texts)
        barrier = threading.Barrier(4)

        def work(worker):
            barrier.wait()
            return [minilm.encode([f"{text}"]) if worker % 2 else minilm.encode(texts) for text in texts[:6]]

        with ThreadPoolExecutor(4) as pool:
            for worker, results in enumerate(pool.map(work, range(4))):
                for n, result in enumerate(results):
                    assert result == pytest.approx(expected[n : n + 1] if worker % 2 else expected, abs=1e-5)

    def test_a_local_folder_is_the_same_model(self, minilm, tmp_path):
        folder = tmp_path / "my-model"
        shutil.copytree(weights_of(EMBEDDED).folder, folder)
        mine = BertEncoder(str(folder), "fp32") if isinstance(minilm, BertEncoder) else type(minilm)(str(folder))
        assert (mine.info.name, mine.info.fingerprint) == (str(folder), EMBEDDED_SHA256)
        assert mine.encode(["one rule"]) == pytest.approx(minilm.encode(["one rule"]), abs=1e-6)

    def test_loading_is_quiet_and_puts_settings_back(self, capfd, caplog):
        from transformers.utils import logging as transformers_logging

        before = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
        with caplog.at_level(logging.WARNING):
            SentenceTransformerEncoder().encode(["one", "two"])
        assert capfd.readouterr() == ("", "")
        assert caplog.records == []
        assert (transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()) == before

    def test_end_to_end_with_faiss(self, minilm, tmp_path):
        passages = [passage("a", "Keep files for six years."), passage("b", "The lake is the deepest on Earth.")]
        write_vectors(minilm.encode([p.text for p in passages]), tmp_path / "dense.faiss")
        dense = DenseRetriever(
            read_vectors(tmp_path / "dense.faiss"), Rankable(passages, tie_order(passages), np.zeros(2, bool)), minilm
        )
        assert ids(dense.retrieve("How long must records be kept?", 2)) == ["a", "b"]


def test_fake_encoder_keeps_the_contract():
    check_unit_rows(FakeEncoder().encode(["a b", "c"]), 2, "fake")


def write_adapter(folder, rank=2, alpha=4.0, layer="encoder.layer.5.output.dense", shape=(384, 1536), **config):
    """A LoRA of one layer in PEFT's format."""
    folder.mkdir()
    random = np.random.default_rng(3)
    up, down = random.normal(size=(shape[0], rank)), random.normal(size=(rank, shape[1]))
    factors = {"lora_A": 0.1 * down.astype(np.float16), "lora_B": 0.1 * up.astype(np.float16)}
    save_file(
        {f"base_model.model.{layer}.{name}.weight": rows for name, rows in factors.items()}, folder / ADAPTER_WEIGHTS
    )
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": alpha, **config}
    (folder / ADAPTER_CONFIG).write_text(json.dumps(config), encoding="utf-8")
    return folder


@pytest.mark.model
class TestBertEncoder:
    def test_covers_minilm_and_nothing_that_pools_or_prompts_otherwise(self, tmp_path):
        assert covers(weights_of(EMBEDDED))
        changes = {
            "1_Pooling/config.json": {"pooling_mode_cls_token": True},
            "config_sentence_transformers.json": {"prompts": {"query": "query: "}},
            "config.json": {"hidden_act": "relu"},
        }
        for number, (file, change) in enumerate(changes.items()):
            folder = tmp_path / str(number)
            shutil.copytree(weights_of(EMBEDDED).folder, folder)
            (folder / file).write_text(json.dumps(json.loads((folder / file).read_text()) | change))
            assert not covers(weights_of(str(folder))), file
            with pytest.raises(ModelError, match="not a BERT with mean pooling"):
                BertEncoder(str(folder))

    @pytest.mark.parametrize("config", [None, "{"])
    def test_a_model_without_a_readable_config_is_named(self, tmp_path, config):
        folder = tmp_path / "damaged"
        shutil.copytree(weights_of(EMBEDDED).folder, folder)
        (folder / "config.json").unlink()
        if config:
            (folder / "config.json").write_text(config)
        assert not covers(weights_of(str(folder)))
        with pytest.raises(ModelError, match="damaged"):
            load_encoder(str(folder))

    def test_bf16_agrees_with_fp32(self):
        texts = [f"A firm of class {n} must keep records of {'client ' * n}money." for n in range(40)]
        coarse = BertEncoder(precision="bf16")
        found, exact = coarse.encode(texts), BertEncoder(precision="fp32").encode(texts)
        cosines = (found * exact).sum(1)
        assert cosines.mean() > 0.999
        assert cosines.min() > 0.99
        assert np.array_equal(found, exact) != has_bf16()
        assert coarse.info.precision.startswith("bf16, " if has_bf16() else "fp32, ")

    def test_a_text_has_the_same_bits_whatever_is_beside_it(self):
        encoder = BertEncoder()
        texts = [f"Rule {n} {'binds ' * (n % 7)}the firm." for n in range(40)]
        together = encoder.encode(texts)
        assert all(np.array_equal(encoder.encode([text])[0], together[n]) for n, text in enumerate(texts))

    def test_questions_are_computed_in_fp32_whatever_passages_are(self):
        assert np.array_equal(
            BertEncoder(precision="bf16").encode_query("one"), BertEncoder(precision="fp32").encode_query("one")
        )

    def test_an_adapter_changes_both_encoders_alike(self, tmp_path):
        adapter = write_adapter(tmp_path / "lora")
        name = f"{EMBEDDED}+{adapter}"
        texts = ["A firm must keep records.", "Lakes are deep."]
        adapted = BertEncoder(name, "fp32")
        assert np.abs(adapted.encode(texts) - BertEncoder(precision="fp32").encode(texts)).max() > 0.01
        assert adapted.encode(texts) == pytest.approx(SentenceTransformerEncoder(name).encode(texts), abs=1e-5)
        assert adapted.info.name == name
        assert adapted.info.fingerprint != EMBEDDED_SHA256

    @pytest.mark.parametrize(
        ("change", "complaint"),
        [
            ({"layer": "encoder.layer.9.output.dense"}, "factors that fit"),
            ({"shape": (384, 384)}, "factors that fit"),
            ({"use_dora": True}, "plain LoRA"),
            ({"alpha_pattern": {"layer.5.output.dense": 8}}, "plain LoRA"),
            ({"rank_pattern": {"layer.5.output.dense": 2}, "r": 8}, "plain LoRA"),
            ({"r": 0}, "PEFT's format"),
        ],
    )
    def test_an_adapter_of_something_else_is_refused(self, tmp_path, change, complaint):
        write_adapter(tmp_path / "lora", **change)
        with pytest.raises(ModelError, match=complaint):
            BertEncoder(f"{EMBEDDED}+{tmp_path / 'lora'}").encode_query("one")

    def test_no_adapter_of_that_name(self):
        with pytest.raises(ModelError, match=r"expected an adapter 'nowhere'"):
            weights_of(f"{EMBEDDED}+nowhere")

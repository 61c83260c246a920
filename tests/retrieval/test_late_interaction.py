"""Late interaction: MaxSim written out, tiny ColBERT models in three formats, files."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from ragqa.errors import IndexMismatchError, ModelError
from ragqa.retrieval import late_interaction
from ragqa.retrieval.late_interaction import (
    LATE_FILES,
    LateEncoder,
    LateInteraction,
    LateRescorer,
    late_retriever,
    load_tokens,
    save_tokens,
)
from ragqa.retrieval.ranking import Rankable
from ragqa.types import ModelInfo
from tests.support.fakes import passage
from tests.support.made import tie_order
from tests.support.tiny_models import write_pylate, write_stanford

PASSAGES = (passage("c", "east"), passage("a", "north east"), passage("b", "east"), replace(passage("d"), text=""))
VECTOR = {"east": (1.0, 0.0), "north": (0.0, 1.0), "between": (0.6, 0.8)}


class TableEncoder:
    info = ModelInfo("table", "0" * 64)

    def __init__(self, dimension=2):
        self.dimension = dimension
        self.batches = []

    def encode(self, texts):
        self.batches.append(list(texts))
        rows = [[VECTOR[word][: self.dimension] for word in text.split()] for text in texts]
        return [np.array(row, dtype=np.float32).reshape(-1, self.dimension) for row in rows]

    def encode_query(self, text):
        return self.encode([text])[0]


def build(folder, encoder=None, retriever=LateInteraction, **more):
    list(save_tokens([one.text for one in PASSAGES], TableEncoder(), folder))
    mask = np.zeros(len(PASSAGES), bool)
    return retriever(
        load_tokens(folder), Rankable(PASSAGES, tie_order(PASSAGES), mask), encoder or TableEncoder(), **more
    )


def scores(ranking):
    return {hit.passage.passage_id: hit.score for hit in ranking.hits}


def test_max_sim_written_out(tmp_path):
    found = build(tmp_path).retrieve("east between", 10)
    assert scores(found) == pytest.approx({"a": 1.0 + 0.8, "b": 1.0 + 0.6, "c": 1.0 + 0.6, "d": 0.0})
    assert list(scores(found)) == ["a", "b", "c", "d"]


def test_equal_texts_are_encoded_once_and_progress_is_told(tmp_path):
    encoder = TableEncoder()
    assert list(save_tokens([one.text for one in PASSAGES], encoder, tmp_path)) == [(0, 3), (3, 3)]
    assert encoder.batches == [["east", "north east", ""]]


@pytest.mark.parametrize("tokens_at_once", [1, 7, 100, 10_000])
def test_blocks_change_nothing(tmp_path, monkeypatch, tokens_at_once):
    random = np.random.default_rng(0)
    matrices = {f"t{n:03}": random.normal(size=(random.integers(1, 12), 8)).astype(np.float32) for n in range(150)}
    query = random.normal(size=(5, 8)).astype(np.float32)

    class RandomEncoder(TableEncoder):
        def encode(self, texts):
            return [query if text == "?" else matrices[text] for text in texts]

    passages = [passage(text, text) for text in matrices]
    list(save_tokens(list(matrices), RandomEncoder(), tmp_path))
    monkeypatch.setattr(late_interaction, "TOKENS_AT_ONCE", tokens_at_once)
    mask = random.random(150) < 0.3
    retriever = LateInteraction(load_tokens(tmp_path), Rankable(passages, tie_order(passages), mask), RandomEncoder())
    expected = {
        name: float((matrix.astype(np.float16).astype(np.float32) @ query.T).max(axis=0).sum())
        for (name, matrix), hidden in zip(matrices.items(), mask, strict=True)
        if not hidden
    }
    assert scores(retriever.retrieve("?", 150)) == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_a_large_corpus_is_only_rescored(tmp_path, monkeypatch):
    places = {one.passage_id: n for n, one in enumerate(PASSAGES)}
    assert type(build(tmp_path, retriever=late_retriever, position_of=places)) is LateInteraction
    monkeypatch.setattr(late_interaction, "RANKED_WHOLE", 3)
    retriever = build(tmp_path, retriever=late_retriever, position_of=places)
    assert type(retriever) is LateRescorer
    found = retriever.rescore("between", (PASSAGES[3], PASSAGES[1]))
    assert (found.finds, found.bounds) == (False, None)
    assert scores(found) == pytest.approx({"a": 0.8, "d": 0.0})


def test_another_dimension_says_rebuild(tmp_path):
    with pytest.raises(IndexMismatchError, match="token vectors of 2 numbers, the model table makes 1; rebuild"):
        build(tmp_path, encoder=TableEncoder(1)).retrieve("east", 10)


def test_a_model_that_changes_its_mind(tmp_path):
    class Odd(TableEncoder):
        def encode(self, texts):
            return [np.ones((1, 2 + len(text)), np.float32) for text in texts]

    with pytest.raises(ModelError, match="expected vectors of 3 numbers from table, found 4"):
        list(save_tokens(["x", "xy"], Odd(), tmp_path))


class TestFiles:
    def test_without_pickle_and_mapped(self, tmp_path):
        build(tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(LATE_FILES)
        found = load_tokens(tmp_path)
        assert isinstance(found.vectors.base.base, np.memmap)
        assert (found.vectors.dtype, found.vectors.shape) == (np.float16, (4, 2))
        assert (found.offsets.tolist(), found.text_of.tolist()) == ([0, 1, 3, 4], [0, 1, 0, 2])

    @pytest.mark.parametrize("name", LATE_FILES)
    @pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:-3], lambda data: b"{}"])
    def test_damaged_file(self, tmp_path, name, damage):
        build(tmp_path)
        (tmp_path / name).write_bytes(damage((tmp_path / name).read_bytes()))
        with pytest.raises(IndexMismatchError, match="expected the files of token vectors"):
            load_tokens(tmp_path)


TEXTS = ["A dealer must keep client money.", "Records", "", "Records.", "client " * 200]


@pytest.fixture(scope="module")
def encoder(late_model):
    return LateEncoder(str(late_model))


class TestLateEncoder:
    def test_as_sentence_transformers_itself(self, encoder, late_model):
        from sentence_transformers import MultiVectorEncoder

        model = MultiVectorEncoder(str(late_model), device="cpu")
        for found, expected in zip(encoder.encode(TEXTS), model.encode_document(TEXTS), strict=True):
            assert found.dtype == np.float32
            assert found == pytest.approx(expected.numpy(), abs=1e-5)
            assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(len(found)), abs=1e-5)
        assert encoder.encode_query(TEXTS[0]) == pytest.approx(model.encode_query(TEXTS[:1])[0].numpy(), abs=1e-5)

    def test_max_sim_as_sentence_transformers_itself(self, encoder, late_model, tmp_path):
        from sentence_transformers import MultiVectorEncoder

        model = MultiVectorEncoder(str(late_model), device="cpu")
        texts = [text for text in TEXTS if text]
        passages = [passage(str(n), text) for n, text in enumerate(texts)]
        list(save_tokens(texts, encoder, tmp_path))
        mask = np.zeros(len(texts), dtype=bool)
        retriever = LateInteraction(load_tokens(tmp_path), Rankable(passages, tie_order(passages), mask), encoder)
        expected = model.similarity(model.encode_query(["client money?"]), model.encode_document(texts))[0]
        found = scores(retriever.retrieve("client money?", 10))
        assert [found[str(n)] for n in range(len(texts))] == pytest.approx(expected.tolist(), abs=5e-3)  # fp16

    def test_checkpoints_of_pylate_and_of_stanford_are_the_same_model(self, tmp_path):
        pylate, stanford = (
            LateEncoder(str(write_pylate(tmp_path / "p"))),
            LateEncoder(str(write_stanford(tmp_path / "s"))),
        )
        for one, other in zip(pylate.encode(TEXTS[:4]), stanford.encode(TEXTS[:4]), strict=True):
            assert one == pytest.approx(other, abs=1e-5)
        assert pylate.encode_query("client money").shape == (16, 128)  # with [MASK] up to the query's length
        assert len(pylate.encode(["Records."])[0]) == len(pylate.encode(["Records"])[0])  # punctuation is skipped

    def test_no_text_odd_text_and_info(self, encoder, late_model):
        assert encoder.encode([]) == []
        assert np.isfinite(encoder.encode(["\ud800 \x00 監査 😀"])[0]).all()
        assert encoder.info.name == str(late_model)
        assert len(encoder.info.fingerprint) == 64

    def test_a_question_is_remembered_and_cannot_be_changed(self, encoder):
        assert encoder.encode_query("what") is encoder.encode_query("what")
        assert not encoder.encode_query("what").flags.writeable

    def test_a_folder_that_is_no_model(self, tmp_path):
        (tmp_path / "model.safetensors").write_bytes(b"none")
        with pytest.raises(ModelError, match="expected a late-interaction model"):
            LateEncoder(str(tmp_path))

    def test_an_adapter_is_refused(self, late_model, tmp_path):
        (tmp_path / "adapter_model.safetensors").write_bytes(b"none")
        with pytest.raises(ModelError, match="without an adapter"):
            LateEncoder(f"{late_model}+{tmp_path}")

    def test_an_older_library_says_what_to_install(self, monkeypatch, late_model):
        class Older:
            __spec__ = None

        monkeypatch.setitem(sys.modules, "sentence_transformers", Older())
        with pytest.raises(ModelError, match=r"pip install 'ragqa\[late\]'"):
            LateEncoder(str(late_model))

"""Learned sparse retrieval: the inner product written out, a tiny SPLADE model, files."""

import numpy as np
import pytest
from scipy import sparse

from ragqa.errors import IndexMismatchError, ModelError
from ragqa.retrieval.ranking import Rankable
from ragqa.retrieval.splade import SPLADE_FILES, SpladeEncoder, SpladeRetriever, load_sparse, save_sparse
from ragqa.types import ModelInfo
from tests.support.fakes import passage
from tests.support.made import tie_order

PASSAGES = (passage("c", "one"), passage("a", "two"), passage("b", "one"), passage("d", "nothing"))
TABLE = {"one": [0, 2.0, 0, 1.5], "two": [0.5, 0, 0, 1.0], "nothing": [0, 0, 0, 0], "?": [1.0, 0.25, 9.0, 0]}


class TableEncoder:
    info = ModelInfo("table", "0" * 64)

    def __init__(self, table=None):
        self.table = table or TABLE
        self.batches = []

    def encode(self, texts):
        self.batches.append(list(texts))
        return sparse.csr_array(np.array([self.table[text] for text in texts], dtype=np.float32))

    def encode_query(self, text):
        return self.encode([text])


def save(folder, encoder=None):
    return list(save_sparse([one.text for one in PASSAGES], encoder or TableEncoder(), folder))


def retriever(folder, encoder=None):
    save(folder)
    mask = np.zeros(len(PASSAGES), bool)
    return SpladeRetriever(
        load_sparse(folder), Rankable(PASSAGES, tie_order(PASSAGES), mask), encoder or TableEncoder()
    )


def test_the_inner_product_written_out(tmp_path):
    found = retriever(tmp_path).retrieve("?", 10)
    assert [(hit.passage.passage_id, hit.score) for hit in found.hits] == [
        ("a", 1.0 * 0.5),
        ("b", 0.25 * 2.0),
        ("c", 0.25 * 2.0),
    ]


def test_as_a_plain_matrix_product(tmp_path):
    random = np.random.default_rng(0)
    table = {f"t{n:03}": (random.random(40) * (random.random(40) < 0.2)).tolist() for n in range(200)}
    passages = [passage(text, text) for text in table]
    encoder = TableEncoder({**table, "?": random.random(40).tolist()})
    list(save_sparse(list(table), encoder, tmp_path))
    mask = np.zeros(200, dtype=bool)
    found = SpladeRetriever(load_sparse(tmp_path), Rankable(passages, tie_order(passages), mask), encoder).retrieve(
        "?", 200
    )
    expected = np.array(list(table.values())) @ np.array(encoder.table["?"])
    score_of = {hit.passage.passage_id: hit.score for hit in found.hits}
    assert score_of == pytest.approx({f"t{n:03}": expected[n] for n in range(200) if expected[n] > 0}, rel=1e-5)


def test_equal_texts_are_encoded_once_and_progress_is_told(tmp_path):
    encoder = TableEncoder()
    assert save(tmp_path, encoder) == [(0, 3), (3, 3)]
    assert encoder.batches == [["one", "two", "nothing"]]


def test_another_vocabulary_says_rebuild(tmp_path):
    other = TableEncoder({"?": [1.0, 2.0]})
    with pytest.raises(IndexMismatchError, match="4 word pieces, the model table gives 2; rebuild"):
        retriever(tmp_path, encoder=other).retrieve("?", 10)


class TestFiles:
    def test_without_pickle_and_mapped(self, tmp_path):
        save(tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(SPLADE_FILES)
        found = load_sparse(tmp_path)
        assert all(isinstance(array.base, np.memmap) for array in (found.data, found.indices, found.indptr))
        assert found.shape == (4, 4)

    @pytest.mark.parametrize("name", SPLADE_FILES)
    @pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:-4], lambda data: b"{}"])
    def test_damaged_file(self, tmp_path, name, damage):
        save(tmp_path)
        (tmp_path / name).write_bytes(damage((tmp_path / name).read_bytes()))
        with pytest.raises(IndexMismatchError, match="expected the files of sparse vectors"):
            load_sparse(tmp_path)


TEXTS = ["A dealer must keep client money.", "Records", "", "Records", "client " * 200]


@pytest.fixture(scope="module")
def encoder(splade_model):
    return SpladeEncoder(str(splade_model))


class TestSpladeEncoder:
    def test_as_sentence_transformers_itself(self, encoder, splade_model):
        from sentence_transformers import SparseEncoder

        model = SparseEncoder(str(splade_model), device="cpu")
        expected = model.encode_document(TEXTS, convert_to_sparse_tensor=False).numpy()
        found = encoder.encode(TEXTS)
        assert found.shape == (5, len(model.tokenizer))
        assert found.dtype == np.float32
        assert found.toarray() == pytest.approx(expected, abs=1e-5)
        query = model.encode_query(TEXTS[:1], convert_to_sparse_tensor=False).numpy()
        assert encoder.encode_query(TEXTS[0]).toarray() == pytest.approx(query, abs=1e-5)

    def test_no_text_odd_text_and_info(self, encoder, splade_model):
        assert encoder.encode([]).shape == (0, encoder.encode(["x"]).shape[1])
        assert np.isfinite(encoder.encode(["\ud800 \x00 監査 😀"]).toarray()).all()
        assert encoder.info.name == str(splade_model)
        assert len(encoder.info.fingerprint) == 64

    def test_a_question_is_remembered(self, encoder):
        assert encoder.encode_query("what") is encoder.encode_query("what")

    def test_a_folder_that_is_no_model(self, tmp_path):
        (tmp_path / "model.safetensors").write_bytes(b"none")
        with pytest.raises(ModelError, match="expected a SPLADE model for .* naver/splade-v3"):
            SpladeEncoder(str(tmp_path))

    def test_an_adapter_is_refused(self, splade_model, tmp_path):
        (tmp_path / "adapter_model.safetensors").write_bytes(b"none")
        with pytest.raises(ModelError, match="without an adapter"):
            SpladeEncoder(f"{splade_model}+{tmp_path}")

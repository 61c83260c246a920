"""BM25 over documents: the score of a passage is its document's, written out; files."""

import json
import math

import numpy as np
import pytest

from ragqa.english.words import Analyser
from ragqa.errors import IndexMismatchError
from ragqa.fusion import fuse
from ragqa.retrieval import rank
from ragqa.retrieval.analysis import token_table, tokenise
from ragqa.retrieval.bm25 import Bm25sRetriever
from ragqa.retrieval.document_bm25 import DOCUMENT_FILES, DocumentBm25, load_documents
from ragqa.retrieval.ranking import Rankable
from ragqa.settings.config import FusionConfig
from tests.support.fakes import passage
from tests.support.made import build_bm25, save_documents, tie_order

PLAIN = Analyser()
K1, B = 1.2, 0.75
PASSAGES = (
    passage("b:1", "gold"),
    passage("b:2", "silver gold"),
    passage("a:1", "silver"),
    passage("a:2", "iron"),
    passage("c:1", "tin lead"),
)
TOKENS = [tokenise(one.text, PLAIN) for one in PASSAGES]


def retriever(folder, hidden=()):
    save_documents(PASSAGES, token_table(TOKENS), K1, B, folder)
    mask = np.array([one.passage_id in hidden for one in PASSAGES])
    return DocumentBm25(load_documents(folder), PLAIN, Rankable(PASSAGES, tie_order(PASSAGES), mask))


def score(tf, df, length):
    average = (3 + 2 + 2) / 3  # tokens of documents b, a, c
    return math.log(1 + (3 - df + 0.5) / (df + 0.5)) * tf / (tf + K1 * (1 - B + B * length / average))


def scores(ranking):
    return [(hit.passage.passage_id, hit.score) for hit in ranking.hits]


def test_the_score_of_a_document_written_out(tmp_path):
    found = retriever(tmp_path).retrieve("gold and silver", 10)
    b, a = score(2, 1, 3) + score(1, 2, 3), score(1, 2, 2)
    assert [name for name, _ in scores(found)] == ["b:1", "b:2", "a:1", "a:2"]  # not c, which has neither
    assert [value for _, value in scores(found)] == pytest.approx([b, b, a, a], abs=1e-6)
    assert found.bounds == pytest.approx((0.0, b), abs=1e-6)  # c is the lowest of all documents


def test_a_passage_that_others_found_has_its_documents_score(tmp_path):
    documents = retriever(tmp_path)
    found = documents.rescore("gold and silver", (PASSAGES[3], PASSAGES[4], PASSAGES[0]))
    b, a = score(2, 1, 3) + score(1, 2, 3), score(1, 2, 2)
    assert dict(scores(found)) == pytest.approx({"b:1": b, "a:2": a}, abs=1e-6)
    assert found.bounds == documents.retrieve("gold and silver", 1).bounds
    assert documents.rescore("gold", (passage("nowhere:1", "gold"),)).hits == ()


def test_fusion_takes_its_passages_from_the_other_ranking_alone(tmp_path):
    mask = np.zeros(len(PASSAGES), dtype=bool)
    lexical = Bm25sRetriever(build_bm25(TOKENS, K1, B), PLAIN, Rankable(PASSAGES, tie_order(PASSAGES), mask))
    rankings = rank((lexical, retriever(tmp_path)), "silver", 10)
    fused = fuse(rankings, FusionConfig(weights={"bm25": 0.9, "document": 0.1}))
    assert [hit.passage.passage_id for hit in fused.hits] == ["a:1", "b:2"]  # and no other passage of a and b
    assert fused.hits[0].score == pytest.approx(0.9 * 1.0 + 0.1 * score(1, 2, 2) / score(1, 2, 2))
    assert fused.hits[1].score == pytest.approx(0.9 * 0.0 + 0.1 * score(1, 2, 3) / score(1, 2, 2))


def test_hidden_passages_count_in_their_document_and_are_not_returned(tmp_path):
    found = retriever(tmp_path, hidden=["b:1"]).retrieve("gold", 10)
    assert [name for name, _ in scores(found)] == ["b:2"]
    assert found.hits[0].score == pytest.approx(score(2, 1, 3), abs=1e-6)


@pytest.mark.parametrize("question", ["", "zebra", "the of"])
def test_nothing_known_in_the_question(tmp_path, question):
    documents = retriever(tmp_path)
    assert documents.retrieve(question, 10).hits == documents.rescore(question, PASSAGES).hits == ()


def test_files_without_pickle_and_mapped(tmp_path):
    save_documents(PASSAGES, token_table(TOKENS), K1, B, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(DOCUMENT_FILES)
    found = load_documents(tmp_path)
    assert found.ids == ("b", "a", "c")
    assert found.document_of.tolist() == [0, 0, 1, 1, 2]
    assert isinstance(found.document_of.base, np.memmap)


@pytest.mark.parametrize("name", DOCUMENT_FILES)
@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[: len(data) // 2], lambda data: b"{}"])
def test_damaged_file(tmp_path, name, damage):
    save_documents(PASSAGES, token_table(TOKENS), K1, B, tmp_path)
    (tmp_path / name).write_bytes(damage((tmp_path / name).read_bytes()))
    with pytest.raises(IndexMismatchError, match="expected the files of"):
        load_documents(tmp_path)


def test_files_of_different_documents(tmp_path):
    save_documents(PASSAGES, token_table(TOKENS), K1, B, tmp_path)
    (tmp_path / "documents.json").write_text(json.dumps(["a", "b"]))
    with pytest.raises(IndexMismatchError, match="not of the same documents"):
        load_documents(tmp_path)


def test_passages_of_a_document_need_not_lie_together(tmp_path):
    mixed = [PASSAGES[n] for n in (2, 0, 4, 1, 3)]
    save_documents(mixed, token_table([tokenise(one.text, PLAIN) for one in mixed]), K1, B, tmp_path)
    mask = np.zeros(len(mixed), dtype=bool)
    found = DocumentBm25(load_documents(tmp_path), PLAIN, Rankable(mixed, tie_order(mixed), mask)).retrieve(
        "gold silver", 9
    )
    assert load_documents(tmp_path).document_of.tolist() == [0, 1, 2, 1, 0]
    b, a = score(2, 1, 3) + score(1, 2, 3), score(1, 2, 2)
    assert dict(scores(found)) == pytest.approx({"b:1": b, "b:2": b, "a:1": a, "a:2": a}, abs=1e-6)

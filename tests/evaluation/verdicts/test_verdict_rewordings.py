"""The hand-written re-wordings and shortened obligations: what their lines hold, and that their passages say it."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from ragqa.corpus.demo import DEMOS
from ragqa.corpus.formats import load_corpus
from ragqa.english.sentences import split_sentences
from ragqa.evaluation.benchmarks.verdicts.labelled import DATA

REWORDINGS = [json.loads(line) for line in (DATA / "verdict_rewordings.jsonl").read_text("utf-8").splitlines()]
OBLIGATIONS = [json.loads(line) for line in (DATA / "verdict_obligations.jsonl").read_text("utf-8").splitlines()]
RUN = 8  # words; a longer run shared with the passage is a quotation, no re-wording


def _demo_texts(name: str) -> dict[tuple[str, str], str]:
    passages = load_corpus(DEMOS[name].source, DEMOS[name].format, 128).passages
    return {(p.document_id, p.passage_id.removeprefix(f"{p.document_id}:")): p.text for p in passages}


def _adgm_texts(data: Path) -> dict[tuple[str, str], str]:
    rows = (row for file in (data / "obliqa" / "documents").glob("*.json") for row in json.loads(file.read_bytes()))
    found: dict[tuple[str, str], str] = {}
    for row in rows:
        found.setdefault((str(row["DocumentID"]), row["PassageID"]), row["Passage"])
    return found


def _xquad_texts(data: Path) -> dict[tuple[str, str], str]:
    lines = (data / "wikipedia" / "xquad_en.jsonl").read_text("utf-8").splitlines()
    return {(str(row["id"]), str(row["id"])): row["text"] for row in map(json.loads, lines)}


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[start : start + RUN]) for start in range(len(words) - RUN + 1)}


def _assert_reworded(corpus: str, texts: dict[tuple[str, str], str]) -> None:
    for row in REWORDINGS:
        if row["corpus"] == corpus:
            passage_id = row["passage_id"].removeprefix(f"{row['document_id']}:")
            text = texts[row["document_id"], passage_id]
            assert not _runs(row["hypothesis"]) & _runs(text), row["id"]


def test_a_re_wording_has_its_fields_and_no_others():
    fields = ["id", "corpus", "document_id", "passage_id", "hypothesis", "label", "part"]
    assert all(list(row) == fields for row in REWORDINGS)
    assert all(isinstance(value, str) and value == value.strip() != "" for row in REWORDINGS for value in row.values())
    assert {row["label"] for row in REWORDINGS} == {"supported"}
    assert all(row["hypothesis"].endswith(".") for row in REWORDINGS)


def test_150_re_wordings_over_four_corpora():
    counts = Counter(row["corpus"] for row in REWORDINGS)
    assert counts == {"rulebook": 50, "encyclopedia": 50, "adgm": 30, "xquad": 20}
    assert len({row["hypothesis"] for row in REWORDINGS}) == len(REWORDINGS)


def test_an_obligation_has_its_fields_and_no_others():
    fields = ["id", "corpus", "document_id", "passage_id", "obligation", "answer", "missing", "kind", "label", "part"]
    assert all(list(row) == fields for row in OBLIGATIONS)
    assert all(isinstance(value, str) and value == value.strip() != "" for row in OBLIGATIONS for value in row.values())
    assert {(row["corpus"], row["label"]) for row in OBLIGATIONS} == {("rulebook", "covered in part")}
    assert Counter(row["kind"] for row in OBLIGATIONS) == {"condition": 20, "deadline": 20, "exception": 20}


@pytest.mark.parametrize(("rows", "stem"), [(REWORDINGS, "reword"), (OBLIGATIONS, "oblig")])
def test_ids_count_up_and_even_ones_are_sealed(rows, stem):
    assert [row["id"] for row in rows] == [f"{stem}-{number:03}" for number in range(1, len(rows) + 1)]
    assert [row["part"] for row in rows] == ["open", "sealed"] * (len(rows) // 2)


def test_obligations_are_sentences_of_the_rulebook():
    texts = _demo_texts("rulebook")
    for row in OBLIGATIONS:
        text = texts[row["document_id"], row["passage_id"]]
        assert row["obligation"] in {sentence.text for sentence in split_sentences(text)}, row["id"]


def test_what_is_missing_stands_in_the_obligation_and_not_in_the_answer():
    for row in OBLIGATIONS:
        assert row["missing"] in row["obligation"], row["id"]
        assert row["missing"].lower() not in row["answer"].lower(), row["id"]
        assert row["answer"] != row["obligation"], row["id"]


@pytest.mark.parametrize("corpus", ["rulebook", "encyclopedia"])
def test_re_wordings_of_our_own_corpora_copy_nothing(corpus):
    _assert_reworded(corpus, _demo_texts(corpus))


@pytest.mark.data
@pytest.mark.parametrize(("corpus", "texts_of"), [("adgm", _adgm_texts), ("xquad", _xquad_texts)])
def test_re_wordings_of_shared_corpora_copy_nothing(shared_data, corpus, texts_of):
    _assert_reworded(corpus, texts_of(shared_data))

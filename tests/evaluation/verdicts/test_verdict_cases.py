"""The edited sentences that verdicts are measured on: their fields, counts and sources. See ORIGIN.md beside them."""

import json
from collections import Counter

import pytest

from ragqa.corpus.demo import DEMOS
from ragqa.corpus.formats import load_corpus
from ragqa.evaluation.benchmarks.verdicts.labelled import DATA
from ragqa.settings.config import IndexingConfig

CONTRADICTED = ("number", "date", "unit", "amount", "modal", "modal strength", "negation", "party", "entity")
SAYS_MORE = ("condition dropped", "exception dropped", "some for all", "only dropped")
FIELDS = {"id", "corpus", "document_id", "passage", "source", "hypothesis", "kind", "label", "part"}
PARTS = ("sealed", "open")  # of an even number, of an odd one


@pytest.fixture(scope="module")
def cases():
    return [json.loads(line) for line in (DATA / "verdict_edits.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def texts():
    """The passages' texts by corpus, document and how a case names the passage: an article is named by its file."""
    found = {}
    for name, demo in DEMOS.items():
        for passage in load_corpus(demo.source, demo.format, IndexingConfig().chunk_max_tokens).passages:
            place = f"{passage.document_id}.md" if name == "encyclopedia" else passage.passage_id
            found.setdefault((name, passage.document_id, place), []).append(passage.text)
    return found


def test_the_label_follows_from_the_kind_and_what_clashes_is_quoted(cases):
    for case in cases:
        contradicted = case["kind"] in CONTRADICTED
        assert case.keys() == (FIELDS | {"clash"} if contradicted else FIELDS), case["id"]
        assert case["label"] == ("contradicted" if contradicted else "not supported"), case["id"]
        if contradicted:
            in_source, in_hypothesis = case["clash"]
            assert in_source in case["source"], case["id"]
            assert in_hypothesis in case["hypothesis"], case["id"]


def test_there_are_as_many_of_each_kind_as_was_asked_for(cases):
    counts = Counter(case["kind"] for case in cases)
    assert set(counts) == {*CONTRADICTED, *SAYS_MORE}
    assert sum(counts[kind] for kind in CONTRADICTED) == 200
    assert all(20 <= counts[kind] <= 24 for kind in CONTRADICTED)
    assert all(counts[kind] == 15 for kind in SAYS_MORE)


def test_every_source_stands_word_for_word_in_its_passage(cases, texts):
    for case in cases:
        found = texts[case["corpus"], case["document_id"], case["passage"]]
        assert any(case["source"] in text for text in found), case["id"]
        assert case["hypothesis"] != case["source"], case["id"]


def test_nothing_is_used_too_often_or_in_both_parts(cases):
    assert [case["id"] for case in cases] == [f"edit-{number:03}" for number in range(1, len(cases) + 1)]
    assert len({case["hypothesis"] for case in cases}) == len(cases)
    assert max(Counter(case["source"] for case in cases).values()) <= 2
    open_sources, sealed_sources = (
        {case["source"] for case in cases if case["part"] == part} for part in ("open", "sealed")
    )
    assert not open_sources & sealed_sources


def test_each_part_holds_half_of_every_kind_and_of_both_corpora(cases):
    assert all(case["part"] == PARTS[int(case["id"].removeprefix("edit-")) % 2] for case in cases)
    for key in ("kind", "corpus"):
        for value in {case[key] for case in cases}:
            counts = Counter(case["part"] for case in cases if case[key] == value)
            assert abs(counts["open"] - counts["sealed"]) <= 2, value


def test_what_models_wrote_is_labelled_by_passages_that_there_are(texts):
    rows = [json.loads(line) for line in (DATA / "verdict_written.jsonl").read_text(encoding="utf-8").splitlines()]
    assert Counter(row["label"] for row in rows) == {"supported": 47, "contradicted": 10, "unsupported": 31}
    assert {row["part"] for row in rows} == set(PARTS)
    documents = {(corpus, document) for corpus, document, _ in texts}
    for row in rows:
        assert row.keys() == {"id", "corpus", "model", "question", "passages", "hypothesis", "label", "part"}, row["id"]
        assert {(row["corpus"], name.partition(":")[0]) for name in row["passages"]} <= documents, row["id"]
    of_answer = {(row["model"], row["question"]): row["part"] for row in rows}
    assert all(of_answer[row["model"], row["question"]] == row["part"] for row in rows)

"""Duplicates, splits without leakage, statistics, and every form of the export read back."""

import json

from hypothesis import given
from hypothesis import strategies as st

from ragqa.corpus.questions import load_gold, load_questions
from ragqa.lab.dataset.exporting import export
from ragqa.lab.dataset.finishing import SPLITS, card, duplicates, relevant_only, split, statistics
from ragqa.lab.dataset.validating import cover, judged, kept_by_rirag
from ragqa.types.scores import NliProbabilities
from tests.support.fakes import passage


def row(number, passages, **changes):
    plain = {"id": f"q{number}", "question": f"What must firm {number} do?", "passages": passages, "topic": "a, b"}
    plain |= {"kind": "obligation", "persona": "professional", "form": "question", "from": "one passage"}
    return plain | {"group": len(passages), "ranks": {"fused": [1] * len(passages)}, "split": "train", **changes}


def test_near_duplicates_name_the_first_and_not_each_other():
    asked = [
        "Must a firm keep records of complaints?",
        "Who may visit a fund?",
        "For an audit: must a firm keep records of complaints?",
    ]
    assert duplicates(asked) == [None, None, 0]
    assert duplicates(["Is it?"]) == [None]
    assert duplicates([]) == []


@given(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=3, unique=True), min_size=1, max_size=40))
def test_no_passage_and_no_section_is_in_two_splits(golds):
    rows = [row(n, [f"p{one}" for one in gold]) for n, gold in enumerate(golds)]
    sections = {f"p{n}": f"section {n // 2}" for n in range(31)}
    found = split(rows, sections, 1)
    assert found == split(rows, sections, 1)
    assert set(found) <= set(SPLITS)
    where = {}
    for one, part in zip(rows, found, strict=True):
        for name in one["passages"]:
            assert where.setdefault(sections[name], part) == part


def test_splits_are_as_large_as_they_should_be():
    parts = split([row(n, [f"p{n}"]) for n in range(200)], {}, 1)
    assert [parts.count(name) for name in SPLITS] == [160, 20, 20]


def test_a_passage_that_experts_found_irrelevant_goes_with_its_rank():
    asked = row(1, ["a", "b", "c"], ranks={"fused": [3, None, 40], "BM25": [1, 2, 3]})
    found = relevant_only(asked, {"q1 b": "irrelevant", "q1 c": "indirect", "q2 a": "null"})
    assert (found["passages"], found["ranks"]) == (["a", "c"], {"fused": [3, 40], "BM25": [1, 3]})
    assert statistics([found], {}, {})["difficulty"]["fused"]["first 100"] == 1.0
    assert relevant_only(asked, {}) == asked


def test_statistics_are_those_of_rirags_tables():
    rows = [row(1, ["a"]), row(2, ["a", "b"], split="dev"), row(3, ["c"], group=2, ranks={"fused": [None]})]
    found = statistics(rows, {"written": 5}, {"q1 a": "relevant", "q2 a": "indirect", "q2 b": "relevant"})
    assert found["by_group"]["group 2"] == {"questions": 2, "1 passages": 1, "2 passages": 1}
    assert found["by_split"] == {"train": 2, "dev": 1, "test": 0}
    assert found["labels"] == {"group 1": {"relevant": 1}, "group 2": {"indirect": 1, "relevant": 1}}
    assert found["difficulty"]["fused"]["first 10"] == 0.75
    stamp = {"ragqa_version": "1", "writer": "rules", "index_sha256": "a" * 64, "seed": 1}
    text = card("mine", found, stamp, "ragqa dataset make mine")
    assert "3 questions on 3 gold passages" in text
    assert "| group 2 |" in text


def test_every_form_of_the_export_says_the_same(tmp_path):
    corpus = [passage("7:2.1.(1)", "First text."), passage("7:2.2", "Second text."), passage("chunk-3", "Third text.")]
    rows = [row(1, ["7:2.1.(1)"]), row(2, ["7:2.2", "7:2.1.(1)"], split="dev"), row(3, ["chunk-3"])]
    names = export(tmp_path, rows, {one.passage_id: one for one in corpus}, corpus)
    gold = {one["id"]: frozenset(one["passages"]) for one in rows}
    read, unit = load_gold(tmp_path / "export/obliqa/all.json", corpus)
    assert unit == "passage"
    assert {one.question.question_id: one.gold for one in read} == gold
    assert not any(one.pair for one in read)
    assert [one.question.question_id for one in load_questions(tmp_path / "export/obliqa/dev.json")] == ["q2"]
    lines = [json.loads(line) for line in (tmp_path / "export/dataset.jsonl").read_text().splitlines()]
    assert {one["question_id"]: frozenset(one["gold_passage_ids"]) for one in lines} == gold
    qrels = [line.split() for line in (tmp_path / "export/trec/all.qrels").read_text().splitlines()]
    assert {(one[0], one[2]) for one in qrels} == {(name, one) for name, of in gold.items() for one in of}
    beir = [line.split("\t") for line in (tmp_path / "export/beir/qrels/all.tsv").read_text().splitlines()[1:]]
    assert [(a, b) for a, b, _ in beir] == [(one[0], one[2]) for one in qrels]
    assert len((tmp_path / "export/beir/corpus.jsonl").read_text().splitlines()) == 3
    assert len(names) == 4 * 4 + 3


@given(st.tuples(st.floats(0.01, 1), st.floats(0.01, 1), st.floats(0.01, 1)))
def test_rirags_rule_comes_to_entailment_above_contradiction(weights):
    contradiction, entailment, neutral = (one / sum(weights) for one in weights)
    found = NliProbabilities(contradiction, entailment, neutral)
    if abs(entailment - contradiction) > 1e-9:
        assert kept_by_rirag(found) == (entailment > contradiction)


def test_the_rules_that_keep_a_question():
    one = passage("1:1", "A firm must keep records of complaints.")
    assert cover("Must a firm keep records?", one) == 1.0
    assert cover("Who visits?", one) == 0.0
    good = {"rirag": True, "cover": 0.9, "with_neighbours": True}
    poor = {"rirag": False, "cover": 0.1, "with_neighbours": True}
    both = {"problem": "", "passages": [good, poor]}
    assert judged(both, "rirag") == ([0], "")
    assert judged(both, "ours")[0] == []
    assert "too few" in judged(both, "ours")[1]
    assert judged(both, "none") == ([0, 1], "")
    assert judged({**both, "problem": "points at something"}, "none") == ([], "points at something")
    unanswered = {"problem": "", "passages": [{**good, "with_neighbours": False}]}
    assert "do not answer" in judged(unanswered, "ours")[1]

"""Questions by number of gold passages, type and document; both passages of a cross-reference question."""

import json
from types import SimpleNamespace

import pytest

from ragqa.corpus.questions import GoldQuestion, load_gold
from ragqa.evaluation.benchmarks.retrieval.breakdown import (
    breakdown,
    groups_of,
    pair_figures,
    pairs_beside,
    question_type,
    ranks_of,
)
from ragqa.evaluation.files import holds_gold
from ragqa.types import Passage, Question

GOLD = (
    GoldQuestion(Question("What must a firm do?", "1"), frozenset({"1:a", "2:b"}), pair=("1:a", "2:b"), kind="DPEL"),
    GoldQuestion(Question("Must it tell us?", "2"), frozenset({"1:a", "1:c"}), pair=("1:c", "1:a")),
    GoldQuestion(Question("A firm has a client. How does it report?", "3"), frozenset({"1:c"})),
)
RANKS = ({"1:a": 1, "2:b": 4}, {"1:a": 2, "1:c": 12}, {"1:c": 150})


def test_ranks_are_those_where_a_gold_passage_first_stands():
    assert ranks_of(frozenset("ab"), list("xaxa")) == {"a": 2}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("What must a firm do?", "what"),
        ("- Can it?", "whether"),
        ("It holds money. For whom is it held?", "who"),
        ("Under Rule 3, how is it done?", "how"),
        ("Tell me.", "other"),
    ],
)
def test_what_a_question_asks(text, kind):
    assert question_type(text) == kind


def test_pairs_are_counted_once_each():
    found = pair_figures([one.pair for one in GOLD[:2]], RANKS[:2])
    assert (found.both, found.only_source, found.only_target, found.neither) == (0.5, 0, 0.5, 0)
    assert found.reciprocal_rank == pytest.approx((1 / 4 + 1 / 12) / 2)
    assert found.recall == 0.75


def test_groups_are_by_gold_type_kind_and_document():
    groups = groups_of(GOLD, documents=True)
    assert groups["1 gold passage"] == [2]
    assert groups["2 gold passages"] == [0, 1]
    assert groups["kind DPEL"] == groups["several documents"] == [0]
    assert groups["document 1"] == [1, 2]
    assert not any("document" in name for name in groups_of(GOLD, documents=False))


def test_tables_show_the_configuration_asked_for_and_json_all():
    ranks = {"fused": RANKS, "bm25": ({}, {}, {})}
    table, data = breakdown(GOLD, ranks, "fused", documents=True)
    assert next(line.cells for line in table.lines if line.name == "1 gold passage") == ("1", "0.000", "1.000")
    assert data["bm25"]["2 gold passages"] == {"n_questions": 2, "recall": 0, "candidates": 0}
    pairs = pairs_beside(GOLD, ranks, "bm25")
    assert pairs is not None
    assert pairs[1]["fused"]["both"] == 0.5
    assert pairs[0].lines[0].cells[-1].startswith("+0.500")
    assert pairs_beside(GOLD[2:], {"fused": RANKS[2:]}, "fused") is None


def test_files_of_xrefrag_and_obliqa_mp_are_read(tmp_path):
    """Ids without their final full stop, gold as a text that holds the list, and pairs."""
    passages = [Passage(f"3:{name}", "3", "A firm must report.") for name in ("1.1.", "1.2")]
    gold = [{"DocumentID": 3, "PassageID": "1.1"}, {"DocumentID": 3, "PassageID": "1.2"}]
    items = [
        {"QuestionID": "x", "Question": "What?", "Kind": "DPEL", "Reference": "1.2", "Passages": gold},
        {"QuestionID": "t", "Question": "How?", "Answer": "So [#SRC:1] and [#TGT:2].", "Passages": str(gold)},
        {"QuestionID": "j", "Question": "How?", "Answer": "So.", "Passages": json.dumps(gold)},
    ]
    (tmp_path / "q.json").write_text(json.dumps(items))
    found, unit = load_gold(tmp_path / "q.json", passages)
    assert unit == "passage"
    assert {one.gold for one in found} == {frozenset({"3:1.1.", "3:1.2"})}
    assert [one.pair for one in found] == [("3:1.1.", "3:1.2"), ("3:1.1.", "3:1.2"), ()]
    assert [one.kind for one in found] == ["DPEL", "", ""]


def test_an_index_holds_gold_whose_ids_lack_their_final_full_stop(tmp_path):
    gold = [{"DocumentID": 3, "PassageID": "1.1"}, {"DocumentID": 3, "PassageID": "1.2"}]
    (tmp_path / "q.json").write_text(json.dumps([{"QuestionID": "x", "Question": "What?", "Passages": gold}]))
    passages = [Passage("3:1.1.", "3", "A firm must report.")]
    assert holds_gold(tmp_path / "q.json", SimpleNamespace(passages=passages, position_of={"3:1.1.": 0}))
    assert not holds_gold(tmp_path / "q.json", SimpleNamespace(passages=passages, position_of={"3:2.1.": 0}))

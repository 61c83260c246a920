"""Two runs on the same questions: the difference is over those in both, and what turned is named."""

import pytest

from ragqa.evaluation.report import Column, Row
from ragqa.evaluation.two_runs import compared, paired, turned

RECALL = Column("recall", "recall")


def rows(*values):
    return [Row(n, f"q{n}", f"Question {n}?", value > 0.5, {"recall": value}) for n, value in enumerate(values, 1)]


def test_differences_are_over_the_questions_in_both_with_their_interval():
    pairs = paired(rows(0.2, 0.4, 0.9, 0.6), rows(0.4, 0.6, 0.3))
    right, recall = compared(pairs, (RECALL, Column("absent", "absent"))).lines
    assert [one[0].question_id for one in turned(pairs)] == ["q2", "q3"]
    assert (recall.name, recall.cells[0], recall.cells[1], recall.cells[4]) == ("recall", "0.500", "0.433", "3")
    assert recall.cells[2].startswith("-0.067 [-0.600, +0.200]")
    assert right.cells[:2] == ("0.333", "0.333")


def test_a_run_beside_itself_differs_in_nothing():
    one = rows(0.2, 0.9)
    assert [line.cells[2] for line in compared(paired(one, one), (RECALL,)).lines] == ["+0.000 [+0.000, +0.000]"] * 2
    assert turned(paired(one, one)) == []


@pytest.mark.parametrize("other", [[], [Row(1, "z", "Other?", True)]])
def test_without_a_common_question_nothing_is_compared(other):
    assert compared(paired(rows(0.2), other), (RECALL,)).lines == ()


def test_probes_that_share_an_id_are_paired_by_their_text():
    a = [Row(1, "number", "Three.", True), Row(2, "number", "Four.", False), Row(3, "number", "Four.", True)]
    b = [Row(1, "number", "Four.", True), Row(2, "number", "Four.", True), Row(3, "number", "Three.", True)]
    assert [(x.number, y.number) for x, y in paired(a, b)] == [(1, 3), (2, 1), (3, 2)]


def test_other_questions_under_the_same_id_are_no_pair():
    assert paired([Row(1, "1", "Who reports?", True)], [Row(1, "1", "When is it due?", False)]) == []

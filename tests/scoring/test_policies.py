"""A rule held against policies, both ways: what is said in part, what is missing, which words clash."""

from dataclasses import replace

import pytest

from ragqa.scoring.policies import cover_of_all, policy_verdicts
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.settings.config import ScoringConfig
from ragqa.types import Passage
from ragqa.types.scores import Cover, NliProbabilities
from tests.support.fakes import FakeNli, FakeObligations

RULE = "A firm must keep a log of gifts for 5 years, review the log every month and tell the Regulator of gifts."
POLICY = "We keep a log of gifts for 5 years."
KEEP, REVIEW, TELL = (
    "A firm must keep a log of gifts for 5 years",
    "review the log every month",
    "tell the Regulator of gifts",
)
YES, NO, NOTHING = (
    NliProbabilities(0.02, 0.9, 0.08),
    NliProbabilities(0.9, 0.02, 0.08),
    NliProbabilities(0.05, 0.05, 0.9),
)


def verdict_of(said, *policy, rule=RULE):
    """The verdict with these probabilities by (premise, hypothesis), by the hypothesis, or nothing."""

    class Table(FakeNli):
        def _default(self, premise, hypothesis):
            return said.get((premise, hypothesis)) or said.get(hypothesis) or NOTHING

    scorer = RepassScorer(FakeNli(), FakeNli(), FakeObligations(), ScoringConfig(), None, Table())
    (found,) = policy_verdicts(Passage("1:1", "1", rule), [policy or [POLICY]], scorer)
    return found


def words(verdicts):
    return [span.text for one in verdicts for span in one.missing]


def test_a_rule_that_entails_the_policy_is_covered_in_part_without_the_clauses_that_are_not_said():
    found = verdict_of({POLICY: YES, KEEP: YES})
    assert cover_of_all(found) is Cover.IN_PART
    assert words(found) == [REVIEW, TELL]
    assert found[0].answer_index == 0
    assert found[0].reason == f"Sentence 1 says it without “{REVIEW}”, “{TELL}”."
    assert cover_of_all(verdict_of({})) is Cover.NOT_COVERED


def test_of_a_rule_that_is_said_as_a_whole_each_clause_must_be_said():
    every = {RULE: YES, KEEP: YES, f"A firm must {REVIEW}": YES, f"A firm must {TELL}": YES}
    policy = f"{POLICY} And {REVIEW}; then {TELL} each month."
    assert cover_of_all(verdict_of(every, policy)) is Cover.COVERED
    assert words(verdict_of(every | {f"A firm must {TELL}": NOTHING}, policy)) == [TELL]


def test_a_rule_that_is_nearly_told_is_covered_where_its_numbers_and_clauses_are():
    rule, nearly = "A firm must keep a log of gifts for 5 years.", NliProbabilities(0.1, 0.6, 0.3)
    said = {rule: nearly, KEEP: nearly}
    assert cover_of_all(verdict_of(said, rule=rule)) is Cover.COVERED
    assert cover_of_all(verdict_of(said, "We keep a log of gifts for 3 years.", rule=rule)) is Cover.NOT_COVERED
    rule = f"{KEEP} and {TELL}."
    assert words(verdict_of({rule: nearly, KEEP: nearly}, rule=rule)) == [TELL]


def test_the_clause_that_clashes_is_named():
    policy = f"{POLICY} We review the log each year."
    found = verdict_of({RULE: NO, f"A firm must {REVIEW}": NO}, policy)
    assert cover_of_all(found) is Cover.IN_CONFLICT
    assert words(found) == [REVIEW]
    assert words(verdict_of({RULE: NO}, policy)) == [RULE]  # where none does by itself, the rule


def test_only_the_nearest_sentence_of_a_policy_conflicts():
    far = "Nobody wears a red hat on Monday."
    said = {far: NO, RULE: YES, KEEP: YES, f"A firm must {REVIEW}": YES, f"A firm must {TELL}": YES}
    assert cover_of_all(verdict_of(said, f"{POLICY} And {REVIEW}; then {TELL} each month.", far)) is Cover.COVERED
    near = f"We never {REVIEW} for 5 years."
    assert cover_of_all(verdict_of({near: NO}, near, far)) is Cover.IN_CONFLICT


def test_a_period_that_is_missing_is_named_with_its_clause():
    said = {RULE: YES, KEEP: YES, f"A firm must {REVIEW}": YES, f"A firm must {TELL}": YES}
    assert words(verdict_of(said, "We keep a log of gifts, review it and tell the Regulator.")) == [KEEP, REVIEW]


@pytest.mark.parametrize(
    ("covers", "joined"),
    [
        ([Cover.COVERED], Cover.COVERED),
        ([Cover.COVERED, Cover.NOT_COVERED], Cover.IN_PART),
        ([Cover.NOT_COVERED, Cover.IN_CONFLICT], Cover.IN_CONFLICT),
    ],
)
def test_what_several_verdicts_come_to(covers, joined):
    (one,) = verdict_of({})
    assert cover_of_all([replace(one, cover=cover) for cover in covers]) is joined

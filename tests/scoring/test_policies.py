"""A rule held against policies, both ways: what is said in part, what is missing, which words clash."""

from dataclasses import replace

import pytest

from ragqa.scoring.policies import Firm, clash_words, cover_of_all, policy_verdicts
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.scoring.verdicts.obligations import read_against
from ragqa.settings.config import ScoringConfig
from ragqa.types import AnswerSentence, Passage, Span
from ragqa.types.scores import Cover, NliProbabilities
from tests.support.fakes import FakeNli, FakeObligations

RULE = "A firm must keep a log of gifts for 5 years, review the log every month and tell the Regulator of gifts."
POLICY = "We keep a log of gifts for 5 years."
KEEP, REVIEW, TELL = (
    "A firm must keep a log of gifts for 5 years",
    "review the log every month",
    "tell the Regulator of gifts",
)
YES, NO, NOTHING, NEARLY = (
    NliProbabilities(0.02, 0.9, 0.08),
    NliProbabilities(0.9, 0.02, 0.08),
    NliProbabilities(0.05, 0.05, 0.9),
    NliProbabilities(0.2, 0.45, 0.35),
)
EVERY = {RULE: YES, KEEP: YES, f"A firm must {REVIEW}": YES, f"A firm must {TELL}": YES}
ITEMS = ("the name of each customer", "every complaint received")
WHOLE = f"{POLICY} And {REVIEW}; then {TELL} each month."


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


def test_clauses_that_a_policy_does_not_state_are_named():
    found = verdict_of({KEEP: YES})
    assert cover_of_all(found) is Cover.IN_PART
    assert words(found) == [REVIEW, TELL]
    assert found[0].answer_index == 0
    assert found[0].reason == f"Sentence 1 says it without “{REVIEW}”, “{TELL}”."
    assert cover_of_all(verdict_of({})) is Cover.NOT_COVERED
    assert words(verdict_of(EVERY | {f"A firm must {TELL}": NOTHING}, WHOLE)) == [TELL]


def test_a_rule_is_covered_where_the_whole_and_each_clause_are_stated():
    assert cover_of_all(verdict_of(EVERY, WHOLE)) is Cover.COVERED
    found = verdict_of(EVERY | {RULE: NEARLY, f"A firm must {TELL}": NEARLY}, WHOLE)
    assert cover_of_all(found) is Cover.IN_PART
    assert words(found) == [TELL]  # the clause that is least stated


def test_a_quotation_of_the_rule_covers_it_and_a_policy_without_sentences_does_not():
    (found,) = verdict_of({RULE: NO}, RULE)
    assert (found.cover, found.rule) == (Cover.COVERED, "quotation")
    scorer = RepassScorer(FakeNli(), FakeNli(), FakeObligations(), ScoringConfig(), None, FakeNli())
    ((found,),) = policy_verdicts(Passage("1:1", "1", RULE), [[]], scorer)
    assert found.cover is Cover.NOT_COVERED
    (found,) = verdict_of({RULE: NO}, "Die Firma meldet der Behörde jeden Verstoß, und die Behörde ist nicht befugt.")
    assert found.reason == "The policy has no sentence that can be read."
    german = "Die Firma muss der Behörde jeden Verstoß melden, und die Behörde ist nicht befugt."
    assert verdict_of({}, german, rule=german)[0].rule == "quotation"


def test_each_item_of_a_list_is_a_unit_after_its_lead_in():
    rule = "A firm must: (a) keep a log of gifts for 5 years; and (b) tell the Regulator of gifts."
    found = verdict_of({"A firm must keep a log of gifts for 5 years": YES, rule: NEARLY}, rule=rule)
    assert cover_of_all(found) is Cover.IN_PART
    assert words(found) == [TELL]


def test_the_clause_that_clashes_is_named():
    policy = f"{POLICY} We review the log each year."
    found = verdict_of({RULE: NO, f"A firm must {REVIEW}": NO}, policy)
    assert cover_of_all(found) is Cover.IN_CONFLICT
    assert words(found) == [REVIEW]
    assert words(verdict_of({RULE: NO}, policy)) == [RULE]  # where none does by itself, the rule
    clause_alone = EVERY | {f"A firm must {REVIEW}": NO}
    assert cover_of_all(verdict_of(clause_alone, policy)) is Cover.IN_PART  # the rule as a whole decides


def test_a_stricter_number_is_read_as_the_rules_own():
    rule, policy = "A firm must tell the Regulator of a breach within 5 days.", "We tell the Regulator within 2 days."
    seen = []

    class Reading(FakeNli):
        def _default(self, premise, hypothesis):
            seen.append(hypothesis)
            return YES

    scorer = RepassScorer(FakeNli(), FakeNli(), FakeObligations(), ScoringConfig(), None, Reading())
    for days, text in ((2, rule.replace("5 days", "2 days")), (30, rule)):
        seen.clear()
        policy_verdicts(Passage("1:1", "1", rule), [[policy.replace("2 days", f"{days} days")]], scorer)
        assert text in seen


def test_a_conflict_is_probable_and_a_short_text_conflicts_only_where_it_is_surely_on_the_subject():
    unlikely = NliProbabilities(0.45, 0.05, 0.5)
    assert cover_of_all(verdict_of({RULE: NO})) is Cover.IN_CONFLICT
    assert cover_of_all(verdict_of({RULE: unlikely})) is Cover.NOT_COVERED
    apart = (
        "The log of gifts that the Regulator may review each month for years is a book bound in red calf by a printer "
        "near the harbour, with blank pages, a brass lock and a ribbon of silk."
    )
    assert cover_of_all(verdict_of({RULE: NO}, apart)) is Cover.NOT_COVERED
    long = f"{apart} {'The choir of the firm meets on each Monday in the large hall of the town. ' * 2}"
    assert cover_of_all(verdict_of({RULE: NO}, long)) is Cover.IN_CONFLICT


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("We keep a log for 3 years.", ("5 years", "3 years")),
        ("We keep no log of gifts.", (KEEP, "We keep no log of gifts.")),
        ("We keep 2 logs for 3 weeks and 4 months.", (KEEP, "We keep 2 logs for 3 weeks and 4 months.")),
    ],
)
def test_the_words_that_clash_are_numbers_of_one_kind_or_both_sentences(policy, words):
    assert clash_words(KEEP, policy) == words


def test_clauses_that_share_only_the_lead_in_are_not_named_in_a_conflict():
    rule = "A firm must keep a record of: (a) the name of each customer; and (b) every complaint received."
    names, complaints = (f"A firm must keep a record of {one}" for one in ITEMS)
    found = verdict_of({rule: NO, names: NO, complaints: NO}, "We keep no record of a complaint received.", rule=rule)
    assert words(found) == ["every complaint received"]


def test_a_long_policy_that_states_each_item_covers_a_list():
    rule = "A firm must keep a record of: (a) the name of each customer; and (b) every complaint received."
    names, complaints = (f"A firm must keep a record of {one}" for one in ITEMS)
    filler = "The choir of the firm meets on each Monday in the large hall of the town and sings for an hour or two."
    policy = ["We keep the name of each customer.", *[filler] * 12, "We keep a record of every complaint received."]
    found = verdict_of({rule: NOTHING, names: YES, complaints: YES}, *policy, rule=rule)
    assert cover_of_all(found) is Cover.COVERED


def test_a_long_policy_that_states_each_clause_apart_does_not_cover_a_rule_without_a_list():
    filler = "The choir of the firm meets on each Monday in the large hall of the town and sings for an hour or two."
    clauses = {pair: YES for pair in EVERY if pair != RULE}
    policy = [POLICY, *[filler] * 12]
    assert cover_of_all(verdict_of(clauses | {RULE: NOTHING}, *policy)) is Cover.IN_PART
    assert cover_of_all(verdict_of(clauses | {RULE: YES}, *policy)) is Cover.COVERED


def test_a_rule_of_punctuation_alone_is_read():
    assert verdict_of({}, rule="A firm must keep, : :")


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


def test_the_rules_party_and_the_policys_own_name_are_one_firm_to_the_model():
    nli, rule = FakeNli(), "Each clearing member must lock the clearing member's vault."
    scorer = RepassScorer(FakeNli(), FakeNli(), FakeObligations(), ScoringConfig(), None, nli)
    firm = Firm("Clearing Member", "Northgate")
    ((verdict,),) = policy_verdicts(
        Passage("1", "1", rule), [["Northgate locks Northgate's vault at dusk."]], scorer, firm=firm
    )
    assert ("the firm locks the firm's vault at dusk.", "the firm must lock the firm's vault.") in nli.pairs
    assert all(span.text in rule for span in verdict.missing)


def test_a_long_policy_conflicts_only_by_its_nearest_sentence_alone():
    rule, clash = "A firm must lock the vault at night.", "We must never lock the vault at night."
    others = [f"Gardener {n} waters the plants of row {n} in the morning and trims the hedge." for n in range(20)]

    def label(nearest, denied):
        class Denying(FakeNli):
            def _default(self, premise, hypothesis):
                return NO if denied(premise) else NOTHING

        scorer = RepassScorer(FakeNli(), FakeNli(), FakeObligations(), ScoringConfig(), None, Denying())
        texts = [*others[:10], nearest, *others[10:]]
        (found,) = policy_verdicts(Passage("1", "1", rule), [texts], scorer, paragraphs=[range(len(texts))])
        return cover_of_all(found)

    assert label(clash, lambda premise: "never" in premise) is Cover.IN_CONFLICT
    assert label(clash, lambda premise: premise != clash) is not Cover.IN_CONFLICT
    far = "A night shift is never planned."
    assert label(far, lambda premise: "never" in premise) is not Cover.IN_CONFLICT


def test_of_a_long_policy_the_nearest_sentences_are_read_together():
    said = [f"Gardener {n} waters the plants of row {n} in the morning and trims the hedge." for n in range(20)]
    said[2], said[9], said[15] = "We lock the vault.", "It is locked at night.", "Two people lock the vault at night."
    rule = "A firm must lock the vault at night."
    (part,) = read_against(
        [(Span(rule, 0, len(rule)), rule)],
        [(n, AnswerSentence(text, 0, len(text))) for n, text in enumerate(said)],
        paragraphs=[0] * len(said),
    )
    assert (part.evidence, part.nearest) == (f"{said[2]} {said[9]} {said[15]}", 15)
    assert part.nearness > 1

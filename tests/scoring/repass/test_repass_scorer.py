"""The scorer with scripted models: premises, order of events, what is computed, both modes, failures."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.english.sentences import SPLITTER
from ragqa.errors import ModelError, ScoringError
from ragqa.scoring.repass.breakdown import source_premises
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.settings.config import ScoringConfig
from ragqa.types.events.scoring import ObligationScored, Scored, SentenceScored
from ragqa.types.scores import NliProbabilities, Premise, RePASs, ScoringMode, Verdict
from tests.support.fakes import FakeNli, FakeObligations, answer, passage
from tests.support.streams import drain

PAPER, SCRIPT = ScoringMode.PAPER, ScoringMode.SCRIPT

KEEP = "Firms must keep records."
TELL = "Firms must tell the Commission."
SKY = "The sky is blue."


def score(nli, given_answer, passages, config=None, obligations=None) -> tuple[list[object], Scored]:
    scorer = RepassScorer(nli, nli, obligations or FakeObligations(), config or ScoringConfig())
    return drain(scorer.stream(given_answer, passages))


def blank(passage_id: str, text: str = ""):
    return replace(passage(passage_id), text=text)


# Premises


def test_paper_premises_are_the_sentences_of_each_passage_alone():
    passages = [passage("a", f"{KEEP} {SKY}"), passage("b", "  "), passage("c", f"\n{TELL}\n")]
    assert source_premises(passages, PAPER) == (
        Premise(KEEP, "a", 0, 0, len(KEEP)),
        Premise(SKY, "a", 0, len(KEEP) + 1, len(KEEP) + 1 + len(SKY)),
        Premise(TELL, "c", 2, 1, 1 + len(TELL)),
    )


def test_script_premises_run_on_where_a_passage_has_no_full_stop():
    passages = [passage("a", "Record keeping"), blank("b"), passage("c", f"{KEEP} {SKY}")]
    run_on, sky = source_premises(passages, SCRIPT)
    assert run_on == Premise(f"Record keeping  {KEEP}", "a", 0, 0, len("Record keeping"))  # two: one per joined passage
    assert sky == Premise(SKY, "c", 2, len(KEEP) + 1, len(KEEP) + 1 + len(SKY))


def test_script_premises_are_the_papers_where_every_passage_ends_a_sentence():
    passages = [passage("a", f"{KEEP} {SKY}"), passage("b", TELL)]
    assert source_premises(passages, SCRIPT) == source_premises(passages, PAPER)


@pytest.mark.parametrize("mode", list(ScoringMode))
@pytest.mark.parametrize("texts", [[], [""], ["", " \n", "\t"]])
def test_blank_passages_have_no_premises(texts, mode):
    assert source_premises([blank(str(n), text) for n, text in enumerate(texts)], mode) == ()


@given(st.lists(st.text("ab. \n\u200e\u0007\U0001f642A", max_size=12), max_size=5))
def test_every_offset_selects_the_text_or_the_part_of_it_in_its_passage(texts):
    passages = [blank(str(n), text) for n, text in enumerate(texts)]
    for mode in ScoringMode:
        for premise in source_premises(passages, mode):
            assert passages[premise.passage_index].passage_id == premise.passage_id
            part = passages[premise.passage_index].text[premise.start : premise.end]
            assert part
            assert premise.text == part if mode is PAPER else premise.text.startswith(part)


# The whole breakdown

TABLE = {
    (KEEP, KEEP): NliProbabilities(0.0, 1.0, 0.0),
    (KEEP, SKY): NliProbabilities(0.2, 0.1, 0.7),
    (TELL, KEEP): NliProbabilities(0.3, 0.4, 0.3),
    (TELL, SKY): NliProbabilities(0.6, 0.1, 0.3),
    # Answer sentence entails obligation?
    (KEEP, TELL): NliProbabilities(0.1, 0.7, 0.2),
    (SKY, KEEP): NliProbabilities(0.0, 0.0, 1.0),
    (SKY, TELL): NliProbabilities(0.0, 0.8, 0.2),
}
PASSAGES = [passage("a", KEEP), passage("b", TELL)]


def test_golden_breakdown_in_both_modes():
    events, scored = score(FakeNli(TABLE), answer(f"{KEEP}\n{SKY}"), PASSAGES)
    paper, script = scored.paper, scored.script

    assert paper.mode is PAPER
    assert paper.repass == RePASs((1.0 + 0.1) / 2, (0.3 + 0.6) / 2, 2 / 2)
    assert paper.entailment_matrix == ((1.0, 0.1), (0.4, 0.1))
    assert paper.contradiction_matrix == ((0.0, 0.2), (0.3, 0.6))
    # The script looks at KEEP only (SKY obliges nobody): TELL has 0.7, which is not above the threshold.
    assert script.mode is SCRIPT
    assert script.repass == RePASs(0.55, 0.45, 1 / 2)
    assert script.repass.composite == (0.55 - 0.45 + 0.5 + 1) / 3
    assert [(o.covered, o.best, o.answer_index) for o in paper.obligations] == [(True, 1.0, 0), (True, 0.8, 1)]
    assert [(o.covered, o.best, o.answer_index) for o in script.obligations] == [(True, 1.0, 0), (False, 0.7, 0)]
    assert paper.obligations[1].margin == 0.8 - 0.7
    assert paper.obligations[1].answer_text == SKY
    assert paper.sentence_splitter == SPLITTER
    assert paper.entailment_model == paper.coverage_model == FakeNli.info
    assert paper.obligation_model == FakeObligations.info
    assert (paper.coverage_threshold, paper.verdict_threshold) == (0.7, 0.5)
    assert events[-1].score == paper.obligations[-1]


def test_each_sentence_names_the_premises_that_decided_it():
    _, scored = score(FakeNli(TABLE), answer(f"{KEEP}\n{SKY}"), PASSAGES)
    keep, sky = scored.paper.sentences
    assert (keep.entailment_premise.passage_id, keep.contradiction_premise.passage_id) == ("a", "b")
    assert (keep.verdict, keep.is_obligation) == (Verdict.SUPPORTED, True)
    assert (sky.verdict, sky.is_obligation) == (Verdict.CONTRADICTED, False)
    assert sky.entailment_premise.passage_id == "a"  # 0.1 and 0.1: the first at a tie


def test_events_come_in_order_with_their_counts():
    events, scored = score(FakeNli(TABLE), answer(f"{KEEP}\n{SKY}"), PASSAGES)
    assert [type(event) for event in events] == [SentenceScored] * 2 + [ObligationScored] * 2
    assert [(event.done, event.total) for event in events] == [(1, 2), (2, 2)] * 2
    assert [event.score for event in events[:2]] == list(scored.paper.sentences)
    assert [event.score for event in events[2:]] == list(scored.paper.obligations)


def test_events_are_those_of_the_configured_mode():
    events, scored = score(FakeNli(TABLE), answer(f"{KEEP}\n{SKY}"), PASSAGES, ScoringConfig(mode=SCRIPT))
    assert [event.score for event in events[2:]] == list(scored.script.obligations)
    assert scored == score(FakeNli(TABLE), answer(f"{KEEP}\n{SKY}"), PASSAGES)[1]


def test_work_of_one_call_is_done_at_once_the_shown_mode_first():
    nli = CountingNli(TABLE)
    events, _ = score(nli, answer(f"{KEEP}\n{SKY}"), PASSAGES, ScoringConfig(mode=SCRIPT))
    assert nli.calls == 1
    assert all(event.final for event in events)
    raw = [pair for pair in nli.pairs if pair[0] in (KEEP, TELL, SKY)]  # the others are for verdicts on obligations
    assert raw[:2] == [(KEEP, SKY), (TELL, SKY)]
    assert raw[2:4] == [(SKY, KEEP), (SKY, TELL)]  # read back for the verdict; the paper's obligations want them, too
    assert raw[4:6] == [(KEEP, KEEP), (TELL, KEEP)]  # a quotation wants no second look
    assert raw[6:] == [(KEEP, TELL)]  # (KEEP, KEEP) is known; SKY is no obligation: only the paper looks at it


def test_equal_pairs_are_computed_once_within_and_across_modes():
    nli = FakeNli()
    passages = [passage("a", f"{KEEP} {SKY}"), passage("b", KEEP)]
    _, scored = score(nli, answer(f"{KEEP}\n{SKY}\n{KEEP}"), passages)
    assert len(nli.pairs) == len(set(nli.pairs))
    assert sorted(nli.pairs) == sorted([(KEEP, KEEP), (SKY, KEEP), (KEEP, SKY), (SKY, SKY)])
    assert scored.paper.n_pairs == 4
    assert scored.script.n_pairs == 4
    assert len(scored.paper.premises) == 3
    assert len(scored.paper.obligations) == 2  # the sentence stands in two passages and must be covered in each


def test_modes_differ_where_a_heading_runs_into_the_next_passage():
    passages = [passage("a", "Records"), passage("b", KEEP)]
    _, scored = score(FakeNli(), answer(KEEP), passages)
    assert [premise.text for premise in scored.paper.premises] == ["Records", KEEP]
    assert [premise.text for premise in scored.script.premises] == [f"Records {KEEP}"]
    assert scored.paper.repass.entailment == 0.9
    assert scored.script.repass.entailment == 0.1
    assert (scored.paper.n_pairs, scored.script.n_pairs) == (2, 2)


def test_many_obligations_are_computed_together_and_yielded_one_by_one():
    duties = [f"Firm {number} must keep records." for number in range(50)]
    nli = CountingNli()
    events, scored = score(nli, answer(SKY), [passage("a", " ".join(duties))])
    scored_duties = [event for event in events if isinstance(event, ObligationScored) and event.final]
    assert [event.score.obligation.text for event in scored_duties] == duties
    assert [event.done for event in scored_duties] == list(range(1, 51))
    # 1 premise; 50 obligations, whose only pair makes them final; 4 more premises; the other 45
    assert nli.calls == 1 + 2 + 1 + 1
    assert scored.paper.repass.obligation_coverage == 0.0


class CountingNli(FakeNli):
    calls = 0

    def predict(self, pairs):
        self.calls += 1
        return super().predict(pairs)


# The script's oddities that published figures hang on, each by name. The formulas' own (arg-max and > 0.7, rounding, OC
# without an obligation) are in test_repass_arithmetic.py.

CERTAIN = NliProbabilities(0.0, 1.0, 0.0)


def test_oddity_coverage_looks_only_at_answer_sentences_that_are_obligations():
    nli = FakeNli({(SKY, TELL): CERTAIN})  # SKY covers TELL for certain, but obliges nobody
    _, scored = score(nli, answer(f"{KEEP}\n{SKY}"), [passage("a", TELL)])
    assert scored.paper.repass.obligation_coverage == 1.0
    assert scored.script.repass.obligation_coverage == 0.0
    (obligation,) = scored.script.obligations
    assert (obligation.answer_index, obligation.answer_text) == (0, KEEP)


def test_oddity_the_label_must_be_the_arg_max_and_above_the_threshold():
    nli = FakeNli({(KEEP, TELL): NliProbabilities(0.5, 0.4, 0.1)})
    _, scored = score(nli, answer(KEEP), [passage("a", TELL)], ScoringConfig(coverage_threshold=0.3))
    assert scored.paper.obligations[0].covered
    assert not scored.script.obligations[0].covered
    assert scored.paper.obligations[0].best == scored.script.obligations[0].best == 0.4


@pytest.mark.parametrize(("entailment", "covered"), [(0.7, False), (math.nextafter(0.7, 1), True)])
def test_oddity_exactly_07_does_not_cover(entailment, covered):
    nli = FakeNli({(KEEP, TELL): NliProbabilities(0.0, entailment, 1 - entailment)})
    _, scored = score(nli, answer(KEEP), [passage("a", TELL)])
    assert [evaluation.obligations[0].covered for evaluation in (scored.paper, scored.script)] == [covered] * 2


def test_oddity_no_source_obligation_gives_coverage_0_and_not_1():
    _, scored = score(FakeNli({(SKY, KEEP): CERTAIN}), answer(KEEP), [passage("a", SKY)])
    assert scored.script.repass == RePASs(1.0, 0.0, 0.0)
    assert scored.script.repass.composite == (1.0 - 0.0 + 0.0 + 1) / 3


def test_oddity_the_parts_are_rounded_to_5_decimals_before_the_composite():
    nli = FakeNli({(SKY, KEEP): NliProbabilities(0.123456, 0.654321, 0.222223)})
    _, scored = score(nli, answer(KEEP), [passage("a", SKY)])
    assert scored.paper.repass == RePASs(0.654321, 0.123456, 0.0)
    assert scored.script.repass == RePASs(0.65432, 0.12346, 0.0)
    assert scored.script.repass.composite == (0.65432 - 0.12346 + 0.0 + 1) / 3


def test_oddity_the_passages_are_joined_with_one_space_before_they_are_split():
    _, scored = score(FakeNli(), answer(SKY), [passage("a", "Records"), passage("b", KEEP)])
    assert [premise.text for premise in scored.script.premises] == [f"Records {KEEP}"]
    assert [premise.text for premise in scored.paper.premises] == ["Records", KEEP]


def test_oddity_the_columns_are_contradiction_entailment_neutral():
    """E is the mean of column 1, C of column 0: another order would swap support and contradiction."""
    nli = FakeNli({(SKY, KEEP): NliProbabilities(*(0.2, 0.5, 0.3))})
    _, scored = score(nli, answer(KEEP), [passage("a", SKY)])
    assert scored.script.repass == RePASs(entailment=0.5, contradiction=0.2, obligation_coverage=0.0)


def test_oddity_an_answer_without_sentences_scores_0_and_not_nan():
    _, scored = score(FakeNli(), answer(""), PASSAGES)
    assert scored.script.repass == RePASs(0.0, 0.0, 0.0)


def test_oddity_equal_source_obligations_count_each_time():
    _, scored = score(FakeNli(), answer(KEEP), [passage("a", f"{KEEP} {TELL}"), passage("b", KEEP)])
    assert scored.script.repass.obligation_coverage == round(2 / 3, 5)


# Re-scoring


def test_scoring_again_with_the_same_models_gives_the_same_breakdown():
    given_answer = answer(f"{KEEP}\n{SKY}")
    first = score(FakeNli(TABLE), given_answer, PASSAGES)[1]
    assert score(FakeNli(TABLE), given_answer, PASSAGES)[1] == first
    other_order = ScoringConfig(mode=SCRIPT)
    assert score(FakeNli(TABLE), given_answer, PASSAGES, other_order)[1] == first


# Empty


def test_an_empty_answer_costs_no_nli_call_and_leaves_every_obligation_uncovered():
    nli = FakeNli()
    events, scored = score(nli, answer(""), PASSAGES)
    assert nli.pairs == []
    assert [type(event) for event in events] == [ObligationScored] * 2
    for evaluation in (scored.paper, scored.script):
        assert evaluation.repass == RePASs(0.0, 0.0, 0.0)
        assert evaluation.repass.composite == 1 / 3
        assert evaluation.sentences == ()
        assert evaluation.entailment_matrix == ((), ())
        assert [(o.covered, o.best, o.margin, o.answer_index, o.answer_text) for o in evaluation.obligations] == [
            (False, 0.0, 0.0 - 0.7, None, "")
        ] * 2
        assert evaluation.n_pairs == 0


@pytest.mark.parametrize("passages", [[], [blank("a", " \n ")]])
@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_passages_without_sentences_support_nothing(passages, threshold):
    nli = FakeNli()
    _, scored = score(nli, answer(KEEP), passages, ScoringConfig(verdict_threshold=threshold))
    assert nli.pairs == []
    (sentence,) = scored.paper.sentences
    assert (sentence.entailment, sentence.contradiction, sentence.verdict) == (0.0, 0.0, Verdict.UNSUPPORTED)
    assert sentence.entailment_premise is None
    assert sentence.contradiction_premise is None
    assert scored.paper.entailment_matrix == ()
    assert scored.paper.repass == scored.script.repass == RePASs(0.0, 0.0, 0.0)


def test_neither_answer_nor_passages():
    obligations = FailingObligations(RuntimeError("must not be called"))
    events, scored = score(FakeNli(), answer(""), [], obligations=obligations)
    assert events == []
    assert scored.of(SCRIPT).repass == RePASs(0.0, 0.0, 0.0)


def test_without_obligations_coverage_is_0_in_both_modes():
    _, scored = score(FakeNli(), answer(SKY), [passage("a", SKY)])
    assert scored.paper.repass == RePASs(0.9, 0.05, 0.0)
    assert scored.paper.obligations == scored.script.obligations == ()


def test_without_an_obligation_in_the_answer_the_script_has_nothing_to_look_at():
    _, scored = score(FakeNli({(SKY, KEEP): NliProbabilities(0, 1, 0)}), answer(SKY), [passage("a", KEEP)])
    assert scored.paper.repass.obligation_coverage == 1.0
    assert scored.script.repass.obligation_coverage == 0.0
    assert scored.script.obligations[0].answer_index is None


# Failures


class FailingNli(FakeNli):
    def __init__(self, error, after=0):
        super().__init__()
        self.error, self.after = error, after

    def predict(self, pairs):
        if self.after == 0:
            raise self.error
        self.after -= 1
        return super().predict(pairs)


class FailingObligations(FakeObligations):
    def __init__(self, error):
        self.error = error

    def classify(self, sentences):
        raise self.error


@pytest.mark.parametrize(
    "error",
    [RuntimeError("Already borrowed"), MemoryError(), TypeError("TextInputSequence must be str"), ModelError("x")],
)
def test_any_failure_of_the_nli_model_is_a_scoring_error(error):
    with pytest.raises(
        ScoringError, match=r"NLI model fake-nli failed on 3 sentence pairs.*The answer is not lost"
    ) as caught:
        score(FailingNli(error), answer(KEEP), PASSAGES)
    assert caught.value.__cause__ is error
    assert type(error).__name__ in str(caught.value)


def test_a_failure_half_way_keeps_what_was_yielded():
    nli = FailingNli(RuntimeError("out"), after=1)
    sources = " ".join(f"Firm {number} must keep records." for number in range(30))
    stream = RepassScorer(nli, nli, FakeObligations(), ScoringConfig()).stream(answer(SKY), [passage("a", sources)])
    assert next(stream).score.sentence.text == SKY
    with pytest.raises(ScoringError):
        list(stream)


def test_a_scoring_error_of_the_model_passes_unchanged():
    error = ScoringError("said well already")
    with pytest.raises(ScoringError) as caught:
        score(FailingNli(error), answer(KEEP), PASSAGES)
    assert caught.value is error


def test_a_failing_classifier_is_a_scoring_error():
    with pytest.raises(ScoringError, match="obligation classifier fake-obligations failed on 2 sentences"):
        score(FakeNli(), answer(KEEP), PASSAGES, obligations=FailingObligations(ValueError("bad")))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -0.1, 1.5])
@pytest.mark.parametrize("field", ["contradiction", "entailment", "neutral"])
def test_a_number_that_is_no_probability_is_refused(bad, field):
    broken = replace(NliProbabilities(0.2, 0.2, 0.6), **{field: bad})
    with pytest.raises(ScoringError, match=r"expected numbers in \[0, 1\]"):
        score(FakeNli({(KEEP, KEEP): broken}), answer(KEEP), PASSAGES)


def test_too_few_results_are_refused():
    class Short(FakeNli):
        def predict(self, pairs):
            return super().predict(pairs)[1:]

    with pytest.raises(ScoringError, match="ValueError"):
        score(Short(), answer(KEEP), PASSAGES)


# Properties

probability_triples = st.tuples(st.floats(0.001, 1), st.floats(0.001, 1), st.floats(0.001, 1)).map(
    lambda t: NliProbabilities(t[0] / sum(t), t[1] / sum(t), t[2] / sum(t))
)
WORDS = ["Ships must sail.", "Ducks swim.", "Banks must lend.", "Rain falls.", "Trains must stop."]


@settings(deadline=None)  # the first other language loads a model
@given(
    st.lists(st.sampled_from(WORDS), max_size=6),
    st.lists(st.sampled_from(WORDS), max_size=4),
    st.fixed_dictionaries({(a, b): probability_triples for a in WORDS for b in WORDS}),
    st.randoms(),
)
@pytest.mark.long
def test_permuting_source_sentences_leaves_the_parts_and_all_stays_between_0_and_1(source, said, table, random):
    shuffled = random.sample(source, len(source))
    one = score(FakeNli(table), answer("\n".join(said)), [passage("a", " ".join(source) or " ")])[1]
    other = score(FakeNli(table), answer("\n".join(said)), [passage("a", " ".join(shuffled) or " ")])[1]
    for mode in ScoringMode:
        assert one.of(mode).repass == other.of(mode).repass
        parts = one.of(mode).repass
        assert all(0 <= p <= 1 for p in (parts.entailment, parts.contradiction, parts.obligation_coverage))
        assert 0 <= parts.composite <= 1
        assert len(one.of(mode).entailment_matrix) == len(one.of(mode).premises)

"""The order of the NLI work: provisional rounds, short calls, what is yielded between them, sharing."""

import threading
import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.errors import ScoringError
from ragqa.infra.disk_cache import FairLock
from ragqa.scoring.repass.nli import RememberingNli
from ragqa.scoring.repass.scorer import PAIRS_PER_CALL, RepassScorer
from ragqa.settings.config import ScoringConfig
from ragqa.types import ModelInfo
from ragqa.types.events.scoring import ObligationScored, SentenceScored
from ragqa.types.scores import NliProbabilities, ScoringMode
from tests.support.fakes import FakeNli, FakeObligations, answer, passage
from tests.support.streams import Returning, drain

PAPER, SCRIPT = ScoringMode.PAPER, ScoringMode.SCRIPT


class HashNli(FakeNli):
    """Different numbers for every pair; records its calls."""

    def __init__(self, name="hash-nli"):
        super().__init__()
        self.info = ModelInfo(name, "3" * 64)
        self.calls = []

    def predict(self, pairs):
        self.calls.append(list(pairs))
        return super().predict(pairs)

    def _default(self, premise, hypothesis):
        value = sum(map(ord, f"{premise}|{hypothesis}|{self.info.name}")) * 2654435761 % 1000 / 1000
        return NliProbabilities(value / 4, 1 - value, value * 3 / 4)


def text(n_sentences, first=0):
    """Every second sentence obliges somebody."""
    return " ".join(
        f"Firm {n} {'must keep' if n % 2 else 'may drop'} records." for n in range(first, first + n_sentences)
    )


def material(n_sources=40, n_sentences=4):
    said = "\n".join(f"Firm {n} {'must keep' if n % 2 else 'may drop'} records." for n in range(n_sentences))
    return answer(said), [passage("a", text(n_sources))]


def stream(given, nli=None, coverage=None, config=None, verdicts=None):
    nli = nli or HashNli()
    scorer = RepassScorer(nli, coverage or nli, FakeObligations(), config or ScoringConfig(), verdicts=verdicts)
    return scorer.stream(*given)


def key(event):
    return type(event), event.score.index


# Provisional first


@pytest.mark.parametrize("mode", list(ScoringMode))
def test_a_complete_provisional_breakdown_comes_first(mode):
    events, scored = drain(stream(material(), config=ScoringConfig(mode=mode)))
    n_sentences, n_obligations = 4, 20
    first = events[: n_sentences + n_obligations]
    assert [key(event) for event in first] == [(SentenceScored, n) for n in range(n_sentences)] + [
        (ObligationScored, n) for n in range(n_obligations)
    ]
    assert not any(event.final for event in first)
    assert {(event.done, event.total) for event in first} == {(0, n_sentences), (0, n_obligations)}
    final = {key(event): event for event in events if event.final}
    assert [final[SentenceScored, n].score for n in range(n_sentences)] == list(scored.of(mode).sentences)
    assert [final[ObligationScored, n].score for n in range(n_obligations)] == list(scored.of(mode).obligations)
    assert [final[SentenceScored, n].done for n in range(n_sentences)] == [1, 2, 3, 4]


def test_the_first_round_asks_for_the_most_similar_premise_of_each_sentence_in_one_call():
    nli = HashNli()
    events = stream(material(), nli)
    next(events)
    said = [sentence.text for sentence in material()[0].sentences]
    assert nli.calls == [[(sentence, sentence) for sentence in said]]  # each sentence stands in the passage


def test_the_first_round_asks_for_the_most_similar_answer_sentence_the_mode_looks_at():
    nli = HashNli()
    events = stream(material(), nli, config=ScoringConfig(mode=SCRIPT))
    for event in events:
        if isinstance(event, ObligationScored) and event.score.index == 2:
            break
    (pairs,) = nli.calls[1:]
    # Firm 1 comes first at a tie, and Firm 3 against itself is known as is Firm 1: not asked again
    assert pairs == [("Firm 1 must keep records.", f"Firm {n} must keep records.") for n in range(5, 40, 2)]


def test_a_second_round_looks_at_five_premises_and_says_only_what_changed():
    events, _ = drain(stream(material()))
    second = events[24 : next(n for n, event in enumerate(events) if event.final)]
    assert {type(event) for event in second} == {SentenceScored}
    assert len({key(event) for event in second}) == len(second) <= 4


def test_maxima_only_rise_and_the_last_word_is_the_final_one():
    for config in (ScoringConfig(mode=PAPER), ScoringConfig(mode=SCRIPT)):
        events, scored = drain(stream(material(60, 7), config=config))
        latest = {}
        for event in events:
            before = latest.get(key(event))
            if before:
                assert not before.final
                assert values(event.score) >= values(before.score)
            latest[key(event)] = event
            if event is events[-1]:
                break
        assert all(event.final for event in latest.values())
        assert [latest[SentenceScored, n].score for n in range(7)] == list(scored.of(config.mode).sentences)
        assert [latest[ObligationScored, n].score for n in range(30)] == list(scored.of(config.mode).obligations)


def values(score):
    return (score.entailment, score.contradiction) if hasattr(score, "entailment") else (score.best, score.covered)


def test_a_unit_whose_pairs_are_all_known_after_the_first_round_is_final_at_once():
    events, _ = drain(stream((answer("Firm 1 must keep records."), [passage("a", text(60))])))
    assert [event.final for event in events[:31]] == [False] + [True] * 30
    assert [event.done for event in events[1:31]] == list(range(1, 31))


def test_the_numbers_do_not_depend_on_the_rounds():
    """60 pairs with rounds, and the same pairs as 30 answers of one sentence without."""
    given, passages = material(20, 3)
    _, scored = drain(stream((given, passages)))
    for n, sentence in enumerate(given.sentences):
        alone = drain(stream((answer(sentence.text), passages)))[1]
        (score,) = alone.paper.sentences
        assert (score.entailment, score.contradiction) == values(scored.paper.sentences[n])
        assert score.entailment_premise == scored.paper.sentences[n].entailment_premise


# Short calls, each pair once


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 60), st.integers(0, 12), st.sampled_from(ScoringMode), st.booleans())
def test_calls_are_short_no_pair_is_asked_twice_and_each_call_is_followed_by_an_event(n_sources, n_said, mode, shared):
    nli = HashNli()
    coverage = nli if shared else HashNli("other")
    verdicts = HashNli("verdicts")
    given = answer("\n".join(text(1, n) for n in range(n_said))), [passage("a", text(n_sources) or " ")]
    events = stream(given, nli, coverage, ScoringConfig(mode=mode), verdicts)
    n_calls = [0]
    whole = Returning(events)
    for _ in whole:
        n_calls.append(sum(len(model.calls) for model in {nli, coverage, verdicts}))
    n_calls.append(sum(len(model.calls) for model in {nli, coverage, verdicts}))
    assert all(after <= before + 1 for before, after in pairwise(n_calls))
    scored = whole.result
    assert all(1 <= len(call) <= PAIRS_PER_CALL for call in nli.calls + coverage.calls + verdicts.calls)
    for model in (nli, coverage, verdicts):
        assert len(model.pairs) == len(set(model.pairs))
    said = [score.sentence for score in scored.paper.sentences]
    needed = {(p.text, s.text) for m in ScoringMode for p in scored.of(m).premises for s in said}
    covered = {(s.text, o.obligation.text) for m in ScoringMode for o in scored.of(m).obligations for s in said}
    assert set(nli.pairs) == (needed | covered if shared else needed)
    assert set(coverage.pairs) == (needed | covered if shared else covered)


def test_calls_are_well_filled():
    nli = HashNli()
    _, scored = drain(stream(material(40, 10), nli, verdicts=HashNli("verdicts")))
    # 40 x 10 sentence pairs; 20 obligations x 10, of which 5 x 20 are sentence pairs already (both odd)
    assert scored.paper.n_pairs == len(nli.pairs)
    provisional_calls = 3
    assert len(nli.calls) <= provisional_calls + -(-(len(nli.pairs)) // PAIRS_PER_CALL)


def test_closing_the_stream_stops_the_work_at_once():
    nli = HashNli()
    events = stream(material(100, 3), nli)
    for _ in range(60):
        next(events)
    n_calls = len(nli.calls)
    events.close()
    assert len(nli.calls) == n_calls
    assert len(nli.pairs) < 3 * 100


def test_a_sentence_of_many_pairs_is_told_after_every_call():
    nli = HashNli()
    events, _ = drain(
        stream((answer("Firm 0 may drop records."), [passage("a", text(300).replace("must", "may"))]), nli)
    )
    assert len(nli.calls) == 1 + 1 + 7  # 1, then 4, then 295 in calls of 48
    assert len(events) == 9
    assert [event.final for event in events] == [False] * 8 + [True]


def test_work_for_the_other_mode_repeats_the_last_event_after_each_call():
    """Script looks at no answer sentence here: nothing to cover with; the paper's pairs are left for the end."""
    said = answer("\n".join(f"Firm {n} may drop records." for n in range(8)))
    nli = HashNli()
    events, scored = drain(
        stream((said, [passage("a", text(20))]), nli, config=ScoringConfig(mode=SCRIPT), verdicts=HashNli("v"))
    )
    assert scored.script.n_pairs == 160
    assert scored.paper.n_pairs == len(nli.pairs) == 160 + 80
    obligations = [event for event in events if isinstance(event, ObligationScored)]
    assert events[-1] == events[-2]
    assert [event.score.answer_index for event in obligations] == [None] * len(obligations)


def test_a_failure_in_a_later_call_comes_after_what_is_known():
    class Failing(HashNli):
        def predict(self, pairs):
            if len(self.calls) == 3:
                raise RuntimeError("out of memory")
            return super().predict(pairs)

    events = stream(material(), Failing())
    seen = []
    with pytest.raises(ScoringError, match=r"RuntimeError: out of memory\)\. The answer is not lost"):
        seen.extend(iter(lambda: seen.append(next(events)), 0))
    assert len(seen) >= 24


# What is remembered


def test_a_remembered_answer_asks_nothing_and_needs_no_provisional_round():
    nli = HashNli()
    remembering = RememberingNli(nli)
    _, first = drain(stream(material(), remembering))
    n_calls = len(nli.calls)
    events, again = drain(stream(material(), remembering))
    assert len(nli.calls) == n_calls
    assert again == first
    assert len(events) == 24
    assert all(event.final for event in events)


def test_one_more_sentence_costs_only_its_own_pairs():
    nli = HashNli()
    remembering = RememberingNli(nli)
    drain(stream(material(40, 3), remembering, verdicts=HashNli("verdicts")))
    nli.pairs.clear()
    drain(stream(material(40, 4), remembering, verdicts=HashNli("verdicts")))
    # The new sentence meets 40 premises, 3 of which said so of the obligation Firm 3 before; as a premise it meets 20
    # obligations, of which Firm 1 and 3 are sentences too.
    assert len(nli.pairs) == 40 - 3 + 20 - 2


# Shared between sessions


class SlowNli(HashNli):
    """2 ms a pair in batches of 8, one batch at a time, as `CrossEncoderNli` takes its lock."""

    def __init__(self):
        super().__init__()
        self.lock = FairLock()
        self.n_computed = 0

    def predict(self, pairs):
        results = []
        for start in range(0, len(pairs), 8):
            with self.lock:
                time.sleep(0.001)
                self.n_computed += len(pairs[start : start + 8])
                results += super().predict(pairs[start : start + 8])
        return results


def test_eight_sessions_at_once_all_finish_with_the_numbers_of_one():
    alone = [drain(stream(material(30, n), HashNli()))[1] for n in range(1, 9)]
    slow = SlowNli()
    shared = RememberingNli(slow)
    results = [None] * 8

    def ask(n):
        results[n] = drain(stream(material(30, n + 1), shared))[1]

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == alone
    assert slow.n_computed == len(set(slow.pairs))  # what several asked for was computed once


@pytest.mark.long
def test_a_short_answer_is_not_starved_by_a_long_one():
    slow = RememberingNli(SlowNli())
    finished = []

    def ask(name, given):
        drain(stream(given, slow))
        finished.append(name)

    long = threading.Thread(target=ask, args=("long", material(300, 10)))
    long.start()
    time.sleep(0.05)
    short = threading.Thread(target=ask, args=("short", (answer("Ships sail."), [passage("b", "Ships must float.")])))
    short.start()
    for thread in (short, long):
        thread.join(60)
    assert finished == ["short", "long"]

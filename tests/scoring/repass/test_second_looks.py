"""Pairs that verdicts want beyond RePASs': computed once, in the same small calls, before anything is called final."""

from itertools import pairwise

import pytest

from ragqa.errors import ScoringError
from ragqa.scoring.repass.nli import PAIRS_PER_CALL
from ragqa.scoring.repass.scorer import CosineOf, RepassScorer
from ragqa.scoring.verdicts.judge import Judge
from ragqa.settings.config import ScoringConfig
from ragqa.types.events.scoring import SentenceScored
from ragqa.types.scores import NliProbabilities, ScoringMode, Verdict
from tests.support.fakes import FakeEncoder, FakeNli, FakeObligations, answer, passage
from tests.support.streams import drain

SOURCE = ["Ducks swim on ponds in summer.", "Banks lend money to firms.", "Rain falls in spring.", "Ships carry coal."]
SAID = [
    "On ponds ducks swim in summer.",
    "To firms banks lend money.",
    "In spring rain falls.",
    "Coal is carried by ships.",
]


class RecordingNli(FakeNli):
    """Says of each window that it and the re-wordings of its sentences entail each other as much as a test wants."""

    def __init__(self, entailment=0.97):
        super().__init__()
        self.calls, self.entailment = [], entailment

    def predict(self, pairs):
        self.calls.append(len(pairs))
        return super().predict(pairs)

    def _default(self, premise, hypothesis):
        for source, said in zip(SOURCE, SAID, strict=True):
            if (source in premise and said in hypothesis) or (said in premise and source in hypothesis):
                return NliProbabilities(0.0, self.entailment, 1 - self.entailment)
        return NliProbabilities(0.0, 0.0, 1.0)


def scored(texts, passages, encoder=None, mode=ScoringMode.PAPER, entailment=0.97):
    nli = RecordingNli(entailment)
    scorer = RepassScorer(nli, nli, FakeObligations(), ScoringConfig(mode=mode), encoder)
    events, result = drain(scorer.stream(answer("\n".join(texts)), passages))
    return nli, events, result


def windows(nli, source=SOURCE):
    """The pairs whose premise is more than a source sentence, and no sentence of the answer."""
    return [pair for pair in nli.pairs if pair[0] not in (*source, *SAID)]


PASSAGES = [passage("a", " ".join(SOURCE[:2])), passage("b", " ".join(SOURCE[2:]))]


@pytest.mark.parametrize(("entailment", "verdict"), [(0.97, Verdict.SUPPORTED), (0.0, Verdict.UNSUPPORTED)])
@pytest.mark.parametrize("encoder", [FakeEncoder(), None])
def test_the_windows_of_each_sentence_are_read_once_for_both_modes(encoder, entailment, verdict):
    nli, _, result = scored(SAID, PASSAGES, encoder, entailment=entailment)
    assert 4 <= len(windows(nli)) <= 16
    assert len(nli.pairs) == len(set(nli.pairs))
    assert {one.verdict for one in result.paper.verdicts} == {verdict}


def test_a_model_of_verdicts_reads_only_windows_and_decides_them():
    raw, reader = RecordingNli(0.0), RecordingNli()
    scorer = RepassScorer(raw, raw, FakeObligations(), ScoringConfig(), FakeEncoder(), reader)
    events, with_reader = drain(scorer.stream(answer("\n".join(SAID)), PASSAGES))
    assert len(raw.pairs) == 16  # what RePASs is made of, and nothing else
    assert len(reader.pairs) == len(set(reader.pairs)) <= 4 * 5 * 2 * 2  # windows, modes, both ways
    assert {one.verdict for one in with_reader.paper.verdicts} == {Verdict.SUPPORTED}
    final = [event for event in events if isinstance(event, SentenceScored) and event.final]
    assert [event.verdict for event in final] == list(with_reader.paper.verdicts)
    without = scored(SAID, PASSAGES, FakeEncoder(), entailment=0.0)[2]
    for mode in ScoringMode:
        assert with_reader.of(mode).repass == without.of(mode).repass
        assert with_reader.of(mode).entailment_matrix == without.of(mode).entailment_matrix
    assert {one.verdict for one in without.paper.verdicts} == {Verdict.UNSUPPORTED}
    assert with_reader.paper.verdict_model == reader.info


def test_a_quotation_is_not_read_twice():
    nli, _, _ = scored(SOURCE, PASSAGES, FakeEncoder())
    assert len(nli.pairs) == 16


def test_the_raw_scores_do_not_know_of_second_looks():
    with_looks, without = (scored(SAID, PASSAGES, encoder)[2] for encoder in (FakeEncoder(), None))
    for mode in ScoringMode:
        assert with_looks.of(mode).repass == without.of(mode).repass
        assert with_looks.of(mode).entailment_matrix == without.of(mode).entailment_matrix
        assert with_looks.of(mode).n_pairs == without.of(mode).n_pairs


@pytest.mark.parametrize("mode", list(ScoringMode))
@pytest.mark.parametrize("n_said", [1, 4, 30])  # 30 sentences of 4 source sentences: known after the provisional rounds
def test_what_is_called_final_is_the_verdict_of_the_breakdown(mode, n_said):
    texts = [SAID[n % 4] if n < 4 else f"{SAID[n % 4]}{'!' * (n // 4)}" for n in range(n_said)]
    nli, events, result = scored(texts, PASSAGES, FakeEncoder(), mode, entailment=0.0)
    assert max(nli.calls) <= PAIRS_PER_CALL
    final = {event.score.index: event.verdict for event in events if isinstance(event, SentenceScored) and event.final}
    for index, verdict in enumerate(result.of(mode).verdicts):
        assert (final[index].verdict, final[index].rule) == (verdict.verdict, verdict.rule)
        assert final[index] == verdict


def test_final_events_come_once_and_in_order():
    _, events, _ = scored([*SAID, *SOURCE], PASSAGES, FakeEncoder())
    done = [event.score.index for event in events if isinstance(event, SentenceScored) and event.final]
    assert all(one <= other for one, other in pairwise(done))
    assert set(done) == set(range(8))


def test_cosines_encode_a_text_once():
    asked = []

    class Counting(FakeEncoder):
        def encode(self, texts):
            asked.extend(texts)
            return super().encode(texts)

    cosine = CosineOf(Counting())
    assert cosine("a b", ["a b", "c d"])[0] == pytest.approx(1.0)
    cosine("c d", ["a b", "e"])
    assert cosine("a b", []) == []
    assert asked == ["a b", "c d", "e"]


def test_an_encoder_that_fails_is_one_clear_message():
    class Broken(FakeEncoder):
        def encode(self, texts):
            raise RuntimeError("no memory")

    with pytest.raises(ScoringError, match=r"the encoder fake-encoder failed on \d+ sentences .*no memory"):
        scored(SAID, PASSAGES, Broken())


def test_a_sentence_is_judged_once_for_its_event_and_both_modes(monkeypatch):
    judged = []
    real = Judge.sentence

    def counted(self, index, *rest):
        judged.append(index)
        return real(self, index, *rest)

    monkeypatch.setattr(Judge, "sentence", counted)
    scorer = RepassScorer(FakeNli(), FakeNli(), FakeObligations(), ScoringConfig(), FakeEncoder())
    _, scored = drain(scorer.stream(answer("\n".join(SAID)), [passage("a", " ".join(SOURCE))]))
    assert scored.paper.premises == scored.script.premises
    assert scored.paper.verdicts == scored.script.verdicts
    assert sorted(judged) == [0, 1, 2, 3]

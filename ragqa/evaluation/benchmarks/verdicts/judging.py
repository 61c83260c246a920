"""Finds a probe's ten passages and judges it by our rules, by two thresholds on raw maxima, and by the model alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ragqa.evaluation.benchmarks.verdicts.probes import Probe, has_nearly
from ragqa.pipeline import Pipeline
from ragqa.scoring.repass.similarity import by_similarity
from ragqa.types import Answer, AnswerSentence, Passage
from ragqa.types.scores import Breakdown, Cover, Verdict
from ragqa.types.streams import returned

N_PASSAGES: Final = 10
JUDGES: Final = {
    "verdicts": "verdicts, by the rules of `ragqa.scoring.verdicts`",
    "thresholds": "two thresholds on RePASs' raw maxima",
    "model": "the raw model alone, on the most similar source sentence",
}
EVEN: Final = 0.5  # P(entailment) of an obligation above which the model alone calls it covered


def passages_for(probe: Probe, found: Sequence[Passage], own: Sequence[Passage]) -> list[Passage]:
    """Ten of the passages ``found`` for the probe, best first; its own passages are included or withheld.

    If no own passage is among the first ten, one of them takes the last place.
    """
    if probe.withheld:
        others = (p for p in found if not has_nearly(p.text, probe.text) and p.document_id != probe.document_id)
        return [passage for passage in others if passage.passage_id not in probe.own][:N_PASSAGES]
    first = list(found[:N_PASSAGES])
    if own and not {passage.passage_id for passage in first} & set(probe.own):
        first = [*first[: N_PASSAGES - 1], own[0]]
    return first


def stated_in(text: str, passages: Sequence[Passage]) -> Passage | None:
    """The first of these passages that contains this text, ignoring white space and case."""
    plain = _plain(text)
    return next((passage for passage in passages if plain in _plain(passage.text)), None)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def judged(pipeline: Pipeline, text: str, obligation: str, passages: Sequence[Passage]) -> dict[str, Any]:
    """Each judge's verdict on this sentence, or on how it covers the obligation, with reason and probabilities.

    Raises ScoringError.
    """
    answer = Answer(text, (AnswerSentence(text, 0, len(text)),), "probe", "")
    breakdown = returned(pipeline.scorer.stream(answer, passages)).paper
    return _obligation(breakdown, obligation) if obligation else _sentence(breakdown)


def _sentence(breakdown: Breakdown) -> dict[str, Any]:
    (score,), (verdict,) = breakdown.sentences, breakdown.verdicts
    nearest = next(
        iter(by_similarity([premise.text for premise in breakdown.premises], [score.sentence.text])[0]), None
    )
    model = Verdict.UNSUPPORTED
    if nearest is not None:
        (entailment,), (contradiction,) = (
            matrix[nearest] for matrix in (breakdown.entailment_matrix, breakdown.contradiction_matrix)
        )
        if max(entailment, contradiction) >= 1 - entailment - contradiction:
            model = Verdict.SUPPORTED if entailment >= contradiction else Verdict.CONTRADICTED
    raw = Verdict.DISAGREEING if score.verdict is Verdict.DISPUTED else score.verdict
    deciding = [*verdict.contradicting, *verdict.supporting]
    return {
        "said": {"verdicts": verdict.verdict, "thresholds": raw, "model": model},
        "reason": verdict.reason,
        "rule": verdict.rule,
        "premise": breakdown.premises[deciding[0]].text if deciding else "",
        "nearest": breakdown.premises[nearest].text if nearest is not None else "",
        "entailment": score.entailment,
        "contradiction": score.contradiction,
    }


def _obligation(breakdown: Breakdown, text: str) -> dict[str, Any]:
    """The verdicts on the first obligation with this text; other texts are not covered."""
    place = next((n for n, one in enumerate(breakdown.obligations) if one.obligation.text == text), None)
    if place is None:
        said = dict.fromkeys(JUDGES, Cover.NOT_COVERED)
        return {"said": said, "reason": "not taken for an obligation", "rule": "nothing", "premise": "", "nearest": ""}
    score, verdict = breakdown.obligations[place], breakdown.obligation_verdicts[place]
    return {
        "said": {
            "verdicts": verdict.cover,
            "thresholds": Cover.COVERED if score.covered else Cover.NOT_COVERED,
            "model": Cover.COVERED if score.best > EVEN else Cover.NOT_COVERED,
        },
        "reason": verdict.reason,
        "rule": verdict.rule,
        "premise": text,
        "nearest": text,
        "entailment": score.best,
    }

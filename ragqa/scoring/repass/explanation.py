"""Explains a breakdown, and why the two modes differ, from `Breakdown`s and their passages alone.

Pure: no model is called and no text is split, so a record of any age is explained like a new answer. Copied words and
citations are handled in `ragqa.scoring.repass.attribution`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ragqa.english.words import quantity
from ragqa.scoring.repass import arithmetic
from ragqa.scoring.repass.attribution import Copied, check_citations, copied_share
from ragqa.types import ModelInfo, Passage
from ragqa.types.scores import Breakdown, CitationCheck, Premise, ScoringMode, SentenceScore, SentenceVerdict, Verdict

SHOWN_TERMS = 6  # of a sum; a longer sum is cut in the middle
CHANGED = 0.0005  # a probability that moves by less looks the same, or nearly, at three decimals
SHOWN_NUMBERS = 8


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The composite with its numbers filled in, and one line each on how E, C and OC were computed."""

    formula: str
    parts: tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class PassageStep:
    """The scores of the same answer against the source sentences of the ``k`` best passages only."""

    k: int
    n_premises: int
    n_obligations: int
    entailment: float
    contradiction: float
    obligation_coverage: float
    composite: float


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The answer sentence that comes nearest to covering an obligation after the best one."""

    answer_index: int
    probability: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """What is shown beside the numbers of one breakdown; sequences follow its sentences, obligations and passages."""

    arithmetic: Arithmetic
    copied: Copied
    growth: tuple[PassageStep, ...]
    citations: tuple[CitationCheck, ...]
    runners_up: tuple[RunnerUp | None, ...]
    doubted: float  # the part of C that the verdicts reject, from 0 to C
    doubt: str  # a sentence on how much of C the verdicts reject; "" where nothing was judged


def explain(evaluation: Breakdown, passages: Sequence[Passage]) -> Explanation:
    """The explanation of this breakdown; ``passages`` are the kept ones it was computed from, best first."""
    sentences = [score.sentence.text for score in evaluation.sentences]
    return Explanation(
        arithmetic=written_out(evaluation),
        copied=copied_share(sentences, [passage.text for passage in passages]),
        growth=_growth(evaluation, len(passages)),
        citations=check_citations(evaluation, passages),
        runners_up=tuple(_runner_up(evaluation, index) for index in range(len(evaluation.obligations))),
        doubted=doubted_contradiction(evaluation) if evaluation.verdicts else 0.0,
        doubt=doubt_words(evaluation),
    )


def written_out(evaluation: Breakdown) -> Arithmetic:
    """The arithmetic of the composite: to 3 decimals in mode ``paper``, to the script's 5 in mode ``script``."""
    repass, mode = evaluation.repass, evaluation.mode
    e, c, coverage = (
        number(part, mode) for part in (repass.entailment, repass.contradiction, repass.obligation_coverage)
    )
    covered = sum(score.covered for score in evaluation.obligations)
    n_obligations, script = len(evaluation.obligations), mode is ScoringMode.SCRIPT
    if n_obligations:
        how = f"OC = {covered} of {n_obligations} obligations covered = {covered} / {n_obligations} = {coverage}"
    else:
        how = "OC = 0 by definition: the passages hold no obligation"
    return Arithmetic(
        formula=f"(E {e} - C {c} + OC {coverage} + 1) / 3 = {number(repass.composite, mode)}",
        parts=(
            _mean_of_maxima("E", [score.entailment for score in evaluation.sentences], e, evaluation),
            _mean_of_maxima("C", [score.contradiction for score in evaluation.sentences], c, evaluation),
            how + (", rounded to 5 decimals" if script and n_obligations else ""),
        ),
    )


def number(value: float, mode: ScoringMode) -> str:
    """The value with the decimals shown in this mode: 5 in ``script``, which rounds to them, otherwise 3."""
    return f"{value:.{5 if mode is ScoringMode.SCRIPT else 3}f}"


def _mean_of_maxima(name: str, maxima: Sequence[float], result: str, evaluation: Breakdown) -> str:
    if not maxima or not evaluation.premises:
        missing = "the answer has no sentence" if not maxima else "the passages have no sentence"
        return f"{name} = 0 by definition: {missing}"
    rounded = ", rounded to 5 decimals" if evaluation.mode is ScoringMode.SCRIPT else ""
    sources = quantity(len(evaluation.premises), "source sentence")
    if len(maxima) == 1:
        return f"{name} = maximum of the one answer sentence over {sources} = {result}{rounded}"
    terms = [f"{value:.3f}" for value in maxima]
    if len(terms) > SHOWN_TERMS:
        terms = [*terms[: SHOWN_TERMS // 2], "…", *terms[-SHOWN_TERMS // 2 :]]
    return (
        f"{name} = mean of {len(maxima)} maxima, one per answer sentence, each over {sources}: "
        f"({' + '.join(terms)}) / {len(maxima)} = {sum(maxima):.3f} / {len(maxima)} = {result}{rounded}"
    )


# Verdicts beside the numbers ----------------------------------------------------------------------------------------


def verdict_by_index(scores: Sequence[SentenceScore], judged: Sequence[SentenceVerdict]) -> dict[int, Verdict]:
    """The verdict on each sentence, by index: by the rules where they gave one, else the raw one."""
    return {score.index: score.verdict for score in scores} | {verdict.index: verdict.verdict for verdict in judged}


def counted(verdicts: Iterable[Verdict]) -> tuple[tuple[Verdict, str], ...]:
    """Each verdict that occurs, with its count in words; the best first, sentences without verdict last."""
    counts = Counter(verdicts)
    return tuple(
        (verdict, _COUNT_WORDS[verdict].format(counts[verdict])) for verdict in _COUNT_WORDS if counts[verdict]
    )


_COUNT_WORDS = {
    Verdict.SUPPORTED: "{} supported",
    Verdict.CONTRADICTED: "{} contradicted",
    Verdict.DISPUTED: "{} contradicted and supported",
    Verdict.DISAGREEING: "{} where sources disagree",
    Verdict.UNSUPPORTED: "{} unsupported",
    Verdict.NONE: "{} without verdict",
}


def doubted_contradiction(evaluation: Breakdown) -> float:
    """The part of C that comes from source sentences that the verdicts reject, from 0 to C.

    It comes from the answer sentences whose highest P(contradiction) is that of a doubted source sentence.
    """
    doubted = [
        score.contradiction
        for score, verdict in zip(evaluation.sentences, evaluation.verdicts, strict=True)
        if score.contradiction_premise in [evaluation.premises[place] for place in verdict.doubted]
    ]
    return sum(doubted) / len(evaluation.sentences) if doubted else 0.0


def doubt_words(evaluation: Breakdown) -> str:
    """How much of C the verdicts reject; empty where nothing was judged."""
    if not evaluation.verdicts:
        return ""
    part, mode = doubted_contradiction(evaluation), evaluation.mode
    how_much = number(part, mode) if part else "none of it"
    whole = number(evaluation.repass.contradiction, mode)
    return f"C {whole}, {how_much} from source sentences that the verdicts reject."


# Growth with the number of passages ---------------------------------------------------------------------------------


def _growth(evaluation: Breakdown, n_passages: int) -> tuple[PassageStep, ...]:
    """The scores with the source sentences and obligations of the first k passages, for k from 1 to all of them.

    The last step is the evaluation itself. E and C are means of maxima, so with every further passage they can only
    rise. In mode ``script`` a sentence that runs on into the next passage belongs to the passage where it begins.
    """
    entailing, contradicting = _matrices(evaluation)
    passage_of = np.array([premise.passage_index for premise in evaluation.premises], int)
    steps = []
    for k in range(1, n_passages + 1):
        rows = passage_of < k
        covered = [score.covered for score in evaluation.obligations if score.obligation.passage_index < k]
        result = arithmetic.repass_of(entailing[rows], contradicting[rows], covered, evaluation.mode)
        parts = (result.entailment, result.contradiction, result.obligation_coverage, result.composite)
        steps.append(PassageStep(k, int(rows.sum()), len(covered), *parts))
    return tuple(steps)


def _matrices(evaluation: Breakdown) -> tuple[arithmetic.Matrix, arithmetic.Matrix]:
    """P(entailment) and P(contradiction), each of shape (n_source_sentences, n_answer_sentences)."""
    shape = (len(evaluation.premises), len(evaluation.sentences))
    entailing, contradicting = evaluation.entailment_matrix, evaluation.contradiction_matrix
    return np.array(entailing, float).reshape(shape), np.array(contradicting, float).reshape(shape)


# Obligations --------------------------------------------------------------------------------------------------------


def _runner_up(evaluation: Breakdown, index: int) -> RunnerUp | None:
    """The second best answer sentence for this obligation; None where there is none, or in records of version 1."""
    if not evaluation.coverage_matrix:
        return None
    best = evaluation.obligations[index].answer_index
    pairs = zip(evaluation.looked_at, evaluation.coverage_matrix[index], strict=True)
    others = [(position, probability) for position, probability in pairs if position != best]
    if not others:
        return None
    return RunnerUp(*max(others, key=lambda pair: (pair[1], -pair[0])))


def _verdicts_by(evaluation: Breakdown) -> str:
    if not evaluation.verdict_rules:
        return "none: raw verdicts, from a record without rules"
    reader = evaluation.verdict_model
    read_by = f" and {model_line(reader)}" if reader and reader != evaluation.entailment_model else ""
    return f"rules {evaluation.verdict_rules}{read_by}"


# Provenance ---------------------------------------------------------------------------------------------------------


def provenance(evaluation: Breakdown) -> tuple[tuple[str, str], ...]:
    """(label, value) for everything that is needed to reproduce these numbers."""
    entailment, coverage = evaluation.entailment_model, evaluation.coverage_model
    same = "the same model" if coverage == entailment else model_line(coverage)
    return (
        ("E and C by", model_line(entailment)),
        ("coverage by", same),
        ("obligations found by", model_line(evaluation.obligation_model)),
        ("definition", f"{evaluation.mode} mode"),
        ("sentences split by", evaluation.sentence_splitter),
        ("verdicts by", _verdicts_by(evaluation)),
        (
            "thresholds",
            f"verdict at {evaluation.verdict_threshold:.2f} or more, covered above {evaluation.coverage_threshold:.2f}",
        ),
        (
            "compared",
            f"{quantity(evaluation.n_pairs, 'distinct pair')}: "
            f"{quantity(len(evaluation.sentences), 'answer sentence')}, "
            f"{quantity(len(evaluation.premises), 'source sentence')}, "
            f"{quantity(len(evaluation.obligations), 'obligation')}",
        ),
    )


def model_line(model: ModelInfo) -> str:
    """Name, arithmetic and the first twelve digits of the sha256 of the weights."""
    return f"{model.name} ({model.precision}, weights {model.fingerprint[:12]})"


# Why the modes differ -----------------------------------------------------------------------------------------------


def mode_differences(paper: Breakdown, script: Breakdown) -> tuple[str, ...]:
    """One sentence for each way in which the modes treat this answer differently; at least one sentence.

    A difference that has no effect here is stated too, so that equal numbers are explained.
    """
    return (
        _source_sentences(paper, script),
        *_obligations(paper, script),
        *_who_may_cover(paper, script),
        *_likeliest_label(script),
        _rounding(script),
    )


def _source_sentences(paper: Breakdown, script: Breakdown) -> str:
    n_paper, n_script = len(paper.premises), len(script.premises)
    joins = "script joins the passages before it splits them into sentences"
    if _keys(paper.premises) == _keys(script.premises):
        return f"{joins}, which changes nothing here: source sentences {n_script:,} in both modes, the same."
    only_script = len(set(_keys(script.premises)) - set(_keys(paper.premises)))
    text = (
        f"{joins}: source sentences {n_script:,} instead of {n_paper:,}, of which {only_script:,} cut otherwise "
        "than in paper (a passage without a full stop runs on into the next)"
    )
    return f"{text}; {_changed_sentences(paper, script)}."


def _keys(premises: Sequence[Premise]) -> list[tuple[int, int, str]]:
    return list(map(_key, premises))


def _key(premise: Premise) -> tuple[int, int, str]:
    return premise.passage_index, premise.start, premise.text


def _changed_sentences(paper: Breakdown, script: Breakdown) -> str:
    changed = [
        score.index + 1
        for score, other in zip(paper.sentences, script.sentences, strict=True)
        if abs(score.entailment - other.entailment) > CHANGED
        or abs(score.contradiction - other.contradiction) > CHANGED
    ]
    if not changed:
        return "no answer sentence's E or C moves by it"
    return f"that moves E or C of {len(changed)} of {len(paper.sentences)} answer sentences (number {_listed(changed)})"


def _obligations(paper: Breakdown, script: Breakdown) -> tuple[str, ...]:
    n_paper, n_script = len(paper.obligations), len(script.obligations)
    if n_paper == n_script:
        return ()
    return (f"obligations found among these source sentences: script {n_script:,}, paper {n_paper:,}.",)


def _who_may_cover(paper: Breakdown, script: Breakdown) -> tuple[str, ...]:
    if not script.sentences or not script.obligations:
        return ()
    n_all, n_may = len(script.sentences), sum(score.is_obligation for score in script.sentences)
    if n_may == n_all:
        return (
            "script lets only obligations cover an obligation, which changes nothing here: all answer sentences are.",
        )
    best = {
        _key(score.obligation): score.best for score in script.obligations
    }  # above the threshold, cover was lost by another rule
    lost = [
        score.index + 1
        for score in paper.obligations
        if score.covered and best.get(_key(score.obligation), 1.0) <= script.coverage_threshold
    ]
    effect = (
        f"obligations that lose their cover by it: number {_listed(lost)}"
        if lost
        else "no obligation loses its cover by it"
    )
    return (
        f"script lets {n_may} of {n_all} answer sentences cover an obligation (those that are obligations); {effect}.",
    )


def _likeliest_label(script: Breakdown) -> tuple[str, ...]:
    """Only below a threshold of 0.5 can a probability exceed it without being the largest of the three."""
    above = sum(score.best > script.coverage_threshold and not score.covered for score in script.obligations)
    if not above:
        return ()
    return (
        f"script requires entailment to be the likeliest label too; obligations that lose their cover by it: {above}.",
    )


def _rounding(script: Breakdown) -> str:
    covered = [score.covered for score in script.obligations]
    exact = arithmetic.repass_of(*_matrices(script), covered, ScoringMode.PAPER)
    moved = script.repass.composite - exact.composite
    effect = f"that moves RePASs by {moved:+.7f}" if abs(moved) >= 5e-8 else "that moves nothing here"
    return f"script rounds E, C and OC to 5 decimals: {effect}."


def _listed(numbers: Sequence[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:SHOWN_NUMBERS])
    return shown + (" …" if len(numbers) > SHOWN_NUMBERS else "")

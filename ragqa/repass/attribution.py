"""Which passages each answer sentence may cite: those that entail it, by the probabilities its scoring already has.

Pure. A passage entails a sentence where the highest P(entailment) among the passage's source sentences reaches the
verdict threshold, and where one of them is the sentence itself, word for word: an NLI model does not always see that a
long quotation says what it quotes. What the model wrote stays where all of it agrees with that. Where only a part
agrees the part stays; where nothing agrees the passages that entail the sentence take its place; where there is none
nothing is cited. Nothing that was written is lost: a check holds both, and the answer itself is not changed.

The limit of it: a sentence drawn together from two passages, neither of which says all of it, is entailed by neither.
"""

from __future__ import annotations

from collections.abc import Sequence

from ragqa.repass.copying import words_of
from ragqa.types import Breakdown, CitationCheck, CitationStatus, Passage, PassageSupport, Premise


def check_citations(evaluation: Breakdown, passages: Sequence[Passage]) -> tuple[CitationCheck, ...]:
    """One check per answer sentence, in order; ``passages`` are the kept ones of this breakdown, best first."""
    found: list[dict[int, PassageSupport]] = [{} for _ in evaluation.sentences]
    said = [words_of(score.sentence.text) for score in evaluation.sentences]
    for premise, row in zip(evaluation.premises, evaluation.entailment_matrix, strict=True):
        numbers, words = _passage_numbers(premise, passages), words_of(premise.text)
        for of_sentence, sentence, probability in zip(found, said, row, strict=True):
            for number in numbers:
                known = of_sentence.get(number, PassageSupport(number, 0.0))
                quoted = known.quoted or bool(words and words == sentence)
                of_sentence[number] = PassageSupport(number, max(known.entailment, probability), quoted)
    return tuple(
        _check(score.index, score.sentence.citations, of_sentence, evaluation.verdict_threshold)
        for score, of_sentence in zip(evaluation.sentences, found, strict=True)
    )


def _check(index: int, written: tuple[int, ...], found: dict[int, PassageSupport], threshold: float) -> CitationCheck:
    entailing = tuple(n for n, support in sorted(found.items()) if support.quoted or support.entailment >= threshold)
    agreed = tuple(number for number in written if number in entailing)
    if written:
        verified = agreed or entailing
        status = CitationStatus.CORRECTED if verified else CitationStatus.REMOVED
        status = CitationStatus.CONFIRMED if verified == written else status
    else:
        verified = entailing
        status = CitationStatus.ADDED if verified else CitationStatus.MISSING
    support = tuple(found.get(number, PassageSupport(number, 0.0)) for number in sorted({*written, *entailing}))
    return CitationCheck(index, status, written, verified, support)


def _passage_numbers(premise: Premise, passages: Sequence[Passage]) -> range:
    """The numbers (from 1) of the passages a source sentence stands in: one, or in mode ``script`` perhaps several."""
    first = last = premise.passage_index
    rest = premise.start + len(premise.text) - len(passages[first].text)
    while rest > 1 and last + 1 < len(passages):  # the 1 is the space between two joined passages
        last += 1
        rest -= 1 + len(passages[last].text)
    return range(first + 1, last + 2)


def marks(numbers: Sequence[int]) -> str:
    """``[1][3]``; empty without numbers."""
    return "".join(f"[{number}]" for number in numbers)


def citation_flag(check: CitationCheck) -> str:
    """What a reader must know about the sentence's citations, in a few words; empty where they stand as written."""
    match check.status:
        case CitationStatus.CONFIRMED:
            return ""
        case CitationStatus.CORRECTED:
            return f"citation corrected: {marks(check.written)} → {marks(check.verified)}"
        case CitationStatus.REMOVED:
            return f"citation removed: {marks(check.written)}, no passage entails this"
        case CitationStatus.ADDED:
            return f"citation added: {marks(check.verified)}"
        case CitationStatus.MISSING:
            return "no citation: no passage entails this"


def citation_words(check: CitationCheck) -> str:
    """The check in full: what was written, what became of it, and the highest entailment in each passage named."""
    written = f"As written it cites {marks(check.written)}" if check.written else "As written it cites nothing"
    outcome = {
        CitationStatus.CONFIRMED: "confirmed, as it is entailed there",
        CitationStatus.CORRECTED: f"corrected to {marks(check.verified)}",
        CitationStatus.REMOVED: "removed, as no passage entails it",
        CitationStatus.ADDED: f"and is entailed by {marks(check.verified)}, added",
        CitationStatus.MISSING: "and no passage entails it",
    }[check.status]
    found = ", ".join(
        f"[{support.number}] {support.entailment:.3f}" + (" and word for word" if support.quoted else "")
        for support in check.support
    )
    return f"{written}{'' if check.status is CitationStatus.ADDED else ','} {outcome}." + (
        f" Highest entailment: {found}." if found else ""
    )

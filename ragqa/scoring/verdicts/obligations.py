"""Whether an answer tells of an obligation of its sources, and what of it is missing."""

from __future__ import annotations

from collections.abc import Sequence

from ragqa.english.dates import Date
from ragqa.english.quantities import Quantity, unmatched
from ragqa.english.reading import Reading, read
from ragqa.scoring.verdicts.clashes import clashes, opposed
from ragqa.scoring.verdicts.quotations import is_quoted
from ragqa.scoring.verdicts.scope import dropped_scope, missing_deadline
from ragqa.types import AnswerSentence, Span
from ragqa.types.scores import Cover, ObligationVerdict, Premise

TOLD_IN_PART = 0.5  # share of an obligation's content words from which the answer tells a part of it


def cover_of(
    index: int,
    obligation: Premise,
    said: Sequence[tuple[int, AnswerSentence]],
    entailment: Sequence[float],
    threshold: float,
    *,
    readable: bool = True,
) -> ObligationVerdict:
    """Whether the answer tells of this obligation, and what of it is missing.

    ``said`` are answer sentences with their indexes, ``entailment`` P(entailment | answer sentence, obligation) of
    each, 0 where not known yet; above ``threshold`` it is believed. Not ``readable``: only words count.
    """
    wanted = read(obligation.text)
    for number, sentence in said:
        told = read(sentence.text)
        if wanted.words and (told.plain == wanted.plain or is_quoted(wanted, told)):
            reason = f"Sentence {number + 1} says it word for word."
            return ObligationVerdict(index, Cover.COVERED, reason, "quotation", number)
    if not readable:
        reason = "The model cannot read this language, and no sentence of the answer says it word for word."
        return ObligationVerdict(index, Cover.NOT_COVERED, reason, "language")
    in_part = None
    for position in sorted(range(len(said)), key=lambda n: -entailment[n]):
        number, told = said[position][0], read(said[position][1].text)
        if next(clashes(told, wanted), None):
            continue  # another period or party: that is no part of it
        missing, is_entailed = _missing(told, wanted), entailment[position] > threshold
        if is_entailed and not missing:
            reason = f"Sentence {number + 1} says it in other words (entailment {entailment[position]:.2f})."
            return ObligationVerdict(index, Cover.COVERED, reason, "entailment", number)
        if not in_part and missing and (is_entailed or _tells_of(told, wanted)):
            words_missing = ", ".join(f"“{span.text}”" for span in missing)
            reason = f"Sentence {number + 1} says it without {words_missing}."
            in_part = ObligationVerdict(index, Cover.IN_PART, reason, "condition", number, missing)
    return in_part or ObligationVerdict(index, Cover.NOT_COVERED, "No sentence of the answer says this.", "nothing")


def _tells_of(told: Reading, wanted: Reading) -> bool:
    """Whether an answer sentence has enough of an obligation's words, and the first of them, who or what is obliged."""
    first = next((word.stem for word in wanted.words if word.stem in wanted.content), None)
    shared = told.content & wanted.content
    return not opposed(told, wanted) and first in shared and len(shared) >= TOLD_IN_PART * len(wanted.content)


def _missing(told: Reading, wanted: Reading) -> tuple[Span, ...]:
    """The conditions, periods and dates of an obligation that an answer sentence does not have."""
    found = [dropped_scope(told, wanted), missing_deadline(told, wanted)]
    found += [one.span for one in unmatched(wanted.quantities, told.quantities, Quantity.equals)]
    found += [one.span for one in unmatched(wanted.dates, told.dates, Date.fits)]
    return tuple(dict.fromkeys(span for span in found if span))

"""Decides whether an answer or a policy covers an obligation: part by part, naming parts missing or in conflict.

The parts of an obligation are the items of its list, each after the lead-in, or the sentence as a whole. The periods,
amounts and dates of a covered part must be stated, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ragqa.english.clauses import clauses
from ragqa.english.quantities import Quantity, unmatched
from ragqa.english.reading import Date, read
from ragqa.english.sentences import taken_apart
from ragqa.scoring.verdicts.windows import Similarity, Window, covers
from ragqa.types import AnswerSentence, Span
from ragqa.types.scores import Cover, NliProbabilities, ObligationVerdict, Premise

Said = Sequence[tuple[int, AnswerSentence]]
Table = Mapping[tuple[str, str], NliProbabilities]

WHOLE = 1_000  # characters up to which an answer is read as a whole; a longer one as three sentences around the nearest
NEAREST = 3  # sentences of a long text with paragraphs that are read
BESIDE = 0.4  # nearness of a sentence from which the paragraph beside the nearest one is read with it
BESIDE_ALONE = 0.25  # the same for a paragraph of one sentence
NEAR = 0.45  # nearness of the nearest answer sentence below which a part is not covered, and not read
# Chosen on rules and policies that the verifier was not trained on.
TOLD = 0.65  # P(entailment) from which a part is covered
STATED = 0.5  # share of the words of a clause that a sentence has, below which it is named as missing
CLASHES = 0.6  # P(contradiction) from which a part is in conflict


@dataclass(frozen=True, slots=True)
class ReadPart:
    """A part of an obligation: its span, its text after the lead-in, and the answer's evidence ("" if none is near)."""

    span: Span
    text: str
    evidence: str
    nearest: int  # the index of the answer sentence that is nearest
    nearness: float = 0.0  # of that sentence: its share of the part's words plus the cosine


def parts_read(obligation: Premise, said: Said, similarity: Similarity | None = None) -> list[ReadPart]:
    """The parts of an obligation, each with the answer text to read for it."""
    return read_against(parts_of(obligation.text), said, similarity) if said else []


def read_against(
    parts: Sequence[tuple[Span, str]], said: Said, similarity: Similarity | None = None, paragraphs: Sequence[int] = ()
) -> list[ReadPart]:
    """These parts (span, text) of an obligation, each with the answer text to read for it; ``said`` is not empty.

    With ``paragraphs``, the number of the paragraph of each sentence, the nearest paragraphs are read; of a long text
    the nearest sentences, wherever they are.
    """
    texts = [sentence.text for _, sentence in said]
    stems = [read(text).content for text in texts]
    is_long = sum(map(len, texts)) > WHOLE
    found = []
    for span, text in parts:
        cover = covers(text, stems)
        cosine = similarity(text, texts) if similarity else cover
        near = [float(one) + float(other) for one, other in zip(cover, cosine, strict=True)]
        best = max(range(len(near)), key=lambda n: near[n])
        begin, end = _near_paragraphs(near, best, paragraphs) if paragraphs else (0, len(texts))
        if is_long and paragraphs:  # a policy tells of one duty in several places
            window = [texts[n] for n in sorted(sorted(range(len(near)), key=lambda n: -near[n])[:NEAREST])]
        else:
            window = texts[max(begin, best - 1) : min(end, best + 2)] if is_long else texts[begin:end]
        found.append(ReadPart(span, text, " ".join(window) if near[best] >= NEAR else "", said[best][0], near[best]))
    return found


def _near_paragraphs(near: Sequence[float], best: int, paragraphs: Sequence[int]) -> tuple[int, int]:
    """The first sentence, and the one after the last, of the paragraph of sentence ``best`` and of near ones beside it.

    Paragraphs of one sentence each, as of a list, are often on one subject.
    """
    n_in, begin, end = Counter(paragraphs), best, best + 1

    def goes_on(place: int, inner: int) -> bool:
        own = paragraphs[place]
        return own == paragraphs[inner] or near[place] >= (BESIDE_ALONE if n_in[own] == 1 else BESIDE)

    while begin and goes_on(begin - 1, begin):
        begin -= 1
    while end < len(near) and goes_on(end, end - 1):
        end += 1
    return begin, end


def parts_of(text: str) -> list[tuple[Span, str]]:
    """The span of each part and its text after the lead-in; an item that only opens nested items is not a part."""
    listing = taken_apart(text)
    items = [(item.span, item.after(listing.lead)) for item in listing.leaves]
    return items or [(Span(text, 0, len(text)), text)]


def quoted_in(obligation: Premise, said: Said) -> int | None:
    """The index of the answer sentence that states the whole obligation word for word, or None."""
    wanted = read(obligation.text).plain
    return next((n for n, sentence in said if wanted and read(sentence.text).plain == wanted), None)


def cover_of(index: int, parts: Sequence[ReadPart], table: Table) -> ObligationVerdict:
    """The verdict on an obligation from its parts; ``table`` holds (evidence, part) for each part with evidence."""
    told, missing, clashing = [], [], []
    for part in parts:
        said = table[part.evidence, part.text] if part.evidence else NliProbabilities(0.0, 0.0, 1.0)
        if said.contradiction >= CLASHES and said.contradiction > said.entailment:
            clashing.append(part)
        elif said.entailment >= TOLD:
            told.append(part)
            missing += numbers_missing(part)
        else:
            missing.append(part.span)
    if clashing:
        first = clashing[0]
        reason = f"Sentence {first.nearest + 1} contradicts “{first.span.text.rstrip('.')}”."
        return ObligationVerdict(
            index, Cover.IN_CONFLICT, reason, "contradiction", first.nearest, tuple(part.span for part in clashing)
        )
    if not told:
        return ObligationVerdict(index, Cover.NOT_COVERED, "No sentence says this.", "nothing")
    place = told[0].nearest
    if not missing:
        reason = f"Sentence {place + 1} says it in other words."
        return ObligationVerdict(index, Cover.COVERED, reason, "entailment", place)
    return _in_part(index, place, missing)


def repeated(
    found: ObligationVerdict,
    obligation: Premise,
    supported: Sequence[tuple[int, str, Sequence[Window]]],
    own: Collection[tuple[int, ...]],
    table: Table,
) -> ObligationVerdict:
    """This verdict; where it is *not covered* although the obligation alone supports a sentence, what that says of it.

    ``supported`` are the answer's supported sentences: index, text and windows. ``own`` are the positions of a window
    that has the obligation alone. A sentence that is supported by it says a part of it, or by the reverse reading all.
    """
    for n, text, windows in supported if found.cover is Cover.NOT_COVERED else ():
        for window in windows:
            if window.positions in own and table[window.text, text].entailment >= TOLD:
                told = read(text).content
                parts = parts_of(obligation.text)
                spans = (
                    [span for span, _ in parts] if len(parts) > 1 else [one.span for one in clauses(obligation.text)]
                )
                words = [(span, read(span.text).content) for span in spans]
                missing = tuple(span for span, stems in words if len(stems & told) < STATED * len(stems))
                whole = ReadPart(Span(obligation.text, 0, len(obligation.text)), obligation.text, text, n)
                is_all = window.item is None and table[text, window.evidence].entailment >= TOLD
                missing = tuple(numbers_missing(whole)) if is_all else missing
                if is_all and not missing:
                    reason = f"Sentence {n + 1} says it in other words."
                    return ObligationVerdict(found.index, Cover.COVERED, reason, "entailment", n)
                return _in_part(found.index, n, () if len(missing) == len(spans) else missing)
    return found


def _in_part(index: int, place: int, missing: Sequence[Span]) -> ObligationVerdict:
    words = ", ".join(f"“{span.text}”" for span in missing)
    reason = f"Sentence {place + 1} says it without {words}." if words else f"Sentence {place + 1} says a part of it."
    return ObligationVerdict(index, Cover.IN_PART, reason, "part", place, tuple(missing))


def numbers_missing(part: ReadPart) -> list[Span]:
    """The periods, amounts and dates of a part that its evidence does not state."""
    wanted, told = read(part.span.text), read(part.evidence)
    found = [
        one.span for one in unmatched(wanted.quantities, told.quantities, Quantity.equals) if one.dimension != "count"
    ]
    found += [one.span for one in unmatched(wanted.dates, told.dates, Date.fits)]
    return [Span(span.text, part.span.start + span.start, part.span.start + span.end) for span in found]

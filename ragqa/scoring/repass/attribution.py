"""Where an answer's words come from: the passages each sentence may cite, and how much is copied word for word.

Pure. A passage supports a sentence where the highest P(entailment) among its source sentences reaches the verdict
threshold, or where one of them equals the sentence word for word. On 60 labelled sentences, 34 of the 35 citations that
this rule keeps are right, and 14 of the 17 that the verdicts keep (`ragqa eval citations`).

The model's citations stay where all of them support the sentence. Where only some do, those stay; where none does, the
passages that support the sentence replace them; where no passage does, nothing is cited. Nothing written is lost: a
check holds both the written and the verified citations, and the answer does not change. Limit: a sentence drawn from
two passages, neither of which states all of it, is supported by neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragqa.english.sentences import parts_of_long
from ragqa.types import Passage
from ragqa.types.scores import Breakdown, CitationCheck, CitationStatus, PassageSupport, Premise

MIN_RUN = 8  # words: long enough that two writers seldom choose the same, short enough to catch a copied clause
COPY_NOTE = (
    "Answers that only copy sentences out of the passages were scored .947 to .973 at RIRAG-2025 (Chasandras et al. "
    "2025, table 5; human experts: .859), so a high RePASs beside a high copied share says little about the writing."
)
_EDGES = ".,;:!?…\"'“”‘’«»()[]{}*_–—-"


@dataclass(frozen=True, slots=True)
class Copied:
    """The share of copied words in the whole answer and in each sentence, in [0, 1]."""

    share: float
    per_sentence: tuple[float, ...]
    n_copied: int
    n_words: int


def copied_share(sentences: Sequence[str], passages: Sequence[str]) -> Copied:
    """The share of the words of these answer sentences that stand in a verbatim run of one passage.

    Words are separated by white space, in lower case and without surrounding punctuation, so that neither a line break,
    a capital nor a full stop hides a copy. A word is copied if it belongs to a run of at least `MIN_RUN` consecutive
    words of its sentence that occurs in one passage. A sentence with fewer words counts if the whole of it occurs in
    one passage. An answer without words has share 0.
    """
    texts = [words_of(sentence) for sentence in sentences]
    lengths = {min(MIN_RUN, len(words)) for words in texts if words}
    sources = [words_of(passage) for passage in passages]
    runs = {length: {run for words in sources for run in _runs(words, length)} for length in lengths}
    counts = [_n_copied(words, runs[min(MIN_RUN, len(words))]) if words else 0 for words in texts]
    n_words, n_copied = sum(map(len, texts)), sum(counts)
    per_sentence = tuple(count / len(words) if words else 0.0 for count, words in zip(counts, texts, strict=True))
    return Copied(n_copied / n_words if n_words else 0.0, per_sentence, n_copied, n_words)


def words_of(text: str) -> list[str]:
    """The words between white space, in lower case and without surrounding punctuation; bare punctuation is dropped."""
    return [word for piece in text.casefold().split() if (word := piece.strip(_EDGES))]


def _runs(words: Sequence[str], length: int) -> list[tuple[str, ...]]:
    return [tuple(words[start : start + length]) for start in range(len(words) - length + 1)]


def _n_copied(words: Sequence[str], known: set[tuple[str, ...]]) -> int:
    """The number of words in known runs; a longer verbatim run consists of such runs."""
    length, reached, count = min(MIN_RUN, len(words)), 0, 0
    for start, run in enumerate(_runs(words, length)):
        if run in known:
            count += start + length - max(start, reached)
            reached = start + length
    return count


def check_citations(evaluation: Breakdown, passages: Sequence[Passage]) -> tuple[CitationCheck, ...]:
    """One check per answer sentence, in order; ``passages`` are the kept ones of this breakdown, best first."""
    support: list[dict[int, PassageSupport]] = [{} for _ in evaluation.sentences]
    sentence_words = [words_of(score.sentence.text) for score in evaluation.sentences]
    for premise, row in zip(evaluation.premises, evaluation.entailment_matrix, strict=True):
        numbers, wholes = _passage_numbers(premise, passages), (premise.text, *parts_of_long(premise.text))
        quotable = [words for whole in wholes if (words := words_of(whole))]
        for of_sentence, sentence, probability in zip(support, sentence_words, row, strict=True):
            for number in numbers:
                known = of_sentence.get(number, PassageSupport(number, 0.0))
                quoted = known.quoted or sentence in quotable
                of_sentence[number] = PassageSupport(number, max(known.entailment, probability), quoted)
    least = evaluation.verdict_threshold
    supporting = [
        {n for n, passage_support in of.items() if passage_support.quoted or passage_support.entailment >= least}
        for of in support
    ]
    return tuple(
        _check(score.index, score.sentence.citations, of_sentence, tuple(sorted(numbers)))
        for score, of_sentence, numbers in zip(evaluation.sentences, support, supporting, strict=True)
    )


def _check(
    index: int, written: tuple[int, ...], by_number: dict[int, PassageSupport], supporting: tuple[int, ...]
) -> CitationCheck:
    agreed = tuple(number for number in written if number in supporting)
    if written:
        verified = agreed or supporting
        status = CitationStatus.CORRECTED if verified else CitationStatus.REMOVED
        status = CitationStatus.CONFIRMED if verified == written else status
    else:
        verified = supporting
        status = CitationStatus.ADDED if verified else CitationStatus.MISSING
    support = tuple(by_number.get(number, PassageSupport(number, 0.0)) for number in sorted({*written, *supporting}))
    return CitationCheck(index, status, written, verified, support)


def _passage_numbers(premise: Premise, passages: Sequence[Passage]) -> range:
    """The numbers (from 1) of the passages that hold a source sentence: one, or perhaps several in mode ``script``."""
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
    """What a reader must know about the sentence's citations, in a few words; empty where they are confirmed."""
    match check.status:
        case CitationStatus.CONFIRMED:
            return ""
        case CitationStatus.CORRECTED:
            return f"citation corrected: {marks(check.written)} → {marks(check.verified)}"
        case CitationStatus.REMOVED:
            return f"citation removed: {marks(check.written)}, no passage supports this"
        case CitationStatus.ADDED:
            return f"citation added: {marks(check.verified)}"
        case CitationStatus.MISSING:
            return "no citation: no passage supports this"

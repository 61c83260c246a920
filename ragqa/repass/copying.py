"""How much of an answer is copied word for word from the passages. Pure: texts in, shares out; no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MIN_RUN = 8  # words: long enough that two writers seldom choose them alike, short enough to catch a copied clause
COPY_NOTE = (
    "Answers that only copy sentences out of the passages were scored .947 to .973 at RIRAG-2025 (Chasandras et al. "
    "2025, table 5; human experts: .859), so a high RePASs beside a high copied share says little about the writing."
)
_EDGES = ".,;:!?…\"'“”‘’«»()[]{}*_–—-"


@dataclass(frozen=True, slots=True)
class Copied:
    """What part of the words is copied, of the whole answer and of each sentence; shares in [0, 1]."""

    share: float
    per_sentence: tuple[float, ...]
    n_copied: int
    n_words: int


def copied_share(sentences: Sequence[str], passages: Sequence[str]) -> Copied:
    """The share of the words of these answer sentences that stand in a verbatim run of one passage.

    A word is what white space parts, in lower case and without the punctuation around it, so that neither a line break,
    a capital nor a full stop hides a copy. A word is copied when it belongs to a run of at least `MIN_RUN` consecutive
    words of its sentence that occurs, word for word, in one passage; a sentence with fewer words counts when the whole
    of it occurs in one. An answer without words has share 0.
    """
    said = [words_of(sentence) for sentence in sentences]
    lengths = {min(MIN_RUN, len(words)) for words in said if words}
    sources = [words_of(passage) for passage in passages]
    runs = {length: {run for words in sources for run in _runs(words, length)} for length in lengths}
    counts = [_n_copied(words, runs[min(MIN_RUN, len(words))]) if words else 0 for words in said]
    n_words, n_copied = sum(map(len, said)), sum(counts)
    per_sentence = tuple(count / len(words) if words else 0.0 for count, words in zip(counts, said, strict=True))
    return Copied(n_copied / n_words if n_words else 0.0, per_sentence, n_copied, n_words)


def words_of(text: str) -> list[str]:
    """What white space parts, in lower case and without the punctuation around it; what is only punctuation is none."""
    return [word for piece in text.casefold().split() if (word := piece.strip(_EDGES))]


def _runs(words: Sequence[str], length: int) -> list[tuple[str, ...]]:
    return [tuple(words[start : start + length]) for start in range(len(words) - length + 1)]


def _n_copied(words: Sequence[str], known: set[tuple[str, ...]]) -> int:
    """How many words lie in a run that is known; a longer verbatim run is made of such runs."""
    length, reached, count = min(MIN_RUN, len(words)), 0, 0
    for start, run in enumerate(_runs(words, length)):
        if run in known:
            count += start + length - max(start, reached)
            reached = start + length
    return count

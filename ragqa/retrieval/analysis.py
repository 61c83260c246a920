"""Text to BM25 tokens, one function for passages and questions and both BM25 libraries; and which words they share."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise, takewhile
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from ragqa.english.analysers import Analyser, stemmer
from ragqa.english.sentences import reads_as_heading
from ragqa.types import Passage, Span

ANALYSIS_VERSION: Final = 2  # of this module: a change of what it returns makes every index of before unusable

IndexedText = Literal["text", "title-section-text"]

_WORD = re.compile(r"(?u)\b\w\w+\b")
_WORD_OR_NUMBER = re.compile(r"(?u)\d+(?:\.\d+)+|\b\w\w+\b")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_ELISION = re.compile(r"(?<=\w)['’](?:s|t|re|ve|ll|d|m)\b")
MAX_CHARS: Final = 20_000  # of a passage that are looked at; the longest ADGM passage is a table of 24,312 words
SHORTEST_STEM: Final = 3  # letters of a short word before its ending: "vrt", "vrtu"; shorter are "in", "je", "za"
LONGEST_ENDING: Final = 2  # letters: "vrtom"; longer words with longer endings share half their pieces anyway
VOWELS: Final = frozenset("aeiouy")
_SHOWN_WORD = re.compile(r"(?u)\d+(?:\.\d+)+|[\w\u0300-\u036f]+")  # an accent may be a character of its own


def tokenise(text: str, analyser: Analyser) -> list[str]:
    """The tokens of ``text`` in reading order, with repeats; empty where there are only stop words and punctuation.

    Bigrams, ``"first second"``, follow all single tokens.
    """
    clean = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).lower()
    if analyser.language == "english":
        clean = _ELISION.sub("", clean)
    if analyser.folds_accents:
        clean = "".join(c for c in unicodedata.normalize("NFKD", clean) if not unicodedata.combining(c))
    tokens = (_WORD_OR_NUMBER if analyser.dotted_numbers else _WORD).findall(clean)
    if analyser.stop_words:
        stop_words = _stop_words()
        tokens = [token for token in tokens if token not in stop_words]
    if analyser.language:
        tokens = stemmer(analyser.language).stemWords(tokens)
    if analyser.character_ngrams:
        tokens = [piece for token in tokens for piece in _pieces(token, analyser.character_ngrams)]
    if analyser.bigrams:
        tokens = tokens + [f"{first} {second}" for first, second in pairwise(tokens)]
    return tokens


@cache
def _stop_words() -> frozenset[str]:
    """NLTK's of English."""
    from bm25s.stopwords import STOPWORDS_EN_PLUS

    return frozenset(STOPWORDS_EN_PLUS)


def _pieces(word: str, length: int) -> list[str]:
    """Every run of ``length`` letters of a word between its edges: ``_sta star tare are_`` for 4 and "stare"."""
    edged = f"_{word}_"
    return [edged[start : start + length] for start in range(max(1, len(edged) - length + 1))]


def analysed_text(passage: Passage, analyser: Analyser) -> str:
    """What BM25 reads of a passage: the analyser's fields, without the empty ones."""
    return ". ".join(part for field in analyser.fields if (part := getattr(passage, field)))


def context_windows(documents: Sequence[str] | npt.NDArray[Any], n_beside: int) -> npt.NDArray[np.int64]:
    """Shape (n_passages, 2): each passage is read as passages first to last - 1, its document's ``n_beside`` around it.

    ``documents`` are the documents of the passages, by name or number. A rule often names its subject only in the rule
    above it: read with its neighbours it is found by that word.
    """
    _, starts, of = np.unique(documents, return_index=True, return_inverse=True)
    _, from_end = np.unique(documents[::-1], return_index=True)
    here = np.arange(len(documents))
    first = np.maximum(starts[of], here - n_beside)
    last = np.minimum((len(documents) - from_end)[of], here + n_beside + 1)
    return np.stack([first, last], axis=1).astype(np.int64)


def context_analyser(analyser: Analyser) -> Analyser:
    """How the context ranking reads: no bigrams, which would triple it for little (R@10 .818 against .817)."""
    return replace(analyser, bigrams=False)


def indexed_text(passage: Passage, kind: IndexedText) -> str:
    """What an encoder reads of a passage: its text alone, or ``"title. section. text"`` without the empty parts.

    A chunk of an article often names its subject only in its title; a rulebook passage is complete in itself.
    """
    if kind == "text":
        return passage.text
    return ". ".join(part for part in (passage.title, passage.section, passage.text) if part)


def headings(passages: Sequence[Passage], analyser: Analyser) -> npt.NDArray[np.bool_]:
    """Shape (n_passages,): True for what reads as a heading, where the analyser hides headings."""
    if not analyser.hides_headings:
        return np.zeros(len(passages), dtype=np.bool_)
    return np.fromiter((reads_as_heading(passage.text) for passage in passages), np.bool_, len(passages))


# Which words a passage and a question share: for showing, not for ranking --------------------------------------------


def matched_words(text: str, question: str, analyser: Analyser) -> tuple[Span, ...]:
    """The words of ``text`` that share their token with a word of the question, in reading order.

    Under character n-grams, the words of which at least half the pieces occur in the question, and short words that
    occur there with another ending. Words of two letters, which every text shares, are left out unless in capitals.
    """
    single = replace(analyser, bigrams=False)
    wanted = frozenset(tokenise(question, single))
    asked = _whole_words(question, single) if single.character_ngrams else frozenset()
    verdicts: dict[str, bool] = {}
    found = []
    for match in _SHOWN_WORD.finditer(text[:MAX_CHARS]):
        word = match.group()
        if word not in verdicts:
            verdicts[word] = _matches(word, wanted, asked, single)
        if verdicts[word]:
            found.append(Span(word, match.start(), match.end()))
    return tuple(found)


def _matches(word: str, wanted: frozenset[str], asked: frozenset[str], analyser: Analyser) -> bool:
    """Whether this word of a passage is one of the question's; ``asked`` holds them uncut."""
    if analyser.character_ngrams and len(word) < SHORTEST_STEM and word != word.upper():
        return False
    tokens = tokenise(word, analyser)
    shared = sum(token in wanted for token in tokens)
    if not shared or 2 * shared >= len(tokens):
        return shared > 0
    return any(_inflects(one, whole) for whole in _whole_words(word, analyser) for one in asked)


def _whole_words(text: str, analyser: Analyser) -> frozenset[str]:
    """The words as the analyser folds them, not cut into pieces."""
    return frozenset(tokenise(text, replace(analyser, character_ngrams=0)))


def _inflects(first: str, second: str) -> bool:
    """Whether the two are one short word with other endings: at most two letters, the first of them a vowel."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
    endings = first[same:], second[same:]
    return same >= SHORTEST_STEM and all(
        len(ending) <= LONGEST_ENDING and (not ending or ending[0] in VOWELS) for ending in endings
    )

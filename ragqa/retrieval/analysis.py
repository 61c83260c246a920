"""Turns text into BM25 tokens, and finds the words that a passage and a question share.

`tokenise` serves passages and questions and both BM25 libraries. `TokenTable` keeps the tokens of a corpus as numbers:
4 bytes a token, whatever the corpus, where Python strings take 60. Its vocabulary is an array of sorted 64-bit keys,
memory-mapped and searched, never read into a dict.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from itertools import pairwise, takewhile
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from ragqa.english.sentences import reads_as_heading
from ragqa.english.words import Analyser, stemmer
from ragqa.types import Passage, Span

Keys = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int32]

CHUNK_TOKENS: Final = 1_000_000  # Python strings held at any time: 70 MB
_KEY_BYTES: Final = 8


def keys_of(texts: Iterable[str]) -> Keys:
    """The first 64 bits of each text's BLAKE2b, shape (n_texts,); the same on every machine.

    Two of n texts share a key with odds of about n squared in 3.7e19: 1 in 370,000 for ten million.
    """
    encoded = (text.encode("utf-8", "surrogatepass") for text in texts)
    digests = b"".join(blake2b(text, digest_size=_KEY_BYTES).digest() for text in encoded)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def places_of(wanted: Keys, keys: Keys) -> npt.NDArray[np.int64]:
    """The positions in the sorted ``keys`` of those ``wanted`` keys that occur, in the order of ``wanted``."""
    if not len(keys):
        return np.empty(0, dtype=np.int64)
    places = np.searchsorted(keys, wanted)
    known_places: npt.NDArray[np.int64] = places[keys[np.minimum(places, len(keys) - 1)] == wanted]
    return known_places


def distinct(keys: Keys) -> Keys:
    """The distinct keys, ascending. `numpy.unique` hashes integers, which takes 50 times as long for millions."""
    rising = np.sort(keys)
    return rising[np.concatenate([[True], rising[1:] != rising[:-1]])] if len(rising) else rising


@dataclass(frozen=True, slots=True, eq=False)
class TokenTable:
    """Texts as token numbers: text i is ``numbers[starts[i]:starts[i + 1]]``, in reading order.

    A number is a place in ``vocabulary``, the sorted keys of all distinct tokens (see `keys_of`).
    """

    numbers: Numbers  # (n_tokens,)
    starts: npt.NDArray[np.int64]  # (n_texts + 1,)
    vocabulary: Keys  # (n_distinct_tokens,)

    def __len__(self) -> int:
        return len(self.starts) - 1


def token_table(token_lists: Iterable[Sequence[str]]) -> TokenTable:
    """The table of these texts. The texts may come from a generator and are read once."""
    lengths: list[int] = []
    parts = list(_parts(token_lists, lengths))
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    vocabulary = distinct(np.concatenate([keys for _, keys in parts])) if parts else keys_of([])
    numbers = np.empty(starts[-1], dtype=np.int32)
    end = len(numbers)
    while parts:
        codes, keys = parts.pop()  # from the end, so that the memory of each part is freed once it is copied
        numbers[end - len(codes) : end] = np.searchsorted(vocabulary, keys).astype(np.int32)[codes]
        end -= len(codes)
    return TokenTable(numbers, starts, vocabulary)


def joined_tables(tables: Sequence[TokenTable]) -> TokenTable:
    """One table with the texts of all these tables, in order; there must be at least one table."""
    vocabulary = distinct(np.concatenate([table.vocabulary for table in tables]))
    numbers = [np.searchsorted(vocabulary, table.vocabulary).astype(np.int32)[table.numbers] for table in tables]
    lengths = [np.diff(table.starts) for table in tables]
    starts = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
    return TokenTable(np.concatenate(numbers), starts, vocabulary)


def _parts(token_lists: Iterable[Sequence[str]], lengths: list[int]) -> Iterator[tuple[Numbers, Keys]]:
    """Tokens in chunks, as places in each chunk's own list of keys; appends the length of every text to ``lengths``."""
    tokens: list[str] = []
    for token_list in token_lists:
        lengths.append(len(token_list))
        tokens += token_list
        if len(tokens) >= CHUNK_TOKENS:
            yield _coded(tokens)
            tokens = []
    if tokens:
        yield _coded(tokens)


def _coded(tokens: Sequence[str]) -> tuple[Numbers, Keys]:
    places: dict[str, int] = {}
    codes = np.fromiter((places.setdefault(token, len(places)) for token in tokens), np.int32, len(tokens))
    return codes, keys_of(places)


ANALYSIS_VERSION: Final = 2  # raise it when this module returns other tokens: older indexes are then unusable

IndexedText = Literal["text", "title-section-text"]

_WORD = re.compile(r"(?u)\b\w\w+\b")
_WORD_OR_NUMBER = re.compile(r"(?u)\d+(?:\.\d+)+|\b\w\w+\b")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_ELISION = re.compile(r"(?<=\w)['’](?:s|t|re|ve|ll|d|m)\b")
MAX_CHARS: Final = 20_000  # of a passage, for matched words; the longest ADGM passage is a table of 24,312 words
SHORTEST_STEM: Final = 3  # letters of a short word before its ending: "vrt" in "vrtu"; "in", "je", "za" are shorter
LONGEST_ENDING: Final = 2  # letters: "om" in "vrtom"; longer words share half their pieces even with longer endings
VOWELS: Final = frozenset("aeiouy")
_SHOWN_WORD = re.compile(r"(?u)\d+(?:\.\d+)+|[\w\u0300-\u036f]+")  # an accent may be a character of its own


def tokenise(text: str, analyser: Analyser) -> list[str]:
    """The tokens of ``text`` in reading order, with repeats; empty for text of only stop words and punctuation.

    Bigrams, ``"first second"``, come after all single tokens.
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
    """NLTK's English stop words."""
    from bm25s.stopwords import STOPWORDS_EN_PLUS

    return frozenset(STOPWORDS_EN_PLUS)


def _pieces(word: str, length: int) -> list[str]:
    """Every run of ``length`` letters of a word between its edges: ``_sta star tare are_`` for 4 and "stare"."""
    edged = f"_{word}_"
    return [edged[start : start + length] for start in range(max(1, len(edged) - length + 1))]


def analysed_text(passage: Passage, analyser: Analyser) -> str:
    """The text of a passage that BM25 indexes: the non-empty fields that the analyser names."""
    return ". ".join(part for field in analyser.fields if (part := getattr(passage, field)))


def context_windows(documents: Sequence[str] | npt.NDArray[Any], n_beside: int) -> npt.NDArray[np.int64]:
    """The context window of each passage: it is indexed as passages first to last - 1. Shape (n_passages, 2).

    A window has at most ``n_beside`` passages of the same document on each side. ``documents`` is the document of each
    passage, by name or number. Often only the preceding rule names the subject of a rule: indexed with its neighbours,
    the rule is found by that word.
    """
    _, starts, of = np.unique(documents, return_index=True, return_inverse=True)
    _, from_end = np.unique(documents[::-1], return_index=True)
    here = np.arange(len(documents))
    first = np.maximum(starts[of], here - n_beside)
    last = np.minimum((len(documents) - from_end)[of], here + n_beside + 1)
    return np.stack([first, last], axis=1).astype(np.int64)


def context_analyser(analyser: Analyser) -> Analyser:
    """The analyser of the context ranking: without bigrams, which triple its size for little (R@10 .818, not .817).

    If headings are passages, it reads only texts: neighbours share what stands above them.
    """
    return replace(analyser, bigrams=False, fields=("text",) if analyser.hides_headings else analyser.fields)


def indexed_text(passage: Passage, kind: IndexedText) -> str:
    """The text of a passage that an encoder reads: its text, or ``"title. section. text"`` without the empty parts.

    A chunk of an article often names its subject only in its title; a rulebook passage is complete in itself.
    """
    if kind == "text":
        return passage.text
    return ". ".join(part for part in (passage.title, passage.section, passage.text) if part)


def headings(passages: Sequence[Passage], analyser: Analyser) -> npt.NDArray[np.bool_]:
    """Shape (n_passages,): True for passages that read as headings, if the analyser hides headings."""
    if not analyser.hides_headings:
        return np.zeros(len(passages), dtype=np.bool_)
    return np.fromiter((reads_as_heading(passage.text) for passage in passages), np.bool_, len(passages))


# Words that a passage and a question share: for display, not for ranking ---------------------------------------------


def matched_words(text: str, question: str, analyser: Analyser | None = None) -> tuple[Span, ...]:
    """The words of ``text`` that have the same token as a word of the question, in reading order.

    Under character n-grams, these are words of which at least half the pieces occur in the question, and short words
    that occur there with another ending. Words of two letters, which every text shares, count only in capitals.
    """
    single = replace(analyser or Analyser(), bigrams=False)
    wanted = frozenset(tokenise(question, single))
    asked = _whole_words(question, single) if single.character_ngrams else frozenset()
    verdicts: dict[str, bool] = {}
    matches = []
    for match in _SHOWN_WORD.finditer(text[:MAX_CHARS]):
        word = match.group()
        if word not in verdicts:
            verdicts[word] = _matches(word, wanted, asked, single)
        if verdicts[word]:
            matches.append(Span(word, match.start(), match.end()))
    return tuple(matches)


def _matches(word: str, wanted: frozenset[str], asked: frozenset[str], analyser: Analyser) -> bool:
    """Whether this word of a passage occurs in the question, whose whole words are ``asked``."""
    if analyser.character_ngrams and len(word) < SHORTEST_STEM and word != word.upper():
        return False
    tokens = tokenise(word, analyser)
    shared = sum(token in wanted for token in tokens)
    if not shared or 2 * shared >= len(tokens):
        return shared > 0
    return any(_inflects(stem, whole) for whole in _whole_words(word, analyser) for stem in asked)


def _whole_words(text: str, analyser: Analyser) -> frozenset[str]:
    """The words as the analyser normalises them, not cut into pieces."""
    return frozenset(tokenise(text, replace(analyser, character_ngrams=0)))


def _inflects(first: str, second: str) -> bool:
    """Whether both are one short word with different endings, each of at most two letters that begin with a vowel."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
    endings = first[same:], second[same:]
    return same >= SHORTEST_STEM and all(
        len(ending) <= LONGEST_ENDING and (not ending or ending[0] in VOWELS) for ending in endings
    )

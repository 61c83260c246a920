"""The tokens of a corpus as numbers: 4 bytes a token, whatever the corpus, where Python strings take 60.

Their vocabulary is sorted 64-bit keys, memory-mapped and searched, never read into a dict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import numpy as np
import numpy.typing as npt

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
    """The positions in the sorted ``keys`` of those of ``wanted`` that occur; in their order, others left out."""
    if not len(keys):
        return np.empty(0, dtype=np.int64)
    places = np.searchsorted(keys, wanted)
    found: npt.NDArray[np.int64] = places[keys[np.minimum(places, len(keys) - 1)] == wanted]
    return found


def distinct(keys: Keys) -> Keys:
    """The different ones, rising. `numpy.unique` hashes whole numbers: of millions that takes 50 times as long."""
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
    """The table of these texts; they may come from a generator, and are read once."""
    lengths: list[int] = []
    parts = list(_parts(token_lists, lengths))
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    vocabulary = distinct(np.concatenate([keys for _, keys in parts])) if parts else keys_of([])
    numbers = np.empty(starts[-1], dtype=np.int32)
    end = len(numbers)
    while parts:
        codes, keys = parts.pop()  # from the end, each given back as soon as it is copied
        numbers[end - len(codes) : end] = np.searchsorted(vocabulary, keys).astype(np.int32)[codes]
        end -= len(codes)
    return TokenTable(numbers, starts, vocabulary)


def joined_tables(tables: Sequence[TokenTable]) -> TokenTable:
    """The texts of several tables in a row; there is at least one."""
    vocabulary = distinct(np.concatenate([table.vocabulary for table in tables]))
    numbers = [np.searchsorted(vocabulary, table.vocabulary).astype(np.int32)[table.numbers] for table in tables]
    lengths = [np.diff(table.starts) for table in tables]
    starts = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
    return TokenTable(np.concatenate(numbers), starts, vocabulary)


def _parts(token_lists: Iterable[Sequence[str]], lengths: list[int]) -> Iterator[tuple[Numbers, Keys]]:
    """Tokens in chunks, as places in each chunk's own list of keys; every text's length goes to ``lengths``."""
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

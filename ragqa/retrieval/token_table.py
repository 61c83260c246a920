"""The tokens of a corpus as numbers: 4 bytes a token, whatever the corpus, where Python strings take 60."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ragqa.retrieval.keys import Keys, keys_of

CHUNK_TOKENS: Final = 1_000_000  # Python strings held at any time: 70 MB

Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class TokenTable:
    """Texts as token numbers: text i is ``numbers[starts[i]:starts[i + 1]]``, in reading order.

    A number is a place in ``vocabulary``, the sorted keys of all distinct tokens (see `ragqa.retrieval.keys`).
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
    vocabulary = np.unique(np.concatenate([keys for _, keys in parts])) if parts else keys_of([])
    numbers = np.empty(starts[-1], dtype=np.int32)
    end = len(numbers)
    while parts:
        codes, keys = parts.pop()  # from the end, each given back as soon as it is copied
        numbers[end - len(codes) : end] = np.searchsorted(vocabulary, keys).astype(np.int32)[codes]
        end -= len(codes)
    return TokenTable(numbers, starts, vocabulary)


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

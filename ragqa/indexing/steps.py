"""What the stages of building share: how far it is, the tokens of passages, the vectors of texts."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from ragqa.analysers import Analyser
from ragqa.protocols import Encoder, FloatMatrix
from ragqa.types import Passage

__all__ = ["ENCODED", "BuildProgress", "encode", "tokens_of"]

ENCODED_AT_ONCE: Final = 512  # texts between two signs of progress: 3 s on two cores
ENCODED: Final = "encoded.npy"  # vectors on their way, gone before the index is in its place


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """``done`` of ``total`` passages (files in the last stage) of this stage are done; a stage ends at its total."""

    stage: str  # corpus, BM25, vectors, the name of a further ranking, files
    done: int
    total: int


def tokens_of(passages: Iterable[Passage], analyser: Analyser) -> Iterator[list[str]]:
    """The tokens of each passage, one after another, as this analyser reads it."""
    from ragqa.retrieval.analysis import analysed_text, tokenise

    return (tokenise(analysed_text(passage, analyser), analyser) for passage in passages)


def encode(
    texts: Iterable[str], encoder: Encoder, kind: str, path: Path, stage: str = "vectors"
) -> Generator[BuildProgress, None, tuple[FloatMatrix, npt.NDArray[np.int64]]]:
    """The vectors of the distinct texts, shape (n_distinct, dimension), mapped from ``path``, and each text's row.

    Equal texts are encoded once, so that they tie exactly. A ``kind`` of index that cannot be made of such vectors is
    refused after the first of them.
    """
    from ragqa.retrieval.dense import check_unit_rows
    from ragqa.retrieval.vectors import check_kind

    numbers: dict[str, int] = {}
    rows = np.fromiter((numbers.setdefault(text, len(numbers)) for text in texts), np.int64)
    distinct, total = list(numbers), len(numbers)
    vectors = None
    yield BuildProgress(stage, 0, total)
    for start in range(0, total, ENCODED_AT_ONCE):
        batch = distinct[start : start + ENCODED_AT_ONCE]
        encoded = encoder.encode(batch)
        check_unit_rows(encoded, len(batch), encoder.info.name)
        if vectors is None:
            check_kind(kind, encoded.shape[1])
            vectors = np.lib.format.open_memmap(path, "w+", np.float32, (total, encoded.shape[1]))
        vectors[start : start + len(batch)] = encoded
        yield BuildProgress(stage, start + len(batch), total)
    return np.asarray(vectors), rows

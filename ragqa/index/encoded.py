"""Encodes passages batch by batch into a file, so that vectors take no memory and a stopped build loses none."""

from __future__ import annotations

from collections.abc import Generator
from itertools import islice, pairwise
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from ragqa.index.journal import BuildJournal, BuildProgress
from ragqa.index.passages import read_passages
from ragqa.index.portions import gathered
from ragqa.index.reuse import KnownVectors
from ragqa.infra.files import flush_open
from ragqa.plugins.protocols import Encoder, FloatMatrix
from ragqa.retrieval.analysis import IndexedText, indexed_text
from ragqa.retrieval.dense import check_kind, check_unit_rows, write_vectors

ENCODED_AT_ONCE: Final = 512  # texts between two progress events and two entries in the journal

Longs = npt.NDArray[np.int64]


class VectorFile:
    """Vectors in a file of raw float32; rows are read at access."""

    def __init__(self, path: Path, n_vectors: int, dimension: int) -> None:
        self.path = path
        self.shape = (n_vectors, dimension)

    def __getitem__(self, rows: Longs) -> FloatMatrix:
        """The vectors of these rows, shape (len(rows), dimension); adjacent rows are read together."""
        distinct, places = np.unique(rows, return_inverse=True)
        found = np.empty((len(distinct), self.shape[1]), dtype=np.float32)
        breaks = np.flatnonzero(np.diff(distinct) != 1) + 1
        with self.path.open("rb") as file:
            for first, last in pairwise([0, *breaks, len(distinct)] if len(distinct) else []):
                file.seek(int(distinct[first]) * self.shape[1] * 4)
                found[first:last] = np.fromfile(file, np.float32, (last - first) * self.shape[1]).reshape(
                    -1, self.shape[1]
                )
        return found[places]


def distinct_rows(digests: npt.NDArray[np.uint64]) -> tuple[Longs, Longs]:
    """For each text, its number among the distinct texts in order of first occurrence; and the first occurrences.

    ``digests`` are those of the texts, shape (n_texts, 2). The first occurrences are ascending.
    """
    if not len(digests):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    by_digest = np.lexsort((digests[:, 1], digests[:, 0]))  # stable: equal digests keep their order
    is_first = np.ones(len(digests), dtype=np.bool_)
    is_first[1:] = (digests[by_digest[1:]] != digests[by_digest[:-1]]).any(axis=1)
    firsts = by_digest[is_first]
    group = np.cumsum(is_first) - 1
    rows = np.empty(len(digests), dtype=np.int64)
    rows[by_digest] = np.argsort(np.argsort(firsts))[group]
    return rows, np.sort(firsts)


def write_dense(
    journal: BuildJournal,
    path: Path,
    name: str,
    stage: str,
    encoder: Encoder,
    indexed: IndexedText,
    kind: str,
    known: KnownVectors | None = None,
) -> Generator[BuildProgress, None, None]:
    """Writes the FAISS file of all passages, unless the journal records it under ``name`` as complete.

    Equal texts are encoded once, so that they tie exactly. Texts with ``known`` vectors are not encoded.
    """
    if name in journal.finished:
        yield BuildProgress(stage, journal.n_encoded[name], journal.n_encoded[name])
        return
    rows, firsts = distinct_rows(gathered(journal, "texts"))
    vectors = yield from _encode(firsts, encoder, indexed, kind, journal, name, stage, known)
    write_vectors(vectors, path, kind, rows)
    journal.finish(name, vectors.path)


def _encode(
    firsts: Longs,
    encoder: Encoder,
    indexed: IndexedText,
    kind: str,
    journal: BuildJournal,
    name: str,
    stage: str,
    known: KnownVectors | None,
) -> Generator[BuildProgress, None, VectorFile]:
    """The vectors of the distinct texts, which the passages ``firsts`` have; resumes where the journal ends.

    If FAISS cannot make this ``kind`` of index for these vectors, it raises after the first batch.
    """
    path, total = journal.folder / f"{name}.vectors", len(firsts)
    done, dimension = journal.n_encoded.get(name, 0), journal.dimensions.get(name, 0)
    yield BuildProgress(stage, done, total)
    rows = known.rows_of(gathered(journal, "texts")[firsts]) if known else np.full(total, -1)
    wanted = np.zeros(journal.n_passages, dtype=np.bool_)
    wanted[firsts[done:][rows[done:] < 0]] = True
    texts = (indexed_text(passage, indexed) for passage in read_passages(journal.index, wanted))
    with path.open("ab") as file:
        file.truncate(done * dimension * 4)
        while done < total:
            batch = rows[done : done + ENCODED_AT_ONCE]
            unknown = list(islice(texts, int((batch < 0).sum())))
            encoded = known.taken(batch, unknown, encoder) if known else encoder.encode(unknown)
            check_unit_rows(encoded, len(batch), encoder.info.name)
            if not dimension:
                dimension = encoded.shape[1]
                check_kind(kind, dimension)
            file.write(np.ascontiguousarray(encoded, dtype=np.float32).tobytes())
            flush_open(file)
            done += len(batch)
            journal.n_encoded[name], journal.dimensions[name] = done, dimension
            journal.save()
            yield BuildProgress(stage, done, total)
    return VectorFile(path, done, dimension)

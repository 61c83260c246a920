"""The hits of a retriever for a list of questions, kept on disk: what fusion settings share is retrieved once."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import re
import tempfile
import time
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_logger = logging.getLogger(__name__)

Hits = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]
"""Positions of passages in the index and their scores, best first, both of shape (n_hits,)."""

MAX_BYTES = 500_000_000  # ObliQA's 2,786 test questions, 100 hits each, take 2.2 MB per retriever
STALE_SECONDS = 3600.0  # a temporary file older than this was left by a process that died
VERSION = 1  # of the files; another one never meets the same key
# What zipfile and numpy raise for files that are not what `save` wrote.
DAMAGE = (OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)


def ranking_key(fingerprint: str, retriever: str, top_k: int, questions: Sequence[str]) -> str:
    """The name of these hits: 64 hexadecimal digits, another for every change that changes them.

    ``fingerprint`` identifies the index (passages and vectors), ``retriever`` the retriever with every setting that
    its ranking depends on and its encoder; ``questions`` are the texts as they are retrieved for, in their order.
    """
    named = json.dumps([VERSION, fingerprint, retriever, top_k, list(questions)])
    return hashlib.sha256(named.encode("ascii")).hexdigest()


class RankingCache:
    """A folder of ``<key>.npz`` files of at most ``max_bytes`` in all; the least recently used are dropped first.

    Several processes may share it: files appear whole (one rename) and may vanish at any time. It is only a help: what
    cannot be read counts as absent, what cannot be written is logged and left. No pickle is written or read. Scores
    are kept in single precision, so that a retriever that computes in double comes back rounded.
    """

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    def load(self, key: str) -> list[Hits] | None:
        """The hits saved under this key, one pair per question in their order; None where there are none.

        A damaged file counts as none; the next `save` of the key replaces it.
        """
        path = self._path(key)
        try:
            hits = _read(path)
        except FileNotFoundError:
            return None
        except DAMAGE as error:
            _logger.warning("%s cannot be used (%s: %s); retrieving again", path, type(error).__name__, error)
            return None
        with suppress(OSError):
            os.utime(path)  # used now: dropped last
        return hits

    def save(self, key: str, hits: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]]) -> None:
        """Keeps (positions, scores) of each question, one-dimensional and of the same length, under this key.

        Hits that alone take more than ``max_bytes`` are not kept. Raises ValueError where the shapes differ or a
        position is not one (0 to 2^31 - 1).
        """
        path, content = self._path(key), _packed(hits)
        try:
            if len(content) <= self._max_bytes:
                _replace(path, content)
            self._drop()
        except OSError as error:
            _logger.warning("%s cannot be written (%s); going on without it", path, error)

    def _path(self, key: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{64}", key):
            msg = f"expected a key of `ranking_key`, found {key[:80]!r}"
            raise ValueError(msg)
        return self._folder / f"{key}.npz"

    def _drop(self) -> None:
        """Removes the least recently used files beyond the limit and what dead processes left; others' files stay."""
        kept: list[tuple[int, str, int, Path]] = []
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):  # another process dropped it
                found = path.stat()
                if re.fullmatch(r"[0-9a-f]{64}\.npz", path.name):
                    kept.append((found.st_mtime_ns, path.name, found.st_size, path))
                elif re.fullmatch(r"\.ranking-.*\.new", path.name) and time.time() - found.st_mtime > STALE_SECONDS:
                    path.unlink()
        total = sum(size for _, _, size, _ in kept)
        for _, _, size, path in sorted(kept):
            if total <= self._max_bytes:
                return
            path.unlink(missing_ok=True)
            total -= size


def _packed(hits: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]]) -> bytes:
    """The bytes of the file: all questions' positions and scores one after another, and how many are each one's."""
    for positions, scores in hits:
        if positions.ndim != 1 or positions.shape != scores.shape:
            msg = f"expected positions and scores of one shape (n_hits,), found {positions.shape} and {scores.shape}"
            raise ValueError(msg)
    positions = np.concatenate([np.empty(0, np.int64), *(positions for positions, _ in hits)])
    if positions.size and not 0 <= positions.min() <= positions.max() <= np.iinfo(np.int32).max:
        msg = f"expected positions from 0 to 2^31 - 1, found {positions.min()} to {positions.max()}"
        raise ValueError(msg)
    buffer = io.BytesIO()
    np.savez(
        buffer,
        allow_pickle=False,
        lengths=np.array([len(positions) for positions, _ in hits], dtype=np.int64),
        positions=positions.astype(np.int32),
        scores=np.concatenate([np.empty(0, np.float32), *(scores for _, scores in hits)]).astype(np.float32),
    )
    return buffer.getvalue()


def _read(path: Path) -> list[Hits]:
    """What the file holds; one of DAMAGE where it is not a file of `_packed`, whole."""
    content = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if archive.testzip() is not None:  # checksums first: numpy then parses only what was written
            msg = "a checksum is not that of its content"
            raise ValueError(msg)
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        lengths, positions, scores = arrays["lengths"], arrays["positions"], arrays["scores"]
    types = (lengths.dtype, positions.dtype, scores.dtype)
    if types != (np.int64, np.int32, np.float32) or not lengths.ndim == positions.ndim == scores.ndim == 1:
        msg = f"expected lists of int64, int32 and float32, found {', '.join(map(str, types))}"
        raise ValueError(msg)
    if (lengths < 0).any() or not lengths.sum() == len(positions) == len(scores):
        msg = f"expected {lengths.sum():,} positions and scores, found {len(positions):,} and {len(scores):,}"
        raise ValueError(msg)
    ends = np.cumsum(lengths).tolist()
    return [(positions[b:e], scores[b:e]) for b, e in zip([0, *ends[:-1]], ends, strict=False)]


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=".ranking-", suffix=".new", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)  # noqa: PTH105 - by os, so that tests can stop it
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise

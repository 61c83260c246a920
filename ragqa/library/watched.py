"""The watched folder of a server: its new and changed files are proposed for the library, never added unasked.

The folder is looked at when somebody asks, on the page Library or by `ragqa index watched`. What is taken over is
staged like an upload, with the same limits and checks, and indexed when a person says so. What a person does not want
now is remembered by its digest, so that a file is proposed again when it changes.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from ragqa.corpus.documents import Reader
from ragqa.corpus.documents.kinds import SUFFIXES
from ragqa.corpus.files import files_below, storable_name
from ragqa.errors import ConfigError, CorpusError
from ragqa.infra.files import locked, sha256_of, write_whole
from ragqa.library.collection import Collection
from ragqa.library.names import member_name, safe_name
from ragqa.library.upload import LISTED, take

WATCHED: Final = "RAGQA_WATCHED_FOLDER"
_PATIENCE: Final = 3.0  # seconds to wait for another process's change
SETTLED_SECONDS: Final = 5.0  # a file that changed later than this may still be being written
_SUFFIXES: Final = tuple(suffix for suffix, kind in SUFFIXES.items() if kind != "ZIP")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A file of the watched folder, by its path there, that the library does not hold; ``size`` in bytes.

    It is a new version of the document ``document_id`` of ``corpus``; both are empty for a new document. ``digest`` is
    its sha256.
    """

    name: str
    size: int
    corpus: str = ""
    document_id: str = ""
    digest: str = ""

    @property
    def words(self) -> str:
        """What it is: ``"new document"``, ``"new version of fees in house-rules"``."""
        return f"new version of {self.document_id} in {self.corpus}" if self.corpus else "new document"


def watched_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """The folder that RAGQA_WATCHED_FOLDER names; None where it is not set. Raises ConfigError if there is none."""
    text = (os.environ if environ is None else environ).get(WATCHED, "").strip()
    if not text:
        return None
    folder = Path(text).expanduser()
    if not folder.is_dir():
        raise ConfigError(f"{WATCHED}: expected a folder, found {text[:80]!r}; make it, or correct the variable")
    return folder


def proposals(folder: Path, collections: Sequence[Collection]) -> tuple[Proposal, ...]:
    """The files of the folder, at most 2,000, that none of these corpora holds, holds staged, or held before.

    A file with the name of a document is a new version of it, in each corpus that has one. Archives, hidden and empty
    files, links that lead out of the folder and files that changed within the last 5 seconds are left out. Raises
    CorpusError if the folder cannot be read.
    """
    corpora = [_Held(one) for one in collections]
    return tuple(
        proposal
        for path in files_below(folder, _SUFFIXES)[:LISTED]
        for proposal in _proposed(path, _name(path, folder), corpora)
    )


def take_over(collection: Collection, folder: Path, proposal: Proposal, reader: Reader) -> list[str]:
    """Stages the proposed file in this corpus; returns and raises as `ragqa.library.upload.take`.

    Raises CorpusError also where the file is gone.
    """
    known = proposal.document_id if proposal.corpus == collection.name else ""
    path = next((path for path in files_below(folder, _SUFFIXES) if _name(path, folder) == proposal.name), None)
    try:
        if path:
            with path.open("rb") as data:
                return take(collection, member_name(proposal.name), data, reader, known)
    except OSError as error:
        msg = f"{proposal.name} cannot be read ({error.strerror or error}); check its permissions and try again"
        raise CorpusError(msg) from error
    raise CorpusError(f"expected {proposal.name[:80]!r} in the watched folder, found no such file; look at it again")


def dismissed(file: Path) -> frozenset[str]:
    """The digests of files that somebody does not want now. Raises CorpusError if ``file`` is damaged."""
    try:
        return frozenset(map(str, json.loads(file.read_text(encoding="utf-8"))))
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, TypeError) as error:
        msg = f"{file} cannot be read ({error}); delete it, and what was dismissed is proposed again"
        raise CorpusError(msg) from error


def set_dismissed(file: Path, digest: str, *, is_dismissed: bool) -> None:
    """Remembers that a file with this digest is not wanted now, or no longer. Raises ConfigError, CorpusError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    msg = f"{file.name} is being changed by another ragqa; try again"
    with locked(file.with_suffix(".lock"), lambda: ConfigError(msg), _PATIENCE):
        others = dismissed(file) - {digest}
        write_whole(file, [json.dumps(sorted(others | {digest} if is_dismissed else others))])


class _Held:
    """What a corpus holds: digests of all files, with the earlier versions, and document ids by file name."""

    def __init__(self, collection: Collection) -> None:
        self.corpus, self.digests, self.ids = collection.name, set[str](), dict[str, str]()
        with suppress(CorpusError):  # the page says that this catalogue is damaged
            catalogue = collection.read()
            self.digests = {one.sha256 for one in catalogue.documents} | {one.sha256 for one in catalogue.staged}
            self.ids = {one.name: one.document_id for one in catalogue.kept}
        for path in (collection.folder / "old").glob("*"):
            with suppress(OSError):
                self.digests.add(_digest(path))


def _proposed(path: Path, name: str, corpora: Sequence[_Held]) -> Iterator[Proposal]:
    try:
        status = path.stat()
        if not status.st_size or path.name.startswith("~") or time.time() - status.st_mtime < SETTLED_SECONDS:
            return
        digest = _digest(path)
    except OSError:  # gone, or not to be read
        return
    names = (member_name(name), safe_name(path.name))
    known = [(one, next((one.ids[known] for known in names if known in one.ids), "")) for one in corpora]
    for one, document_id in known:
        if document_id and digest not in one.digests:
            yield Proposal(name, status.st_size, one.corpus, document_id, digest)
    if not any(document_id or digest in one.digests for one, document_id in known):
        yield Proposal(name, status.st_size, digest=digest)


def _name(path: Path, folder: Path) -> str:
    return storable_name(path.relative_to(folder).as_posix())


def _digest(path: Path) -> str:
    """The file's sha256, computed again only if its size or time of change is another."""
    status = path.stat()
    return _digest_of(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=10_000)
def _digest_of(path: Path, size: int, changed: int) -> str:
    del size, changed
    return sha256_of(path)

"""Names that came from elsewhere, made safe: of files on disk, and of corpora from what a person calls them. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from itertools import chain, count
from pathlib import PurePosixPath
from typing import Final

LONGEST: Final = 100  # characters of a name before its suffix
_OTHER: Final = re.compile(r"[^\w .,()'&+@=-]")


def safe_name(name: str) -> str:
    """The last part of ``name`` as a plain file name: letters, digits and few marks, never hidden, at most 120 long."""
    last = unicodedata.normalize("NFC", re.split(r"[\\/]", name)[-1])
    path = PurePosixPath(_OTHER.sub("_", last).strip(" .=+@-") or "document")
    stem = path.stem.strip(" .") or "document"
    while len(stem.encode()) > 2 * LONGEST or len(stem) > LONGEST:
        stem = stem[:-1]
    return stem.rstrip(" .") + _OTHER.sub("", path.suffix.lower())[:16]


def member_name(member: str) -> str:
    """The name of an archive's member, its folders before it: ``rules/2026/a.pdf`` becomes ``rules - 2026 - a.pdf``."""
    parts = [part for part in re.split(r"[\\/]", member) if part.strip(" .")]
    return safe_name(" - ".join(parts[-3:]))


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, or the first of ``name (2)``, ``name (3)``, … that is not taken, whatever the case of its letters."""
    known = {one.casefold() for one in taken}
    path = PurePosixPath(name)
    names = chain([name], (f"{path.stem} ({number}){path.suffix}" for number in count(2)))
    return next(free for free in names if free.casefold() not in known)


def corpus_name(title: str, taken: Collection[str] = ()) -> str:
    """A name for an index (see `ragqa.index.folders.check_name`) that reads like the title and is not taken."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    base = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:48].strip("-") or "documents"
    return next(free for free in chain([base], (f"{base}-{number}" for number in count(2))) if free not in taken)

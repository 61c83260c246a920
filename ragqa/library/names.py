"""Safe names from untrusted text: file names from uploads, and corpus names from titles. Pure."""

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
    """The last part of the path ``name`` as a safe file name: letters, digits, a few marks, at most 120 characters."""
    last = unicodedata.normalize("NFC", re.split(r"[\\/]", name)[-1])
    path = PurePosixPath(_OTHER.sub("_", last).strip(" .=+@-") or "document")
    stem = path.stem.strip(" .") or "document"
    while len(stem.encode()) > 2 * LONGEST or len(stem) > LONGEST:
        stem = stem[:-1]
    return stem.rstrip(" .") + _OTHER.sub("", path.suffix.lower())[:16]


def member_name(member: str) -> str:
    """A file name for an archive's member, with its folders: ``rules/2026/a.pdf`` becomes ``rules - 2026 - a.pdf``."""
    parts = [part for part in re.split(r"[\\/]", member) if part.strip(" .")]
    return safe_name(" - ".join(parts[-3:]))


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, or the first of ``name (2)``, ``name (3)``, … that is not taken; letter case is ignored."""
    known = {one.casefold() for one in taken}
    path = PurePosixPath(name)
    names = chain([name], (f"{path.stem} ({number}){path.suffix}" for number in count(2)))
    return next(free for free in names if free.casefold() not in known)


def corpus_name(title: str, taken: Collection[str] = ()) -> str:
    """A valid index name (see `ragqa.index.folders.check_name`) made from the title that is not taken."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    base = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:48].strip("-") or "documents"
    return next(free for free in chain([base], (f"{base}-{number}" for number in count(2))) if free not in taken)

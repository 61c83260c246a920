"""Which files of a corpus were not read, and why, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from ragqa.corpus.documents import DocumentStream, UnreadableError
from ragqa.corpus.files import storable_name
from ragqa.corpus.formats import open_stream
from ragqa.english.words import quantity
from ragqa.library import parse_cache
from ragqa.library.collection import Collection

SHOWN: Final = 10  # names of files for one reason


def unread(collection: Collection, max_tokens: int) -> dict[str, str]:
    """The staged files that cannot be read, with the reason of each."""
    found = {}
    for one in collection.read().staged:
        try:
            parse_cache.known(collection, one, max_tokens)
        except UnreadableError as error:
            found[one.name] = str(error)
    return found


def unread_in(source: Path, corpus_format: str | None, documents: Iterable[str]) -> tuple[list[str], int]:
    """The names of the files at ``source`` from which none of these documents was read, and the number of all files.

    Both are empty for a source that does not consist of documents. Raises CorpusError.
    """
    stream = open_stream(source, corpus_format)
    if not isinstance(stream, DocumentStream):
        return [], 0
    root, held = source if source.is_dir() else source.parent, set(documents)
    held |= {"/".join(parts[:n]) for parts in (one.split("/") for one in held) for n in range(1, len(parts))}
    names = [storable_name(path.relative_to(root).as_posix()) for path in stream.paths]
    return [name for name in names if not {name, name.rpartition(".")[0]} & held], len(names)


def unread_words(reasons: Mapping[str, str], total: int) -> str:
    """How many of ``total`` files were not read, which, and why, those with the same reason together; "" for none."""
    alike: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        alike.setdefault(reason, []).append(name)
    parts = []
    for reason, names in alike.items():
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        parts.append(f"{', '.join(names[:SHOWN])}{more} ({reason})")
    count = f"{len(reasons):,} of {quantity(total, 'file')} {'was' if len(reasons) == 1 else 'were'} not read"
    return f"{count}: {'; '.join(parts)}" if parts else ""

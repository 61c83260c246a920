"""What the passages of an index refer to: a file of it, a reference a line (`ragqa.corpus.references`)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from ragqa.corpus.reference_grammar import Reference, mentions_of
from ragqa.index.manifest import REFERENCES
from ragqa.index.passages import read_passages


def write_references(folder: Path, named: Iterable[bytes]) -> None:
    """Finds the references among the passages of this folder; no file where there are none. Holds all passages.

    ``named`` are the lines of what each passage names (`ragqa.corpus.reference_grammar`).
    """
    from ragqa.corpus.references import references  # not needed to read an index

    found = references(tuple(read_passages(folder)), map(mentions_of, named))
    path = folder / REFERENCES
    path.unlink(missing_ok=True)
    if found:
        path.write_text("".join(map(line_of, found)), encoding="utf-8")


def read_references(folder: Path) -> dict[str, tuple[Reference, ...]]:
    """The references of each passage of an index, by its id; none where the index has no such file."""
    found: dict[str, list[Reference]] = defaultdict(list)
    path = folder / REFERENCES
    if path.is_file():
        with path.open(encoding="utf-8") as lines:
            for one in map(reference_of, lines):
                found[one.source].append(one)
    return {source: tuple(several) for source, several in found.items()}


def line_of(one: Reference) -> str:
    """A reference as a line of JSON."""
    return json.dumps([one.source, one.start, one.end, one.target, one.last, one.reason], ensure_ascii=False) + "\n"


def reference_of(line: str | bytes) -> Reference:
    """The reference in this line. Raises ValueError where there is none."""
    source, start, end, target, last, reason = json.loads(line)
    return Reference(source, start, end, target, last, reason)

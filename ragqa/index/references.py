"""The references of the passages of an index, in a file with one reference a line (`ragqa.corpus.references`)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from ragqa.corpus.reference_grammar import Reference, mentions_of
from ragqa.index.manifest import REFERENCES
from ragqa.index.passages import read_passages


def write_references(folder: Path, named: Iterable[bytes]) -> None:
    """Resolves the references among the passages of this folder and writes them; writes no file if there are none.

    Holds all passages in memory. ``named`` has the mentions in each passage, a line each
    (`ragqa.corpus.reference_grammar`).
    """
    from ragqa.corpus.references import references  # not needed to read an index

    found = references(tuple(read_passages(folder)), map(mentions_of, named))
    path = folder / REFERENCES
    path.unlink(missing_ok=True)
    if found:
        path.write_text("".join(map(line_of, found)), encoding="utf-8")


def read_references(folder: Path) -> dict[str, tuple[Reference, ...]]:
    """The references of each passage of an index, by passage id; empty if the index has no such file."""
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
    """The reference in this line. Raises ValueError if there is none."""
    source, start, end, target, last, reason = json.loads(line)
    return Reference(source, start, end, target, last, reason)

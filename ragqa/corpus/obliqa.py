"""Reads passages from ObliQA: a folder of JSON documents, each a list of {ID, DocumentID, PassageID, Passage}.

This is the schema of RegNLP/ObliQADataset. ``titles.json``, beside the documents or one folder up, may give titles.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragqa.corpus.files import JsonItem, describe, passage_id_of, read_items, read_json, unique
from ragqa.corpus.streams import LoadedStream, loaded
from ragqa.english.sentences import reads_as_heading
from ragqa.errors import CorpusError
from ragqa.types import Passage

SEPARATOR = " › "
TITLES = "titles.json"
LABEL = "JSON"


@dataclass(frozen=True, slots=True)
class _Row:
    """One passage of a file, cleaned; ``text`` may be empty."""

    document_id: str
    number: str
    text: str
    item_id: str = ""  # the item's own ID, which only runs of the shared task use


def load_obliqa(folder: Path) -> tuple[Passage, ...]:
    """The non-empty passages of every document, files in numeric order (2.json before 10.json), items in file order.

    ``folder`` has the ``*.json`` documents, or a ``documents/`` folder with them, or is one such file. Texts are
    cleaned (`clean_text`); blank passages are left out. Ids are ``"DocumentID:PassageID"``; if an id repeats, the first
    non-empty passage keeps it and the others get ``#2``, ``#3``. ``section`` has the headings above the passage. The
    item's own ID is not used and may be missing. Raises CorpusError if something is not as described here.
    """
    documents = files(folder)
    if not documents:
        msg = (
            f"no JSON document in {folder}; expected a folder of *.json files (or with a documents/ folder of them), "
            "each a list of {ID, DocumentID, PassageID, Passage}"
        )
        raise CorpusError(msg)
    root = folder if folder.is_dir() else folder.parent
    titles = _read_titles(documents[0].parent)
    rows = [row for path in documents for row in _read_rows(path, path.relative_to(root).as_posix())]
    passages = tuple(_passages(rows, titles))
    if not passages:
        msg = f"{folder}: all {len(rows):,} passages are empty; expected at least one with text under 'Passage'"
        raise CorpusError(msg)
    return passages


def load_item_ids(source: Path) -> dict[str, str]:
    """The item's own ID, which runs of the RIRAG shared task use, for each passage id of `load_obliqa`.

    Raises CorpusError as `load_obliqa` does, and if a passage has no ID or two passages have the same.
    """
    rows = [row for path in files(source) for row in _read_rows(path, path.name) if row.text]
    named = dict(zip(_ids(rows), (row.item_id for row in rows), strict=True))
    repeated = [name for name, count in Counter(named.values()).items() if count > 1 or not name]
    if repeated or not named:
        found = f"{repeated[0]!r} several times" if repeated and repeated[0] else "a passage without one"
        msg = (
            f"{source}: expected ObliQA documents whose passages have an ID each, found "
            f"{found if named else 'no passage'}; name the folder that the index was built from"
        )
        raise CorpusError(msg)
    return named


def stream(source: Path, chunk_max_tokens: int = 128) -> LoadedStream:
    """A stream of the passages of `load_obliqa`, which are not chunked."""
    return loaded("obliqa", source, load_obliqa(source))


def files(source: Path) -> tuple[Path, ...]:
    """The JSON documents that `load_obliqa` would read, in numeric order."""
    if source.is_file():
        return (source,) if source.suffix.lower() == ".json" else ()
    for folder in (source / "documents", source):
        if folder.is_dir():
            found = [path for path in folder.iterdir() if _is_document(path)]
            if found:
                return tuple(sorted(found, key=lambda path: _numeric_key(path.name)))
    return ()


def _is_document(path: Path) -> bool:
    hidden = path.name.startswith(".")
    return path.suffix.lower() == ".json" and path.name != TITLES and not hidden and path.is_file()


def _numeric_key(name: str) -> tuple[list[str | int], str]:
    parts = re.split(r"([0-9]+)", name)  # texts at even places and numbers at odd places, so always comparable
    return [int(part) if place % 2 else part for place, part in enumerate(parts)], name


def _read_titles(folder: Path) -> dict[str, str]:
    for path in (folder / TITLES, folder.parent / TITLES):
        if path.is_file():
            titles = read_json(path, TITLES)
            if isinstance(titles, dict) and all(isinstance(title, str) for title in titles.values()):
                return titles
            msg = f'{TITLES}: expected an object of DocumentID to title, like {{"1": "General Rules"}}, found '
            raise CorpusError(msg + (describe(titles) if not isinstance(titles, dict) else "a title that is no text"))
    return {}


def _read_rows(path: Path, name: str) -> Iterator[_Row]:
    for item in read_items(path, name):
        yield _Row(item.identifier("DocumentID"), item.line("PassageID"), item.text("Passage"), _item_id(item))


def _item_id(item: JsonItem) -> str:
    found = item.values.get("ID")
    return str(found) if isinstance(found, str | int) else ""


def _passages(rows: Sequence[_Row], titles: dict[str, str]) -> Iterator[Passage]:
    filled = [row for row in rows if row.text]
    for row, passage_id, section in zip(filled, _ids(filled), _sections(filled), strict=True):
        title = titles.get(row.document_id) or f"Document {row.document_id}"
        yield Passage(passage_id, row.document_id, row.text, title=title, section=section, number=row.number)


def _ids(rows: Sequence[_Row]) -> Iterator[str]:
    return unique([passage_id_of(row.document_id, row.number) for row in rows])


# Sections -----------------------------------------------------------------------------------------------------------


def _sections(rows: Sequence[_Row]) -> Iterator[str]:
    """For each row, the headings above it, outermost first: ``"1. INTRODUCTION › 1.2 Application"``."""
    headings: dict[tuple[str, tuple[str, ...]], str] = {}  # the latest of each number, as numbering may start again
    for row in rows:
        steps = _steps(row.number)
        above = [headings.get((row.document_id, steps[:depth])) for depth in range(1, len(steps))]
        yield SEPARATOR.join(label for label in above if label)
        if reads_as_heading(row.text):
            headings[row.document_id, steps] = f"{row.number} {' '.join(row.text.split())}"


def _steps(number: str) -> tuple[str, ...]:
    """The steps of a number: ``"1.2.1.(1)"`` and ``"1.2.1(1)"`` -> ``("1", "2", "1", "(1)")``."""
    return tuple(step for part in re.split(r"\.|(?<=[^\s.])(?=\()", number) if (step := part.strip()))

"""Reads users' files as text or JSON items. Errors name the file and item, the expected and the found content."""

from __future__ import annotations

import ast
import json
import math
import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragqa.corpus.cleaning import clean_line, clean_text
from ragqa.errors import CorpusError


def files_below(source: Path, suffixes: Collection[str]) -> tuple[Path, ...]:
    """The files with one of these suffixes, sorted by their path in the folder, the same on every system.

    Hidden files and folders are skipped. Linked folders are not entered, and linked files count only if their target is
    inside ``source``. Raises CorpusError if a folder cannot be read.
    """
    if source.is_file():
        return (source,) if source.suffix.lower() in suffixes else ()
    inside = source.resolve()
    found = []
    for folder, folders, names in os.walk(source, onerror=_raise_unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (Path(folder) / name for name in names if not name.startswith("."))
        found += [path for path in paths if path.suffix.lower() in suffixes and path.is_file()]
    inner = [path for path in found if path.resolve().is_relative_to(inside)]
    return tuple(sorted(inner, key=lambda path: path.relative_to(source).as_posix()))


def storable_name(name: str) -> str:
    """The name with bytes that are not UTF-8 escaped, so that it can be stored."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _raise_unreadable(error: OSError) -> None:
    msg = f"folder {error.filename} cannot be read: {error.strerror}; check its permissions and try again"
    raise CorpusError(msg) from error


def read_utf8(path: Path, name: str) -> str:
    r"""The file's text, with ``\n`` as line ending and without a byte-order mark. Errors call the file ``name``."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        msg = f"{name} cannot be read: {error.strerror or error}; check its permissions and try again"
        raise CorpusError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"{name} is not UTF-8 text (byte {error.start} cannot be read); save it as UTF-8 and try again"
        raise CorpusError(msg) from error


def passage_id_of(document_id: str, number: str) -> str:
    """The id of passage ``number`` of a document: ``"7:2.1.(1)"``. PassageID alone is not unique in ObliQA."""
    return f"{document_id}:{number}"


def unique(names: Sequence[str]) -> Iterator[str]:
    """The names in order: a repeated one gets ``#2`` and so on, but never a name that another has."""
    taken, counts = set(names), Counter[str]()
    for name in names:
        counts[name] += 1
        one = name
        while counts[name] > 1 and (one := f"{name}#{counts[name]}") in taken:
            counts[name] += 1
        taken.add(one)
        yield one


def read_json(path: Path, name: str) -> Any:  # noqa: ANN401 - it is whatever the file holds; callers check
    """The JSON value in the file, which may have ``NaN`` and a byte-order mark. Errors call the file ``name``."""
    text = read_utf8(path, name)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"{name} is not valid JSON ({error}); correct the file and try again"
        raise CorpusError(msg) from error


@dataclass(frozen=True, slots=True)
class JsonItem:
    """One object of a list in a JSON file; ``place`` is its place, counted from 1: ``"3.json, item 17"``."""

    place: str
    values: dict[str, Any]

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def text(self, key: str) -> str:
        """The cleaned text under ``key``; ``""`` for ``NaN``, which some tools write for a missing text."""
        value = self._value(key, "a text")
        if isinstance(value, float) and math.isnan(value):
            return ""
        if not isinstance(value, str):
            raise self._error(key, "a text", value)
        return clean_text(value)

    def line(self, key: str) -> str:
        """The text under ``key`` on one line; it must not be blank."""
        line = clean_line(self.text(key))
        if not line:
            raise self._error(key, "a text that is not empty", "")
        return line

    def identifier(self, key: str) -> str:
        """The id under ``key`` as a text; it must be a whole number or a text that is not blank."""
        value = self._value(key, "a whole number or a text")
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and clean_line(value):
            return clean_line(value)
        raise self._error(key, "a whole number or a text that is not empty", value)

    def texts(self, key: str) -> tuple[str, ...]:
        """The texts in the list under ``key``."""
        values = self._value(key, "a list of texts")
        if not isinstance(values, list):
            raise self._error(key, "a list of texts", values)
        for value in values:
            if not isinstance(value, str):
                raise self._error(key, "a list of texts", value)
        return tuple(clean_text(value) for value in values)

    def items(self, key: str) -> tuple[JsonItem, ...]:
        """The objects in the list under ``key``. The list may be inside a text, in JSON or Python syntax."""
        return tuple(_items(_written(self._value(key, "a list")), f"{self.place}, {key!r}", "a list"))

    def _value(self, key: str, expected: str) -> Any:  # noqa: ANN401
        if key not in self.values:
            present = ", ".join(repr(name)[:40] for name in list(self.values)[:10]) or "no key at all"
            msg = f"{self.place}: expected {key!r} with {expected}, found {present}; correct the file and try again"
            raise CorpusError(msg)
        return self.values[key]

    def _error(self, key: str, expected: str, found: object) -> CorpusError:
        return CorpusError(
            f"{self.place}: expected {expected} under {key!r}, found {describe(found)}; correct the file and try again"
        )


def read_items(path: Path, name: str) -> tuple[JsonItem, ...]:
    """The objects of the list in the file, in order. Raises CorpusError if the file has other content."""
    return tuple(_items(read_json(path, name), name, "a list of objects at the top"))


def _written(value: Any) -> Any:  # noqa: ANN401 - whatever the file holds; callers check
    """The list that a text contains; any other value unchanged."""
    if not isinstance(value, str) or not value.lstrip().startswith("["):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        pass
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _items(values: object, place: str, expected: str) -> Iterator[JsonItem]:
    if not isinstance(values, list):
        msg = f"{place}: expected {expected}, found {describe(values)}; correct the file and try again"
        raise CorpusError(msg)
    for number, value in enumerate(values, start=1):
        where = f"{place}, item {number}"
        if not isinstance(value, dict):
            msg = f"{where}: expected an object, found {describe(value)}; correct the file and try again"
            raise CorpusError(msg)
        yield JsonItem(where, value)


def describe(value: object) -> str:
    """A short description of a JSON value for error messages."""
    match value:
        case None:
            return "null"
        case bool():
            return f"the value {str(value).lower()}"
        case int() | float():
            return f"the number {str(value)[:40]}"
        case str():
            return f"the text {value[:40]!r}" if value.strip() else "an empty text"
        case list():
            return f"a list of {len(value):,}"
        case _:
            return "an object"

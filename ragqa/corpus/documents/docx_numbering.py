"""Recomputes the numbers that Word prints before paragraphs but does not store, from the numbering part of the file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from ragqa.corpus.documents.labels import in_style

W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_LEVELS: Final = 9
BULLETS: Final = "•◦▪"  # by level, whatever symbols the file's fonts show


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a list: the pattern of its number (``%1.%2``), its first number and its indent in points."""

    start: int = 1
    format: str = "decimal"
    text: str = ""
    restart: int | None = None  # the level (from 1) after which it restarts; None: after any level above; 0: never
    legal: bool = False  # numbers of other levels are shown as decimals
    indent: float = 0.0
    hanging: float = 0.0  # distance of the number to the left of the text
    style: str = ""


class Numbering:
    """Counts as Word does: lists of the same abstract definition share their counters."""

    def __init__(self, root: Any) -> None:  # noqa: ANN401 - an lxml element, or None where there is no numbering part
        self._levels: dict[str, tuple[str, dict[int, Level]]] = {}  # by numId: abstract id and its levels
        self._counts: dict[str, list[int | None]] = {}
        self._started: set[tuple[str, int]] = set()
        self.by_style: dict[str, tuple[str, int]] = {}
        if root is None:
            return
        abstract = {found.get(f"{W}abstractNumId"): found for found in root.findall(f"{W}abstractNum")}
        by_link = {
            link.get(f"{W}val"): found
            for found in abstract.values()
            if (link := found.find(f"{W}styleLink")) is not None
        }
        self._overrides: dict[str, dict[int, int]] = {}
        for number in root.findall(f"{W}num"):
            number_id, ref = number.get(f"{W}numId"), number.find(f"{W}abstractNumId")
            found = abstract.get(ref.get(f"{W}val")) if ref is not None else None
            if found is None:
                continue
            link = found.find(f"{W}numStyleLink")
            found = by_link.get(link.get(f"{W}val"), found) if link is not None else found
            levels = _levels(found)
            self._overrides[number_id] = {}
            for override in number.findall(f"{W}lvlOverride"):
                place = int(override.get(f"{W}ilvl") or 0)
                levels |= _levels(override)
                start = override.find(f"{W}startOverride")
                if start is not None:
                    self._overrides[number_id][place] = _whole(start.get(f"{W}val"), 1)
            self._levels[number_id] = (found.get(f"{W}abstractNumId"), levels)
            for place, level in levels.items():
                if level.style:
                    self.by_style.setdefault(level.style, (number_id, place))

    def level(self, number_id: str, place: int) -> Level | None:
        """The definition of this level of this list; None if there is no such list."""
        return self._levels[number_id][1].get(place) if number_id in self._levels else None

    def next(self, number_id: str, place: int) -> str:
        """The number or bullet of the next paragraph at this level of this list; empty for unknown lists."""
        level = self.level(number_id, place)
        if level is None or not 0 <= place < _LEVELS:
            return ""
        name, levels = self._levels[number_id]
        counts = self._counts.setdefault(name, [None] * _LEVELS)
        override = self._overrides[number_id].get(place)
        if override is not None and (number_id, place) not in self._started:
            counts[place] = override
        else:
            before = counts[place]
            counts[place] = level.start if before is None else before + 1
        self._started.add((number_id, place))
        for deeper in range(place + 1, _LEVELS):
            rule = levels[deeper].restart if deeper in levels else None
            if rule is None or (rule and place < rule):
                counts[deeper] = None
        for above in range(place):
            if counts[above] is None:
                counts[above] = levels[above].start if above in levels else 1
        if level.format == "bullet":
            return BULLETS[place % len(BULLETS)]
        if level.format == "none":
            return ""

        def shown(found: re.Match[str]) -> str:
            other = int(found[1]) - 1
            known = levels.get(other, level)
            number, format = counts[other] or known.start, known.format
            if level.legal and other != place:
                format = "decimal"
            return f"{number:02}" if format == "decimalZero" else in_style(number, format)

        return re.sub(r"%([1-9])", shown, level.text).strip()


def _levels(root: Any) -> dict[int, Level]:  # noqa: ANN401
    found = {}
    for level in root.findall(f"{W}lvl"):
        restart = _value(level, "lvlRestart")
        found[int(level.get(f"{W}ilvl") or 0)] = Level(
            start=_whole(_value(level, "start"), 1),
            format=_value(level, "numFmt") or "decimal",
            text=_value(level, "lvlText") or "",
            restart=None if restart is None else _whole(restart, 0),
            legal=level.find(f"{W}isLgl") is not None,
            indent=indent_of(level) or 0.0,
            hanging=indent_of(level, "hanging") or 0.0,
            style=_value(level, "pStyle") or "",
        )
    return found


def indent_of(element: Any, *names: str) -> float | None:  # noqa: ANN401
    """The indent of a paragraph, style or level, or the first of these values, in points; None if not stated."""
    found = element.find(f"{W}pPr/{W}ind")
    said = [found.get(f"{W}{name}") for name in names or ("left", "start")] if found is not None else []
    value = next(filter(None, said), "")
    return int(value) / 20 if re.fullmatch(r"-?\d{1,6}", value) else None


def _value(element: Any, name: str) -> str | None:  # noqa: ANN401
    found = element.find(f"{W}{name}")
    return None if found is None else found.get(f"{W}val")


def _whole(text: str | None, otherwise: int) -> int:
    return int(text) if text and re.fullmatch(r"-?\d{1,6}", text) else otherwise

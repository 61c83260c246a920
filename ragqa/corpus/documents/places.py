"""Parses the place of a passage in its file (`ragqa.corpus.documents.model`). Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageBoxes:
    """A page, from 1, and the boxes on it: left, top, right, bottom in points from the top left."""

    page: int
    boxes: tuple[tuple[float, float, float, float], ...]


def pages_of(place: str) -> tuple[PageBoxes, ...]:
    """The pages of a passage; () if its place has no page."""
    found: dict[int, list[tuple[float, float, float, float]]] = {}
    for piece in place.split(";"):
        match = re.fullmatch(r"page=(\d{1,6})&box=([\d.,-]+)", piece)
        edges = match[2].split(",") if match else []
        if match and len(edges) == 4:
            left, top, right, bottom = (float(edge) if edge else 0.0 for edge in edges)
            found.setdefault(int(match[1]), []).append((left, top, right, bottom))
    return tuple(PageBoxes(page, tuple(boxes)) for page, boxes in found.items())


def place_words(place: str) -> str:
    """The place of a passage in its file, in words; empty if unknown."""
    pages = pages_of(place)
    if pages:
        return f"page {pages[0].page}" if len(pages) == 1 else f"pages {pages[0].page}–{pages[-1].page}"
    if place.startswith("sheet="):  # its name may have "&" and "="
        sheet, _, row = place.removeprefix("sheet=").rpartition("&row=")
        return f"sheet {sheet}, row {row}" if sheet else f"sheet {row}, row ?"
    found = dict(piece.partition("=")[::2] for piece in place.split("&"))
    return next((f"{name} {found[name]}" for name in ("paragraph", "line") if name in found), "")

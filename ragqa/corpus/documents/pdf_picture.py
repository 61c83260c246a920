"""Renders a page of a PDF as a picture with marked places; it runs in the worker process that reads documents."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Final

from ragqa.corpus.documents.model import UnreadableError

WIDTH: Final = 900  # pixels
_MARGIN: Final = 3.0  # points around a box
_MAX_PIXELS: Final = 4_000_000
_GROUND: Final = (214, 140, 20, 40)
_EDGE: Final = (190, 110, 0, 255)


def picture_of(path: Path, number: int, boxes: Sequence[Sequence[float]]) -> bytes:
    """The page with this number, from 1, as a PNG of bounded size. Raises UnreadableError if there is no such page."""
    import pypdfium2
    from PIL import Image, ImageDraw

    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        msg = "expected a PDF that can be opened, found a damaged or locked one; put it in again"
        raise UnreadableError(msg) from error
    if not 1 <= number <= len(document):
        msg = f"expected a page from 1 to {len(document):,}, found {number:,}; open the document again"
        raise UnreadableError(msg)
    page = document[number - 1]
    width, height = page.get_size()
    scale = min(WIDTH / max(width, 1.0), (_MAX_PIXELS / max(width * height, 1.0)) ** 0.5)
    picture = page.render(scale=scale).to_pil().convert("RGBA")
    marks = Image.new("RGBA", picture.size)
    draw = ImageDraw.Draw(marks)
    for left, top, right, bottom in boxes:
        edges = (left - _MARGIN, top - _MARGIN, right + _MARGIN, bottom + _MARGIN)
        draw.rectangle([edge * scale for edge in edges], fill=_GROUND, outline=_EDGE, width=2)
    data = BytesIO()
    Image.alpha_composite(picture, marks).convert("RGB").save(data, "PNG", compress_level=3)
    return data.getvalue()

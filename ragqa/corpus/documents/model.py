"""What a parser gives, whatever the file: blocks in reading order, each with its place in the source.

A place is a short text: ``page=12&box=72,540,520,610`` (points from the top left; several pages joined by ``;``),
``anchor=ID``, ``paragraph=118``, ``sheet=NAME&row=12``, ``line=7``; empty where nothing can be pointed at.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from ragqa.corpus.documents.labels import GUIDANCE, RANKS, Value
from ragqa.errors import CorpusError

Kind = Literal["text", "heading", "table", "note", "version"]

MAX_BYTES: Final = 200 * 2**20  # of a file, and of all that an archive holds unpacked
MAX_PAGES: Final = 5_000
MAX_BLOCKS: Final = 400_000  # a parser stops there: no document that somebody wrote has more
MAX_CHARS: Final = 40_000_000
_WORDS: Final = re.compile(r"[^\W\d_]+|\d+")
BROKEN: Final = re.compile(
    r"\ufffd+|[ÃÂ][\x80-\xbf]|â(?:€[\x80-\xbf™œ“”˜¦\u203a]|\x80.)|\bï¿½"
)  # of UTF-8 read as Latin-1
MAX_BOLD_WORDS: Final = 25  # of a paragraph that is a heading because it is bold
BOLD_LEVEL: Final = 7  # of such a heading: it does not say how high it stands
OUTERMOST: Final = 1.0  # the indent of what stands in no list and no cell, where indents are levels


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, heading, list item, table or footnote.

    ``label`` is a number that stands apart from the text: an automatic list number, a column of its own. ``level`` is
    that of a heading (1 to 9), 0 where the source does not say. ``indent`` is where the text begins, in points or list
    levels, comparable within one document, ``margin`` where its number does, 0 where that is not known. A table's text
    has a row a line, cells parted by `` | ``, headings first. A ``version`` says from when and until when what stands
    before it holds; it is no text.
    """

    text: str
    kind: Kind = "text"
    label: str = ""
    level: int = 0
    indent: float = 0.0
    place: str = ""
    margin: float = 0.0


@dataclass(slots=True, eq=False)
class Unit:
    """What one number stands for, or a paragraph, table or heading without one.

    ``number`` is the whole of it as ObliQA writes it: ``4.2.1.(1)``, ``Part 3.18.(2)``, ``1.2.1.Guidance.1.``.
    ``parts`` are its own texts and the units below it, in their order. ``captions`` are the headings without a number
    that it stands under, each with how many numbered units it stands in. ``version`` is what says from when it holds.
    """

    style: str
    value: Value
    label: str
    number: str
    parent: Unit | None
    kind: str = "text"
    indent: float = 0.0
    is_heading: bool = False
    captions: tuple[tuple[int, str], ...] = ()
    version: str = ""
    margin: float = 0.0
    parts: list[Block | Unit] = field(default_factory=list)

    @property
    def texts(self) -> tuple[Block, ...]:
        return tuple(part for part in self.parts if isinstance(part, Block))

    @property
    def units(self) -> tuple[Unit, ...]:
        return tuple(part for part in self.parts if isinstance(part, Unit))

    @property
    def level(self) -> int:
        """1 to 9 of a heading whose source says it, else 0."""
        first = next((part for part in self.parts if isinstance(part, Block)), None)
        return first.level if first and first.kind == "heading" else 0

    @property
    def heading(self) -> str:
        """Its heading with its label; empty where it has none."""
        texts = self.texts
        if self.is_heading and texts:
            return f"{self.label} {texts[0].text}".strip()
        return self.label if self.style in RANKS or self.style == GUIDANCE else ""

    def above(self) -> Iterator[Unit]:
        """The units it stands in, innermost first, without the root."""
        unit = self.parent
        while unit is not None and unit.parent is not None:
            yield unit
            unit = unit.parent

    def walk(self) -> Iterator[Unit]:
        """The units below it in the order of the text."""
        for unit in self.units:
            yield unit
            yield from unit.walk()


@dataclass(slots=True)
class Parsed:
    """A document's blocks. ``left_out`` counts texts by what they were; ``warnings`` are for the reader.

    ``words`` are those that a second, plain reading of the file finds: each is in a block or was left out.
    """

    title: str = ""
    blocks: list[Block] = field(default_factory=list)
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    n_chars: int = 0

    def leave_out(self, reason: str, text: str) -> None:
        """Remembers a text that is none of the document's."""
        self.left_out[reason, text] += 1

    @property
    def dropped(self) -> Counter[str]:
        """How many texts were left out, by what they were."""
        counts = Counter[str]()
        for (reason, _), times in self.left_out.items():
            counts[reason] += times
        return counts

    def add(self, block: Block) -> None:
        """Appends what has text or a label. Raises UnreadableError where the document is too large."""
        if not (block.text or block.label):
            return
        self.n_chars += len(block.text)
        if len(self.blocks) >= MAX_BLOCKS or self.n_chars > MAX_CHARS:
            msg = (
                f"expected at most {MAX_BLOCKS:,} paragraphs and {MAX_CHARS // 10**6} million characters, found more; "
                "split the document"
            )
            raise UnreadableError(msg)
        self.blocks.append(block)


class UnreadableError(CorpusError):
    """A file that is left out, in one line without its name: expected, found, what to do next."""


def words_of(text: str) -> list[str]:
    """The words as two readings of one file compare them: letters, or digits, in one spelling, in lower case."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("\xad", "")
    return _WORDS.findall(text.casefold())


def places_of(blocks: list[Block]) -> str:
    """Where these blocks stand: the first place, and of a PDF one box a page."""
    places = [piece for block in blocks for piece in block.place.split(";") if piece]
    if not places or not places[0].startswith("page="):
        return places[0] if places else ""
    boxes: dict[str, list[list[float]]] = {}
    for piece in places:
        page, _, box = piece.partition("&box=")
        boxes.setdefault(page, []).append([float(edge) for edge in box.split(",")])
    merged = []
    for page, found in boxes.items():
        edges = [*(min(box[n] for box in found) for n in (0, 1)), *(max(box[n] for box in found) for n in (2, 3))]
        merged.append(f"{page}&box={','.join(f'{edge:.0f}' for edge in edges)}")
    return ";".join(merged)

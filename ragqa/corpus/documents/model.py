"""The output of every parser: blocks in reading order, each with its place in the source.

A place is a short text: ``page=12&box=72,540,520,610`` (points from the top left; several pages joined by ``;``),
``anchor=ID``, ``paragraph=118``, ``sheet=NAME&row=12``, ``line=7``; it is empty if the source has no such place.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from ragqa.corpus.documents.labels import ARTICLE, GUIDANCE, RANKS, Value
from ragqa.errors import CorpusError

Kind = Literal["text", "heading", "table", "note", "inner note", "version"]

MAX_BYTES: Final = 200 * 2**20  # of a file, and of the unpacked content of an archive
MAX_PAGES: Final = 5_000
MAX_BLOCKS: Final = 400_000  # a parser stops there, as no real document has more
MAX_CHARS: Final = 40_000_000
_PART: Final = 2**16  # characters whose words are counted at once
_WORDS: Final = re.compile(r"[^\W\d_]+|\d+")
BROKEN: Final = re.compile(
    r"\ufffd+|[ÃÂ][\x80-\xbf]|â(?:€[\x80-\xbf™œ“”˜¦\u203a]|\x80.)|\bï¿½"
)  # typical of UTF-8 that was read as Latin-1
OBLIGES: Final = re.compile(r"\b(?:must|shall|may)\b")  # in a rule, and not in its title
VERBS: Final = re.compile(r"\b(?:may|is|are|has|have|will|does|must|shall)\b")  # in a statement, and not in a title
MAX_BOLD_WORDS: Final = 25  # of a paragraph that is a heading because it is bold
BOLD_LEVEL: Final = 7  # the level of such a heading, as the source states none
TOLERANCE: Final = 6.0  # points within which two indents are equal
OUTERMOST: Final = 1.0  # the indent outside lists and cells, where indents are levels


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, heading, list item, table or footnote.

    ``label`` is a number apart from the text: an automatic list number, or a number in a column of its own. ``level``
    is that of a heading (1 to 9), 0 if the source does not state it. ``indent`` is the left edge of the text in points
    or list levels, comparable within one document; ``margin`` is that of its number, 0 if unknown. A table's text has a
    line for each row, headings first, with cells separated by `` | ``. An ``inner note`` stands in the
    text of the rule that it explains, and is part of it. A ``version`` is not text: it gives the dates between which
    the text before it is in force. ``title`` is that with which the text begins: "Oil. A keeper must …".
    """

    text: str
    kind: Kind = "text"
    label: str = ""
    level: int = 0
    indent: float = 0.0
    place: str = ""
    margin: float = 0.0
    title: str = ""


@dataclass(slots=True, eq=False)
class Unit:
    """The part of a document that has one number, or a paragraph, table or heading without a number.

    ``number`` is its full number in ObliQA's form: ``4.2.1.(1)``, ``Part 3.18.(2)``, ``1.2.1.Guidance.1.``. ``parts``
    are its own texts and the units below it, in order. ``captions`` are the headings without a number above it, each
    with its depth in numbered units. ``version`` has the dates between which it is in force.
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
    def is_chapter(self) -> bool:
        """Whether this is a part, title, chapter or section, whose text is that of the rules in it."""
        return RANKS.get(self.style, ARTICLE) < ARTICLE

    @property
    def is_item(self) -> bool:
        """Whether this is "(a)", "(1)" or the like."""
        return self.style.startswith("(") or self.style in {"a.", "i.", "a)", "i)", "1)"}

    @property
    def is_rule(self) -> bool:
        """Whether the number belongs to a text and not to a heading."""
        return bool(self.style) and not self.is_heading and self.style not in {*RANKS, GUIDANCE}

    @property
    def level(self) -> int:
        """The level of a heading, 1 to 9, if the source states it; else 0."""
        first = next((part for part in self.parts if isinstance(part, Block)), None)
        return first.level if first and first.kind == "heading" else 0

    @property
    def heading(self) -> str:
        """The unit's heading with its label; empty if it has none."""
        texts = self.texts
        if texts and (self.is_heading or texts[0].title):
            return f"{self.label} {texts[0].title or texts[0].text}".strip()
        return self.label if self.style in RANKS or self.style == GUIDANCE else ""

    def above(self) -> Iterator[Unit]:
        """The units that contain this one, innermost first, without the root."""
        unit = self.parent
        while unit is not None and unit.parent is not None:
            yield unit
            unit = unit.parent

    def walk(self) -> Iterator[Unit]:
        """All units below this one, in the order of the text."""
        for unit in self.units:
            yield unit
            yield from unit.walk()


@dataclass(slots=True)
class Parsed:
    """The blocks of a document. ``left_out`` counts left-out texts by reason and text; ``warnings`` are for the user.

    ``words`` counts the words of a second, plain reading of the file: each is in a block or was left out.
    """

    title: str = ""
    blocks: list[Block] = field(default_factory=list)
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    words: Counter[str] = field(default_factory=Counter)
    n_chars: int = 0

    def leave_out(self, reason: str, text: str) -> None:
        """Records a text that does not belong to the document."""
        self.left_out[reason, text] += 1

    @property
    def dropped(self) -> Counter[str]:
        """The number of left-out texts by reason."""
        counts = Counter[str]()
        for (reason, _), times in self.left_out.items():
            counts[reason] += times
        return counts

    def add(self, block: Block) -> None:
        """Appends a block that has text or a label. Raises UnreadableError if the document is too large."""
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
    """A file is left out. The message is one line without the file's name: expected, found, what to do next."""


def words_of(text: str) -> list[str]:
    """The words for comparing two readings of a file: runs of letters or digits, normalised and in lower case."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("\xad", "")
    return _WORDS.findall(text.casefold())


def count_words(text: str) -> Counter[str]:
    """How often each word occurs; part after part, as a list of all words takes several times a text's memory."""
    counts, at = Counter[str](), 0
    while at < len(text):
        end = text.find(" ", at + _PART)
        end = end if end > 0 else len(text)
        counts.update(words_of(text[at:end]))
        at = end
    return counts


def places_of(blocks: list[Block]) -> str:
    """The place of these blocks: the first one or, in a PDF, one box for each page."""
    first = next((block.place for block in blocks if block.place), "")
    if not first.startswith("page="):
        return first
    places = [piece for block in blocks for piece in block.place.split(";") if piece]
    boxes: dict[str, list[list[float]]] = {}
    for piece in places:
        page, _, box = piece.partition("&box=")
        boxes.setdefault(page, []).append([float(edge) for edge in box.split(",")])
    merged = []
    for page, found in boxes.items():
        edges = [*(min(box[n] for box in found) for n in (0, 1)), *(max(box[n] for box in found) for n in (2, 3))]
        merged.append(f"{page}&box={','.join(f'{edge:.0f}' for edge in edges)}")
    return ";".join(merged)


def is_outside(block: Block, unit: Unit) -> bool:
    """Whether a text is further left than the unit's."""
    return 0 < block.indent < unit.indent - 0.5 * (TOLERANCE if unit.indent > 10 else 1)


def aligned(before: float, after: float) -> float:
    """1 if two indents are equal, -1 if not, 0 if one is unknown."""
    if not before or not after or before == after == OUTERMOST:
        return 0.0
    return 1.0 if abs(before - after) <= (TOLERANCE if max(before, after) > 10 else 0.1) else -1.0

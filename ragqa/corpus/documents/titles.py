"""The front of a document: its title, and a table of contents that no mark of the source shows.

The title is the one that it declares, the lines that it opens with, or the name of its file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice, pairwise
from typing import Final

from ragqa.corpus.documents.labels import from_roman
from ragqa.corpus.documents.model import Block, Parsed, words_of

LONGEST: Final = 300  # characters of a title
LONG: Final = 120  # characters of a title from which its short title is enough
_OPENING: Final = 10  # blocks among which the title is looked for
_LINES: Final = 5  # of a title
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_ONE_WORD: Final = re.compile(r"[A-Z][^\W\d_]{3,}")
_UNFINISHED: Final = re.compile(
    r"(?:[-–—,&(]|\b(?:a|an|and|by|for|from|in|of|on|or|the|to|under|with))$", re.IGNORECASE
)
_EXTENSION: Final = re.compile(r"\.\w{2,4}$")
_QUOTES: Final = " \t\"'“”‘’«»"
_VERSION: Final = re.compile(r"\bversion\b|^\W*v\.? ?\d", re.IGNORECASE)
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_SHORT_TITLE: Final = re.compile(r"\(([A-Z]\w+ [^()]{3,60})\)$")
_ENTRIES: Final = 3  # fewest entries of contents in a row
_PAGE: Final = re.compile(r"[\s.…·_]*\b(?:\d{1,4}|[ivxl]+)$")  # the page number after an entry
_LEADS: Final = re.compile(r"(?:[.…·_] ?){3,}\s*(?:\d{1,4}|[ivxl]+)$")
_FALLS: Final = 4  # least entries in contents for one whose page is before that of the entry before
_NAMED: Final = re.compile(
    r"(?:(?:[A-Z]{2,6} |§ ?)\d[\w.-]*|\d+(?:[.-]\d+)+)\.? [A-Z][^.]{3,200}\.(?= )"
)  # "4.2 Oil. A keeper …"
_END: Final = re.compile(r"[^a-z\d]")  # before the page of an entry
_SKIPPED: Final = 2  # texts between entries, such as page numbers in a column of their own
_LEAD_WORDS: Final = 8  # a longer text that ends in a colon begins a list of the text, not the contents
# The title that programs write if the author gave none.
_DEFAULT: Final = re.compile(r"(?:untitled|(?:word )?document|presentation|microsoft \w+ - .*)[\s\d]*", re.IGNORECASE)


def title_of(parsed: Parsed, name: str) -> str:
    """The title, of at most `LONGEST` characters; ``name`` is the file's, without its folder.

    The declared title, unless it is the name of a file, a program's default or an unfinished line. Without one, the
    name of the file if it has three words or more, else the lines that the text opens with.
    """
    declared, opening = parsed.title.strip(_QUOTES), _opening(parsed.blocks)
    if (_is_named(declared) or _ONE_WORD.fullmatch(declared)) and not _UNFINISHED.search(declared):
        goes_on = " " in declared and opening.casefold().startswith(declared.casefold())
        return _shortened(opening if goes_on else declared)
    if name.count(" ") > 1:
        return name[:LONGEST]
    return _shortened(opening or name)


def short_title(title: str) -> str:
    """The short title in brackets at the end of a title, such as "Digital Markets Act"; "" if there is none."""
    found = _SHORT_TITLE.search(title)
    return found[1] if found else ""


def _opening(blocks: Sequence[Block]) -> str:
    """The first lines that read as a title, joined; "" if none does."""
    first = [block for block in islice(blocks, _OPENING) if block.kind in {"heading", "text"} and block.text]
    start = next((n for n, block in enumerate(first) if _is_title_line(block.text)), len(first))
    lines: list[Block] = []
    for line in first[start : start + _LINES]:
        if lines and not _continues(line, lines[0], lines[-1]):
            break
        lines.append(line)
    return " ".join(line.text for line in lines)


def _continues(line: Block, first: Block, before: Block) -> bool:
    """Whether a line goes on with the title: it completes the line before, or is a heading like the first line."""
    if _VERSION.search(line.text):
        return False
    if _UNFINISHED.search(before.text) or line.text[:1].islower():
        return True
    is_alike = first.kind == line.kind == "heading" and first.level == line.level
    return is_alike and not _YEAR.search(line.text)


def _is_named(text: str) -> bool:
    """Whether the text has two words or more and is neither the name of a file nor a program's default."""
    if " " not in text or _EXTENSION.search(text) or _DEFAULT.fullmatch(text):
        return False
    words = [word for word in _WORD.findall(text) if len(word) > 2]
    return len(words) > max(1, 0.4 * len(text.split()))


def _is_title_line(text: str) -> bool:
    """Whether a line of the text can begin a title: named, no sentence, and most of its words capitalised."""
    if not _is_named(text) or len(text) > LONGEST or text.rstrip().endswith((".", ";", ":", "?")):
        return False
    capitalised = [word[0].isupper() for word in _WORD.findall(text) if len(word) > 3]
    return capitalised.count(True) >= 0.6 * len(capitalised)


def _shortened(title: str) -> str:
    """A long title cut to its first line and its short title, or to `LONGEST` characters."""
    short = short_title(title)
    if short and len(title) > LONG:
        first = re.split(r" of \d{1,2} | - | — ", title, maxsplit=1)[0]
        return f"{first[: LONGEST - len(short) - 3]} ({short})"
    return title if len(title) <= LONGEST else title[:LONGEST].rsplit(" ", 1)[0]


def leave_out_contents(parsed: Parsed) -> None:
    """Leaves out entries of a table of contents: in the order of the headings below, or with dots to their pages.

    Items after a sentence that ends in a colon ("… by any of the following types:") are text.
    """
    blocks = parsed.blocks
    if blocks and blocks[0].place.startswith("sheet="):
        return
    later: dict[tuple[str, ...], list[int]] = {}
    for n, block in enumerate(blocks):
        text = f"{block.label} {block.text}".strip()
        named = _NAMED.match(f"{text} ")  # the title in the line of a rule
        if named or (0 < len(block.text) < LONGEST and text[-1] not in ".;:,"):
            later.setdefault(tuple(words_of(named[0] if named else text)), []).append(n)
    run: list[int] = []
    aims: list[int] = []
    gone: set[int] = set()
    is_led = False
    dotted = _dotted(blocks)
    for n, block in enumerate(blocks):
        if block.kind == "heading" or block.text[-1:] in {".", ":"}:
            is_led = block.text[-1:] == ":" and len(words_of(block.text)) > _LEAD_WORDS
        if is_led or (aims and n >= aims[0]):  # the text begins
            run, aims = [], []
            continue
        after = aims[-1] if aims and aims[-1] < len(blocks) else n
        aim = next((at for words in _readings(block) for at in later.get(words, ()) if at > after), None)
        if aim is not None or n in dotted:
            aim = len(blocks) if aim is None else aim  # an entry with dots to its page needs no heading below
            run, aims = [*run, n], [*aims, aim]
            gone.update(range(run[0], n + 1) if len(run) >= _ENTRIES else ())
        elif run and (n - run[-1] > _SKIPPED or len(words_of(block.text)) > 2):
            run, aims = [], []
    for n in sorted(gone):
        parsed.leave_out("table of contents", f"{blocks[n].label} {blocks[n].text}".strip())
    parsed.blocks[:] = [block for n, block in enumerate(blocks) if n not in gone]


def pages_rise(entries: Sequence[str]) -> bool:
    """Whether the numbers at the ends of these entries of contents can be pages, which amounts of a list cannot."""
    ends = [_END.split(one)[-1] for one in entries]
    pages = [int(end) if end.isdigit() else from_roman(end) for end in ends]
    return _FALLS * sum(after < page for page, after in pairwise(pages)) <= len(pages)


def _dotted(blocks: Sequence[Block]) -> set[int]:
    """The positions of entries with dots to a page."""
    runs: list[list[int]] = [[]]
    for n, block in enumerate(blocks):
        if _LEADS.search(block.text):
            if runs[-1] and n - runs[-1][-1] > _SKIPPED:
                runs.append([])
            runs[-1].append(n)
    return {n for run in runs if pages_rise([blocks[at].text for at in run]) for n in run}


def _readings(block: Block) -> list[tuple[str, ...]]:
    """The words of an entry, and those without its page number; [] if it has no number."""
    text = block.text
    if block.kind not in {"text", "heading"} or len(text) >= LONGEST or block.label[:1] == "(":
        return []
    numbered = block.label or any(map(str.isdigit, text))  # or else it may be a list of what follows
    if (
        not numbered
        or not text[:1].isalnum()
        or text[-1] in ";:,"
        or (text[-1] == "." and not _NAMED.match(f"{text} "))
    ):
        return []
    readings = (text, _PAGE.sub("", text))
    return [tuple(words) for one in readings if len(words := words_of(f"{block.label} {one}")) > 1]

"""Finds a table of contents that no mark of the source shows: entries in a row that recur below as headings."""

from __future__ import annotations

import re
from typing import Final

from ragqa.corpus.documents.model import Block, Parsed, words_of

_ENTRIES: Final = 3  # fewest entries in a row
_LONGEST: Final = 300  # characters of an entry
_PAGE: Final = re.compile(r"[\s.…·_]*\b(?:\d{1,4}|[ivxl]+)$")  # the page number after an entry
_SKIPPED: Final = 2  # texts between entries, such as page numbers in a column of their own


def leave_out_contents(parsed: Parsed) -> None:
    """Leaves out the entries of a table of contents before the text, each in the order of the headings below."""
    blocks = parsed.blocks
    if blocks and blocks[0].place.startswith("sheet="):
        return
    later: dict[tuple[str, ...], list[int]] = {}
    for n, block in enumerate(blocks):
        if 0 < len(block.text) < _LONGEST and block.text[-1] not in ".;:,":
            later.setdefault(tuple(words_of(f"{block.label} {block.text}")), []).append(n)
    run: list[int] = []
    aims: list[int] = []
    gone: set[int] = set()
    for n, block in enumerate(blocks):
        aim = next((at for words in _readings(block) for at in later.get(words, ()) if at > max(n, *aims, 0)), None)
        if aim is None or (aims and n >= aims[0]):
            if run and n - run[-1] <= _SKIPPED and len(words_of(block.text)) < 3 and n < aims[0]:
                continue
            run, aims = [], []
        else:
            run, aims = [*run, n], [*aims, aim]
            if len(run) >= _ENTRIES and aims[0] > run[-1]:
                gone.update(range(run[0], n + 1))
    for n in sorted(gone):
        parsed.leave_out("table of contents", f"{blocks[n].label} {blocks[n].text}".strip())
    parsed.blocks[:] = [block for n, block in enumerate(blocks) if n not in gone]


def _readings(block: Block) -> list[tuple[str, ...]]:
    """The words of an entry, and those without its page number; [] if it has no number."""
    text = block.text
    if block.kind not in {"text", "heading"} or len(text) >= _LONGEST or block.label[:1] == "(":
        return []
    numbered = block.label or any(map(str.isdigit, text))  # or else it may be a list of what follows
    if not numbered or not text[:1].isalnum() or text[-1] in ".;:,":
        return []
    readings = (text, _PAGE.sub("", text))
    return [tuple(words) for one in readings if len(words := words_of(f"{block.label} {one}")) > 1]

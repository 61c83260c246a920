"""Tells the titles that no look shows: those in the line of a numbered text, and those in the line before it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, takewhile, zip_longest
from typing import Final

from ragqa.corpus.documents.counting import ITEM_WORDS, MAX_TITLE, MAX_TITLE_WORDS, read_block
from ragqa.corpus.documents.labels import (
    ARTICLE,
    DOTTED,
    MARKED,
    RANKS,
    RUN_IN,
    Step,
    follows,
    opens,
    opens_list,
    read_label,
    split_label,
)
from ragqa.corpus.documents.model import BOLD_LEVEL, VERBS, Block, Kind

_DASHED: Final = re.compile(  # "Title; names.- Text"
    r"(?:[^.:]{3,200}?\.\s?[–—-]+|[^.:;]{3,200}?(?:\s?--+|\s?[–—]{2,}))\s*(?=[A-Z(“\"‘']|$)"
)
_BRACKETED: Final = re.compile(r"\((?!\w{1,3}\))[A-Z][^()]{2,200}\)\s*(?=[A-Z(“\"‘'])")  # "Article 2 (Title) Text"
_CAPITALS: Final = re.compile(r"[A-Z][^a-z.:]{4,200}\.\s+(?=[(A-Z])")  # "TITLE. Text"
_TITLED: Final = re.compile(
    r"(?:[^\s.:()—]+\s){0,9}[^\s.:()—]+(?:\.\s+(?=[A-Z(“\"‘']|[a1i][.)]\s)|\.?$)"
)  # "Title. Text"
_COLON: Final = re.compile(r"[^.:;]{3,120}:\s+(?=[A-Z“\"‘'])")  # "Title (recorded): Text"
_OPENS: Final = re.compile(r"[^()—]{2,300}[.—]\s?(?=\((?:1|a|A|i)\)\s)")  # "Title. (1) Text"
_NUMBERED: Final = frozenset(("1.", DOTTED, *(word for word, rank in RANKS.items() if rank >= ARTICLE)))
_SMALL: Final = 4  # most letters of a word that is not capitalised in a title: "Term of Office"
_NEAR: Final = 100  # blocks after the first item of a list among which the second must come


def named(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks, with the short lines as headings that stand before nearly all the numbers of a kind, each another."""
    blocks = list(blocks)
    before = {n: blocks[n + 1] for n in range(len(blocks) - 1) if _may_name(blocks, n) and not _read(blocks[n])[0]}
    styles = {n: steps[0].style for n, after in before.items() if (steps := _read(after)[0])}
    several = [style for style, times in Counter(styles.values()).items() if times > 1 and style in _NUMBERED]
    numbers = (steps[0].style for block in blocks if several and (steps := _read(block)[0]))
    counts = Counter(numbers)
    found: set[int] = set()
    for style in several:
        names = [n for n, own in styles.items() if own == style]
        if len({blocks[n].text for n in names}) == len(names) and len(names) * 4 >= counts[style] * 3:
            found.update(names)
    for n, block in enumerate(blocks):
        yield replace(block, kind="heading", level=BOLD_LEVEL) if n in found else block


def once_numbered(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks; a heading's number that its text repeats ("16. Uses", "16. (1) A lender …") is left out there."""
    blocks = list(blocks)
    yield from blocks[:1]
    for n, (heading, block) in enumerate(pairwise(blocks), start=1):
        step = _read(heading)[0] if heading.kind == "heading" and block.kind == "text" else ()
        if len(step) == 1 and step[0].style in _NUMBERED and _read(block)[0][:1] == step:
            below = takewhile(lambda one: one.kind != "heading", blocks[n + 1 :])
            counts_on = any(
                own[0].style == step[0].style and follows(step[0].value, own[0].value)
                for one in below
                if (own := _read(one)[0])
            )
            number = (heading.label or split_label(heading.text)[0]).rstrip(".")
            if not counts_on and block.label.rstrip(".") == number:  # else items of a list
                block = replace(block, label="")
            elif not counts_on and not block.label and block.text.startswith(number):
                block = replace(block, text=block.text.removeprefix(number).lstrip(". \t"))
        yield block


def _may_name(blocks: Sequence[Block], n: int) -> bool:
    """Whether a text without a number is a few words with a capital first, and no sentence or part of one."""
    block, text = blocks[n], blocks[n].text
    if block.kind != "text" or block.label or block.title or (n and blocks[n - 1].text.endswith((",", ":", ";"))):
        return False
    text = text[1:-1] if text[:1] + text[-1:] == "()" else text
    few = text[:1].isupper() and text[-1:].isalnum() and len(text.split()) <= MAX_TITLE
    return few and not VERBS.search(text)


def _read(block: Block) -> tuple[tuple[Step, ...], str]:
    """The steps of a number, also before a sentence of a part: "Article 2 A keeper …"; () if none. Second, the text."""
    if block.kind not in {"text", "heading"}:
        return (), ""
    steps, text = read_block(block)
    if not steps and not block.label:
        further, rest = read_label(block.text)
        if further and further[0].style in RANKS and (rest[:1].isupper() or rest[:1] == "("):
            return further, rest
    return steps, text


def titled(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks, with the title before a numbered text apart: "4.2 Oil.— A keeper …", "(b) Bells. (1) A bell …".

    It is in capitals before a colon ("DATES: A keeper …"), or ends with a dash, or a list opens behind it and goes on,
    or most texts with such numbers, which count on, begin with one, too. It has none of the verbs of statements. The
    title of an item stays a text.
    """
    blocks = list(blocks)
    read = [_numbered(block) for block in blocks]
    texts = [pair if block.kind == "text" else ((), "") for block, pair in zip(blocks, read, strict=True)]
    ends = _title_ends(texts)
    alike = {style for style in ("1.", DOTTED, *RANKS) if _mostly_named(texts, ends, style)}
    signed = {style for style in (DOTTED, *RANKS) if _has_signs(texts, style) and _mostly_named(texts, ends, style, 1)}
    run_in = _run_in(texts, blocks)
    for n, (block, (steps, text)) in enumerate(zip(blocks, read, strict=True)):
        if title := run_in.get(n):
            yield replace(block, text=title[1], kind="heading", level=BOLD_LEVEL)
            yield replace(block, text=block.text[title.end() :])
            continue
        style = steps[0].style if steps else ""
        is_item = style not in {"1.", DOTTED, *RANKS}
        end = 0 if is_item else _explicit_end(text, steps) or (ends[n] if style in alike else 0)
        if not end and texts[n][0] and (at := _names(text, _OPENS)):
            begun = read_label(text[at:])[0]
            is_list = len(begun) == 1 and opens_list(begun[0])
            end = at if is_list and _goes_on(begun[0], steps[0], blocks[n + 1 : n + _NEAR]) else 0
        end = end or (ends[n] if style in signed else 0)
        at, begun = len(block.text) - len(text) + end, read_label(text[end:])[0]
        begun = texts[n + 1][0] if end == len(text) and n + 1 < len(blocks) else begun
        opens_it = any(step.style not in RANKS and opens_list(step) for step in begun[:1])
        if 0 < end == ends[n] < len(text) and RANKS.get(style, ARTICLE) >= ARTICLE and not opens_it:
            yield replace(block, title=text[:end].strip(" .:"))  # a part of the text, as printed
        elif end:
            kind: Kind = "text" if is_item else "heading"
            yield replace(block, text=block.text[:at].strip(" .–—-"), kind=kind)
            if at < len(block.text):
                yield replace(block, text=block.text[at:], label="", kind="text")
        else:
            yield block


def _run_in(read: Sequence[tuple[tuple[Step, ...], str]], blocks: Sequence[Block]) -> dict[int, re.Match[str]]:
    """By place the titles in capitals before a colon, if there are several, each another, and no numbers between."""
    unnumbered = ((n, block) for n, block in enumerate(blocks) if block.kind == "text" and not block.label)
    found = {n: title for n, block in unnumbered if (title := RUN_IN.match(block.text))}
    several = len({title[1] for title in found.values()}) == len(found) >= MARKED
    return found if several and not any(steps for steps, _ in read[min(found) : max(found)]) else {}


def _explicit_end(text: str, steps: tuple[Step, ...]) -> int:
    """Where a title ends that a dash, brackets or capitals set apart from the text; 0 if none is."""
    if (end := _names(text, _DASHED)) or not steps or steps[0].style not in {*RANKS, DOTTED}:
        return end
    return _names(text, _BRACKETED if text[:1] == "(" and steps[0].printed[0].isalpha() else _CAPITALS)


def _title_ends(texts: Sequence[tuple[tuple[Step, ...], str]]) -> list[int]:
    """Where the title at the beginning of each numbered text ends, by its words alone; 0 if it has none."""
    ends = []
    for (steps, text), (later, _) in zip_longest(texts, texts[1:], fillvalue=((), "")):
        end = _names(text, _TITLED) if steps else 0
        if steps and not end and (at := _names(text, _COLON)):
            said = text[at:].partition(". ")[0]  # "Oil: Kinds, uses. (a) …" goes on with the title
            end = at if VERBS.search(said) or len(said.split()) > MAX_TITLE else 0
        if steps and end == len(text):  # a statement without a verb that is known, or one of a list of names
            opens_one = bool(later) and later[0].style != steps[0].style and opens_list(later[0])
            is_last = bool(later) and _is_next(steps[0], later[0])
            in_capitals = not later and all(word[0].isupper() for word in text.split() if len(word) > _SMALL)
            end = 0 if is_last or (text[-1:] == "." and not (opens_one or in_capitals)) else end
        ends.append(end)
    titles = [text[:end].rstrip() for (_, text), end in zip(texts, ends, strict=True)]
    times = Counter(titles)
    return [0 if title[-1:] == ":" and times[title] > 1 else end for title, end in zip(titles, ends, strict=True)]


def _is_next(one: Step, other: Step) -> bool:
    return one.style == other.style and follows(one.value, other.value)


def _mostly_named(
    read: Sequence[tuple[tuple[Step, ...], str]], ends: Sequence[int], style: str, least: int = MARKED
) -> bool:
    """Whether the texts with a title, at least so many, count on, and few numbers that would be next have none."""
    last: Step | None = None
    named = others = 0
    for (steps, _), end in zip(read, ends, strict=True):
        if not steps or steps[0].style != style:
            continue
        value = steps[0].value
        counts_on = last is None or _is_next(last, steps[0]) or (len(value) > 1 and value > last.value)
        named += bool(end) and (counts_on or opens(value))
        others += bool(end) != counts_on and not opens(value)
        last = steps[0] if end or (counts_on and last) else last
    return named >= least and named >= 3 * others and (least > 1 or not others)


def _has_signs(read: Sequence[tuple[tuple[Step, ...], str]], style: str) -> bool:
    """Whether all such numbers have the sign of sections, behind which most laws have a title."""
    printed = [steps[0].printed.lower() for steps, _ in read if steps and steps[0].style == style]
    return all(one[0] == "§" or one.startswith("sec") for one in printed)


def _numbered(block: Block) -> tuple[tuple[Step, ...], str]:
    """The step of a text's single number, () if there is none, and the text without it."""
    steps, text = _read(block)
    return (steps, text) if len(steps) == 1 else ((), "")


def _names(text: str, pattern: re.Pattern[str]) -> int:
    """Where the title at the beginning of a text ends; 0 if it has none."""
    found = pattern.match(text)
    if found and pattern in {_DASHED, _BRACKETED}:  # an explicit mark
        return found.end() if len(found[0].split()) <= ITEM_WORDS else 0
    few = found and len(found[0].split()) <= MAX_TITLE_WORDS and found[0][:1].isupper()
    return found.end() if found and few and not VERBS.search(found[0]) else 0


def _goes_on(first: Step, above: Step, after: Sequence[Block]) -> bool:
    """Whether the number after the first of a list comes before the next number of the text above it."""
    for block in after:
        steps = read_block(block)[0]
        for style, value in (reading for step in steps[:1] for reading in step.readings()):
            if style in {own for own, _ in first.readings()}:
                return any(follows(one, value) for _, one in first.readings())
            if style in {above.style, DOTTED, *RANKS}:
                return False
    return False

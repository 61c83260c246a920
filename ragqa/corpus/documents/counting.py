"""What the numbers of a whole document show: words that number its parts, lists that begin anew, numbers in doubt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from ragqa.corpus.documents.catalogue import ID
from ragqa.corpus.documents.labels import DOTTED, GUIDANCE, RANKS, Step, Value, component, is_later, opens
from ragqa.corpus.documents.model import Block, Unit, words_of

COUNTED: Final = re.compile(r"([^\W\d_]{3,}) (\d{1,3}[a-z]?)")  # "Artikel 12"
MARKED: Final = 3  # headings that a source marks as such, or parts that a word numbers: it does so for all then


def counting_words(blocks: Sequence[Block]) -> frozenset[str]:
    """Words that number parts as "Article" does, in any language: alone with numbers that rise, or begin anew."""
    by_word: dict[str, list[tuple[int, str]]] = {}
    for block in blocks:
        if found := COUNTED.fullmatch(block.text):
            by_word.setdefault(found[1], []).append(component(found[2]))
    return frozenset(
        word
        for word, rise in by_word.items()
        if len({*rise}) >= MARKED and all(one < other or other == rise[0] for one, other in pairwise(rise))
    )


def whole_value(unit: Unit) -> Value:
    """A unit's value as the beginning of dotted numbers: of "4." (4, ""), of "D." (0, "D")."""
    if unit.style in {DOTTED, "1."}:
        return unit.value
    return (component(unit.label.rstrip(".")),) if unit.style == "A." else ()


def number_under(step: Step, parent: Unit) -> str:
    """The whole number of a step below this unit; that of the unit where the step prints none."""
    if not step.printed:
        return parent.number
    if step.style == ID:
        return step.printed
    base: Unit | None = parent
    if step.style == DOTTED:
        while base is not None and (own := whole_value(base)) and step.value[: len(own)] == own:
            base = base.parent
    above = base.number.rstrip(".") if base is not None else ""
    return f"{above}.{step.printed}" if above else step.printed


def tell_apart(unit: Unit) -> None:
    """Names lists that begin anew below one unit by what announces each: the longest word that no other one has.

    Not those in brackets: "1.2(1)" is cited as it is.
    """
    lists: list[tuple[str, list[Unit]]] = []
    said = ""
    for part in unit.parts:
        if isinstance(part, Block) or not part.style:
            last = part if isinstance(part, Block) else part.texts[-1]
            said = last.text if last.kind == "heading" or last.text.endswith(":") else ""
        elif part.style not in {*RANKS, ID, GUIDANCE, DOTTED} and not part.style.startswith(
            "("
        ):  # "(1)" is cited as it is
            before = lists[-1][1][-1] if lists else None
            if before is None or (before.style == part.style and opens(part.value) and said):
                lists.append((said, []))
            lists[-1][1].append(part)
            said = ""
    words = [dict.fromkeys(words_of(text)) for text, _ in lists]
    for (_, below), own in zip(lists, words, strict=True):
        others = {word for other in words if other is not own for word in other}
        name = max((word for word in own if word not in others), key=len, default="")
        if len(lists) > 1 and name:
            for one in below:
                _renumber(one, len(unit.number.rstrip(".")), name)
    for one in unit.units:
        tell_apart(one)


def _renumber(unit: Unit, place: int, name: str) -> None:
    """Sets a word into a unit's number and into those below it, behind so many letters."""
    before = unit.number[:place]
    for one in (unit, *unit.walk()):
        if one.number.startswith(before):
            one.number = f"{before}.{name}.{one.number[place:].lstrip('.')}".lstrip(".")


def doubtful(root: Unit) -> list[str]:
    """Numbers that stand twice in one place or fall, no heading between: siblings in order have none."""
    found = []
    for unit in (root, *root.walk()):
        last: dict[tuple[str, str, object, bool], Unit] = {}
        for below in unit.units:
            if below.style and below.style not in {ID, GUIDANCE}:
                base = below.number.removesuffix(below.label)
                before = last.get(kind := (below.style, base, below.captions, below.is_heading))
                if before is not None and not is_later(before.value, below.value):
                    found.append(below.number)
                last[kind] = below
    return found

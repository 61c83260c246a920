"""The numbers of a document as a tree, to find the passages of a chapter, an article, a rule or an item. Pure.

A number is a path of steps, each a kind and a unit: "3.Section 2.Article 7.1.(a)" is 3, section 2, article 7, 1, a. A
text names the end of a path, "Article 7(1)". If several paths match, the nearest one is meant.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from ragqa.corpus.documents.labels import from_roman
from ragqa.corpus.reference_grammar import ORDER, Named

Step = tuple[str, str]
Path = tuple[Step, ...]

ITEM: Final = "("  # the kind of "(a)" and of all numbers below an article
RANKS: Final = frozenset("volume book division part schedule annex appendix title chapter".split())
HOLDS: Final = RANKS | {"principle"}  # below these, paragraphs have numbers of their own
COUNTED: Final = RANKS | {"section"}  # kinds that may have Roman numbers
ASIDE: Final = frozenset(("schedule", "annex"))  # kinds in which paragraphs are numbered from 1 again
BELOW: Final = frozenset(("paragraph", "point", ""))  # kinds that do not show their level
_TOKEN: Final = re.compile(r"(?:\([^)]*\)|[^.])+")  # a dot in brackets separates nothing
_STEP: Final = re.compile(rf"(?i)({'|'.join(ORDER)}|app|annexure)s?(?![a-z])[ –—-]*((?:[a-z]{{2,4}} )?[\w-]*)")


@dataclass(slots=True)
class Numbers:
    """The numbers of one document, in order."""

    at: dict[Path, tuple[int, int]] = field(default_factory=dict)  # the first and last passage of a unit
    tails: dict[Path, list[Path]] = field(default_factory=lambda: defaultdict(list))
    paths: dict[int, Path] = field(default_factory=dict)
    styles: Counter[str] = field(default_factory=Counter)
    last: Path = ()

    def add(self, position: int, number: str) -> None:
        """Adds a passage with this number; passages must be added in order."""
        path = path_of(number)
        if not path:
            return
        self.paths[position] = path
        self.styles[_style(number, path)] += 1
        for depth in range(1, len(path) + 1):
            unit = path[:depth]
            if unit not in self.at:
                self.at[unit] = position, position
                for start in _starts(unit):
                    for tail in dict.fromkeys((unit[start:], (_counted(unit[start]), *unit[start + 1 :]))):
                        self.tails[tail].append(unit)
            elif self.last[:depth] == unit:
                self.at[unit] = self.at[unit][0], position
        self.last = path

    @property
    def most(self) -> str:
        """The most frequent style of its numbers: "paragraph", "statute", "named", "dotted"; empty if it has none."""
        return self.styles.most_common(1)[0][0] if self.styles else ""

    def beside(self, position: int, kind: str, named: Named) -> Path | None:
        """The path of this item in the passage's rule, at the level that has such items; None if there is none."""
        own = self.paths.get(position, ())
        items = tuple((ITEM, item.casefold()) for item in (named.unit, *named.items) if item)
        for depth in range(len(own), -1, -1):
            above = own[:depth]
            for wanted in dict.fromkeys((items, items[:1])):
                if above + wanted in self.at and (above or kind == "recital"):
                    return above + wanted
            if kind == "paragraph" and named.unit and above and above[-1][0] in RANKS:
                numbered = (*above, ("", named.unit.casefold()), *items[1:])
                while len(numbered) > depth + 1 and numbered not in self.at:
                    numbered = numbered[:-1]
                if numbered in self.at:
                    return numbered
        return None

    def unit(self, position: int, kind: str, named: Named, within: Sequence[tuple[str, Named]]) -> Path | None:
        """The path of the named unit, or of the unit around it if its items have no passage of their own; else None.

        Of several units, the nearest to the passage is used. A unit in a schedule counts only if the text names the
        schedule or the passage is in it.
        """
        own = self.paths.get(position, ())
        items = tuple((ITEM, item.casefold()) for item in named.items)
        holders = [_step(rank, one.unit) for rank, one in within]
        for n_items in range(len(items), -1, -1):
            for form in self._forms(kind, named.unit, holders):
                wanted = form + items[:n_items]
                paths = [path for path in self.tails.get(wanted, ()) if _is_meant(path, wanted, own, kind, holders)]
                if paths:
                    return max(paths, key=lambda path: _shared(path, own))
        return None

    def _forms(self, kind: str, unit: str, holders: Sequence[Step]) -> Iterator[Path]:
        head, *rest = re.sub(r"(?i)^app ?\d+\.", "", unit).casefold().split(".")
        below = tuple((ITEM, one) for one in rest)
        if kind not in BELOW:
            yield (_step(kind, head), *below)
        if kind == "recital":
            yield ((ITEM, head),)
        if kind in {"recital", "principle", "clause"}:
            return
        if kind in BELOW and holders and holders[0][0] in RANKS:
            for holder in dict.fromkeys((holders[0], _counted(holders[0]))):
                yield (holder, ("", head), *(("", one) for one in rest))
                yield (holder, (ITEM, head), *below)
        elif kind in RANKS - {"chapter"}:
            pass
        elif self._counts(kind, dotted=bool(rest)):
            yield tuple(("", one) for one in (head, *rest))
            if joined := re.sub(r"(\d)\.([a-z])\.", r"\1\2.", ".".join((head, *rest))):
                yield tuple(("", one) for one in joined.split("."))
        if kind in COUNTED:
            yield (_counted(_step(kind, head)), *below)

    def _counts(self, kind: str, *, dotted: bool) -> bool:
        """Whether the document's style of numbers may have this one: "section 58" is no paragraph of guidance."""
        if kind == "":
            return self.most == "dotted" or "dotted" in self.styles
        if kind == "chapter":
            return not dotted and self.most != "paragraph"
        if not dotted and kind in {"section", "article", "regulation"}:
            return self.most == "statute" or (kind == "section" and self.most == "dotted")
        if not dotted and kind in BELOW:
            return self.most in {"statute", "paragraph"}
        return kind != "rule" or self.most != "paragraph"


@lru_cache(2**16)
def path_of(number: str) -> Path:
    """A passage's number as a path; empty if it is not a number."""
    path: list[Step] = []
    inner = False  # below an article, where every step is an item
    for token in map(str.strip, _TOKEN.findall(number)):
        if not token:
            continue
        if found := _STEP.fullmatch(token):
            path.append(_step(found[1], found[2]))
            inner = path[-1][0] not in HOLDS
        elif token.casefold().startswith(("guidance", "note")):
            path.append((ITEM, token.casefold().rstrip(")")))
            inner = True
        elif inner or token.startswith("(") or (path and path[-1][0] == "" and re.fullmatch(r"[a-z]{1,4}\)?", token)):
            held = re.findall(r"\(([^)]+)\)", token)
            outer = token.partition("(")[0] if held else token.strip("()")
            path += [(ITEM, one.casefold()) for one in (outer, *held) if one]
            inner = True
        else:
            head = re.fullmatch(r"([\w-]+?)((?:\([^)]+\))+)", token)
            path.append(("", (head[1] if head else token.rstrip(")")).casefold()))
            path += [(ITEM, one.casefold()) for one in re.findall(r"\(([^)]+)\)", head[2])] if head else []
            inner = head is not None
    return tuple(path)


def _step(kind: str, unit: str) -> Step:
    kind, unit = kind.casefold(), unit.casefold()
    return {"app": "appendix", "annexure": "annex"}.get(kind, kind), unit


def _counted(step: Step) -> Step:
    """The step with a Roman number as an Arabic one."""
    return (step[0], str(from_roman(step[1]) or step[1])) if step[0] in COUNTED else step


def _style(number: str, path: Path) -> str:
    if re.fullmatch(r"\d+\)", number.strip()):
        return "paragraph"
    if any(kind not in HOLDS | {"", ITEM} for kind, _ in path):
        return "named"
    return "statute" if sum(kind == "" for kind, _ in path) == 1 else "dotted"


def _starts(unit: Path) -> Iterator[int]:
    """The steps at which a text may begin to name this unit: not within a run of numbers, and not at an item."""
    for place, (kind, _) in enumerate(unit):
        if place == 0 or (kind != ITEM and (kind or unit[place - 1][0] not in {"", ITEM})):
            yield place


def _is_meant(path: Path, wanted: Path, own: Path, kind: str, holders: Sequence[Step]) -> bool:
    aside = [step for step in path[: len(path) - len(wanted)] if step[0] in ASIDE]
    near = kind in BELOW or kind in RANKS
    held, counted = {*map(_counted, holders)}, {*map(_counted, path)}
    if any(_counted(step) not in held and not (near and step in own) for step in aside):
        return False
    return all(step in counted or (step[0] == "chapter" and path[0] == ("", step[1])) for step in held)


def _shared(path: Path, own: Path) -> int:
    return next((n for n, (one, other) in enumerate(zip(path, own, strict=False)) if one != other), len(own))

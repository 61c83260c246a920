"""Builds a tree of numbered units from blocks, for every kind of file.

A label alone does not show where it belongs: "2." may continue a list of guidance or begin chapter 2, and "(i)" may
follow "(h)" or begin a new list. So each possible place gets a weight, by the number before, the kind and the indent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Final

from ragqa.corpus.documents.catalogue import ID
from ragqa.corpus.documents.counting import (
    MAX_TITLE_WORDS,
    completes,
    counted_on,
    counting_words,
    depth_above,
    ends_text_of,
    exchanged_ranks,
    is_of_page,
    is_source,
    is_title,
    names_origin,
    number_under,
    numbered_levels,
    numbers_a_part,
    read_block,
    read_counted,
    sources_apart,
    tell_apart,
    whole_value,
)
from ragqa.corpus.documents.items import TERM, ends_before, is_caption, is_ended, opened_term
from ragqa.corpus.documents.labels import (
    DOTTED,
    GUIDANCE,
    MARKED,
    RANKS,
    Step,
    Value,
    follows,
    is_later,
    opens,
    opens_list,
)
from ragqa.corpus.documents.model import OUTERMOST, TOLERANCE, Block, Unit, aligned
from ragqa.corpus.documents.naming import named, once_numbered, titled

_DEEPEST: Final = 40  # nested units; deeper ones become siblings of the last
_NO_TITLE_ENDS: Final = (".", ";", ":", ",", "—", "]")


def build(blocks: Iterable[Block]) -> Unit:
    """The root of the document's tree of units."""
    blocks = list(named(titled(once_numbered(counted_on(sources_apart(blocks))))))
    builder = _Builder(blocks)
    numbered = (n for n, one in enumerate(blocks) if one.kind == "heading" and is_of_page(one) and numbers_a_part(one))
    first = next(numbered, None)
    for n, block in enumerate(blocks):
        if n == first:
            builder.begin({later.level for later in blocks[n:] if later.kind == "heading" and not read_block(later)[0]})
        caption = blocks[n - 1].text if n and block.kind == "table" and is_caption(blocks[n - 1]) else ""
        builder.add(block, caption, is_completed=any(map(completes, blocks[n + 1 : n + 2])))
    tell_apart(builder.root)
    return builder.root


class _Builder:
    def __init__(self, blocks: Sequence[Block]) -> None:
        marked = (block.kind == "heading" and block.level > 0 and not is_of_page(block) for block in blocks)
        self.marks_headings = sum(marked) >= MARKED
        self.numbered = numbered_levels(blocks)  # levels of headings that begin with bare numbers
        self.root = Unit("", (), "", "", None)
        self.counted = counting_words(blocks)  # words that number the document's parts
        self.ranks = exchanged_ranks(blocks, self.counted)
        self._stack = [self.root]
        self._captions: list[tuple[int, str, int]] = []  # level, text, depth of the stack
        self._is_over = False  # whether a source ended the text of the last number
        self._closed: list[Unit] = []  # the stack that a heading without a number ended, until the next number
        self._last: dict[tuple[str, bool], Unit] = {}  # by style, headings apart: numbers may continue over parts

    def add(self, block: Block, caption: str, *, is_completed: bool) -> None:
        if block.kind == "version":
            self._holding().version = block.text
            return
        if block.kind in {"table", "note", "inner note"} or (self._stack[1:] and is_source(block)):
            self._is_over = block.kind == "text"
            self._unnumbered(block, "note" if self._is_over else block.kind, caption)
            return
        is_over, self._is_over = self._is_over, False
        steps, text = read_block(block)
        if block.label and not steps:
            block = replace(block, text=text, label="" if re.search(r"\d", block.label) else block.label)
        if self._is_origin(steps, text, block):
            self._unnumbered(replace(block, text=f"{block.label} {block.text}".strip(), label=""), "text")
            return
        if not steps and self.counted:
            steps, text = read_counted(block, self.counted)
        steps = tuple(replace(step, style=self.ranks.get(step.style, step.style)) for step in steps)
        if not steps or self._is_cited(steps, text, block) or self._is_no_number(steps, block):
            if self._is_titled_by(block):
                self._entitle(block)
            elif block.kind == "heading":
                self._caption(block)
            elif is_over and (self._stack[-1].is_item or self._stack[-1].is_rule):
                self._unnumbered(block, "note")  # of an editor
                self._is_over = True
            else:
                self._go_on(block)
            return
        listed = OUTERMOST < block.indent <= TOLERANCE and not text.isupper()  # in a list of a web page
        may_be = steps[-1].style in RANKS or not (self.marks_headings or listed)
        heading = block.kind == "heading" or (may_be and not is_completed and is_title(steps[-1], text))
        for step in steps:
            level = 0 if step.style == GUIDANCE and is_of_page(block) else block.level  # a text size shows no depth
            unit = self._placed(step, block.indent, level, is_heading=heading and step is steps[-1])
            unit.margin = block.margin
        named = heading and steps[-1].style in RANKS
        unit.parts.append(replace(block, text=text, kind="heading" if named else block.kind, label="", margin=0.0))

    def begin(self, levels: set[int]) -> None:
        """Marks the first numbered heading; earlier headings apply to it only if later ones have the same level."""
        self._captions = [held for held in self._captions if held[0] in levels]

    def _is_cited(self, steps: tuple[Step, ...], text: str, block: Block) -> bool:
        """Whether a number such as "4.2 applies …" is a reference in a sentence, and not the next number."""
        if block.label or len(steps) > 1 or steps[0].style != DOTTED or block.kind != "text" or not text[:1].islower():
            return False
        value = steps[0].value
        last = self._last.get((DOTTED, False)) or self._last.get((DOTTED, True))
        after = last is not None and follows(last.value, value)
        return not after and not (opens(value) and any(whole_value(unit) == value[:-1] for unit in self._stack))

    def _is_origin(self, steps: tuple[Step, ...], text: str, block: Block) -> bool:
        """Whether "Regulation 7" alone below the heading of a schedule names the provision that the schedule serves."""
        if len(steps) != 1 or text or block.kind == "heading" or RANKS.get(steps[0].style, 0) < 1:
            return False
        top = self._stack[-1]
        return RANKS.get(top.style) == 0 and not top.units and not opens(steps[0].value)

    def _is_no_number(self, steps: tuple[Step, ...], block: Block) -> bool:
        """Whether a bare number or an initial neither begins nor continues a list: "12 USC", "T. S. Eliot"."""
        step = steps[0]
        if step.style == GUIDANCE and block.kind == "heading":
            return len(self._stack) == 1  # there is no rule that it is about
        if block.label or len(steps) > 1 or (block.kind == "heading" and block.level in self.numbered):
            return False
        if step.style in RANKS or not re.fullmatch(r"[\w-]+|[A-Z]\.|\([a-z]{2}\)|\(\d+\.\d+\)", step.printed):
            return False
        number, inserted = step.value[-1]
        if step.style == "(1)" and inserted[:1] == ".":  # "(2.5)" behind "(2)" or "(2.4)"
            before = {((number, ""),), ((number, f".{int(inserted[1:]) - 1:03}"),)}
            return not any(unit.style == "(1)" and unit.value in before for unit in (*self._stack, *self._closed))
        known = [unit for unit in (*self._stack, *self._last.values()) if unit.style]
        return not opens_list(step) and not any(
            unit.style == style and is_later(unit.value, value) for style, value in step.readings() for unit in known
        )

    def _caption(self, block: Block) -> None:
        """Adds a heading without a number, which ends lists and rules and names the text after it."""
        before = self._stack[:]
        while self._stack[-1].is_item or self._stack[-1].is_rule or ends_text_of(self._stack[-1], block):
            self._stack.pop()
        self._closed = before if len(before) > len(self._stack) else self._closed
        level = block.level or 7
        depth = len(self._stack)
        self._captions = [held for held in self._captions if held[0] < level and held[2] <= depth]
        self._unnumbered(block, "heading")
        self._captions.append((level, block.text, depth))

    def _holding(self) -> Unit:
        """The provision that contains the last block."""
        return next((unit for unit in reversed(self._stack[1:]) if not unit.is_item), self._stack[:2][-1])

    def _unnumbered(self, block: Block, kind: str, caption: str = "") -> None:
        """Adds a paragraph, table or heading without a number, or a note, whose number is its mark."""
        is_note = kind in {"note", "inner note"}
        parent = self._holding() if is_note else self._stack[-1]
        unit = self._made(Step("", "", ()), parent, kind, block.indent, [block])
        unit.label = block.label if kind == "inner note" else ""
        unit.captions += ((len(self._stack), caption),) if caption else ()
        if is_note and block.label:
            above = parent.number.rstrip(".")
            printed = block.label.strip("().[] ")
            mark = printed if block.text.startswith(block.label) else f"note {printed}"
            unit.number = f"{above}.{mark}" if above else mark
        parent.parts.append(unit)

    def _is_titled_by(self, block: Block) -> bool:
        """Whether the block is the title of the part, chapter or article whose number is alone before it."""
        top = self._stack[-1]
        return (
            (top.style in RANKS or (top.style in {"1.", DOTTED} and block.kind == "heading"))
            and all(part.kind == "text" and names_origin(part.texts[0]) for part in top.units)
            and not any(part.text for part in top.texts)
            and 0 < len(block.text.split()) <= MAX_TITLE_WORDS
            and not block.text.endswith(_NO_TITLE_ENDS)
            and not (block.text[:1].islower() or block.text[:1] == "[")
        )

    def _entitle(self, block: Block) -> None:
        top = self._stack[-1]
        level = top.parts[0].level if top.parts and isinstance(top.parts[0], Block) else block.level
        top.parts[:] = [replace(block, kind="heading", level=level), *top.units]
        top.is_heading = True

    def _go_on(self, block: Block) -> None:
        """Adds text without a number to the unit that it continues, by its indent if indents are known."""
        top, announces = self._stack[-1], block.text[:1].islower() and block.text.endswith(":")
        said = top.parts[-1].text if top.is_item and isinstance(top.parts[-1], Block) else "."
        if said.endswith(":") or (announces and not said.endswith((".", ";", ","))):  # "where: (a) …" behind a formula
            top.parts.append(block)  # a formula, say, that the item announces, wherever it stands
            return
        while is_ended(self._stack[-1], block):
            self._stack.pop()
        depth = next((n for n in range(len(self._stack) - 1, 0, -1) if not ends_before(self._stack[n], block)), 0)
        unit = self._stack[depth]
        if unit.number and (term := opened_term(block.text)):  # its items are numbered below it
            self._stack = self._stack[: depth + 1]
            below = self._made(Step("", TERM, ((len(unit.parts), ""),)), unit, "numbered", block.indent, [block])
            below.number = f"{unit.number.rstrip('.')}.{term}"
            unit.parts.append(below)
            self._stack.append(below)
        elif unit is self.root or unit.is_chapter or any(held[2] > depth for held in self._captions):
            self._stack = self._stack[: depth + 1]
            self._unnumbered(block, "text")
        elif unit.parts and isinstance(last := unit.parts[-1], Block) and not last.text and not unit.units:
            unit.parts[-1] = Block(block.text, block.kind, "", block.level, block.indent, last.place or block.place)
        else:
            unit.parts.append(block)

    def _placed(self, step: Step, indent: float, level: int, *, is_heading: bool) -> Unit:
        chosen = step
        if step.style in RANKS:
            depth = self._under_rank(RANKS[step.style], level)
        elif step.style == ID:
            depth = self._under_id(step.printed)
        elif step.style == DOTTED:
            depth = self._under_prefix(step.value)
        elif step.style == GUIDANCE:
            depth = self._under_guided(level)
        elif (reopened := self._reopened(step)) is not None:
            depth = reopened
        else:
            depth, chosen = self._weighed(step, indent, level, is_heading)
        self._closed = []
        depth = min(depth, _DEEPEST)
        top = self._stack[-1]
        if top.style in RANKS and any(one.texts and not is_of_page(one.texts[0]) for one in top.units[-1:]):
            self._carry(top, self._stack[depth], len(self._stack), depth + 1)
        self._stack = self._stack[: depth + 1]
        above = level + (chosen.style not in RANKS and chosen.style != DOTTED) if level and is_heading else 9
        self._captions = [held for held in self._captions if held[2] <= depth + 1 and held[0] < above]
        unit = self._made(chosen, self._stack[-1], "numbered", indent, [], is_heading=is_heading)
        self._stack[-1].parts.append(unit)
        self._stack.append(unit)
        self._last[chosen.style, is_heading] = unit
        return unit

    def _carry(self, below: Unit, above: Unit, deep: int, depth: int) -> None:
        """Puts headings at the end of a unit below another, at this depth, as they name the next number there."""
        captions = takewhile(lambda one: isinstance(one, Unit) and one.kind == "heading", reversed(below.parts))
        n_moved = sum(1 for _ in captions)
        if below is above or not n_moved:
            return
        moved = [one for one in below.parts[-n_moved:] if isinstance(one, Unit)]
        del below.parts[-n_moved:]
        above.parts.extend(replace(one, parent=above, number=above.number) for one in moved)
        self._captions = [(level, text, at if at < deep else depth) for level, text, at in self._captions]

    def _reopened(self, step: Step) -> int | None:
        """The depth above "(2)" whose "(1)" was ended by a heading without a number, which names only "(2)"."""
        if opens_list(step) or not step.style.startswith("("):
            return None
        for n in range(len(self._closed) - 1, len(self._stack) - 1, -1):
            unit = self._closed[n]
            if unit.style == step.style and not unit.is_heading and is_later(unit.value, step.value):
                below, deep, self._stack = self._stack[-1], len(self._stack), self._closed[:n]
                self._carry(below, self._stack[-1], deep, n)
                return n - 1
        return None

    def _under_rank(self, rank: float, level: int) -> int:
        """The depth of the innermost unit of a higher rank, or of a numbered heading below it with only such units."""
        found = max(n for n, unit in enumerate(self._stack) if n == 0 or RANKS.get(unit.style, 9) < rank)
        for unit in self._stack[found + 1 :]:
            only_ranks = len(unit.texts) == 1 and all(below.style in RANKS for below in unit.units)
            if not (unit.is_heading and only_ranks and unit.style not in RANKS and 0 < unit.level <= (level or 9)):
                break
            found += 1
        return found

    def _under_prefix(self, value: Value) -> int:
        """The depth of the innermost unit whose number is a prefix of this one, list items last; else of a part."""
        rank, item, found = 0, 0, 0
        for n, unit in enumerate(self._stack):
            own = whole_value(unit)
            if unit.style in RANKS and not is_later(own, value):  # "Section 3.5." is beside "Section 3.4 Lamps"
                rank = n
            if own and own != whole_value(self._stack[n - 1]) and len(own) < len(value) and value[: len(own)] == own:
                if any(above.style in {DOTTED, GUIDANCE} for above in unit.above()) and unit.style != DOTTED:
                    item = n
                else:
                    found = n
        return max(found, rank) or item

    def _under_id(self, printed: str) -> int:
        """The depth of the innermost unit whose identifier is a prefix of this one, with whole numbers."""
        ids = ((n, unit.label) for n, unit in enumerate(self._stack) if unit.style == ID)
        return max((n for n, label in ids if re.match(rf"{re.escape(label)}(?!\d)", printed)), default=0)

    def _under_guided(self, level: int) -> int:
        """The depth of the rule above guidance, or of an item of it if the guidance's heading is that much deeper."""
        inside = [n for n, unit in enumerate(self._stack) if unit.style == GUIDANCE]
        if inside:
            return inside[0] - 1
        headed = [n for n, unit in enumerate(self._stack) if unit.level]
        if level and headed:
            down = level - self._stack[headed[-1]].level - 1
            own = [n for n in range(headed[-1] + 1, len(self._stack)) if self._stack[n].texts]
            if down > 0 and own:
                return own[min(down, len(own)) - 1]
        return max(n for n, unit in enumerate(self._stack) if n == 0 or not unit.is_item)

    def _weighed(self, step: Step, indent: float, level: int, is_heading: bool) -> tuple[int, Step]:
        best, chosen, place = -9.0, step, len(self._stack) - 1
        for style, value in step.readings():
            read = Step(step.printed, style, value)
            for n, unit in enumerate(self._stack):
                if unit.style == DOTTED and style == "1." and is_heading and self._ends_chapter(n, value):
                    best, chosen, place = max((best, chosen, place), (3.5, read, n - 1), key=lambda found: found[0])
                if unit.style != style:
                    continue
                apart = unit.is_heading and not is_heading and OUTERMOST < indent <= TOLERANCE
                later = -1.0 if step.other or apart else 0.5  # "(i)" after "(c)" is no ninth letter
                weight = 3.0 if follows(unit.value, value) else later if is_later(unit.value, value) else -3.0
                weight += 0.01 * n + (1 if unit.is_heading == is_heading else -1) + aligned(unit.indent, indent)
                weight += (unit.level == level) - (unit.level != level) if level and unit.level else 0
                anew = unit.is_heading and not is_heading and any(one.style in RANKS for one in self._stack[n + 1 :])
                weight -= 2 * anew  # the texts of an article below this heading are numbered anew
                if opens(value) and self._starts_again(n, indent, is_heading):
                    weight = 2.5
                if weight > best:
                    best, chosen, place = weight, read, n - 1
            lasts = (self._last.get((style, kind)) for kind in (is_heading, not is_heading))
            last = next((unit for unit in lasts if unit is not None and follows(unit.value, value)), None)
            if last is not None and best < 2.5 and (parent := self._open_above(last, level)) is not None:
                best, chosen, place = 2.5, read, parent  # a quoted rule came between
            under = len(self._stack) - 1
            weight = 2.0 if opens(value) else -2.0 if last is None else 1.5 + (last.parent is self._stack[under])
            under = depth_above(self._stack, indent) if is_heading else under
            weight += self._below_last(value, indent, may_be_announced=step.other is not None)
            if weight > best:
                best, chosen, place = weight, read, under
        return place, chosen

    def _below_last(self, value: Value, indent: float, *, may_be_announced: bool) -> float:
        """What a new list below the last unit weighs more or less, by the text before it and the indents."""
        top, begins = self._stack[-1], opens(value)
        beside = aligned(top.indent, indent)
        last = top.parts[-1] if top.parts else None
        announced = isinstance(last, Block) and last.text.endswith((":", "—", "–"))
        if begins and may_be_announced and announced and beside <= 0:
            return 2.5  # "(h) the following: (i) …", "(iii) either— (aa) …"
        if 0 < indent < top.indent - TOLERANCE:
            return -1.5
        return 1.5 if begins and indent > top.indent and beside < 0 else 0.0  # "(i)" further right than "(h)"

    def _starts_again(self, n: int, indent: float, is_heading: bool) -> bool:
        """Whether a heading without a number came since this unit, and the new number has the same indent."""
        unit = self._stack[n]
        is_alike = unit.is_heading == is_heading and aligned(unit.indent, indent) > 0
        return is_alike and any(depth > n for _, _, depth in self._captions)

    def _ends_chapter(self, n: int, value: Value) -> bool:
        """Whether a chapter of this number may follow this rule, whose own chapter has no heading."""
        chapter = self._stack[n].value[:1]
        return follows(chapter, value) and not any(whole_value(above) == chapter for above in self._stack[:n])

    def _open_above(self, unit: Unit | None, level: int) -> int | None:
        """The depth of this unit's parent if it is still open, and no part or chapter that is not deeper; else None."""
        for n in range(len(self._stack) - 1, -1, -1):
            if unit is not None and self._stack[n] is unit.parent:
                return n if n < len(self._stack) - 1 else None
            if self._stack[n].style in RANKS and not 0 < level < self._stack[n].level:
                return None
        return None

    def _made(
        self, step: Step, parent: Unit, kind: str, indent: float, parts: list[Block | Unit], *, is_heading: bool = False
    ) -> Unit:
        captions = tuple((depth, text) for _, text, depth in self._captions)
        number = number_under(step, parent)
        return Unit(
            step.style, step.value, step.printed, number, parent, kind, indent, is_heading, captions, parts=parts
        )

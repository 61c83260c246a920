"""The items of a rule that a question asks for by number: "(a)" in "Article 6(1)(a)", found or missing. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ragqa.corpus.numbered import MOST, asked_mentions, same_number, steps
from ragqa.corpus.reference_grammar import Named
from ragqa.types import Passage, Span

_NEXT = re.compile(r"\n|[;,] (?:and |or )?(?=\(\w{1,5}\) )")


@dataclass(frozen=True, slots=True)
class Part:
    """An ``item`` of a longer ``rule`` that is asked for: "(a)" of "6(1)".

    ``spans`` is where it stands, by passage_id; it is empty if the rule has no such item.
    """

    item: str
    rule: str
    spans: Mapping[str, Span]

    @property
    def missing(self) -> str:
        """What the rule lacks, in words: "6(1) has no (a)"; "" if it has the item."""
        return "" if self.spans else f"{self.rule} has no {self.item}"


def asked_parts(question: str, passages: Sequence[Passage]) -> tuple[Part, ...]:
    """The items that the question names and that have no passage of their own among these, which are their rule's.

    There are none if the rule may have further passages (`ragqa.corpus.numbered.MOST`).
    """
    numbers = [f" {' '.join(steps(one.number))} " for one in passages]
    parts = dict.fromkeys(_named(question)) if len(passages) < MOST else ()
    return tuple(part for one in parts if (part := _part(one, numbers, passages)))


def asked_items(question: str, passage: Passage) -> tuple[Span, ...]:
    """Where the passage has the items that the question names by number: "Article 6(1)(a)" within that of 6(1)."""
    return spans_in(passage, asked_parts(question, [passage]))


def spans_in(passage: Passage, parts: Sequence[Part]) -> tuple[Span, ...]:
    """Where these parts stand in the passage."""
    return tuple(one.spans[passage.passage_id] for one in parts if passage.passage_id in one.spans)


def lacks(question: str, passages: Sequence[Passage]) -> str:
    """The rule and the items that it lacks: "6(1) has no (a)"; "" if it has all that the question names."""
    return "; ".join(one.missing for one in asked_parts(question, passages) if one.missing)


def having_items(question: str, named: Sequence[Passage], passages: Sequence[Passage]) -> list[str]:
    """If the rule of ``named`` lacks an item asked for, the documents whose rule of the same number has it."""
    others = same_number(question, passages, [named[0].document_id]) if lacks(question, named) else ()
    return [one.document_id for one in others if not lacks(question, [one])]


def alike(question: str, named: Sequence[Passage], passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """The first passage of the rule in each other document with its number; if one has the item asked for, of those."""
    others = same_number(question, passages, [named[0].document_id])
    having = tuple(one for one in others if not lacks(question, [one]))
    return having or (others if lacks(question, named) else ())


def _named(question: str) -> Iterator[Named]:
    return (one for mention in asked_mentions(question) for one in mention.named if one.unit and one.items)


def _part(named: Named, numbers: Sequence[str], passages: Sequence[Passage]) -> Part | None:
    for known in range(len(named.items), -1, -1):
        rule = Named(named.unit, named.items[:known])
        if any(f" {' '.join(steps(str(rule)))} " in number for number in numbers):
            break
    else:
        return None
    missing = named.items[known:]
    found = {one.passage_id: span for one in passages if (span := _span(named, known, one))}
    return Part("".join(f"({item})" for item in missing), str(rule), found) if missing else None


def _span(named: Named, known: int, passage: Passage) -> Span | None:
    """Where the passage has this item, of which it is known down to ``known``: as the index says, else by its marks."""
    wanted, text = steps(str(named)), passage.text
    for start, end, number in passage.spans():
        if start < end and steps(number)[-len(wanted) :] == wanted:
            return Span(text[start:end], start, end)
    start = end = 0
    for depth, item in enumerate(named.items[known:], known + 1):
        dotted = re.escape(".".join((named.unit, *named.items[:depth])))
        mark = rf"(?:^|(?<=[;:,] )|(?<= and )|(?<= or ))(?:\({re.escape(item)}\)|{re.escape(item)}[.)]|{dotted}\.?)\s"
        if not (found := re.compile(mark, re.IGNORECASE | re.MULTILINE).search(text, end)):
            return None
        start, end = found.span()
    after = _NEXT.search(text, end)
    until = after.start() if after else len(text)
    return Span(text[start:until], start, until)

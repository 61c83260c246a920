"""Judges an answer's text by the expected facts of a case. See ORIGIN.md.

A fact is a part of the question with patterns, any of which shows it; `wrong` are patterns of typical false answers. No
model is used, so the same answer is always judged the same; right words that no pattern covers count as missing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from ragqa.evaluation.files import shipped_rows
from ragqa.types import Answer

DATA: Final = Path(__file__).parent
QUESTIONS, UNANSWERABLE, NEAR = "questions.jsonl", "unanswerable.jsonl", "near.jsonl"
FOLLOW_UPS, FURTHER_FOLLOW_UPS = "follow_ups.jsonl", "further_follow_ups.jsonl"

_PLAIN: Final = str.maketrans("‘’“”‐‑‒–—−", "''\"\"------", "*`")  # straight quotes and dashes, no Markdown marks
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_PER_CENT: Final = re.compile(r"\s?(?:%|\bper ?cent\b)", re.IGNORECASE)


class FactOutcome(StrEnum):
    """The outcome of an answer compared with the expected facts."""

    FULL = "full"  # every part, nothing wrong
    PART = "part"  # some parts, nothing wrong
    WRONG = "wrong"  # a typical false answer, whatever else it says
    NONE = "none"  # no part, nothing known to be wrong
    REFUSED = "refused"  # it says that the passages do not answer


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a right answer, part by part, and patterns of wrong answers."""

    parts: Mapping[str, tuple[re.Pattern[str], ...]]
    wrong: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Facts:
        """The facts of a line of `questions.jsonl`. Raises re.error for a pattern that does not compile."""
        return cls({fact["part"]: patterns(fact["any_of"]) for fact in row["facts"]}, patterns(row["wrong"]))


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome, with the parts found, the parts missing, and the wrong statements as written."""

    outcome: FactOutcome
    found: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()


def judge(answer: Answer, facts: Facts) -> Judgement:
    """Judges the answer by the expected facts; the text of a refusal is not read."""
    if answer.is_refusal:
        return Judgement(FactOutcome.REFUSED, missing=tuple(facts.parts))
    text = plain(answer.text)
    found = tuple(part for part, ways in facts.parts.items() if any(way.search(text) for way in ways))
    missing = tuple(part for part in facts.parts if part not in found)
    wrong = tuple(match[0] for way in facts.wrong if (match := way.search(text)))
    if wrong:
        return Judgement(FactOutcome.WRONG, found, missing, wrong)
    if not found:
        return Judgement(FactOutcome.NONE, found, missing)
    return Judgement(FactOutcome.PART if missing else FactOutcome.FULL, found, missing)


def plain(text: str) -> str:
    """The text as patterns expect it: one line, no accents, 1234 for 1,234, % for per cent, straight quotes."""
    letters = (one for one in unicodedata.normalize("NFKD", text.translate(_PLAIN)) if not unicodedata.combining(one))
    line = _THOUSANDS.sub("", " ".join("".join(letters).split()))
    return re.sub(r"^[^\w(]+(?=[A-Za-z])", "", _PER_CENT.sub("%", line))


def patterns(sources: list[str]) -> tuple[re.Pattern[str], ...]:
    """The compiled patterns, for searching `plain` text without case."""
    return tuple(re.compile(source, re.IGNORECASE) for source in sources)


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of one of the files beside this module."""
    return shipped_rows(DATA / name)


def is_right_rewriting(text: str, row: Mapping[str, Any]) -> bool:
    """Whether a rewritten follow-up is right by a row of `follow_ups.jsonl`. Raises re.error."""
    line = plain(text)
    has_all = all(way.search(line) for way in patterns(row["must"]))
    return has_all and not any(way.search(line) for way in patterns(row["must_not"]))

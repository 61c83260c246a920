"""Days written in a text, and the day that a question is asked as of. Pure, English."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from ragqa.english.reading import MONTHS

_MONTH: Final = "|".join(MONTHS)
_DAY: Final = (
    r"(?:[12]\d{3}-\d{1,2}-\d{1,2}|\d{1,2}[./-]\d{1,2}[./-][12]\d{3}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?(?:{_MONTH}),? [12]\d{{3}}"
    rf"|(?:{_MONTH}) \d{{1,2}}(?:st|nd|rd|th)?,? [12]\d{{3}})(?!\d)"
)
_NAMED: Final = re.compile(
    rf"\bas (?:of|at|on) (?P<of>{_DAY})"
    rf"|(?:\A|(?<=\bin force ))(?:on (?P<on>{_DAY})|before (?P<before>{_DAY}|[12]\d{{3}}\b(?![./-]\d)))"
    rf"|\bon (?P<last>{_DAY})(?=\W*\Z)",
    re.IGNORECASE,
)
_FORMS: Final = ("%d/%m/%Y", "%Y-%m-%d", "%d.%m.%Y", "%d-%m-%Y", "%d %B %Y", "%B %d %Y")


@dataclass(frozen=True, slots=True)
class AskedDay:
    """The day that a question names, ``written`` as in the question; ``day`` is YYYY-MM-DD, empty if there is no such
    day. ``rest`` is the question without it.
    """

    written: str
    day: str
    rest: str


def as_iso(text: str) -> str:
    """A printed date in ISO format, read with the day first if ambiguous; empty if it is not a date."""
    for form in _FORMS:
        with suppress(ValueError):
            return datetime.strptime(text, form).date().isoformat()
    return ""


def asked_day(question: str) -> AskedDay | None:
    """The day as of which a question is asked; None if it names none, or several.

    It is named by "as of", "as at" or "as on" a day anywhere, by "on" a day at the beginning or end, and by "in force
    on" a day; "before" a day or year is the day before, at the beginning and after "in force" only. Elsewhere, as in
    "funds licensed before 2022", a day is a part of what is asked.
    """
    found = list(_NAMED.finditer(question))
    if len(found) != 1:
        return None
    (match,) = found
    written = next(filter(None, match.groups()))
    plain = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b|\bof |,", "", written, flags=re.IGNORECASE)
    day = as_iso(f"{plain}-01-01" if plain.isdecimal() else plain)
    if day and match["before"]:
        day = (date.fromisoformat(day) - timedelta(days=1)).isoformat()
    rest = re.sub(r"\(\s*\)", "", f"{question[: match.start()].rstrip(' ,')} {question[match.end() :]}")
    rest = re.sub(r"\s+(?=[?.!,])|(?<=\s)\s+", "", rest).strip(" ,:;")
    return AskedDay(written, day, rest[:1].upper() + rest[1:]) if re.search(r"\w", rest) else None

"""A language model's reply -> the sub-questions in it. Pure; whatever the reply holds, text is text and no more."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator

from ragqa.cleaning import without_controls, without_invisible

MAX_CHARS = 300  # of a sub-question; a longer one is no question
KEYS = ("sub_questions", "subquestions", "questions")

_OBJECT = re.compile(r"\{[^{}]*\}", re.DOTALL)


def sub_questions_in(reply: str, known: Collection[str] = (), most: int = 30) -> tuple[str, ...] | None:
    """The sub-questions of the last JSON object, or bare list, in the reply; None where there is no such thing.

    An empty tuple means that the model says there are none. Texts only, each on one line, without control characters,
    each once, none that is among ``known`` (in the sense of `normal`), at most ``most``.
    """
    found = next((value for _, value in reversed(list(_plans(reply)))), None)
    if found is None:
        return None
    kept: dict[str, str] = {}
    for item in found:
        text = " ".join(without_invisible(without_controls(item)).split()) if isinstance(item, str) else ""
        key = normal(text)
        if key and len(text) <= MAX_CHARS and key not in known:
            kept.setdefault(key, text)
    return tuple(kept.values())[:most]


def without_plan(reply: str) -> str:
    """The reply without the JSON objects that hold sub-questions, and without an empty code fence around one."""
    for piece, _ in _plans(reply):
        reply = reply.replace(piece, "")
    return re.sub(r"```(?:json)?\s*```", "", reply).strip()


def normal(text: str) -> str:
    """What two questions that are the same have in common: the words in lower case."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def _plans(reply: str) -> Iterator[tuple[str, list[object]]]:
    """Each stretch of the reply that is a plan, with the list it holds, in order."""
    whole = reply.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    if whole.startswith("["):
        value = _parsed(whole)
        if isinstance(value, list):
            yield whole, value
        return
    for match in _OBJECT.finditer(reply):
        value = _parsed(match[0])
        if isinstance(value, dict):
            listed = next((value[key] for key in KEYS if key in value), None)
            if isinstance(listed, list):
                yield match[0], listed


def _parsed(text: str) -> object:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value

"""Rejects made questions with a rule's number, a copied run of words, or words that point at missing text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from ragqa.english.reading import read

COPIED: Final = 8  # words in a row that also occur in a passage
SHORTEST, LONGEST = 7, 60  # words of a question
LEAST_SAID: Final = 4  # stems, without stop words
_WORD = re.compile(r"\w+(?:[’'-]\w+)*")
_RULE_NUMBER = re.compile(
    r"\b\d+(?:\.\d+)+|\((?:\d{1,3}|[a-z]|[ivx]{1,5})\)|\b[A-Z]{1,3}\d+\.\d|"
    r"\b(?:rules?|sections?|paragraphs?|articles?|schedules?|chapter|part|app|appendix|annex|regulation)\s+\(?[A-Z]?\d",
    re.IGNORECASE,
)
_POINTS = re.compile(
    r"\b(?:these|those|such|said|above|below|hereunder|herein|thereof|thereto|therein|aforementioned|"
    r"referred|mentioned|specified|prescribed|following|the (?:passage|text|extract|document)s?|"
    r"th(?:is|at) (?:rule|section|chapter|part|sub\w+|paragraph|case|requirement|definition|guidance|appendix)|"
    r"this)\b|\b(?:sub-?)?(?:section|paragraph|rule|chapter|part)s?(?= ?[?,])|\b(?:if|where|when) (?:that|they)\b",
    re.IGNORECASE,
)

_REFERENCE = re.compile(
    r",? ?\b(?:according to|pursuant to|in accordance with|in line with|under|as(?: [a-z]+)?(?: in| by| under| per)?) "
    r"(?:the )?(?:rules?|sections?|paragraphs?|articles?|chapters?|parts?) [A-Z]?\d+(?:\.\d+)*(?:\(\w{1,4}\))*",
    re.IGNORECASE,
)


def without_references(question: str) -> str:
    """The question without ", according to Rule 3.2.1," and the like: questions must not name the rule to be found."""
    return _REFERENCE.sub("", question)


def problem(question: str, texts: Iterable[str], kind: str = "") -> str:
    """Why this question is rejected, in words; empty if it is accepted. A question on a definition may be short."""
    words = _WORD.findall(question)
    if not question.endswith("?"):
        return "does not end with a question mark"
    is_poor = len(words) < SHORTEST or len(read(question).content) < LEAST_SAID
    if len(words) > LONGEST or (is_poor and kind != "definition"):
        return f"has {len(words)} words, expected {SHORTEST} to {LONGEST}, or says too little"
    if _RULE_NUMBER.search(question):
        return "names the number of a rule"
    if _POINTS.search(question):
        return "points at something that it does not name"
    pairs = (("(", ")"), ("“", "”"), ("[", "]"))
    if question.count('"') % 2 or any(question.count(one) != question.count(other) for one, other in pairs):
        return "has a bracket or quotation mark without its other"
    copied = copied_run(question, texts)
    return f"copies “{copied}”" if copied else ""


def copied_run(question: str, texts: Iterable[str]) -> str:
    """The first eight words in a row that also occur in one of the texts; empty if there are none."""
    asked = _words(question)
    for text in texts:
        said = _words(text)
        runs = {tuple(said[n : n + COPIED]) for n in range(len(said) - COPIED + 1)}
        for n in range(len(asked) - COPIED + 1):
            if tuple(asked[n : n + COPIED]) in runs:
                return " ".join(asked[n : n + COPIED])
    return ""


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


# Rewordings that break a copied run and sound like people's questions.
REWORDINGS: Final[Sequence[tuple[str, str]]] = (
    ("in accordance with", "in line with"),
    ("prior to", "before"),
    ("in respect of", "for"),
    ("in relation to", "concerning"),
    ("for the purposes of", "for"),
    ("pursuant to", "under"),
    ("take reasonable steps to", "do what is reasonable to"),
    ("takes reasonable steps to", "does what is reasonable to"),
    ("take all reasonable steps", "do everything reasonable"),
    ("ensure that", "make sure that"),
    ("shall", "must"),
    ("at all times", "always"),
    ("without delay", "promptly"),
    ("establish and maintain", "set up and keep"),
    ("implement", "put in place"),
    ("maintain", "keep"),
    ("notify", "inform"),
    ("provide", "give"),
    ("obtain", "get"),
    ("commence", "begin"),
    ("sufficient", "enough"),
    ("undertake", "carry out"),
    ("appropriate", "suitable"),
    ("adequate", "satisfactory"),
    ("as soon as practicable", "as early as it can"),
    ("demonstrate", "show"),
    ("on behalf of", "for"),
    ("submit", "send"),
    ("make available", "offer"),
    ("in writing", "in written form"),
)


def reworded(question: str, texts: Sequence[str]) -> str:
    """The question with as few rewordings, in order, as leave no copied run; unchanged if none do."""
    found = question
    for words, otherwise in REWORDINGS:
        if not copied_run(found, texts):
            return found
        found = re.sub(rf"(?<=[a-z,] ){words}\b", otherwise, found)
    return found if not copied_run(found, texts) else question

"""A long list within a sentence, and the sentence with some of its items alone. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

OMISSION = "[…]"  # stands where items were left out

_LABEL = re.compile(r"(?<!\S)\(?([a-z]|[ivx]{2,5}|\d{1,2})[.)]\s+")
_AFTER = {  # the labels that follow the first one of a list
    "a": tuple("bcdefghijklmnopqrstuvwxyz"),
    "i": ("ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv", "xv"),
    "1": tuple(str(number) for number in range(2, 100)),
}
# Three words in capitals or more, one of them long (no abbreviations), before a word in small letters.
_TITLE = re.compile(
    r"\A(?=[^a-z]*[A-Z]{7})(?:[^\Wa-z_][^\Wa-z_'’.,&/()-]*[A-Z][^a-z\s]*\s+(?:[&–-]\s+)?){3,}(?=[A-Z]\w*[a-z]|An? )"
)
_MIN_WORDS_AFTER = 6
# What makes the items conditions or alternatives: without one of them the sentence would say something else.
_BINDING = re.compile(
    r"\b(?:if|unless|where|when|provided that|except|either|any of|one of|not|no)\b[^.;]*\Z", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class EnumeratedSentence:
    """``lead`` and ``items`` joined by single spaces are the sentence; each item begins with its label."""

    lead: str
    items: tuple[str, ...]

    def with_items(self, kept: Collection[int]) -> str:
        """The sentence with these items, `OMISSION` for each run of others; all of them: the sentence itself."""
        pieces = [self.lead]
        for index, item in enumerate(self.items):
            if index in kept:
                pieces.append(item)
            elif pieces[-1] != OMISSION:
                pieces[-1:] = [pieces[-1].removesuffix(" and"), OMISSION]
        text = " ".join(pieces)
        return text + "." if text.endswith(OMISSION) else text


def enumerated(sentence: str) -> EnumeratedSentence | None:
    """A sentence of at least three duties in a list, parted; None for any other.

    The labels ascend from (a), (i) or (1) without a gap: lists within an item stay in it. A list of conditions or
    alternatives ("if", "unless", "any of", a last "or", a negation in the lead) is None: it must be read as a whole.
    """
    marks = list(_LABEL.finditer(sentence))
    for start, mark in enumerate(marks):
        labels = _AFTER.get(mark.group(1), ())
        if not labels:
            continue
        starts = [mark.start()]
        for further in marks[start + 1 :]:
            if len(starts) <= len(labels) and further.group(1) == labels[len(starts) - 1]:
                starts.append(further.start())
        lead = sentence[: starts[0]].strip()
        items = tuple(sentence[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True))
        is_whole = _BINDING.search(lead) is not None or any(item.endswith(" or") for item in items)
        return EnumeratedSentence(lead, items) if lead and len(items) >= 3 and not is_whole else None
    return None


def without_running_title(sentence: str) -> str:
    """The sentence without the title in capitals that a converter left before it; as it is where there is none."""
    found = _TITLE.match(sentence)
    rest = sentence[found.end() :] if found else ""
    return rest if len(rest.split()) >= _MIN_WORDS_AFTER else sentence

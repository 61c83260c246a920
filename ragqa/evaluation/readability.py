"""How hard a text is to read, by the `readability` package.

Björnsson's LIX was chosen among its measures because it counts letters and words only: Flesch and its kin count
syllables, which the package estimates by rules that give "the" none, and they were made for English alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


def lix(sentences: Sequence[str]) -> float | None:
    """LIX of these sentences: below 30 a child's book, 40 to 50 a newspaper, above 60 law; None without words.

    ``words / sentences + 100 * long words / words``, long being seven letters or more (Björnsson 1968). A word is made
    of letters: rule numbers and amounts are none.
    """
    lines = [" ".join(words) for sentence in sentences if (words := _WORD.findall(sentence))]
    if not lines:
        return None
    import readability

    return float(readability.getmeasures(lines, lang="en")["readability grades"]["LIX"])


def count_words(text: str) -> int:
    """What white space parts."""
    return len(text.split())

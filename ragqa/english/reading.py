"""What a sentence says that can be compared: words, quantities, dates, names.

Pure, English, and shallow on purpose: no parser decides here, only word lists a reader can check. What is not
recognised takes no part in any comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from ragqa.english.dates import Date, dates_of
from ragqa.english.quantities import Quantity, quantities_of, stands_in
from ragqa.english.words import STOP_WORDS, Word, words_of
from ragqa.types import Span


@dataclass(frozen=True, slots=True)
class Name:
    """A proper name or defined term: the stems of its words, written with capitals, and where it stands."""

    stems: tuple[str, ...]
    span: Span


@dataclass(frozen=True)
class Reading:
    """One sentence, read. Spans and offsets count characters of ``text``.

    Most source sentences are only asked for their words, so the rest is found when it is first wanted.
    """

    text: str
    words: tuple[Word, ...]

    @cached_property
    def plain(self) -> tuple[str, ...]:
        """The words in lower case: what a quotation has to repeat."""
        return tuple(word.lower for word in self.words)

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(word.stem for word in self.words)

    @cached_property
    def content(self) -> frozenset[str]:
        """The stems of words that are not stop words."""
        return frozenset(word.stem for word in self.words if word.lower not in STOP_WORDS)

    @cached_property
    def dates(self) -> tuple[Date, ...]:
        return dates_of(self.text, self.words)

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        return quantities_of(self.text, self.words, [date.span for date in self.dates])

    @cached_property
    def names(self) -> tuple[Name, ...]:
        dates = [date.span for date in self.dates]
        found = _names(self.text, self.words)
        return tuple(
            name for name in found if name.span.text not in _MEASURES and not stands_in(name.span.start, dates)
        )


@lru_cache(maxsize=20_000)
def read(text: str) -> Reading:
    """The reading of a sentence; remembered, as a source sentence meets every sentence of an answer."""
    return Reading(text, words_of(text))


_MEASURES = frozenset({"Business Day", "Business Days", "Celsius", "Fahrenheit"})  # units, and no name of anything
_LINKS = frozenset({"of", "and", "de", "van", "von", "la"})  # not told apart in a name
_NO_NAMES = frozenset("i a an the it he she they we in on at by for if when where no not this that".split())


def _names(text: str, words: tuple[Word, ...]) -> tuple[Name, ...]:
    """Runs of capitalised words; a single one at the beginning of the sentence may be any word and is left out."""
    names, start = [], 0
    while start < len(words):
        if not words[start].is_capital or words[start].lower in STOP_WORDS or words[start].lower in _NO_NAMES:
            start += 1
            continue
        end = start + 1
        while length := _further(text, words, end):
            end += length
        run = words[start:end]
        if len(run) > 1 or not _begins(text, run[0]):
            stems = tuple(word.stem for word in run if word.lower not in _LINKS)
            names.append(Name(stems, Span(text[run[0].start : run[-1].end], run[0].start, run[-1].end)))
        start = end
    return tuple(names)


def _further(text: str, words: tuple[Word, ...], end: int) -> int:
    """How many words from here go on with the name that stands before: another one, "of" and another, or none."""
    for length, links in ((1, ()), (2, ("of",))):
        more = words[end : end + length]
        if len(more) < length or not more[-1].is_capital or more[-1].lower in _NO_NAMES:
            continue
        if tuple(word.lower for word in more[:-1]) == links and not any(
            _is_apart(text, words[n - 1], words[n]) for n in range(end, end + length)
        ):
            return length
    return 0


def _is_apart(text: str, before: Word, after: Word) -> bool:
    return any(not character.isspace() and character not in "-'’" for character in text[before.end : after.start])


def _begins(text: str, word: Word) -> bool:
    """Whether a word opens the text, or a sentence or quotation in it."""
    place = word.start
    while place and (text[place - 1].isspace() or text[place - 1] in "\"'“‘("):
        place -= 1
    return not place or text[place - 1] in ".:;?!"

"""The numbering of legal texts: reads the label at the start of a text, and tells which label may follow another.

A label is one or more steps: ``4.2.1``, ``4.2.1(1)``, ``Part 3``, ``(a)``, ``12.``, ``B.``, ``Guidance``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

Value = tuple[tuple[int, str], ...]  # of "3.6A.4": (3, ""), (6, "A"), (4, "")

_BY_WORD: Final = {
    **dict.fromkeys(("schedule", "annex", "annexure", "appendix", "app", "book", "volume"), 0),
    "part": 1,
    "title": 2,
    "chapter": 3,
    **dict.fromkeys(("division", "subdivision", "section"), 4),
    **dict.fromkeys(("article", "rule", "regulation", "recital"), 5),
}
WORDS: Final = "|".join(_BY_WORD)
_SHORTENED: Final = {  # "Sec.", "Art.", "Chap."
    f"{word[:n]}.": word for word in _BY_WORD for n in range(3, len(word) - 1) if len(word) > 4
}
LEARNED: Final = ("learned above", "learned")  # styles of other words that a document numbers its parts with
SIGN: Final = "§"  # of a section, and of a paragraph where articles are counted, too
RANKS: Final[dict[str, float]] = {**_BY_WORD, LEARNED[0]: 4.3, LEARNED[1]: 4.6, SIGN: 5.5}
ARTICLE: Final = 5  # from this rank on, units are rules, which may have a text of their own
GUIDANCE: Final = "guidance"
MARKED: Final = 3  # numbered parts, or marked headings, from which the whole document is taken to number or mark them
DOTTED: Final = "dotted"

_CARDINALS: Final = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen".split()
ORDINALS: Final = (
    "first second third fourth fifth sixth seventh eighth ninth tenth "
    "eleventh twelfth thirteenth fourteenth fifteenth".split()
)
SPELLED: Final = {word: n for words in (_CARDINALS, ORDINALS) for n, word in enumerate(words, start=1)}
_SPELLED: Final = "|".join(form for word in SPELLED for form in (word.capitalize(), word.upper()))

_NUMBER = r"\d{1,3}(?:-?[A-Z]{1,2}\d{0,3})?"
# After a word that names the kind of part.
LATIN: Final = "bis|ter|quater|quinquies|sexies"
_NAMED = rf"\d{{1,4}}(?:-\d{{1,3}})*(?:\s?(?:{LATIN})\b|-?[A-Z]{{1,2}}\d{{0,3}}|(?!st|nd|rd|th)[a-z]{{1,2}})?"
_CODED = r"[A-Z]{2,4} [A-Z]{1,2}-\d{1,3}|[A-Z]{1,3}\.?[\s–-]?\d{1,3}(?:-\d{1,3})*"  # "Regulation SME R-2", "Annex H1"
_WORD = re.compile(
    rf"(?i:({WORDS}|{'|'.join(map(re.escape, _SHORTENED))}))\s?[–—-]?\s?"
    rf"(?:({_NAMED}|\(\d{{1,3}}\)|(?<=[\s–—-])(?-i:{_CODED}))|(?<=[\s–—-])(?-i:([IVXLC]+|[A-Z]|{_SPELLED})))"
    r"[°º]?(?!\w|[.,]?\d)[.:*]?(?=\s|$|[–—]|-(?!\d)|\([A-Z][a-z]|(?<=[.:])[A-Z][a-z])\s*[–—:-]?\s*"
)
_DOTTED = re.compile(rf"((?:[A-Z]{{1,5}}\d{{0,3}}|{_NUMBER})(?:\.{_NUMBER})+)(?:\.?(?=\s|$|\()|\.(?=[A-Z][a-z]))")
_PART = r"\d{1,4}[A-Za-z]{0,2}"
_BETWEEN: Final = "[.–‑-]"  # the parts of a number: some publishers set a dash or a hyphen that does not break
_SIGN = re.compile(
    rf"(?:(?:\d{{1,3}}\s[A-Z][\w.]{{1,6}}\s(?:Code\s)?)?§|(?i:section|sec\.?)(?=\s\d+(?:[A-Za-z]?-|\.\d+(?:\.\d|\.\s+[A-Z]|\s+(?-i:[A-Z])[^.]{{2,60}}\.?$))))\s?({_PART}(?:{_BETWEEN}{_PART})*[°º]?)[.:]?(?=[\s(]|$)(?:\s[–—-](?=\s))?"
)
_YEAR = r"(?:19|20)\d\d"
HYPHENED: Final = re.compile(  # "12-41-101 Title", no date
    rf"((?i:sec\w*\.?\s?)?)(?!{_YEAR}-|\d\d?-\d\d?-{_YEAR})"
    rf"({_PART}(?:-{_PART}){{1,3}}(?:\.\d{{1,4}}[A-Za-z]?)?|(?:[A-Z]{{1,4}}\s?|\d{{1,3}}:){_PART}(?:-{_PART}){{2,3}})"
    r"[.:]?(?=\s+[A-Z“\"‘]|$)\s*"
)
_BOOK = re.compile(r"[A-Z]{2,6}\s?(?=\d{1,3}\.)")  # the code of a book before a rule: "PRIN 2.1.1"
_LONG = re.compile(rf"((?!{_YEAR}\.$)\d{{4}})(\.)(?=\s+[A-Z]|$)")  # "2210. Title"
_LONG_DOTTED = re.compile(  # "1798.100. Title", no date
    rf"(?!\d\d?\.\d\d?\.{_YEAR}|{_YEAR}\.\d\d?\.\d\d?)(\d{{1,4}}(?:\.\d{{1,4}})+)(?:\.?(?=\s|$|\())"
)
_BARE = re.compile(rf"({_NUMBER}|\d{{1,3}}(?:{LATIN}))(?=\s+\S|$)")
_BARE_OPENING = re.compile(rf"({_NUMBER})(?=\s*\(1\)\s+[A-Z])")  # "24 (1) Every one who …"
_INSERTED = r"\d{1,3}[a-z]"  # "2a." after "2."
_ROUND = re.compile(rf"\((\d{{1,3}}\.\d{{1,2}}|{_NUMBER}|{_INSERTED}|[a-z]{{1,6}}|[A-Z]{{1,6}})\)")
_MARKED = re.compile(
    rf"({_NUMBER}|{_INSERTED}|[a-z]{{1,6}}|[A-Z]|[IVXLC]{{2,6}})(\.\)|[.)]|(?<=\d)[°º])(?=\s|$|[–—]?\(|[–—][A-Z]|(?<=\))[A-Z][a-z])"
)
_BEGUN = re.compile(r"([a1])([.)])\s+(?=[A-Z])")  # the first item of a list in the line of its rule: "2. a. A keeper …"
_BEGINS = re.compile(r"[A-Z][a-z]")  # "(a)The"
_GUIDANCE = re.compile(r"(Guidance|GUIDANCE)(?: notes?)?(?: on .{3,80})?:?$|(Notes?|Examples?|Explanatory notes?):?$")
_GUIDANCE_NAMED = re.compile(r"(Guidance|GUIDANCE)\s*[:–—-]?\s+(?=[A-Z])")  # in a heading with a title
_ONLY_ONE = re.compile(r"(Schedule|SCHEDULE|Annex|ANNEX|Appendix|APPENDIX)(?:\s*[:–—-].*)?$")  # if there is only one
NAMED_BOX: Final = re.compile(r"((?:[A-Z]\w*\s){0,2}[A-Z]\w*):\s")  # a box's name before its text: "Practice Note: …"
RUN_IN: Final = re.compile(r"([A-Z][A-Z /-]{2,40}):\s+(?=\S)")  # a title before its text: "DATES: Comments must …"
_ROMAN_DIGITS: Final = (
    (100, "c"),
    (90, "xc"),
    (50, "l"),
    (40, "xl"),
    (10, "x"),
    (9, "ix"),
    (5, "v"),
    (4, "iv"),
    (1, "i"),
)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a number. Its siblings share its ``style`` and are ordered by ``value``.

    ``other`` is the style and value of the second reading of a letter that may also be a Roman number. A doubled
    letter may also count in a list of its own: (aa), (bb).
    """

    printed: str
    style: str
    value: Value
    other: tuple[str, Value] | None = None

    def readings(self) -> Iterator[tuple[str, Value]]:
        yield self.style, self.value
        if self.other:
            yield self.other
        if len(self.printed) == 4 and self.printed[0] == "(" and self.printed[1] == self.printed[2]:
            yield f"({'aa' if self.printed[1].islower() else 'AA'})", ((ord(self.printed[1].lower()) - 96, ""),)


def rank_word(word: str) -> str:
    """The word that numbers parts, in full and in small letters: "article" for "Art"; "" for another word."""
    lowered = word.lower()
    return lowered if lowered in _BY_WORD else _SHORTENED.get(f"{lowered}.", "")


def letters(number: int) -> str:
    """1 -> a, 26 -> z, 27 -> aa, 28 -> bb, as in Word and legal drafting."""
    return chr(97 + (number - 1) % 26) * ((number - 1) // 26 + 1) if number > 0 else ""


def roman(number: int) -> str:
    """4 -> iv; empty for numbers below 1 and above 399."""
    if not 0 < number < 400:
        return ""
    found = ""
    for value, digits in _ROMAN_DIGITS:
        found += digits * (number // value)
        number %= value
    return found


def in_style(number: int, style: str) -> str:
    """A counted number in the style that HTML, CSS or Word names: ``A``, ``lower-latin``, ``upperRoman``; else 1, 2."""
    kind = style.lower()
    if kind == "i" or kind.endswith("roman"):
        text = roman(number)
    else:
        text = letters(number) if kind == "a" or kind.endswith(("alpha", "latin", "letter")) else str(number)
    return text.upper() if style in {"A", "I"} or kind.startswith("upper") else text


def from_roman(text: str) -> int:
    """Iv -> 4; 0 for a text that is not a Roman number below 400."""
    lowered, number, place = text.lower(), 0, 0
    for value, digits in _ROMAN_DIGITS:
        while lowered.startswith(digits, place):
            number += value
            place += len(digits)
    return number if roman(number) == lowered else 0


def is_label(text: str) -> bool:
    """Whether the whole text is a label; a bare number is one."""
    text = text.strip()
    if len(text) > _LONGEST:
        return False
    steps, rest = read_label(text, bare=True)
    return bool(steps) and not rest


_LONGEST: Final = 120  # characters of a label
_MOST_STEPS: Final = 12  # of one label; a text with more brackets is not a number


def split_label(text: str, *, bare: bool = False) -> tuple[str, str]:
    """The label as printed, without surrounding white space, and the rest of the text."""
    steps, rest = read_label(text, bare=bare)
    return (text[: len(text) - len(rest)].strip(), rest) if steps else ("", text)


@lru_cache(4096)  # several passes over the blocks of a document read the same labels
def read_label(text: str, *, bare: bool = False) -> tuple[tuple[Step, ...], str]:
    """The steps of the label at the start, () if there is none, and the rest without leading white space.

    If ``bare`` is true, a number without a mark after it counts, as in a heading ("4 Reporting") or in a column of its
    own.
    """
    steps: list[Step] = []
    place = 0
    if found := _GUIDANCE.match(text):
        return (Step(found[1] or found[2], GUIDANCE, ((0, ""),)),), "" if len(text.split()) < 3 else text
    if bare and (found := _GUIDANCE_NAMED.match(text)):
        return (Step(found[1], GUIDANCE, ((0, ""),)),), text[found.end() :]
    if bare and (found := _ONLY_ONE.match(text)):
        return (Step(found[1], found[1].lower(), ((0, ""),)),), text[found.end(1) :].lstrip(" :–—-\t")
    first = _word(text) or _sign(text) or _dotted(text, bare=bare) or _number(text, bare=bare)
    if first:
        steps.append(first[0])
        place = first[1] + bool(re.match("[–—][A-Z(]", text[first[1] :]))  # "14.—(1) A keeper …"
        begun = _BEGUN.match(text, place)
        if begun and (step := _step("", begun[1], begun[2])) and step.style != steps[0].style:
            steps.append(step)
            place = begun.end()
    while len(steps) < _MOST_STEPS and (found := _ROUND.match(text, place)) and (step := _step("(", found[1], ")")):
        if steps and not opens_list(step) and text[place - 1].isspace():
            break
        steps.append(step)
        place = _behind(text, found.end())
    rest = text[place:].lstrip()
    joined = bool(rest) and text[:place].rstrip() == text[:place] and not _BEGINS.match(rest)
    if steps and steps[-1].style.startswith("(") and joined:
        return (), text  # "(a)bc": no label
    return tuple(steps), rest


def _word(text: str) -> tuple[Step, int] | None:
    found = _WORD.match(text)
    if not found or text[0].islower():  # "section 58 applies" refers to another section
        return None
    number = found[2] or found[3]
    spelled = SPELLED.get(number.lower()) or from_roman(number) or ord(number[0]) - 64
    value = component(number) if found[2] else (spelled, "")
    named = found[1].lower()
    if named in _SHORTENED and "-" in number:  # "Sec. 53a-24" is read as "§ 53a-24"
        return None
    printed = re.sub(r"[\s.:*–—-]+$", "", found[0])
    return Step(printed, _SHORTENED.get(named, named), (value,)), found.end()


def _sign(text: str) -> tuple[Step, int] | None:
    found = _SIGN.match(text)
    if not found:
        return None
    printed = f"§ {found[1]}" if "§" in found[0] else text[: found.end(1)]
    return parted(printed, found[1]), _behind(text, found.end())


def parted(printed: str, number: str) -> Step:
    """The step of a number of several parts, or of one behind the sign of sections."""
    value = tuple(map(component, re.split(_BETWEEN, number)))
    return Step(printed, DOTTED if len(value) > 1 else SIGN, value)


def _dotted(text: str, *, bare: bool) -> tuple[Step, int] | None:
    book = _BOOK.match(text) if bare else None
    start = book.end() if book else 0
    found = _DOTTED.match(text, start) or (_LONG_DOTTED.match(text) if bare else None)
    if not found:
        return None
    step = parted(text[: found.end(1)], found[1])
    if book and (word := rank_word(book[0].strip())):  # "TITLE 1.81.26"
        step = replace(step, style=word)
    return step, _behind(text, found.end())


def _number(text: str, *, bare: bool) -> tuple[Step, int] | None:
    found = _MARKED.match(text) or (_LONG.match(text) if bare else None)
    step = _step("", found[1], found[2]) if found else None
    if not step and (found := (_BARE if bare else _BARE_OPENING).match(text)):
        step = Step(found[1], "1.", (component(found[1]),))
    if bare and text[-1:] == "." and (word := text[:-1].lower()) in ORDINALS:
        return Step(text[:-1], "1." if text.isupper() else "1)", ((SPELLED[word], ""),)), len(text)
    return (step, _behind(text, found.end())) if found and step else None


def _step(before: str, text: str, after: str) -> Step | None:
    """A number, letter or Roman number between its marks; None for a word."""
    printed = f"{before}{text}{after}"
    after = after[-1]  # "a.)" is a way to write "a)"
    if text[0].isdigit():
        return Step(printed, f"{before}1{after}", (component(text),))
    lowered = text.lower()
    as_roman = from_roman(lowered)
    letter = "a" if text.islower() else "A"
    styles = f"{before}{letter}{after}", f"{before}{'i' if text.islower() else 'I'}{after}"
    if len(set(lowered)) == 1 and len(text) < 4:
        value = ((26 * (len(text) - 1) + ord(lowered[0]) - 96, ""),)
        inserted = (styles[0], ((ord(lowered[0]) - 96, text[1:]),)) if len(text) == 2 else None  # "(aa)" behind "(a)"
        return Step(printed, styles[0], value, (styles[1], ((as_roman, ""),)) if as_roman else inserted)
    if len(text) == 2 and before and not as_roman:  # "(ba)" behind "(b)"
        return Step(printed, styles[0], ((ord(lowered[0]) - 96, text[1:]),))
    return Step(printed, styles[1], ((as_roman, ""),)) if as_roman else None


def component(text: str) -> tuple[int, str]:
    """6A -> (6, "A"); letters before a number count after it: A2 -> (2, "A"); 3E12 -> (3, "E012")."""
    digits = re.search(r"\d+", text)
    if not digits:
        return (0, text)
    letters = (text[: digits.start()] + text[digits.end() :]).strip(" -°º")
    return int(digits[0]), re.sub(r"\d+", lambda found: found[0].zfill(3), letters)


def follows(before: Value, after: Value) -> bool:
    """Whether the second may be the next sibling of the first: 3 -> 4, 3 -> 3A, 3A -> 3B, 3B -> 4."""
    if len(before) != len(after) or before[:-1] != after[:-1]:
        return False
    (number, suffix), (next_number, next_suffix) = before[-1], after[-1]
    if next_number == number + 1:
        return not next_suffix or next_suffix in {"A", "a"} or next_suffix == suffix
    return next_number == number and (len(next_suffix), next_suffix) > (len(suffix), suffix)


def opens_list(step: Step) -> bool:
    """Whether a list may begin with this step, in one of its readings."""
    return any(opens(value) for _, value in step.readings())


def is_later(before: Value, after: Value) -> bool:
    """Whether the second may be a later sibling of the first; siblings between them may be missing."""
    return len(before) == len(after) and before[:-1] == after[:-1] and after[-1] > before[-1]


def opens(value: Value) -> bool:
    """Whether a list may begin with this value."""
    return value[-1][0] in {0, 1} and value[-1][1] in {"", "A"}


def _behind(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place

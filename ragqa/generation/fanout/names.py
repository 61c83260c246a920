"""Finds names in English text: runs of capitalised words, quoted titles, and groups joined by "and" or "or". Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from ragqa.types import Span

MAX_NAME_WORDS = 10  # a longer run of capitals is a heading

_TOKEN = re.compile(r"\"[^\"\n]{2,80}\"|“[^”\n]{2,80}”|[^\W_](?:[\w’'&./-]*[\w’'])?\.?|[^\w\s]")
_CONNECTING = "of the in de la le du da di del von van der den al ibn bin et for on at to & y e"
_SMALL = """
a an the this that these those it its he his him she her they their them we our us i my you your who whom whose which
what where when why how is are was were be been being am do does did has have had can could may might must shall should
will would not no nor and or but if then than as at by for from in into of on off onto out over to under up upon with
within without about above across after against along among around before behind below beside between both each either
neither during every few many more most much other some such same so since there here through until while also all any
another however although because
"""
_BEGINNING = """
name list tell give find according following one two three four five six seven eight nine ten first second third born
known based besides
"""
_CONNECTORS = frozenset(_CONNECTING.split())
SMALL_WORDS = frozenset(_SMALL.split())
FUNCTION_WORDS = SMALL_WORDS | frozenset(_BEGINNING.split())  # never begin a name, even if capitalised
_LINK = r"\s*(,|,?\s*(?:and|or|versus|vs\.?|&)(?:\s+(?:also|the|a|an|both))?)\s*(?:the\s+)?"
_JOINED = re.compile(_LINK, re.IGNORECASE)
_LAST = re.compile(r"and|or|versus|vs|&", re.IGNORECASE)
_HYPHENATED = re.compile(r"(?:al|el|bin|d|o)[-'’][A-ZÀ-Þ]")  # al-Tabari, d'Arc
_QUALIFIER = re.compile(r"\s*\([^)]*\)\s*$")


def names_in(text: str, known: Sequence[str] = ()) -> tuple[Span, ...]:
    """The names in reading order, without overlap: ``Bank of England``, ``K2``, ``"Party Never Ends"`` (no quotes).

    A name is a run of capitalised words, with small connecting words between them, that does not begin with a function
    word ("Which", "The", at the start of a sentence). Each of ``known``, such as titles of passages, is one name
    wherever it occurs, even if it contains "and" or a comma.
    """
    whole = _known_in(text, known)
    names = list(whole)
    run: list[re.Match[str]] = []
    for token in _TOKEN.finditer(text):
        if any(span.start < token.end() and token.start() < span.end for span in whole):
            names += _name(text, run)
            run = []
        elif token[0][0] in '"“':
            names += _name(text, run)
            run = []
            names.append(Span(text[token.start() + 1 : token.end() - 1], token.start() + 1, token.end() - 1))
        elif _is_capital(token[0]) or (run and token[0].lower() in _CONNECTORS and not run[-1][0].isdigit()):
            ends = token[0].endswith(".") and not _is_abbreviation(token[0])
            run.append(token)
            if ends:
                names += _name(text, run)
                run = []
        else:
            names += _name(text, run)
            run = []
    names += _name(text, run)
    return tuple(sorted(names, key=lambda span: span.start))


def groups_of(text: str, names: Sequence[Span]) -> tuple[tuple[Span, ...], ...]:
    """Groups of two or more names that are joined by "and" or "or": ``A or B``, ``A, B and C``."""
    groups: list[tuple[Span, ...]] = []
    chain: list[Span] = list(names[:1])
    is_whole = False  # whether the last link was an "and"
    for before, name in pairwise(names):
        link = _JOINED.fullmatch(_unquoted(text[before.end : name.start]))
        if link and not is_whole:
            chain.append(name)
            is_whole = bool(_LAST.search(link[1]))
        else:
            groups += [tuple(chain)] if is_whole else []
            chain, is_whole = [name], False
    return tuple([*groups, tuple(chain)] if is_whole else groups)


def plain_name(name: str) -> str:
    """A name as it is compared: in lower case, without quotes, a leading "the" and a qualifier such as "(river)"."""
    bare = _QUALIFIER.sub("", name).casefold().strip(" \"'“”.,")
    return " ".join(bare.removeprefix("the ").split())


def _known_in(text: str, known: Sequence[str]) -> list[Span]:
    """Where these names occur as whole words, longer names first."""
    found: list[Span] = []
    for name in sorted({_QUALIFIER.sub("", name) for name in known if len(name) > 2}, key=lambda name: -len(name)):
        if not name or not _is_capital(name) or name.casefold() in FUNCTION_WORDS:
            continue
        for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text):
            if not any(span.start < match.end() and match.start() < span.end for span in found):
                found.append(Span(match[0], match.start(), match.end()))
    return found


def _name(text: str, run: Sequence[re.Match[str]]) -> list[Span]:
    """The name in these tokens, if any, without leading function words and trailing connecting words."""
    tokens = list(run)
    while tokens and tokens[0][0].casefold().rstrip(".") in FUNCTION_WORDS:
        tokens.pop(0)
    while tokens and not _is_capital(tokens[-1][0]):
        tokens.pop()
    if not tokens or len(tokens) > MAX_NAME_WORDS:
        return []
    start, end = tokens[0].start(), tokens[-1].end()
    if text[end - 1] == "." and not _is_abbreviation(tokens[-1][0]):
        end -= 1
    name = re.sub(r"['’]s$", "", text[start:end])
    if not any(character.isalpha() for character in name) or len(name) < 2:
        return []
    return [Span(name, start, start + len(name))]


def _is_capital(token: str) -> bool:
    return token[0].isupper() or token[0].isdigit() or bool(_HYPHENATED.match(token))


def _is_abbreviation(token: str) -> bool:
    """``J.``, ``U.S.``, ``St.``, ``Jr.``: a full stop that does not end a sentence."""
    return len(token) <= 3 or token.count(".") > 1


def _unquoted(gap: str) -> str:
    return re.sub(r"['’]s\b", "", gap).strip('"“” \t') if any(mark in gap for mark in '"“”') else gap

"""Splits an obligation into clauses, each with its subject. Pure.

"A firm must keep a log, review it every year and tell its staff" has three clauses, which share the subject and the
modal verb. The analysis is shallow, as in `ragqa.english.phrases`: commas and "and" after the modal verb separate them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ragqa.english.phrases import BE, DETERMINERS, MODALS, PRONOUNS, ParsedSentence, TaggedWord, is_base
from ragqa.types import Span

_EDGES: Final = " \t\n,;:."
_LEAST: Final = 2  # words of a clause


@dataclass(frozen=True, slots=True)
class Clause:
    """The span of a clause in its sentence, and the clause as a complete sentence."""

    span: Span
    text: str


def clauses(text: str) -> tuple[Clause, ...]:
    """The clauses of a sentence; the sentence itself if it cannot be split."""
    tokens = ParsedSentence(text).tokens
    modal = main_modal(text, tokens)
    if modal is None or modal + 1 >= len(tokens):
        return (Clause(Span(text, 0, len(text)), text),)
    verb = modal + 1 + (tokens[modal + 1].lower == "not" and modal + 2 < len(tokens))
    subject, lead = text[: tokens[modal].start], text[: tokens[verb].start]
    found: list[Clause] = []
    for span in _pieces(text, tokens, verb):
        words = ParsedSentence(span.text).tokens
        if not words:  # marks alone
            continue
        first = words[0]
        if not found:
            found.append(Clause(Span(text[: span.end], 0, span.end), text[: span.end]))
            continue
        is_adjunct = first.tag == "prep"
        before = (
            f"{found[0].text} "
            if is_adjunct
            else subject
            if is_modal(first)
            else lead
            if is_base(first.lower)
            else text[: tokens[verb].end] + " "
        )
        found.append(Clause(span, before + span.text))
    return tuple(found)


def _pieces(text: str, tokens: Sequence[TaggedWord], verb: int) -> Iterator[Span]:
    """The pieces of the text between cuts; words that form no clause belong to the piece before."""
    start, depth = 0, 0
    for n in range(verb + 1, len(tokens)):
        token = tokens[n]
        depth += (token.text in "([") - (token.text in ")]")
        is_cut = token.text in {",", ";"} or (token.lower in {"and", "nor"} and tokens[n - 1].text not in {",", ";"})
        if depth or not is_cut or token.start < start:
            continue
        rest = n + 1 + (n + 1 < len(tokens) and tokens[n + 1].lower in {"and", "nor"})
        if rest < len(tokens) and _stands_alone(tokens, rest):
            yield _trimmed(text, start, token.start)
            start = tokens[rest].start
    yield _trimmed(text, start, len(text))


def _stands_alone(tokens: Sequence[TaggedWord], n: int) -> bool:
    """Whether a clause begins here: not a single word, not a condition, not the words after "his or"."""
    first, before = tokens[n], tokens[n - 2 : n]
    ends = (m for m in range(n, len(tokens)) if tokens[m].text in {",", ";", "."} or tokens[m].lower in {"and", "nor"})
    is_long = next(ends, len(tokens)) - n >= _LEAST
    is_joined = any(one.lower in DETERMINERS | PRONOUNS for one in before[:1])
    return is_long and first.tag not in {"link", "wh"} and first.lower not in {"or", "not"} and not is_joined


def _trimmed(text: str, start: int, end: int) -> Span:
    words = text[start:end].strip(_EDGES)
    begin = start + text[start:end].index(words)
    return Span(words, begin, begin + len(words))


# The main clause and the clause before it ----------------------------------------------------------------------------


def is_modal(token: TaggedWord) -> bool:
    """Whether the token is a modal verb or a form of "be"."""
    return token.lower in MODALS or token.lower in BE


def main_modal(text: str, tokens: Sequence[TaggedWord]) -> int | None:
    """The index of the main clause's modal verb, not after a relative pronoun ("facts that would"); None if none."""
    begin = leading_clause(text, tokens)
    return next((n for n, token in enumerate(tokens) if token.start >= begin and _is_main(tokens, n)), None)


def _is_main(tokens: Sequence[TaggedWord], n: int) -> bool:
    return is_modal(tokens[n]) and not (n and tokens[n - 1].lower in {"that", "which", "who"})


def opens_clause(token: TaggedWord) -> bool:
    """Whether the token is a conjunction that opens a condition, such as "if" or "where", unlike "and" or "that"."""
    return token.lower in {"if", "when", "where", "unless", "until", "while"}


def leading_clause(text: str, tokens: Sequence[TaggedWord]) -> int:
    """The offset at which the clause before the main clause ends; 0 if there is none.

    It ends at the first comma that is followed by a subject and its modal verb, with no comma or clause between them.
    Without such a comma, it ends before a subject that begins with a determiner.
    """
    is_opened = any(opens_clause(token) or token.tag == "prep" for token in tokens[:1])
    if not is_opened and not any(token.lower == "to" for token in tokens[1:2]):  # "Subject to", "Pursuant to"
        return 0
    for n, token in enumerate(tokens):
        if token.text != ",":
            continue
        for follower in tokens[n + 1 :]:
            if is_modal(follower):
                return token.start
            if follower.tag in {"link", "wh", "mark", "verb"} or (follower is tokens[n + 1] and follower.tag == "prep"):
                break
    return _without_comma(tokens)


def _without_comma(tokens: Sequence[TaggedWord]) -> int:
    """The offset of a subject with a determiner before a modal verb: "While it is shut a shop must"; 0 if none."""
    for n, token in enumerate(tokens):
        run = n
        while run and tokens[run - 1].tag in {"word", "det"} and (run == n or tokens[run].tag != "det"):
            run -= 1
        if is_modal(token) and 2 < run < n and tokens[run].tag == "det":
            return tokens[run].start
    return 0

"""Verbatim sentences of the kept passages, and the answer put together from some of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ragqa.cleaning import without_controls
from ragqa.generation.answers import separator_after
from ragqa.sentences import split_sentences
from ragqa.types import Answer, AnswerSentence, Passage

_NUMBERING = re.compile(r"\A(?:\(?(?:\d{1,3}|[a-z]|[ivx]{1,5})(?:\.\d{1,3})*[.)]+\s+)+")  # "3.2.1. ", "(a) ", "iv) "


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence on one line and the 1-based numbers of the passages that hold it; quotes keep the passages' order."""

    text: str
    citations: tuple[int, ...]


def quotes_of(passages: Sequence[Passage]) -> list[Quote]:
    """Every sentence once, in the order of the passages, with the numbers of all passages that hold it.

    White space inside a sentence becomes single spaces. Sentences are the same when their words are: sentences that
    merely resemble each other ("must" and "must not", 10 days and 20 days) are different rules and both stay.
    """
    texts: dict[str, str] = {}
    numbers: dict[str, list[int]] = {}
    for number, passage in enumerate(passages, start=1):
        for span in split_sentences(without_controls(passage.text)):
            text = " ".join(span.text.split())
            key = _words(text)
            texts.setdefault(key, text)
            held = numbers.setdefault(key, [])
            if number not in held:
                held.append(number)
    return [Quote(text, tuple(numbers[key])) for key, text in texts.items()]


def _words(text: str) -> str:
    """What two near-identical sentences share: the words in lower case, without punctuation or a leading number.

    A text without any word stands for itself.
    """
    return " ".join(re.findall(r"\w+", _NUMBERING.sub("", text.casefold()))) or text


def quoted(quotes: Sequence[Quote], generator: str, note: str) -> Answer:
    """The answer that consists of these sentences, each with its citations."""
    text = ""
    sentences = []
    for quote in quotes:
        text += separator_after(text) if text else ""
        sentences.append(AnswerSentence(quote.text, len(text), len(text) + len(quote.text), quote.citations))
        text += quote.text
    return Answer(text, tuple(sentences), generator, "", raw="".join(pieces_of(quotes)), note=note)


def pieces_of(quotes: Sequence[Quote]) -> list[str]:
    """``"sentence [1][3] "`` for each: what is streamed."""
    return [
        quote.text + " " + "".join(f"[{number}]" for number in quote.citations) + separator_after(quote.text)
        for quote in quotes
    ]

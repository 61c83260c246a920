"""Answers that every generator gives alike, and answers put together from sentences. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from ragqa.types import Answer, AnswerSentence

NOTHING_KEPT = (
    "No passage was kept, so there is nothing to answer from. Lower the threshold, raise the max drop, "
    "or ask in the words of the corpus."
)


def empty_answer(generator: str, model: str, note: str) -> Answer:
    """An answer without text or sentences, finish reason ``"empty"``, whose note says why and what to change."""
    return Answer(text="", sentences=(), generator=generator, model=model, finish_reason="empty", note=note)


def nothing_kept(generator: str, model: str) -> Answer:
    """What every generator returns, at once and without asking anybody, when filtering kept no passage."""
    return empty_answer(generator, model, NOTHING_KEPT)


def separator_after(text: str) -> str:
    """What ends a sentence in running text: a space after its full stop, a line end where it has none."""
    return " " if text.rstrip("\"'”’)]»").endswith((".", "!", "?")) else "\n"


def composed(answer: Answer, parts: Iterable[tuple[str, AnswerSentence]]) -> Answer:
    """The answer with these sentences and no others, each after its separator; text, offsets and raw follow."""
    text = ""
    sentences = []
    for separator, sentence in parts:
        text += separator if text else ""
        sentences.append(replace(sentence, start=len(text), end=len(text) + len(sentence.text)))
        text += sentence.text
    new = replace(answer, text=text, sentences=tuple(sentences))
    return replace(new, raw=marked(new))


def without(answer: Answer, indexes: Collection[int]) -> Answer:
    """The answer without these sentences. The white space before a sentence stays; a line end is not lost."""
    parts = []
    gap, position = "", 0
    for index, sentence in enumerate(answer.sentences):
        before = answer.text[position : sentence.start]
        gap = max(gap, before, key=lambda space: (space.count("\n"), len(space)))
        position = sentence.end
        if index not in indexes:
            parts.append((gap, sentence))
            gap = ""
    return composed(answer, parts)


def marked(answer: Answer) -> str:
    """The text with its citations as marks after each sentence, as a language model would write it."""
    pieces, position = [], 0
    for sentence in answer.sentences:
        pieces.append(answer.text[position : sentence.end])
        if sentence.citations:
            pieces.append(" " + "".join(f"[{number}]" for number in sentence.citations))
        position = sentence.end
    return "".join(pieces) + answer.text[position:]

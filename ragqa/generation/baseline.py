"""The kept passages themselves as the answer, verbatim and cited: the baseline that other generators must beat."""

from __future__ import annotations

from collections.abc import Generator as Stream
from collections.abc import Sequence

from ragqa.english.sentences import split_sentences
from ragqa.generation.answers import composed, empty_answer, nothing_kept
from ragqa.generation.prompts import NO_TEXT
from ragqa.infra.cleaning import without_controls
from ragqa.types import Answer, AnswerSentence, Passage, Question
from ragqa.types.events.generation import Token


class BaselineGenerator:
    """Quotes every sentence of every kept passage, best passage first."""

    name = "the kept passages, no language model"
    model = ""

    def stream(self, question: Question, passages: Sequence[Passage]) -> Stream[Token, None, Answer]:
        """Yields one token per passage; returns their sentences with citations, and a blank line between passages."""
        if not passages:
            return nothing_kept(self.name, self.model)
        parts = []
        for number, passage in enumerate(passages, start=1):
            text = without_controls(passage.text)
            position = 0
            for span in split_sentences(text):
                between = "\n" if "\n" in text[position : span.start] else " "
                separator = between if position else "\n\n"
                sentence = " ".join(span.text.split())
                parts.append((separator, AnswerSentence(sentence, 0, len(sentence), (number,))))
                position = span.end
        answer = composed(Answer("", (), self.name, self.model), parts)
        if not answer.sentences:
            return empty_answer(self.name, self.model, NO_TEXT)
        pieces = answer.raw.split("\n\n")
        yield from (Token(piece + "\n\n") for piece in pieces[:-1])
        yield Token(pieces[-1])
        return answer

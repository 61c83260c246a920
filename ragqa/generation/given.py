"""A generator that returns a text written elsewhere, with the passages retrieved for each of its sentences."""

from __future__ import annotations

from collections.abc import Generator as Stream
from collections.abc import Sequence
from dataclasses import replace

from ragqa.english.phrases import AUXILIARIES, PRONOUNS
from ragqa.english.sentences import reads_as_heading
from ragqa.generation.citations import parse_cited_text
from ragqa.generation.fanout.merging import RankedSubQuestion, Tree
from ragqa.plugins.protocols import Search
from ragqa.scoring.repass.attribution import marks
from ragqa.settings.config import FilteringConfig
from ragqa.types import Answer, AnswerSentence, Question, Ranking, Selection, SubQuestion
from ragqa.types.events.generation import GenerationEvent, SubQuestionsAsked, Token, Working
from ragqa.types.events.pipeline import Selected

NOTE = "Not written here: passages were looked up for each sentence by itself and for the text as a whole."


class GivenText:
    """Returns the text that a question carries as its answer, split into sentences, without citations."""

    name = "a text given to be checked"
    model = ""

    def __init__(self, filtering: FilteringConfig) -> None:
        self._filtering = filtering

    def stream_searching(
        self, question: Question, ranking: Ranking, search: Search
    ) -> Stream[GenerationEvent | Selected, None, tuple[Answer, Selection]]:
        """Searches for each sentence and merges all kept passages into one selection, as a fan-out does.

        ``ranking`` is that of the whole text. Citation marks in the text refer to other passages, so they are removed.
        """
        read = parse_cited_text(question.given, 0)
        read = replace(read, sentences=without_headings(read.text, read.sentences))
        asked = [
            SubQuestion(number, sentence.text, reason="A sentence of the text that is checked.", is_sentence=True)
            for number, sentence in enumerate(read.sentences, start=1)
        ]
        yield SubQuestionsAsked(tuple(asked), "rules")
        tree = Tree(ranking, self._filtering)
        for one in asked:
            yield Working(f"Retrieving for sentence {one.number} of {len(asked)}")
            _, event = tree.add(RankedSubQuestion(one, search(one.text)))
            yield event
        selection = tree.selection
        yield Selected(selection)
        yield Token(read.text)
        left_out = f" Its citation marks {marks(read.rejected)} count other passages and are left out."
        note = NOTE + (left_out if read.rejected else "")
        reason = "stop" if read.sentences else "empty"
        answer = Answer(read.text, read.sentences, self.name, self.model, raw=question.given, finish_reason=reason)
        return replace(answer, note=note), selection


def without_headings(text: str, sentences: Sequence[AnswerSentence]) -> tuple[AnswerSentence, ...]:
    """The sentences without the headings above them, which claim nothing.

    A heading is a short line with text below it and without end punctuation, auxiliary verb or pronoun.
    """
    found = []
    following = [*(one.text for one in sentences[1:]), ""]
    for sentence, after in zip(sentences, following, strict=False):  # a text may have no sentence
        lines = sentence.text.split("\n")
        while lines and _is_heading(lines[0], next(filter(None, (*lines[1:], after)), "")):
            del lines[0]
        start = sentence.end - len("\n".join(lines))
        if lines and text[start : sentence.end].strip():
            found.append(replace(sentence, text=text[start : sentence.end], start=start))
    return tuple(found)


def _is_heading(line: str, after: str) -> bool:
    """Whether this line is a heading above the text ``after``; a blank line counts as one."""
    if not line.strip():
        return True
    says = {word.casefold() for word in line.split()} & (AUXILIARIES | PRONOUNS)
    return bool(after) and reads_as_heading(line) and not line.endswith((":", "!", "?")) and not says

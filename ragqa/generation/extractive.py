"""An answer without a language model: the obligation sentences of the kept passages, verbatim and cited."""

from __future__ import annotations

import re
from collections.abc import Generator as Stream
from collections.abc import Sequence
from dataclasses import dataclass

from ragqa.cleaning import without_controls
from ragqa.config import GenerationConfig
from ragqa.events import Token
from ragqa.generation.answers import empty_answer, nothing_kept, separator_after
from ragqa.protocols import Encoder, ObligationClassifier
from ragqa.sentences import split_sentences
from ragqa.types import Answer, AnswerSentence, Passage, Question

__all__ = ["FALLBACK_SENTENCES", "MIN_WORDS", "RELEVANCE_RATIO", "ExtractiveGenerator"]

# A sentence must reach this share of the best sentence's cosine. Measured with all-MiniLM-L6-v2 on 171 ADGM questions
# whose BM25 top 5 held a gold obligation: 0.5 keeps 192 of 192 gold obligations and leaves out 37 of 437 others.
RELEVANCE_RATIO = 0.5
FALLBACK_SENTENCES = 6  # most sentences quoted where no passage obliges anybody: a paragraph
MIN_WORDS = 4  # shorter ones are headings and fragments, quoted as a fallback only where there is nothing else

_NUMBERING = re.compile(r"\A(?:\(?(?:\d{1,3}|[a-z]|[ivx]{1,5})(?:\.\d{1,3})*[.)]+\s+)+")  # "3.2.1. ", "(a) ", "iv) "

NO_OBLIGATION = (
    "No sentence of the kept passages was recognised as an obligation, so the sentences most relevant to the question "
    "are quoted instead."
)
NO_TEXT = "The kept passages hold no text to quote. Lower the threshold or raise the max drop to keep further passages."


@dataclass(frozen=True, slots=True)
class _Quote:
    """A sentence on one line and the 1-based numbers of the passages that hold it; quotes keep the passages' order."""

    text: str
    citations: tuple[int, ...]


class ExtractiveGenerator:
    """Quotes what the passages oblige somebody to do, most relevant to the question first."""

    name = "extractive, no language model"
    model = ""

    def __init__(self, obligations: ObligationClassifier, encoder: Encoder, config: GenerationConfig) -> None:
        self._obligations = obligations
        self._encoder = encoder
        self._config = config

    def stream(self, question: Question, passages: Sequence[Passage]) -> Stream[Token, None, Answer]:
        """Yields one token per quoted sentence, ``"sentence [1][3] "``, and returns the answer made of them.

        Obligation sentences by descending cosine with the question (ties: passage, then position), those below
        `RELEVANCE_RATIO` of the best left out, at most ``max_sentences``. Where no sentence obliges anybody, the most
        relevant sentences of at least `MIN_WORDS` words by the same rule, at most `FALLBACK_SENTENCES`, and a note
        that says so. No passage, or none with text: an empty answer whose note says what to change.
        """
        if not passages:
            return nothing_kept(self.name, self.model)
        quotes = _quotes(passages)
        if not quotes:
            return empty_answer(self.name, self.model, NO_TEXT)
        flags = self._obligations.classify([quote.text for quote in quotes])
        obligations = [quote for quote, obliges in zip(quotes, flags, strict=True) if obliges]
        if obligations:
            chosen = self._most_relevant(question, obligations, self._config.max_sentences)
            note = _left_out(len(obligations), len(chosen))
        else:
            sentences = [quote for quote in quotes if len(quote.text.split()) >= MIN_WORDS] or quotes
            chosen = self._most_relevant(question, sentences, min(self._config.max_sentences, FALLBACK_SENTENCES))
            note = NO_OBLIGATION
        yield from (Token(piece) for piece in _raw(chosen))
        return self._answer(chosen, note)

    def _most_relevant(self, question: Question, quotes: Sequence[_Quote], limit: int) -> list[_Quote]:
        vectors = self._encoder.encode([quote.text for quote in quotes])
        cosines = [float(cosine) for cosine in vectors @ self._encoder.encode_query(question.text)[0]]
        best = max(cosines)
        floor = min(best, RELEVANCE_RATIO * best)  # of a best below 0, only its equals remain
        order = sorted(range(len(quotes)), key=lambda index: (-cosines[index], index))
        return [quotes[index] for index in order if cosines[index] >= floor][:limit]

    def _answer(self, quotes: Sequence[_Quote], note: str) -> Answer:
        text = ""
        sentences = []
        for quote in quotes:
            text += separator_after(text) if text else ""
            sentences.append(AnswerSentence(quote.text, len(text), len(text) + len(quote.text), quote.citations))
            text += quote.text
        raw = "".join(_raw(quotes))
        return Answer(text, tuple(sentences), self.name, self.model, raw=raw, note=note)


def _quotes(passages: Sequence[Passage]) -> list[_Quote]:
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
    return [_Quote(text, tuple(numbers[key])) for key, text in texts.items()]


def _words(text: str) -> str:
    """What two near-identical sentences share: the words in lower case, without punctuation or a leading number.

    A text without any word stands for itself.
    """
    return " ".join(re.findall(r"\w+", _NUMBERING.sub("", text.casefold()))) or text


def _raw(quotes: Sequence[_Quote]) -> list[str]:
    return [
        quote.text + " " + "".join(f"[{number}]" for number in quote.citations) + separator_after(quote.text)
        for quote in quotes
    ]


def _left_out(n_obligations: int, n_quoted: int) -> str:
    if n_quoted == n_obligations:
        return ""
    return f"{n_quoted} of {n_obligations} obligations are quoted; the others are less relevant to the question."

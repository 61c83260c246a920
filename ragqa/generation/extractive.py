"""An answer without a language model: the obligation sentences of the kept passages, verbatim and cited."""

from __future__ import annotations

from collections.abc import Generator as Stream
from collections.abc import Sequence

from ragqa.generation.answers import Quote, empty_answer, nothing_kept, pieces_of, quoted, quotes_of
from ragqa.generation.prompts import NO_TEXT
from ragqa.plugins.protocols import Encoder, ObligationClassifier
from ragqa.settings.config import GenerationConfig
from ragqa.types import Answer, Passage, Question
from ragqa.types.events.generation import Token

# A sentence must reach this share of the best sentence's cosine. Measured with all-MiniLM-L6-v2 on 171 ADGM questions
# whose BM25 top 5 held a gold obligation: 0.5 keeps 192 of 192 gold obligations and leaves out 37 of 437 others.
RELEVANCE_RATIO = 0.5
FALLBACK_SENTENCES = 6  # most sentences quoted if no sentence is an obligation: a paragraph
MIN_WORDS = 4  # shorter ones are headings and fragments, quoted as a fallback only if there is nothing else

NO_OBLIGATION = (
    "No sentence of the kept passages was recognised as an obligation, so the sentences most relevant to the question "
    "are quoted instead."
)


class ExtractiveGenerator:
    """Quotes the obligations in the passages, most relevant to the question first."""

    name = "extractive, no language model"
    model = ""

    def __init__(self, obligations: ObligationClassifier, encoder: Encoder, config: GenerationConfig) -> None:
        self._obligations = obligations
        self._encoder = encoder
        self._config = config

    def stream(self, question: Question, passages: Sequence[Passage]) -> Stream[Token, None, Answer]:
        """Yields one token per quoted sentence, ``"sentence [1][3] "``, and returns the answer made of them.

        It quotes obligation sentences by descending cosine with the question (ties: passage, then position), at most
        ``max_sentences`` and none below `RELEVANCE_RATIO` of the best. If no sentence is an obligation, it quotes at
        most `FALLBACK_SENTENCES` of the most relevant sentences of at least `MIN_WORDS` words by the same rule, and a
        note says so. Without passages, or without text in them, the answer is empty and its note says what to change.
        """
        if not passages:
            return nothing_kept(self.name, self.model)
        quotes = quotes_of(passages)
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
        yield from (Token(piece) for piece in pieces_of(chosen))
        return quoted(chosen, self.name, note)

    def _most_relevant(self, question: Question, quotes: Sequence[Quote], limit: int) -> list[Quote]:
        vectors = self._encoder.encode([quote.text for quote in quotes])
        cosines = [float(cosine) for cosine in vectors @ self._encoder.encode_query(question.text)[0]]
        best = max(cosines)
        floor = min(best, RELEVANCE_RATIO * best)  # if the best is below 0, only equals of it remain
        order = sorted(range(len(quotes)), key=lambda index: (-cosines[index], index))
        return [quotes[index] for index in order if cosines[index] >= floor][:limit]


def _left_out(n_obligations: int, n_quoted: int) -> str:
    if n_quoted == n_obligations:
        return ""
    return f"{n_quoted} of {n_obligations} obligations are quoted; the others are less relevant to the question."

"""Answer relevance: how far an answer answers its question, part by part. It is not part of RePASs.

RePASs measures whether the passages support an answer, but an answer to another question may be supported word for
word. A part's relevance is the highest probability, by the answer selector, that one of the answer's sentences answers
it; each sentence is read under the headings of the passage that it cites. Without a selector, and for questions in
other languages, relevance is estimated from cosine similarity and shared words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from types import MappingProxyType
from typing import Final

from ragqa.corpus.numbered import asks_only_for, without_names
from ragqa.english.reading import read
from ragqa.english.words import ENGLISH, language_of, words_of
from ragqa.generation.direct.asking import UNNAMED, Part, parts_of
from ragqa.generation.direct.weighing import (
    BORROWED,
    heading_above,
    in_context,
    log_odds,
    logistic,
    unread_names,
    vectors_of,
)
from ragqa.plugins.protocols import Encoder, Selector
from ragqa.types import Answer, AnswerSentence, Passage, Question
from ragqa.types.events.scoring import PartRelevance, Relevance

LINE: Final = 0.5  # probability from which a part counts as answered
MOST_SENTENCES: Final = 60  # of an answer that are read; the rest of a longer answer is not
READ: Final = 12  # nearest sentences that the selector reads, for all parts together
# Weights without a selector, fitted on the open half of `ragqa.evaluation.benchmarks.expected_facts`.
NEARNESS, COVER, CONSTANT = 3.8, 2.4, -4.0
FAR: Final = 0.4  # a similarity below this is reported as far
MUCH: Final = 0.5  # a share of words up to this is reported, with the missing words


def relevance(
    question: Question,
    answer: Answer,
    passages: Sequence[Passage],
    encoder: Encoder,
    selector: Selector | None = None,
    names: Mapping[str, frozenset[str]] = MappingProxyType({}),
) -> Relevance | None:
    """How far the answer answers the question, in [0, 1]: the mean over its parts, each with its reason.

    ``passages`` are the kept ones, which citations number; ``names`` are those of documents in the question, with the
    ids of the documents. None if the question is blank or asks for a rule by its number alone, or if the answer has no
    sentence or is a refusal.
    """
    if answer.is_refusal or not answer.sentences or not question.text.strip():
        return None
    if passages and asks_only_for(question.text, passages[0]):
        return None
    said = answer.sentences[:MOST_SENTENCES]
    above = [_heading(sentence, passages) for sentence in said]
    stems = frozenset().union(*(read(f"{head}\n{one.text}").stems for head, one in zip(above, said, strict=True)))
    texts = [in_context(one.text, head) for one, head in zip(said, above, strict=True)]
    vectors = encoder.encode([one.text for one in said])
    unread = unread_names(names, passages)
    asked_for, query = parts_of(question.text), without_names(question.text, unread, UNNAMED)
    parts = [part.without_names(unread) for part in asked_for]
    reads = selector if language_of(question.text) == ENGLISH else None
    found = []
    for whole, part, asked in zip(asked_for, parts, vectors_of(parts, query, encoder), strict=True):
        cosines = (vectors @ asked[0]).tolist()
        nearest = sorted(range(len(said)), key=lambda n: (-cosines[n], n))
        odds = [NEARNESS * cosines[nearest[0]] + COVER * _cover(part, stems) + CONSTANT]
        if reads:
            nearest = nearest[: max(1, READ // len(parts))]
            odds = log_odds(reads, part, query, [texts[n] for n in nearest])
        best = nearest[odds.index(max(odds))]
        shown = replace(part, text=whole.text)
        one = _relevance_of(shown, logistic(max(odds)), cosines[best], stems, said[best].text, best)
        found.append(replace(one, is_read=bool(reads)))
    return Relevance(fmean(part.value for part in found), tuple(found))


def _heading(sentence: AnswerSentence, passages: Sequence[Passage]) -> str:
    """The headings above the first passage that the sentence cites."""
    cited = next((passages[number - 1] for number in sentence.citations if number <= len(passages)), None)
    return heading_above(cited.title, cited.section) if cited else ""


def _relevance_of(
    part: Part, value: float, similarity: float, stems: frozenset[str], text: str, place: int
) -> PartRelevance:
    share = _cover(part, stems)
    absent = dict.fromkeys(word.lower for word in words_of(part.text) if word.stem in part.content - stems)
    reason = f"Sentence {place + 1} {'answers' if value >= LINE else 'may not answer'}: probability {value:.2f}"
    if value < LINE and similarity < FAR:
        reason += f"; it is far from the question (cosine {similarity:.2f})"
    if share <= MUCH and absent:
        reason += "; the answer does not speak of " + ", ".join(f"“{word}”" for word in absent)
    return PartRelevance(part.text, str(part.kind), value, similarity, share, part.fit(read(text)), place, f"{reason}.")


def _cover(part: Part, stems: frozenset[str]) -> float:
    """The share of the part's words among these stems; words borrowed from earlier parts count less."""
    n_words = len(part.content) + BORROWED * len(part.borrowed)
    return (len(part.content & stems) + BORROWED * len(part.borrowed & stems)) / n_words if n_words else 0.0

"""Whether an answer answers what was asked, part by part. Beside RePASs and no part of it.

RePASs measures whether the passages bear an answer out; an answer to another question may be borne out word for word.
Five values of each part of the question make a logistic function: how near the nearest sentence of the answer is, the
share of the part's words that the answer has, whether it has the kind of answer that is asked for, and whether a kept
passage has a sentence that fits better and was left out. Pure but for the encoder. English: in other languages kinds
are not read, and nearness decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from statistics import fmean
from typing import Final

from ragqa.english.reading import read
from ragqa.english.sentences import split_sentences
from ragqa.english.words import words_of
from ragqa.generation.direct.asking import Asked, Part, parts_of
from ragqa.generation.direct.weighing import BORROWED, vectors_of
from ragqa.infra.cleaning import without_controls
from ragqa.plugins.protocols import Encoder, FloatMatrix
from ragqa.types import Answer, Passage, Question
from ragqa.types.events.scoring import PartRelevance, Relevance

LINE: Final = 0.5  # from here on a part counts as answered
MOST_SENTENCES: Final = 60  # of an answer; the rest of a longer one is not read
COMPARED: Final = 24  # sentences of the kept passages that are compared: those that share most with the part
FEWEST_WORDS: Final = 3  # of one
FAR: Final = 0.4  # a similarity below it is said to be far
MUCH: Final = 0.5  # so much of the kind missing, of the words missing, or left out, is said


@dataclass(frozen=True, slots=True)
class Fitting:
    """What an answer has of a part of the question; all but ``similarity`` and ``left_out`` in [0, 1]."""

    similarity: float  # cosine of its sentence that fits best
    cover: float  # the share of the part's words in the answer and the titles and headings that it cites
    fit: float  # whether that sentence has the kind of answer that is asked for
    lacks: float  # what is missing of a kind without which nothing is answered: a date, a number, who, where, why
    left_out: float  # how much better a sentence of the kept passages fits that the answer does not say

    @property
    def value(self) -> float:
        """How likely the part is answered, in [0, 1]."""
        values: tuple[float, ...] = astuple(self)
        total = math.fsum(weight * value for weight, value in zip(WEIGHTS, values, strict=True))
        return 1.0 / (1.0 + math.exp(-(total + CONSTANT)))


# Fitted on the open half of `ragqa.evaluation.benchmarks.expected_facts`, on what six writers without a language model
# answered there.
WEIGHTS: Final = (3.8, 2.4, 1.2, -3.6, -1.5)  # in the order of `Fitting`
CONSTANT: Final = -4.0


@dataclass(frozen=True)
class _Claim:
    """A sentence with the stems of the titles and headings above it, or above what it cites."""

    text: str
    above: frozenset[str]

    @cached_property
    def stems(self) -> frozenset[str]:
        return read(self.text).stems | self.above

    def worth(self, part: Part, similarity: float = 0.0) -> float:
        """How well it fits the part by its words, and by its vector where that is known."""
        values = (similarity, _cover(part, self.stems), part.fit(read(self.text)))
        return math.fsum(weight * value for weight, value in zip(WEIGHTS, values, strict=False))


def relevance(question: Question, answer: Answer, passages: Sequence[Passage], encoder: Encoder) -> Relevance | None:
    """How far the answer answers the question, in [0, 1]: the mean over its parts, each with its reason.

    ``passages`` are the kept ones, which citations count. None where nothing is asked, the answer has no
    sentence, or is a refusal.
    """
    if answer.is_refusal or not answer.sentences or not question.text:
        return None
    above = [read(f"{passage.title}\n{passage.section}").stems for passage in passages]
    said = [
        _Claim(
            sentence.text,
            frozenset().union(*(above[number - 1] for number in sentence.citations if number <= len(above))),
        )
        for sentence in answer.sentences[:MOST_SENTENCES]
    ]
    sources = _sources(passages, above, {claim.text for claim in said})
    vectors = encoder.encode([claim.text for claim in said])
    parts = parts_of(question.text)
    found = tuple(
        _of_part(part, asked, said, vectors, sources, encoder)
        for part, asked in zip(parts, vectors_of(parts, question.text, encoder), strict=True)
    )
    return Relevance(fmean(part.value for part in found), found)


def _sources(passages: Sequence[Passage], above: Sequence[frozenset[str]], said: set[str]) -> list[_Claim]:
    """The sentences of the passages that the answer does not quote, on one line each."""
    texts = {
        " ".join(span.text.split()): above[place]
        for place, passage in enumerate(passages)
        for span in split_sentences(without_controls(passage.text))
    }
    return [
        _Claim(text, stems) for text, stems in texts.items() if text not in said and len(text.split()) >= FEWEST_WORDS
    ]


def _of_part(
    part: Part,
    asked: FloatMatrix,
    said: Sequence[_Claim],
    vectors: FloatMatrix,
    sources: Sequence[_Claim],
    encoder: Encoder,
) -> PartRelevance:
    cosines = [float(value) for value in vectors @ asked[0]]
    worths = [claim.worth(part, cosine) for claim, cosine in zip(said, cosines, strict=True)]
    best = max(range(len(said)), key=lambda place: (worths[place], -place))
    near = sorted(sources, key=lambda one: -one.worth(part))[:COMPARED]
    ahead, better = 0.0, ""
    if near:
        further = encoder.encode([one.text for one in near]) @ asked[0]
        values = [one.worth(part, float(cosine)) for one, cosine in zip(near, further, strict=True)]
        ahead, better = max(values) - worths[best], near[values.index(max(values))].text
    words = frozenset().union(*(claim.stems for claim in said))
    fit = part.fit(read(said[best].text))
    found = Fitting(cosines[best], _cover(part, words), fit, (1.0 - fit) if part.is_strict else 0.0, max(0.0, ahead))
    reason = _reason(part, found, best, words, better)
    return PartRelevance(part.text, str(part.kind), found.value, found.similarity, found.cover, fit, best, reason)


def _cover(part: Part, stems: frozenset[str]) -> float:
    """The share of the part's words among these stems; those of earlier parts count less."""
    n_words = len(part.content) + BORROWED * len(part.borrowed)
    return (len(part.content & stems) + BORROWED * len(part.borrowed & stems)) / n_words if n_words else 0.0


def _reason(part: Part, found: Fitting, best: int, words: frozenset[str], better: str) -> str:
    """Why a part counts as answered or not, in a sentence for the reader."""
    absent = dict.fromkeys(word.lower for word in words_of(part.text) if word.stem in part.content - words)
    against = []
    if found.lacks >= MUCH:
        against.append(f"it does not say what is asked for ({part.kind})")
    if found.similarity < FAR:
        against.append(f"it is far from the question (cosine {found.similarity:.2f})")
    if found.cover <= MUCH and absent:
        against.append("the answer does not speak of " + ", ".join(f"“{word}”" for word in absent))
    if found.left_out >= MUCH:
        against.append(f"a kept passage has a sentence nearer to the question that is left out: “{better}”")
    words_for = f"cosine {found.similarity:.2f}, {found.cover:.0%} of the question's words"
    if part.kind is not Asked.OTHER and found.fit >= MUCH:
        words_for += f", says what is asked for ({part.kind})"
    if found.value >= LINE:
        but = f"; but {'; '.join(against)}" if against else ""
        return f"Sentence {best + 1} answers: {words_for}{but}."
    return f"Sentence {best + 1} is nearest and may not answer: {'; '.join(against) or words_for}."

"""Whether an answer answers what was asked, part by part. Beside RePASs and no part of it.

RePASs measures whether the passages bear an answer out; an answer to another question may be borne out word for word.
Of each part of the question it is what the selector says of the answer's sentence that answers it best. In other
languages than English, and without a selector, it is how near the nearest sentence is.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Final

import numpy as np

from ragqa.english.reading import read
from ragqa.english.words import ENGLISH, language_of, words_of
from ragqa.generation.direct.asking import Part, parts_of
from ragqa.generation.direct.selector import above, points_back, shown, worths
from ragqa.plugins.protocols import Encoder, Selector
from ragqa.types import Answer, Passage, Question
from ragqa.types.events.scoring import PartRelevance, Relevance

LINE: Final = 0.5  # from here on a part counts as answered
MOST_SENTENCES: Final = 60  # of an answer; the rest of a longer one is not read


def relevance(
    question: Question, answer: Answer, passages: Sequence[Passage], encoder: Encoder, selector: Selector | None = None
) -> Relevance | None:
    """How far the answer answers the question, in [0, 1]: the mean over its parts, each with its reason.

    ``passages`` are the kept ones, which citations count. None where nothing is asked, the answer has no
    sentence, or is a refusal.
    """
    if answer.is_refusal or not answer.sentences or not question.text:
        return None
    reads = selector if language_of(question.text) == ENGLISH else None
    parts = parts_of(question.text, question.context)
    found = tuple(_of_part(part, answer, passages, encoder, reads) for part in parts)
    return Relevance(fmean(part.value for part in found), found)


def _of_part(
    part: Part, answer: Answer, passages: Sequence[Passage], encoder: Encoder, selector: Selector | None
) -> PartRelevance:
    texts = [sentence.text for sentence in answer.sentences[:MOST_SENTENCES]]
    cosines = encoder.encode(texts) @ encoder.encode_query(part.asked)[0]
    values = (
        worths(selector.answering(part.asked, _shown(answer, passages))) if selector else np.clip(cosines, 0.0, 1.0)
    )
    best = int(values.argmax())
    value, stems = float(values[best]), frozenset().union(*(read(text).stems for text in texts))
    cover = len(part.content & stems) / len(part.content) if part.content else 0.0
    absent = dict.fromkeys(word.lower for word in words_of(part.text) if word.stem in part.content - stems)
    silent = f"; the answer does not speak of {', '.join(f'“{word}”' for word in absent)}" if absent else ""
    means = "read beside the question" if selector else "by its words’ nearness alone"
    says = "answers" if value >= LINE else "is nearest and may not answer"
    reason = f"Sentence {best + 1} {says} ({means}: {value:.0%}){silent}."
    return PartRelevance(part.text, value, float(cosines[best]), cover, best, reason)


def _shown(answer: Answer, passages: Sequence[Passage]) -> list[str]:
    """Each sentence as the selector reads it: below what stands above the first passage that it cites."""
    found, before = [], ""
    for sentence in answer.sentences[:MOST_SENTENCES]:
        cited = [passages[number - 1] for number in sentence.citations if number <= len(passages)]
        introduced = before if points_back(sentence.text) or not before.endswith((".", "!", "?")) else ""
        found.append(shown(sentence.text, above(cited[0]) if cited else "", introduced))
        before = sentence.text
    return found

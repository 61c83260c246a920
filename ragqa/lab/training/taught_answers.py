"""Lists of sentences for which a larger selector says how likely each answers a question; the smaller one learns them.

A list holds what the direct answer would read for a question: the nearest sentences, by words and vectors, of a pool of
many passages. From a third of the lists the passage that answers is left out, so that nothing answers there. The
smaller selector learns the mean of both selectors' log odds (Hinton et al. 2015, at temperature 1), mixed with the
labels of the question's own passage.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from ragqa.corpus.obliqa import load_obliqa
from ragqa.english.reading import read
from ragqa.english.sentences import split_sentences
from ragqa.generation.direct.weighing import SCALE, Source, heading_above, in_context, is_readable
from ragqa.lab.claims import ClaimedPassage, fold_of, read_claims
from ragqa.lab.training.answers import AnswerSources, LabelledQuestion, of_squad
from ragqa.lab.training.taught import rows_of
from ragqa.lab.written import written_passages
from ragqa.plugins.protocols import Encoder, Selector

WITHOUT: Final = 0.35  # chance that the passage that answers is left out
COSINE: Final = 3.7  # weight of the cosine
COVERED: Final = 5.4  # weight of the share of the question's words that the sentence has, by rarity
NEAREST: Final = 10  # sentences of a list, of which LEARNT are learnt: the best, and others at random
LEARNT: Final = 6
BEST: Final = 4
WITH_HEADING: Final = 0.8  # chance that the model sees the headings above a sentence
LABELLED: Final = 0.3  # weight of a label, where the question's own passage gives one
SURE: Final = 1e-4  # least distance of a taught probability from 0 and 1
PER_STEP: Final = 16  # lists between two reports


@dataclass(slots=True)
class _TaughtQuestion:
    text: str
    passage: str  # id in the pool; "" if it is unknown which passage answers
    labels: dict[str, float] = field(default_factory=dict)  # of the sentences of its passage


class _Pool:
    """Sentences with headings and passages, and how near they are to a question."""

    def __init__(self, sentences: dict[str, tuple[str, str]], encoder: Encoder) -> None:
        """``sentences`` maps each text to its heading and the id of its passage."""
        self.texts = [text for text in sentences if is_readable(Source(text, 0, 0, 0.0))]
        self.headings = [sentences[text][0] for text in self.texts]
        self.passages = [sentences[text][1] for text in self.texts]
        self._encoder, self._vectors = encoder, encoder.encode(self.texts)
        self._holding: dict[str, list[int]] = defaultdict(list)
        for place, text in enumerate(self.texts):
            for stem in read(text).stems | read(self.headings[place]).stems:
                self._holding[stem].append(place)

    def nearest(self, question: str) -> Iterator[int]:
        """All places, the nearest first."""
        cosines = self._vectors @ self._encoder.encode_query(question).ravel()
        n, stems = len(self.texts), [stem for stem in sorted(read(question).content) if self._holding[stem]]
        rarity = {stem: math.log((n + 1) / (len(self._holding[stem]) + 0.5)) for stem in stems}
        covered = np.zeros(n, np.float32)
        for stem, weight in rarity.items():
            covered[self._holding[stem]] += weight / sum(rarity.values())
        return iter(np.argsort(-(COSINE * cosines + COVERED * covered)).tolist())


def unlabelled_lists(sources: AnswerSources, further: Path | None, encoder: Encoder, n: int) -> list[LabelledQuestion]:
    """At most ``n`` questions with near sentences; ``answers`` holds 1, 0 or, without a label, NaN.

    The pool holds the sentences of ``sources``, without the held-out fold. ``further`` is a JSON list of {Question}.
    Raises CorpusError.
    """
    chance = random.Random(sources.seed)
    sentences: dict[str, tuple[str, str]] = {}
    asked = list(_questions(sources, sentences, chance))
    asked += [
        _TaughtQuestion(str(row["Question"]), "") for row in (rows_of(further) if further else ()) if "Question" in row
    ]
    chance.shuffle(asked)
    pool = _Pool(sentences, encoder)
    return [_drawn(one, pool, chance) for one in asked[:n]]


def _questions(
    sources: AnswerSources, sentences: dict[str, tuple[str, str]], chance: random.Random
) -> Iterator[_TaughtQuestion]:
    """The questions of the sources; their sentences are added to ``sentences``."""

    def of_passage(passage: ClaimedPassage, heading: str) -> Iterator[_TaughtQuestion]:
        for text in passage.sentences:
            sentences.setdefault(text, (heading, passage.id))
        for one in passage.questions:
            right = one.sentences if one.answerable else ()
            labels = {text: float(n in right) for n, text in enumerate(passage.sentences)}
            yield _TaughtQuestion(one.text, passage.id, labels)

    headings: dict[str, str] = {}
    for document in load_obliqa(sources.documents) if sources.documents else ():
        place = f"adgm:{document.passage_id}"
        headings[place] = heading_above("", document.section)
        for span in split_sentences(document.text) if fold_of(place) != sources.fold else ():
            sentences.setdefault(" ".join(span.text.split()), (headings[place], place))
    for passage in read_claims(sources.claims):
        if fold_of(passage.id) != sources.fold:
            yield from of_passage(passage, passage.title or headings.get(passage.id, ""))
    for written in written_passages(sources.written, sources.fold) if sources.written else ():
        yield from of_passage(written.claimed, written.heading)
    for one in of_squad(sources, chance) if sources.squad else ():
        place = f"squad:{one.heading}"
        for text in one.sentences:
            sentences.setdefault(text, (one.heading, place))
        yield _TaughtQuestion(one.question, place, dict(zip(one.sentences, one.answers, strict=True)))


def _drawn(asked: _TaughtQuestion, pool: _Pool, chance: random.Random) -> LabelledQuestion:
    """The question with some of its nearest sentences, in their order."""
    is_without = bool(asked.passage) and chance.random() < WITHOUT
    places: list[int] = []
    for place in pool.nearest(asked.text):
        if not (is_without and (pool.passages[place] == asked.passage or pool.texts[place] in asked.labels)):
            places.append(place)
        if len(places) == NEAREST:
            break
    known = {pool.texts[place] for place in places}
    missing = [text for text, label in asked.labels.items() if label and text not in known]
    if missing and not is_without and missing[0] in pool.texts:
        places[-1] = pool.texts.index(missing[0])
    right = [n for n, place in enumerate(places) if asked.labels.get(pool.texts[place])][:2]
    kept = dict.fromkeys([*right, *range(min(BEST, len(places)))])
    rest = [n for n in range(len(places)) if n not in kept]
    learnt = sorted([*kept, *chance.sample(rest, min(len(rest), max(0, LEARNT - len(kept))))][:LEARNT])
    texts = [
        in_context(pool.texts[places[n]], pool.headings[places[n]] if chance.random() < WITH_HEADING else "")
        for n in learnt
    ]
    answers = tuple(asked.labels.get(pool.texts[places[n]], math.nan) for n in learnt)
    return LabelledQuestion(asked.text, tuple(texts), answers)


def taught_lists(
    lists: Sequence[LabelledQuestion], teacher: Selector, student: Selector
) -> Iterator[list[LabelledQuestion]]:
    """The lists with what the two selectors say in the mean, some at a time. Raises RetrievalError."""
    for start in range(0, len(lists), PER_STEP):
        made = []
        for one in lists[start : start + PER_STEP]:
            scores = np.mean([model.score(one.question, one.sentences) for model in (teacher, student)], axis=0)
            told = 1 / (1 + np.exp(-SCALE * scores))
            labels = np.array(one.answers)
            mixed = np.where(np.isnan(labels), told, (1 - LABELLED) * told + LABELLED * np.nan_to_num(labels))
            sure = np.clip(mixed, SURE, 1 - SURE)
            odds = np.log(sure / (1 - sure))
            made.append(LabelledQuestion(one.question, one.sentences, tuple(mixed.tolist()), tuple(odds.tolist())))
        yield made

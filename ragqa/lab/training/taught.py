"""Pairs that a larger verifier labels for a smaller one: claims and written answers with windows of their sources.

They have no human labels; the smaller model is trained on the teacher's probabilities (Hinton et al. 2015, at
temperature 1).
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragqa.english.reading import read
from ragqa.english.sentences import split_sentences
from ragqa.errors import CorpusError
from ragqa.lab.claims import ClaimedPassage, fold_of
from ragqa.lab.labelled import LabelledPair
from ragqa.lab.training.nli_made_pairs import (
    another_number,
    another_word,
    opposite_duty,
    other_duty_word,
    without_limit,
)
from ragqa.lab.written import LONGEST_TEXT
from ragqa.plugins.protocols import NliModel
from ragqa.retrieval.bm25 import nearest_texts

EDITS: tuple[Callable[[str, random.Random], str | None], ...] = (
    another_number,
    opposite_duty,
    another_word,
    other_duty_word,
    lambda text, _: without_limit(text),
)
LONGEST = 900  # characters of a window
FEWEST_WORDS = 5  # different content words of a sentence that is retrieved for
NEAREST = 6  # sentences of a corpus from which a window's first is drawn
PER_STEP = 256  # pairs between two reports

Pair = tuple[str, str]  # (premise, hypothesis)
_MARKS = re.compile(r"\s*(?:and )?\[#[^\]]*\]")  # citation marks such as [#SRC:…]


def unlabelled_pairs(
    passages: Iterable[ClaimedPassage],
    answers: Path | None,
    texts: Sequence[Sequence[str]],
    fold: int | None,
    n: int,
    seed: int,
) -> list[Pair]:
    """At most ``n`` pairs of claims and sentences, as written and edited, with windows of their sources.

    ``answers`` is a JSON list of {Answer, Passages}; answers with a passage in ``fold`` are left out. ``texts`` are the
    sentences of further passages, each of which meets its nearest windows anywhere in them. Raises CorpusError.
    """
    chance = random.Random(seed)
    found: list[Pair] = list(_retrieved(texts, chance))
    for passage in passages:
        for claim in passage.claims:
            found += _with_windows(claim.text, passage.sentences, passage.title, chance)
    for answer in written_answers(answers) if answers else ():
        if fold is not None and any(fold_of(place) == fold for place in answer.places):
            continue
        for source in answer.sources:
            sentences = [span.text for span in split_sentences(source)]
            for sentence in answer.sentences:
                edited = next((new for edit in chance.sample(EDITS, len(EDITS)) if (new := edit(sentence, chance))), "")
                for text in filter(None, (sentence, edited)):
                    found += _with_windows(text, sentences, "", chance)
    found = list(dict.fromkeys(found))
    chance.shuffle(found)
    return found[:n]


def _with_windows(text: str, sentences: Sequence[str], title: str, chance: random.Random) -> Iterator[Pair]:
    """The text with two windows: of its nearest sentence, of that with neighbours, of all, or of a random sentence."""
    if not sentences:
        return
    said = read(text).content
    best = max(range(len(sentences)), key=lambda n: len(said & read(sentences[n]).content))
    before, after = chance.randrange(2), chance.randrange(3)
    windows = [
        sentences[best : best + 1],
        sentences[max(0, best - before) : best + 1 + after],
        sentences if chance.random() < 0.5 else [chance.choice(sentences)],
    ]
    for window in chance.sample(windows, 2):
        evidence = " ".join(window)
        if len(evidence) <= LONGEST:
            yield f"{title}: {evidence}" if title and chance.random() < 0.7 else evidence, text


def _retrieved(texts: Sequence[Sequence[str]], chance: random.Random) -> Iterator[Pair]:
    """Each sentence, as written or edited, with two windows that begin at one of its nearest sentences by BM25."""
    places = [
        (passage, number)
        for passage, sentences in enumerate(texts)
        for number, sentence in enumerate(sentences)
        if len(sentence) <= LONGEST and len(read(sentence).content) >= FEWEST_WORDS
    ]
    if len(places) <= NEAREST:
        return
    words = [sorted(read(texts[passage][number]).content) for passage, number in places]
    for (passage, number), near in zip(places, nearest_texts(words, NEAREST), strict=True):
        sentence = texts[passage][number]
        edited = next((new for edit in chance.sample(EDITS, len(EDITS)) if (new := edit(sentence, chance))), sentence)
        for place in chance.sample(near, 2):
            other, start = places[place]
            window = " ".join(texts[other][start : start + chance.choice((1, 1, 2, 3))])
            claim = chance.choice((sentence, edited))
            if claim not in window and len(window) <= LONGEST:
                yield window, claim


def taught_pairs(pairs: Sequence[Pair], teacher: NliModel) -> Iterator[list[LabelledPair]]:
    """The pairs with the teacher's probabilities, some at a time. Raises ScoringError."""
    for start in range(0, len(pairs), PER_STEP):
        step = pairs[start : start + PER_STEP]
        made = []
        for (premise, hypothesis), said in zip(step, teacher.predict(step), strict=True):
            values = (said.contradiction, said.entailment, said.neutral)
            made.append(LabelledPair(premise, hypothesis, values.index(max(values)), "taught", values))
        yield made


# Written answers ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """Sentences of an answer, without citation marks, the texts of its sources, and their places ("adgm:7:5.2.7")."""

    sentences: tuple[str, ...]
    sources: tuple[str, ...]
    places: tuple[str, ...]


def written_answers(path: Path) -> list[WrittenAnswer]:
    """The answers of a JSON list of {Answer, Passages}. Raises CorpusError."""
    found = []
    for row in rows_of(path):
        given = row.get("Passages")
        passages = given if isinstance(given, list) else []
        found.append(
            WrittenAnswer(
                tuple(sentences_of(_MARKS.sub("", str(row.get("Answer", ""))))),
                tuple(str(passage.get("Passage", "")) for passage in passages),
                tuple(f"adgm:{passage.get('DocumentID')}:{passage.get('PassageID')}" for passage in passages),
            )
        )
    return found


def sentences_of(text: str) -> list[str]:
    """The sentences of a passage, up to `LONGEST_TEXT` characters."""
    return [span.text for span in split_sentences(text[:LONGEST_TEXT])]


def rows_of(path: Path) -> list[dict[str, object]]:
    """The objects of a JSON list or of JSON lines."""
    try:
        text = path.read_text(encoding="utf-8")
        rows = json.loads(text) if text.lstrip().startswith("[") else [json.loads(x) for x in text.splitlines() if x]
    except (OSError, ValueError) as error:
        msg = f"cannot read {path}: {error}; expected a JSON list of objects, or one object per line"
        raise CorpusError(msg) from error
    return [row for row in rows if isinstance(row, dict)]

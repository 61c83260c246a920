"""Splits questions with gold passages for training and testing without shared gold, and chooses settings by folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from ragqa.corpus.questions import GoldQuestion, load_gold
from ragqa.errors import ConfigError, CorpusError
from ragqa.evaluation.measures import display_name, means, measure_run
from ragqa.index import Index, open_index
from ragqa.lab.training.retriever import RetrieverData, gather_pairs, nearest, text_numbers, with_equal_gold
from ragqa.plugins.protocols import Encoder, FloatMatrix, Retriever
from ragqa.retrieval.analysis import indexed_text
from ragqa.settings.paths import Paths

MEASURES = ("R@10", "AP@10")  # by which a trained part is judged
TIE = 1e-12  # means closer than this are equal: they differ by rounding only

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Fold:
    """Positions of questions, from 0, ascending: those tested, and those that may be trained on."""

    test: tuple[int, ...]
    train: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The candidate chosen by each fold and by all questions, and each question's measures out of fold.

    ``out_of_fold`` has the shape (n_questions, n_measures): question q under the candidate of the fold that tests it.
    """

    by_fold: tuple[int, ...]
    by_all: int
    out_of_fold: Floats


def choose(values: Floats, folds: Sequence[Fold], distance: Floats) -> Chosen:
    """The candidate with the highest mean on each fold's train set; at a tie the lowest ``distance``, then the first.

    ``values[q, m, c]`` is measure m of question q under candidate c, finite; the measure m = 0 decides. ``distance[c]``
    may be infinite. Every question is tested in one fold.
    """
    out_of_fold = np.empty(values.shape[:2])
    by_fold = tuple(_best(values[list(fold.train), 0], distance) for fold in folds)
    for fold, best in zip(folds, by_fold, strict=True):
        out_of_fold[list(fold.test)] = values[list(fold.test), :, best]
    return Chosen(by_fold, _best(values[:, 0], distance), out_of_fold)


def _best(values: Floats, distance: Floats) -> int:
    means = values.mean(axis=0)
    tied = np.flatnonzero(means >= means.max() - TIE)
    return int(tied[np.argmin(distance[tied])])


def folds_by_gold(questions: Sequence[GoldQuestion], n_folds: int = 5, seed: int = 0) -> tuple[Fold, ...]:
    """``n_folds`` folds; every question is tested in exactly one, and no gold passage is on both sides of any.

    A question is tested in the fold of its alphabetically first gold id. These ids are shuffled with ``seed`` (0 or
    more) and dealt to the folds, ids with most questions first, each to the smallest fold so far, so that sizes are
    nearly equal. A fold's train set is every other question that shares no gold passage with its test set. Some
    questions, which are tested elsewhere, are in neither. The same arguments give the same folds.

    Connected components of questions that share gold are not used as folds, because one of them is huge. On ObliQA dev
    1,124 of 2,788 questions are connected by shared gold; the fold with them would be two fifths of the data whatever
    the seed. Excluding questions that share gold with the test set from training separates the two as well, and keeps
    1,717 to 1,846 of the 2,230 others (five folds, seed 0).

    Raises ConfigError for fewer than two folds. Raises CorpusError for a question without gold, if there are fewer
    first gold ids than folds, and if a fold has nothing left to train on.
    """
    if n_folds < 2:
        raise ConfigError(f"folds must be at least 2, got {n_folds}; change the setting and try again")
    bare = [number for number, question in enumerate(questions, start=1) if not question.gold]
    if bare:
        raise CorpusError(
            f"expected gold passages for every question, found none for {len(bare):,} of {len(questions):,}, first for "
            f"question {bare[0]:,}; leave these questions out"
        )
    groups: dict[str, list[int]] = {}
    for position, question in enumerate(questions):
        groups.setdefault(min(question.gold), []).append(position)
    if len(groups) < n_folds:
        raise CorpusError(
            f"expected questions about at least {n_folds:,} gold passages, one per fold, found {len(groups):,} in "
            f"{len(questions):,} questions; take fewer folds or more questions"
        )
    return tuple(_fold(questions, test) for test in _dealt(groups, n_folds, seed))


def _dealt(groups: dict[str, list[int]], n_folds: int, seed: int) -> list[list[int]]:
    """The positions in each fold's test set."""
    names = sorted(groups)
    shuffled = [names[place] for place in np.random.default_rng(seed).permutation(len(names))]
    folds: list[list[int]] = [[] for _ in range(n_folds)]
    for name in sorted(shuffled, key=lambda name: -len(groups[name])):  # stable sort: ties stay shuffled
        min(folds, key=len).extend(groups[name])
    return folds


def _fold(questions: Sequence[GoldQuestion], test: list[int]) -> Fold:
    tested = frozenset().union(*(questions[position].gold for position in test))
    train = tuple(position for position, question in enumerate(questions) if tested.isdisjoint(question.gold))
    if not train:
        raise CorpusError(
            f"expected questions to train on, found that all {len(questions):,} share gold passages with the "
            f"{len(test):,} tested in one fold; take more folds or more questions"
        )
    return Fold(tuple(sorted(test)), train)


@dataclass(frozen=True, slots=True)
class AskedIndex:
    """An index, with the questions to train on and those to measure on; either may be empty."""

    index: Index
    texts: list[str]  # the text of each passage that an encoder reads
    learnt: list[GoldQuestion]
    tested: list[GoldQuestion]  # none shares a gold text with ``learnt`` if a fold separates them

    @classmethod
    def of(cls, name: str, files: Sequence[Path], fold: str = "", test: Path | None = None) -> AskedIndex:
        """The index of this name and the questions of ``files``, without the test part of ``fold`` (``"K/N"`` or "").

        Without a fold, the questions of ``test`` are measured on. Raises CorpusError for a file without questions with
        gold passages, and ConfigError for an invalid fold.
        """
        index = open_index(name, Paths.from_env().indexes)
        texts = [indexed_text(passage, index.manifest.indexed_text) for passage in index.passages]
        gold = _questions_with_gold(files, index) if files else []
        part = _fold_named(fold, with_equal_gold(gold, index.position_of, text_numbers(texts)))
        if part is None:
            return cls(index, texts, gold, _questions_with_gold([test], index) if test else [])
        return cls(index, texts, [gold[n] for n in part.train], [gold[n] for n in part.test])

    def places_by_file(self, files: Sequence[Path]) -> list[range]:
        """The positions of each file's questions in ``learnt``, which must be of these files, without a fold."""
        counts = [len(_questions_with_gold([file], self.index)) for file in files]
        starts = [sum(counts[:n]) for n in range(len(counts))]
        return [range(start, start + count) for start, count in zip(starts, counts, strict=True)]

    def gathered(
        self,
        negatives_of: Retriever,
        *,
        limit: int | None,
        seed: int,
        further: Sequence[GoldQuestion] = (),
        spared: Mapping[int, frozenset[str]] = MappingProxyType({}),
    ) -> RetrieverData:
        """The training data: the questions ``learnt``, then ``further`` ones; other arguments as in `gather_pairs`."""
        asked = [*self.learnt, *further]
        return gather_pairs(
            asked, self.texts, self.index.position_of, negatives_of, limit=limit, seed=seed, spared=spared
        )

    def dense_measures(self, encoder: Encoder, vectors: FloatMatrix) -> dict[str, float]:
        """Recall and MAP at 10 of ``tested`` by this encoder and its vectors of the passages, in [0, 1].

        Gold that is not in the index counts as missed.
        """
        index = self.index
        asked = np.concatenate([encoder.encode_query(question.question.text) for question in self.tested])
        found = nearest(asked, vectors, index.hidden, index.order)
        run = [[index.passages[n].passage_id for n in ranking] for ranking in found]
        values = means(measure_run([question.gold for question in self.tested], run, MEASURES))
        return {display_name(name): value for name, value in values.items()}


def _questions_with_gold(files: Sequence[Path], index: Index) -> list[GoldQuestion]:
    """The questions of all files that have a gold passage, in order."""
    found: list[GoldQuestion] = []
    for file in files:
        gold, unit = load_gold(file, index.passages)
        if unit != "passage":
            raise CorpusError(
                f"expected questions with gold passages in {file}, found gold documents; name a file in ObliQA's schema"
            )
        found += [question for question in gold if question.gold]
    if not found:
        msg = f"expected questions with gold passages in {', '.join(map(str, files))}, found none; name another file"
        raise CorpusError(msg)
    return found


def _fold_named(text: str, questions: Sequence[GoldQuestion]) -> Fold | None:
    """The fold that ``"K/N"`` names, K from 1; None for no text."""
    if not text:
        return None
    number, _, total = text.partition("/")
    if not (number.isdecimal() and total.isdecimal() and 1 <= int(number) <= int(total) and int(total) > 1):
        raise ConfigError(f"--fold must be K/N with K from 1 to N and N at least 2, got {text!r}; give for example 1/5")
    return folds_by_gold(questions, int(total))[int(number) - 1]

"""What a reranker learns from: a gold passage beside passages that the fused ranking puts high. No torch.

The groups are those of `ragqa.training.retriever_data`: its pairs and its hard negatives, here of the fused ranking,
since that is whose best passages a reranker is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ragqa.errors import CorpusError
from ragqa.training.retriever_data import RetrieverData
from ragqa.types import Ranking


@dataclass(frozen=True, slots=True)
class Group:
    """One question, its gold passage and wrong ones, by position: ``passages[0]`` is the gold one."""

    question: int
    passages: tuple[int, ...]


class KnownRankings:
    """Rankings made before, as a `ragqa.protocols.Retriever`."""

    def __init__(self, name: str, by_question: Mapping[str, Ranking]) -> None:
        self.name, self._by_question = name, by_question

    def retrieve(self, question: str, top_k: int) -> Ranking:
        """The best ``top_k`` of this question's ranking; KeyError where it has none."""
        return Ranking(self.name, self._by_question[question].hits[:top_k])


def steps_of(data: RetrieverData, epochs: int, batch_size: int) -> int:
    """How many lists `groups_by_step` gives; the last one of an epoch may be short."""
    return epochs * -(-len(data.pairs) // batch_size)


def groups_by_step(
    data: RetrieverData, epochs: int, batch_size: int, n_negatives: int, seed: int, *, skip: int = 0
) -> Iterator[list[Group]]:
    """Every pair of ``data`` once an epoch as a group, ``batch_size`` in a step; all steps but the first ``skip``.

    Each epoch's order and each step's negatives are drawn from ``seed`` (0 or more) and their number alone, so that a
    training that goes on draws what it would have drawn. Negatives are drawn from the question's own without
    repetition; where it has too few, from those of all questions that are not of a gold text of it. Raises CorpusError
    where there are none.
    """
    per_epoch = steps_of(data, 1, batch_size)
    anything = np.array(data.used_passages, np.int64)
    for epoch in range(skip // per_epoch, epochs):
        order = np.random.default_rng([seed, 0, epoch]).permutation(len(data.pairs)).tolist()
        for number in range(max(0, skip - epoch * per_epoch), per_epoch):
            chance = np.random.default_rng([seed, 1, epoch * per_epoch + number])
            pairs = [data.pairs[n] for n in order[number * batch_size : (number + 1) * batch_size]]
            yield [
                Group(question, (gold, *_negatives(data, question, n_negatives, anything, chance)))
                for question, gold in pairs
            ]


def _negatives(
    data: RetrieverData, question: int, count: int, anything: npt.NDArray[np.int64], chance: np.random.Generator
) -> list[int]:
    own = data.negatives[question]
    drawn: list[int] = chance.permutation(np.array(own, np.int64))[:count].tolist()
    gold = data.gold_texts[question]
    if len(drawn) < count:
        others = [passage for passage in anything.tolist() if data.text_of[passage] not in gold]
        if not others:
            msg = (
                f"expected passages that are not gold for the question {data.questions[question][:80]!r}, found none "
                f"among the {len(anything):,} there are to learn from; take more questions or another index"
            )
            raise CorpusError(msg)
        drawn += [others[n] for n in chance.integers(len(others), size=count - len(drawn)).tolist()]
    return drawn

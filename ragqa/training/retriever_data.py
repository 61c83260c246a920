"""What a retriever learns from: pairs of a question and a gold passage, hard negatives, batches and masks. No torch.

In-batch negatives: in a batch every other pair's passage stands for a wrong one (Henderson et al. 2017,
https://arxiv.org/abs/1705.00652). One hard negative per pair, a passage that BM25 ranks high and that is not gold,
stands beside them (Karpukhin et al. 2020, https://arxiv.org/abs/2004.04906, section 3.2).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from ragqa.corpus.questions import GoldQuestion
from ragqa.errors import CorpusError
from ragqa.protocols import FloatMatrix, Retriever
from ragqa.retrieval.ranking import Mask, Positions, best_positions

BM25_DEPTH = 60  # ranks in which hard negatives are looked for
MAX_NEGATIVES = 40  # kept of them per question

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RetrieverData:
    """What is trained on. Questions and passages are named by their position, from 0."""

    questions: tuple[str, ...]
    passages: tuple[str, ...]  # what the encoder reads of them
    text_of: tuple[int, ...]  # per passage; equal texts have equal numbers
    gold_texts: tuple[frozenset[int], ...]  # per question, of `text_of`: of its gold, and of what is spared with it
    negatives: tuple[tuple[int, ...], ...]  # per question: passages, the highest of BM25 first, none of a gold text
    pairs: tuple[tuple[int, int], ...]  # (question, gold passage)
    n_missing: int = 0  # gold ids of these questions that are no passage of the index

    @property
    def used_passages(self) -> list[int]:
        """Those that are somebody's gold or negative, in order."""
        return sorted({passage for _, passage in self.pairs}.union(*self.negatives))

    @property
    def sha256(self) -> str:
        """Of all that decides what is learnt."""
        used = [(n, self.passages[n], self.text_of[n]) for n in self.used_passages]
        known = [self.questions, self.pairs, self.negatives, used]
        known.append([sorted(texts) for texts in self.gold_texts])
        return hashlib.sha256(json.dumps(known).encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Row r asks ``questions[r]``; ``documents[r]`` is its gold passage, the documents after those hard negatives.

    ``masked``, shape (n_questions, n_documents), is True where a document must not count as wrong: its text is that of
    a gold or spared passage of the row's question. It is False on the diagonal.
    """

    questions: tuple[int, ...]
    documents: tuple[int, ...]
    masked: Mask

    def __len__(self) -> int:
        """The number of rows, each a pair."""
        return len(self.questions)


def text_numbers(texts: Sequence[str]) -> tuple[int, ...]:
    """Per text a number, from 0 in the order of first occurrence; equal texts, and only they, have equal numbers."""
    known: dict[str, int] = {}
    return tuple(known.setdefault(text, len(known)) for text in texts)


def with_equal_gold(
    questions: Sequence[GoldQuestion], position_of: Mapping[str, int], text_of: Sequence[int]
) -> list[GoldQuestion]:
    """The questions with each gold id replaced by the first id of an equal text; ids of no passage stay as they are.

    For folds: a passage that stands twice in a corpus must not be learnt under one id and tested under the other.
    """
    first: dict[int, str] = {}
    for passage_id, position in position_of.items():
        first.setdefault(text_of[position], passage_id)
    return [
        replace(
            question,
            gold=frozenset(
                first[text_of[position_of[name]]] if name in position_of else name for name in question.gold
            ),
        )
        for question in questions
    ]


def gather_pairs(
    questions: Sequence[GoldQuestion],
    passages: Sequence[str],
    position_of: Mapping[str, int],
    bm25: Retriever,
    *,
    limit: int | None = None,
    seed: int = 1,
    spared: Mapping[int, frozenset[str]] = MappingProxyType({}),
) -> RetrieverData:
    """Every question with every gold passage of it that is in the index, and each question's hard negatives.

    ``passages[n]`` is what the encoder reads of the passage whose id ``position_of`` puts at n; ``limit`` pairs of them
    are drawn with ``seed`` (0 or more). Hard negatives are the best 40 of BM25's best 60 that are of no gold text.
    ``spared``, by the question's position, are ids that are neither gold nor wrong: they are masked. Raises CorpusError
    where there are no questions, or no gold passage of any is in the index.
    """
    if not questions:
        msg = "expected questions to train on, found none; name a file with questions"
        raise CorpusError(msg)
    wanted = [name for question in questions for name in sorted(question.gold)]
    missing = [name for name in wanted if name not in position_of]
    if len(missing) == len(wanted):
        example = f", for example no {missing[0]!r}" if missing else ""
        msg = (
            f"expected gold passages of the {len(questions):,} questions in the index, found none of their "
            f"{len(wanted):,} ids{example}; name the index of the corpus these questions are about"
        )
        raise CorpusError(msg)
    gold = [sorted(position_of[name] for name in question.gold if name in position_of) for question in questions]
    pairs = [(question, passage) for question, found in enumerate(gold) for passage in found]
    if limit is not None and limit < len(pairs):
        drawn = np.random.default_rng(seed).choice(len(pairs), limit, replace=False)
        pairs = [pairs[n] for n in sorted(drawn.tolist())]
    text_of = text_numbers(passages)
    gold_texts = tuple(
        frozenset(text_of[passage] for passage in found)
        | {text_of[position_of[name]] for name in spared.get(question, ()) if name in position_of}
        for question, found in enumerate(gold)
    )
    asked = {question for question, _ in pairs}
    negatives = tuple(
        _negatives(item.question.text, bm25, position_of, text_of, gold_texts[n]) if n in asked else ()
        for n, item in enumerate(questions)
    )
    texts = tuple(item.question.text for item in questions)
    return RetrieverData(texts, tuple(passages), text_of, gold_texts, negatives, tuple(pairs), len(missing))


def _negatives(
    question: str, bm25: Retriever, position_of: Mapping[str, int], text_of: Sequence[int], gold_texts: frozenset[int]
) -> tuple[int, ...]:
    found = [position_of[hit.passage.passage_id] for hit in bm25.retrieve(question, BM25_DEPTH).hits]
    return tuple(passage for passage in found if text_of[passage] not in gold_texts)[:MAX_NEGATIVES]


def steps_of(data: RetrieverData, epochs: int, batch_size: int) -> int:
    """How many batches `batches` gives: those of ``batch_size`` that fit in each epoch; one where none does."""
    return epochs * max(1, len(data.pairs) // batch_size)


def batches(data: RetrieverData, epochs: int, batch_size: int, seed: int, *, skip: int = 0) -> Iterator[Batch]:
    """The batches of all epochs but the first ``skip``; the pairs of an epoch that fill no batch are left out.

    Each epoch's order and each batch's hard negatives are drawn from ``seed`` (0 or more) and their number alone, so
    that a training that goes on draws what it would have drawn. A question without hard negatives (BM25 knows none of
    its words) gets any passage of those that somebody's gold or negatives are, so that all rows count the same.
    """
    size = min(batch_size, len(data.pairs))
    per_epoch = max(1, len(data.pairs) // batch_size)
    anything = data.used_passages
    for epoch in range(skip // per_epoch, epochs):
        order = np.random.default_rng([seed, 0, epoch]).permutation(len(data.pairs))
        first = max(0, skip - epoch * per_epoch)
        for number in range(first, per_epoch):
            chance = np.random.default_rng([seed, 1, epoch * per_epoch + number])
            pairs = [data.pairs[n] for n in order[number * size : (number + 1) * size].tolist()]
            questions = tuple(question for question, _ in pairs)
            documents = [passage for _, passage in pairs]
            for question in questions:
                choice = data.negatives[question] or anything
                documents.append(choice[int(chance.integers(len(choice)))])
            yield Batch(questions, tuple(documents), masked(data, questions, documents))


def masked(data: RetrieverData, questions: Sequence[int], documents: Sequence[int]) -> Mask:
    """`Batch.masked` of these rows and columns, shape (n_questions, n_documents)."""
    texts = [data.text_of[passage] for passage in documents]
    mask = np.array([[text in data.gold_texts[question] for text in texts] for question in questions], dtype=np.bool_)
    np.fill_diagonal(mask, val=False)
    return mask


def nearest(
    queries: FloatMatrix, vectors: FloatMatrix, hidden: Mask, order: Positions, top_k: int = 10
) -> list[list[int]]:
    """Per query the positions of the ``top_k`` passages of highest cosine, best first; equal ones by ``order``.

    ``queries`` (n_queries, width) and ``vectors`` (n_passages, width) have rows of length 1; passages that ``hidden``,
    shape (n_passages,), marks are left out.
    """
    shown: Numbers = np.flatnonzero(~hidden)
    return [best_positions(shown, (vectors @ query)[shown], order, top_k).tolist() for query in queries]

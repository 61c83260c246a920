"""Trains an encoder to rank: gathers pairs of question and passage, and trains and measures a LoRA adapter.

With in-batch negatives, every other pair's passage in a batch counts as wrong (Henderson et al. 2017,
https://arxiv.org/abs/1705.00652). One hard negative per pair, a passage that BM25 ranks high and that is not gold, is
added (Karpukhin et al. 2020, https://arxiv.org/abs/2004.04906, section 3.2). The loss is the cross entropy of the gold
passage among all of the batch, at cosine / temperature (InfoNCE, van den Oord et al. 2018,
https://arxiv.org/abs/1807.03748, equation 4). Only the upper layers get factors, so the output of the lower layers is
computed once per text and kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ragqa.corpus.questions import GoldQuestion
from ragqa.errors import CorpusError
from ragqa.lab.dataset.pseudo_queries import Kind
from ragqa.lab.training.loop import Progress, Reading, Training, TrainingRun, stamp_of
from ragqa.lab.training.model_folder import ModelCard, settings_of
from ragqa.plugins.protocols import FloatMatrix, Retriever
from ragqa.retrieval.ranking import Mask, Positions, best_positions
from ragqa.settings.schema import Precision

if TYPE_CHECKING:
    import torch

    from ragqa.lab.training.lora_layers import RetrieverModel

BM25_DEPTH = 60  # ranks that are searched for hard negatives
MAX_NEGATIVES = 40  # hard negatives per question
NEVER = -1e4  # similarity of masked documents, so that their probability is 0

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RetrieverData:
    """The training data. Questions and passages are identified by position, from 0."""

    questions: tuple[str, ...]
    passages: tuple[str, ...]  # the texts that the encoder reads
    text_of: tuple[int, ...]  # per passage; equal texts have equal numbers
    gold_texts: tuple[frozenset[int], ...]  # per question, numbers of `text_of` for its gold and spared passages
    negatives: tuple[tuple[int, ...], ...]  # passages per question, best by BM25 first, without gold texts
    pairs: tuple[tuple[int, int], ...]  # (question, gold passage)
    n_missing: int = 0  # gold ids of these questions that are not in the index

    @property
    def used_passages(self) -> list[int]:
        """The passages that are gold or negative for any question, in order."""
        return sorted({passage for _, passage in self.pairs}.union(*self.negatives))

    @property
    def counts(self) -> str:
        """The counts in words."""
        return f"{len(self.pairs):,} pairs; {self.n_missing:,} gold ids are not in the index"

    @property
    def sha256(self) -> str:
        """The sha256 of everything that decides the training."""
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
    """A number for each text, from 0 in the order of first occurrence; exactly equal texts have equal numbers."""
    known: dict[str, int] = {}
    return tuple(known.setdefault(text, len(known)) for text in texts)


def with_equal_gold(
    questions: Sequence[GoldQuestion], position_of: Mapping[str, int], text_of: Sequence[int]
) -> list[GoldQuestion]:
    """The questions with each gold id replaced by the first id of an equal text; unknown ids do not change.

    This is for folds: a passage that occurs twice in a corpus must not be in training under one id and tested under the
    other.
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
    """Every question with each of its gold passages in the index, and its hard negatives.

    ``passages[n]`` is the text of the passage at position n in ``position_of``; ``limit`` pairs are drawn with ``seed``
    (0 or more). Hard negatives are the best 40 of BM25's best 60 without gold texts. ``spared``, by the question's
    position, are ids that are neither gold nor wrong; they are masked. Raises CorpusError if there are no questions, or
    if no gold passage is in the index.
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
    """The number of batches that `batches` yields: full ones of ``batch_size`` per epoch, but at least one."""
    return epochs * max(1, len(data.pairs) // batch_size)


def drawn_steps(
    data: RetrieverData, size: int, per_epoch: int, epochs: int, seed: int, skip: int
) -> Iterator[tuple[list[tuple[int, int]], np.random.Generator]]:
    """For each step after the first ``skip``: its pairs, at most ``size``, and a random generator for negatives.

    Each epoch's order and each step's generator depend only on ``seed`` (0 or more) and their number, so that a resumed
    training makes the same draws.
    """
    for epoch in range(skip // per_epoch, epochs):
        order = np.random.default_rng([seed, 0, epoch]).permutation(len(data.pairs)).tolist()
        for number in range(max(0, skip - epoch * per_epoch), per_epoch):
            pairs = [data.pairs[n] for n in order[number * size : (number + 1) * size]]
            yield pairs, np.random.default_rng([seed, 1, epoch * per_epoch + number])


def batches(data: RetrieverData, epochs: int, batch_size: int, seed: int, *, skip: int = 0) -> Iterator[Batch]:
    """The batches of all epochs after the first ``skip``; pairs of an epoch that fill no batch are left out.

    A question without hard negatives (BM25 knows none of its words) gets a random used passage, so that all rows count
    the same.
    """
    anything = data.used_passages
    size, per_epoch = min(batch_size, len(data.pairs)), steps_of(data, 1, batch_size)
    for pairs, chance in drawn_steps(data, size, per_epoch, epochs, seed, skip):
        questions = tuple(question for question, _ in pairs)
        choices = [data.negatives[question] or anything for question in questions]
        wrong = (choice[int(chance.integers(len(choice)))] for choice in choices)
        documents = (*(passage for _, passage in pairs), *wrong)
        yield Batch(questions, documents, masked(data, questions, documents))


def masked(data: RetrieverData, questions: Sequence[int], documents: Sequence[int]) -> Mask:
    """`Batch.masked` of these rows and columns, shape (n_questions, n_documents)."""
    texts = [data.text_of[passage] for passage in documents]
    mask = np.array([[text in data.gold_texts[question] for text in texts] for question in questions], dtype=np.bool_)
    np.fill_diagonal(mask, val=False)
    return mask


def nearest(
    queries: FloatMatrix, vectors: FloatMatrix, hidden: Mask, order: Positions, top_k: int = 10
) -> list[list[int]]:
    """The positions of the ``top_k`` passages of highest cosine per query, best first; ties by ``order``.

    ``queries`` (n_queries, width) and ``vectors`` (n_passages, width) have rows of length 1; passages that ``hidden``,
    shape (n_passages,), marks are left out.
    """
    shown: Numbers = np.flatnonzero(~hidden)
    return [best_positions(shown, (vectors @ query)[shown], order, top_k).tolist() for query in queries]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverTraining(Training):
    """Training settings. The defaults worked best in trials on two processor cores (ObliQA dev)."""

    base: str = "all-MiniLM-L6-v2"  # as for `ragqa.retrieval.local_models.weights_of`
    epochs: int = 2
    rank: int = 16  # of the factors, >= 1
    layers: int = 3  # last layers that get factors, >= 1
    learning_rate: float = 5e-4
    batch_size: int = 96
    warmup_steps: int = 30
    temperature: float = 0.05  # > 0
    passage_tokens: int = 128  # a longer text is cut
    question_tokens: int = 96
    precision: Precision = "auto"  # the faster one on this CPU; bf16 on a GPU that supports it


def train_retriever(training: RetrieverTraining, data: RetrieverData, out: Path) -> Iterator[Reading | Progress]:
    """Trains in ``out``, yields as it reads and every 10 steps, and writes the adapter when done (`export_adapter`).

    Resumes at ``out``'s checkpoint if it has the same settings and data, and reaches the same weights. Raises
    ModelError if the base or the checkpoint does not fit.
    """
    from ragqa.lab.training.lora_layers import RetrieverModel, export_adapter  # imports torch

    model = RetrieverModel(training.base, training.layers, training.rank, training.seed, training.precision)
    steps = steps_of(data, training.epochs, training.batch_size)
    run = TrainingRun(model.bert, training, steps, out, stamp_of(asdict(training), model.base_sha256, data.sha256))
    asked: dict[int, torch.Tensor] = {}
    read: dict[int, torch.Tensor] = {}
    if not run.is_finished:
        yield from _read(model, training, data, asked, read)
    yield from run.train(
        batches(data, training.epochs, training.batch_size, training.seed, skip=run.done),
        partial(_loss, model, asked, read, training.temperature),
        partial(export_adapter, model.bert, out, training.base),
    )


def _read(
    model: RetrieverModel,
    training: RetrieverTraining,
    data: RetrieverData,
    asked: dict[int, torch.Tensor],
    read: dict[int, torch.Tensor],
) -> Iterator[Reading]:
    """Fills ``asked`` and ``read`` with the frozen layers' output for the questions and passages in use."""
    questions = sorted({question for question, _ in data.pairs})
    passages = data.used_passages
    for known, numbers, texts, limit in (
        (asked, questions, data.questions, training.question_tokens),
        (read, passages, data.passages, training.passage_tokens),
    ):
        for part in model.lower([texts[n] for n in numbers], limit):
            known.update((numbers[n], states) for n, states in part)
            yield Reading(len(asked) + len(read), len(questions) + len(passages))


def _loss(
    model: RetrieverModel,
    asked: Mapping[int, torch.Tensor],
    read: Mapping[int, torch.Tensor],
    temperature: float,
    batch: Batch,
) -> torch.Tensor:
    import torch
    from torch.nn import functional

    questions = model.upper([asked[n] for n in batch.questions])
    documents = model.upper([read[n] for n in batch.documents])
    masked = torch.from_numpy(batch.masked).to(model.device)
    similarity = (questions @ documents.T / temperature).masked_fill(masked, NEVER)
    return functional.cross_entropy(similarity, torch.arange(len(questions), device=model.device))


def retriever_card(
    name: str,
    training: RetrieverTraining,
    data: RetrieverData,
    last: Progress,
    *,
    base_sha256: str,
    command: str,
    sources: Sequence[Sequence[str]],
    n_asked: int,
    figures: Sequence[tuple[str, str, str]] = (),
    made: Mapping[Kind, int] = MappingProxyType({}),
) -> ModelCard:
    """The card. ``sources`` is a table of the files read; ``last`` is the last report.

    ``figures`` are (measure, before, after). The first ``n_asked`` of the data's questions were given; ``made`` counts
    the pseudo-queries after them by kind.
    """
    used = {question for question, _ in data.pairs}
    counts = {"questions": sum(n < n_asked for n in used), "pseudo-queries": sum(n >= n_asked for n in used)}
    asked = " and ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    apart = "share no gold passage with the questions trained on" if n_asked else "were not trained on"
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in made.items())
    about_made = (
        "Pseudo-queries were made of the corpus's own text by rules, without a language model and without reading a "
        f"question: {kinds}. They may be about any passage, also one that is gold of a question measured above: what "
        "was held out are questions, not passages."
    )
    return ModelCard(
        title=f"{name}: an adapter for ranking passages",
        use=f"A LoRA in PEFT's format for the encoder `{training.base}` (weights sha256 {base_sha256}). Use it: "
        f"`ragqa index build --encoder {training.base}+FOLDER`, or `--also dense:{training.base}+FOLDER` beside "
        "others, FOLDER being this one.",
        figures=[("questions", "before", "after"), *figures],
        figures_note=f"The dense ranking alone, on questions that {apart}.",
        data=f"{len(data.pairs):,} pairs of {asked} and their gold passages ({data.n_missing:,} gold ids not in the "
        f"index), each with a hard negative of BM25's; {last.step:,} of {last.steps:,} steps; {last.seconds:.0f} "
        f"seconds in the last run. Settings: {settings_of(training)}.",
        sources=sources,
        further=about_made if made else "",
        command=command,
        seed=training.seed,
        limits="It learns what passages answer these questions: on another corpus measure it before use (`--also`, "
        "then `ragqa eval retrieval`), or train one there.",
    )

"""Trains an encoder to rank: pairs of question and passage in, a LoRA adapter out. This module imports torch.

Only the upper layers get factors, so what the layers below them make of each text is computed once and kept. The loss
is the cross entropy of the gold passage among all of the batch, at cosine / temperature (InfoNCE, van den Oord et al.
2018, https://arxiv.org/abs/1807.03748, equation 4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from torch.nn import functional

from ragqa.config import Precision
from ragqa.training.checkpoint import stamp_of
from ragqa.training.loop import Progress, Reading, Run, Training
from ragqa.training.lora_layers import RetrieverModel, export_adapter
from ragqa.training.retriever_data import Batch, RetrieverData, batches, steps_of

NEVER = -1e4  # similarity of what is masked: its probability is 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverTraining(Training):
    """How to train. Defaults are those that paid in trials on two processor cores (ObliQA dev)."""

    base: str = "all-MiniLM-L6-v2"  # as `ragqa.retrieval.local_models.weights_of` takes it
    epochs: int = 2
    rank: int = 16  # of the factors, >= 1
    layers: int = 3  # the last so many get factors, >= 1
    learning_rate: float = 5e-4
    batch_size: int = 96
    warmup_steps: int = 30
    temperature: float = 0.05  # > 0
    passage_tokens: int = 128  # a longer text is cut
    question_tokens: int = 96
    precision: Precision = "auto"  # bf16 where the processor or the GPU computes in it


def train_retriever(training: RetrieverTraining, data: RetrieverData, out: Path) -> Iterator[Reading | Progress]:
    """Trains in ``out``, yields as it reads and every 10 steps, and writes the adapter when done (`export_adapter`).

    Goes on from ``out``'s checkpoint where one of the same settings and data is, to the same weights. Raises ModelError
    where the base or the checkpoint does not fit.
    """
    model = RetrieverModel(training.base, training.layers, training.rank, training.seed, training.precision)
    steps = steps_of(data, training.epochs, training.batch_size)
    run = Run(model.bert, training, steps, out, stamp_of(asdict(training), model.base_sha256, data.sha256))
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
    """Fills ``asked`` and ``read`` with what the frozen layers make of the questions and passages that are used."""
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
    questions = model.upper([asked[n] for n in batch.questions])
    documents = model.upper([read[n] for n in batch.documents])
    masked = torch.from_numpy(batch.masked).to(model.device)
    similarity = (questions @ documents.T / temperature).masked_fill(masked, NEVER)
    return functional.cross_entropy(similarity, torch.arange(len(questions), device=model.device))

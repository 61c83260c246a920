"""Trains an encoder to rank: pairs of question and passage in, a LoRA adapter out. Killed, it goes on where it was.

This module imports torch. Only the upper layers get factors, so what the layers below them make of each text is
computed once and kept. The loss is the cross entropy of the gold passage among all of the batch, at cosine /
temperature (InfoNCE, van den Oord et al. 2018, https://arxiv.org/abs/1807.03748, equation 4).
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch.nn import functional

from ragqa.config import Precision
from ragqa.training.lora_layers import RetrieverModel, export_adapter
from ragqa.training.nli_checkpoint import load_checkpoint, save_checkpoint
from ragqa.training.retriever_data import Batch, RetrieverData, batches, steps_of

__all__ = ["RetrieverProgress", "RetrieverTraining", "train_retriever"]

logger = logging.getLogger(__name__)

REPORT_EVERY = 10  # steps
NEVER = -1e4  # similarity of what is masked: its probability is 0


@dataclass(frozen=True, slots=True)
class RetrieverTraining:
    """How to train. Defaults are those that paid in trials on two processor cores (ObliQA dev)."""

    base: str = "all-MiniLM-L6-v2"  # as `ragqa.retrieval.weights.weights_of` takes it
    epochs: int = 2  # >= 1
    rank: int = 16  # of the factors, >= 1
    layers: int = 3  # the last so many get factors, >= 1
    learning_rate: float = 5e-4  # peak; falls linearly to 0
    batch_size: int = 96  # pairs per step, >= 1
    warmup_steps: int = 30
    temperature: float = 0.05  # > 0
    weight_decay: float = 0.01
    passage_tokens: int = 128  # a longer text is cut
    question_tokens: int = 96
    precision: Precision = "auto"  # bf16 where the processor or the GPU computes in it
    seed: int = 1  # >= 0
    checkpoint_every: int = 50  # steps
    stop_after: int | None = None  # steps after which the adapter is written; the schedule stays that of all epochs


@dataclass(frozen=True, slots=True)
class RetrieverProgress:
    """Where a training is: ``done`` of ``total`` texts while it reads them, of steps while it trains."""

    stage: str  # "reading" or "training"
    done: int
    total: int
    loss: float = float("nan")  # mean over the steps since the last report; NaN where there was none
    seconds: float = 0.0  # since this run began


def train_retriever(training: RetrieverTraining, data: RetrieverData, out: Path) -> Iterator[RetrieverProgress]:
    """Trains in ``out``, yields as it reads and every 10 steps, and writes the adapter when done (`export_adapter`).

    Goes on from ``out``'s checkpoint where one of the same settings and data is, to the same weights. Raises ModelError
    where the base or the checkpoint does not fit.
    """
    began = time.perf_counter()
    model = RetrieverModel(training.base, training.layers, training.rank, training.seed, training.precision)
    out.mkdir(parents=True, exist_ok=True)
    optimizer = torch.optim.AdamW(model.factors, lr=training.learning_rate, weight_decay=training.weight_decay)
    stamp = _stamp(training, data, model.base_sha256)
    done = load_checkpoint(out, model.bert, optimizer, stamp)
    steps = steps_of(data, training.epochs, training.batch_size)
    end = min(steps, training.stop_after or steps)
    if done >= end:
        export_adapter(model.bert, out, training.base)
        yield RetrieverProgress("training", done, steps, seconds=time.perf_counter() - began)
        return
    if done:
        logger.info("going on after step %d of %d", done, steps)
    questions, passages = sorted({n for n, _ in data.pairs}), _used_passages(data)
    asked: dict[int, torch.Tensor] = {}
    read: dict[int, torch.Tensor] = {}
    for known, numbers, texts, limit in (
        (asked, questions, data.questions, training.question_tokens),
        (read, passages, data.passages, training.passage_tokens),
    ):
        for part in model.lower([texts[n] for n in numbers], limit):
            known.update((numbers[n], states) for n, states in part)
            spent = time.perf_counter() - began
            yield RetrieverProgress("reading", len(asked) + len(read), len(questions) + len(passages), seconds=spent)
    losses: list[float] = []
    rest = batches(data, training.epochs, training.batch_size, training.seed, skip=done)
    for step, batch in enumerate(rest, start=done + 1):
        for group in optimizer.param_groups:
            group["lr"] = _learning_rate(training, step, steps)
        losses.append(_step(model, optimizer, batch, asked, read, training.temperature))
        saves = step % training.checkpoint_every == 0 or step == end
        if saves:
            save_checkpoint(out, model.bert, optimizer, step, stamp)
        if step == end:
            export_adapter(model.bert, out, training.base)
        if saves or step % REPORT_EVERY == 0:
            mean = sum(losses) / len(losses)
            losses.clear()
            yield RetrieverProgress("training", step, steps, mean, time.perf_counter() - began)
        if step == end:
            return


def _step(
    model: RetrieverModel,
    optimizer: torch.optim.AdamW,
    batch: Batch,
    asked: Mapping[int, torch.Tensor],
    read: Mapping[int, torch.Tensor],
    temperature: float,
) -> float:
    questions = model.upper([asked[n] for n in batch.questions])
    documents = model.upper([read[n] for n in batch.documents])
    masked = torch.from_numpy(batch.masked).to(model.device)
    similarity = (questions @ documents.T / temperature).masked_fill(masked, NEVER)
    loss = functional.cross_entropy(similarity, torch.arange(len(questions), device=model.device))
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.factors, 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return float(loss.detach())


def _learning_rate(training: RetrieverTraining, step: int, steps: int) -> float:
    """Of this step, from 1: rises over the warm-up while it falls linearly over all steps."""
    return training.learning_rate * min(1.0, step / max(1, training.warmup_steps)) * (1 - (step - 1) / steps)


def _used_passages(data: RetrieverData) -> list[int]:
    return sorted({passage for _, passage in data.pairs}.union(*data.negatives))


def _stamp(training: RetrieverTraining, data: RetrieverData, base_sha256: str) -> str:
    """sha256 of all that decides the run; what only decides how often it is saved does not count."""
    settings = asdict(training)
    del settings["checkpoint_every"], settings["stop_after"]
    return hashlib.sha256(json.dumps([settings, base_sha256, data.sha256], sort_keys=True).encode()).hexdigest()

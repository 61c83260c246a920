"""Trains the NLI cross-encoder: labelled pairs in, a folder of fp16 weights out. This module imports torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from ragqa.models import fingerprint, resolve_model
from ragqa.training.checkpoint import stamp_of
from ragqa.training.classifier import export_classifier, load_classifier
from ragqa.training.loop import Progress, Run, Training
from ragqa.training.nli_data import LABELS, LabelledPair, batches_of_epoch, pairs_sha256

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedModel, PreTrainedTokenizerBase

KIND = "nli"


@dataclass(frozen=True, slots=True, kw_only=True)
class NliTraining(Training):
    """How to train. Defaults are those that paid in trials on two processor cores."""

    base: str = "nli-minilm-l6"  # an embedded name or a folder: a model with a tokenizer
    epochs: int = 1
    batch_size: int = 48
    learning_rate: float = 1e-4
    warmup_steps: int = 200
    max_tokens: int = 240  # of a pair; the longer text is cut first
    label_smoothing: float = 0.05  # in [0, 1)
    dropout: float = 0.1  # between layers, in [0, 1)
    frozen_words: bool = True  # word embeddings stay as they are
    checkpoint_every: int = 250


def train_nli(
    training: NliTraining, pairs: Sequence[LabelledPair], held_out: Sequence[LabelledPair], out: Path
) -> Iterator[Progress]:
    """Trains in ``out``, yields every 10 steps, and writes the weights when done (`export_classifier`).

    Goes on from ``out``'s checkpoint where one of the same settings and data is. Uses the GPU where there is one.
    Raises ModelError where the base or the checkpoint does not fit.
    """
    from transformers import AutoTokenizer

    base = resolve_model(training.base)
    model = load_classifier(
        base, LABELS, dropout=training.dropout, seed=training.seed, frozen_words=training.frozen_words
    )
    tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True)
    steps = training.epochs * -(-len(pairs) // training.batch_size)
    stamp = stamp_of(asdict(training), fingerprint(base), pairs_sha256(pairs))
    run = Run(model, training, steps, out, stamp)
    yield from run.train(
        islice(_batches(training, pairs), run.done, None),
        partial(_loss, model, tokenizer, training),
        partial(export_classifier, model, base, out, KIND),
        partial(_accuracy, model, tokenizer, training, held_out) if held_out else None,
    )


def _batches(training: NliTraining, pairs: Sequence[LabelledPair]) -> Iterator[list[LabelledPair]]:
    for epoch in range(training.epochs):
        yield from batches_of_epoch(pairs, training.batch_size, training.seed * 1000 + epoch)


def _loss(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    training: NliTraining,
    batch: Sequence[LabelledPair],
) -> torch.Tensor:
    model.train()
    labels = torch.tensor([pair.label for pair in batch], device=model.device)
    logits = _logits(model, tokenizer, training, batch)
    return functional.cross_entropy(logits.float(), labels, label_smoothing=training.label_smoothing)


def _accuracy(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    training: NliTraining,
    pairs: Sequence[LabelledPair],
) -> float:
    """Share of these pairs whose most probable label is their own, in [0, 1]."""
    model.eval()  # type: ignore[no-untyped-call]
    right = 0
    for batch in batches_of_epoch(pairs, training.batch_size, 0):
        with torch.inference_mode():
            found = _logits(model, tokenizer, training, batch).argmax(-1).tolist()
        right += sum(label == pair.label for label, pair in zip(found, batch, strict=True))
    return right / len(pairs)


def _logits(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    training: NliTraining,
    batch: Sequence[LabelledPair],
) -> torch.Tensor:
    """Shape (n_pairs, 3), computed in bf16."""
    encoded: BatchEncoding = tokenizer(
        [pair.premise for pair in batch],
        [pair.hypothesis for pair in batch],
        truncation="longest_first",
        max_length=training.max_tokens,
        padding=True,
        pad_to_multiple_of=8,  # few shapes: torch keeps a compiled kernel for each, and gigabytes of them otherwise
        return_tensors="pt",
    )
    with torch.autocast(model.device.type, torch.bfloat16):
        logits: torch.Tensor = model(**encoded.to(model.device)).logits
    return logits

"""Trains the NLI cross-encoder: labelled pairs in, a folder of fp16 weights out. Killed, it goes on where it was.

This module imports torch. The order of the data, and so the whole run, follows from the seed (up to the rounding of the
processor's threads).
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from ragqa.models import fingerprint, resolve_model
from ragqa.training.nli_checkpoint import load_checkpoint, save_checkpoint
from ragqa.training.nli_data import LABELS, LabelledPair, batches_of_epoch

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["NliProgress", "NliTraining", "export", "train_nli"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NliTraining:
    """How to train. Defaults are those that paid in trials on two processor cores."""

    base: str = "nli-minilm-l6"  # an embedded name or a folder: a model with a tokenizer
    epochs: int = 1  # >= 1
    batch_size: int = 48  # pairs per step
    learning_rate: float = 1e-4  # peak, after the warm-up; falls linearly to 0
    warmup_steps: int = 200
    max_tokens: int = 240  # of a pair; the longer text is cut first
    label_smoothing: float = 0.05  # in [0, 1)
    weight_decay: float = 0.01
    dropout: float = 0.1  # between layers, in [0, 1)
    frozen_words: bool = True  # word embeddings stay as they are: half of the weights, and they overfit first
    seed: int = 1
    checkpoint_every: int = 250  # steps
    stop_after: int | None = None  # steps after which the weights are written; the schedule stays that of all epochs


@dataclass(frozen=True, slots=True)
class NliProgress:
    """Where a training is. ``held_out`` is the accuracy on the pairs kept aside, None between two validations."""

    step: int
    steps: int
    loss: float  # mean over the last steps; NaN where nothing was left to train
    pairs_per_second: float
    held_out: float | None = None


def train_nli(
    training: NliTraining, pairs: Sequence[LabelledPair], held_out: Sequence[LabelledPair], out: Path
) -> Iterator[NliProgress]:
    """Trains in ``out``, yields every 25 steps, and writes the weights when done (`export`).

    Goes on from ``out``'s checkpoint where one of the same settings and data is. Uses the GPU where there is one.
    Raises ModelError where the base or the checkpoint does not fit.
    """
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    torch.manual_seed(training.seed)
    out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    base = resolve_model(training.base)
    tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True)
    labels = {"id2label": dict(enumerate(LABELS)), "label2id": {label: n for n, label in enumerate(LABELS)}}
    model = AutoModelForSequenceClassification.from_pretrained(
        base,
        local_files_only=True,
        use_safetensors=True,
        dtype=torch.float32,
        num_labels=len(LABELS),
        attn_implementation="eager",  # on processors faster than sdpa, whose backward pass is slow in bf16
        attention_probs_dropout_prob=0.0,  # drawing that many random numbers takes a fifth of the time
        hidden_dropout_prob=training.dropout,
        **labels,
    ).to(device)
    if training.frozen_words:
        model.get_input_embeddings().weight.requires_grad_(requires_grad=False)
    optimizer = _optimizer(model, training)
    steps = training.epochs * -(-len(pairs) // training.batch_size)
    stamp = _stamp(training, pairs, fingerprint(base))
    done = load_checkpoint(out, model, optimizer, stamp)
    if done:
        logger.info("going on after step %d of %d", done, steps)
    end = min(steps, training.stop_after or steps)
    if done >= end:
        export(model, base, out)
        accuracy = _accuracy(model, tokenizer, held_out, training, device) if held_out else None
        yield NliProgress(done, steps, float("nan"), 0.0, accuracy)
        return
    losses: list[float] = []
    began, seen = time.perf_counter(), 0
    for step, batch in enumerate(_batches(training, pairs), start=1):
        if step <= done:
            continue
        for group in optimizer.param_groups:
            group["lr"] = _learning_rate(training, step, steps)
        losses.append(_step(model, optimizer, _encoded(tokenizer, batch, training, device), batch, training))
        seen += len(batch)
        last = step == end
        if step % training.checkpoint_every == 0 or last:
            save_checkpoint(out, model, optimizer, step, stamp)
            accuracy = _accuracy(model, tokenizer, held_out, training, device) if held_out else None
            if last:
                export(model, base, out)
            yield NliProgress(step, steps, _mean(losses), seen / (time.perf_counter() - began), accuracy)
            if last:
                return
        elif step % 25 == 0:
            yield NliProgress(step, steps, _mean(losses), seen / (time.perf_counter() - began))


def export(model: PreTrainedModel, base: Path, out: Path, kind: str = "nli") -> None:
    """The weights in half precision with all that is needed to load them: config, tokenizer, MODEL.json of ``kind``."""
    from safetensors.torch import save_file

    tensors = {name: tensor.detach().cpu().half().contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(out)
    for file in base.glob("*token*"):
        if file.suffix == ".json":
            shutil.copyfile(file, out / file.name)
    manifest = {
        "name": out.name,
        "kind": kind,
        "weights": "model.safetensors",
        "sha256": fingerprint(out / "model.safetensors"),
    }
    (out / "MODEL.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def _optimizer(model: PreTrainedModel, training: NliTraining) -> torch.optim.AdamW:
    trained = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    decayed = [parameter for name, parameter in trained if parameter.ndim > 1]
    plain = [parameter for name, parameter in trained if parameter.ndim <= 1]  # biases and norms
    groups = [{"params": decayed, "weight_decay": training.weight_decay}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=training.learning_rate, fused=True)


def _learning_rate(training: NliTraining, step: int, steps: int) -> float:
    if step <= training.warmup_steps:
        return training.learning_rate * step / training.warmup_steps
    return training.learning_rate * max(0.0, (steps - step + 1) / max(1, steps - training.warmup_steps))


def _batches(training: NliTraining, pairs: Sequence[LabelledPair]) -> Iterator[list[LabelledPair]]:
    for epoch in range(training.epochs):
        yield from batches_of_epoch(pairs, training.batch_size, training.seed * 1000 + epoch)


def _step(
    model: PreTrainedModel,
    optimizer: torch.optim.AdamW,
    inputs: BatchEncoding,
    batch: Sequence[LabelledPair],
    training: NliTraining,
) -> float:
    model.train()
    device = model.device
    labels = torch.tensor([pair.label for pair in batch], device=device)
    with torch.autocast(device.type, torch.bfloat16):
        logits = model(**inputs).logits
    loss = torch.nn.functional.cross_entropy(logits.float(), labels, label_smoothing=training.label_smoothing)
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_((p for p in model.parameters() if p.requires_grad), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return float(loss.detach())


def _encoded(
    tokenizer: PreTrainedTokenizerBase, batch: Sequence[LabelledPair], training: NliTraining, device: str
) -> BatchEncoding:
    encoded: BatchEncoding = tokenizer(
        [pair.premise for pair in batch],
        [pair.hypothesis for pair in batch],
        truncation="longest_first",
        max_length=training.max_tokens,
        padding=True,
        pad_to_multiple_of=8,  # few shapes: torch keeps a compiled kernel for each, and gigabytes of them otherwise
        return_tensors="pt",
    )
    return encoded.to(device)


def _accuracy(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    pairs: Sequence[LabelledPair],
    training: NliTraining,
    device: str,
) -> float:
    """Share of these pairs whose most probable label is their own, in [0, 1]."""
    model.eval()  # type: ignore[no-untyped-call]
    right = 0
    for batch in batches_of_epoch(pairs, training.batch_size, 0):
        with torch.inference_mode(), torch.autocast(device, torch.bfloat16):
            found = model(**_encoded(tokenizer, batch, training, device)).logits.argmax(-1).tolist()
        right += sum(label == pair.label for label, pair in zip(found, batch, strict=True))
    return right / len(pairs)


def _stamp(training: NliTraining, pairs: Sequence[LabelledPair], base: str) -> str:
    """sha256 of all that decides the run; what only decides how often it is saved does not count."""
    settings = asdict(training)
    del settings["checkpoint_every"], settings["stop_after"]
    digest = hashlib.sha256(json.dumps([settings, base, len(pairs)], sort_keys=True).encode())
    for pair in pairs:
        digest.update(f"{pair.label}\0{pair.premise}\0{pair.hypothesis}\0".encode("utf-8", "replace"))
    return digest.hexdigest()


def _mean(values: list[float], last: int = 100) -> float:
    return sum(values[-last:]) / len(values[-last:])

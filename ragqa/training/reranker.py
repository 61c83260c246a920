"""Trains a cross-encoder to put the gold passage first: groups in, a folder of fp16 weights out. Killed, it goes on.

This module imports torch. The loss is the cross entropy of the gold passage among its group, over the logits that the
model gives to (question, passage) (Nogueira and Cho 2019, https://arxiv.org/abs/1901.04085, for the input; Han et al.
2020, https://arxiv.org/abs/2004.08476, equation 2 with softmax, for the list). The order of the data, and so the whole
run, follows from the seed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from ragqa import models
from ragqa.errors import ConfigError
from ragqa.http_client import is_api_name
from ragqa.inference.pair_encoding import PairEncoder, padded_inputs
from ragqa.inference.torch_engine import load_tokenizer
from ragqa.retrieval.local_models import weights_of
from ragqa.retrieval.reranker import KIND
from ragqa.training.checkpoint import stamp_of
from ragqa.training.classifier import export_classifier, load_classifier
from ragqa.training.loop import Progress, Run, Training
from ragqa.training.reranker_data import Group, groups_by_step, steps_of
from ragqa.training.retriever_data import RetrieverData

if TYPE_CHECKING:
    from transformers import PreTrainedModel

LABELS = ("relevance",)
PAIRS_PER_PASS = 8  # of alike length, computed together on processor cores; on a GPU a step is one pass
TOKEN_STEP = 32  # lengths are padded to multiples of it: torch keeps a compiled kernel, megabytes, for each shape


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerTraining(Training):
    """How to train. With the defaults one trial on two processor cores gained .014 MAP@10 (ObliQA dev, fold 1/5)."""

    base: str  # an embedded name, an encoder's name or a folder: a model with a tokenizer
    epochs: int = 1
    negatives: int = 4  # wrong passages beside each gold one, >= 1
    batch_size: int = 8  # gold passages, with their negatives
    learning_rate: float = 1e-4
    warmup_steps: int = 40
    max_tokens: int = 224  # of question and passage; the longer text is cut first; >= 8
    dropout: float = 0.1  # between layers, in [0, 1)


def train_reranker(training: RerankerTraining, data: RetrieverData, out: Path) -> Iterator[Progress]:
    """Trains in ``out``, yields every 10 steps, and writes the weights when done.

    Goes on from ``out``'s checkpoint where one of the same settings and data is. Uses the GPU where there is one.
    Raises ModelError where the base or the checkpoint does not fit, ConfigError where ``base`` names no folder, and
    CorpusError where there is nothing to tell a gold passage from.
    """
    base, base_sha256 = base_folder(training.base)
    model = load_classifier(base, LABELS, dropout=training.dropout, seed=training.seed)
    encoder = PairEncoder(load_tokenizer(base), training.max_tokens)
    steps = steps_of(data, training.epochs, training.batch_size)
    run = Run(model, training, steps, out, stamp_of(asdict(training), base_sha256, data.sha256))
    reports = run.train(
        groups_by_step(data, training.epochs, training.batch_size, training.negatives, training.seed, skip=run.done),
        partial(_loss, model, encoder, data),
        partial(_export, model, base, out, encoder, training.max_tokens),
    )
    for now in reports:
        yield replace(now, pairs_per_second=now.pairs_per_second * (1 + training.negatives))


def base_folder(name: str) -> tuple[Path, str]:
    """Where the model that training starts from lies, and the sha256 of its weights.

    ``name`` is an embedded one, or an encoder's as `weights_of` takes it, a folder or a hub name. Raises ConfigError
    for an encoder with an adapter or on a server, and ModelError where there is no such model.
    """
    if is_api_name(name) or ("+" in name and not Path(name).expanduser().is_dir()):
        msg = f"expected a model to start from, found {name!r}, which is no single folder; name one with --base"
        raise ConfigError(msg)
    if name in models.EMBEDDED:
        folder = models.resolve_model(name)
        return folder, models.fingerprint(folder)
    found = weights_of(name)
    return found.folder, found.sha256


def _loss(model: PreTrainedModel, encoder: PairEncoder, data: RetrieverData, groups: Sequence[Group]) -> torch.Tensor:
    model.train()
    device = model.device
    pairs = [(data.questions[group.question], data.passages[n]) for group in groups for n in group.passages]
    encoded = encoder.encode(pairs)
    found: list[torch.Tensor] = []
    order: list[int] = []
    by_length = sorted(range(len(encoded)), key=lambda n: len(encoded[n].ids))
    size = PAIRS_PER_PASS if device.type == "cpu" else len(by_length)
    for start in range(0, len(by_length), size):
        batch = by_length[start : start + size]
        inputs = padded_inputs([encoded[n] for n in batch], int(model.config.pad_token_id or 0))
        padding = -inputs["input_ids"].shape[1] % TOKEN_STEP
        tensors: dict[str, Any] = {
            name: functional.pad(torch.from_numpy(rows), (0, padding)).to(device) for name, rows in inputs.items()
        }
        if not getattr(model.config, "type_vocab_size", 0) > 1:
            del tensors["token_type_ids"]
        with torch.autocast(device.type, torch.bfloat16):
            found.append(model(**tensors).logits[:, 0].float())
        order += batch
    logits = torch.cat(found)[torch.argsort(torch.tensor(order, device=device))].view(len(groups), -1)
    return functional.cross_entropy(logits, torch.zeros(len(groups), dtype=torch.long, device=device))


def _export(model: PreTrainedModel, base: Path, out: Path, encoder: PairEncoder, max_tokens: int) -> None:
    """The folder `CrossEncoderReranker` takes; its tokenizer cuts where training cut."""
    export_classifier(model, base, out, KIND)
    encoder.save_tokenizer(out / "tokenizer.json")
    file = out / "tokenizer_config.json"
    config = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    file.write_text(json.dumps(config | {"model_max_length": max_tokens}, indent=2) + "\n", encoding="utf-8")

"""Trains a cross-encoder to put the gold passage first: groups in, a folder of fp16 weights out. Killed, it goes on.

This module imports torch. The loss is the cross entropy of the gold passage among its group, over the logits that the
model gives to (question, passage) (Nogueira and Cho 2019, https://arxiv.org/abs/1901.04085, for the input; Han et al.
2020, https://arxiv.org/abs/2004.08476, equation 2 with softmax, for the list). The order of the data, and so the whole
run, follows from the seed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from ragqa import models
from ragqa.errors import ConfigError, ModelError
from ragqa.inference.pair_encoding import PairEncoder, padded_inputs
from ragqa.repass.torch_engine import load_tokenizer, quiet_transformers
from ragqa.retrieval.api_encoder import is_api_name
from ragqa.retrieval.reranker import KIND
from ragqa.retrieval.weights import weights_of
from ragqa.training.nli import export
from ragqa.training.nli_checkpoint import load_checkpoint, save_checkpoint
from ragqa.training.reranker_data import Group, groups_by_step, steps_of
from ragqa.training.retriever_data import RetrieverData

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["RerankerProgress", "RerankerTraining", "base_folder", "train_reranker"]

logger = logging.getLogger(__name__)

REPORT_EVERY = 10  # steps
PAIRS_PER_PASS = 8  # of alike length, computed together on processor cores; on a GPU a step is one pass
TOKEN_STEP = 32  # lengths are padded to multiples of it: torch keeps a compiled kernel, megabytes, for each shape


@dataclass(frozen=True, slots=True)
class RerankerTraining:
    """How to train. With the defaults one trial on two processor cores gained .014 MAP@10 (ObliQA dev, fold 1/5)."""

    base: str  # an embedded name, an encoder's name or a folder: a model with a tokenizer
    epochs: int = 1  # >= 1
    negatives: int = 4  # wrong passages beside each gold one, >= 1
    batch_size: int = 8  # gold passages, with their negatives, per step, >= 1
    learning_rate: float = 1e-4  # peak; falls linearly to 0
    warmup_steps: int = 40
    max_tokens: int = 224  # of question and passage; the longer text is cut first; >= 8
    weight_decay: float = 0.01
    dropout: float = 0.1  # between layers, in [0, 1)
    seed: int = 1  # >= 0
    checkpoint_every: int = 50  # steps
    stop_after: int | None = None  # steps after which the weights are written; the schedule stays that of all epochs


@dataclass(frozen=True, slots=True)
class RerankerProgress:
    """Where a training is. ``loss`` is the mean over the steps since the last report, NaN where there was none."""

    step: int
    steps: int
    loss: float = float("nan")
    pairs_per_second: float = 0.0  # since this run began
    seconds: float = 0.0  # since this run began


def train_reranker(training: RerankerTraining, data: RetrieverData, out: Path) -> Iterator[RerankerProgress]:
    """Trains in ``out``, yields every 10 steps, and writes the weights when done.

    Goes on from ``out``'s checkpoint where one of the same settings and data is. Uses the GPU where there is one.
    Raises ModelError where the base or the checkpoint does not fit, ConfigError where ``base`` names no folder, and
    CorpusError where there is nothing to tell a gold passage from.
    """
    base, base_sha256 = base_folder(training.base)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(training.seed)
    model = _load(base, training)
    model.to(device)  # type: ignore[arg-type]  # transformers' own wrapper of it is not typed
    encoder = PairEncoder(load_tokenizer(base), training.max_tokens)
    out.mkdir(parents=True, exist_ok=True)
    optimizer = _optimizer(model, training)
    stamp = _stamp(training, data, base_sha256)
    done = load_checkpoint(out, model, optimizer, stamp)
    steps = steps_of(data, training.epochs, training.batch_size)
    end = min(steps, training.stop_after or steps)
    if done >= end:
        _export(model, base, out, encoder, training.max_tokens)
        yield RerankerProgress(done, steps)
        return
    if done:
        logger.info("going on after step %d of %d", done, steps)
    losses: list[float] = []
    began, seen = time.perf_counter(), 0
    rest = groups_by_step(data, training.epochs, training.batch_size, training.negatives, training.seed, skip=done)
    for step, groups in enumerate(rest, start=done + 1):
        for group in optimizer.param_groups:
            group["lr"] = _learning_rate(training, step, steps)
        torch.manual_seed(training.seed * 1_000_003 + step)  # of the dropout: what went before does not matter
        losses.append(_step(model, optimizer, encoder, data, groups))
        seen += len(groups) * (1 + training.negatives)
        saves = step % training.checkpoint_every == 0 or step == end
        if saves:
            save_checkpoint(out, model, optimizer, step, stamp)
        if step == end:
            _export(model, base, out, encoder, training.max_tokens)
        if saves or step % REPORT_EVERY == 0:
            spent = time.perf_counter() - began
            yield RerankerProgress(step, steps, sum(losses) / len(losses), seen / spent, spent)
            losses.clear()
        if step == end:
            return


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


def _load(base: Path, training: RerankerTraining) -> PreTrainedModel:
    """The model with one new output in place of whatever it had."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    try:
        with quiet_transformers():
            config = AutoConfig.from_pretrained(base, local_files_only=True)
            config.id2label, config.label2id = {0: "relevance"}, {"relevance": 0}
            config.attention_probs_dropout_prob = 0.0  # drawing that many random numbers takes a fifth of the time
            config.hidden_dropout_prob = training.dropout
            model: PreTrainedModel = AutoModelForSequenceClassification.from_pretrained(
                base,
                config=config,
                local_files_only=True,
                use_safetensors=True,
                dtype=torch.float32,
                ignore_mismatched_sizes=True,
                attn_implementation="eager",  # on processors faster than sdpa, whose backward pass is slow in bf16
            )
    except (OSError, ValueError) as error:
        msg = (
            f"expected a transformer with safetensors weights in {base}, found none that can be loaded "
            f"({str(error).strip()[:300]}); name another --base"
        )
        raise ModelError(msg) from error
    model.get_input_embeddings().requires_grad_(requires_grad=False)  # half of the weights, and they overfit first
    return model


def _step(
    model: PreTrainedModel,
    optimizer: torch.optim.AdamW,
    encoder: PairEncoder,
    data: RetrieverData,
    groups: Sequence[Group],
) -> float:
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
    loss = functional.cross_entropy(logits, torch.zeros(len(groups), dtype=torch.long, device=device))
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_((p for p in model.parameters() if p.requires_grad), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return float(loss.detach())


def _optimizer(model: PreTrainedModel, training: RerankerTraining) -> torch.optim.AdamW:
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    decayed = [parameter for parameter in trained if parameter.ndim > 1]
    plain = [parameter for parameter in trained if parameter.ndim <= 1]  # biases and norms
    groups = [{"params": decayed, "weight_decay": training.weight_decay}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=training.learning_rate, fused=True)


def _learning_rate(training: RerankerTraining, step: int, steps: int) -> float:
    """Of this step, from 1: rises over the warm-up while it falls linearly over all steps."""
    return training.learning_rate * min(1.0, step / max(1, training.warmup_steps)) * (1 - (step - 1) / steps)


def _export(model: PreTrainedModel, base: Path, out: Path, encoder: PairEncoder, max_tokens: int) -> None:
    """The folder `CrossEncoderReranker` takes; its tokenizer cuts where training cut."""
    export(model, base, out, KIND)
    encoder.save_tokenizer(out / "tokenizer.json")
    file = out / "tokenizer_config.json"
    config = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    file.write_text(json.dumps(config | {"model_max_length": max_tokens}, indent=2) + "\n", encoding="utf-8")


def _stamp(training: RerankerTraining, data: RetrieverData, base_sha256: str) -> str:
    """sha256 of all that decides the run; what only decides how often it is saved does not count."""
    settings = asdict(training)
    del settings["checkpoint_every"], settings["stop_after"]
    return hashlib.sha256(json.dumps([settings, base_sha256, data.sha256], sort_keys=True).encode()).hexdigest()

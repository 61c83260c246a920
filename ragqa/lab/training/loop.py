"""How every transformer here is trained: the loop, its checkpoints, and classifiers loaded and written.

Killed, a training resumes at its last checkpoint, to the weights it would have had (up to the rounding of the
processor's threads): what a step draws at random follows from the seed and the step's number alone. A checkpoint is the
whole state in one safetensors file, replaced in one rename; no pickle.
"""

from __future__ import annotations

import hashlib
import json
import logging
import random
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ragqa.errors import ModelError
from ragqa.infra.files import replacing
from ragqa.models import write_manifest
from ragqa.models.inference.bert_graph import is_packed
from ragqa.models.inference.precision import Computed, Subject, timings
from ragqa.models.inference.torch_engine import classifier_of, quiet_transformers, torch_version
from ragqa.settings.config import Precision

if TYPE_CHECKING:
    import torch
    from torch import nn
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)

CHECKPOINT = "checkpoint.safetensors"
WEIGHTS = "model.safetensors"
MOMENTS = ("exp_avg", "exp_avg_sq")  # what AdamW keeps per parameter, beside its step
NOT_STAMPED = {"checkpoint_every", "stop_after"}  # settings that decide how often a run is saved, not what it learns
REPORT_EVERY = 10  # steps
TRIAL = (2, 96)  # texts and their tokens, in the step by which precisions are timed
POOL_BATCHES = 50  # batches sorted by length together: little padding, and still a shuffled epoch
MAX_NORM = 1.0  # of the gradient; a longer one is scaled down to it

Batch = TypeVar("Batch", bound=Sized)


class HasLength(Protocol):
    """What is learnt from, with a number of characters that stands for its length in tokens."""

    @property
    def n_chars(self) -> int: ...


Sample = TypeVar("Sample", bound=HasLength)


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What every training is told. Each kind has defaults of its own, those that paid in trials, and more settings."""

    base: str  # the model to start from
    epochs: int  # >= 1
    batch_size: int  # per step, >= 1
    learning_rate: float  # falls linearly to 0; see `_learning_rate`
    warmup_steps: int
    weight_decay: float = 0.01  # not of biases and norms
    seed: int = 1  # >= 0
    checkpoint_every: int = 50  # steps
    stop_after: int | None = None  # steps after which the weights are written; the schedule stays that of all epochs


@dataclass(frozen=True, slots=True)
class Reading:
    """Before the first step: ``done`` of ``total`` texts are prepared."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a training is. ``held_out`` is the accuracy on what was held out, None where it was not measured."""

    step: int
    steps: int
    loss: float = float("nan")  # mean over the steps since the last report; NaN where nothing was left to train
    pairs_per_second: float = 0.0  # since the first step of this run
    seconds: float = 0.0  # since this run began
    held_out: float | None = None


class TrainingRun:
    """A model that is trained in a folder: its optimizer, its schedule and how many steps are done."""

    def __init__(self, model: nn.Module, training: Training, steps: int, out: Path, stamp: str) -> None:
        """Makes the folder ``out`` where it is not there, and takes up its checkpoint where there is one of ``stamp``.

        ``steps`` are those of all epochs. Raises ModelError where the checkpoint does not fit.
        """
        self._began = time.perf_counter()
        self._model, self._training, self._out, self._stamp = model, training, out, stamp
        out.mkdir(parents=True, exist_ok=True)
        self._trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._optimizer = _adamw(self._trained, training)
        self.steps = steps
        self.done = load_checkpoint(out, model, self._optimizer, stamp)
        self._end = min(steps, training.stop_after or steps)

    @property
    def is_finished(self) -> bool:
        """Whether no step is left to take."""
        return self.done >= self._end

    def train(
        self,
        batches: Iterable[Batch],
        loss_of: Callable[[Batch], torch.Tensor],
        export: Callable[[], None],
        measure: Callable[[], float] | None = None,
    ) -> Iterator[Progress]:
        """Takes the steps that are left, one per batch; saves as it goes, and calls ``export`` at the end.

        ``batches`` are those after the steps that are done. Yields every 10 steps and at each checkpoint, where
        ``measure`` gives `Progress.held_out`; once where nothing is left.
        """
        if self.is_finished:
            export()
            yield Progress(self.done, self.steps, held_out=measure() if measure else None)
            return
        if self.done:
            logger.info("resumed after step %d of %d", self.done, self.steps)
        losses: list[float] = []
        began, seen = time.perf_counter(), 0
        for batch in islice(batches, self._end - self.done):
            self._begin(self.done + 1)
            losses.append(self._step(loss_of(batch)))
            self.done += 1
            seen += len(batch)
            saves = self.is_finished or self.done % self._training.checkpoint_every == 0
            if saves:
                save_checkpoint(self._out, self._model, self._optimizer, self.done, self._stamp)
            if self.is_finished:
                export()
            if saves or self.done % REPORT_EVERY == 0:
                held_out = measure() if saves and measure else None
                now = time.perf_counter()
                loss, rate = sum(losses) / len(losses), seen / (now - began)
                yield Progress(self.done, self.steps, loss, rate, now - self._began, held_out)
                losses.clear()

    def _begin(self, step: int) -> None:
        import torch

        torch.manual_seed(self._training.seed * 1_000_003 + step)  # of the dropout: what went before does not matter
        for group in self._optimizer.param_groups:
            group["lr"] = _learning_rate(self._training, step, self.steps)

    def _step(self, loss: torch.Tensor) -> float:
        from torch import nn

        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self._trained, MAX_NORM)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())


def _adamw(trained: list[nn.Parameter], training: Training) -> torch.optim.AdamW:
    import torch

    decayed = [parameter for parameter in trained if parameter.ndim > 1]
    plain = [parameter for parameter in trained if parameter.ndim <= 1]  # biases and norms
    groups = [{"params": decayed, "weight_decay": training.weight_decay}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=training.learning_rate, fused=True)


def _learning_rate(training: Training, step: int, steps: int) -> float:
    """Of this step, from 1: rises over the warm-up while it falls linearly over all steps."""
    return training.learning_rate * min(1.0, step / max(1, training.warmup_steps)) * (1 - (step - 1) / steps)


def trains_in_bf16(model: PreTrainedModel, weights: str, precision: Precision = "auto") -> bool:
    """Whether to train this transformer, of weights with this sha256, in bf16 by autocast.

    "auto": on a GPU where it computes in bf16; on a processor where a step, forward and back, is timed to be faster
    (`ragqa.models.inference.precision`), for without bf16 instructions one takes six to nine times as long as in fp32.
    What is timed is remembered, so that a training resumes in the precision it began with.
    """
    import torch

    if precision != "auto":
        return precision == "bf16"
    if model.device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    ids = torch.ones(TRIAL[0], min(TRIAL[1], int(model.config.max_position_embeddings) - 2), dtype=torch.long)

    def trial(wanted: Computed) -> Callable[[], None]:
        def step() -> None:
            with torch.autocast("cpu", torch.bfloat16, enabled=wanted == "bf16"):
                found = model(input_ids=ids, attention_mask=torch.ones_like(ids))[0]
            found.float().sum().backward()
            model.zero_grad(set_to_none=True)

        return step

    return timings().faster(Subject("training", f"PyTorch {torch_version()}", weights), trial) == "bf16"


def batches_of_epoch(pairs: Sequence[Sample], batch_size: int, seed: int) -> Iterator[list[Sample]]:
    """All pairs in batches of alike lengths, in an order that ``seed`` fixes; the last batch may be smaller."""
    chance = random.Random(seed)
    order = list(range(len(pairs)))
    chance.shuffle(order)
    pool = batch_size * POOL_BATCHES
    for start in range(0, len(order), pool):
        members = sorted(order[start : start + pool], key=lambda index: pairs[index].n_chars)
        batches = [members[first : first + batch_size] for first in range(0, len(members), batch_size)]
        chance.shuffle(batches)
        yield from ([pairs[index] for index in batch] for batch in batches)


# Checkpoints -------------------------------------------------------------------------------------------------------


def stamp_of(settings: Mapping[str, object], *sha256: str) -> str:
    """One sha256 of all that decides a run: its settings, and the sha256 of the base's weights and of the data."""
    deciding = {name: value for name, value in settings.items() if name not in NOT_STAMPED}
    return hashlib.sha256(json.dumps([deciding, *sha256], sort_keys=True).encode()).hexdigest()


def save_checkpoint(folder: Path, model: torch.nn.Module, optimizer: torch.optim.AdamW, step: int, stamp: str) -> None:
    """Trained parameters, AdamW's moments and the number of finished steps; ``stamp`` names settings and data."""
    from safetensors.torch import save_file

    tensors: dict[str, torch.Tensor] = {}
    for name, parameter in _trained(model):
        tensors[f"parameter/{name}"] = parameter.detach().cpu().contiguous()
        for moment in MOMENTS:
            if parameter in optimizer.state:
                tensors[f"{moment}/{name}"] = optimizer.state[parameter][moment].cpu().contiguous()
    with replacing(folder / CHECKPOINT) as new:
        save_file(tensors, new, metadata={"step": str(step), "stamp": stamp})


def load_checkpoint(folder: Path, model: torch.nn.Module, optimizer: torch.optim.AdamW, stamp: str) -> int:
    """Puts the saved state in place and gives the number of finished steps; 0 where nothing was saved.

    Raises ModelError where the file belongs to other settings or data, or cannot be read.
    """
    import torch
    from safetensors import SafetensorError, safe_open

    file = folder / CHECKPOINT
    if not file.is_file():
        return 0
    try:
        with safe_open(file, framework="pt") as saved:
            metadata = saved.metadata()
            tensors = {name: saved.get_tensor(name) for name in saved.keys()}  # noqa: SIM118 - no mapping
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{file} cannot be read ({error}); delete it to begin the training anew.") from error
    if metadata.get("stamp") != stamp:
        msg = f"{file} is of a training with other settings or data; choose another --out folder, or delete the file."
        raise ModelError(msg)
    step = int(metadata["step"])
    for name, parameter in _trained(model):
        parameter.data.copy_(tensors[f"parameter/{name}"])
        if f"exp_avg/{name}" in tensors:
            state = {moment: tensors[f"{moment}/{name}"].to(parameter.device) for moment in MOMENTS}
            optimizer.state[parameter] = {"step": torch.tensor(float(step), device=parameter.device), **state}
    return step


def _trained(model: torch.nn.Module) -> list[tuple[str, torch.nn.Parameter]]:
    return [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]


# Classifiers -------------------------------------------------------------------------------------------------------


def load_classifier(
    base: Path,
    labels: Sequence[str],
    *,
    dropout: float,
    seed: int,
    frozen_words: bool = True,
    frozen_layers: int = 0,
) -> PreTrainedModel:
    """The model in ``base``, on the GPU where there is one, in fp32; its outputs stay where they are as many.

    New outputs are drawn with ``seed``; ``dropout`` is that between layers, in [0, 1). ``frozen_words`` leaves the word
    embeddings as they are: half of the weights, and they overfit first. With ``frozen_layers`` so many of the lowest
    layers and all embeddings stay, so that nothing is computed back through them. Raises ModelError where there is no
    such model.
    """
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification

    torch.manual_seed(seed)
    try:
        with quiet_transformers():
            config = AutoConfig.from_pretrained(base, local_files_only=True)
            config.id2label = dict(enumerate(labels))
            config.label2id = {label: n for n, label in enumerate(labels)}
            config.attention_probs_dropout_prob = 0.0  # drawing that many random numbers takes a fifth of the time
            config.hidden_dropout_prob = dropout
            config._attn_implementation = "eager"  # on processors faster than sdpa, whose backward pass is slow in bf16
            model: PreTrainedModel
            if is_packed(base):
                model = classifier_of(base, config)
            else:
                model = AutoModelForSequenceClassification.from_pretrained(
                    base,
                    config=config,
                    local_files_only=True,
                    use_safetensors=True,
                    dtype=torch.float32,
                    ignore_mismatched_sizes=True,
                    attn_implementation="eager",
                )
    except (OSError, ValueError) as error:
        raise ModelError(
            f"expected a transformer with safetensors weights in {base}, found none that can be loaded "
            f"({str(error).strip()[:300]}); name another --base"
        ) from error
    model.get_input_embeddings().requires_grad_(requires_grad=not frozen_words)
    if frozen_layers:
        body: Any = model.base_model
        for part in (body.embeddings, *body.encoder.layer[:frozen_layers]):
            part.requires_grad_(requires_grad=False)
    model.to("cuda" if torch.cuda.is_available() else "cpu")  # type: ignore[arg-type]  # transformers does not type it
    return model


def export_classifier(model: PreTrainedModel, base: Path, out: Path, kind: str) -> None:
    """The weights in half precision with all that is needed to load them: config, tokenizer, MODEL.json of ``kind``."""
    from safetensors.torch import save_file

    tensors = {name: tensor.detach().cpu().half().contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, out / WEIGHTS, metadata={"format": "pt"})
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(out)
    for file in base.glob("*token*"):
        if file.suffix == ".json":
            shutil.copyfile(file, out / file.name)
    write_manifest(out, kind, WEIGHTS)

"""The training loop of all transformers, its checkpoints, and loading and writing of classifiers.

A killed training resumes at its last checkpoint and reaches the same weights (up to rounding by the processor's
threads), because random choices in a step depend only on the seed and the step's number. A checkpoint is the whole
state in one safetensors file, replaced in one rename, without pickle.
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
from ragqa.models.inference.precision import Computed, Subject, timings
from ragqa.models.inference.torch_engine import classifier_of, quiet_transformers, torch_version
from ragqa.models.inference.weights import needs_base, tokenizer_folder
from ragqa.settings.schema import Precision

if TYPE_CHECKING:
    import torch
    from torch import nn
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)

CHECKPOINT = "checkpoint.safetensors"
WEIGHTS = "model.safetensors"
MOMENTS = ("exp_avg", "exp_avg_sq")  # AdamW's state per parameter, besides its step
NOT_STAMPED = {"checkpoint_every", "stop_after"}  # settings that do not affect what a run learns
REPORT_EVERY = 10  # steps
TRIAL = (2, 96)  # texts and their tokens in the timed step
POOL_BATCHES = 50  # batches sorted by length together: little padding, and still a shuffled epoch
MAX_NORM = 1.0  # of the gradient, which is scaled down to it

Batch = TypeVar("Batch", bound=Sized)


class HasLength(Protocol):
    """A training sample with its number of characters, used instead of its length in tokens."""

    @property
    def n_chars(self) -> int: ...


Sample = TypeVar("Sample", bound=HasLength)


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """The settings of every training. Each kind adds settings and its own defaults, which worked best in trials."""

    base: str  # the model to start from
    epochs: int  # >= 1
    batch_size: int  # per step, >= 1
    learning_rate: float  # falls linearly to 0; see `_learning_rate`
    warmup_steps: int
    weight_decay: float = 0.01  # except for biases and norms
    seed: int = 1  # >= 0
    checkpoint_every: int = 50  # steps
    stop_after: int | None = None  # steps after which the weights are written; the schedule stays that of all epochs


@dataclass(frozen=True, slots=True)
class Reading:
    """Progress before the first step: ``done`` of ``total`` texts are prepared."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a training. ``held_out`` is the accuracy on held-out samples, None if it was not measured."""

    step: int
    steps: int
    loss: float = float("nan")  # mean over the steps since the last report; NaN if nothing was left to train
    pairs_per_second: float = 0.0  # since the first step of this run
    seconds: float = 0.0  # since this run began
    held_out: float | None = None


class TrainingRun:
    """The training of a model in a folder: its optimizer, its schedule and the number of steps done."""

    def __init__(self, model: nn.Module, training: Training, steps: int, out: Path, stamp: str) -> None:
        """Creates the folder ``out`` if needed, and loads its checkpoint if there is one with ``stamp``.

        ``steps`` are those of all epochs. Raises ModelError if the checkpoint does not fit.
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
        """Whether all steps are done."""
        return self.done >= self._end

    def train(
        self,
        batches: Iterable[Batch],
        loss_of: Callable[[Batch], torch.Tensor],
        export: Callable[[], None],
        measure: Callable[[], float] | None = None,
    ) -> Iterator[Progress]:
        """Runs the remaining steps, one per batch, saves checkpoints, and calls ``export`` at the end.

        ``batches`` are those after the steps already done. Yields every 10 steps and at each checkpoint, where
        ``measure`` gives `Progress.held_out`; yields once if no step is left.
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

        torch.manual_seed(self._training.seed * 1_000_003 + step)  # for the dropout, independent of earlier steps
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
    """The rate of this step (from 1): it rises over the warm-up and falls linearly over all steps."""
    return training.learning_rate * min(1.0, step / max(1, training.warmup_steps)) * (1 - (step - 1) / steps)


def trains_in_bf16(model: PreTrainedModel, weights: str, precision: Precision = "auto") -> bool:
    """Whether to train this transformer, whose weights have this sha256, in bf16 by autocast.

    "auto" means bf16 on a GPU that supports it, and on a processor if a timed step, forward and back, is faster
    (`ragqa.models.inference.precision`): without bf16 instructions a step takes six to nine times as long as in fp32.
    Timings are stored, so that a training resumes in the precision it began with.
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
    """All pairs in batches of similar lengths, in an order given by ``seed``; the last batch may be smaller."""
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
    """One sha256 of everything that decides a run: its settings and the sha256s of the base's weights and the data."""
    deciding = {name: value for name, value in settings.items() if name not in NOT_STAMPED}
    return hashlib.sha256(json.dumps([deciding, *sha256], sort_keys=True).encode()).hexdigest()


def save_checkpoint(folder: Path, model: torch.nn.Module, optimizer: torch.optim.AdamW, step: int, stamp: str) -> None:
    """Saves trained parameters, AdamW's moments and the number of steps; ``stamp`` identifies settings and data."""
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
    """Restores the saved state and returns the number of finished steps; 0 if nothing was saved.

    Raises ModelError if the file belongs to other settings or data, or cannot be read.
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
    """The model in ``base``, in fp32, on the GPU if there is one; its output layer is kept if the labels' number fits.

    A new output layer is initialised with ``seed``; ``dropout`` is that between layers, in [0, 1). ``frozen_words``
    freezes the word embeddings, which are half of the weights and overfit first. ``frozen_layers`` freezes that many of
    the lowest layers and all embeddings, so that no gradient is computed for them. Raises ModelError if there is no
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
            config.attention_probs_dropout_prob = 0.0  # its random numbers would take a fifth of the time
            config.hidden_dropout_prob = dropout
            config._attn_implementation = "eager"  # on CPUs faster than sdpa, whose backward pass is slow in bf16
            model: PreTrainedModel
            if needs_base(base):
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
    """Writes the weights in half precision with everything to load them: config, tokenizer, MODEL.json of ``kind``."""
    from safetensors.torch import save_file

    tensors = {name: tensor.detach().cpu().half().contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, out / WEIGHTS, metadata={"format": "pt"})
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(out)
    for file in tokenizer_folder(base).glob("*token*"):
        if file.suffix == ".json":
            shutil.copyfile(file, out / file.name)
    write_manifest(out, kind, WEIGHTS)

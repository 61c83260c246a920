"""The loop that every training of a transformer goes through: AdamW, schedule, steps, checkpoints and reports.

This module imports torch. Killed, a training goes on from its last checkpoint, to the weights it would have had (up to
the rounding of the processor's threads): what a step draws at random follows from the seed and the step's number alone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

import torch
from torch import nn

from ragqa.training.checkpoint import load_checkpoint, save_checkpoint

logger = logging.getLogger(__name__)

REPORT_EVERY = 10  # steps
MAX_NORM = 1.0  # of the gradient; a longer one is scaled down to it

Batch = TypeVar("Batch", bound=Sized)


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
    """Where a training is. ``held_out`` is the accuracy on what was kept aside, None where it was not measured."""

    step: int
    steps: int
    loss: float = float("nan")  # mean over the steps since the last report; NaN where nothing was left to train
    pairs_per_second: float = 0.0  # since the first step of this run
    seconds: float = 0.0  # since this run began
    held_out: float | None = None


class Run:
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
            logger.info("going on after step %d of %d", self.done, self.steps)
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
        torch.manual_seed(self._training.seed * 1_000_003 + step)  # of the dropout: what went before does not matter
        for group in self._optimizer.param_groups:
            group["lr"] = _learning_rate(self._training, step, self.steps)

    def _step(self, loss: torch.Tensor) -> float:
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self._trained, MAX_NORM)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())


def _adamw(trained: list[nn.Parameter], training: Training) -> torch.optim.AdamW:
    decayed = [parameter for parameter in trained if parameter.ndim > 1]
    plain = [parameter for parameter in trained if parameter.ndim <= 1]  # biases and norms
    groups = [{"params": decayed, "weight_decay": training.weight_decay}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=training.learning_rate, fused=True)


def _learning_rate(training: Training, step: int, steps: int) -> float:
    """Of this step, from 1: rises over the warm-up while it falls linearly over all steps."""
    return training.learning_rate * min(1.0, step / max(1, training.warmup_steps)) * (1 - (step - 1) / steps)

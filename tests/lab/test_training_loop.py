"""The loop of every training: the rate of each step, what is reported and saved, and going on after a kill."""

import math
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch

from ragqa.errors import ModelError
from ragqa.lab.training.loop import Training, TrainingRun, stamp_of
from tests.support.tiny_models import tensors_of

STEPS = 23
TRAINING = Training(
    base="any", epochs=1, batch_size=2, learning_rate=0.1, warmup_steps=4, weight_decay=0.5, checkpoint_every=8
)


class Line:
    """A model of four weights and two biases, and a loss that draws at random as dropout does."""

    def __init__(self, folder, training=TRAINING, stamp="own", steps=STEPS):
        torch.manual_seed(0)
        self.model = torch.nn.Linear(2, 2)
        self.run = TrainingRun(self.model, training, steps, folder, stamp)
        self.rates, self.exported = [], 0

    def loss(self, batch):
        self.rates.append(self.run._optimizer.param_groups[0]["lr"])
        return self.model(torch.tensor(batch) + torch.rand(2)).square().sum()

    def export(self):
        self.exported += 1

    def train(self, **options):
        batches = [(float(n), 1.0) for n in range(STEPS)]
        return self.run.train(batches[self.run.done :], self.loss, self.export, **options)

    def weights(self):
        return [parameter.detach().clone().numpy() for parameter in self.model.parameters()]


def test_the_rate_rises_over_the_warm_up_while_it_falls_to_0_after_the_last_step(tmp_path):
    line = Line(tmp_path)
    list(line.train())
    rising = [0.1 * (step / 4) * (23 - step + 1) / 23 for step in (1, 2, 3, 4)]
    falling = [0.1 * (23 - step + 1) / 23 for step in range(5, 24)]
    assert line.rates == pytest.approx(rising + falling)


def test_it_reports_every_10_steps_and_at_checkpoints_where_it_measures(tmp_path):
    measured = iter([0.5, 0.6, 0.7])
    line = Line(tmp_path)
    reports = list(line.train(measure=lambda: next(measured)))
    assert [now.step for now in reports] == [8, 10, 16, 20, 23]
    assert [now.held_out for now in reports] == [0.5, None, 0.6, None, 0.7]
    assert all(now.steps == STEPS and now.pairs_per_second > 0 and now.loss > 0 for now in reports)
    assert line.exported == 1


@pytest.mark.parametrize(("n_reports", "saved"), [(2, 8), (4, 16)])
def test_a_killed_run_goes_on_to_the_same_bits(tmp_path, n_reports, saved):
    whole = Line(tmp_path / "whole")
    list(whole.train())
    list(islice(Line(tmp_path / "killed").train(), n_reports))
    again = Line(tmp_path / "killed")
    assert again.run.done == saved
    list(again.train())
    assert again.rates == whole.rates[saved:]
    assert all(np.array_equal(a, b) for a, b in zip(whole.weights(), again.weights(), strict=True))
    expected, found = (tensors_of(tmp_path / name / "checkpoint.safetensors") for name in ("whole", "killed"))
    assert all(np.array_equal(expected[name], found[name]) for name in expected)


def test_what_is_finished_is_only_exported_and_more_steps_can_follow(tmp_path):
    stopped = replace(TRAINING, stop_after=5)
    assert [now.step for now in Line(tmp_path, stopped).train()] == [5]
    again = Line(tmp_path, stopped)
    (now,) = again.train(measure=lambda: 0.25)
    assert (now.step, now.steps, now.held_out, again.exported, again.rates) == (5, STEPS, 0.25, 1, [])
    assert math.isnan(now.loss)
    assert [now.step for now in Line(tmp_path).train()] == [8, 10, 16, 20, 23]


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    list(Line(tmp_path).train())
    with pytest.raises(ModelError, match="other settings or data"):
        Line(tmp_path, stamp="other")


def test_biases_are_not_decayed_and_frozen_weights_stay(tmp_path):
    line = Line(tmp_path)
    groups = line.run._optimizer.param_groups
    assert [(group["weight_decay"], [p.ndim for p in group["params"]]) for group in groups] == [(0.5, [2]), (0.0, [1])]
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 2)
    model.bias.requires_grad_(requires_grad=False)
    (group,) = TrainingRun(model, TRAINING, STEPS, tmp_path / "frozen", "own")._optimizer.param_groups
    assert group["params"] == [model.weight]


def test_the_stamp_is_of_what_decides_the_run():
    settings = {"seed": 1, "stop_after": None, "checkpoint_every": 8}
    stamp = stamp_of(settings, "base", "data")
    assert stamp == stamp_of(settings | {"stop_after": 5, "checkpoint_every": 1}, "base", "data")
    others = [stamp_of(settings | {"seed": 2}, "base", "data"), stamp_of(settings, "other", "data")]
    assert len({stamp, *others, stamp_of(settings, "base", "other")}) == 4

"""In which precision a training computes: the faster one by a clock that the test moves, and every training asks."""

import pytest
import torch

from ragqa.lab.labelled import LabelledPair
from ragqa.lab.training import loop as training
from ragqa.lab.training import lora_layers, nli, reranker
from ragqa.lab.training.loop import TRIAL, load_classifier, trains_in_bf16
from ragqa.lab.training.nli import NliTraining, train_nli
from ragqa.lab.training.reranker import train_reranker
from ragqa.lab.training.retriever import train_retriever
from ragqa.models.inference import precision
from tests.lab import test_reranker_training, test_retriever_training
from tests.lab.test_reranker_training import gathered
from tests.lab.test_retriever_training import base  # noqa: F401 - a fixture
from tests.support.processor import Bench

pytestmark = pytest.mark.model


@pytest.fixture
def model(base):  # noqa: F811
    return load_classifier(base, ("no", "yes"), dropout=0.1, seed=1)


def timed(monkeypatch, tmp_path, model, **about):
    """A machine on which a pass through this model takes the time it is told to."""
    monkeypatch.setattr(precision, "_timed", [])
    bench = Bench(tmp_path / "machine", **about)
    bench.shapes = []
    plain = model.forward

    def forward(**inputs):
        bench.run("bf16" if torch.is_autocast_enabled("cpu") else "fp32")
        bench.shapes.append(tuple(inputs["input_ids"].shape))
        return plain(**inputs)

    monkeypatch.setattr(model, "forward", forward)
    monkeypatch.setattr(training, "timings", lambda: bench.timings)
    return bench


@pytest.mark.parametrize(("seconds", "expected"), [(0.5, True), (6.0, False)])
def test_a_training_takes_the_faster_one_and_is_left_as_it_was(model, tmp_path, monkeypatch, seconds, expected):
    bench = timed(monkeypatch, tmp_path, model, fp32=[1.0], bf16=[seconds])
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert trains_in_bf16(model, "ab") is expected
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert set(bench.shapes) == {(TRIAL[0], min(TRIAL[1], model.config.max_position_embeddings - 2))}
    n_run = len(bench.ran)
    assert trains_in_bf16(model, "ab") is expected
    assert len(bench.ran) == n_run
    assert [timing.purpose for timing in bench.timings.of_weights("ab")] == ["training"]


def test_nothing_is_timed_without_bf16_or_where_it_is_asked_for(model, tmp_path, monkeypatch):
    bench = timed(monkeypatch, tmp_path, model, cpuinfo="flags : fpu avx2\n")
    assert [trains_in_bf16(model, "ab", asked) for asked in ("auto", "fp32", "bf16")] == [False, False, True]
    assert bench.ran == []


def train(kind, base, out):  # noqa: F811
    if kind is nli:
        pairs = [LabelledPair("rule one", f"rule {n}", n % 3, "x") for n in range(8)]
        settings = NliTraining(base=str(base), batch_size=4, warmup_steps=1, max_tokens=16)
        return train_nli(settings, pairs, pairs, out)
    if kind is reranker:
        return train_reranker(test_reranker_training.training_of(base, stop_after=1), gathered(), out)
    return train_retriever(test_retriever_training.training_of(base, precision="auto", stop_after=1), gathered(), out)


@pytest.mark.parametrize("bf16", [True, False])
@pytest.mark.parametrize("kind", [nli, reranker, lora_layers])
def test_every_training_computes_as_was_decided(base, tmp_path, monkeypatch, kind, bf16):  # noqa: F811
    from transformers.models.bert.modeling_bert import BertLayer

    asked, seen = [], set()
    plain = BertLayer.forward

    def forward(layer, *inputs, **options):
        seen.add(torch.is_autocast_enabled("cpu"))
        return plain(layer, *inputs, **options)

    def decide(model, weights, wanted="auto"):
        asked.append((len(weights), wanted))
        return bf16

    monkeypatch.setattr(BertLayer, "forward", forward)
    monkeypatch.setattr(kind, "trains_in_bf16", decide)
    list(train(kind, base, tmp_path / "out"))
    assert seen == {bf16}
    assert asked == [(64, "auto")]

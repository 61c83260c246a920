"""A verifier joined from a fetched body and an adapter: packed, joined, refused where the two do not fit."""

import hashlib
import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

from ragqa import models
from ragqa.cli.models import app
from ragqa.errors import ModelError
from ragqa.lab.training.packing import pack_adapter
from ragqa.models import joined_model
from ragqa.models.adapted import join_adapter
from ragqa.models.catalogue import LocalModel

RANK = 2


@pytest.fixture(scope="module")
def body(tmp_path_factory):
    """The weights of a small MPNet without a classifier, a file."""
    import torch
    from transformers import MPNetConfig, MPNetModel

    torch.manual_seed(1)
    config = MPNetConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24
    )
    folder = tmp_path_factory.mktemp("body")
    MPNetModel(config).save_pretrained(folder)
    return folder / "model.safetensors"


@pytest.fixture(scope="module")
def trained(body, tmp_path_factory):
    """A classifier over that body, its last layer changed by matrices of rank 2; in half precision."""
    import torch
    from transformers import MPNetConfig, MPNetForSequenceClassification

    torch.manual_seed(2)
    folder = tmp_path_factory.mktemp("trained")
    labels = {0: "contradiction", 1: "entailment", 2: "neutral"}
    config = MPNetConfig.from_pretrained(body.parent, id2label=labels, label2id={of: n for n, of in labels.items()})
    model = MPNetForSequenceClassification.from_pretrained(body.parent, config=config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "layer.1" in name and weight.ndim == 2:
                weight += 0.1 * torch.randn(weight.shape[0], RANK) @ torch.randn(RANK, weight.shape[1])
    model.half().save_pretrained(folder)
    return folder


def logits(folder):
    import torch
    from transformers import MPNetForSequenceClassification

    model = MPNetForSequenceClassification.from_pretrained(folder).float().eval()
    with torch.no_grad():
        return model(torch.arange(2, 20).reshape(2, 9)).logits.numpy()


def call(*arguments):
    found = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return " ".join(found.stdout.split())


def test_what_is_packed_as_an_adapter_joins_to_the_same_model(body, trained, tmp_path):
    left_out = pack_adapter(trained, body, RANK, tmp_path / "adapter")
    assert left_out < 0.01
    settings = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert all("layer.1" in layer for layer in settings["target_modules"])
    joined = join_adapter(body, tmp_path / "adapter", tmp_path / "joined")
    assert np.abs(logits(joined) - logits(trained)).max() < 0.01
    untrained = load_file(body)["encoder.layer.1.output.dense.weight"]
    assert (
        np.abs(load_file(joined / "model.safetensors")["mpnet.encoder.layer.1.output.dense.weight"] - untrained).max()
        > 0.1
    )
    assert models.check_model(joined, "nli")


def test_an_adapter_of_an_adapter_joins_to_the_model_that_was_trained_from_both(body, trained, tmp_path, monkeypatch):
    """The second, a selector with an output of its own, is packed against the joined first and needs no tokenizer."""
    import torch
    from transformers import MPNetConfig, MPNetForSequenceClassification

    for name in ("tokenizer.json", "tokenizer_config.json"):
        (trained / name).write_text("{}")
    first, second = tmp_path / "verifier-mpnet", tmp_path / "answers-mpnet"
    pack_adapter(trained, body, RANK, first)
    joined = join_adapter(body, first, tmp_path / "home" / "verifier-mpnet")
    config = MPNetConfig.from_pretrained(joined, num_labels=1)
    model = MPNetForSequenceClassification.from_pretrained(joined, config=config, ignore_mismatched_sizes=True)
    with torch.no_grad():
        weight = model.get_parameter("mpnet.encoder.layer.0.output.dense.weight")
        weight += 0.1 * torch.randn(weight.shape[0], RANK) @ torch.randn(RANK, weight.shape[1])
    selector = tmp_path / "selector"
    model.half().save_pretrained(selector)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (selector / name).write_text("{}")
    models.write_manifest(selector, "reranker", "model.safetensors")
    monkeypatch.setattr("ragqa.lab.training.packing.resolve_model", lambda _: joined)
    assert pack_adapter(selector, first, RANK, second) < 0.01
    assert not (second / "tokenizer.json").exists()
    found = join_adapter(body, second, tmp_path / "home" / "answers-mpnet")
    assert np.abs(logits(found) - logits(selector)).max() < 0.01
    assert models.check_model(found, "reranker")
    assert (found / "tokenizer.json").is_file()
    pack_adapter(trained, body, 1, first)
    with pytest.raises(ModelError, match="changes the model"):
        join_adapter(body, second, tmp_path / "home" / "answers-mpnet")


def test_a_rank_too_low_is_told_by_what_it_leaves_out(body, trained, tmp_path):
    assert pack_adapter(trained, body, 1, tmp_path / "adapter") > 0.1


def test_another_body_and_another_version_of_the_adapter_are_refused(body, trained, tmp_path):
    other = {name: np.zeros((3, 3), np.float32) for name in load_file(body)}
    save_file(other, tmp_path / "other.safetensors")
    with pytest.raises(ModelError, match="name its own body"):
        pack_adapter(trained, tmp_path / "other.safetensors", RANK, tmp_path / "adapter")
    pack_adapter(trained, body, RANK, tmp_path / "adapter")
    with pytest.raises(ModelError, match="fetch it"):
        joined_model("tiny", tmp_path / "adapter", tmp_path)
    join_adapter(body, tmp_path / "adapter", tmp_path / "tiny")
    assert joined_model("tiny", tmp_path / "adapter", tmp_path) == tmp_path / "tiny"
    pack_adapter(trained, body, 1, tmp_path / "adapter")
    with pytest.raises(ModelError, match="fetch it again"):
        joined_model("tiny", tmp_path / "adapter", tmp_path)


def test_a_verifier_is_fetched_joined_listed_used_and_removed(body, trained, tmp_path, monkeypatch):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path / "home"))
    pack_adapter(trained, body, RANK, tmp_path / "verifier-mpnet")
    digest = hashlib.sha256(body.read_bytes()).hexdigest()
    known = ("verifier-mpnet", "Tiny", "MIT", "tiny.safetensors", body.stat().st_size, digest, ())
    model = LocalModel(*known, role="verifier", variable="RAGQA_VERDICT_MODEL")
    for module in ("ragqa.models.catalogue", "ragqa.cli.models"):
        monkeypatch.setattr(f"{module}.JOINED", (model,))
    monkeypatch.setattr(models, "_HERE", tmp_path)
    monkeypatch.setattr("ragqa.cli.models.adapter_of", lambda name: tmp_path / name)
    with pytest.raises(ModelError, match="ragqa models fetch verifier-mpnet"):
        models.resolve_model("verifier-mpnet")
    assert "verifier-mpnet (verifier, not fetched)" in call("list")
    assert "RAGQA_VERDICT_MODEL=verifier-mpnet" in call("fetch", "verifier-mpnet", "--from", str(body))
    folder = models.resolve_model("verifier-mpnet")
    assert np.abs(logits(folder) - logits(trained)).max() < 0.01
    assert not list((tmp_path / "home" / "models").glob("*.safetensors"))  # no second copy of the body
    assert "verifier-mpnet (verifier, here)" in call("list")
    call("remove", "verifier-mpnet")
    assert not folder.exists()

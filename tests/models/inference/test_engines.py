"""What computes the models: OpenVINO against PyTorch, what falls back to PyTorch, and that nothing is sent anywhere."""

import logging
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from ragqa.errors import ModelError
from ragqa.models.inference import bert_graph, classifier
from ragqa.models.inference.bert_graph import BertShape, OpenVinoEngine, bert_shape, openvino_version
from ragqa.models.inference.classifier import INPUTS, SequenceClassifier, read_config
from ragqa.models.inference.weights import PACKED, pack
from tests.support.tiny_models import write_classifier

pytestmark = pytest.mark.long

LABELS = ["contradiction", "entailment", "neutral"]
COVERED = {
    "model_type": "bert",
    "architectures": ["BertForSequenceClassification"],
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_classifier(tmp_path_factory.mktemp("long"), LABELS, positions=512)


@pytest.fixture(scope="module")
def by_torch(folder):
    from ragqa.models.inference.torch_engine import TorchEngine

    return TorchEngine(folder, "fp32")


def inputs(n_rows, n_tokens, n_kept=None):
    """Random rows of which the first ``n_kept`` tokens are text, the others padding."""
    random = np.random.default_rng(n_rows * 1000 + n_tokens)
    kept = n_kept or n_tokens
    mask = np.repeat([[1] * kept + [0] * (n_tokens - kept)], n_rows, axis=0).astype(np.int64)
    types = np.repeat([[0] * (kept // 2) + [1] * (n_tokens - kept // 2)], n_rows, axis=0).astype(np.int64)
    ids = random.integers(4, 14, (n_rows, n_tokens)) * mask
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def some(rows, chosen):
    """The same inputs with these rows only, in this order."""
    return {name: values[chosen] for name, values in rows.items()}


# The graph


@pytest.mark.parametrize("n_tokens", [3, 8, 17, 64, 200, 511, 512])
def test_the_graph_gives_what_torch_gives_at_every_length(folder, by_torch, n_tokens):
    engine = OpenVinoEngine(folder, bert_shape(read_config(folder)), "fp32")
    for n_rows in (1, 3):
        rows = inputs(n_rows, n_tokens)
        assert engine.infer([rows])[0] == pytest.approx(by_torch.infer([rows])[0], abs=1e-4)


def test_the_graph_of_an_mpnet_gives_what_torch_gives(tmp_path):
    import torch
    from transformers import MPNetConfig, MPNetForSequenceClassification

    from ragqa.models.inference.torch_engine import TorchEngine

    torch.manual_seed(4)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    config = MPNetConfig(
        vocab_size=14, max_position_embeddings=514, id2label=dict(enumerate(LABELS)), initializer_range=0.3, **sizes
    )
    MPNetForSequenceClassification(config).save_pretrained(tmp_path)
    by_torch = TorchEngine(tmp_path, "fp32")
    engine = OpenVinoEngine(tmp_path, bert_shape(read_config(tmp_path)), "fp32")
    for rows in (inputs(1, 3), inputs(3, 64), inputs(2, 512), inputs(2, 40, n_kept=17)):
        rows["input_ids"][rows["attention_mask"] == 0] = 1  # MPNet's padding
        assert engine.infer([rows])[0] == pytest.approx(by_torch.infer([rows])[0], abs=1e-4)


def test_sizes_that_a_config_leaves_out_are_those_of_its_kind():
    sizes = ("num_hidden_layers", "num_attention_heads")
    shape = bert_shape({name: value for name, value in COVERED.items() if name not in sizes})
    assert (shape.n_layers, shape.n_heads) == (12, 12)  # as transformers reads it


def test_padding_does_not_change_a_result(folder):
    engine = OpenVinoEngine(folder, bert_shape(read_config(folder)), "fp32")
    rows = inputs(2, 24, n_kept=9)
    short = {name: values[:, :9] for name, values in rows.items()}
    assert engine.infer([rows])[0] == pytest.approx(engine.infer([short])[0], abs=1e-5)


def test_a_result_is_not_overwritten_by_the_next(folder):
    engine = OpenVinoEngine(folder, bert_shape(read_config(folder)), "fp32")
    (first,) = engine.infer([inputs(2, 8)])
    before = first.copy()
    engine.infer([inputs(2, 16)])
    assert (first == before).all()


def test_a_row_has_the_same_bits_whatever_rows_are_beside_it(folder):
    for precision in ("fp32", "bf16"):
        engine = OpenVinoEngine(folder, bert_shape(read_config(folder)), precision)
        rows = inputs(16, 40)
        alone = np.concatenate(engine.infer([some(rows, [n]) for n in range(16)]))
        for chosen in ([3, 1], [0, 5, 9, 2, 15], list(range(15, -1, -1))):
            (together,) = engine.infer([some(rows, chosen)])
            assert (together == alone[chosen]).all(), precision


def test_batches_side_by_side_give_the_bits_they_give_one_after_the_other(folder):
    shape = bert_shape(read_config(folder))
    batches = [inputs(n_rows, n_tokens) for n_rows in (1, 2, 5) for n_tokens in (8, 24, 200, 512)]
    for precision in ("fp32", "bf16"):
        one, two = (OpenVinoEngine(folder, shape, precision, streams=n) for n in (1, 2))
        expected = [one.infer([batch])[0] for batch in batches]
        for _ in range(3):
            for found, wanted in zip(two.infer(batches), expected, strict=True):
                assert (found == wanted).all(), precision


def test_a_batch_that_cannot_be_computed_raises_and_keeps_no_request(folder):
    engine = OpenVinoEngine(folder, bert_shape(read_config(folder)), "fp32", streams=2)
    crooked = inputs(2, 8) | {"attention_mask": np.ones((2, 9), np.int64)}
    for _ in range(3):  # a third time would wait for ever if the first two had kept theirs
        with pytest.raises(RuntimeError):
            engine.infer([crooked])


@pytest.mark.parametrize(
    "other",
    [
        {"model_type": "roberta"},
        {"model_type": "deberta-v2"},
        {"architectures": ["BertForMaskedLM"]},
        {"architectures": None},
        {"hidden_act": "relu"},
        {"position_embedding_type": "relative_key"},
    ],
)
def test_only_plain_bert_classifiers_are_drawn_as_a_graph(other):
    assert bert_shape(COVERED) == BertShape(2, 3, 1e-12)
    assert bert_shape(COVERED | other) is None


# Which engine


def test_a_model_openvino_does_not_cover_is_computed_by_torch(tmp_path):
    """RoBERTa: positions begin after the padding's number, and there is one token type only."""
    write_classifier(tmp_path, LABELS, "Roberta", 40, max_position_embeddings=42)
    found = SequenceClassifier(tmp_path, "fp32")
    assert found.arithmetic.startswith("fp32, PyTorch ")
    assert found.logits([("the sky is blue " * 20, "firms")]).shape == (1, 3)


def test_a_long_text_fits_into_positions_that_are_no_multiple_of_eight(tmp_path, monkeypatch):
    write_classifier(tmp_path, LABELS, positions=60)
    texts = [("the sky is blue " * 30, "firms must keep records")]
    expected = SequenceClassifier(tmp_path, "fp32").logits(texts)
    monkeypatch.setattr(classifier, "openvino_version", lambda: None)
    assert SequenceClassifier(tmp_path, "fp32").logits(texts) == pytest.approx(expected, abs=1e-4)


def test_without_openvino_torch_computes_the_same_and_says_so(folder, monkeypatch, caplog):
    expected = SequenceClassifier(folder, "fp32").logits([("the sky", "is blue")])
    monkeypatch.setattr(classifier, "openvino_version", lambda: None)
    with caplog.at_level(logging.WARNING):
        found = SequenceClassifier(folder, "fp32")
    assert "OpenVINO cannot be imported" in caplog.text
    assert "about half as fast" in caplog.text
    assert found.arithmetic.startswith("fp32, PyTorch ")
    assert found.logits([("the sky", "is blue")]) == pytest.approx(expected, abs=1e-4)


def test_weights_of_older_names_fall_back_to_torch(tmp_path, caplog):
    """Old checkpoints call a layer's weight gamma and its bias beta; transformers knows, the graph does not."""
    from safetensors.numpy import load_file, save_file

    write_classifier(tmp_path, LABELS)
    expected = SequenceClassifier(tmp_path, "fp32").logits([("the sky", "is blue")])
    weights = load_file(tmp_path / "model.safetensors")
    renamed = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): values
        for name, values in weights.items()
    }
    assert renamed.keys() != weights.keys()
    save_file(renamed, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with caplog.at_level(logging.WARNING):
        found = SequenceClassifier(tmp_path, "fp32")
    assert "OpenVINO cannot compute" in caplog.text
    assert found.arithmetic.startswith("fp32, PyTorch ")
    assert found.logits([("the sky", "is blue")]) == pytest.approx(expected, abs=1e-4)


def test_labels_that_do_not_fit_the_weights_are_refused_when_loading(tmp_path):
    write_classifier(tmp_path, LABELS)
    file = tmp_path / "config.json"
    file.write_text(file.read_text().replace('"2": "neutral"', '"2": "neutral", "3": "other"'))
    with pytest.raises(ModelError, match="cannot be loaded"):
        SequenceClassifier(tmp_path, "fp32")


@pytest.mark.parametrize("packed", [False, True])
def test_missing_weights_are_not_replaced_by_random_ones(tmp_path, packed):
    from safetensors.numpy import load_file, save_file

    folder = write_classifier(tmp_path / "model", LABELS)
    weights = load_file(folder / "model.safetensors")
    del weights["classifier.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    if packed:
        (folder / "model.safetensors").rename(tmp_path / "rest")
        pack(weights, {}, "model", folder / PACKED)
    with pytest.raises(ModelError, match=r"1 of its weights are missing, such as classifier\.weight"):
        SequenceClassifier(folder, "fp32")


def test_a_graphics_card_is_used_by_torch_and_named(folder, monkeypatch, tmp_path):
    """Only the choice: no graphics card is here. The engine is told where to run and says it."""
    (tmp_path / "card").touch()
    monkeypatch.setattr(classifier, "GPU_DEVICE", tmp_path / "card")
    assert SequenceClassifier(folder, "fp32").arithmetic.startswith("fp32, PyTorch ")  # torch sees none
    monkeypatch.setattr(
        classifier, "TorchEngine", lambda folder, precision: SimpleNamespace(device="cuda", precision="bf16")
    )
    found = SequenceClassifier(folder, "bf16").arithmetic
    assert found.startswith("bf16, PyTorch ")
    assert found.endswith(" on cuda")


@pytest.mark.parametrize("content", ["{", "[]", '{"id2label": 3}', '{"id2label": ["a"]}', None])
def test_a_config_that_is_none_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(ModelError, match=r"config\.json cannot be read as a model's configuration.*choose"):
        read_config(tmp_path)


def test_outputs_without_names_are_numbered(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert read_config(tmp_path)["id2label"] == {0: "LABEL_0", 1: "LABEL_1"}


def test_a_graph_is_compiled_once(folder, monkeypatch):
    openvino_version()  # imports openvino without its telemetry
    import openvino

    compiled = []

    class Core(openvino.Core):
        def compile_model(self, *arguments):
            compiled.append(arguments)
            return super().compile_model(*arguments)

    monkeypatch.setattr(openvino, "Core", Core)
    found = SequenceClassifier(folder, "fp32")
    found.logits([("the sky", "is blue"), ("firms", "must keep records")])
    assert len(compiled) == 1


# OpenVINO as a guest


def test_openvino_is_missing_or_broken(monkeypatch):
    def broken():
        raise OSError

    assert openvino_version()[0].isdigit()
    monkeypatch.setattr(bert_graph, "_openvino", broken)
    assert openvino_version() is None


def test_loading_sends_nothing_prints_nothing_and_imports_no_torch(folder, tmp_path):
    """A fresh process with a home of its own: OpenVINO's telemetry would write ~/intel and open a connection."""
    code = (
        "import socket, sys\n"
        "def refuse(*_, **__): raise SystemExit('a connection was opened')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from ragqa.scoring.repass.nli import CrossEncoderNli\n"
        f"CrossEncoderNli({str(folder)!r}).predict([('the sky', 'is blue')])\n"
        "bad = {'torch', 'transformers', 'openvino_telemetry', 'huggingface_hub'} & set(sys.modules)\n"
        "assert not bad, bad\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "CI"} | {"HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (tmp_path / "intel").exists()
    assert INPUTS[0] == "input_ids"


@pytest.mark.parametrize("file", ["tokenizer_config.json", "config.json"])
@pytest.mark.parametrize("content", ["{", "[]", '{"KEY": "many"}', '{"KEY": [1]}', '{"KEY": Infinity}', "\udcff"])
def test_a_damaged_configuration_is_named(tmp_path, file, content):
    key = {"config.json": "max_position_embeddings", "tokenizer_config.json": "model_max_length"}[file]
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / file).write_text(content.replace("KEY", key), errors="surrogateescape")
    with pytest.raises(ModelError, match=f"{file} cannot be read as a model's configuration"):
        SequenceClassifier(tmp_path)

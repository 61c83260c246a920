"""An encoder out of a graph file, cut to its first layers."""

import json
from shutil import copytree

import pytest

from ragqa.errors import ModelError
from ragqa.lab.training.backbones import cut_body

pytestmark = pytest.mark.long  # imports torch


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """(model, graph file): a BERT of three layers, written as exports are: matrices transposed, named by their product.

    OpenVINO reads its own format and ONNX alike, and writes only its own.
    """
    import numpy as np
    import openvino
    import torch
    from openvino import opset13 as ops
    from transformers import BertConfig, BertModel

    torch.manual_seed(3)
    shape = {"hidden_size": 8, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 12}
    model = BertModel(BertConfig(vocab_size=20, max_position_embeddings=16, **shape), add_pooling_layer=False)
    results = []
    for name, tensor in model.state_dict().items():
        layer, _, kind = name.rpartition(".")
        if layer.startswith("encoder") and kind == "weight" and tensor.ndim == 2:
            given = ops.parameter([1, tensor.shape[1]], np.float32)
            weights = ops.constant(np.ascontiguousarray(tensor.T.numpy()), name=f"onnx::MatMul_{len(results)}")
            product = ops.matmul(given, weights, transpose_a=False, transpose_b=False)
            product.set_friendly_name(f"/{layer.replace('.', '/').replace('layer/', 'layer.')}/MatMul")
            results.append((given, product))
        else:
            constant = ops.constant(tensor.numpy(), name=name)
            constant.set_friendly_name(name)
            results.append((None, ops.convert(constant, "f32")))
    folder = tmp_path_factory.mktemp("exported")
    graph = openvino.Model([product for _, product in results], [given for given, _ in results if given is not None])
    openvino.serialize(graph, folder / "model.xml")
    model.config.save_pretrained(folder)
    (folder / "tokenizer.json").write_text("{}")
    return model, folder / "model.xml"


def test_the_first_layers_are_those_of_the_whole(exported, tmp_path):
    import torch
    from transformers import BertModel

    model, file = exported
    assert cut_body(file, 2, tmp_path) == 3
    cut = BertModel.from_pretrained(tmp_path, add_pooling_layer=False)
    assert json.loads((tmp_path / "config.json").read_text())["num_hidden_layers"] == 2
    assert (tmp_path / "tokenizer.json").is_file()
    whole = model.state_dict()
    assert len(cut.state_dict()) < len(whole)
    assert all(torch.equal(tensor, whole[name]) for name, tensor in cut.state_dict().items())


@pytest.mark.parametrize("layers", [0, 4])
def test_more_layers_than_there_are_are_refused(exported, tmp_path, layers):
    with pytest.raises(ModelError, match="expected 1 to 3 layers"):
        cut_body(exported[1], layers, tmp_path)


def test_what_is_no_encoder_is_refused(exported, tmp_path):
    with pytest.raises(ModelError, match="expected config.json beside"):
        cut_body(tmp_path / "model.onnx", 2, tmp_path / "out")
    (tmp_path / "config.json").write_text((exported[1].parent / "config.json").read_text())
    (tmp_path / "model.onnx").write_bytes(b"not a graph")
    with pytest.raises(ModelError, match="expected an ONNX file"):
        cut_body(tmp_path / "model.onnx", 2, tmp_path / "out")
    other = copytree(exported[1].parent, tmp_path / "other")
    (other / "config.json").write_text((other / "config.json").read_text().replace("12", "16"))
    with pytest.raises(ModelError, match=r"found no encoder\.layer\.0\.intermediate"):
        cut_body(other / "model.xml", 2, tmp_path / "out")

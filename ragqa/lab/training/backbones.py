"""Reads a BERT encoder from an ONNX file and cuts it to its first layers, as a backbone for small classifiers.

Package registries hold encoders as ONNX, not as safetensors.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from ragqa.errors import ModelError
from ragqa.models.inference.exported import bert_weights
from ragqa.models.inference.torch_engine import quiet_transformers

_LAYER = re.compile(r"encoder\.layer\.(\d+)\.")


def cut_body(onnx: Path, layers: int, out: Path) -> int:
    """Writes the first ``layers`` layers as safetensors into ``out``, with config and tokenizer; returns their total.

    ``config.json`` and the tokenizer's files must be beside the file or one folder up, as in the hub's ONNX exports.
    Raises ModelError if the file is no BERT encoder with that many layers.
    """
    import torch
    from transformers import BertConfig, BertModel

    home = next((folder for folder in (onnx.parent, onnx.parent.parent) if (folder / "config.json").is_file()), None)
    if home is None:
        msg = f"expected config.json beside {onnx} or one folder up, found none; name the file in a whole model folder"
        raise ModelError(msg)
    with quiet_transformers():
        config = BertConfig.from_pretrained(home, local_files_only=True)
    n_layers = int(config.num_hidden_layers)
    if not 0 < layers <= n_layers:
        msg = f"expected 1 to {n_layers} layers, as {onnx} has them, got {layers}; take fewer --layers"
        raise ModelError(msg)
    config.num_hidden_layers = layers
    model = BertModel(config, add_pooling_layer=False)
    found = {name: torch.from_numpy(weights) for name, weights in bert_weights(onnx) if _layer_of(name) < layers}
    wanted = {name: tensor.shape for name, tensor in model.state_dict().items()}
    wrong = sorted(name for name, shape in wanted.items() if name not in found or found[name].shape != shape)
    if wrong:
        msg = (
            f"expected a BERT encoder in {onnx}, found no {wrong[0]} of its shape; take a file exported from BertModel"
        )
        raise ModelError(msg)
    model.load_state_dict({name: found[name] for name in wanted})
    model.save_pretrained(out)
    for file in home.glob("*"):
        if "token" in file.name or file.name == "vocab.txt":
            shutil.copyfile(file, out / file.name)
    return n_layers


def _layer_of(name: str) -> int:
    """The number of the layer; -1 for an embedding."""
    match = _LAYER.match(name)
    return int(match.group(1)) if match else -1

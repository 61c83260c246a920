"""The retrievers of an index: BM25 (two libraries), BM25 with context, dense, citations and further rankings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from ragqa.plugins.protocols import Encoder, Follower, Rescorer, Retriever
from ragqa.retrieval.dense import DenseRetriever
from ragqa.retrieval.ranking import Mask, Positions, Rankable
from ragqa.settings.config import RetrievalConfig
from ragqa.types import ModelInfo, Passage, Ranking

__all__ = ["SearchableIndex", "candidates_of", "rank", "retrievers_for"]


class SearchableIndex(Protocol):
    """The part of an open index that retrieval uses; `ragqa.index.Index` documents each attribute."""

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
    def citations(self) -> Retriever | None: ...

    @property
    def vectors(self) -> Any: ...  # noqa: ANN401 - a faiss.Index, or None

    @property
    def further(self) -> Mapping[str, Callable[[Any], Retriever]]: ...

    def check_encoder(self, encoder: ModelInfo) -> None: ...

    def check_models(self, models: Mapping[str, ModelInfo]) -> None: ...


def retrievers_for(
    index: SearchableIndex, encoder: Encoder, config: RetrievalConfig, models: Mapping[str, Any] | None = None
) -> tuple[Retriever, ...]:
    """The retrievers ``"bm25"``, ``"context"``, ``"dense"`` and ``"citations"``, as far as the index has them, then its
    further retrievers. They share the index and are cheap to make.

    ``models`` are those of the further rankings, by name. Raises IndexMismatchError if ``encoder`` did not make the
    vectors of the index, or if the model of a further ranking is missing or did not make its files.
    """
    lexical = index.bm25s if config.bm25_backend == "bm25s" else index.rank_bm25
    retrievers: list[Retriever] = [lexical, *((index.context,) if index.context else ())]
    if index.vectors is not None:
        index.check_encoder(encoder.info)
        corpus = Rankable(index.passages, index.order, index.hidden)
        retrievers.append(DenseRetriever(index.vectors, corpus, encoder))
    retrievers += (index.citations,) if index.citations else ()
    models = models or {}
    index.check_models({name: model.info for name, model in models.items()})
    retrievers += (make(models.get(name)) for name, make in index.further.items())
    return tuple(retrievers)


def rank(retrievers: Sequence[Retriever], question: str, top_k: int) -> tuple[Ranking, ...]:
    """One ranking per retriever, in the order of the retrievers.

    A `Follower` starts from the rankings of the others. A `Rescorer` then scores all passages found so far; if there
    are only rescorers, each ranks the corpus by itself.
    """
    if all(isinstance(retriever, Rescorer) for retriever in retrievers):
        return tuple(retriever.retrieve(question, top_k) for retriever in retrievers)
    rankings = {r.name: r.retrieve(question, top_k) for r in retrievers if not isinstance(r, Rescorer | Follower)}
    first = tuple(rankings.values())
    rankings |= {r.name: r.follow(question, first, top_k) for r in retrievers if isinstance(r, Follower)}
    candidates = candidates_of(rankings.values())
    return tuple(r.rescore(question, candidates) if isinstance(r, Rescorer) else rankings[r.name] for r in retrievers)


def candidates_of(rankings: Iterable[Ranking]) -> tuple[Passage, ...]:
    """Every passage that at least one of these rankings found, once, sorted by id."""
    by_id = {hit.passage.passage_id: hit.passage for ranking in rankings if ranking.finds for hit in ranking.hits}
    return tuple(by_id[passage_id] for passage_id in sorted(by_id))

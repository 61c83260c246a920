"""A corpus as a LlamaIndex retriever: `RagqaRetriever("rulebook").retrieve("How long are records kept?")`."""

from __future__ import annotations

from llama_index.core import QueryBundle
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

from ragqa.server.api import service
from ragqa.server.api.local import LocalBackend


class RagqaRetriever(BaseRetriever):
    """The best ``limit`` passages of a corpus, scored by relevance; number, title and why it is kept are metadata."""

    def __init__(self, corpus: str, preset: str = "", limit: int = 10) -> None:
        """``preset`` is a name from `ragqa presets`; "" uses the settings of the environment."""
        super().__init__()
        self._corpus, self._preset, self._limit, self._backend = corpus, preset, limit, LocalBackend()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        asked = service.asked_of(self._backend, self._corpus, query_bundle.query_str, preset=self._preset)
        rows = service.search(self._backend, asked, self._limit)
        nodes = [TextNode(text=row.pop("text"), id_=row["passage_id"], metadata=row) for row in rows]
        return [NodeWithScore(node=node, score=node.metadata["relevance"]) for node in nodes]

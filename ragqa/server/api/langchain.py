"""A corpus as a LangChain retriever: `RagqaRetriever(corpus="rulebook").invoke("How long are records kept?")`."""

from __future__ import annotations

from functools import cached_property

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from ragqa.server.api import service
from ragqa.server.api.local import LocalBackend


class RagqaRetriever(BaseRetriever):
    """The best ``limit`` passages of a corpus; number, title, relevance and why each was kept are metadata."""

    corpus: str
    preset: str = ""
    limit: int = 10

    @cached_property
    def _backend(self) -> LocalBackend:
        return LocalBackend()

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        del run_manager
        asked = service.asked_of(self._backend, self.corpus, query, preset=self.preset)
        rows = service.search(self._backend, asked, self.limit)
        return [Document(row.pop("text"), id=row["passage_id"], metadata=row) for row in rows]

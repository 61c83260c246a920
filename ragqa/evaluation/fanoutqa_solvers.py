"""A setting of FanOutQA made ready from what a user chose: model, pages or index, context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragqa.config import GenerationConfig
from ragqa.errors import ConfigError
from ragqa.evaluation.fanoutqa_open_book import MAX_SEARCHES, IndexSearch, OpenBook, Search, WikipediaSearch
from ragqa.evaluation.fanoutqa_pages import PageSource
from ragqa.evaluation.fanoutqa_settings import ClosedBook, EvidenceProvided, Setting, Solver
from ragqa.evaluation.fanoutqa_text import Normaliser
from ragqa.events.pipeline import Fused, Reranked
from ragqa.generation.client import ChatClient
from ragqa.types import Question

if TYPE_CHECKING:
    from ragqa.pipeline import Pipeline

DEFAULT_CONTEXT = 128_000  # tokens, of the model that ragqa asks where none is named
MAX_QUERY_CHARS = 500


@dataclass(frozen=True, slots=True)
class Sources:
    """Where text comes from and how much of it fits: pages, or for open-book an index; the model's context."""

    normaliser: Normaliser
    pages: PageSource | None = None
    index: IndexSearch | None = None
    context_tokens: int = DEFAULT_CONTEXT
    max_searches: int = MAX_SEARCHES


def setting_of(name: str) -> Setting:
    """The setting of this name. Raises ConfigError."""
    try:
        return Setting(name)
    except ValueError:
        msg = f"the setting must be {', '.join(Setting)}, got {name!r}; change --setting and try again"
        raise ConfigError(msg) from None


def solver_for(setting: Setting, client: ChatClient, config: GenerationConfig, sources: Sources) -> Solver:
    """This setting, ready to answer. Raises ConfigError where its pages are missing or its context is too small."""
    if setting is Setting.CLOSED_BOOK:
        return ClosedBook(client, config)
    if setting is Setting.EVIDENCE_PROVIDED:
        if sources.pages is None:
            msg = (
                "evidence-provided needs the text of Wikipedia's pages, which is not in the data set; name a folder or "
                "file of pages or the address of an api.php with --pages"
            )
            raise ConfigError(msg)
        return EvidenceProvided(client, config, sources.pages, sources.normaliser, sources.context_tokens)
    return OpenBook(client, config, _search(sources), sources.context_tokens, sources.max_searches)


def _search(sources: Sources) -> Search:
    if (sources.pages is None) == (sources.index is None):
        found = "neither" if sources.pages is None else "both"
        msg = f"open-book searches either pages (--pages) or an index (--index), got {found}; name one of them"
        raise ConfigError(msg)
    if sources.pages is not None:
        return WikipediaSearch(sources.pages, sources.normaliser)
    assert sources.index is not None  # noqa: S101 - one of the two is there
    return sources.index


def index_search(pipeline: Pipeline) -> IndexSearch:
    """What this pipeline's retrievers, fusion and reranker find for a model's search; nothing is filtered out."""
    manifest = pipeline.index.manifest

    def hits(query: str) -> list[tuple[str, str]]:
        found: Fused | Reranked | None = None
        for event in pipeline.run(Question(query[:MAX_QUERY_CHARS])):
            if isinstance(event, Fused | Reranked):
                found = event
        ranking = () if found is None else found.ranking.hits
        return [(hit.passage.title or hit.passage.document_id, hit.passage.text) for hit in ranking]

    files = ",".join(sorted(entry.sha256[:8] for entry in manifest.files))
    return IndexSearch(f"index {manifest.name} ({files})", hits)

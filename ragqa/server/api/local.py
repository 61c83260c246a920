"""The backend of a single program: one person, everything allowed, nothing shared with a page."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from ragqa.index import Index, open_index
from ragqa.index.folders import index_names, locate
from ragqa.index.manifest import MANIFEST
from ragqa.library.collection import collections, corpus_titles
from ragqa.loading import Models, load_further, load_models, with_reranker
from ragqa.pipeline import Pipeline, assemble
from ragqa.records.store import RecordStore
from ragqa.server.access.gate import Gate
from ragqa.settings.config import Config, ScoringConfig
from ragqa.settings.paths import Paths


class LocalBackend:
    """Loads indexes and models at the first call that needs them, once."""

    def gate(self) -> Gate:
        """A gate that allows everything."""
        return Gate()

    def corpora(self) -> dict[str, str]:
        """Maps the name of each corpus to its title."""
        paths = Paths.from_env()
        return corpus_titles(index_names(paths.indexes), collections(paths.library))

    def index(self, name: str) -> Index:
        """The index, opened again only when it was rebuilt. Raises IndexingError."""
        indexes, built = Paths.from_env().indexes, 0
        with suppress(OSError):  # `open_index` says what is wrong
            built = (locate(name, indexes) / MANIFEST).stat().st_mtime_ns
        return _index(name, indexes, built)

    def pipeline(self, config: Config) -> Pipeline:
        """A pipeline with models that are loaded once."""
        index = self.index(config.index)
        manifest = index.manifest
        models = _models(manifest.encoder, config.scoring)
        models = with_reranker(models, config.reranking, manifest)
        further = load_further([ranking.option for ranking in manifest.rankings], Paths.from_env())
        return assemble(config, index, replace(models, further=further), self.records())

    def records(self) -> RecordStore:
        """All records of this RAGQA_HOME."""
        return RecordStore(Paths.from_env().records)

    def turn(self) -> None:
        """No queue: nobody else uses this backend."""


@lru_cache(8)
def _index(name: str, indexes: Path, built: int) -> Index:
    del built
    return open_index(name, indexes)


@lru_cache(2)
def _models(encoder: str, scoring: ScoringConfig) -> Models:
    return load_models(encoder, scoring, Paths.from_env())

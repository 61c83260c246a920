"""The backend of the page's server for programs (`ragqa.server.api`)."""

from __future__ import annotations

from functools import partial

from ragqa.index import Index
from ragqa.library.update import encoder_name
from ragqa.pipeline import Pipeline
from ragqa.records.store import RecordStore
from ragqa.server.access.gate import Gate
from ragqa.server.access.policy import Act
from ragqa.server.api.documents import Library
from ragqa.server.queue import QueuePlace
from ragqa.settings.config import Config
from ragqa.settings.paths import Paths
from ragqa.ui import access
from ragqa.ui.state import resources


class PageBackend:
    """Models, corpora and queue of the page, for the person behind a request."""

    def gate(self) -> Gate:
        """The gate of the request's key."""
        return access.gate()

    def corpora(self) -> dict[str, str]:
        """Maps the name of each corpus to its title."""
        paths = Paths.from_env()
        return resources.corpus_titles(resources.index_names(paths), paths)

    def index(self, name: str) -> Index:
        """The index, opened once for all sessions."""
        return resources.open_corpus(name, Paths.from_env())

    def pipeline(self, config: Config) -> Pipeline:
        """A pipeline with the shared models; the caller has asked the gate for the act."""
        return resources.pipeline(config, Paths.from_env(), Act.READ)

    def records(self) -> RecordStore:
        """The records that this person may see."""
        return resources.record_store(Paths.from_env().records)

    def turn(self) -> QueuePlace:
        """A place in the queue that the page's visitors also use."""
        gate = self.gate()
        return resources.turns().take(gate.person.id if gate.audit else "")

    def library(self) -> Library:
        """The library of the page."""
        paths = Paths.from_env()
        return Library(
            resources.library_jobs(paths),
            lambda found: partial(resources.encoder_of, encoder_name(found, paths.indexes), paths),
        )

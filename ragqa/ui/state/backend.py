"""What the page's server has loaded, for programs that ask beside it (`ragqa.server.api`)."""

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
    """Models, corpora and the queue of the page, for whoever a request acts for."""

    def gate(self) -> Gate:
        """Of the key that a request came with."""
        return access.gate()

    def corpora(self) -> dict[str, str]:
        """Name to title."""
        paths = Paths.from_env()
        return resources.corpus_titles(resources.index_names(paths), paths)

    def index(self, name: str) -> Index:
        """Opened, once for all."""
        return resources.open_corpus(name, Paths.from_env())

    def pipeline(self, config: Config) -> Pipeline:
        """Over the shared models; what is done with it, a search or a question, is asked of the gate before."""
        return resources.pipeline(config, Paths.from_env(), Act.READ)

    def records(self) -> RecordStore:
        """As this person sees them."""
        return resources.record_store(Paths.from_env().records)

    def turn(self) -> QueuePlace:
        """Behind, and before, the page's visitors."""
        gate = self.gate()
        return resources.turns().take(gate.person.id if gate.audit else "")

    def library(self) -> Library:
        """The page's."""
        paths = Paths.from_env()
        return Library(
            resources.library_jobs(paths),
            lambda found: partial(resources.encoder_of, encoder_name(found, paths.indexes), paths),
        )

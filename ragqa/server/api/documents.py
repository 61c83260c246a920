"""Documents of the library for programs: what a corpus holds, a file added or taken out, and how far its work is."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from ragqa.corpus.documents import Reader
from ragqa.errors import CorpusError
from ragqa.index.folders import index_names
from ragqa.library.collection import Collection, collection_of, make_collection
from ragqa.library.jobs import Jobs, LoadEncoder
from ragqa.library.names import corpus_name
from ragqa.library.transfer import delete
from ragqa.library.upload import take
from ragqa.server.access.policy import Act
from ragqa.server.api.service import Backend
from ragqa.settings.paths import Paths


@dataclass(frozen=True, slots=True)
class Library:
    """Where the library works: ``load_encoder`` gives what loads the encoder of a corpus."""

    jobs: Jobs
    load_encoder: Callable[[Collection], LoadEncoder]


class LibraryBackend(Backend, Protocol):
    """A server with a library."""

    def library(self) -> Library:
        """Its jobs."""


def listed(backend: LibraryBackend, corpus: str) -> dict[str, Any]:
    """The documents of a corpus of the library, what waits to be indexed, and the latest work on it.

    Raises AccessError, CorpusError.
    """
    with backend.gate().doing(Act.READ, corpus):
        catalogue = _collection(corpus).read()
    job = backend.library().jobs.latest.get(corpus)
    return {
        "corpus": corpus,
        "title": catalogue.title,
        "is_indexed": catalogue.is_current and not catalogue.staged,
        "documents": [asdict(one) for one in catalogue.documents],
        "waiting": [asdict(one) for one in catalogue.staged],
        "work": asdict(job.view) if job else None,
    }


def added(backend: LibraryBackend, corpus: str, title: str, name: str, content: bytes) -> dict[str, Any]:
    """Takes a file into a corpus, a new version where one of this name is there, and begins to index; see `listed`.

    Without ``corpus`` a new one of this ``title`` is made. Raises AccessError, CorpusError, ConfigError while the
    corpus is being worked on.
    """
    paths, gate = Paths.from_env(), backend.gate()
    made = corpus or corpus_name(title or name.rpartition(".")[0], index_names(paths.indexes))
    with gate.doing(Act.UPLOAD, made, files=[name]), Reader() as reader:
        gate.spend_upload(len(content))
        collection = _collection(corpus) if corpus else make_collection(made, paths.library, title or name)
        refused = take(collection, name, io.BytesIO(content), reader)
        if refused and not collection.read().staged:
            if not corpus:
                delete(collection, paths.indexes)
            raise CorpusError("; ".join(refused))
    return _indexed(backend, collection) | {"left_out": refused}


def removed(backend: LibraryBackend, corpus: str, document_id: str) -> dict[str, Any]:
    """Takes a document out of a corpus and begins to index; it stays among the versions. Raises as `added`."""
    with backend.gate().doing(Act.DELETION, corpus, document=document_id):
        collection = _collection(corpus)
        collection.set_removed(document_id, removed=True)
    return _indexed(backend, collection)


def _indexed(backend: LibraryBackend, collection: Collection) -> dict[str, Any]:
    library = backend.library()
    with backend.gate().doing(Act.INDEX, collection.name):
        library.jobs.start(collection, "both", library.load_encoder(collection))
    return listed(backend, collection.name)


def _collection(corpus: str) -> Collection:
    found = collection_of(corpus, Paths.from_env().library)
    if found is None:
        msg = f"expected a corpus of the library, found {corpus[:80]!r}; send a title without a corpus to make one"
        raise CorpusError(msg)
    return found

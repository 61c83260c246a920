"""Documents of the library for programs: list the documents of a corpus, add and remove files, follow the work."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from ragqa.corpus.documents import Reader
from ragqa.errors import CorpusError
from ragqa.library.collection import Collection, collection_of, make_collection, new_name
from ragqa.library.jobs import Jobs, LoadEncoder
from ragqa.library.transfer import delete
from ragqa.library.upload import take
from ragqa.server.access.policy import Act
from ragqa.server.api.service import Backend
from ragqa.settings.paths import Paths


@dataclass(frozen=True, slots=True)
class Library:
    """The library's jobs; ``load_encoder`` gives the function that loads the encoder of a corpus."""

    jobs: Jobs
    load_encoder: Callable[[Collection], LoadEncoder]


class LibraryBackend(Backend, Protocol):
    """A server with a library."""

    def library(self) -> Library:
        """The jobs of its library."""


def listed(backend: LibraryBackend, corpus: str) -> dict[str, Any]:
    """The documents of a library corpus, the files that wait to be indexed, and the state of the latest job.

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


def added(backend: LibraryBackend, corpus: str, title: str, name: str, content: bytes) -> tuple[str, list[str]]:
    """Adds a file to a corpus, as a new version of a document with its name, and starts indexing.

    Without ``corpus`` a new one with this ``title`` is made. Returns the corpus and what was left out, in words. Raises
    AccessError, CorpusError, and ConfigError while a job of the corpus is running.
    """
    paths, gate = Paths.from_env(), backend.gate()
    made = corpus or new_name(title or name.rpartition(".")[0], paths.indexes, paths.library)
    with gate.doing(Act.UPLOAD, made, files=[name]), Reader() as reader:
        gate.spend_upload(len(content))
        collection = _collection(corpus) if corpus else make_collection(made, paths.library, title or name)
        refused = take(collection, name, io.BytesIO(content), reader)
        if refused and not collection.read().staged:
            if not corpus:
                delete(collection, paths.indexes)
            raise CorpusError("; ".join(refused))
    _index(backend, collection)
    return collection.name, refused


def removed(backend: LibraryBackend, corpus: str, document_id: str) -> dict[str, Any]:
    """Removes a document and starts indexing; its file stays in the old versions. Gives `listed`; raises as `added`."""
    with backend.gate().doing(Act.DELETION, corpus, document=document_id):
        collection = _collection(corpus)
        collection.set_removed(document_id, removed=True)
    _index(backend, collection)
    return listed(backend, corpus)


def _index(backend: LibraryBackend, collection: Collection) -> None:
    library = backend.library()
    with backend.gate().doing(Act.INDEX, collection.name):
        library.jobs.start(collection, "both", library.load_encoder(collection))


def _collection(corpus: str) -> Collection:
    found = collection_of(corpus, Paths.from_env().library)
    if found is None:
        msg = f"expected a corpus of the library, found {corpus[:80]!r}; send a title without a corpus to make one"
        raise CorpusError(msg)
    return found

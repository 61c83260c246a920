"""A backend on fakes for what programs call, and a server of it for real clients.

`python -m tests.support.programs FOLDER` serves the tools over standard input and output, on a slow writer.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from ragqa.corpus.numbered import asked_by_number, documents_named
from ragqa.library.jobs import Jobs
from ragqa.records.store import RecordStore
from ragqa.server.access.gate import Gate
from ragqa.server.api.documents import Library
from ragqa.server.api.http import Keyed, application
from ragqa.server.queue import RunQueue
from tests.support.fakes import FakeEncoder, FakeGenerator
from tests.support.helpers import ANSWER, PASSAGES, FakeManifest, make_pipeline


@dataclass(frozen=True)
class CountedManifest(FakeManifest):
    n_passages: int = len(PASSAGES)
    created: str = "2026-11-24T00:00:00+00:00"


class SlowGenerator(FakeGenerator):
    """Three seconds for ten words."""

    def stream(self, question, passages):
        for event in super().stream(question, passages):
            time.sleep(0.3)
            yield event
        return self.result


class SlowScorer:
    """Repeats the scorer's first event for thirty seconds; notes whether it was left meanwhile."""

    def __init__(self, scorer):
        self._scorer, self.was_left = scorer, False

    def __getattr__(self, name):
        return getattr(self._scorer, name)

    def stream(self, answer, passages):
        events = self._scorer.stream(answer, passages)
        first = next(events)
        try:
            for _ in range(100):
                time.sleep(0.3)
                yield first
        except GeneratorExit:
            self.was_left = True
            raise
        return (yield from events)


class ToyBackend:
    """One corpus of three passages, `rulebook`; ``parts`` change its pipeline."""

    def __init__(self, folder, **parts):
        self._records = RecordStore(folder / "records.sqlite3")
        self._parts, self.queue = parts, RunQueue(2, 50)
        self._jobs = Jobs(folder / "indexes")
        places = {passage.passage_id: n for n, passage in enumerate(PASSAGES)}
        self._index = SimpleNamespace(
            manifest=CountedManifest(),
            passages=PASSAGES,
            position_of=places,
            passage=lambda name: PASSAGES[places[name]] if name in places else None,
            text_of=lambda passage: passage.text,
            documents_named=lambda question: documents_named(question, PASSAGES),
            asked_by_number=lambda question, ranked=(): asked_by_number(question, PASSAGES, ranked),
        )

    def gate(self):
        return Gate()

    def corpora(self):
        return {"rulebook": "The rulebook"}

    def index(self, name):
        assert name == "rulebook"
        return self._index

    def pipeline(self, config):
        parts = {"generator": None} if config.generation.generator == "none" else {}
        return make_pipeline(config=config, index=self._index, records=self._records, **(self._parts | parts))

    def records(self):
        return self._records

    def turn(self):
        return self.queue.take("")

    def library(self):
        return Library(self._jobs, lambda _: FakeEncoder)


def asgi(backend, gate_of=lambda headers: Gate(), acting=lambda gate: nullcontext()):
    from starlette.applications import Starlette
    from starlette.routing import Mount

    return Starlette(routes=[Mount("/v1", Keyed(application(backend), gate_of, acting))])


@contextmanager
def served(app):
    """The application at an address of this machine, which is given."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)


if __name__ == "__main__":
    from ragqa.server.api.tools import tools_server

    tools_server(ToyBackend(Path(sys.argv[1]), generator=SlowGenerator(ANSWER))).run("stdio")

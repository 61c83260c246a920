"""A server with four questions at work and one behind them: ``python -m tests.support.stopping_entry FILE``.

It stands on the lifespan of `app.py`; FILE holds the records. One writer ends as soon as the server stops, one goes
on for ever, one does so with a best answer so far, one is silent. ``Ready`` on standard output: all are at it.
"""

import itertools
import sys
import threading
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from ragqa.errors import BusyError
from ragqa.records.store import RecordStore
from ragqa.settings.config import Config
from ragqa.types import Question
from ragqa.types.events.generation import BestSoFar, Token
from ragqa.ui import serving
from ragqa.ui.state import resources
from ragqa.ui.state.run import Run
from tests.support.helpers import ANSWER, make_pipeline

store = RecordStore(Path(sys.argv[1]))
at_it = threading.Semaphore(0)
pause = threading.Event()


def stopping():
    try:
        resources.turns().take().leave()
    except BusyError:
        return True
    return False


class Writer:
    name, model = "fake", ""

    def __init__(self, kind):
        self.kind = kind

    def stream(self, question, passages):
        if self.kind == "best":
            yield BestSoFar(ANSWER, "first")
        at_it.release()
        if self.kind == "silent":
            pause.wait()
        for n in itertools.count():
            yield Token(f"{n} ")
            pause.wait(0.01)
            if self.kind == "ends" and stopping():
                return ANSWER


def ask(kind):
    return Run(
        Question(f"Who must act: {kind}?"),
        Config(),
        lambda: make_pipeline(generator=Writer(kind), records=store),
        turn=resources.turns().take(),
    )


resources._pipeline = lambda *_: make_pipeline()
runs = [ask(kind) for kind in ("ends", "endless", "best", "silent")]
for _ in runs:
    at_it.acquire()
runs.append(ask("behind"))


class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        sys.stdout.write("Ready\n")
        sys.stdout.flush()

    async def shutdown(self, sockets=None):
        await super().shutdown(sockets)
        for run in runs:
            sys.stdout.write(f"{run.view.question}|{run.view.running}|{run.view.error}\n")
        sys.stdout.flush()


Server(uvicorn.Config(Starlette(lifespan=serving.lifespan), port=0, log_level="warning")).run()

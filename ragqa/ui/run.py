"""A question that runs in its own thread, so that touching a slider never loses an answer."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from ragqa.config import Config
from ragqa.errors import RagqaError
from ragqa.events.generation import BestSoFar
from ragqa.pipeline import Pipeline
from ragqa.types import Question
from ragqa.ui.view import View, advance, ended

_logger = logging.getLogger(__name__)


class Run:
    """A question or a checked text under way. `view` may be read from any thread; it is replaced, never changed."""

    def __init__(self, question: Question, config: Config, load: Callable[[], Pipeline]) -> None:
        """Starts at once. ``load`` gives the pipeline; it is called in the thread, since it may load models."""
        self.id = secrets.token_urlsafe(16)
        self.view = View(question, config, phase="Loading the models (once)")
        self._started = time.monotonic()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(load,), name="ragqa-run", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the run after the event it is at; what is there stays, a best answer so far as the answer."""
        self._stopped.set()

    @property
    def seconds(self) -> float:
        """How long ago it began."""
        return time.monotonic() - self._started

    def wait(self, timeout_seconds: float | None = None) -> View:
        """The view when the run has ended, or when the time is up."""
        self._thread.join(timeout_seconds)
        return self.view

    def _work(self, load: Callable[[], Pipeline]) -> None:
        try:
            pipeline = load()
            self.view = replace(self.view, phase="Retrieving passages")
            with closing(pipeline.run(self.view.asked)) as events:  # type: ignore[type-var]
                for event in events:
                    self.view = advance(self.view, event)
                    is_stored = not isinstance(event, BestSoFar)  # the very next event says under which id
                    if self._stopped.is_set() and self.view.running and is_stored:
                        self._end("Stopped at your request. What was there stays; ask again to continue.")
                        return
            if self.view.running:  # only passages were asked for: no record ends the run
                self.view = replace(self.view, running=False, phase="Done")
        except RagqaError as error:
            self._end(str(error))
        except Exception:  # the thread's last line: whatever it is, the page must say so without a trace
            reference = secrets.token_hex(4)
            _logger.exception("run failed, reference %s", reference)
            self._end(f"Something failed inside ragqa. Reference {reference} in the server's log says what; ask again.")

    def _end(self, error: str) -> None:
        self.view = ended(self.view, error)

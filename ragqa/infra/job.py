"""Work in a background thread: its visible state, how it is stopped, and why it failed."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

from ragqa.errors import RagqaError

_logger = logging.getLogger(__name__)


class Running(Protocol):
    """The visible state of a job: plain values, among them whether it is running."""

    @property
    def running(self) -> bool: ...


Seen = TypeVar("Seen", bound=Running)


class Job(ABC, Generic[Seen]):
    """One job. `view` may be read from any thread; it is replaced, never changed.

    A subclass defines `work`, which checks `stopped` from time to time, and `failed`.
    """

    def __init__(self, view: Seen, name: str, again: str = "try again") -> None:
        """``name`` is used for the thread and the log; ``again`` ends the message on a failure inside ragqa."""
        self.view = view
        self.stopped = threading.Event()
        self._name, self._again = name, again
        self._began, self._ended = time.monotonic(), 0.0
        self._thread = threading.Thread(target=self._run, name=f"ragqa-{name}", daemon=True)

    @abstractmethod
    def work(self) -> None:
        """Does the work, in the thread."""

    @abstractmethod
    def failed(self, words: str, error: RagqaError | None) -> None:
        """Shows why the work ended early; ``error`` is None after a failure inside ragqa."""

    def start(self) -> None:
        """Starts the thread; call it once."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the work as soon as possible; finished parts stay."""
        self.stopped.set()

    @property
    def is_stopping(self) -> bool:
        """Whether it was stopped and has not ended yet."""
        return self.stopped.is_set() and self.view.running

    @property
    def seconds(self) -> float:
        """The seconds for which it has been running, or ran."""
        return (self._ended or time.monotonic()) - self._began

    def wait(self, timeout_seconds: float | None = None) -> Seen:
        """The view when it has ended, or when the time is up."""
        self._thread.join(timeout_seconds)
        return self.view

    def _run(self) -> None:
        try:
            self.work()
        except RagqaError as error:
            self.failed(str(error), error)
        except Exception:  # last resort of the thread: the page shows any failure, without a trace
            reference = secrets.token_hex(4)
            _logger.exception("%s failed, reference %s", self._name, reference)
            words = (
                f"Something failed inside ragqa. Reference {reference} in the server's log says what; {self._again}."
            )
            self.failed(words, None)
        finally:
            self._ended = time.monotonic()
            self.ended()

    def ended(self) -> None:
        """Called in the thread at the end, after success or failure."""

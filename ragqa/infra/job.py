"""Work in the background: a thread, what is seen of it from outside, how it is stopped, and what it failed of."""

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
    """What is shown of a piece of work: plain values, among them whether it goes on."""

    @property
    def running(self) -> bool: ...


Seen = TypeVar("Seen", bound=Running)


class Job(ABC, Generic[Seen]):
    """One piece of work. `view` may be read from any thread; it is replaced, never changed.

    Whoever derives from it writes `work`, which looks at `stopped` now and then, and `failed`.
    """

    def __init__(self, view: Seen, name: str, again: str = "try again") -> None:
        """``name`` is the thread's and the log's; ``again`` ends what is said of a failure inside ragqa."""
        self.view = view
        self.stopped = threading.Event()
        self._name, self._again = name, again
        self._began, self._ended = time.monotonic(), 0.0
        self._thread = threading.Thread(target=self._run, name=f"ragqa-{name}", daemon=True)

    @abstractmethod
    def work(self) -> None:
        """Does it, in the thread."""

    @abstractmethod
    def failed(self, words: str, error: RagqaError | None) -> None:
        """Shows why it ended early; ``error`` is None where something failed inside ragqa."""

    def start(self) -> None:
        """Begins; once."""
        self._thread.start()

    def stop(self) -> None:
        """Ends it as soon as may be; what is done stays."""
        self.stopped.set()

    @property
    def is_stopping(self) -> bool:
        """Whether it was told to stop and has not ended yet."""
        return self.stopped.is_set() and self.view.running

    @property
    def seconds(self) -> float:
        """How long it has been at work, or was."""
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
        except Exception:  # the thread's last line: whatever it is, the page must say so without a trace
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
        """Called in the thread when all is over, however it ended."""

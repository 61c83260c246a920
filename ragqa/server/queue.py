"""The run queue: a limited number of runs at once, the others wait in turn, and more are rejected."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition
from typing import Final

from ragqa.errors import BusyError
from ragqa.settings.environment import whole_number

_LOOK_SECONDS: Final = 0.5  # between two looks whether a waiting place is still wanted


class RunQueue:
    """The queue of one process. Safe between threads."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self._at_once, self._waiting = at_once, waiting
        self._line: list[QueuePlace] = []  # the first ``at_once`` are running
        self._changed = Condition()
        self._closed = ""

    @classmethod
    def from_env(cls) -> RunQueue:
        """A queue with the limits of RAGQA_MAX_RUNS and RAGQA_MAX_WAITING. Raises ConfigError."""
        return cls(whole_number("RAGQA_MAX_RUNS"), whole_number("RAGQA_MAX_WAITING"))

    @property
    def at_work(self) -> int:
        """The number of runs that have their turn."""
        return min(len(self._line), self._at_once)

    @property
    def waiting(self) -> int:
        """The number of runs that wait."""
        return max(0, len(self._line) - self._at_once)

    def take(self, who: str = "") -> QueuePlace:
        """A place in the queue. People take turns: it is put before waiting places of persons with more places.

        Raises BusyError where the queue is full or closed, or where this person has half of all places.
        """
        with self._changed:
            if self._closed:
                raise BusyError(self._closed)
            mine, most = self._before(len(self._line), who), self._at_once + self._waiting
            if who and mine >= max(1, most // 2):
                msg = f"{mine} of your questions run or wait, the most that one person may have; wait for one."
                raise BusyError(msg)
            if len(self._line) >= most:
                raise BusyError(
                    f"The run queue is full: {self.at_work} questions running, {self.waiting} waiting. "
                    "Nothing is lost; ask again in a minute."
                )
            turn = QueuePlace(self, self._line, self._changed, who)
            waiting = range(self._at_once, len(self._line))
            later = (place for place in waiting if self._before(place, self._line[place].who) > mine)
            self._line.insert(next(later, len(self._line)), turn)
            self._changed.notify_all()
            return turn

    def _before(self, place: int, who: str) -> int:
        """How many places before this one belong to this person; 0 without a person."""
        return sum(turn.who == who for turn in self._line[:place]) if who else 0

    def close(self, why: str) -> None:
        """Accepts no more places and drops those that wait; running ones continue."""
        with self._changed:
            self._closed = why
            del self._line[self._at_once :]
            self._changed.notify_all()

    def place(self, turn: QueuePlace) -> int | None:
        """0: running; from 1: the position among those that wait; None: no longer in the queue."""
        with self._changed:
            return max(0, self._line.index(turn) - self._at_once + 1) if turn in self._line else None


class QueuePlace:
    """A place in the queue, until `leave`."""

    def __init__(self, turns: RunQueue, line: list[QueuePlace], changed: Condition, who: str) -> None:
        self._turns, self._line, self._changed, self.who = turns, line, changed, who

    def wait(self, tell: Callable[[int], None], still_wanted: Callable[[], None] = lambda: None) -> bool:
        """Waits for the turn; False where the place was given up. ``tell`` is called with each new position.

        ``still_wanted`` is called twice a second; an error in it gives the place up and is raised.
        """
        told = 0
        with self._changed:
            while place := self._turns.place(self):
                if place != told:
                    tell(told := place)
                try:
                    still_wanted()
                except BaseException:
                    self.leave()
                    raise
                self._changed.wait(_LOOK_SECONDS)
        return place == 0

    def give_up(self) -> None:
        """Leaves the queue if it still waits."""
        if self._turns.place(self):
            self.leave()

    def leave(self) -> None:
        """Leaves the queue, so that the next can begin; leaving twice has no effect."""
        with self._changed:
            if self in self._line:
                self._line.remove(self)
                self._changed.notify_all()

"""Who works and who waits: so many at once, the others in turn, and no more than can be served."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition

from ragqa.errors import BusyError
from ragqa.settings.environment import whole_number


class RunQueue:
    """The line of one process. Safe between threads."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self._at_once, self._waiting = at_once, waiting
        self._line: list[QueuePlace] = []  # the first ``at_once`` are at work
        self._changed = Condition()
        self._closed = ""

    @classmethod
    def from_env(cls) -> RunQueue:
        """As RAGQA_MAX_RUNS and RAGQA_MAX_WAITING say. Raises ConfigError."""
        return cls(whole_number("RAGQA_MAX_RUNS"), whole_number("RAGQA_MAX_WAITING"))

    @property
    def at_work(self) -> int:
        """How many have their turn now."""
        return min(len(self._line), self._at_once)

    @property
    def waiting(self) -> int:
        """How many wait for it."""
        return max(0, len(self._line) - self._at_once)

    def take(self, who: str = "") -> QueuePlace:
        """A place in the line, where people take turns: it stands before the later ones of who has more than ``who``.

        Raises BusyError where too many wait already, where half of all places are this person's, or the line is closed.
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
        """How many places before this one are this person's; 0 for nobody in particular."""
        return sum(turn.who == who for turn in self._line[:place]) if who else 0

    def close(self, why: str) -> None:
        """Nobody comes any more, and those who wait give up; those at work go on."""
        with self._changed:
            self._closed = why
            del self._line[self._at_once :]
            self._changed.notify_all()

    def place(self, turn: QueuePlace) -> int | None:
        """0: at work; else the place among those who wait, from 1; None: not in the line any more."""
        with self._changed:
            return max(0, self._line.index(turn) - self._at_once + 1) if turn in self._line else None


class QueuePlace:
    """A place in the line, until `leave`."""

    def __init__(self, turns: RunQueue, line: list[QueuePlace], changed: Condition, who: str) -> None:
        self._turns, self._line, self._changed, self.who = turns, line, changed, who

    def wait(self, tell: Callable[[int], None]) -> bool:
        """Returns when the turn has come; False where it was given up before. ``tell`` hears each new place."""
        told = 0
        with self._changed:
            while place := self._turns.place(self):
                if place != told:
                    tell(told := place)
                self._changed.wait()
        return place == 0

    def give_up(self) -> None:
        """Leaves where it still waits."""
        if self._turns.place(self):
            self.leave()

    def leave(self) -> None:
        """Lets the next one begin; leaving twice is nothing."""
        with self._changed:
            if self in self._line:
                self._line.remove(self)
                self._changed.notify_all()

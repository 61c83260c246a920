"""What each person has used within the last hour, and when they may go on."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Lock
from typing import Final

from ragqa.errors import AccessError

HOUR: Final = 3600.0  # seconds


class RateLimit:
    """Of one process, and forgotten with it. Safe between threads."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._used: dict[tuple[str, str], deque[tuple[float, int]]] = {}  # when and how much, by person and kind
        self._lock = Lock()

    def spend(self, person: str, kind: str, amount: int, most: int) -> None:
        """Takes note of it. Raises AccessError, and does not, where it would be more than ``most`` within an hour."""
        with self._lock:
            now = self._now()
            for key in [key for key, entries in self._used.items() if entries[-1][0] <= now - HOUR]:
                del self._used[key]
            entries = self._used.get((person, kind), deque())
            while entries and entries[0][0] <= now - HOUR:
                entries.popleft()
            over = sum(one for _, one in entries) + amount - most
            if over <= 0:
                entries.append((now, amount))
                self._used[person, kind] = entries
                return
            ends = now
            for when, one in entries:
                ends, over = when + HOUR, over - one
                if over <= 0:
                    break
        if over > 0:
            msg = f"At most {most:,} {kind} an hour are allowed, and this request has {amount:,}; send less at once."
            raise AccessError(msg)
        clock = datetime.fromtimestamp(ends, UTC).strftime("%H:%M:%S")
        minutes = max(1, -int(-(ends - now) // 60))
        msg = (
            f"Rate limit reached: at most {most:,} {kind} an hour. Continue at {clock} "
            f"UTC, in {minutes} {'minute' if minutes == 1 else 'minutes'}, or ask an administrator for a higher limit."
        )
        raise AccessError(msg)

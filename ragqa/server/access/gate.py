"""The gate: everything that the page or a program opens or changes is allowed and logged here."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Final, TypeVar

from ragqa.english.words import quantity
from ragqa.errors import AccessError, RagqaError
from ragqa.infra.disk_cache import RecentResults
from ragqa.infra.metrics import METRICS
from ragqa.records.database import Database
from ragqa.records.reader import RecordReader
from ragqa.server.access.audit import AuditLog
from ragqa.server.access.policy import LOCAL, Act, Person, Policy, Role

HOUR: Final = 3600.0  # seconds
_Store = TypeVar("_Store", bound=Database)


class RateLimit:
    """The rate limits of one process, kept in memory only. Safe between threads."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._used: dict[tuple[str, str], deque[tuple[float, int]]] = {}  # when and how much, by person and kind
        self._lock = Lock()

    def spend(self, person: str, kind: str, amount: int, most: int) -> None:
        """Counts ``amount``. Raises AccessError, without counting, if it would be more than ``most`` within an hour."""
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
        raise AccessError(
            f"Rate limit reached: at most {most:,} {kind} an hour. Continue at {clock} "
            f"UTC, in {quantity(minutes, 'minute')}, or ask an administrator for a higher limit."
        )


_USED: Final = RateLimit()  # the limits of this process
# when a person last read a record, by (person id, record id)
_OPENED: Final[RecentResults[tuple[str, str], float]] = RecentResults(10_000)


@dataclass(frozen=True, slots=True)
class Gate:
    """One person under one policy. ``audit`` is None without sign-in: then nothing is denied and nothing logged."""

    person: Person = LOCAL
    policy: Policy = field(default_factory=Policy)
    audit: AuditLog | None = None
    used: RateLimit = _USED

    def may(self, act: Act, corpus: str = "") -> bool:
        """Whether `demand` would allow this; not logged, for deciding what the page offers."""
        return self.policy.may(self.person, act, corpus)

    def demand(self, act: Act, corpus: str = "") -> None:
        """Raises AccessError, and logs it, unless this person may do this."""
        if not self.may(act, corpus):
            self.refuse(act, corpus)

    def refuse(self, act: Act, corpus: str = "", **about: object) -> None:
        """Logs a denied act and raises AccessError, which speaks of a hidden corpus as if it did not exist."""
        self.log(Act.REFUSAL, wanted=act, corpus=corpus, **about)
        if corpus and self.may(act):
            msg = f"There is no corpus {corpus[:60]!r} that you may read; choose another, or ask an administrator."
            raise AccessError(msg)
        msg = f"Your role, {self.person.role.name.lower()}, does not allow this ({act}); ask an administrator."
        raise AccessError(msg)

    @contextmanager
    def doing(self, act: Act, corpus: str = "", **about: object) -> Iterator[None]:
        """Demands the act and logs it before it begins; also logs a failure."""
        self.demand(act, corpus)
        self.log(act, corpus=corpus, **about)
        try:
            yield
        except RagqaError as error:
            self.log(Act.FAILURE, of=act, corpus=corpus, error=type(error).__name__)
            raise

    def log(self, act: Act, **about: object) -> None:
        """Adds an entry. Raises RecordError where it cannot be written; then the act must not be done."""
        if act is Act.REFUSAL:
            METRICS.count("ragqa_refusals_total", wanted=str(about.get("wanted", "")))
        if self.audit:
            self.audit.append(act, self.person.id, self.person.email, **about)

    def asked(self, text: str) -> dict[str, object]:
        """The log's entries on a question or text: its length, and the text only if the policy says so."""
        return {"characters": len(text)} | ({"text": text} if self.policy.log_questions else {})

    def spend_question(self) -> None:
        """Counts a question. Raises AccessError above the policy's limit, with the time when it ends."""
        if most := self.audit and self.policy.questions_per_hour:
            self.used.spend(self.person.id, "questions", 1, most)

    def spend_upload(self, n_bytes: int) -> None:
        """Counts the bytes of an upload. Raises as `spend_question`."""
        if most := self.audit and self.policy.upload_mb_per_hour:
            self.used.spend(self.person.id, "bytes of uploads", n_bytes, most * 10**6)

    def owns(self, owner: str) -> bool:
        """Whether this person may see a run that ``owner`` (a person's id) began."""
        return self.person.role is Role.ADMINISTRATOR or (bool(owner) and owner == self.person.id)

    def seeing(self, store: _Store) -> _Store:
        """The store of records or cases, restricted to what this person may see; all of it without sign-in."""
        if self.audit is None:
            return store
        person = self.person
        everything = person.role is Role.ADMINISTRATOR
        names = person.names if person.role >= Role.READER else frozenset[str]()
        return store.seen_by(
            RecordReader(person.id, names, self.policy.hidden(person), self._guessed, everything, self._opened)
        )

    def _opened(self, record_id: str) -> None:
        """Logs who reads a record, at most once an hour, because the page runs again at every click."""
        now, about = time.monotonic(), (self.person.id, record_id)
        if now - _OPENED.known([about]).get(about, -HOUR) >= HOUR:
            self.log(Act.READ, record=record_id)
            _OPENED.remember({about: now})

    def _guessed(self, record_id: str) -> None:
        self.log(Act.REFUSAL, wanted=Act.READ, record=record_id[:60])

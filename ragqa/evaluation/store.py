"""The store of a run's folder: each item's steps in the journal, read back on demand."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragqa.errors import RecordError, ScoringError
from ragqa.evaluation.benchmark import Item, Json, Outcome, Status
from ragqa.generation.llm.reply_cache import ReplyCache
from ragqa.infra.journal import JOURNAL, Journal, begun, digest, held, translated


@dataclass(slots=True)
class _Standing:
    """The places of an item's entries in the journal; ``failed`` is the last note."""

    n_begun: int = 0
    replies_at: list[int] = field(default_factory=list)
    solved_at: int | None = None
    scored_at: int | None = None
    status: Status | None = None
    note: str = ""
    failed: str = ""


class RunStore:
    """The items stored in a run's folder. Shared by threads, but by one process at a time. Created by `open_store`."""

    def __init__(self, folder: Path, stamp: Json, scoring: Json) -> None:
        self.folder = folder
        self.stamp = stamp
        self.journal = Journal(folder / JOURNAL)
        self._run, self._scoring = digest(stamp), digest(scoring)
        self._lock = threading.Lock()
        self._standing: dict[int, _Standing] = {}
        self._identity: dict[int, str] = {}
        for offset, line in self.journal.read():
            if line.get("run") != self._run:
                raise RecordError(
                    f"{self.journal.path} holds an item of another run; choose another folder, or begin this one anew "
                    "with --restart"
                )
            if not line["item"].get("scores", {}).get("again"):
                self._note(offset, line["item"])

    def outcome(self, item: Item, *, restored: bool = False) -> Outcome:
        """The outcome of this item so far. Raises RecordError if its number belonged to another item."""
        self._check(item)
        standing = self._standing.get(item.number) or _Standing()

        def read(name: str) -> Json | None:
            return self._entry(standing.solved_at if name == "solution" else standing.scored_at, name)

        status, note = Status.FAILED if standing.failed else Status.LEFT, standing.failed
        if standing.status is not None:
            status, note = standing.status, standing.note
        return Outcome(item, status, note, standing.n_begun, restored, read)

    def solution(self, item: Item) -> Json | None:
        """The solution of this item in the journal."""
        self._check(item)
        standing = self._standing.get(item.number)
        return self._entry(standing.solved_at, "solution") if standing else None

    def keep(self, item: Item, step: str, *, sync: bool = True, **content: Any) -> None:  # noqa: ANN401 - JSON values
        """Stores a step of this item: begun, reply, solved, scored or failed; ``sync`` is as in `Journal.append`.

        Raises RecordError if it cannot be written, ScoringError if it contains a number that is not finite.
        """
        entry = {"step": step, "number": item.number, "identity": item.identity, **content}
        if step == "scored":
            entry["scoring"] = self._scoring
        try:
            with self._lock, translated(self.folder):
                self._note(self.journal.append({"run": self._run, "item": entry}, sync=sync), entry)
        except ValueError as error:
            msg = f"a score is not a finite number ({error}); check the model's files, or reinstall ragqa"
            raise ScoringError(msg) from error

    def replies(self, item: Item) -> ReplyCache:
        """The language model's earlier replies for this item, which are used before new ones are requested."""
        standing = self._standing.get(item.number) or _Standing()
        return _Replies(self, item, [self.journal.entry_at(at)["item"] for at in standing.replies_at])

    def words(self, outcomes: Sequence[Outcome]) -> str:
        """A description of the earlier run that was found; empty if there was none."""
        lines = []
        if self.journal.dropped_torn_line:
            lines.append(f"{self.folder}: discarded an incomplete entry; its item is run again")
        if self._standing:
            done = sum(one.is_done for one in outcomes)
            solved = {number for number, standing in self._standing.items() if standing.solved_at is not None}
            unscored = sum(not one.is_done and one.item.number in solved for one in outcomes)
            left = [one for one in outcomes if one.status is Status.LEFT and one.item.number not in solved]
            broken = sum(one.n_begun > 0 for one in left)
            failed = sum(one.status is Status.FAILED for one in outcomes)
            words = f"continuing: {done:,} are done already, {len(outcomes) - done:,} are left"
            words += f", {unscored:,} of them only to be scored" if unscored else ""
            words += f"; {failed:,} that failed are retried" if failed else ""
            words += f"; {broken:,} were in progress when the last run ended and are repeated" if broken else ""
            lines.append(words)
        return "\n".join(lines)

    def _check(self, item: Item) -> None:
        if self._identity.get(item.number, item.identity) != item.identity:
            msg = f"item {item.number} of {self.folder} was another one; choose another folder or --restart"
            raise RecordError(msg)

    def _entry(self, offset: int | None, name: str) -> Json | None:
        if offset is None:
            return None
        found: Json = self.journal.entry_at(offset)["item"][name]
        return found

    def _note(self, offset: int, entry: Mapping[str, Any]) -> None:
        standing = self._standing.setdefault(entry["number"], _Standing())
        self._identity.setdefault(entry["number"], entry["identity"])
        match entry["step"]:
            case "begun":
                standing.n_begun += 1
            case "reply":
                standing.replies_at.append(offset)
            case "solved" if standing.solved_at is None:  # the first one counts
                standing.solved_at, standing.failed = offset, ""
            case "scored" if entry["scoring"] == self._scoring and standing.scored_at is None:
                standing.scored_at, standing.failed = offset, ""
                standing.status = Status(entry["scores"].get("status", Status.SCORED))
                standing.note = entry["scores"].get("note", "")
            case "failed":
                standing.failed = entry["note"]


class _Replies:
    """A `ReplyCache` of the completions received for one item. Equal requests get theirs in order."""

    def __init__(self, store: RunStore, item: Item, entries: Sequence[Mapping[str, Any]]) -> None:
        self._store, self._item = store, item
        self._lock = threading.Lock()
        self._left: dict[str, deque[Mapping[str, Any]]] = {}
        for entry in entries:
            self._left.setdefault(entry["request"], deque()).append(entry["reply"])

    def get(self, request: str) -> Mapping[str, Any] | None:
        with self._lock:
            left = self._left.get(request)
            return left.popleft() if left else None

    def put(self, request: str, reply: Mapping[str, Any]) -> None:
        self._store.keep(self._item, "reply", request=request, reply=dict(reply))


@contextmanager
def open_store(
    folder: Path, stamp: Json, scoring: Json, *, outputs: Sequence[str] = (), restart: bool = False
) -> Iterator[RunStore]:
    """The store of the run with this stamp, locked; the folder is created if needed.

    ``outputs`` and ``restart`` are as in `begun`. Raises what that and `RunStore` raise.
    """
    plain: dict[str, Any] = json.loads(json.dumps(stamp))  # as it reads back
    with held(folder, "writing"):
        store = RunStore(folder, begun(folder, plain, outputs, restart=restart), scoring)
        try:
            yield store
        finally:
            store.journal.close()

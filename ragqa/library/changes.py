"""What a new version of a document changes, passage by passage, and which records rest on what has changed. Pure.

A passage that only got another number is neither new nor gone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from ragqa.infra.files import append_json_lines
from ragqa.records.record import AnswerRecord
from ragqa.types import Passage

What = Literal["added", "replaced", "removed"]


@dataclass(frozen=True, slots=True)
class PassageChange:
    """A passage that is new (``before`` empty), gone (``after`` empty) or says something else."""

    passage_id: str
    number: str
    before: str
    after: str

    @property
    def what(self) -> str:
        return "changed" if self.before and self.after else "new" if self.after else "gone"


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """What an indexing did to one document; ``passages`` are those that changed, of replaced documents only."""

    document_id: str
    what: What
    version: int
    n_same: int
    n_moved: int
    passages: tuple[PassageChange, ...] = ()

    def count(self, what: str) -> int:
        """How many passages are new, changed or gone."""
        return sum(one.what == what for one in self.passages)


@dataclass(frozen=True, slots=True)
class Update:
    """One indexing, by the time it ended (UTC, ISO 8601)."""

    at: str
    documents: tuple[DocumentChange, ...]


def compared(document_id: str, version: int, before: Sequence[Passage], after: Sequence[Passage]) -> DocumentChange:
    """What is new, changed and gone from one version of a document to the next."""
    was, now = ({one.passage_id: one for one in passages} for passages in (before, after))
    same = {name for name in was.keys() & now.keys() if was[name].text == now[name].text}
    left = [one for name, one in was.items() if name not in same]
    came = [one for name, one in now.items() if name not in same]
    texts = {one.text for one in left} & {one.text for one in came}
    left, came = ([one for one in side if one.text not in texts] for side in (left, came))
    old = {one.passage_id: one for one in left}
    found = [
        PassageChange(one.passage_id, one.number, old[one.passage_id].text if one.passage_id in old else "", one.text)
        for one in came
    ]
    kept = {one.passage_id for one in came}
    found += [PassageChange(one.passage_id, one.number, one.text, "") for one in left if one.passage_id not in kept]
    return DocumentChange(document_id, "replaced", version, len(same), len(texts), tuple(found))


def append(path: Path, update: Update) -> None:
    """Adds a line to the file of changes."""
    append_json_lines(path, [asdict(update)])


def read_updates(path: Path, limit: int = 20) -> tuple[Update, ...]:
    """The newest changes first; lines that are none are passed over."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ()
    found = (_update(line) for line in reversed(lines[-limit:]))
    return tuple(one for one in found if one)


def _update(line: str) -> Update | None:
    try:
        told: dict[str, Any] = json.loads(line)
        documents = tuple(
            DocumentChange(**{**one, "passages": tuple(PassageChange(**passage) for passage in one["passages"])})
            for one in told["documents"]
        )
        return Update(told["at"], documents)
    except (ValueError, KeyError, TypeError):
        return None


# Records ----------------------------------------------------------------------------------------------------------


class Holdings(Protocol):
    """What `stale` asks of an open index."""

    @property
    def passages(self) -> Sequence[Passage]: ...

    @property
    def position_of(self) -> Mapping[str, int]: ...


def cited(record: AnswerRecord) -> tuple[Passage, ...]:
    """The passages that the answer cites; all that it was written from where it cites none."""
    kept = record.kept
    numbers = {number for sentence in record.answer.sentences for number in sentence.citations}
    return tuple(kept[number - 1] for number in sorted(numbers) if number <= len(kept)) or kept


def stale(record: AnswerRecord, index: Holdings) -> tuple[PassageChange, ...]:
    """The cited passages that the corpus does not hold any more as they were, with what stands there now."""
    found = []
    for passage in cited(record):
        position = index.position_of.get(passage.passage_id)
        now = index.passages[position].text if position is not None else ""
        if now != passage.text:
            found.append(PassageChange(passage.passage_id, passage.number, passage.text, now))
    if found:
        documents = {one.passage_id: one.document_id for one in record.passages}
        texts = {(one.document_id, one.text) for one in _of(index.passages, set(documents.values()))}
        found = [one for one in found if (documents[one.passage_id], one.before) not in texts]
    return tuple(found)


def _of(passages: Iterable[Passage], documents: set[str]) -> Iterable[Passage]:
    return (one for one in passages if one.document_id in documents)


def stale_words(changes: Sequence[PassageChange]) -> str:
    """One line for a reader of the record; empty where nothing has changed."""
    if not changes:
        return ""
    names = ", ".join(f"{one.number or one.passage_id} ({one.what})" for one in changes[:5])
    more = f" and {len(changes) - 5} more" if len(changes) > 5 else ""
    return f"The source has changed since: {names}{more}. Ask again for an answer from what is in force now."

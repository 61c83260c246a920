"""What a new version of a document changes, passage by passage, and which records cite changed passages. Pure.

A passage that only has another number is neither new nor gone.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Final, Literal

from ragqa.index import Index
from ragqa.infra.files import append_json_lines, write_whole
from ragqa.records.record import AnswerRecord
from ragqa.types import Passage

REREAD: Final = "reread.json"  # in the folder of a corpus: see `Rereading`
What = Literal["added", "replaced", "removed"]


@dataclass(frozen=True, slots=True)
class PassageChange:
    """A passage that is new (``before`` is empty), gone (``after`` is empty) or changed."""

    passage_id: str
    number: str
    before: str
    after: str

    @property
    def what(self) -> str:
        return "changed" if self.before and self.after else "new" if self.after else "gone"


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """How one indexing changed a document; ``passages`` are the changed passages, for replaced documents only."""

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
    """The changes of one indexing; ``at`` is when it ended (UTC, ISO 8601)."""

    at: str
    documents: tuple[DocumentChange, ...]


def compared(document_id: str, version: int, before: Sequence[Passage], after: Sequence[Passage]) -> DocumentChange:
    """The passages that are new, changed and gone between two versions of a document."""
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


def word_changes(before: str, after: str) -> tuple[tuple[str, str], ...]:
    """Aligned pieces of both texts, as (before, after): equal where the words are the same, else removed and added."""
    was, now = before.split(" "), after.split(" ")
    cuts = SequenceMatcher(None, was, now, autojunk=False).get_opcodes()
    return tuple((" ".join(was[i:j]), " ".join(now[k:m])) for _, i, j, k, m in cuts)


def renamed(before: Sequence[Passage], after: Sequence[Passage]) -> dict[str, str]:
    """Maps the id of each passage to the passage that holds its text in another parse of the same document.

    Where no passage has the whole text, the one that shares most of its words is taken, if it has at least half; of
    several such passages the one with the same id, else the first.
    """
    by_text = {one.text: one.passage_id for one in reversed(after)}
    holding: dict[str, list[int]] = {}
    for n, one in enumerate(after):
        for word in set(one.text.split()):
            holding.setdefault(word, []).append(n)
    found = {}
    for one in before:
        words = set(one.text.split())
        near = Counter(n for word in words for n in holding.get(word, ()))
        ranks = ((-shared, after[n].passage_id != one.passage_id, n) for n, shared in near.items())
        less, _, place = min(ranks, default=(0, True, -1))
        target = by_text.get(one.text) or (after[place].passage_id if -less * 2 >= len(words) > 0 else "")
        if target:
            found[one.passage_id] = target
    return found


@dataclass(frozen=True, slots=True)
class Rereading:
    """How a new parser version read unchanged documents: old ids mapped to new ones, and digests of texts cut anew."""

    ids: dict[str, str] = field(default_factory=dict)
    texts: frozenset[str] = frozenset()

    def joined(self, later: Rereading) -> Rereading:
        """This rereading followed by a later one."""
        ids = {old: later.ids.get(new, new) for old, new in self.ids.items()}
        return Rereading(later.ids | ids, self.texts | later.texts)


def read_rereading(path: Path) -> Rereading:
    """Reads what `write_rereading` wrote; empty where the file is missing or invalid."""
    try:
        told = json.loads(path.read_bytes())
        return Rereading(dict(told["ids"]), frozenset(told["texts"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Rereading()


def write_rereading(path: Path, one: Rereading) -> None:
    """Replaces the whole file."""
    write_whole(path, [json.dumps({"ids": one.ids, "texts": sorted(one.texts)}, ensure_ascii=False)])


def digest(passage: Passage) -> str:
    """The digest by which a `Rereading` identifies a passage's text."""
    return hashlib.sha256(f"{passage.passage_id}\n{passage.text}".encode()).hexdigest()[:32]


def append(path: Path, update: Update) -> None:
    """Appends an update to the file of changes."""
    append_json_lines(path, [asdict(update)])


def read_updates(path: Path, limit: int = 20) -> tuple[Update, ...]:
    """The latest updates, the newest first; invalid lines are skipped."""
    try:
        lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")  # not splitlines: texts may hold U+2028
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


def cited(record: AnswerRecord) -> tuple[Passage, ...]:
    """The passages that the answer cites; where it cites none, all passages that it was written from."""
    kept = record.kept
    numbers = {number for sentence in record.answer.sentences for number in sentence.citations}
    return tuple(kept[number - 1] for number in sorted(numbers) if number <= len(kept)) or kept


def stale(record: AnswerRecord, index: Index, reread: Rereading | None = None) -> tuple[PassageChange, ...]:
    """The cited passages whose text the corpus no longer holds, each with the present text of that passage.

    Passages that changed only because of a new parser (``reread``) are left out.
    """
    found = []
    for passage in cited(record):
        if reread and digest(passage) in reread.texts:
            continue
        position = index.position_of.get(passage.passage_id)
        now = index.passages[position].text if position is not None else ""
        if now != passage.text:
            found.append(PassageChange(passage.passage_id, passage.number, passage.text, now))
    if found:
        documents = {one.passage_id: one.document_id for one in record.passages}
        own = set(documents.values())
        texts = {(one.document_id, one.text) for one in index.passages if one.document_id in own}
        found = [one for one in found if (documents[one.passage_id], one.before) not in texts]
    return tuple(found)


def stale_words(changes: Sequence[PassageChange]) -> str:
    """One line for the reader of the record; empty where nothing has changed."""
    if not changes:
        return ""
    names = ", ".join(f"{one.number or one.passage_id} ({one.what})" for one in changes[:5])
    more = f" and {len(changes) - 5} more" if len(changes) > 5 else ""
    return f"The source has changed since: {names}{more}. Ask again for an answer from the present text."

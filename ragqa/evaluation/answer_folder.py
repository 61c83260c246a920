"""The folder of `ragqa eval answers --out`: what was asked, answered and scored, kept as it happens.

::

    DIR/
    ├── run.json       which questions, index, settings and models this folder belongs to
    ├── journal.jsonl  "begun", "reply", "answered", "scored" and "failed", a line each, as soon as it is so
    ├── answers.json   RIRAG A.6, as the shared task wants it and `ragqa score` reads it
    ├── ranking.run    the passages found, as a TREC run
    ├── details.json   every answer with its values, its sentences and what became of their citations
    └── report.json    means, counts, tokens and seconds

An answer is on disk before it is scored, and so is every completion it is made of. Killed at any moment, the next run
scores what was answered, makes what was begun out of the completions that had been received, and asks for the rest.
Only a completion that was still being written when the process died is asked for again: whether its server counted what
nobody received, only the server knows. `Standing.n_begun` says how often a question was begun.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from ragqa import __version__
from ragqa.config import prompt_folder
from ragqa.corpus.files import read_utf8
from ragqa.errors import RecordError
from ragqa.evaluation.journal import Journal
from ragqa.evaluation.run_folder import JOURNAL, begun, digest, held, translated
from ragqa.pipeline import Pipeline
from ragqa.recorder import without_credentials
from ragqa.types import Answer, Passage, Question, Usage

SCHEMA_VERSION: Final = 1
OUTPUTS: Final = ("answers.json", "ranking.run", "details.json", "report.json")


@dataclass(frozen=True, slots=True)
class Item:
    """A question by its place in the file, from 1."""

    number: int
    question: Question

    @property
    def sha256(self) -> str:
        """Of its id and text, in hexadecimal."""
        return digest({"id": self.question.question_id, "text": self.question.text})


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer as it was received, with what it was written from.

    ``ranking`` holds (passage id, relevance), best first; ``steps`` the scores a generator gave its own versions.
    """

    answer: Answer
    passages: tuple[Passage, ...]
    ranking: tuple[tuple[str, float], ...]
    seconds: dict[str, float]
    steps: tuple[dict[str, Any], ...] = ()


@dataclass(slots=True)
class Standing:
    """How far one question has come. ``scored`` is its entry with values and sentences, ``failed`` the last note."""

    n_begun: int = 0
    replies_at: list[int] = field(default_factory=list)
    answered_at: int | None = None
    usage: Usage = field(default_factory=Usage)
    scored: Mapping[str, Any] | None = None
    failed: str = ""


class AnswerFolder:
    """Keeps what becomes of each question; threads of this process may share it. Made by `open_answer_folder`."""

    def __init__(self, folder: Path, stamp: Mapping[str, Any]) -> None:
        self.folder = folder
        self.stamp = stamp
        self.journal = Journal(folder / JOURNAL)
        self._run = digest(stamp)
        self._lock = threading.Lock()
        self._standing: dict[int, Standing] = {}
        self._sha256: dict[int, str] = {}
        for offset, line in self.journal.read():
            if line.get("run") != self._run:
                msg = (
                    f"{self.journal.path} holds an item of another run; choose another folder, or begin this one anew "
                    "with --restart"
                )
                raise RecordError(msg)
            self._note(offset, line["item"])

    def standing(self, item: Item) -> Standing:
        """How far this question has come. Raises RecordError where its number belonged to another question."""
        known = self._sha256.get(item.number)
        if known not in (None, item.sha256):
            msg = f"question {item.number} of {self.folder} was another one; choose another folder or --restart"
            raise RecordError(msg)
        return self._standing.get(item.number) or Standing()

    def answered(self, item: Item) -> Answered:
        """The answer kept for this question; there must be one."""
        from pydantic import TypeAdapter

        offset = self.standing(item).answered_at
        if offset is None:
            msg = f"question {item.number} has no answer in {self.folder}; run the same command again"
            raise RecordError(msg)
        found: Answered = TypeAdapter(Answered).validate_python(self.journal.entry_at(offset)["item"]["answered"])
        return found

    def replies(self, item: Item) -> Replies:
        """What the server wrote for this question while it was under way, to be used before it is asked again."""
        return Replies(self, item, [self.journal.entry_at(at)["item"] for at in self.standing(item).replies_at])

    def keep_reply(self, item: Item, request: str, reply: Mapping[str, Any]) -> None:
        """A completion has been received."""
        self._keep(item, "reply", {"request": request, "reply": dict(reply)})

    def keep_begun(self, item: Item) -> None:
        """The question is about to be asked."""
        self._keep(item, "begun", {})

    def keep_answered(self, item: Item, answered: Answered) -> None:
        """The answer is there, for good when this returns."""
        self._keep(item, "answered", {"answered": asdict(answered)})

    def keep_scored(
        self, item: Item, values: Mapping[str, float | None], sentences: Sequence[Mapping[str, Any]]
    ) -> None:
        """Its values and sentences, likewise."""
        self._keep(item, "scored", {"values": dict(values), "scored_sentences": list(sentences)})

    def keep_failed(self, item: Item, note: str) -> None:
        """Neither; the next run tries again."""
        self._keep(item, "failed", {"note": note})

    def _keep(self, item: Item, step: str, content: Mapping[str, Any]) -> None:
        entry = {"step": step, "number": item.number, "question_sha256": item.sha256, **content}
        with self._lock, translated(self.folder):
            self._note(self.journal.append({"run": self._run, "item": entry}), entry)

    def _note(self, offset: int, entry: Mapping[str, Any]) -> None:
        standing = self._standing.setdefault(entry["number"], Standing())
        self._sha256.setdefault(entry["number"], entry["question_sha256"])
        match entry["step"]:
            case "begun":
                standing.n_begun += 1
            case "reply":
                standing.replies_at.append(offset)
            case "answered" if standing.answered_at is None:  # the first stays
                standing.answered_at, standing.failed = offset, ""
                standing.usage = Usage(**entry["answered"]["answer"]["usage"])
            case "scored" if standing.scored is None:
                standing.scored, standing.failed = entry, ""
            case "failed":
                standing.failed = entry["note"]


class Replies:
    """The completions received for one question; a `ReplyCache`. Those of equal requests are given in their order."""

    def __init__(self, folder: AnswerFolder, item: Item, entries: Sequence[Mapping[str, Any]]) -> None:
        self._folder, self._item = folder, item
        self._lock = threading.Lock()
        self._left: dict[str, deque[Mapping[str, Any]]] = {}
        for entry in entries:
            self._left.setdefault(entry["request"], deque()).append(entry["reply"])

    def get(self, request: str) -> Mapping[str, Any] | None:
        with self._lock:
            left = self._left.get(request)
            return left.popleft() if left else None

    def put(self, request: str, reply: Mapping[str, Any]) -> None:
        self._folder.keep_reply(self._item, request, reply)


@contextmanager
def open_answer_folder(folder: Path, stamp: Mapping[str, Any], *, restart: bool = False) -> Iterator[AnswerFolder]:
    """The folder of the run with this stamp, locked; made where it does not exist.

    ``restart`` throws away what an earlier run left. Raises ConfigError where the folder belongs to another run,
    RecordError where another process uses it, or it is damaged, or it cannot be written.
    """
    plain: dict[str, Any] = json.loads(json.dumps(stamp))  # as it reads back
    with held(folder, "answering"):
        found, _ = begun(folder, plain, OUTPUTS, restart=restart)
        opened = AnswerFolder(folder, found)
        try:
            yield opened
        finally:
            opened.journal.close()


def stamp_of(pipeline: Pipeline, questions: Path, variant: str = "") -> dict[str, Any]:
    """What a run is known by: the questions, the index, every setting that decides an answer, models, prompts.

    ``variant`` names what the settings do not say. How patiently and how many at a time a server is asked decides
    nothing, so that a run may go on with other values of these. Raises CorpusError where the file cannot be read.
    """
    config, manifest = pipeline.config, pipeline.index.manifest
    settings = asdict(replace(config, generation=without_credentials(config.generation)))
    for name in ("timeout_seconds", "max_retries", "parallel_calls"):
        del settings["generation"][name]
    folder = prompt_folder()
    return {
        "schema_version": SCHEMA_VERSION,
        "ragqa_version": __version__,
        "input": questions.name,
        "input_sha256": hashlib.sha256(read_utf8(questions, questions.name).encode()).hexdigest(),
        "index_sha256": digest({"files": [entry.sha256 for entry in manifest.files]}),
        "settings": settings,
        "models": {role: asdict(info) for role, info in pipeline.models.infos.items()},
        "prompts": str(folder) if folder else "",
        "variant": variant,
    }


def items_of(questions: Sequence[Question]) -> tuple[Item, ...]:
    """The questions in order; one without an id gets its number as id."""
    return tuple(
        Item(number, question if question.question_id else Question(question.text, str(number)))
        for number, question in enumerate(questions, start=1)
    )

"""Reads documents in a separate process with bounded time and memory, which may crash without harm.

One process reads one document after another. If it crashes or a document takes too long, a new process takes over.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import threading
from base64 import b64decode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from ragqa.corpus.documents.kinds import advice, kind_of
from ragqa.corpus.documents.model import UnreadableError
from ragqa.types import Passage

SECONDS: Final = 600.0  # for one document: 5,000 pages take some five minutes on a slow machine
MAX_ANSWERS_BYTES: Final = 10 * 2**20  # of a file of answers to check
WHOLE: Final = "a PDF, Word, HTML, XML, Excel, CSV or text file"
_ENDED: Final = {-signal.SIGINT, -signal.SIGTERM}  # Ctrl-C in a terminal, a service that is stopped
_WHOLE_TOKENS: Final = 2_000  # of a passage when a document is read as one text
_MAX_REPLY: Final = 256 * 2**20  # bytes


@dataclass(frozen=True, slots=True)
class Heading:
    """A line of a document's outline: its depth, kind (part, rule, table, …), number and text."""

    depth: int
    kind: str
    number: str
    text: str


@dataclass(frozen=True, slots=True)
class Reading:
    """A document as it would be indexed.

    ``dropped`` counts left-out texts by reason. ``left_out`` has the most frequent ones: reason, beginning of the text
    and count.
    """

    title: str
    passages: tuple[Passage, ...]
    outline: tuple[Heading, ...] = ()
    dropped: tuple[tuple[str, int], ...] = ()
    warnings: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str, int], ...] = ()


class EndedError(UnreadableError):
    """The process that read the document was ended from outside, which says nothing about the document."""


class Reader:
    """Reads documents. Close it after use, or use it in a ``with`` statement."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kills the process, even if it is reading."""
        if self._process:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe:
                    with suppress(OSError):
                        pipe.close()
            self._process = None

    def members(self, path: Path) -> tuple[str, ...]:
        """The names of the files in this archive. Raises UnreadableError."""
        return tuple(self._ask({"path": str(path.resolve())})["members"])

    def read(
        self, path: Path, kind: str, document_id: str, max_tokens: int, member: str = "", beside: Sequence[Path] = ()
    ) -> Reading:
        """The document of this kind at ``path``, or the member of the archive there.

        ``beside`` are web pages of the same folder, by which the furniture of the site is recognised. Raises
        UnreadableError.
        """
        request: dict[str, Any] = {"path": str(path.resolve()), "member": member, "kind": kind}
        request["beside"] = [str(one.resolve()) for one in beside]
        reply = self._ask({**request, "document_id": document_id, "max_tokens": max_tokens})
        return Reading(
            reply["title"],
            tuple(Passage(**passage) for passage in reply["passages"]),
            tuple(Heading(**heading) for heading in reply.get("outline", ())),
            tuple(reply.get("dropped", {}).items()),
            tuple(reply.get("warnings", ())),
            tuple((reason, text, times) for reason, text, times in reply.get("left_out", ())),
        )

    def answers(self, content: bytes, name: str, most: int) -> list[tuple[int, str, str]]:
        """The number, question and answer of the first ``most`` items with an answer in a file of answers.

        Raises UnreadableError.
        """
        if len(content) > MAX_ANSWERS_BYTES:
            msg = f"{name}: expected at most {MAX_ANSWERS_BYTES >> 20} MB of answers, found more; split it"
            raise UnreadableError(msg)
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            reply = self._ask({"path": file.name, "name": name, "answers": most})
        return [(number, question, text) for number, question, text in reply["answers"]]

    def text(self, content: bytes, name: str) -> str:
        """The text of a document of any supported kind, with headings on lines of their own.

        Raises UnreadableError.
        """
        kind = kind_of(name)
        if not kind or kind == "ZIP":
            msg = f"{name[:80]}: expected {WHOLE}; {advice(name) or 'save it as one of these'}"
            raise UnreadableError(msg)
        with tempfile.NamedTemporaryFile(suffix=Path(name).suffix.lower()) as file:
            file.write(content)
            file.flush()
            passages = self.read(Path(file.name), kind, Path(name).stem[:80] or "document", _WHOLE_TOKENS).passages
        pieces, before = [], ""
        for passage in passages:
            heading = passage.section.rpartition(" › ")[2] if passage.section != before else ""
            pieces += [f"# {heading}"] if heading and heading != passage.text else []
            pieces.append(passage.text)
            before = passage.section
        return "\n\n".join(pieces)

    def exported(self, path: Path) -> dict[str, Any]:
        """As `ragqa.corpus.documents.exported.exported`. Raises UnreadableError."""
        found: dict[str, Any] = self._ask({"path": str(path.resolve()), "exported": True})["exported"]
        return found

    def picture(self, path: Path, page: int, boxes: Sequence[tuple[float, float, float, float]]) -> bytes:
        """A page of this PDF, from 1, as a PNG with these boxes on it: left, top, right, bottom in points from the top.

        Raises UnreadableError.
        """
        reply = self._ask({"path": str(path.resolve()), "page": page, "boxes": [list(box) for box in boxes]})
        return b64decode(reply["picture"])

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if self._process is None or self._process.poll() is not None:
            from ragqa.corpus.documents.confined import environment

            self.close()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ragqa.corpus.documents.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment(),
            )
        process = self._process
        timer = threading.Timer(self._seconds, process.kill)
        timer.start()
        try:
            told = {**request, "seconds": self._seconds}  # processor time, which does not count waiting
            reply = self._exchange(process, json.dumps(told).encode() + b"\n")
        finally:
            in_time = timer.is_alive()
            timer.cancel()
        if not reply.endswith(b"\n"):
            with suppress(subprocess.TimeoutExpired):
                process.wait(1)
            was_ended = process.returncode in _ENDED
            self.close()
            if was_ended:
                raise EndedError("expected to read the document to its end, found the reader ended; read it again")
            found = "one that ended the reader" if in_time else "one that takes longer"
            msg = f"expected a document that can be read in {self._seconds:.0f} s and 2 GB, found {found}; split it"
            raise UnreadableError(msg)
        answer: dict[str, Any] = json.loads(reply)
        if "refused" in answer:
            raise UnreadableError(answer["refused"])
        return answer

    def _exchange(self, process: subprocess.Popen[bytes], request: bytes) -> bytes:
        """The line that the process writes; an incomplete line if the process ends."""
        if process.stdin is None or process.stdout is None:
            return b""
        try:
            process.stdin.write(request)
            process.stdin.flush()
            return process.stdout.readline(_MAX_REPLY)
        except OSError:
            return b""

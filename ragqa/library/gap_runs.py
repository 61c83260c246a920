"""Gap runs in the background: the request, the job that reads the rows, and the state of a run on disk."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from ragqa.errors import CorpusError
from ragqa.index import Index
from ragqa.infra.files import write_whole
from ragqa.infra.journal import held, translated
from ragqa.library.edits import SheetRow, Taken
from ragqa.library.gap_rows import Correction, GapRow, Statement
from ragqa.library.gaps import GapStore, Policies, SecondReader, gap_events, is_left_out, unasked
from ragqa.library.jobs import BackgroundJob, Jobs
from ragqa.library.register import Obligation
from ragqa.library.register_search import part_of, rule_name
from ragqa.library.register_store import NOT_APPLICABLE, Register
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.types import Passage

ASKED: Final = "asked.json"
_DOING: Final = "reading gaps"


@dataclass(frozen=True, slots=True)
class GapRequest:
    """The request of a run: documents and chapters of the rules (empty: all), and the hashes of both corpora.

    With ``second`` a language model is asked about rows that the verifier is not sure of.
    """

    documents: tuple[str, ...] = ()
    chapters: tuple[str, ...] = ()
    policies: str = ""
    rules: str = ""
    second: bool = False


_ASKED: Final = TypeAdapter(GapRequest)
Load = Callable[[], tuple[Register, Policies, RepassScorer, SecondReader | None]]


class GapJob(BackgroundJob):
    """The reading of rows. After a stop or a kill, the next run resumes with the first row that is not on disk."""

    def __init__(self, name: str, folder: Path, asked: GapRequest, jobs: Jobs, load: Load) -> None:
        """Starts when no other job of ``jobs`` is running. ``load``, which may load models, is called in the thread.

        Raises RecordError where the folder cannot be written.
        """
        super().__init__(name, "gaps", jobs)
        self.store: GapStore | None = None  # set while rows are read
        self._folder, self._asked, self._load = folder, asked, load
        with translated(folder):
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / ASKED, [json.dumps(asdict(asked))])
        self.start()

    def do(self) -> None:
        """Reads the rows."""
        self._show("Loading the models", 0, 0)
        found, policies, scorer, second = self._load()
        rows = part_of(found.duties, self._asked.documents, self._asked.chapters)
        with held(self._folder, _DOING), closing(GapStore(self._folder)) as store:
            self.store = store
            try:
                with closing(gap_events(store, found, rows, policies, scorer, second)) as events:
                    for event in events:
                        phase = "Comparing rows" if event.is_read else "Passing rows that are known"
                        self._show(phase, event.done, event.total, rule_name(event.last.row))
                        self._give_way()
                        if self.stopped.is_set() and event.done < event.total:
                            return
            finally:
                self.store = None
        if second and second.failed:
            self.view = replace(self.view, messages=(second.failed,))
        self._show("Done", 1, 1)


@dataclass(frozen=True, slots=True)
class GapFolder:
    """The gap run of one folder, shared by all sessions of a process; made once for each folder."""

    folder: Path
    _opened: list[GapStore] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def asked(self) -> GapRequest | None:
        """The request of the latest run; None where there was none. Raises CorpusError."""
        try:
            return _ASKED.validate_json((self.folder / ASKED).read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            msg = f"{self.folder / ASKED} cannot be read ({error}); delete it, and run again"
            raise CorpusError(msg) from error

    def store(self, job: BackgroundJob | None) -> GapStore:
        """The stored rows, read again only where they changed; a running job's own store. Raises as `GapStore`."""
        if isinstance(job, GapJob) and job.store:
            return job.store
        with self._lock:
            if not self._opened:
                self._opened.append(GapStore(self.folder))
            return self._opened[0].refresh()

    def take(
        self, sheet: Mapping[str, SheetRow[Correction]], register: Register, job: BackgroundJob | None
    ) -> Taken[Correction]:
        """As `GapStore.take`. Also raises RecordError while another process reads."""
        store = self.store(job)
        with self._lock:
            if isinstance(job, GapJob) and store is job.store:  # the job holds the folder's lock
                return store.take(sheet, register.rows)
            with held(self.folder, _DOING):
                return store.refresh().take(sheet, register.rows)


def versions_of(corpus: str, policies: str, indexes: tuple[Index, Index]) -> dict[str, str]:
    """The names and fingerprints of the corpora of rules and policies, for memos and sign-offs."""
    hashes = (index.manifest.corpus_sha256 for index in indexes)
    names = {"corpus": corpus, "policies": policies}
    return names | dict(zip(("sha256 of the corpus", "sha256 of the policies"), hashes, strict=True))


def rows_left(store: GapStore, register: Register, asked: GapRequest) -> list[Obligation]:
    """The requested rows of the present register that have not been read. Raises as `part_of`."""
    rows = part_of(register.duties, asked.documents, asked.chapters)
    return [row for row in rows if not store.result(row) and not is_left_out(register, row)]


def read_so_far(
    store: GapStore, register: Register, passages: Sequence[Passage]
) -> tuple[tuple[GapRow, ...], tuple[Statement, ...]]:
    """The arguments of `GapStore.standing`, without reading anything.

    These are the rows that were read or are not applicable, in the register's order, and the statements of the
    policies (``passages``) that no row rests on. A recital is among them only where a person has judged it.
    """
    gaps = []
    for row in register.rows:
        if row.is_recital and row.obligation_id not in store.corrections:
            continue
        known = store.result(row)
        if is_left_out(register, row):
            gaps.append(GapRow(row, NOT_APPLICABLE))
        elif known:
            gaps.append(known[0])
    return tuple(gaps), tuple(unasked(passages, gaps))

"""Questions with gold ranked one after another, each kept as it is done: what a page or a command watches and stops.

::

    DIR/
    ├── run.json                 which questions, index and settings this folder belongs to
    ├── journal.jsonl            a line a question: what each ranking found, and in how many seconds
    ├── fused.run, bm25.run, …   TREC runs, and beside each its questions with their values
    └── report.json              the means (`ragqa.evaluation.retrieval_report`)

`ragqa eval retrieval` ranks ranking by ranking and keeps whole rankings; here a question is the unit of work.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Generator as Stream
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ragqa import __version__
from ragqa.config import FusionConfig, RetrievalConfig
from ragqa.corpus.files import read_utf8
from ragqa.corpus.questions import GoldQuestion, GoldUnit
from ragqa.errors import ConfigError, RecordError
from ragqa.evaluation.journal import Journal
from ragqa.evaluation.measures import measure_run
from ragqa.evaluation.retrieval import Rankings, Result, evaluate
from ragqa.evaluation.retrieval_report import FUSED, output_names
from ragqa.evaluation.run_folder import JOURNAL, begun, digest, held, translated
from ragqa.fusion import fuse
from ragqa.indexing import Index
from ragqa.protocols import Retriever
from ragqa.retrieval import rank
from ragqa.types import Ranking, ScoredPassage

SCHEMA_VERSION: Final = 1
_WARM_UP: Final = "warm-up"  # ranked once before the first question: loading lazily is no question's time


@dataclass(frozen=True, slots=True)
class RetrievalOutcome:
    """One question's rankings, one a retriever, and their fusion; ``number`` is its place in the file, from 1.

    ``values`` are the fusion's measures (`ragqa.evaluation.measures`). ``kept``: read back from an earlier run.
    """

    number: int
    gold: GoldQuestion
    rankings: Rankings
    fused: Ranking
    values: Mapping[str, float]
    seconds: float
    kept: bool = False


@dataclass(frozen=True, slots=True)
class RetrievalRun:
    """The outcomes of the questions asked, in the file's order; ``n_all`` is how many the file has."""

    outcomes: tuple[RetrievalOutcome, ...]
    n_all: int
    unit: GoldUnit

    def results(self, fusion: FusionConfig) -> tuple[Result, ...]:
        """The fusion's measures, then those of each ranking alone."""
        gold = [outcome.gold for outcome in self.outcomes]
        columns = list(zip(*(outcome.rankings for outcome in self.outcomes), strict=True))
        *alone, fused = evaluate(gold, columns, {FUSED: fusion}, self.unit)
        return (fused, *alone)


class RetrievalFolder:
    """The rankings of one run, each question's on disk when `keep` returns. Made by `open_retrieval_folder`."""

    def __init__(self, folder: Path, stamp: Mapping[str, Any]) -> None:
        self.folder, self.stamp = folder, stamp
        self.journal = Journal(folder / JOURNAL)
        self._run = digest(stamp)
        self._entries: dict[int, Mapping[str, Any]] = {}
        for _, line in self.journal.read():
            if line.get("run") != self._run:
                msg = f"{self.journal.path} holds a question of another run; choose another folder, or begin anew"
                raise RecordError(msg)
            self._entries.setdefault(line["item"]["number"], line["item"])

    def rankings(self, number: int, index: Index) -> tuple[Rankings, float] | None:
        """What was kept for the question of this number, and its seconds; None where nothing was."""
        entry = self._entries.get(number)
        return None if entry is None else (_unpacked(entry["rankings"], index), entry["seconds"])

    def keep(self, number: int, packed: Sequence[Mapping[str, Any]], seconds: float) -> None:
        """Adds a question's rankings. Raises RecordError where they cannot be written."""
        entry = {"number": number, "rankings": list(packed), "seconds": seconds}
        with translated(self.folder):
            self.journal.append({"run": self._run, "item": entry})
        self._entries[number] = entry


def run_retrieval(
    index: Index,
    retrievers: Sequence[Retriever],
    questions: Sequence[GoldQuestion],
    retrieval: RetrievalConfig,
    fusion: FusionConfig,
    unit: GoldUnit = "passage",
    *,
    limit: int | None = None,
    folder: RetrievalFolder | None = None,
) -> Stream[RetrievalOutcome, None, RetrievalRun]:
    """Yields each question's outcome in the file's order, returns them all; the first ``limit`` questions only.

    Rankings are in ``folder`` before the outcome is yielded; those kept there are not made again. Scores have seven
    digits either way, so that both ways measure the same. Close the generator to stop.
    Raises ConfigError where no question is asked, CorpusError at once where one of them has no gold.
    """
    asked = list(enumerate(questions, start=1))[:limit]
    if not asked:
        msg = f"expected at least one question to ask, found {len(questions)} and a limit of {limit}; change them"
        raise ConfigError(msg)
    measure_run([gold.gold for _, gold in asked], [()] * len(asked), ())  # raises where there is no gold
    warm, outcomes = False, []
    for number, gold in asked:
        found = folder.rankings(number, index) if folder is not None else None
        kept = found is not None
        if found is None:
            if not warm:
                rank(retrievers, _WARM_UP, retrieval.top_k)
                warm = True
            began = time.perf_counter()
            rankings = rank(retrievers, gold.question.text, retrieval.top_k)
            seconds = time.perf_counter() - began
            packed = [_packed(ranking, index) for ranking in rankings]
            if folder is not None:
                folder.keep(number, packed, seconds)
            found = _unpacked(packed, index), seconds
        fused = fuse(found[0], fusion)
        ids = [hit.passage.passage_id if unit == "passage" else hit.passage.document_id for hit in fused.hits]
        values = {name: of_one[0] for name, of_one in measure_run([gold.gold], [ids]).items()}
        outcomes.append(RetrievalOutcome(number, gold, found[0], fused, values, found[1], kept))
        yield outcomes[-1]
    return RetrievalRun(tuple(outcomes), len(questions), unit)


@contextmanager
def open_retrieval_folder(
    folder: Path, stamp: Mapping[str, Any], retrievers: Sequence[str], *, restart: bool = False
) -> Iterator[RetrievalFolder]:
    """The folder of the run with this stamp, locked; made where it does not exist.

    ``retrievers`` are the names of the rankings, whose files ``restart`` throws away with what was kept. Raises
    ConfigError where the folder belongs to another run, RecordError where another process uses it, or it is damaged.
    """
    plain: dict[str, Any] = json.loads(json.dumps(stamp))
    with held(folder, "retrieving"):
        found, _ = begun(folder, plain, output_names((FUSED, *retrievers)), restart=restart)
        opened = RetrievalFolder(folder, found)
        try:
            yield opened
        finally:
            opened.journal.close()


def stamp_of(index: Index, questions: Path, retrieval: RetrievalConfig, fusion: FusionConfig) -> dict[str, Any]:
    """What a run is known by: the questions, the index and all that decides a ranking; not how many are asked.

    Raises CorpusError where the file cannot be read.
    """
    manifest = index.manifest
    return {
        "schema_version": SCHEMA_VERSION,
        "ragqa_version": __version__,
        "benchmark": "retrieval",
        "input": questions.name,
        "input_sha256": hashlib.sha256(read_utf8(questions, questions.name).encode()).hexdigest(),
        "index_sha256": digest({"files": [entry.sha256 for entry in manifest.files]}),
        "encoder": manifest.encoder,
        "encoder_fingerprint": manifest.encoder_fingerprint,
        "settings": {"retrieval": asdict(retrieval), "fusion": asdict(fusion)},
    }


def _packed(ranking: Ranking, index: Index) -> dict[str, Any]:
    return {
        "retriever": ranking.retriever,
        "finds": ranking.finds,
        "bounds": ranking.bounds,
        "positions": [index.position_of[hit.passage.passage_id] for hit in ranking.hits],
        "scores": [float(f"{hit.score:.7g}") for hit in ranking.hits],
    }


def _unpacked(entries: Sequence[Mapping[str, Any]], index: Index) -> Rankings:
    found = []
    for entry in entries:
        pairs = zip(entry["positions"], entry["scores"], strict=True)
        hits = [ScoredPassage(index.passages[position], score) for position, score in pairs]
        bounds = None if entry["bounds"] is None else (entry["bounds"][0], entry["bounds"][1])
        found.append(Ranking.of(entry["retriever"], hits, finds=entry["finds"], bounds=bounds))
    return tuple(found)

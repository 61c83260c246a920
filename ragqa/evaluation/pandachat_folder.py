"""The folder of `ragqa eval pandachat --out`: each question's chunks and seconds, kept as they are known.

::

    DIR/
    ├── run.json                   which data set, index and settings this folder belongs to
    ├── journal.jsonl              a line a question: what was retrieved, and in how many seconds
    ├── submission_SYSTEM.json     what the benchmark accepts (`ragqa.evaluation.pandachat_submission`)
    ├── submission_SYSTEM.json_results.json   the same with what was right and wrong, as the benchmark writes it
    └── results.json, results-aqa-sl.md       the table (`ragqa.evaluation.pandachat_results`)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from ragqa import __version__
from ragqa.config import FusionConfig, RetrievalConfig
from ragqa.corpus.pandachat import DocumentQuestion, load_pandachat_rows
from ragqa.errors import RecordError
from ragqa.evaluation.journal import Journal
from ragqa.evaluation.pandachat import N_SOURCES, PandachatOutcome
from ragqa.evaluation.run_folder import JOURNAL, begun, digest, held, translated
from ragqa.indexing import Index
from ragqa.types import ScoredPassage

SCHEMA_VERSION: Final = 1


class PandachatFolder:
    """The outcomes of one run, each on disk when `keep` returns. Made by `open_pandachat_folder`."""

    def __init__(self, folder: Path, stamp: Mapping[str, Any]) -> None:
        self.folder = folder
        self.journal = Journal(folder / JOURNAL)
        self._run = digest(stamp)
        self._entries: dict[int, Mapping[str, Any]] = {}
        for _, line in self.journal.read():
            if line.get("run") != self._run:
                msg = f"{self.journal.path} holds a question of another run; choose another folder, or use --restart"
                raise RecordError(msg)
            self._entries.setdefault(line["item"]["number"], line["item"])

    @property
    def n_done(self) -> int:
        """How many questions are done."""
        return len(self._entries)

    def outcome(self, number: int, item: DocumentQuestion, index: Index) -> PandachatOutcome | None:
        """What was kept for this question, its passages from ``index``; None where nothing was."""
        entry = self._entries.get(number)
        if entry is None:
            return None
        hits = tuple(ScoredPassage(index.passages[index.position_of[name]], score) for name, score in entry["hits"])
        (document,) = item.gold_documents
        return PandachatOutcome(number, item.question, document, hits, entry["seconds"], kept=True)

    def keep(self, outcome: PandachatOutcome) -> None:
        """Adds the outcome; a second one of a question is not kept. Raises RecordError where it cannot be written."""
        if outcome.number in self._entries:
            return
        hits = [[hit.passage.passage_id, float(hit.score)] for hit in outcome.hits]
        entry = {"number": outcome.number, "hits": hits, "seconds": outcome.seconds}
        with translated(self.folder):
            self.journal.append({"run": self._run, "item": entry})
        self._entries[outcome.number] = entry


@contextmanager
def open_pandachat_folder(
    folder: Path, stamp: Mapping[str, Any], outputs: Sequence[str] = (), *, restart: bool = False
) -> Iterator[PandachatFolder]:
    """The folder of the run with this stamp, locked; made where it does not exist.

    ``outputs`` are the files that belong to the run alone; ``restart`` throws them and what was kept away. Raises
    ConfigError where the folder belongs to another run, RecordError where another process uses it, or it is damaged.
    """
    plain: dict[str, Any] = json.loads(json.dumps(stamp))
    with held(folder, "retrieving"):
        found, _ = begun(folder, plain, outputs, restart=restart)
        opened = PandachatFolder(folder, found)
        try:
            yield opened
        finally:
            opened.journal.close()


def stamp_of(
    index: Index, data: Path, retrieval: RetrievalConfig, fusion: FusionConfig, n_sources: int = N_SOURCES
) -> dict[str, Any]:
    """What a run is known by: the questions, the index and all that decides a ranking; not how many are asked.

    Raises CorpusError where the data set cannot be read.
    """
    manifest = index.manifest
    return {
        "schema_version": SCHEMA_VERSION,
        "ragqa_version": __version__,
        "benchmark": "pandachat",
        "input": data.name,
        "input_sha256": digest({"items": load_pandachat_rows(data)}),
        "index_sha256": digest({"files": [entry.sha256 for entry in manifest.files]}),
        "encoder": manifest.encoder,
        "encoder_fingerprint": manifest.encoder_fingerprint,
        "settings": {"retrieval": asdict(retrieval), "fusion": asdict(fusion), "sources": n_sources},
    }

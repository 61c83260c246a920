"""The folder of `ragqa score --out`: what was scored, kept item by item, and the files written from it at the end.

::

    DIR/
    ├── run.json        which input, settings and models this folder belongs to
    ├── journal.jsonl   one item a line, as soon as it is scored (`ragqa.evaluation.journal`)
    ├── results.csv     as the reference writes it (`ragqa.evaluation.reference_files`)
    ├── results.txt     the averages, likewise
    └── details.json    every item with both breakdowns and every pair's probabilities

Killed at any moment, the next run goes on after the last item in the journal. The last three files are made from the
journal alone, each put in place whole, so they are the same however often a run was broken off.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from ragqa import __version__
from ragqa.config import ScoringConfig
from ragqa.errors import ConfigError, RecordError
from ragqa.evaluation.answer_file import AnswerFile
from ragqa.evaluation.journal import Journal, write_whole
from ragqa.evaluation.reference_files import averages, averages_text, csv_text
from ragqa.evaluation.run_folder import JOURNAL, begun, differences, digest, held, translated, write_run
from ragqa.evaluation.scoring_run import Outcome, Status, Store

SCHEMA_VERSION: Final = 1
CSV, TEXT, DETAILS = "results.csv", "results.txt", "details.json"
OUTPUTS: Final = (CSV, TEXT, DETAILS)
ABOUT: Final = (
    "Every matrix has a row per source sentence (premises) and a column per answer sentence (sentences): the model's "
    "probability with the source sentence as premise and the answer sentence as hypothesis. Neutral is 1 minus both. "
    "coverage_matrix has a row per obligation and a column per answer sentence of looked_at: the probability of "
    "entailment with the answer sentence as premise and the obligation as hypothesis. "
    "Figures are those of results.csv, in this run's mode."
)


class ScoringFolder(Store):
    """A store on disk, held by this process alone. Made by `open_folder`."""

    def __init__(self, folder: Path, stamp: Mapping[str, Any], models: Mapping[str, Any] | None) -> None:
        self.folder = folder
        self.stamp = stamp
        self.models = models
        self.journal = Journal(folder / JOURNAL)
        self._run = digest(stamp)
        self._offset_of: dict[int, int] = {}
        self._known: dict[int, dict[str, Any]] = {}
        for offset, line in self.journal.read():
            if line.get("run") != self._run:
                msg = (
                    f"{self.journal.path} holds an item of another run; choose another folder, or begin this one anew "
                    "with --restart"
                )
                raise RecordError(msg)
            self._note(offset, line["item"])

    def known(self) -> Mapping[int, Mapping[str, Any]]:
        return self._known

    def entry(self, number: int) -> Mapping[str, Any]:
        item: dict[str, Any] = self.journal.entry_at(self._offset_of[number])["item"]
        return item

    def keep(self, entry: Mapping[str, Any]) -> None:
        if entry["status"] == Status.SCORED:
            self._same_models(_models_of(entry))
        with translated(self.folder):
            offset = self.journal.append({"run": self._run, "item": dict(entry)})
        self._note(offset, entry)

    def write(self, outcomes: Sequence[Outcome]) -> None:
        """The three files of results, from the journal; ``outcomes`` are all items in order."""
        rows = [(outcome.question_id, outcome.figures) for outcome in outcomes if outcome.figures is not None]
        with translated(self.folder):
            write_whole(self.folder / DETAILS, self._details(outcomes))
            write_whole(self.folder / TEXT, [averages_text(averages([figures for _, figures in rows]))])
            write_whole(self.folder / CSV, [csv_text(rows)])

    def _details(self, outcomes: Sequence[Outcome]) -> Iterator[str]:
        means = averages([outcome.figures for outcome in outcomes if outcome.figures is not None])
        counts = {status: sum(outcome.status is status for outcome in outcomes) for status in Status}
        head = {**self.stamp, "models": self.models, "averages": asdict(means), "counts": counts, "about": ABOUT}
        yield json.dumps(head, allow_nan=False, indent=1)[:-2] + ',\n "items": [\n'
        for place, outcome in enumerate(outcomes):
            separator = ",\n" if place else ""
            yield separator + json.dumps(self._detail(outcome), allow_nan=False)
        yield "\n]}\n"

    def _detail(self, outcome: Outcome) -> dict[str, Any]:
        detail = {
            "number": outcome.number,
            "QuestionID": outcome.question_id,
            "Question": outcome.question,
            "status": outcome.status,
            "note": outcome.note,
        }
        if outcome.figures is None:
            return detail
        return {**detail, "figures": asdict(outcome.figures), **self.entry(outcome.number)["scored"]}

    def _note(self, offset: int, entry: Mapping[str, Any]) -> None:
        number = entry["number"]
        if self._known.get(number, {}).get("status") == Status.SCORED:
            return  # the first score of an item stays: nothing is doubled, nothing changes under a reader
        self._offset_of[number] = offset
        self._known[number] = {name: value for name, value in entry.items() if name != "scored"}

    def _same_models(self, found: Mapping[str, Any]) -> None:
        """Notes the models of the first score; raises ConfigError where those of a later one are others."""
        if self.models is None:
            self.models = found
            with translated(self.folder):
                write_run(self.folder, self.stamp, found)
        elif self.models != found:
            differing = "; ".join(differences(self.models, found))
            msg = (
                f"{self.folder} was begun with other models ({differing}), and their scores do not compare; use the "
                "same models, choose another folder, or begin this one anew with --restart"
            )
            raise ConfigError(msg)


@contextmanager
def open_folder(
    folder: Path, answers: AnswerFile, config: ScoringConfig, *, restart: bool = False
) -> Iterator[ScoringFolder]:
    """The folder for scoring these answers with these settings, locked; made where it does not exist.

    ``restart`` throws away what an earlier run left. Raises ConfigError where the folder belongs to another input or
    other settings, RecordError where another process uses it, or it is damaged, or it cannot be written.
    """
    with held(folder, "scoring"):
        stamp, models = begun(folder, _stamp(answers, config), OUTPUTS, restart=restart)
        opened = ScoringFolder(folder, stamp, models)
        try:
            yield opened
        finally:
            opened.journal.close()


def _stamp(answers: AnswerFile, config: ScoringConfig) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "ragqa_version": __version__,
        "input": answers.name,
        "input_sha256": answers.sha256,
        "n_items": len(answers.items),
        "settings": asdict(config),
    }


def _models_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Name, fingerprint and precision of the models behind a scored entry, and the splitter."""
    paper = entry["scored"]["paper"]
    names = ("entailment_model", "coverage_model", "obligation_model", "sentence_splitter")
    return {name: paper[name] for name in names}

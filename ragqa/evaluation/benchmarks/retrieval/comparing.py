"""Compares named configurations on questions with gold passages: measures, significance, files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ragqa.corpus.questions import GoldQuestion, GoldUnit
from ragqa.evaluation.benchmarks.retrieval.rankings import Rankings
from ragqa.evaluation.measures import MEASURES, means, measure_run
from ragqa.evaluation.run_files import QuestionResult, write_per_question, write_run
from ragqa.evaluation.significance import PairedTest, paired_tests
from ragqa.infra.files import write_whole
from ragqa.infra.journal import translated
from ragqa.types import Ranking

TESTED = ("R@10", "AP@10")  # whose differences are tested
CUTOFFS = (2, 5, 10)  # of "all gold"
REPORT: Final = "report.json"


@dataclass(frozen=True, slots=True)
class Result:
    """One configuration: its rankings and the values of each measure, one per question in order."""

    name: str
    rankings: Rankings
    values: Mapping[str, Sequence[float]]

    @property
    def means(self) -> dict[str, float]:
        """The mean of each measure over all questions, in [0, 1]."""
        return means(self.values)


@dataclass(frozen=True, slots=True)
class MeasureDifference:
    """One configuration against the baseline in one measure; p adjusted for all differences of the table (Holm)."""

    name: str
    measure: str
    test: PairedTest
    adjusted_p: float


@dataclass(frozen=True, slots=True)
class MeasurePair:
    """One measure of two configurations, in [0, 1]; p adjusted for all pairs of the table (Holm)."""

    name: str
    single: float
    fan_out: float
    test: PairedTest
    adjusted_p: float


def ids_of(ranking: Ranking, unit: GoldUnit) -> list[str]:
    """The ids of the hits as they are counted, best first: of passages, or of their documents."""
    return [hit.passage.passage_id if unit == "passage" else hit.passage.document_id for hit in ranking.hits]


def measured(name: str, questions: Sequence[GoldQuestion], rankings: Rankings, unit: GoldUnit = "passage") -> Result:
    """These rankings, one per question in order, as a configuration of this name.

    Gold is keyed on (DocumentID, PassageID); of duplicates the first counts, as in the official relevance file. A gold
    passage that is not in the index counts as missed. If ``unit`` is ``"document"``, gold are documents, and each
    document has the rank of its first passage. Raises CorpusError for a question without gold.
    """
    found = [ids_of(ranking, unit) for ranking in rankings]
    return Result(name, rankings, measure_run([gold.gold for gold in questions], found, MEASURES))


def compare(results: Sequence[Result], baseline: str, seed: int = 0) -> tuple[MeasureDifference, ...]:
    """Every other configuration against the one called ``baseline``, in the measures of `TESTED`."""
    base = next(result for result in results if result.name == baseline)
    pairs = [(result, measure) for result in results if result.name != baseline for measure in TESTED]
    tests = paired_tests([(result.values[measure], base.values[measure]) for result, measure in pairs], seed)
    return tuple(
        MeasureDifference(result.name, measure, *test) for (result, measure), test in zip(pairs, tests, strict=True)
    )


def compare_all_gold(single: Result, fan_out: Result) -> tuple[MeasurePair, ...]:
    """Compares recall and ``all gold`` at 2, 5 and 10.

    Recall is the mean share of a question's gold that was found. ``all gold`` is the share of questions with every gold
    passage up to that rank, which is the stricter "both" for two-hop questions.
    """
    pairs: list[tuple[str, list[float], list[float]]] = []
    for cutoff in CUTOFFS:
        before, after = (list(result.values[f"R@{cutoff}"]) for result in (single, fan_out))
        pairs.append((f"R@{cutoff}", before, after))
        pairs.append((f"all gold@{cutoff}", [float(one == 1) for one in before], [float(one == 1) for one in after]))
    tests = paired_tests([(after, before) for _, before, after in pairs])
    return tuple(
        MeasurePair(name, sum(before) / len(before), sum(after) / len(after), *test)
        for (name, before, after), test in zip(pairs, tests, strict=True)
    )


def write_outputs(
    out: Path,
    gold: Sequence[GoldQuestion],
    results: Sequence[Result],
    report: Mapping[str, Any],
    docids: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Writes a TREC run and each question's values per configuration, and the report; returns the files' names.

    A TREC run names questions by their ids, so none is written if an id repeats. ``docids`` is as in `write_run`.
    Raises RecordError if the folder cannot be written, CorpusError if a passage has no docid.
    """
    ids = ids_of_questions(gold)
    names = []
    for result in results:
        stem = stem_of(result.name)
        if len(set(ids)) == len(ids):
            names.append(f"{stem}.run")
            write_run(out / names[-1], f"ragqa-{stem}", ids, result.rankings, docids)
        names.append(f"{stem}.questions.jsonl")
        rows = [
            QuestionResult(
                ids[n],
                item.question.text,
                item.gold,
                [hit.passage.passage_id for hit in result.rankings[n].hits],
                {measure: values[n] for measure, values in result.values.items()},
            )
            for n, item in enumerate(gold)
        ]
        write_per_question(out / names[-1], rows)
    with translated(out):
        write_whole(out / REPORT, [json.dumps(report, indent=2, ensure_ascii=False) + "\n"])
    return (*names, REPORT)


def ids_of_questions(gold: Sequence[GoldQuestion]) -> list[str]:
    """The questions' ids, or the place in the file, from 1, if a question has none."""
    return [item.question.question_id or str(number) for number, item in enumerate(gold, start=1)]


def stem_of(name: str) -> str:
    """The stem of a configuration's file names: letters and digits, with dashes for the rest."""
    return "".join(c if c.isalnum() else "-" for c in name).strip("-")

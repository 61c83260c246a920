"""A measured retrieval as an object for JSON, and as files: TREC runs, every question's values, the report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from ragqa.corpus.questions import GoldQuestion
from ragqa.evaluation.journal import write_whole
from ragqa.evaluation.retrieval import Comparison, Result
from ragqa.evaluation.run_files import QuestionResult, write_per_question, write_run
from ragqa.evaluation.run_folder import translated
from ragqa.indexing import Index

FUSED: Final = "fused"  # the name of the settings' own fusion among the results
REPORT: Final = "report.json"


def report_of(
    name: str,
    index: Index,
    n_questions: int,
    results: Sequence[Result],
    comparisons: Sequence[Comparison],
    milliseconds: Mapping[str, float | None],
) -> dict[str, Any]:
    """Means, comparisons, the index they are of, and the median milliseconds of a question where they are known."""
    manifest = index.manifest
    return {
        "index": name,
        "n_questions": n_questions,
        "n_passages": manifest.n_passages,
        "index_bytes": manifest.size_bytes,
        "encoder": manifest.encoder,
        "analyser": asdict(manifest.analyser),
        "measures": {result.name: result.means for result in results},
        "milliseconds": dict(milliseconds),
        "comparisons": [asdict(comparison) for comparison in comparisons],
    }


def write_outputs(
    out: Path,
    gold: Sequence[GoldQuestion],
    results: Sequence[Result],
    report: Mapping[str, Any],
    docids: Mapping[str, str] | None = None,
) -> None:
    """The files of `output_names`, each whole; ``docids`` as in `write_run`.

    Raises RecordError where the folder cannot be written, CorpusError where a passage has no docid.
    """
    with translated(out):
        out.mkdir(parents=True, exist_ok=True)
    ids = [item.question.question_id or str(number) for number, item in enumerate(gold, start=1)]
    for result in results:
        stem = _stem(result.name)
        write_run(out / f"{stem}.run", f"ragqa-{stem}", ids, result.rankings, docids)
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
        write_per_question(out / f"{stem}.questions.jsonl", rows)
    with translated(out):
        write_whole(out / REPORT, [json.dumps(report, indent=2, ensure_ascii=False) + "\n"])


def output_names(results: Sequence[str]) -> tuple[str, ...]:
    """The files that `write_outputs` makes of results of these names."""
    stems = [_stem(name) for name in results]
    return (*(f"{stem}{end}" for stem in stems for end in (".run", ".questions.jsonl")), REPORT)


def _stem(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name).strip("-")

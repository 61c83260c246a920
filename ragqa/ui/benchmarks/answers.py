"""Answers and RePASs as the page runs them: the pipeline of the page Ask over a file of questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ragqa.errors import ConfigError, CorpusError
from ragqa.types import Verdict
from ragqa.ui import resources
from ragqa.ui.benchmarks.request import config_of
from ragqa.ui.benchmarks.runs import Job
from ragqa.ui.benchmarks.view import CheckedSentence, Column, Comparison, Download, Figure, Hit, Line, Row, View, plain

if TYPE_CHECKING:
    from ragqa.evaluation.answer_folder import AnswerFolder
    from ragqa.evaluation.answer_run import Outcome
    from ragqa.indexing import Index

COLUMNS: Final = (
    Column("composite", "RePASs"),
    Column("entailment", "E"),
    Column("contradiction", "C"),
    Column("obligation_coverage", "OC"),
    Column("copied", "copied"),
    Column("seconds", "seconds", 1),
)
_FIGURES: Final = (
    ("composite", "RePASs", "(E − C + OC + 1) / 3, the paper's definition"),
    ("entailment", "E", "mean entailment of an answer's sentences"),
    ("contradiction", "C", "mean contradiction; low is good"),
    ("obligation_coverage", "OC", "share of the passages' obligations covered"),
    ("copied", "Copied", "share of words in verbatim runs: copying is rewarded, so read it beside RePASs"),
)


def answers_work(job: Job) -> Iterator[View]:
    """The views of one run. Raises RagqaError, GenerationError when several questions in a row got no answer."""
    from ragqa.corpus.questions import load_asked
    from ragqa.evaluation.answer_files import report_of, write_outputs
    from ragqa.evaluation.answer_folder import items_of, open_answer_folder, stamp_of
    from ragqa.evaluation.answer_run import AnswerRun, Status, outcome_of

    request, questions = job.request, Path(job.request.questions)
    view = View(request, phase="Loading the index and its models (once)", columns=COLUMNS)
    yield view
    items = items_of(load_asked(questions))[: request.limit]
    pipeline = replace(resources.pipeline(config_of(request, job.paths), job.paths), records=None)
    if pipeline.generator is None:
        msg = "an evaluation of answers needs a generator that writes, got 'none'; choose another one"
        raise ConfigError(msg)
    gold = _gold(questions, pipeline.index)
    view = replace(view, phase="Answering and scoring", total=len(items))
    yield view
    with open_answer_folder(job.folder, stamp_of(pipeline, questions), restart=job.restart) as folder:
        outcomes = {item.number: outcome_of(item, folder) for item in items}
        ended = {Status.SCORED, Status.EMPTY}
        rows = {n: _row(outcome, folder, gold, kept=True) for n, outcome in outcomes.items() if outcome.status in ended}
        view = _with(view, rows)
        yield view
        pending = [outcome.item for outcome in outcomes.values() if outcome.status not in ended]
        run = AnswerRun(pipeline, pending, folder)
        job.on_stop.append(run.stop)
        if job.stopped.is_set():
            run.stop()
        try:
            for outcome in run.outcomes() if pending else ():
                if outcome.status is not Status.LEFT:
                    rows[outcome.item.number] = _row(outcome, folder, gold)
                view = _with(view, rows)
                yield view
        finally:
            run.stop()
            run.wait()
        last = [outcome_of(item, folder) for item in items]
        report = report_of(folder, last)
        write_outputs(folder, last, report)
    failed = sum(outcome.status is Status.FAILED for outcome in last)
    notes = (f"{failed:,} questions got no answer or no score; run it again to try them once more.",) if failed else ()
    yield replace(view, comparison=_comparison(report, request.words), downloads=_downloads(), notes=notes)


def _gold(questions: Path, index: Index) -> Mapping[str, frozenset[str]]:
    """The ids of passages or documents that would be right, by question; none where the file does not say."""
    from ragqa.corpus.questions import load_gold

    try:
        found, _ = load_gold(questions, index.passages)
    except CorpusError:
        return {}
    return {one.question.question_id: one.gold for one in found}


def _with(view: View, rows: Mapping[int, Row]) -> View:
    ordered = tuple(rows[number] for number in sorted(rows))
    return replace(view, done=len(ordered), rows=ordered, figures=_figures(ordered))


def _row(outcome: Outcome, folder: AnswerFolder, gold: Mapping[str, frozenset[str]], *, kept: bool = False) -> Row:
    item = outcome.item
    standing = folder.standing(item)
    wanted = gold.get(item.question.question_id, frozenset())
    row = Row(
        number=item.number,
        question_id=item.question.question_id,
        question=item.question.text,
        gold=tuple(sorted(wanted)),
        note=outcome.note,
        kept=kept,
    )
    if standing.answered_at is None:
        return replace(row, right=False)
    answered = folder.answered(item)
    relevance = dict(answered.ranking)
    sentences = tuple(map(_sentence, standing.scored["scored_sentences"])) if standing.scored else ()
    hits = tuple(
        Hit(
            passage.passage_id,
            passage.document_id,
            relevance.get(passage.passage_id),
            bool({passage.passage_id, passage.document_id} & wanted),
        )
        for passage in answered.passages
    )
    values = plain({column.key: (outcome.values or {}).get(column.key) for column in COLUMNS})
    bad = any(sentence.verdict != Verdict.SUPPORTED for sentence in sentences)
    uncovered = (values["obligation_coverage"] or 0.0) < 1
    return replace(
        row,
        right=bool(sentences) and not bad and not uncovered,
        values=values,
        hits=hits,
        answer=answered.answer.text,
        sentences=sentences,
        steps=tuple(f"{stage}: {seconds:.2f} s" for stage, seconds in answered.seconds.items()),
        note=outcome.note or answered.answer.note,
    )


def _sentence(entry: Mapping[str, Any]) -> CheckedSentence:
    checked = entry["citations"]
    written, verified = (", ".join(map(str, checked[key])) or "none" for key in ("written", "verified"))
    words = f"cites {written}" if written == verified else f"cited {written}, entailed by {verified}"
    return CheckedSentence(entry["text"], entry["verdict"], entry["entailment"], entry["contradiction"], words)


def _figures(rows: Sequence[Row]) -> tuple[Figure, ...]:
    from ragqa.evaluation.answer_measures import means

    scored = [row.values for row in rows if row.sentences]
    of_all = means(scored)
    return tuple(
        Figure(label, "–" if of_all[key] is None else f"{of_all[key]:.3f}", words) for key, label, words in _FIGURES
    )


def _comparison(report: Mapping[str, Any], words: str) -> Comparison:
    from ragqa.evaluation.published import PUBLISHED

    means, counts = report["means"], report["counts"]
    keys = ("composite", "entailment", "contradiction", "obligation_coverage")
    ours = [
        Line(
            f"{report['run']['settings']['generation']['generator']}, mode {mode}",
            tuple(_shown(means[f"{prefix}{key}"]) for key in keys),
            "this run",
            True,
        )
        for mode, prefix in (("paper", ""), ("script", "script_"))
    ]
    published = [
        Line(
            row.name,
            tuple(
                map(_shown, (row.composite, row.entailment, row.contradiction, row.obligation_coverage)),
            ),
            f"{row.source.partition(',')[0]}, table {row.table}",
        )
        for row in PUBLISHED
        if row.table == "5"
    ]
    caption = (
        f"This run: means over {counts['scored']:,} scored answers ({words}). Published: figures of other people, by "
        "the reference script (2024 and 2025), other retrievers and other scoring models: RePASs from the embedded "
        "models is not on their scale."
    )
    return Comparison(("RePASs", "E", "C", "OC"), (*ours, *published), caption)


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _downloads() -> tuple[Download, ...]:
    return (
        Download("Answers (RIRAG A.6 JSON)", "answers.json"),
        Download("Ranking (TREC run)", "ranking.run", "text/plain"),
        Download("Every answer with its sentences (JSON)", "details.json"),
        Download("Report (JSON)", "report.json"),
    )

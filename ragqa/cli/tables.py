"""Rich tables for the terminal. Text from corpora, models and users is shown literally, never read as markup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from ragqa.cli.output import FittedTable, plain
from ragqa.plugins.registry import score_name
from ragqa.records.record import RecordSummary
from ragqa.scoring.repass.attribution import COPY_NOTE, MIN_RUN, citation_flag, marks
from ragqa.scoring.repass.explanation import (
    Explanation,
    counted,
    doubt_words,
    explain,
    mode_differences,
    provenance,
    verdict_by_index,
    written_out,
)
from ragqa.types import Answer, Passage, Selection
from ragqa.types.events.scoring import Relevance
from ragqa.types.scores import (
    Breakdown,
    CitationCheck,
    CitationStatus,
    Cover,
    ObligationScore,
    ObligationVerdict,
    Premise,
    ScoringMode,
    SentenceScore,
    SentenceVerdict,
    Verdict,
    listed_obligations,
)

_STYLE = {
    Verdict.SUPPORTED: "green",
    Verdict.UNSUPPORTED: "",
    Verdict.CONTRADICTED: "red",
    Verdict.DISPUTED: "yellow",
    Verdict.DISAGREEING: "yellow",
    Verdict.NONE: "dim",
}
_COVER_STYLE = {Cover.COVERED: "green", Cover.IN_PART: "yellow", Cover.IN_CONFLICT: "red", Cover.NOT_COVERED: "yellow"}

TITLE_CHARS: Final = 48  # of a document's title in the name of a passage


def passage_name(passage: Passage) -> str:
    """The document's title, shortened, and the passage's number in it: ``Outsourcing Rules 3.3.3``."""
    title = " ".join((passage.title or passage.document_id).split())
    if len(title) > TITLE_CHARS:
        title = title[: TITLE_CHARS - 1].rsplit(" ", 1)[0] + "…"
    days = f" ({passage.days})" if passage.days else ""
    return f"{title} {passage.number}{days}" if passage.number else f"{title}{days}"


def passage_table(selection: Selection, limit: int = 10) -> FittedTable:
    """All kept passages and the best dropped ones, at least ``limit`` rows, with scores and the reason for each drop.

    A note marks a passage that was found because another passage cites it or is cited by it. The decision in words,
    `Candidate.explanation`, is on the page and in the record: a row has no room for it.

    After reranking, two columns give the fused score with its rank and the reranker's score with its rank. For a
    fan-out the scores of the question and of the best sub-question replace those of the retrievers; for a checked
    text, the scores of the text and of the best sentence.
    """
    limit = max(limit, *(candidate.rank for candidate in selection.kept), 0)
    table = FittedTable(f"Passages: kept {len(selection.kept)} of {len(selection.kept) + len(selection.dropped)}")
    table.add_column("#", justify="right")
    table.add_column("passage", least=28)
    candidates = sorted((*selection.kept, *selection.dropped), key=lambda c: c.rank)[:limit]
    names = [part.retriever for part in candidates[0].hit.parts] if candidates else []
    further = [part.retriever for part in candidates[0].hit.reranking] if candidates else []
    if {"sub-question", "sentence"} & set(further):
        names = []  # the question's own score includes those of the retrievers
    shown = map(score_name, names)
    for priority, heading in enumerate(("relevance", *further, *shown), start=1):
        table.add_column(plain(heading), priority, "right")
    table.add_column("decision")
    for candidate in candidates:
        raw = {part.retriever: part.raw for part in candidate.hit.parts}
        passage = plain(passage_name(candidate.passage), style="bold")
        for note in (part.note for part in candidate.hit.parts if part.note):
            passage.append(plain(f" {note}", style="not bold cyan"))
        passage.append(" ").append(plain(" ".join(candidate.passage.text.split()), 90, style="not bold"))
        table.add_row(
            str(candidate.rank),
            passage,
            f"{candidate.relevance:.3f}",
            *(f"{_number(part.raw)} #{part.rank or '–'}" for part in candidate.hit.reranking),
            *(_number(raw.get(name)) for name in names),
            Text(str(candidate.drop) if candidate.drop else "kept", style="" if candidate.drop else "green"),
        )
    return table


def answer_panel(answer: Answer, passages: Sequence[Passage]) -> RenderableType:
    """The answer with its citations, its generator, and the cited passages."""
    body = Text()
    for sentence in answer.sentences:
        body.append(plain(sentence.text))
        body.append("".join(f" [{number}]" for number in sentence.citations), style="cyan")
        body.append("\n")
    if not answer.sentences and answer.text:
        body.append(plain(f"{answer.text}\n"))
    if answer.note:
        body.append(plain(answer.note, style="italic"))
    if answer.choices:
        body.append(plain(f"\nWhich one do you mean? {' · '.join(answer.choices)}"))
    cited = sorted({number for sentence in answer.sentences for number in sentence.citations})
    sources = [plain(f"[{n}] {passage_name(passages[n - 1])}", style="cyan") for n in cited]
    model = f", {answer.model}" if answer.model else ""
    return Group(Panel(body, title=plain(f"Answer ({answer.generator}{model})")), *sources)


def relevance_group(found: Relevance) -> Group:
    """How well the answer answers the question, with the reason for each part."""
    title = f"Answer relevance = {found.value:.3f} (beside RePASs: does it answer what was asked?)"
    parts = (plain(f"  {part.text} {part.value:.2f}: {part.reason}") for part in found.parts)
    return Group(plain(title, style="bold"), *parts)


def scores_group(evaluation: Breakdown, passages: Sequence[Passage] = (), other: Breakdown | None = None) -> Group:
    """Every answer sentence and obligation with its deciding sentence, the composite's arithmetic, and provenance.

    ``passages`` are the kept ones: with them the group also shows the copied share, the citations that do not hold
    and how E and C grow with the passages. ``other`` is the breakdown in the other mode, to explain the difference.
    """
    explanation = explain(evaluation, passages) if passages else None
    arithmetic = written_out(evaluation)
    lines = [
        plain(f"RePASs ({evaluation.mode} mode) = {arithmetic.formula}", style="bold"),
        *(plain(f"  {part}") for part in arithmetic.parts),
        *_verdict_lines(evaluation),
    ]
    if other:
        lines += _mode_lines(evaluation, other)
    if explanation and evaluation.sentences:
        lines += _explanation_lines(explanation)
    lines += [plain(f"{what}: {value}", style="dim") for what, value in provenance(evaluation)]
    tables = [_sentence_table(evaluation, explanation)]
    if evaluation.obligations:
        tables.append(_obligation_table(evaluation, explanation))
    return Group(*tables, *lines)


def _verdict_lines(evaluation: Breakdown) -> list[Text]:
    """The number of sentences with each verdict, and how much of C the verdicts reject."""
    verdicts = verdict_by_index(evaluation.sentences, evaluation.verdicts).values()
    what = "Verdicts" if evaluation.verdicts else "Raw verdicts, from a record without rules"
    counts = ", ".join(words for _, words in counted(verdicts))
    lines = (f"{what}: {counts}." if counts else "", doubt_words(evaluation))
    return [plain(line) for line in lines if line]


def _sentence_table(evaluation: Breakdown, explanation: Explanation | None) -> FittedTable:
    threshold, judged = evaluation.verdict_threshold, {one.index: one for one in evaluation.verdicts}
    raw = f"supported: E ≥ {threshold:.2f}, contradicted: C ≥ {threshold:.2f}"
    table = FittedTable(f"Answer sentences ({'E, C: RePASs raw' if judged else raw})", show_lines=True)
    for heading in ("#", "verdict", "E", "C"):
        table.add_column(heading)
    table.add_column("sentence", least=16)
    table.add_column("deciding premise", 1, least=16)
    verdicts = verdict_by_index(evaluation.sentences, evaluation.verdicts)
    for score in evaluation.sentences:
        premise = _deciding_premise(score, judged.get(score.index), evaluation.premises)
        verdict = Text(verdicts[score.index], style=_STYLE[verdicts[score.index]])
        if explanation:
            flag = citation_flag(explanation.citations[score.index])
            verdict.append(f"\n{flag}" if flag else "", style="yellow")
        where = f"[{premise.passage_index + 1}] {premise.start}–{premise.end}: " if premise else ""
        table.add_row(
            str(score.index + 1),
            verdict,
            f"{score.entailment:.3f}",
            f"{score.contradiction:.3f}",
            _with_reason(plain(score.sentence.text, 200), judged.get(score.index)),
            plain(where + premise.text, 200) if premise else "",
        )
    return table


def _deciding_premise(
    score: SentenceScore, judged: SentenceVerdict | None, premises: Sequence[Premise]
) -> Premise | None:
    """The source sentence that decided the verdict, if any; for a raw verdict, the one with the highest probability."""
    if judged:
        return None if judged.deciding is None else premises[judged.deciding]
    contradicted = score.verdict is Verdict.CONTRADICTED
    return score.contradiction_premise if contradicted else score.entailment_premise


def _with_reason(text: Text, judged: SentenceVerdict | ObligationVerdict | None) -> Text:
    if not judged:
        return text
    missing = ", ".join(f"“{span.text}”" for span in judged.missing) if isinstance(judged, ObligationVerdict) else ""
    words = f"{judged.reason} Missing: {missing}." if missing else judged.reason
    return text.append("\n").append(plain(words, style="italic"))


def _obligation_table(evaluation: Breakdown, explanation: Explanation | None) -> FittedTable:
    judged = {one.index: one for one in evaluation.obligation_verdicts}
    listed = listed_obligations(evaluation.obligations, evaluation.obligation_verdicts)
    covers = [_cover(score, judged.get(score.index)) for score in listed]
    in_part = f", {covers.count(Cover.IN_PART)} in part" if Cover.IN_PART in covers else ""
    rule = "best, margin: RePASs raw, " if judged else ""
    title = (
        f"Obligations: {covers.count(Cover.COVERED)} of {len(covers)} covered{in_part} "
        f"({rule}P(entailment) > {evaluation.coverage_threshold:.2f})"
    )
    table = FittedTable(title, show_lines=True)
    for heading, priority in (("covered", 0), ("best", 0), ("margin", 2)):
        table.add_column(heading, priority)
    table.add_column("obligation", least=16)
    table.add_column("answer sentence", 1)
    table.add_column("next best", 3)
    for score, cover in zip(listed, covers, strict=True):
        runner_up = explanation.runners_up[score.index] if explanation else None
        obligation = plain(f"[{score.obligation.passage_index + 1}] {score.obligation.text}", 200)
        table.add_row(
            Text(_COVER_WORDS[cover], style=_COVER_STYLE[cover]),
            f"{score.best:.3f}",
            f"{score.margin:+.3f}",
            _with_reason(obligation, judged.get(score.index)),
            "none compared" if score.answer_index is None else str(score.answer_index + 1),
            f"{runner_up.answer_index + 1} ({runner_up.probability:.3f})" if runner_up else "",
        )
    return table


_COVER_WORDS = {
    Cover.COVERED: "yes",
    Cover.IN_PART: "in part",
    Cover.IN_CONFLICT: "in conflict",
    Cover.NOT_COVERED: "no",
}


def _cover(score: ObligationScore, judged: ObligationVerdict | None) -> Cover:
    return judged.cover if judged else Cover.COVERED if score.covered else Cover.NOT_COVERED


def _mode_lines(evaluation: Breakdown, other: Breakdown) -> list[Text]:
    script = evaluation.mode is ScoringMode.SCRIPT
    paper_script = (other, evaluation) if script else (evaluation, other)
    return [
        plain(f"RePASs ({other.mode} mode) = {written_out(other).formula}"),
        *(plain(f"  {reason}") for reason in mode_differences(*paper_script)),
    ]


def _explanation_lines(explanation: Explanation) -> list[Text]:
    copied, first, last = explanation.copied, explanation.growth[0], explanation.growth[-1]
    lines = [
        _citation_line(explanation.citations),
        plain(
            f"Copied: {copied.share:.0%} of the answer's words ({copied.n_copied:,} of {copied.n_words:,}) stand word "
            f"for word in a passage, in runs of {MIN_RUN} or more or as a whole sentence. {COPY_NOTE}"
        ),
    ]
    if last.k > 1:
        lines.append(
            plain(
                f"From the best passage alone to all {last.k}: E {first.entailment:.3f} to {last.entailment:.3f}, "
                f"C {first.contradiction:.3f} to {last.contradiction:.3f} (both can only rise with more passages)."
            )
        )
    return lines


def _citation_line(checks: Sequence[CitationCheck]) -> Text:
    """How many sentences' citations are confirmed, and the corrected citations of the others."""
    confirmed = sum(check.status is CitationStatus.CONFIRMED for check in checks)
    others = "; ".join(
        f"sentence {check.index + 1} {check.status}: {marks(check.written) or 'nothing'} → "
        f"{marks(check.verified) or 'nothing'}"
        for check in checks
        if check.status is not CitationStatus.CONFIRMED
    )
    return plain(
        f"Citations checked: {confirmed} of {len(checks)} sentences cite what supports them"
        + (f"; {others}. The record keeps what was written." if others else ".")
    )


def record_table(records: Sequence[RecordSummary]) -> FittedTable:
    """The record list, newest first."""
    table = FittedTable("Records")
    table.add_column("record", least=max((len(record.record_id) for record in records), default=0))
    table.add_column("question", least=16)
    for heading, priority in (("corpus", 2), ("generator", 3), ("status", 1)):
        table.add_column(heading, priority)
    table.add_column("RePASs", justify="right")
    for record in records:
        table.add_row(
            record.record_id,
            plain(record.question, 80),
            plain(record.index),
            plain(record.generator),
            record.status,
            _number(record.composite),
        )
    return table


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"

"""Values -> rich tables for the terminal. Text of others is shown as it is, never read as markup."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ragqa.cleaning import without_controls
from ragqa.records import RecordSummary
from ragqa.repass.attribution import COPY_NOTE, MIN_RUN, citation_flag, marks
from ragqa.repass.explanation import Explanation, explain, mode_differences, provenance, written_out
from ragqa.types import Answer, Breakdown, CitationCheck, CitationStatus, Passage, ScoringMode, Selection, Verdict

_STYLE = {
    Verdict.SUPPORTED: "green",
    Verdict.UNSUPPORTED: "",
    Verdict.CONTRADICTED: "red",
    Verdict.DISPUTED: "yellow",
}


def plain(text: str, limit: int | None = None, style: str = "") -> Text:
    """The text without control characters, which a terminal would obey, cut to ``limit`` characters."""
    clean = without_controls(text)
    if limit is not None and len(clean) > limit:
        clean = clean[: limit - 1].rstrip() + "…"
    return Text(clean, style=style)


def passage_table(selection: Selection, limit: int = 10) -> Table:
    """Everything kept and the best of the rest, ``limit`` at least, with scores and the reason each fell.

    Where they were reranked also the fused score with the rank before, and the reranker's with the rank it gives; of a
    fan-out the question's own and the best sub-question's, in place of the retrievers'.
    """
    limit = max(limit, *(candidate.rank for candidate in selection.kept), 0)
    table = Table(title=f"Passages: kept {len(selection.kept)} of {len(selection.kept) + len(selection.dropped)}")
    table.add_column("#", justify="right")
    table.add_column("passage", ratio=1, overflow="fold")
    candidates = sorted((*selection.kept, *selection.dropped), key=lambda c: c.rank)[:limit]
    names = [part.retriever for part in candidates[0].hit.parts] if candidates else []
    further = [part.retriever for part in candidates[0].hit.reranking] if candidates else []
    if "sub-question" in further:
        names = []  # what the retrievers gave is in the question's own score
    shown = ({"bm25": "BM25", "dense": "cosine"}.get(name, name.rpartition(":")[2]) for name in names)
    for heading in ("relevance", *shown, *further):
        table.add_column(plain(heading), justify="right", no_wrap=True)
    table.add_column("decision", no_wrap=True)
    for candidate in candidates:
        raw = {part.retriever: part.raw for part in candidate.hit.parts}
        passage = plain(candidate.passage.passage_id, style="bold")
        passage.append(" ").append(plain(" ".join(candidate.passage.text.split()), 90, style="not bold"))
        table.add_row(
            str(candidate.rank),
            passage,
            f"{candidate.relevance:.3f}",
            *(_number(raw.get(name)) for name in names),
            *(f"{_number(part.raw)} #{part.rank or '–'}" for part in candidate.hit.reranking),
            Text(str(candidate.drop) if candidate.drop else "kept", style="" if candidate.drop else "green"),
        )
    return table


def answer_panel(answer: Answer, passages: Sequence[Passage]) -> RenderableType:
    """The answer with its citations, who wrote it, and the passages the citations name."""
    body = Text()
    for sentence in answer.sentences:
        body.append(plain(sentence.text))
        body.append("".join(f" [{number}]" for number in sentence.citations), style="cyan")
        body.append("\n")
    if answer.note:
        body.append(plain(answer.note, style="italic"))
    cited = sorted({number for sentence in answer.sentences for number in sentence.citations})
    sources = [plain(f"[{n}] {passages[n - 1].title} › {passages[n - 1].passage_id}", style="cyan") for n in cited]
    model = f", {answer.model}" if answer.model else ""
    return Group(Panel(body, title=plain(f"Answer ({answer.generator}{model})")), *sources)


def scores_group(evaluation: Breakdown, passages: Sequence[Passage] = (), other: Breakdown | None = None) -> Group:
    """Every answer sentence and every obligation with what decided it, the composite with its arithmetic, provenance.

    ``passages`` are the kept ones: with them the group also says what is copied, which citations do not hold
    and how E and C grow with the passages. ``other`` is the same answer in the other mode, for why the two differ.
    """
    explanation = explain(evaluation, passages) if passages else None
    arithmetic = written_out(evaluation)
    lines = [
        plain(f"RePASs ({evaluation.mode} mode) = {arithmetic.formula}", style="bold"),
        *(plain(f"  {part}") for part in arithmetic.parts),
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


def _sentence_table(evaluation: Breakdown, explanation: Explanation | None) -> Table:
    threshold = evaluation.verdict_threshold
    table = Table(title=f"Answer sentences (supported: E ≥ {threshold:.2f}, contradicted: C ≥ {threshold:.2f})")
    table.show_lines = True
    for heading in ("#", "verdict", "E", "C", "sentence", "deciding premise"):
        table.add_column(heading, overflow="fold")
    for score in evaluation.sentences:
        contradicted = score.verdict is Verdict.CONTRADICTED
        premise = score.contradiction_premise if contradicted else score.entailment_premise
        verdict = Text(score.verdict, style=_STYLE[score.verdict])
        if explanation:
            flag = citation_flag(explanation.citations[score.index])
            verdict.append(f"\n{flag}" if flag else "", style="yellow")
        where = f"[{premise.passage_index + 1}] {premise.start}–{premise.end}: " if premise else ""
        table.add_row(
            str(score.index + 1),
            verdict,
            f"{score.entailment:.3f}",
            f"{score.contradiction:.3f}",
            plain(score.sentence.text, 200),
            plain(where + premise.text, 200) if premise else "",
        )
    return table


def _obligation_table(evaluation: Breakdown, explanation: Explanation | None) -> Table:
    covered = sum(score.covered for score in evaluation.obligations)
    table = Table(
        title=f"Obligations: {covered} of {len(evaluation.obligations)} covered "
        f"(P(entailment) > {evaluation.coverage_threshold:.2f})"
    )
    table.show_lines = True
    for heading in ("covered", "best", "margin", "obligation", "answer sentence", "next best"):
        table.add_column(heading, overflow="fold")
    for score in evaluation.obligations:
        runner_up = explanation.runners_up[score.index] if explanation else None
        table.add_row(
            Text("yes", style="green") if score.covered else Text("no", style="yellow"),
            f"{score.best:.3f}",
            f"{score.margin:+.3f}",
            plain(f"[{score.obligation.passage_index + 1}] {score.obligation.text}", 200),
            "none compared" if score.answer_index is None else str(score.answer_index + 1),
            f"{runner_up.answer_index + 1} ({runner_up.probability:.3f})" if runner_up else "",
        )
    return table


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
    """How many sentences' citations stand as written, and what the check makes of each of the others."""
    kept = sum(check.status is CitationStatus.CONFIRMED for check in checks)
    others = "; ".join(
        f"sentence {check.index + 1} {check.status}: {marks(check.written) or 'nothing'} → "
        f"{marks(check.verified) or 'nothing'}"
        for check in checks
        if check.status is not CitationStatus.CONFIRMED
    )
    return plain(
        f"Citations checked by entailment: {kept} of {len(checks)} sentences cite what entails them"
        + (f"; {others}. The record keeps what was written." if others else ".")
    )


def record_table(records: Sequence[RecordSummary]) -> Table:
    """The record list, newest first."""
    table = Table(title="Records")
    for heading in ("record", "question", "corpus", "generator", "status", "RePASs"):
        table.add_column(heading, overflow="fold")
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

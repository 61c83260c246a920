"""Values -> rich tables for the terminal. Text of others is shown as it is, never read as markup."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ragqa.cleaning import without_controls
from ragqa.records import RecordSummary
from ragqa.types import Answer, Evaluation, Passage, Selection, Verdict

__all__ = ["answer_panel", "passage_table", "plain", "record_table", "scores_group"]

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
    """Everything kept and the best of the rest, ``limit`` at least, with scores and the reason each fell."""
    limit = max(limit, len(selection.kept))
    table = Table(title=f"Passages: kept {len(selection.kept)} of {len(selection.kept) + len(selection.dropped)}")
    table.add_column("#", justify="right")
    table.add_column("passage", ratio=1, overflow="fold")
    for heading in ("relevance", "BM25", "cosine"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("decision", no_wrap=True)
    candidates = sorted((*selection.kept, *selection.dropped), key=lambda c: c.rank)[:limit]
    for candidate in candidates:
        raw = {part.retriever: part.raw for part in candidate.hit.parts}
        passage = plain(candidate.passage.passage_id, style="bold")
        passage.append(" ").append(plain(" ".join(candidate.passage.text.split()), 90, style="not bold"))
        table.add_row(
            str(candidate.rank),
            passage,
            f"{candidate.relevance:.3f}",
            *(_number(raw.get(name)) for name in ("bm25", "dense")),
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


def scores_group(evaluation: Evaluation) -> Group:
    """The composite with its arithmetic, every answer sentence and every obligation with what decided it."""
    sentences = Table(title="Answer sentences", show_lines=True)
    for heading in ("verdict", "E", "C", "sentence", "deciding premise"):
        sentences.add_column(heading, overflow="fold")
    for score in evaluation.sentences:
        contradicted = score.verdict is Verdict.CONTRADICTED
        premise = score.contradiction_premise if contradicted else score.entailment_premise
        sentences.add_row(
            Text(score.verdict, style=_STYLE[score.verdict]),
            f"{score.entailment:.3f}",
            f"{score.contradiction:.3f}",
            plain(score.sentence.text, 200),
            plain(f"[{premise.passage_index + 1}] {premise.text}", 200) if premise else "",
        )
    obligations = Table(title="Obligations", show_lines=True)
    for heading in ("covered", "best", "margin", "obligation", "by answer sentence"):
        obligations.add_column(heading, overflow="fold")
    for obligation in evaluation.obligations:
        obligations.add_row(
            Text("yes", style="green") if obligation.covered else Text("no", style="yellow"),
            f"{obligation.best:.3f}",
            f"{obligation.margin:+.3f}",
            plain(obligation.obligation.text, 200),
            "" if obligation.answer_index is None else str(obligation.answer_index + 1),
        )
    repass = evaluation.repass
    line = Text(
        f"RePASs ({evaluation.mode} mode) = (E {repass.entailment:.3f} - C {repass.contradiction:.3f} + "
        f"OC {repass.obligation_coverage:.3f} + 1) / 3 = {repass.composite:.3f}",
        style="bold",
    )
    models = (
        f"NLI {evaluation.entailment_model.name} ({evaluation.entailment_model.precision}), {evaluation.n_pairs} pairs"
    )
    return Group(sentences, *([obligations] if evaluation.obligations else []), line, Text(models, style="dim"))


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

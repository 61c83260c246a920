"""The model card of an adapter that `ragqa.training.retriever` made: what it learnt from, and what it gained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from ragqa.training.loop import Progress
from ragqa.training.pseudo_queries import Kind
from ragqa.training.retriever import RetrieverTraining
from ragqa.training.retriever_data import RetrieverData

_APART = "share no gold passage with the questions trained on"


def model_card(
    name: str,
    training: RetrieverTraining,
    data: RetrieverData,
    last: Progress,
    *,
    base_sha256: str,
    command: str,
    files: Sequence[tuple[str, str]],
    n_asked: int,
    figures: Sequence[tuple[str, str, str]] = (),
    made: Mapping[Kind, int] | None = None,
) -> str:
    """The card as Markdown. ``files`` are (what was read, sha256); ``last`` is the last report.

    ``figures`` are (what was measured, before, after). The first ``n_asked`` of the data's questions were given,
    ``made`` counts the pseudo-queries after them by kind.
    """
    rows = "\n".join(f"| {what} | {before} | {after} |" for what, before, after in figures)
    used = "\n".join(f"| {file} | {sha256} |" for file, sha256 in files)
    settings = ", ".join(f"{key} {value}" for key, value in asdict(training).items() if key != "base")
    return f"""# {name}: an adapter for ranking passages

A LoRA in PEFT's format for the encoder `{training.base}`
(weights sha256 {base_sha256}). Use it:
`ragqa index build --encoder {training.base}+FOLDER`, FOLDER being this one.

## Figures

| questions | before | after |
|---|---|---|
{rows or "| not measured | | |"}

The dense ranking alone, on questions that {"were not trained on" if not n_asked else _APART}.

## Trained on

{len(data.pairs):,} pairs of {_asked(data, n_asked)} and their gold passages ({data.n_missing:,} gold ids not in the
index), each with a hard negative of BM25's; {last.step:,} of {last.steps:,} steps; {last.seconds:.0f} seconds in the
last run. Settings: {settings}.
{_about_made(made) if made else ""}
| read | sha256 |
|---|---|
{used}

Made by:

    {command}
"""


def _asked(data: RetrieverData, n_asked: int) -> str:
    """``"1,828 questions and 300 pseudo-queries"``: the questions stand before the pseudo-queries."""
    used = {question for question, _ in data.pairs}
    counts = (sum(n < n_asked for n in used), sum(n >= n_asked for n in used))
    named = zip(counts, ("questions", "pseudo-queries"), strict=True)
    return " and ".join(f"{count:,} {what}" for count, what in named if count)


def _about_made(made: Mapping[Kind, int]) -> str:
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in made.items())
    return f"""
Pseudo-queries were made of the corpus's own text by rules, without a language model and without reading a question:
{kinds}. They may be about any passage, also one that is gold of a question measured above: what was kept apart are
questions, not passages.
"""

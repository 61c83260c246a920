"""`ragqa train answers` and `refusal`: what says which sentence answers; and how a training is shown while it runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ragqa.cli.output import options_of, plain, progress_bar, stderr, stdout
from ragqa.generation.direct.selector import CrossEncoderSelector
from ragqa.lab.claims import fold_of, read_claims
from ragqa.lab.training.answers import (
    AnswerSources,
    AnswersTraining,
    answers_card,
    gather_questions,
    headings_of,
    texts_of,
    train_answers,
)
from ragqa.lab.training.loop import Progress, Reading
from ragqa.lab.training.model_folder import command_line, write_card
from ragqa.lab.training.refusal import fitted, out_of_fold, read_questions
from ragqa.models.inference.precision import wait_passively
from ragqa.pipeline import load_pipeline
from ragqa.settings.config import Config
from ragqa.settings.paths import Paths


def answers(
    ctx: typer.Context,
    claims: Annotated[Path, typer.Option(help="JSON lines of passages with questions, as `claims.jsonl`.")],
    out: Annotated[
        Path, typer.Option(help="Folder for weights and checkpoint; an interrupted training resumes there.")
    ],
    documents: Annotated[Path | None, typer.Option(help="ObliQA documents: the headings above these passages.")] = None,
    squad: Annotated[Path | None, typer.Option(help="SQuAD 2.0's questions, gzipped JSON lines.")] = None,
    without: Annotated[Path | None, typer.Option(help="JSON lines of questions that are not learnt.")] = None,
    fold: Annotated[int | None, typer.Option(min=0, max=4, help="The claims of this fold are held out.")] = None,
    base: Annotated[str, typer.Option(help="Model to start from: an embedded name or a folder.")] = "nli-minilm-l6",
    n_squad: Annotated[int, typer.Option(min=0, help="Questions of SQuAD, drawn at random.")] = 2_000,
    times: Annotated[int, typer.Option(min=1, help="How often a question of the claims is read.")] = 2,
    n_joined: Annotated[int, typer.Option(min=0, help="Pairs of questions put as one.")] = 300,
    elsewhere: Annotated[int, typer.Option(min=0, help="Sentences of other passages beside a question's own.")] = 2,
    learning_rate: Annotated[float, typer.Option(min=0.0)] = 1e-4,
    warmup_steps: Annotated[int, typer.Option(min=0)] = 60,
    seed: Annotated[int, typer.Option(min=0, help="Of the data's order and of what is drawn.")] = 1,
) -> None:
    """Train the model that says which sentence answers. Killed, it resumes at its last checkpoint when run again."""
    wait_passively()
    sources = AnswerSources(
        claims=read_claims(claims),
        headings=headings_of(documents) if documents else {},
        squad=squad,
        left_out=texts_of(without) if without else frozenset(),
        fold=fold,
        times=times,
        n_squad=n_squad,
        n_joined=n_joined,
        n_elsewhere=elsewhere,
        seed=seed,
    )
    train, held_out = gather_questions(sources)
    stderr().print(f"{len(train):,} questions to train on, {len(held_out):,} held out")
    training = AnswersTraining(base=base, learning_rate=learning_rate, warmup_steps=warmup_steps, seed=seed)
    last = shown_training(train_answers(training, train, held_out, out))
    write_card(out, answers_card(out.name, training, train, last, command_line("train answers", options_of(ctx))))
    stdout().print(plain(f"Weights and card are in {out}"))


def refusal(
    index: Annotated[list[str], typer.Option(help="Index that holds the claims' passages; repeatable.")],
    claims: Annotated[Path, typer.Option(help="JSON lines of passages with questions, as `claims.jsonl`.")],
    fold: Annotated[int, typer.Option(min=0, max=4, help="The fold that the selector has not learnt.")] = 0,
    limit: Annotated[int | None, typer.Option(min=1, help="The first so many passages of each index.")] = None,
) -> None:
    """Fit the weights by which a sentence is chosen and a question refused, out of fold as well; writes nothing."""
    labelled = [one for one in read_claims(claims) if fold_of(one.id) == fold]
    config, read = Config.from_env(), []
    for name in index:
        pipeline = load_pipeline(replace(config, index=name), Paths.from_env(), recording=False)
        ids = {one.passage_id: one for one in pipeline.index.passages}
        passages = {one.id: ids[key] for one in labelled if (key := one.id.partition(":")[2]) in ids}
        asked = [one for one in labelled if one.id in passages][:limit]
        models = pipeline.models
        selector = models.selector or CrossEncoderSelector()
        with progress_bar() as bar:
            task = bar.add_task(f"Asking {name}", total=None)
            for one in read_questions(asked, passages, pipeline.search, models.encoder, selector):
                read.append(one)
                bar.update(task, advance=1)
    for what, weights in zip(("CHOICE", "ANSWERED"), fitted(read), strict=True):
        stdout().print(plain(f"{what}: {', '.join(f'{name} {value:.2f}' for name, value in weights.items())}"))
    report = out_of_fold(read)
    shares = ", ".join(f"{kind} {share:.2f} of {report.counts[kind]:,}" for kind, share in report.refused.items())
    stdout().print(plain(f"Out of fold: right first {report.first:.2f}; refused: {shares}"))


def shown_training(reports: Iterable[Reading | Progress]) -> Progress:
    """The last report of a training, all of them shown in a bar."""
    with progress_bar() as bar:
        task = bar.add_task("Training", total=None)
        for now in reports:
            if isinstance(now, Reading):
                bar.update(task, completed=now.done, total=now.total, description="Reading")
                continue
            last, figures = now, f"loss {now.loss:.3f}, {now.pairs_per_second:.0f} pairs/s"
            bar.update(task, completed=now.step, total=now.steps, description=figures)
            if now.held_out is not None:
                stderr().print(f"step {now.step:,} of {now.steps:,}: {figures}, held-out accuracy {now.held_out:.4f}")
    return last

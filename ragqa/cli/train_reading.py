"""`ragqa train answers | strength | verdicts | verifier`: what reads sentences; the progress bar of a training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from ragqa.cli.options import built
from ragqa.cli.output import options_of, plain, print_table, progress_bar, stderr, stdout, tracked
from ragqa.errors import ConfigError
from ragqa.infra.files import write_whole
from ragqa.lab.claims import FOLDS, fold_of, read_claims
from ragqa.lab.strengths import labelled_strengths
from ragqa.lab.training.answers import (
    AnswerSources,
    AnswersTraining,
    answers_card,
    gather_questions,
    law_lists,
    train_answers,
)
from ragqa.lab.training.loop import Progress, Reading
from ragqa.lab.training.model_folder import command_line, write_card
from ragqa.lab.training.nli import train_nli
from ragqa.lab.training.strength import StrengthTraining, measured, samples_of, strength_card, train_strength
from ragqa.lab.training.taught import PER_STEP, taught_pairs
from ragqa.lab.training.taught_answers import PER_STEP as LISTS_PER_STEP
from ragqa.lab.training.taught_answers import taught_lists, unlabelled_lists
from ragqa.lab.training.verdicts import (
    LINES,
    MOST_CONTRADICTED,
    ReadClaim,
    cases_of,
    chosen,
    fitted,
    most_probable,
    out_of_fold,
    shares,
    written,
)
from ragqa.lab.training.verifier import (
    VerifierSources,
    VerifierTraining,
    gather_claims,
    gather_first,
    gather_unlabelled,
    policies_card,
    verifier_card,
)
from ragqa.loading import load_encoder, load_nli, load_scorer, load_selector
from ragqa.models.inference.precision import wait_passively
from ragqa.scoring.verdicts.belief import calibration_of
from ragqa.settings.config import IndexingConfig, ScoringConfig
from ragqa.settings.paths import Paths
from ragqa.settings.scoring import scoring_from_env, scoring_with

STOP_AFTER = typer.Option(min=1, help="Write the weights after this number of steps.")
Out = Annotated[
    Path, typer.Option(help="Folder of the model and its checkpoint; an interrupted training resumes there.")
]


@built(
    AnswerSources,
    claims=typer.Option(help="JSON lines of passages with questions: claims.jsonl of RAGQA_DATA/claims."),
    documents=typer.Option(help="ObliQA documents: the headings above these passages."),
    squad=typer.Option(help="Questions of SQuAD 2.0, gzipped JSON lines."),
    without=typer.Option(help="JSON lines of questions to leave out of the training."),
    written=typer.Option(help="RAGQA_DATA: train also on our own questions about further passages of it."),
    law=typer.Option("--law", help="Train also on our own questions about texts of law."),
    fold=typer.Option(min=0, max=FOLDS - 1, help="Hold this fold out, and measure it."),
    passes=typer.Option(min=1, help="Passes over the claims' questions, each with newly drawn sentences."),
    n_questions=typer.Option("--n-questions", min=1, help="Number of them in a pass, drawn at random; default: all."),
    n_squad=typer.Option("--n-squad", min=0, help="Questions of --squad."),
    seed=typer.Option(min=0, help="Seed of data order and of random draws."),
)
def answers(
    ctx: typer.Context,
    sources: AnswerSources,
    out: Out,
    base: Annotated[str, typer.Option(help="Cross-encoder of one output to start from; with --rank any classifier.")],
    rank: Annotated[int, typer.Option(min=0, help="Train low-rank factors of this rank; 0: the weights.")] = 0,
    frozen_layers: Annotated[int, typer.Option("--frozen-layers", min=0, help="Lowest layers left as they are.")] = 2,
    teacher: Annotated[
        str, typer.Option(help="Larger selector: learn what it and --base say in the mean, instead of labels alone.")
    ] = "",
    n_taught: Annotated[int, typer.Option("--taught", min=1, help="Questions, at most, that --teacher reads.")] = 5_000,
    further: Annotated[
        Path | None, typer.Option(help="Further questions for --teacher to read: a JSON list of {Question}.")
    ] = None,
    stop_after: Annotated[int | None, STOP_AFTER] = None,
) -> None:
    """Train the selector, which tells if a sentence answers a question. Killed, it resumes at its last checkpoint."""
    wait_passively()
    with stderr().status("Reading questions"):
        train, held_out = gather_questions(sources)
        if teacher:
            lists = unlabelled_lists(sources, further, load_encoder(IndexingConfig().encoder), n_taught)
    if teacher:
        steps = taught_lists(lists, *(load_selector(ScoringConfig(), name) for name in (teacher, base)))
        train = [*chain.from_iterable(tracked(steps, -(-len(lists) // LISTS_PER_STEP), "Teaching"))]
        train += law_lists(sources)
    stderr().print(f"{len(train):,} questions to train on, {len(held_out):,} held out")
    training = AnswersTraining(
        base=base, rank=rank, frozen_layers=frozen_layers, seed=sources.seed, stop_after=stop_after
    )
    last = shown_training(train_answers(training, train, held_out, out))
    write_card(out, answers_card(out.name, training, train, last, command_line("train answers", options_of(ctx))))
    stdout().print(plain(f"Weights and card are in {out}; pack them: ragqa train pack {out}"))


@built(
    StrengthTraining,
    base=typer.Option(help="Model to start from: an embedded name or a folder."),
    n_layers=typer.Option("--layers", min=1, help="Number of its layers to use, from the lowest."),
    rank=typer.Option(min=1, help="Rank of the factors that are trained beside them."),
    epochs=typer.Option(min=1),
    learning_rate=typer.Option("--lr", min=0.0, help="Peak learning rate."),
    seed=typer.Option(min=0, help="Seed of the new layer, the factors and the data order."),
    stop_after=STOP_AFTER,
)
def strength(
    ctx: typer.Context,
    data: Annotated[Path, typer.Option(help="RAGQA_DATA, whose documents hold the labelled sentences.")],
    out: Out,
    training: StrengthTraining,
) -> None:
    """Train the classifier of how strongly a sentence binds. Killed, it resumes at its last checkpoint."""
    wait_passively()
    with stderr().status("Reading the documents of the labelled sentences"):
        sentences = labelled_strengths(data)
    samples = samples_of(sentences)
    stderr().print(f"{len(samples):,} sentences to train on, {sum(one.is_test for one in sentences):,} set apart")
    shown_training(train_strength(training, samples, out))
    _, calls = measured(out, sentences)
    card = strength_card(out.name, training, sentences, calls, command_line("train strength", options_of(ctx)))
    write_card(out, card)
    headings, *rows = card.figures
    print_table(card.title, headings, rows)
    stdout().print(
        plain(
            f"Weights and card are in {out}; pack them: ragqa train pack {out} --body FOLDER, that of {training.base}"
        )
    )


def verdicts(
    claims: Annotated[Path, typer.Option(help="claims.jsonl of RAGQA_DATA/claims, or one like it.")],
    verdict_model: Annotated[
        list[str] | None,
        typer.Option(help="Verifier: embedded name, local folder or hub name; one for all folds, or one for each."),
    ] = None,
    fold: Annotated[
        list[int] | None,
        typer.Option(min=0, max=FOLDS - 1, help="Only these folds, which their verifiers must not have seen."),
    ] = None,
    parts: Annotated[int, typer.Option(min=2, help="Parts of the cross-validation; a document is in one part.")] = 5,
    at_most: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, help="Largest share of contradicted claims called supported, which chooses the line."
        ),
    ] = MOST_CONTRADICTED,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write: ragqa/scoring/verdicts/belief.json, or calibration.json in the verifier's folder."
        ),
    ] = None,
) -> None:
    """Fit the weights and lines that turn the verifier's outputs into verdicts, on claims that it has not seen."""
    models = verdict_model or [""]
    cases, read_by = _read_claims(claims, models, [*(fold or ()), *(() if fold else (None,))])
    now, apart = calibration_of(models[0]), out_of_fold(cases, parts)
    best = chosen(cases, apart, at_most)
    rows = [("present", shares(cases, [now] * len(cases), now.supported, now.contradicted))]
    lines = [line for line in LINES if round(line * 100) % 10 == 0]
    rows += [(f"out of {parts} parts", shares(cases, apart, line, best.contradicted)) for line in lines]
    cells = []
    for name, found in (*rows, ("few false ones supported", best)):
        numbers = (found.balanced, *(row[0] for row in found.called), found.called[0][1])
        at = f"{found.supported:.2f} {found.contradicted:.2f}"
        cells.append((name, at, *(f"{number:.3f}" for number in numbers)))
    print_table(
        f"{len(cases):,} claims, {read_by}; share called supported, by label",
        ("weights", "lines", "balanced", "supported", "contradicted", "unsupported", "denied"),
        cells,
    )
    stdout().print(
        plain(
            f"Denied: supported claims called contradicted. Most probable label, out of {parts} parts: balanced "
            f"accuracy {most_probable(cases, apart):.3f}; by the present weights "
            f"{most_probable(cases, [now] * len(cases)):.3f}."
        )
    )
    if out:
        known = replace(fitted(cases), supported=best.supported, contradicted=best.contradicted)
        which = f", folds {', '.join(map(str, fold))}" if fold else ""
        write_whole(out, [written(known, f"{len(cases)} claims{which}, read by {read_by}")])
        stderr().print(plain(f"wrote {out}"))


def _read_claims(claims: Path, models: Sequence[str], folds: Sequence[int | None]) -> tuple[list[ReadClaim], str]:
    """The claims of each fold, read by its verifier or by the only one, and the verifiers' names; None: all folds."""
    if len(models) not in (1, len(folds)):
        msg = f"expected one --verdict-model, or one for each of the {len(folds)} --fold, got {len(models)}"
        raise ConfigError(f"{msg}; give as many")
    cases: list[ReadClaim] = []
    names: list[str] = []
    for n, fold in enumerate(folds):
        with stderr().status("Loading the models"):
            scorer = load_scorer(scoring_with(scoring_from_env(), verdict=models[n % len(models)]), Paths.from_env())
        passages = [passage for passage in read_claims(claims) if fold in (None, fold_of(passage.id))]
        cases += chain.from_iterable(tracked(cases_of(passages, scorer), len(passages)))
        names.append(scorer.verdicts.info.name)
    return cases, ", ".join(dict.fromkeys(names))


@built(
    VerifierSources,
    claims=typer.Option(help="Folder of claims.jsonl and gaps.jsonl, such as RAGQA_DATA/claims."),
    fold=typer.Option(min=0, max=FOLDS - 1, help="Hold this fold out, and measure it."),
    passes=typer.Option(min=1, help="Passes over the claims, each with newly drawn windows."),
    n_general=typer.Option("--general", min=0, help="Number of general pairs beside them."),
    n_made=typer.Option("--made", min=0, help="Number of pairs made by rule from the claims' passages."),
    written=typer.Option(help="RAGQA_DATA: train also on our own claims about further passages of it."),
    answers=typer.Option(help="Written answers for the teacher to read: a JSON list of {Answer, Passages}."),
    n_taught=typer.Option("--taught", min=0, help="Number of unlabelled pairs, at most, that --teacher labels."),
    n_first=typer.Option("--first", min=0, help="Number of short general pairs, used before all others."),
    policies=typer.Option("--policies", help="Train on rules and policies alone: the model that reads policies."),
    n_policies=typer.Option(min=1, help="With --policies: written pairs beside all of --pairs, at most; else all."),
    seed=typer.Option(min=0, help="Seed of data order and of random draws."),
)
@built(
    VerifierTraining,
    frozen_layers=typer.Option(min=0, help="Number of lowest layers that are not trained."),
    rank=typer.Option(min=0, help="Train factors of this rank beside the other layers; 0: the layers themselves."),
    base=typer.Option(help="Model to start from: an embedded name or a folder."),
    batch_size=typer.Option(min=1, help="Pairs in a step; 64 on a GPU."),
    learning_rate=typer.Option(min=0.0, help="Largest learning rate; 0: 6e-4 with --rank, else 7e-5."),
    dropout=typer.Option(min=0.0, max=0.9, help="Dropout between layers; .1 if pairs are seen several times."),
    epochs=typer.Option(min=1, help="Passes over all pairs."),
    warmup_steps=typer.Option(min=0, help="Steps in which the learning rate rises."),
    max_tokens=typer.Option(min=16, max=512, help="Tokens of a pair, at most."),
    stop_after=STOP_AFTER,
)
def verifier(
    ctx: typer.Context,
    sources: VerifierSources,
    out: Out,
    training: VerifierTraining,
    pairs: Annotated[
        list[Path] | None,
        typer.Option(help="General pairs, or of policies: JSON lines of {premise, hypothesis, label, set}."),
    ] = None,
    teacher: Annotated[
        str, typer.Option(help="Larger verifier, not trained on this fold, that labels the --taught pairs.")
    ] = "",
) -> None:
    """Train the verifier of verdicts on labelled claims. Killed, it resumes at its last checkpoint when run again."""
    wait_passively()
    with stderr().status("Reading claims and pairs"):
        sources = replace(sources, pairs=tuple(pairs or ()))
        first, (train, held_out) = gather_first(sources), gather_claims(sources)
        unlabelled = gather_unlabelled(sources) if teacher else []
    if unlabelled:
        steps = taught_pairs(unlabelled, load_nli(teacher, paths=Paths.from_env()))
        train += chain.from_iterable(tracked(steps, -(-len(unlabelled) // PER_STEP), "Teaching"))
    stderr().print(f"{len(first):,} and {len(train):,} pairs to train on, {len(held_out):,} held out")
    training = replace(training, seed=sources.seed)
    last = shown_training(train_nli(training, train, held_out, out, first))
    card_of = policies_card if sources.policies else verifier_card
    card = card_of(out.name, training, [*first, *train], last, command_line("train verifier", options_of(ctx)))
    write_card(out, card)
    stdout().print(plain(f"Weights and card are in {out}; measure: ragqa eval claims --verdict-model {out}"))


def shown_training(reports: Iterable[Reading | Progress]) -> Progress:
    """The last report of a training; a bar shows all of them."""
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

"""`ragqa train nli | obligations | retriever | reranker | pack`: weights trained on labels or corpora."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ragqa.cli.options import built
from ragqa.cli.output import options_of, plain, print_table, progress_bar, stderr, stdout
from ragqa.cli.rankings import fused_rankings, reranked_results
from ragqa.cli.train_ranking import Questions, asked_index, cut, ranker
from ragqa.cli.train_reading import STOP_AFTER, Out, answers, shown_training, strength, verdicts, verifier
from ragqa.errors import ConfigError
from ragqa.evaluation.benchmarks.retrieval.comparing import measured
from ragqa.index import Index
from ragqa.lab.dataset.pseudo_queries import PseudoQuery, counts_of, draw, pseudo_queries
from ragqa.lab.questions import MEASURES, AskedIndex
from ragqa.lab.training.model_folder import command_line, files_table, write_card
from ragqa.lab.training.nli import NliSources, NliTraining, gather, nli_card, train_nli
from ragqa.lab.training.obligations import train_obligations
from ragqa.lab.training.packing import pack_adapter, pack_model
from ragqa.lab.training.ranker import RankingMeans
from ragqa.lab.training.reranker import KnownRankings, RerankerTraining, base_folder, reranker_card, train_reranker
from ragqa.lab.training.retriever import RetrieverTraining, retriever_card, train_retriever
from ragqa.loading import load_encoder
from ragqa.models import resolve_model
from ragqa.models.inference.precision import wait_passively
from ragqa.settings.config import RerankingConfig
from ragqa.types import Ranking

RERANKER_WEIGHTS = (0.2, 0.3, 0.5, 1.0)  # of the reranker, measured with --fold
PartOfQuestions = Annotated[
    str, typer.Option("--fold", help="K/N: train on fold K of N, measure on its test questions.")
]
Limit = Annotated[int | None, typer.Option(min=1, help="Number of pairs to train on, chosen at random.")]

app = typer.Typer(help="Train the embedded models.", no_args_is_help=True)
app.command()(ranker)
app.command()(cut)
app.command()(answers)
app.command()(strength)
app.command()(verdicts)
app.command()(verifier)


@app.callback()
def _train() -> None:
    """Train the embedded models."""


@app.command()
@built(
    RetrieverTraining,
    rank=typer.Option(min=1, help="Rank of the adapter."),
    layers=typer.Option(min=1, help="Number of last layers to adapt."),
    learning_rate=typer.Option("--lr", min=0.0, help="Peak learning rate."),
    batch_size=typer.Option("--batch", min=1, help="Pairs per step."),
    seed=typer.Option(min=0, help="Seed of factors, data order, pseudo-queries and --limit."),
    stop_after=STOP_AFTER,
)
def retriever(
    ctx: typer.Context,
    index: Annotated[str, typer.Option(help="Corpus, whose encoder is trained further.")],
    out: Out,
    training: RetrieverTraining,
    questions: Annotated[
        list[Path] | None,
        typer.Option(help="Questions with gold passages, ObliQA's schema; default: pseudo-queries made of the corpus."),
    ] = None,
    pseudo: Annotated[
        int | None, typer.Option(min=1, help="Number of pseudo-queries; default: 0 with --questions, else all.")
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="Questions to measure on, where pseudo-queries alone are trained on.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Epochs; default: 2 with questions, 1 without.")] = None,
    fold: PartOfQuestions = "",
    limit: Limit = None,
) -> None:
    """Adapt an index's encoder to questions, or to the corpus alone. Killed, it resumes at its last checkpoint.

    Without --questions it learns from pseudo-queries: headings, definitions, references and duties of the corpus.
    """
    wait_passively()
    files, tests = questions or [], [test] if test else []
    _check_options(out, files, test, fold)
    asked = asked_index(index, files, fold, test)
    made = _made(asked.index, pseudo, training.seed) if pseudo or not files else ()
    manifest = asked.index.manifest
    spared = {n: query.spared for n, query in enumerate(made, start=len(asked.learnt))}
    with stderr().status("Looking for hard negatives"):
        further = [query.question for query in made]
        data = asked.gathered(asked.index.bm25s, limit=limit, seed=training.seed, further=further, spared=spared)
    stderr().print(data.counts)
    training = replace(training, base=manifest.encoder, epochs=epochs or (2 if files else 1))
    last = shown_training(train_retriever(training, data, out))
    figures = _dense_before_and_after(asked, f"{training.base}+{out}") if asked.tested else []
    for measure, before, after in figures:
        stdout().print(plain(f"{measure}: {before} before, {after} after"))
    card = retriever_card(
        out.resolve().name,
        training,
        data,
        last,
        base_sha256=manifest.encoder_fingerprint,
        command=command_line("train retriever", options_of(ctx) | {"epochs": training.epochs}),
        sources=files_table([*files, *tests], *([(manifest.source, manifest.corpus_sha256)] if made else [])),
        n_asked=len(asked.learnt),
        figures=figures,
        made=counts_of(made) if made else {},
    )
    write_card(out, card)
    stdout().print(plain(f"Adapter and card are in {out}; use: ragqa index build --encoder {training.base}+{out}"))


@app.command()
@built(
    RerankerTraining,
    base=typer.Option(help="Backbone: a folder or nli-minilm-l6; default: the index's encoder."),
    epochs=typer.Option(min=1),
    negatives=typer.Option(min=1, help="Hard negatives for each gold passage."),
    learning_rate=typer.Option("--lr", min=0.0, help="Peak learning rate."),
    batch_size=typer.Option("--batch", min=1, help="Gold passages per step."),
    seed=typer.Option(min=0, help="Seed of the new layer, data order and --limit."),
    stop_after=STOP_AFTER,
)
def reranker(
    ctx: typer.Context,
    index: Annotated[str, typer.Option(help="Corpus.")],
    questions: Questions,
    out: Out,
    training: RerankerTraining,
    fold: PartOfQuestions = "",
    limit: Limit = None,
) -> None:
    """Train a reranker on questions with gold passages. Killed, it resumes at its last checkpoint when run again.

    The wrong passages are those that the fused ranking puts high. Use it with `ragqa ask --reranker OUT`.
    """
    wait_passively()
    asked = asked_index(index, questions, fold)
    training = replace(training, base=training.base or asked.index.manifest.encoder)
    _, base_sha256 = base_folder(training.base)
    gold = [*asked.learnt, *asked.tested]
    rankings = fused_rankings(gold, asked.index)
    fused = {item.question.text: one for item, one in zip(gold, rankings, strict=True)}
    with stderr().status("Looking for hard negatives"):
        data = asked.gathered(KnownRankings("fused", fused), limit=limit, seed=training.seed)
    stderr().print(data.counts)
    last = shown_training(train_reranker(training, data, out))
    figures = _reranked_before_and_after(asked, fused, out) if asked.tested else []
    for figure in figures:
        stdout().print(plain(str(figure)))
    card = reranker_card(
        out.resolve().name,
        training,
        data,
        last,
        base_sha256=base_sha256,
        command=command_line("train reranker", options_of(ctx) | {"base": training.base}),
        sources=files_table(questions),
        figures=figures,
        n_tested=len(asked.tested),
    )
    write_card(out, card)
    weight = f" --rerank-weight {_best_weight(figures):g}" if figures else ""
    use = f"ragqa ask QUESTION --index {index} --reranker {out}{weight}"
    stdout().print(plain(f"Weights and card are in {out}; use: {use}"))


@app.command()
def obligations(
    data: Annotated[Path, typer.Option(help="JSON list of {Text, Obligation}.")],
    out: Annotated[Path, typer.Option(help="Folder for weights and model card.")],
    seed: Annotated[int, typer.Option(min=0, help="Seed of the 80/20 split.")] = 42,
) -> None:
    """Train RePASs' obligation classifier, and write weights and model card."""
    with stderr().status("Training"):
        card = train_obligations(data, out, seed)
    headings, *rows = card.figures
    print_table(card.title, headings, rows)
    stdout().print(plain(f"Weights and card are in {out}"))


@app.command()
@built(
    NliTraining,
    base=typer.Option(help="Backbone: an embedded name or a folder."),
    epochs=typer.Option(min=1),
    batch_size=typer.Option(min=1),
    learning_rate=typer.Option(min=0.0),
    dropout=typer.Option(min=0.0, max=0.9, help="Dropout between layers; 0 suits one epoch."),
    frozen_layers=typer.Option(min=0, help="Number of lowest layers that are not trained."),
    seed=typer.Option(min=0, help="Seed of data order and made pairs."),
    stop_after=STOP_AFTER,
)
def nli(
    ctx: typer.Context,
    pairs: Annotated[list[Path], typer.Option(help="JSON lines of {premise, hypothesis, label, set}, may be gzipped.")],
    out: Out,
    training: NliTraining,
    documents: Annotated[
        list[Path] | None, typer.Option(help="Folder or file of passages to make further pairs from.")
    ] = None,
    answers: Annotated[Path | None, typer.Option(help="JSON list of {Answer, Passages}.")] = None,
    made: Annotated[int, typer.Option(min=0, help="Number of pairs made from --documents.")] = 40_000,
    limit: Limit = None,
) -> None:
    """Train the NLI model. Killed, it resumes at its last checkpoint when run again."""
    wait_passively()
    with stderr().status("Reading pairs and making further ones"):
        files = (tuple(pairs), tuple(documents or ()), answers)
        train, held_out = gather(NliSources(*files, n_made=made, limit=limit, seed=training.seed))
    stderr().print(f"{len(train):,} pairs to train on, {len(held_out):,} held out")
    last = shown_training(train_nli(training, train, held_out, out))
    write_card(out, nli_card(out.name, training, train, last, command_line("train nli", options_of(ctx))))
    stdout().print(plain(f"Weights and card are in {out}; measure: ragqa eval nli --model {out} --pairs FILE"))


@app.command()
def pack(
    folder: Annotated[Path, typer.Argument(help="A trained classifier, such as `train verifier` writes.")],
    out: Annotated[Path, typer.Option(help="Folder to write; beside the folder of a base that it shares with.")],
    base: Annotated[str, typer.Option(help="Model whose word embeddings it shares.")] = "nli-minilm-l6",
    body: Annotated[
        Path | None,
        typer.Option(help="Model it was trained from, a folder or a safetensors file: pack the difference."),
    ] = None,
    rank: Annotated[int, typer.Option(min=1, help="With --body: rank of each matrix's difference.")] = 16,
    earlier: Annotated[
        Path | None, typer.Option(help="Folder of the classifier whose training it continues: pack a mean of both.")
    ] = None,
    share: Annotated[float, typer.Option(min=0, max=1, help="With --earlier: share of the later weights.")] = 0.5,
) -> None:
    """Pack a classifier: int8 matrices that share word embeddings with a base, or an adapter of a body."""
    if body:
        left_out = pack_adapter(folder, body, rank, out)
        stdout().print(plain(f"{out} is an adapter of rank {rank}; it leaves out at most {left_out:.1%} of a change"))
        return
    shared = pack_model(folder, resolve_model(base), out, earlier, share)
    stdout().print(plain(f"{out} is packed; shared with {base}: {', '.join(shared) or 'nothing'}"))


def _check_options(out: Path, questions: Sequence[Path], test: Path | None, fold: str) -> None:
    if "+" in str(out):
        msg = f"--out must be a folder without + in its path (it parts model and adapter), got {str(out)!r}; rename it"
        raise ConfigError(msg)
    if fold and not questions:
        msg = f"--fold {fold} measures on a part of --questions, got none; add --questions FILE, or take --test FILE"
        raise ConfigError(msg)
    if test and questions:
        msg = "--test measures what pseudo-queries alone bring, got --questions too; leave them out, or take --fold 1/5"
        raise ConfigError(msg)


def _made(index: Index, limit: int | None, seed: int) -> tuple[PseudoQuery, ...]:
    with stderr().status("Making pseudo-queries of the corpus"):
        found = pseudo_queries(index.passages, seed)
        made = found if limit is None else draw(found, limit, seed)
    counts = ", ".join(f"{count:,} {kind}" for kind, count in counts_of(made).items())
    stderr().print(f"pseudo-queries made of the corpus: {counts}")
    return made


def _dense_before_and_after(asked: AskedIndex, adapted: str) -> list[tuple[str, str, str]]:
    """(measure, before, after) of the dense ranking: by the index's vectors, by those of the adapted encoder."""
    index, texts = asked.index, asked.texts
    base = load_encoder(index.manifest.encoder)
    index.check_encoder(base.info)
    before = asked.dense_measures(base, index.vectors.reconstruct_n(0, index.vectors.ntotal))
    encoder = load_encoder(adapted)
    with progress_bar() as bar:
        starts = bar.track(range(0, len(texts), 256), description="256 passages each")
        after = asked.dense_measures(encoder, np.concatenate([encoder.encode(texts[n : n + 256]) for n in starts]))
    size = f"{len(asked.tested):,} questions"
    return [(f"{name}, {size}", f"{before[name]:.4f}", f"{after[name]:.4f}") for name in before]


def _reranked_before_and_after(asked: AskedIndex, fused: Mapping[str, Ranking], model: Path) -> list[RankingMeans]:
    """Fused, then reranked with each weight."""
    before = tuple(fused[item.question.text] for item in asked.tested)
    reranking = RerankingConfig(str(model))
    after, milliseconds = reranked_results(asked.tested, asked.index, before, reranking, RERANKER_WEIGHTS)
    if milliseconds is not None:
        stderr().print(f"{milliseconds:.0f} ms a question to rerank {reranking.depth} passages")
    return [RankingMeans.of(one) for one in (measured("fused", asked.tested, before), *after)]


def _best_weight(figures: Sequence[RankingMeans]) -> float:
    """The weight of the highest MAP@10; the first of equals."""
    at = MEASURES.index("AP@10")
    return max(zip(RERANKER_WEIGHTS, figures[1:], strict=True), key=lambda pair: pair[1].means[at])[0]

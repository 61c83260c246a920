"""`ragqa tune`: which index, depth, fusion and filter, by cross-validation on questions with gold passages."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragqa.cli.output import stdout
from ragqa.cli.tune_search import Search, searched
from ragqa.errors import ConfigError, CorpusError
from ragqa.paths import Paths
from ragqa.tables import plain

if TYPE_CHECKING:
    from ragqa.indexing import Index

DEPTHS = (50, 100, 200)


def tune(
    index: Annotated[list[str], typer.Option(help="Which corpus; several indexes of one corpus are compared.")],
    questions: Annotated[Path, typer.Option(help="Questions with gold: ObliQA's schema, JSON lines, PandaChat.")],
    measure: Annotated[str, typer.Option(help="Decides the ranking: AP, R, nDCG, RR or Success at N.")] = "AP@10",
    beta: Annotated[float, typer.Option(help="Decides the filter: F-beta of what is kept; 2: recall twice.")] = 2.0,
    depth: Annotated[
        list[int] | None,
        typer.Option(help="Candidates per ranking to try; repeatable. 50, 100 and 200 where not given."),
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Parts that are tested in turn.")] = 5,
    step: Annotated[float, typer.Option(help="Between two weights: 1 divided by a whole number.")] = 0.05,
    seed: Annotated[int, typer.Option(min=0, help="Of the folds and of the test.")] = 0,
    write: Annotated[
        Path | None, typer.Option(help="Preset file, NAME.json, for `ragqa ask --preset` and the page.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File for what was found and its evidence, JSON.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the same JSON and nothing else.")] = False,
) -> None:
    """Choose how passages are ranked and filtered: settings from one part of the questions, tested on the rest.

    No gold passage is both learnt from and tested on. The filter is tuned for the tuned ranking, or for the default one
    where tuning found none better beyond chance; --write leaves what is not better at its default. Rankings are kept
    under RAGQA_HOME, as by `ragqa eval retrieval`.
    """
    from ragqa.cli import tune_report
    from ragqa.corpus.questions import load_gold
    from ragqa.evaluation.folds import folds_by_gold
    from ragqa.evaluation.journal import write_whole
    from ragqa.indexing import open_index

    search = Search(tuple(dict.fromkeys(index)), measure, beta, tuple(sorted(set(depth or DEPTHS))), folds, step, seed)
    _check_files(out, write)
    opened = {name: open_index(name, Paths.from_env().indexes) for name in search.indexes}
    _check_same_corpus(opened)
    gold, unit = load_gold(questions, next(iter(opened.values())).passages)
    parts = folds_by_gold(gold, folds, seed)
    found = searched(search, opened, gold, unit, parts)
    report = tune_report.report(opened, questions, gold, unit, found.ranked, found.filtered)
    report |= {"n_candidates": found.n_rankings - 1, "n_filters": found.n_filters - 1, "depths": search.depths}
    report |= {"step": step, "seed": seed, "n_folds": folds}
    written = json.dumps(report, indent=2) + "\n"
    if out:
        write_whole(out, [written])
    if write:
        command = search.command(questions, write)
        preset = (write.stem, report, found.setting, found.ranked, found.filtered, command, questions)
        write_whole(write, [tune_report.preset_file(*preset)])
    if as_json:
        typer.echo(written, nl=False)
        return
    title = f"{', '.join(opened)}: {len(gold):,} questions, {found.n_rankings - 1:,} ways to rank, "
    title += f"folds with no gold {unit} on both sides"
    sizes = [(len(fold.train), len(fold.test)) for fold in parts]
    stdout().print(tune_report.table(title, found.ranked, found.filtered, sizes))
    for line in tune_report.lines(found.ranked, found.filtered, several=len(opened) > 1):
        stdout().print(plain(line))
    if write:
        page = "" if write.parent.resolve() == Paths.from_env().presets.resolve() else tune_report.FOR_THE_PAGE
        stdout().print(plain(f"Preset written: `ragqa ask --preset {shlex.quote(str(write))}`.{page}"))


def _check_files(out: Path | None, write: Path | None) -> None:
    """Raises ConfigError for what cannot be written, before anything is ranked."""
    from ragqa.preset_files import check_name

    for option, file in (("--out", out), ("--write", write)):
        if file and not file.parent.is_dir():
            msg = f"{option} must be in a folder that exists, got {str(file)!r}; make the folder or choose another"
            raise ConfigError(msg)
    if write:
        if write.suffix != ".json":
            msg = f"--write must name a file that ends in .json, got {str(write)!r}; rename it"
            raise ConfigError(msg)
        check_name(write.stem)


def _check_same_corpus(opened: dict[str, Index]) -> None:
    """Raises CorpusError unless all have the passages of the first."""
    (name, first), *others = opened.items()
    ids = [passage.passage_id for passage in first.passages]
    for other, index in others:
        same_source = index.manifest.corpus_sha256 == first.manifest.corpus_sha256
        if not same_source or [passage.passage_id for passage in index.passages] != ids:
            msg = (
                f"expected indexes of one corpus with the same passages, found that {name!r} has {len(ids):,} and "
                f"{other!r} {len(index.passages):,} others; compare indexes that differ in analyser or encoder alone"
            )
            raise CorpusError(msg)

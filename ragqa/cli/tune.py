"""`ragqa tune`: which index, depth, fusion and filter, by cross-validation on questions with gold passages."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragqa.cli.evaluate_retrieval import rankings_of
from ragqa.cli.output import progress_bar, stdout
from ragqa.config import Config, FilteringConfig, FusionConfig, Paths, RetrievalConfig
from ragqa.errors import ConfigError, CorpusError
from ragqa.tables import plain

if TYPE_CHECKING:
    from ragqa.corpus.gold import GoldUnit
    from ragqa.corpus.questions import GoldQuestion
    from ragqa.evaluation.folds import Floats
    from ragqa.evaluation.retrieval import Rankings
    from ragqa.evaluation.tuning import Setting
    from ragqa.indexing import Index

__all__ = ["tune"]

BESIDE = "R@10"  # reported with the measure that decides
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
    from ragqa.corpus.gold import load_gold
    from ragqa.evaluation.filter_tuning import filters, tune_filter
    from ragqa.evaluation.folds import folds_by_gold
    from ragqa.evaluation.journal import write_whole
    from ragqa.evaluation.tuning import tune as tune_ranking
    from ragqa.indexing import open_index

    depths = sorted(set(depth or DEPTHS))
    _check_options(measure, step, beta, depths, out, write)
    opened = {name: open_index(name, Paths.from_env().indexes) for name in dict.fromkeys(index)}
    first = next(iter(opened.values()))
    _check_same_corpus(opened)
    gold, unit = load_gold(questions, first.passages)
    parts = folds_by_gold(gold, folds, seed)
    measures = tuple(dict.fromkeys((measure, BESIDE)))
    columns, settings, values = _measured(opened, gold, unit, depths, step, measures)
    ranked = tune_ranking(values, settings, measures, parts, seed)
    by_fold = [*(fold.chosen for fold in ranked.folds), ranked.final]
    used = by_fold if ranked.test.is_better else [settings[-1]] * len(by_fold)
    candidates = filters(FilteringConfig())
    filtered = tune_filter(_figures(used, columns, gold, beta, unit), candidates, parts, beta, seed)
    report = tune_report.report(opened, questions, gold, unit, ranked, filtered)
    report |= {"n_candidates": len(settings) - 1, "n_filters": len(candidates) - 1, "depths": depths}
    report |= {"step": step, "seed": seed, "n_folds": folds}
    written = json.dumps(report, indent=2) + "\n"
    if out:
        write_whole(out, [written])
    if write:
        command = _command(index, questions, measure, beta, depths, folds, step, seed, write)
        write_whole(
            write, [tune_report.preset_file(write.stem, report, used[-1], ranked, filtered, command, questions)]
        )
    if as_json:
        typer.echo(written, nl=False)
        return
    title = f"{', '.join(opened)}: {len(gold):,} questions, {len(settings) - 1:,} ways to rank, "
    title += f"folds with no gold {unit} on both sides"
    stdout().print(tune_report.table(title, ranked, filtered, [(len(fold.train), len(fold.test)) for fold in parts]))
    for line in tune_report.lines(ranked, filtered, several=len(opened) > 1):
        stdout().print(plain(line))
    if write:
        page = "" if write.parent.resolve() == Paths.from_env().presets.resolve() else tune_report.FOR_THE_PAGE
        stdout().print(plain(f"Preset written: `ragqa ask --preset {shlex.quote(str(write))}`.{page}"))


def _check_options(
    measure: str, step: float, beta: float, depths: list[int], out: Path | None, write: Path | None
) -> None:
    """Raises ConfigError for what is wrong, before anything is ranked."""
    from ragqa.evaluation import tuning
    from ragqa.evaluation.filter_tuning import check_beta
    from ragqa.preset_files import check_name

    tuning.check_measure(measure)
    check_beta(beta)
    tuning.candidates(("any",), step)
    for one in depths:
        RetrievalConfig(top_k=one)
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


def _measured(
    opened: dict[str, Index],
    gold: tuple[GoldQuestion, ...],
    unit: GoldUnit,
    depths: list[int],
    step: float,
    measures: tuple[str, ...],
) -> tuple[dict[str, list[Rankings]], list[Setting], Floats]:
    """Each index's rankings, every way to rank with the default last, and the value of each for each question."""
    import numpy as np

    from ragqa.evaluation.tuning import MOST_CANDIDATES, Setting, candidates, cut, measured

    config = Config.from_env()
    default = Setting(next(iter(opened)), config.retrieval.top_k, FusionConfig())
    deep = replace(config, retrieval=replace(config.retrieval, top_k=max(*depths, default.depth)))
    columns = {name: rankings_of(gold, index, deep)[0] for name, index in opened.items()}
    grids = {name: candidates([column[0].retriever for column in found], step) for name, found in columns.items()}
    n_all = len(depths) * sum(map(len, grids.values()))
    if n_all > MOST_CANDIDATES:
        wanted = f"at most {MOST_CANDIDATES:,} ways to rank, which fit in memory"
        msg = f"--step, --depth and --index must give {wanted}, got {n_all:,}; take a larger step or fewer depths"
        raise ConfigError(msg)
    settings, values = [], []
    with progress_bar() as bar:
        task = bar.add_task(f"{n_all:,} ways to rank", total=len(gold) * (len(depths) * len(opened) + 1))
        blocks = [(name, n, grids[name]) for name in opened for n in depths]
        for name, n, fusions in (*blocks, (default.index, default.depth, (default.fusion,))):
            rows = []
            for row in measured(gold, cut(columns[name], n), fusions, measures, unit):
                rows.append(row)
                bar.advance(task)
            settings += [Setting(name, n, fusion) for fusion in fusions]
            values.append(np.stack(rows))
    return columns, settings, np.concatenate(values, axis=2)


def _figures(
    wanted: list[Setting],
    columns: dict[str, list[Rankings]],
    gold: tuple[GoldQuestion, ...],
    beta: float,
    unit: GoldUnit,
) -> list[Floats]:
    """What every filter keeps under each of these settings: for `tune_filter`."""
    import numpy as np

    from ragqa.evaluation.filter_tuning import filters, kept_figures
    from ragqa.evaluation.tuning import cut
    from ragqa.fusion import fuse

    chosen = [setting for n, setting in enumerate(wanted) if setting not in wanted[:n]]
    figures = []
    with progress_bar() as bar:
        for setting in bar.track(chosen, description="filters"):
            rankings = zip(*cut(columns[setting.index], setting.depth), strict=True)
            fused = (fuse(found, setting.fusion) for found in rankings)
            figures.append(np.stack(list(kept_figures(gold, fused, filters(FilteringConfig()), beta, unit))))
    return [figures[chosen.index(setting)] for setting in wanted]


def _command(
    indexes: list[str],
    questions: Path,
    measure: str,
    beta: float,
    depths: list[int],
    folds: int,
    step: float,
    seed: int,
    write: Path,
) -> str:
    """The command that finds the same again."""
    given = [*(f"--index={name}" for name in indexes), f"--questions={questions}", f"--measure={measure}"]
    given += [f"--beta={beta:g}", *(f"--depth={one}" for one in depths), f"--folds={folds}", f"--step={step:.12g}"]
    return shlex.join(["ragqa", "tune", *given, f"--seed={seed}", f"--write={write}"])

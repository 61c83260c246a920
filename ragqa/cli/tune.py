"""`ragqa tune`: which index, depth, fusion and filter, by cross-validation on questions with gold passages."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.progress import TaskID
from rich.table import Table

from ragqa.cli.options import built
from ragqa.cli.output import options_of, plain, progress_bar, stdout
from ragqa.cli.rankings import rankings_of
from ragqa.corpus.questions import load_gold
from ragqa.errors import ConfigError, CorpusError
from ragqa.evaluation.measures import display_name
from ragqa.index import Index, open_index
from ragqa.infra.files import write_whole
from ragqa.lab.questions import folds_by_gold
from ragqa.lab.training.model_folder import command_line
from ragqa.lab.tuning.search import Doing, SearchSpace, lines, preset_file, report, searched
from ragqa.lab.tuning.tuning import TUNED, RankingSetting, Tuned, TunedFilter
from ragqa.settings.config import Config, FilteringConfig, FusionConfig
from ragqa.settings.paths import Paths
from ragqa.settings.preset_files import check_name
from ragqa.types.streams import returned

FOR_THE_PAGE: Final = " The page shows the preset files in `presets/` under RAGQA_HOME."
NOT_FOUND_BY = ("out", "json")  # options that do not change the result


@built(
    SearchSpace,
    measure=typer.Option(help="Measure of the ranking: AP, R, nDCG, RR or Success at N."),
    beta=typer.Option(help="Beta of the filter's F measure; 2 gives recall twice the weight."),
    folds=typer.Option(min=2, help="Folds of the cross-validation."),
    step=typer.Option(help="Step between weights: 1 divided by a whole number."),
    seed=typer.Option(min=0, help="Seed of the folds and of the test."),
)
def tune(
    ctx: typer.Context,
    index: Annotated[list[str], typer.Option(help="Corpus; repeatable for several indexes of one corpus.")],
    questions: Annotated[Path, typer.Option(help="Questions with gold: ObliQA's schema, JSON lines, PandaChat.")],
    search: SearchSpace,
    depth: Annotated[
        list[int] | None, typer.Option(help="Candidates per ranking to try; repeatable; default: 50, 100 and 200.")
    ] = None,
    write: Annotated[
        Path | None, typer.Option(help="Preset file, NAME.json, for `ragqa ask --preset` and the page.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="JSON file of the result and its evidence.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print that JSON and nothing else.")] = False,
) -> None:
    """Choose how passages are ranked and filtered: settings from one part of the questions, tested on the rest.

    No gold passage is used both for tuning and for testing. The filter is tuned for the tuned ranking, or for the
    default one if no tuned one is significantly better; --write keeps the default of every setting that is not better.
    Rankings are stored under RAGQA_HOME, as by `ragqa eval retrieval`.
    """
    depths = tuple(sorted(set(depth))) if depth else search.depths
    search = replace(search, indexes=tuple(dict.fromkeys(index)), depths=depths)
    _check_files(out, write)
    opened = {name: open_index(name, Paths.from_env().indexes) for name in search.indexes}
    _check_same_corpus(opened)
    gold, unit = load_gold(questions, next(iter(opened.values())).passages)
    parts = folds_by_gold(gold, search.folds, search.seed)
    config = Config.from_env()
    default = RankingSetting(search.indexes[0], config.retrieval.top_k, FusionConfig())
    deep = replace(config, retrieval=replace(config.retrieval, top_k=max(*search.depths, default.depth)))
    columns = {name: rankings_of(gold, one, deep)[0] for name, one in opened.items()}
    with progress_bar() as bar:
        tasks: dict[str, TaskID] = {}

        def show(now: Doing) -> None:
            if now.what not in tasks:
                tasks[now.what] = bar.add_task(now.what)
            bar.update(tasks[now.what], completed=now.done, total=now.total)

        found = returned(searched(search, columns, default, gold, unit, parts), show)
    figures = report(opened, questions, gold, unit, found)
    figures |= {"n_candidates": found.n_rankings - 1, "n_filters": found.n_filters - 1, "depths": search.depths}
    figures |= {"step": search.step, "seed": search.seed, "n_folds": search.folds}
    written = json.dumps(figures, indent=2) + "\n"
    if out:
        write_whole(out, [written])
    if write:
        given = options_of(ctx) | {"index": search.indexes, "depth": search.depths}
        command = command_line("tune", {name: given[name] for name in given if name not in NOT_FOUND_BY})
        preset = preset_file(write.stem, figures, found, command, questions)
        write_whole(write, [preset])
    if as_json:
        typer.echo(written, nl=False)
        return
    title = f"{', '.join(opened)}: {len(gold):,} questions, {found.n_rankings - 1:,} ways to rank, "
    title += f"folds with no gold {unit} on both sides"
    sizes = [(len(fold.train), len(fold.test)) for fold in parts]
    stdout().print(_table(title, found.ranked, found.filtered, sizes))
    for line in lines(found, several=len(opened) > 1):
        stdout().print(plain(line))
    if write:
        page = "" if write.parent.resolve() == Paths.from_env().presets.resolve() else FOR_THE_PAGE
        stdout().print(plain(f"Preset written: `ragqa ask --preset {shlex.quote(str(write))}`.{page}"))


def _check_files(out: Path | None, write: Path | None) -> None:
    """Raises ConfigError, before anything is ranked, for a file that cannot be written."""
    for option, file in (("--out", out), ("--write", write)):
        if file and not file.parent.is_dir():
            msg = f"{option} must be in a folder that exists, got {str(file)!r}; make the folder or choose another"
            raise ConfigError(msg)
    if write:
        if write.suffix != ".json":
            raise ConfigError(f"--write must name a file that ends in .json, got {str(write)!r}; rename it")
        check_name(write.stem)


def _check_same_corpus(opened: Mapping[str, Index]) -> None:
    """Raises CorpusError unless all have the passages of the first."""
    (name, first), *others = opened.items()
    ids = [passage.passage_id for passage in first.passages]
    for other, index in others:
        same_source = index.manifest.corpus_sha256 == first.manifest.corpus_sha256
        if not same_source or [passage.passage_id for passage in index.passages] != ids:
            raise CorpusError(
                f"expected indexes of one corpus with the same passages, found that {name!r} has {len(ids):,} and "
                f"{other!r} {len(index.passages):,} others; compare indexes that differ in analyser or encoder alone"
            )


def _table(title: str, ranked: Tuned, filtered: TunedFilter, sizes: list[tuple[int, int]]) -> Table:
    """The settings that each fold chose, with their and the defaults' figures on the questions of its test part."""
    name, f_name = display_name(ranked.measure), filtered.measure
    found = Table(title=plain(title))
    found.add_column("fold")
    rankings = list(ranked.final.fusion.weights)  # of every candidate
    columns = ["train", "test", "index", "depth", *rankings, f"{name} on test", "defaults"]
    for column in (*columns, *(one.name for one in TUNED), f"{f_name} on test", "default"):
        found.add_column(plain(column), justify="right")
    rows = zip(ranked.folds, filtered.folds, sizes, strict=True)
    for number, (fold, kept, counts) in enumerate(rows, start=1):
        cells = [*(f"{count:,}" for count in counts), *_cells(fold.chosen), f"{fold.tuned:.4f}", f"{fold.default:.4f}"]
        cells += [*_filter_cells(kept.chosen), f"{kept.tuned:.4f}", f"{kept.default:.4f}"]
        found.add_row(str(number), *map(plain, cells))
    found.add_section()
    found.add_row("all", "", "", *map(plain, _cells(ranked.final)), "", "", *_filter_cells(filtered.final), "", "")
    return found


def _cells(setting: RankingSetting) -> list[str]:
    weights = setting.fusion.weights.values()
    shares = ["RRF" if setting.fusion.method == "rrf" else f"{weight:.3g}" for weight in weights]
    return [setting.index, str(setting.depth), *shares]


def _filter_cells(chosen: FilteringConfig) -> list[str]:
    return [one.text(getattr(chosen, one.field)) for one in TUNED]

"""`ragqa eval retrieval`: rankings of an index, alone and fused, measured side by side."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress
from rich.table import Table

from ragqa.cli.output import progress_bar, stderr, stdout
from ragqa.config import Config, FusionConfig, RerankingConfig
from ragqa.errors import ConfigError
from ragqa.paths import Paths
from ragqa.preset_files import find_preset
from ragqa.presets import Preset
from ragqa.tables import plain

if TYPE_CHECKING:
    from ragqa.corpus.gold import GoldUnit
    from ragqa.corpus.questions import GoldQuestion
    from ragqa.evaluation.retrieval import Comparison, Rankings, Result
    from ragqa.indexing import Index
    from ragqa.protocols import Retriever

SHOWN = {
    "passage": ("R@10", "AP@10", "nDCG@10", "RR@10", "Success@1", "R@100"),
    "document": ("Success@1", "Success@2", "R@2", "R@5", "R@10", "AP@10"),
}
DEFAULT = "fused"
BEFORE = ", before reranking"  # after the name of a preset that reranks: its fused ranking


def retrieval(
    questions: Annotated[Path, typer.Option(help="Questions with gold: ObliQA's schema, JSON lines, PandaChat.")],
    index: Annotated[str, typer.Option(help="Which corpus.")] = "rulebook",
    preset: Annotated[
        list[str] | None, typer.Option(help="Measure this preset too, or a file of one; repeatable.")
    ] = None,
    baseline: Annotated[str, typer.Option(help="What the others are compared with.")] = DEFAULT,
    reranker: Annotated[
        str, typer.Option(help="Rerank the --baseline by this name, folder or API, and measure that too.")
    ] = "",
    rerank_depth: Annotated[int, typer.Option(help="Passages it reads per question.")] = RerankingConfig().depth,
    rerank_weight: Annotated[
        list[float] | None, typer.Option(help="Its share of the score, 0 to 1, 1 where not given; repeatable.")
    ] = None,
    fan_out: Annotated[
        bool, typer.Option("--fan-out", help="Take the questions apart by rules, and measure that beside --baseline.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for TREC runs, results per question and the report.")] = None,
    docids: Annotated[
        Path | None,
        typer.Option(help="ObliQA's documents: runs name their item IDs, as the shared task asks."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N questions.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Measure each ranking of an index and their fusions on questions with gold passages.

    A preset that reranks has two rows, the one before reranking named so.
    Rankings are kept under RAGQA_HOME, so that only a changed index, encoder or question is ranked again.
    """
    from ragqa.corpus.gold import load_gold
    from ragqa.corpus.obliqa import load_item_ids
    from ragqa.evaluation.retrieval import compare
    from ragqa.evaluation.retrieval_report import report_of, write_outputs
    from ragqa.indexing import open_index

    config, reranking = Config.from_env(), RerankingConfig(reranker, rerank_depth)
    weights = [replace(reranking, weight=weight).weight for weight in rerank_weight or [reranking.weight]]
    item_ids = load_item_ids(docids) if docids else None
    opened = open_index(index, Paths.from_env().indexes)
    chosen = [_fitting(find_preset(name, Paths.from_env().presets), opened) for name in preset or []]
    everything, unit = load_gold(questions, opened.passages)
    gold = everything[:limit]
    deepest = max(config.retrieval.top_k, *(one.retrieval.top_k for one in chosen), 0)
    deep = replace(config, retrieval=replace(config.retrieval, top_k=deepest))
    retrievers = retrievers_of(opened, deep)
    columns, milliseconds = rankings_of(gold, opened, deep, retrievers)
    results = _results(gold, columns, config.retrieval.top_k, chosen, unit)
    reranks = {one.name: one for one in chosen if one.reranking.model}
    _check_baseline(baseline, [result.name for result in results], reranks, further=bool(reranking.model) or fan_out)
    for one in reranks.values():
        from ragqa.cli.rerank_results import reranked_results

        fused = next(result.rankings for result in results if result.name == one.name + BEFORE)
        found, spent = reranked_results(gold, opened, fused, one.reranking, [one.reranking.weight], unit)
        results = (*results, *(replace(result, name=one.name) for result in found))
        milliseconds[one.name] = spent
    if reranking.model:
        from ragqa.cli.rerank_results import reranked_results

        before = next(result.rankings for result in results if result.name == baseline)
        more, spent = reranked_results(gold, opened, before, reranking, weights, unit, baseline)
        results, milliseconds = (*results, *more), milliseconds | {result.name: spent for result in more}
    fanned = None
    if fan_out:
        from ragqa.cli.fan_out_results import fan_out_result
        from ragqa.evaluation.fan_out import compare_fan_out

        single = next(result for result in results if result.name == baseline)
        alone = {retriever.name: FusionConfig.of("wsum", **{retriever.name: 1.0}) for retriever in retrievers}
        fusion = (alone | {_fused_name(one): one.fusion for one in chosen}).get(baseline, FusionConfig())
        more_result, spent_ms, n_asked = fan_out_result(gold, retrievers, single, config, fusion, unit)
        results, milliseconds = (*results, more_result), milliseconds | {more_result.name: spent_ms}
        fanned = (compare_fan_out(single, more_result), n_asked, spent_ms)
    comparisons = compare(results, baseline)
    report = report_of(index, opened, len(gold), results, comparisons, milliseconds)
    if fanned:
        report["fan_out"] = {"sub_questions": fanned[1], "measures": [asdict(measure) for measure in fanned[0]]}
    if out:
        write_outputs(out, gold, results, report, item_ids)
    if as_json:
        typer.echo(json.dumps(report, indent=2, ensure_ascii=False))
        return
    size = f"gold {unit}s, {len(opened.passages):,} passages, {opened.manifest.size_bytes / 1e6:.1f} MB"
    title = f"{index}: {len(gold):,} questions, {size}"
    stdout().print(_table(title, results, comparisons, baseline, milliseconds, unit))
    if fanned:
        from ragqa.cli.fan_out_results import fan_out_table

        stdout().print(fan_out_table(fanned[0], baseline, fanned[1], fanned[2]))


def _fitting(preset: Preset, index: Index) -> Preset:
    """The preset under the names of this index's rankings. Raises ConfigError where the index lacks one."""
    from ragqa.retrieval.names import fitting_fusion

    manifest = index.manifest
    fusion = fitting_fusion(preset.fusion, manifest.retrievers, manifest.encoder, manifest.name)
    return replace(preset, fusion=fusion)


def _results(
    gold: tuple[GoldQuestion, ...], columns: list[Rankings], depth: int, presets: list[Preset], unit: GoldUnit
) -> tuple[Result, ...]:
    """Each ranking alone and the default fusion at ``depth`` candidates, then each preset's fusion at its own."""
    from ragqa.evaluation.retrieval import cut, evaluate

    by_name = {_fused_name(preset): preset for preset in presets}
    at_depth = {name: preset.fusion for name, preset in by_name.items() if preset.retrieval.top_k == depth}
    results = list(evaluate(gold, cut(columns, depth), {DEFAULT: FusionConfig(), **at_depth}, unit))
    for name, preset in by_name.items():
        if name not in at_depth:
            results.append(evaluate(gold, cut(columns, preset.retrieval.top_k), {name: preset.fusion}, unit)[-1])
    return tuple(results)


def _fused_name(preset: Preset) -> str:
    return preset.name + BEFORE if preset.reranking.model else preset.name


def _check_baseline(baseline: str, measured: Sequence[str], reranks: Collection[str], *, further: bool) -> None:
    """Raises ConfigError, before a reranker is asked, unless there is this ranking and it can be worked on further."""
    if further and baseline in reranks:
        msg = (
            f"--baseline {baseline!r} is reranked already, and --reranker and --fan-out start from a fused ranking; "
            f"name {baseline + BEFORE!r}"
        )
        raise ConfigError(msg)
    if baseline not in {*measured, *reranks}:
        names = ", ".join(map(repr, (*measured, *reranks)))
        msg = f"--baseline must be one of {names}, got {baseline!r}; correct it or add its --preset"
        raise ConfigError(msg)


def retrievers_of(index: Index, config: Config) -> tuple[Retriever, ...]:
    """The index's retrievers with their models, loaded (seconds)."""
    from ragqa.loading import load_encoder, load_further
    from ragqa.retrieval import retrievers_for

    paths, manifest = Paths.from_env(), index.manifest
    with stderr().status("Loading the encoder"):
        encoder = load_encoder(manifest.encoder, paths=paths)
        models = load_further([ranking.option for ranking in manifest.rankings], paths)
    return retrievers_for(index, encoder, config.retrieval, models)


def rankings_of(
    gold: tuple[GoldQuestion, ...], index: Index, config: Config, retrievers: Sequence[Retriever] | None = None
) -> tuple[list[Rankings], dict[str, float | None]]:
    """Each retriever's rankings, and its median milliseconds per question where it had to rank.

    ``retrievers`` are those of `retrievers_of`, loaded here where not given.
    """
    from ragqa.evaluation.ranking_cache import RankingCache
    from ragqa.evaluation.retrieval import identity_of, rescore_all, retrieve_all
    from ragqa.protocols import Rescorer

    retrievers = retrievers or retrievers_of(index, config)
    cache = RankingCache(Paths.from_env().home / "rankings")
    columns: dict[str, Rankings] = {}
    milliseconds: dict[str, float | None] = {}
    with progress_bar() as bar:
        for retriever in sorted(retrievers, key=lambda retriever: isinstance(retriever, Rescorer)):
            name = retriever.name
            if isinstance(retriever, Rescorer):
                steps: Any = rescore_all(gold, retriever, list(columns.values()))
            else:
                identity = identity_of(retriever, index, config)
                steps = retrieve_all(gold, index, retriever, identity, config.retrieval.top_k, cache)
            columns[name], milliseconds[name] = drawn(steps, bar, name, len(gold))
    return [columns[retriever.name] for retriever in retrievers], milliseconds


def drawn(steps: Any, bar: Progress, name: str, total: int) -> Any:  # noqa: ANN401
    """What the generator returns, while a bar shows the numbers it yields, of ``total``."""
    task = bar.add_task(name, total=total)
    while True:
        try:
            bar.update(task, completed=next(steps))
        except StopIteration as stop:
            return stop.value


def _table(
    title: str,
    results: tuple[Result, ...],
    comparisons: tuple[Comparison, ...],
    baseline: str,
    milliseconds: dict[str, float | None],
    unit: GoldUnit,
) -> Table:
    from ragqa.evaluation.measures import display_name
    from ragqa.evaluation.retrieval import TESTED

    table = Table(title=plain(title))
    table.add_column("ranking")
    for measure in SHOWN[unit]:
        table.add_column(display_name(measure), justify="right")
    for measure in TESTED:
        table.add_column(plain(f"Δ {display_name(measure)} (p)"), justify="right")
    table.add_column("ms", justify="right")
    by_pair = {(c.name, c.measure): c for c in comparisons}
    for result in results:
        cells = [f"{result.means[measure]:.3f}" for measure in SHOWN[unit]]
        for measure in TESTED:
            found = by_pair.get((result.name, measure))
            cells.append(f"{found.test.mean_difference:+.3f} ({found.adjusted_p:.3f})" if found else "")
        spent = milliseconds.get(result.name)
        table.add_row(plain(result.name), *cells, f"{spent:.1f}" if spent is not None else "")
    table.caption = plain(
        f"Δ and p against {baseline}: paired permutation test, p adjusted for all of them (Holm). "
        "ms: median per question, of a reranked one for the reranking alone; none where it was kept from before."
    )
    return table

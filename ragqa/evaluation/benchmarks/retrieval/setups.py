"""The configurations to measure: each ranking alone, fusions, and reranking and fan-out of one of them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ragqa.corpus.questions import GoldUnit
from ragqa.errors import ConfigError
from ragqa.evaluation.benchmark import Item, Json, Settings, Task
from ragqa.evaluation.benchmarks.retrieval.comparing import ids_of, stem_of
from ragqa.evaluation.benchmarks.retrieval.rankings import Ranker, cut, unpacked
from ragqa.fusion import fuse, rerank
from ragqa.generation.fanout.generator import searched_by_rules
from ragqa.generation.fanout.merging import Tree, merge
from ragqa.index import Index
from ragqa.infra.journal import digest
from ragqa.plugins.protocols import Reranker
from ragqa.retrieval.ranking import fitting_fusion, own_weights
from ragqa.retrieval.reranker import TextReranker
from ragqa.settings.config import Config, FilteringConfig, FusionConfig, RerankingConfig
from ragqa.settings.presets import Preset
from ragqa.types import Ranking

FUSED: Final = "fused"  # name of the default fusion
BEFORE: Final = ", before reranking"  # suffix for the fused ranking of a preset that reranks


@dataclass(frozen=True, slots=True)
class Setup:
    """One configuration: a ranking alone, or a fusion at its depth, which may be reranked with a weight or fanned out.

    ``reranking`` and ``fan_out`` start from the configuration called ``base``.
    """

    name: str
    fusion: FusionConfig | None = None
    top_k: int = 0
    base: str = ""
    reranking: RerankingConfig | None = None
    fan_out: bool = False


@dataclass(frozen=True, slots=True)
class RetrievalContext:
    """The context of a run. ``shown`` is the configuration whose values are in rows."""

    index: Index
    ranker: Ranker
    setups: tuple[Setup, ...]
    shown: str
    baseline: str
    unit: GoldUnit
    config: Config
    rerankers: Mapping[str, Reranker] = field(default_factory=dict)
    docids: Mapping[str, str] | None = None


def rankings_of(task: Task, item: Item, solution: Json, notes: dict[str, Any], only: str = "") -> dict[str, Ranking]:
    """The ranking of each configuration by name, or only those of ``only`` and its base.

    ``notes`` holds the results of slow steps; missing ones are computed and added.
    """
    loaded: RetrievalContext = task.context
    deep = tuple(unpacked(entry, loaded.index) for entry in solution["rankings"])
    found: dict[str, Ranking] = {}
    bases = {setup.name: setup.base for setup in loaded.setups}
    for setup in loaded.setups:
        if only and setup.name not in (only, bases.get(only)):
            continue
        if setup.fan_out:
            found[setup.name] = _fanned_out(loaded, item, found[setup.base], setup, notes)
        elif setup.reranking:
            found[setup.name] = _reranked(loaded, item, found[setup.base], setup.reranking, notes)
        elif setup.fusion is None:
            found[setup.name] = next(one for one in cut(deep, setup.top_k) if one.retriever == setup.name)
        else:
            found[setup.name] = fuse(cut(deep, setup.top_k), setup.fusion)
    return found


def _reranked(
    loaded: RetrievalContext, item: Item, fused: Ranking, config: RerankingConfig, notes: dict[str, Any]
) -> Ranking:
    reranker = loaded.rerankers[config.model]
    read: dict[str, Any] = {"hits": ids_of(fused, "passage")[: config.depth]}
    if not isinstance(reranker, TextReranker):  # may read the scores of all hits, which other weights change
        read["scores"] = [[hit.passage.passage_id, hit.score] for hit in fused.hits]
    key = digest({"model": config.model, "depth": config.depth, **read})
    if key not in notes:
        scores, seconds = loaded.ranker.read_again(reranker, item.question.text, fused, config.depth)
        notes[key] = {"scores": scores, "seconds": seconds, "model": config.model, "depth": config.depth}
    return rerank(fused, notes[key]["scores"], config)


def _fanned_out(loaded: RetrievalContext, item: Item, single: Ranking, setup: Setup, notes: dict[str, Any]) -> Ranking:
    if setup.name not in notes:
        began = time.perf_counter()
        tree = Tree(single, FilteringConfig())
        for _ in searched_by_rules(
            item.question, tree, lambda text: _search(loaded, text, setup), loaded.config.generation.max_sub_questions
        ):
            pass
        merged = merge(single, [node.found for node in tree.nodes])
        notes[setup.name] = {
            "ranking": loaded.ranker.packed(merged),
            "asked": len(tree.nodes),
            "seconds": time.perf_counter() - began,
        }
    return unpacked(notes[setup.name]["ranking"], loaded.index)


def _search(loaded: RetrievalContext, question: str, setup: Setup) -> Ranking:
    rankings = cut(loaded.ranker.rank(question).rankings, setup.top_k)
    return fuse(rankings, setup.fusion or FusionConfig())


def setups_of(
    settings: Settings, names: Sequence[str], presets: Sequence[Preset], config: Config
) -> tuple[tuple[Setup, ...], str]:
    """Each ranking alone, the default fusion, each preset, and reranking and fan-out of the baseline; then the name of
    the baseline.

    Raises ConfigError for an unknown baseline, or if two configurations have one name or one name of files.
    """
    top_k = config.retrieval.top_k
    setups = [Setup(name, None, top_k) for name in names]
    setups.append(Setup(FUSED, replace(FusionConfig(), weights=own_weights(FusionConfig().weights, names)), top_k))
    reranks = []
    for preset in presets:
        name = preset.name + BEFORE if preset.reranking.model else preset.name
        setups.append(Setup(name, preset.fusion, preset.retrieval.top_k))
        if preset.reranking.model:
            reranks.append(Setup(preset.name, None, 0, name, preset.reranking))
    baseline, model = settings["baseline"], settings["reranker"]
    further = bool(model) or settings["fan_out"]
    _check_baseline(baseline, [one.name for one in setups], [one.name for one in reranks], further=further)
    setups += reranks
    if model:
        for weight in dict.fromkeys(settings["rerank_weight"] or [RerankingConfig().weight]):
            reranking = RerankingConfig(model, settings["rerank_depth"], weight)
            setups.append(Setup(f"{baseline}, reranked {weight:g}", None, 0, baseline, reranking))
    if settings["fan_out"]:
        base = next(one for one in setups if one.name == baseline)
        fusion = base.fusion or FusionConfig.of("wsum", **{baseline: 1.0})
        setups.append(Setup(f"{baseline}, fan-out", fusion, base.top_k, baseline, fan_out=True))
    stems = [stem_of(one.name) for one in setups]
    twice = [one.name for one, stem in zip(setups, stems, strict=True) if stems.count(stem) > 1]
    if twice:
        raise ConfigError(
            f"expected presets whose names differ in letters or digits, found {' and '.join(map(repr, twice))}: their "
            "figures and files would be taken for each other's; rename one or leave it out"
        )
    return tuple(setups), baseline


def _check_baseline(baseline: str, measured: Sequence[str], reranks: Sequence[str], *, further: bool) -> None:
    """Raises ConfigError, before a reranker is loaded, unless this baseline exists and can be used."""
    if further and baseline in reranks:
        raise ConfigError(
            f"--baseline {baseline!r} is reranked already, and --reranker and --fan-out start from a fused ranking; "
            f"name {baseline + BEFORE!r}"
        )
    if baseline not in {*measured, *reranks}:
        names = ", ".join(map(repr, (*measured, *reranks)))
        raise ConfigError(f"--baseline must be one of {names}, got {baseline!r}; correct it or add its --preset")


def fitting(preset: Preset, index: Index) -> Preset:
    """The preset with the names of this index's rankings. Raises ConfigError if the index lacks one."""
    manifest = index.manifest
    fusion = fitting_fusion(preset.fusion, manifest.retrievers, manifest.encoder, manifest.name)
    return replace(preset, fusion=fusion)

"""The search behind `ragqa tune`: measures every way to rank and to filter, and chooses by cross-validation.

The result is reported in sentences, as JSON, and as a preset with its evidence.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ragqa.corpus.questions import GoldQuestion, GoldUnit
from ragqa.errors import ConfigError
from ragqa.evaluation.benchmarks.retrieval.rankings import Rankings, cut_columns
from ragqa.evaluation.measures import check_beta, display_name, kept_figures
from ragqa.evaluation.significance import SIGNIFICANT, PairedTest
from ragqa.fusion import fuse
from ragqa.index import Index
from ragqa.infra.version import __version__
from ragqa.lab.questions import Floats, Fold
from ragqa.lab.tuning import tuning
from ragqa.lab.tuning.tuning import RankingSetting, Tuned, TunedFilter
from ragqa.models import fingerprint
from ragqa.settings.config import FilteringConfig, FusionConfig, RetrievalConfig
from ragqa.settings.preset_files import preset_text
from ragqa.settings.presets import Preset

BESIDE = "R@10"  # reported with the measure that decides


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """The candidates and the criteria of a search. Raises ConfigError for invalid values, before anything is ranked."""

    indexes: tuple[str, ...] = ()  # of one corpus
    measure: str = "AP@10"  # decides the ranking
    beta: float = 2.0  # of the F that decides the filter
    depths: tuple[int, ...] = (50, 100, 200)  # candidates per ranking
    folds: int = 5
    step: float = 0.05  # between two weights
    seed: int = 0  # of the folds and of the test

    def __post_init__(self) -> None:
        tuning.check_measure(self.measure)
        check_beta(self.beta)
        tuning.candidates(("any",), self.step)
        for depth in self.depths:
            RetrievalConfig(top_k=depth)

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures, with the deciding one first."""
        return tuple(dict.fromkeys((self.measure, BESIDE)))


@dataclass(frozen=True, slots=True)
class Doing:
    """The progress of a search: ``done`` of ``total`` steps of ``what``."""

    what: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class TunedSettings:
    """The chosen settings. ``setting`` is the ranking that the final filter was tuned for."""

    ranked: Tuned
    filtered: TunedFilter
    setting: RankingSetting
    n_rankings: int  # that were compared, including the default
    n_filters: int


def searched(
    search: SearchSpace,
    columns: Mapping[str, Sequence[Rankings]],
    default: RankingSetting,
    gold: Sequence[GoldQuestion],
    unit: GoldUnit,
    parts: Sequence[Fold],
) -> Generator[Doing, None, TunedSettings]:
    """Tunes the ranking, then the filter for the tuned ranking, or for the default one if that was not beaten.

    ``columns`` are each index's rankings, at least as deep as the deepest of ``search`` and ``default``. Raises
    ConfigError if there are more ways to rank than fit in memory.
    """
    settings, values = yield from _measured(search, columns, default, gold, unit)
    ranked = tuning.tune(values, settings, search.measures, parts, search.seed)
    by_fold = [*(fold.chosen for fold in ranked.folds), ranked.final]
    used = by_fold if ranked.test.is_better else [default] * len(by_fold)
    candidates = tuning.filters(FilteringConfig())
    figures: dict[int, Floats] = {}  # by position of the setting in ``used``; equal settings are measured once
    for place, setting in enumerate(used):
        yield Doing("filters", place, len(used))
        if (first := used.index(setting)) not in figures:
            rankings = zip(*cut_columns(columns[setting.index], setting.depth), strict=True)
            fused = (fuse(found, setting.fusion) for found in rankings)
            figures[first] = np.stack(list(kept_figures(gold, fused, candidates, search.beta, unit)))
    yield Doing("filters", len(used), len(used))
    of_each = [figures[used.index(setting)] for setting in used]
    filtered = tuning.tune_filter(of_each, candidates, parts, search.beta, search.seed)
    return TunedSettings(ranked, filtered, used[-1], len(settings), len(candidates))


def _measured(
    search: SearchSpace,
    columns: Mapping[str, Sequence[Rankings]],
    default: RankingSetting,
    gold: Sequence[GoldQuestion],
    unit: GoldUnit,
) -> Generator[Doing, None, tuple[list[RankingSetting], Floats]]:
    """Every way to rank with the default last, and the value of each for each question."""
    grids = {
        name: tuning.candidates([one[0].retriever for one in found], search.step) for name, found in columns.items()
    }
    n_all = len(search.depths) * sum(map(len, grids.values()))
    if n_all > tuning.MOST_CANDIDATES:
        wanted = f"at most {tuning.MOST_CANDIDATES:,} ways to rank, which fit in memory"
        msg = f"--step, --depth and --index must give {wanted}, got {n_all:,}; take a larger step or fewer depths"
        raise ConfigError(msg)
    settings, values, done = [], [], 0
    blocks = [(name, depth, fusions) for name, fusions in grids.items() for depth in search.depths]
    blocks.append((default.index, default.depth, (default.fusion,)))
    for name, depth, fusions in blocks:
        rows = []
        for row in tuning.measured(gold, cut_columns(columns[name], depth), fusions, search.measures, unit):
            rows.append(row)
            done += 1
            yield Doing(f"{n_all:,} ways to rank", done, len(gold) * len(blocks))
        settings += [RankingSetting(name, depth, fusion) for fusion in fusions]
        values.append(np.stack(rows))
    return settings, np.concatenate(values, axis=2)


# What was found, as JSON and as a preset ------------------------------------------------------------------------------


def report(
    opened: Mapping[str, Index], file: Path, gold: Sequence[GoldQuestion], unit: GoldUnit, found: TunedSettings
) -> dict[str, Any]:
    """All results, for JSON; ``better`` is what `lines` says in words. The same run gives the same report."""
    ranked, filtered = found.ranked, found.filtered
    best, chosen = opened[ranked.final.index], ranked.final
    indexes = [{"name": name, "fingerprint": _fingerprint(one)} for name, one in opened.items()]
    return {
        "index": {"name": chosen.index, "fingerprint": _fingerprint(best), "n_passages": len(best.passages)},
        "indexes": indexes,
        "encoder": {"name": best.manifest.encoder, "fingerprint": best.manifest.encoder_fingerprint},
        "libraries": best.manifest.libraries,
        "questions": _about(file, gold, unit),
        **_setting(chosen),
        "measure": ranked.measure,
        "better": ranked.test.is_better,
        "evidence": {
            "out_of_fold": {"tuned": ranked.tuned, "default": ranked.default},
            "difference": asdict(ranked.test),
            "folds": [
                {"index": fold.chosen.index, **_setting(fold.chosen), "tuned": fold.tuned, "default": fold.default}
                for fold in ranked.folds
            ],
        },
        "filter": {
            **asdict(filtered.final),
            "measure": filtered.measure,
            "better": filtered.test.is_better,
            "out_of_fold": {"tuned": filtered.tuned, "default": filtered.default},
            "difference": asdict(filtered.test),
            "folds": [{**asdict(fold.chosen), "tuned": fold.tuned, "default": fold.default} for fold in filtered.folds],
        },
    }


def preset_file(name: str, figures: Mapping[str, Any], found: TunedSettings, command: str, questions: Path) -> str:
    """The text of a preset file with the chosen ranking, and with the tuned filter if it is significantly better.

    It includes all evidence for and against them; ``figures`` are the `report`.
    """
    asked = f"{figures['questions']['n_questions']:,} questions of {figures['questions']['name']}"
    ranking, ranked, filtered = found.setting, found.ranked, found.filtered
    name_of, measure = display_name(ranked.measure), ranked.measure
    of_ranking = _in_short("ranking", name_of, ranked.tuned[measure], ranked.default[measure], ranked.test)
    of_filter = _in_short("filter", filtered.measure, filtered.tuned["F"], filtered.default["F"], filtered.test)
    preset = Preset(
        name,
        f"Tuned on index {ranking.index} by {asked}, each measured where it was not learnt from. {of_ranking}. "
        f"{of_filter}.",
        RetrievalConfig(top_k=ranking.depth),
        FusionConfig(ranking.fusion.method, _shares(ranking.fusion)),
        filtered.final if filtered.test.is_better else FilteringConfig(),
        ranking.index,
    )
    evidence = {
        "command": command,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"ragqa": __version__, "python": platform.python_version()},
        "questions_file_sha256": fingerprint(questions),
    }
    return preset_text(preset, evidence | dict(figures))


def _in_short(what: str, measure: str, tuned: float, default: float, test: PairedTest) -> str:
    held = "Tuned" if test.is_better else "Default"
    return f"{held} {what}: {measure} tuned {tuned:.3f}, default {default:.3f} (p = {test.p_value:.4f})"


def _about(file: Path, gold: Sequence[GoldQuestion], unit: str) -> dict[str, Any]:
    """A description of the questions; the sha256 is of their texts and gold ids, in order."""
    whole = json.dumps([[item.question.text, sorted(item.gold)] for item in gold])
    sha256 = hashlib.sha256(whole.encode("ascii")).hexdigest()
    return {"name": file.name, "n_questions": len(gold), "gold": unit, "sha256": sha256}


def _setting(setting: RankingSetting) -> dict[str, Any]:
    return {"depth": setting.depth, "method": setting.fusion.method, "weights": _shares(setting.fusion)}


def _fingerprint(index: Index) -> str:
    """The sha256 of the index's files' sha256s, one per line, in the manifest's order."""
    return hashlib.sha256("\n".join(entry.sha256 for entry in index.manifest.files).encode("ascii")).hexdigest()


def _shares(fusion: FusionConfig) -> dict[str, float]:
    return {name: weight for name, weight in fusion.weights.items() if weight > 0}


def lines(found: TunedSettings, *, several: bool) -> list[str]:
    """The figures and conclusions in sentences; ``several`` tells whether several indexes were compared."""
    ranked, filtered = found.ranked, found.filtered
    means = [
        f"Each question where it is tested: {display_name(name)} {ranked.tuned[name]:.4f}, "
        f"of the defaults {ranked.default[name]:.4f}."
        for name in ranked.tuned
    ]
    kept = [
        f"{word} keeps {figures['kept']:.2f} passages, precision {figures['precision']:.4f}, recall "
        f"{figures['recall']:.4f}, {filtered.measure} {figures['F']:.4f}."
        for word, figures in (("The tuned filter", filtered.tuned), ("The default filter", filtered.default))
    ]
    index = f"--index {ranked.final.index} " if several else ""
    of = "tuned" if ranked.test.is_better else "default"
    return [
        *means,
        f"Difference in {display_name(ranked.measure)}: {_tested(ranked.test)}",
        _verdict(ranked.test, "ranking", "defaults"),
        f"Best ranking on all questions: `ragqa ask {index}{_options(ranked.final.fusion)}` of {ranked.final.depth} "
        "candidates each.",
        *kept,
        f"Difference in {filtered.measure}: {_tested(filtered.test)}",
        _verdict(filtered.test, "filter", "default filter"),
        f"Best filter on all questions, for the {of} ranking: `{_filter_options(filtered.final)}`.",
    ]


def _tested(test: PairedTest) -> str:
    return (
        f"{test.mean_difference:+.4f}, 95 % interval [{test.low:+.4f}, {test.high:+.4f}], p = {test.p_value:.4f} "
        "(paired permutation test)."
    )


def _options(fusion: FusionConfig) -> str:
    """The options of `ragqa ask` for this fusion."""
    weights = " ".join(f"--weight {name}={weight:.6g}" for name, weight in _shares(fusion).items())
    return f"--fusion {fusion.method} {weights}"


def _filter_options(chosen: FilteringConfig) -> str:
    return " ".join(f"--{one.key.replace('_', '-')} {getattr(chosen, one.field):g}" for one in tuning.TUNED)


def _verdict(test: PairedTest, what: str, other: str) -> str:
    if test.is_better:
        return f"The tuned {what} is better than the {other} beyond chance: worth using on this corpus."
    if test.p_value < SIGNIFICANT:
        return f"The tuned {what} is worse than the {other} on questions it was not chosen on: keep the {other}."
    return f"The tuned {what} is not better than the {other} beyond chance: keep the {other}."

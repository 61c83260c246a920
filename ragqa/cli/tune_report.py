"""What `ragqa tune` found: as a table and sentences, as JSON, and as a preset with its evidence."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table

from ragqa import __version__
from ragqa.config import FilteringConfig, FusionConfig, RetrievalConfig
from ragqa.preset_files import preset_text
from ragqa.presets import Preset
from ragqa.tables import plain

if TYPE_CHECKING:
    from ragqa.corpus.questions import GoldQuestion, GoldUnit
    from ragqa.evaluation.filter_tuning import TunedFilter
    from ragqa.evaluation.significance import PairedTest
    from ragqa.evaluation.tuning import Setting, Tuned
    from ragqa.indexing import Index

FOR_THE_PAGE: Final = " The page shows the preset files in `presets/` under RAGQA_HOME."


def report(
    opened: Mapping[str, Index],
    file: Path,
    gold: Sequence[GoldQuestion],
    unit: GoldUnit,
    ranked: Tuned,
    filtered: TunedFilter,
) -> dict[str, Any]:
    """Everything found, for JSON; ``better`` is what `lines` says in words. The same run gives the same report."""
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
            "measure": _f_name(filtered),
            "better": filtered.test.is_better,
            "out_of_fold": {"tuned": filtered.tuned, "default": filtered.default},
            "difference": asdict(filtered.test),
            "folds": [{**asdict(fold.chosen), "tuned": fold.tuned, "default": fold.default} for fold in filtered.folds],
        },
    }


def preset_file(
    name: str,
    found: Mapping[str, Any],
    ranking: Setting,
    ranked: Tuned,
    filtered: TunedFilter,
    command: str,
    questions: Path,
) -> str:
    """The text of a preset file: ``ranking``, and the tuned filter where it is better beyond chance, else the default.

    With it goes all that speaks for and against them; ``found`` is the `report`.
    """
    from ragqa.models import fingerprint

    asked = f"{found['questions']['n_questions']:,} questions of {found['questions']['name']}"
    preset = Preset(
        name,
        f"Tuned on index {ranking.index} by {asked}, each measured where it was not learnt from. {_in_short(ranked)}. "
        f"{_in_short_filter(filtered)}.",
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
    return preset_text(preset, evidence | dict(found))


def _in_short(ranked: Tuned) -> str:
    from ragqa.evaluation.measures import display_name

    name, held = ranked.measure, "Tuned" if ranked.test.is_better else "Default"
    figures = f"{display_name(name)} tuned {ranked.tuned[name]:.3f}, default {ranked.default[name]:.3f}"
    return f"{held} ranking: {figures} (p = {ranked.test.p_value:.4f})"


def _in_short_filter(filtered: TunedFilter) -> str:
    held = "Tuned" if filtered.test.is_better else "Default"
    figures = f"{_f_name(filtered)} tuned {filtered.tuned['F']:.3f}, default {filtered.default['F']:.3f}"
    return f"{held} filter: {figures} (p = {filtered.test.p_value:.4f})"


def _about(file: Path, gold: Sequence[GoldQuestion], unit: str) -> dict[str, Any]:
    """The questions in a few words; the sha256 is that of their texts and gold ids, in their order."""
    whole = json.dumps([[item.question.text, sorted(item.gold)] for item in gold])
    sha256 = hashlib.sha256(whole.encode("ascii")).hexdigest()
    return {"name": file.name, "n_questions": len(gold), "gold": unit, "sha256": sha256}


def _setting(setting: Setting) -> dict[str, Any]:
    return {"depth": setting.depth, "method": setting.fusion.method, "weights": _shares(setting.fusion)}


def _fingerprint(index: Index) -> str:
    """The sha256 of the sha256 of the index's files, one a line, in the manifest's order."""
    return hashlib.sha256("\n".join(entry.sha256 for entry in index.manifest.files).encode("ascii")).hexdigest()


def _shares(fusion: FusionConfig) -> dict[str, float]:
    return {name: weight for name, weight in fusion.weights.items() if weight > 0}


def _f_name(filtered: TunedFilter) -> str:
    return f"F{filtered.beta:g}"


def table(title: str, ranked: Tuned, filtered: TunedFilter, sizes: list[tuple[int, int]]) -> Table:
    """What each fold chose, and its figures on the questions it was not chosen on, those of the defaults beside."""
    from ragqa.evaluation.measures import display_name

    name, f_name = display_name(ranked.measure), _f_name(filtered)
    found = Table(title=plain(title))
    found.add_column("fold")
    rankings = list(ranked.final.fusion.weights)  # of every candidate
    columns = ["train", "test", "index", "depth", *rankings, f"{name} on test", "defaults"]
    for column in (*columns, "threshold", "max drop", f"{f_name} on test", "default"):
        found.add_column(plain(column), justify="right")
    rows = zip(ranked.folds, filtered.folds, sizes, strict=True)
    for number, (fold, kept, counts) in enumerate(rows, start=1):
        cells = [*(f"{count:,}" for count in counts), *_cells(fold.chosen), f"{fold.tuned:.4f}", f"{fold.default:.4f}"]
        cells += [*_filter_cells(kept.chosen), f"{kept.tuned:.4f}", f"{kept.default:.4f}"]
        found.add_row(str(number), *map(plain, cells))
    found.add_section()
    found.add_row("all", "", "", *map(plain, _cells(ranked.final)), "", "", *_filter_cells(filtered.final), "", "")
    return found


def _cells(setting: Setting) -> list[str]:
    weights = setting.fusion.weights.values()
    shares = ["RRF" if setting.fusion.method == "rrf" else f"{weight:.3g}" for weight in weights]
    return [setting.index, str(setting.depth), *shares]


def _filter_cells(chosen: FilteringConfig) -> list[str]:
    return [f"{chosen.threshold:.2f}", "off" if chosen.max_drop >= 1 else f"{chosen.max_drop:.2f}"]


def lines(ranked: Tuned, filtered: TunedFilter, *, several: bool) -> list[str]:
    """The figures and what follows from them in sentences; ``several`` indexes were compared."""
    from ragqa.evaluation.measures import display_name

    means = [
        f"Each question where it is tested: {display_name(name)} {ranked.tuned[name]:.4f}, "
        f"of the defaults {ranked.default[name]:.4f}."
        for name in ranked.tuned
    ]
    kept = [
        f"{word} keeps {figures['kept']:.2f} passages, precision {figures['precision']:.4f}, recall "
        f"{figures['recall']:.4f}, {_f_name(filtered)} {figures['F']:.4f}."
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
        f"Difference in {_f_name(filtered)}: {_tested(filtered.test)}",
        _verdict(filtered.test, "filter", "default filter"),
        f"Best filter on all questions, for the {of} ranking: `{_filter_options(filtered.final)}`.",
    ]


def _tested(test: PairedTest) -> str:
    return (
        f"{test.mean_difference:+.4f}, 95 % interval [{test.low:+.4f}, {test.high:+.4f}], p = {test.p_value:.4f} "
        "(paired permutation test)."
    )


def _options(fusion: FusionConfig) -> str:
    """The options of `ragqa ask` that fuse so."""
    weights = " ".join(f"--weight {name}={weight:.6g}" for name, weight in _shares(fusion).items())
    return f"--fusion {fusion.method} {weights}"


def _filter_options(chosen: FilteringConfig) -> str:
    return f"--threshold {chosen.threshold:g} --max-drop {chosen.max_drop:g}"


def _verdict(test: PairedTest, what: str, other: str) -> str:
    from ragqa.evaluation.significance import SIGNIFICANT

    if test.is_better:
        return f"The tuned {what} is better than the {other} beyond chance: worth using on this corpus."
    if test.p_value < SIGNIFICANT:
        return f"The tuned {what} is worse than the {other} on questions it was not chosen on: keep the {other}."
    return f"The tuned {what} is not better than the {other} beyond chance: keep the {other}."

"""`ragqa tune`: how to fuse the rankings of an index, chosen by cross-validation on questions with gold passages."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from ragqa.cli.evaluate_retrieval import rankings_of
from ragqa.cli.output import progress_bar, stdout
from ragqa.config import Config, FusionConfig, Paths
from ragqa.errors import ConfigError
from ragqa.tables import plain

if TYPE_CHECKING:
    from ragqa.corpus.questions import GoldQuestion
    from ragqa.evaluation.tuning import Tuned
    from ragqa.indexing import Index

__all__ = ["tune"]

BESIDE = "R@10"  # reported with the measure that decides
SIGNIFICANT = 0.05


def tune(
    index: Annotated[str, typer.Option(help="Which corpus.")],
    questions: Annotated[Path, typer.Option(help="Questions with gold: ObliQA's schema, JSON lines, PandaChat.")],
    measure: Annotated[str, typer.Option(help="What decides: AP, R, nDCG, RR or Success with a cutoff.")] = "AP@10",
    folds: Annotated[int, typer.Option(min=2, help="Parts that are tested in turn.")] = 5,
    step: Annotated[float, typer.Option(help="Between two weights: 1 divided by a whole number.")] = 0.05,
    seed: Annotated[int, typer.Option(min=0, help="Of the folds and of the test.")] = 0,
    out: Annotated[Path | None, typer.Option(help="File for the weights and their evidence, JSON.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the same JSON and nothing else.")] = False,
) -> None:
    """Choose how the rankings of an index are fused: weights from one part of the questions, tested on the rest.

    No gold passage is both learnt from and tested on. Rankings are kept under RAGQA_HOME, as by `ragqa eval retrieval`.
    """
    import numpy as np

    from ragqa.corpus.gold import load_gold
    from ragqa.evaluation import tuning
    from ragqa.evaluation.folds import folds_by_gold
    from ragqa.evaluation.journal import write_whole
    from ragqa.indexing import open_index

    tuning.check_measure(measure)
    tuning.candidates(("any",), step)  # a wrong step is refused before anything is ranked
    if out and not out.parent.is_dir():
        msg = f"--out must be in a folder that exists, got {str(out)!r}; make the folder or choose another"
        raise ConfigError(msg)
    opened = open_index(index, Paths.from_env().indexes)
    gold, unit = load_gold(questions, opened.passages)
    parts = folds_by_gold(gold, folds, seed)
    columns, _ = rankings_of(gold, opened, Config.from_env())
    fusions = (*tuning.candidates([column[0].retriever for column in columns], step), FusionConfig())
    measures = tuple(dict.fromkeys((measure, BESIDE)))
    with progress_bar() as bar:
        steps = tuning.measured(gold, columns, fusions, measures, unit)
        values = np.stack(list(bar.track(steps, total=len(gold), description=f"{len(fusions) - 1:,} fusions")))
    found = tuning.tune(values, fusions, measures, parts, seed)
    report = {
        "index": {"name": index, "fingerprint": _fingerprint(opened), "n_passages": len(opened.passages)},
        "encoder": {"name": opened.manifest.encoder, "fingerprint": opened.manifest.encoder_fingerprint},
        "questions": _about(questions, gold, unit),
        "n_candidates": len(fusions) - 1,
        "step": step,
        "seed": seed,
        "n_folds": folds,
        **_evidence(found),
    }
    written = json.dumps(report, indent=2) + "\n"
    if out:
        write_whole(out, [written])
    if as_json:
        typer.echo(written, nl=False)
        return
    sizes = [(len(fold.train), len(fold.test)) for fold in parts]
    title = f"{index}: {len(gold):,} questions, {len(fusions) - 1:,} fusions, folds with no gold {unit} on both sides"
    stdout().print(_table(title, found, sizes))
    for line in _lines(found):
        stdout().print(plain(line))


def _about(file: Path, gold: tuple[GoldQuestion, ...], unit: str) -> dict[str, Any]:
    """The questions in a few words; the sha256 is that of their texts and gold ids, in their order."""
    whole = json.dumps([[item.question.text, sorted(item.gold)] for item in gold])
    sha256 = hashlib.sha256(whole.encode("ascii")).hexdigest()
    return {"name": file.name, "n_questions": len(gold), "gold": unit, "sha256": sha256}


def _evidence(found: Tuned) -> dict[str, Any]:
    """The fusion, and what speaks for it; ``better`` is what `_verdict` says in words."""
    return {
        "method": found.final.method,
        "weights": _shares(found.final),
        "measure": found.measure,
        "better": found.test.p_value < SIGNIFICANT and found.test.mean_difference > 0,
        "evidence": {
            "out_of_fold": {"tuned": found.tuned, "default": found.default},
            "difference": asdict(found.test),
            "folds": [
                {"method": fold.chosen.method, "weights": _shares(fold.chosen)}
                | {"tuned": fold.tuned, "default": fold.default}
                for fold in found.folds
            ],
        },
    }


def _fingerprint(index: Index) -> str:
    """The sha256 of the sha256 of the index's files, one a line, in the manifest's order."""
    return hashlib.sha256("\n".join(entry.sha256 for entry in index.manifest.files).encode("ascii")).hexdigest()


def _shares(fusion: FusionConfig) -> dict[str, float]:
    return {name: weight for name, weight in fusion.weights.items() if weight > 0}


def _options(fusion: FusionConfig) -> str:
    """The options of `ragqa ask` that fuse so."""
    weights = " ".join(f"--weight {name}={weight:.6g}" for name, weight in _shares(fusion).items())
    return f"--fusion {fusion.method} {weights}"


def _table(title: str, found: Tuned, sizes: list[tuple[int, int]]) -> Table:
    from ragqa.evaluation.measures import display_name

    retrievers = list(found.final.weights)  # of every candidate
    name = display_name(found.measure)
    table = Table(title=plain(title))
    table.add_column("fold")
    for column in ("train", "test", *retrievers, f"{name} on test", "defaults"):
        table.add_column(plain(column), justify="right")
    for number, (fold, counts) in enumerate(zip(found.folds, sizes, strict=True), start=1):
        cells = [*(f"{count:,}" for count in counts), *_cells(fold.chosen), f"{fold.tuned:.4f}", f"{fold.default:.4f}"]
        table.add_row(str(number), *map(plain, cells))
    table.add_section()
    table.add_row("all", "", "", *_cells(found.final), "", "")
    return table


def _cells(fusion: FusionConfig) -> list[str]:
    return ["RRF" if fusion.method == "rrf" else f"{weight:.3g}" for weight in fusion.weights.values()]


def _lines(found: Tuned) -> list[str]:
    from ragqa.evaluation.measures import display_name

    test = found.test
    means = [
        f"Each question where it is tested: {display_name(name)} {found.tuned[name]:.4f}, "
        f"of the defaults {found.default[name]:.4f}."
        for name in found.tuned
    ]
    return [
        *means,
        f"Difference in {display_name(found.measure)}: {test.mean_difference:+.4f}, 95 % interval "
        f"[{test.low:+.4f}, {test.high:+.4f}], p = {test.p_value:.4f} (paired permutation test).",
        f"Best on all questions: `ragqa ask {_options(found.final)}`.",
        _verdict(found),
    ]


def _verdict(found: Tuned) -> str:
    if found.test.p_value >= SIGNIFICANT:
        return "The tuned weights are not better than the defaults beyond chance: keep the defaults."
    if found.test.mean_difference < 0:
        return "The tuned weights are worse than the defaults on questions they were not chosen on: keep the defaults."
    return "The tuned weights are better than the defaults beyond chance: worth using on this index."

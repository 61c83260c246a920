"""RePASs against the reference script's loop, side by side in one process: `python -m tests.benchmarks.repass`.

Every figure is a ratio of work done in turns by one process on one machine, for seconds alone say little about another.
The loop (`tests.support.reference_loop`) is timed on ``--cases`` items of each set and compared with the product on the
same items; the rest is measured on all of a set. The product runs as in the application, pairs remembered in memory and
on disk, each item met for the first time; in mode ``script`` unless said otherwise, so that both look at the same
pairs. The sets are the 34 published cases, where the shared data is (``RAGQA_DATA``), and extractive answers from ten
passages: to ADGM questions where ``--adgm`` names a folder with that index, else to those of the demonstration
rulebook."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import fmean, median
from typing import Any

from ragqa.corpus.demo import DEMOS
from ragqa.corpus.questions import load_questions
from ragqa.generation.answers import answer_of_text
from ragqa.index import open_index
from ragqa.loading import Models, load_encoder
from ragqa.models import resolve_model
from ragqa.models.inference.precision import wait_passively
from ragqa.pipeline import assemble
from ragqa.plugins.protocols import NliModel
from ragqa.scoring.repass.nli import RememberingNli
from ragqa.scoring.repass.obligations import TfidfObligationClassifier
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.settings.config import Config, FilteringConfig, GenerationConfig, ScoringConfig
from ragqa.settings.paths import PROJECT_INDEXES
from ragqa.settings.presets import PRESETS, with_preset
from ragqa.types import Answer, Passage, Question
from ragqa.types.events.pipeline import Answered, Selected
from ragqa.types.events.scoring import ObligationScored, Scored, SentenceScored
from ragqa.types.scores import NliProbabilities, ScoringMode

wait_passively()

from ragqa.scoring.repass.nli import CrossEncoderNli  # noqa: E402 - torch comes with it
from tests.conftest import DATA  # noqa: E402
from tests.support.reference_loop import LoopScore, ReferenceLoop  # noqa: E402
from tests.support.streams import Returning  # noqa: E402

SCRIPT = ScoringConfig(mode=ScoringMode.SCRIPT)
CHANGED = replace(SCRIPT, coverage_threshold=0.6, verdict_threshold=0.6)  # what moving two sliders asks for
TEN_PASSAGES = "no filter, k = 10"
GROWTH = (1, 10, 50)  # passages
REPEATS = 3  # of what takes milliseconds; the median counts
FLAGS = ("amx_bf16", "amx_int8", "amx_tile", "avx512_bf16", "avx512_vnni", "avx_vnni", "avx512f", "avx2")
WARM_UP = [
    (f"A firm must {'keep records and ' * n}tell us.", f"Firm {n} may {'not ' * (n % 2)}wait.") for n in range(40)
]


@dataclass(frozen=True, slots=True)
class Item:
    """An answer to score and the passages it is scored against."""

    name: str
    answer: Answer
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Parts:
    """E, C and OC, or the distances between two of each."""

    entailment: float
    contradiction: float
    coverage: float

    def distance(self, other: Parts) -> Parts:
        return Parts(*(abs(a - b) for a, b in zip(asdict(self).values(), asdict(other).values(), strict=True)))


@dataclass(frozen=True, slots=True)
class Pass:
    """One scoring by the product: seconds until each stage, and what it found.

    ``first`` is the first complete breakdown (every sentence and obligation told of once), ``shown`` the final one of
    the mode shown; ``seconds`` until both modes are known. ``processor_seconds`` is the work of all threads, which says
    more than the clock where others use the machine. ``n_pairs`` were computed by the model.
    """

    first_seconds: float
    shown_seconds: float
    seconds: float
    processor_seconds: float
    is_provisional: bool
    first: Parts
    exact: Parts
    covered: tuple[bool, ...]
    n_pairs: int


class Counted(NliModel):
    """A model that counts what it computes."""

    def __init__(self, model: NliModel) -> None:
        self.model, self.n_pairs = model, 0

    @property
    def info(self):
        return self.model.info

    def predict(self, pairs: Sequence[tuple[str, str]]) -> list[NliProbabilities]:
        self.n_pairs += len(pairs)
        return self.model.predict(pairs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=8, help="items of each set that the slow loop is timed on")
    parser.add_argument("--limit", type=int, default=34, help="published cases at most; answers: at most 20 of these")
    parser.add_argument("--adgm", type=Path, help="folder of indexes with one named adgm")
    parser.add_argument("--questions", type=Path, default=DATA / "obliqa" / "ObliQA_dev.json", help="for --adgm")
    parser.add_argument("--model", default=SCRIPT.entailment_model, help="a name or a folder of an NLI model")
    parser.add_argument("--json", nargs="?", const="-", help="figures as JSON, to this file or instead of the tables")
    arguments = parser.parse_args()
    if arguments.cases < 1 or arguments.limit < 1:
        parser.error("--cases and --limit must be at least 1")
    figures = benchmark(arguments, quiet=arguments.json == "-")
    if arguments.json == "-":
        print(json.dumps(figures, indent=1))
    elif arguments.json:
        Path(arguments.json).write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    return 0


def benchmark(arguments: argparse.Namespace, *, quiet: bool) -> dict[str, Any]:
    """Every figure, for JSON; shown as tables as soon as they are known, unless ``quiet``."""
    bench = Bench(arguments.model)
    index, folder, questions = "rulebook", PROJECT_INDEXES, [gold.question for gold in DEMOS["rulebook"].questions()]
    if arguments.adgm:
        index, folder = "adgm", arguments.adgm
        questions = [gold.question for gold in load_questions(arguments.questions)]
    answered = list(extractive_answers(index, folder, spread(questions, min(20, arguments.limit)), bench))
    sets = {
        "published cases": spread(published_cases(), arguments.limit),
        f"{index} answers, 10 passages": [item for item, _ in answered],
    }
    figures: dict[str, Any] = {
        "machine": machine(),
        "model": asdict(bench.default.info),
        "precisions": {"default": bench.default.info.precision, "fp32": bench.fp32.info.precision},
        "sets": {},
    }
    shown = (lambda _: None) if quiet else (lambda lines: print("\n".join(lines), flush=True))
    shown(machine_lines(figures))
    for name, items in sets.items():
        if items:
            figures["sets"][name] = bench.compare(name, items, arguments.cases)
            shown(set_lines(name, figures["sets"][name]))
    figures["growth"] = bench.growth(*answered[0])
    shown(growth_lines(figures["growth"]))
    return figures


class Bench:
    """The loop and the product in both precisions, loaded and warm."""

    def __init__(self, model: str) -> None:
        self.obligations = TfidfObligationClassifier()
        self.default, self.fp32 = Counted(CrossEncoderNli(model, "auto")), Counted(CrossEncoderNli(model, "fp32"))
        self.loop = ReferenceLoop(self.obligations, resolve_model(model, "nli"))
        for nli in (self.default, self.fp32):
            nli.predict(WARM_UP)
        self.loop.score([premise for premise, _ in WARM_UP[:8]], " ".join(said for _, said in WARM_UP[:8]))

    def scorer(self, nli: NliModel, config: ScoringConfig = SCRIPT) -> RepassScorer:
        return RepassScorer(nli, nli, self.obligations, config)

    def compare(self, name: str, items: Sequence[Item], n_loop: int) -> dict[str, Any]:
        """The figures of one set; each item by the loop, in the default precision and in fp32, one after the other."""
        timed = {item.name for item in spread(items, n_loop)}
        rows = []
        with tempfile.TemporaryDirectory() as folder:
            files = {"default": Path(folder) / "default.sqlite3", "fp32": Path(folder) / "fp32.sqlite3"}
            default, fp32 = RememberingNli(self.default, files["default"]), RememberingNli(self.fp32, files["fp32"])
            for number, item in enumerate(items, start=1):
                say(f"{name}: {number} of {len(items)}{', with the loop' if item.name in timed else ''}")
                loop = timed_loop(self.loop, item) if item.name in timed else None
                first = self.run(default, self.default, item)
                plain = self.run(fp32, self.fp32, item)
                memory = [self.run(default, self.default, item, CHANGED) for _ in range(REPEATS)]
                disk = []
                for _ in range(REPEATS):
                    fresh = RememberingNli(self.default, files["default"])
                    disk.append(self.run(fresh, self.default, item, CHANGED))
                    fresh.close()
                rows.append(Row(item.name, loop, first, plain, tuple(memory), tuple(disk)))
            default.close()
            fp32.close()
        return summary(rows)

    def run(self, nli: NliModel, counted: Counted, item: Item, config: ScoringConfig = SCRIPT) -> Pass:
        """One scoring, timed."""
        before = counted.n_pairs
        told: list[tuple[float, SentenceScored | ObligationScored]] = []
        began, worked = time.perf_counter(), time.process_time()
        stream = Returning(self.scorer(nli, config).stream(item.answer, item.passages))
        for event in stream:
            told.append((time.perf_counter() - began, event))
        seconds = time.perf_counter() - began
        return as_pass(told, stream.result, (seconds, time.process_time() - worked), counted.n_pairs - before)

    def growth(self, item: Item, passages: tuple[Passage, ...]) -> list[dict[str, float]]:
        """Pairs and seconds at 1, 10 and 50 passages of one answer, nothing remembered; default precision."""
        rows = []
        for n_passages in GROWTH:
            say(f"growth: {n_passages} passages")
            some = replace(item, passages=passages[:n_passages])
            runs = [
                self.run(RememberingNli(self.default), self.default, some)
                for _ in range(REPEATS if n_passages == 1 else 1)  # too short to be timed once
            ]
            n_pairs, seconds = runs[0].n_pairs, median(run.seconds for run in runs)
            rows.append(
                {"passages": n_passages, "pairs": n_pairs, "seconds": seconds, "pairs_per_second": n_pairs / seconds}
            )
        return rows


@dataclass(frozen=True, slots=True)
class Loop:
    """One scoring by the loop."""

    seconds: float
    processor_seconds: float
    found: LoopScore


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of one item; ``loop`` is None where the loop was not timed."""

    name: str
    loop: Loop | None
    default: Pass
    fp32: Pass
    memory: tuple[Pass, ...]
    disk: tuple[Pass, ...]


def timed_loop(loop: ReferenceLoop, item: Item) -> Loop:
    began, worked = time.perf_counter(), time.process_time()
    found = loop.score([passage.text for passage in item.passages], item.answer.text)
    return Loop(time.perf_counter() - began, time.process_time() - worked, found)


def as_pass(
    told: Sequence[tuple[float, SentenceScored | ObligationScored]],
    scored: Scored,
    spent: tuple[float, float],
    n_pairs: int,
) -> Pass:
    """Where in the stream the first complete breakdown and the final one of the mode shown stood."""
    exact, (seconds, processor_seconds) = scored.script, spent
    n_wanted = len(exact.sentences) + len(exact.obligations)
    latest: dict[tuple[type, int], SentenceScored | ObligationScored] = {}
    first: tuple[float, dict[tuple[type, int], SentenceScored | ObligationScored]] | None = None
    shown_seconds, final = seconds, 0
    for moment, event in told:
        key = type(event), event.score.index
        if event.final and not (key in latest and latest[key].final):
            final += 1
            shown_seconds = moment if final == n_wanted else shown_seconds
        latest[key] = event
        if first is None and len(latest) == n_wanted:
            first = moment, dict(latest)
    moment, events = first or (seconds, {})
    sentences = [event.score for event in events.values() if isinstance(event, SentenceScored)]
    obligations = [event.score for event in events.values() if isinstance(event, ObligationScored)]
    return Pass(
        first_seconds=moment,
        shown_seconds=shown_seconds,
        seconds=seconds,
        processor_seconds=processor_seconds,
        is_provisional=not all(event.final for event in events.values()),
        first=Parts(
            mean(score.entailment for score in sentences),
            mean(score.contradiction for score in sentences),
            mean(score.covered for score in obligations),
        ),
        exact=Parts(exact.repass.entailment, exact.repass.contradiction, exact.repass.obligation_coverage),
        covered=tuple(score.covered for score in exact.obligations),
        n_pairs=n_pairs,
    )


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """The figures of one set; ratios are of sums of seconds, so that long answers weigh as they last."""
    timed = [(row, row.loop) for row in rows if row.loop]
    wall = {
        "loop, fp32": [loop.seconds for _, loop in timed],
        "product, fp32, exact": [row.fp32.shown_seconds for row, _ in timed],
        "product, fp32, exact in both modes": [row.fp32.seconds for row, _ in timed],
        "product, default, exact": [row.default.shown_seconds for row, _ in timed],
        "product, default, exact in both modes": [row.default.seconds for row, _ in timed],
        "product, default, first complete breakdown": [row.default.first_seconds for row, _ in timed],
        "processor: loop, fp32": [loop.processor_seconds for _, loop in timed],
        "processor: product, fp32, both modes": [row.fp32.processor_seconds for row, _ in timed],
        "processor: product, default, both modes": [row.default.processor_seconds for row, _ in timed],
    }
    first_scoring = sum(row.default.seconds for row in rows)
    provisional = [row.default for row in rows if row.default.is_provisional]
    errors = [run.first.distance(run.exact) for run in provisional]
    shifts = [row.default.exact.distance(row.fp32.exact) for row in rows]
    flips = [a is not b for row in rows for a, b in zip(row.default.covered, row.fp32.covered, strict=True)]
    from_loop = [row.fp32.exact.distance(loop_parts(loop.found)) for row, loop in timed]
    long = [(row, loop) for row, loop in timed if row.default.is_provisional]
    return {
        "items": len(rows),
        "timed": len(timed),
        "pairs": {
            "loop": sum(loop.found.n_pairs for _, loop in timed),
            "product": sum(row.default.n_pairs for row, _ in timed),
        },
        "pairs_per_second": {
            "loop, fp32": ratio(sum(loop.found.n_pairs for _, loop in timed), sum(wall["loop, fp32"])),
            "product, fp32": ratio(sum(row.fp32.n_pairs for row in rows), sum(row.fp32.seconds for row in rows)),
            "product, default": ratio(sum(row.default.n_pairs for row in rows), first_scoring),
        },
        "against_the_loop": {
            name: {
                "seconds": sum(spent),
                "times_faster": ratio(sum(base), sum(spent)),
                "times_faster_median_item": median(map(ratio, base, spent)),
            }
            for name, spent in wall.items()
            for base in [wall["processor: loop, fp32" if name.startswith("processor") else "loop, fp32"]]
        },
        "provisional": {
            "items": len(provisional),
            "timed": len(long),
            "times_faster_where_provisional": ratio(
                sum(loop.seconds for _, loop in long), sum(row.default.first_seconds for row, _ in long)
            ),
            "mean_error": asdict(means(errors)),
            "mean_error_all_items": asdict(means([row.default.first.distance(row.default.exact) for row in rows])),
        },
        "scored_again": {
            name: {
                "times_faster": ratio(first_scoring, spent),
                "median_seconds": median(run.seconds for runs in again for run in runs),
                "slowest_seconds": max(median(run.seconds for run in runs) for runs in again),
                "pairs_computed": sum(run.n_pairs for runs in again for run in runs),
            }
            for name, again in (("memory", [row.memory for row in rows]), ("disk", [row.disk for row in rows]))
            for spent in [sum(median(run.seconds for run in runs) for runs in again)]
        },
        "default_against_fp32": {
            "max_entailment": max(shift.entailment for shift in shifts),
            "max_contradiction": max(shift.contradiction for shift in shifts),
            "obligations": len(flips),
            "flipped": sum(flips),
        },
        "fp32_against_the_loop": {
            "max_entailment": max(shift.entailment for shift in from_loop),
            "max_contradiction": max(shift.contradiction for shift in from_loop),
            "max_coverage": max(shift.coverage for shift in from_loop),
        },
        "rows": [row_figures(row) for row in rows],
    }


def row_figures(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "loop_seconds": row.loop.seconds if row.loop else None,
        "loop_pairs": row.loop.found.n_pairs if row.loop else None,
        "default": asdict(row.default) | {"covered": sum(row.default.covered)},
        "fp32": asdict(row.fp32) | {"covered": sum(row.fp32.covered)},
        "memory_seconds": median(run.seconds for run in row.memory),
        "disk_seconds": median(run.seconds for run in row.disk),
    }


def loop_parts(found: LoopScore) -> Parts:
    return Parts(found.entailment, found.contradiction, round(found.obligation_coverage, 5))


def published_cases() -> list[Item]:
    """The 34 published cases; none, with a word, where the shared data is not."""
    file = DATA / "repass" / "reference_cases.json"
    if not file.is_file():
        say(f"no {file}: the published cases are left out; set RAGQA_DATA to the folder of the shared data")
        return []
    return [
        Item(f"case {number}", answer_of_text(case["Answer"]), numbered(case["RetrievedPassages"]))
        for number, case in enumerate(json.loads(file.read_text("utf-8"))["items"])
    ]


def numbered(texts: Sequence[str]) -> tuple[Passage, ...]:
    return tuple(Passage(str(number), "", text) for number, text in enumerate(texts, start=1))


def extractive_answers(
    index: str, folder: Path, questions: Sequence[Question], bench: Bench
) -> Iterator[tuple[Item, tuple[Passage, ...]]]:
    """Each question answered from ten passages, and the fifty best of which those are the first.

    The answer is split into sentences again, as the loop does, so that both score the same ones.
    """
    (preset,) = (preset for preset in PRESETS if preset.name == TEN_PASSAGES)
    config = with_preset(Config(index=index, generation=GenerationConfig(generator="extractive")), preset)
    opened = open_index(index, folder)
    models = Models(load_encoder(opened.manifest.encoder), bench.default, bench.default, bench.obligations)
    ten = assemble(config, opened, models)
    deep = FilteringConfig(threshold=0.0, max_drop=1.0, top_k=max(GROWTH))
    fifty = assemble(replace(config, filtering=deep), opened, models)
    for question in questions:
        passages = until(ten.run(question), Selected).selection.passages
        answer = until(ten.run(question), Answered).answer
        more = until(fifty.run(question), Selected).selection.passages
        yield Item(question.question_id or question.text, answer_of_text(answer.text), passages), more


def until(events: Iterator[Any], kind: type) -> Any:
    """The first event of this kind; the rest is not run."""
    found = next(event for event in events if isinstance(event, kind))
    with suppress(AttributeError):
        events.close()  # type: ignore[attr-defined]
    return found


def machine() -> dict[str, Any]:
    """The processor's instructions that matter, the cores this process may use, and the libraries."""
    lines: list[str] = []
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    fields = {name.strip(): value.strip() for name, value in fields.items()}
    found = set(fields.get("flags", "").split())
    libraries = {}
    for library in ("torch", "openvino", "transformers"):
        try:
            libraries[library] = version(library)
        except PackageNotFoundError:
            libraries[library] = "not installed"
    return {
        "processor": fields.get("model name", platform.processor() or "unknown"),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "flags": [flag for flag in FLAGS if flag in found],
        "load": os.getloadavg()[0],
        "libraries": libraries,
    }


def machine_lines(figures: dict[str, Any]) -> list[str]:
    machine, precisions = figures["machine"], figures["precisions"]
    return [
        f"processor   {machine['processor']}, {machine['cores']} cores, load {machine['load']:.1f}",
        f"flags       {' '.join(machine['flags']) or 'none of ' + ' '.join(FLAGS)}",
        f"libraries   {', '.join(f'{name} {number}' for name, number in machine['libraries'].items())}",
        f"model       {figures['model']['name']}, {figures['model']['fingerprint'][:12]}",
        f"precision   default: {precisions['default']}; fp32: {precisions['fp32']}",
    ]


def set_lines(name: str, found: dict[str, Any]) -> list[str]:
    pairs, first, shift = found["pairs"], found["provisional"], found["default_against_fp32"]
    error, exact = first["mean_error"], found["fp32_against_the_loop"]
    return [
        f"\n{name}: {found['items']} items, the loop timed on {found['timed']}",
        f"pairs there: loop {pairs['loop']:,}, product {pairs['product']:,} (distinct ones of both modes)",
        f"{'':<46}{'seconds':>10}{'faster':>10}{'median item':>14}",
        *(
            f"{label:<46}{row['seconds']:>10.2f}{row['times_faster']:>9.1f}x{row['times_faster_median_item']:>13.1f}x"
            for label, row in found["against_the_loop"].items()
        ),
        "pairs per second: " + ", ".join(f"{label} {rate:.0f}" for label, rate in found["pairs_per_second"].items()),
        f"first breakdown provisional for {first['items']} items ({first['timed']} of them timed: "
        f"{first['times_faster_where_provisional']:.1f}x), mean |dE| {error['entailment']:.4f}, "
        f"|dC| {error['contradiction']:.4f}, |dOC| {error['coverage']:.4f}",
        *(
            f"scored again with other thresholds, pairs from {place}: {row['times_faster']:.0f}x, median "
            f"{1000 * row['median_seconds']:.0f} ms, slowest {1000 * row['slowest_seconds']:.0f} ms, "
            f"{row['pairs_computed']} pairs computed"
            for place, row in found["scored_again"].items()
        ),
        f"default against fp32: max |dE| {shift['max_entailment']:.4f}, max |dC| {shift['max_contradiction']:.4f}, "
        f"{shift['flipped']} of {shift['obligations']} obligations flipped "
        f"({100 * ratio(shift['flipped'], shift['obligations']):.2f} %)",
        f"fp32 against the loop: max |dE| {exact['max_entailment']:.5f}, max |dC| {exact['max_contradiction']:.5f}, "
        f"max |dOC| {exact['max_coverage']:.5f}",
    ]


def growth_lines(rows: Sequence[dict[str, float]]) -> list[str]:
    return [
        "\ngrowth of one answer's work, default precision, nothing remembered",
        f"{'passages':>10}{'pairs':>10}{'seconds':>10}{'pairs/s':>10}",
        *(
            f"{row['passages']:>10}{row['pairs']:>10,}{row['seconds']:>10.2f}{row['pairs_per_second']:>10.0f}"
            for row in rows
        ),
    ]


def spread(items: Sequence[Any], n: int) -> list[Any]:
    """At most ``n`` of these, evenly spaced, in their order."""
    return [items[k * len(items) // n] for k in range(n)] if n < len(items) else list(items)


def mean(values: Iterator[float]) -> float:
    found = list(values)
    return fmean(found) if found else 0.0


def means(parts: Sequence[Parts]) -> Parts:
    return Parts(*(mean(getattr(part, name) for part in parts) for name in ("entailment", "contradiction", "coverage")))


def ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else 0.0


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

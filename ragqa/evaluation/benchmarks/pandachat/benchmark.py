"""PandaChat-RAG on one of ragqa's indexes, or submission files of others: is the document among the first sources?"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from ragqa.corpus.formats import load_corpus
from ragqa.corpus.pandachat import (
    DocumentQuestion,
    load_pandachat,
    load_pandachat_questions,
    load_pandachat_rows,
    locate_pandachat,
    looks_like_pandachat,
)
from ragqa.errors import ConfigError
from ragqa.evaluation.benchmark import LIMIT, Benchmark, Item, Json, Option, Outcome, Settings, Status, Task
from ragqa.evaluation.benchmarks.pandachat.results import (
    RANKED_AT,
    REPORT,
    RESULTS,
    TABLE,
    DocumentHits,
    System,
    comparison_of,
    mean_seconds,
    report_of,
    system_of_file,
    system_of_run,
    write_report,
)
from ragqa.evaluation.benchmarks.pandachat.submissions import (
    Submission,
    read_submission,
    submission_file_name,
    submission_of,
    write_submission,
)
from ragqa.evaluation.loading import built, config_of, retrievers_of, stamp_of
from ragqa.evaluation.report import Column, Figure, File, Hit, Report, Row
from ragqa.fusion import fuse
from ragqa.index import Index
from ragqa.infra.journal import digest, translated
from ragqa.plugins.protocols import Follower, Rescorer, Retriever
from ragqa.retrieval import rank
from ragqa.settings.config import FusionConfig, RetrievalConfig
from ragqa.settings.paths import Paths
from ragqa.types import Ranking

MAX_CHUNK_TOKENS: Final = 128  # our tokens are words; the benchmark counts cl100k_base tokens, 2.6 to a word
_WARM_UP: Final = "ogrevanje"  # ranked once before the first question, so that no question's time includes lazy loading

Ranker = Callable[[str], Ranking]


def ranker_of(retrievers: Sequence[Retriever], retrieval: RetrievalConfig, fusion: FusionConfig) -> Ranker:
    """From a question's text to the fused ranking of its chunks, as the pipeline makes it before filtering.

    A retriever of weight 0, whose ranking would only be shown, is not asked, unless another one rescores or follows its
    hits.
    """
    weighted = tuple(retriever for retriever in retrievers if fusion.weights.get(retriever.name, 0) > 0)
    asked = retrievers if any(isinstance(one, Rescorer | Follower) for one in weighted) else weighted
    return lambda question: fuse(rank(asked, question, retrieval.top_k), fusion)


def warmed(ranker: Ranker) -> Ranker:
    """The ranker, which ranks another text once before its first question."""
    cold, lock = [_WARM_UP], threading.Lock()

    def ranked(question: str) -> Ranking:
        with lock:
            while cold:
                ranker(cold.pop())
        return ranker(question)

    return ranked


def check_index(index: Index, data: Path) -> None:
    """Raises ConfigError unless this index is one of the data set's ``text_without_Q`` in chunks of 128 tokens at most.

    Raises CorpusError if ``data`` cannot be read.
    """
    manifest = index.manifest
    again = f"build one with `ragqa index build NAME --source {data}`, or name another with --index"
    if manifest.chunk_max_tokens > MAX_CHUNK_TOKENS:
        raise ConfigError(
            f"index {manifest.name!r} has chunks of up to {manifest.chunk_max_tokens} tokens; expected at most "
            f"{MAX_CHUNK_TOKENS}, the benchmark's rule; {again}"
        )
    if (
        manifest.format != "pandachat"
        or manifest.corpus_sha256 != load_corpus(data, "pandachat", manifest.chunk_max_tokens).sha256
    ):
        msg = f"index {manifest.name!r} was made from {manifest.source!r}; expected one of the texts of {data}; {again}"
        raise ConfigError(msg)


def fits(data: Path, index: Index) -> bool:
    """Whether `check_index` accepts this index."""
    try:
        check_index(index, data)
    except ConfigError:
        return False
    return True


NAME: Final = "pandachat"  # also the name of the index that is built if there is none
N_SOURCES: Final = 5  # chunks kept for each question, as in most published submissions


@dataclass(frozen=True, slots=True)
class _Context:
    """What was loaded: the data set with its items unchanged, and other people's submissions by file name.

    If questions are asked here, also the ranker and the name of this system in its submission.
    """

    data: Path
    questions: tuple[DocumentQuestion, ...]
    items: tuple[Json, ...]
    n_asked: int
    ks: tuple[int, ...]
    files: dict[str, Submission]
    system: str = ""
    ranker: Ranker | None = None

    @property
    def n_sources(self) -> int:
        return max(N_SOURCES, *self.ks)


def load(settings: Settings, paths: Paths) -> Generator[str, None, Task]:
    """Loads the data set, the submissions, and the index with its models unless only submissions are evaluated.

    Raises CorpusError, ConfigError, IndexingError, ModelError.
    """
    yield "Reading the data set"
    place = locate_pandachat(Path(settings["data"]))
    questions, limit = load_pandachat_questions(place), settings["limit"]
    ks = tuple(sorted(set(settings["k"])))
    files = [Path(file) for file in settings["submission"]]
    if len({file.name for file in files}) < len(files):
        msg = f"submission files must differ in name, got {', '.join(file.name for file in files)}; rename one"
        raise ConfigError(msg)
    read = {file.name: read_submission(file, questions, limit) for file in files}
    context = _Context(place, questions, load_pandachat_rows(place), len(questions[:limit]), ks, read)
    if files and settings["index"] is None:
        return Task((), {}, context, solves=False)
    name = settings["index"] or NAME
    config = config_of({**settings, "index": name}, paths, reranks=False)
    yield from built(name, place, paths, "pandachat")
    yield "Loading the index and its models (once)"
    index, retrievers, fusion = retrievers_of(config, paths)
    check_index(index, place)
    encoder = Path(index.manifest.encoder).name
    system = settings["system"] or ", ".join(filter(None, (f"ragqa-{encoder}", settings["preset"])))
    if (own := submission_file_name(system)) in read:
        msg = f"expected submissions of other names than {own!r}, which this run writes, found one; rename it, or name "
        raise ConfigError(msg + "this run's system with --system")
    ranker = warmed(ranker_of(retrievers, config.retrieval, fusion))
    context = replace(context, system=system, ranker=ranker)
    items = [Item(number, one.question, one) for number, one in enumerate(questions, start=1)]
    stamp = _stamp(index, context, config.retrieval, fusion)
    columns = (*(Column(f"top{k}", f"top {k}", 0) for k in ks), Column("ms", "ms", 0))
    return Task(items, stamp, context, columns, outputs=(submission_file_name(system),))


def _stamp(index: Index, context: _Context, retrieval: RetrievalConfig, fusion: FusionConfig) -> dict[str, Any]:
    """What identifies a run: the questions, the index and all that decides a ranking, but not how many are asked."""
    decided = {"retrieval": asdict(retrieval), "fusion": asdict(fusion), "sources": context.n_sources}
    return stamp_of(context.data, index, digest({"items": context.items}), **decided)


def solve(task: Task, item: Item) -> Json:
    """The question's first chunks, each with its document and score, and the seconds it took."""
    began = time.perf_counter()
    hits = task.context.ranker(item.question.text).hits[: task.context.n_sources]
    seconds = time.perf_counter() - began
    found = [[hit.passage.passage_id, hit.passage.document_id, float(hit.score)] for hit in hits]
    return {"hits": found, "seconds": seconds}


def score(task: Task, item: Item, solution: Json) -> Json:
    """The rank of the first chunk of the question's document, from 1; None if no chunk of it was found."""
    del task
    (document,) = item.content.gold_documents
    places = (place for place, (_, found, _) in enumerate(solution["hits"], start=1) if found == document)
    return {"place": next(places, None)}


def row(task: Task, outcome: Outcome) -> Row:
    """One question: right if its document is among the first two sources."""
    solution, scores, found = outcome.solution, outcome.scores, outcome.row()
    (document,) = outcome.item.content.gold_documents
    if solution is None or scores is None:
        return replace(found, right=False, gold=(document,))
    place, milliseconds = scores["place"], 1000 * solution["seconds"]
    values = {f"top{k}": float(place is not None and place <= k) for k in task.context.ks}
    return replace(
        found,
        right=place is not None and place <= RANKED_AT,
        values=values | {"ms": milliseconds},
        hits=tuple(Hit(name, of, points, of == document) for name, of, points in solution["hits"]),
        gold=(document,),
        steps=(f"Ranked in {milliseconds:.0f} ms, the question's encoding included.",),
        note="",
    )


def figures(task: Task, rows: Sequence[Row]) -> tuple[Figure, ...]:
    """How many questions are right at each k, the largest k first, and the median time."""
    measured = [one.values for one in rows if one.values]
    if not measured:
        return ()
    shown = []
    for k in reversed(task.context.ks):
        n_right = sum(values[f"top{k}"] == 1 for values in measured)
        place = "the first source" if k == 1 else f"among the first {k} sources"
        words = f"right: the document is {place}{', as published' if k == RANKED_AT else ''}"
        shown.append(Figure(f"Top {k}", f"{n_right:,} of {len(measured):,}", words))
    spent = statistics.median(values["ms"] or 0.0 for values in measured)
    return (*shown, Figure("Time", f"{spent:.0f} ms", "median of a question, on this machine"))


def report(task: Task, outcomes: Sequence[Outcome]) -> Report:
    """The systems compared with the published ones."""
    context, found = task.context, _retrieved(outcomes)
    systems, n_asked, n_all = _systems(context, found), _n_asked(task, found), len(context.questions)
    notes = []
    if n_asked < n_all:
        notes.append(
            f"Only {n_asked:,} of {n_all:,} questions were asked: the figures are not put among the benchmark's "
            "results, which are of all."
        )
    notes += [
        f"Median of this run: {one.median_milliseconds:.1f} ms a question."
        for one in systems
        if one.median_milliseconds is not None
    ]
    return Report(
        figures(task, [row(task, outcome) for outcome in outcomes if outcome.status is Status.SCORED]),
        task.columns,
        (comparison_of(systems, context.ks, n_asked, n_all),),
        tuple(notes),
        data=report_of(systems, context.data, n_asked, n_all),
    )


def export(task: Task, outcomes: Sequence[Outcome], report: Report, folder: Path) -> tuple[File, ...]:
    """The submission, each submission marked with what is right, the benchmark's results, and the report."""
    context, found = task.context, _retrieved(outcomes)
    submissions, files = dict(context.files), []
    if found:
        name = submission_file_name(context.system)
        gold = [(one.text, one.document, one.sources) for one in found]
        items = [context.items[one.number - 1] for one in found]
        own = submission_of(context.system, mean_seconds(found), items, gold)
        with translated(folder):
            write_submission(folder / name, own.payload)
        submissions = {name: own} | submissions
        files.append(File("Submission (PandaChat JSON)", name))
    write_report(folder, report.data, _systems(context, found), submissions, context.ks)
    files += [File("Submission with what is right (JSON)", f"{name}_results.json") for name in submissions]
    if report.data["n_questions"] == len(context.questions):
        files += [File("Results (PandaChat JSON)", RESULTS), File("Table (Markdown)", TABLE, "text/markdown")]
    return (*files, File("Report (JSON)", REPORT))


def _retrieved(outcomes: Sequence[Outcome]) -> list[DocumentHits]:
    found = []
    for outcome in outcomes:
        solution = outcome.solution if outcome.status is Status.SCORED else None
        if solution is not None:
            (document,) = outcome.item.content.gold_documents
            sources = tuple(source for _, source, _ in solution["hits"])
            question = outcome.item.question.text
            found.append(DocumentHits(outcome.item.number, question, document, sources, solution["seconds"]))
    return found


def _n_asked(task: Task, found: Sequence[DocumentHits]) -> int:
    n_asked: int = len(found) if task.solves else task.context.n_asked
    return n_asked


def _systems(context: _Context, found: Sequence[DocumentHits]) -> list[System]:
    ours = [system_of_run(found, context.system, context.ks)] if found else []
    asked = context.questions[: context.n_asked]
    return [*ours, *(system_of_file(read, name, context.ks, asked) for name, read in context.files.items())]


def _count(path: Path) -> int:
    """How many questions the data set holds. Raises CorpusError."""
    load_pandachat(path)
    return len(load_pandachat_questions(path))


BENCHMARK = Benchmark.of(
    globals(),
    name=NAME,
    fits=fits,
    title="PandaChat-RAG-sl",
    description=(
        "206 Slovenian questions: is the document that answers a question among the first chunks found? Writes a "
        "submission and compares with the published results. A question is right at K where its document is among the "
        "first K sources, one a chunk, duplicates counted. Chunks have at most 128 words; the benchmark's have 128 "
        "tokens, 2.6 of which make a word: an index built with --chunk-max-tokens 40 has chunks of its size."
    ),
    options=(
        Option(
            "data",
            "The data set's JSON file, or a folder that holds it.",
            "file",
            "../shared/data",
            label="Questions",
            accepts="the data set's JSON file, a list of {query, answer, document, text, text_without_Q}",
            counts=_count,
            suits=looks_like_pandachat,
            environment="RAGQA_DATA",
        ),
        Option("index", f"Index, built if missing.  [default: {NAME}]", "index", label="Corpus", builds=NAME),
        Option(
            "submission",
            "Evaluate this file instead, or with --index as well; repeatable.",
            "file",
            (),
            many=True,
            decides=False,
            optional=True,
        ),
        Option("k", "Count the first K sources; repeatable.  [default: 1, 2]", "int", (1, 2), many=True, least=1),
        Option(
            "preset",
            "Preset, by name or as a preset file.",
            "preset",
            label="Settings",
            allows=lambda preset: not preset.reranking.model,
        ),
        Option("system", "Name of the submission; default: encoder and preset.", default="", decides=False),
        LIMIT,
    ),
    right="the question's document is among the first two sources",
    doing="Retrieving",
)

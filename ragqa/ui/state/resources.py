"""The resources that sessions share: models, indexes, the record store. Loaded once, read-only, thread-safe."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragqa import loading
from ragqa.corpus.demo import DEMOS
from ragqa.corpus.questions import GoldQuestion
from ragqa.errors import RagqaError
from ragqa.index import Index, index_info, open_index
from ragqa.index.folders import index_names as names_in
from ragqa.index.folders import locate
from ragqa.infra.metrics import METRICS
from ragqa.library.changes import REREAD, PassageChange, Rereading, read_rereading, stale
from ragqa.library.collection import Collection, collections
from ragqa.library.collection import corpus_titles as titles_among
from ragqa.library.gap_runs import GapFolder
from ragqa.library.jobs import Jobs
from ragqa.loading import Models
from ragqa.pipeline import Pipeline, assemble
from ragqa.plugins.protocols import Encoder, Reranker
from ragqa.records.record import AnswerRecord, RecordSummary
from ragqa.records.store import RecordStore
from ragqa.records.view import from_record
from ragqa.retrieval.ranking import rankings_for
from ragqa.server.access.policy import Act
from ragqa.server.queue import RunQueue
from ragqa.settings.config import Config, FusionConfig, RerankingConfig, ScoringConfig
from ragqa.settings.indexing import NO_ENCODER
from ragqa.settings.paths import Paths
from ragqa.settings.preset_files import presets_in
from ragqa.settings.presets import Preset
from ragqa.types import Question
from ragqa.ui import access
from ragqa.ui.shared import shared
from ragqa.ui.state.run import KeptRun, Run, Runs

_logger = logging.getLogger(__name__)

NO_SUCH_RUN = (
    "This address names a run that this server does not have: it was never here, or nobody has looked at it for hours. "
    "Ask again; finished answers are kept in History."
)
NOT_KEPT = (
    "This run began at {when} UTC in another process of this server, and has stored no answer yet: it runs, waits "
    "or was stopped. Reload in a moment, or ask again."
)
UNFINISHED = (
    "Another process of this server was at this run when it kept what is shown here; it goes on there, or was stopped. "
    "Reload to see whether there is more, or ask again."
)
_HTML = Path(__file__).resolve().parents[1] / "html"
ICON = _HTML / "icon.png"  # a local file: Streamlit fetches named icons from the network


@shared()
def style() -> str:
    """The page's style sheet as one ``<style>`` element."""
    return f"<style>{(_HTML / 'style.css').read_text(encoding='utf-8')}</style>"


def record_store(path: Path | str) -> RecordStore:
    """The record store, restricted to what this person may see."""
    return access.gate().seeing(_record_store(path))


@shared()
def _record_store(path: Path | str) -> RecordStore:
    return RecordStore(path)


@shared()
def runs() -> Runs:
    """The runs of every session, found by their ids."""
    return Runs()


@shared()
def turns() -> RunQueue:
    """The run queue of all sessions. Raises ConfigError."""
    made = RunQueue.from_env()
    METRICS.watch("ragqa_runs_at_work", "Questions running now.", lambda: made.at_work)
    METRICS.watch("ragqa_runs_waiting", "Questions that wait for their turn now.", lambda: made.waiting)
    return made


def start_run(question: Question, config: Config, load: Callable[[], Pipeline]) -> Run:
    """Starts a run for this person, or queues it. ``load`` gives the pipeline. Raises AccessError, BusyError."""
    gate = access.gate()
    act, text = (Act.CHECK, question.given) if question.given else (Act.QUESTION, question.text)
    with gate.doing(act, config.index, **gate.asked(text)):
        gate.spend_question()
        turn = turns().take(gate.person.id if gate.audit else "")
        return Run(question, config, access.bound(load), gate.person.id, turn)


def find_run(run_id: str) -> Run | None:
    """The run with this id, if this person began it; else None."""
    found = runs().find(run_id)
    if found and not access.gate().owns(found.owner):
        access.gate().log(Act.REFUSAL, wanted=Act.READ, run=run_id[:6])
        return None
    return found


def kept_run(run_id: str, path: Path | str) -> tuple[Run | None, str]:
    """The stored part of this person's run in another process of the same records, and words about its state.

    Raises RecordError.
    """
    store = record_store(path)
    kept = store.run(run_id)
    if kept is None:
        return None, NO_SUCH_RUN
    if not kept.record_id:
        return None, NOT_KEPT.format(when=kept.began_at[:16].replace("T", " "))
    record = store.load(kept.record_id)
    words = UNFINISHED if record.status in {"answered", "writing"} else ""
    return KeptRun(run_id, from_record(record), kept.who), words


def record_json(record_id: str, path: Path | str) -> str:
    """A finished record as JSON text. Raises RecordError."""
    return _record_json(record_id, path, record_store(path).check(record_id))


@shared(most=16)
def _record_json(record_id: str, path: Path | str, sha256: str) -> str:
    del sha256  # a record changes with a note on one of its sentences
    return _record_store(path).load(record_id).to_json()


def index_names(paths: Paths) -> list[str]:
    """The indexes that this person may read, the demonstration indexes first."""
    gate = access.gate()
    names = [name for name in names_in(paths.indexes) if gate.may(Act.READ, name)]
    demos = [name for name in ("rulebook", "encyclopedia") if name in names]
    return demos + [name for name in names if name not in demos]


def own_presets(folder: Path) -> tuple[tuple[Preset, ...], tuple[str, ...]]:
    """As `ragqa.settings.preset_files.presets_in`; the files are read again only where one changed."""
    try:
        stamps = tuple(
            (path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(folder.glob("*.json"))
        )
    except OSError:
        return presets_in(folder)  # reports the problem
    return _own_presets(folder, stamps)


@shared(most=4)
def _own_presets(folder: Path, stamps: tuple[tuple[str, int, int], ...]) -> tuple[tuple[Preset, ...], tuple[str, ...]]:
    del stamps
    return presets_in(folder)


def rankings_of(name: str, paths: Paths) -> tuple[tuple[str, ...], str]:
    """The names of an index's retrievers, and its first encoder; the defaults where it cannot be read."""
    known = name if access.gate().may(Act.READ, name) else ""
    return _rankings_of(known, paths.indexes, _stamp(known, paths.indexes))


def _stamp(name: str, indexes: Path) -> int:
    """When the index was built, in nanoseconds since 1970; 0 where it cannot be found."""
    try:
        return (locate(name, indexes) / "manifest.json").stat().st_mtime_ns
    except (RagqaError, OSError):
        return 0


@shared(most=64)
def _rankings_of(name: str, indexes: Path, stamp: int) -> tuple[tuple[str, ...], str]:
    del stamp
    try:
        manifest = index_info(name, indexes)
    except RagqaError:
        return rankings_for(tuple(FusionConfig().weights)), ""
    return rankings_for(manifest.retrievers), manifest.encoder


def fitted(config: Config, paths: Paths) -> Config:
    """The settings, without the default reranker where the index does not fit it."""
    known = config.index if access.gate().may(Act.READ, config.index) else ""
    reranking = _fitted(config.reranking, known, paths.indexes, _stamp(known, paths.indexes))
    return replace(config, reranking=reranking)


@shared(most=64)
def _fitted(reranking: RerankingConfig, name: str, indexes: Path, stamp: int) -> RerankingConfig:
    del stamp
    try:
        return loading.fitting_reranking(reranking, index_info(name, indexes))
    except RagqaError:
        return reranking


def open_corpus(name: str, paths: Paths) -> Index:
    """The opened index, opened again only when it was rebuilt. Raises AccessError, IndexingError."""
    access.gate().demand(Act.READ, name)
    return _open(name, paths.indexes, _stamp(name, paths.indexes))


def changes_since(record: AnswerRecord, paths: Paths) -> tuple[PassageChange, ...]:
    """The changes of the passages that a record cites; () where the corpus is gone or unchanged."""
    index = corpus_or_none(record.index, paths)
    if index is None or index.manifest.corpus_sha256 == record.manifest.get("corpus_sha256"):
        return ()
    return stale(record, index, rereading_of(record.index, paths))


def rereading_of(name: str, paths: Paths) -> Rereading:
    """The passages that a new parser version has renamed or cut anew in this corpus."""
    return read_rereading(paths.library / name / REREAD)


def stale_records(records: Sequence[RecordSummary], store: RecordStore, paths: Paths) -> set[str]:
    """The ids of the records that cite changed passages; only records of changed corpora are read."""
    now = {}
    for name in {record.index for record in records}:
        with suppress(RagqaError):
            now[name] = index_info(name, paths.indexes).corpus_sha256
    then = store.sealed([record.record_id for record in records])
    found = set()
    for one in records:
        sealed = then.get(one.record_id)
        if sealed and sealed.corpus_sha256 != now.get(one.index, sealed.corpus_sha256):
            with suppress(RagqaError):
                if changes_since(store.load(one.record_id, is_opened=False), paths):
                    found.add(one.record_id)
    return found


def corpus_or_none(name: str, paths: Paths) -> Index | None:
    """The opened index; None where it is gone, damaged or hidden from this person."""
    try:
        return open_corpus(name, paths)
    except RagqaError:
        return None


@shared(most=8)
def _open(name: str, indexes: Path, stamp: int) -> Index:
    return open_index(name, indexes)


@shared(most=2)
def _models(encoder: str, _scoring: ScoringConfig, models: tuple[str, ...], _paths: Paths) -> Models:
    return loading.load_models(encoder, _scoring, _paths)


def _models_of(encoder: str, scoring: ScoringConfig, paths: Paths) -> Models:
    names = (scoring.entailment_model, scoring.coverage_model, scoring.coverage_input, scoring.obligation_model)
    return _models(encoder, scoring, (*names, scoring.verdict_model, scoring.answer_model, scoring.precision), paths)


def encoder_of(name: str, paths: Paths) -> Encoder | None:
    """The encoder with this name, shared with questions; None for an index without vectors."""
    return None if name == NO_ENCODER else _models_of(name, Config.from_env().scoring, paths).encoder


@shared()
def library_jobs(paths: Paths) -> Jobs:
    """The background jobs of the library."""
    return Jobs(paths.indexes, lambda rankings: _further(tuple(rankings), paths), lambda: turns().at_work > 0)


@shared()
def gap_folder(corpus: str, policies: str, paths: Paths) -> GapFolder:
    """The gap run of a corpus and policies; the caller has checked that the person may read both."""
    return GapFolder(paths.home / "gaps" / corpus / policies)


def library_words(paths: Paths) -> str:
    """A notice for people who ask while the library is working; "" where it is not."""
    if not library_jobs(paths).turn.locked():
        return ""
    return "The library is working on this server. It gives way to questions, which may take twice as long."


def corpus_titles(names: Iterable[str], paths: Paths) -> dict[str, str]:
    """The titles of these indexes: from the demonstration, from the library, else their names."""
    return titles_among(names, own_collections(paths))


def own_collections(paths: Paths) -> list[Collection]:
    """The corpora of the library that this person may read."""
    gate = access.gate()
    return [collection for collection in collections(paths.library) if gate.may(Act.READ, collection.name)]


def own_collection(name: str, paths: Paths) -> Collection | None:
    """The corpus of the library with this name, if this person may read it; else None."""
    return next((collection for collection in own_collections(paths) if collection.name == name), None)


def examples_of(name: str, paths: Paths) -> list[str]:
    """The example questions of a demonstration, or those made from a library corpus."""
    if name in DEMOS:
        return [gold.question.text for gold in DEMOS[name].questions()]
    collection = own_collection(name, paths)
    with suppress(RagqaError):
        return list(collection.read().questions) if collection else []
    return []


def example_gold(name: str, paths: Paths) -> tuple[GoldQuestion, ...]:
    """The example questions with their gold passages, which only demonstrations have."""
    if name in DEMOS:
        return DEMOS[name].questions()
    return tuple(GoldQuestion(Question(text), frozenset()) for text in examples_of(name, paths))


@shared(most=2)
def _further(rankings: tuple[str, ...], _paths: Paths) -> dict[str, Any]:
    return loading.load_further(rankings, _paths)


@shared(most=2)
def _reranker(name: str) -> Reranker:
    return loading.load_reranker(name)


def pipeline(config: Config, paths: Paths, act: Act = Act.QUESTION) -> Pipeline:
    """A pipeline with these settings and the shared models. The first call takes seconds, later ones almost no time.

    Its answers are stored as this person's. Raises AccessError unless they may do this act.
    """
    access.gate().demand(act, config.index)
    return _pipeline(config, paths, record_store(paths.records))


def _pipeline(config: Config, paths: Paths, records: RecordStore | None = None) -> Pipeline:
    index = _open(config.index, paths.indexes, _stamp(config.index, paths.indexes))
    scoring = config.scoring
    manifest = index.manifest
    models = _models_of(manifest.encoder, scoring, paths)
    models = loading.with_reranker(models, config.reranking, manifest, _reranker)
    further = _further(tuple(ranking.option for ranking in manifest.rankings), paths)
    return assemble(config, index, replace(models, further=further), records)


@shared()
def warm_up(config: Config, paths: Paths) -> threading.Thread:
    """Loads the models in the background, so that the first question does not wait for them."""
    return _warming(lambda: _pipeline(config, paths).models)


def missing(config: Config, paths: Paths) -> str:
    """What a question with these settings would lack: corpus, models or records; "" if nothing. The log says why."""
    needs: dict[str, Callable[[], object]] = {
        f"the corpus {config.index}": lambda: _open(config.index, paths.indexes, _stamp(config.index, paths.indexes)),
        "the models": lambda: _pipeline(config, paths),
        "the records": lambda: _record_store(paths.records).list(1),
    }
    for name, need in needs.items():
        try:
            need()
        except RagqaError as error:
            _logger.warning("not ready: %s", error)
            return name
    return ""


@shared()
def warm_encoder(name: str, paths: Paths) -> threading.Thread | None:
    """Loads the models while files are read, because indexing will need the encoder."""
    scoring = Config.from_env().scoring
    return None if name == NO_ENCODER else _warming(lambda: _models_of(name, scoring, paths))


def _warming(load: Callable[[], Models]) -> threading.Thread:
    thread = threading.Thread(target=_warm, args=(load,), name="ragqa-warm-up", daemon=True)
    thread.start()
    return thread


def _warm(load: Callable[[], Models]) -> None:
    try:
        models = load()
        models.encoder.encode(["warm-up"])
        models.encoder.encode_query("warm-up")
        for model in {models.entailment, models.reader}:
            model.predict([("warm-up", "warm-up")])
    except RagqaError as error:  # the first question raises it again and shows it
        _logger.warning("models could not be loaded ahead: %s", error)

"""The functions for programs, called by HTTP (`http.py`), tools (`tools.py`) and the retrievers of other libraries.

Each asks the gate first, as the page does. Questions and checks wait in the run queue with those of the page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Protocol

from ragqa.conversation import Turn, rewrite
from ragqa.errors import BusyError, CorpusError, QuestionError, RagqaError
from ragqa.generation.answers import answer_of_text, passages_of_texts
from ragqa.index import Index
from ragqa.library.register import obliging
from ragqa.pipeline import Pipeline, clean_question
from ragqa.records.store import RecordStore
from ragqa.server.access.gate import Gate
from ragqa.server.access.policy import Act
from ragqa.server.queue import QueuePlace
from ragqa.settings import presets
from ragqa.settings.config import Config, with_values
from ragqa.settings.paths import Paths
from ragqa.settings.preset_files import find_preset
from ragqa.types import Passage, Question, Selection
from ragqa.types.events.pipeline import Event, Recorded, Selected
from ragqa.types.streams import returned

MOST_RESULTS: Final = 100  # passages of a search
MOST_TEXTS: Final = 200  # passages that are scored or searched for obligations at once
LONGEST_TEXT: Final = 20_000  # characters of one passage or answer
StillWanted = Callable[[], None]  # raises where nobody waits for the result any more; asked in the queue and at events


def _always() -> None:
    """Every result is wanted."""


class Backend(Protocol):
    """What the functions need of a process: the page's server, or a single program."""

    def gate(self) -> Gate:
        """The gate of the person behind this request."""

    def corpora(self) -> dict[str, str]:
        """The corpora that this person may read, as names mapped to titles."""

    def index(self, name: str) -> Index:
        """An opened corpus. Raises AccessError, IndexingError."""

    def pipeline(self, config: Config) -> Pipeline:
        """A pipeline with these settings. Raises AccessError, IndexingError, ModelError."""

    def records(self) -> RecordStore:
        """The records that this person may see."""

    def turn(self) -> QueuePlace | None:
        """A place in the run queue; None without a queue. Raises BusyError."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A question or a text to check, with the settings, which name the corpus."""

    question: Question
    config: Config


def asked_of(
    backend: Backend,
    corpus: str,
    question: str,
    *,
    text: str = "",
    preset: str = "",
    as_of: str = "",
    thread: Sequence[Turn] = (),
) -> Inquiry:
    """The cleaned inquiry; with a ``thread`` a follow-up is first rewritten as a question that stands alone.

    ``as_of`` is a day, YYYY-MM-DD: see `ragqa.settings.config.FilteringConfig`.

    Raises AccessError, QuestionError, ConfigError.
    """
    config = Config.from_env()
    if preset:
        config = presets.with_preset(config, find_preset(preset, Paths.from_env().presets, is_remote=True))
    config = with_values(replace(config, index=corpus or config.index), {"as_of": as_of} if as_of else {})
    asked = clean_question(Question(question, given=text))
    if thread and not text:
        backend.gate().demand(Act.QUESTION, config.index)  # a language model may rewrite it
        found = rewrite(asked.text, thread, config.generation)
        asked = clean_question(replace(asked, text=found.rewritten, follow_up=found))
    backend.gate().demand(Act.READ, config.index)
    return Inquiry(asked, config)


@contextmanager
def _turn(
    backend: Backend, act: Act, corpus: str = "", *, still_wanted: StillWanted, **about: object
) -> Iterator[None]:
    """Logs the act, counts it as a question and waits for a turn in the run queue. Raises AccessError, BusyError."""
    gate = backend.gate()
    with gate.doing(act, corpus, **about):
        gate.spend_question()
        turn = backend.turn()
    try:
        if turn and not turn.wait(lambda _: None, still_wanted):
            raise BusyError("The server stopped before this request's turn came; send it again.")
        yield
    finally:
        if turn:
            turn.leave()


def events(backend: Backend, asked: Inquiry, still_wanted: StillWanted = _always) -> Generator[Event, None, None]:
    """Waits for a turn, then gives the pipeline's events; closing the generator stops the work.

    Raises AccessError, BusyError, and the errors of `Pipeline.run` and ``still_wanted``.
    """
    question = asked.question
    act, text = (Act.CHECK, question.given) if question.given else (Act.QUESTION, question.text)
    with (
        _turn(backend, act, asked.config.index, still_wanted=still_wanted, **backend.gate().asked(text)),
        closing(backend.pipeline(asked.config).run(question)) as some,  # type: ignore[type-var]
    ):
        for event in some:
            still_wanted()
            yield event


def record_of(
    backend: Backend,
    asked: Inquiry,
    still_wanted: StillWanted = _always,
    hear: Callable[[Event], None] = lambda _: None,
) -> dict[str, Any]:
    """The record, as `ragqa ask --json` prints it. ``hear`` gets each event. Raises as `events`."""
    record_id = ""
    with closing(events(backend, asked, still_wanted)) as some:
        for event in some:
            hear(event)
            if isinstance(event, Recorded):
                record_id = event.record_id
    return stored(backend, record_id)


def stored(backend: Backend, record_id: str) -> dict[str, Any]:
    """A record by its id. Raises RecordError where there is none that this person may see."""
    found: dict[str, Any] = json.loads(backend.records().load(record_id).to_json())
    return found


def search(
    backend: Backend, asked: Inquiry, limit: int = 10, still_wanted: StillWanted = _always
) -> list[dict[str, Any]]:
    """The best passages for a question, with relevance and the filter's reason; no answer is written.

    Raises as `events`.
    """
    config = replace(asked.config, generation=replace(asked.config.generation, generator="none"))
    with _turn(backend, Act.READ, config.index, still_wanted=still_wanted):
        selection = _selection(backend.pipeline(config), asked.question, still_wanted)
    candidates = sorted((*selection.kept, *selection.dropped), key=lambda one: one.rank)
    return [
        passage_row(one.passage, asked.config.index)
        | {"rank": one.rank, "relevance": one.relevance, "kept": one.drop is None, "why": one.explanation}
        for one in candidates[: min(limit, MOST_RESULTS)]
    ]


def _selection(pipeline: Pipeline, question: Question, still_wanted: StillWanted) -> Selection:
    found = []
    with closing(pipeline.run(question)) as some:  # type: ignore[type-var]
        for event in some:
            still_wanted()
            if isinstance(event, Selected):
                found.append(event.selection)
    return found[-1]


def score(
    backend: Backend, passages: Sequence[str], answer: str, still_wanted: StillWanted = _always
) -> dict[str, Any]:
    """Scores an answer against these passages, in both modes.

    Raises QuestionError, ScoringError, AccessError, BusyError and the errors of ``still_wanted``.
    """
    texts, (written,) = passages_of_texts(_bounded(passages)), _bounded([answer])
    with _turn(backend, Act.CHECK, still_wanted=still_wanted, characters=len(answer)):
        scorer = backend.pipeline(Config.from_env()).scorer
        with closing(scorer.stream(answer_of_text(written), texts)) as stream:
            return asdict(returned(stream, lambda _: still_wanted()))


def obligations(
    backend: Backend, corpus: str, passages: Sequence[Passage], still_wanted: StillWanted = _always
) -> list[dict[str, Any]]:
    """Every sentence of these passages that obliges or recommends, with strength and place.

    Raises QuestionError, AccessError, BusyError, ModelError and the errors of ``still_wanted``.
    """
    _bounded([one.text for one in passages])
    found = []
    with _turn(backend, Act.READ, corpus, still_wanted=still_wanted):
        for passage, span, strength in obliging(passages):
            still_wanted()
            place = {"text": span.text, "start": span.start, "end": span.end, "strength": str(strength)}
            found.append(place | {"passage": passage_row(passage, corpus)})
    return found


def rule(backend: Backend, corpus: str, reference: str) -> list[dict[str, Any]]:
    """The passages of a rule by its number, as "Article 6(1)(a)" or "3.1.1 of the Outsourcing Rules"; [] if none."""
    with backend.gate().doing(Act.READ, corpus):
        index = backend.index(corpus)
    names = [reference, f"rule {reference}"]
    found = next((some for name in names if (some := index.asked_by_number(name))), ())
    return [passage_row(passage, corpus) for passage in found]


def passage(backend: Backend, corpus: str, passage_id: str) -> Passage:
    """One passage by its id. Raises CorpusError where the corpus has none with this id."""
    with backend.gate().doing(Act.READ, corpus):
        index = backend.index(corpus)
    found = index.passage(passage_id)
    if found is None:
        msg = f"expected the id of a passage of {corpus}, found {passage_id[:80]!r}; ids are those that a search gives"
        raise CorpusError(msg)
    return found


def passage_row(one: Passage, corpus: str) -> dict[str, Any]:
    """A passage as JSON values; empty fields are left out."""
    return {"corpus": corpus} | {name: value for name, value in asdict(one).items() if value}


def _bounded(texts: Sequence[str]) -> Sequence[str]:
    if len(texts) > MOST_TEXTS or any(len(text) > LONGEST_TEXT for text in texts):
        longest = max(map(len, texts))
        raise QuestionError(
            f"expected at most {MOST_TEXTS} passages of at most {LONGEST_TEXT:,} characters, found {len(texts)}, the "
            f"longest of {longest:,}; send fewer or shorter ones"
        )
    return texts


def corpora(backend: Backend) -> Iterator[dict[str, Any]]:
    """The corpora that this person may read, with their number of passages; unreadable ones are left out."""
    for name, title in backend.corpora().items():
        try:
            manifest = backend.index(name).manifest
        except RagqaError:
            continue
        yield {"name": name, "title": title, "passages": manifest.n_passages, "built_at": manifest.created}

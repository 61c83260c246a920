"""A benchmark is a value: its options and six or seven functions. `ragqa.evaluation.run` runs them.

::

    settings ──load──> Task ──solve──> solution ──score──> scores ──row──> Row ─┐
                       items, stamp    what was found      what it is worth     ├─report──> Report ──export──> files
                                       or answered                              ┘

A benchmark is a folder of `ragqa.evaluation` whose ``benchmark.py`` defines ``BENCHMARK``, or another package's entry
point in the group ``ragqa.benchmarks``; see `ragqa.evaluation.catalogue`. Solutions and scores are JSON objects, kept
in the run's journal, so that a killed run continues after the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from ragqa.errors import ConfigError, CorpusError
from ragqa.evaluation.report import Column, Figure, File, Report, Row
from ragqa.infra.files import sha256_of
from ragqa.infra.journal import digest
from ragqa.infra.version import __version__
from ragqa.settings.paths import Paths
from ragqa.types import Question

if TYPE_CHECKING:
    from ragqa.index import Index

Kind = Literal["argument", "file", "path", "index", "preset", "generator", "text", "choice", "int", "float", "flag"]
Json = Mapping[str, Any]
Settings = Mapping[str, Any]  # values by name of the option, for every option of the benchmark
# Fields of a benchmark that a module may define as functions of the same name.
FUNCTIONS: Final = ("load", "solve", "score", "row", "figures", "report", "export", "published", "fits", "lacks")


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a benchmark's command and, if it has a label, a field of its form on the page.

    ``name`` is a Python identifier; the option of the command line is ``--rerank-weight`` for ``rerank_weight``. The
    kinds ``file`` and ``argument`` (a positional file) are paths of existing files, which are required unless
    ``optional``; ``path`` is any path. ``counts`` reads such a file and returns its number of items, or raises
    CorpusError. ``suits`` tells from the beginning of a file whether it may be one, so that the page can offer it.
    ``accepts`` says in words what it must contain.
    """

    name: str
    help: str
    kind: Kind = "text"
    default: Any = None  # None if it is not given
    choices: tuple[str, ...] = ()
    many: bool = False
    least: float | None = None
    most: float | None = None
    label: str = ""
    decides: bool = True  # False if it only affects how the run is carried out or reported
    accepts: str = "JSON or JSON lines"
    counts: Callable[[Path], int] | None = None
    suits: Callable[[Path], bool] | None = None
    environment: str = ""  # the variable with the value if the option is not given
    optional: bool = False  # for a file; on the page, also for an index
    builds: str = ""  # for an index: the name of one that loading builds, offered by the page if no other fits
    positional: bool = False  # for an index: a positional argument of the command
    allows: Callable[[Any], bool] | None = (
        None  # for a preset: whether the page offers this `ragqa.settings.presets.Preset`
    )
    said: Mapping[str, str] = field(default_factory=dict)  # words for choices that do not explain themselves
    when: Callable[[Settings], bool] | None = None  # whether the page asks for it, given the choices above it

    @property
    def flag(self) -> str:
        """The option on the command line: ``"--rerank-weight"``."""
        return f"--{self.name.replace('_', '-')}"


LIMIT = Option("limit", "Only the first N items.", "int", least=1, label="How many", decides=False)
PARALLEL = Option(
    "parallel", "Questions asked of a language model at the same time.", "int", 1, least=1, most=64, decides=False
)
INDEX = Option("index", "Corpus.", "index", "rulebook", label="Corpus")
PRESET = Option("preset", "Preset, by name or as a preset file.", "preset", label="Settings")
GENERATOR = Option("generator", "Generator; default: by the environment.", "generator", label="Generator")


@dataclass(frozen=True, slots=True)
class Item:
    """One item to solve: its place in the file, from 1, its question, and other content that the benchmark loaded."""

    number: int
    question: Question
    content: Any = None
    sha256: str = ""  # of its content; if not given, of the question's id and text

    @property
    def identity(self) -> str:
        """The hexadecimal digest by which an item is recognised when it is read back."""
        return self.sha256 or digest({"id": self.question.question_id, "text": self.question.text})


@dataclass(frozen=True, slots=True)
class Task:
    """A benchmark loaded with some settings.

    ``stamp`` is everything that decides a solution, as JSON: a different stamp means a different run, except for the
    name of its ``input``. During a run it is the stamp of its folder, with the benchmark's name and ragqa's version.
    ``scoring`` is everything else that decides a score: if it has changed, solutions are restored and scored again.
    ``context`` is for the benchmark's own functions: open indexes, models, gold. ``columns`` are the measures of an
    item. ``during`` is called with the run's folder and is entered while items are solved and scored, for example for a
    cache there. ``outputs`` are files of this run in addition to `Benchmark.outputs`. If ``solves`` is False, there is
    nothing to solve, as when other people's answers are counted; the report is made without a journal.
    """

    items: Sequence[Item]
    stamp: Json
    context: Any
    columns: tuple[Column, ...] = ()
    scoring: Json = field(default_factory=dict)
    parallel: int = 1
    during: Callable[[Path], AbstractContextManager[object]] = nullcontext
    outputs: tuple[str, ...] = ()
    solves: bool = True


class Status(StrEnum):
    """The status of an item."""

    SCORED = "scored"
    EMPTY = "empty"  # solved, but with nothing to score
    SKIPPED = "skipped"  # excluded by the benchmark's rules
    FAILED = "failed"
    LEFT = "left"  # not tried, or solved but not scored


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an item. ``note`` says why there are no scores; ``restored`` means from an earlier run.

    ``n_begun`` counts how often it was begun: more than once after a stop or a failure. ``read`` reads the journal.
    """

    item: Item
    status: Status = Status.LEFT
    note: str = ""
    n_begun: int = 0
    restored: bool = False
    read: Callable[[str], Json | None] = lambda _: None

    @property
    def is_done(self) -> bool:
        """Whether this item is finished."""
        return self.status in (Status.SCORED, Status.EMPTY, Status.SKIPPED)

    @property
    def solution(self) -> Json | None:
        """The result of `Benchmark.solve`, read from disk each time; None if there is none yet."""
        return self.read("solution")

    @property
    def scores(self) -> Json | None:
        """The result of `Benchmark.score`, read likewise."""
        return self.read("scores")

    def row(self) -> Row:
        """The row of an item without results."""
        question = self.item.question
        return Row(self.item.number, question.question_id, question.text, note=self.note, restored=self.restored)


@dataclass(frozen=True, slots=True)
class Command:
    """A further subcommand of a benchmark, such as checking a submission.

    ``call`` gets every option's value and returns a report, and whether all is well.
    """

    name: str
    description: str
    options: tuple[Option, ...]
    call: Callable[[Settings], tuple[Report, bool]]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark. ``right`` says when an item counts as right; ``verdicts`` names right and other items.

    ``load`` yields progress in words and returns the task; only it may take long. Its settings have two more values,
    the run's ``folder`` and whether to ``restart`` it, for benchmarks that keep further files there. ``solve`` and
    ``score`` are called from threads, one per item, and return JSON values. A score may be ``{"status": "empty" |
    "skipped", "note": …}``, or contain ``{"again": true}`` if a part of it was unavailable and the next run should try
    again. A `RagqaError` in either fails that item alone. ``row`` makes an item's row of a table, ``figures`` the
    figures of the run so far, ``report`` the report of a finished run. ``export`` writes its files; names of files that
    a new run in the same folder must remove are in ``outputs``.

    For the page, ``fits`` says whether an index suits the questions of a file, and ``lacks`` says in words what these
    settings lack if a run cannot begin.
    """

    name: str
    title: str
    description: str
    options: tuple[Option, ...]
    load: Callable[[Settings, Paths], Generator[str, None, Task]]
    solve: Callable[[Task, Item], Json]
    score: Callable[[Task, Item, Json], Json]
    row: Callable[[Task, Outcome], Row]
    figures: Callable[[Task, Sequence[Row]], tuple[Figure, ...]]
    report: Callable[[Task, Sequence[Outcome]], Report]
    export: Callable[[Task, Sequence[Outcome], Report, Path], Sequence[File]] = lambda *_: ()  # only report.json
    published: Callable[[Settings], Report] | None = None  # shown by the page before any run
    right: str = ""
    verdicts: tuple[str, str] = ("right", "wrong")
    doing: str = "Solving"  # label of the progress bar
    on_page: bool = True
    outputs: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()
    fits: Callable[[Path, Index], bool] | None = None
    lacks: Callable[[Settings], str] | None = None

    @classmethod
    def of(cls, functions: Mapping[str, Any], **values: Any) -> Self:  # noqa: ANN401 - values of any field
        """A benchmark with a module's functions that are named like the fields: ``of(globals(), name=…)``."""
        return cls(**{name: functions[name] for name in FUNCTIONS if name in functions} | values)

    def option(self, name: str) -> Option:
        """The option of this name. Raises ConfigError."""
        for option in self.options:
            if option.name == name:
                return option
        names = ", ".join(option.name for option in self.options)
        raise ConfigError(f"{self.name} has no option {name!r}, expected one of {names}; correct it and try again")

    def settings(self, **given: Any) -> dict[str, Any]:  # noqa: ANN401 - values of any option
        """Every option's value, given or default. Raises ConfigError for an unknown option."""
        chosen = {self.option(name).name: value for name, value in given.items()}
        return {
            option.name: option.default if chosen.get(option.name) is None else chosen[option.name]
            for option in self.options
        }

    def run_id(self, settings: Settings) -> str:
        """``"pandachat-3fa94c01b2"``: equal for the same files and settings, whatever the limit of items.

        Files are identified by their content, folders by their path. Raises CorpusError if a file cannot be read.
        """
        plain: dict[str, Any] = {"ragqa_version": __version__}  # another version does not continue a run
        for option in self.options:
            value = settings.get(option.name)
            if option.decides and value not in (None, "", ()):
                is_file = option.kind in ("file", "argument")
                name = _named if is_file else lambda one: str(one) if isinstance(one, Path) else one
                plain[option.name] = list(map(name, _all(value)))
        return f"{self.name}-{digest(plain)[:10]}"

    def words(self, settings: Settings, titles: Mapping[str, str] = MappingProxyType({})) -> str:
        """The settings on one line, for headings and lists; ``titles`` are those of corpora, by name."""
        return ", ".join(filter(None, (_words(one, settings.get(one.name), titles) for one in self.options)))


def _words(option: Option, value: object, titles: Mapping[str, str]) -> str:
    if value in (None, "", False, ()) or (not option.label and option.kind not in ("file", "argument")):
        return ""
    if option.kind in ("file", "argument"):
        return ", ".join(Path(one).name for one in _all(value))
    if option.name == LIMIT.name:
        return f"first {value:,} questions"
    if option.kind in ("int", "float"):
        return f"{option.label.lower()} {value:,}"
    if option.kind == "index":
        return titles.get(str(value), str(value))
    return ", ".join(option.said.get(one, str(one)) for one in _all(value))


def _all(value: Any) -> Iterator[Any]:  # noqa: ANN401
    yield from value if isinstance(value, list | tuple) else (value,)


def _named(place: str | Path) -> str:
    """The identity of a file: the hexadecimal sha256 of its content; for a folder, its path."""
    path = Path(place)
    if path.is_dir():
        return str(path.resolve())
    try:
        return sha256_of(path)
    except OSError as error:
        raise CorpusError(f"{path} cannot be read ({error.strerror or error}); choose another file") from error

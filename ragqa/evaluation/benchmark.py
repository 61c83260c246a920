"""A benchmark is a value: what it asks of its user, and six or seven functions. `ragqa.evaluation.run` runs them.

::

    settings ──load──> Task ──solve──> solution ──score──> scores ──row──> Row ─┐
                       items, stamp    what was found      what it is worth     ├─report──> Report ──export──> files
                                       or answered                              ┘

A benchmark is a folder of `ragqa.evaluation` whose ``benchmark.py`` holds ``BENCHMARK``, or an entry point of another
package in the group ``ragqa.benchmarks``; see `ragqa.evaluation.catalogue`. Solutions and scores are JSON objects: the
run's journal keeps them, so that a run that was killed continues after the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
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
Settings = Mapping[str, Any]  # values by the name of their option; every option of the benchmark is there
# Fields of a benchmark that a module may give by their names.
FUNCTIONS: Final = ("load", "solve", "score", "row", "figures", "report", "export", "published", "fits", "lacks")


@dataclass(frozen=True, slots=True)
class Option:
    """One choice of who runs the benchmark: an option of its command and, where it has a label, a field of its form.

    ``name`` is a Python identifier; the option of the command line is ``--rerank-weight`` for ``rerank_weight``. The
    kinds ``file`` and ``argument`` (a file that the command takes without an option's name) are paths of existing
    files, which must be given unless ``optional``; ``path`` is any place. ``counts`` reads such a file and gives how
    many items it holds, or raises CorpusError; ``suits`` tells from the beginning of a file whether it may be one, so
    that the page can offer it, and ``accepts`` says in words what it must hold.
    """

    name: str
    help: str
    kind: Kind = "text"
    default: Any = None  # None: not given
    choices: tuple[str, ...] = ()
    many: bool = False
    least: float | None = None
    most: float | None = None
    label: str = ""
    decides: bool = True  # False: how the run is carried out or reported, not which run it is
    accepts: str = "JSON or JSON lines"
    counts: Callable[[Path], int] | None = None
    suits: Callable[[Path], bool] | None = None
    environment: str = ""  # the variable that gives the value where no option does
    optional: bool = False  # of a file; on the page of an index, too
    builds: str = ""  # of an index: the name under which loading builds one, which the page offers where none fits
    positional: bool = False  # of an index: the command takes it without an option's name
    allows: Callable[[Any], bool] | None = (
        None  # of a preset: whether the page offers this `ragqa.settings.presets.Preset`
    )
    when: Callable[[Settings], bool] | None = None  # whether the page asks for it, after what was chosen above it

    @property
    def flag(self) -> str:
        """What is typed: ``"--rerank-weight"``."""
        return f"--{self.name.replace('_', '-')}"


LIMIT = Option("limit", "Only the first N items.", "int", least=1, label="How many", decides=False)
PARALLEL = Option(
    "parallel", "Questions asked of a language model at the same time.", "int", 1, least=1, most=64, decides=False
)
INDEX = Option("index", "Corpus.", "index", "rulebook", label="Index")
PRESET = Option("preset", "Preset, by name or as a preset file.", "preset", label="Settings")
GENERATOR = Option("generator", "Generator; default: by the environment.", "generator", label="Generator")


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to solve: its place in the file, from 1, its question, and what else the benchmark loaded of it."""

    number: int
    question: Question
    content: Any = None
    sha256: str = ""  # of what it is; of id and text of the question where not given

    @property
    def identity(self) -> str:
        """The hexadecimal digest that tells whether an item read back is this one."""
        return self.sha256 or digest({"id": self.question.question_id, "text": self.question.text})


@dataclass(frozen=True, slots=True)
class Task:
    """A benchmark loaded with some settings.

    ``stamp`` is everything that decides a solution, as JSON: another stamp is another run, but for the name of its
    ``input``. While it runs the stamp is that of its folder, with the benchmark's name and ragqa's version.
    ``scoring`` is everything else that decides a score: where it changed, solutions are restored and scored again.
    ``context`` is what the benchmark's own functions work with: open indexes, models, gold. ``columns`` are the
    measures of an item. ``during`` is given the run's folder and is entered while its items are solved and scored,
    such as a cache there. ``outputs`` are files beside `Benchmark.outputs` that belong to this run alone. ``solves``
    False: there is nothing to solve, as where other people's answers are counted; the report is drawn up without a
    journal.
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
    """What became of an item."""

    SCORED = "scored"
    EMPTY = "empty"  # solved, and nothing in it to score
    SKIPPED = "skipped"  # the benchmark's rules pass over it
    FAILED = "failed"
    LEFT = "left"  # not tried, or solved and not scored


@dataclass(frozen=True, slots=True)
class Outcome:
    """One item's fate. ``note`` says why there are no scores; ``restored``: read back from an earlier run.

    ``n_begun`` is how often it was begun, more than once after a stop or a failure. ``read`` reads the journal.
    """

    item: Item
    status: Status = Status.LEFT
    note: str = ""
    n_begun: int = 0
    restored: bool = False
    read: Callable[[str], Json | None] = lambda _: None

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to be done for this item."""
        return self.status in (Status.SCORED, Status.EMPTY, Status.SKIPPED)

    @property
    def solution(self) -> Json | None:
        """What `Benchmark.solve` gave, read from disk each time; None where it gave nothing yet."""
        return self.read("solution")

    @property
    def scores(self) -> Json | None:
        """What `Benchmark.score` gave, likewise."""
        return self.read("scores")

    def row(self) -> Row:
        """The row of an item of which nothing else is known yet."""
        question = self.item.question
        return Row(self.item.number, question.question_id, question.text, note=self.note, restored=self.restored)


@dataclass(frozen=True, slots=True)
class Command:
    """Something a benchmark offers beside its runs, a subcommand of the command line, such as checking a submission.

    ``call`` is given every option's value and returns what there is to say, and whether all is well.
    """

    name: str
    description: str
    options: tuple[Option, ...]
    call: Callable[[Settings], tuple[Report, bool]]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What a benchmark is. ``right`` says when an item counts as right, ``verdicts`` what such items and others are.

    ``load`` yields words for what it is doing and returns the task; it alone may take long. Its settings have two more
    values, the run's ``folder`` and whether to ``restart`` it, for who keeps further files there. ``solve`` and
    ``score`` are called from threads, each item's in one of them, and give what JSON can hold; a score may say
    ``{"status": "empty" | "skipped", "note": …}``, or ``{"again": true}`` where a part of it could not be had and the
    next run is to try once more. A `RagqaError` of either fails that item alone. ``row`` draws one
    item up for a table, ``figures`` the run so far from its rows, ``report`` the run when it has ended, and ``export``
    writes its files, whose names are in ``outputs`` where a new run in the same folder must remove them.

    For the page: ``fits`` says whether an index is one for the questions of a file, ``lacks`` what is missing for these
    settings, in words, where a run cannot begin.
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
    export: Callable[[Task, Sequence[Outcome], Report, Path], Sequence[File]] = lambda *_: ()  # report.json alone
    published: Callable[[Settings], Report] | None = None  # what the page shows before anything has run
    right: str = ""
    verdicts: tuple[str, str] = ("right", "wrong")
    doing: str = "Solving"  # in front of the progress bar
    on_page: bool = True
    outputs: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()
    fits: Callable[[Path, Index], bool] | None = None
    lacks: Callable[[Settings], str] | None = None

    @classmethod
    def of(cls, functions: Mapping[str, Any], **values: Any) -> Self:  # noqa: ANN401 - values of any field
        """One whose functions are those that a module has under the names of the fields: ``of(globals(), name=…)``."""
        return cls(**{name: functions[name] for name in FUNCTIONS if name in functions} | values)

    def option(self, name: str) -> Option:
        """The option of this name. Raises ConfigError."""
        for option in self.options:
            if option.name == name:
                return option
        names = ", ".join(option.name for option in self.options)
        raise ConfigError(f"{self.name} has no option {name!r}, expected one of {names}; correct it and try again")

    def settings(self, **given: Any) -> dict[str, Any]:  # noqa: ANN401 - values of any option
        """Every option's value: the one given, or its default. Raises ConfigError for one that does not exist."""
        chosen = {self.option(name).name: value for name, value in given.items()}
        return {
            option.name: option.default if chosen.get(option.name) is None else chosen[option.name]
            for option in self.options
        }

    def run_id(self, settings: Settings) -> str:
        """``"pandachat-3fa94c01b2"``: the same for the same files and settings, however many items are asked for.

        Files count by their content, folders by their name. Raises CorpusError where a file cannot be read.
        """
        plain: dict[str, Any] = {"ragqa_version": __version__}  # another version continues no run
        for option in self.options:
            value = settings.get(option.name)
            if option.decides and value not in (None, "", ()):
                is_file = option.kind in ("file", "argument")
                name = _named if is_file else lambda one: str(one) if isinstance(one, Path) else one
                plain[option.name] = list(map(name, _all(value)))
        return f"{self.name}-{digest(plain)[:10]}"

    def words(self, settings: Settings) -> str:
        """The settings on one line, for headings and lists."""
        return ", ".join(filter(None, (_words(option, settings.get(option.name)) for option in self.options)))


def _words(option: Option, value: object) -> str:
    if value in (None, "", False, ()) or (not option.label and option.kind not in ("file", "argument")):
        return ""
    if option.kind in ("file", "argument"):
        return ", ".join(Path(one).name for one in _all(value))
    if option.name == LIMIT.name:
        return f"first {value:,} questions"
    return f"index {value}" if option.kind == "index" else ", ".join(map(str, _all(value)))


def _all(value: Any) -> Iterator[Any]:  # noqa: ANN401
    yield from value if isinstance(value, list | tuple) else (value,)


def _named(place: str | Path) -> str:
    """What a file is known by: the hexadecimal sha256 of its content; of a folder its place."""
    path = Path(place)
    if path.is_dir():
        return str(path.resolve())
    try:
        return sha256_of(path)
    except OSError as error:
        raise CorpusError(f"{path} cannot be read ({error.strerror or error}); choose another file") from error

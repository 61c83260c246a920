"""The registry of parts: their names, requirements and options, and how they are created.

Settings, command line, page and records read the names here. Another installed package adds a part by an entry point
in one of the groups below: the part has the entry point's name, and the object is a class or function that makes it.
This maker may have some attributes of `Part`: ``label``, ``explanation`` (else the first line of its docstring),
``needs``, ``options``. It is imported when it is used or described, never to list its name.

A maker is called with the objects that its parameters name, see `make`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import Parameter, getdoc, signature
from typing import Any, Final

from ragqa.errors import ConfigError, RagqaError
from ragqa.plugins.parts import BENCHMARKS as BENCHMARKS
from ragqa.plugins.parts import CORPUS_FORMATS as CORPUS_FORMATS
from ragqa.plugins.parts import ENCODERS as ENCODERS
from ragqa.plugins.parts import GENERATORS as GENERATORS
from ragqa.plugins.parts import LANGUAGE_MODEL as LANGUAGE_MODEL
from ragqa.plugins.parts import NLI_MODELS as NLI_MODELS
from ragqa.plugins.parts import OURS
from ragqa.plugins.parts import RERANKERS as RERANKERS
from ragqa.plugins.parts import RETRIEVERS as RETRIEVERS
from ragqa.plugins.parts import Part as Part
from ragqa.types import ModelInfo

RESERVED: Final = frozenset({"fused", "reranker", "reranked"})  # columns of tables beside those of retrievers

_METHODS: Final = {  # that a part of another package must have, see `ragqa.plugins.protocols`
    GENERATORS: ("stream",),
    RETRIEVERS: ("retrieve",),
    ENCODERS: ("encode", "encode_query"),
    RERANKERS: ("score_hits",),
    NLI_MODELS: ("predict",),
}
_looked: Final = [0]  # number of calls of `refresh`
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Found:
    """The valid entry points of a group, by name, and a line on each invalid one."""

    points: Mapping[str, EntryPoint]
    refused: tuple[str, ...]


def _found(group: str) -> _Found:
    return _look(group, _looked[0])


@cache
def _look(group: str, _time: int) -> _Found:
    taken = {name for part in ours(group) for name in (part.name, part.key)}
    taken |= RESERVED if group == RETRIEVERS else set()
    points: dict[str, EntryPoint] = {}
    refused = []
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, _package(point))):
        if point.name in taken:
            refused.append(f"{_said(group, point)} has the name of a built-in part and is ignored; rename it")
        elif point.name in points:
            if point.value != points[point.name].value:  # a path listed twice gives the same one twice
                other = _package(points[point.name])
                refused.append(f"{_said(group, point)} has the name of a part of {other} and is ignored; remove either")
        elif not re.fullmatch(r"[a-z0-9][a-z0-9_.-]*", point.name):
            refused.append(
                f"{_said(group, point)} is left out: a name has lower-case letters, digits, -, _ and . only; rename it"
            )
        else:
            points[point.name] = point
    for line in refused:
        _logger.warning("%s", line)
    return _Found(points, tuple(refused))


def entry_points_of(group: str) -> Mapping[str, EntryPoint]:
    """The entry points of other installed packages in this group, by name; none is imported.

    Those with the name of a bundled part, or of another package's, are left out, with a warning in the log.
    """
    return _found(group).points


def refresh() -> None:
    """Looks for entry points again, after packages were installed while the process runs.

    The result of a search that another thread began before is not used afterwards.
    """
    _looked[0] += 1
    _look.cache_clear()
    _object.cache_clear()


def ours(group: str) -> tuple[Part, ...]:
    """The bundled parts."""
    return OURS.get(group, ())


def names(group: str) -> tuple[str, ...]:
    """Every name of this group, ours first; nothing is imported for it."""
    return (*(part.name for part in ours(group)), *entry_points_of(group))


def listed(group: str) -> str:
    """The names of this group, listed for a sentence."""
    return ", ".join(names(group))


def find(group: str, name: str) -> Part | None:
    """The part of this name, None if there is none. ``splade`` and ``splade:x`` are both ``splade:MODEL``.

    Raises ConfigError, naming the package, if it belongs to another package and cannot be imported.
    """
    exact = (part for part in ours(group) if part.name == name)
    pattern = (part for part in ours(group) if ":" in part.name and part.key == name.partition(":")[0])
    found = next(exact, None) or next(pattern, None)
    point = entry_points_of(group).get(name)  # once: another thread may refresh
    if found or point is None:
        return found
    made = _imported(point, group)
    doc = (getdoc(made) or "").strip().partition("\n")[0]
    return Part(
        name,
        str(getattr(made, "label", name)),
        str(getattr(made, "explanation", "") or doc or f"Of the package {_package(point)}."),
        made,
        tuple(getattr(made, "needs", ())),
        tuple(getattr(made, "options", ())),
        also=callable(getattr(made, "write", None)),
        package=_package(point),
    )


def label(name: str, group: str = RETRIEVERS) -> str:
    """The label of ragqa's part of exactly this name; else the name."""
    return next((part.label for part in ours(group) if part.name == name), name)


def is_known(group: str, name: str) -> bool:
    """Whether there is a part of this name; nothing is imported for it."""
    return name in entry_points_of(group) or find(group, name) is not None


def further_rankings() -> tuple[str, ...]:
    """The values of `ragqa index build --also`; rankings of other packages work only if they have files."""
    return (*(part.name for part in ours(RETRIEVERS) if part.also), *entry_points_of(RETRIEVERS))


def is_further_ranking(option: str) -> bool:
    """Whether ``option`` is one of `further_rankings`, with a model's name in place of its placeholder."""
    kind, _, model = option.partition(":")
    known = (name.partition(":") for name in further_rankings())
    return any(kind == key and bool(colon) == bool(model.strip()) for key, colon, _ in known)


def retriever_name(option: str) -> str:
    """The name of a further ranking's retriever: ``splade`` for ``splade:MODEL``, ``dense:ENCODER`` as it is."""
    return option if option.startswith("dense:") else option.partition(":")[0]


def is_ranking_name(name: str) -> bool:
    """Whether a retriever may have this name: ``bm25``, ``dense``, a further ranking, or ``dense:ENCODER``."""
    return is_known(RETRIEVERS, name) and retriever_name(name) == name and not name.endswith(":")


def score_name(retriever: str) -> str:
    """The name of this retriever's raw scores in tables: ``cosine`` for ``dense``, else the last part of its name."""
    named = {retriever_name(part.name): part.score for part in ours(RETRIEVERS)}
    return named.get(retriever) or retriever.rpartition(":")[2]


def parts(group: str) -> tuple[Part, ...]:
    """Every part of this group, ours first; those of other packages are imported, broken ones left out."""
    found = []
    for name in names(group):
        try:
            part = find(group, name)
        except ConfigError as error:
            _logger.warning("%s", error)
            continue
        found += [part] if part else []
    return tuple(found)


def problems(group: str) -> tuple[str, ...]:
    """The problems of other packages' parts, one line each; imports the parts."""
    broken = []
    for name in entry_points_of(group):
        try:
            load(group, name)
        except ConfigError as error:
            broken.append(str(error))
    return (*_found(group).refused, *broken)


def load(group: str, name: str) -> Any:  # noqa: ANN401 - whatever the package made
    """Imports the object that another package's entry point names. Raises ConfigError, naming the package."""
    return _imported(entry_points_of(group)[name], group)


def _imported(point: EntryPoint, group: str) -> Any:  # noqa: ANN401
    found = _object(point, group)
    if isinstance(found, ConfigError):
        raise found.with_traceback(None)
    return found


@cache
def _object(point: EntryPoint, group: str) -> Any:  # noqa: ANN401
    try:
        return point.load()
    except Exception as error:  # a stranger's module may raise anything
        why = f"{type(error).__name__}: {str(error)[:200]}"
        return ConfigError(f"{_said(group, point)} cannot be imported ({why}); fix or uninstall it")


def make(group: str, name: str, /, **given: Any) -> Any:  # noqa: ANN401
    """Creates the part of this name: calls its maker with those of ``given`` that its parameters name.

    For generators: ``config`` (GenerationConfig), ``filtering`` (FilteringConfig), ``encoder``, ``obligations``,
    ``verifier``, ``selector``, ``names_of``, ``api_key``, ``prompts`` (a folder or None). For retrievers: ``index``,
    and ``folder`` if they have files. For corpus formats: ``source``, ``chunk_max_tokens``. For all: ``name``.

    Raises ConfigError for an unknown name, and if another package's maker asks for something else, fails, or returns
    an object that does not follow `ragqa.plugins.protocols`.
    """
    part = find(group, name)
    if part is None or not part.maker:
        raise ConfigError(f"no {_kind(group)} is called {name!r}; expected one of {listed(group)}")
    given = {"name": name} | given
    if isinstance(part.maker, str):
        module, _, attribute = part.maker.partition(":")
        return call(getattr(import_module(module), attribute), **given)
    try:
        made = call(part.maker, **given)
    except RagqaError:
        raise
    except Exception as error:  # a stranger's code may raise anything
        why = f"cannot be made ({type(error).__name__}: {str(error)[:200]}) of {', '.join(given)}"
        raise _wrong(group, part, why) from error
    lacking = [method for method in _METHODS.get(group, ()) if not hasattr(made, method)]
    if lacking and not hasattr(made, "stream_searching"):
        raise _wrong(group, part, f"has no method {lacking[0]!r}")
    if group == RETRIEVERS and getattr(made, "name", None) != name:
        raise _wrong(group, part, f"calls itself {getattr(made, 'name', None)!r}")
    return made


def _wrong(group: str, part: Part, why: str) -> ConfigError:
    return ConfigError(f"the {_kind(group)} {part.name!r} of the package {part.package} {why}; fix or uninstall it")


def call(maker: Callable[..., Any], **given: Any) -> Any:  # noqa: ANN401
    """Calls the maker with those of ``given`` that its parameters name; returns its result."""
    wanted = signature(maker).parameters.values()
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in wanted):
        return maker(**given)
    return maker(**{parameter.name: given[parameter.name] for parameter in wanted if parameter.name in given})


def needs_language_model(generator: str) -> bool:
    """Whether this generator asks a language model; False for an unknown name."""
    part = find(GENERATORS, generator)
    return part is not None and LANGUAGE_MODEL in part.needs


def is_api_name(name: str) -> bool:
    """Whether this model's name means an API: ``openai:MODEL`` or ``voyage:MODEL``."""
    return any(part.key == name.partition(":")[0] for part in ours(ENCODERS) if not part.is_name and part.needs)


def takes(generator: str, option: str) -> bool:
    """Whether this generator reads this setting; False for an unknown name."""
    part = find(GENERATORS, generator)
    return part is not None and option in part.options


def origin(group: str, name: str) -> ModelInfo | None:
    """The package and version of another package's part, in the form of records; None for a bundled part."""
    point = entry_points_of(group).get(name)
    if point is None:
        return None
    return ModelInfo(f"{_package(point)} {point.dist.version if point.dist else ''}".strip(), "", "")


def parts_table(group: str) -> str:
    """The group's bundled parts as a Markdown table."""
    rows = [
        (f"`{part.name}`", part.explanation, ", ".join(part.needs), "; ".join(f"`{name}`" for name in part.options))
        for part in ours(group)
    ]
    return table(("name", "what it is", "needs", "options"), rows)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _kind(group: str) -> str:
    return group.removeprefix("ragqa.").removesuffix("s").replace("_", " ")


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "an unnamed package"


def _said(group: str, point: EntryPoint) -> str:
    return f"the {_kind(group)} {point.name!r} ({point.value}) of the package {_package(point)}"

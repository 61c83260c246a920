"""Finds the benchmarks, ours and those of other packages, and the files that they may read.

There is no list: every folder ``ragqa/evaluation/benchmarks/NAME/`` with an ``__init__.py`` and a ``benchmark.py`` that
defines ``BENCHMARK`` is a benchmark.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import Path

import ragqa.evaluation.benchmarks as room
from ragqa.corpus.demo import DEMOS
from ragqa.errors import ConfigError
from ragqa.evaluation.benchmark import Benchmark, Option
from ragqa.plugins import registry

_logger = logging.getLogger(__name__)

_MOST_FILES = 2_000  # examined in one folder and one level below


@cache
def benchmarks() -> Mapping[str, Benchmark]:
    """Every benchmark by name, in the order of names."""
    found = {}
    for file in Path(room.__path__[0]).glob("*/benchmark.py"):
        if not file.with_name("__init__.py").is_file():
            _logger.warning("the benchmark in %s is left out: expected an __init__.py beside it; add one", file)
            continue
        one: Benchmark = import_module(f"{room.__name__}.{file.parent.name}.benchmark").BENCHMARK
        found[one.name] = one
    for name in registry.entry_points_of(registry.BENCHMARKS):
        try:
            added = registry.load(registry.BENCHMARKS, name)
        except ConfigError as error:
            _logger.warning("%s", error)
            continue
        if not isinstance(added, Benchmark) or added.name in found:
            _logger.warning("the benchmark %r of a package is left out: expected a Benchmark of a new name", name)
            continue
        found[added.name] = added
    return dict(sorted(found.items()))


def benchmark_of(name: str) -> Benchmark:
    """The benchmark of this name. Raises ConfigError."""
    if name not in benchmarks():
        raise ConfigError(f"expected a benchmark, one of {', '.join(benchmarks())}, got {name!r}; correct the name")
    return benchmarks()[name]


@dataclass(frozen=True, slots=True)
class OfferedFile:
    """A file to choose, with its label."""

    path: Path
    label: str


def data_folder() -> Path:
    """``RAGQA_DATA``, else the default of the command line; it need not exist."""
    return Path(os.environ.get("RAGQA_DATA") or "../shared/data").expanduser()


def offered_files(option: Option, folder: Path) -> tuple[OfferedFile, ...]:
    """The files in ``folder`` and one level below that suit this option, by name; none if the folder is missing.

    The content is guessed from the beginning of a file, so `Option.counts` may still reject it.
    """
    found = []
    for path in islice(_candidates(folder), _MOST_FILES):
        if option.suits is None or option.suits(path):
            found.append(OfferedFile(path, path.relative_to(folder).as_posix()))
    return tuple(found)


def demo_files(option: Option) -> tuple[OfferedFile, ...]:
    """The bundled question files that suit this option."""
    return tuple(
        OfferedFile(path, f"{demo.title}, {path.name}")
        for demo in DEMOS.values()
        for path in demo.question_files
        if option.suits is None or option.suits(path)
    )


def _candidates(folder: Path) -> Iterator[Path]:
    """JSON and JSON-lines files, here and one level below; unreadable folders are skipped."""
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        try:
            inside = sorted(entry.iterdir()) if entry.is_dir() else [entry]
        except OSError:
            continue
        yield from (path for path in inside if re.search(r"\.(json|jsonl)$", path.name, re.I) and path.is_file())

"""Turns scores into a Ranking with one fixed order: best first, ties by passage id, also at the top-k cut."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ragqa.errors import ConfigError, IndexMismatchError
from ragqa.plugins import registry
from ragqa.settings.config import CITATIONS_WEIGHT, FusionConfig, IndexingConfig
from ragqa.types import Passage, Ranking, ScoredPassage

ALWAYS_ALLOWED: Final = frozenset({"bm25", "context", "citations"})  # may have a weight even if the index lacks it


def also_option(name: str) -> str:
    """The option of `ragqa index build` that adds the ranking of this retriever."""
    if name == "dense":
        return f"--encoder {IndexingConfig().encoder}"
    part = registry.find(registry.RETRIEVERS, name)
    return f"--also {part.name if part and part.key == name else name}"


def adding_command(names: Sequence[str], index: str, *, of_library: bool = False) -> str:
    """The command that adds these rankings to an index: one built from a folder, or a corpus of the library."""
    how = f"add {index}" if of_library else f"build {index} --source PATH"
    return f"ragqa index {how} {' '.join(map(also_option, names))}"


def needs_no_files(name: str) -> bool:
    """Whether this is a retriever of another package that works on every index. Raises ConfigError if it is broken."""
    if name not in registry.entry_points_of(registry.RETRIEVERS):
        return False
    part = registry.find(registry.RETRIEVERS, name)
    return part is not None and not part.also


def rankings_for(of_index: Sequence[str]) -> tuple[str, ...]:
    """An index's own rankings, and those of other packages that work on every index, without broken ones."""
    added = (part.name for part in registry.parts(registry.RETRIEVERS) if part.package and not part.also)
    return tuple(dict.fromkeys((*of_index, *added)))


def fitting_weights(weights: Mapping[str, float], encoder: str) -> dict[str, float]:
    """The weights under the ranking names of an index with this first encoder, where ``dense:ENCODER`` is ``dense``."""
    fitting: dict[str, float] = {}
    for name, weight in weights.items():
        own = "dense" if name == f"dense:{encoder}" else name
        fitting[own] = fitting.get(own, 0.0) + weight
    return fitting


def own_weights(weights: Mapping[str, float], rankings: Sequence[str]) -> dict[str, float]:
    """The weights; the default weights are adapted to an index with these rankings.

    If the index has citations, they get their share. If it has no vectors, the others share the weight of dense.
    """
    if weights != FusionConfig().weights:
        return dict(weights)
    shares = {name: weight for name, weight in weights.items() if name != "dense" or name in rankings}
    rest = 1 - CITATIONS_WEIGHT if "citations" in rankings else 1.0
    total = math.fsum(shares.values()) if len(shares) < len(weights) else 1.0
    shares = {name: rest * weight / total for name, weight in shares.items()}
    return shares | ({"citations": CITATIONS_WEIGHT} if rest < 1 else {})


def missing_rankings(weights: Mapping[str, float], rankings: Sequence[str]) -> tuple[str, ...]:
    """The names with a weight above 0 that are not among ``rankings``.

    The `ALWAYS_ALLOWED` names, and retrievers of other packages that need no files, are never missing.
    """
    known = {*rankings, *ALWAYS_ALLOWED}
    return tuple(n for n, weight in weights.items() if weight > 0 and n not in known and not needs_no_files(n))


def lacking_rankings(fusion: FusionConfig, rankings: Sequence[str], encoder: str) -> tuple[str, ...]:
    """The rankings that this fusion weights and the index lacks; the default weights also fit one without vectors."""
    missing = missing_rankings(fitting_weights(fusion.weights, encoder), rankings)
    return () if missing == ("dense",) and fusion.weights == FusionConfig().weights else missing


def fitting_fusion(fusion: FusionConfig, rankings: Sequence[str], encoder: str, index: str) -> FusionConfig:
    """The fusion under the names of this index's rankings; default weights are adapted by `own_weights`.

    Raises ConfigError as `check_rankings`.
    """
    weights = fitting_weights(own_weights(fusion.weights, rankings), encoder)
    check_rankings(weights, rankings, index)
    return replace(fusion, weights=weights)


def check_rankings(weights: Mapping[str, float], rankings: Sequence[str], index: str) -> None:
    """Raises ConfigError if weights, in the form of `fitting_weights`, name a ranking that the index lacks."""
    missing = missing_rankings(weights, rankings)
    unknown = [name for name in missing if not registry.is_ranking_name(name)]
    if unknown:
        msg = f"{unknown[0]!r} is no ranking; give weights to those of index {index!r}: {', '.join(rankings)}"
        raise ConfigError(msg)
    if missing:
        held = ", ".join(rankings) + (", and no vectors" if "dense" in missing else "")
        raise ConfigError(
            f"the settings give a weight to {', '.join(missing)}, index {index!r} has only {held}; "
            f"build it with `{adding_command(missing, index)}` (a corpus of the library: "
            f"`{adding_command(missing, index, of_library=True)}`), or choose other weights"
        )


Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.floating[Any]]


def best_positions(positions: Positions, scores: Scores, order: Positions, top_k: int) -> Positions:
    """The ``top_k`` best of ``positions`` by (-score, order); all of them if there are fewer.

    ``scores[i]`` belongs to ``positions[i]``. ``order`` is the place of each passage's id among all sorted ids.
    """
    if 0 < top_k < len(positions):
        cut = np.partition(scores, len(scores) - top_k)[len(scores) - top_k]
        positions, scores = positions[scores >= cut], scores[scores >= cut]
    return positions[np.lexsort((order[positions], -scores))][: max(top_k, 0)]


@contextmanager
def index_files(what: str, folder: Path) -> Iterator[None]:
    """A context for reading index files that hold ``what``. Raises IndexMismatchError if they cannot be read."""
    try:
        yield
    except (OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise IndexMismatchError(f"expected {what} in {folder.name}/, found something else: {error}") from error


class Rankable(NamedTuple):
    """The passages of an index, their order at ties as in `best_positions`, and a mask of those never to return."""

    passages: Sequence[Passage]
    order: Positions
    hidden: Mask  # shape (n_passages,)


class CorpusRanker:
    """Base class of the retrievers of an index.

    Retrievers do not change after construction, so threads may share them.
    """

    def __init__(self, name: str, corpus: Rankable) -> None:
        self.name = name
        self._passages, self._order, self._hidden = corpus

    def _above_zero(self, scores: Scores, top_k: int) -> Ranking:
        """The best passages with a score above 0; ``scores``, shape (n_passages,), is modified."""
        scores[self._hidden] = 0.0
        positive = np.flatnonzero(scores > 0)
        best = best_positions(positive, scores[positive], self._order, top_k)
        return Ranking.of(self.name, [ScoredPassage(self._passages[i], float(scores[i])) for i in best.tolist()])

    def _best(self, positions: Positions, scores: Scores, top_k: int) -> Ranking:
        """The best passages at these positions, however low their scores; ``scores[i]`` belongs to ``positions[i]``."""
        score_of = dict(zip(positions.tolist(), scores.tolist(), strict=True))
        best = best_positions(positions, scores, self._order, top_k)
        return Ranking.of(self.name, [ScoredPassage(self._passages[i], score_of[i]) for i in best.tolist()])

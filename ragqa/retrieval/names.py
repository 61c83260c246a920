"""Which rankings settings ask for, which an index has, and what would add one. Names only: nothing is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from ragqa.config import FusionConfig, IndexingConfig, is_ranking_name
from ragqa.errors import ConfigError

ALWAYS_ALLOWED: Final = frozenset({"bm25", "context"})  # every index has the one, any may lack the other


def retriever_name(ranking: str) -> str:
    """The name of a further ranking's retriever: ``splade`` for ``splade:MODEL``, ``dense:ENCODER`` as it is."""
    return ranking if ranking.startswith("dense:") else ranking.partition(":")[0]


def also_option(name: str) -> str:
    """The option of `ragqa index build` that adds the ranking of this retriever."""
    if name == "dense":
        return f"--encoder {IndexingConfig().encoder}"
    return f"--also {name}:MODEL" if name in {"splade", "late"} else f"--also {name}"


def fitting_weights(weights: Mapping[str, float], encoder: str) -> dict[str, float]:
    """The weights under the names of an index whose first encoder is this: there ``dense:ENCODER`` is ``dense``."""
    fitting: dict[str, float] = {}
    for name, weight in weights.items():
        own = "dense" if name == f"dense:{encoder}" else name
        fitting[own] = fitting.get(own, 0.0) + weight
    return fitting


def missing_rankings(weights: Mapping[str, float], rankings: Sequence[str]) -> tuple[str, ...]:
    """Names with a weight above 0 that are not among ``rankings``; ``context`` may be missing from any index."""
    return tuple(n for n, weight in weights.items() if weight > 0 and n not in rankings and n not in ALWAYS_ALLOWED)


def lacking_rankings(fusion: FusionConfig, rankings: Sequence[str], encoder: str) -> tuple[str, ...]:
    """Names that this fusion weighs and an index lacks; the default weights fit one without vectors, too."""
    missing = missing_rankings(fitting_weights(fusion.weights, encoder), rankings)
    return () if missing == ("dense",) and fusion.weights == FusionConfig().weights else missing


def fitting_fusion(fusion: FusionConfig, rankings: Sequence[str], encoder: str, index: str) -> FusionConfig:
    """The fusion under the names of this index's rankings. Raises ConfigError as `check_rankings`.

    Where nobody chose weights and the index has no vectors, the others share the weight of ``dense``.
    """
    weights = fitting_weights(fusion.weights, encoder)
    if "dense" not in rankings and fusion.weights == FusionConfig().weights:
        return FusionConfig.of(fusion.method, **{name: share for name, share in weights.items() if name != "dense"})
    check_rankings(weights, rankings, index)
    return replace(fusion, weights=weights)


def check_rankings(weights: Mapping[str, float], rankings: Sequence[str], index: str) -> None:
    """Raises ConfigError where weights, as `fitting_weights` gives them, ask for a ranking that the index lacks."""
    missing = missing_rankings(weights, rankings)
    unknown = [name for name in missing if not is_ranking_name(name)]
    if unknown:
        msg = f"{unknown[0]!r} is no ranking; give weights to those of index {index!r}: {', '.join(rankings)}"
        raise ConfigError(msg)
    if missing:
        options = " ".join(map(also_option, missing))
        found = ", ".join(rankings) + (", and no vectors" if "dense" in missing else "")
        msg = (
            f"the settings give a weight to {', '.join(missing)}, index {index!r} has only {found}; "
            f"build it with `ragqa index build {index} --source PATH {options}`, or choose other weights"
        )
        raise ConfigError(msg)

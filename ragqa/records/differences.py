"""The differences between two configurations, by name and in words: preset and changes, A and B, record and today."""

from __future__ import annotations

from dataclasses import dataclass

from ragqa.settings.config import Config, FusionConfig, GenerationConfig, settings_at, values_by_key
from ragqa.settings.schema import Place, ranking_label

CORPUS, RANKING, FILTER, WRITER, SCORES = "corpus", "ranking", "filter", "writer", "scores"


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting that differs: ``name`` is its label on the page, ``part`` the part of the pipeline it affects."""

    part: str
    name: str
    a: str
    b: str

    @property
    def words(self) -> str:
        """``"Threshold 0.70 → 0.55"``."""
        return f"{self.name} {self.a} → {self.b}"


def differences(a: Config, b: Config) -> tuple[Difference, ...]:
    """Every setting that affects an answer and differs, in the order of the pipeline.

    Settings without effect on either side are left out: depth and weight without a reranker, options of another
    generator, and the values of weights under reciprocal rank fusion.
    """
    rows = (
        _one(CORPUS, "Corpus", a.index, b.index),
        *_of(RANKING, "retrieval", a, b),
        *_of(RANKING, "fusion", a, b),
        *_weights(a.fusion, b.fusion),
        *_of(RANKING, "reranking", a, b),
        *_of(FILTER, "filtering", a, b),
        *_of(WRITER, "generation", a, b),
        _one(WRITER, "Language model", writer_model(a.generation) or "none", writer_model(b.generation) or "none"),
        *_of(SCORES, "scoring", a, b),
    )
    return tuple(row for row in rows if row)


def _one(part: str, name: str, a: object, b: object) -> Difference | None:
    return None if a == b else Difference(part, name, str(a), str(b))


def _of(where: str, part: str, a: Config, b: Config) -> list[Difference | None]:
    ours, theirs = values_by_key(a), values_by_key(b)
    return [
        _one(where, one.label, one.text(ours[one.key]), one.text(theirs[one.key]))
        for one in settings_at(Place.DIFFERENCE, part)
        if one.applies(ours) and one.applies(theirs)
    ]


def _weights(a: FusionConfig, b: FusionConfig) -> list[Difference | None]:
    labels = {name: ranking_label(name) for name in (*a.weights, *b.weights)}
    if "rrf" in (a.method, b.method):
        used = [", ".join(sorted(labels[name] for name in each.weights if each.weights[name])) for each in (a, b)]
        return [_one(RANKING, "Rankings", *used)]
    return [
        _one(RANKING, f"Weight of {label}", f"{a.weights.get(name, 0.0):.2f}", f"{b.weights.get(name, 0.0):.2f}")
        for name, label in labels.items()
    ]


def writer_model(generation: GenerationConfig) -> str:
    """The language model of this generator; "" where it needs none."""
    return (generation.local_model or generation.model) if generation.asks_model else ""

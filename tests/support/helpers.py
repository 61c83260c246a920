"""A whole pipeline on fakes: real fusion, filtering, scorer and recorder around fake models."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType, SimpleNamespace

from ragqa.loading import Models
from ragqa.pipeline import Pipeline
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.settings.config import Config, ScoringConfig
from ragqa.types import Ranking, ScoredPassage
from tests.support.fakes import FakeEncoder, FakeGenerator, FakeNli, FakeObligations, FakeRetriever, answer, passage

PASSAGES = (
    passage("1:1.1", "A firm must act at once. The sky is blue.", title="General Rules", number="1.1"),
    passage("1:1.2", "A firm may wait. It must not sleep.", title="General Rules", number="1.2"),
    passage("2:3.4", "Nothing here matters.", title="Other Rules", number="3.4"),
)
ANSWER = answer("A firm must act at once.\nThe moon is green.", [(1,), (2,)])


@dataclass(frozen=True)
class FakeManifest:
    name: str = "rulebook"
    encoder: str = "fake-encoder"
    encoder_fingerprint: str = "fake"
    indexed_text: str = "text"


def make_pipeline(**changes) -> Pipeline:
    config = changes.pop("config", Config())
    first, second, third = PASSAGES
    rankings = (
        Ranking.of("bm25", [ScoredPassage(first, 9.0), ScoredPassage(second, 8.5), ScoredPassage(third, 1.0)]),
        Ranking.of("dense", [ScoredPassage(first, 0.9), ScoredPassage(second, 0.88), ScoredPassage(third, 0.2)]),
    )
    nli, obligations = FakeNli(), FakeObligations()
    parts = {
        "config": config,
        "index": SimpleNamespace(
            manifest=FakeManifest(),
            text_of=lambda passage: passage.text,
            asked_by_number=lambda *_: (),
            documents_named=lambda _: {},
        ),
        "retrievers": tuple(FakeRetriever(ranking) for ranking in rankings),
        "generator": FakeGenerator(ANSWER),
        "scorer": RepassScorer(nli, nli, obligations, ScoringConfig()),
        "models": Models(FakeEncoder(), nli, nli, obligations),
        "records": None,
    }
    return Pipeline(**(parts | changes))


def reprs_within(thing: object) -> list[str]:
    """What the objects that this one is made of say of themselves, those of ragqa and one step beyond."""
    found = []
    for value in vars(thing).values():
        if hasattr(value, "__dict__") and not isinstance(value, type):
            found.append(repr(value))
            if type(value).__module__.startswith("ragqa."):
                found += reprs_within(value)
    return found


def forget_cached(module: ModuleType) -> None:
    """Empties the caches of a module's functions."""
    for value in vars(module).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()

"""A tiny encyclopedia whose every search can be worked out by hand, for the tests of fan-outs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import SimpleNamespace

from ragqa.generation.fanout.generator import fan_out_generator
from ragqa.loading import Models
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.scoring.repass.verifier import RepassVerifier
from ragqa.settings.config import Config, GenerationConfig, ScoringConfig
from ragqa.types import Passage, Ranking, ScoredPassage
from tests.support.fakes import FakeEncoder, FakeObligations, passage
from tests.support.helpers import FakeManifest
from tests.support.scripted import Neutral

EBEN = passage(
    "eben:1", "Mount Eben is a mountain of 4,200 metres. Mount Eben was climbed in 1901.", title="Mount Eben"
)
TARN = passage("tarn:1", "Tarn Peak is a mountain of 3,900 metres. Tarn Peak was climbed in 1888.", title="Tarn Peak")
HOLM = passage("holm:1", "Ida Holm studied law at Aarhus. Ida Holm sings.", title="Ida Holm")
LIGHT = passage("light:1", "Northern Light is an album by the singer Ida Holm.", title="Northern Light")
TOWN = passage("town:1", "Bakeries open early in the town.", title="Town life")
CORPUS = (EBEN, TARN, HOLM, LIGHT, TOWN)
COMPARISON = "Which mountain was climbed first, Mount Eben or Tarn Peak?"
BRIDGE = "Northern Light is an album by the singer who studied where?"
WHOLE = "When do bakeries open?"


class WordRetriever:
    """Ranks by the words that question and passage share; those that share none are left out."""

    name = "bm25"

    def __init__(self, passages: Sequence[Passage] = CORPUS) -> None:
        self.passages = passages
        self.calls: list[str] = []

    def retrieve(self, question: str, top_k: int) -> Ranking:
        self.calls.append(question)
        asked = set(re.findall(r"\w{4,}", question.casefold()))
        hits = []
        for one in self.passages:
            shared = asked & set(re.findall(r"\w{4,}", f"{one.title} {one.text}".casefold()))
            if shared:
                hits.append(ScoredPassage(one, float(len(shared))))
        return Ranking(self.name, Ranking.of(self.name, hits).hits[:top_k])


def parts(config: Config | None = None, generator=None, records=None, retriever: WordRetriever | None = None) -> dict:
    """What `make_pipeline` needs for a fan-out over this corpus."""
    config = config or Config(generation=GenerationConfig(generator="fan-out"))
    nli, obligations, encoder = Neutral(), FakeObligations(), FakeEncoder()
    scorer = RepassScorer(nli, nli, obligations, ScoringConfig())
    if generator is None:
        verifier = RepassVerifier(scorer)
        generator = fan_out_generator(obligations, encoder, verifier, config.generation, config.filtering)
    return {
        "config": config,
        "index": SimpleNamespace(
            manifest=FakeManifest(),
            text_of=lambda passage: passage.text,
            asked_by_number=lambda *_: (),
            documents_named=lambda _: {},
        ),
        "retrievers": (retriever or WordRetriever(),),
        "generator": generator,
        "scorer": scorer,
        "models": Models(encoder, nli, nli, obligations),
        "records": records,
    }

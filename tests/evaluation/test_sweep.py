"""A sweep's figures are those of doing each point by itself, and of `ragqa eval retrieval`."""

import json
from dataclasses import replace
from statistics import fmean
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from ragqa.cli import app
from ragqa.corpus.demo import DEMOS
from ragqa.corpus.questions import GoldQuestion, load_questions
from ragqa.errors import ConfigError
from ragqa.evaluation.loading import retrievers_of
from ragqa.evaluation.measures import measure_run
from ragqa.evaluation.sweep import WEIGHT, Axis, around, swept, with_weights
from ragqa.filtering import select
from ragqa.fusion import fuse
from ragqa.settings.config import Config, FilteringConfig, FusionConfig
from ragqa.settings.paths import Paths
from ragqa.types import Question, Ranking, ScoredPassage
from tests.support.fakes import FakeRetriever, passage
from tests.support.helpers import FakeManifest

FUSION = FusionConfig.of(bm25=1, dense=1)
LIMITS = (Axis("threshold", (0.0, 0.3, 0.6, 0.9)), Axis("max_drop", (0.1, 0.4, 1.0)))


def result(generator):
    steps = []
    while True:
        try:
            steps.append(next(generator))
        except StopIteration as stop:
            assert steps[-1][0] == steps[-1][1]  # every step was told
            return stop.value


class ByQuestion(FakeRetriever):
    """Another ranking for each question."""

    def retrieve(self, question, top_k):
        return self.result[question]


def world(n_questions=6, n_passages=14):
    random = np.random.default_rng(7)
    passages = [passage(f"1:{n}", f"Text {n}.") for n in range(n_passages)]
    gold, rankings = [], {name: {} for name in ("bm25", "dense")}
    for number in range(n_questions):
        asked = f"Question {number}?"
        gold.append(GoldQuestion(Question(asked), frozenset({f"1:{n}" for n in random.choice(n_passages, 2)})))
        for name, found in rankings.items():
            scores = np.float32(random.random(n_passages)).tolist()
            found[asked] = Ranking.of(name, [ScoredPassage(p, s) for p, s in zip(passages, scores, strict=True)])
    retrievers = []
    for name, found in rankings.items():
        one = ByQuestion(Ranking(name, ()))
        one.result = found
        retrievers.append(one)
    manifest = SimpleNamespace(**{name: getattr(FakeManifest(), name) for name in ("name", "encoder_fingerprint")})
    manifest.files, manifest.rankings, manifest.encoder = (), (), ""
    index = SimpleNamespace(manifest=manifest)
    return SimpleNamespace(index=index, retrievers=retrievers, models=SimpleNamespace(reranker=None)), gold, rankings


def alone(gold, rankings, fusion, filtering):
    """R@10, F2, recall and kept of these settings, one question after the other by the functions of the pipeline."""
    rows = []
    for one in gold:
        fused = fuse(tuple(found[one.question.text] for found in rankings.values()), fusion)
        kept = {c.passage.passage_id for c in select(fused, filtering).kept}
        right = len(kept & one.gold)
        precision, recall = right / len(kept), right / len(one.gold)
        f2 = 5 * precision * recall / (4 * precision + recall) if right else 0.0
        ids = [hit.passage.passage_id for hit in fused.hits]
        rows.append((measure_run([one.gold], [ids], ("R@10",))["R@10"][0], f2, recall, len(kept)))
    return [fmean(column) for column in zip(*rows, strict=True)]


def test_every_point_has_the_figures_of_its_settings_alone():
    pipeline, gold, rankings = world()
    config = Config(fusion=FUSION)
    grids = (
        LIMITS,
        (Axis(WEIGHT + "bm25", (0.0, 0.2, 1.0)), Axis(WEIGHT + "dense", (0.0, 0.5))),
        (Axis("top_k", (1, 4)),),
    )
    for axes in grids:
        found = result(swept(pipeline, config, axes, gold))
        assert len(found.points) == np.prod([len(axis.values) for axis in axes])
        assert (found.has_gold, found.n_questions) == (True, len(gold))
        for one in (*found.points, found.present):
            shares = {n.removeprefix(WEIGHT): v for n, v in one.values.items() if n.startswith(WEIGHT)}
            own = {n: int(v) if n == "top_k" else v for n, v in one.values.items() if not n.startswith(WEIGHT)}
            own = {} if one is found.present else own
            fusion = FUSION if one is found.present else with_weights(FUSION, shares)
            wanted = alone(gold, rankings, fusion, replace(FilteringConfig(), **own))
            assert [one.recall_at_10, one.f2, one.recall, one.kept] == pytest.approx(wanted), one.values
        best = found.best()
        assert best.f2 == max(one.f2 for one in found.points)


def test_without_gold_only_how_many_are_kept_is_known():
    pipeline, gold, rankings = world(1)
    found = result(swept(pipeline, Config(fusion=FUSION), LIMITS, [replace(gold[0], gold=frozenset())]))
    assert not found.has_gold
    for one in found.points:
        filtering = FilteringConfig(one.values["threshold"], one.values["max_drop"])
        assert one.kept == alone(gold, rankings, FUSION, filtering)[3]
        assert (one.f2, one.recall, one.recall_at_10) == (None, None, None)


def test_the_present_settings_lie_on_the_grid():
    assert around((0.0, 0.5, 1.0), 0.45) == (0.0, 0.45, 1.0)
    assert around((0.0, 0.5, 1.0), 0.5) == (0.0, 0.5, 1.0)
    assert with_weights(FUSION, {"bm25": 0.0, "dense": 0.0}).weights == {"bm25": 0.5, "dense": 0.5}


def test_what_cannot_be_varied_is_told_with_what_can():
    pipeline, gold, _ = world(1)
    with pytest.raises(ConfigError, match="threshold, max_drop, top_k or weight_RANKING"):
        next(swept(pipeline, Config(), (Axis("colour", (1,)),), gold))
    with pytest.raises(ConfigError, match="1 to 400 points"):
        next(swept(pipeline, Config(), (Axis("top_k", tuple(range(500))),), gold))


@pytest.mark.model
def test_the_figures_are_those_of_eval_retrieval(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    questions = DEMOS["rulebook"].question_files[0]
    options = ("--questions", str(questions), "--limit", "5", "--preset", "BM25 only", "--json")
    told = CliRunner().invoke(app, ["eval", "retrieval", "--index", "rulebook", *options])
    assert told.exit_code == 0, told.output
    measures = json.loads(told.stdout)["measures"]
    paths, config = Paths.from_env(), Config()
    index, retrievers, fusion = retrievers_of(config, paths, every=True)
    config = replace(config, fusion=fusion, filtering=FilteringConfig(0.0, 1.0, 10))  # keeps the first ten
    pipeline = SimpleNamespace(index=index, retrievers=retrievers, models=SimpleNamespace(reranker=None))
    weights = {name: fusion.weights[name] for name in ("context", "dense", "citations")}
    axes = tuple(Axis(WEIGHT + name, (0.0, weight)) for name, weight in weights.items())
    found = result(swept(pipeline, config, axes, load_questions(questions)[:5], paths=paths))
    by_values = {tuple(one.values.values()): one for one in found.points}
    for values, name in (((0.0, 0.0, 0.0), "BM25 only"), (tuple(weights.values()), "fused")):
        assert by_values[values].recall_at_10 == pytest.approx(measures[name]["R@10"])
        assert by_values[values].recall == pytest.approx(measures[name]["R@10"])
    assert found.present.recall == pytest.approx(measures["fused"]["R@10"])

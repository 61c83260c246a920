"""Rankings computed once and cached: equal from the cache, made again where anything that decides them changed."""

import sqlite3
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ragqa.corpus.questions import GoldQuestion
from ragqa.evaluation.benchmark import Item, Task
from ragqa.evaluation.benchmarks.retrieval import tables
from ragqa.evaluation.benchmarks.retrieval.rankings import (
    Ranker,
    cut,
    identity_of,
    rank_all,
    ranking_cache,
    reread_all,
    rounded,
    unpacked,
)
from ragqa.evaluation.benchmarks.retrieval.setups import RetrievalContext, Setup, rankings_of, setups_of
from ragqa.settings.config import Config, FusionConfig, RerankingConfig, RetrievalConfig
from ragqa.settings.presets import Preset
from ragqa.types import ModelInfo, Question, Ranking, ScoredPassage
from ragqa.types.streams import returned
from tests.support.fakes import FakeRetriever, passage

PASSAGES = tuple(passage(name) for name in "abcd")
QUESTIONS = tuple(
    GoldQuestion(Question(f"question {n}", str(n)), frozenset(gold)) for n, gold in enumerate(("a", "bc"))
)


def make_index(sha="1"):
    manifest = SimpleNamespace(
        files=[SimpleNamespace(sha256=sha * 64)], encoder_fingerprint="e" * 64, rankings=(), indexed_text="text"
    )
    return SimpleNamespace(
        passages=PASSAGES, position_of={row.passage_id: n for n, row in enumerate(PASSAGES)}, manifest=manifest
    )


def retriever(name, order, score=1 / 3):
    hits = [ScoredPassage(passage(letter), 10 * score - n) for n, letter in enumerate(order)]
    return FakeRetriever(Ranking.of(name, hits))


class CountingRescorer:
    name = "document"

    def __init__(self):
        self.asked = []

    def retrieve(self, question, top_k):
        return Ranking.of(self.name, [ScoredPassage(one, 1.0) for one in PASSAGES])

    def rescore(self, question, passages):
        self.asked.append((question, [one.passage_id for one in passages]))
        return Ranking.of(self.name, [ScoredPassage(one, 1.0) for one in passages], finds=False)


class CountingReranker:
    info = ModelInfo("r", "f" * 64, "fp32")

    def __init__(self):
        self.calls = 0

    def score(self, question, texts):
        self.calls += 1
        return [0.1 * n for n, _ in enumerate(texts)]

    def score_hits(self, question, hits, depth, corpus):
        self.calls += 1
        return [0.1 * n for n, _ in enumerate(hits[:depth])]


def ranker(tmp_path, *retrievers, index=None, config=None):
    return Ranker(index or make_index(), retrievers, config or Config(), ranking_cache(tmp_path / "r.sqlite3"))


def test_a_second_time_nothing_is_ranked_and_the_rankings_are_equal(tmp_path):
    bm25 = retriever("bm25", "abd")
    seen = []
    columns, spent = returned(rank_all(ranker(tmp_path, bm25), QUESTIONS), seen.append)
    assert seen == [1, 2]
    assert spent["bm25"] >= 0
    again, cached = returned(rank_all(ranker(tmp_path, bm25), QUESTIONS))
    assert again == columns
    assert cached == {"bm25": None}
    assert len(bm25.calls) == 2


@pytest.mark.parametrize(
    ("index", "config", "question"),
    [
        (make_index("2"), Config(), "why"),
        (make_index(), Config(retrieval=RetrievalConfig(bm25_backend="rank_bm25")), "why"),
        (make_index(), Config(retrieval=RetrievalConfig(top_k=99)), "why"),
        (make_index(), Config(), "how"),
    ],
)
def test_whatever_changes_a_ranking_has_it_made_again(tmp_path, index, config, question):
    bm25 = retriever("bm25", "abd")
    ranker(tmp_path, bm25).rank("why")
    ranker(tmp_path, bm25, index=index, config=config).rank(question)
    assert len(bm25.calls) == 2


def test_a_retriever_of_another_package_is_asked_each_time_as_its_code_may_have_changed(tmp_path):
    ranker(tmp_path, retriever("titles", "ab")).rank("why")
    (found,) = ranker(tmp_path, retriever("titles", "cd")).rank("why").rankings
    assert [hit.passage.passage_id for hit in found.hits] == ["c", "d"]


def test_without_a_cache_everything_is_ranked_each_time():
    bm25 = retriever("bm25", "abd")
    both = [Ranker(make_index(), [bm25], Config()).rank("why").rankings for _ in range(2)]
    assert both[0] == both[1]
    assert len(bm25.calls) == 2


def test_an_altered_row_is_computed_again(tmp_path):
    bm25 = retriever("bm25", "abd")
    first = ranker(tmp_path, bm25).rank("why").rankings
    with sqlite3.connect(tmp_path / "r.sqlite3") as found:
        (blob,) = found.execute("SELECT hits FROM rankings").fetchone()
        for place in range(len(blob)):
            changed = blob[:place] + bytes([blob[place] ^ 1 << place % 8]) + blob[place + 1 :]
            found.execute("UPDATE rankings SET hits = ?", (changed,))
            found.commit()
            assert ranker(tmp_path, bm25).rank("why").rankings == first, place
    assert len(bm25.calls) == 1 + len(blob)


def test_a_file_that_is_no_cache_is_set_aside(tmp_path):
    (tmp_path / "r.sqlite3").write_bytes(b"not a database, and longer than its header is " * 100)
    bm25 = retriever("bm25", "abd")
    assert [hit.passage.passage_id for hit in ranker(tmp_path, bm25).rank("why").rankings[0].hits] == ["a", "b", "d"]


def test_what_others_found_is_rescored_question_by_question(tmp_path):
    rescorer = CountingRescorer()
    found = ranker(tmp_path, retriever("bm25", "ab"), rescorer, retriever("dense", "bd"))
    ranked = found.rank("one")
    assert rescorer.asked == [("one", ["a", "b", "d"])]
    assert [ranking.retriever for ranking in ranked.rankings] == ["bm25", "document", "dense"]
    assert [len(ranking.hits) for ranking in ranked.rankings] == [2, 3, 2]
    found.rank("one")
    assert len(rescorer.asked) == 2  # cheap: not cached
    assert [len(one.hits) for one in Ranker(make_index(), [rescorer], Config()).rank("one").rankings] == [4]


def test_a_reranker_reads_once_what_it_read_before(tmp_path):
    reranker, found = CountingReranker(), ranker(tmp_path, retriever("bm25", "abd"))
    (ranking,) = found.rank("why").rankings
    scores, seconds = found.read_again(reranker, "why", ranking, 2)
    assert list(scores) == ["a", "b"]
    assert seconds >= 0
    again, cached = found.read_again(reranker, "why", ranking, 2)
    assert (again, cached) == (scores, None)
    assert reranker.calls == 1
    found.read_again(reranker, "why", replace(ranking, hits=ranking.hits[1:]), 2)
    found.read_again(reranker, "how", ranking, 2)
    assert reranker.calls == 3
    (of_one, of_two), spent = returned(reread_all(found, reranker, QUESTIONS, (ranking, ranking), 3))
    assert list(of_one) == list(of_two) == ["a", "b", "d"]
    assert spent >= 0


def test_scores_are_in_single_precision_and_order_follows_them():
    hits = [ScoredPassage(passage("b"), 1 / 3), ScoredPassage(passage("a"), 1 / 3 - 1e-12)]
    found = rounded(Ranking.of("bm25", hits))
    assert [hit.passage.passage_id for hit in found.hits] == ["a", "b"]
    assert found.hits[0].score == found.hits[1].score != 1 / 3


def test_what_is_packed_comes_back():
    ranking = rounded(Ranking.of("x", [ScoredPassage(passage("c"), 0.1)], finds=False, bounds=(0.0, 2.0)))
    assert unpacked(Ranker(make_index(), [], Config()).packed(ranking), make_index()) == ranking


def test_a_shorter_ranking_is_what_would_have_been_retrieved():
    bm25, dense = (retriever(name, order).retrieve("", 9) for name, order in (("bm25", "abc"), ("dense", "d")))
    rescored = Ranking.of("document", [ScoredPassage(passage(name), 1.0) for name in "abcd"], finds=False)
    found = cut((bm25, dense, rescored), 1)
    assert [[hit.passage.passage_id for hit in ranking.hits] for ranking in found] == [["a"], ["d"], ["a", "d"]]


def test_what_a_ranking_depends_on_is_in_its_identity():
    config, index = Config(), make_index()
    assert identity_of(retriever("bm25", "a"), index, config) == "bm25, bm25s"
    assert "e" * 64 in identity_of(retriever("dense", "a"), index, config)


def test_a_rerankers_time_is_that_of_its_own_depth():
    setups = [Setup(f"depth {depth}", reranking=RerankingConfig("m", depth=depth)) for depth in (10, 100)]
    notes = {"a": {"model": "m", "depth": 10, "seconds": 0.00025}, "b": {"model": "m", "depth": 100, "seconds": 0.5}}
    done = [SimpleNamespace(solution={"seconds": {}}, scores={"notes": notes})]
    assert tables._milliseconds(SimpleNamespace(setups=setups), done) == {"depth 10": 0.25, "depth 100": 500.0}


def test_a_fan_out_searches_as_deep_as_the_preset_that_it_is_compared_with():
    found = Ranker(make_index(), [retriever("bm25", "abcd")], Config())
    shallow = Preset("shallow", "", RetrievalConfig(top_k=2), FusionConfig.of(bm25=1))
    settings = {"baseline": "shallow", "reranker": "", "fan_out": True}
    setups, _ = setups_of(settings, ["bm25"], [shallow], Config())
    task = Task((), {}, RetrievalContext(make_index(), found, setups, "fused", "shallow", "passage", Config()))
    item = Item(1, Question("How high is Everest, and how high is K2?"))
    solution = {"rankings": [found.packed(one) for one in found.rank(item.question.text).rankings]}
    notes = {}
    rankings = rankings_of(task, item, solution, notes)
    assert notes["shallow, fan-out"]["asked"] > 0
    assert [len(rankings[name].hits) for name in ("fused", "shallow", "shallow, fan-out")] == [4, 2, 2]


def test_a_reranker_that_reads_scores_reads_those_of_each_preset():
    class ByScore(CountingReranker):
        def score_hits(self, question, hits, depth, corpus):
            return [hit.score for hit in hits[:depth]]

    found = Ranker(make_index(), [retriever("bm25", "abcd"), retriever("dense", "abcd", 1)], Config())
    presets = [
        Preset(name, "", fusion=FusionConfig.of("rrf", **weights), reranking=RerankingConfig("m", 4, 1.0))
        for name, weights in (("one", {"bm25": 1}), ("both", {"bm25": 1, "dense": 1}))
    ]
    settings = {"baseline": "fused", "reranker": "", "fan_out": False}
    setups, _ = setups_of(settings, ["bm25", "dense"], presets, Config())
    models = {"m": ByScore()}
    task = Task((), {}, RetrievalContext(make_index(), found, setups, "fused", "fused", "passage", Config(), models))
    item = Item(1, Question("why"))
    solution = {"rankings": [found.packed(one) for one in found.rank(item.question.text).rankings]}
    rankings = rankings_of(task, item, solution, {})
    raw = {name: rankings[name].hits[0].reranking[1].raw for name in ("one", "both")}
    assert raw == {"one": pytest.approx(1 / 61), "both": pytest.approx(2 / 61)}

"""Configurations side by side: the same rankings from the cache, measures per question, tests against a baseline."""

from types import SimpleNamespace

import pytest
from ragqa.evaluation.ranking_cache import RankingCache

from ragqa.config import Config, FusionConfig
from ragqa.corpus.questions import GoldQuestion
from ragqa.evaluation.retrieval import compare, evaluate, identity_of, rescore_all, retrieve_all
from ragqa.types import Question, Ranking, ScoredPassage
from tests.support.fakes import FakeRetriever, passage

PASSAGES = tuple(passage(name) for name in "abcd")
QUESTIONS = tuple(
    GoldQuestion(Question(f"question {n}", str(n)), frozenset(gold)) for n, gold in enumerate(("a", "bc"))
)


def make_index(sha="1"):
    manifest = SimpleNamespace(files=[SimpleNamespace(sha256=sha * 64)], encoder_fingerprint="e" * 64, rankings=())
    return SimpleNamespace(
        passages=PASSAGES, position_of={row.passage_id: n for n, row in enumerate(PASSAGES)}, manifest=manifest
    )


def retriever(name, order, score=1 / 3):
    hits = [ScoredPassage(passage(letter), 10 * score - n) for n, letter in enumerate(order)]
    return FakeRetriever(Ranking.of(name, hits))


def finished(steps):
    seen = []
    while True:
        try:
            seen.append(next(steps))
        except StopIteration as stop:
            return seen, *stop.value


def test_a_second_run_ranks_nothing_and_measures_the_same(tmp_path):
    cache, bm25 = RankingCache(tmp_path), retriever("bm25", "abd")
    seen, first, milliseconds = finished(retrieve_all(QUESTIONS, make_index(), bm25, "bm25", 100, cache))
    assert seen[-1] == 2
    assert milliseconds >= 0
    _, again, spent = finished(retrieve_all(QUESTIONS, make_index(), bm25, "bm25", 100, cache))
    assert again == first
    assert spent is None
    assert len(bm25.calls) == 2


@pytest.mark.parametrize(
    ("index", "identity", "top_k", "questions"),
    [
        (make_index("2"), "bm25", 100, QUESTIONS),
        (make_index(), "bm25, other", 100, QUESTIONS),
        (make_index(), "bm25", 99, QUESTIONS),
        (make_index(), "bm25", 100, QUESTIONS[:1]),
    ],
)
def test_whatever_changes_a_ranking_has_it_made_again(tmp_path, index, identity, top_k, questions):
    cache, bm25 = RankingCache(tmp_path), retriever("bm25", "abd")
    finished(retrieve_all(QUESTIONS, make_index(), bm25, "bm25", 100, cache))
    before = len(bm25.calls)
    finished(retrieve_all(questions, index, bm25, identity, top_k, cache))
    assert len(bm25.calls) > before


def test_each_ranking_and_each_fusion_is_measured():
    columns = [
        finished(retrieve_all(QUESTIONS, make_index(), retriever(name, order), name, 100))[1]
        for name, order in (("bm25", "ad"), ("dense", "dcb"))
    ]
    fusions = {"fused": FusionConfig(), "words": FusionConfig.of(bm25=1)}
    results = {result.name: result for result in evaluate(QUESTIONS, columns, fusions)}
    assert list(results) == ["bm25", "dense", "fused", "words"]
    assert results["bm25"].values["R@10"] == [1.0, 0.0]
    assert results["dense"].values["R@10"] == [0.0, 1.0]
    assert results["dense"].values["AP@10"] == [0.0, pytest.approx((1 / 2 + 2 / 3) / 2)]
    assert results["fused"].means["R@10"] == 1.0
    assert results["words"].values == results["bm25"].values


def test_documents_count_where_their_first_passage_stands():
    rankings = (
        Ranking.of("bm25", [ScoredPassage(passage(name), 9.0 - n) for n, name in enumerate(("d:1", "d:2", "e:1"))]),
    )
    questions = (GoldQuestion(Question("q"), frozenset("e")),)
    (result,) = evaluate(questions, [rankings], {}, "document")
    assert (result.means["Success@1"], result.means["Success@2"], result.means["RR@10"]) == (0.0, 1.0, 0.5)


def test_comparisons_are_against_the_baseline_and_adjusted():
    many = QUESTIONS * 20
    columns = [
        finished(retrieve_all(many, make_index(), retriever(name, order), name, 9))[1]
        for name, order in (("bm25", "a"), ("dense", "bc"))
    ]
    results = evaluate(many, columns, {"fused": FusionConfig()})
    found = {(c.name, c.measure): c for c in compare(results, "fused")}
    assert set(found) == {(name, measure) for name in ("bm25", "dense") for measure in ("R@10", "AP@10")}
    worse = found["bm25", "R@10"]
    assert worse.test.mean_difference == pytest.approx(-0.5)
    assert worse.test.p_value < 0.001
    assert all(c.adjusted_p >= c.test.p_value for c in found.values())


def test_what_a_ranking_depends_on_is_in_its_identity():
    config, index = Config(), make_index()
    assert identity_of(retriever("bm25", "a"), index, config) == "bm25, bm25s"
    assert "e" * 64 in identity_of(retriever("dense", "a"), index, config)


def test_what_others_found_is_rescored_question_by_question():
    class Rescorer:
        def rescore(self, text, passages):
            self.asked.append((text, [one.passage_id for one in passages]))
            return Ranking.of("document", [ScoredPassage(one, 1.0) for one in passages], finds=False)

    rescorer = Rescorer()
    rescorer.asked = []
    columns = [
        tuple(retriever("bm25", order).retrieve("", 9) for order in ("ab", "c")),
        tuple(retriever("dense", order).retrieve("", 9) for order in ("bd", "")),
    ]
    questions = [GoldQuestion(Question(text), frozenset("a")) for text in ("one", "two")]
    seen, rankings, milliseconds = finished(rescore_all(questions, rescorer, columns))
    assert rescorer.asked == [("one", ["a", "b", "d"]), ("two", ["c"])]
    assert [len(ranking.hits) for ranking in rankings] == [3, 1]
    assert seen == [1, 2]
    assert milliseconds >= 0

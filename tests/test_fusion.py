import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragqa.errors import IndexingError
from ragqa.fusion import fuse, led_by
from ragqa.settings.config import FusionConfig
from ragqa.types import BY_NUMBER, Ranking, ScoredPassage, min_max_norm
from tests.support.fakes import passage, ranking

scores = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(-50, 50), max_size=8)


def test_min_max_norm_maps_lowest_to_0_and_highest_to_1():
    assert min_max_norm([5.0, 9.0, 1.0]) == [(5 - 1) / (9 - 1), 1.0, 0.0]


@pytest.mark.parametrize(("given_scores", "expected"), [([], []), ([3.0], [1.0]), ([2.0, 2.0], [1.0, 1.0])])
def test_min_max_norm_of_nothing_one_and_equals(given_scores, expected):
    assert min_max_norm(given_scores) == expected


def test_weighted_sum_is_written_out_arithmetic():
    bm25 = ranking("bm25", {"a": 9.0, "b": 5.0, "c": 1.0})
    dense = ranking("dense", {"b": 0.8, "d": 0.6, "c": 0.4})
    fused = fuse([bm25, dense], FusionConfig.of(bm25=0.6, dense=0.4))
    by_id = {hit.passage.passage_id: hit.score for hit in fused.hits}
    assert by_id == pytest.approx(
        {"a": 0.6 * 1.0, "b": 0.6 * (5 - 1) / (9 - 1) + 0.4 * 1.0, "c": 0.0, "d": 0.4 * (0.6 - 0.4) / (0.8 - 0.4)}
    )
    assert [hit.passage.passage_id for hit in fused.hits] == ["b", "a", "d", "c"]


def test_parts_keep_the_raw_score_the_rank_and_the_contribution():
    fused = fuse(
        [ranking("bm25", {"a": 9.0, "b": 1.0}), ranking("dense", {"b": 0.5})], FusionConfig.of(bm25=0.6, dense=0.4)
    )
    a = next(hit for hit in fused.hits if hit.passage.passage_id == "a")
    lexical, dense = a.parts
    assert (lexical.raw, lexical.rank, lexical.normalised, lexical.contribution) == (9.0, 1, 1.0, 0.6 * 1.0)
    assert (dense.raw, dense.rank, dense.normalised, dense.contribution) == (None, None, 0.0, 0.0)


def test_reciprocal_rank_fusion_counts_ranks_from_1():
    fused = fuse([ranking("bm25", {"a": 9, "b": 5}), ranking("dense", {"b": 0.8})], FusionConfig(method="rrf"))
    by_id = {hit.passage.passage_id: hit.score for hit in fused.hits}
    assert by_id == pytest.approx({"b": 1 / (60 + 2) + 1 / (60 + 1), "a": 1 / (60 + 1)})


def test_a_retriever_of_weight_0_adds_no_candidates_but_shows_its_scores():
    fused = fuse([ranking("bm25", {"a": 1.0}), ranking("dense", {"a": 0.3, "z": 0.9})], FusionConfig.of(bm25=1))
    assert [hit.passage.passage_id for hit in fused.hits] == ["a"]
    assert fused.hits[0].parts[1].raw == 0.3


def test_ties_are_ordered_by_passage_id():
    fused = fuse([ranking("bm25", {"c": 2.0, "a": 2.0, "b": 2.0})], FusionConfig.of(bm25=1))
    assert [hit.passage.passage_id for hit in fused.hits] == ["a", "b", "c"]


def test_nothing_retrieved_is_an_empty_ranking():
    assert fuse([Ranking("bm25", ()), Ranking("dense", ())], FusionConfig()) == Ranking("fused", ())


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_is_refused(bad):
    with pytest.raises(IndexingError, match="finite scores from retriever 'dense'"):
        fuse([ranking("dense", {"a": bad})], FusionConfig())


@given(scores, scores, st.floats(0, 1))
def test_weighted_sum_stays_in_0_1_and_leaves_its_input_alone(lexical, dense, weight):
    rankings = (ranking("bm25", lexical), ranking("dense", dense))
    before = repr(rankings)
    fused = fuse(rankings, FusionConfig("wsum", {"bm25": weight, "dense": 1 - weight}))
    assert all(-1e-9 <= hit.score <= 1 + 1e-9 for hit in fused.hits)
    assert repr(rankings) == before
    assert len({hit.passage.passage_id for hit in fused.hits}) == len(fused.hits)


def test_any_number_of_rankings():
    rankings = [ranking(name, {"a": 2.0, name: 1.0}) for name in ("bm25", "context", "dense", "other")]
    fused = fuse(rankings, FusionConfig.of(bm25=1, context=2, dense=1))
    assert fused.hits[0].score == pytest.approx(1.0)
    assert [part.weight for part in fused.hits[0].parts] == [0.25, 0.5, 0.25, 0.0]
    assert "other" not in {hit.passage.passage_id for hit in fused.hits}


def test_ranks_count_alike_where_the_weight_is_above_0():
    rankings = [ranking("bm25", {"a": 9}), ranking("context", {"b": 9}), ranking("dense", {"a": 0.5})]
    fused = fuse(rankings, FusionConfig.of("rrf", bm25=1, dense=3))
    assert {hit.passage.passage_id: hit.score for hit in fused.hits} == pytest.approx({"a": 2 / 61})


def rescored(retriever, scores, bounds=None):
    found = ranking(retriever, scores)
    return Ranking(found.retriever, found.hits, finds=False, bounds=bounds)


def test_document_level_fusion_of_rirag_written_out():
    lexical = ranking("bm25", {"1:1": 9.0, "1:2": 5.0, "2:1": 1.0})
    documents = rescored("document", {"1:1": 4.0, "1:2": 4.0, "2:1": 3.0}, bounds=(0.0, 8.0))
    fused = fuse((lexical, documents), FusionConfig(weights={"bm25": 0.9, "document": 0.1}))
    assert {hit.passage.passage_id: hit.score for hit in fused.hits} == pytest.approx(
        {
            "1:1": 0.9 * (9 - 1) / (9 - 1) + 0.1 * (4 - 0) / (8 - 0),
            "1:2": 0.9 * (5 - 1) / (9 - 1) + 0.1 * (4 - 0) / (8 - 0),
            "2:1": 0.9 * (1 - 1) / (9 - 1) + 0.1 * (3 - 0) / (8 - 0),
        }
    )


def test_a_ranking_that_only_rescored_adds_no_passage():
    lexical, dense = ranking("bm25", {"a": 2.0, "b": 1.0}), ranking("dense", {"c": 0.9})
    documents = rescored("document", {"a": 1.0, "b": 2.0, "c": 3.0})
    names = [
        sorted(hit.passage.passage_id for hit in fuse((lexical, dense, documents), FusionConfig.of(**weights)).hits)
        for weights in ({"bm25": 9, "document": 1}, {"bm25": 5, "dense": 4, "document": 1}, {"document": 1})
    ]
    assert names == [["a", "b"], ["a", "b", "c"], ["a", "b", "c"]]  # alone it has what all the others found


def test_equal_bounds_are_all_the_best():
    assert min_max_norm([3.0], (3.0, 3.0)) == [1.0]
    assert min_max_norm([1.0, 3.0], (1.0, 5.0)) == [0.0, 0.5]
    assert min_max_norm([], (0.0, 1.0)) == []


def test_passages_asked_for_by_number_lead_in_their_order_whether_they_were_found_or_not():
    found = led_by(ranking("fused", {"a": 0.9, "b": 0.5, "c": 0.1}), [passage("z"), passage("c")])
    assert [hit.passage.passage_id for hit in found.hits] == ["z", "c", "a", "b"]
    assert [hit.note for hit in found.hits] == [BY_NUMBER, BY_NUMBER, "", ""]
    assert led_by(ranking("fused", {"a": 0.9}), []) == ranking("fused", {"a": 0.9})


def test_ties_keep_the_order_of_the_ranking_behind_the_passages_asked_for_by_number():
    tied = ranking("fused", {"a": 0.5, "b": 0.5})
    reranked = Ranking("fused", tied.hits[::-1])
    assert [hit.passage.passage_id for hit in led_by(reranked, [passage("z")]).hits] == ["z", "b", "a"]


def test_a_ranking_within_documents_has_only_their_best_hits():
    hits = [ScoredPassage(passage(f"{document}:{n}"), 1 - n / 10) for n in range(3) for document in ("a", "b")]
    whole = Ranking.of("bm25", hits)
    assert [hit.passage.passage_id for hit in whole.within({"b"}, 2).hits] == ["b:0", "b:1"]
    assert whole.within({"c"}, 2).hits == ()

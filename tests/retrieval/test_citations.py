"""Citations followed: what good candidates cite, and what cites them, with a note that says so; off without any."""

import json

import numpy as np
import pytest

from ragqa.corpus.questions import GoldQuestion
from ragqa.errors import IndexMismatchError
from ragqa.evaluation.measures import kept_figures
from ragqa.filtering import select
from ragqa.fusion import fuse
from ragqa.index import build_index, open_index, verify_index
from ragqa.index.passages import cited_in
from ragqa.retrieval import rank, retrievers_for
from ragqa.retrieval.citations import WIDEST, CitationRetriever, Links, asks_twice, links_of
from ragqa.retrieval.ranking import Rankable, fitting_fusion, own_weights
from ragqa.settings.config import CITATIONS_WEIGHT, FilteringConfig, FusionConfig, IndexingConfig, RetrievalConfig
from ragqa.types import Question, Ranking, ScoredPassage
from tests.support.fakes import FakeEncoder, FakeRetriever, passage, ranking
from tests.support.made import tie_order

PASSAGES = (
    passage("1:1", "a", number="1"),
    passage("1:2", "b", number="2"),
    passage("1:3", "c", number="3"),
    passage("2:1", "d", number="1", title="Guide"),
    passage("2:2", "HEADING", number="2"),
)
LINES = (
    ["1:1", 0, 1, "1:2", "1:2", ""],
    ["1:1", 2, 3, "1:3", "1:3", ""],
    ["2:1", 0, 1, "1:1", "", ""],
    ["1:2", 0, 1, "", "", "not in this corpus"],
    ["1:2", 0, 1, "2:2", "2:2", ""],
)


def positions_of(names):
    return [[one.passage_id for one in PASSAGES].index(name) for name in names]


@pytest.fixture
def citations(tmp_path):
    file = tmp_path / "references.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    hidden = np.array([one.text == "HEADING" for one in PASSAGES])
    return CitationRetriever(file, Rankable(PASSAGES, tie_order(PASSAGES), hidden), positions_of, cited_in)


def test_links_go_both_ways_and_leave_out_what_means_nothing():
    links = Links.of([(0, 1), (0, 1), (2, 2), (3, 0)])
    assert links == Links({0: (1,), 3: (0,)}, {0: (3,), 1: (0,)})


def test_of_a_wide_range_its_first_passages_are_linked():
    line = json.dumps(["0", 0, 1, "1", "50", ""]).encode()
    links = links_of(cited_in([line]), lambda names: [int(name) for name in names])
    assert links.cites[0] == tuple(range(1, WIDEST + 1))


def test_what_the_best_candidate_cites_and_what_cites_it_is_found_with_the_reason(citations):
    found = citations.follow("?", [ranking("bm25", {"1:1": 2.0, "1:3": 1.0})], 10)
    assert {hit.passage.passage_id: hit.note for hit in found.hits} == {
        "2:1": "cites 1 1:1 (rank 1)",  # of another document, which has no title
        "1:2": "cited by 1:1 (rank 1)",
        "1:3": "cited by 1:1 (rank 1)",
    }
    assert found.hits[0].score == 1
    assert found.hits[1].score == pytest.approx(1 / 2**0.5)  # it cites two
    assert {hit.via for hit in found.hits} == {""}
    assert found.bounds == (0, 1)
    assert [hit.passage.passage_id for hit in citations.follow("?", [ranking("bm25", {"1:1": 1.0})], 1).hits] == ["2:1"]


def test_where_a_question_asks_for_two_things_pairs_are_named_and_kept_together(citations):
    question = "What must a firm keep, and how must it report?"
    found = rank(
        [FakeRetriever(ranking("bm25", {"1:1": 9.0, "1:2": 6.0, "1:3": 5.9, "2:2": 0.0})), citations], question, 10
    )
    assert {hit.via for hit in found[1].hits if hit.note.endswith("(rank 1)")} == {"1:1"}
    fused = fuse(found, FusionConfig.of(bm25=9, citations=1))
    filtering = FilteringConfig(threshold=0.8)
    selection = select(fused, filtering)
    assert [one.passage.passage_id for one in selection.kept] == ["1:1", "1:2", "1:3"]
    assert selection.kept[1].explanation.startswith(
        "kept: cited by 1:1 (rank 1) and read with it; by the filter dropped"
    )
    assert not any(one.passage.passage_id == "2:1" for one in selection.kept)  # too far below the threshold
    gold = [GoldQuestion(Question("?"), frozenset({"1:1", "1:2"}))]
    filters = [filtering, FilteringConfig(), FilteringConfig(threshold=0.8, top_k=2), FilteringConfig(top_k=1)]
    (figures,) = kept_figures(gold, [fused], filters)
    assert figures[3].tolist() == [len(select(fused, one).kept) for one in filters] == [3, 3, 2, 1]
    assert figures[1].tolist() == pytest.approx([2 / 3, 2 / 3, 1, 1])


@pytest.mark.parametrize(
    ("question", "twice"),
    [("What must it do, and how does it report?", True), ("What must a firm keep for itself and its clients?", False)],
)
def test_questions_that_ask_for_two_things(question, twice):
    assert asks_twice(question) is twice


def test_a_document_is_named_by_its_title_and_headings_are_no_candidates(citations):
    guide = Ranking.of("dense", [ScoredPassage(PASSAGES[3], 1.0)])
    assert citations.follow("?", [guide], 10).hits[0].note == "cited by Guide 1 (rank 1)"
    assert not [
        hit for hit in citations.follow("?", [ranking("dense", {"1:2": 1.0})], 9).hits if hit.passage.number == "2:2"
    ]


def test_by_itself_it_finds_nothing(citations):
    assert citations.retrieve("a question", 10).hits == ()
    assert citations.follow("?", [], 10).hits == ()


def test_what_is_followed_becomes_a_candidate_whose_score_is_explained(citations):
    found = rank([FakeRetriever(ranking("bm25", {"1:1": 2.0, "1:2": 1.0})), citations], "?", 10)
    assert [one.retriever for one in found] == ["bm25", "citations"]
    fused = fuse(found, FusionConfig.of(bm25=3, citations=1))
    new = next(hit for hit in fused.hits if hit.passage.passage_id == "2:1")
    assert [(part.retriever, part.note) for part in new.parts] == [("bm25", ""), ("citations", "cites 1 1:1 (rank 1)")]
    assert new.score == 0.25


def test_a_file_that_holds_something_else_says_so(tmp_path):
    (tmp_path / "references.jsonl").write_text('{"a": 1}\n')
    broken = CitationRetriever(
        tmp_path / "references.jsonl",
        Rankable(PASSAGES, tie_order(PASSAGES), np.zeros(5, bool)),
        positions_of,
        cited_in,
    )
    with pytest.raises(IndexMismatchError, match="the references of the passages"):
        broken.follow("?", [ranking("bm25", {"1:1": 2.0})], 10)


def test_weights_nobody_chose_give_citations_their_share_only_where_there_are_some():
    default = FusionConfig().weights
    assert own_weights(default, ("bm25", "context", "dense")) == default
    with_them = own_weights(default, ("bm25", "context", "dense", "citations"))
    assert with_them["citations"] == CITATIONS_WEIGHT
    assert sum(with_them.values()) == pytest.approx(1)
    assert own_weights({"bm25": 1.0}, ("bm25", "citations")) == {"bm25": 1.0}


def test_an_index_of_numbered_rules_has_the_ranking_and_one_of_prose_has_not(tmp_path):
    rules = ["A firm must keep client money apart under Rule 1.2.", "Records must be kept.", "A loss must be reported."]
    for name, texts in (("rules", rules), ("prose", rules[1:])):
        (tmp_path / name).mkdir()
        items = [
            {"ID": str(n), "DocumentID": 1, "PassageID": f"1.{n}.", "Passage": text} for n, text in enumerate(texts, 1)
        ]
        (tmp_path / name / "1.json").write_text(json.dumps(items))
        config = IndexingConfig(encoder="none")
        build_index(name, tmp_path / name, indexes=tmp_path / "indexes", config=config, encoder=None)
    assert open_index("prose", tmp_path / "indexes").citations is None
    manifest = verify_index("rules", tmp_path / "indexes")
    assert manifest.retrievers == ("bm25", "context", "citations")
    index = open_index("rules", tmp_path / "indexes")
    found = rank(retrievers_for(index, FakeEncoder(), RetrievalConfig()), "When is client money kept apart?", 10)
    fused = fuse(found, fitting_fusion(FusionConfig(), manifest.retrievers, manifest.encoder, "rules"))
    notes = {hit.passage.number: hit.parts[-1].note for hit in fused.hits}
    assert notes["1.2."] == "cited by 1.1. (rank 1)"

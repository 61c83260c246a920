"""Learning to rank: its features by hand, the trees that learn, the command that measures them."""

import json
import math
import re

import numpy as np
import pytest

import ragqa.cli.train_ranking
from ragqa.corpus.questions import GoldQuestion
from ragqa.english.words import Analyser
from ragqa.errors import CorpusError, ModelError
from ragqa.fusion import fuse, led_by, rerank
from ragqa.lab.training.ranker import Candidates, RankerTraining, gather, scored, train, write_ranker
from ragqa.models import write_manifest
from ragqa.retrieval.citations import Links
from ragqa.retrieval.learned_ranker import LearnedRanker, feature_names, is_ranker, ranking_features, rankings_read
from ragqa.retrieval.reranker import read_again
from ragqa.settings.config import FusionConfig, RerankingConfig
from ragqa.types import Question, Ranking, ScoredPassage
from tests.lab.test_reranker_training import call  # noqa: F401 - fixtures
from tests.lab.test_retriever_training import QUESTIONS, asked, base, indexed  # noqa: F401
from tests.support.fakes import passage

TEXTS = {
    "1:1": "A firm must keep records. Records are kept for six years.",
    "1:2": "A branch must keep accounts.",
    "2:1": "Nothing here.",
}
PASSAGES = {name: passage(name, text, section="Firm records") for name, text in TEXTS.items()}


class Words:
    """Every word of the corpus weighs 2, any other 5."""

    analyser = Analyser(language="", stop_words=False, bigrams=True)

    def rarities(self, tokens):
        known = " ".join(TEXTS.values()).lower()
        return {token: 2.0 if token in known else 5.0 for token in tokens}


class Corpus:
    """The three passages in reading order."""

    bm25s = Words()
    links = Links({0: (1,)}, {1: (0,)})

    def __init__(self):
        self.position_of = {name: n for n, name in enumerate(TEXTS)}

    def neighbours(self, of):
        names = list(TEXTS)
        place = names.index(of.passage_id)
        around = [names[n] if 0 <= n < len(names) else None for n in (place - 1, place + 1)]
        same = [name if name and name[0] == of.passage_id[0] else None for name in around]
        return tuple(PASSAGES[name] if name else None for name in same)


def fused_of(**scores):
    """Rankings given as {passage: score}, fused alike."""
    rankings = [
        Ranking.of(name, [ScoredPassage(PASSAGES[key], value) for key, value in found.items()])
        for name, found in scores.items()
    ]
    return fuse(rankings, FusionConfig("wsum", {"bm25": 0.5, "context": 0.25, "dense": 0.25}))


FUSED = fused_of(bm25={"1:1": 8.0, "1:2": 4.0}, context={"1:1": 3.0, "2:1": 1.0}, dense={"1:2": 0.5, "1:1": 0.25})


def features_of(name, question="Must firms keep records of fraud?", fused=FUSED, depth=10, further=""):
    rows = ranking_features(question, fused.hits, depth, Corpus(), further)
    row = [hit.passage.passage_id for hit in fused.hits].index(name)
    return dict(zip(feature_names(further=bool(further)), rows[row].tolist(), strict=True))


def test_features_of_links_say_what_cites_what_among_the_hits_and_what_the_question_names():
    first, second = features_of("1:1"), features_of("1:2", "What does 3.1 say, and how is it kept?")
    assert first["cites best"] == pytest.approx(FUSED.hits[1].score)
    assert (first["cited by best"], first["linked reciprocal rank"], first["links in ten"]) == (0, 0.5, 1)
    assert second["cited by best"] == pytest.approx(FUSED.hits[0].score)
    assert (second["rankings in ten"], second["question names"], second["question asks twice"]) == (2, 1, 1)
    assert (first["named"], first["question asks twice"], first["citations score"]) == (0, 0, 0)


# Features -------------------------------------------------------------------------------------------------------------


def test_features_of_the_rankings_say_score_normalised_score_and_rank_and_0_where_a_ranking_lacks_it():
    found = features_of("1:1")
    assert [found[f"bm25 {what}"] for what in ("score", "normalised", "reciprocal rank")] == [8.0, 1.0, 1.0]
    assert [found[f"dense {what}"] for what in ("score", "normalised", "reciprocal rank")] == [0.25, 0.0, 0.5]
    assert [features_of("1:2")[f"context {what}"] for what in ("score", "normalised", "reciprocal rank")] == [0, 0, 0]


def test_a_further_ranking_adds_four_features_and_changes_no_other():
    rankings = {
        "bm25": {"1:1": 8.0, "1:2": 4.0},
        "context": {"1:1": 3.0, "2:1": 1.0},
        "dense": {"1:2": 0.5, "1:1": 0.25},
    }
    fused = fused_of(**rankings, late={"1:2": 0.75, "2:1": 0.25})
    before, after = features_of("2:1", fused=fused), features_of("2:1", fused=fused, further="late")
    added = {"further score": 0.25, "further normalised": 0.0, "further reciprocal rank": 0.5}
    assert after == before | added | {"further score below the best": -0.5}
    assert features_of("1:1", fused=fused, further="late")["further score below the best"] == -0.75, "not among them"


def test_features_of_fusion_know_the_document_and_the_neighbours():
    first, second, third = (features_of(name) for name in ("1:1", "1:2", "2:1"))
    assert (first["fused"], second["fused"], third["fused"]) == (0.75, 0.25, 0.0)
    assert first["document sum"] == second["document sum"] == 1.0
    assert second["document best"] == 0.75
    assert (second["fused before"], second["fused after"]) == (0.75, 0.0)
    assert third["fused two away"] == 0.75
    assert (first["fused below the best"], second["fused below the best"]) == (0.0, -0.5)


def test_features_of_words_weigh_them_by_rarity():
    # Asked: must, firms, keep, records, of, fraud; "firms" and "fraud" occur nowhere, "of" neither.
    found = features_of("1:1")
    total = 3 * 2.0 + 3 * 5.0
    assert found["question words"] == 6
    assert found["question weight"] == total
    assert found["shared"] == 3  # must, keep, records
    assert found["covered"] == pytest.approx(6 / total)
    assert found["covered squared"] == pytest.approx(12 / (12 + 75))
    assert found["covered by a sentence"] == pytest.approx(6 / total)
    assert found["sentence density"] == pytest.approx(3 / 4)  # of: firm must keep records; "a" is too short
    assert found["frequency"] == pytest.approx(8 / total)  # records twice
    assert found["pairs"] == pytest.approx(1 / 5)  # keep records
    assert found["heading covers"] == pytest.approx(2 / total)
    assert found["heading adds"] == 0.0
    assert found["rarest missing"] == 5.0
    assert (found["sentences"], found["words"]) == (2, 10)
    other = features_of("1:2")
    assert other["covered"] == pytest.approx(4 / total)
    assert other["covered with neighbours"] == pytest.approx(6 / total)
    assert other["neighbours add"] == other["heading adds"] == pytest.approx(2 / total)
    assert other["covered below the best"] == pytest.approx(-2 / total)


def test_only_the_best_have_features_and_all_count_for_the_document():
    rows = ranking_features("Must firms keep records?", FUSED.hits, 1, Corpus())
    assert rows.shape == (1, len(feature_names()))
    assert rows.dtype == np.float32
    assert dict(zip(feature_names(), rows[0], strict=True))["document sum"] == 1.0
    assert ranking_features("Must firms?", (), 5, Corpus()).shape == (0, len(feature_names()))


@pytest.mark.parametrize("question", ["?", "", "x", "\u200b", "the of", "records " * 3000])
def test_any_question_has_finite_features(question):
    assert np.isfinite(ranking_features(question, FUSED.hits, 10, Corpus())).all()


def test_rarities_are_those_of_the_index_and_none_is_refused(indexed, tmp_path):  # noqa: F811
    from ragqa.index import open_index

    words = open_index("tiny", tmp_path / "indexes").bm25s
    found = words.rarities(["rule", "redcat", "never"])
    n = 26
    assert found["rule"] == pytest.approx(math.log((n + 1) / (n + 0.5)))
    assert found["never"] == pytest.approx(math.log((n + 1) / 0.5))
    assert found["rule"] < found["redcat"] < found["never"]
    assert words.rarities([]) == {}


# Training and use -----------------------------------------------------------------------------------------------------


def candidates_of(n_questions=60, seed=0, further=""):
    """Questions whose gold is the passage whose words cover them best, not the first one."""
    draw = np.random.default_rng(seed)
    names = feature_names(further=bool(further))
    column = names.index("covered")
    found = []
    for _ in range(n_questions):
        features = draw.random((12, len(names))).astype(np.float32)
        labels = np.zeros(12, np.int8)
        labels[features[:, column].argmax()] = 1
        found.append(Candidates(tuple(f"1:{n}" for n in range(12)), features, labels, np.ones(12, np.bool_)))
    return found


def test_the_trees_find_what_makes_gold_and_the_same_data_give_the_same_trees():
    settings = RankerTraining(trees=60, min_rows=5)
    booster = train(candidates_of(300), settings)
    right = 0
    for one in candidates_of(40, seed=1):
        scores = scored(booster, one)
        right += one.labels[[*scores.values()].index(max(scores.values()))]
    assert right >= 32  # of 40; by chance 3
    assert train(candidates_of(300), settings).model_to_string() == booster.model_to_string()


def test_copies_of_a_gold_text_teach_nothing_and_questions_without_gold_neither():
    text_of = [0, 0, 1]  # 1:2 reads as 1:1 does
    (one,) = gather([asked("records", "1:1")], [FUSED], RankerTraining(depth=10), Corpus(), text_of)
    assert one.names == ("1:1", "1:2", "2:1")
    assert one.labels.tolist() == [1, 0, 0]
    assert one.taught.tolist() == [True, False, True]
    (none,) = gather([asked("records", "7:7")], [FUSED], RankerTraining(depth=10), Corpus(), text_of)
    with pytest.raises(CorpusError, match="expected questions with a gold passage among the best fused ones"):
        train([none], RankerTraining())


@pytest.fixture
def ranker(tmp_path):
    folder = tmp_path / "ranker"
    write_ranker(train(candidates_of(), RankerTraining(trees=10, min_rows=5)), folder)
    return folder


def test_a_ranker_is_told_from_a_cross_encoder_and_reranks(ranker, tmp_path):
    assert is_ranker(str(ranker))
    assert not is_ranker(str(tmp_path))
    assert not is_ranker("cross-encoder/ms-marco-MiniLM-L6-v2")
    assert rankings_read(str(ranker)) == ("bm25", "context", "dense")
    assert rankings_read("cross-encoder/ms-marco-MiniLM-L6-v2") == rankings_read("") == ()
    loaded = LearnedRanker(str(ranker))
    assert loaded.info.precision.startswith("fp64, LightGBM ")
    scores = read_again(loaded, "Must firms keep records?", FUSED, 2, Corpus())
    assert set(scores) == {"1:1", "1:2"}
    assert all(map(math.isfinite, scores.values()))
    ranked = rerank(FUSED, scores, RerankingConfig(str(ranker), 2, 1.0))
    assert {hit.passage.passage_id for hit in ranked.hits} == set(TEXTS)
    assert loaded.score_hits("anything", (), 5, Corpus()) == []


def test_a_missing_ranking_is_named(ranker):
    lexical = fused_of(bm25={"1:1": 8.0, "1:2": 4.0})
    with pytest.raises(ModelError, match="has no context and no dense. Build the index with it"):
        LearnedRanker(str(ranker)).score_hits("records", lexical.hits, 5, Corpus())


def test_a_rule_put_first_by_its_number_is_ranked_with_the_others(ranker):
    rankings = {name: {"1:1": 8.0, "1:2": 4.0} for name in ("bm25", "context", "dense")}
    hits = led_by(fused_of(**rankings), [PASSAGES["2:1"]]).hits
    assert not hits[0].parts
    assert len(LearnedRanker(str(ranker)).score_hits("records", hits, 5, Corpus())) == 3


def test_a_ranker_that_reads_a_further_ranking_names_it_where_it_is_missing(tmp_path):
    training = RankerTraining(trees=10, min_rows=5, further="late")
    write_ranker(train(candidates_of(further="late"), training), tmp_path, "late")
    loaded = LearnedRanker(str(tmp_path))
    rankings = {name: {"1:1": 8.0, "1:2": 4.0} for name in ("bm25", "context", "dense")}
    assert len(loaded.score_hits("records", fused_of(**rankings, late={"1:2": 1.0}).hits, 5, Corpus())) == 2
    with pytest.raises(ModelError, match=r"has no late\. Build the index with it \(`--also late`\)"):
        loaded.score_hits("records", fused_of(**rankings).hits, 5, Corpus())


def test_files_that_do_not_fit_are_refused(ranker):
    trees = ranker / "ranker.txt"
    good = trees.read_text()
    trees.write_text(good.replace("bm25_score", "bm25_points"))
    with pytest.raises(ModelError, match="do not match their manifest"):
        LearnedRanker(str(ranker))
    write_manifest(ranker, "ranker", "ranker.txt")
    with pytest.raises(ModelError, match="other features than this version of ragqa computes"):
        LearnedRanker(str(ranker))
    trees.write_text("no trees")
    write_manifest(ranker, "ranker", "ranker.txt")
    with pytest.raises(ModelError, match=r"expected ranker\.txt as `ragqa train ranker` writes it"):
        LearnedRanker(str(ranker))


@pytest.mark.model
@pytest.mark.slow
def test_the_command_measures_out_of_fold_and_writes_a_ranker_that_eval_uses(call, tmp_path):  # noqa: F811
    out = tmp_path / "ranker"
    options = ["--out", str(out), "--folds", "3", "--trees", "5", "--depth", "10"]
    result = call("train", "ranker", *options)
    assert result.exit_code == 0, result.output
    for line in ("fused: R@10 ", "learned, weight 0.3: R@10 ", "learned, weight 1: R@10 "):
        assert line in result.stdout
    card = (out / "README.md").read_text()
    assert re.search(r"\| learned, weight 0\.5 \| [01]\.\d{4} \| [01]\.\d{4} \|", card)
    assert "--folds=3" in card
    before = (out / "ranker.txt").read_bytes()
    assert call("train", "ranker", *options).exit_code == 0
    assert (out / "ranker.txt").read_bytes() == before
    again = ["eval", "retrieval", "--reranker", str(out), "--rerank-weight", "1", "--json"]
    measured = call(*again)
    assert measured.exit_code == 0, measured.output
    report = json.loads(measured.stdout)
    assert 0 < report["measures"]["fused, reranked 1"]["AP@10"] <= 1
    second = json.loads(call(*again).stdout)
    assert second["milliseconds"] == report["milliseconds"]  # restored: nothing was read again
    nothing = call("train", "ranker", *options, questions=[asked("what", "7:1"), asked("why", "7:2")])
    assert "expected questions about at least 3 gold passages" in str(nothing.exception)


@pytest.mark.model
@pytest.mark.slow
def test_stacked_the_trees_read_an_adapter_that_has_not_seen_the_gold(call, base, tmp_path):  # noqa: F811
    adapters = [f"dense:{base}+{tmp_path / name}" for name in ("fold1", "fold2", "all")]
    small = ["--layers", "1", "--rank", "4", "--batch", "16"]
    for ranking_name, fold in zip(adapters, (["--fold", "1/2"], ["--fold", "2/2"], []), strict=True):
        made = call("train", "retriever", "--out", ranking_name.partition("+")[2], *small, *fold)
        assert made.exit_code == 0, made.output
    also = [option for one in adapters for option in ("--also", one)]
    built = call(
        "index", "build", "tiny", "--source", str(tmp_path / "corpus"), "--encoder", str(base), *also, asked=False
    )
    assert built.exit_code == 0, built.output
    out = ["--out", str(tmp_path / "ranker"), "--folds", "2", "--trees", "5", "--depth", "10"]
    stacked = ["--further", adapters[2], "--stacked", adapters[0], "--stacked", adapters[1]]
    result = call("train", "ranker", *out, *stacked)
    assert result.exit_code == 0, result.output
    assert "learned, weight 1: R@10 " in result.stdout
    assert json.loads((tmp_path / "ranker" / "MODEL.json").read_text())["further"] == adapters[2]
    assert "further_score" in (tmp_path / "ranker" / "ranker.txt").read_text()
    assert f"further {adapters[2]}" in (tmp_path / "ranker" / "README.md").read_text()
    measured = call("eval", "retrieval", "--reranker", str(tmp_path / "ranker"), "--rerank-weight", "1", "--json")
    assert measured.exit_code == 0, measured.output
    for wrong, message in (
        (["--further", "late"], "the index has no ranking 'late', only bm25, "),
        (stacked[:4], "--stacked names one ranking of the index for each of the 2 folds"),
        (stacked[2:], "--further what they stand for; got 2, and --further ''"),
    ):
        assert message in str(call("train", "ranker", *out, *wrong).exception)


@pytest.mark.model
def test_the_command_learns_from_our_own_questions_on_further_indexes(call, tmp_path, monkeypatch):  # noqa: F811
    def of_passages(data, passages):
        assert data == tmp_path
        return [
            GoldQuestion(Question(f"What of {one.text[:20]}?"), frozenset({one.passage_id})) for one in passages[:6]
        ]

    monkeypatch.setattr(ragqa.cli.train_ranking, "written_gold", of_passages)
    options = ["--out", str(tmp_path / "ranker"), "--folds", "2", "--trees", "5", "--depth", "10"]
    result = call("train", "ranker", *options, "--written", str(tmp_path), "--written-index", "tiny")
    assert result.exit_code == 0, result.output + str(result.exception)
    assert "written (6), learned, weight 1: R@10 " in result.stdout
    card = (tmp_path / "ranker" / "README.md").read_text()
    assert "all questions and 6 about passages of other indexes" in card
    assert "written_claims.jsonl.gz" in card
    wrong = call("train", "ranker", *options, "--written-index", "tiny")
    assert "--written-index needs --written" in str(wrong.exception)
    wrong = call("train", "ranker", *options, "--written", str(tmp_path), "--written-weight", "0")
    assert "--written-weight must be above 0, got 0" in str(wrong.exception)


@pytest.mark.model
def test_the_cut_is_fitted_and_told_beside_the_limits(call):  # noqa: F811
    result = call("train", "cut", "--folds", "3")
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert re.search(r", limits, out of fold: F 0\.\d{3}, precision .*, expected-f2, out of fold: F 0\.\d{3}, ", said)
    assert re.search(r"Weights of all: bias -?\d.*, relevance .*, others .*, lead -?\d", said)
    wrong = call("train", "cut", "--weight", "0")
    assert "--weight must be given once for each --questions, each above 0, got 1 for 1" in str(wrong.exception)

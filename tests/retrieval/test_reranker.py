"""Reranking: its arithmetic, a tiny cross-encoder, and what the pipeline, records, page and terminal make of it."""

import io
import json
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ragqa.cli.tables import passage_table
from ragqa.english.words import ANALYSERS, Analyser
from ragqa.errors import ConfigError, ModelError
from ragqa.filtering import select
from ragqa.fusion import fuse, led_by, rerank, reranker_scores
from ragqa.loading import load_reranker, load_selector, with_reranker
from ragqa.models.inference.classifier import SequenceClassifier
from ragqa.records.record import AnswerRecord
from ragqa.records.store import RecordStore
from ragqa.records.view import View, advance, from_record, reselect, unread
from ragqa.retrieval.analysis import indexed_text
from ragqa.retrieval.reranker import MeanReranker, read_again
from ragqa.settings.config import (
    RANKED,
    Config,
    FilteringConfig,
    FusionConfig,
    RerankingConfig,
    ScoringConfig,
    with_values,
)
from ragqa.settings.presets import PRESETS
from ragqa.settings.scoring import scoring_from_env
from ragqa.types import ModelInfo, Question, Ranking, ScoredPassage
from ragqa.types.events.pipeline import Fused, Reranked, Retrieved, Selected
from ragqa.ui.html.passages import passage_table_html
from tests.support.fakes import FakeReranker, FakeSelector, passage, ranking
from tests.support.helpers import PASSAGES, make_pipeline
from tests.support.tiny_models import PAIRS, tiny_encoding, transformers_logits, write_classifier
from tests.ui.test_render import Tags, assert_harmless

# The arithmetic -------------------------------------------------------------------------------------------------------

FUSED = ranking("fused", {"a": 1.0, "b": 0.8, "c": 0.6, "d": 0.2, "e": 0.0})
RAW = {"a": -3.0, "b": 1.0, "c": 5.0}


def names(found):
    return [hit.passage.passage_id for hit in found.hits]


def test_scores_are_the_weighted_sum_of_both_and_explained():
    found = rerank(FUSED, RAW, RerankingConfig("m", depth=3, weight=0.3))
    by_name = {hit.passage.passage_id: hit for hit in found.hits}
    assert by_name["a"].score == pytest.approx(0.3 * 0 + 0.7 * 1.0)
    assert by_name["b"].score == pytest.approx(0.3 * (1 + 3) / (5 + 3) + 0.7 * 0.8)
    assert by_name["c"].score == pytest.approx(0.3 * 1 + 0.7 * 0.6)
    assert by_name["d"].score == pytest.approx(0.7 * 0.2)
    assert names(found) == ["c", "b", "a", "d", "e"]
    fused, own = by_name["c"].reranking
    assert (fused.retriever, fused.raw, fused.rank, fused.weight) == ("fused", 0.6, 3, 0.7)
    assert (own.retriever, own.raw, own.rank, own.normalised) == ("reranker", 5.0, 1, 1.0)
    fused, own = by_name["e"].reranking
    assert (fused.rank, own.raw, own.rank, own.contribution) == (5, None, None, 0.0)


def test_alone_it_decides_among_those_read_and_the_rest_keep_their_order_below():
    found = rerank(FUSED, RAW, RerankingConfig("m", depth=3, weight=1.0))
    assert names(found) == ["c", "b", "a", "d", "e"]
    assert [hit.score for hit in found.hits] == [1.0, 0.5, 0.0, 0.0, 0.0]
    reverse = ranking("fused", {"z": 1.0, "y": 0.9, "x": 0.8, "w": 0.7})
    assert names(rerank(reverse, {"z": 1.0}, RerankingConfig("m", depth=1, weight=1.0))) == ["z", "y", "x", "w"]


def test_with_weight_0_or_equal_scores_the_order_is_that_of_fusion():
    assert names(rerank(FUSED, RAW, RerankingConfig("m", depth=3, weight=0.0))) == names(FUSED)
    assert names(rerank(FUSED, dict.fromkeys("abc", 7.0), RerankingConfig("m", depth=3))) == names(FUSED)


def test_fused_scores_of_any_scale_count_alike():
    small = Ranking("fused", tuple(replace(hit, score=hit.score / 60) for hit in FUSED.hits))  # as under RRF
    settings = RerankingConfig("m", depth=3, weight=0.3)
    assert [hit.score for hit in rerank(small, RAW, settings).hits] == pytest.approx(
        [hit.score for hit in rerank(FUSED, RAW, settings).hits]
    )


def test_nothing_to_rerank_and_what_was_not_read():
    assert rerank(Ranking("fused", ()), {}, RerankingConfig("m")).hits == ()
    assert names(rerank(FUSED, {}, RerankingConfig("m"))) == names(FUSED)
    before = repr(FUSED)
    rerank(FUSED, RAW, RerankingConfig("m", depth=2))
    assert repr(FUSED) == before
    assert set(reranker_scores(rerank(FUSED, RAW, RerankingConfig("m", depth=2)))) == {"a", "b"}


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_is_refused(wrong):
    with pytest.raises(ModelError, match="expected finite scores from the reranker 'm'.*leave the reranker out"):
        rerank(FUSED, RAW | {"b": wrong}, RerankingConfig("m"))


@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=12),
    st.lists(st.floats(-20, 20), min_size=12, max_size=12),
    st.integers(1, 14),
    st.floats(0, 1),
)
def test_scores_lie_in_0_to_1_fall_and_repeat_from_the_scores_kept(scores, raw, depth, weight):
    fused = ranking("fused", {f"{n:02}": score for n, score in enumerate(scores)})
    settings = RerankingConfig("m", depth, weight)
    found = rerank(fused, {hit.passage.passage_id: raw[n] for n, hit in enumerate(fused.hits)}, settings)
    values = [hit.score for hit in found.hits]
    assert all(-1e-12 <= value <= 1 + 1e-12 for value in values)
    assert values == sorted(values, reverse=True)
    assert sorted(names(found)) == sorted(names(fused))
    assert names(found)[depth:] == names(fused)[depth:]
    assert rerank(fused, reranker_scores(found), settings) == found


@pytest.mark.parametrize("options", [{"depth": 0}, {"depth": 1001}, {"weight": -0.1}, {"weight": 1.1}])
def test_settings_out_of_range_are_refused(options):
    with pytest.raises(ConfigError, match="rerank (depth|weight) must be"):
        RerankingConfig(**options)


def test_only_the_best_are_read_as_the_index_reads_them():
    hits = [
        ScoredPassage(passage("1:1", "One.", title="T", section="S"), 2.0),
        ScoredPassage(passage("1:2", "Two."), 1.0),
        ScoredPassage(passage("1:3", "Three."), 0.5),
    ]
    reranker = FakeReranker({"One.": 4.0})

    def corpus(kind):
        return SimpleNamespace(text_of=lambda passage: indexed_text(passage, kind))

    fused = Ranking("fused", tuple(hits))
    assert read_again(reranker, "q", fused, 2, corpus("text")) == {"1:1": 4.0, "1:2": 0.0}
    read_again(reranker, "q", fused, 1, corpus("title-section-text"))
    assert reranker.calls == [("q", ("One.", "Two.")), ("q", ("T. S. One.",))]


# A cross-encoder ------------------------------------------------------------------------------------------------------


@pytest.mark.model
def test_a_bert_gives_what_transformers_gives_through_the_graph(tmp_path):
    folder = write_classifier(tmp_path, ["LABEL_0"])
    reranker = load_reranker(str(folder), "fp32")
    assert reranker.info.precision.startswith("fp32, OpenVINO ")
    question = PAIRS[0][0]
    texts = [text for pair in PAIRS for text in pair]
    found = reranker.score(question, texts)
    expected = [float(transformers_logits(folder, tiny_encoding(folder, question, text))[0, 0]) for text in texts]
    assert found == pytest.approx(expected, abs=1e-4)
    assert len({round(score, 3) for score in found}) > 1
    assert reranker.score(question, []) == []
    assert load_reranker(str(folder)).score(question, texts) == pytest.approx(expected, abs=0.1)  # bf16 where there is


@pytest.mark.model
def test_another_architecture_is_computed_by_torch(tmp_path):
    folder = write_classifier(
        tmp_path, ["score"], "DebertaV2", relative_attention=True, pos_att_type=["c2p"], type_vocab_size=0
    )
    reranker = load_reranker(str(folder), "fp32")
    assert "PyTorch" in reranker.info.precision
    expected = transformers_logits(folder, tiny_encoding(folder, *PAIRS[0]))[0, 0]
    assert reranker.score(PAIRS[0][0], [PAIRS[0][1]]) == pytest.approx([float(expected)], abs=1e-4)


@pytest.mark.model
def test_a_model_that_is_no_reranker_is_refused(tmp_path):
    folder = write_classifier(tmp_path, ["contradiction", "entailment", "neutral"])
    with pytest.raises(ModelError, match="has 3 outputs; expected one.*ragqa train reranker.*leave the reranker out"):
        load_reranker(str(folder))
    with pytest.raises(ModelError, match="holds a model of kind 'nli', expected 'reranker'"):
        load_reranker("nli-minilm-l6")
    with pytest.raises(ModelError, match="cross-encoder/ms-marco-MiniLM-L6-v2' is not on this machine") as caught:
        load_reranker("cross-encoder/ms-marco-MiniLM-L6-v2")
    assert "leave the reranker out" in str(caught.value)
    with pytest.raises(ModelError, match="No model './nowhere'.*leave the reranker out"):
        load_reranker("./nowhere")


def test_a_result_that_is_no_number_ends_the_question_with_a_message():
    class Broken(FakeReranker):
        def score(self, question, texts):
            return [float("nan")] * len(texts)

    with pytest.raises(ModelError, match="expected finite scores"):
        list(piped(Broken({})).run(Question("Who?")))


def test_without_a_reranker_nothing_of_it_is_imported():
    code = (
        "import sys\n"
        "from ragqa.settings.config import Config\n"
        "from ragqa.pipeline import Models, with_reranker\n"
        "models = with_reranker(Models(None, None, None, None), Config().reranking, None)\n"
        "assert models.reranker is None\n"
        "assert not {'torch', 'transformers', 'sentence_transformers', 'openvino'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# The pipeline, records and the page -----------------------------------------------------------------------------------

INDEX = SimpleNamespace(retrievers=("bm25", "context", "dense"), analyser=Analyser())
LAST = PASSAGES[2]
ON = Config(
    reranking=RerankingConfig("some/reranker", depth=3, weight=0.8), filtering=FilteringConfig(0.5, 1.0, 10)
)  # the reranker puts first what fusion puts last
TABLE = {LAST.text: 9.0, PASSAGES[1].text: -1.0}


def piped(reranker=None, config=ON, **changes):
    pipeline = make_pipeline(config=config, **changes)
    return replace(pipeline, models=replace(pipeline.models, reranker=reranker or FakeReranker(TABLE)))


def test_it_stands_between_fusion_and_filtering():
    reranker = FakeReranker(TABLE)
    events = list(piped(reranker, generator=None).run(Question("Who must act?")))
    assert [type(event) for event in events] == [Retrieved, Fused, Reranked, Selected]
    fused, found, selection = (event.ranking for event in events[1:3]), events[2].ranking, events[3].selection
    assert names(next(fused))[-1] == LAST.passage_id == names(found)[0]
    assert [c.passage.passage_id for c in selection.kept] == [LAST.passage_id]
    assert reranker.calls == [("Who must act?", tuple(p.text for p in PASSAGES))]
    assert [type(event) for event in make_pipeline(generator=None).run(Question("Who?"))] == [
        Retrieved,
        Fused,
        Selected,
    ]


def test_models_name_the_reranker_only_where_there_is_one():
    models = piped().models
    assert models.infos["reranker"] == ModelInfo("fake-reranker", "3" * 64)
    assert "reranker" not in with_reranker(models, RerankingConfig(), INDEX).infos


def test_the_default_is_left_out_without_a_ranking_that_it_reads_and_in_another_language():
    models, fake = piped().models, FakeReranker({})
    lexical = SimpleNamespace(retrievers=("bm25", "context"), analyser=Analyser())
    assert with_reranker(models, RANKED, INDEX, lambda _: fake).reranker is fake
    assert with_reranker(models, RANKED, lexical, lambda _: fake).reranker is None
    slovenian = SimpleNamespace(retrievers=INDEX.retrievers, analyser=ANALYSERS["characters"])
    assert with_reranker(models, RANKED, slovenian, lambda _: fake).reranker is None
    assert with_reranker(models, replace(RANKED, weight=0.5), lexical, lambda _: fake).reranker is fake


def test_the_default_ranks_questions_and_not_a_text_to_check():
    assert Config.from_env({}).reranking == RANKED
    pipeline = piped(config=replace(ON, reranking=RANKED))
    assert any(isinstance(event, Reranked) for event in pipeline.run(Question("Who must act?")))
    assert not any(isinstance(event, Reranked) for event in pipeline.check("A firm must act at once."))
    chosen = piped(config=ON)
    assert any(isinstance(event, Reranked) for event in chosen.check("A firm must act at once."))


def test_another_reranker_begins_with_the_default_depth_and_weight():
    config = Config.from_env({})
    assert with_values(config, {"reranker": "some/reranker"}).reranking == RerankingConfig("some/reranker")
    assert with_values(config, {"rerank_weight": 0.5}).reranking == replace(RANKED, weight=0.5)
    assert with_values(Config(), {"reranker": RANKED.model}).reranking == RANKED
    chosen = Config(reranking=RerankingConfig("some/reranker", 20, 0.8))
    assert with_values(chosen, {"reranker": "another/one"}).reranking == replace(chosen.reranking, model="another/one")


@pytest.mark.model
def test_the_selector_reranks_without_being_loaded_again():
    models = replace(piped().models, selector=load_selector(ScoringConfig()))
    preset = next(one for one in PRESETS if one.name == "cross-encoder")
    assert with_reranker(models, preset.reranking, INDEX).reranker is models.selector
    asked, answering = "How long must records be kept?", passage("a:1", "A firm retains each record for six years.")
    first, last = ranking("fused", {"b": 0.9, "c": 0.1}).hits
    fused = Ranking("fused", (first, ScoredPassage(answering, 0.7), last))
    corpus = SimpleNamespace(text_of=lambda one: one.text)
    scores = read_again(models.selector, asked, fused, preset.reranking.depth, corpus)
    assert names(rerank(fused, scores, preset.reranking))[0] == "a:1"


def test_a_larger_selector_is_read_in_the_mean_with_the_own_one():
    rerankers = [FakeSelector(act=2.0), FakeSelector(act=1.0)]
    mean = MeanReranker(*rerankers)
    asked = ("Who must act?", ["A firm must act.", "A firm may rest."])
    scores = [one.score(*asked) for one in rerankers]
    assert mean.score(*asked) == [sum(pair) / 2 for pair in zip(*scores, strict=True)]
    assert MeanReranker(*rerankers, offset=0.5).score(*asked) == [one + 0.5 for one in mean.score(*asked)]
    assert mean.info.name == " + ".join(one.info.name for one in rerankers)
    assert mean.info.fingerprint not in {one.info.fingerprint for one in rerankers}


@pytest.mark.model
def test_the_larger_selector_is_that_of_the_settings(monkeypatch):
    monkeypatch.setenv("RAGQA_ANSWER_MODEL", "answers-minilm-l12")
    assert load_selector(scoring_from_env()).info.name == "answers-minilm-l12 + answers-minilm-l12"


def recorded(tmp_path, **changes):
    store = RecordStore(tmp_path / "records.sqlite3")
    events = list(piped(records=store, **changes).run(Question("Who must act?")))
    return events, store.load(events[-1].record_id)


def test_a_record_repeats_its_selection_with_the_scores_it_keeps(tmp_path):
    events, record = recorded(tmp_path)
    selection = next(event.selection for event in events if isinstance(event, Selected))
    assert dict(record.reranker_scores) == {PASSAGES[0].passage_id: 0.0, PASSAGES[1].passage_id: -1.0, "2:3.4": 9.0}
    assert record.reranking == ON.reranking
    again = rerank(fuse(record.ranked, record.fusion), dict(record.reranker_scores), record.reranking)
    assert select(again, record.filtering) == selection
    assert record.models["reranker"].name == "fake-reranker"
    assert record.seconds["reranking"] >= 0
    assert AnswerRecord.from_json(record.to_json()) == record
    view = from_record(record)
    assert view.selection == selection
    assert view.config.reranking == ON.reranking


def test_a_record_of_the_fourth_version_had_no_reranking(tmp_path):
    store = RecordStore(tmp_path / "records.sqlite3")
    events = list(make_pipeline(records=store).run(Question("Who must act?")))
    today = store.load(events[-1].record_id)
    old = json.loads(today.to_json())
    old["schema_version"] = 4
    del old["reranking"], old["reranker_scores"]
    assert AnswerRecord.from_json(json.dumps(old)) == today


def viewed():
    view = View(Question("Who must act?"), ON)
    for event in piped().run(view.asked):
        view = advance(view, event)
        if isinstance(event, Reranked):
            assert view.phase == "Reranked the best 3 candidates"
    return view


def test_new_settings_select_with_the_scores_there_are():
    view = viewed()
    filtering = FilteringConfig(0.0, 1.0, 10)

    def best(reranking, fusion=ON.fusion):
        return reselect(view, fusion, filtering, reranking).kept[0].passage.passage_id

    assert best(ON.reranking) == LAST.passage_id
    assert reselect(view, ON.fusion, ON.filtering, ON.reranking) == view.selection
    assert best(replace(ON.reranking, weight=0.1)) == PASSAGES[0].passage_id
    assert best(replace(ON.reranking, depth=2)) == PASSAGES[0].passage_id
    assert best(RerankingConfig()) == best(replace(ON.reranking, model="another/one")) == PASSAGES[0].passage_id
    assert best(ON.reranking, FusionConfig.of(bm25=1)) == LAST.passage_id


def test_what_the_reranker_has_not_read_is_counted():
    view = viewed()
    assert unread(view, ON.fusion, ON.reranking) == 0
    assert unread(view, ON.fusion, RerankingConfig()) == 0
    assert unread(view, ON.fusion, replace(ON.reranking, model="another/one")) == 3
    partly = replace(view, reranker_scores={LAST.passage_id: 9.0})
    assert unread(partly, ON.fusion, ON.reranking) == 2


def test_a_rule_put_first_by_its_number_leaves_nothing_unread():
    view = viewed()
    best = fuse(view.rankings, ON.fusion).hits[0].passage.passage_id
    led = select(led_by(fuse(view.rankings, ON.fusion), [LAST]), ON.filtering)
    view = replace(view, selection=led, reranker_scores={LAST.passage_id: 9.0, best: 1.0})
    assert unread(view, ON.fusion, replace(ON.reranking, depth=2)) == 0


def test_the_page_shows_each_rank_before_and_after():
    html = passage_table_html(viewed().selection, 9)
    text = Tags(html).text
    assert "fused" in text.split("reranker")[0]
    first = Tags(html.split("<tbody>")[1].split("<tr ")[1]).text
    assert first.startswith('class="rq-kept">1was 3') or "1was 3" in first
    assert "#3 · 0.00" in first  # in the list of each retriever and of fusion
    assert "9.000#1 · 1.00" in first
    assert "was" not in Tags(passage_table_html(select(FUSED, FilteringConfig()), 9)).text
    unmoved = rerank(FUSED, {FUSED.hits[0].passage.passage_id: 9.0}, RerankingConfig("some/reranker", 1, 0.8))
    assert unmoved.hits[0].reranking
    assert "was" not in Tags(passage_table_html(select(unmoved, FilteringConfig()), 9)).text


def test_hostile_names_and_texts_stay_text():
    hits = tuple(ScoredPassage(passage(f"<b>{n}", "<script>alert(1)</script>"), 1.0 / (n + 1)) for n in range(2))
    found = rerank(Ranking("fused", hits), {"<b>0": 1.0}, RerankingConfig("<i>", 2))
    assert "alert(1)" in assert_harmless(passage_table_html(select(found, FilteringConfig()), 9)).text


def test_the_terminal_shows_both_scores_with_their_ranks():
    console = Console(width=200, file=io.StringIO())
    console.print(passage_table(viewed().selection))
    text = console.file.getvalue()
    assert "reranker" in text
    assert "9.000 #1" in text
    assert "0.000 #3" in text
    plain = Console(width=200, file=io.StringIO())
    plain.print(passage_table(select(FUSED, FilteringConfig())))
    assert "reranker" not in plain.file.getvalue()


@pytest.mark.model
def test_logits_are_read_as_plain_numbers(tmp_path, monkeypatch):
    lengths = lambda self, pairs: np.array([[len(text)] for _, text in pairs], np.float32)  # noqa: E731
    monkeypatch.setattr(SequenceClassifier, "logits", lengths)
    reranker = load_reranker(str(write_classifier(tmp_path, ["LABEL_0"])), "fp32")
    assert reranker.score("q", ["abc", "a", "abc"]) == [3.0, 1.0, 3.0]

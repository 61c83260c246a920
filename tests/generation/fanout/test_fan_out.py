"""The fan-out without a language model: events, answer, record, replay, page; everything escaped."""

import json
import re
import time
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from ragqa.fusion import fuse
from ragqa.generation.answers import Quote, quoted
from ragqa.generation.fanout.generator import NOTHING_TO_TAKE_APART, FanOutGenerator
from ragqa.generation.fanout.merging import reselected, with_passages
from ragqa.records.record import SCHEMA_VERSION, AnswerRecord
from ragqa.records.store import RecordStore
from ragqa.records.trace_words import trace_words
from ragqa.records.view import View, advance, from_record, reselect
from ragqa.settings.config import Config, FilteringConfig, GenerationConfig
from ragqa.types import Drop, Question, SubQuestion
from ragqa.types.events.generation import EvidenceFound, SubQuestionAnswered, SubQuestionsAsked, Token, TraceEvent
from ragqa.types.events.pipeline import Answered, Recorded, Selected
from ragqa.ui.html.trace import has_tree, tree_html
from tests.support.fakes import passage
from tests.support.fan_out_world import BRIDGE, COMPARISON, CORPUS, EBEN, HOLM, LIGHT, TARN, WHOLE, WordRetriever, parts
from tests.support.helpers import FakeManifest, make_pipeline
from tests.support.hostile import hostile_texts
from tests.support.streams import drain
from tests.ui.test_app import app as app
from tests.ui.test_app import ask, html, tab, words

ALBUMS = passage("albums:1", "An album is studied by many.", title="Albums")


@pytest.fixture
def store(tmp_path):
    return RecordStore(tmp_path / "records.sqlite3")


def run(question, **settings):
    events = list(make_pipeline(**parts(**settings)).run(Question(question)))
    return Events(events)


class Events(list):
    def of(self, kind):
        return [event for event in self if isinstance(event, kind)]

    def one(self, kind):
        (event,) = self.of(kind)
        return event


def test_a_comparison_is_answered_name_by_name_from_the_union_of_the_evidence():
    events = run(COMPARISON)
    asked = events.one(SubQuestionsAsked)
    assert (asked.by, asked.note) == ("rules", "")
    assert [(one.number, one.parent, one.name) for one in asked.sub_questions] == [
        (1, 0, "Mount Eben"), (2, 0, "Tarn Peak"),
    ]  # fmt: skip
    found = events.of(EvidenceFound)
    assert [(one.number, one.kept[0]) for one in found] == [(1, "eben:1"), (2, "tarn:1")]
    selection = events.one(Selected).selection
    assert {c.passage for c in selection.kept} >= {EBEN, TARN}
    assert "found by sub-question 1 (rank 1 there)" in {c.passage: c.explanation for c in selection.kept}[EBEN]
    answers = events.of(SubQuestionAnswered)
    assert [(one.number, one.cited[0]) for one in answers] == [(1, "eben:1"), (2, "tarn:1")]
    answer = events.one(Answered).answer
    assert answer.text.index("Mount Eben was climbed in 1901.") < answer.text.index("Tarn Peak was climbed in 1888.")
    for sentence in answer.sentences:
        (number,) = sentence.citations
        assert sentence.text in selection.passages[number - 1].text
        assert answer.text[sentence.start : sentence.end] == sentence.text
    assert "nothing is compared or concluded" in answer.note
    assert "".join(event.text for event in events.of(Token)) == answer.raw


def test_a_sub_question_without_anything_to_quote_is_named_and_not_counted():
    class OnlyEben:
        name, model = "only Eben", ""

        def stream(self, question, passages):
            yield from ()
            return quoted([Quote("Mount Eben was climbed in 1901.", (1,))] * ("Eben" in question.text), "", "nothing")

    def search(text):
        return fuse([WordRetriever().retrieve(text, 10)], Config().fusion)

    filtering = FilteringConfig(0.0, 1.0)
    generator = FanOutGenerator(OnlyEben(), GenerationConfig(), filtering)
    _, (answer, _) = drain(generator.stream_searching(Question(COMPARISON), search(COMPARISON), search))
    assert answer.note.startswith("Quoted for 1 sub-question, in their order;")
    assert "Nothing to quote for: Tarn Peak" in answer.note


def test_the_order_of_events_is_sub_questions_evidence_selected_answers_answer():
    kinds = [type(e) for e in run(COMPARISON) if isinstance(e, TraceEvent | Selected | Answered | Recorded)]
    assert kinds == [
        SubQuestionsAsked, EvidenceFound, EvidenceFound, Selected, SubQuestionAnswered, SubQuestionAnswered, Answered,
        Recorded,
    ]  # fmt: skip


def test_a_name_in_the_best_passage_is_followed_to_its_own():
    retriever = WordRetriever()
    events = run(BRIDGE, retriever=retriever)
    (bridge,) = events.one(SubQuestionsAsked).sub_questions
    assert (bridge.text, bridge.name, bridge.is_bridge) == ("Ida Holm: who studied?", "Ida Holm", True)
    # Aarhus, named in the second best passage, has no passage of its own.
    assert retriever.calls == [BRIDGE, bridge.text, "Aarhus: Northern Light is an album by the singer?"]
    assert {LIGHT, HOLM} <= set(events.one(Selected).selection.passages)
    whole, followed = events.of(SubQuestionAnswered)
    assert (whole.number, followed.number) == (0, 1)
    assert "Ida Holm studied law at Aarhus." in events.one(Answered).answer.text


def test_a_question_with_nothing_to_take_apart_is_answered_as_a_whole():
    events = run(WHOLE)
    assert events.one(SubQuestionsAsked).sub_questions == ()
    assert events.one(SubQuestionsAsked).note == NOTHING_TO_TAKE_APART
    answer = events.one(Answered).answer
    assert answer.text == "Bakeries open early in the town."
    assert answer.note == NOTHING_TO_TAKE_APART


def test_a_question_that_finds_nothing_has_an_empty_answer():
    answer = run("Zyx?").one(Answered).answer
    assert (answer.finish_reason, answer.sentences) == ("empty", ())
    assert "No passage was kept" in answer.note


def test_the_limit_of_sub_questions_holds():
    config = Config(generation=GenerationConfig(generator="fan-out", max_sub_questions=1))
    events = run(COMPARISON, config=config)
    assert len(events.of(EvidenceFound)) == 1
    assert "1 further sub-question was left out: the most is 1." in events.one(Answered).answer.note


def test_a_sentence_of_two_sub_questions_comes_once_with_both_citations():
    twin = passage("eben:2", "Mount Eben was climbed in 1901.", title="Mount Eben")
    events = run("Is Mount Eben or Mount Eben Hut older?", retriever=WordRetriever((EBEN, twin)))
    texts = [sentence.text for sentence in events.one(Answered).answer.sentences]
    assert len(texts) == len(set(texts))


def test_the_time_of_its_searches_is_not_that_of_the_filter(store):
    class Slow(WordRetriever):
        def retrieve(self, question, top_k):
            time.sleep(0.05)
            return super().retrieve(question, top_k)

    events = run(COMPARISON, retriever=Slow(), records=store)
    seconds = store.load(events.one(Recorded).record_id).seconds
    assert seconds["sub-questions"] >= 0.1 > seconds["filtering"]


def test_repass_scores_the_answer_against_the_union(store):
    events = run(COMPARISON, records=store)
    record = store.load(events.one(Recorded).record_id)
    assert record.status == "scored"
    assert record.kept == events.one(Selected).selection.passages
    assert {premise.passage_id for premise in record.scored.paper.premises} >= {"eben:1", "tarn:1"}


# Record -------------------------------------------------------------------------------------------------------------


def test_the_tree_is_in_the_record_reads_back_equal_and_gives_the_selection_again(store):
    events = run(BRIDGE, records=store)
    record = store.load(events.one(Recorded).record_id)
    assert AnswerRecord.from_json(record.to_json()) == record
    assert record.schema_version == SCHEMA_VERSION
    assert [event.kind for event in record.trace] == [
        "sub-questions asked", "evidence found", "sub-question answered", "sub-question answered",
    ]  # fmt: skip
    assert not [event for event in record.trace if isinstance(event, EvidenceFound) and event.passages]  # once for all
    assert HOLM in record.passages
    trace = with_passages(record.trace, {one.passage_id: one for one in record.passages})
    again = reselected(fuse(record.ranked, record.fusion), trace, record.filtering)
    assert again == events.one(Selected).selection
    assert tuple(c.passage.passage_id for c in again.kept) == tuple(p.passage_id for p in record.kept)


def test_a_record_of_version_5_reads_as_one_without_sub_questions(store):
    record = store.load(run(WHOLE, records=store).one(Recorded).record_id)
    old = json.loads(record.to_json()) | {"schema_version": 5, "trace": []}
    for name in ("max_sub_questions", "depth"):
        del old["generation"][name]
    old["generation"]["generator"] = "extractive"
    read = AnswerRecord.from_json(json.dumps(old))
    assert (read.schema_version, read.trace) == (SCHEMA_VERSION, ())
    assert not has_tree(from_record(read).trace)


def test_the_view_of_the_record_is_the_view_of_the_run(store):
    events = run(COMPARISON, records=store)
    view = View(Question(COMPARISON), parts()["config"])
    for event in events:
        view = advance(view, event)
    replayed = from_record(store.load(events.one(Recorded).record_id))
    assert replayed.trace == view.trace
    assert replayed.selection == view.selection
    assert tree_html(replayed.trace, replayed.selection.passages) == tree_html(view.trace, view.selection.passages)


def test_the_filters_sliders_move_the_union(store):
    view = from_record(store.load(run(COMPARISON, records=store).one(Recorded).record_id))
    one = reselect(view, view.config.fusion, FilteringConfig(top_k=1))
    assert len(one.kept) <= 3  # one of the question, one of each sub-question
    assert {EBEN, TARN} <= set(one.passages)


# Page ---------------------------------------------------------------------------------------------------------------


def test_every_step_has_words():
    lines = [trace_words(event) for event in run(COMPARISON) if isinstance(event, TraceEvent)]
    assert lines[0].startswith("Sub-question 1: Mount Eben: which mountain was climbed first? (one of Mount Eben and")
    assert lines[1].startswith("Sub-question 1: found")
    assert lines[-1].startswith("Sub-question 2: answered from")


def test_the_tree_shows_each_sub_question_its_evidence_and_answer():
    events = run(COMPARISON)
    trace = [event for event in events if isinstance(event, TraceEvent)]
    shown = tree_html(trace, events.one(Selected).selection.passages)
    for part in ("sub-question 1: answered", "sub-question 2: answered", "Mount Eben: which mountain", "rank 1, score",
                 "one of Mount Eben and Tarn Peak", "Tarn Peak was climbed in 1888.", "cited", "[1] "):  # fmt: skip
        assert part in shown, part


def test_the_tree_grows_while_the_work_goes_on():
    trace = [event for event in run(COMPARISON) if isinstance(event, TraceEvent)]
    states = [tree_html(trace[:n]) for n in range(1, len(trace) + 1)]
    assert states[0].count("searching") == 2
    assert states[1].count("searching") == 1
    assert re.search(r"\d passages?</span>", states[2])
    assert len(set(states)) == len(states)


def test_children_stand_under_their_parent():
    asked = SubQuestionsAsked((SubQuestion(1, "First?"), SubQuestion(2, "Second?")), "model")
    below = SubQuestionsAsked((SubQuestion(3, "Of the first?", parent=1),), "model")
    shown = tree_html([asked, below])
    assert shown.index("First?") < shown.index("Of the first?") < shown.index("Second?")
    assert shown.count('role="list"') == 2


def test_text_of_others_never_becomes_markup():
    for text in hostile_texts():
        evil = passage("x", text, title=text)
        trace = [
            SubQuestionsAsked((SubQuestion(1, text, 0, text, text),), "model", text),
            EvidenceFound(1, (("x", 1.0),), ("x",), 0, (evil,)),
            SubQuestionAnswered(1, text, ("x",), text),
        ]
        shown = tree_html(trace, [evil])
        for tag in ("<script", "<img", "<svg", "<iframe", "<a ", 'onerror="'):
            assert tag not in shown.lower()


@pytest.mark.long
def test_the_page_shows_tree_evidence_answer_and_scores(app):
    at = app(**{name: value for name, value in parts().items() if name not in {"config", "records", "index"}})
    at.radio(key="set_generator").set_value("fan-out").run()
    assert {slider.key for slider in at.slider} >= {"set_max_sub_questions"}
    assert "set_depth" not in {slider.key for slider in at.slider}
    text = words(ask(at, COMPARISON)) + tab(at, "steps")
    for part in ("Sub-questions", "sub-question 1: answered", "Tarn Peak was climbed in 1888.", "RePASs",
                 "Written by fan-out, no language model", "found by sub-question 2"):  # fmt: skip
        assert part in text, part
    assert html(at).count('class="rq-rows rq-tree"') == 1


def test_the_passages_of_a_fan_out_are_listed_whatever_became_of_them():
    from ragqa.ui.html.curve import curve_html
    from ragqa.ui.html.passages import passage_table_html

    config = Config(generation=GenerationConfig(generator="fan-out"), filtering=FilteringConfig(top_k=1))
    selection = run(BRIDGE, config=config, retriever=WordRetriever((*CORPUS, ALBUMS))).one(Selected).selection
    assert {c.drop for c in selection.dropped} == {Drop.NOT_EVIDENCE}
    shown = passage_table_html(selection, 30)
    for part in ("not evidence", "no evidence to the question or a sub-question", "sub-question", "alone 1", "merged"):
        assert part in shown, part
    assert "threshold" not in curve_html(selection, 30)  # each question has its own


def test_the_command_line_prints_the_tree(monkeypatch, store):
    from typer.testing import CliRunner

    import ragqa.pipeline
    from ragqa.cli import app as cli

    index = SimpleNamespace(manifest=Manifest(), documents_named=lambda _: {})
    whole = make_pipeline(**(parts() | {"index": index}))
    monkeypatch.setattr(ragqa.pipeline, "load_pipeline", lambda *_: whole)
    result = CliRunner().invoke(cli, ["ask", COMPARISON, "--generator", "fan-out"])
    assert result.exit_code == 0, result.output
    for part in (
        "Sub-question 1: Mount Eben: which mountain",
        "Sub-question 2: found",
        "Tarn Peak was climbed in 1888.",
    ):
        assert part in " ".join(result.output.split()), part


@dataclass(frozen=True)
class Manifest(FakeManifest):
    has_vectors: bool = True

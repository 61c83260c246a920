"""The page by Streamlit's own tester: every state has its words, nothing shown ever disappears, no exception."""

import json
import re
import threading
from dataclasses import replace
from html import unescape
from unittest.mock import Mock
from urllib.parse import parse_qsl, urlsplit

import pytest
from docx import Document
from streamlit.testing.v1 import AppTest

import ragqa.ui.state.resources as resources
from ragqa.errors import BusyError, GenerationError, ModelError, RecordError, ScoringError
from ragqa.plugins import registry
from ragqa.records.store import RecordStore
from ragqa.settings.config import Config
from ragqa.settings.preset_files import presets_in
from ragqa.types import Passage, Question, Ranking, ScoredPassage
from ragqa.types.events.scoring import Scored
from ragqa.types.scores import Verdict
from ragqa.ui.state.address import address_of, link_of
from ragqa.ui.state.links import link_of_view
from ragqa.ui.state.run import Runs
from tests.support.fakes import FakeGenerator, FakeReranker, FakeRetriever, answer
from tests.support.helpers import ANSWER, PASSAGES, FakeManifest, make_pipeline
from tests.support.server import ROOT
from tests.support.verdict_cases import ALL_VERDICTS, SOURCES, HandJudged, before_rules

pytestmark = pytest.mark.long

GENERATORS = registry.parts(registry.GENERATORS)
WITHOUT_A_MODEL = [part.label for part in GENERATORS if registry.LANGUAGE_MODEL not in part.needs]


@pytest.fixture
def app(monkeypatch, tmp_path):
    """Starts the page over a fake pipeline; ``changes`` replace its parts. Gives back the tester."""
    store = RecordStore(tmp_path / "records.sqlite3")
    monkeypatch.setattr(resources, "record_store", lambda path: store)
    monkeypatch.setattr(resources, "warm_up", lambda config, paths: None)

    def start(**changes):
        def load(config, paths):
            silent = {"generator": None} if config.generation.generator == "none" else {}
            return make_pipeline(config=config, records=store, **(changes | silent))

        monkeypatch.setattr(resources, "pipeline", load)
        return AppTest.from_file(str(ROOT / "app.py"), default_timeout=30).run()

    start.store = store
    return start


def html(at):
    panes = [json.loads(element.proto.json) for element in at.get("bidi_component")]
    shown = [part for one in panes for part in (*one["cards"].values(), *map(str, one.values()))]
    return " ".join([element.proto.body for element in at.get("html") if hasattr(element.proto, "body")] + shown)


def tab(at, name):
    """The words of this tab's page; which tab is open stays."""
    at.session_state["tab"] = name
    at.run()
    assert not at.exception
    return words(at)


def words(at):
    elements = [*at.markdown, *at.caption, *at.subheader, *at.title]
    return unescape(html(at)) + " ".join(element.value for element in elements)


def ask(at, question="Who must act?"):
    at.text_area(key="question").set_value(question)
    next(button for button in at.button if button.label == "Ask").click().run()
    run = at.session_state.get("run", None)
    if run:
        run.wait(20)
        at.run()
    assert not at.exception
    return at


def test_the_first_screen_offers_examples_and_says_there_is_no_language_model(app):
    at = app()
    assert not at.exception
    assert "each sentence beside the words that prove it" in words(at)
    assert len([button for button in at.button if button.key and button.key.startswith("example_")]) == 3
    assert "No language model is configured" in words(at)
    assert words(at).count("`make local`") == 1  # in the drawer: who asks may not run the server
    assert [radio.options for radio in at.radio if radio.label == "Generator"] == [WITHOUT_A_MODEL]


def test_a_question_ends_with_answer_scores_and_record(app):
    at = ask(app())
    for name, part in (
        ("passages", "Kept 2 of 3."),
        ("passages", "paper mode:"),
        ("scores", "(E − C + OC + 1) / 3"),
        ("obligations", "covers 1 of 2 obligations"),
        ("pairs", "pairs compared"),
        ("steps", "Written in one step"),
        ("record", "Record (JSON)"),
    ):
        assert part in tab(at, name), part
    assert len(app.store.list()) == 1


def test_what_is_said_of_a_verdict_is_kept_with_the_record(app):
    at = ask(app())
    tab(at, "scores")
    at.radio(key="feedback_is_0").set_value(Verdict.CONTRADICTED)
    at.text_input(key="feedback_why_0").set_value("It says otherwise.")
    next(button for button in at.button if button.label == "Keep").click().run()
    assert not at.exception
    (said,) = app.store.load(app.store.list()[0].record_id).feedback
    assert (said.index, said.verdict, said.why) == (0, Verdict.CONTRADICTED, "It says otherwise.")


def test_passages_only_ends_with_the_passages_and_keeps_nothing(app):
    at = app()
    at.radio(key="set_generator").set_value("none").run()
    text = words(ask(at))
    assert "Kept 2 of 3." in text
    assert "Only passages were asked for" in text
    assert "paper mode:" not in text
    assert "Stop" not in [button.label for button in at.button]
    assert app.store.list() == ()
    at.slider(key="set_top_k").set_value(1)
    at.slider(key="set_threshold").set_value(0.0).run()
    assert "Kept 1 of 3." in words(at)


def test_a_ranker_whose_ranking_the_corpus_lacks_says_what_adds_it(app):
    at = app()
    at.selectbox(key="set_reranker").set_value("ranker-adgm-large").run()
    (said,) = (one.value.replace("\\", "") for one in at.warning)
    assert "dense:all-MiniLM-L6-v2+encoder-adgm, which this corpus lacks: choose another." in said
    assert "--source PATH --also dense:all-MiniLM-L6-v2+encoder-adgm" in said
    at.selectbox(key="set_reranker").set_value("").run()
    assert not at.warning


def test_a_reranker_is_chosen_in_the_panel_and_its_ranks_are_shown(app, monkeypatch):
    monkeypatch.setenv("RAGQA_PAGE_MODELS", "some/model,another/model")
    reranker = FakeReranker({PASSAGES[2].text: 9.0})
    pipeline = make_pipeline()
    at = app(models=replace(pipeline.models, reranker=reranker))
    assert at.selectbox(key="set_reranker").value == "ranker-regulation"
    assert at.slider(key="set_rerank_weight").value == 1.0
    at.selectbox(key="set_reranker").set_value("").run()
    assert "set_rerank_depth" not in [slider.key for slider in at.slider]
    at.selectbox(key="set_reranker").set_value("ranker-regulation").run()
    assert at.slider(key="set_rerank_weight").value == 1.0
    at.selectbox(key="set_reranker").set_value("some/model").run()
    at.slider(key="set_rerank_depth").set_value(20).run()
    assert at.slider(key="set_rerank_weight").value == 0.3
    at.slider(key="set_rerank_weight").set_value(1.0).run()
    text = words(ask(at))
    config = at.session_state["run"].view.config.reranking
    assert (config.model, config.depth, config.weight) == ("some/model", 20, 1.0)
    assert "was 3" in text
    assert "has not read" not in text
    at.slider(key="set_rerank_weight").set_value(0.0).run()
    assert "Passages kept for this answer" in words(at)
    at.selectbox(key="set_reranker").set_value("another/model").run()
    assert "Not yet read by the reranker: 3 of" in words(at)
    at.selectbox(key="set_reranker").set_value("").run()
    assert "has not read" not in words(at)
    assert not at.exception


def test_an_example_fills_the_box_and_asks(app):
    at = app()
    button = next(button for button in at.button if button.key and button.key.startswith("example_"))
    question = button.label
    button.click().run()
    assert at.text_area(key="question").value == question
    assert at.session_state["run"].wait(20).question == question


def test_moving_the_threshold_marks_the_answer_as_older_and_keeps_it(app):
    at = ask(app())
    before = at.session_state["run"].view
    at.slider(key="set_threshold").set_value(0.0)
    at.slider(key="set_max_drop").set_value(1.0).run()
    assert not at.exception
    assert "Passages kept for this answer" in words(at)
    assert "A firm must act at once." in words(at)
    assert at.session_state["run"].view is before


def test_a_preset_moves_the_sliders_and_is_explained(app):
    at = app()
    at.selectbox(key="preset").select("no filter, k = 10").run()
    assert at.slider(key="set_threshold").value == 0.0
    assert "ten best passages whatever" in words(at)
    at.slider(key="set_threshold").set_value(0.5).run()
    assert "Changed since “no filter, k = 10”Threshold 0.00 → 0.50" in re.sub("<[^>]*>", "", words(at))
    at.button(key="reset_preset").click().run()
    assert at.slider(key="set_threshold").value == 0.0
    assert "Changed since" not in words(at)


def test_settings_are_kept_as_a_preset_by_name_and_what_is_wrong_is_told(app, monkeypatch, tmp_path):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    at = app()
    at.slider(key="set_threshold").set_value(0.33).run()
    save = next(button for button in at.button if button.label == "Save")
    at.text_input(key="preset_name").set_value("BM25 only")
    save.click().run()
    assert "belongs to a bundled preset" in words(at)
    at.text_input(key="preset_name").set_value("Mine")
    next(button for button in at.button if button.label == "Save").click().run()
    assert not at.exception
    assert "Saved as “Mine”" in words(at)
    assert at.selectbox(key="preset").value == "Mine"
    assert "Changed since" not in words(at)
    assert [preset.filtering.threshold for preset in presets_in(tmp_path / "presets")[0]] == [0.33]


def test_beside_the_sliders_stands_which_limit_ends_the_list(app):
    at = ask(app())
    assert "**Ends the list here:" in words(at)
    at.slider(key="set_top_k").set_value(1)
    at.slider(key="set_max_drop").set_value(1.0)
    at.slider(key="set_threshold").set_value(0.0).run()
    assert "List ends at rank 1, by top-k" in words(at)
    assert "Off." in words(at)


def test_a_slider_of_the_filter_draws_only_what_follows_it(app, monkeypatch):
    at = ask(app())
    drawn = []
    monkeypatch.setattr(resources, "warm_up", lambda config, paths: drawn.append(config))  # ends the page
    at.slider(key="set_top_k").set_value(1).run()
    assert not at.exception
    assert "Changed since" in words(at)
    assert drawn == []
    at.button(key="reset_preset").click().run()
    assert [config.filtering.top_k for config in drawn] == [10]
    assert at.slider(key="set_top_k").value == 10
    assert "Changed since" not in words(at)


def test_another_corpus_or_generator_labels_the_answer(app):
    at = ask(app())
    at.radio(key="set_generator").set_value("extractive").run()
    assert "other generator" in words(at)
    assert (
        "Generator of this answer: direct, no language model. Generator chosen now: extractive, no language model."
        in words(at)
    )
    at.selectbox(key="corpus").select("encyclopedia").run()
    assert not at.exception
    assert "other corpus" in words(at)
    assert "A firm must act at once." in words(at)


def test_switching_the_mode_needs_no_second_run(app):
    at = ask(app())
    run = at.session_state["run"]
    at.radio(key="set_mode").set_value("script").run()
    assert "script mode:" in words(at)
    assert at.session_state["run"] is run


def test_a_generator_that_fails_leaves_the_passages_and_what_it_wrote(app):
    broken = FakeGenerator(ANSWER, GenerationError("no server at localhost:1; start it"), error_after=4)
    text = words(ask(app(generator=broken)))
    assert "no server at localhost:1; start it" in text
    assert "Kept 2 of 3." in text
    assert "A firm must act" in text


def test_a_scorer_that_fails_leaves_the_answer(app):
    class Broken:
        def stream(self, answer, passages):
            raise ScoringError("the NLI model broke; the answer is kept")
            yield

    text = words(ask(app(scorer=Broken())))
    assert "the NLI model broke" in text
    assert "The moon is green." in text


def test_a_model_that_is_missing_is_named(app, monkeypatch):
    at = app()

    def load(config, paths):
        raise ModelError("no model 'x'; use the embedded one")

    monkeypatch.setattr(resources, "pipeline", load)
    assert "no model 'x'; use the embedded one" in words(ask(at))


def test_a_bug_shows_a_reference_and_no_trace(app, monkeypatch):
    at = app()
    monkeypatch.setattr(resources, "pipeline", lambda config, paths: 1 / 0)
    text = words(ask(at))
    assert "Something failed inside ragqa" in text
    assert "ZeroDivisionError" not in text


def test_nothing_found_has_its_own_words(app):
    empty = (FakeRetriever(Ranking("bm25", ())), FakeRetriever(Ranking("dense", ())))
    none = FakeGenerator(answer("", finish_reason="empty", note="No passage was kept."))
    text = words(ask(app(retrievers=empty, generator=none)))
    assert "No passage shares a word or a meaning" in text
    assert "No sentence to score" in text


def test_an_answer_without_obligations_says_what_coverage_means(app):
    first = make_pipeline().retrievers[0].result.hits[2]
    only = (FakeRetriever(Ranking("bm25", (first,))), FakeRetriever(Ranking("dense", ())))
    assert "hold no obligation" in tab(ask(app(retrievers=only)), "obligations")


def test_the_finished_page_explains_its_numbers(app):
    at = ask(app())
    text = tab(at, "scores") + tab(at, "obligations")
    for part in (
        "Copied: 60%",  # 6 of the answer's 10 words: its whole first sentence stands in the first passage
        ".947 to .973",
        "mean of 2 maxima",
        "Both definitions",
        "With the best passage alone",
        "fake-nli (fp32, weights 111111111111)",
        "Best near miss",
    ):
        assert part in text, part


def test_a_long_answer_can_be_cut_down_to_its_problems(app):
    rules = [f"A firm must keep book {number}." for number in range(8)]
    hit = ScoredPassage(Passage("1:1", "1", " ".join(rules)), 1.0)
    only = (FakeRetriever(Ranking("bm25", (hit,))), FakeRetriever(Ranking("dense", ())))
    wrote = answer("\n".join([*rules[:6], "The moon is green."]), [(1,)] * 7)
    at = ask(app(retrievers=only, generator=FakeGenerator(wrote)))
    text = tab(at, "scores")
    assert "7. The moon is green." in text
    assert "1. A firm must keep book 0." in text
    at.toggle(key="only_problems").set_value(True).run()
    assert not at.exception
    assert "7. The moon is green." in words(at)
    assert "1. A firm must keep book 0." not in words(at)
    assert "A firm must keep book 7." in tab(at, "obligations")


def test_a_long_answer_without_problems_says_so(app):
    rules = [f"A firm must keep book {number}." for number in range(8)]
    hit = ScoredPassage(Passage("1:1", "1", " ".join(rules)), 1.0)
    only = (FakeRetriever(Ranking("bm25", (hit,))), FakeRetriever(Ranking("dense", ())))
    at = ask(app(retrievers=only, generator=FakeGenerator(answer("\n".join(rules), [(1,)] * 8))))
    tab(at, "scores")
    at.toggle(key="only_problems").set_value(True).run()
    assert "Every sentence is supported by what it cites." in words(at)
    tab(at, "obligations")
    at.toggle(key="only_problems").set_value(True).run()
    assert "Every obligation is covered." in words(at)


def test_a_record_from_before_the_coverage_matrix_is_still_drawn(app):
    last = list(make_pipeline(records=app.store, config=Config()).run(Question("Who must act?")))[-1]
    record = app.store.load(last.record_id)
    old = [replace(e, looked_at=(), coverage_matrix=()) for e in (record.scored.paper, record.scored.script)]
    app.store.save(replace(record, scored=Scored(*old)))
    text = records_page(last.record_id, "obligations")
    assert "paper mode:" in text
    assert "Best near miss" in text
    assert "Next best" not in text


def test_verdicts_are_shown_and_the_raw_ones_at_the_flick_of_a_switch_that_is_kept(app):
    hits = [ScoredPassage(source, 9.0 - number / 10) for number, source in enumerate(SOURCES)]
    found = tuple(FakeRetriever(Ranking(name, tuple(hits))) for name in ("bm25", "dense"))
    at = app(retrievers=found, generator=FakeGenerator(ALL_VERDICTS), scorer=HandJudged())
    at.slider(key="set_threshold").set_value(0.0)
    at.slider(key="set_max_drop").set_value(1.0).run()
    ask(at)
    text = tab(at, "scores") + tab(at, "pairs")
    for part in (
        "<b>contradicted</b>: Harbour 4.1 says two hours, the answer six.",
        "Sources disagree on sentence 2",
        "C 0.550, 0.180 from source sentences",
        "covers 1 of 3 obligations",
        "Hatched: a probability",
    ):
        assert part in text, part
    assert "Raw verdicts: this record has" not in text
    at.toggle(key="raw_verdicts").set_value(True).run()
    assert not at.exception
    raw = words(at)
    assert "raw verdicts" in raw
    assert "2 sentences contradicted and supported" in raw
    for part in ("Sources disagree on", "says two hours, the answer six.", "in part"):
        assert part not in raw, part
    assert "raw verdicts" in words(ask(at, "And who else?"))


def test_a_record_from_before_there_were_rules_says_that_its_verdicts_are_raw(app):
    last = list(make_pipeline(records=app.store, config=Config()).run(Question("Who must act?")))[-1]
    record = app.store.load(last.record_id)
    old = Scored(before_rules(record.scored.paper), before_rules(record.scored.script))
    app.store.save(replace(record, scored=old))
    text = records_page(last.record_id)
    assert "Raw verdicts: this record has" in text
    assert "raw verdicts" in text


@pytest.mark.parametrize(("question", "message"), [("  ", "question is empty"), ("x" * 100_000, "at most 8,000")])
def test_a_question_that_cannot_be_asked_keeps_the_answer_before(app, question, message):
    at = ask(app())
    at.text_area(key="question").set_value(question)
    next(button for button in at.button if button.label == "Ask").click().run()
    assert not at.exception
    assert message in words(at)
    assert "A firm must act at once." in words(at)


def test_no_index_names_the_command_that_builds_one(app, monkeypatch, tmp_path):
    monkeypatch.setenv("RAGQA_INDEXES", str(tmp_path))
    assert "make indexes" in words(app())


def test_a_run_is_found_again_by_its_address_while_it_goes_on_and_afterwards(app):
    go_on = threading.Event()

    class Waiting(FakeGenerator):
        def stream(self, question, passages):
            go_on.wait(20)
            return (yield from super().stream(question, passages))

    at = app(generator=Waiting(ANSWER))
    at.text_area(key="question").set_value("Who must act?")
    next(button for button in at.button if button.label == "Ask").click().run()
    run = at.session_state["run"]
    assert at.query_params["run"] == run.id
    again = opened(run=run.id)
    assert again.session_state["run"] is run
    assert again.text_area(key="question").value == "Who must act?"
    assert "Stop" in [button.label for button in again.button]
    go_on.set()
    run.wait(20)
    for visit in (at, again, opened(run=run.id)):
        assert "A firm must act at once." in words(visit.run())
    assert len(app.store.list()) == 1


def test_a_run_of_another_process_is_shown_as_far_as_it_is_kept(app, monkeypatch):
    at = ask(app())
    run = at.session_state["run"]
    record = app.store.load(run.wait(20).record_id)
    elsewhere = Runs()
    monkeypatch.setattr(resources, "runs", lambda: elsewhere)
    fresh = opened(run=run.id)
    assert fresh.session_state["run"] is not run
    assert fresh.text_area(key="question").value == "Who must act?"
    assert "A firm must act at once." in words(fresh)
    assert "Another process" not in words(fresh)
    app.store.save(replace(record, status="answered", scored=None))
    fresh = opened(run=run.id)
    assert "A firm must act at once." in words(fresh)
    assert "Another process of this server was at this run" in words(fresh)
    app.store.begin("waits")
    assert "has stored no answer yet" in words(opened(run="waits"))
    monkeypatch.setattr(resources, "record_store", lambda path: RecordStore(app.store.place / "below a file"))
    assert "cannot use the record file" in words(opened(run=run.id))


def test_an_id_of_no_run_shows_nothing_and_says_so(app):
    at = ask(app())
    for guess in ("x", "A" * 500, "<script>alert(1)</script>"):
        at.query_params["run"] = guess
        assert "names a run that this server does not have" in words(at.run())
        assert "A firm must act at once." not in words(at)
        assert "run" not in at.session_state


def test_back_to_the_address_before_a_run_shows_the_first_screen(app):
    at = ask(app())
    run = at.session_state["run"]
    at.query_params.clear()
    assert "A firm must act at once." not in words(at.run())
    at.query_params["run"] = run.id
    assert "A firm must act at once." in words(at.run())


def test_a_text_is_checked_without_a_generator(app):
    app(generator=None)
    at = opened(page="check")
    examples = [button for button in at.button if (button.key or "").startswith("checked_")]
    assert [one.key.split("_")[1] for one in examples] == ["supported", "contradicted", "unsupported"]
    assert all(one.label.startswith("“") for one in examples)  # the verdict is not given away
    at.text_area(key="text").set_value("A firm must act at once [1]. The moon is green.")
    next(button for button in at.button if button.label == "Check").click().run()
    at.session_state["checked"].wait(20)
    text = words(at.run())
    assert at.selectbox(key="set_reranker").value == "ranker-regulation"  # which ranks questions alone
    assert not [one for one in ("before reranking", "Not yet read by the reranker", "Changed since") if one in text]
    parts = (
        "The checked text",
        "paper mode:",
        "1 sentence not supported",
        "count other passages",
        "merged",
    )
    for part in parts:
        assert part in text, part
    assert "no citation: no passage" not in text
    assert "What each sentence found" in tab(at, "steps")
    record = app.store.load(app.store.list()[0].record_id)
    assert record.question.given.startswith("A firm must act at once [1]")
    assert "The checked text" in records_page(record.record_id)
    at.text_area(key="text").set_value(" ")
    next(button for button in at.button if button.label == "Check").click().run()
    assert "text to check is empty" in words(at)


def test_a_checked_example_is_checked(app):
    app()
    at = opened(page="check")
    at.button(key="checked_contradicted_rulebook").click().run()
    run = at.session_state["checked"]
    assert run.wait(20).asked.given.startswith("We report a Data Breach")
    assert at.text_input(key="text_question").value == run.view.question == "How soon do you report a data breach?"


def test_answers_of_a_file_are_offered(app):
    app()
    at = opened(page="check")
    rows = [{"Question": f"Question {n}?", "RetrievedPassages": ["x"], "Answer": f"Answer {n}."} for n in (1, 2)]
    at.file_uploader(key="checked_file").upload("answers.json", json.dumps(rows).encode(), "application/json").run()
    at.selectbox(key="checked_item").select_index(1).run()
    at.button(key="check_file").click().run()
    assert at.session_state["checked"].wait(20).asked == Question("Question 2?", given="Answer 2.")
    at.file_uploader(key="checked_file").upload("answers.json", b"{", "application/json").run()
    assert "is not JSON" in words(at)


def test_a_document_is_checked_whole_and_a_note_stands_beside_its_sentence(app, tmp_path):
    app(generator=None)
    at = opened(page="check")
    document = Document()
    document.add_heading("1. Purpose")
    document.add_paragraph("A firm must act at once. The moon is green.")
    document.save(tmp_path / "policy.docx")
    content = (tmp_path / "policy.docx").read_bytes()
    at.file_uploader(key="checked_file").upload("policy.docx", content).run()
    at.button(key="check_file").click().run()
    run = at.session_state["checked"]
    assert [one.text for one in run.wait(20).answer.sentences] == ["A firm must act at once.", "The moon is green."]
    assert "Of 2 sentences: 1 not supported" in words(at.run())
    at.selectbox(key="feedback_of").set_value(1).run()
    at.text_input(key="feedback_why_1").set_value("Ask the vendor.")
    at.button(key="feedback_keep").click().run()
    assert "Ask the vendor." in words(at)
    at.file_uploader(key="checked_file").upload("policy.pdf", b"x").run()
    assert "expected a PDF file by its name" in words(at)


def test_a_file_of_answers_is_read_once_elsewhere_and_not_beyond_ten_megabytes(app, monkeypatch):
    texts, loads = [], json.loads
    monkeypatch.setattr(json, "loads", lambda text, **more: texts.append(str(text)) or loads(text, **more))
    app()
    at = opened(page="check")
    rows = [{"Question": "Who?", "RetrievedPassages": ["x"], "Answer": f"The firm {n}."} for n in range(3_000)]
    content = json.dumps(rows).encode()
    at.file_uploader(key="checked_file").upload("answers.json", content, "application/json").run()
    for _ in range(3):
        at.run()
    assert len(at.selectbox(key="checked_item").options) == 2_000
    assert not [text for text in texts if "The firm 2999." in text]
    hostile = b"[" + b"[]," * 3_600_000 + b"[]]"
    at.file_uploader(key="checked_file").upload("answers.json", hostile, "application/json").run()
    assert "at most 10 MB" in words(at)


def test_an_address_asks_with_its_settings_and_gone_back_to_shows_the_same_run(app):
    app()
    query = {"q": "Who must act?", "corpus": "encyclopedia", "threshold": "0.55", "top_k": "7", "weight_bm25": "0.5"}
    at = opened(**query)
    assert "run" not in at.session_state
    at.button(key="ask_link").click().run()
    run = at.session_state["run"]
    config = run.wait(20).config
    assert (config.index, config.filtering.threshold, config.filtering.top_k) == ("encyclopedia", 0.55, 7)
    assert at.slider(key="set_threshold").value == 0.55
    assert dict(at.query_params) == {"run": run.id}
    again = link_of(dict(parse_qsl(urlsplit(address_of(link_of_view(run.view))).query)))
    assert (again.question, again.corpus, again.changed["threshold"]) == ("Who must act?", "encyclopedia", 0.55)
    at.query_params = dict(query)
    at.run()
    assert at.session_state["run"] is run
    assert len(app.store.list()) == 1
    fresh = opened(run=run.id)
    assert fresh.slider(key="set_threshold").value == 0.55
    assert fresh.selectbox(key="corpus").value == "encyclopedia"


@pytest.mark.parametrize(
    ("page", "query"), [("ask", {"q": "Who must act?"}), ("check", {"text": "A firm acts.", "q": "Who must act?"})]
)
def test_whoever_follows_a_link_asks_nothing_until_a_button_is_pressed(app, page, query):
    app()
    at = opened(page, **query)
    for _ in range(3):
        at.run()
    assert "run" not in at.session_state
    assert "checked" not in at.session_state
    assert "Nothing happens until you press the button" in words(at)
    assert app.store.list() == ()
    at.button(key="ask_link").click().run()
    assert not at.exception
    at.session_state["checked" if page == "check" else "run"].wait(20)
    assert len(app.store.list()) == 1
    at.run()
    assert "ask_link" not in [button.key for button in at.button]


def test_what_the_session_holds_is_the_widgets_default_too(app):
    """Where a click interrupts the run that draws them first, the browser starts from the defaults and sends those."""
    app()
    at = opened(q="Who?", corpus="encyclopedia", threshold="0.55", top_k="7", fusion="rrf", generator="extractive")
    for name, value in (("threshold", 0.55), ("top_k", 7), ("weight_bm25", at.session_state["set_weight_bm25"])):
        assert list(at.slider(key=f"set_{name}").proto.default) == [value]
    for name in ("fusion", "generator", "filter_method"):
        radio = at.radio(key=f"set_{name}")
        assert radio.proto.default == radio.index
    corpus = at.selectbox(key="corpus")
    assert corpus.proto.default == corpus.index
    assert at.text_area(key="question").proto.default == "Who?"


def test_what_an_address_asks_and_cannot_have_is_said_and_nothing_is_asked(app):
    at = app()
    for query, message in (
        ({"q": "Who?", "threshold": "7"}, "expected a number in [0, 1], found '7'"),
        ({"q": "Who?", "corpus": "secret"}, "names the corpus 'secret'"),
        ({"q": "Who?", "preset": "<b>mine</b>"}, "names the preset '<b>mine</b>'"),
        ({"q": "Who?", "generator": "llm"}, "asks for the generator 'llm', which this server does not offer"),
        ({"q": "Who?", "weight_splade": "0.5"}, "weighs the ranking 'splade'"),
        ({"text": "A firm acts."}, "texts are checked on the page Check a text"),
    ):
        at.query_params = dict(query)
        at.run()
        assert not at.exception
        assert message in words(at)
        assert "run" not in at.session_state
    assert app.store.list() == ()


def opened(page="ask", **query):
    """A further visit, as by a second tab or after a refresh."""
    at = AppTest.from_function(_page_script, default_timeout=30, args=(page,))
    for name, value in query.items():
        at.query_params[name] = value
    at.run()
    assert not at.exception
    return at


def _page_script(page):
    from ragqa.ui.pages import ask

    {"ask": ask.ask_page, "check": ask.check_page}[page]()


def test_headings_of_a_corpus_are_words_on_buttons(app, monkeypatch):
    import ragqa.ui.state.resources as resources

    asked = "What is required on ![x](http://evil.example/x.png) 1. www.evil.example :red[_all_] $x$?"
    monkeypatch.setattr(resources, "examples_of", lambda *_: [asked])
    at = app()
    (button,) = (button for button in at.button if button.key and button.key.startswith("example_"))
    assert button.label == (
        r"What is required on \!\[x\]\(http\:|//evil.example/x.png\) 1\. www|.evil.example \:red\[\_all\_\] \$x\$?"
    ).replace("|", "\N{WORD JOINER}")  # else the addresses would become links
    button.click().run()
    assert at.text_area(key="question").value == asked


def test_a_language_model_can_be_chosen_where_there_is_one(app, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    at = app()
    assert at.radio(key="set_generator").value == "llm"
    assert "No language model is configured" not in words(at)


def records_page(query=None, tab=None, compare=None):
    at = AppTest.from_function(_records_script, default_timeout=30)
    if tab:
        at.session_state["tab"] = tab
    if query:
        at.query_params["record"] = query
    if compare:
        at.query_params["compare"] = compare
    at.run()
    assert not at.exception
    return words(at)


def _records_script():
    from ragqa.ui.pages.records import records_page as page

    page()


def test_the_records_page_lists_and_opens_and_says_when_there_is_nothing(app):
    assert "No question has been answered" in (app(), records_page())[1]
    events = list(make_pipeline(records=app.store, config=Config()).run(Question("Who must act?")))
    assert "Who must act?" in records_page()
    record = records_page(events[-1].record_id, "record")
    for part in (
        "paper mode:",
        "with today’s",
        ">Threshold<",
        ">Model of E and C<",
        "Rulebook of an invented regulator",
    ):
        assert part in record
    assert "no record" in records_page("nothing")


def test_two_records_are_ticked_in_the_list_and_compared(app):
    for question in ("Who must act?", "And who else?"):
        list(make_pipeline(records=app.store, config=Config()).run(Question(question)))
    second, first = (one.record_id for one in app.store.list())
    for record_id in (first, second):
        assert f'type="checkbox" name="record" value="{record_id}"' in records_page()
    assert f'href="records?compare={first}"' in records_page(first)
    chosen = records_page(compare=first)
    assert "Ticked: “Who must act?”." in chosen
    assert f'value="{first}" aria-label="Compare: Who must act?" checked' in chosen
    assert "no record 'nothing'" in records_page(compare="nothing")


def test_a_record_is_noted_on_found_by_its_note_deleted_and_had_back(app):
    record_id = list(make_pipeline(records=app.store, config=Config()).run(Question("Who must act?")))[-1].record_id
    at = AppTest.from_function(_records_script, default_timeout=30)
    at.query_params["record"] = record_id
    at.run().text_input(key="record_note").set_value("For the board <b>in May</b>.")
    at.button(key="record_keep").click().run()
    assert "For the board <b>in May" in records_page()
    assert [one.record_id for one in app.store.list(words="board may")] == [record_id]
    at.button(key="record_delete").click().run()
    assert "Deleted: “Who must act?”" in words(at)
    assert app.store.list() == ()
    assert "no record" in records_page(record_id)
    at.button(key="record_undo").click().run()
    assert [one.note for one in app.store.list()] == ["For the board <b>in May</b>."]


@pytest.mark.parametrize("key", ["record_keep", "record_delete"])
def test_a_note_that_cannot_be_kept_is_told_and_the_page_stays(app, monkeypatch, key):
    record_id = list(make_pipeline(records=app.store, config=Config()).run(Question("Who must act?")))[-1].record_id
    at = AppTest.from_function(_records_script, default_timeout=30)
    at.query_params["record"] = record_id
    at.run()

    def fail(*_):
        raise RecordError("the record server is unreachable")

    monkeypatch.setattr(RecordStore, "set_note", fail)
    monkeypatch.setattr(RecordStore, "discard", fail)
    at.button(key=key).click().run()
    assert not at.exception
    assert [one.value for one in at.toast] == ["the record server is unreachable"]
    assert "Who must act?" in words(at)


def test_the_json_of_a_record_has_the_note_on_its_sentence(app):
    record_id = list(make_pipeline(records=app.store, config=Config()).run(Question("Who must act?")))[-1].record_id
    assert '"feedback": []' in resources.record_json(record_id, app.store.place)
    app.store.comment(record_id, 0, Verdict.UNSUPPORTED, "It says may.")
    assert "It says may." in resources.record_json(record_id, app.store.place)


def test_two_settings_are_asked_and_compared_and_two_records_by_their_address(app):
    def script():
        from ragqa.ui.pages.compare import compare_page

        compare_page()

    app()
    at = AppTest.from_function(script, default_timeout=30).run()
    assert "Choose what differs between A and B" in words(at)
    at.selectbox(key="compare_preset_b").select("no filter, k = 10")
    at.text_area(key="compare_question").set_value("Who must act?")
    at.button(key="compare_ask").click().run()
    runs = at.session_state["compared"]
    for run in runs:
        run.wait(20)
    at.run()
    assert not at.exception
    text = re.sub("<[^>]*>", "", words(at))
    assert "Threshold 0.70 → 0.00" in text
    assert "Sentences: 2 same." in text
    assert "Both answers are in History" in text
    again = AppTest.from_function(script, default_timeout=30)
    again.query_params["a"], again.query_params["b"] = (run.view.record_id for run in runs)
    again.run()
    assert not again.exception
    assert "Threshold 0.70 → 0.00" in re.sub("<[^>]*>", "", words(again))
    again.query_params["a"] = "nothing"
    assert "no record 'nothing'" in words(again.run())


def test_settings_are_swept_over_examples_and_a_point_is_applied(app, monkeypatch):
    def script():
        from ragqa.ui.pages.sweep import sweep_page

        sweep_page()

    app()
    monkeypatch.setattr("ragqa.evaluation.sweep.ranking_cache", lambda file: None)  # fakes have no positions
    for name in ("files", "rankings"):
        monkeypatch.setattr(FakeManifest, name, (), raising=False)
    at = AppTest.from_function(script, default_timeout=30).run()
    assert not at.exception
    assert "Choose questions with gold passages" in words(at)
    at.number_input(key="sweep_count").set_value(3)
    at.button(key="sweep_go").click().run()
    assert not at.exception
    assert "64 points over 3 questions of Rulebook of an invented regulator in" in words(at)
    assert "best F2" in words(at)
    at.select_slider(key="sweep_at_threshold").set_value(0.2).run()
    at.button(key="sweep_apply").click().run()
    assert not at.exception
    assert at.session_state["settings"]["threshold"] == at.session_state["set_threshold"] == 0.2
    assert "The settings have threshold 0.2" in words(at)
    chosen, now = (
        re.search(f'<th scope="row">{one}</th>(.*?)</tr>', words(at), re.S) for one in ("chosen", "the settings now")
    )
    assert chosen[1] == now[1]  # no longer those that were swept
    at.selectbox(key="sweep_way").select("Top-k").run()
    at.button(key="sweep_go").click().run()
    assert not at.exception
    assert "30 points over 3 questions" in words(at)
    at.selectbox(key="sweep_corpus").select("encyclopedia").run()
    assert "The last sweep was of Rulebook of an invented regulator: choose that corpus to see it again." in words(at)
    assert "30 points over 3 questions" not in words(at)


def test_a_presentation_goes_from_example_to_example_and_stays_in_the_address(app):
    at = app()
    at.button(key="present_go").click().run()
    assert dict(at.query_params)["present"] in ("1", ["1"])
    assert "font-size: 21px" in html(at)
    at.button(key="present_next").click().run()
    first = at.session_state["run"].wait(20).question
    at.run()
    at.button(key="present_next").click().run()
    second = at.session_state["run"].wait(20).question
    assert first != second
    at.button(key="present_back").click().run()
    assert at.session_state["run"].wait(20).question == first
    assert "present" in dict(at.query_params)
    at.button(key="present_leave").click().run()
    assert not at.exception
    assert "present" not in dict(at.query_params)
    assert "font-size: 21px" not in html(at)


def test_a_follow_up_that_stands_alone_is_asked_at_once_and_another_when_its_rewriting_was_seen(app):
    at = ask(app())
    first = at.session_state["run"].wait(20)
    box = f"follow_up_asked_{first.record_id}"
    at.text_input(key=box).set_value("And if it is late?").run()
    assert not at.exception
    assert "Ask it" in [button.label for button in at.button]
    assert at.session_state["run"].view is first
    at.text_input(key=box).set_value("How must a bank keep its books?").run()
    second = at.session_state["run"].wait(20)
    at.run()
    assert not at.exception
    assert (second.question, second.asked.follow_up.record_id) == ("How must a bank keep its books?", first.record_id)
    earlier = '<summary>Who must act? <span class="rq-snippet">A firm must act at once.'
    assert earlier in html(at)


def test_a_follow_up_that_found_the_queue_full_is_asked_again_as_a_follow_up(app, monkeypatch):
    at = ask(app())
    first, start = at.session_state["run"].wait(20), resources.start_run
    monkeypatch.setattr(resources, "start_run", Mock(side_effect=BusyError("The run queue is full.")))
    at.text_input(key=f"follow_up_asked_{first.record_id}").set_value("How must a bank keep its books?").run()
    assert "The run queue is full." in html(at)
    monkeypatch.setattr(resources, "start_run", start)
    second = ask(at, "How must a bank keep its books?").session_state["run"].view
    assert second.asked.follow_up.record_id == first.record_id
    assert ask(at, "Who must act?").session_state["run"].view.asked.follow_up is None


def test_a_presentation_of_a_corpus_without_examples_has_the_questions_asked_before(app, monkeypatch):
    monkeypatch.setattr(resources, "examples_of", lambda index, paths: [])
    at = app()
    at.button(key="present_go").click().run()
    assert "present_next" not in [button.key for button in at.button]
    ask(ask(at), "When may a firm act?")
    assert any(one.value == "2 questions" for one in at.caption)
    at.button(key="present_next").click().run()
    assert at.session_state["run"].wait(20).question == "Who must act?"

"""States of the page that were wrong once: what is named, counted, marked as changed, found again."""

import io
import json
import shlex
from dataclasses import replace
from types import SimpleNamespace

import altair as alt
import pytest
from docx import Document
from streamlit.testing.v1 import AppTest

import ragqa.ui.pages.dataset as dataset
import ragqa.ui.state.resources as resources
from ragqa.corpus.citing import short_name, short_names
from ragqa.english.words import quantity
from ragqa.evaluation.benchmark import Option
from ragqa.evaluation.sweep import Axis, Point, Sweep
from ragqa.infra.journal import begun
from ragqa.lab.dataset.benchmark import MAKE
from ragqa.lab.dataset.stages import SPLIT
from ragqa.library.collection import title_of
from ragqa.library.related import Referred, Related
from ragqa.pipeline import clean_question
from ragqa.records.memo import settings_words
from ragqa.records.store import RecordStore
from ragqa.records.view import View, shown
from ragqa.records.words import place, size_words, with_names
from ragqa.settings.config import Config, GenerationConfig, RerankingConfig
from ragqa.settings.paths import Paths
from ragqa.types import Passage, Question, Selection
from ragqa.types.scores import Verdict
from ragqa.ui.html.charts import sweep_surface
from ragqa.ui.html.reader import beside_html
from ragqa.ui.html.template import ENVIRONMENT
from ragqa.ui.pages import check_form, compare, library, notes, reader, tabs
from ragqa.ui.pages.evaluation import page as evaluations
from ragqa.ui.pages.evaluation.form import presets_for
from ragqa.ui.pages.evaluation.runs import EvaluationView
from ragqa.ui.state.stale import stale
from tests.support.helpers import make_pipeline
from tests.support.server import ROOT
from tests.ui.test_app import ask, tab, words

WORD = Passage("p:1", "p", "Text.", "Leave policy", "Leave policy › 2 Sick leave", "2.1", place="page=3&box=1,2,3,4")
RULE = Passage("r:1", "r", "Text.", "Outsourcing and Operational Resilience Rules", "", "3.1.1")


@pytest.fixture
def app(monkeypatch, tmp_path):
    store = RecordStore(tmp_path / "records.sqlite3")
    monkeypatch.setattr(resources, "record_store", lambda path: store)
    monkeypatch.setattr(resources, "warm_up", lambda config, paths: None)
    monkeypatch.setattr(resources, "pipeline", lambda config, paths: make_pipeline(config=config, records=store))
    return AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)


def test_a_page_whose_files_are_damaged_says_so(app, monkeypatch, tmp_path):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    folder = tmp_path / "evaluations" / "dataset-1"
    folder.mkdir(parents=True)
    asked = {"benchmark": MAKE.name, "settings": {}, "started": "2026", "state": "done", "headline": ""}
    (folder / "request.json").write_text(json.dumps(asked | {"done": 1, "total": 1}))
    app.session_state["dataset_chosen"] = "dataset-1"
    pages = app.run()._registered_pages
    app._page_hash = next(name for name, one in pages.items() if one["url_pathname"] == "dataset")
    at = app.run()
    assert not at.exception
    assert "No such file" in words(at)


def test_a_title_is_named_once_and_evidence_names_its_page():
    assert place(WORD) == "Leave policy › 2 Sick leave › 2.1, page 3"
    assert place(RULE) == "Outsourcing and Operational Resilience Rules › 3.1.1"


@pytest.mark.parametrize(
    ("title", "number", "name"),
    [
        ("Outsourcing and Operational Resilience Rules", "3.1.1", "Outsourcing 3.1.1"),
        ("Anti-Money Laundering Rules", "4.2.", "Anti-Money Laundering 4.2"),
        ("Mercury (planet)", "2", "Mercury (planet) 2"),
        ("Own Funds and Eligible Liabilities of Ferries (CRR)", "2", "Own Funds (CRR) 2"),
        ("Rules", "1", "Rules 1"),
        ("REGULATION 2026/7 OF THE FERRY COUNCIL (Ferry Dues Act)", "7", "Ferry Dues Act 7"),
        ("REGULATION (EU) 2026/7 OF THE COUNCIL of 3 May 2026", "Article 7", "Regulation (EU) 2026/7 Article 7"),
        ("SS9/26 – Ferries that leave in the night", "2.2", "SS9/26 2.2"),
        ("Small Ferries – Night Crossings in Winter – Notifications and Fees", "2", "Small Ferries … Notifications 2"),
        ("Lamp Code", "CHAPTER IV.Section 2.Article 33.1.", "Lamp Article 33(1)"),
        ("Lamp Code", "2.Title II.Chapter 2.Article 10a.1.(d).(ii)", "Lamp 2 Article 10a(1)(d)(ii)"),
        ("Lamp Code", "Part C.REGULATION – 10.5)", "Lamp REGULATION – 10(5)"),
        ("Lamp Code", "CHAPTER 7.20.f)", "Lamp CHAPTER 7.20(f)"),
        ("Lamp Code", "ANNEX II.Article 4.note 29", "Lamp ANNEX II Article 4 note 29"),
        ("Lamp Code", "9.1.(9)", "Lamp 9.1(9)"),
        ("Lamp Code", "(64)", "Lamp (64)"),
        ("Lamp Code", "RC.RP-04.Ex3", "Lamp RC.RP-04.Ex3"),
        ("", "", "d"),
    ],
)
def test_a_citation_has_a_short_name(title, number, name):
    assert short_name(Passage("d:1", "d", "x", title, "", number)) == name


def test_names_in_one_list_tell_their_documents_apart():
    titles = ("Large ferries and their crews", "Large ferries and their fees", "Small ferries")
    passages = [Passage(f"{n}:1", str(n), "x", title, "", "2.1") for n, title in enumerate(titles)]
    assert short_names(passages) == [f"{titles[0]} 2.1", f"{titles[1]} 2.1", "Small ferries 2.1"]
    assert with_names("As [1] and [3] say.", passages) == f"As {titles[0]} 2.1 and Small ferries 2.1 say."


def test_a_place_has_the_number_though_that_of_its_section_ends_alike():
    rule = replace(RULE, title="Rules", section="Part 11", number="1")
    assert place(rule) == "Rules › Part 11 › 1"
    assert place(replace(rule, section="Part 1")) == "Rules › Part 1"
    assert place(replace(rule, section="Article 5(a)", number="(a)")) == "Rules › Article 5(a)"


def test_a_long_title_is_its_short_name_in_a_place():
    title = "REGULATION (EU) 2026/7 OF THE COUNCIL of 3 May 2026 on ferries that leave in the night"
    one = Passage("r:1", "r", "Text.", title, f"{title} › CHAPTER I FERRIES", "CHAPTER I.Article 7.1.")
    assert place(one) == "Regulation (EU) 2026/7 › CHAPTER I FERRIES › Article 7(1)"
    assert place(one, whole=True) == f"{title} › CHAPTER I FERRIES › Article 7(1)"


def test_a_title_is_no_markup_where_a_rule_is_cited():
    named = ENVIRONMENT.from_string("{{ short_name(one) }}").render(one=Passage("d:1", "d", "x", "<img src=x>"))
    assert named == "&lt;img src=x&gt;"


def test_one_of_a_thing_is_singular():
    assert (quantity(1, "passage"), quantity(2_000, "passage")) == ("1 passage", "2,000 passages")
    assert quantity(2, "entry", "entries") == "2 entries"
    assert [size_words(size) for size in (0, 1, 999, 1_400)] == ["0 bytes", "1 byte", "999 bytes", "1 kB"]


def test_a_corpus_without_a_name_is_not_called_after_the_first_of_several_files():
    assert title_of(["rules.pdf"]) == "rules"
    assert title_of(["rules.pdf", "guide.pdf"]).startswith("2 documents, 20")


def test_a_preset_with_another_reranker_marks_the_answer():
    view = View(Question("Who?"), Config(), selection=Selection((), ()))
    (found,) = stale(view, Config(reranking=RerankingConfig("ranker-adgm", depth=50, weight=1.0)))
    assert found.of_passages
    assert stale(view, Config()) == ()


def test_a_record_names_no_language_model_where_none_wrote():
    assert not any("gpt" in value for value in settings_words(Config()).values())
    assert "Language model" not in settings_words(Config())
    assert settings_words(Config(generation=GenerationConfig("llm")))["Language model"] == "gpt-4o-mini"


def test_an_answer_without_a_sentence_is_not_called_supported(app, monkeypatch):
    view = ask(app.run()).session_state["run"].view
    found, told = shown(view, view.config.scoring.mode), []
    monkeypatch.setattr(tabs.st, "html", told.append)
    for sentences in (found.sentences, ()):
        none = replace(found, sentences=sentences, explanation=None)
        tabs._scores(tabs._Drawn(view, view.config, None, "", view.selection, none))
    assert not any("Every sentence is supported" in one for one in told)


def test_the_name_of_a_sheet_is_no_markup(monkeypatch):
    told = []
    monkeypatch.setattr(reader, "draw_add", lambda *given: None)
    monkeypatch.setattr(reader.st, "caption", told.append)
    passage = replace(WORD, place="sheet=Due [now](https://example.org)&row=2")
    document = SimpleNamespace(leaf_of=lambda place: 0, leaves=((0, 1),), start=0, stop=1, document_id="p")
    reader._bar(SimpleNamespace(passages=[passage]), "own", "Own", document, 0)
    assert told[0].startswith("Part 1 of 1, sheet Due \\[now\\]")


def test_a_question_with_surplus_spaces_is_not_another_question(monkeypatch):
    runs = (SimpleNamespace(view=View(clean_question(Question("Who  must act? ")), Config())),) * 2
    monkeypatch.setattr(compare.st, "session_state", {"compare_question": "Who  must act? "})
    assert compare._changed_since(runs, [Config(), Config()]) == ""
    compare.st.session_state["compare_question"] = "Who may act?"
    assert compare._changed_since(runs, [Config(), Config()]) == "another question"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_text_to_check_is_read_in_its_encoding(encoding):
    said = "A firm’s “policy” covers Zürich."
    assert check_form._read("policy.txt", said.encode(encoding)) == [(1, "", said)]


def test_a_note_of_another_person_is_seen_without_another_record_in_between(app, monkeypatch):
    record_id = ask(app.run()).session_state["run"].view.record_id
    monkeypatch.setattr(notes.st, "session_state", {})
    assert notes.notes_of(record_id) == {}
    resources.record_store("").comment(record_id, 0, Verdict.UNSUPPORTED, "The rule says less.")
    assert notes.notes_of(record_id) == {0: "The rule says less."}


def test_one_question_of_a_benchmark_and_one_more_passage_are_singular(monkeypatch):
    told, runs = [], SimpleNamespace(current=None)
    monkeypatch.setattr(evaluations.st, "html", told.append)
    evaluations._ended("r", None, EvaluationView("b", {}, done=1, total=1, failed=1), runs)
    evaluations._ended("r", None, EvaluationView("b", {}, done=1, total=1, stopped=True), runs)
    assert "Done: 1 question." in told[0]
    assert "1 question got no answer" in told[1]
    assert "after 1 of 1 question." in told[2]
    beside = beside_html(Related(refers=(Referred("rule 3", (WORD, WORD, WORD), ""),), referring=(), terms=()), "c")
    assert "and 1 more passage<" in beside


def test_a_command_holds_where_the_home_has_a_space_in_its_name(tmp_path, monkeypatch):
    folder, told = tmp_path / "my home" / "dataset-1", []
    folder.mkdir(parents=True)
    begun(folder, {"input": "rulebook"}, (), restart=False)
    (folder / SPLIT).touch()
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    monkeypatch.setattr(dataset.st, "code", lambda command, language: told.append(shlex.split(command)))
    dataset._use(folder, Paths.from_env())
    assert [len(words) for words in told] == [6, 9, 11]
    assert told[0][-1] == str(folder / "export" / "obliqa" / "train.json")


def test_when_a_corpus_was_indexed_names_its_time_zone():
    entry = SimpleNamespace(manifest=SimpleNamespace(n_passages=1, created="2026-11-29T08:05:00+00:00"))
    assert library._passages(entry) == ["1 passage", "indexed 2026-11-29 08:05 UTC"]


def test_a_memo_is_taken_away_beside_the_record(app, monkeypatch):
    monkeypatch.setattr(resources, "record_json", lambda record_id, path: "{}")
    at = ask(app.run())
    at.session_state["tab"] = "record"
    at.run()
    assert [one.proto.label for one in at.get("download_button")] == ["Download the record (JSON)", "Memo (DOCX)"]
    store = resources.record_store("")
    desk = SimpleNamespace(signed=lambda refs: ())  # nobody decided on it
    made = Document(io.BytesIO(tabs._memo(store, desk, store.list(1)[0].record_id)))
    assert made.paragraphs[0].text == "Who must act?"


def test_a_sweeps_cells_tell_their_settings_by_name():
    points = tuple(Point({"threshold": x, "max_drop": y}, 2.0) for x in (0.1, 0.2) for y in (0.3, 0.4))
    axes = (Axis("threshold", (0.1, 0.2)), Axis("max_drop", (0.3, 0.4)))
    chart = sweep_surface(Sweep(axes, points, points[0], 1, has_gold=False), "kept", {"threshold": "Threshold"})
    marks = [("now", points[1].values), ("best", points[1].values)]
    marked = sweep_surface(Sweep(axes, points, points[0], 1, has_gold=False), "kept", {}, marks)
    labels = [row["label"] for rows in marked.to_dict()["datasets"].values() for row in rows]
    assert labels == ["2.0", "2.0\nnow, best", "2.0", "2.0"]
    tips = [tip["title"] for tip in chart.to_dict()["layer"][0]["encoding"]["tooltip"]]
    assert isinstance(chart, alt.LayerChart)
    assert tips == ["Threshold (0 to 1)", "Weight of max_drop (0 to 1)", "passages kept", "passages kept"]


def test_presets_are_offered_where_several_corpora_are_asked():
    option = Option("preset", "", "preset")
    both = presets_for(option, ["rulebook", "encyclopedia"], Paths.from_env())
    assert "BM25 only" in both
    assert presets_for(option, ["rulebook", "none such"], Paths.from_env()) == ()


def test_presets_that_cannot_run_here_are_not_offered_and_the_others_have_plain_names(app):
    at = app.run()
    offered = at.selectbox(key="preset").options
    assert [one for one in offered if "Standard (learning to rank)" in one]
    assert not [one for one in offered if "SPLADE" in one or "AUEB final" in one]


def test_a_preset_that_lacks_a_ranking_says_so_in_place(app):
    app.query_params["preset"] = "RIRAG SPLADEv2"
    at = app.run()
    assert "The preset needs splade, which is missing here" in words(at)


def test_who_labels_is_asked_once_and_the_field_gives_way(monkeypatch):
    def script():
        import streamlit as st

        from ragqa.ui.pages.dataset import _reviewer

        st.text(_reviewer())

    at = AppTest.from_function(script, default_timeout=30).run()
    at.text_input(key="dataset_reviewer").set_value("Ann").run()
    assert not at.text_input
    assert at.text[0].value == "Ann"
    at.button(key="dataset_other").click().run()
    assert at.text_input(key="dataset_reviewer").value == ""
    assert dataset._WHO in at.session_state


def test_results_of_compare_are_marked_once_the_choices_change_and_found_again_by_their_address(app):
    def script():
        from ragqa.ui.pages.compare import compare_page

        compare_page()

    app.run()
    at = AppTest.from_function(script, default_timeout=60).run()
    at.text_area(key="compare_question").set_value("Who must act?")
    at.button(key="compare_ask").click().run()
    runs = at.session_state["compared"]
    for run in runs:
        run.wait(20)
    assert "Changed since these results" not in words(at.run())
    at.selectbox(key="compare_preset_b").select("no filter, k = 10").run()
    assert "Changed since these results: B: Threshold 0.70 → 0.00" in words(at)
    again = AppTest.from_function(script, default_timeout=60)
    again.query_params["run_a"], again.query_params["run_b"] = (run.id for run in runs)
    again.run()
    assert not again.exception
    assert "Both answers are in History" in words(again)


def test_what_was_written_in_steps_has_words(app):
    at = ask(app.run())
    assert "Written in one step" in tab(at, "steps")


def test_history_is_paged_and_searched_by_words_corpus_and_day(app, monkeypatch):
    import ragqa.ui.pages.records as records

    def script():
        from ragqa.ui.pages.records import records_page

        records_page()

    monkeypatch.setattr(records, "PAGE", 2)
    at = app.run()
    for question in ("Who must act?", "When may a firm act?", "What is 100% of it?"):
        ask(at, question)
    at = AppTest.from_function(script, default_timeout=60).run()
    assert "Who must act?" not in words(at)
    at.button(key="history_older").click().run()
    assert "Who must act?" in words(at)
    assert at.button(key="history_older").disabled
    at.text_input(key="history_words").set_value("100% what").run()
    assert "What is 100% of it?" in words(at)
    assert "When may a firm act?" not in words(at)
    at.selectbox(key="history_corpus").select("encyclopedia").run()
    assert "No record matches these filters" in words(at)


def test_an_answer_begins_with_whether_it_is_one(app):
    at = ask(app.run())
    assert '<p class="rq-headline rq-head-answered"><b>Answered</b>' in words(at)
    assert "Copy with citations" in words(at)

"""The evaluation page by Streamlit's own tester: every benchmark run, watched, stopped, resumed, looked into."""

import json
import re
import threading
import time
from dataclasses import replace
from html import unescape

import pytest
from streamlit.testing.v1 import AppTest

import ragqa.loading
import ragqa.ui.state.resources as resources
from ragqa.corpus.answers import read_answers
from ragqa.corpus.demo import DEMOS
from ragqa.corpus.pandachat import load_pandachat_questions
from ragqa.errors import ConfigError, CorpusError, RecordError
from ragqa.evaluation.benchmark import Benchmark, Item, Option, Task
from ragqa.evaluation.benchmarks.pandachat.submissions import read_submission
from ragqa.evaluation.catalogue import benchmarks
from ragqa.evaluation.report import Hit, Report, Row
from ragqa.index import build_index, open_index
from ragqa.lab.dataset.benchmark import MAKE
from ragqa.loading import Models
from ragqa.pipeline import assemble
from ragqa.settings.paths import Paths
from ragqa.types import Question
from ragqa.ui.pages.evaluation.form import fitting_indexes, keep_upload, new_index_name
from ragqa.ui.pages.evaluation.page import all_runs
from ragqa.ui.pages.evaluation.results import row_passages
from ragqa.ui.pages.evaluation.runs import EvaluationRuns, EvaluationView, view_from_json, view_to_json
from ragqa.ui.shared import forget
from tests.support.fakes import FakeEncoder, FakeNli, FakeObligations
from tests.support.made import read_run
from tests.support.openai_server import OpenAIServer, answer
from tests.support.pandachat_set import QUERIES, write_set
from tests.ui.test_app import html, words

pytestmark = pytest.mark.long

RULES = DEMOS["rulebook"]
N_FILE = 14  # questions in the rulebook's first file


def test_choices_that_do_not_explain_themselves_have_words():
    facts = benchmarks()["answering"]
    corpus = next(one for one in facts.options if one.name == "index")
    assert corpus.said["both-as-fits"] == "each case in its own corpus"
    assert facts.words({"index": "both-as-fits", "part": "open"}).startswith("each case in its own corpus, open")
    assert facts.words({"index": "rulebook"}) == RULES.title
    asked = {"index": "rulebook", "questions": 20, "seed": 1}
    assert MAKE.words(asked, {"rulebook": RULES.title}) == f"{RULES.title}, questions 20, seed 1"


@pytest.fixture(scope="module")
def rulebook(tmp_path_factory):
    """A folder with the demonstration rulebook, indexed by the fake encoder."""
    from ragqa.settings.config import IndexingConfig

    folder = tmp_path_factory.mktemp("indexes")
    build_index("rulebook", RULES.source, indexes=folder, config=IndexingConfig(), encoder=FakeEncoder())
    return folder


@pytest.fixture
def world(rulebook, monkeypatch, tmp_path):
    """A home of its own, the rulebook's index beside an empty data folder, fake models; what was retrieved is noted."""
    indexes, data = tmp_path / "indexes", tmp_path / "data"
    indexes.mkdir(), data.mkdir()
    (indexes / "rulebook").symlink_to(rulebook / "rulebook")
    monkeypatch.setenv("RAGQA_INDEXES", str(indexes))
    monkeypatch.setenv("RAGQA_DATA", str(data))
    world = World(data, indexes)
    nli = FakeNli()

    def pipeline(config, paths):
        loaded = assemble(
            config, open_index(config.index, paths.indexes), Models(FakeEncoder(), nli, nli, FakeObligations())
        )
        return replace(loaded, retrievers=tuple(world.watched(retriever) for retriever in loaded.retrievers))

    monkeypatch.setattr(resources, "pipeline", pipeline)
    monkeypatch.setattr(resources, "warm_up", lambda config, paths: None)
    monkeypatch.setattr(ragqa.loading, "load_encoder", lambda name, **options: FakeEncoder())
    forget()
    yield world
    world.gate.set()
    run = all_runs(Paths.from_env()).current
    if run:
        run.stop()
        run.wait(20)


class World:
    """Where a test's files are. `gate`, cleared, holds every ranking back, and does so by itself after `hold_after`
    questions; `asked` are the questions ranked.
    """

    def __init__(self, data, indexes):
        self.data, self.indexes = data, indexes
        self.gate, self.asked, self.hold_after = threading.Event(), [], None
        self.gate.set()

    def watched(self, retriever):
        world = self

        class Watched:
            name = retriever.name

            def retrieve(self, question, top_k):
                if retriever.name == "bm25" and len(world.asked) == world.hold_after:
                    world.gate.clear()
                    world.hold_after = None
                assert world.gate.wait(20)
                if retriever.name == "bm25":
                    world.asked.append(question)
                return retriever.retrieve(question, top_k)

        return Watched()

    @property
    def folder(self):
        return Paths.from_env().home / "evaluations"


def page(run_id=None):
    at = AppTest.from_function(_script, default_timeout=30)
    if run_id:
        at.query_params["run"] = run_id
    at.run()
    assert not at.exception
    return at


def _script():
    from ragqa.ui.pages.evaluation.page import evaluation_page

    evaluation_page()


def choose(at, benchmark):
    at.radio(key="evaluate_benchmark").set_value(benchmark).run()
    assert not at.exception
    return at


def limited(at, benchmark, count):
    at.number_input(key=f"evaluate_limit_{benchmark}").set_value(count).run()
    return at


def press(at, label):
    next(button for button in at.button if button.label == label and not button.disabled).click().run()
    assert not at.exception, at.exception
    return at


def settings(name="retrieval", **given):
    return benchmarks()[name].settings(**given)


def current():
    runs = all_runs(Paths.from_env())
    return next(filter(None, (runs.live(one.run_id) for one in runs.list())), None)


def finished(at):
    """The page after its run has ended."""
    view = current().wait(30)
    for one in view.report.files:
        assert (current().folder / one.name).is_file(), one.name
    at.run()
    assert not at.exception, at.exception
    return at


def wait_for(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def test_a_question_that_has_its_own_corpus_shows_its_passages(world):
    at = choose(page(), "answering")
    assert next(box for box in at.selectbox if box.label == "Generator").options[0] == "direct, no language model"
    index = open_index("rulebook", world.indexes)
    row = Row(1, "1", "Who?", gold=(index.passages[0].passage_id, "gone"))
    found = row_passages(row, ["both-as-fits", "encyclopedia", "rulebook"], Paths.from_env())
    assert found == {index.passages[0].passage_id: index.passages[0], "gone": None}


def open_question(at, number):
    box = next(box for box in at.selectbox if box.label == "Open a question")
    box.select(number).run()
    assert not at.exception
    return at


# Before a run ---------------------------------------------------------------------------------------------------------


def test_the_first_screen_works_on_a_fresh_machine(world):
    at = page()
    assert at.radio(key="evaluate_benchmark").options == [one.title for one in benchmarks().values() if one.on_page]
    assert not next(button for button in at.button if button.label == "Run").disabled
    choose(at, "retrieval")
    assert next(box for box in at.selectbox if box.label == "Corpus").value == "rulebook"
    assert not next(button for button in at.button if button.label == "Run").disabled
    assert "Earlier runs" not in words(at)


def test_questions_of_another_corpus_name_the_command_that_builds_its_index(world):
    at = choose(page(), "retrieval")
    box = next(box for box in at.selectbox if box.label == "Questions")
    assert len(box.options) == 3
    box.select_index(2).run()
    assert "ragqa index build NAME --source FOLDER" in words(at)
    assert next(button for button in at.button if button.label == "Run").disabled


@pytest.mark.parametrize("benchmark", ["pandachat", "fanoutqa"])
def test_a_benchmark_without_its_file_says_which_one_it_wants(world, benchmark):
    text = words(choose(page(), benchmark))
    assert "No file of this kind was found" in text
    assert "RAGQA_DATA" in text


def test_fanoutqa_without_a_language_model_explains_and_shows_the_leaderboard(world):
    text = words(choose(page(), "fanoutqa"))
    assert "OPENAI_API_KEY or OPENAI_BASE_URL" in text
    assert "GPT-4o (OpenAI, 2024)" in text
    assert "as read on 2026-11-21" in text


# Retrieval ------------------------------------------------------------------------------------------------------------


def test_a_run_ends_with_figures_questions_and_files_and_no_figures_of_other_questions(world):
    at = finished(press(limited(choose(page(), "retrieval"), "retrieval", 5), "Run"))
    text = words(at)
    for part in ("Done: 5 questions.", "R@10", "MAP@10", "this run"):
        assert part in text, part
    assert not any(part in text for part in ("Gokhan", "0.811")), "published, but of ObliQA's test questions"
    assert len(at.dataframe[0].value) == 5
    run = current()
    assert len(read_run(run.folder / "fused.run")) == 5
    assert json.loads((run.folder / "report.json").read_text())
    assert "Earlier runs" in text
    assert run.run_id in at.query_params["run"]


def test_the_same_request_goes_on_and_ranks_nothing_twice(world):
    at = finished(press(limited(choose(page(), "retrieval"), "retrieval", 3), "Run"))
    asked = len(world.asked)
    finished(press(limited(at, "retrieval", 5), "Run"))
    assert len([one for one in world.asked[asked:] if one != "warm-up"]) == 2
    assert "Done: 5 questions, 3 of them restored." in words(at)


def test_two_runs_that_are_ticked_are_compared(world):
    ids = []
    for count in (3, 4):
        finished(press(limited(choose(page(), "retrieval"), "retrieval", count), "Run"))
        ids.append(current().run_id)
    assert ids[0] == ids[1]  # the same run goes on; another one has other settings
    at = page()
    choose(at, "retrieval").selectbox(key="evaluate_preset_retrieval").select("BM25 only").run()
    finished(press(limited(at, "retrieval", 5), "Run"))
    assert f'type="checkbox" name="run" value="{ids[0]}"' in html(at)
    text = words(page([ids[0], current().run_id]))
    assert "B − A" in text
    assert re.search(r"<td>[+-]\d\.\d+ \[[+-]\d\.\d+, [+-]\d\.\d+\]</td><td>\d\.\d+</td><td>4</td>", text)
    assert re.search(r"\d questions? turned", " ".join(one.value for one in page([ids[0], current().run_id]).subheader))
    assert "choose one of the list" in words(page([ids[0], "none such"]))


def test_only_wrong_questions_and_one_of_them_looked_into(world):
    at = finished(press(limited(choose(page(), "retrieval"), "retrieval", N_FILE), "Run"))
    view = current().view
    wrong = [row for row in view.rows if row.right is False]
    assert 0 < len(wrong) < N_FILE
    key = f"evaluate_show_{current().run_id}"
    at.segmented_control(key=key).set_value("wrong").run()
    assert list(at.dataframe[0].value["#"]) == [row.number for row in wrong]
    at = open_question(at, wrong[0].number)
    text = words(at)
    assert wrong[0].question in text
    assert "“right” would mean: every gold passage is among the first ten" in text
    missed = set(wrong[0].gold) - {hit.passage_id for hit in wrong[0].hits}
    assert text.count("gold, missed") == len(missed) > 0
    index = open_index("rulebook", world.indexes)
    for name in (wrong[0].hits[0].passage_id, *missed):
        assert index.passages[index.position_of[name]].text.split("\n")[0] in text
    at = press(at, "Next")
    assert wrong[1].question in words(at)


def test_progress_is_shown_while_it_runs_and_stop_keeps_what_is_done(world):
    world.hold_after = 3
    at = press(limited(choose(page(), "retrieval"), "retrieval", N_FILE), "Run")
    wait_for(lambda: len(current().view.rows) == 3)
    at.run()
    text = words(at)
    for part in ("Retrieving …", "So far:", "The latest questions:", current().view.rows[2].question[:60]):
        assert part in text, part
    assert next(button for button in at.button if button.label == "Run").disabled
    at = press(at, "Stop")
    assert "Stopping after the requests in progress" in words(at)
    world.gate.set()
    at = finished(at)
    assert "Stopped after 3 of 14 questions" in words(at)
    assert len(read_run(current().folder / "fused.run")) == 3
    world.asked.clear()
    at = finished(press(at, "Continue"))
    assert "Done: 14 questions, 3 of them restored." in words(at)
    assert len(world.asked) == 10  # the fourth was under way, and is only scored now


def test_leaving_the_page_and_returning_finds_the_run(world):
    world.gate.clear()
    press(choose(page(), "retrieval"), "Run")
    elsewhere = page()
    assert "Loading the index" in words(elsewhere) or "Retrieving" in words(elsewhere)
    world.gate.set()
    assert "Done: 14 questions." in words(finished(elsewhere))


def test_one_run_at_a_time(world):
    world.gate.clear()
    press(choose(page(), "retrieval"), "Run")
    runs = all_runs(Paths.from_env())
    with pytest.raises(ConfigError, match="ObliQA retrieval is still running"):
        runs.start("retrieval", settings(questions=RULES.question_files[1]))
    at = choose(page(), "answers")
    assert "ObliQA retrieval is running" in words(at)
    assert next(button for button in at.button if button.label == "Run").disabled
    world.gate.set()


def test_a_run_has_an_address_and_is_found_by_another_process(world):
    finished(press(limited(choose(page(), "retrieval"), "retrieval", 4), "Run"))
    run_id = current().run_id
    all_runs.clear()  # as a server that was started again
    text = words(page(run_id))
    assert "Done: 4 questions." in text
    assert "Side by side" in text
    assert f"evaluate?run={run_id}" in text
    for wrong in ("nothing", "../../etc", "uploads"):
        assert "no evaluation" in words(page(wrong))


def test_a_run_that_was_killed_says_so_and_goes_on(world):
    finished(press(limited(choose(page(), "retrieval"), "retrieval", 4), "Run"))
    run = current()
    asked = json.loads((run.folder / "request.json").read_text())
    (run.folder / "request.json").write_text(json.dumps(asked | {"state": "interrupted"}))
    (run.folder / "view.json").unlink()
    all_runs.clear()
    at = page(run.run_id)
    assert "This run was interrupted." in words(at)
    world.asked.clear()
    at = finished(press(at, "Continue"))
    assert "Done: 4 questions, 4 of them restored." in words(at)
    assert world.asked == []


def test_begin_anew_throws_away_what_was_kept(world):
    at = finished(press(limited(choose(page(), "retrieval"), "retrieval", 2), "Run"))
    world.asked.clear()
    at = finished(press(at, "Run from the start"))
    assert "Done: 2 questions." in words(at)
    assert not any(row.restored for row in current().view.rows)


def test_an_index_that_was_rebuilt_is_refused_with_a_way_out(world):
    from ragqa.settings.config import IndexingConfig

    finished(press(limited(choose(page(), "retrieval"), "retrieval", 2), "Run"))
    (world.indexes / "rulebook").unlink()
    changed = IndexingConfig(bm25_k1=2.0)
    build_index("rulebook", RULES.source, indexes=world.indexes, config=changed, encoder=FakeEncoder())
    at = finished(press(limited(choose(page(), "retrieval"), "retrieval", 2), "Run"))
    assert "index_sha256 was" in words(at)
    assert "Done: 2 questions." in words(finished(press(at, "Run from the start")))


def test_a_bug_shows_a_reference_and_no_trace_and_keeps_what_was_done(world, monkeypatch):
    at = choose(page(), "retrieval")
    monkeypatch.setattr(resources, "pipeline", lambda config, paths: 1 / 0)
    text = words(finished(press(at, "Run")))
    assert "Something failed inside ragqa" in text
    assert "ZeroDivisionError" not in text
    assert "Continue" in [button.label for button in at.button]


# PandaChat ------------------------------------------------------------------------------------------------------------


def test_pandachat_builds_its_index_and_writes_a_submission_that_its_check_accepts(world):
    data = write_set(world.data / "panda.json")
    at = choose(page(), "pandachat")
    assert next(box for box in at.selectbox if box.label == "Corpus").options == [
        "pandachat, built first (about a minute)"
    ]
    at = finished(press(at, "Run"))
    text = words(at)
    for part in ("Done: 4 questions.", "4 of 4 (100.0%)", "bge-m3", "TajaKuzman/pandachat-rag-benchmark", "0.579"):
        assert part in text, part
    (file,) = current().folder.glob("submission_*l*.json")
    submission = read_submission(file, load_pandachat_questions(data))
    assert [query for query, _, _ in submission.rows] == list(QUERIES)
    assert "gold" in words(open_question(at, 1))
    at = choose(page(), "pandachat")
    assert next(box for box in at.selectbox if box.label == "Corpus").value == "pandachat"


def test_pandachat_leaves_an_index_of_that_name_alone(world):
    write_set(world.data / "panda.json")
    (world.indexes / "pandachat").symlink_to(world.indexes / "rulebook")
    forget()
    assert "pandachat-2, built first (about a minute)" in str(
        [box.options for box in choose(page(), "pandachat").selectbox]
    )
    assert new_index_name("a", ["a", "a-2"]) == "a-3"


# Answers --------------------------------------------------------------------------------------------------------------


def test_answers_are_scored_beside_published_rows_and_written_for_the_shared_task(world):
    at = limited(choose(page(), "answers"), "answers", 3)
    next(box for box in at.selectbox if box.label == "Generator").select("extractive").run()
    at = finished(press(at, "Run"))
    text = words(at)
    for part in ("Done: 3 questions.", "RePASs", "VRR, GPT-4o", "Chasandras et al. 2025, table 5", "mode script"):
        assert part in text, part
    folder = current().folder
    assert len(read_answers(folder / "answers.json").items) == 3
    row = current().view.rows[1]
    text = words(open_question(at, 2))
    assert row.sentences
    assert row.sentences[0].text in text
    assert row.sentences[0].verdict in text
    assert "Passages" in text


def test_answers_stopped_are_kept_and_not_asked_again(world):
    at = limited(choose(page(), "answers"), "answers", 6)
    at = press(at, "Run")
    wait_for(lambda: current().view.done >= 1 or not current().view.running)
    current().stop()
    at = finished(at)
    done = current().view.done
    world.asked.clear()
    at = finished(press(at, "Continue") if done < 6 else at)
    assert 5 - done <= len(set(world.asked)) <= 6 - done  # one may have been answered, and only be scored now
    assert f"Done: 6 questions{f', {done} of them restored' if done < 6 else ''}." in words(at)


# FanOutQA -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def fanout(world, monkeypatch):
    import ragqa.evaluation.benchmarks.fanoutqa.benchmark as fanoutqa
    from ragqa.evaluation.benchmarks.fanoutqa.instruments import plain_normaliser

    monkeypatch.setattr(fanoutqa, "load_normaliser", lambda *names: plain_normaliser())
    monkeypatch.delenv("FANOUTQA_OPENAI_API_KEY", raising=False)
    page_of = {"pageid": 1, "revid": 11, "title": "Danube", "url": ""}
    items = [
        {"id": f"q{n}", "question": f"What is {n} and {n}?", "necessary_evidence": [page_of], "answer": [n * 2, "end"]}
        for n in (1, 2, 3)
    ]
    (world.data / "dev.json").write_text(json.dumps(items))
    (world.data / "test.json").write_text(json.dumps([{k: v for k, v in i.items() if k != "answer"} for i in items]))
    return world


def given(at):
    """The page with the file of answers chosen."""
    next(box for box in at.selectbox if box.label == "Answers to score").select_index(1).run()
    return at


def test_answers_given_are_scored_and_show_what_matched(fanout):
    lines = [{"id": "q1", "answer": "2 at the end"}, {"id": "q2", "answer": "4"}, {"id": "q3", "answer": "no"}]
    (fanout.data / "answers.jsonl").write_text("\n".join(map(json.dumps, lines)))
    at = finished(press(given(choose(page(), "fanoutqa")), "Run"))
    text = words(at)
    for part in ("Done: 3 questions.", "0.500", "0.333", "this run", "GPT-4o (OpenAI, 2024)", "Not here: "):
        assert part in text, part
    at = open_question(at, 2)
    text = html(at)
    assert "in the answer</span> 4" in text
    assert "missing</span> end" in text


def test_answers_to_the_test_set_are_checked_for_the_leaderboard(fanout):
    (fanout.data / "answers.jsonl").write_text('{"id": "q1", "answer": "2"}\n{"id": "zz", "answer": "3"}\n')
    at = choose(page(), "fanoutqa")
    next(box for box in at.selectbox if box.label == "Questions").select_index(1).run()
    text = words(finished(press(given(at), "Run")))
    assert "The leaderboard would refuse this file." in text
    assert "id 'zz' is no question of this set" in text


def test_a_language_model_is_asked_and_kept(fanout, monkeypatch):
    with OpenAIServer(answer("2 and the end")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        at = finished(press(choose(page(), "fanoutqa"), "Run"))
        assert "Done: 3 questions." in words(at)
        asked = len(server.requests)
        finished(press(at, "Run"))
        assert len(server.requests) == asked == 3
    assert (current().folder / "generations.jsonl").read_text().count("\n") == 3
    at = choose(page(), "fanoutqa")
    next(box for box in at.selectbox if box.label == "Setting").select("evidence-provided").run()
    assert "needs the text of Wikipedia's pages" in words(at)


# Verdicts -------------------------------------------------------------------------------------------------------------


def test_probes_of_the_index_are_judged_and_a_wrong_one_is_looked_into(world):
    at = choose(page(), "verdicts")
    assert [box.label for box in at.selectbox if box.label == "Part of the labelled"] == []
    at.number_input(key="evaluate_n_verdicts").set_value(1).run()
    at = finished(press(at, "Run"))
    text = words(at)
    for part in ("verbatim → supported", "negation → contradicted", "sources disagree", "Right: thresholds", "Done: "):
        assert part in text, part
    wrong = next(row for row in current().view.rows if row.right is False)
    text = html(open_question(at, wrong.number))
    assert wrong.sentences[0].citations in unescape(text)


# Files and texts from outside -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("benchmark", "option", "content", "message"),
    [
        ("retrieval", "questions", b"[{}]", "expected 'Passages' or 'Evidence'"),
        ("retrieval", "questions", b"\x00\xff", "UTF-8"),
        ("retrieval", "questions", b"[" * 100_000, "not valid JSON"),
        ("answers", "questions", b"[]", "no question"),
        ("pandachat", "data", b"[]", "bad.json"),
        ("fanoutqa", "questions", b'{"a": 1}', "bad.json"),
        ("fanoutqa", "generations", b"{}", "expected a text under 'id'"),
    ],
)
def test_a_bad_file_is_refused_in_its_loaders_words_and_not_kept(world, benchmark, option, content, message):
    with pytest.raises(CorpusError, match=message):
        keep_upload(benchmarks()[benchmark].option(option), "bad.json", content, Paths.from_env())
    assert not list((world.folder / "uploads").iterdir())


def test_a_file_that_another_benchmark_has_stays_where_it_is_refused(world):
    content = json.dumps([{"QuestionID": "u1", "Question": "Who must report?", "Passages": [GOLD]}]).encode()
    kept = keep_upload(benchmarks()["retrieval"].option("questions"), "own.json", content, Paths.from_env())
    with pytest.raises(CorpusError):
        keep_upload(benchmarks()["fanoutqa"].option("generations"), "own.json", content, Paths.from_env())
    assert kept.read_bytes() == content


def test_an_uploaded_file_is_chosen_and_stays(world):
    content = json.dumps([{"QuestionID": "u1", "Question": "Who <b>must</b> report?", "Passages": [GOLD]}])
    at = choose(page(), "retrieval")
    at.file_uploader[0].upload("../../e vil<script>.json", content.encode(), "application/json").run()
    at.run()
    assert not at.exception
    box = next(box for box in at.selectbox if box.label == "Questions")
    assert str(box.value).startswith(str(world.folder / "uploads"))
    at = finished(press(at, "Run"))
    assert "Who <b>must</b> report?" in words(open_question(at, 1))
    assert "<b>must" not in html(at)


def test_a_bad_upload_is_told_on_the_page(world):
    at = choose(page(), "retrieval")
    at.file_uploader[0].upload("bad.json", b'[{"Question": "x"}]', "application/json").run()
    assert not at.exception
    assert "expected 'Passages' or 'Evidence', found neither" in words(at)
    assert not next(button for button in at.button if button.label == "Run").disabled


GOLD = {"DocumentID": 1, "PassageID": "1.1.1.(1)", "Passage": "x"}


def test_hostile_questions_are_shown_as_they_are_written(world):
    evil = "<img src=x onerror=alert(1)> [a](javascript:1) $x$ \u202e?"
    items = [{"QuestionID": f"{n}{evil}", "Question": f"{evil} {n}", "Passages": [GOLD]} for n in range(2)]
    (world.data / "evil.json").write_text(json.dumps(items))
    at = choose(page(), "retrieval")
    box = next(box for box in at.selectbox if box.label == "Questions")
    box.select_index(3).run()
    at = open_question(finished(press(at, "Run")), 1)
    assert "<img" not in html(at)
    assert "<img src=x onerror=alert(1)>" in unescape(html(at))
    assert not [one for one in (*at.markdown, *at.caption) if "<img" in one.value]


def test_which_indexes_fit(world):
    paths = Paths.from_env()
    retrieval, answers = benchmarks()["retrieval"], benchmarks()["answers"]
    assert fitting_indexes(retrieval, RULES.question_files[0], paths) == ("rulebook",)
    assert fitting_indexes(retrieval, DEMOS["encyclopedia"].question_files[0], paths) == ()
    bare = world.data / "asked.json"
    bare.write_text(json.dumps([{"QuestionID": "1", "Question": "?"}]))
    assert fitting_indexes(answers, bare, paths) == ("rulebook",)


# Runs and views -------------------------------------------------------------------------------------------------------


def test_a_view_survives_its_file():
    row = Row(1, "q", "?", True, {"R@10": 1.0, "x": None}, (Hit("a:1", "a", 0.5, True),), ("a:1",))
    view = EvaluationView("retrieval", {"questions": "q.json", "limit": 3}, rows=(row,), running=False, done=1, total=1)
    assert view_from_json(view_to_json(view), "view.json") == view
    assert view.complete
    assert not replace(view, failed=1).complete
    with pytest.raises(RecordError, match=r"view\.json is not what an evaluation wrote"):
        view_from_json('{"rows": 3}', "view.json")


def test_a_run_is_known_by_files_and_settings_not_by_how_many_are_asked(tmp_path):
    file = tmp_path / "q.json"
    file.write_text("[]")

    def run_id(questions=file, **given):
        return benchmarks()["retrieval"].run_id(settings(questions=questions, **given))

    first = run_id(limit=3)
    assert first == run_id() == run_id(questions=str(file))
    assert first != run_id(index="other")
    file.write_text("[1]")
    assert first != run_id()
    with pytest.raises(CorpusError, match="cannot be read"):
        run_id(questions=tmp_path / "gone.json")


def counting(seconds=0.0, **changes):
    """A benchmark of six items that adds nothing: what the page needs to know of one, and no more."""

    def load(chosen, paths):
        yield "Counting"
        return Task([Item(n, Question(f"{n}?", str(n))) for n in range(1, 7)], {"what": "counting"}, None)

    def solve(task, item):
        time.sleep(seconds)
        return {"n": item.number}

    given = {
        "name": "counting",
        "title": "Counting",
        "description": "Six numbers.",
        "options": (Option("limit", "Only the first.", "int", decides=False),),
        "load": load,
        "solve": solve,
        "score": lambda task, item, solution: {},
        "row": lambda task, one: Row(one.item.number, "", one.item.question.text, restored=one.restored),
        "figures": lambda task, rows: (),
        "report": lambda task, outcomes: Report(),
        "export": lambda task, outcomes, report, folder: (),
    }
    return Benchmark(**given | changes)


def test_time_left_is_estimated_from_the_new_questions_alone(tmp_path):
    runs = EvaluationRuns(Paths(tmp_path), {"counting": counting(0.1)})
    assert runs.start("counting", {"limit": 2}).wait(20).done == 2
    run, seen = runs.start("counting", {"limit": None}), []
    while run.view.running:
        seen.append((run.view.done, run.view.seconds_left))
        time.sleep(0.01)
    view = run.wait(20)
    assert not view.error, view.error
    assert {left for done, left in seen if done < 4} == {None}
    assert all(0.01 < left < 5 for done, left in seen if 4 <= done < 6 and left is not None)
    assert any(left is not None for _, left in seen)
    assert (view.seconds_left, view.n_restored) == (None, 2)


def test_a_run_is_stopped_while_it_loads(tmp_path):
    reached, gate = threading.Event(), threading.Event()

    def load(chosen, paths):
        yield "Building the first half"
        reached.set()
        assert gate.wait(20)
        yield "Building the second half"
        raise AssertionError

    runs = EvaluationRuns(Paths(tmp_path), {"counting": counting(load=load)})
    run = runs.start("counting", {"limit": None})
    assert reached.wait(20)
    run.stop()
    gate.set()
    view = run.wait(20)
    assert (view.stopped, view.error, view.complete) == (True, "", False)
    assert runs.list()[0].state == "stopped"


def test_what_failed_can_be_tried_again(tmp_path, world, monkeypatch):
    broken = [3]

    def solve(task, item):
        if item.number in broken:
            msg = "no answer"
            raise ConfigError(msg)
        return {}

    monkeypatch.setattr("ragqa.evaluation.catalogue.benchmarks", lambda: {"counting": counting(solve=solve)})
    all_runs.clear()
    at = finished(press(page(), "Run"))
    assert "1 question got no answer or no score" in words(at)
    broken.clear()
    at = finished(press(at, "Continue"))
    assert "Done: 6 questions, 5 of them restored." in words(at)
    assert "Continue" not in [button.label for button in at.button]
    all_runs.clear()


def test_damaged_folders_are_passed_over(world):
    finished(press(limited(choose(page(), "retrieval"), "retrieval", 2), "Run"))
    run = current()
    (world.folder / "junk").mkdir()
    (world.folder / "junk" / "request.json").write_text("{")
    (world.folder / "older").mkdir()
    (world.folder / "older" / "request.json").write_text('{"benchmark": "gone", "settings": {}}')
    assert [one.run_id for one in all_runs(Paths.from_env()).list()] == [run.run_id]
    (run.folder / "view.json").write_text("{}")
    all_runs.clear()
    assert "is not what an evaluation wrote" in words(page(run.run_id))

"""How VRR and LOC came to their answer: in the record, replayed, on the page, kept at Stop; all text escaped."""

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest

from ragqa.generation.loc import LocGenerator
from ragqa.generation.vrr import VrrGenerator
from ragqa.records.record import AnswerRecord
from ragqa.records.store import RecordStore
from ragqa.records.trace_words import plan_words, trace_words
from ragqa.records.view import View, advance, from_record
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.scoring.repass.verifier import RepassVerifier
from ragqa.settings.config import Config, ScoringConfig
from ragqa.types import Answer, Question
from ragqa.types.events.generation import (
    BestSoFar,
    CallsPlanned,
    CandidateScored,
    CandidateWritten,
    EvidenceFound,
    MissingObligation,
    ObligationAnswered,
    ObligationsInserted,
    RemovedSentence,
    SentencesRemoved,
    Token,
)
from ragqa.types.events.pipeline import Answered, Stored
from ragqa.types.scores import RePASs
from ragqa.ui.html.charts import path_chart
from ragqa.ui.html.trace import best_html, score_path, trace_html
from ragqa.ui.state.run import Run
from tests.support.fakes import FakeNli, FakeObligations
from tests.support.helpers import make_pipeline
from tests.support.hostile import hostile_texts
from tests.support.openai_server import OpenAIServer, answer, stall_after
from tests.support.scripted import CONFIG

ACT, SLEEP = "A firm must act at once.", "It must not sleep."
QUESTION = Question("Who must act?")


@contextmanager
def pipeline(*script, store=None, kind=VrrGenerator, **settings):
    """A whole pipeline whose generator asks this script; sentences equal to a source sentence are entailed (.9)."""
    nli = FakeNli()
    scorer = RepassScorer(nli, nli, FakeObligations(), ScoringConfig())
    with OpenAIServer(*script) as server:
        config = replace(CONFIG, base_url=server.base_url, **{"candidates": 2, "rounds": 1, **settings})
        generator = kind(config, RepassVerifier(scorer), "sk-0123456789abcdef")
        whole = Config(generation=replace(config, generator="vrr"))
        yield make_pipeline(config=whole, generator=generator, scorer=scorer, records=store)
        generator.close()


@pytest.fixture
def store(tmp_path):
    return RecordStore(tmp_path / "records.sqlite3")


SCRIPT = (answer(f"{ACT} [1]"), answer("The moon is green [1]."), answer(f"{ACT} [1] {SLEEP} [2]"))


def finished(store, *script, **settings):
    with pipeline(*(script or SCRIPT), store=store, **settings) as whole:
        return list(whole.run(QUESTION))


def folded(events):
    view = View(QUESTION, Config())
    for event in events:
        view = advance(view, event)
    return view


def test_the_trace_is_in_the_record_and_reads_back_equal(store):
    events = finished(store)
    record = store.load(events[-1].record_id)
    kinds = [event.kind for event in record.trace]
    assert kinds == [
        "calls planned",
        "candidate written", "candidate scored", "best so far",
        "candidate written", "candidate scored",
        "sentences removed", "obligations inserted", "best so far",
        "sentences removed",
    ]  # fmt: skip
    assert AnswerRecord.from_json(record.to_json()) == record
    assert record.status == "scored"
    assert [prompt.name for prompt in record.answer.prompts] == ["obligations", "insert"]
    assert all(len(prompt.version) == 12 for prompt in record.answer.prompts)
    assert all(event.scored is None for event in record.trace if isinstance(event, BestSoFar))
    assert "sk-0123456789abcdef" not in record.to_json()


@pytest.mark.long
def test_a_record_replays_what_was_watched(store):
    events = finished(store)
    watched, again = folded(events), from_record(store.load(events[-1].record_id))
    assert again.trace == watched.trace
    assert trace_html(again.trace) == trace_html(watched.trace)
    assert score_path(again.trace) == score_path(watched.trace)
    assert again.best.step == watched.best.step


@pytest.mark.long
def test_a_record_of_the_third_version_has_no_trace(store):
    record = json.loads(store.load(finished(store)[-1].record_id).to_json())
    del record["trace"]
    for name in ("tries", "candidates", "rounds", "max_calls", "parallel_calls", "candidate_temperature", "seed"):
        del record["generation"][name]
    del record["answer"]["prompts"], record["answer"]["is_refusal"]
    old = AnswerRecord.from_json(json.dumps(record | {"schema_version": 3}))
    assert (old.trace, old.answer.prompts, old.answer.is_refusal) == ((), (), False)


def test_the_best_so_far_is_on_disk_before_anybody_is_told(store):
    with pipeline(*SCRIPT, store=store) as whole:
        for event in whole.run(QUESTION):
            if isinstance(event, Stored):
                record = store.load(event.record_id)
                assert record.status == "writing"
                assert record.answer.finish_reason == "unfinished"
                assert record.scored
            if isinstance(event, Answered):
                assert [summary.status for summary in store.list()] == ["answered"]


def test_closing_keeps_the_best_so_far_as_stopped(store):
    with pipeline(answer(f"{ACT} [1]"), stall_after("", 30), store=store) as whole:
        events = whole.run(QUESTION)
        for event in events:
            if isinstance(event, Stored):
                break
        events.close()
    (summary,) = store.list()
    record = store.load(summary.record_id)
    assert (summary.status, record.answer.text) == ("stopped", ACT)
    assert record.scored.paper.repass.entailment == pytest.approx(0.9)
    view = from_record(record)
    assert (view.answer.finish_reason, view.scored) == ("unfinished", record.scored)
    assert view.trace == record.trace


@pytest.mark.long
def test_stop_on_the_page_makes_the_best_so_far_the_answer(store):
    with pipeline(answer(f"{ACT} [1]"), stall_after("", 30), store=store) as whole:
        run = Run(QUESTION, whole.config, lambda: whole)
        while not run.view.best:
            run.wait(0.02)
        run.stop()
        view = run.wait(5)
    assert not view.running
    assert "Stopped at your request" in view.error
    assert (view.answer.text, view.answer.finish_reason) == (ACT, "unfinished")
    assert view.scored.paper.repass == view.best.repass
    assert store.load(view.record_id).status == "stopped"


@pytest.mark.long
def test_the_page_always_knows_the_best_so_far(store):
    view, seen = View(QUESTION, Config()), []
    for event in finished(store):
        view = advance(view, event)
        if view.best:
            seen.append(view.best.repass.composite)
    assert seen == sorted(seen)
    assert view.phase == "Done"
    assert view.answer.text == f"{ACT} {SLEEP}"


@pytest.mark.long
def test_loc_keeps_its_trace_too(store):
    events = finished(store, answer(ACT), answer(SLEEP), answer("Nothing matters."), kind=LocGenerator)
    record = store.load(events[-1].record_id)
    assert {event.kind for event in record.trace} == {"calls planned", "obligation answered", "best so far"}
    html = trace_html(record.trace)
    assert "obligation 1 of 2: covered" in html
    assert ACT in html


# What is drawn ------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_rows_say_what_was_done_and_why(store):
    view = folded(finished(store, answer(f"{ACT} [1] The moon is green [1]."), answer(ACT), *SCRIPT[2:]))
    html = trace_html(view.trace)
    assert "2 obligations in the kept passages. It will take 2 to 3 calls, of a budget of 30" in html
    assert "candidate 1" in html
    assert "candidate 2, best" in html
    assert "insertion 1" in html
    assert "1 of 1 missing obligations covered" in html
    assert "0.10 → 0.90" in html
    assert html.count("<details") == html.count("</details>") == 5


def test_removed_sentences_are_shown_with_the_reason():
    event = SentencesRemoved(2, 0.25, (RemovedSentence("It lies.", 0.75, "It must not lie.", 3),), RePASs(0.5, 0.1, 1))
    html = trace_html([event])
    assert "<del>It lies.</del>" in html
    assert "C 0.750 &gt; 0.250, against [4] It must not lie." in html
    assert "RePASs 0.800" in html


@pytest.mark.long
def test_the_path_begins_with_the_best_candidate_and_follows_every_step(store):
    path = score_path(folded(finished(store)).trace)
    assert [step.step for step in path] == ["verify", "remove 1", "insert 1", "remove 2"]
    assert score_path([]) == ()
    chart = json.loads(path_chart(path).to_json())
    (rows,) = chart["datasets"].values()
    assert len(rows) == 4 * 4
    assert rows[0] == {"step": "verify", "order": 0, "part": "RePASs", "score": path[0].repass.composite}


@pytest.mark.parametrize("text", hostile_texts()[:60])
def test_hostile_text_of_models_and_passages_never_becomes_markup(text):
    score = RePASs(0.1, 0.2, 0.3)
    trace = [
        CandidateWritten(1, text, text, text),
        CandidateScored(1, score),
        SentencesRemoved(1, 0.1, (RemovedSentence(text, 0.9, text, 0),), score, text),
        ObligationsInserted(1, (MissingObligation(text, 0, 0.1, 0.9, covered=True),), text, score, text),
        ObligationAnswered(1, 1, text, 0, 1, text, 0.5, covered=True, note=text),
    ]
    html = trace_html(trace) + best_html(BestSoFar(Answer(text, (), text, text), text, score))
    plain = trace_html([replace(trace[0], text="x", finish_reason="x", note="x"), *trace[1:2]])
    for tag in ("<script", "<img", "<svg", "<iframe", "<a ", "<style", "<meta", "<math", 'onerror="', "<body"):
        assert tag not in html.lower()
        assert tag not in plain.lower()


def test_every_step_has_its_words(store):
    for event in store.load(finished(store)[-1].record_id).trace:
        assert trace_words(event)
    assert trace_words(CandidateWritten(2, "", "failed", "no")) == "Candidate 2 failed"
    assert trace_words(CandidateWritten(2, "No.", "stop", is_refusal=True)) == "Candidate 2 is a refusal"


@pytest.mark.long
def test_tokens_and_traces_do_not_mix(store):
    assert not [event for event in finished(store) if isinstance(event, Token)]


def test_one_is_singular():
    planned = CallsPlanned(1, 1, 100, 50, 9, n_obligations=1)
    assert plan_words(planned).startswith("1 obligation in the kept passages. It will take 1 call, of a budget of 9")
    assert "1 to 2 calls" in plan_words(replace(planned, most=2))
    assert plan_words(replace(planned, n_sub_questions=1)).startswith("At most 1 sub-question.")
    assert trace_words(EvidenceFound(1, (), ())) == "Sub-question 1: found 0 passages, kept 0"
    inserted = ObligationsInserted(1, (MissingObligation("Pay.", 0, 0.1, 0.9, True),), "", RePASs(0.5, 0.5, 0.5))
    assert trace_words(inserted).startswith("Round 1: 1 of 1 missing obligation in")

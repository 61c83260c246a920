"""The page with the generators that ask a language model: their settings, their trace, the best answer at Stop."""

import hashlib
import re
import sys

import pytest

from ragqa.generation.llm.generator import LlmGenerator
from ragqa.generation.local import server as local
from ragqa.generation.vrr import VrrGenerator
from ragqa.models.catalogue import LocalModel
from ragqa.scoring.repass.verifier import RepassVerifier
from ragqa.types import Answer
from tests.support.fakes import FakeGenerator
from tests.support.helpers import make_pipeline
from tests.support.openai_server import OpenAIServer, answer, stall_after
from tests.ui.test_app import WITHOUT_A_MODEL, ask, html, tab, words
from tests.ui.test_app import app as app

pytestmark = pytest.mark.long

ACT, SLEEP = "A firm must act at once.", "It must not sleep."
FIELDS = ("candidates", "rounds", "tries", "max_sub_questions", "depth", "max_calls")


@pytest.fixture
def server(monkeypatch):
    """Starts a scripted server that the environment names."""
    started = []

    def start(*script, **listed):
        running = OpenAIServer(*script, **listed)
        started.append(running)
        monkeypatch.setenv("OPENAI_BASE_URL", running.__enter__().base_url)
        return running

    yield start
    for running in started:
        running.__exit__()


@pytest.fixture
def vrr_app(app, monkeypatch):
    """The page over the fake pipeline with a real VRR generator, made from the settings of the panel."""
    generators = []

    def start():
        import ragqa.ui.state.resources as resources

        at = app()

        def load(config, paths):
            whole = make_pipeline(config=config, records=app.store)
            generators.append(VrrGenerator(config.generation, RepassVerifier(whole.scorer), "sk-test-0123456789"))
            return make_pipeline(config=config, records=app.store, scorer=whole.scorer, generator=generators[-1])

        monkeypatch.setattr(resources, "pipeline", load)
        return at

    yield start
    for generator in generators:
        generator.close()


def shown(at):
    return {name for name in FIELDS if any(slider.key == f"set_{name}" for slider in at.slider)}


def test_each_generator_shows_its_own_fields_and_they_reach_the_settings(app, server):
    server(answer("x"))
    at = app()
    assert shown(at) == set()
    expected = {
        "vrr": {"candidates", "rounds", "max_calls"}, "loc": {"tries", "max_calls"}, "obligations": set(),
        "fan-out-llm": {"max_sub_questions", "depth", "max_calls"}, "fan-out": {"max_sub_questions"},
    }  # fmt: skip
    for generator, fields in expected.items():
        at.radio(key="set_generator").set_value(generator).run()
        assert not at.exception
        assert shown(at) == fields
    at.radio(key="set_generator").set_value("vrr").run()
    at.slider(key="set_candidates").set_value(2)
    at.slider(key="set_max_calls").set_value(9).run()
    config = ask(at).session_state["run"].view.config.generation
    assert (config.generator, config.candidates, config.max_calls, config.tries) == ("vrr", 2, 9, 3)


def test_without_a_language_model_only_the_others_are_offered(app):
    (radio,) = [radio for radio in app().radio if radio.label == "Generator"]
    assert radio.options == WITHOUT_A_MODEL


def test_a_finished_vrr_answer_shows_plan_candidates_rounds_and_path(vrr_app, server):
    server(answer(f"{ACT} [1]"), answer("The moon is green [1]."), answer(f"{ACT} [1] {SLEEP} [2]"))
    at = vrr_app()
    at.radio(key="set_generator").set_value("vrr").run()
    at.slider(key="set_candidates").set_value(2)
    at.slider(key="set_rounds").set_value(1).run()
    text = words(ask(at)) + tab(at, "steps")
    for part in ("It will take 2 to 3 calls", "candidate 1", "removal 1",
                 "insertion 1", "Written by VRR, verified and refined with RePASs", SLEEP):  # fmt: skip
        assert part in text, part
    assert at.get("arrow_vega_lite_chart") or at.get("vega_lite_chart")


def test_while_it_runs_the_best_so_far_is_shown_and_stop_keeps_it(vrr_app, server):
    server(answer(f"{ACT} [1]"), stall_after("", 30))
    at = vrr_app()
    at.radio(key="set_generator").set_value("vrr").run()
    at.text_area(key="question").set_value("Who must act?")
    next(button for button in at.button if button.label == "Ask").click().run()
    run = at.session_state["run"]
    while not run.view.best:
        run.wait(0.02)
    at.run()
    assert not at.exception
    text = tab(at, "steps")
    assert "best so far" in text
    assert re.search(r"candidate \d, best", text)
    assert ACT in text
    at.button(key="stop").click().run()
    run.wait(5)
    at.run()
    assert not at.exception
    text = words(at)
    assert "Stopped at your request" in text
    assert "The best answer when the work stopped, after candidate" in text
    assert "RePASs" in text
    assert [summary.status for summary in run_records(at)] == ["stopped"]


def run_records(at):
    import ragqa.ui.state.resources as resources

    return resources.record_store(None).list()


def test_the_servers_models_are_offered_and_the_chosen_one_is_asked(app, server):
    server(answer("A firm must act [1]."), models=("tiny", "large"))
    at = app()
    at.radio(key="set_generator").set_value("llm").run()
    (choice,) = [box for box in at.selectbox if box.label == "Model"]
    assert choice.options[1:] == ["large", "tiny"]
    choice.set_value("tiny").run()
    at = ask(at)
    assert at.session_state["run"].view.config.generation.model == "tiny"


def test_who_writes_stands_beside_the_box_and_is_chosen_there(app, server):
    assert "writer" not in app().session_state
    server(models=["small", "large"])
    at = app()
    choice = at.selectbox(key="writer")
    assert "Quoted, no language model" in choice.options
    assert "Written by large" in choice.options
    assert "Written by gpt-4o-mini, not listed by the server" in choice.options
    choice.select("large").run()
    assert not at.exception
    assert at.radio(key="set_generator").value == "llm"
    assert at.selectbox(key="set_model").value == "large"
    assert at.selectbox(key="writer").value == "large"
    at.selectbox(key="writer").select("").run()
    assert at.radio(key="set_generator").value == "direct"


def test_where_no_models_are_listed_the_configured_one_stays(app, server):
    server(answer("A firm must act [1]."))
    at = app()
    at.radio(key="set_generator").set_value("llm").run()
    (choice,) = [box for box in at.selectbox if box.label == "Model"]
    assert choice.options == [choice.value]
    assert not at.exception


@pytest.fixture
def local_model(monkeypatch, tmp_path):
    """A local model that is there, and a scripted process in place of the one that would run it."""
    weights = b"GGUF weights"
    model = LocalModel("tiny", "Tiny", "MIT", "tiny.gguf", len(weights), hashlib.sha256(weights).hexdigest(), ())
    monkeypatch.setattr("ragqa.models.catalogue.LOCAL_MODELS", (model,))
    monkeypatch.setattr(local, "LOCAL_MODELS", (model,))
    for module in ("ragqa.models.catalogue", "ragqa.generation.local.server"):
        monkeypatch.setattr(f"{module}.has_library", lambda: True)
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "models").mkdir(parents=True)
    (tmp_path / "home" / "models" / "tiny.gguf").write_bytes(weights)
    host = local.Host((sys.executable, "-m", "tests.support.local_child", "answer"))
    monkeypatch.setattr(local, "HOST", host)
    yield host
    host.stop()


def test_a_local_model_is_offered_without_any_server_and_writes_the_answer(app, monkeypatch, local_model):
    import ragqa.ui.state.resources as resources

    at = app()
    assert "No language model is configured" not in words(at)
    monkeypatch.setattr(resources, "pipeline", lambda config, paths: make_pipeline(
        config=config, records=app.store, generator=LlmGenerator(config.generation)
    ))  # fmt: skip
    assert at.radio(key="set_generator").value == "direct"
    at.radio(key="set_generator").set_value("llm").run()
    (choice,) = [box for box in at.selectbox if box.label == "Model"]
    assert (choice.options, choice.value) == (["tiny (local model)"], "tiny (local model)")
    assert "no key, no network" in words(at)
    assert local_model.pid is None
    at = ask(at)
    assert not at.exception
    view = at.session_state["run"].view
    assert (view.config.generation.local_model, view.answer.model) == ("tiny", "tiny")
    assert view.seconds["first words"] > 0
    assert "first words" in tab(at, "steps")


def test_a_local_model_stands_beside_those_of_the_server(app, server, local_model):
    server(answer("A firm must act [1]."), models=("large",))
    at = app()
    at.radio(key="set_generator").set_value("llm").run()
    (choice,) = [box for box in at.selectbox if box.label == "Model"]
    assert choice.options[1:] == ["large", "tiny (local model)"]
    choice.set_value("tiny (local model)").run()
    assert ask(at).session_state["run"].view.config.generation.local_model == "tiny"


def test_a_refusal_is_shown_with_its_reasons_and_nothing_green_and_may_be_quoted_anyway(app):
    text = "The corpus does not answer the question."
    refusal = Answer(text, (), "direct", "", note="Probability of an answer 0.10 (0.50 needed).", is_refusal=True)
    at = ask(app(generator=FakeGenerator(refusal)))
    assert text in words(at)
    (why,) = re.findall("<details[^>]*><summary>Why it is not found</summary>(.*?)</details>", html(at))[:1]
    assert why == "Probability of an answer 0.10 (0.50 needed)."
    assert "rq-sentence rq-u-good" not in html(at)
    assert not at.session_state["run"].view.config.generation.quote_anyway
    at.button(key="quote_now").click().run()
    assert at.toggle(key="set_quote_anyway").value
    assert at.session_state["run"].view.config.generation.quote_anyway


def test_a_vague_question_is_answered_and_asked_back(app):
    vague = Answer("Fees are due.", (), "direct", "", choices=("Fees, under “A”?", "Fees, under “B”?"))
    at = ask(app(generator=FakeGenerator(vague)))
    assert any("Which one do you mean?" in one.value for one in at.caption)
    assert "<b>The question can mean several things</b>" in html(at)
    assert "<b>Answered</b>" not in html(at)
    assert at.button(key="next_0").label == "Fees, under “A”?"
    at.button(key="next_1").click().run()
    assert at.session_state["run"].view.question == "Fees, under “B”?"


@pytest.mark.parametrize("allowed", ["", "large, small"])
def test_a_model_named_in_a_link_or_sent_by_hand_is_one_of_those_offered(app, server, monkeypatch, allowed):
    running = server(answer("x"), models=("large", "dear"))
    monkeypatch.setenv("RAGQA_MODEL", "small")
    monkeypatch.setenv("RAGQA_LANGUAGE_MODELS", allowed)
    at = app()
    (box,) = (box for box in at.selectbox if box.key == "set_model")
    assert box.options == (["small", "large"] if allowed else ["small", "dear", "large"])
    box.options.append("o1-pro")  # as a browser would send it that somebody wrote
    box.set_value("o1-pro").run()
    assert at.session_state["settings"]["model"] == "small"
    at.query_params = {"q": "Who must act?", "generator": "llm", "model": "o1-pro"}
    at.run()
    assert not at.exception
    assert "asks for the model 'o1-pro', which this server does not offer" in words(at)
    assert "ask_link" not in [button.key for button in at.button]
    assert not [one for one in running.requests if one.path.endswith("completions")]

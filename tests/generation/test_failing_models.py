"""Every generator of a language model against what small models do: ramble, ignore the format, loop, answer in another
language, copy the prompt. What a reader gets is never that, and always something or a reason."""

import json

import pytest

from ragqa.generation.fanout.model import FanOutLlmGenerator
from ragqa.generation.llm.cleanup import Repetition, unwrapped
from ragqa.generation.llm.generator import LlmGenerator, ObligationsGenerator
from ragqa.generation.loc import LocGenerator
from ragqa.generation.prompts import load_prompt
from ragqa.generation.vrr import VrrGenerator
from ragqa.settings.config import Config, FilteringConfig, GenerationConfig
from ragqa.types import Question
from ragqa.types.events.pipeline import Answered
from tests.support.fan_out_world import COMPARISON, parts
from tests.support.helpers import make_pipeline
from tests.support.openai_server import OpenAIServer, answer
from tests.support.scripted import CONFIG, ask

SAID = "A Firm must keep records [1]."
FOREIGN = "Podjetje mora hraniti vse evidence, ki se nanašajo na stranke, najmanj šest let po koncu razmerja [1]."
RULE = load_prompt("answer").instructions.splitlines()[3].removeprefix("- ").split(". ")[0] + "."
RAMBLE = " ".join(f"There is also thing {n}, of which much could be said if one only wanted to." for n in range(60))


def copied(request):
    """The prompt back again, frames, rules and question, and the answer after it."""
    return f"{request.body['messages'][1]['content']}\n\n{request.prompt[:1500]}\n\nAnswer: {SAID}"


def loops(request):
    return f"{SAID} " * 100


FAILURES = {
    "rambles": RAMBLE,
    "markdown": f"Sure! Here is the answer:\n\n```text\n## Answer\n\n* **Duty:** {SAID}\n* {SAID}\n```",
    "json": json.dumps({"answer": SAID}),
    "loops": loops,
    "characters": "A Firm must act [1]. " + "=-" * 500,
    "foreign": FOREIGN,
    "copies": copied,
    "question": f"What must a Firm do?\n{SAID}",
    "rules in other words": f'The verb is "must" and every condition, restriction, exception, amount and time limit '
    f"are not specified. {SAID}",
    "remark": f'To answer the question "What must a Firm do?", we need to look at the passages.\n\n{SAID}',
    "a part of the question": f"What must the Firm do?\n{SAID}\nThe corpus does not say.",
    "nothing but the question": "What must a Firm do?",
    "blank": " \n\n ",
}
LLM = {"llm": LlmGenerator, "obligations": ObligationsGenerator, "loc": LocGenerator, "vrr": VrrGenerator}


class Plain(LlmGenerator):
    """As `LlmGenerator`, made as those that verify are."""

    def __init__(self, config, _verifier, api_key=None, prompts=None):
        super().__init__(config, api_key, prompts)


def answered(name, reply="", behave=None):
    """The answer of this generator where the model always writes that, or the server always behaves so."""
    behave = behave or answer(reply)
    settings = {"max_tokens": 200, "tries": 2, "candidates": 2, "rounds": 1, "max_calls": 6}
    if name != "fan-out-llm":
        return ask({**LLM, "llm": Plain}[name], behave, **settings).answer
    with OpenAIServer(behave) as server:
        generation = GenerationConfig(
            generator="fan-out-llm", model=CONFIG.model, base_url=server.base_url, max_tokens=200, max_calls=6
        )
        generator = FanOutLlmGenerator(generation, FilteringConfig(), "sk-test-0123456789")
        pipeline = make_pipeline(**parts(Config(generation=generation), generator, None))
        (found,) = [one.answer for one in pipeline.run(Question(COMPARISON)) if isinstance(one, Answered)]
        generator.close()
        return found


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("name", [*LLM, "fan-out-llm"])
def test_no_failure_of_a_model_reaches_the_reader(name, failure):
    found = answered(name, FAILURES[failure])
    texts = [sentence.text for sentence in found.sentences]
    assert len(texts) == len(set(texts))
    assert all(found.text[one.start : one.end] == one.text for one in found.sentences)
    assert not any(part in found.text for part in ("<passage", "</", "```", "Sure!", "{", "=-=-=-=-=-=-"))
    assert "You help compliance analysts" not in found.text
    assert len(found.text) < 8 * 200 * 6
    assert texts or found.finish_reason in {"empty", "stop", "interrupted"}
    assert found.note or failure in {"json", "markdown", "rambles"} or texts


def test_a_loop_is_stopped_said_and_shown_once():
    found = answered("llm", loops)
    assert [one.text for one in found.sentences] == ["A Firm must keep records."]
    assert found.finish_reason == "length"
    assert "began to repeat itself" in found.note
    assert "that repeat another" in found.note
    assert len(found.raw) < 1_000


def test_what_was_copied_from_the_prompt_is_left_out_and_the_answer_stays():
    found = answered("llm", f"{RULE} What must a Firm do? {SAID} A Firm must keep records [2].")
    assert [(one.text, one.citations) for one in found.sentences] == [("A Firm must keep records.", (1, 2))]
    assert found.raw.startswith(RULE)
    assert "2 that repeat the question" in found.note


@pytest.mark.parametrize(
    ("name", "failure"),
    [("loc", "rules in other words"), ("llm", "remark"), ("llm", "a part of the question"), ("loc", "remark")],
)
def test_what_is_about_the_task_is_left_out_and_the_answer_stays(name, failure):
    found = answered(name, FAILURES[failure])
    assert [one.text for one in found.sentences] == ["A Firm must keep records."]


def test_that_the_corpus_is_silent_of_a_part_is_said_in_the_note():
    found = answered("llm", f"{SAID} The corpus does not say.")
    assert [one.text for one in found.sentences] == ["A Firm must keep records."]
    assert "The model says that the corpus does not answer a part of the question." in found.note
    assert answered("llm", "The corpus does not say.").is_refusal


def test_a_sentence_that_the_limit_cut_off_is_left_out_where_there_is_another():
    found = answered("llm", answer_at_the_limit := f"{SAID} It must keep them for 1")
    assert found.text == answer_at_the_limit.replace(" [1]", "")  # the server says that this is all
    found = answered("llm", behave=answer(answer_at_the_limit, finish_reason="length"))
    assert found.text == "A Firm must keep records."
    assert "last sentence was cut off" in found.note
    assert answered("llm", behave=answer("It must keep them for 1", finish_reason="length")).text


def test_a_correction_that_gives_the_prompt_back_leaves_the_answer():
    """RePASs would prefer it: a copy of the passages is entailed by them and covers every obligation."""
    given_back = answer(lambda request: request.body["messages"][1]["content"])
    done = ask(VrrGenerator, answer(SAID), given_back, candidates=1, rounds=1)
    assert len(done.requests) == 2
    assert done.answer.text == "A Firm must keep records."
    assert "gave no corrected answer" in done.answer.note


def test_another_language_than_the_questions_is_said():
    assert "another language than the question's (sl)" in answered("llm", FOREIGN).note
    assert "another language" not in answered("llm", SAID).note


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ('{"answer": "Yes [1]."}', "Yes [1]."),
        ('```json\n{"answer": "Yes [1]."}\n```', "Yes [1]."),
        ('{"answer": 1}', '{"answer": 1}'),
        ('{"sub_questions": []}', '{"sub_questions": []}'),
        ("**Answer:** Yes.", "Yes."),
        ('<passage-0123456789ab number="1">\nYes.\n</passage-0123456789ab>', "Yes.\n"),
        ("The passage is:\n\n<passage-21c56ad37c6>\nThe passage is:\n</passage-21c56ad37c6>", ""),  # a real one's
        (
            "The first to stand on it is:\n\nThe first to stand on it is:\n\nThe first to stand on it is",
            "The first to stand on it is:\n\n",
        ),
        ("a < b and <b>c</b>", "a < b and <b>c</b>"),
        (
            "To answer this question, you must comply with the following obligation:\nA Firm must act.",
            "A Firm must act.",
        ),
        ("To answer the question of solvency, a firm must show: (a) x", None),
        ("{" * 100_000, "{" * 100_000),
    ],
)
def test_wrapping_is_taken_off_and_nothing_else(raw, text):
    assert unwrapped(raw) == (raw if text is None else text)


@pytest.mark.parametrize(
    "said", ["Sure, a Firm may do so.", "Certainly not.", "Of course a Firm must act.", "Here a Firm must act."]
)
def test_an_answer_that_begins_as_a_remark_does_stays(said):
    assert answered("llm", said).text == said


def test_a_list_of_like_sentences_is_no_loop():
    watched = Repetition()
    text = "".join(
        f"A Firm of class {n} must keep its records for at least {n} years after the end. " for n in range(60)
    )
    assert not any(watched.add(text[at : at + 7]) for at in range(0, len(text), 7))
    assert any(watched.add(piece) for piece in ["A Firm must act. "] * 60)

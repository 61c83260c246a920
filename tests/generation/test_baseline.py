"""The generators beside extractive, LLM, LOC and VRR: the passages themselves, and the LLM over obligations only."""

from ragqa.generation.baseline import BaselineGenerator
from ragqa.generation.llm.generator import ObligationsGenerator
from ragqa.generation.llm.reply import REFUSAL_NOTE
from ragqa.types.events.generation import Token
from tests.support.fakes import passage
from tests.support.openai_server import answer
from tests.support.scripted import QUESTION, RECORDS, ask
from tests.support.streams import drain


def baseline(passages):
    return drain(BaselineGenerator().stream(QUESTION, passages))


def test_baseline_is_every_sentence_of_every_passage_verbatim_and_cited():
    passages = [passage("1:1", "A Firm must act. It may rest."), passage("2:1", "The sky is blue.")]
    tokens, found = baseline(passages)
    assert [(s.text, s.citations) for s in found.sentences] == [
        ("A Firm must act.", (1,)),
        ("It may rest.", (1,)),
        ("The sky is blue.", (2,)),
    ]
    assert found.text == "A Firm must act. It may rest.\n\nThe sky is blue."
    assert all(found.text[s.start : s.end] == s.text for s in found.sentences)
    assert [token.text for token in tokens] == ["A Firm must act. [1] It may rest. [1]\n\n", "The sky is blue. [2]"]
    assert "".join(token.text for token in tokens) == found.raw
    assert (found.model, found.finish_reason, found.prompts) == ("", "stop", ())
    assert "no language model" in found.generator


def test_baseline_without_passages_or_text_is_empty_with_the_reason():
    assert baseline([])[1].finish_reason == "empty"
    tokens, found = baseline([passage("1:1", " ")])
    assert (tokens, found.finish_reason) == ([], "empty")
    assert "hold no text" in found.note


def test_baseline_takes_white_space_and_control_characters_out():
    _, found = baseline([passage("1:1", "A Firm\x00 must\n  act.\nIt may rest.")])
    assert [sentence.text for sentence in found.sentences] == ["A Firm must act.", "It may rest."]


def obligations(*script, **settings):
    return ask(ObligationsGenerator, *script, **settings)


def test_obligations_sends_only_the_obligations_and_a_passage_without_any_as_it_is():
    passages = [
        passage("1:1", f"{RECORDS} The sky is blue. It must be so.", title="Rules"),
        passage("2:1", "Grass is green.", title="Other"),
    ]
    done = obligations(answer("A Firm keeps records [1]. Grass is green [2]."), passages=passages)
    (request,) = done.requests
    assert f"Source: Rules\n{RECORDS}\nIt must be so.\n</passage-" in request.prompt
    assert "blue" not in request.prompt
    assert "Grass is green." in request.prompt
    assert [sentence.citations for sentence in done.answer.sentences] == [(1,), (2,)]
    assert all(isinstance(event, Token) for event in done.events)
    assert [prompt.name for prompt in done.answer.prompts] == ["obligations"]


def test_obligations_prompt_is_its_own():
    done = obligations(answer("Yes [1]."))
    assert "from the obligations sent with it" in done.requests[0].body["messages"][0]["content"]


def test_a_refusal_is_recognised_and_explained():
    done = obligations(answer("The corpus does not say."))
    assert done.answer.is_refusal
    assert done.answer.note == REFUSAL_NOTE
    assert "C near 1" in REFUSAL_NOTE


def test_the_seed_is_sent_where_there_is_one():
    assert obligations(answer("Yes [1]."), seed=3).requests[0].body["seed"] == 3
    assert "seed" not in obligations(answer("Yes [1].")).requests[0].body

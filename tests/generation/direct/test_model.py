"""A language model and the sentences that seem to answer: what it is sent, when it is not asked, what if it refuses."""

from __future__ import annotations

import pytest

from ragqa.generation.direct.model import QUOTED_AFTER, QUOTED_INSTEAD, DirectLlmGenerator
from ragqa.settings.config import FilteringConfig, GenerationConfig
from ragqa.types import Question
from ragqa.types.events.generation import PassagesAdded, Token
from ragqa.types.events.pipeline import Selected
from tests.generation.direct.test_direct import DENSITY, MELTING, MELTS, TITANIC, Encoder, ranked
from tests.support.openai_server import OpenAIServer, answer
from tests.support.streams import drain


@pytest.fixture
def server():
    with OpenAIServer() as running:
        yield running


def asked(server, question, ranking, filtering=None, **config):
    config = GenerationConfig(generator="llm", base_url=server.base_url, **config)
    generator = DirectLlmGenerator(config, Encoder(), filtering or FilteringConfig(0.0, 1.0), "sk-1")
    events, (found, selection) = drain(generator.stream_searching(Question(question), ranking, None))
    generator.close()
    assert [event for event in events if isinstance(event, Selected)] == [Selected(selection)]
    return events, found, selection


def test_the_model_is_sent_what_the_filter_dropped_although_it_answers(server):
    server.script = (answer("Gold melts at 1,064 °C [2]."),)
    only_the_first = FilteringConfig(0.99, 1.0)
    events, found, selection = asked(server, MELTING, ranked(DENSITY, MELTS), only_the_first)
    assert [event.passage_ids for event in events if isinstance(event, PassagesAdded)] == [("2:1",)]
    assert [passage.text for passage in selection.passages] == [DENSITY, MELTS]
    assert MELTS in server.requests[0].prompt
    assert (found.text, found.sentences[0].citations, found.generator) == ("Gold melts at 1,064 °C.", (2,), "LLM")
    assert "".join(event.text for event in events if isinstance(event, Token)) == "Gold melts at 1,064 °C [2]."


def test_what_the_passages_do_not_seem_to_answer_is_refused_without_asking_the_model(server):
    events, found, _ = asked(server, "Who won the football World Cup?", ranked(DENSITY))
    assert found.is_refusal
    assert found.text.startswith("The corpus does not answer the question.")
    assert not server.requests
    assert any(isinstance(event, Token) for event in events)


def test_a_question_in_another_language_goes_to_the_model_which_reads_it(server):
    server.script = (answer("Nihče ne ve [1]."),)
    _, found, _ = asked(server, "Kdo je zmagal na svetovnem prvenstvu v nogometu leta 1998?", ranked(DENSITY))
    assert (found.text, found.is_refusal) == ("Nihče ne ve.", False)


def test_the_reader_may_have_it_asked_all_the_same(server):
    server.script = (answer("Nobody knows [1]."),)
    _, found, _ = asked(server, "Who won the football World Cup?", ranked(DENSITY), quote_anyway=True)
    assert (found.text, found.is_refusal) == ("Nobody knows.", False)


def test_where_the_model_finds_nothing_the_sentences_that_answer_are_quoted_and_the_note_says_so(server):
    server.script = (answer("The corpus does not say."),)
    _, found, selection = asked(server, MELTING, ranked(f"{DENSITY} {MELTS}"))
    assert (found.is_refusal, found.note, found.raw) == (False, QUOTED_INSTEAD, "The corpus does not say.")
    assert found.sentences[0].text == MELTS
    assert found.sentences[0].citations == (1,)
    assert MELTS in selection.passages[0].text


def test_the_sentence_that_answers_follows_where_the_model_does_not_tell_it(server):
    server.script = (answer("It is hot [1]."),)
    _, found, _ = asked(server, MELTING, ranked(f"{DENSITY} {MELTS}"))
    assert (found.text, found.raw, found.note) == (f"It is hot. {MELTS}", "It is hot [1].", QUOTED_AFTER)
    assert [found.text[one.start : one.end] for one in found.sentences] == ["It is hot.", MELTS]
    assert [one.citations for one in found.sentences] == [(1,), (1,)]


def test_evidence_of_the_quotation_is_no_answer_to_a_part_that_nothing_answers(server):
    server.script = (answer("Long ago [1]."),)
    question = "When was it that the Titanic sank, and how much does a ticket for the Eiffel Tower cost?"
    beside = "When the Titanic sank on 15 April 1912, it was a calm night."
    _, found, _ = asked(server, question, ranked(f"{TITANIC[1]} {beside}"))
    assert [one.text for one in found.sentences] == ["Long ago.", TITANIC[1]]

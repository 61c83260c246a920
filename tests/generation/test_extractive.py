"""The answer without a language model: which sentences are quoted, in which order, cited how."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragqa.generation.extractive import FALLBACK_SENTENCES, MIN_WORDS, RELEVANCE_RATIO, ExtractiveGenerator
from ragqa.infra.cleaning import without_controls
from ragqa.settings.config import GenerationConfig
from ragqa.types import ModelInfo, Question
from ragqa.types.events.generation import Token
from tests.support.fakes import FakeEncoder, FakeObligations, passage
from tests.support.streams import drain

QUESTION = Question("What must a firm do?")


class CosineEncoder:
    """A plane in which the question lies at (1, 0) and each text at the cosine given for it, 0 where none is."""

    info = ModelInfo("cosines", "0" * 64)

    def __init__(self, cosines):
        self.cosines = cosines
        self.calls = []

    def encode(self, texts):
        self.calls.append(list(texts))
        values = [1.0 if text == QUESTION.text else self.cosines.get(text, 0.0) for text in texts]
        return np.array([[cosine, np.sqrt(1 - cosine**2)] for cosine in values], dtype=np.float32)

    def encode_query(self, text):
        return self.encode([text])


def run(generator, passages, question=QUESTION):
    tokens, answer = drain(generator.stream(question, passages))
    return tokens, checked(tokens, answer)


def checked(tokens, answer):
    assert all(isinstance(token, Token) for token in tokens)
    assert answer.raw == "".join(token.text for token in tokens)
    position = 0
    for sentence in answer.sentences:
        assert answer.text[sentence.start : sentence.end] == sentence.text
        assert sentence.start >= position
        assert answer.text[position : sentence.start].strip() == ""
        position = sentence.end
    assert position == len(answer.text)
    assert (answer.generator, answer.model) == ("extractive, no language model", "")
    return answer


def quote(cosines, *texts, max_sentences=12):
    """The answer from passages of these texts, where sentences have these cosines with the question."""
    generator = ExtractiveGenerator(
        FakeObligations(), CosineEncoder(cosines), GenerationConfig(max_sentences=max_sentences)
    )
    return run(generator, [passage(f"{number}:1", text) for number, text in enumerate(texts, start=1)])[1]


def pairs(answer):
    return [(sentence.text, sentence.citations) for sentence in answer.sentences]


# Obligations --------------------------------------------------------------------------------------------------------


def test_obligations_are_quoted_by_relevance_each_with_its_passage():
    answer = quote(
        {"A firm must report.": 0.6, "A firm must act.": 0.9, "Nobody must wait.": 0.7, "The sky is blue.": 1.0},
        "A firm must report. The sky is blue.",
        "A firm must act. Nobody must wait.",
    )
    assert pairs(answer) == [("A firm must act.", (2,)), ("Nobody must wait.", (2,)), ("A firm must report.", (1,))]
    assert answer.text == "A firm must act. Nobody must wait. A firm must report."
    assert answer.raw == "A firm must act. [2] Nobody must wait. [2] A firm must report. [1] "
    assert (answer.finish_reason, answer.note, answer.rejected_citations) == ("stop", "", ())


def test_one_token_per_sentence():
    generator = ExtractiveGenerator(FakeObligations(), CosineEncoder({}), GenerationConfig())
    tokens, answer = run(generator, [passage("1:1", "A firm must act. It must report.")])
    assert [token.text for token in tokens] == ["A firm must act. [1] ", "It must report. [1] "]
    assert answer.text == "A firm must act. It must report."


def test_ties_keep_the_order_of_the_passages():
    texts = ["B must act. A must act.", "C must act."]
    answer = quote(dict.fromkeys(["A must act.", "B must act.", "C must act."], 0.5), *texts)
    assert [sentence.text for sentence in answer.sentences] == ["B must act.", "A must act.", "C must act."]


def test_sentences_far_below_the_best_are_left_out_and_counted():
    best = 0.8
    cosines = {
        "A must act.": best,
        "B must act.": RELEVANCE_RATIO * best + 0.01,
        "C must act.": RELEVANCE_RATIO * best - 0.01,
    }
    answer = quote(cosines, "C must act. B must act. A must act.")
    assert [sentence.text for sentence in answer.sentences] == ["A must act.", "B must act."]
    assert answer.note.startswith("2 of 3 obligations are quoted")


def test_the_limit_cuts_the_least_relevant():
    answer = quote(
        {"A must act.": 0.5, "B must act.": 0.7, "C must act.": 0.6},
        "A must act. B must act. C must act.",
        max_sentences=2,
    )
    assert [sentence.text for sentence in answer.sentences] == ["B must act.", "C must act."]
    assert answer.note.startswith("2 of 3 obligations")


def test_where_nothing_is_relevant_only_the_least_bad_is_quoted():
    answer = quote({"A must act.": -0.3, "B must act.": -0.2}, "A must act. B must act.")
    assert pairs(answer) == [("B must act.", (1,))]
    both = quote({}, "A must act. B must act.")  # all at cosine 0
    assert len(both.sentences) == 2


def test_only_obligations_are_encoded_and_all_at_once():
    encoder = CosineEncoder({})
    run(
        ExtractiveGenerator(FakeObligations(), encoder, GenerationConfig()),
        [passage("1:1", "A firm must act. The sky is blue."), passage("1:2", "B must rest.")],
    )
    assert encoder.calls == [["A firm must act.", "B must rest."], [QUESTION.text]]


# Repeated sentences -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "again",
    [
        "A firm must act.",
        "a  FIRM\nmust act",
        "(a) A firm must act;",
        "3.2.1. A firm must act!",
        "(1) (a) A firm must act.",
    ],
)
def test_near_identical_sentences_are_quoted_once_and_cite_every_passage(again):
    answer = quote({}, "A firm must act.", "B must rest.", again)
    assert pairs(answer) == [("A firm must act.", (1, 3)), ("B must rest.", (2,))]
    assert answer.raw.startswith("A firm must act. [1][3] ")


def test_a_sentence_twice_in_one_passage_is_cited_once():
    assert pairs(quote({}, "A firm must act. A firm must act.")) == [("A firm must act.", (1,))]


@pytest.mark.parametrize("other", ["A firm must not act.", "A firm must act within 10 days.", "The firm must act."])
def test_sentences_that_differ_in_a_word_are_different_rules(other):
    assert len(quote({}, "A firm must act.", other).sentences) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [("The fee must be $100.", "The fee must be €100."), ("The limit must be 5%.", "The limit must be 5.")],
)
def test_sentences_that_differ_in_a_sign_are_different_rules_each_cited_from_its_own_passage(one, other):
    assert pairs(quote({}, one, other)) == [(one, (1,)), (other, (2,))]


def test_sentences_without_words_are_not_thrown_together():
    class All(FakeObligations):
        def classify(self, sentences):
            return [True] * len(sentences)

    generator = ExtractiveGenerator(All(), CosineEncoder({}), GenerationConfig())
    _, answer = run(generator, [passage("1:1", "…!"), passage("1:2", "***")])
    assert [sentence.text for sentence in answer.sentences] == ["…!", "***"]


# Text ---------------------------------------------------------------------------------------------------------------


def test_white_space_inside_a_sentence_becomes_single_spaces():
    answer = quote({}, "A firm must:\n(a)\tkeep records;\n\n(b)   report; and\u00a0then\n(c) act.")
    assert answer.text == "A firm must: (a) keep records; (b) report; and then (c) act."
    assert len(answer.sentences) == 1


def test_a_sentence_without_final_punctuation_ends_its_line():
    answer = quote({"A must act": 0.9, "B must act:": 0.8, "C must act.": 0.7, 'D must "act."': 0.6},
                   "A must act", "B must act:", "C must act.", 'D must "act."')  # fmt: skip
    assert answer.text == 'A must act\nB must act:\nC must act. D must "act."'
    assert answer.raw == 'A must act [1]\nB must act: [2]\nC must act. [3] D must "act." [4] '


def test_brackets_of_the_rulebook_are_text_not_citations():
    answer = quote({}, "A firm must act [2] as [sic] said.")
    assert pairs(answer) == [("A firm must act [2] as [sic] said.", (1,))]


def test_control_characters_and_lone_surrogates_do_not_reach_the_answer():
    answer = quote({}, "A firm\x00 must\x1b act \ud800.")
    assert answer.text == "A firm must act \ufffd."
    answer.raw.encode()


# Passages that oblige nobody ----------------------------------------------------------------------------------------


def test_without_obligations_the_most_relevant_sentences_are_quoted_and_the_note_says_so():
    cosines = {"The lake is 183 m high.": 0.9, "It lies in the north.": 0.6, "Fish live in it.": 0.1}
    answer = quote(cosines, "Geography. It lies in the north. Fish live in it.", "The lake is 183 m high.")
    assert pairs(answer) == [("The lake is 183 m high.", (2,)), ("It lies in the north.", (1,))]
    assert "No sentence" in answer.note
    assert "obligation" in answer.note
    assert answer.finish_reason == "stop"


@pytest.mark.parametrize(("max_sentences", "expected"), [(100, FALLBACK_SENTENCES), (2, 2)])
def test_the_fallback_is_short(max_sentences, expected):
    text = " ".join(
        f"Lake number {word} is deep." for word in ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    )
    assert len(quote({}, text, max_sentences=max_sentences).sentences) == expected


def test_the_fallback_skips_fragments_unless_there_is_nothing_else():
    assert len(["four", "words", "are", "enough"]) == MIN_WORDS
    answer = quote({"Deep lakes.": 1.0, "Four words are enough.": 0.6}, "Deep lakes. Four words are enough.")
    assert pairs(answer) == [("Four words are enough.", (1,))]
    assert pairs(quote({}, "Deep lakes.", "High.")) == [("Deep lakes.", (1,)), ("High.", (2,))]


# Nothing ------------------------------------------------------------------------------------------------------------


def test_no_passage_gives_an_empty_answer_that_says_what_to_change():
    encoder = CosineEncoder({})
    tokens, answer = run(ExtractiveGenerator(FakeObligations(), encoder, GenerationConfig()), [])
    assert (tokens, answer.text, answer.raw, answer.sentences, answer.finish_reason) == ([], "", "", (), "empty")
    assert "No passage was kept" in answer.note
    assert "threshold" in answer.note
    assert encoder.calls == []


@pytest.mark.parametrize("text", [" ", "\n\t\n", "\x00"])
def test_passages_without_text_give_an_empty_answer(text):
    answer = quote({}, text)
    assert (answer.text, answer.finish_reason) == ("", "empty")
    assert "no text" in answer.note


def test_an_error_of_a_model_passes_through():
    class Broken(FakeObligations):
        def classify(self, sentences):
            raise RuntimeError("weights")

    generator = ExtractiveGenerator(Broken(), FakeEncoder(), GenerationConfig())
    with pytest.raises(RuntimeError, match="weights"):
        run(generator, [passage("1:1")])


# Any passages -------------------------------------------------------------------------------------------------------

texts = st.lists(
    st.lists(st.sampled_from(["A must act.", "It is so.", "No stop", "B must not.", "\n", "[3]", "é\u200f"])).map(
        " ".join
    )
    | st.text(max_size=80),
    max_size=5,
)


@given(texts, st.integers(1, 4), st.text(max_size=20))
def test_any_passages_give_verbatim_sentences_of_the_passages_they_cite(texts, max_sentences, asked):
    passages = [passage(f"{number}:1", text or " ") for number, text in enumerate(texts)]
    before = copy.deepcopy(passages)
    generator = ExtractiveGenerator(FakeObligations(), FakeEncoder(), GenerationConfig(max_sentences=max_sentences))
    _, answer = run(generator, passages, Question(asked))
    assert passages == before
    assert len(answer.sentences) <= max_sentences
    assert (answer.finish_reason == "empty") == (not answer.sentences)
    for sentence in answer.sentences:
        assert sentence.citations
        first = passages[sentence.citations[0] - 1].text
        assert "".join(sentence.text.split()) in "".join(without_controls(first).split())
    assert answer == run(generator, passages, Question(asked))[1]

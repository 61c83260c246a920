"""The short answer without a language model: which sentences, in which order, how lists are shortened."""

import numpy as np
import pytest

from ragqa.generation.concise import (
    MAX_ITEMS,
    MAX_SENTENCES,
    MAX_WORDS,
    OMISSION,
    SHORTENED,
    ConciseGenerator,
    enumerated,
    without_running_title,
)
from ragqa.settings.config import GenerationConfig
from ragqa.types import ModelInfo, Question
from ragqa.types.scores import Coverage
from tests.support.fakes import FakeObligations, passage
from tests.support.streams import drain

QUESTION = Question("What must a firm do?")
DUTIES = (
    "A firm must keep: (a) records of every client it has had; (b) accounts of all its own money in each of its "
    "branches; (c) a list of its directors, officers and agents; and (d) a register of each of the complaints that "
    "its clients in this and in other places have made about it to any of its many employees here."
)


class Encoder:
    """The question lies at (1, 0), each text at the cosine given for the longest of these beginnings that it has."""

    info = ModelInfo("cosines", "0" * 64)

    def __init__(self, **cosines):
        self.cosines = cosines

    def encode(self, texts):
        values = [self.cosine(text) for text in texts]
        return np.array([[cosine, np.sqrt(1 - cosine**2)] for cosine in values], dtype=np.float32)

    def encode_query(self, text):
        return np.array([[1.0, 0.0]], dtype=np.float32)

    def cosine(self, text):
        fitting = [begin for begin in self.cosines if text.startswith(begin)]
        return self.cosines[max(fitting, key=len)] if fitting else 0.0


class Verifier:
    """An obligation is covered where its first three words stand in the answer."""

    def coverage(self, answer, obligation):
        covered = " ".join(obligation.split()[:3]) in answer.text
        return Coverage(1.0 if covered else 0.0, covered)


def concise(cosines, *texts, **config):
    generator = ConciseGenerator(FakeObligations(), Encoder(**cosines), Verifier(), GenerationConfig(**config))
    stream = generator.stream(QUESTION, [passage(f"{number}:1", text) for number, text in enumerate(texts, start=1)])
    tokens, answer = drain(stream)
    assert answer.raw == "".join(token.text for token in tokens)
    assert all(answer.text[s.start : s.end] == s.text for s in answer.sentences)
    assert answer.generator == "concise, no language model"
    return answer


def quoted(answer):
    return [(sentence.text, sentence.citations) for sentence in answer.sentences]


class TestConcise:
    def test_what_is_far_below_the_best_is_left_out_and_said(self):
        answer = concise(
            {"Banks": 0.8, "Other": 0.3},
            "Banks explain to their clients what they are for today. Other things are told in this long sentence here.",
        )
        assert quoted(answer) == [("Banks explain to their clients what they are for today.", (1,))]
        assert answer.note == "1 of 2 sentences are quoted: those nearest to the question."

    def test_passages_by_their_best_sentence_and_sentences_as_the_passage_has_them(self):
        answer = concise(
            {"First": 0.7, "Second": 0.8, "Third": 0.9},
            "Third sentence of them all with as many words as needed.",
            "First sentence of the passage with as many words as needed. "
            "Second sentence of the passage with as many words as needed.",
        )
        assert [text.split()[0] for text, _ in quoted(answer)] == ["Third", "First", "Second"]
        assert [citations for _, citations in quoted(answer)] == [(1,), (2,), (2,)]

    def test_an_obligation_is_worth_more_than_a_sentence_as_near(self):
        answer = concise(
            {"Everybody": 0.7, "A": 0.65},
            "Everybody knows these firms and likes what they have to say.",
            "A firm must do what it has said.",
            max_sentences=1,
        )
        assert quoted(answer) == [("A firm must do what it has said.", (2,))]

    def test_a_covered_obligation_is_not_said_twice(self):
        texts = "A firm must report its losses at once.", "A firm must report losses, and must not wait with it."
        assert len(concise({"A": 0.9}, *texts).sentences) == 1

    def test_but_one_that_names_another_number_is_another_rule(self):
        texts = "A firm must report within 10 days.", "A firm must report within 20 days."
        assert len(concise({"A": 0.9}, *texts).sentences) == 2

    def test_headings_and_fragments_are_not_quoted(self):
        answer = concise(
            {"REPORTING": 0.99, "Reporting": 0.98, "See": 0.97, "A": 0.7},
            "REPORTING OF LOSSES BY FIRMS AND BY ALL OF THEIR MANY AGENTS.",
            "Reporting of losses",
            "See below.",
            "A firm must report.",
        )
        assert quoted(answer) == [("A firm must report.", (4,))]

    def test_unless_there_is_nothing_else(self):
        assert quoted(concise({"See": 0.9}, "See below.")) == [("See below.", (1,))]

    def test_of_far_texts_the_nearest_is_quoted(self):
        assert quoted(concise({"A": -0.2}, "A firm must report.", "No text is here at all or near to this question."))

    def test_never_more_sentences_or_words_than_said(self):
        word = "word " * 30
        many = [f"Text number {n} {word}ends." for n in range(20)]
        answer = concise({"Text": 0.9}, *many)
        assert sum(len(s.text.split()) for s in answer.sentences) <= MAX_WORDS
        short = [f"Text number {n} has as many words as are needed." for n in range(20)]
        assert len(concise({"Text": 0.9}, *short).sentences) == MAX_SENTENCES

    def test_the_first_sentence_is_whole_however_long(self):
        long = "A firm must " + "always " * 300 + "report."
        assert quoted(concise({"A": 0.9}, long)) == [(long, (1,))]

    def test_a_long_list_shows_the_items_that_matter_and_says_so(self):
        answer = concise({"A": 0.5, "(a)": 0.1, "(b)": 0.9, "(c)": 0.2, "(d)": 0.8}, DUTIES)
        text = answer.sentences[0].text
        assert "(b) accounts" in text
        assert "(d) a register" in text
        assert "(a)" not in text
        assert "(c)" not in text
        assert answer.note == SHORTENED

    def test_at_most_so_many_items(self):
        answer = concise({"A": 0.5, "(": 0.9}, DUTIES)
        assert answer.sentences[0].text.count("(") == MAX_ITEMS

    @pytest.mark.parametrize("texts", [(), (" ",)])
    def test_without_text_the_answer_is_empty_and_says_why(self, texts):
        answer = concise({}, *texts)
        assert (answer.text, answer.sentences, answer.finish_reason) == ("", (), "empty")
        assert answer.note


class TestEnumerated:
    def test_parts_lead_and_items(self):
        found = enumerated("It must: (a) go; (b) stay (i) here, (ii) there; and (c) report under Rule 1(d).")
        assert found.lead == "It must:"
        assert found.items == ("(a) go;", "(b) stay (i) here, (ii) there; and", "(c) report under Rule 1(d).")

    @pytest.mark.parametrize(
        "sentence",
        [
            "It must: (a) go; and (b) stay.",
            "It must go where: (a) it is cold; (b) it is wet; and (c) it is dark.",
            "It applies if: (a) x; (b) y; and (c) z.",
            "It must do one of: (a) x; (b) y; (c) z.",
            "It must: (a) go; (b) stay; or (c) report.",
            "It must not: (a) go; (b) stay; and (c) report.",
            "(a) go; (b) stay; (c) report.",
            "It must follow (b) this; (c) that; (d) those.",
            "There is no list in it.",
            "",
        ],
    )
    def test_what_must_be_read_whole_is_left_whole(self, sentence):
        assert enumerated(sentence) is None

    def test_all_items_give_the_sentence_back(self):
        sentence = "It must: 1. go; 2. stay; 3. report; and 4. end."
        found = enumerated(sentence)
        assert found.with_items(range(4)) == sentence
        assert found.with_items({1}) == f"It must: {OMISSION} 2. stay; {OMISSION}."
        assert found.with_items({0, 3}) == f"It must: 1. go; {OMISSION} 4. end."
        assert enumerated("It must: (a) go; (b) stay; and (c) end.").with_items({1}).endswith(f"(b) stay; {OMISSION}.")


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        ("RULES ON THE MARKETS A firm must say what it has done.", "A firm must say what it has done."),
        ("RULES - SPOT COMMODITY ACTIVITIES Firms must say what they do.", "Firms must say what they do."),
        ("FSRA MLRO AML Rules apply to all of the firms here.", "FSRA MLRO AML Rules apply to all of the firms here."),
        ("RULES ON THE MARKETS Only this.", "RULES ON THE MARKETS Only this."),
        ("A firm must tell the FSRA what it does.", "A firm must tell the FSRA what it does."),
    ],
)
def test_running_titles_go(sentence, shown):
    assert without_running_title(sentence) == shown


@pytest.mark.timeout(20)  # it took seven times as long for each further word
def test_capitals_that_are_no_title_are_read_in_linear_time():
    sentence = "NOTICE OF PROPOSED RULES CONCERNING OUTSOURCING RESILIENCE GOVERNANCE " * 20 + "2024 applies."
    assert without_running_title(sentence) == sentence

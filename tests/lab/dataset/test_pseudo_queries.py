"""Questions made of a rulebook alone: what each kind points to, and what must not count as a wrong answer."""

import random

import pytest

from ragqa.errors import CorpusError
from ragqa.lab.dataset.pseudo_queries import counts_of, definition_questions, draw, duty_questions, pseudo_queries
from ragqa.types import Passage


def passage(number, text, section="", document="1"):
    return Passage(f"{document}:{number}", document, text, section=section, number=number)


RULES = (
    passage("3", "CLIENT ASSETS"),
    passage("3.2", "Safe custody", "3 CLIENT ASSETS"),
    passage("3.2.1", "A Custodian must keep a register of the assets it holds.", "3 CLIENT ASSETS › 3.2 Safe custody"),
    passage("3.2.2", "It must not lend them.", "3 CLIENT ASSETS › 3.2 Safe custody"),
    passage("3.3", "Definitions", "3 CLIENT ASSETS"),
    passage("3.3.1", '"Approved Venue" means an exchange that holds a Licence.', "3 CLIENT ASSETS › 3.3 Definitions"),
    passage(
        "3.4.1",
        "Loss of assets. A Custodian whose register under Rule 3.2.1 is lost must notify the Regulator at once.",
        "3 CLIENT ASSETS",
    ),
    passage("3.2.1", "Another document's rule.", document="2"),
)


def of_kind(kind, passages=RULES):
    return [query for query in pseudo_queries(passages) if query.kind == kind]


def test_a_heading_finds_what_stands_beneath_it_and_a_first_sentence_may_be_one():
    found = {query.text: query.gold for query in of_kind("heading")}
    assert found["Safe custody"] == ("1:3.2.1", "1:3.2.2")
    assert found["Definitions, CLIENT ASSETS"] == ("1:3.3.1",), "one word needs the heading above it"
    assert found["Loss of assets"] == ("1:3.4.1",)


def test_of_many_passages_beneath_a_heading_three_are_gold_and_the_rest_is_spared():
    section = "4 Reports to clients"
    rules = [passage(f"4.{n}", f"The report says what item {n} is worth today.", section) for n in range(1, 8)]
    (found,) = (query for query in of_kind("heading", rules) if query.text == "Reports to clients")
    assert len(found.gold) == 3
    assert found.spared | {*found.gold} == {rule.passage_id for rule in rules}
    assert not found.spared & {*found.gold}
    many = [passage(f"4.{n}", f"The report says what item {n} is worth today.", section) for n in range(20)]
    assert not of_kind("heading", many), "it says too little about each of twenty"


def test_a_citation_finds_the_rule_cited_in_its_own_document_and_is_taken_out():
    (found,) = of_kind("reference")
    assert found.text == "A Custodian whose register is lost must notify the Regulator at once."
    assert found.gold == ("1:3.2.1",)
    assert found.spared == {"1:3.4.1"}, "where the sentence stands"
    elsewhere = [*RULES[:-2], passage("9.1", "Under COBS Rule 3.2.1 a register must be kept by the custodian.")]
    assert not of_kind("reference", elsewhere), "another rulebook's rule"


def test_a_neighbour_is_the_next_passage_of_the_section_and_its_own_is_spared():
    (found,) = of_kind("neighbour")
    assert found.text == "A Custodian must keep a register of the assets it holds."
    assert (found.gold, found.spared) == (("1:3.2.2",), {"1:3.2.1"})


def test_a_definition_answers_what_its_term_is():
    (found,) = of_kind("definition")
    assert "Approved Venue" in found.text
    assert found.gold == ("1:3.3.1",)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ('"Long position" means one thing and "short position" means another.', ["Long position", "short position"]),
        ("The term “Excluded Account” means any of: (a) a pension.", ["Excluded Account"]),
        ("Liquidity Risk refers to the risk of losses.", ["Liquidity Risk"]),
        ("Clearing House | Means a body that clears.", ["Clearing House"]),
        ("It is confirmed by electronic means to the fund.", []),
        ("A Clearing House must have effective means to address risks.", []),
        ("Own means of dissemination are allowed.", []),
    ],
)
def test_terms_are_found_where_they_are_defined_and_nowhere_else(text, terms):
    found = definition_questions(text, random.Random(0))
    assert len(found) == len(terms)
    assert all(term in question for term, question in zip(terms, found, strict=True))


def all_questions(sentence):
    return {question for seed in range(40) for question in duty_questions(sentence, random.Random(seed))}


@pytest.mark.parametrize(
    ("sentence", "question"),
    [
        ("A Fund Manager must keep records of every trade.", "Must a Fund Manager keep records of every trade?"),
        ("A Fund Manager must keep records of every trade.", "How should a Fund Manager keep records of every trade?"),
        ("A firm must tell its clients within five days.", "When must a firm tell its clients?"),
        ("A firm may delegate custody to a bank.", "Can a firm delegate custody to a bank?"),
        ("A firm must not lend assets to its staff.", "May a firm lend assets to its staff?"),
        ("A firm may only lend assets to banks.", "When may a firm lend assets to banks?"),
        ("If it fails, a firm must notify the Court.", "What must a firm do if it fails?"),
        ("A prospectus must include:\n(a) a summary;\n(b) a map.", "What must a prospectus include?"),
        ("The annual report must also include:\n(a) a summary.", "What must the annual report also include?"),
    ],
)
def test_a_duty_becomes_questions_in_its_own_words(sentence, question):
    found = all_questions(sentence)
    assert question in found
    assert all(len(duty_questions(sentence, random.Random(seed))) <= 2 for seed in range(9))


@pytest.mark.parametrize(
    "sentence", ["It must keep records of trades.", "The sky is blue.", "This must be done at once.", "", "must not"]
)
def test_a_sentence_that_names_nobody_or_no_duty_gives_no_question(sentence):
    assert not all_questions(sentence)


def test_the_same_seed_gives_the_same_and_no_text_repeats_in_a_kind():
    assert pseudo_queries(RULES, 1) == pseudo_queries(RULES, 1)
    assert {pseudo_queries(RULES, seed) for seed in range(5)} != {pseudo_queries(RULES, 1)}
    twice = [*RULES, passage("5.1", RULES[2].text, "5 OTHER › 5.1 Again")]
    for seed in range(3):
        found = pseudo_queries(twice, seed)
        keys = [(query.kind, query.text.lower()) for query in found]
        assert len(set(keys)) == len(keys)
        shared = [
            query for query in found if query.kind == "duty" and {"1:3.2.1", "1:5.1"} <= {*query.gold, *query.spared}
        ]
        duties = [query for query in found if query.kind == "duty" and "1:5.1" in query.gold]
        assert shared or duties, "a text that two passages answer has both"


def test_kinds_are_counted_and_a_draw_keeps_order():
    found = pseudo_queries(RULES)
    counts = counts_of(found)
    assert list(counts) == ["heading", "definition", "reference", "duty", "neighbour"]
    assert sum(counts.values()) == len(found)
    few = draw(found, 3, seed=1)
    assert [query for query in found if query in few] == list(few)
    assert len(few) == 3
    assert draw(found, 3, seed=1) == few
    assert draw(found, 1000) == found
    assert counts_of(())["duty"] == 0


def test_a_corpus_without_anything_to_ask_is_an_error():
    with pytest.raises(CorpusError, match="name a file of questions with --questions"):
        pseudo_queries([passage("1", "CLIENT ASSETS"), passage("2", "The sky is blue and the sea is too.")])

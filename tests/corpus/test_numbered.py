"""A rule asked for by its number is found in the document that the question names, and in no other."""

from dataclasses import replace

import pytest

from ragqa.corpus.asked_items import asked_items
from ragqa.corpus.numbered import (
    asked_by_number,
    asks_only_for,
    documents_named,
    names_a_rule,
    same_number,
)
from ragqa.types import Passage


def passage(document, number, title):
    return Passage(f"{document}:{number}", document, f"Text of {number} in {title}.", title=title, number=number)


CORPUS = tuple(
    passage(document, number, title)
    for document, title, numbers in (
        ("1", "Client Assets Rules", ("3.1.1", "3.1.1.(2)", "3.1.2")),
        ("2", "Market Rules", ("3.1.1", "3.1.2", "4.1.1")),
        ("eu-gdpr-act", "L_2016119EN.xml", ("CHAPTER II.Article 6.1.", "CHAPTER VII.Section 3.Article 71.2.")),
    )
    for number in numbers
)


@pytest.mark.parametrize(
    ("question", "ids"),
    [
        ("What does rule 3.1.2 of the Client Assets Rules say?", ("1:3.1.2",)),
        ("What does rule 3.1.1 of the Client Assets Rules say?", ("1:3.1.1", "1:3.1.1.(2)")),
        ("market rules 3.1.2", ("2:3.1.2",)),
        ("Market 3.1.2", ("2:3.1.2",)),
        ("Market Rules, 3.1.2: what must we keep to ourselves?", ("2:3.1.2",)),
        ("What does 3.1.2 of the Client Assets Rules say about clients?", ("1:3.1.2",)),
        ("What does 3.1.2 say?", ()),
        ("4.1.1", ("2:4.1.1",)),
        ("What does Rule 4.1.1 require?", ("2:4.1.1",)),
        ("What does Article 6(1)(a) of the GDPR say?", ("eu-gdpr-act:CHAPTER II.Article 6.1.",)),
        ("What does point (2) of Article 71 of the GDPR say?", ("eu-gdpr-act:CHAPTER VII.Section 3.Article 71.2.",)),
        ("GDPR, Chapter VII, Article 71(2)", ("eu-gdpr-act:CHAPTER VII.Section 3.Article 71.2.",)),
        ("What is Article 71(2) of the GDPR?", ("eu-gdpr-act:CHAPTER VII.Section 3.Article 71.2.",)),
        ("What does rule 3.1.1 of the Outsourcing Rules say?", ()),
        ("What does rule 9.9.9 say?", ()),
        ("How long are records kept?", ()),
        ("Within 3.1.2 Business Days?", ()),
        ("May a market stall cost 3.1.2 euros?", ()),
    ],
)
def test_the_rule_is_that_of_the_document_named(question, ids):
    assert tuple(one.passage_id for one in asked_by_number(question, CORPUS)) == ids


def test_where_no_document_is_named_the_first_of_the_ranking_is_meant():
    found = asked_by_number("What does rule 3.1.2 say?", CORPUS, ["2", "1"])
    assert [one.passage_id for one in found] == ["2:3.1.2"]


@pytest.mark.parametrize(
    ("question", "ids"),
    [("What does rule 3.1.1 say?", ["1:3.1.1"]), ("3.1.1", ["1:3.1.1"]), ("Market 3.1.1", []), ("In 3.1.1 days?", [])],
)
def test_where_no_document_is_named_the_others_with_that_number_are_told(question, ids):
    assert [one.passage_id for one in same_number(question, CORPUS, ["2"])] == ids


@pytest.mark.parametrize(
    ("question", "items"),
    [
        ("Article 6(1)(b)", ["it is needed."]),
        ("What does point (b) of Article 6(1) say?", ["it is needed."]),
        ("Article 6(1)", []),
        ("Article 7(1)(b)", []),
    ],
)
def test_an_item_that_is_asked_for_is_told_from_the_others_of_its_passage(question, items):
    text = "A lamp is lit where:\n(a)\tit is dark;\n(b)\tit is needed."
    spans = [(named, text.index(words), text.index(words) + len(words)) for named, words in
             (("II.Article 6.1.(a)", "it is dark;"), ("II.Article 6.1.(b)", "it is needed."))]  # fmt: skip
    listed = "\n".join(f"{start} {end} {named}" for named, start, end in spans)
    one = Passage("d:6.1", "d", text, number="II.Article 6.1.", items=listed)
    assert [span.text for span in asked_items(question, one)] == items


def test_an_item_with_the_number_of_a_rule_is_another_one():
    text = "A lamp:\n(1)\tis lit;\n(2)\tburns."
    items = f"{text.index('is')} {text.index(';')} Article 1.(1)\n{text.index('burns')} {len(text)} Article 1.(2)"
    one = Passage("d:1", "d", text, number="Article 1", items=items)
    assert asked_items("Article 1", one) == ()
    assert [span.text for span in asked_items("Article 1(2)", one)] == ["burns."]
    assert asked_items("Article 2", replace(one, number="Article 1.2", items=items.replace("1.(", "1.2.("))) == ()


CONTROLS = tuple(
    Passage(f"{document}:{number}", document, f"Text of {number}.", title=title, number=number)
    for document, title in (("controls", "Lamp Controls"), ("index", "Overview of the Controls"))
    for number in ("LA-2", "LA-2.a.", "LA-2.b.", "LA-2(1)", "LA-2(1).Discussion", "OI.WK-01", "Regulation R-4.i.")
)


@pytest.mark.parametrize(
    ("question", "numbers", "documents"),
    [
        ("LA-2 of the Lamp Controls", ["LA-2", "LA-2.a.", "LA-2.b."], 1),
        ("What does la-2(1) require?", ["LA-2(1)", "LA-2(1).Discussion"], 2),
        ("OI.WK-01", ["OI.WK-01"], 2),
        ("What does Regulation R-4 of the overview say?", ["Regulation R-4.i."], 1),
        ("Does COVID-19 matter?", [], 0),
        ("LA-3", [], 0),
    ],
)
def test_the_id_of_a_control_is_a_number(question, numbers, documents):
    found = asked_by_number(question, CONTROLS)
    assert [one.number for one in found] == numbers
    assert len(same_number(question, CONTROLS)) == max(0, documents - 1)
    assert names_a_rule(question)


@pytest.mark.parametrize(
    ("question", "is_only"),
    [
        ("LA-2 of the Lamp Controls", True),
        ("What does LA-2 of the Lamp Controls require?", True),
        ("What does LA-2 require of keepers?", False),
        ("Does LA-2 allow oil?", False),
        ("What does LA-3 require?", False),
        ("What does rule 7.2 require?", False),
        ("What does the Lamp Controls require?", False),
    ],
)
def test_whether_a_question_asks_for_a_rule_alone(question, is_only):
    assert asks_only_for(question, CONTROLS[0]) == is_only


def test_a_bare_number_of_a_document_that_is_named_after_it():
    titles = {"common": "Certificate Policy of the Common Lamp Framework", "bridge": "Certificate Policy of the Bridge"}
    found = tuple(Passage(f"{name}:5.4.3", name, "Text.", title=one, number="5.4.3") for name, one in titles.items())
    assert [one.document_id for one in asked_by_number("What does 5.4.3 of the Common Policy say?", found)] == [
        "common"
    ]


def test_an_abbreviation_means_the_document_that_has_the_numbers_named_with_it():
    cited = "; ".join(f"GEN Rule {number}" for number in ("2.1.1", "2.1.2", "2.1.4"))
    texts = {"1:2.1.1": f"See {cited}.", **{f"7:2.1.{n}": f"Rule {n}." for n in range(1, 6)}}
    several = tuple(Passage(name, name[0], text, number=name[2:]) for name, text in texts.items())
    assert [one.passage_id for one in asked_by_number("What does GEN 2.1.1 say?", several, ["1"])] == ["7:2.1.1"]
    assert not asked_by_number("What does COBS 2.1.1 say?", several, ["1"])


def test_a_number_is_read_as_the_document_meant_writes_it():
    several = (passage("1", "3.7", "Market Rules"), passage("2", "Article 3.(7)", "Coverage Rules"))
    for title, name in (("Market", "1:3.7"), ("Coverage", "2:Article 3.(7)")):
        found = asked_by_number(f"What does point (7) of Article 3 of the {title} Rules say?", several)
        assert [one.passage_id for one in found] == [name]


def test_a_number_before_an_article_is_its_chapter():
    own = tuple(passage("9", f"{chapter}.Section 1.Article 2.1.", "Own Funds (XYZ)") for chapter in (3, 4))
    chapters = tuple(passage("9", str(chapter), "Own Funds (XYZ)") for chapter in (3, 4))
    for chapter in (3, 4):
        found = asked_by_number(f"What does Own Funds {chapter} Article 2(1) say?", (*own, *chapters))
        assert [one.number for one in found] == [f"{chapter}.Section 1.Article 2.1."]


@pytest.mark.parametrize(
    ("question", "documents"),
    [
        ("What must a lamp owner do under LOTA?", {"eu-lota-act"}),
        ("what must a lamp owner do under lota?", {"eu-lota-act"}),
        ("Does the Lamp Oil Act apply to boats?", {"eu-lota-act"}),
        ("Do the Lamp Oil Rules apply to boats?", {"eu-lota-act"}),
        ("How do LOTA and the Candle Act differ on fines?", {"eu-lota-act", "candle-act"}),
        ("What does Regulation (EU) 2031/77 require?", {"candle-act"}),
        ("How many lamps may a boat carry?", set()),  # "lamps" is found in the texts
        ("What does the Act say on boats?", set()),
        ("What does the Act say of boats in 2031?", set()),  # a year
        ("What is a CNC lamp?", set()),  # its text speaks of CNC itself
    ],
)
def test_documents_are_named_by_what_only_their_titles_and_ids_have(question, documents):
    corpus = (
        passage("eu-lota-act", "Article 1", "On the trade in lamp oil (Lamp Oil Act)"),
        passage("candle-act", "Article 1", "Regulation (EU) 2031/77 on candles"),
        passage("draft-2031", "Article 1", "A draft"),
        Passage("cnc:1", "cnc", "A CNC lamp is a lamp. Boats, owners and fines.", title="CNC lamps", number="1"),
        *(passage(f"other-{n}", "Article 1", f"Other thing {n}") for n in range(3)),
    )
    assert frozenset().union(*documents_named(question, corpus).values()) == documents
    assert not documents_named(question, tuple(Passage(p.passage_id, p.document_id, p.text, p.title) for p in corpus))

"""The items that a question asks for by number, within the text of a rule."""

import pytest

from ragqa.corpus.asked_items import asked_parts, having_items, lacks
from ragqa.corpus.numbered import MOST
from tests.support.fakes import passage

LISTED = passage("d:3.1", "Keep:\n(a)\tdogs; and\n(b)\tcats:\n(i)\tgrey,\n(ii)\tblack.", number="3.1")
INLINE = passage("d:Article 4.1.", "Keep: (a) dogs; and (b) cats.", number="Article 4.1.")
NUMBERED = passage("d:5", "5.1 Keep dogs.\n5.2 Keep cats.", number="5")


@pytest.mark.parametrize(
    ("question", "rule", "texts"),
    [
        ("What does rule 3.1(b) say?", LISTED, ["(b)\tcats:"]),
        ("3.1(b)(ii)", LISTED, ["(ii)\tblack."]),
        ("Article 4(1)(a)", INLINE, ["(a) dogs"]),
        ("point (b) of Article 4(1)", INLINE, ["(b) cats."]),
        ("section 5(2)", NUMBERED, ["5.2 Keep cats."]),
        ("rule 3.1", LISTED, []),
        ("Which dogs (a) of 2024?", LISTED, []),
    ],
)
def test_an_item_is_found_in_the_text_of_its_rule(question, rule, texts):
    assert [part.spans[rule.passage_id].text for part in asked_parts(question, [rule])] == texts
    assert lacks(question, [rule]) == ""


def test_an_item_that_the_rule_lacks_is_named_with_the_rule():
    assert lacks("Article 4(1)(z)", [INLINE]) == "4(1) has no (z)"
    assert lacks("Article 4(9)(z)", [INLINE]) == "4 has no (9)(z)"
    assert lacks("Article 4(9)", [INLINE] * MOST) == "", "the rule may have further passages"
    own = passage("d:4.1.(z)", "Cats.", number="Article 4.1.(z)")
    assert lacks("Article 4(1)(z)", [INLINE, own]) == ""


def test_the_documents_that_have_the_item_are_told_from_those_that_have_only_the_rule():
    other = passage("e:3.1", "Keep cats.", document_id="e", number="3.1")
    assert having_items("rule 3.1(a)", [other], (LISTED, other)) == [LISTED.document_id]
    assert having_items("rule 3.1(a)", [LISTED], (LISTED, other)) == []

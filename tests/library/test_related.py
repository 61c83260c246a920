"""What is related to a passage: references both ways, reasons where there are none, terms once."""

import re
from types import SimpleNamespace

from ragqa.corpus.reference_grammar import Reference
from ragqa.library.definitions import Glossary
from ragqa.library.related import Related, related
from ragqa.ui.html.reader import also_html, beside_html
from tests.support.fakes import passage

TEXT = "A Depositary must comply with Rule 2 & Rule 9. The Depositary is liable."
PASSAGES = (
    passage("a", TEXT, number="1", title="Fund Rules"),
    passage("b", '"Depositary" means a person who holds assets <b>.', number="2", title="Fund Rules"),
    passage("c", "Rule 1 applies.", number="3", title="Fund Rules"),
)
INDEX = SimpleNamespace(passages=PASSAGES, position_of={one.passage_id: n for n, one in enumerate(PASSAGES)})


def reference(text, words, target, reason=""):
    start = text.index(words)
    return Reference("", start, start + len(words), target, target, reason)


REFERENCES = {
    "a": (reference(TEXT, "Rule 2", "b"), reference(TEXT, "Rule 9", "", "no such rule")),
    "c": (reference(PASSAGES[2].text, "Rule 1", "a"),),
}


def test_references_both_ways_and_terms_once_and_their_html_is_escaped():
    found = related(INDEX, REFERENCES, Glossary(PASSAGES), PASSAGES[0])
    assert [(one.words, one.targets, one.reason) for one in found.refers] == [
        ("Rule 2", (PASSAGES[1],), ""),
        ("Rule 9", (), "no such rule"),
    ]
    assert found.referring == (PASSAGES[2],)
    assert [use.definition.term for use in found.terms] == ["Depositary"]
    for html in (also_html(found, "funds"), beside_html(found, "funds")):
        assert 'href="read?corpus=funds&amp;passage=b"' in html
        assert 'passage=c"' in html
        assert "<b>." not in html
    assert "not linked, no such rule" in beside_html(found, "funds")
    assert also_html(related(INDEX, {}, Glossary(()), PASSAGES[0]), "funds") == ""


def test_a_document_is_named_once_among_the_references_of_a_source():
    cited = [
        passage(f"{document}:{n}", "x", title=f"{document} Rules", number=f"Article {n}.1.")
        for document, n in (("Lamp", 1), ("Lamp", 2), ("Oil", 3), ("Lamp", 4))
    ]
    html = also_html(Related((), tuple(cited), ()), "c")
    assert re.findall(r">([^<>]+)</a>", html) == [
        "Lamp Article 1(1)",
        "Article 2(1)",
        "Oil Article 3(1)",
        "Lamp Article 4(1)",
    ]

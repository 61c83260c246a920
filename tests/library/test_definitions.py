"""Defined terms: found where a corpus defines them, and where a text uses them."""

from dataclasses import replace

import pytest

from ragqa.library.definitions import Glossary, definitions_in
from ragqa.ui.html.reader import Mark, passage_text_html
from tests.support.fakes import passage
from tests.support.hostile import hostile_texts

GLOSSARY = passage(
    "glo:1",
    "Harbour Master\tMeans the Person in charge of the harbour.\n"
    "Berth | Means a place:\n(a) to lie; or\n(b) to wait.\n\n"
    "It means nothing here. “Client Money” means Money of a Client.",
)
OWN = passage("own:1", "The term Berth means a bed in a cabin.")


def test_definitions_are_found_in_tables_lists_and_sentences():
    found = {one.term: one.text for one in definitions_in(GLOSSARY)}
    assert set(found) == {"Harbour Master", "Berth", "Client Money"}
    assert found["Berth"].endswith("(b) to wait.")
    assert all(GLOSSARY.text[one.start :].startswith(one.text) for one in definitions_in(GLOSSARY))
    assert not list(definitions_in(passage("a:1", "The Harbour Master may act.")))


@pytest.mark.parametrize(
    ("section", "text", "terms"),
    [
        (
            "",
            "The following apply:\nharbour dues\nmeans money.\nquay\nin relation to ships, means a wall.",
            ["harbour dues", "quay"],
        ),
        ("", "‘deep berth’ (or ‘deep quay’) means a berth; 'tug' has the meaning given in 2.1.", ["deep berth", "tug"]),
        ("", "For the purposes of this Article, working tide means any tide.", ["working tide"]),
        ("", "(a)\tMoorings means ropes;\n(b)\ta night berth shall mean a berth.", ["Moorings", "night berth"]),
        ("", "It is sent by electronic means made available. By other means. This means that a pilot may go.", []),
        ("Ports › Glossary", "Tug | A vessel that moves another vessel.\nPilot: one who guides.", ["Tug", "Pilot"]),
        ("Ports › Fees", "Tug | A vessel that moves another vessel.\nPilot: one who guides.", []),
        ("Terms used here", "Tug | A vessel that moves another vessel.", ["Tug"]),
        (
            "",
            "Words used have the meanings that follow:\nTug: a vessel.\nPilot (PLT): means one.",
            ["Tug", "Pilot", "PLT"],
        ),
        ("", "Salvage Value (SV) means the value.\n• Wharf is defined as “a quay.”", ["Salvage Value", "SV", "Wharf"]),
        ("", "Idle berth means:\n(a)\ta berth without a ship.", ["Idle berth"]),
        ("", "“harbour” includes a river. Harbour dues include tolls.", ["harbour"]),
        ("Definitions", "Harbour Dues include tolls.", ["Harbour Dues"]),
    ],
)
def test_terms_are_found_as_regulators_write_them(section, text, terms):
    found = [one.term for one in definitions_in(replace(passage("a:1", text), section=section))]
    assert sorted(found) == sorted(terms)


def test_a_term_and_its_abbreviation_are_found_once():
    text = "“Lamp Order (LO)” means an order for lamps.\n“LO” means an order for lamps, too."
    found = [one.term for one in definitions_in(passage("a:1", text))]
    assert sorted(found) == ["LO", "Lamp Order"]


def test_terms_in_lower_case_are_used_and_mean_what_is_said_nearest():
    said = [passage(f"a:{n}", f"‘quay’ means {n}.", document_id="a") for n in (1, 2)]
    said = [replace(one, section=f"Part {n} › Definitions") for n, one in enumerate(said, start=1)]
    used = replace(passage("a:3", "Quays; the quay", document_id="a"), section="Part 2 › Rules")
    found = [(used.text[use.start : use.end], use.definition.passage_id) for use in Glossary(said).uses(used)]
    assert found == [("Quays", "a:2")]


def test_a_text_uses_what_its_own_document_means_first():
    glossary = Glossary([GLOSSARY, OWN])
    used = passage("own:2", "The Harbour Master’s Berths, a Berth, and Berthing by Harbour Mastery.")
    found = [(used.text[use.start : use.end], use.definition.passage_id) for use in glossary.uses(used)]
    assert found == [("Harbour Master’s", "glo:1"), ("Berths", "own:1")]
    assert [use.definition.passage_id for use in glossary.uses(passage("z:1", "A Berth."))] == ["glo:1"]
    assert glossary.uses(OWN) == ()
    assert len(glossary) == 3


def test_a_term_tells_its_meaning_and_escapes_it():
    html = passage_text_html("A Berth here.", [Mark(2, 7, href="read?passage=glo", tip="Berth means <b>a place</b>")])
    assert '<a class="rq-term-name" href="read?passage=glo" target="_self">Berth</a>' in html
    assert 'role="tooltip">Berth means &lt;b&gt;a place&lt;/b&gt;</span>' in html
    for hostile in hostile_texts():
        assert "<script" not in passage_text_html("A Berth", [Mark(2, 7, href="read", tip=hostile)]).lower()

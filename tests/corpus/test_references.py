"""References in passages: what a text names, which passage that is, and why where none is found."""

import json

import pytest

from ragqa.corpus.formats import load_corpus
from ragqa.corpus.reference_grammar import line_of_mentions, mentions, mentions_of
from ragqa.corpus.reference_numbers import path_of
from ragqa.corpus.references import references
from ragqa.index.references import line_of, reference_of
from tests.support.fakes import passage


def named(text):
    return [(one.kind, [str(number) for number in one.named], one.instrument) for one in mentions(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("under Rule 4.2.1(b) it must", [("rule", ["4.2.1(b)"], "")]),
        ("see section 205(2) of FSMR.", [("section", ["205(2)"], "FSMR")]),
        ("Article 6(1) and (3) apply", [("article", ["6(1)", "6(3)"], "")]),
        ("as in paragraph (3)", [("paragraph", ["(3)"], "")]),
        ("COBS Rules 3.1 to 3.4.2", [("rule", ["3.1 to 3.4.2"], "COBS")]),
        ("with GEN 3.3.24 or", [("", ["3.3.24"], "GEN")]),
        ("Rules 15.11.A.2, 3.6A.4 and A4.3.2", [("rule", ["15.11.A.2", "3.6A.4", "A4.3.2"], "")]),
        ("subsection (2) of section 58", [("section", ["(2)"], "")]),
        ("within 2 business days, 3 of them", []),
        ("Part 7, Chapter 2 therein", [("part", ["7"], "")]),
        ("Article 92(1)(b) of Regulation (EU) No 575/2013", [("article", ["92(1)(b)"], "Regulation (EU) No 575/2013")]),
        ("section 137 of the Act", [("section", ["137"], "Act")]),
        ("as paragraph 3 above says", [("paragraph", ["3"], "this document")]),
        ("see Articles 132a to 132c", [("article", ["132a to 132c"], "")]),
        ("meets 3G2.1, 3G3 and 3G6.2(3)", [("", ["3G2.1", "3G3", "3G6.2(3)"], "")]),
        ("subject to 7.2 to 7.5, it", [("", ["7.2 to 7.5"], "")]),
        ("as set out in 6, it", [("", ["6"], "")]),
        ("in accordance with (2) or (3)(a)", [("", ["(2)", "(3)(a)"], "")]),
        ("a ratio of 2.5% and 3.1 million, 6 in all", []),
        ("(1)\tthe first; and\n(2)\tthe second", []),
        ("as Article 18(1) says;\n(d)\tas in Article 14", [("article", ["18(1)"], ""), ("article", ["14"], "")]),
        ("under Article 18(1)\n(d)\tand", [("article", ["18(1)"], "")]),
        ("the forms in Annexure-B1 & B2", [("annex", ["B1", "B2"], "")]),
        ("Annexures III & IV, Annexure – M", [("annex", ["III", "IV"], ""), ("annex", ["M"], "")]),
        ("Regulation PLT R-2 and Rule A-3", [("regulation", ["PLT R-2"], ""), ("rule", ["A-3"], "")]),
        ("Section 3 of [RFC 4122] or", [("section", ["3"], "[RFC 4122]")]),
        ("Rules 3-5 and Parts A-C", [("rule", ["3 to 5"], ""), ("part", ["A to C"], "")]),
    ],
)
def test_what_a_text_names(text, found):
    assert named(text) == found
    assert mentions_of(line_of_mentions(mentions(text)).encode()) == mentions(text)


def test_names_stand_before_numbers_and_units_within_others():
    before = {text: mentions(text)[0].before for text in ("in Harbour Dues – Pilots 10.3", "If 3.1 applies, or 3.2,")}
    assert list(before.values()) == ["Harbour Dues – Pilots", ""]
    text = "point (c) of paragraph 1 of Article 36 of Chapter 3"
    point, chapter = mentions(text)
    assert [kind for kind, _ in point.within] == ["paragraph", "article", "chapter"]
    assert text[point.start : point.end] == "point (c) of paragraph 1 of Article 36"
    assert (chapter.kind, chapter.within) == ("chapter", ())
    assert [kind for kind, _ in mentions("Article 6, paragraph 2, point (b)")[2].within] == ["paragraph", "article"]


def test_a_number_is_a_path_whatever_its_style():
    assert path_of("6.2.10.(2)") == (("", "6"), ("", "2"), ("", "10"), ("(", "2"))
    assert path_of("Part 8.95.(2)") == (("part", "8"), ("", "95"), ("(", "2"))
    assert path_of("PART 5.12.3.Guidance.1")[1:] == (("", "12"), ("", "3"), ("(", "guidance"), ("(", "1"))
    assert path_of("Schedule 1.Part 3 .90.(3)") == (("schedule", "1"), ("part", "3"), ("", "90"), ("(", "3"))
    assert path_of("3.Section 2.Article 6.1.(a)")[1:] == (("section", "2"), ("article", "6"), ("(", "1"), ("(", "a"))
    assert path_of("58)") == (("", "58"),)
    assert path_of("CHAPTER 7.4.e).vi)") == (("chapter", "7"), ("", "4"), ("(", "e"), ("(", "vi"))
    assert path_of("3.(1.2)") == (("", "3"), ("(", "1.2"))
    assert path_of("Regulation PLT R-2.(a)") == (("regulation", "plt r-2"), ("(", "a"))
    assert path_of("ANNEX – IV") == (("annex", "iv"),)
    assert path_of("") == ()


def rules(document, rows):
    return [passage(f"{document}:{number}", text, number=number, document_id=document) for number, text in rows]


def edges(passages):
    return [(one.source, one.target, one.last, one.reason) for one in references(passages)]


def test_what_is_meant_and_why_nothing_is():
    passages = rules(
        "conduct",
        [
            ("1.1", "Rule 1.2(2) and Rule 9.9 apply."),
            ("1.2.(1)", "Subject to paragraph (2), do it."),
            ("1.2.(2)", "See section 3 of the Money Act 2015 and Rule 1.3."),
            ("1.3", "A unit."),
            ("1.3.1", "Its first part."),
            ("1.3.2", "This is Rule 1.3.2 itself."),
        ],
    ) + rules("MONEY ACT 2015", [("MONEY ACT 2015", "An act."), ("Part 1.3.", "Coins."), ("Part 1.3.(1)", "Notes.")])
    assert edges(passages) == [
        ("conduct:1.1", "conduct:1.2.(2)", "conduct:1.2.(2)", ""),
        ("conduct:1.1", "", "", "no rule 9.9 in this corpus"),
        ("conduct:1.2.(1)", "conduct:1.2.(2)", "conduct:1.2.(2)", ""),
        ("conduct:1.2.(2)", "MONEY ACT 2015:Part 1.3.", "MONEY ACT 2015:Part 1.3.(1)", ""),
        ("conduct:1.2.(2)", "conduct:1.3", "conduct:1.3.2", ""),
    ]
    for one in references(passages):
        assert reference_of(line_of(one).rstrip()) == one


def dues():
    return rules(
        "dues",
        [
            ("2.Title I.Article 4.1", "See paragraph 2, and point (b) of Article 5(1)."),
            ("2.Title I.Article 4.2", "Under Chapter 3 of this Part; Chapter 1 of Title II applies."),
            ("2.Title I.Article 5.1.(a)", "A ship."),
            ("2.Title I.Article 5.1.(b)", "A barge, save under Article 4 of Chapter 3."),
            ("2.Title II.Chapter 1.Article 9", "Moorings."),
            ("3.Article 4.1", "Article 5 and Article 4(1)."),
            ("3.Article 5", "Tugs."),
        ],
    )


def test_what_is_meant_stands_nearest_or_where_the_text_says():
    found = {(one.source[5:], one.target[5:], one.last[5:]) for one in references(dues())}
    assert found == {
        ("2.Title I.Article 4.1", "2.Title I.Article 4.2", "2.Title I.Article 4.2"),
        ("2.Title I.Article 4.1", "2.Title I.Article 5.1.(b)", "2.Title I.Article 5.1.(b)"),
        ("2.Title I.Article 4.2", "3.Article 4.1", "3.Article 5"),
        ("2.Title I.Article 4.2", "2.Title II.Chapter 1.Article 9", "2.Title II.Chapter 1.Article 9"),
        ("2.Title I.Article 4.2", "2.Title II.Chapter 1.Article 9", "2.Title II.Chapter 1.Article 9"),
        ("2.Title I.Article 5.1.(b)", "3.Article 4.1", "3.Article 4.1"),
        ("2.Title I.Article 5.1.(b)", "3.Article 4.1", "3.Article 5"),
        ("3.Article 4.1", "3.Article 5", "3.Article 5"),
    }


def test_items_with_one_bracket_stand_beside_those_that_name_them():
    numbers = ("CHAPTER 4.4.", "CHAPTER 5.4.", "CHAPTER 5.4.d)", "CHAPTER 5.4.e)", "Annexure – B1", "Annexure-IV")
    texts = dict.fromkeys(numbers, "A mooring.") | {"CHAPTER 5.4.e)": "See Para 4(d) above, Annexure-B1 & IV."}
    found = [one.target for one in references(rules("a", texts.items()))]
    assert found == ["a:CHAPTER 5.4.d)", "a:Annexure – B1", "a:Annexure-IV"]


def test_sections_are_chapters_of_dotted_numbers_and_paragraphs_count_on_below_principles():
    passages = rules("a", [("8", "Lamps."), ("8.1", "As Section 8 and Section 8.2 say."), ("8.2", "Oil.")])
    assert [one.target for one in references(passages)] == ["a:8", "a:8.2"]
    numbers = ("Principle 1.21.", "Principle 1.22.", "Principle 2.23.")
    passages = rules("b", [*((number, "A bell.") for number in numbers), ("Principle 2.24.", "See paragraph 22.")])
    assert [one.target for one in references(passages)] == ["b:Principle 1.22."]


def named_document(name, title, rows):
    return [passage(f"{name}:{number}", text, number=number, document_id=name, title=title) for number, text in rows]


def test_documents_are_known_by_title_part_of_it_file_and_code():
    texts = [
        ("1.1", "the form in Pilots 2.1 and Harbour Dues – Pilots 2.2"),
        ("1.2", "Chapter 2 of the Harbour Dues – Pilots (HD) Part, and HS4/19 paragraph 1.1"),
        ("1.3", "2.2 of Lights applies; as Lights 2.2 says, and in Signals 2.1"),
        ("2.2", "Our own; see the pilots and dues 2.1."),
    ]
    passages = (
        named_document("own_file", "Own", texts)
        + named_document("x_pilots-and-dues_1", "Harbour Dues – Pilots (HD)", [("2.1", "A form."), ("2.2", "Another.")])
        + named_document("y", "HS4/19 – Lighting ships", [("1.1", "Lamps.")])
    )
    found = [(one.source, one.target, one.reason) for one in references(passages)]
    assert found == [
        ("own_file:1.1", "x_pilots-and-dues_1:2.1", ""),
        ("own_file:1.1", "x_pilots-and-dues_1:2.2", ""),
        ("own_file:1.2", "x_pilots-and-dues_1:2.1", ""),
        ("own_file:1.2", "y:1.1", ""),
        ("own_file:1.3", "", "Lights is not in this corpus"),
        ("own_file:1.3", "", "Signals is not in this corpus"),
    ]


def test_a_law_that_is_not_here_is_said():
    passages = rules("a", [("1.1", "See section 44 of the Companies Regulations 2020.")])
    assert edges(passages) == [("a:1.1", "", "", "Companies Regulations 2020 is not in this corpus")]


@pytest.mark.data
@pytest.mark.slow
def test_references_of_adgm_that_people_marked_are_found(shared_data):
    """Reported on the pairs of xref_dev that are not in xref_train."""
    folder = shared_data / "obliqa"
    pairs = {}
    for name in ("train", "dev"):
        for item in json.loads((folder / f"xref_{name}.json").read_text()):
            ids = tuple(f"{one['DocumentID']}:{one['PassageID']}" for one in item["Passages"])
            if len(ids) == 2:
                pairs.setdefault(name, set()).add(ids)
    passages = load_corpus(folder / "documents").passages
    positions = {one.passage_id: place for place, one in enumerate(passages)}
    meant = {}
    for one in references(passages):
        if one.target:
            meant.setdefault(one.source, []).append((positions[one.target], positions[one.last]))
    wanted = pairs["dev"] - pairs["train"]
    found = [any(first <= positions[to] <= last for first, last in meant.get(source, ())) for source, to in wanted]
    exact = [any(first == positions[to] for first, _ in meant.get(source, ())) for source, to in wanted]
    assert len(wanted) == 70
    assert sum(found) / len(wanted) >= 0.95
    assert sum(exact) / len(wanted) >= 0.9

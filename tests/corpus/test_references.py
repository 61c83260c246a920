"""References in passages: what a text names, which passage that is, and why where none is found."""

import json

import pytest

from ragqa.corpus import load_corpus
from ragqa.corpus.reference_grammar import line_of_mentions, mentions, mentions_of
from ragqa.corpus.references import key_of, references
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
        ("subsection (2) of section 58", [("section", ["(2)"], "section 58")]),
        ("within 2 business days, 3 of them", []),
        ("Part 7, Chapter 2 therein", [("part", ["7"], "")]),
    ],
)
def test_what_a_text_names(text, found):
    assert named(text) == found
    assert mentions_of(line_of_mentions(mentions(text)).encode()) == mentions(text)


def test_a_number_is_a_key_whatever_its_style():
    assert key_of("6.2.10.(2)")[0] == ("6.2.10", ("2",))
    assert key_of("Part 8.95.(2)")[0] == ("95", ("2",))
    assert key_of("PART 5.12.3.7.Guidance.1")[0] == ("12.3.7", ("guidance", "1"))
    assert key_of("Schedule 1.Part 3 .90.(3)")[0] == ("schedule 1/90", ("3",))
    assert key_of("Article 6.(1)")[0] == ("6", ("1",))
    assert key_of("58)")[0] == ("58", ())
    assert key_of("Part 3")[1] == "part 3"


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

"""Each maker changes one thing, where that contradicts, and nothing where it need not."""

import ast
import random
from pathlib import Path

import pytest

import ragqa.evaluation.benchmarks.verdicts.edits as edits
from ragqa.evaluation.benchmarks.verdicts.edits import MAKERS, edited

SEEDS = range(12)


def all_edits(text, kind):
    return {(edit.was, edit.became, edit.text) for seed in SEEDS if (edit := edited(text, kind, random.Random(seed)))}


@pytest.mark.parametrize(
    ("kind", "text", "was"),
    [
        ("number", "The firm must name three members within 12 months.", {"three", "12"}),
        ("amount", "A fee of HMD 500 is due, with 7 per cent interest.", {"500", "7"}),
        ("amount", "The lake covers 31,500 square kilometres and is $4 million in debt.", {"31,500", "4"}),
        ("date", "The bank was nationalised on 1 March 1946.", {"March", "1946"}),
        ("unit", "The report is due within 72 hours or three Business Days.", {"hours", "Business Days"}),
        ("unit", "The lake has a depth of 1,642 metres.", {"metres"}),
        ("modal", "An Authorised Firm must notify the Commission.", {"must"}),
        ("modal", "Where a person is absent, an Authorised Firm may appoint another.", {"may"}),
        ("modal", "The firm must not inform the subject of a report.", {"must not"}),
        ("modal", "The Great Wall cannot be seen from the Moon.", {"cannot"}),
        ("modal strength", "The firm must correct wrong data.", {"must"}),
        ("modal strength", "The Nile is usually listed as the longest river.", {"usually"}),
        ("negation", "Mercury is the smallest planet.", {"is"}),
        ("negation", "The right does not apply to Virtual Assets.", {"does not"}),
        ("party", "The firm must notify the Commission of a breach.", {"The firm"}),
        ("entity", "Aconcagua stands in the west of Argentina.", {"Argentina"}),
    ],
)
def test_one_thing_is_changed_and_told(kind, text, was):
    found = all_edits(text, kind)
    assert {old for old, _, _ in found} == was
    for old, new, changed in found:
        assert old != new
        assert changed != text
        if kind != "party":
            assert text.replace(old, new, 1) == changed


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("number", "Rule 3.1 and Chapter 7 apply to Basel 3 since 1984, on 5 May, for HMD 500."),
        ("number", "One of them is the Big Ten Conference."),
        ("amount", "The firm must name 3 members under UFC 114."),
        ("date", "The Charter of 1215 and the Companies Rules 2019 apply."),
        ("unit", "The firm reports every year."),
        ("modal", "A firm that must register pays a fee."),
        ("modal", "A firm may hold assets only with consent."),
        ("modal", "No firm may keep a payment."),
        ("modal", "Its capital must be no less than seven per cent."),
        ("modal", "Demilitarisation may mean the reduction of armed forces."),
        ("modal strength", "The firm reports as often as it likes."),
        ("negation", "A firm that is registered pays a fee."),
        ("negation", "Some lakes are salt lakes."),
        ("negation", "The fee is only due in May."),
        ("party", "The firm and the Commission agree on a date."),
        ("party", "The firm must keep records."),
        ("party", "The firm must tell the Commission what the firm did."),
        ("entity", "France sold Louisiana."),
        ("entity", "The river flows through Austria, Hungary and Romania."),
        ("entity", "It was paid for by the Bank of England."),
    ],
)
def test_nothing_is_changed_where_that_need_not_contradict(kind, text):
    assert not all_edits(text, kind)


@pytest.mark.parametrize("kind", MAKERS)
def test_questions_tables_and_long_sentences_are_left_alone(kind):
    text = "The firm must not be in Argentina on 31 March 1946 and owes 500 dollars within 72 hours."
    long = f"{text[:-1]} {'and so on ' * 20}."
    assert not any(all_edits(one, kind) for one in (f"{text[:-1]}?", text.replace(" owes ", "\towes "), long, ""))


def test_the_parties_change_places():
    edit = edited("An Authorised Firm must give the Client a statement.", "party", random.Random(0))
    assert edit.text == "The Client must give an Authorised Firm a statement."


def test_a_month_has_the_day_that_stands_before_it():
    found = all_edits("Fees fall due on 31 January.", "date")
    assert len(found) > 3
    assert {new for _, new, _ in found} <= {"March", "May", "July", "August", "October", "December"}


def test_an_approximate_number_becomes_a_far_one():
    assert {new for _, new, _ in all_edits("It has about 20 members in all.", "number")} <= {"40", "60", "10"}


def test_equal_chance_gives_equal_edits():
    text = "The firm must name three members within 12 months."
    for kind in MAKERS:
        assert edited(text, kind, random.Random(7)) == edited(text, kind, random.Random(7))


def test_what_makes_edits_knows_nothing_of_what_detects_them():
    tree = ast.parse(Path(edits.__file__).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name for name in imported if name.startswith("ragqa")}

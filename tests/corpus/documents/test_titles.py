"""Titles: declared ones that are names of files or unfinished are not taken."""

import pytest

from ragqa.corpus.documents.html import parse_html
from ragqa.corpus.documents.model import Block, Parsed
from ragqa.corpus.documents.titles import leave_out_contents, title_of

CHAPTER = Block("General", "heading", level=3)


def parsed_of(title, *blocks):
    return Parsed(title=title, blocks=[*blocks, CHAPTER])


def lines(*texts, level=1):
    return [Block(text, "heading", level=level) for text in texts]


@pytest.mark.parametrize(
    ("title", "blocks", "name", "expected"),
    [
        ("Rules on Ferries", lines("Chapter One"), "x", "Rules on Ferries"),
        ("Ferries", lines("Application and Definitions"), "www.example.org_rules_ferries_2026", "Ferries"),
        ("Quay Dues_v2.0.docx", lines("Guide to Quay Dues"), "quay-dues", "Guide to Quay Dues"),
        ("Act", lines("Ferries and Quays"), "x", "Ferries and Quays"),
        ("J_202611EN.010.xml", [Block("ORDER 2026/11 OF THE FERRY COUNCIL"), Block("of 3 May 2026")], "order-11",
         "ORDER 2026/11 OF THE FERRY COUNCIL of 3 May 2026"),
        ("Word Document", lines("Guide to Quay Dues"), "x", "Guide to Quay Dues"),
        ("Microsoft Word - dues_v2.doc", lines("Guide to Quay Dues"), "x", "Guide to Quay Dues"),
        ("Standards for", lines("Standards for", "Lighthouse Keepers", "Version 2.1"), "x",
         "Standards for Lighthouse Keepers"),
        ("", lines("Pilotage Policy", "for the", "Northern Ports", "Version 2.1", "May 8, 2024", level=7), "np-v2",
         "Pilotage Policy for the Northern Ports"),
        ("Harbour Rules", lines("HARBOUR RULES FOR SMALL CRAFT (Moorings)"), "x",
         "HARBOUR RULES FOR SMALL CRAFT (Moorings)"),
        ("“Quay Dues Guide”", lines("Chapter One"), "x", "Quay Dues Guide"),
        ("“AN", lines("“AN", "ACT", level=4), "Ferries and Quays Act, 2007", "Ferries and Quays Act, 2007"),
        ("", [Block("I keep the keys safe."), Block("I lock the door.")], "template-keys", "template-keys"),
        ("32026L0058", [Block("The council met on the quay."), Block("Order of the Council on Quays")], "quays",
         "Order of the Council on Quays"),
    ],
)  # fmt: skip
def test_the_title_is_what_a_reader_would_call_the_document(title, blocks, name, expected):
    assert title_of(parsed_of(title, *blocks), name) == expected


def test_a_long_title_is_shortened_to_its_first_line_and_its_short_title():
    lines = (
        "REGULATION 2026/7 OF THE FERRY COUNCIL",
        "of 3 May 2026",
        "on " + "dues and " * 20 + "pilots (Ferry Dues Act)",
    )
    found = title_of(parsed_of("R_7.xml", *map(Block, lines)), "r7")
    assert found == "REGULATION 2026/7 OF THE FERRY COUNCIL (Ferry Dues Act)"
    assert len(title_of(parsed_of("The Duty " * 100), "x")) <= 300


def test_a_list_that_a_sentence_begins_is_no_table_of_contents(tmp_path):
    lamps = "".join(f"<li>{name} Lamp (Section 5.{n})</li>" for n, name in enumerate(("Oil", "Gas", "Bell"), start=1))
    rules = "".join(
        f"<h2>4.{n} {who}</h2><p>A {who} must light a boat with any of the following lamps:</p><ul>{lamps}</ul>"
        for n, who in enumerate(("keeper", "master"), start=1)
    )
    path = tmp_path / "a.html"
    path.write_text(f"<html><body><h1>Lamps</h1>{rules}</body></html>", encoding="utf-8")
    parsed = parse_html(path)
    leave_out_contents(parsed)
    assert [block.text for block in parsed.blocks].count("Gas Lamp (Section 5.2)") == 2

"""Pages of a site: its furniture is learned, numbers stand in columns, nothing is lost; sheets that list controls."""

from collections import Counter

import pytest
from openpyxl import Workbook

from ragqa.corpus.documents import Reader, html
from ragqa.corpus.documents.conservation import lost_words
from ragqa.corpus.documents.html import parse_html
from ragqa.corpus.documents.html_parts import read_page
from ragqa.corpus.documents.model import Block, Parsed, UnreadableError
from ragqa.corpus.documents.passages import passages_of
from ragqa.corpus.documents.structure import build
from ragqa.corpus.documents.worker import read_document
from ragqa.index.passages import line_of
from ragqa.types import Passage


def row(number, text):
    return f"<div class='r'><div class='n'><p>{number}</p></div><div class='t'>{text}</div></div>"


def rule(number, text, date="01/02/2024"):
    links = f"<li>{date}</li><li><a href='#o'>Former <span>text of {number}</span></a></li>"
    return f"<div class='rule'>{row(number, text)}<ul class='links'>{links}</ul></div>"


def page(name):
    rules = (rule("1.1", f"<p>A {name} keeps a lamp lit at night.</p>")
             + rule("1.2", "<ol><li>(1) It carries a bell; and</li><li>(2) it carries a rope.</li></ol>"))  # fmt: skip
    articles = "".join(rule(number, f"<p>Provision {number} speaks of ropes.</p>") for number in ("1.", "2A.", "3E12."))
    return (
        f"<html><body><h1>{name.title()}s</h1><div class='banner'><h2>You see the book of today</h2></div>"
        f"<div class='side'><h2>See also</h2><ul class='links'><li><a href='#'>{name} fees</a></li></ul></div>"
        f"{row('1', '<h3>Lights</h3>')}{rules}"
        "<div class='tools'><h3>Save it as</h3><ul class='links'><li><a href='#'>File</a></li></ul></div>"
        f"<h3>Article 6</h3><p>Ropes</p>{articles}</body></html>"
    )


def written(folder):
    paths = [folder / f"{name}.html" for name in ("ferry", "barge", "canoe")]
    for path in paths:
        path.write_text(page(path.stem), encoding="utf-8")
    return paths


def test_what_recurs_goes_and_numbers_stand_with_their_texts(tmp_path):
    paths = written(tmp_path)
    reading = read_document(paths[0], "HTML", "ferry", 128, paths)
    found = {passage["number"]: passage for passage in reading["passages"]}
    assert found["1.1"]["text"] == "A ferry keeps a lamp lit at night."
    assert found["1.1"]["section"] == "Ferrys › 1 Lights"
    assert found["1.1"]["effective"] == "2024-02-01"
    assert found["1.2.(1)"]["text"] == "It carries a bell; and"
    assert found["Article 6.3E12."]["section"].endswith("Article 6 Ropes")
    texts = " ".join(passage["text"] for passage in reading["passages"])
    assert not any(words in texts for words in ("book of today", "Former", "Save it as", "fees"))
    assert reading["dropped"]["furniture of the site"] >= 4
    assert reading["warnings"] == []


def test_a_page_of_nothing_but_its_sites_furniture_is_refused_as_such(tmp_path):
    paths = written(tmp_path)
    for name in ("raft", "punt", "dhow"):
        banner = "<div class='banner'><h2>You see the book of today</h2></div>"
        body = f"<h1>{name}s</h1>{banner}<p class='later'>Not yet here.</p>"
        paths.append(tmp_path / f"{name}.html")
        paths[-1].write_text(f"<html><body>{body}</body></html>", encoding="utf-8")
    with pytest.raises(UnreadableError, match="found what stands on other pages of its site, too"):
        read_document(paths[-1], "HTML", "dhow", 128, paths)


def test_a_single_page_keeps_what_only_other_pages_show_to_be_furniture(tmp_path):
    with Reader() as reader:
        reading = reader.read(written(tmp_path)[0], "HTML", "ferry", 128)
    assert any("book of today" in passage.text for passage in reading.passages)


def test_nothing_of_a_long_unit_is_lost():
    long = " ".join(f"word{n}" for n in range(300))
    blocks = [
        Block("1.1 A keeper must do all of this:"),
        Block(f"It is said first. {long}"),
        Block("Boat | Fee\n" + "\n".join(f"boat {n} | {n} crowns and more words here" for n in range(100)), "table"),
        Block(f"(a) keep {long};"),
        Block(f"(b) hold {long}."),
    ]
    passages = passages_of(build(blocks), "d", "t", 32)
    words = [word for block in blocks for word in f"{block.label} {block.text}".split()]
    assert not lost_words(Parsed(blocks=blocks, words=Counter()), passages)
    assert {word.strip(".;") for word in words} <= {
        word.strip(".;") for passage in passages for word in f"{passage.number} {passage.text}".split()
    } | {"(a)", "(b)", "1.1"}
    tables = [passage.text for passage in passages if "Boat | Fee" in passage.text]
    assert len(tables) > 1
    assert all(text.startswith("Boat | Fee\n") for text in tables)


def test_words_that_no_passage_has_are_told(tmp_path):
    parsed = parse_html(written(tmp_path)[0])
    assert lost_words(parsed, passages_of(build(parsed.blocks), "d", "t", 128)) == {}
    parsed.words["harbour"] += 1
    assert lost_words(parsed, passages_of(build(parsed.blocks), "d", "t", 128)) == {"harbour": 1}


def test_a_row_of_a_catalogue_is_a_unit_named_by_its_identifier(tmp_path):
    book = Workbook()
    sheet = book.active
    sheet.append(["Number", "Name", "Text", "Discussion"])
    for n in range(1, 5):
        text = f"The keeper of harbour {n} keeps the count of all of its boats."
        sheet.append([f"HB-{n}", f"Count {n}", text, f"Counts of harbour {n} are kept so that boats are found again."])
    book.save(tmp_path / "controls.xlsx")
    passages = read_document(tmp_path / "controls.xlsx", "Excel", "controls", 128)["passages"]
    assert [passage["number"] for passage in passages[:2]] == ["HB-1", "HB-1.Discussion"]
    assert passages[0]["text"] == "The keeper of harbour 1 keeps the count of all of its boats."
    assert passages[0]["section"] == "HB-1 Count 1"


def test_days_in_force_are_written_only_where_known():
    assert b"effective" not in line_of(Passage("d:1", "d", "text"))
    assert b'"effective": "2024-02-01"' in line_of(Passage("d:1", "d", "text", effective="2024-02-01"))


def test_a_page_that_others_are_compared_with_is_read_once_and_anew_once_it_has_changed(tmp_path, monkeypatch):
    paths, read = written(tmp_path), []
    monkeypatch.setattr(html, "read_page", lambda path: read.append(path) or read_page(path))
    for path in paths:
        read_document(path, "HTML", path.stem, 128, paths)
    assert read == paths
    paths[0].write_text(page("rafts"), encoding="utf-8")
    assert "A rafts keeps" in str(read_document(paths[0], "HTML", "rafts", 128, paths[:2])["passages"])

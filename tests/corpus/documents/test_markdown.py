"""Markdown with numbered headings is read as a document; other Markdown stays verbatim slices."""

import pytest

from ragqa.corpus.documents.conservation import lost_words
from ragqa.corpus.documents.markdown import is_rules, parse_markdown
from ragqa.corpus.documents.passages import passages_of
from ragqa.corpus.documents.structure import build
from ragqa.corpus.documents.worker import read_document
from ragqa.corpus.formats import detect_format, load_corpus
from ragqa.errors import CorpusError

ACT = """---
title: Lamp Act
---
## PART 2 Keepers

### 16. Uses of lamps

**16.** (1) A keeper must light a [lamp](#lamp) at
dusk on:
(a) working days; and
(b) holidays.

(2) A keeper may <abbr title="extinguish">put out</abbr> a lamp.

### 17. Oil

<ol><li>A keeper must buy oil.</li>
<li>A keeper must store it.</li></ol>

| Oil | Litres |
|-----|--------|
| train | 4 |
"""


def passages(path):
    parsed = parse_markdown(path)
    found = passages_of(build(parsed.blocks), "act", parsed.title, 128)
    assert not lost_words(parsed, found)
    return {one.number: one for one in found}


@pytest.fixture
def act(tmp_path):
    path = tmp_path / "act.md"
    path.write_text(ACT, encoding="utf-8")
    return path


def test_rules_in_markdown_have_their_numbers_and_no_markup(act):
    found = passages(act)
    assert found["PART 2.16.(1)"].text == (
        "A keeper must light a lamp at dusk on:\n(a)\tworking days; and\n(b)\tholidays."
    )
    assert found["PART 2.16.(2)"].text == "A keeper may put out a lamp."
    assert found["PART 2.16.(2)"].section.endswith("16. Uses of lamps")
    assert found["PART 2.16.(2)"].title == "Lamp Act"
    assert "train | 4" in "\n".join(one.text for one in found.values())
    assert not any("<" in one.text or "](" in one.text for one in found.values())


def test_items_that_begin_with_the_number_of_their_heading_keep_theirs(tmp_path):
    path = tmp_path / "act.md"
    path.write_text(
        "# Act\n\n## 1. Lists\n\n1. Count lamps.\n2. Count oils.\n\n## 2. Days\n\nRest.\n\n## 3. End\n\nGo."
    )
    found = passages(path)
    assert [(name, one.text) for name, one in found.items() if name.startswith("1.")] == [
        ("1.", "Lists"), ("1.1.", "Count lamps."), ("1.2.", "Count oils."),
    ]  # fmt: skip


def test_a_number_that_is_repeated_with_another_mark_counts_once(tmp_path):
    path = tmp_path / "act.md"
    path.write_text("# Act\n\n## 1.1 Oil\n\n1.1. (1) Buy oil.\n\n## 1.2 Days\n\n1.2 (1) Rest.\n\n## 1.3 End\n\nGo.")
    found = passages(path)
    assert (found["1.1.(1)"].text, found["1.2.(1)"].text) == ("Buy oil.", "Rest.")


def test_a_folder_of_rules_in_markdown_is_read_as_documents(act, tmp_path):
    assert detect_format(tmp_path) == detect_format(act) == "documents"
    assert "PART 2.16.(2)" in {one.number for one in load_corpus(tmp_path).passages}
    assert {one.number for one in load_corpus(tmp_path, "text").passages} == {"1", "2"}


def test_other_markdown_stays_verbatim(tmp_path):
    text = "# Note\n\nA [firm](f.md) keeps records.\n\n## 1. More\n\nIt asks.\n"
    path = tmp_path / "note.md"
    path.write_text(text)
    assert not is_rules(path)
    assert detect_format(tmp_path) == "text"
    assert read_document(path, "text", "note", 128)["passages"][0]["text"] == "A [firm](f.md) keeps records."


def test_markdown_without_text_is_refused_in_words(tmp_path):
    path = tmp_path / "act.md"
    path.write_text("# 1. A\n\n## 1.1 B\n\n## 1.2 C\n")
    assert is_rules(path)
    with pytest.raises(CorpusError, match="expected text, found none below its headings; take it out"):
        parse_markdown(path)

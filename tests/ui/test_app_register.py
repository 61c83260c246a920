"""The page of the register by Streamlit's own tester: filters, a new version, who may note, text that stays text."""

import csv
from dataclasses import replace
from html import unescape

import pytest
from streamlit.testing.v1 import AppTest

from ragqa.index import build_index, open_index
from ragqa.library import register_store as store
from ragqa.library.register_sheets import write_sheet
from ragqa.settings.config import IndexingConfig
from ragqa.settings.paths import Paths
from tests.support.fakes import FakeEncoder

pytestmark = pytest.mark.long
HOSTILE = "<img src=x onerror=alert(1)>"
TEXT = (
    f"# Rules\n\n1.1 A firm must act at once, {HOSTILE}.\n\n1.2 A bank must not wait.\n\n1.3 Firms should keep a log.\n"
)


@pytest.fixture
def file(tmp_path, monkeypatch):
    """The register of a corpus of three rows, of which the page has not been opened yet."""
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    monkeypatch.setenv("RAGQA_INDEXES", str(tmp_path / "indexes"))
    built(tmp_path, TEXT)
    return Paths.from_env().registers / "mine.jsonl"


def built(folder, text):
    (folder / "source").mkdir(exist_ok=True)
    (folder / "source" / "rules.md").write_text(text)
    indexes = Paths.from_env().indexes
    build_index("mine", folder / "source", indexes=indexes, config=IndexingConfig(), encoder=FakeEncoder())
    return open_index("mine", indexes)


def page(corpus="mine"):
    def script():
        from ragqa.ui.pages.register import register_page

        register_page()

    tester = AppTest.from_function(script, default_timeout=60)
    tester.query_params["corpus"] = corpus
    return tester.run()


def told(at):
    assert not at.exception
    html = " ".join(element.proto.body for element in at.get("html") if hasattr(element.proto, "body"))
    return html, " ".join(one.value for one in (*at.title, *at.caption))


def test_a_row_says_its_document_and_who_and_items_of_a_list_are_told_apart(file, tmp_path):
    lead = f"A firm must {'without any delay ' * 8}tell the board"
    (tmp_path / "source" / "acts.md").write_text("# Acts\n\n## 1.1 Haste\n\nIt must act. From now, a firm must wait.\n")
    built(tmp_path, f"# Rules\n\n## 1.4 Reports\n\nA firm must act.\n\n{lead} of (a) losses; and\n\n(b) frauds.\n")
    at = page()
    assert not at.exception
    table = at.dataframe[0].value
    assert list(table.columns[:6]) == ["rule", "text", "document", "who", "strength", "owner"]
    told = {(one.rpartition("#")[2], name) for one, name in zip(table["rule"], table["document"], strict=True)}
    assert told == {("1", "Acts"), ("1", "Rules")}  # the number first: a long title cannot push it out of sight
    assert "A firm" in set(table["who"])
    assert list(table["text"])[-2:] == [f"{lead} of losses", "… frauds"]
    offered = at.selectbox(key="register_who").options
    assert offered.count("A firm") == 1
    assert "It" not in offered


def test_rows_are_as_high_as_their_longest_text_needs(file, tmp_path):
    at = page()
    assert at.dataframe[0].proto.row_height == 76  # four lines at least
    text = f"A firm must {'keep a record ' * 27}here"
    built(tmp_path, f"# Rules\n\n1.1 {text}.\n\n1.2 A firm must not wait.\n")
    at = page()
    assert max(map(len, at.dataframe[0].value["text"])) > 380
    assert at.dataframe[0].proto.row_height == 19 * 6  # letters are 7 pixels wide, the column 480
    rows = tuple(replace(row, text=text * 5) for row in store.load(file).rows)
    store.change(file, lambda one: replace(one, rows=rows))
    assert page().dataframe[0].proto.row_height == 190  # so that more than three rows are on the screen
    short = "\n\n".join(f"1.{n} A firm must keep record {n}." for n in range(2, 21))
    built(tmp_path, f"# Rules\n\n1.1 {text}.\n\n{short}\n")
    assert page().dataframe[0].proto.row_height == 76  # one long text of twenty is read in its cell


def test_recitals_are_shown_only_on_request(file):
    assert "register_recitals" not in {one.key for one in page().checkbox}
    held = store.load(file)
    rows = (replace(held.rows[0], number="(6)", is_recital=True), *held.rows[1:])
    store.change(file, lambda one: replace(one, rows=rows))
    at = page()
    assert "Rows 1 to 2 of 2, 2 in the register" in told(at)[1]
    at.checkbox(key="register_recitals").check().run()
    assert "Rows 1 to 3 of 3, 2 in the register" in told(at)[1]


def test_rows_are_found_by_words_party_strength_and_status_and_a_new_version_is_told(file, tmp_path):
    at = page()
    assert "Rows 1 to 3 of 3, 3 in the register" in told(at)[1]
    at.text_input(key="register_words").set_value("AT once").run()
    assert "Rows 1 to 1 of 1" in told(at)[1]
    at.text_input(key="register_words").set_value("")
    at.selectbox(key="register_strength").set_value("should").run()
    assert "Rows 1 to 1 of 1" in told(at)[1]
    at.selectbox(key="register_status").set_value("done").run()
    assert "No row matches" in told(at)[1]
    held = store.load(file)
    first = held.rows[0].obligation_id
    store.change(file, lambda one: replace(one, handlings={first: store.Handling("Ann", "done", note=HOSTILE)}))
    built(tmp_path, TEXT.replace("at once", "at last").replace("1.3 Firms should keep a log.\n", ""))
    at = page()
    at.segmented_control(key="register_view").set_value("What changed").run()
    html, _ = told(at)
    assert "1 changed" in html
    assert "1 gone" in html
    assert ">last,<" in html
    assert HOSTILE not in html
    assert HOSTILE in unescape(html)
    at = page()
    at.selectbox(key="register_change").set_value("gone").run()
    assert "Rows 1 to 1 of 1, 2 in the register" in told(at)[1]


def test_an_edited_sheet_comes_back_and_its_conflict_is_said(file, tmp_path):
    page()
    held = store.load(file)
    first, second = (row.obligation_id for row in held.rows[:2])
    sheet = tmp_path / "edited.csv"
    write_sheet(sheet, held, held.rows)
    lines = list(csv.reader(sheet.read_text(encoding="utf-8-sig").splitlines()))
    owner = lines[0].index("owner")
    lines[1][owner], lines[2][owner] = "Ann", "Eve"
    with sheet.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows(lines)
    store.change(file, lambda one: replace(one, handlings={second: store.Handling("Zoe")}))
    at = page()
    at.file_uploader(key="register_in_0").set_value(("edited.csv", sheet.read_bytes(), "text/csv")).run()
    html = unescape(told(at)[0])
    assert "edited.csv: 1 field imported, 1 conflict, 0 unknown rows" in html
    assert "owner: 'Zoe' stays, not 'Eve'" in html
    assert {name: one.owner for name, one in store.load(file).handlings.items()} == {first: "Ann", second: "Zoe"}


def test_a_corpus_that_is_not_there_is_said(file):
    assert not file.exists()
    html, _ = told(page("../../etc"))
    assert "There is no corpus" in unescape(html)
    at = page("")
    assert not at.exception
    assert [one.label for one in at.selectbox] == ["Corpus"]
    assert not file.exists()

"""The page Library by Streamlit's own tester: every state has its words, names of visitors stay words, no exception."""

import contextlib
import json
import os
from html import unescape

import pytest
from streamlit.testing.v1 import AppTest

from ragqa.corpus.documents import Reader
from ragqa.errors import CorpusError
from ragqa.index import build_index
from ragqa.library import parse_cache
from ragqa.library.collection import make_collection
from ragqa.library.transfer import delete, deleted, restore
from ragqa.library.update import MAX_TOKENS, index_events
from ragqa.library.upload import take
from ragqa.settings.config import IndexingConfig
from ragqa.settings.paths import Paths
from ragqa.types.streams import returned
from ragqa.ui.html.library import plain_markdown
from ragqa.ui.pages import library_corpus
from ragqa.ui.state import resources
from tests.support.fakes import FakeEncoder

pytestmark = pytest.mark.long
TITLE = "<img src=x onerror=alert(1)> *Rules* ![x](http://example.org/x.png)"


@pytest.fixture
def collection(tmp_path):
    made = make_collection("mine", Paths.from_env().library, TITLE, "All *of* them.")
    for name, text in {
        "a.md": "# A\n\nA firm must act at once.",
        "b.md": "# B\n\nA bank may wait.",
        "c.pdf": "",
    }.items():
        (tmp_path / name).write_text(text)
        with Reader() as reader, (tmp_path / name).open("rb") as data:
            take(made, name, data, reader)
            for one in made.read().staged:
                with contextlib.suppress(parse_cache.UnreadableError):
                    parse_cache.read(made, one, reader, MAX_TOKENS)
    return made


def shown(at):
    assert not at.exception
    html = " ".join(element.proto.body for element in at.get("html") if hasattr(element.proto, "body"))
    return unescape(html), " ".join(one.value for one in (*at.title, *at.caption, *at.markdown, *at.subheader))


def page(**query):
    """The page as a script of its own: the tester knows no pages that are functions."""

    def script():
        from ragqa.ui.pages.library import library_page

        library_page()

    tester = AppTest.from_function(script, default_timeout=30)
    for name, value in query.items():
        tester.query_params[name] = value
    return tester.run()


def test_a_corpus_from_files_that_wait_to_a_deleted_one(collection):
    at = page(corpus="mine")
    html, words = shown(at)
    assert "1 of 3 files was not read: c.pdf (expected a document, found an empty file; " in html
    assert "\\<img src=x onerror=alert\\(1\\)\\>" in words
    assert [button.label for button in at.button if button.key == "library_index"] == ["Index 2 documents"]
    at.button(key="discard_b.md").click().run()
    assert [one.name for one in collection.read().staged] == ["a.md", "c.pdf"]
    returned(index_events(collection, Paths.from_env().indexes, FakeEncoder))
    _, words = shown(page(corpus="mine"))
    assert "1 document · 1 passage" in words
    assert "1 of 2 files was not read: c.pdf" in shown(page(corpus="mine"))[0]  # also once the others are indexed
    html, _ = shown(page())
    assert all(f'href="{name}?corpus=mine"' in html for name in ("ask", "read", "register", "gaps"))
    waiting = collection.folder / "d.md"
    waiting.write_text("# D\n\n1.1 A bank must wait.\n")
    collection.stage(waiting, "d.md")
    at = page(corpus="mine")
    assert [one.label for one in at.selectbox] == ["This file is"]
    preview = next(one for one in at.expander if one.label.startswith("d.md"))
    assert preview.children[0].children[0].label == "This file is"  # above the preview, which fills a screen
    at.selectbox(key="replaces_d.md").set_value("a").run()
    assert {one.name: one.replaces for one in collection.read().staged}["d.md"] == "a"
    collection.unstage(("d.md",))
    assert "All \\*of\\* them." in words
    at = page(corpus="mine")
    at.button(key="remove_a").click().run()
    assert "removed by the next indexing" in shown(at)[1]
    at.button(key="library_delete").click().run()
    assert "Deleted" in " ".join(one.label for one in at.expander)
    at.button[-2].click().run()
    assert collection.read().documents[0].removed


def test_while_a_job_runs_nothing_is_shown_of_files_that_are_not_read_and_none_is_taken(collection, tmp_path):
    (tmp_path / "d.md").write_text("A clerk must act.")
    with Reader() as reader, (tmp_path / "d.md").open("rb") as data:
        take(collection, "d.md", data, reader)
    assert [one.label for one in page(corpus="mine").expander][-1] == "d.md · 17 bytes · not read yet"
    jobs = resources.library_jobs(Paths.from_env())
    with jobs.turn:  # as if another job were running
        job = jobs.start(collection, "read", lambda: None)
        at = page(corpus="mine")
        assert not at.exception
        assert len(at.expander) == 3
        assert not at.file_uploader
        assert "and 1 more file" in shown(at)[1]
    job.wait()
    assert len(page(corpus="mine").file_uploader) == 1


def test_files_of_the_watched_folder_are_proposed_and_taken_into_a_preview(collection, tmp_path, monkeypatch):
    folder = tmp_path / "watched"
    folder.mkdir()
    for name in ("fees *2026*.md", "c.pdf"):
        (folder / name).write_text("# Fees\n\nA keeper must pay ten crowns.")
        os.utime(folder / name, (0, 0))
    monkeypatch.setenv("RAGQA_WATCHED_FOLDER", str(folder))
    at = page()
    assert [one.value for one in at.text] == ["c.pdf", "fees *2026*.md"]
    assert "37 bytes · new document" in shown(at)[1]
    at.selectbox[0].select("mine")
    at.button(key="take_1").click().run()
    assert at.query_params["corpus"] == "mine"
    assert not at.exception
    assert "fees _2026_.md" in {one.name for one in collection.read().staged}
    assert [one.value for one in page().text] == []
    (folder / "d.md").write_text("# Piers\n\nA keeper must light the pier.")
    os.utime(folder / "d.md", (0, 0))
    at = page()
    at.button(key="not_now_0").click().run()
    assert not at.exception
    assert "Not now: 1 file" in [one.label for one in at.expander]
    assert "take_0" not in [one.key for one in at.button]
    at.button(key="again_0").click().run()
    assert "take_0" in [one.key for one in at.button]
    monkeypatch.setenv("RAGQA_WATCHED_FOLDER", "/no/where")
    assert "expected a folder, found '/no/where'; make it" in shown(page())[0]


def test_a_name_that_is_not_there_is_said():
    html, words = shown(page(corpus="../../etc"))
    assert "There is no corpus '../../etc' in the library" in html
    assert "dropped in here" in words


def test_a_corpus_that_was_built_from_a_folder_is_not_called_missing_and_leads_to_its_pages(tmp_path):
    (tmp_path / "1.json").write_text(json.dumps([{"ID": "1", "DocumentID": 1, "PassageID": "1", "Passage": "Act."}]))
    index = Paths.from_env().indexes
    build_index("acts", tmp_path, indexes=index, config=IndexingConfig(), encoder=FakeEncoder())
    html, words = shown(page(corpus="acts"))
    assert "acts was built from a folder" in html
    assert "There is no corpus" not in html
    assert "1 document · 1 passage" in words
    for address in ("ask", "read", "register", "gaps"):
        assert f'href="{address}?corpus=acts"' in html


def test_a_document_without_headings_is_read_and_a_passage_that_is_gone_is_said(collection):
    returned(index_events(collection, Paths.from_env().indexes, FakeEncoder))

    def script():
        from ragqa.ui.pages.reader import reader_page

        reader_page()

    at = AppTest.from_function(script, default_timeout=30)
    at.query_params["corpus"] = "mine"
    listed, _ = shown(at.run())
    assert 'href="read?corpus=mine&document=a"' in listed
    assert 'href="read?corpus=mine&document=b"' in listed
    for passage, expected in (("a:1", "A firm must act at once."), ("a:9", "not in the corpus any more")):
        at = AppTest.from_function(script, default_timeout=30)
        at.query_params["corpus"], at.query_params["passage"] = "mine", passage
        assert expected in shown(at.run())[0]


def test_the_first_page_of_ones_own_corpus_lists_its_documents(collection, monkeypatch):
    returned(index_events(collection, Paths.from_env().indexes, FakeEncoder))
    monkeypatch.setattr("ragqa.ui.state.resources.warm_up", lambda *_: None)

    def script():
        from ragqa.ui.pages.ask import ask_page

        ask_page()

    at = AppTest.from_function(script, default_timeout=60)
    at.query_params["corpus"] = "mine"
    html, words = shown(at.run())
    assert 'href="read?corpus=mine&document=a"' in html
    assert ">Add your documents</a>" in html
    assert "2 documents · 2 passages" in words


def test_documents_are_called_by_their_titles_and_files_that_wait_are_counted(collection):
    _, words = shown(page(corpus="mine"))
    assert "3 files · not indexed yet" in words
    returned(index_events(collection, Paths.from_env().indexes, FakeEncoder))
    at = page(corpus="mine")
    assert {"A", "B"} <= {one.value for one in at.text}  # the headings of a.md and b.md
    assert any("a.md · " in one.value for one in at.caption)
    assert any(" UTC · A added, B added" in one.label for one in at.expander)


def test_pages_of_a_corpus_name_it_by_its_title_and_lead_to_each_other(collection):
    returned(index_events(collection, Paths.from_env().indexes, FakeEncoder))

    def script():
        from ragqa.ui.pages.reader import reader_page

        reader_page()

    for query, there in (({}, ("library", "register", "gaps")), ({"passage": "a:1"}, ("read", "register", "gaps"))):
        at = AppTest.from_function(script, default_timeout=30)
        at.query_params["corpus"] = "mine"
        for name, value in query.items():
            at.query_params[name] = value
        html, words = shown(at.run())
        assert all(f'href="{one}?corpus=mine"' in html for one in there)
        assert "mine" not in words


def test_addresses_in_names_become_no_links():
    joined = [plain_markdown(text) for text in ("see www.example.org", "http://example.org", "a@example.org")]
    assert all("\N{WORD JOINER}" in one for one in joined)  # an escape alone does not stop Streamlit from linking them


def test_an_export_of_a_corpus_deleted_meanwhile_does_not_stand_in_the_way_of_restoring_it(collection):
    paths = Paths.from_env()
    delete(collection, paths.indexes)
    with pytest.raises(CorpusError):
        library_corpus._exported(collection)
    assert restore(deleted(paths.library)[0].key, paths.library, paths.indexes).read().title

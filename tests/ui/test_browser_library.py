"""A person with a browser and files of their own: drops them in, sees what was found, indexes, asks, replaces one."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path

import pytest

from tests.support.document_files import RULES, rules_pages, write_docx, write_html, write_pdf
from tests.support.server import browser_marks, settle

pytestmark = [
    pytest.mark.slow,  # half a minute on a busy machine; the page without a browser is in test_app_library
    *browser_marks(900),
]
LATER = [*RULES[:-1], ("2.1.1", "The Master must report any collision to the Harbour Office within one hour.", 0)]


@pytest.fixture
def files(tmp_path):
    write_html(tmp_path / "ferries.html")
    write_docx(tmp_path / "boats.docx", [(n, text.replace("Ferry", "Boat"), at) for n, text, at in RULES])
    barges = [(n, text.replace("Ferry Operator", "Barge Keeper"), at) for n, text, at in RULES]
    write_pdf(tmp_path / "barges.pdf", rules_pages(barges))
    (tmp_path / "empty.pdf").write_bytes(b"")
    (tmp_path / "later").mkdir()
    write_html(tmp_path / "later" / "ferries.html", LATER)
    return tmp_path


def pictures(page, name):
    """Of the page at both sizes in both themes, where somebody asked for them."""
    if folder := os.environ.get("RAGQA_SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        for scheme, (width, height) in product(("dark", "light"), ((390, 844), (1440, 900))):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(700)
            page.screenshot(path=Path(folder) / f"{name}-{scheme}-{width}.png")


def drop(page, *paths):
    page.locator("input[type=file]").first.set_input_files([str(path) for path in paths])


def index(page, words):
    page.get_by_role("button", name=words).click()
    page.locator(".st-key-library_ask button").wait_for()
    page.get_by_role("button", name=words).wait_for(state="detached")
    page.locator(".st-key-library_progress").wait_for(state="detached")
    settle(page)


def test_from_dropped_files_to_an_answer_and_to_what_a_new_version_changed(page, address, files):
    page.goto(f"{address}/library")
    page.get_by_label("Name").fill("Ferries *2026*")
    page.get_by_label("Name").press("Enter")
    settle(page)
    drop(page, *(files / name for name in ("ferries.html", "boats.docx", "barges.pdf", "empty.pdf")))
    page.get_by_role("button", name="Index 3 documents").wait_for()
    found = page.locator(".rq-found-in").first.inner_text()
    assert "8 passages" in found
    assert "1.1.2.(1).(a)" in found
    assert "found an empty file" in page.locator("body").inner_text()
    pictures(page, "library-preview")
    index(page, "Index 3 documents")
    assert page.get_by_role("heading", name="Ferries *2026*").is_visible()
    pictures(page, "library-indexed")

    page.locator(".st-key-library_ask button").click()
    page.locator(".st-key-examples button").first.wait_for()
    settle(page)
    page.get_by_label("Question").fill("When must the Master report a collision to the Harbour Office?")
    page.get_by_label("Question").press("Control+Enter")
    page.locator(".rq-line:not(.rq-provisional)").wait_for()
    assert "within two hours" in page.locator(".rq-answer").first.inner_text()
    record = page.locator('a[href^="records?record="]').first.get_attribute("href")
    table = page.locator('[data-card^="p"] a.rq-read')
    addresses = {one.get_attribute("href") for one in table.all()}
    for document in ("ferries", "boats", "barges"):
        address_of = next(one for one in sorted(addresses) if f"passage={document}%3A2.1.1" in one)
        page.goto(f"{address}/{address_of}&from=0&to=10")
        page.locator("#rq-place mark").first.wait_for()
        assert page.locator("#rq-place mark").inner_text() == "The Master"
        if document == "barges":
            page.locator(".st-key-read_picture img").wait_for()
        pictures(page, f"read-{document}")

    page.goto(f"{address}/library?corpus=ferries-2026")
    page.locator(".st-key-library_ask button").wait_for()
    settle(page)
    drop(page, files / "later" / "ferries.html")
    index(page, "Index 1 document")
    changed = page.locator("details.rq-row").first
    changed.wait_for()
    changed.locator("summary").click()
    assert changed.locator("del mark").inner_text().startswith("two hours")
    pictures(page, "library-changed")
    page.goto(f"{address}/{record}")
    page.get_by_text("The source has changed since: 2.1.1 (changed)").wait_for()
    page.goto(f"{address}/records")
    page.get_by_text("the source has changed since").first.wait_for()
    pictures(page, "records-changed")
    page.goto(f"{address}/library?corpus=ferries-2026")
    page.get_by_role("button", name="More").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_text("Deleted: 1").wait_for()
    pictures(page, "library-start")

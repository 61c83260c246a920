"""Two experts label a data set by keyboard, blind; disagreements are settled; the labels are read back."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ragqa.index import open_index
from ragqa.infra.journal import begun
from ragqa.lab.dataset.benchmark import MAKE
from ragqa.lab.dataset.review import ADJUDICATOR, KINDS, agreement, decisions, labels_in, pairs_of, read_given
from ragqa.lab.dataset.stages import SPLIT, Stages, as_lines
from ragqa.types import Passage
from ragqa.ui.pages.dataset import pair_html
from tests.support.server import NEEDS_CHROMIUM, PATIENCE, ROOT, running_app, settle
from tests.ui.conftest import opened_page

N = 20


def write_set(home: Path) -> Path:
    """A finished set of twenty pairs, of the demonstration rulebook's passages."""
    folder = home / "evaluations" / f"{MAKE.name}-0123456789"
    folder.mkdir(parents=True)
    begun(folder, {"input": "rulebook"}, (), restart=False)
    passages = [one for one in open_index("rulebook", ROOT / "indexes").passages if len(one.text.split()) > 20]
    rows = [
        {
            "id": f"q{n:02}",
            "question": f"What must firm {n} <b>do</b> about its clients?",
            "passages": [passages[3 * n + m].passage_id for m in range(2)],
            "kind": "obligation",
            "persona": "professional",
            "form": "question",
        }
        for n in range(N // 2)
    ]
    Stages(folder).write(SPLIT, {}, as_lines(rows))
    return folder


def test_a_pair_is_escaped_and_told_labels_name_nobody():
    row = {"question": "<script>", "passages": ["a", "b"], "kind": "<i>"}
    found = pair_html(row, "1:<b>", Passage("1:<b>", "1", "<img src=x>"), ["null", "relevant"])
    assert "<script>" not in found
    assert "<img" not in found
    assert "one of 2 passages" in found
    assert "not available" in pair_html(row, "1:<b>", None, [])


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    folder = write_set(home)
    with running_app(home, RAGQA_DATA=str(home)) as address:
        yield folder, address


def label(page, keys):
    """Presses each key when its pair is there and waits until the next one is."""
    for key in keys:
        pair = page.locator("[data-pair]").get_attribute("data-pair")
        page.locator(".rq-brand").click()  # nothing that is typed into has the focus
        page.keyboard.press(key)
        page.wait_for_function(
            "pair => document.querySelector('[data-pair]')?.dataset.pair !== pair", arg=pair, timeout=PATIENCE
        )
        settle(page)


def reviewer(page, name):
    other = page.locator(".st-key-dataset_other button")
    if other.count():  # somebody labels already
        other.first.click()  # a button with a tooltip is drawn twice, for a pointer and for fingers
    box = page.get_by_label("Reviewer")
    box.fill(name)
    box.press("Enter")
    settle(page)


def picture(page, name):
    if folder := os.environ.get("RAGQA_SCREENSHOTS"):
        for width, height in ((390, 844), (1440, 900)):
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(700)
            page.screenshot(path=Path(folder) / f"dataset-{name}-{width}.png")


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.timeout(900)
@NEEDS_CHROMIUM
def test_twenty_pairs_by_keyboard_two_reviewers_agreement_adjudication_and_the_labels_read_back(browser, reviewed):
    folder, address = reviewed
    page = opened_page(browser)
    page.goto(f"{address}/dataset?set={folder.name}&view=Review")
    page.get_by_text("Enter your name").wait_for()
    first, second = ["1"] * 12 + ["2"] * 4 + ["3"] * 2 + ["4"] * 2, ["1"] * 12 + ["2"] * 4 + ["3"] * 2 + ["1"] * 2
    reviewer(page, "Ann")
    picture(page, "review")
    label(page, first)
    page.get_by_text("Ann has labelled every pair.").wait_for()
    reviewer(page, "Bo")
    assert page.locator("[data-pair]").is_visible()
    assert "relevant" not in page.locator("[data-pair]").inner_text()
    label(page, second[:1])
    page.keyboard.press("Backspace")
    settle(page)
    assert page.locator("[data-pair]").get_attribute("data-pair") == " ".join(pairs_of(folder)[0].key)
    label(page, second)
    page.get_by_text("18 of 20 the same").wait_for()
    picture(page, "agreement")
    page.get_by_text("Settle disagreements").click()
    settle(page)
    assert page.locator("[data-pair] .rq-badge").all_inner_texts() == ["null", "relevant"]
    picture(page, "settle")
    label(page, ["1", "4"])
    page.get_by_text("Nothing is left to settle.").wait_for()
    page.get_by_text("20 of 20 pairs decided, 20 labelled twice, 0 disputed").wait_for()
    with page.expect_download() as taken:
        page.get_by_role("button", name="Download the labels").click()
    text = Path(taken.value.path()).read_text(encoding="utf-8")
    page.close()

    labels, pairs = labels_in(folder), pairs_of(folder)
    assert [labels[pair.key]["Ann"] for pair in pairs] == [KINDS[int(key) - 1] for key in first]
    found = agreement(labels)
    assert (found.n, found.same, found.reviewers) == (20, 18, ("Ann", "Bo"))
    assert [labels[pair.key][ADJUDICATOR] for pair in pairs[-2:]] == ["relevant", "null"]
    assert len(decisions(folder)) == N
    (folder / "labels.jsonl").unlink()
    assert read_given(folder, text, "labels.jsonl") == len(text.splitlines())
    assert labels_in(folder) == labels
    assert {json.loads(line)["reviewer"] for line in text.splitlines()} == {"Ann", "Bo", ADJUDICATOR}


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.timeout(300)
@NEEDS_CHROMIUM
def test_stages_are_shown_and_put_back_edited_and_what_a_set_is_for_is_told(browser, reviewed, tmp_path):
    folder, address = reviewed
    page = opened_page(browser)
    page.goto(f"{address}/dataset?set={folder.name}")
    page.get_by_role("button", name="Make", exact=True).wait_for()
    picture(page, "make")
    page.get_by_text("Stages", exact=True).click()
    page.get_by_text("10 rows").wait_for()
    page.locator(".stDataFrameGlideDataEditor").first.wait_for()
    picture(page, "stages")
    edited = (folder / SPLIT).read_text().replace("firm 1 ", "firm one ")
    (tmp_path / SPLIT).write_text(edited)
    page.locator("input[type=file]").first.set_input_files(str(tmp_path / SPLIT))
    page.get_by_text("Edited. Make the set again").wait_for()
    settle(page)
    assert (folder / SPLIT).read_text() == edited
    (tmp_path / SPLIT).write_text("{")
    page.locator("input[type=file]").first.set_input_files(str(tmp_path / SPLIT))
    page.locator(".rq-bad", has_text="line 1: expected a JSON object").wait_for()
    page.get_by_text("Use", exact=True).click()
    page.get_by_text("Train ranker", exact=True).wait_for()
    page.locator("code", has_text="ragqa train ranker --index rulebook --questions").wait_for()
    picture(page, "use")
    page.close()

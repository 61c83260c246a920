"""A person evaluates with a browser: chooses, runs, watches, leaves and returns, looks into a question, downloads.

``python -m tests.support.evaluation_cases FOLDER`` writes pictures of the same states.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ragqa.corpus.pandachat import load_pandachat_questions
from ragqa.evaluation.benchmarks.pandachat.submissions import read_submission
from tests.support.evaluation_cases import (
    RETRIEVAL,
    SIZES,
    open_evaluation,
    open_question,
    run,
    set_first,
    sideways,
    upload,
    wait_until_ended,
)
from tests.support.server import PATIENCE, ROOT, browser_marks, running_app, settle
from tests.ui.conftest import opened_page

pytestmark = browser_marks(600)


SLOW_PHONE = pytest.param("phone", marks=pytest.mark.slow)  # the wide one looks at a phone's width at its end


@pytest.fixture(params=["wide", SLOW_PHONE], ids=str)
def page(browser, request):
    page = opened_page(browser, SIZES[request.param])
    yield page
    assert page.locator("[data-testid=stException]").count() == 0
    assert "Traceback" not in page.locator("body").inner_text()
    page.close()


def expect_choice(page, label, value):
    from playwright.sync_api import expect

    expect(page.get_by_role("combobox", name=label, exact=True)).to_have_value(value, timeout=PATIENCE)


def download(page, label):
    with page.expect_download() as found:
        page.get_by_role("button", name=label).click()
    return Path(found.value.path())


def test_the_demonstration_questions_from_choice_to_download(page, address):
    open_evaluation(page, address, RETRIEVAL)
    set_first(page, 8)
    run(page)
    wait_until_ended(page)
    page.get_by_text(re.compile("^Done: 8 questions")).first.wait_for()
    page.locator(".rq-ours").first.wait_for()
    assert page.locator("text=Gokhan et al. 2024, table 4").count() == 0
    page.locator(".stDataFrameGlideDataEditor").first.click(position={"x": 15, "y": 38 + 35 + 17})
    page.locator(".rq-question", has_text=re.compile("^2[.] ")).first.wait_for()
    page.get_by_role("button", name="Next").click()
    page.locator(".rq-question", has_text=re.compile("^3[.] ")).first.wait_for()
    open_question(page, 4)
    page.locator(".rq-question", has_text=re.compile("^4[.] ")).first.wait_for()
    row = page.locator(".rq-found").first
    row.locator("summary").click()
    row.locator(".rq-passage").wait_for()
    page.locator(".rq-found .rq-good", has_text="gold").first.wait_for()
    page.set_viewport_size(dict(zip(("width", "height"), SIZES["phone"], strict=True)))
    page.wait_for_function("window.innerWidth === 390")
    settle(page)
    assert sideways(page) <= 1
    report = json.loads(download(page, "Report (JSON)").read_text(encoding="utf-8"))
    assert report["n_questions"] == 8
    assert download(page, "Ranking (TREC run)").read_text(encoding="utf-8").startswith("rulebook-01 Q0 ")


@pytest.mark.slow
@pytest.mark.parametrize("page", ["wide"], indirect=True)
def test_leaving_and_reloading_find_the_run_again(page, address):
    open_evaluation(page, address, "Answers and RePASs (RIRAG)")
    set_first(page, 6)
    run(page)
    page.locator(".rq-notice", has_text=re.compile("Loading|Answering")).first.wait_for()
    page.goto(f"{address}/records")
    page.locator("h1", has_text="History").wait_for()
    open_evaluation(page, address)
    page.get_by_text("direct, first 6 questions").first.wait_for()
    wait_until_ended(page)
    shown = page.locator(".rq-tile-number").first.inner_text()
    assert 0 < float(shown) <= 1
    page.reload()
    page.get_by_role("link", name="Answers and RePASs (RIRAG)").first.click()
    wait_until_ended(page)
    assert page.locator(".rq-tile-number").first.inner_text() == shown
    open_question(page, 2)
    page.locator(".rq-table .rq-badge", has_text=re.compile("supported|contradicted")).first.wait_for()


@pytest.mark.parametrize("page", ["wide"], indirect=True)
def test_a_bad_upload_is_told_and_a_good_one_is_chosen(page, address, tmp_path):
    open_evaluation(page, address, RETRIEVAL)
    (tmp_path / "bad.json").write_text('[{"Question": "no id"}]')
    upload(page, tmp_path / "bad.json")
    page.locator(".rq-bad", has_text="expected 'Passages' or 'Evidence'").first.wait_for()
    assert sideways(page) <= 1
    open_evaluation(page, address, RETRIEVAL)
    gold = {"DocumentID": 1, "PassageID": "3.1.1.(2)", "Passage": "x"}
    items = [{"QuestionID": "own-1", "Question": "Who may visit without a licence? <b>", "Passages": [gold]}]
    (tmp_path / "own.json").write_text(json.dumps(items))
    upload(page, tmp_path / "own.json")
    expect_choice(page, "Questions", "uploaded: own.json")
    run(page)
    wait_until_ended(page)
    open_question(page, 1)
    page.locator(".rq-question", has_text="Who may visit without a licence? <b>").first.wait_for()


@pytest.mark.slow
@pytest.mark.data
def test_pandachat_s_first_twenty_questions_with_progress_and_a_result_table(browser, shared_data, tmp_path):
    """On a machine without an index of it: it is built from the page."""
    data = shared_data / "pandachat" / "pandachat-rag-si-dataset.json"
    if not data.is_file():
        pytest.skip(f"no PandaChat data set at {data}")
    indexes = tmp_path / "indexes"
    indexes.mkdir()
    (indexes / "rulebook").symlink_to(ROOT / "indexes" / "rulebook")
    with running_app(tmp_path, RAGQA_DATA=str(shared_data), RAGQA_INDEXES=str(indexes)) as url:
        page = browser.new_page(viewport={"width": 1440, "height": 900}, accept_downloads=True)
        page.set_default_timeout(PATIENCE)
        open_evaluation(page, url, "PandaChat-RAG-sl")
        expect_choice(page, "Corpus", "pandachat, built first (about a minute)")
        assert page.get_by_role("spinbutton", name=re.compile("How many of 206")).input_value() == "20"
        run(page)
        page.locator(".rq-notice", has_text=re.compile(r"Building the index pandachat: .*, [\d,]+ of")).first.wait_for()
        progress = page.get_by_text(re.compile(r"^\d+ of 20 questions"))
        progress.or_(page.get_by_text("Done: 20 questions.")).first.wait_for()  # a fast run is not seen under way
        wait_until_ended(page)
        page.get_by_text("Done: 20 questions.").first.wait_for()
        ours = page.locator("tr.rq-ours").inner_text()
        right = int(re.search(r"(\d+) of 20 \([\d.]+%\)\s+\d\.\d+", ours)[1])
        assert 15 <= right <= 20
        assert page.locator(".rq-compared tbody tr").count() == 12  # eleven published systems and this run
        page.locator("[data-testid=stDataFrame]").first.wait_for()
        open_question(page, 3)
        page.locator(".rq-found .rq-good", has_text="gold").first.wait_for()
        saved = tmp_path / "submission.json"
        saved.write_bytes(download(page, "Submission (PandaChat JSON)").read_bytes())
        submission = read_submission(saved, load_pandachat_questions(data), 20)
        assert len(submission.rows) == 20
        page.close()

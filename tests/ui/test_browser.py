"""A person with a browser: asks, watches, opens, moves, downloads. Real server, real models, real Chromium.

Set RAGQA_SCREENSHOTS to a folder to keep pictures of the finished page.
"""

from __future__ import annotations

import os
import re
from itertools import product
from pathlib import Path

import pytest

from ragqa.config import IndexingConfig
from ragqa.corpus.demo import DEMOS
from ragqa.indexing import build_index
from ragqa.loading import load_encoder
from ragqa.records import AnswerRecord
from ragqa.types import Drop
from tests.support.hostile import hostile_texts, write_hostile_corpus
from tests.support.openai_server import OpenAIServer, answer, cites_all
from tests.support.screenshot_cases import make_records
from tests.support.server import CHROMIUM, PATIENCE, free_port, running_app

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(600),
    pytest.mark.model,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium"),
]
SCREENSHOTS = os.environ.get("RAGQA_SCREENSHOTS")


def choose_corpus(page, title):
    page.get_by_role("combobox", name=re.compile("Corpus")).click()
    page.get_by_role("option", name=title).click()
    name = next(name for name, demo in DEMOS.items() if title.search(demo.title))
    page.locator(f".st-key-example_{name}_0").wait_for()  # until then the examples are those of the corpus before


def ask_first_example(page):
    page.locator(".st-key-examples button").first.click()
    wait_until_finished(page)


def wait_until_finished(page):
    """The last redraw is there, and Streamlit has taken away what the redraws before it left."""
    page.get_by_role("button", name="Download the record (JSON)").first.wait_for(timeout=PATIENCE)
    assert "final" in only_text(page, ".rq-composite")


def only_text(page, selector):
    """The text of the one element of this kind, once Streamlit has taken away what an earlier drawing left.

    Counted and read in one step: between two steps a redraw may double the element for a moment.
    """
    found = page.wait_for_function(
        "selector => { const all = document.querySelectorAll(selector);"
        " return all.length === 1 && all[0].innerText.trim() ? all[0].innerText : null; }",
        arg=selector,
    )
    return found.json_value()


def answer_text(page):
    return only_text(page, ".rq-answer")


def shoot(page, name):
    if SCREENSHOTS:
        folder = Path(SCREENSHOTS)
        folder.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(folder / f"{name}.png"), full_page=False)


@pytest.mark.parametrize(
    "title",
    ["Rulebook of an invented regulator", pytest.param("Small encyclopedia", marks=pytest.mark.slow)],
)
def test_from_question_to_downloaded_record(page, address, title):
    page.goto(address)
    choose_corpus(page, re.compile(title, re.I))
    ask_first_example(page)

    row = page.locator("details.rq-row").first
    row.locator("summary").first.click()
    row.locator("mark").first.wait_for()

    with page.expect_download() as download:
        page.get_by_role("button", name="Download the record (JSON)").first.click()
    record = AnswerRecord.from_json(Path(download.value.path()).read_text(encoding="utf-8"))
    assert record.status == "scored"
    composite = record.scored.of(record.scoring.mode).repass.composite
    assert f"{composite:.3f}" in only_text(page, ".rq-big")
    assert [entry.drop for entry in record.candidates].count(None) == len(record.kept)
    assert any(entry.drop is Drop.BELOW_THRESHOLD for entry in record.candidates)

    answer = answer_text(page)
    slider = page.get_by_role("slider", name="Threshold")
    slider.focus()
    for _ in range(30):
        slider.press("ArrowRight")
    page.get_by_text("belongs to an earlier selection").first.wait_for()
    assert answer_text(page) == answer
    assert page.locator("[data-testid=stException]").count() == 0


def test_a_citation_opens_its_passage_by_keyboard(page, address):
    page.goto(address)
    ask_first_example(page)
    citation = page.locator("details.rq-cite summary").first
    citation.focus()
    page.keyboard.press("Enter")
    page.locator(".rq-card").first.wait_for()


def test_an_empty_question_is_told_so_and_keeps_the_answer_before_it(page, address):
    page.goto(address)
    ask_first_example(page)
    answer = answer_text(page)
    page.get_by_role("textbox", name="Question").fill("   ")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_text("The question is empty").first.wait_for()
    assert answer_text(page) == answer


def test_a_record_has_a_page_of_its_own(page, address):
    page.goto(address)
    ask_first_example(page)
    record_id = only_text(page, "a[href^='records?record=']")
    page.goto(f"{address}/records")
    page.locator(".rq-table a").first.wait_for()
    page.goto(f"{address}/records?record={record_id}")
    wait_until_finished(page)
    page.goto(f"{address}/records?record=nothing")
    page.get_by_text("no record 'nothing'").first.wait_for()


def sideways(page):
    """By how many pixels the page is wider than the screen."""
    return page.evaluate(
        "() => { const m = document.querySelector('[data-testid=stMain]'); return m.scrollWidth - m.clientWidth; }"
    )


SIZES = ((1440, 900), (390, 844))


def test_the_finished_page_fits_the_screen(page, address):
    page.goto(address)
    page.locator(".st-key-examples button").first.wait_for()
    ask_first_example(page)
    for scheme, (width, height) in product(("light", "dark"), SIZES):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_function("width => window.innerWidth === width", arg=width)
        page.wait_for_timeout(300)  # charts are drawn anew
        for number, anchor in enumerate(["ask", "passages", "answer", "repass"] if SCREENSHOTS else []):
            page.evaluate("id => document.getElementById(id)?.scrollIntoView()", anchor)
            page.wait_for_timeout(250)
            shoot(page, f"{number}-{anchor}-{width}-{scheme}")
        assert sideways(page) <= 1, f"at {width} pixels, {scheme}, the page scrolls sideways"


# The breakdown in six cases -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """The address of a server over the records of `tests.support.screenshot_cases`, and their ids by case."""
    home = tmp_path_factory.mktemp("cases")
    records = make_records(home)
    with running_app(home) as url:
        yield url, records


ESSENTIALS = {
    "good": ("supported", "Copied: ", "citation corrected: [1] → [2]", "covered", ".947 to .973"),
    "contradicting": ("contradicted", "no citation: no passage supports this", "not covered"),
    "empty": ("nothing to score", "The model wrote nothing"),
    "long": ("40 of 40 final", "Only problems", "supported"),
    "no-obligation": ("hold no obligation", "OC = 0 by definition"),
    "verdicts": ("Sources disagree on sentence 2", "[3] says otherwise", "1 without verdict", "1 in part", "Hatched: "),
}


@pytest.mark.parametrize("case", ESSENTIALS)
def test_the_breakdown_of_each_case_says_the_essentials_and_fits(page, cases, case):
    url, records = cases
    page.goto(f"{url}/records?record={records[case]}")
    wait_until_finished(page)
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_function("width => window.innerWidth === width", arg=width)
        for words in ESSENTIALS[case]:
            page.wait_for_function("words => document.body.innerText.includes(words)", arg=words)
        assert page.locator("[data-testid=stException]").count() == 0
        assert sideways(page) <= 1, f"at {width} pixels the page scrolls sideways"


def test_the_reason_of_a_verdict_is_there_on_focus_and_under_the_pointer_and_stays_on_the_screen(page, cases):
    url, records = cases
    page.goto(f"{url}/records?record={records['verdicts']}")
    wait_until_finished(page)
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_function("width => window.innerWidth === width", arg=width)
        for number, reach in ((2, "focus"), (3, "hover")):
            sentence = page.locator(".rq-said").nth(number)
            getattr(sentence, reach)()
            tip = sentence.locator(".rq-tip")
            tip.wait_for()
            box = tip.bounding_box()
            assert 0 <= box["x"] <= box["x"] + box["width"] <= width
            assert box["y"] >= sentence.bounding_box()["y"]
            assert sideways(page) <= 1


def test_only_problems_leaves_out_what_is_well_supported(page, cases):
    url, records = cases
    page.goto(f"{url}/records?record={records['long']}")
    wait_until_finished(page)
    page.wait_for_function("document.querySelectorAll('.rq-rows').length === 2")
    all_rows = page.locator("details.rq-row").count()
    page.get_by_text("Only problems").first.click()
    page.get_by_text("with a problem").first.wait_for()
    page.wait_for_function("all => document.querySelectorAll('details.rq-row').length < all", arg=all_rows)


# A language model -----------------------------------------------------------------------------------------------------


def test_a_language_model_streams_and_its_invented_citation_is_removed(page, model_app):
    server, url, home = model_app
    server.script = (answer("A firm must report at once [1]. Nobody else is concerned [99]."),)
    page.goto(url)
    ask_first_example(page)
    assert "A firm must report at once." in answer_text(page)
    page.get_by_text("Written by: LLM").first.wait_for()
    page.get_by_text("The model cited [99]").first.wait_for()
    assert "sk-browser-secret" not in page.content()
    assert server.requests
    assert b"sk-browser-secret" not in b"".join(path.read_bytes() for path in home.iterdir() if path.is_file())


@pytest.mark.slow
def test_a_server_that_is_not_there_is_named_and_the_passages_stay(page, tmp_path):
    server = f"127.0.0.1:{free_port()}"
    with running_app(tmp_path, OPENAI_BASE_URL=f"http://{server}/v1") as url:
        page.goto(url)
        page.locator(".st-key-examples button").first.click()
        page.locator(".rq-bad", has_text=server).first.wait_for(timeout=PATIENCE)
        page.wait_for_function("document.querySelectorAll('.rq-table tbody tr').length > 3")


# Hostile text ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [50, pytest.param(int(os.environ.get("RAGQA_HOSTILE", "10")), marks=pytest.mark.slow)])
def test_hostile_passages_and_questions_run_no_script_and_show_no_trace(page, tmp_path, step):
    """Every n-th of the 200 texts (the slow ones: RAGQA_HOSTILE=1 for all), over passages that are hostile too."""
    write_hostile_corpus(tmp_path / "hostile")
    encoder = load_encoder("all-MiniLM-L6-v2")
    indexes = tmp_path / "indexes"
    build_index("hostile", tmp_path / "hostile", indexes=indexes, config=IndexingConfig(), encoder=encoder)
    with (
        OpenAIServer(answer(cites_all)) as server,
        running_app(tmp_path, RAGQA_INDEXES=str(indexes), OPENAI_BASE_URL=server.base_url) as url,
    ):
        dialogs = []
        page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        page.goto(url)
        asked, record = 0, ""
        for number, text in enumerate(hostile_texts()[::step]):
            if number % 2:
                page.get_by_text("extractive, no language model", exact=True).first.click()
            else:
                page.get_by_text("language model", exact=True).first.click()
            page.get_by_role("textbox", name="Question").fill(text)
            page.get_by_role("button", name="Ask", exact=True).click()
            asked += 1
            found = page.wait_for_function(
                "before => { const links = document.querySelectorAll('a[href*=\"records?record=\"]');"
                " return links.length === 1 && links[0].textContent !== before ? links[0].textContent : null; }",
                arg=record,
            )
            record = found.json_value()
            page.wait_for_timeout(400)
            assert page.evaluate("window.ragqaBroken") is None, text
            assert not dialogs, text
            assert page.locator("[data-testid=stException]").count() == 0, text
            assert "Traceback" not in page.locator("body").inner_text(), text
    assert asked == len(range(0, 200, step))

"""A person with a browser asks the demonstration encyclopedia fan-out questions: tree, evidence, answer, record."""

from __future__ import annotations

import json
import re
from urllib.parse import urlencode

from ragqa.types.events.generation import EvidenceFound, SubQuestionAnswered
from tests.support.openai_server import answer
from tests.support.screenshot_cases import FAN_OUT
from tests.support.server import browser_marks
from tests.ui.test_browser import (
    SIZES,
    answer_text,
    choose_corpus,
    downloaded,
    fits,
    only_text,
    open_tab,
    wait_until_finished,
)

pytestmark = browser_marks(1200)
MOUNTAINS = ("Denali", "Aconcagua", "Kilimanjaro")
YEARS = ("7 June 1913", "14 January 1897", "6 October 1889")


def ask(page, generator, question):
    choose_corpus(page, re.compile("Small encyclopedia", re.I))
    page.get_by_test_id("stExpandSidebarButton").click()
    page.get_by_text(generator, exact=True).click()
    page.get_by_role("slider", name="Sub-questions").wait_for()
    page.get_by_label("Question", exact=True).fill(question)
    page.get_by_role("button", name="Ask", exact=True).click()
    wait_until_finished(page)


def test_a_fan_out_shows_its_tree_evidence_and_answer(page, address):
    page.goto(f"{address}/ask?{urlencode({'q': FAN_OUT, 'corpus': 'encyclopedia', 'generator': 'fan-out'})}")
    page.get_by_role("button", name="Ask what the link says").click()
    wait_until_finished(page)
    record = downloaded(page)
    open_tab(page, "Steps")
    tree = only_text(page, ".rq-tree")
    for name in MOUNTAINS:
        assert f"{name}: was climbed first?" in tree
    for year in YEARS:
        assert year in tree
        assert year in answer_text(page)

    row = page.locator(".rq-tree details.rq-row").first
    row.locator("summary").click()
    row.get_by_text("Evidence, of").wait_for()
    row.get_by_text("cited").first.wait_for()
    assert "The first ascent of the main summit of Denali" in row.locator(".rq-passage").first.inner_text()
    for width, height in SIZES:
        fits(page, width, height, "fan-out")
    page.set_viewport_size({"width": 1440, "height": 900})

    assert record.status == "scored"
    assert [event.number for event in record.trace if isinstance(event, EvidenceFound)] == [1, 2, 3]
    assert len([event for event in record.trace if isinstance(event, SubQuestionAnswered)]) == 3

    page.goto(f"{address}/records?record={record.record_id}")
    open_tab(page, "Steps")
    assert only_text(page, ".rq-tree") == tree


def test_a_fan_out_with_a_language_model_shows_its_plan_and_two_levels(page, model_app):
    def reply(request):
        if '"sub_questions": ["…", "…"]' in request.prompt and request.n_passages == 0:
            return json.dumps({"sub_questions": ["Who climbed Denali first?", "Which lakes are deep?"]})
        if "Which lakes are deep?" in request.prompt and "draft" not in request.prompt:
            return 'Some lakes are deep [1].\n{"sub_questions": ["How deep is Lake Baikal?"]}'
        return "It is so [1]."

    server, url, _ = model_app
    server.script = (answer(reply),)
    page.goto(url)
    ask(page, "fan-out, language model", "Who climbed Denali first, and how deep are the deep lakes?")
    open_tab(page, "Steps")
    tree = only_text(page, ".rq-tree")
    for part in ("Who climbed Denali first?", "Which lakes are deep?", "How deep is Lake Baikal?"):
        assert part in tree
    assert page.locator(".rq-tree .rq-below .rq-row").count() == 1
    assert "It will take 2 to 10 calls" in page.locator("body").inner_text()
    assert answer_text(page).startswith("It is so.")

"""A run and its address in a real browser: refreshes, second tabs, guessed ids, Back and Forward."""

import random
import re
import secrets
import threading
from collections import Counter

import pytest

from tests.support.openai_server import answer
from tests.support.server import PATIENCE, browser_marks
from tests.ui.conftest import opened_page

pytestmark = browser_marks(1200)
QUESTION = "How many days before outsourcing a critical function must the Commission be told, in case {}?"
WRITING = "() => document.querySelector('.rq-progress b')?.textContent.endsWith('writing the answer')"
FINAL = ".rq-line:not(.rq-provisional)"


def _held(go_on):
    """Begins to write and goes on when it is told to."""

    def behave(exchange):
        exchange.begin_stream()
        exchange.text("The Commission must be told ")
        go_on.wait(PATIENCE / 1000)
        exchange.text("in advance [1].")
        exchange.chunk({}, "stop")
        exchange.end_stream()

    return behave


def begun(page, address, question):
    """Asks, whatever the passages seem to answer; the address of the run, as soon as it stands in the browser."""
    page.goto(f"{address}/ask?quote_anyway=yes")
    page.get_by_role("textbox", name="Question").fill(question)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_url(re.compile(r"/ask\?run="), timeout=PATIENCE)
    return page.url


def shows(page, question):
    """Waits until the page shows this question with its final scores."""
    page.locator(FINAL).wait_for(timeout=PATIENCE)
    page.wait_for_function(
        "asked => document.querySelector('.rq-question')?.textContent === asked", arg=question, timeout=PATIENCE
    )
    page.wait_for_function("asked => document.querySelector('textarea').value === asked", arg=question)


def answers_of(page, address, word):
    """How many records there are of questions with this word."""
    page.goto(f"{address}/records")
    page.locator(".rq-table a").first.wait_for()
    return page.locator(".rq-table a", has_text=word).count()


def test_a_refresh_while_it_is_written_shows_the_same_run_and_a_guessed_id_none(page, browser, model_app):
    server, url, _ = model_app
    go_on, asked_before = threading.Event(), len(server.requests)
    server.script = (_held(go_on),)
    question = QUESTION.format(secrets.token_hex(4))
    place = begun(page, url, question)
    other = opened_page(browser)
    other.goto(place)
    for visit in (page, other):
        visit.wait_for_function(WRITING)
    page.reload()
    page.wait_for_function(WRITING)
    assert page.locator(FINAL).count() == 0
    go_on.set()
    for visit in (page, other):
        shows(visit, question)
        assert visit.url == place
    assert len(server.requests) == asked_before + 1
    other.close()
    page.goto(f"{url}/ask?run={secrets.token_urlsafe(16)}")
    page.locator(".rq-notice", has_text="a run that this server does not have").wait_for()
    assert page.locator(".rq-said").count() == 0


@pytest.mark.slow  # five minutes of asking; the one above is refreshed once, while it is written
def test_refreshes_and_tabs_at_any_moment_show_the_same_run_and_guessed_ids_none(page, browser, model_app):
    """20 refreshes at random moments of retrieving, writing, scoring and afterwards, 5 second tabs, 20 guessed ids."""
    server, address, _ = model_app
    server.script = (answer("The Commission must be told in advance [1]. " * 3, seconds_per_piece=0.1),)
    word, chance, stages = f"zq{secrets.token_hex(4)}", random.Random(16), []
    for number in range(20):
        question = QUESTION.format(f"{word} {number}")
        place = begun(page, address, question)
        page.wait_for_timeout(chance.choice([0, 100, 300, 700, 1500, 4000]))
        stages.append(page.evaluate("document.querySelector('.rq-progress b')?.textContent ?? 'finished'"))
        others = [opened_page(browser) for _ in range(5 if number == 0 else 0)]
        for other in others:
            other.goto(place, timeout=PATIENCE)
        page.reload()
        for visit in (page, *others):
            shows(visit, question)
            assert visit.url == place
        for other in others:
            other.close()
    print(Counter(stages))
    assert answers_of(page, address, word) == 20
    for guess in (secrets.token_urlsafe(16) for _ in range(20)):
        page.goto(f"{address}/ask?run={guess}")
        page.locator(".rq-notice", has_text="a run that this server does not have").wait_for()
        assert page.locator(".rq-said").count() == 0


@pytest.mark.slow
def test_back_and_forward_show_what_the_address_says(page, address):
    first, second = (QUESTION.format(secrets.token_hex(4)) for _ in range(2))
    begun(page, address, first)
    shows(page, first)
    page.get_by_role("textbox", name="Question").fill(second)
    page.get_by_role("button", name="Ask", exact=True).click()
    shows(page, second)
    page.go_back()
    shows(page, first)
    page.go_forward()
    shows(page, second)
    link = page.locator("a", has_text="Ask again").get_attribute("href")
    page.goto(f"{address}/{link.replace('ask?', 'ask?top_k=3&')}")
    page.get_by_role("button", name="Ask what the link says").click()
    shows(page, second)
    assert page.url.startswith(f"{address}/ask?run=")

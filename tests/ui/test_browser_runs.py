"""A run and its address in a real browser: refreshes, second tabs, guessed ids, Back and Forward."""

import random
import re
import secrets

import pytest

from tests.support.server import CHROMIUM, PATIENCE

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(1200),
    pytest.mark.model,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium"),
]
QUESTION = "How many days before outsourcing a critical function must the Commission be told, in case {}?"
FINAL = ".rq-line:not(.rq-provisional)"


def begun(page, address, question):
    """Asks; the address of the run, as soon as it stands in the browser."""
    page.goto(f"{address}/ask")
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


@pytest.mark.parametrize(("refreshes", "tabs", "guesses"), [(1, 1, 1), pytest.param(20, 5, 20, marks=pytest.mark.slow)])
def test_a_refresh_or_a_second_tab_shows_the_same_run_and_a_guessed_id_none(page, address, refreshes, tabs, guesses):
    """At random moments of retrieving, writing, scoring and afterwards. Slow: five minutes of asking."""
    word, chance = f"zq{secrets.token_hex(4)}", random.Random(16)
    stages = set()
    for number in range(refreshes):
        question = QUESTION.format(f"{word} {number}")
        place = begun(page, address, question)
        page.wait_for_timeout(chance.choice([0, 100, 300, 700, 1500, 4000]))
        stages.add(page.evaluate("document.querySelector('.rq-progress b')?.textContent ?? 'finished'"))
        others = [page.context.browser.new_page() for _ in range(tabs if number == 0 else 0)]
        for other in others:
            other.goto(place, timeout=PATIENCE)
        page.reload()
        for visit in (page, *others):
            shows(visit, question)
            assert visit.url == place
        for other in others:
            other.close()
    print(sorted(stages))
    assert answers_of(page, address, word) == refreshes
    for guess in (secrets.token_urlsafe(16) for _ in range(guesses)):
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
    link = page.locator("a", has_text="a link that asks it again").get_attribute("href")
    page.goto(f"{address}/{link.replace('ask?', 'ask?top_k=3&')}")
    shows(page, second)
    assert page.url.startswith(f"{address}/ask?run=")

"""A person with a browser who reads: searches the corpus, opens what was found, looks a term up, asks about it."""

from __future__ import annotations

from tests.support.server import browser_marks, settle

pytestmark = browser_marks(600)
FINAL = ".rq-line:not(.rq-provisional)"


def test_from_a_search_to_the_place_to_what_a_term_means_to_an_answer_about_the_section(page, address):
    from playwright.sync_api import expect

    page.goto(f"{address}/read?corpus=rulebook")
    page.get_by_label("Search in this corpus").fill('"cold storage"')
    page.get_by_label("Search in this corpus").press("Enter")
    hit = page.locator(".rq-hits a", has_text="Cold Storage").first
    hit.locator("mark").first.wait_for()
    hit.click()

    place = page.locator("#rq-place")
    place.wait_for()
    marked = place.locator("mark.rq-mark-mixed")
    marked.first.wait_for()
    assert {text.lower() for text in marked.all_inner_texts()} == {"cold storage"}
    # the box is on the page before Streamlit's front end has put the address's words into it
    expect(page.get_by_label("Search in this document")).to_have_value('"cold storage"')
    settle(page)

    term = page.locator(".rq-unit .rq-term:not(mark .rq-term)").first
    tip = term.locator(".rq-tip")
    assert not tip.is_visible()
    term.hover()
    tip.wait_for(state="visible")
    assert " means " in tip.inner_text()
    page.mouse.move(0, 0)
    tip.wait_for(state="hidden")
    term.locator("a").focus()
    tip.wait_for(state="visible")

    about = page.get_by_role("link", name="Ask about this section")
    about.click()
    page.get_by_role("button", name="Ask what the link says").click()
    page.locator(FINAL).wait_for()
    asked = page.get_by_role("textbox", name="Question").input_value()
    assert asked.startswith("What does “")
    assert page.locator(".rq-question").inner_text() == asked
    assert page.locator("[data-testid=stException]").count() == 0

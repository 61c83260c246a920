"""Six tasks of an analyst from the landing page, without a word of help: keys and clicks are counted.

What is typed counts as nothing, each key beside it and each click as one; the figures stand in the room's README.
"""

import re

import pytest
from docx import Document

from tests.support.server import browser_marks, settle

pytestmark = browser_marks(600)
FINAL = ".rq-line:not(.rq-provisional)"
QUESTION = "Can we rely on a vendor's certification in place of auditing the vendor ourselves?"
POLICY = (
    ("1. Purpose", "This policy sets out how we manage service providers. It applies to every business unit."),
    ("2. Audit", "We audit each critical provider at least once every five years. Findings are tracked to their end."),
    ("3. Exit", "For each critical function we keep a documented exit plan. The plan is tested every 36 months."),
    ("4. Breaches", "We report a data breach to the Commission within 72 hours of becoming aware of it."),
)


class Hand:
    """Clicks and keys on a page, counted; the page has been opened at its landing."""

    def __init__(self, page, address):
        self.page, self.count = page, 0
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.goto(address)
        page.locator(".st-key-examples button").first.wait_for()
        page.wait_for_function("document.activeElement.matches('textarea')")
        settle(page)

    def click(self, selector, **which):
        self.page.locator(selector, **which).first.click()
        self.count += 1

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
            self.count += 1

    def ask(self, question):
        self.page.keyboard.type(question)
        self.press("Enter")
        self.page.locator(FINAL).wait_for()

    def through(self, name):
        self.click("[data-testid=stTopNavLinkContainer] a", has_text=name)


@pytest.fixture
def hand(page, address):
    return Hand(page, address)


def test_ask_and_copy_with_evidence(hand):
    hand.ask(QUESTION)
    assert hand.page.locator(".rq-evidence mark").first.is_visible()
    hand.click(".rq-act", has_text="Copy with citations")
    copied = hand.page.evaluate("navigator.clipboard.readText()")
    assert re.search(r"\[.*Outsourcing.*3\.3\.3\]", copied)
    assert hand.count == 2


def test_find_a_rule_by_its_number(hand):
    hand.ask("Data Protection 4.2.2")
    assert hand.page.locator(".rq-cite").first.inner_text() == "Data Protection 4.2.2"
    assert "4.2.2" in hand.page.locator(".rq-evidence .rq-source").first.inner_text()
    assert hand.count == 1


def test_a_rule_stands_whole_with_what_it_cites_and_several_are_a_choice(hand, address):
    hand.ask("Outsourcing 3.1.1")
    rule = hand.page.locator(".rq-rule")
    assert [one.inner_text() for one in rule.locator("a.rq-label").all()] == ["3.1.1(1)", "3.1.1(2)"]
    assert "Refers to: Outsourcing 2.2.1" in rule.inner_text()
    assert "Referred to by: Market Abuse 6.1.3" in rule.inner_text()
    Hand(hand.page, address).ask("What does rule 4.2.2 say?")
    rule.get_by_role("link", name="Data Protection Rules 4.2.2").wait_for()
    assert re.fullmatch(r"\d+ documents have this number: choose one", hand.page.locator(".rq-headline").inner_text())


def test_check_a_policy_and_send_the_list_of_gaps(hand, tmp_path):
    document = Document()
    for heading, text in POLICY:
        document.add_heading(heading, 1)
        document.add_paragraph(text)
    document.save(tmp_path / "policy.docx")
    hand.through("Check")
    hand.click("button", has_text="From a file")
    with hand.page.expect_file_chooser() as chooser:
        hand.click("[data-testid=stFileUploader] button")
    chooser.value.set_files(tmp_path / "policy.docx")
    hand.count += 1  # the file, in the system's own box
    hand.click("button", has_text="Check it")
    found = hand.page.locator("[data-testid=stDownloadButton] button", has_text="findings")
    found.wait_for()
    settle(hand.page)
    with hand.page.expect_download() as download:
        hand.click("[data-testid=stDownloadButton] button", has_text="findings")
    rows = download.value.path().read_text(encoding="utf-8").splitlines()
    assert sum(row.startswith("sentence,") for row in rows) == sum(text.count(". ") + 1 for _, text in POLICY)
    assert any(row.startswith("duty,") for row in rows)
    assert "1. Purpose" in hand.page.locator(".rq-between").first.inner_text()
    assert hand.count == 6


def test_find_an_earlier_question_and_ask_it_again(hand, answered):
    words = answered.locator(".rq-question").inner_text()
    hand.through("History")
    hand.click("[aria-label='Words of question or note']")
    hand.page.keyboard.type(" ".join(words.split()[-3:]).strip("?"))
    hand.press("Enter")
    settle(hand.page)
    hand.click(".rq-ticks a", has_text=words)
    hand.click("a", has_text="with its settings")
    hand.click(".st-key-ask_link button")
    hand.page.locator(FINAL).wait_for()
    assert hand.page.locator(".rq-question").inner_text() == words
    assert hand.count == 6


def test_show_a_room_what_the_threshold_does(hand):
    hand.click(".st-key-present_go button")
    hand.page.locator(".st-key-presenting").wait_for()
    hand.click(".st-key-present_next button")
    hand.page.locator(FINAL).wait_for()
    settle(hand.page)
    hand.click("[data-testid=stExpandSidebarButton]")
    slider = hand.page.locator("[aria-label=Threshold][type=range]")
    slider.wait_for()
    settle(hand.page)  # the drawer slides in, and what it holds is drawn with it
    slider.focus()
    hand.count += 1
    hand.press("End")
    hand.page.locator(".rq-changed", has_text="Threshold").wait_for()
    settle(hand.page)
    hand.page.locator(".rq-curve", has_text="1.00").wait_for()  # its line stands where the slider does
    assert hand.count == 5
    hand.page.locator("[data-testid=stSidebar] button", has_text="Reset").first.click()


def test_compare_two_answers(hand, answered, address):
    hand.ask(QUESTION)
    hand.count = 0
    hand.page.goto(address)
    settle(hand.page)
    hand.through("History")
    hand.page.locator(".rq-ticks input").nth(1).wait_for()
    for number in (0, 1):
        hand.page.locator(".rq-ticks input").nth(number).check()
        hand.count += 1
    hand.click(".rq-go")
    hand.page.locator(".rq-sides").first.wait_for()
    assert hand.count == 4

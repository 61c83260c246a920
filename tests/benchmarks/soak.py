"""The page under many people and many questions: `python -m tests.benchmarks.soak [--sessions 8] [--questions 200]`.

Eight browser sessions ask at once: all must finish, none may show an error, and every number must be the one that a
single session gets. Then one session asks two hundred questions, and the server's memory must stay within a tenth.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ragqa.corpus.demo import DEMOS
from ragqa.record_store import RecordStore
from ragqa.records import AnswerRecord
from tests.support.server import CHROMIUM, CHROMIUM_FLAGS, megabytes, running_app, server_of

WARM_UP = 20  # questions before the memory is first read: models, indexes and caches of both corpora are loaded by then
TITLES = {"rulebook": "Rulebook of an invented regulator", "encyclopedia": "Small encyclopedia"}
LINK = "a[href*='records?record=']"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--questions", type=int, default=200)
    arguments = parser.parse_args()
    from playwright.sync_api import sync_playwright

    failures: list[str] = []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        questions = [gold.question.text for gold in DEMOS["rulebook"].questions()][: arguments.sessions]
        alone, together, many = (Path(folder) / name for name in ("alone", "together", "many"))
        with home(alone) as address:
            page, before = open_page(browser, address), ""
            for question in questions:
                before = ask(page, question, before)
            page.close()
        with home(together) as address:
            began = time.perf_counter()
            all_at_once(browser, address, questions)
            print(f"{len(questions)} sessions at once: all finished in {time.perf_counter() - began:.1f} s")
        expected, found = numbers(alone), numbers(together)
        failures += [
            f"numbers differ: {question}" for question in expected if expected[question] != found.get(question)
        ]
        print(f"numbers identical to the single session: {len(expected) - len(failures)} of {len(expected)}")
        with home(many) as address:
            failures += memory(browser, address, arguments.questions)
        browser.close()
    print("\n".join(failures) or "passed")
    return 1 if failures else 0


def home(folder: Path) -> Any:
    folder.mkdir()
    return running_app(folder)


def open_page(browser: Any, address: str) -> Any:
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.set_default_timeout(120_000)
    page.goto(address)
    page.get_by_role("textbox", name="Question").wait_for()
    return page


def send(page: Any, question: str) -> None:
    page.get_by_role("textbox", name="Question").fill(question)
    page.get_by_role("button", name="Ask", exact=True).click()


def wait(page: Any, before: str) -> str:
    """The id of the record, once it is not ``before`` any more."""
    page.wait_for_function(
        "([link, before]) => { const all = document.querySelectorAll(link);"
        " return all.length === 1 && all[0].textContent !== before; }",
        arg=[LINK, before],
    )
    assert page.locator("[data-testid=stException], .rq-notice.rq-bad").count() == 0, page.locator("body").inner_text()[
        :2000
    ]
    return page.locator(LINK).first.inner_text()


def ask(page: Any, question: str, before: str = "") -> str:
    send(page, question)
    return wait(page, before)


def all_at_once(browser: Any, address: str, questions: list[str]) -> None:
    pages = [open_page(browser, address) for _ in questions]
    for page, question in zip(pages, questions, strict=True):
        send(page, question)
    for page in pages:
        wait(page, "")
        page.close()


def numbers(folder: Path) -> dict[str, Any]:
    """Every number of every answer in this home, by question."""
    store = RecordStore(folder / "records.sqlite3")
    records: list[AnswerRecord] = [store.load(summary.record_id) for summary in store.list(limit=1000)]
    return {record.question.text: record.scored for record in records}


def memory(browser: Any, address: str, n_questions: int) -> list[str]:
    pid = server_of(address)
    page = open_page(browser, address)
    asked = [gold.question.text for demo in DEMOS.values() for gold in demo.questions()]
    record, first = "", 0.0
    for number in range(WARM_UP + n_questions):
        if number == WARM_UP:
            first = megabytes(pid)
        half = len(DEMOS["rulebook"].questions())
        place = number % len(asked)
        if number == 0 or place in (0, half):
            page.get_by_role("combobox", name="Corpus").click()
            page.get_by_role("option", name=TITLES["rulebook" if place < half else "encyclopedia"]).click()
            page.wait_for_timeout(500)
        record = ask(page, f"{asked[place]} ({number})", record)
    last = megabytes(pid)
    print(
        f"memory after {WARM_UP} questions {first:.0f} MB, after {n_questions} more {last:.0f} MB: {last / first:.3f}"
    )
    return [] if last <= 1.1 * first else [f"memory grew from {first:.0f} to {last:.0f} MB"]


if __name__ == "__main__":
    sys.exit(main())

"""The page under many people and many questions: `python -m tests.benchmarks.soak [--sessions 8] [--questions 200]`.

Eight browser sessions ask at once: all must finish, none may show an error, and every number must be the one that a
single session gets. Then one session asks two hundred questions, and the server's memory must stay within a tenth.

`--minutes 30`: mixed use instead, of `app.py` and by the page's own protocol. Three people come and go: they ask in
both corpora, move the filter, check texts, read, open and compare records, sweep, and put corpora together, index and
delete them. Once a minute the server's memory, threads, handles and reading processes are read. The median of the last
five minutes may be 5 % above the fifth minute's memory; threads and handles are compared before and after, when nobody
is there.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlencode

from ragqa.corpus.demo import DEMOS
from ragqa.index import open_index
from ragqa.records.record import AnswerRecord
from ragqa.records.store import RecordStore
from ragqa.settings.paths import PROJECT_INDEXES
from tests.support.server import (
    CHROMIUM,
    CHROMIUM_FLAGS,
    megabytes,
    running_app,
    server_of,
    status_of,
    wait_until_ready,
)
from tests.support.visitor import Opened, Visitor

WARM_UP = 20  # questions before the memory is first read: models, indexes and caches of both corpora are loaded by then
TITLES = {"rulebook": "Rulebook of an invented regulator", "encyclopedia": "Small encyclopedia"}
LINK = "a[href*='records?record=']"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=0.0, help="of mixed use, and nothing else")
    arguments = parser.parse_args()
    if arguments.minutes:
        return mixed(arguments.minutes)
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


def mixed(minutes: float) -> int:
    """Prints a line a minute."""
    rows: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as name, running_app(Path(name), RAGQA_LOG="json") as address:
        wait_until_ready(address)
        pid, over, done = server_of(address), threading.Event(), Counter[str]()
        ask_some(Visitor(address), random.Random(0), Path(name))
        first_rest = resting(address, pid)
        people = [threading.Thread(target=use, args=(address, n, over, done, Path(name))) for n in range(3)]
        for person in people:
            person.start()
        for minute in range(1, int(minutes) + 1):
            over.wait(60)
            rows.append({"MB": megabytes(pid), **counts(pid)})
            shown = ", ".join(f"{name} {value:.0f}" for name, value in rows[-1].items())
            print(f"minute {minute}: {shown}; {dict(done)}; load {os.getloadavg()[0]:.1f}", flush=True)
        over.set()
        for person in people:
            person.join()
        rest = resting(address, pid)
        log = (Path(name) / "server.log").read_text(encoding="utf-8", errors="replace")
        failures = [line[:600] for line in log.splitlines() if '"level": "error"' in line]
    print(f"at rest: {first_rest} before, {rest} after")
    failures += [f"{what} grew" for what in rest if rest[what] > first_rest[what] + 2]
    if len(rows) > 5:
        first, last = rows[4]["MB"], median(row["MB"] for row in rows[-5:])
        print(f"MB after five minutes {first:.0f}, in the last five {last:.0f}: {last / first:.3f}")
        failures += [f"memory grew from {first:.0f} to {last:.0f} MB"] if last > 1.05 * first else []
    failures += [f"{n} times: {name}" for name, n in done.items() if name.startswith("failed")]
    print("\n".join(failures) or "passed")
    return 1 if failures else 0


def counts(pid: int) -> dict[str, float]:
    """Threads and open handles of the server, and its reading processes."""
    handles = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {"threads": status_of(pid, "Threads"), "handles": handles, "children": len(children)}


def resting(address: str, pid: int) -> dict[str, float]:
    """`counts` when nobody is there.

    Streamlit keeps the session of who left for two minutes, with three handles, and lets go of it when another leaves.
    """
    time.sleep(150)
    with opened(Visitor(address), "records"):
        pass
    time.sleep(2)
    return counts(pid)


def use(address: str, number: int, over: threading.Event, done: Counter[str], folder: Path) -> None:
    """A person who comes again and again until it is over. ``done`` counts what they did."""
    chance = random.Random(number)
    acts = (ask_some, ask_some, ask_some, check_text, look_around, look_around, keep_library)
    while not over.is_set():
        act = chance.choice(acts)
        visitor = Visitor(address)
        try:
            act(visitor, chance, folder)
            done[act.__name__] += 1
        except Exception as error:
            done[f"failed {act.__name__}: {type(error).__name__} {str(error)[:200]}"] += 1
        finally:
            visitor.close()


def opened(visitor: Visitor, page: str = "", query: str = "") -> Opened:
    return Opened(visitor, page, query, visitor.cookies, patience=600, quiet=True)


def no_failure(session: Opened) -> None:
    assert not session.failures, "a failure is drawn"
    assert b"rq-notice rq-bad" not in session.data, session.data[-300:]


def ask_some(visitor: Visitor, chance: random.Random, _folder: Path) -> None:
    """Asks two questions in one of the corpora, each never asked before, and moves the filter."""
    name = chance.choice(list(DEMOS))
    with opened(visitor) as session:
        session.run(**{session.widgets["corpus"]: ("string_value", name)})
        for gold in chance.sample(DEMOS[name].questions(), 2):
            session.ask(f"{gold.question.text} ({chance.randrange(10**6)})", 900)
            no_failure(session)
            for threshold in (0.4, 0.9):
                session.run(**{session.widgets["set_threshold"]: ("double_array_value", [threshold])})
            session.settle()
            no_failure(session)


def check_text(visitor: Visitor, chance: random.Random, _folder: Path) -> None:
    said = f"A firm must keep records for {chance.randrange(2, 90)} years. It must tell the regulator at once."
    with opened(visitor, "check") as session:
        session.press("Check", **{session.widgets["text"]: ("string_value", said)})
        session.settle(900)
        no_failure(session)


def look_around(visitor: Visitor, chance: random.Random, folder: Path) -> None:
    """Records, one of them and two beside each other, a document, and the other pages."""
    records = [one.record_id for one in RecordStore(folder / "records.sqlite3").list()]
    query = {
        "corpus": "rulebook",
        "passage": chance.choice(open_index("rulebook", PROJECT_INDEXES).passages).passage_id,
    }
    addresses = [("records", ""), ("read", urlencode(query)), ("sweep", ""), ("evaluate", ""), ("library", "")]
    if records:
        one, other = chance.choices(records, k=2)
        addresses += [("records", f"record={one}"), ("compare", f"a={one}&b={other}")]
    for page, query in addresses:
        with opened(visitor, page, query) as session:
            session.settle()
            no_failure(session)


def keep_library(visitor: Visitor, chance: random.Random, _folder: Path) -> None:
    """A corpus from its first file to its deletion."""
    with opened(visitor, "library") as session:
        text = "".join(f"# {n} Rules\n\nThe keeper {chance.randrange(10**6)} must report {n}.\n\n" for n in range(30))
        (drop,) = (key for key in session.widgets if key.startswith("library_drop"))
        session.drop(drop, f"a{chance.randrange(10**6)}.md", text.encode())
        session.settle()
        session.press("library_index")
        session.settle(900)
        no_failure(session)
        session.press("library_delete")
        no_failure(session)


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

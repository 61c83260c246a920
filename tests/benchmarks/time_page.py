"""Seconds on the page with ten passages kept: `python -m tests.benchmarks.time_page --indexes FOLDER --questions FILE`.

A real Chromium watches the page change. Per question: from the answer being there to the first sentence's scores, to a
score for every sentence and obligation (perhaps provisional), to the final breakdown; then the same question again,
whose pairs are remembered.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from ragqa.corpus.questions import load_questions
from ragqa.records.store import RecordStore
from tests.benchmarks.soak import LINK, open_page, send
from tests.support.server import CHROMIUM, CHROMIUM_FLAGS, running_app

PRESET = "no filter, k = 10"
# Milliseconds at which each state was first seen. It looks once a frame at most and reads few elements: laying out the
# whole page at every change would take from the processor what scoring needs.
WATCH = """() => {
  const seen = window.ragqaSeen = {}, once = name => { seen[name] ??= performance.now(); };
  const has = (where, words) => [...document.querySelectorAll(where)].some(e => e.textContent.includes(words));
  const look = () => {
    if (!seen.answer && has('.rq-left .rq-fine', 'Written by:')) once('answer');
    if (!seen.first && document.querySelector('.rq-said')) once('first');
    const pending = document.querySelector('.rq-u-pending');
    if (!seen.complete && has('.rq-counts', 'obligations') && !pending) once('complete');
    if (!seen.final && document.querySelector('.rq-line:not(.rq-provisional)')) once('final');
  };
  let waits = false;
  const soon = () => { if (!waits) { waits = true; requestAnimationFrame(() => { waits = false; look(); }); } };
  window.ragqaWatch?.disconnect();
  window.ragqaWatch = new MutationObserver(soon);
  window.ragqaWatch.observe(document.body, {childList: true, subtree: true, characterData: true});
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--indexes", type=Path, required=True)
    parser.add_argument("--index", default="adgm")
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=20)
    arguments = parser.parse_args()
    gold = load_questions(arguments.questions)
    step = max(1, len(gold) // arguments.limit)
    questions = [item.question.text for item in gold[::step]][: arguments.limit]
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        with running_app(home, RAGQA_INDEXES=str(arguments.indexes), RAGQA_INDEX=arguments.index) as address:
            timed(browser, address, "What must a firm do?")  # loads the models
            first = [timed(browser, address, question) for question in questions]
            again = [timed(browser, address, question) for question in questions]
        browser.close()
        store = RecordStore(home / "records.sqlite3")
        records = [store.load(summary.record_id) for summary in store.list(limit=1000)][::-1][1:]
    pairs = [record.scored.of(record.scoring.mode).n_pairs for record in records[: len(first)] if record.scored]
    sentences = [len(record.answer.sentences) for record in records[: len(first)]]
    print(f"{len(first)} questions, pairs: median {median(pairs):.0f}, {min(pairs)} to {max(pairs)};", end=" ")
    print(f"answer sentences: median {median(sentences):.0f}")
    for name, rows in (("first time", first), ("again", again)):
        for state in ("first", "complete", "final"):
            seconds = [(row[state] - row["answer"]) / 1000 for row in rows]
            print(f"{name:>10}: answer to {state:<8} median {median(seconds):.2f} s, slowest {max(seconds):.2f} s")
    scoring = [record.seconds["scoring"] for record in records]
    print(
        f"scoring itself: first time {median(scoring[: len(first)]):.2f} s, again {median(scoring[len(first) :]):.3f} s"
    )


def timed(browser: Any, address: str, question: str) -> dict[str, float]:
    page = open_page(browser, address)
    page.get_by_role("combobox", name="Preset").click()
    page.get_by_role("option", name=PRESET).click()
    page.wait_for_timeout(700)
    page.evaluate(WATCH)
    send(page, question)
    page.locator(LINK).first.wait_for()
    page.wait_for_timeout(300)
    seen: dict[str, float] = page.evaluate("window.ragqaSeen")
    page.close()
    return seen


if __name__ == "__main__":
    main()

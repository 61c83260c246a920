"""Milliseconds a visitor waits on the page Ask: `python -m tests.benchmarks.page_times [--against CHECKOUT ...]`.

A real Chromium notes when each state is first seen: the first usable page, the answer, its final scores; from the
release of a slider to the new selection, beside a rerun in which nothing changes (the key r); from a sentence clicked
to its premises lit. Other checkouts (`git worktree add`) are measured in turn with this one, so that a busy machine is
busy for all. Each of the first ten rounds asks every server an example that it has not been asked.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from tests.support.server import PATIENCE, ROOT, launched_chromium, running_app, settle

# Notes in `ragqaSeen` how many milliseconds after `ragqaMarks` each state was seen, at the next frame. What stands in
# `ragqaArmed`, a mark and the states that come of it, is marked by the next release of the pointer or key.
WATCH = """
window.ragqaSeen = {};
window.ragqaMarks = {first: 0};
const has = (where, words) => [...document.querySelectorAll(where)].some(one => one.textContent.includes(words));
const WRITTEN = '.rq-fine, [data-testid=stCaptionContainer]'; // the latter in the page before the workspace
const running = () => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState !== 'notRunning';
const kept = () => document.querySelector('table:has(tr.rq-kept)')?.textContent; // which, and why not the others
const looks = {
  first: () => document.querySelector('.st-key-examples button') && document.querySelector('textarea'),
  ready: () => looks.first() && !running(),
  answer: () => document.querySelector('.rq-answer') && has(WRITTEN, 'Written by'),
  final: () => document.querySelector('.rq-line:not(.rq-provisional), .rq-gauges:not(.rq-provisional)'),
  over: () => looks.final() && !running(),
  selection: () => kept() !== window.ragqaKept,
  rerun: () => window.ragqaRan && !running(),
};
const states = {first: 'first', ready: 'first', answer: 'asked', final: 'asked', over: 'asked', selection: 'moved',
  rerun: 'again'};
const look = () => {
  if (running()) window.ragqaRan = true;
  for (const [name, since] of Object.entries(states)) {
    if (!(since in ragqaMarks) || name in ragqaSeen || !looks[name]()) continue;
    ragqaSeen[name] = performance.now() - ragqaMarks[since];
  }
};
let waits = false;
const soon = () => { if (!waits) { waits = true; requestAnimationFrame(() => { waits = false; look(); }); } };
document.addEventListener('DOMContentLoaded', () => new MutationObserver(soon).observe(
  document, {childList: true, subtree: true, characterData: true, attributes: true,
    attributeFilter: ['data-test-script-state', 'class']}));
window.ragqaMark = (name, ...forget) => {
  ragqaMarks[name] = performance.now();
  forget.forEach(one => delete ragqaSeen[one]);
  window.ragqaKept = kept();
  window.ragqaRan = false;
};
for (const kind of ['pointerup', 'keydown']) addEventListener(kind, () => {
  if (window.ragqaArmed) { ragqaMark(...ragqaArmed); window.ragqaArmed = null; }
}, true);
"""
LIT = """async () => {
  const said = [...document.querySelectorAll('.rq-said')], took = [];
  for (let turn = 0; turn < 11 && said.length; turn++) {
    const start = performance.now();
    said[turn % said.length].click();
    document.querySelector('.rq-evidence mark')?.getBoundingClientRect();
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    took.push(performance.now() - start);
  }
  return took;
}"""
SHOWN = 11  # of the examples, without scrolling their list
SLIDER = "[data-testid=stSlider]:has(input[aria-label=Threshold])"
THUMB = f"{SLIDER} div:has(> div > input)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, nargs="*", default=[], help="checkouts to measure in turn")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--moves", type=int, default=10, help="of the slider, each way, in each round")
    options = parser.parse_args()
    took: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with ExitStack() as stack:
        browser, servers = stack.enter_context(launched_chromium()), {}
        for root in (ROOT, *(path.resolve() for path in options.against)):
            home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            kept = {"RAGQA_INDEXES": str(root / "indexes"), "PYTHONPATH": str(root)}
            servers[root.name] = stack.enter_context(running_app(home, root=root, **kept))
        for address in servers.values():
            visit(browser, address, 0, options, defaultdict(list))  # loads the models
        for number in range(1, options.rounds + 1):
            for name, address in list(servers.items())[:: 1 if number % 2 else -1]:
                visit(browser, address, number, options, took[name])
            print(f"round {number}, load {os.getloadavg()[0]:.1f}", flush=True)
    for state in took[ROOT.name]:
        own = median(took[ROOT.name][state])
        line = f"{state:>10}: median {own:6.0f} ms of {len(took[ROOT.name][state])}"
        for name in list(took)[: len(servers)]:
            if name != ROOT.name and took[name][state]:
                other = median(took[name][state])
                line += f"; {name} {other:.0f}, so {own / other:.2f} times"
        print(line)


def visit(browser: Any, address: str, number: int, options: argparse.Namespace, took: dict[str, list[float]]) -> None:
    """One visitor: the page, one question, the slider. ``number`` chooses the example."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce").new_page()
    page.set_default_timeout(PATIENCE)
    page.add_init_script(WATCH)
    page.goto(address)
    page.locator(".st-key-examples button").first.wait_for()
    settle(page)
    note(page, took, "first", "ready")
    page.get_by_role("combobox", name="Examples").click()
    page.evaluate("window.ragqaArmed = null")
    choice = page.get_by_role("option").nth(number % SHOWN)
    choice.wait_for()
    page.evaluate("window.ragqaArmed = ['asked', 'answer', 'final', 'over']")
    choice.click()
    page.wait_for_function("'final' in ragqaSeen")
    settle(page)
    page.wait_for_function("'over' in ragqaSeen")
    note(page, took, "answer", "final", "over")
    if options.moves:
        slide(page, options.moves, took)
    page.context.close()


def slide(page: Any, moves: int, took: dict[str, list[float]]) -> None:
    took["lit"] += page.evaluate(LIT)
    if page.get_by_test_id("stExpandSidebarButton").is_visible():
        page.get_by_test_id("stExpandSidebarButton").click()
    page.locator(SLIDER).wait_for()
    page.wait_for_timeout(600)
    page.locator(SLIDER).scroll_into_view_if_needed()
    track = page.locator(f"{SLIDER} [role=group]").bounding_box()
    for turn in range(2 * moves + 1):  # the first brings the threshold to where the others begin
        page.evaluate("window.ragqaArmed = ['moved', 'selection']")
        thumb = page.locator(THUMB).bounding_box()
        middle = thumb["y"] + thumb["height"] / 2
        page.mouse.move(thumb["x"] + thumb["width"] / 2, middle)
        page.mouse.down()
        page.mouse.move(track["x"] + track["width"] * (0.95, 0.05)[turn % 2], middle, steps=4)
        page.mouse.up()
        if turn:
            page.wait_for_function("'selection' in ragqaSeen")
            note(page, took, "selection")
        settle(page)
        page.evaluate("document.activeElement.blur(); window.ragqaArmed = ['again', 'rerun']")
        page.keyboard.press("r")
        page.wait_for_function("'rerun' in ragqaSeen")
        note(page, took, "rerun")


def note(page: Any, took: dict[str, list[float]], *states: str) -> None:
    seen = page.evaluate("window.ragqaSeen")
    for state in states:
        took[state].append(seen[state])


if __name__ == "__main__":
    main()

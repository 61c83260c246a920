"""The page while VRR writes, when it has finished, was stopped and has failed; to be looked at.

``python -m tests.support.vrr_cases FOLDER`` asks the demonstration rulebook through a scripted server and writes
CASE-SIZE.png (the window) and CASE-SIZE-full.png (the whole page) for each case in two sizes.
"""

import re
import sys
import tempfile
from pathlib import Path

from tests.support.openai_server import OpenAIServer, Request, answer, status
from tests.support.server import CHROMIUM, CHROMIUM_FLAGS, running_app

QUESTION = "How soon must a firm report a client money shortfall, and what must it do about it?"
SIZES = {"1440": (1440, 900), "390": (390, 844)}
CASES = ("running", "finished", "stopped", "failed")
WAIT = 90_000  # milliseconds


def sentences_of(request: Request) -> list[tuple[str, int]]:
    """The first two sentences of each passage in the prompt, with its number."""
    passages = r'^<passage-\w+ number="(\d+)"[^\n]*\n[^\n]*\n(.*?)^</passage'
    found = re.findall(passages, request.prompt, re.MULTILINE | re.DOTALL)
    return [
        (" ".join(sentence.split()), int(number))
        for number, text in found
        for sentence in re.split(r"(?<=[.])\s+", text.strip())[:2]
        if sentence.strip().endswith(".")
    ]


def writes(part: slice, before: str = "", after: str = ""):
    """Behaviour: some of the passages' own sentences, with words of its own before and after."""

    def text(request: Request) -> str:
        said = [f"{sentence} [{number}]" for sentence, number in sentences_of(request)[part]]
        return " ".join([before, *said, after]).strip() or "A firm must report it at once. [1]"

    return answer(text, seconds_per_piece=0.01)


WRONG = "A firm need not report a shortfall. [1]"
CANDIDATES = (
    writes(slice(0, 1), WRONG),
    writes(slice(0, 2)),
    writes(slice(1, 4), "In short:", WRONG),
    writes(slice(0, 3), "", "Nothing else is asked for. [2]"),
    writes(slice(0, 1)),
)
SLOW = answer("A firm must report a shortfall at once. [1]", seconds_per_piece=2.0)
SCRIPTS = {
    "running": (*CANDIDATES, SLOW),
    "finished": (*CANDIDATES, writes(slice(0, 4)), writes(slice(0, 6))),
    "stopped": (*CANDIDATES, SLOW),
    "failed": (status(500, "the model is not loaded"),),
}


def shoot_all(folder: Path) -> None:
    """Writes the pictures of `CASES` into ``folder``."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        for case in CASES:
            for size, (width, height) in SIZES.items():
                with (
                    tempfile.TemporaryDirectory() as home,
                    OpenAIServer(*SCRIPTS[case]) as server,
                    running_app(Path(home), OPENAI_BASE_URL=server.base_url, RAGQA_MODEL="scripted") as address,
                ):
                    page = chromium.new_page(viewport={"width": width, "height": height})
                    page.set_default_timeout(WAIT)
                    ask(page, address)
                    reach(page, case)
                    _shoot(page, folder / f"{case}-{size}", width, height)
                    page.close()
        chromium.close()


def ask(page, address: str) -> None:
    """Asks `QUESTION` with VRR."""
    page.goto(address)
    page.get_by_role("textbox", name="Question").wait_for()
    if page.viewport_size["width"] < 600:
        page.get_by_test_id("stExpandSidebarButton").click()
    page.get_by_text("VRR, verified and refined", exact=True).first.click()
    page.wait_for_timeout(1500)
    if page.viewport_size["width"] < 600:
        page.get_by_test_id("stSidebarCollapseButton").locator("button").click()
    page.get_by_role("textbox", name="Question").fill(QUESTION)
    page.get_by_role("button", name="Ask", exact=True).click()


def reach(page, case: str) -> None:
    """Waits, and presses Stop, until the page shows this case."""
    if case in {"running", "stopped"}:
        page.get_by_text("Best so far").first.wait_for()
        page.wait_for_timeout(6000)
    if case == "stopped":
        page.get_by_role("button", name="Stop").click()
    if case in {"stopped", "finished"}:
        page.get_by_role("button", name="Download the record (JSON)").first.wait_for()
    if case == "failed":
        page.get_by_text("the model is not loaded").first.wait_for()
    page.wait_for_timeout(1500)


def _shoot(page, stem: Path, width: int, height: int) -> None:
    page.screenshot(path=f"{stem}.png")
    content = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    page.set_viewport_size({"width": width, "height": max(height, content)})
    page.wait_for_timeout(500)
    page.screenshot(path=f"{stem}-full.png")


if __name__ == "__main__":
    shoot_all(Path(sys.argv[1]))

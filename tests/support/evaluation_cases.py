"""The evaluation page in its states, driven as a person would, and pictures of it.

``python -m tests.support.evaluation_cases FOLDER`` writes STATE-SIZE.png: before a run, mid-run, finished, a question
opened, a bad upload, and each benchmark that can run here (RAGQA_DATA for PandaChat and FanOutQA).
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

from tests.support.server import PATIENCE, launched_chromium, running_app, settle

SIZES = {"wide": (1440, 900), "phone": (390, 844)}
RETRIEVAL = "ObliQA retrieval"
ENDED = 300_000  # milliseconds: loads the models, builds an index


def open_evaluation(page, address: str, title: str = "") -> None:
    """The page with this benchmark chosen."""
    page.goto(f"{address}/evaluate")
    page.get_by_role("button", name="Run", exact=True).wait_for(timeout=PATIENCE)
    if title:
        page.get_by_text(title, exact=True).first.click()
        settle(page)


def set_first(page, count: int) -> None:
    box = page.get_by_role("spinbutton", name=re.compile("How many"))
    box.fill(str(count))
    box.press("Enter")
    settle(page)


def upload(page, file: Path) -> None:
    page.get_by_role("button", name=re.compile("Upload a file")).first.click()
    page.locator("input[type=file]").first.set_input_files(str(file))
    settle(page)
    page.keyboard.press("Escape")


def choose(page, label: str, words: str) -> None:
    """The first option with these words in the list of this label."""
    page.get_by_role("combobox", name=re.compile(label)).first.click()
    page.get_by_role("option", name=re.compile(words)).first.click()
    settle(page)


def run(page) -> None:
    page.get_by_role("button", name="Run", exact=True).click()


def wait_until_ended(page) -> None:
    """The run's last drawing is there."""
    page.get_by_text(re.compile(r"^Done: |^Stopped after")).first.wait_for(timeout=ENDED)
    page.get_by_role("heading", name="Questions", exact=True).first.wait_for(timeout=PATIENCE)
    settle(page)


def open_question(page, number: int) -> None:
    """The question of this number, by the list below the table."""
    from playwright.sync_api import TimeoutError as NotInTime

    box = page.get_by_role("combobox", name=re.compile("Open a question"))
    for timeout in (5_000, 10_000, PATIENCE):
        box.scroll_into_view_if_needed()
        box.click()
        try:
            page.get_by_role("option", name=re.compile(rf"^{number}\. ")).first.click(timeout=timeout)
            break
        except NotInTime:  # a list closes when the page scrolls, as it does while it is drawn
            page.keyboard.press("Escape")
    settle(page)
    page.locator(".rq-found, .rq-list, .rq-answer").first.wait_for()


def sideways(page) -> int:
    """By how many pixels the page is wider than the screen."""
    return page.evaluate(
        "() => { const m = document.querySelector('[data-testid=stMain]'); return m.scrollWidth - m.clientWidth; }"
    )


class Camera:
    """Pictures of a page, its whole height in one."""

    def __init__(self, folder: Path, size: str) -> None:
        self.folder, self.size = folder, size
        folder.mkdir(parents=True, exist_ok=True)

    def shoot(self, page, name: str) -> None:
        width, height = SIZES[self.size]
        content = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
        page.set_viewport_size({"width": width, "height": max(height, min(content, 6000))})
        page.wait_for_timeout(500)
        page.screenshot(path=str(self.folder / f"{name}-{self.size}.png"))
        page.set_viewport_size({"width": width, "height": height})
        over = sideways(page)
        print(name, self.size, "sideways" if over > 1 else "fits", flush=True)


def shoot_all(folder: Path) -> None:
    data = os.environ.get("RAGQA_DATA", "")
    with launched_chromium() as chromium:
        for size, (width, height) in SIZES.items():
            with tempfile.TemporaryDirectory() as home:
                indexes = Path(home) / "indexes"
                indexes.mkdir()
                for demo in (Path("indexes").resolve()).iterdir():
                    (indexes / demo.name).symlink_to(demo)
                with running_app(Path(home), RAGQA_DATA=data or home, RAGQA_INDEXES=str(indexes)) as address:
                    page = chromium.new_page(viewport={"width": width, "height": height})
                    page.set_default_timeout(60_000)
                    _states(page, address, Camera(folder, size), bool(data), Path(home))
                    page.close()


def _states(page, address: str, camera: Camera, has_data: bool, home: Path) -> None:
    open_evaluation(page, address, RETRIEVAL)
    camera.shoot(page, "1-before")
    bad = home / "bad.json"
    bad.write_text('[{"Question": "no id"}]')
    upload(page, bad)
    page.locator(".rq-bad").first.wait_for()
    camera.shoot(page, "2-bad-upload")
    open_evaluation(page, address, RETRIEVAL)
    set_first(page, 14)
    run(page)
    wait_until_ended(page)
    camera.shoot(page, "3-retrieval-finished")
    open_question(page, 1)
    camera.shoot(page, "4-retrieval-question")
    open_evaluation(page, address, "Answers and RePASs (RIRAG)")
    set_first(page, 10)
    run(page)
    page.get_by_text("The latest questions:").first.wait_for(timeout=ENDED)
    camera.shoot(page, "5-answers-running")
    page.get_by_role("button", name="Stop", exact=True).click()
    wait_until_ended(page)
    camera.shoot(page, "6-answers-stopped")
    page.get_by_role("button", name="Continue", exact=True).first.click()
    page.get_by_text(re.compile("^Done: ")).first.wait_for(timeout=ENDED)
    open_question(page, 2)
    camera.shoot(page, "7-answers-question")
    if not has_data:
        return
    open_evaluation(page, address, "PandaChat-RAG-sl")
    camera.shoot(page, "8-pandachat-before")
    run(page)
    page.get_by_text(re.compile("Building the index")).first.wait_for(timeout=ENDED)
    camera.shoot(page, "9-pandachat-building")
    wait_until_ended(page)
    camera.shoot(page, "10-pandachat-finished")
    open_question(page, 3)
    camera.shoot(page, "11-pandachat-question")
    open_evaluation(page, address, "FanOutQA")
    camera.shoot(page, "12-fanoutqa-before")
    choose(page, "Answers to score", "jsonl")
    run(page)
    page.locator(".rq-bad", has_text="found only others").first.wait_for(timeout=ENDED)
    camera.shoot(page, "13-fanoutqa-other-questions")
    choose(page, "Questions", "test")
    run(page)
    wait_until_ended(page)
    camera.shoot(page, "14-fanoutqa-checked")


if __name__ == "__main__":
    shoot_all(Path(sys.argv[1]))

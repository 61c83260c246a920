"""Seconds from dropping a file in the browser to its first answer, as a person would do it.

    python -m tests.benchmarks.first_answer --file rules.pdf --question "Who must …?" [--pictures FOLDER]

Starts the application with an empty home, drops the file on the page Library, waits for the preview, indexes, asks, and
waits for the final scores. Prints each step; the server's start is not counted, models are loaded on the way.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from tests.support.server import PATIENCE, launched_chromium, running_app, settle


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--question", required=True)
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_app(Path(folder)) as address, launched_chromium() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(5 * PATIENCE)
        page.goto(f"{address}/library")
        page.get_by_label("Name").fill("Dropped")
        page.get_by_label("Name").press("Enter")
        settle(page)
        began = time.perf_counter()
        taken: dict[str, float] = {}

        def done(step: str) -> None:
            taken[step] = round(time.perf_counter() - began, 1)
            print(f"{taken[step]:7.1f} s  {step}", flush=True)
            if options.pictures:
                options.pictures.mkdir(parents=True, exist_ok=True)
                page.screenshot(path=options.pictures / f"{len(taken)}.png")

        page.locator("input[type=file]").first.set_input_files([str(options.file.resolve())])
        page.get_by_role("button", name="Index 1 document").wait_for()
        done("the preview is shown")
        page.get_by_role("button", name="Index 1 document").click()
        page.locator(".st-key-library_ask button").wait_for()
        page.locator(".st-key-library_progress").wait_for(state="detached")
        done("the corpus is indexed")
        settle(page)
        page.locator(".st-key-library_ask button").click()
        page.locator(".st-key-examples button").first.wait_for()
        settle(page)
        page.get_by_label("Question").fill(options.question)
        page.get_by_label("Question").press("Control+Enter")
        page.locator(".rq-answer").first.wait_for()
        done("the answer is shown")
        page.locator(".rq-line:not(.rq-provisional)").wait_for()
        done("its scores are final")
    print(json.dumps(taken))


if __name__ == "__main__":
    main()

"""The pictures of the READMEs, made again: ``python -m tests.support.readme_pictures [FOLDER]``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.support.server import PATIENCE, ROOT, launched_chromium, running_app, settle

FINAL = ".rq-line:not(.rq-provisional)"
POLICY = (
    "1. Audit\nWe may rely on pooled audits or third-party certifications in place of our own audit. We audit each "
    "critical provider at least once every five years.\n\n2. Exit\nFor each Critical Function we maintain a documented "
    "exit plan. The plan is tested at least every 36 months.\n\n3. Breaches\nWe report a Data Breach to the Commission "
    "within 96 hours of becoming aware of it. We keep a log of breaches for five years."
)


def shoot(folder: Path) -> None:
    """Writes landing, page, evidence, check, compare and sweep as PNG into ``folder``, light, 1440 by 900."""
    with tempfile.TemporaryDirectory() as home, running_app(Path(home)) as address, launched_chromium() as chromium:
        page = chromium.new_page(viewport={"width": 1440, "height": 900}, color_scheme="light", reduced_motion="reduce")
        page.set_default_timeout(PATIENCE)

        def picture(name: str) -> None:
            settle(page)
            page.wait_for_timeout(1_000)  # charts draw after the page
            page.screenshot(path=str(folder / f"{name}.png"))

        page.goto(address)
        page.locator(".st-key-examples button").first.wait_for()
        picture("landing")
        page.locator(".st-key-examples button").first.click()
        page.locator(FINAL).wait_for()
        picture("page")
        page.locator(".rq-curve .rq-dot").nth(1).click()
        page.locator(".st-key-strip").scroll_into_view_if_needed()
        page.locator(".rq-curve").hover()
        page.mouse.wheel(0, 400)
        picture("evidence")
        page.goto(f"{address}/check")
        page.get_by_label("Text to check").fill(POLICY)
        page.get_by_role("button", name="Check", exact=True).click()
        page.get_by_text("Download the findings").wait_for()
        picture("check")
        page.goto(f"{address}/compare")
        page.get_by_label("Question").fill("How many days before outsourcing must the Commission be told?")
        page.get_by_role("combobox", name="B: ranking and filter").fill("no filter, k = 10")
        page.keyboard.press("Enter")
        settle(page)
        page.get_by_role("button", name="Ask both").click()
        page.get_by_text("Both answers are in History").wait_for()
        picture("compare")
        page.goto(f"{address}/sweep")
        page.get_by_role("button", name="Sweep", exact=True).click()
        page.get_by_text("64 points over 20 questions").wait_for()
        picture("sweep")


if __name__ == "__main__":
    shoot(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests" / "screenshots")

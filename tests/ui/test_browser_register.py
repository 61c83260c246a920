"""An analyst at the register with a browser: a row found, noted on in place, opened; a conflict said; what changed."""

from dataclasses import replace

import pytest

from ragqa.library.register_search import Wanted, matching
from ragqa.library.register_store import Handling, change, load
from tests.library.test_work_list import world
from tests.support.server import PATIENCE, browser_marks, running_app, settle
from tests.ui.test_browser_library import pictures

pytestmark = [pytest.mark.slow, *browser_marks(900)]
__all__ = ["world"]


def cell(page, row, column):
    """Clicks a cell of three rows: the table is a canvas."""
    box = page.locator("[data-testid=stDataFrame] canvas").first.bounding_box()
    left = {"rule": 20, "owner": 1015, "note": 1380}[column]
    place = box["x"] + left, box["y"] + 36 + (box["height"] - 38) / 3 * (row + 0.5)
    page.mouse.move(*place, steps=5)  # a link is one where the pointer has come to it
    page.mouse.click(*place)


def write(page, row, column, words, kept):
    cell(page, row, column)
    page.locator("[data-testid^=glide-cell]:focus").wait_for(state="attached")
    page.wait_for_timeout(500)  # the table redraws after the cell has the focus, and the editor after it has
    page.keyboard.type(words[0])  # opens the editor, which loses what is typed before it stands
    page.locator("#portal textarea:focus, #portal input:focus").wait_for()
    page.wait_for_timeout(300)
    page.keyboard.type(words[1:], delay=100)
    page.keyboard.press("Enter")
    for _ in range(600):
        if kept():
            settle(page)  # the table is drawn again
            return
        page.wait_for_timeout(100)
    raise AssertionError(words)


def test_a_row_is_noted_on_in_place_and_a_conflict_is_said(world, browser, tmp_path):
    paths, _, file, _ = world
    with running_app(tmp_path, RAGQA_INDEXES=str(paths.indexes)) as address:
        page = browser.new_page(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
        page.set_default_timeout(PATIENCE)
        page.goto(f"{address}/register?corpus=rules")
        page.get_by_text("Rows 1 to 50 of").wait_for()
        n_rows = len(matching(load(file), (), Wanted()))
        assert page.get_by_text(f"Rows 1 to 50 of {n_rows}, {n_rows} in the register").is_visible()
        page.locator("[data-testid=stDataFrame] canvas").first.wait_for()
        pictures(page, "register-rows")
        page.set_viewport_size({"width": 1800, "height": 900})
        page.get_by_label("Words or rule").fill("hours 6.1.1")
        page.get_by_label("Words or rule").press("Enter")
        page.get_by_text("Rows 1 to 3 of 3").wait_for()
        settle(page)
        page.wait_for_timeout(1_500)  # the table draws after the page
        page.locator("[data-testid=glide-cell-1-2]").get_by_text("A report after 48 hours").wait_for(state="attached")
        first, second = (row.obligation_id for row in matching(load(file), (), Wanted("hours 6.1.1"))[:2])
        write(page, 0, "owner", "Ben", lambda: load(file).handling(first) == Handling("Ben"))
        note = "<b>see</b> the plan"
        write(page, 0, "note", note, lambda: load(file).handling(first) == Handling("Ben", note=note))
        write(page, 1, "owner", "Eve", lambda: load(file).handling(second) == Handling("Eve"))
        change(file, lambda held: replace(held, handlings={**held.handlings, first: Handling("Zoe")}))
        write(page, 0, "owner", "Ada", page.get_by_text("owner: 'Zoe' stays, not 'Ada'").is_visible)
        page.locator("[data-testid=glide-cell-5-0]").get_by_text("Zoe").wait_for(state="attached")
        assert load(file).handling(first) == Handling("Zoe")
        with page.context.expect_page() as opened:
            cell(page, 0, "rule")
        opened.value.locator("#rq-place mark").first.wait_for()
        assert "within 48 hours" in opened.value.locator("#rq-place").inner_text()
        opened.value.close()
        page.get_by_text("What changed").click()
        page.get_by_text("4 kept answers to ask again").wait_for()
        assert page.locator("details.rq-change").count() == 12
        pictures(page, "register-changed")

"""An analyst at the page of gaps: a run started there, rows judged by single keys, the heat map, a kill amid a run."""

import json
import os
import signal

import pytest

from ragqa.corpus.demo import DEMOS
from ragqa.index import build_index
from ragqa.infra.journal import JOURNAL, Journal
from ragqa.loading import load_encoder
from ragqa.settings.config import IndexingConfig
from tests.support.server import PATIENCE, ROOT, browser_marks, running_app, server_of, settle
from tests.ui.test_browser_library import pictures

pytestmark = [pytest.mark.slow, *browser_marks(1_800)]


@pytest.fixture
def home(tmp_path):
    """A home whose indexes are the demonstration's rules and the two invented policies."""
    indexes = tmp_path / "indexes"
    indexes.mkdir()
    (indexes / "rulebook").symlink_to(ROOT / "indexes" / "rulebook")
    source = DEMOS["rulebook"].source.with_name("policies")
    encoder = load_encoder(IndexingConfig().encoder)
    build_index("policies", source, indexes=indexes, config=IndexingConfig(), encoder=encoder, format="text")
    return tmp_path


def rows_of(home):
    """The ids of the rows on disk, in the order that they were read."""
    journal = Journal(home / "gaps/rulebook/policies" / JOURNAL)
    return [one["gap"]["row"]["obligation_id"] for _, one in journal.read()]


def test_five_kills_amid_a_run_lose_no_row_and_its_rows_are_judged_by_key(home, browser):
    page = browser.new_page(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    page.set_default_timeout(PATIENCE)
    environment = {"RAGQA_INDEXES": str(home / "indexes")}
    kept: list[str] = []
    for turn in range(6):
        with running_app(home, **environment) as address:
            page.goto(f"{address}/gaps?corpus=rulebook&policies=policies")
            if not turn:
                page.get_by_role("button", name="Part of the rules").click()
                page.get_by_label("Rules that begin with").fill("3, 4")
                page.get_by_label("Rules that begin with").press("Enter")
                page.keyboard.press("Escape")
                settle(page)
                page.get_by_role("button", name="Compare with the policies").click()
            else:
                page.get_by_role("button", name="Go on").click()
            if turn < 5:
                while len(rows_of(home)) < len(kept) + 3 + turn:
                    page.wait_for_timeout(100)
                if not turn:
                    page.get_by_text("Comparing rows").wait_for()
                    pictures(page, "gaps-running")
                    page.set_viewport_size({"width": 1440, "height": 900})
                os.kill(server_of(address), signal.SIGKILL)
                page.wait_for_timeout(500)
                now = rows_of(home)
                assert now[: len(kept)] == kept
                kept = now
                continue
            page.get_by_role("button", name="Compare again what changed").wait_for()
            kept = rows_of(home)
            assert len(kept) == len(set(kept)) > 30
            judged(page, home)


def judged(page, home):
    """Rows are judged by the keys, and a cell of the heat map leads to its rows."""
    file = home / "gaps/rulebook/policies/corrections.json"

    def wait(n):
        while not file.exists() or len(json.loads(file.read_text())) < n:
            page.wait_for_timeout(100)
        settle(page)

    page.reload()
    page.locator(".rq-gap").wait_for()
    pictures(page, "gaps-rows")
    page.set_viewport_size({"width": 1440, "height": 900})
    for n, key in enumerate("134", start=1):
        before = page.locator(".rq-gap h2").inner_text()
        page.keyboard.press(key)
        wait(n)
        page.wait_for_function("was => document.querySelector('.rq-gap h2').innerText !== was", arg=before)
    assert [one["said"] for one in json.loads(file.read_text()).values()] == ["confirmed", "covered", "partly"]
    page.get_by_label("Comment").fill("see page 3, 1st line")
    page.get_by_label("Comment").press("Enter")
    wait(4)
    assert [one["comment"] for one in json.loads(file.read_text()).values()].count("see page 3, 1st line") == 1
    assert [one["said"] for one in json.loads(file.read_text()).values()].count("") == 1  # digits typed are no keys
    page.get_by_text("Chapters and policies").click()
    page.locator(".rq-heat td a").first.wait_for()
    pictures(page, "gaps-chapters")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.locator(".rq-heat td a").first.click()
    page.locator(".rq-gap").wait_for()
    page.get_by_text("Statements without a rule").click()
    page.get_by_text("Statements of the policies").wait_for()
    pictures(page, "gaps-unasked")

"""What the tests with a browser share: one application for all that change nothing in it, one Chromium a module."""

from __future__ import annotations

import pytest

from tests.support.guarded import served
from tests.support.openai_server import OpenAIServer
from tests.support.server import PATIENCE, ROOT, launched_chromium, running_app, settle


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    """The address of an application without a language model and without shared data; its models are loaded once."""
    home = tmp_path_factory.mktemp("home")
    (home / "nothing").mkdir()
    with running_app(home, RAGQA_DATA=str(home / "nothing")) as url:
        yield url


@pytest.fixture(scope="session")
def guarded(tmp_path_factory):
    """The address of an application on which people sign in, at a provider that is not there."""
    with served("http://localhost:1", tmp_path_factory.mktemp("guarded")) as (url, _):
        yield url


@pytest.fixture(scope="session")
def model_app(tmp_path_factory):
    """A language model's server whose ``script`` a test sets, and address and home of an application that asks it.

    In the home's ``indexes`` stand the demonstration ones; a test may build one of its own beside them.
    """
    home = tmp_path_factory.mktemp("model-home")
    (home / "indexes").mkdir()
    for index in (ROOT / "indexes").iterdir():
        (home / "indexes" / index.name).symlink_to(index)
    with (
        OpenAIServer() as server,
        running_app(
            home,
            OPENAI_BASE_URL=server.base_url,
            OPENAI_API_KEY="sk-browser-secret",
            RAGQA_INDEXES=str(home / "indexes"),
        ) as url,
    ):
        yield server, url, home


@pytest.fixture(scope="module")
def browser():
    with launched_chromium() as chromium:  # no longer than its module: its event loop is in the way of others
        yield chromium


def opened_page(browser, size=(1440, 900)):
    """A page of this size; nothing on it moves by itself, which spares a machine without graphics a third."""
    width, height = size
    page = browser.new_page(viewport={"width": width, "height": height}, accept_downloads=True, reduced_motion="reduce")
    page.set_default_timeout(PATIENCE)
    return page


@pytest.fixture
def page(browser):
    page = opened_page(browser)
    yield page
    page.close()


@pytest.fixture(scope="module")
def answered(browser, address):
    """A page on which the first example was answered; shared, so a test leaves it wide, light and with its answer."""
    page = opened_page(browser)
    page.goto(address)
    page.locator(".st-key-examples button").first.click()
    page.locator(".rq-line:not(.rq-provisional)").wait_for()
    settle(page)
    yield page
    page.close()

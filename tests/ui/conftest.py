"""What the tests with a browser share: one application for all that change nothing in it, one Chromium a module."""

from __future__ import annotations

import pytest

from tests.support.openai_server import OpenAIServer
from tests.support.server import PATIENCE, launched_chromium, running_app


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    """The address of an application without a language model and without shared data; its models are loaded once."""
    home = tmp_path_factory.mktemp("home")
    (home / "nothing").mkdir()
    with running_app(home, RAGQA_DATA=str(home / "nothing")) as url:
        yield url


@pytest.fixture(scope="session")
def model_app(tmp_path_factory):
    """A language model's server whose ``script`` a test sets, and address and home of an application that asks it."""
    home = tmp_path_factory.mktemp("model-home")
    with (
        OpenAIServer() as server,
        running_app(home, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="sk-browser-secret") as url,
    ):
        yield server, url, home


@pytest.fixture(scope="module")
def browser():
    with launched_chromium() as chromium:  # no longer than its module: its event loop is in the way of others
        yield chromium


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 1440, "height": 900}, accept_downloads=True)
    page.set_default_timeout(PATIENCE)
    yield page
    page.close()

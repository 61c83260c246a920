"""Clients of APIs: made for a server of the test, closed after it; their pauses noted and not made."""

import pytest

from ragqa.infra import http as http_client
from tests.support.api_clients import KEY


@pytest.fixture
def slept(monkeypatch):
    """The pauses between tries, in seconds, none of them made; and no proxy of the machine's own."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    pauses = []
    monkeypatch.setattr(http_client, "_sleep", pauses.append)
    return pauses


@pytest.fixture
def client_of():
    """Makes clients of this class that ask this server, and closes them."""
    made = []

    def make(maker, server, name, key=KEY, **more):
        environ = {
            f"{provider}_{what}": value
            for provider in ("OPENAI", "VOYAGE")
            for what, value in (("API_KEY", key), ("BASE_URL", server.base_url))
        }
        made.append(maker(name, environ=environ, **more))
        return made[-1]

    yield make
    for client in made:
        client.close()

"""A server on which people sign in, and cookies as it would give them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.server import free_port, running_app

SECRET = "a secret of the tests, long enough for a signature"
POLICY = """
[[people]]
email = "ann@example.org"
role = "analyst"
[[people]]
email = "carl@example.org"
role = "curator"
[[people]]
email = "mallory@example.org"
role = "administrator"
"""


@contextmanager
def served(provider: str, home: Path) -> Iterator[tuple[str, Path]]:
    """Address and home of a server that wants people to sign in at this provider."""
    port = free_port()
    address = f"http://localhost:{port}"
    (home / "access.toml").write_text(POLICY)
    (home / "secrets.toml").write_text(
        f'[auth]\nredirect_uri = "{address}/oauth2callback"\ncookie_secret = "{SECRET}"\nclient_id = "ragqa"\n'
        f'client_secret = "x"\nserver_metadata_url = "{provider}/.well-known/openid-configuration"\n'
    )
    options = ("--secrets.files", str(home / "secrets.toml"))
    switches = {"RAGQA_ACCESS": "on", "RAGQA_ACCESS_FILE": str(home / "access.toml"), "RAGQA_DATA": str(home)}
    with running_app(home, port, options, **switches):
        yield address, home


def signed(claims: dict[str, Any], secret: str = SECRET) -> str:
    """A cookie with these claims as a server with this secret would give it."""
    from streamlit.web.server.starlette.starlette_app_utils import create_signed_value

    return create_signed_value(secret, "_streamlit_user", json.dumps(claims)).decode()

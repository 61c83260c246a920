"""An OpenID provider on 127.0.0.1 that signs in whoever comes, with a token as true or as false as a test wants it."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

Claims = dict[str, Any]


class LyingProvider:
    """``change`` alters the claims before they are signed, ``spoil`` the token after."""

    def __init__(self) -> None:
        from joserfc.jwk import RSAKey

        self.key, self.other_key = RSAKey.generate_key(2048), RSAKey.generate_key(2048)
        self.change: Callable[[Claims], Claims] = dict
        self.spoil: Callable[[str], str] = str
        self.by_another_key = False
        self._nonce = ""
        handler = type("Handler", (_Handler,), {"provider": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> LyingProvider:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def metadata(self) -> Claims:
        places = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "jwks"}
        return {"issuer": self.issuer, **{name: f"{self.issuer}/{place}" for name, place in places.items()}}

    def authorised(self, query: dict[str, list[str]]) -> str:
        self._nonce = query["nonce"][0]
        return f"{query['redirect_uri'][0]}?{urlencode({'code': 'c', 'state': query['state'][0]})}"

    def token(self) -> Claims:
        from joserfc import jwt

        now = int(time.time())
        claims = {"iss": self.issuer, "aud": "ragqa", "sub": "ann", "iat": now, "exp": now + 300, "nonce": self._nonce}
        claims |= {"email": "ann@example.org", "email_verified": True}
        key = self.other_key if self.by_another_key else self.key
        signed = jwt.encode({"alg": "RS256", "kid": "k"}, self.change(claims), key)
        return {"access_token": "a", "token_type": "Bearer", "expires_in": 300, "id_token": self.spoil(signed)}


class _Handler(BaseHTTPRequestHandler):
    provider: LyingProvider

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/authorize":
            self.send_response(302)
            self.send_header("Location", self.provider.authorised(parse_qs(parts.query)))
            self.end_headers()
        elif parts.path == "/jwks":
            self._send({"keys": [{**self.provider.key.as_dict(private=False), "kid": "k", "alg": "RS256"}]})
        else:
            self._send(self.provider.metadata())

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self._send(self.provider.token())

    def _send(self, body: Claims) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_args: object) -> None:
        """Nothing."""


def without_signature(token: str) -> str:
    """The claims of the token under a head that says that none is needed."""
    head = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    return f"{head}.{token.split('.')[1]}."


def with_other_claims(token: str) -> str:
    """The token of somebody else under the signature of this one."""
    head, body, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    other = base64.urlsafe_b64encode(json.dumps({**claims, "email": "root@example.org"}).encode()).rstrip(b"=").decode()
    return f"{head}.{other}.{signature}"

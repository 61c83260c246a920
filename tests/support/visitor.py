"""Somebody who speaks the page's own protocol without a browser, and may lie in it."""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import httpx2
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect


class Visitor:
    """Cookies of its own; ``address`` is that of the server."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.http = httpx2.Client(base_url=address, follow_redirects=True, timeout=60)
        self.http.get("/_stcore/health")  # gives the cookie against forged requests

    def close(self) -> None:
        self.http.close()

    @property
    def cookies(self) -> dict[str, str]:
        return {
            one.name: str(one.value) for one in self.http.cookies.jar if one.domain in {"localhost.local", "localhost"}
        }

    def opened(self, page: str = "", query: str = "", cookies: dict[str, str] | None = None) -> Opened:
        """A session on this page, drawn once."""
        return Opened(self, page, query, self.cookies if cookies is None else cookies)

    def sign_in(self, subject: str) -> None:
        """Presses the button, follows it to the provider, says who it is there, and comes back with a cookie."""
        with self.opened() as session:
            session.press("sign_in_")
            form = self.http.get(session.redirect)
        done = self.http.post(str(form.url), data={"sub": subject})
        assert done.status_code == 200, done.text[:300]
        assert "_streamlit_user" in self.cookies


class Opened:
    """One websocket. ``text`` is all that was ever sent down it, ``widgets`` the ids of widgets by their keys."""

    def __init__(self, visitor: Visitor, page: str, query: str, cookies: dict[str, str]) -> None:
        self.text, self.redirect, self.widgets = "", "", dict[str, str]()
        self._page, self._query, self._hash = page, query, ""
        self._open = ExitStack()
        connection = connect(
            f"ws://{urlsplit(visitor.address).netloc}/_stcore/stream",
            origin=visitor.address,  # type: ignore[arg-type]
            subprotocols=["streamlit", cookies.get("_streamlit_xsrf", "none")],  # type: ignore[list-item]
            additional_headers={"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())},
            max_size=None,
        )
        self._socket = self._open.enter_context(connection)
        self.run()

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def run(self, **widgets: Any) -> str:
        """Has the page drawn with these widgets' values, by id: (field of the protocol, value). What came of it."""
        told = BackMsg()
        told.rerun_script.query_string = self._query
        told.rerun_script.page_name = self._page
        told.rerun_script.page_script_hash = self._hash
        for name, (field, value) in widgets.items():
            one = told.rerun_script.widget_states.widgets.add(id=name)
            setattr(one, field, value)
        self._socket.send(told.SerializeToString())
        came = ""
        while True:
            message = ForwardMsg.FromString(self._socket.recv(timeout=60))  # type: ignore[arg-type]
            came += str(message)
            if message.WhichOneof("type") == "new_session":
                self._hash = message.new_session.page_script_hash
            if message.WhichOneof("type") == "auth_redirect":
                self.redirect = message.auth_redirect.url
            if (
                message.WhichOneof("type") == "script_finished"
                and message.script_finished != message.FINISHED_EARLY_FOR_RERUN
            ):
                break
        self.widgets |= {name.rpartition("-")[2]: name for name in re.findall(r'id: "(\$\$ID-[^"]*)"', came)}
        self.text += came
        return came

    def press(self, key: str) -> str:
        """Presses the button of this key, whether it is drawn as one that can be pressed or not."""
        return self.run(**{self.widgets[key]: ("trigger_value", True)})

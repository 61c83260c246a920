"""Somebody who speaks the page's own protocol without a browser, and may lie in it."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import httpx2
from google.protobuf.message import Message
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Common_pb2 import FileUploaderState
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
        host = urlsplit(self.address).hostname
        return {one.name: str(one.value) for one in self.http.cookies.jar if one.domain in {host, f"{host}.local"}}

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
    """One websocket. ``text`` is all that was ever sent down it, ``widgets`` the ids of widgets by their keys.

    ``query`` is that of the next drawing; ``again`` what the page wants drawn again by itself, and after how many
    seconds, as a browser would; ``kinds`` are widgets' by their ids; ``failures`` counts the exceptions that were
    drawn, ``traces`` those that say where in the code, or of which type. ``data`` are the bytes of the last drawing;
    a ``quiet`` session keeps nothing else, and writes none of it as text, which costs more than the page.
    """

    def __init__(
        self,
        visitor: Visitor,
        page: str,
        query: str,
        cookies: dict[str, str],
        patience: float = 60,
        *,
        quiet: bool = False,
    ) -> None:
        self.text, self.redirect, self.widgets = "", "", dict[str, str]()
        self.query, self.again, self.kinds = query, dict[str, float](), dict[str, str]()
        self.failures, self.traces, self.data = 0, 0, b""
        self._quiet = quiet
        self._visitor, self._page, self._hash, self._session, self._patience = visitor, page, "", "", patience
        self._open = ExitStack()
        connection = connect(
            f"ws://{urlsplit(visitor.address).netloc}/_stcore/stream",
            origin=visitor.address,  # type: ignore[arg-type]
            subprotocols=["streamlit", cookies.get("_streamlit_xsrf", "none")],  # type: ignore[list-item]
            additional_headers={"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())},
            max_size=None,
            open_timeout=patience,
            ping_timeout=patience,  # a busy machine is no dead one
        )
        self._socket = self._open.enter_context(connection)
        self.run()

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def run(self, fragment: str = "", **widgets: Any) -> str:
        """Has the page drawn, or a fragment of it, with these widgets' values, by id: (field of the protocol, value).

        Gives what came of it.
        """
        told = BackMsg()
        told.rerun_script.query_string = self.query
        told.rerun_script.page_name = self._page
        told.rerun_script.page_script_hash = self._hash
        told.rerun_script.fragment_id = fragment
        for name, (field, value) in widgets.items():
            one = told.rerun_script.widget_states.widgets.add(id=name)
            if isinstance(value, Message):
                getattr(one, field).CopyFrom(value)
            elif isinstance(value, list):
                getattr(one, field).data.extend(value)
            else:
                setattr(one, field, value)
        self._socket.send(told.SerializeToString())
        came, self.data = [], b""
        while True:
            message = self._received()
            if not self._quiet:
                came.append(str(message))
            if (
                message.WhichOneof("type") == "script_finished"
                and message.script_finished != message.FINISHED_EARLY_FOR_RERUN
            ):
                break
        text = "".join(came)
        names = {*self.kinds, *re.findall(r'id: "(\$\$ID-[^"]*)"', text)}
        self.widgets |= {name.rpartition("-")[2]: name for name in names}
        self.text += text
        return text

    def _received(self) -> ForwardMsg:
        data = self._socket.recv(timeout=self._patience)
        message = ForwardMsg.FromString(data)  # type: ignore[arg-type]
        self.data += data  # type: ignore[operator]
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self._hash = message.new_session.page_script_hash
            if not message.metadata.run.fragment_ids:
                self.again.clear()  # all of the page is drawn
            self._session = message.new_session.initialize.session_id or self._session
        elif kind == "navigation":
            self._hash = message.navigation.page_script_hash
        elif kind == "auth_redirect":
            self.redirect = message.auth_redirect.url
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string
        elif kind == "auto_rerun":
            self.again[message.auto_rerun.fragment_id] = message.auto_rerun.interval
        elif kind == "stop_auto_rerun":
            for fragment in message.stop_auto_rerun.fragment_ids:
                self.again.pop(fragment, None)
        elif kind == "delta" and (element := message.delta.new_element.WhichOneof("type")):
            drawn = getattr(message.delta.new_element, element)
            if element == "exception":
                self.failures += 1
                self.traces += bool(drawn.stack_trace or drawn.type)
            elif getattr(drawn, "id", "").startswith("$$ID"):
                self.kinds[drawn.id] = element
        return message

    def press(self, key: str, **widgets: Any) -> str:
        """Presses the button of this key, whether it is drawn as one that can be pressed or not."""
        return self.run(**{self.widgets[key]: ("trigger_value", True)}, **widgets)

    def ask(self, question: str, seconds: float = 300) -> None:
        """Types a question, presses Ask and has drawn again what wants to be, until nothing does."""
        self.press("Ask", **{self.widgets["question"]: ("string_value", question)})
        self.settle(seconds)

    def settle(self, seconds: float = 300) -> None:
        """Has drawn again what wants to be, as soon as a browser would, until nothing does."""
        until = time.monotonic() + seconds
        while self.again:
            assert time.monotonic() < until, f"still at it after {seconds} s"
            time.sleep(min(self.again.values()))
            for fragment in list(self.again):
                if fragment in self.again:
                    self.run(fragment)

    def send_file(self, name: str, content: bytes, cookies: dict[str, str] | None = None) -> tuple[int, Any]:
        """Sends a file of this session as a browser does: the status, and the addresses that the server gave for it."""
        told = BackMsg()
        asked = told.file_urls_request
        asked.request_id, asked.session_id = "1", self._session
        asked.file_names.append(name)
        self._socket.send(told.SerializeToString())
        while (message := self._received()).WhichOneof("type") != "file_urls_response":
            pass
        (urls,) = message.file_urls_response.file_urls
        said = self._visitor.cookies if cookies is None else cookies
        headers = {"X-Xsrftoken": said.get("_streamlit_xsrf", ""), "Origin": self._visitor.address}
        if cookies is not None:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
        sent = self._visitor.http.put(urls.upload_url, files={"file": (name, content)}, headers=headers)
        return sent.status_code, urls

    def drop(self, key: str, name: str, content: bytes) -> str:
        """Drops a file on the uploader of this key."""
        status, urls = self.send_file(name, content)
        assert status < 300, status
        state = FileUploaderState()
        state.uploaded_file_info.add(name=name, size=len(content), file_id=urls.file_id, file_urls=urls)
        return self.run(**{self.widgets[key]: ("file_uploader_state_value", state)})

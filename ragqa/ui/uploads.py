"""Limits for uploaded files: Streamlit itself accepts them from anybody, without limit, and keeps them in memory."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, cast

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from streamlit.runtime import Runtime, get_instance
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.web.server.starlette.starlette_websocket import _get_signed_cookie_with_chunks

from ragqa.errors import RagqaError
from ragqa.infra.metrics import METRICS
from ragqa.server.access.policy import Act
from ragqa.settings.environment import whole_number
from ragqa.ui import access

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Scope
    from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
    from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec

_logger = logging.getLogger(__name__)

PATH: Final = "/_stcore/upload_file/"
SESSION_MB: Final = 420  # held for one session: two files of the largest size, with the overhead of HTTP
SESSION_FILES: Final = 500
IDLE_SECONDS: Final = 1_800.0  # after which a file that no page has used is removed
SWEEP_SECONDS: Final = 60.0


class Uploads:
    """Counts the uploaded files in this process's memory; used only by the server's event loop."""

    def __init__(self) -> None:
        self._coming: Counter[str] = Counter()  # bytes that are being uploaded, by session
        self._since: dict[tuple[str, str], float] = {}  # when a file was first seen

    def refusal(self, scope: Scope) -> tuple[int, str]:
        """(status, message) for an upload or removal that is rejected; (0, "") where it is allowed."""
        if access.is_guarded() and not _may_upload(scope):
            METRICS.count("ragqa_refusals_total", wanted=str(Act.UPLOAD))
            return 403, "expected somebody who has signed in and may upload, found nobody; sign in on the page"
        if scope["method"] != "PUT":
            return 0, ""
        length = Headers(scope=scope).get("content-length", "")
        if not (length.isascii() and length.isdigit() and len(length) < 13):
            return 411, "expected the length of the file in Content-Length, found none; send it as a browser does"
        session, held, (most_here, most) = _session_of(scope), held_files(), most_bytes()
        here = held.get(session, {})
        sizes = {name: sum(len(one.data) for one in files.values()) for name, files in held.items()}
        in_session = sizes.get(session, 0) + self._coming[session] + int(length)
        if in_session > most_here or len(here) >= SESSION_FILES:
            held_here = f"{SESSION_FILES} files and {most_here >> 20:,} MB of one session"
            return 413, f"expected at most {held_here} at once, found more; remove some, or add them to the library"
        if sum(sizes.values()) + self._coming.total() + int(length) > most:
            return 503, f"expected at most {most >> 20:,} MB of all visitors' files at once, found more; wait a minute"
        return 0, ""

    @contextmanager
    def arriving(self, scope: Scope) -> Iterator[None]:
        """Counts a file while it is being uploaded."""
        session, length = _session_of(scope), int(Headers(scope=scope).get("content-length", "0") or 0)
        self._coming[session] += length
        try:
            yield
        finally:
            self._coming[session] -= length
            if not self._coming[session]:
                del self._coming[session]

    def drop_idle(self, now: float) -> int:
        """Removes files that no page has used for half an hour; returns their number."""
        held = {(session, file) for session, files in held_files().items() for file in files}
        self._since = {key: self._since.get(key, now) for key in held}
        idle = [key for key, since in self._since.items() if now - since > IDLE_SECONDS]
        for session, file in idle:
            _remove(session, file)
        return len(idle)

    async def sweep(self) -> None:
        """Removes idle files periodically, as long as the server runs."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            if dropped := self.drop_idle(time.monotonic()):
                _logger.info("files that nobody took: %d dropped", dropped)


def most_bytes() -> tuple[int, int]:
    """The most bytes of one session and of all sessions (RAGQA_UPLOADS_MB). Raises ConfigError."""
    every = whole_number("RAGQA_UPLOADS_MB")
    return min(SESSION_MB, every) << 20, every << 20


def held_files() -> dict[str, dict[str, UploadedFileRec]]:
    """The files in memory by session and id; empty where no server runs."""
    if not Runtime.exists():
        return {}
    return {session: dict(files) for session, files in dict(_manager().file_storage).items()}


@contextmanager
def used_once(files: Iterable[UploadedFile]) -> Iterator[None]:
    """Removes the files when the block ends, because Streamlit would keep them for the whole session."""
    try:
        yield
    finally:
        context = get_script_run_ctx()
        if context and Runtime.exists():
            for file in files:
                _remove(context.session_id, file.file_id)


def _manager() -> MemoryUploadedFileManager:
    return cast("MemoryUploadedFileManager", get_instance().uploaded_file_mgr)


def _remove(session: str, file: str) -> None:
    _manager().remove_file(session, file)


def _session_of(scope: Scope) -> str:
    return str(scope["path"]).partition(PATH)[2].partition("/")[0]


def _may_upload(scope: Scope) -> bool:
    cookies = cookie_parser(Headers(scope=scope).get("cookie", ""))
    try:
        claims = json.loads(_get_signed_cookie_with_chunks(cookies, "_streamlit_user") or b"{}")
        found = access.gate_of(claims) if isinstance(claims, dict) else None
    except (ValueError, RagqaError):  # with an unreadable policy nobody has access
        return False
    return found is not None and any(found.may(act) for act in (Act.CHECK, Act.UPLOAD, Act.EVALUATION))

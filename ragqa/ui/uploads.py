"""Files that browsers send: Streamlit takes them from anybody, keeps them in memory, and asks nobody how many."""

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
SESSION_MB: Final = 420  # held of one session's: two files of the largest size, with what HTTP adds
SESSION_FILES: Final = 500
IDLE_SECONDS: Final = 1_800.0  # after which a file goes that no page took
SWEEP_SECONDS: Final = 60.0


class Uploads:
    """What the browsers' files in this process's memory amount to; used by the server's event loop alone."""

    def __init__(self) -> None:
        self._coming: Counter[str] = Counter()  # bytes on their way, by session
        self._since: dict[tuple[str, str], float] = {}  # when a file was first seen

    def refusal(self, scope: Scope) -> tuple[int, str]:
        """What an upload, or the taking back of one, is refused with: status and sentence; 0 and "" where it is not."""
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
            return 413, f"expected at most {held_here} at once, found more; take some out, or put them into the library"
        if sum(sizes.values()) + self._coming.total() + int(length) > most:
            return 503, f"expected at most {most >> 20:,} MB of all visitors' files at once, found more; wait a minute"
        return 0, ""

    @contextmanager
    def arriving(self, scope: Scope) -> Iterator[None]:
        """Counts a file that is on its way."""
        session, length = _session_of(scope), int(Headers(scope=scope).get("content-length", "0") or 0)
        self._coming[session] += length
        try:
            yield
        finally:
            self._coming[session] -= length
            if not self._coming[session]:
                del self._coming[session]

    def drop_idle(self, now: float) -> int:
        """Lets go of files that no page took for half an hour; how many they were."""
        held = {(session, file) for session, files in held_files().items() for file in files}
        self._since = {key: self._since.get(key, now) for key in held}
        idle = [key for key, since in self._since.items() if now - since > IDLE_SECONDS]
        for session, file in idle:
            _remove(session, file)
        return len(idle)

    async def sweep(self) -> None:
        """Drops idle files, as long as the server runs."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            if dropped := self.drop_idle(time.monotonic()):
                _logger.info("files that nobody took: %d dropped", dropped)


def most_bytes() -> tuple[int, int]:
    """Of one session and of all, as RAGQA_UPLOADS_MB says, which counts for all. Raises ConfigError."""
    every = whole_number("RAGQA_UPLOADS_MB")
    return min(SESSION_MB, every) << 20, every << 20


def held_files() -> dict[str, dict[str, UploadedFileRec]]:
    """The files in memory by session and id; none where no server runs."""
    if not Runtime.exists():
        return {}
    return {session: dict(files) for session, files in dict(_manager().file_storage).items()}


def let_go(files: Iterable[UploadedFile]) -> None:
    """Forgets files that a page has taken: Streamlit would keep them as long as the session lasts."""
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
    except (ValueError, RagqaError):  # a policy that cannot be read lets nobody in
        return False
    return found is not None and any(found.may(act) for act in (Act.CHECK, Act.UPLOAD, Act.EVALUATION))

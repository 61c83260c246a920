"""Notes the audit log's latest hash outside the log, in another file or in a system log: one line per entry.

Whoever can rewrite the whole log and its head cannot rewrite these notes, if the server may only append to them.
"""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import Final

from ragqa.errors import RecordError
from ragqa.infra.files import append

VARIABLE: Final = "RAGQA_AUDIT_ANCHOR"
SYSLOG: Final = "syslog"
_PRIORITY: Final = 86  # facility authpriv, informational (RFC 3164)


def anchor_place() -> str:
    """The value of RAGQA_AUDIT_ANCHOR: a file, ``syslog`` or ``syslog:HOST:PORT``; "" where it is not set."""
    return os.environ.get(VARIABLE, "").strip()


def note(place: str, count: int, stamp: str) -> None:
    """Adds ``COUNT:HASH`` at this place. Raises RecordError where it cannot; then the act must not be done."""
    line = f"{count}:{stamp}"
    try:
        if place.partition(":")[0] != SYSLOG:
            append(Path(place).expanduser(), f"{line}\n".encode())
            return
        host, _, port = place.removeprefix(SYSLOG).strip(":").rpartition(":")
        family = socket.AF_INET if host else socket.AF_UNIX
        with socket.socket(family, socket.SOCK_DGRAM) as sending:
            sending.connect((host, int(port)) if host else "/dev/log")
            sending.send(f"<{_PRIORITY}>ragqa-audit: {line}".encode())
    except (OSError, ValueError, OverflowError) as error:  # OverflowError for a port above 65535
        raise RecordError(
            f"{VARIABLE}: expected a place to note the audit log's latest entry, found {place[:80]!r} ({error}); set it"
        ) from error


def noted(place: str) -> tuple[str, ...]:
    """The notes in this file, oldest first; empty where the place is not a file. Raises RecordError."""
    if not place or place.partition(":")[0] == SYSLOG:
        return ()
    try:
        lines = Path(place).expanduser().read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise RecordError(f"{place} cannot be read ({error.strerror}); name the file that {VARIABLE} named") from error
    return tuple(line for line in lines if re.fullmatch(r"\d{1,12}:[0-9a-f]{64}", line))

"""Confines the process that reads untrusted files.

It needs no network, no other program and no secret. If a file makes a parser run foreign code, this code should have
access to none of them.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
import sys
from collections.abc import Mapping
from typing import Final

KEPT: Final = (
    "PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "TMPDIR",
    "TZ",
    "OMP_WAIT_POLICY",
)
_REFUSED: Final = {  # socket, socketpair, connect, bind, execve, execveat, ptrace, io_uring_setup
    "x86_64": (0xC000003E, (41, 53, 42, 49, 59, 322, 101, 425)),
    "aarch64": (0xC00000B7, (198, 199, 203, 200, 221, 281, 117, 425)),
}
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER = 38, 22, 2  # prctl.h, seccomp.h
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # instructions of the Berkeley packet filter
_ALLOW, _NOT_PERMITTED = 0x7FFF0000, 0x00050001


def environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment variables that the process needs: without keys, tokens and addresses."""
    env = os.environ if environ is None else environ
    return {name: env[name] for name in KEPT if name in env}


def confine(max_memory: int, max_file: int) -> bool:
    """Limits memory and file size in bytes, and forbids sockets and programs; returns whether it can forbid them."""
    for limit, most in ((resource.RLIMIT_AS, max_memory), (resource.RLIMIT_FSIZE, max_file)):
        resource.setrlimit(limit, (most, most))
    return _filtered()


def limit_processor(seconds: float) -> None:
    """Limits the processor time from now on; the system kills a process that takes more."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime + seconds) + 1, hard))


def _filtered() -> bool:
    """Makes Linux refuse these system calls for this process and its children; returns whether that worked."""
    if not sys.platform.startswith("linux") or platform.machine() not in _REFUSED:
        return False
    architecture, numbers = _REFUSED[platform.machine()]
    end = len(numbers) + 1  # instructions from the first comparison to the refusal
    steps = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 0, end + 2, architecture),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, end, 0, 0x40000000),
    ]
    steps += [(_EQUAL, len(numbers) - place, 0, number) for place, number in enumerate(numbers)]
    steps += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _NOT_PERMITTED)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    failed = prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or prctl(_PR_SET_SECCOMP, _FILTER, program, 0, 0)
    return not failed

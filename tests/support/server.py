"""The real application as a person would start it, on a free port with a home of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
NEEDS_CHROMIUM = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium")
CHROMIUM_FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]


def browser_marks(seconds: int) -> list[pytest.MarkDecorator]:
    """The marks of a module whose tests drive a browser and may take so many seconds each."""
    return [pytest.mark.browser, pytest.mark.timeout(seconds), pytest.mark.model, NEEDS_CHROMIUM]


PATIENCE = 300_000  # milliseconds: how long a page is waited for, also on a machine that does much else


@contextmanager
def launched_chromium() -> Iterator[Any]:
    """A headless Chromium, a ``playwright`` browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        yield chromium
        chromium.close()


def settle(page: Any) -> None:
    """Waits until Streamlit has drawn what was asked for: its script begins within a second, and ends."""
    state = "state => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState %s 'notRunning'"
    with suppress(Exception):  # it may have ended before it was looked at
        page.wait_for_function(state % "!==", timeout=1000, polling=50)  # every frame would cost more than the page
    page.wait_for_function(state % "===", timeout=PATIENCE, polling=50)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def running_app(
    home: Path, port: int = 0, options: tuple[str, ...] = (), root: Path = ROOT, **environment: str
) -> Iterator[str]:
    """The address of a fresh `streamlit run` of this checkout; its output is in ``home/server.log``."""
    port = port or free_port()
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    command += ["--server.address", "127.0.0.1", *options]
    env = {**os.environ, "RAGQA_HOME": str(home), **environment}
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=root, env=env, stdout=log, stderr=subprocess.STDOUT)
        try:
            wait_until_healthy(f"http://127.0.0.1:{port}", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(60)


def wait_until_healthy(
    address: str, process: subprocess.Popen[bytes], seconds: float = 120, path: str = "/_stcore/health"
) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server ended at once"
        try:
            with urllib.request.urlopen(f"{address}{path}", timeout=2) as reply:
                if reply.status == 200:
                    return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"no answer from {address} within {seconds} seconds")


def wait_until_ready(address: str, seconds: float = 300) -> None:
    """Until the server's models are loaded."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{address}/readyz", timeout=60):
                return
        except OSError:  # 503 comes as one
            time.sleep(0.2)
    raise TimeoutError(f"{address} is not ready within {seconds} seconds")


def server_of(address: str) -> int:
    """The id of the process that answers at this address."""
    port = address.rpartition(":")[2]
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"streamlit" in words and port.encode() in words:
                return int(folder.name)
    raise AssertionError(f"no streamlit process on port {port}")


def megabytes(pid: int) -> float:
    """Resident memory of the process."""
    return status_of(pid, "VmRSS") / 1024


def status_of(pid: int, name: str) -> int:
    """What the system says of the process under this name: ``VmRSS`` in kB, ``Threads``."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    (line,) = (line for line in status.splitlines() if line.startswith(name))
    return int(line.split()[1])

"""A server that speaks Milvus' protocol, `milvus-lite`, on a free port of 127.0.0.1; it can be killed and restarted."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# The server, ended by the system with the process that started it: whoever runs the tests may be killed
_DYING = """
import ctypes, os, runpy, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv.pop(1)):
    sys.exit()
runpy.run_module("milvus_lite", run_name="__main__", alter_sys=True)
"""


class MilvusServer:
    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="ragqa-milvus-"))
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.uri = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        """Returns when it takes connections."""
        options = ["server", "--data-dir", str(self.folder / "data"), "--host", "127.0.0.1", "--port", str(self.port)]
        with (self.folder / "log").open("ab") as log:
            command = [sys.executable, "-c", _DYING, str(os.getpid()), *options]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        until = time.monotonic() + 120
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            is_alive = self._process.poll() is None
            assert is_alive, (self.folder / "log").read_text()
            assert time.monotonic() < until, "it takes no connection"
            time.sleep(0.1)

    def wait(self):
        """A moment, and until it takes connections."""
        time.sleep(0.3)
        socket.create_connection(("127.0.0.1", self.port), 60).close()

    def kill(self):
        self._process.kill()
        self._process.wait()

    def remove(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

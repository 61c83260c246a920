"""A server that speaks Milvus' protocol, `milvus-lite`, on a free port of 127.0.0.1; it can be killed and restarted."""

import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path


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
            command = [sys.executable, "-m", "milvus_lite", *options]
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

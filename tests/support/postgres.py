"""A PostgreSQL server of Debian's on a free port of 127.0.0.1, which can be killed and started again."""

import contextlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

_names = itertools.count()


def programs() -> Path | None:
    """The folder of initdb and postgres; None where no server is installed."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return folders[-1] if folders and (folders[-1] / "postgres").exists() else None


class PostgresServer:
    """As whoever runs the tests, or as `postgres` where that is root, whom it refuses."""

    def __init__(self, password="s3cret-word"):
        self.folder = Path(tempfile.mkdtemp(prefix="ragqa-postgres-", dir="/tmp"))
        self.password, self._process = password, None
        self._as = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        (self.folder / "password").write_text(password)
        if self._as:
            for path in (self.folder, self.folder / "password"):
                shutil.chown(path, "postgres", "postgres")
        options = ["--pgdata", str(self.folder / "data"), "--username=ragqa", "--auth=scram-sha-256", "--no-sync"]
        options += [f"--pwfile={self.folder / 'password'}", "--encoding=UTF8", "--locale=C.UTF-8"]
        self._run("initdb", *options)
        self.start()

    def _run(self, program, *options):
        command = [str(programs() / program), *options]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, **self._as)

    def start(self):
        """Returns when it answers."""
        until = time.monotonic() + 90
        while not self._answers():
            if self._process is None or self._process.poll() is not None:  # the one killed may have left a child
                self._launch()
            assert time.monotonic() < until, (self.folder / "log").read_text()
            time.sleep(0.05)

    def _launch(self):
        options = ["-D", str(self.folder / "data"), "-p", str(self.port), "-h", "127.0.0.1", "-k", ""]
        with (self.folder / "log").open("ab") as log:
            command = [str(programs() / "postgres"), *options]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **self._as)

    def _answers(self):
        import psycopg

        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(self.address("postgres"), connect_timeout=5).close()
            return True
        return False

    def kill(self):
        """SIGKILL, as if its machine had lost power but not its disk."""
        self._process.kill()
        self._process.wait()

    def stop(self):
        """Ends what is at work (`fast`); those connected are told."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait()

    def remove(self):
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def address(self, database, password=None):
        return f"postgresql://ragqa:{password or self.password}@127.0.0.1:{self.port}/{database}"

    def new_database(self):
        """The address of a fresh, empty one."""
        import psycopg

        name = f"records_{os.getpid()}_{next(_names)}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.address(name)

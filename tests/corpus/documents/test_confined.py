"""What the process that reads untrusted files may not do."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ragqa.corpus.documents import Reader, UnreadableError
from ragqa.corpus.documents.confined import environment

CONFINED = "from ragqa.corpus.documents.confined import confine, limit_processor\nassert confine(2**31, 2**20)\n"


def run(code):
    return subprocess.run([sys.executable, "-c", CONFINED + code], capture_output=True, text=True, env=environment())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of Linux")
@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.socket()",
        "import socket; socket.socketpair()",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.execv('/bin/true', ['true'])",
    ],
)
def test_no_socket_and_no_program(code):
    assert "PermissionError" in run(code).stderr


def test_files_are_read_and_written_in_bounds(tmp_path):
    assert run(f"open({str(tmp_path / 'a')!r}, 'wb').write(bytes(2**20))").returncode == 0
    assert run(f"open({str(tmp_path / 'b')!r}, 'wb').write(bytes(2**22))").returncode != 0
    assert "MemoryError" in run("bytearray(2**31)").stderr


def test_the_processors_time_ends():
    assert run("limit_processor(0.2)\nwhile True: pass").returncode == -signal.SIGXCPU


def test_no_secret_is_handed_on():
    env = {"OPENAI_API_KEY": "sk-x", "PGPASSWORD": "x", "RAGQA_METRICS_TOKEN": "x", "PATH": "/bin", "https_proxy": "x"}
    assert environment(env) == {"PATH": "/bin"}


def test_the_reader_reads_so(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    with Reader() as reader:
        rows = b'[{"Answer": "Yes.", "RetrievedPassages": []}, {}, {"Answer": "No.", "RetrievedPassages": "x"}]'
        assert reader.answers(rows, "a.json", 5) == [(1, "", "Yes."), (3, "", "No.")]
        assert reader.answers(rows, "a.json", 1) == [(1, "", "Yes.")]
        with pytest.raises(UnreadableError, match="not JSON"):
            reader.answers(b"{", "a.json", 1)
        assert b"sk-planted" not in Path(f"/proc/{reader._process.pid}/environ").read_bytes()

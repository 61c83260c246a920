"""SIGTERM to a server with questions at work: what each of them leaves."""

import os
import signal
import subprocess
import sys

import pytest

from ragqa.records.store import RecordStore
from tests.support.server import ROOT

pytestmark = pytest.mark.long


def test_what_is_at_work_ends_or_keeps_what_it_has(tmp_path):
    file = tmp_path / "records.sqlite3"
    env = {
        **os.environ,
        "RAGQA_HOME": str(tmp_path),
        "RAGQA_MAX_RUNS": "4",
        "RAGQA_STOP_SECONDS": "4",
        "RAGQA_LOG": "json",
    }
    command = [sys.executable, "-m", "tests.support.stopping_entry", str(file)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout.readline() == "Ready\n", process.stderr.read()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGTERM
    ends, endless, best, silent, behind = out.splitlines()
    assert ends == "Who must act: ends?|False|"
    for one in (endless, best):
        assert "|False|This server is being stopped. What was there stays" in one
    assert silent == "Who must act: silent?|True|"
    assert "|False|Stopped before its turn came" in behind
    assert err.count("is cut off at: Kept 2 of 3, writing the answer; its record: none") == 1
    assert "Traceback" not in err
    assert err.count('"message": "stopped after') == 3
    records = {one.question.split()[-1]: one.status for one in RecordStore(file).list()}
    assert records == {"ends?": "scored", "best?": "stopped"}

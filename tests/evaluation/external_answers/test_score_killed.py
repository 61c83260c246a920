"""`ragqa score --out` killed with SIGKILL at random moments and run again: no row lost, none doubled."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[3]
KILLS = 20
OUTPUTS = ("results.csv", "results.txt", "details.json")


def start(command, **environ):
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", **environ}
    return subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(command, **environ):
    process = start(command, **environ)
    out, err = process.communicate(timeout=280)
    assert process.returncode == 0, err
    return out, err


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    return process.returncode == -signal.SIGKILL  # False: it had finished before


def kept(folder, step=""):
    """Whole lines in the journal: all, or those of this step."""
    journal = folder / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True) if journal.exists() else []
    return sum(line.endswith(b"\n") and f'"step": "{step}'.encode() in line for line in lines)


def table(folder):
    with (folder / "results.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def assert_a_row_per_item(folder, items):
    assert [row["QuestionID"] for row in table(folder)] == [item["QuestionID"] for item in items]
    lines = [json.loads(line)["entry"]["item"] for line in (folder / "journal.jsonl").read_text().splitlines()]
    for step in ("solved", "scored"):
        assert [line["number"] for line in lines if line["step"] == step] == list(range(1, len(items) + 1))


@pytest.mark.parametrize("n_kills", [1, pytest.param(KILLS, marks=pytest.mark.slow)])
def test_killed_many_times_and_run_again(tmp_path, n_kills):
    items = [
        {
            "QuestionID": f"q{n % 50}",
            "RetrievedPassages": [f"Firm {n % 9} must act. Cats sleep."],
            "Answer": f"It is {n}.",
        }
        for n in range(120)
    ]
    file, folder = tmp_path / "answers.json", tmp_path / "out"
    file.write_text(json.dumps(items))
    command = [sys.executable, "-m", "tests.support.score_entry", "0.002", "score", str(file), "--out"]
    finish([*command, str(tmp_path / "expected")])
    moments = random.Random(7)
    kills, counts = 0, []
    while kills < n_kills:
        process = start([*command, str(folder)])
        process.stdout.readline()  # "Ready": the moments lie in the work, not in the start of Python
        reached = kept(folder) + moments.randrange(27)  # counted, not timed: a busy machine may be slow to begin
        while kept(folder) < reached and process.poll() is None:
            time.sleep(0.001)
        time.sleep(moments.uniform(0.0, 0.01))
        if not kill(process):
            assert kept(folder, "scored") == len(items)
            folder = tmp_path / f"out-{kills}"  # finished early: the other kills hit a new folder
            continue
        kills += 1
        counts.append(kept(folder))
    before = kept(folder, "scored")
    assert f"continuing: {before} are done already" in finish([*command, str(folder)])[1]
    assert len(set(counts)) > n_kills / 2  # it was killed at many different places
    assert_a_row_per_item(folder, items)
    for name in OUTPUTS:
        assert (folder / name).read_bytes() == (tmp_path / "expected" / name).read_bytes()


def test_ctrl_c_ends_a_process_with_130_and_says_how_to_go_on(tmp_path):
    file, folder = tmp_path / "answers.json", tmp_path / "out"
    file.write_text(json.dumps([{"RetrievedPassages": ["Cats sleep."], "Answer": f"It {n}."} for n in range(100)]))
    command = [sys.executable, "-m", "tests.support.score_entry", "0.05", "score", str(file), "--out", str(folder)]
    process = start(command)
    while kept(folder, "solved") < 2 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "stopped; finished items are stored in" in err
    assert "Traceback" not in out + err
    assert 1 <= kept(folder, "solved") < 100


@pytest.mark.data
@pytest.mark.model
@pytest.mark.slow
def test_killed_while_the_real_models_score_published_cases(shared_data, tmp_path):
    """Each kill comes within half a second after one more item was kept; every run begins where the last one ended."""
    items = json.loads((shared_data / "repass" / "reference_cases.json").read_text())["items"]
    file, folder = tmp_path / "answers.json", tmp_path / "out"
    file.write_text(json.dumps(items))
    main = [sys.executable, "-c", "from ragqa.cli import main; main()"]
    command = [*main, "score", str(file), "--mode", "script", "--out"]
    finish([*command, str(tmp_path / "expected")], RAGQA_HOME=str(tmp_path / "home-expected"))
    moments = random.Random(7)
    kills = 0
    while kills < KILLS:
        before = kept(folder, "scored")
        process = start([*command, str(folder)], RAGQA_HOME=str(tmp_path / "home"))
        deadline = time.monotonic() + 100
        while kept(folder, "scored") == before and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(moments.uniform(0.0, 0.5))
        assert kill(process), process.stderr
        kills += 1
    finish([*command, str(folder)], RAGQA_HOME=str(tmp_path / "home"))
    assert_a_row_per_item(folder, items)
    for found, expected in zip(table(folder), table(tmp_path / "expected"), strict=True):
        for name, value in expected.items():
            if name != "QuestionID":  # bf16: a pair's probability depends on the pairs it is computed with
                assert float(found[name]) == pytest.approx(float(value), abs=0.005), found["QuestionID"]

"""`ragqa dataset make` from end to end: the same bytes, stages edited, processes killed, a model's replies kept."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from ragqa.cli import app
from ragqa.lab.dataset.stages import FILES, GROUPS, QUESTIONS, SPLIT, TOPICS, VALIDATED
from tests.support.openai_server import OpenAIServer, answer

pytestmark = [pytest.mark.model, pytest.mark.timeout(300)]

MAKE = ("dataset", "make", "rulebook", "--only", "2", "--only", "3", "--only", "4", "--questions", "8")


def make(folder, *more, code=0):
    result = CliRunner().invoke(app, [*MAKE, "--out", str(folder), *more])
    assert result.exit_code == code, result.output + str(result.exception)
    return result


def lines(folder, name):
    return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]


def everything(folder):
    names = [*FILES, "card.md", *(str(path.relative_to(folder)) for path in sorted(folder.rglob("export/**/*.*")))]
    return {name: (folder / name).read_bytes() for name in names}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets") / "whole"
    make(folder)
    return folder


def test_the_set_holds_what_was_asked_for_and_every_question_keeps_its_rules(whole):
    rows = lines(whole, SPLIT)
    assert len(rows) == 8
    assert {row["split"] for row in rows} == {"train", "dev", "test"}
    for row in lines(whole, VALIDATED):
        assert row["out"] or all(row["ranks"]["fused"])
        assert not re.search(r"\d\.\d", row["question"])
    counts = json.loads((whole / "report.json").read_text())["stages"]
    assert list(counts.values()) == sorted(counts.values(), reverse=True)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_and_another_one_does_not(whole, tmp_path):
    make(tmp_path / "again")
    assert everything(tmp_path / "again") == everything(whole)
    make(tmp_path / "again", "--seed", "2", code=1)  # the folder is another run's
    make(tmp_path / "again", "--seed", "2", "--restart")
    assert everything(tmp_path / "again") != everything(whole)


@pytest.mark.long
def test_each_stage_may_be_edited_and_the_next_goes_on_from_it(whole, tmp_path):
    folder = shutil.copytree(whole, tmp_path / "edited")
    topics = json.loads((folder / TOPICS).read_text())
    first = next(row["topic"] for row in lines(folder, GROUPS) if row["topic"])
    edited = {"Renamed" if name == first else name: terms for name, terms in topics.items()}
    (folder / TOPICS).write_text(json.dumps(edited))
    make(folder)
    assert "Renamed" in {row["topic"] for row in lines(folder, GROUPS)}

    asked = lines(folder, QUESTIONS)
    own = "Which sums of its Clients must a firm hold apart from its own?"
    (folder / QUESTIONS).write_text(
        "".join(
            json.dumps({**row, "question": own if n == 0 else row["question"]}) + "\n"
            for n, row in enumerate(asked[:-1])
        )
    )
    make(folder)
    assert own in {row["question"] for row in lines(folder, VALIDATED)}
    assert len(lines(folder, VALIDATED)) == len(asked) - 1
    steps = [line["entry"]["item"]["step"] for line in lines(folder, "journal.jsonl")]
    assert steps.count("solved") == len({row["id"] for row in asked}) + 1  # every other question was kept

    validated = lines(folder, VALIDATED)
    (folder / VALIDATED).write_text(
        "".join(json.dumps({**row, "out": "by hand" if n else ""}) + "\n" for n, row in enumerate(validated))
    )
    make(folder)
    assert [row["id"] for row in lines(folder, SPLIT)] == [validated[0]["id"]]

    (folder / TOPICS).write_text(json.dumps(topics))
    result = CliRunner().invoke(app, [*MAKE, "--out", str(folder)])
    assert "was edited, and what it was made from" in str(result.exception)


def test_labels_of_experts_leave_what_they_found_irrelevant_out(whole, tmp_path):
    folder = shutil.copytree(whole, tmp_path / "labelled")
    row = lines(folder, SPLIT)[0]
    told = [
        {"question": row["id"], "passage": one, "reviewer": "Ann", "label": "irrelevant"} for one in row["passages"]
    ]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(one) + "\n" for one in told))
    result = CliRunner().invoke(app, ["dataset", "labels", str(folder), "--import", str(tmp_path / "labels.jsonl")])
    assert f"{len(told)} decided, 0 disputed" in result.output
    make(folder)
    assert row["id"] not in {one["id"] for one in lines(folder, SPLIT)}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--only", "no such document"), "found none"),
        (("--writer", "llm"), "expected a language model to write the questions"),
        (("--topics", "missing.json"), "missing.json"),
    ],
)
def test_what_cannot_be_made_is_said(tmp_path, more, words):
    arguments = MAKE[:3] if "--only" in more else MAKE
    result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "x"), *more])
    assert words in f"{result.exception}{result.output}"


def test_a_model_writes_is_asked_again_and_never_for_what_it_has_written(tmp_path, monkeypatch):
    good = "Which duties has a firm towards people whose money it looks after?"
    with OpenAIServer(answer("See Rule 3.2.1(a)."), answer(f'This is it:\n\n"{good}"\nIt is short.')) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("RAGQA_MODEL", "test")
        make(tmp_path / "m", "--writer", "llm", "--validation", "none")
        n_asked, written = len(server.requests), lines(tmp_path / "m", QUESTIONS)
        assert n_asked == len(written) + 1
        assert "Your last reply does not end with a question mark" in server.requests[1].prompt
        assert {row["question"] for row in written} == {good}
        assert "kind 'obligation'" in "".join(request.prompt for request in server.requests)
        (tmp_path / "m" / GROUPS).write_text(
            "".join(json.dumps(row) + "\n" for row in lines(tmp_path / "m", GROUPS)[1:])
        )
        make(tmp_path / "m", "--writer", "llm", "--validation", "none")
        assert len(server.requests) == n_asked
        assert len(lines(tmp_path / "m", QUESTIONS)) == len(written) - 1


def killed(folder, moments, home):
    """Kills the command so many seconds after it began to work, then lets it end; gives how often it was at work."""
    command = [sys.executable, "-m", "ragqa", *MAKE, "--out", str(folder)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "RAGQA_HOME": str(home)}
    n_killed = 0
    for after in moments:
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment)
        process.stderr.readline()  # "Loading the index and the models"
        time.sleep(after)
        n_killed += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stderr.close()
    last = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert last.returncode == 0, last.stdout + last.stderr
    return n_killed


@pytest.mark.slow
@pytest.mark.parametrize("first", [0.2, 0.5, 1.0, 2.0, 3.0])
def test_killed_at_any_of_twenty_moments_it_ends_as_if_nothing_had_happened(whole, tmp_path, first):
    assert killed(tmp_path / "killed", (first, 0.7, 1.4, 2.6), tmp_path) >= 2
    assert everything(tmp_path / "killed") == everything(whole)

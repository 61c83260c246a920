"""The audit log: whatever is done to it is named, many may write it, and a killed process loses nothing."""

import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from typer.testing import CliRunner

from ragqa.cli import app
from ragqa.errors import AccessError, QuestionError, RecordError
from ragqa.server.access import audit
from ragqa.server.access.audit import FIRST, HEAD, LOG, AuditLog
from ragqa.server.access.gate import Gate
from ragqa.server.access.policy import Act, Person, Policy, Role

N = 12


@pytest.fixture
def log(tmp_path):
    made = AuditLog(tmp_path / "audit")
    for number in range(N):
        made.append("question", "https://id|s-1", "ann@example.org", corpus="rulebook", characters=number)
    return made


def lines_of(log):
    return (log.folder / LOG).read_bytes().splitlines(keepends=True)


def put(log, lines):
    (log.folder / LOG).write_bytes(b"".join(lines))


def edited(line, **changes):
    """The line with other content, and a hash that fits it."""
    entry = {**json.loads(line), **changes}
    del entry["hash"]
    body = json.dumps(entry, sort_keys=True, separators=(",", ":"))
    entry["hash"] = hashlib.sha256((entry["before"] + body).encode()).hexdigest()
    return json.dumps(entry, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def chained(lines, start):
    """All lines from here on with hashes that fit each other: what somebody with time would do."""
    made = list(lines)
    for place in range(start, len(made)):
        before = json.loads(made[place - 1])["hash"] if place else FIRST
        made[place] = edited(made[place], before=before, n=place + 1)
    return made


ALTERED = {  # how the lines are altered, and which lines may be named
    "a word of the first": (lambda ls: [ls[0].replace(b"rulebook", b"rulebooc"), *ls[1:]], {1}),
    "a number in the middle": (lambda ls: [*ls[:5], ls[5].replace(b'"characters":5', b'"characters":6'), *ls[6:]], {6}),
    "a word of the last": (lambda ls: [*ls[:-1], ls[-1].replace(b"ann@", b"bob@")], {N}),
    "a time": (lambda ls: [*ls[:3], ls[3].replace(b'"at":"2', b'"at":"1'), *ls[4:]], {4}),
    "a hash": (lambda ls: [*ls[:3], ls[3].replace(b'"hash":"', b'"hash":"0')[:-1] + b"\n", *ls[4:]], {4}),
    "spaces within": (lambda ls: [*ls[:4], ls[4].replace(b",", b", ", 1), *ls[5:]], {5}),
    "one rehashed": (lambda ls: [*ls[:6], edited(ls[6], who="somebody"), *ls[7:]], {7, 8}),
    "one rehashed, the first": (lambda ls: [edited(ls[0], who="somebody"), *ls[1:]], {1, 2}),
    "the last rehashed": (lambda ls: [*ls[:-1], edited(ls[-1], who="somebody")], {N}),
    "all rehashed": (lambda ls: chained([*ls[:2], edited(ls[2], who="x"), *ls[3:]], 2), {N}),
    "the first deleted": (lambda ls: ls[1:], {1}),
    "one deleted": (lambda ls: [*ls[:5], *ls[6:]], {6}),
    "one deleted, the rest rehashed": (lambda ls: chained([*ls[:5], *ls[6:]], 5), {N}),
    "two swapped": (lambda ls: [*ls[:5], ls[6], ls[5], *ls[7:]], {6}),
    "one inserted": (lambda ls: [*ls[:5], edited(ls[5], who="x"), *ls[5:]], {6, 7}),
    "one twice": (lambda ls: [*ls[:5], ls[4], *ls[5:]], {6}),
    "the last cut off": (lambda ls: ls[:-1], {N}),
    "four cut off": (lambda ls: ls[:-4], {N - 3}),
    "all cut off": (lambda ls: [], {1}),
    "half a line cut off": (lambda ls: [*ls[:-1], ls[-1][:40]], {N}),
    "the last newline cut off": (lambda ls: [*ls[:-1], ls[-1][:-1]], {N}),
    "one appended that fits": (lambda ls: chained([*ls, ls[-1]], N), {N + 1}),
    "bytes that are no text": (lambda ls: [*ls[:5], b"\xff\xfe{}\n", *ls[5:]], {6}),
    "a line of something else": (lambda ls: [*ls[:5], b"[1, 2]\n", *ls[5:]], {6}),
    "an empty line": (lambda ls: [*ls[:5], b"\n", *ls[5:]], {6}),
    "a carriage return": (lambda ls: [*ls[:5], ls[5][:-1] + b"\r\n", *ls[6:]], {6}),
    "a name twice": (lambda ls: [*ls[:5], ls[5].replace(b'"act"', b'"act":"x","act"', 1), *ls[6:]], {6}),
}


@pytest.mark.parametrize("how", ALTERED)
def test_an_altered_log_is_named_at_its_line(log, how):
    assert log.verify().broken is None
    alter, lines = ALTERED[how]
    put(log, alter(lines_of(log)))
    broken = log.verify().broken
    assert broken is not None
    assert broken.line in lines, broken


@pytest.mark.parametrize("how", ["removed", "emptied", "older", "other"])
def test_an_altered_head_is_named_too(log, how):
    head = log.folder / HEAD
    lines = lines_of(log)
    {
        "removed": head.unlink,
        "emptied": lambda: head.write_text(""),
        "older": lambda: head.write_bytes(lines[-2]),
        "other": lambda: head.write_bytes(edited(lines[-1], who="x")),
    }[how]()
    assert log.verify().broken is not None
    if how != "older":  # to go on after an alteration would hide it
        with pytest.raises(RecordError, match="audit verify"):
            log.append("question", "x")


def test_an_anchor_names_a_log_that_was_written_anew_as_a_whole(log):
    anchor = f"{N}:{log.verify().hash}"
    log.append("question", "x")
    assert log.verify(anchor).broken is None
    lines = chained([edited(lines_of(log)[0], who="x"), *lines_of(log)[1:]], 0)
    put(log, lines)
    (log.folder / HEAD).write_bytes(lines[-1])
    assert log.verify().broken is None
    assert log.verify(anchor).broken.line == N
    assert log.verify("no anchor").broken is not None
    for path in (log.folder / LOG, log.folder / HEAD):
        path.unlink()
    assert log.verify().broken is None
    assert log.verify(anchor).broken.line == N


def test_many_threads_and_processes_write_one_chain(tmp_path):
    log = AuditLog(tmp_path / "audit")
    code = "import sys; from ragqa.server.access.audit import AuditLog; from pathlib import Path\n"
    code += "for n in range(15): AuditLog(Path(sys.argv[1])).append('question', sys.argv[2], n=99, number=n)"
    others = [subprocess.Popen([sys.executable, "-c", code, str(log.folder), f"p{n}"]) for n in range(3)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: log.append("question", f"t{n % 4}", number=n), range(40)))
    assert [other.wait(60) for other in others] == [0, 0, 0]
    found = log.verify()
    assert (found.entries, found.broken) == (85, None)
    assert [one["number"] for one in log.entries() if one["who"] == "p1"] == list(range(15))


@pytest.mark.parametrize("kept", [0, 1, 30, -1])
def test_an_entry_that_a_killed_process_left_in_the_head_is_put_back(log, kept):
    lines = lines_of(log)
    put(log, [*lines[:-1], lines[-1][:kept]])
    log.append("check", "x")
    found = log.verify()
    assert (found.entries, found.broken) == (N + 1, None)
    assert lines_of(log)[:N] == lines


def _write(folder, sent):
    log = AuditLog(folder)
    for number in range(10_000):
        log.append("question", "x", number=number)
        sent.send(number)


@pytest.mark.slow
def test_what_was_acknowledged_before_a_kill_is_there(tmp_path):
    folder, last = tmp_path / "audit", -1
    for turn in range(20):
        mine, theirs = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(target=_write, args=(folder, theirs))
        process.start()
        for _ in range(turn % 7 + 1):
            last = mine.recv()
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        numbers = [one["number"] for one in AuditLog(folder).entries() if "number" in one]
        kept = numbers[-1] >= last or numbers[-2:] == [last, 0]
        AuditLog(folder).append("mark", "x")
        found = AuditLog(folder).verify()
        assert kept
        assert found.broken is None


def test_the_gate_writes_down_what_is_done_refused_and_failed(tmp_path):
    log = AuditLog(tmp_path / "audit")
    policy = Policy(corpora={"closed": frozenset({"insurers"})})
    gate = Gate(Person("https://id|s", Role.ANALYST, email="ann@example.org"), policy, log)
    with gate.doing(Act.QUESTION, "open", **gate.asked("What is secret?")):
        assert len(list(log.entries())) == 1  # before it begins
    with pytest.raises(AccessError, match="no corpus 'closed'"), gate.doing(Act.QUESTION, "closed"):
        pytest.fail("was let through")
    with pytest.raises(AccessError, match="role, analyst"):
        gate.demand(Act.DELETION, "open")
    with pytest.raises(QuestionError), gate.doing(Act.CHECK, "open"):
        raise QuestionError
    acts = [(one["act"], one.get("wanted") or one.get("of")) for one in log.entries()]
    assert acts == [
        ("question", None),
        ("refusal", "question"),
        ("refusal", "deletion"),
        ("check", None),
        ("failure", "check"),
    ]
    assert "secret" not in (log.folder / LOG).read_text()
    told = Gate(gate.person, Policy(log_questions=True), log).asked("What is secret?")
    assert told == {"characters": 15, "text": "What is secret?"}


def test_what_cannot_be_logged_is_not_done(tmp_path):
    (tmp_path / "audit").write_text("a file where the folder should be")
    gate = Gate(Person("id", Role.ADMINISTRATOR), Policy(), AuditLog(tmp_path / "audit"))
    with pytest.raises(RecordError), gate.doing(Act.QUESTION):
        pytest.fail("was done")


def test_an_entry_is_bounded(log):
    log.append("upload", "x", files=["n" * 9_000] * 3_000)
    *_, last = log.entries()
    assert len(last["files"]) == 51
    assert last["files"][-1] == "and 2950 more"
    assert len(lines_of(log)[-1]) < 500_000
    log.append("upload", "x")
    assert log.verify().broken is None


def test_the_commands_verify_and_show(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    log = AuditLog(tmp_path / "audit")
    runner = CliRunner()
    assert "0 entries, whole" in runner.invoke(app, ["audit", "verify"]).output
    log.append("question", "a", "ann@example.org")
    log.append("refusal", "b", wanted="read")
    done = runner.invoke(app, ["audit", "verify"])
    assert done.output.startswith("2 entries, whole. Anchor: 2:")
    shown = runner.invoke(app, ["audit", "show", "--act", "refusal"]).output
    assert [json.loads(line)["who"] for line in shown.splitlines()] == ["b"]
    assert "hash" not in shown
    put(log, lines_of(log)[:1])
    broken = runner.invoke(app, ["audit", "verify"])
    assert "audit.jsonl, line 2: expected entry 2 of 2" in str(broken.exception)


def test_verifying_keeps_nobody_from_writing(log, monkeypatch):
    """Entries come while it reads, as many as anybody wants, and it speaks of the log as it was."""
    from ragqa.server.access import audit

    checked, broken = [], audit._broken

    def slow(line, n, before):
        if n == 3:
            log.append("question", "https://id|s-2")
        checked.append(n)
        return broken(line, n, before)

    monkeypatch.setattr(audit, "_broken", slow)
    monkeypatch.setattr(audit, "_PATIENCE", 0.2)
    found = log.verify()
    assert (found.entries, found.broken) == (N, None)
    assert checked == list(range(1, N + 1))
    assert log.verify().entries == N + 1  # one more came meanwhile


def test_what_is_put_aside_stays_in_the_chain(log):
    anchor = log.verify()
    assert log.rotate().name == f"audit-1-{N}.jsonl"
    assert log.rotate() is None
    assert (log.verify().entries, log.verify().broken) == (N, None)
    for _ in range(3):
        log.append("question", "https://id|s-1")
    assert log.rotate().name == f"audit-{N + 1}-{N + 3}.jsonl"
    log.append("question", "https://id|s-1")
    assert (log.verify(f"{N}:{anchor.hash}").entries, log.verify().broken) == (N + 4, None)
    assert [one["n"] for one in log.entries()] == list(range(1, N + 5))
    (log.folder / f"audit-{N + 1}-{N + 3}.jsonl").unlink()
    assert log.verify().broken.line == N + 1


def test_a_process_killed_just_after_the_log_was_put_aside_loses_nothing(log):
    log.append("question", "https://id|s-9")
    last = lines_of(log)[-1]
    put(log, lines_of(log)[:-1])
    head = (log.folder / HEAD).read_bytes()
    (log.folder / LOG).rename(log.folder / f"audit-1-{N}.jsonl")
    assert head == last
    log.append("question", "https://id|s-1")
    assert lines_of(log)[0] == last
    assert (log.verify().entries, log.verify().broken) == (N + 2, None)


def test_a_log_rewritten_as_a_whole_is_found_by_what_was_noted_elsewhere(tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere" / "anchors"
    elsewhere.parent.mkdir()
    monkeypatch.setenv("RAGQA_AUDIT_ANCHOR", str(elsewhere))
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    log = AuditLog(tmp_path / "audit", str(elsewhere))
    for number in range(N):
        log.append("question", "https://id|s-1", characters=number)
    assert len(elsewhere.read_text().splitlines()) == N
    assert CliRunner().invoke(app, ["audit", "verify"]).exit_code == 0
    lines = chained([*lines_of(log)[:4], *lines_of(log)[5:]], 4)
    put(log, lines)
    (log.folder / HEAD).write_bytes(lines[-1])
    assert log.verify().broken is None
    verified = CliRunner().invoke(app, ["audit", "verify"])
    assert isinstance(verified.exception, RecordError)
    assert "line 5: expected the hash noted" in str(verified.exception)
    elsewhere.unlink()
    elsewhere.mkdir()
    with pytest.raises(RecordError, match="RAGQA_AUDIT_ANCHOR"):
        log.append("question", "https://id|s-1")


def test_a_system_log_hears_of_each_entry(tmp_path):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as hearing:
        hearing.bind(("127.0.0.1", 0))
        hearing.settimeout(5)
        log = AuditLog(tmp_path / "audit", f"syslog:127.0.0.1:{hearing.getsockname()[1]}")
        log.append("question", "https://id|s-1")
        assert hearing.recv(200).decode() == f"<86>ragqa-audit: 1:{log.verify().hash}"


@pytest.mark.skipif(not shutil.which("chattr"), reason="chattr is not installed")
def test_what_may_only_grow_can_be_noted_in(tmp_path):
    anchor = tmp_path / "anchors"
    anchor.touch()
    if subprocess.run(["chattr", "+a", anchor], capture_output=True, check=False).returncode:
        pytest.skip("this system's files cannot be made append-only")
    try:
        log = AuditLog(tmp_path / "audit", str(anchor))
        log.append("question", "https://id|s-1")
        log.append("question", "https://id|s-1")
        assert anchor.read_text().splitlines()[-1] == f"2:{log.verify().hash}"
    finally:
        subprocess.run(["chattr", "-a", anchor], check=True)


def test_a_file_of_the_operator_beside_the_log_stops_nobody(log):
    log.rotate()
    for name in ("audit-old-copy.jsonl", "audit-1-12 (copy).jsonl"):
        (log.folder / name).write_bytes((log.folder / f"audit-1-{N}.jsonl").read_bytes())
    log.append("question", "https://id|s-1")
    assert (log.verify().entries, log.verify().broken) == (N + 1, None)
    assert len(list(log.entries())) == N + 1


def test_a_process_killed_after_a_long_entry_loses_nothing(log):
    log.append("upload", "https://id|s-1", files=["é" * 200] * 20)
    log.append("question", "https://id|s-1")
    put(log, lines_of(log)[:-1])  # killed between both writes: only the head has the last entry
    log.append("question", "https://id|s-1")
    assert (log.verify().entries, log.verify().broken) == (N + 3, None)


def test_a_last_line_that_is_no_entry_is_refused_in_words(log):
    put(log, [*lines_of(log), b"not an entry\n"])
    with pytest.raises(RecordError, match="run `ragqa audit verify`"):
        log.append("question", "https://id|s-1")


def test_a_log_that_is_put_aside_while_it_is_verified_is_not_called_altered(log, monkeypatch):
    read, calls = audit._lines_of, []

    def read_late(files, size=None):
        calls.append(size)
        if len(calls) == 1:
            log.rotate()
            log.append("question", "https://id|s-1")
        return read(files, size)

    monkeypatch.setattr(audit, "_lines_of", read_late)
    assert (log.verify().entries, log.verify().broken) == (N + 1, None)

"""What one person may use within an hour: counted exactly, apart from others, and with a word of when to go on."""

import threading

import pytest

from ragqa.errors import AccessError, ConfigError
from ragqa.server.access.audit import AuditLog
from ragqa.server.access.gate import Gate, RateLimit
from ragqa.server.access.policy import Person, Policy, Role, read_policy


class Clock:
    seconds = 1_000_000_000.0  # 01:46:40 UTC

    def __call__(self):
        return self.seconds


def test_a_limit_is_exact_and_says_when_to_go_on():
    clock = Clock()
    used = RateLimit(clock)
    for _ in range(3):
        used.spend("ann", "questions", 1, 3)
        clock.seconds += 60
    with pytest.raises(AccessError, match=r"at most 3 questions an hour.*Continue at 02:46:40 UTC, in 57 minutes"):
        used.spend("ann", "questions", 1, 3)
    used.spend("bob", "questions", 1, 3)
    used.spend("ann", "bytes of uploads", 3, 3)
    clock.seconds += 57 * 60 - 1
    with pytest.raises(AccessError, match="in 1 minute,"):
        used.spend("ann", "questions", 1, 3)
    clock.seconds += 1
    used.spend("ann", "questions", 1, 3)
    with pytest.raises(AccessError):
        used.spend("ann", "questions", 1, 3)


def test_what_is_too_much_by_itself_names_no_time():
    with pytest.raises(AccessError, match="this request has 1,001; send less at once"):
        RateLimit().spend("ann", "bytes of uploads", 1001, 1000)


def test_threads_together_get_no_more():
    used, passed = RateLimit(), []

    def work():
        for _ in range(20):
            try:
                used.spend("ann", "questions", 1, 50)
            except AccessError:
                continue
            passed.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(passed) == 50


def test_the_gate_asks_the_policy_and_lets_everybody_go_on_where_nobody_signs_in(tmp_path):
    ann, log = Person("ann", Role.ANALYST), AuditLog(tmp_path)
    limited = Gate(ann, Policy(questions_per_hour=1, upload_mb_per_hour=1), log, RateLimit())
    limited.spend_question()
    limited.spend_upload(1_000_000)
    for spend in (limited.spend_question, lambda: limited.spend_upload(1)):
        with pytest.raises(AccessError, match="Rate limit reached"):
            spend()
    for free in (Gate(ann, Policy(), log, RateLimit()), Gate(policy=Policy(questions_per_hour=1))):
        for _ in range(5):
            free.spend_question()
            free.spend_upload(10**12)


@pytest.mark.parametrize("wrong", ["-1", "true", "1.5", '"10"'])
def test_a_wrong_limit_lets_nobody_in(tmp_path, wrong):
    file = tmp_path / "access.toml"
    file.write_text(f"questions_per_hour = {wrong}")
    with pytest.raises(ConfigError, match="questions_per_hour as a whole number from 0"):
        read_policy(file)
    file.write_text("questions_per_hour = 40\nupload_mb_per_hour = 200")
    assert read_policy(file).questions_per_hour == 40

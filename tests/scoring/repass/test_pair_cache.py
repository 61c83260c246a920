"""NLI results on disk: bits, bounds, several processes, and everything that may go wrong with a file."""

import logging
import math
import os
import random
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ragqa.infra import disk_cache
from ragqa.scoring.repass import nli
from ragqa.scoring.repass.nli import PairCache
from ragqa.types.scores import NliProbabilities

THIRDS = NliProbabilities(1 / 3, 0.1 + 0.2, 1 - 1 / 3 - (0.1 + 0.2))


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def result(seed: int) -> NliProbabilities:
    chance = random.Random(seed)
    entailment, contradiction = chance.random() / 2, chance.random() / 2
    return NliProbabilities(contradiction, entailment, 1 - entailment - contradiction)


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / "new" / "pairs.sqlite3"


@pytest.fixture
def warned(caplog):
    caplog.set_level(logging.WARNING, "ragqa.infra.disk_cache")
    return lambda: [record.getMessage() for record in caplog.records]


def test_results_come_back_bit_for_bit_after_reopening(file, warned):
    kept = {key(n): result(n) for n in range(700)} | {key(999): THIRDS, key(1000): NliProbabilities(0.0, 1.0, 0.0)}
    PairCache(file).add(kept)
    found = PairCache(file).known([*kept, key(5000)])
    assert found == kept
    assert {k: (r.contradiction.hex(), r.entailment.hex(), r.neutral.hex()) for k, r in found.items()} == {
        k: (r.contradiction.hex(), r.entailment.hex(), r.neutral.hex()) for k, r in kept.items()
    }
    assert warned() == []


def test_nothing_asked_or_given_opens_nothing(file):
    cache = PairCache(file)
    assert cache.known([]) == {}
    cache.add({})
    cache.close()
    assert not file.exists()


def test_a_key_kept_again_has_its_latest_result(file):
    cache = PairCache(file)
    cache.add({key(1): result(1)})
    cache.add({key(1): result(2)})
    assert cache.known([key(1), key(1)]) == {key(1): result(2)}


def test_it_works_on_after_it_was_closed(file):
    cache = PairCache(file)
    cache.add({key(1): result(1)})
    cache.close()
    assert cache.known([key(1)]) == {key(1): result(1)}


def test_the_file_holds_hashes_and_numbers_and_its_version(file):
    PairCache(file).add({key(1): result(1)})
    with sqlite3.connect(file) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (nli.SCHEMA_VERSION,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        columns = [row[1:3] for row in connection.execute("PRAGMA table_info(pairs)")]
    connection.close()
    assert columns == [
        ("id", "INTEGER"),
        ("key", "BLOB"),
        ("contradiction", "REAL"),
        ("entailment", "REAL"),
        ("neutral", "REAL"),
    ]


# Bounds


def rows(file: Path) -> int:
    connection = sqlite3.connect(file)
    (count,) = connection.execute("SELECT count(*) FROM pairs").fetchone()
    connection.close()
    return count


def test_the_least_recently_used_pairs_leave_first(file):
    cache = PairCache(file, max_pairs=10)
    for n in range(10):
        cache.add({key(n): result(n)})
    assert set(cache.known([key(0), key(2)])) == {key(0), key(2)}  # used: the youngest now
    for n in range(10, 14):
        cache.add({key(n): result(n)})
    assert set(cache.known([key(n) for n in range(14)])) >= {key(0), key(2), *(key(n) for n in range(6, 14))}
    assert key(1) not in cache.known([key(1)])
    assert rows(file) <= 10


def test_the_number_of_rows_stays_bounded_and_at_least_half_of_it_is_used(file):
    cache = PairCache(file, max_pairs=100)
    chance = random.Random(1)
    for start in range(0, 2000, 20):
        cache.add({key(n): result(n) for n in range(start, start + 20)})
        cache.known([key(chance.randrange(start + 20)) for _ in range(20)])
        assert rows(file) <= 100
    assert rows(file) >= 50
    assert len(cache.known([key(n) for n in range(1950, 2000)])) == 50


def test_reading_young_pairs_writes_nothing(file):
    cache = PairCache(file, max_pairs=100)
    cache.add({key(n): result(n) for n in range(40)})
    before = ids(file)
    cache.known([key(n) for n in range(40)])
    assert ids(file) == before


def ids(file):
    connection = sqlite3.connect(file)
    found = connection.execute("SELECT id, key FROM pairs ORDER BY id").fetchall()
    connection.close()
    return found


# What is no probability


@pytest.mark.parametrize(
    "wrong",
    [
        NliProbabilities(math.nan, 0.5, 0.5),
        NliProbabilities(0.5, math.inf, 0.5),
        NliProbabilities(-0.1, 0.6, 0.5),
        NliProbabilities(0.5, 0.5, 0.5),
        NliProbabilities(0.2, 0.2, 0.2),
    ],
)
def test_what_is_no_probability_is_not_kept(file, wrong):
    cache = PairCache(file)
    cache.add({key(1): wrong, key(2): result(2)})
    assert cache.known([key(1), key(2)]) == {key(2): result(2)}


@pytest.mark.parametrize("wrong", [7.0, -0.5, "no number", b"\x00", 1e308])
def test_a_row_that_somebody_else_wrote_is_not_believed(file, wrong, warned):
    cache = PairCache(file)
    cache.add({key(1): result(1), key(2): result(2)})
    cache.close()
    connection = sqlite3.connect(file)
    connection.execute("UPDATE pairs SET entailment = ? WHERE key = ?", (wrong, key(1)))
    connection.commit()
    connection.close()
    assert cache.known([key(1), key(2)]) == {key(2): result(2)}
    cache.add({key(1): result(1)})
    assert cache.known([key(1)]) == {key(1): result(1)}
    assert warned() == []


# What may go wrong with a file


def check_it_starts_anew(file, warned):
    cache = PairCache(file)
    assert cache.known([key(1)]) == {}
    cache.add({key(1): result(1)})
    assert cache.known([key(1)]) == {key(1): result(1)}
    assert PairCache(file).known([key(1)]) == {key(1): result(1)}
    (message,) = warned()
    assert "is broken" in message
    assert file.with_name(file.name + ".broken").exists()


@pytest.mark.parametrize("content", [b"no database at all " * 300, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_file_that_is_no_database_is_set_aside(file, content, warned):
    file.parent.mkdir()
    file.write_bytes(content)
    check_it_starts_anew(file, warned)


def test_a_file_cut_short_or_overwritten_is_set_aside_or_loses_what_it_lost(file, warned):
    PairCache(file).add({key(n): result(n) for n in range(2000)})
    whole = file.read_bytes()
    chance = random.Random(7)
    for number in range(30):
        damaged = bytearray(whole[: chance.randrange(1, len(whole))] if number % 2 else whole)
        for _ in range(20):
            place = chance.randrange(len(damaged))
            damaged[place : place + 64] = chance.randbytes(64)
        file.write_bytes(damaged[: len(whole)])
        for ending in ("-wal", "-shm"):
            file.with_name(file.name + ending).unlink(missing_ok=True)
        cache = PairCache(file)
        for n in range(2000):
            if n % 100 == 0:
                found = cache.known([key(m) for m in range(n, n + 100)])
                assert all(
                    sum((r.contradiction, r.entailment, r.neutral)) == pytest.approx(1, abs=1e-3)
                    for r in found.values()
                )
        cache.add({key(9999): THIRDS})
        cache.close()


def test_it_breaks_while_it_is_open(file, warned):
    cache = PairCache(file)
    cache.add({key(n): result(n) for n in range(2000)})
    cache.close()
    cache.known([key(1)])
    size = file.stat().st_size
    with file.open("r+b") as stream:
        stream.seek(4096)
        stream.write(b"\xff" * (size - 4096))
    cache.known([key(n) for n in range(500, 1000)])
    cache.add({key(1): result(1)})
    assert cache.known([key(1)]) == {key(1): result(1)}
    assert len(warned()) == 1


def test_two_that_meet_a_broken_file_do_not_set_aside_each_others_new_one(file, warned):
    keys = [key(n) for n in range(2000)]
    writer = PairCache(file)
    writer.add({key(n): result(n) for n in range(2000)})
    writer.close()
    first, second = PairCache(file), PairCache(file)
    for cache in (first, second):
        cache.known(keys[:1])
    with file.open("r+b") as stream:
        stream.seek(4096)
        stream.write(b"\xff" * (file.stat().st_size - 4096))
    assert first.known(keys) == {}
    first.add({key(7): result(7)})
    assert second.known(keys) == {key(7): result(7)}
    assert len(warned()) == 1


def test_a_deleted_file_is_made_again(file, warned):
    cache = PairCache(file)
    cache.add({key(1): result(1)})
    cache.close()
    file.unlink()
    assert cache.known([key(1)]) == {}
    cache.add({key(1): result(1)})
    assert cache.known([key(1)]) == {key(1): result(1)}
    assert warned() == []


def test_a_file_deleted_without_its_journal_does_no_harm(file):
    cache = PairCache(file)
    cache.add({key(n): result(n) for n in range(100)})
    file.unlink()  # -wal and -shm stay
    other = PairCache(file)
    found = other.known([key(n) for n in range(100)])
    assert all(found[k] == result(int.from_bytes(k, "big")) for k in found)
    other.add({key(1): result(1)})
    assert other.known([key(1)]) == {key(1): result(1)}


def clock(monkeypatch):
    """The clock that the disk looks at, moved by hand: seconds, in a list of one."""
    now = [1000.0]
    monkeypatch.setattr(disk_cache, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=time.sleep))
    return now


def works_without(cache, warned, message):
    for _ in range(3):
        assert cache.known([key(1)]) == {}
        cache.add({key(1): result(1)})
    (said,) = warned()
    assert "cannot be used" in said
    assert message in said


def test_a_folder_that_cannot_be_made(tmp_path, warned):
    (tmp_path / "file").write_text("in the way")
    works_without(PairCache(tmp_path / "file" / "pairs.sqlite3"), warned, "scoring continues without it")


def test_a_folder_in_its_place(tmp_path, warned):
    works_without(PairCache(tmp_path), warned, "unable to open")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path, warned):
    tmp_path.chmod(0o500)
    try:
        works_without(PairCache(tmp_path / "pairs.sqlite3"), warned, "unable to open")
    finally:
        tmp_path.chmod(0o700)


def test_a_database_that_may_not_be_written(file, warned, monkeypatch):
    """As in a read-only folder, which root may write all the same."""
    PairCache(file).add({key(2): result(2)})
    opened = disk_cache.opened

    def read_only(path, format):
        connection = opened(path, format)
        connection.execute("PRAGMA query_only = ON")
        return connection

    monkeypatch.setattr(disk_cache, "opened", read_only)
    cache = PairCache(file)
    assert cache.known([key(2)]) == {key(2): result(2)}
    cache.add({key(1): result(1)})
    assert "readonly" in warned()[0]
    assert cache.known([key(2)]) == {}  # rests


def test_a_full_disk(file, warned, monkeypatch):
    PairCache(file).add({key(0): result(0)})
    opened, now = disk_cache.opened, clock(monkeypatch)

    def nearly_full(path, format):
        connection = opened(path, format)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    monkeypatch.setattr(disk_cache, "opened", nearly_full)
    cache = PairCache(file)
    cache.add({key(n): result(n) for n in range(1, 1000)})
    (message,) = warned()
    assert "full" in message
    now[0] += disk_cache.REST_SECONDS
    assert cache.known([key(0), key(5)]) == {key(0): result(0)}  # all of a transaction or nothing


@pytest.mark.long
def test_a_locked_database_is_waited_for_briefly_and_then_left_alone(file, warned, monkeypatch):
    cache = PairCache(file)
    cache.add({key(1): result(1)})
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    opened, reopened, now = disk_cache.opened, [], clock(monkeypatch)
    monkeypatch.setattr(disk_cache, "opened", lambda *given: reopened.append(given) or opened(*given))
    for n in range(10, 20):
        cache.add({key(n): result(n)})
    assert reopened == []  # the first waited, the others did not try
    other.execute("ROLLBACK")
    other.close()
    assert cache.known([key(1)]) == {}  # rests
    now[0] += disk_cache.REST_SECONDS
    assert cache.known([key(1)]) == {key(1): result(1)}
    (message,) = warned()
    assert "locked" in message


@pytest.mark.parametrize("version", [2, 99])
def test_a_file_of_another_version_is_left_as_it_is(file, version, warned):
    cache = PairCache(file)
    cache.add({key(1): result(1)})
    cache.close()
    connection = sqlite3.connect(file)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = file.read_bytes()
    works_without(PairCache(file), warned, f"it has version {version}, this ragqa reads 1; delete it to start again")
    assert file.read_bytes() == before


def test_a_database_of_somebody_else_is_left_as_it_is(file, warned):
    file.parent.mkdir()
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE pairs (mine TEXT)")
    connection.commit()
    connection.close()
    works_without(PairCache(file), warned, "already exists")


# Several at once


@pytest.mark.long
def test_threads_share_one(file):
    cache = PairCache(file)
    wrong = []

    def work(seed):
        for n in range(40):
            cache.add({key(seed * 1000 + n): result(seed * 1000 + n)})
            found = cache.known([key(m) for m in range(8000)])
            wrong.extend(k for k, r in found.items() if r != result(int.from_bytes(k, "big")))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert rows(file) == 160


PROCESS = textwrap.dedent("""
    import sys
    from pathlib import Path
    from ragqa.scoring.repass.nli import PairCache
    from tests.scoring.repass.test_pair_cache import key, result
    seed, count = int(sys.argv[2]), int(sys.argv[3])
    cache = PairCache(Path(sys.argv[1]))
    print("ready", flush=True)
    sys.stdin.readline()
    for start in range(seed, seed + count, 5):
        cache.add({key(n): result(n) for n in range(start, start + 5)})
        assert all(r == result(int.from_bytes(k, "big")) for k, r in cache.known([key(n) for n in range(2000)]).items())
        print(start, flush=True)
""")


def process(file, seed, count):
    root = Path(__file__).resolve().parents[3]
    return subprocess.Popen(
        [sys.executable, "-c", PROCESS, str(file), str(seed), str(count)],
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.long
def test_two_processes_at_once_lose_nothing(file):
    both = [process(file, seed, 200) for seed in (0, 1000)]
    for one in both:
        assert one.stdout.readline() == "ready\n"
    for one in both:
        one.stdin.write("\n")
        one.stdin.flush()
    for one in both:
        _, errors = one.communicate(timeout=60)
        assert one.returncode == 0, errors
        assert errors == ""
    assert len(PairCache(file).known([key(n) for n in [*range(200), *range(1000, 1200)]])) == 400


@pytest.mark.long
def test_a_killed_process_loses_at_most_what_it_was_writing(file):
    one = process(file, 0, 100_000)
    with one:
        one.stdout.readline()
        one.stdin.write("\n")
        one.stdin.flush()
        for _ in range(20):
            kept = int(one.stdout.readline())
        one.kill()
    found = PairCache(file).known([key(n) for n in range(100_000)])
    assert set(range(kept + 5)) <= {int.from_bytes(k, "big") for k in found}
    assert all(r == result(int.from_bytes(k, "big")) for k, r in found.items())

"""Durable files: whole or not at all, on disk when a call returns, one holder of a lock."""

import errno
import json
import os
import subprocess
import sys

import pytest

from ragqa.infra.files import (
    Appending,
    Lock,
    append,
    append_json_lines,
    flush_open,
    flush_tree,
    locked,
    move,
    replacing,
    write_whole,
)


@pytest.fixture
def steps(monkeypatch):
    """What is done to the disk, in order."""
    done = []
    for name in ("write", "fsync", "replace", "ftruncate"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, name=name, real=real: done.append(name) or real(*args))
    return done


class TestWhole:
    def test_it_is_on_disk_before_it_takes_its_place_and_its_name_after(self, tmp_path, steps):
        write_whole(tmp_path / "a", ["one\n", "tw\u00f6 \ud800"])
        assert (tmp_path / "a").read_bytes() == "one\ntwö \\ud800".encode()
        assert steps == ["write", "write", "fsync", "replace", "fsync"]

    def test_the_old_file_stays_where_writing_is_interrupted(self, tmp_path):
        def pieces():
            yield "new"
            raise KeyboardInterrupt

        write_whole(tmp_path / "a", ["old"])
        with pytest.raises(KeyboardInterrupt):
            write_whole(tmp_path / "a", pieces())
        assert (tmp_path / "a").read_text() == "old"
        write_whole(tmp_path / "a", ["new"])
        assert [one.name for one in tmp_path.iterdir()] == ["a"]

    @pytest.mark.parametrize("shared", [False, True])
    def test_replacing_leaves_the_old_file_where_the_block_fails(self, tmp_path, shared):
        path = tmp_path / "a"
        path.write_text("old")
        with pytest.raises(ZeroDivisionError), replacing(path, shared=shared) as new:
            new.write_text("half")
            raise ZeroDivisionError
        assert [one.name for one in tmp_path.iterdir()] == ["a"]
        assert path.read_text() == "old"
        with replacing(path, shared=shared) as new:
            new.write_text("new")
        assert [one.name for one in tmp_path.iterdir()] == ["a"]
        assert path.read_text() == "new"

    def test_shared_writers_have_files_of_their_own(self, tmp_path):
        path = tmp_path / "a"
        with replacing(path, shared=True) as first, replacing(path, shared=True) as second:
            assert first != second
            first.write_text("first")
            second.write_text("second")
        assert path.read_text() == "first"

    def test_a_folder_moves_in_one_step(self, tmp_path, steps):
        (tmp_path / "a").mkdir()
        assert move(tmp_path / "a", tmp_path / "b") == tmp_path / "b"
        assert (tmp_path / "b").is_dir()
        assert steps == ["replace"]

    def test_everything_below_a_folder_is_flushed(self, tmp_path, steps):
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "b").write_text("x")
        with (tmp_path / "c").open("w") as file:
            file.write("x")
            flush_open(file)
        flush_tree(tmp_path)
        assert steps.count("fsync") == 1 + 4


class TestAppending:
    def test_on_disk_when_it_returns_unless_told_otherwise(self, tmp_path, steps):
        file = Appending(tmp_path / "a")
        assert [file.append(b"one"), file.append(b"two", sync=False), file.append(b"3")] == [0, 3, 6]
        file.close()
        file.close()
        assert (tmp_path / "a").read_bytes() == b"onetwo3"
        assert steps == ["ftruncate", "fsync", "write", "fsync", "write", "write", "fsync"]

    def test_what_a_full_disk_tears_is_cut_off_so_that_the_next_entry_follows_the_last(self, tmp_path, monkeypatch):
        file = Appending(tmp_path / "a")
        file.append(b"one\n")
        write = os.write

        def full(descriptor, data):
            write(descriptor, bytes(data)[:2])
            raise OSError(errno.ENOSPC, "no space left on device")

        with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
            patch.setattr("os.write", full)
            file.append(b"two\n")
        assert file.append(b"3\n") == 4
        assert (tmp_path / "a").read_bytes() == b"one\n3\n"

    def test_bytes_are_added_as_they_are(self, tmp_path):
        append(tmp_path / "a", b"torn")
        append(tmp_path / "a", b" no more\n")
        assert (tmp_path / "a").read_bytes() == b"torn no more\n"

    @pytest.mark.parametrize(
        ("before", "whole"),
        [
            (b"", b""),
            (b'{"a": 1}\n', b'{"a": 1}\n'),
            (b'{"a": 1}\n{"a"', b'{"a": 1}\n'),
            (b'{"a"', b""),
            (b"1\n" + b"x" * 200_000, b"1\n"),
        ],
    )
    def test_a_half_written_line_is_cut_off(self, tmp_path, before, whole):
        path = tmp_path / "a"
        path.write_bytes(before)
        append_json_lines(path, [{"b": "é"}, 2])
        assert path.read_bytes() == whole + '{"b": "é"}\n2\n'.encode()
        assert [json.loads(line) for line in path.read_text().splitlines()[-2:]] == [{"b": "é"}, 2]


class RefusedError(Exception):
    pass


class TestLock:
    def test_one_holder_at_a_time_also_in_one_process(self, tmp_path):
        with locked(tmp_path / ".lock", RefusedError):
            with pytest.raises(RefusedError), locked(tmp_path / ".lock", RefusedError, 0.05):
                pass
            assert not Lock(tmp_path / ".lock").take()
        other = Lock(tmp_path / ".lock")
        assert other.take()
        other.release()
        other.release()

    def test_what_the_block_raises_is_not_taken_for_a_refusal(self, tmp_path):
        with pytest.raises(TimeoutError, match="own"), locked(tmp_path / ".lock", RefusedError):
            raise TimeoutError("own")
        assert Lock(tmp_path / ".lock").take()

    def test_it_is_free_when_its_process_was_killed(self, tmp_path):
        code = (
            "import sys, pathlib\nfrom ragqa.infra.files import Lock\nlock = Lock(pathlib.Path(sys.argv[1]))\n"
            "print(lock.take(), flush=True)\nsys.stdin.read()"
        )
        command = [sys.executable, "-c", code, str(tmp_path / ".lock")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "True\n"
            assert not Lock(tmp_path / ".lock").take()
            process.kill()
        assert Lock(tmp_path / ".lock").take(5.0)

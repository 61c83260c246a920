"""Threads of a server share a few heaps."""

import os
import subprocess
import sys

import pytest

from ragqa.server.memory import share_heaps

COUNT = """
import ctypes, sys, tempfile, threading
from ragqa.server.memory import share_heaps

print(share_heaps() if sys.argv[1] == "shared" else False)
library = ctypes.CDLL(None)
meet = threading.Barrier(12)

def work():
    meet.wait()
    kept = [bytes(5_000) for _ in range(1_000)]
    meet.wait()

threads = [threading.Thread(target=work) for _ in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
library.fopen.restype = ctypes.c_void_p
library.fclose.argtypes = [ctypes.c_void_p]
library.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
with tempfile.NamedTemporaryFile() as file:
    stream = library.fopen(file.name.encode(), b"w")
    library.malloc_info(0, stream)
    library.fclose(stream)
    print(file.read().count(b"<heap "))
"""


def heaps(how, **environment):
    """What `share_heaps` gave, and how many heaps a process of twelve threads has."""
    env = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"} | environment
    command = [sys.executable, "-c", COUNT, how]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    said, count = done.stdout.split()
    return said, int(count)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's heaps")
def test_threads_share_two_heaps_unless_the_environment_says_otherwise():
    _, alone = heaps("alone")
    if alone <= 3:
        pytest.skip("this C library gives threads no heaps of their own")
    assert heaps("shared") == ("True", 2)
    assert heaps("shared", MALLOC_ARENA_MAX="3") == ("False", 3)


def test_elsewhere_nothing_is_done(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not share_heaps()

"""FAISS files written in bounded memory: `python -m tests.benchmarks.vectors --sizes 400000 4000000`.

Random vectors of 64 numbers lie in a file, as a build leaves them; each kind of index is written of them in a process
of its own. "before" is the resident set once libraries are loaded, "peak" its largest.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from ragqa.index.encoded import VectorFile

DIMENSION = 64
KINDS = ("Flat", "SQ8", "IVF256,Flat", "IVF256,SQ8")


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def write(path: Path, kind: str, size: int) -> None:
    from ragqa.retrieval.dense import write_vectors

    before, began = peak_mb(), time.perf_counter()
    target = path.with_suffix(".faiss")
    write_vectors(VectorFile(path, size, DIMENSION), target, kind)
    seconds = time.perf_counter() - began
    print(json.dumps([seconds, before, peak_mb(), target.stat().st_size / 1e6]))
    target.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", type=Path, default=Path("/tmp/benchmark.vectors"))
    parser.add_argument("--sizes", type=int, nargs="+", default=(400_000, 4_000_000))
    parser.add_argument("--kinds", nargs="+", default=KINDS)
    parser.add_argument("--write", nargs=2, default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write:
        write(arguments.path, arguments.write[0], int(arguments.write[1]))
        return
    random = np.random.default_rng(1)
    with arguments.path.open("wb") as file:
        for start in range(0, max(arguments.sizes), 100_000):
            rows = random.standard_normal((min(100_000, max(arguments.sizes) - start), DIMENSION), dtype=np.float32)
            (rows / np.linalg.norm(rows, axis=1, keepdims=True)).tofile(file)
    print(f"{'kind':<12} {'vectors':>10} {'seconds':>8} {'before MB':>10} {'peak MB':>8} {'file MB':>8}")
    for kind in arguments.kinds:
        for size in arguments.sizes:
            command = [sys.executable, "-m", "tests.benchmarks.vectors", "--path", str(arguments.path)]
            done = subprocess.run([*command, "--write", kind, str(size)], check=True, capture_output=True, text=True)
            seconds, before, peak, megabytes = json.loads(done.stdout.splitlines()[-1])
            print(f"{kind:<12} {size:>10,} {seconds:8.1f} {before:10.0f} {peak:8.0f} {megabytes:8.0f}", flush=True)
    arguments.path.unlink()


if __name__ == "__main__":
    main()

"""Indexing a dump in bounded memory, stopped and gone on with: `python -m tests.benchmarks.dump --megabytes 1000`.

A synthetic dump (`tests.support.synthetic_dump`) is indexed twice by the command line in processes of their own: once
as it is, once killed (SIGKILL) after each of the seconds given, and gone on with by the same command. Peaks are of the
resident set, the file pages in it included, as the system counts them for a process; of the second build that of its
largest process. Both indexes must have the same files. Then the index is opened and asked twelve words in a row of
fifty passages by each of its rankings."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from ragqa.index import index_info, open_index
from ragqa.retrieval import retrievers_for
from ragqa.settings.config import RetrievalConfig
from tests.support.synthetic_dump import write_dump

N_QUESTIONS, N_WORDS, DEPTH = 50, 12, 100


@dataclass(frozen=True)
class Run:
    """One process: how long it lived, the largest its resident set was, whether it came to its end, what it said."""

    seconds: float
    peak_mb: float
    done: bool
    said: str


def build(name: str, arguments: argparse.Namespace, kill_after: float = 0.0) -> Run:
    """Runs the command; kills it after so many seconds, where there are any."""
    command = [Path(sys.executable).with_name("ragqa"), "index", "build", name, "--source", arguments.dump]
    command += ["--encoder", arguments.encoder, "--vectors", arguments.vectors]
    environment = {**os.environ, "RAGQA_INDEXES": str(arguments.folder / "indexes"), "COLUMNS": "150"}
    began = time.perf_counter()
    log = arguments.folder / f"{name}.log"
    with log.open("w+b") as said:
        process = subprocess.Popen([*map(str, command)], env=environment, stdout=said, stderr=said)
        peak, done = 0.0, False
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                peak, done = usage.ru_maxrss * 1024 / 1e6, process.returncode == 0
                break
            if kill_after and time.perf_counter() - began > kill_after:
                process.send_signal(signal.SIGKILL)
            time.sleep(0.1)
        if not done and process.returncode != -signal.SIGKILL:
            sys.exit(log.read_text())
    lines = [
        line
        for line in log.read_text(errors="replace").splitlines()
        if line.startswith(("going", "starting", "index "))
    ]
    return Run(time.perf_counter() - began, peak, done, "; ".join(lines))


def show(label: str, run: Run) -> None:
    how = "done" if run.done else "killed"
    print(f"{label:<12} {run.seconds:8,.0f} s {run.peak_mb:8,.0f} MB  {how:<6}  {run.said}", flush=True)


def ask(name: str, folder: Path) -> None:
    from ragqa.loading import load_encoder

    manifest = index_info(name, folder)
    encoder = load_encoder(manifest.encoder)
    began = time.perf_counter()
    index = open_index(name, folder)
    opened = time.perf_counter() - began
    random, questions = np.random.default_rng(3), []
    while len(questions) < N_QUESTIONS:
        words = index.passages[int(random.integers(len(index.passages)))].text.split()
        if len(words) >= N_WORDS:
            start = int(random.integers(len(words) - N_WORDS + 1))
            questions.append(" ".join(words[start : start + N_WORDS]))
    for retriever in retrievers_for(index, encoder, RetrievalConfig()):
        spent = []
        for question in questions:
            began = time.perf_counter()
            retriever.retrieve(question, DEPTH)
            spent.append(1e3 * (time.perf_counter() - began))
        said = f"{median(spent):8.1f} ms a question (first {spent[0]:,.0f}, slowest {max(spent):,.0f})"
        print(f"{retriever.name:<12} {said}")
    print(
        f"open {opened:.2f} s, {manifest.n_documents:,} articles, {manifest.n_passages:,} passages, "
        f"{manifest.size_bytes / 1e6:,.0f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=1000)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/dump"), help="for the dump and 12 times as much")
    parser.add_argument("--dump", type=Path, default=None, help="in place of a synthetic one")
    parser.add_argument("--encoder", default="none")
    parser.add_argument("--vectors", default="Flat")
    parser.add_argument("--kill", type=float, nargs="*", default=[], help="seconds after which to kill, one a process")
    parser.add_argument("--killed-only", action="store_true", help="leave out the build that is not killed")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    arguments.dump = arguments.dump or arguments.folder / f"{arguments.megabytes:g}.xml"
    if not arguments.dump.exists():
        write_dump(arguments.dump, arguments.megabytes)
    print(
        f"{arguments.dump.name}: {arguments.dump.stat().st_size / 1e6:,.0f} MB, encoder {arguments.encoder}", flush=True
    )
    folder = arguments.folder / "indexes"
    shutil.rmtree(folder, ignore_errors=True)
    names = []
    if not arguments.killed_only:
        show("in one", build("whole", arguments))
        names.append("whole")
    if arguments.kill:
        for seconds in arguments.kill:
            show("in parts", build("parts", arguments, seconds))
        if not (folder / "parts").exists():
            show("in parts", build("parts", arguments))
        names.append("parts")
    if len(names) == 2:
        one, other = (index_info(name, folder).files for name in names)
        print("the same files" if one == other else "OTHER FILES", flush=True)
    ask(names[-1], folder)


if __name__ == "__main__":
    main()

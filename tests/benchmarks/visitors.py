"""Many people at one server: `python -m tests.benchmarks.visitors [--visitors 50] [--questions 5] [--programs 20]`.

Each visitor speaks the page's own protocol (Streamlit's messages over its websocket, by `websockets`), opens the page,
asks, has drawn again what the page wants drawn again until nothing does, and asks the next: all of them at once, of one
process (`app.py`). Programs ask the same beside them, by `POST /v1/ask`. No error may be drawn or logged, and every
number of every answer must be the one that a lone visitor got from a server of its own. Prints seconds from Ask to the
final scores, what the server holds, and how long /healthz took meanwhile, asked once a second: it waits for nothing but
the loop that serves everybody.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import httpx2

from ragqa.corpus.demo import DEMOS
from ragqa.records.store import RecordStore
from tests.support.server import megabytes, running_app, server_of, wait_until_ready
from tests.support.visitor import Opened, Visitor

SECONDS = 1_200  # for one question: with fifty at once most of it is waiting for a turn


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visitors", type=int, default=50)
    parser.add_argument("--questions", type=int, default=5)
    parser.add_argument("--programs", type=int, default=0)
    options = parser.parse_args()
    asked = [gold.question.text for gold in DEMOS["rulebook"].questions()][: options.questions]
    with tempfile.TemporaryDirectory() as folder:
        alone, together = Path(folder) / "alone", Path(folder) / "together"
        one = visited(alone, [asked])
        together.mkdir()
        if (timed := alone / "precision.json").exists():  # there is none on a processor without bf16
            shutil.copy(timed, together)  # a busy machine may choose another
        everybody = options.visitors + options.programs
        turned = [asked[n % len(asked) :] + asked[: n % len(asked)] for n in range(everybody)]
        many = visited(together, turned[: options.visitors], turned[options.visitors :])
        expected, found = numbers(alone), numbers(together)
    found = [one for one in found if one[1] is not None]
    wrong = [question for question, scored in found if scored != dict(expected)[question]]
    n_asked = everybody * len(asked)
    print(f"scored answers {len(found)} of {n_asked}, with other numbers than a lone visitor's {len(wrong)}")
    problems = [*one, *many]
    print("\n".join(problems[:20]) or "no error drawn, none in the log")
    return 1 if problems or wrong or len(found) != n_asked else 0


def visited(home: Path, questions: list[list[str]], programs: Sequence[list[str]] = ()) -> list[str]:
    """The errors of a visitor, or a program, for each list of questions, all at once. Prints how long they waited."""
    home.mkdir(exist_ok=True)
    options = ("--server.address", "127.0.0.1")
    with running_app(home, options=options, RAGQA_LOG="json") as address:
        wait_until_ready(address)
        process = server_of(address)
        first, load = megabytes(process), os.getloadavg()[0]
        began = time.perf_counter()
        everybody = [(visit, asked) for asked in questions] + [(call, asked) for asked in programs]
        with ThreadPoolExecutor(len(everybody)) as pool, asked_each_second(f"{address}/healthz") as waits:
            came = list(pool.map(lambda one: caught(lambda: one[0](address, one[1])), everybody))
        took = time.perf_counter() - began
        last = megabytes(process)
    errors = [error for _, errors in came for error in errors]
    waited = waits_of("visitors", came[: len(questions)], took)
    if programs:
        waited += "; " + waits_of("programs", came[len(questions) :], took)
    held = f"resident {first:.0f} MB before, {last:.0f} MB after"
    alive = f"healthz median {median(waits):.2f} s, longest {max(waits):.2f} s of {len(waits)}"
    loads = f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after"
    print(f"{waited}; {alive}; {held}; {loads}", flush=True)
    log = (home / "server.log").read_text(encoding="utf-8", errors="replace")
    return errors + [line[:400] for line in log.splitlines() if '"level": "error"' in line]


def waits_of(who: str, came: Sequence[tuple[list[float], list[str]]], took: float) -> str:
    """How many there were, and how long they waited."""
    seconds = sorted(second for seconds, _ in came for second in seconds) or [0.0]
    late = seconds[min(len(seconds) - 1, int(0.95 * len(seconds)))]
    asked = f"{len(came)} {who}, {len(seconds)} questions in {took:.0f} s"
    return f"{asked}: median {median(seconds):.1f} s, 95th percentile {late:.1f} s"


@contextmanager
def asked_each_second(address: str) -> Iterator[list[float]]:
    """How long each answer took, in seconds, as they come; without end where none came."""
    waits, over = list[float](), threading.Event()

    def ask() -> None:
        while not over.wait(1):
            began = time.perf_counter()
            try:
                with urllib.request.urlopen(address, timeout=SECONDS):
                    waits.append(time.perf_counter() - began)
            except OSError:
                waits.append(math.inf)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield waits
    finally:
        over.set()
        asking.join()


def caught(visit: Callable[[], tuple[list[float], list[str]]]) -> tuple[list[float], list[str]]:
    try:
        return visit()
    except Exception as error:
        return [], [f"{type(error).__name__}: {error}"]


def visit(address: str, questions: list[str]) -> tuple[list[float], list[str]]:
    """Seconds of each question, and what was wrong with the page."""
    visitor = Visitor(address)
    seconds, errors = [], []
    try:
        with Opened(visitor, "", "", visitor.cookies, SECONDS, quiet=True) as session:
            for question in questions:
                began = time.perf_counter()
                session.ask(question, SECONDS)
                seconds.append(time.perf_counter() - began)
                if session.failures or b"rq-notice rq-bad" in session.data or b"records?record=" not in session.data:
                    errors.append(f"{question}: {session.failures} failures drawn, {len(session.data)} bytes")
    finally:
        visitor.close()
    return seconds, errors


def call(address: str, questions: list[str]) -> tuple[list[float], list[str]]:
    """The same of a program."""
    seconds, errors = [], []
    for question in questions:
        began = time.perf_counter()
        answer = httpx2.post(f"{address}/v1/ask", json={"question": question}, timeout=SECONDS)
        seconds.append(time.perf_counter() - began)
        if answer.status_code != 200 or answer.json()["status"] != "scored":
            errors.append(f"{question}: {answer.status_code} {answer.text[:200]}")
    return seconds, errors


def numbers(home: Path) -> list[tuple[str, Any]]:
    """Question and scores of every answer in this home."""
    store = RecordStore(home / "records.sqlite3")
    records = [store.load(summary.record_id) for summary in store.list(limit=100_000)]
    return [(record.question.text, record.scored) for record in records]


if __name__ == "__main__":
    sys.exit(main())

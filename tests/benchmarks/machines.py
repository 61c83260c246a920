"""Two machines' applications over one PostgreSQL and one Milvus: `python -m tests.benchmarks.machines`.

Two processes of `app.py`, each with a home and a copy of the index's folder of its own; records are in PostgreSQL,
the rulebook's passages in Milvus (milvus-lite). Two visitors, one at each, ask by the page's own protocol with the
default settings, which answer by quoting. In the middle one process is killed (SIGKILL) while it answers; its visitor
goes to the other, as a balancer would have it. Every answer that a visitor saw whole must be a record, once; a run
that one process began must be shown by the other.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from statistics import median

from ragqa.corpus.demo import DEMOS
from ragqa.index import build_events
from ragqa.loading import load_encoder
from ragqa.records.store import RecordStore
from ragqa.settings.config import IndexingConfig
from ragqa.types.streams import returned
from tests.support.milvus import MilvusServer
from tests.support.postgres import PostgresServer
from tests.support.server import running_app, server_of, wait_until_ready
from tests.support.visitor import Opened, Visitor

SECONDS = 900  # for one question
CORPUS = "rulebook"


@dataclass(frozen=True)
class Answer:
    """What a visitor saw at the end: the run in its address, and the records that the page led to."""

    process: int
    question: str
    run: str
    records: frozenset[str]


@dataclass
class Seen:
    """What the visitors saw, of both processes."""

    waiting: SimpleQueue[str] = field(default_factory=SimpleQueue)
    answers: list[Answer] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    moved: int = 0  # questions that were asked again at the other process
    asking: list[str] = field(default_factory=lambda: ["", ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=100)
    options = parser.parse_args()
    texts = [gold.question.text for gold in DEMOS[CORPUS].questions()]
    seen = Seen()
    asked = [f"{texts[n % len(texts)]} ({n})" for n in range(options.questions)]
    for question in asked:
        seen.waiting.put(question)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        postgres, milvus = PostgresServer(), MilvusServer()
        opened.callback(postgres.remove)
        opened.callback(milvus.remove)
        records = postgres.new_database()
        homes = [Path(folder) / name for name in ("one", "two")]
        prepare(homes, milvus.uri)
        addresses = []
        for home in homes:
            app = running_app(home, RAGQA_RECORDS=records, RAGQA_INDEXES=str(home / "indexes"))
            addresses.append(opened.enter_context(app))
            wait_until_ready(addresses[-1])
            for other in homes:  # which a server times once
                with suppress(FileNotFoundError, shutil.SameFileError):
                    shutil.copy(home / "precision.json", other)
        print(f"both ready, load {os.getloadavg()[0]:.1f}", flush=True)
        ask_all(addresses, seen, options.questions // 2)
        print(f"all asked, load {os.getloadavg()[0]:.1f}", flush=True)
        store = RecordStore(records)
        shown = [is_shown(addresses[1], one, store) for one in [one for one in seen.answers if not one.process][-5:]]
        return judged(store, asked, seen, shown)


def prepare(homes: list[Path], uri: str) -> None:
    """The corpus in the engine, and what is left of its folder in each home."""
    config = IndexingConfig()
    encoder = load_encoder(config.encoder)
    demo = DEMOS[CORPUS]
    place = {"indexes": homes[0] / "indexes", "format": demo.format}
    returned(build_events(CORPUS, demo.source, config=config, encoder=encoder, uri=uri, **place))
    shutil.copytree(homes[0] / "indexes", homes[1] / "indexes")
    assert not any(homes[1].rglob("passages.jsonl")), "a corpus is left in a folder"


def ask_all(addresses: list[str], seen: Seen, killed_after: int) -> None:
    """Both visitors, and the kill of the first process."""
    visitors = [threading.Thread(target=visit, args=(addresses, n, seen), daemon=True) for n in (0, 1)]
    victim = server_of(addresses[0])
    for visitor in visitors:
        visitor.start()
    while len(seen.answers) < killed_after or not seen.asking[0]:
        time.sleep(0.05)
        assert any(visitor.is_alive() for visitor in visitors), seen.problems
    time.sleep(0.4)  # it is at work
    os.kill(victim, signal.SIGKILL)
    print(f"killed after {len(seen.answers)} answers, while it had {seen.asking[0]!r}", flush=True)
    for visitor in visitors:
        visitor.join()


def visit(addresses: list[str], number: int, seen: Seen) -> None:
    """Asks what waits; where its process is gone, the same question at the other."""
    at, question = number, ""
    while True:
        with suppress(Exception):  # a session that its server's death ends
            visitor = Visitor(addresses[at])
            with Opened(visitor, "", "", visitor.cookies, SECONDS) as session:
                while True:
                    if not question:
                        question = seen.waiting.get_nowait()
                    seen.asking[number] = question
                    began = time.perf_counter()
                    session.text = ""
                    session.ask(question, SECONDS)
                    seen.asking[number] = ""
                    seen.seconds.append(time.perf_counter() - began)
                    keep(session, at, question, seen)
                    question = ""
        with suppress(Empty):
            question = question or seen.waiting.get_nowait()
        if not question:
            return
        at, seen.moved = 1, seen.moved + 1


def keep(session: Opened, at: int, question: str, seen: Seen) -> None:
    """What was shown of a question: its record and its run."""
    records, run = (
        frozenset(re.findall(r"records\?record=([\w-]+)", session.text)),
        re.search(r"run=([\w-]+)", session.query),
    )
    if records and run and not session.failures:
        seen.answers.append(Answer(at, question, run[1], records))
    else:
        seen.problems.append(
            f"{question}: {session.failures} failures drawn, {len(records)} records, {session.query!r}"
        )


def record_of(one: Answer, store: RecordStore) -> str:
    """The record of this run; empty where the page did not lead to it."""
    run = store.run(one.run)
    return run.record_id if run and run.record_id in one.records else ""


def is_shown(address: str, one: Answer, store: RecordStore) -> bool:
    """Whether the other process shows this run at its address, with its question and its record."""
    visitor = Visitor(address)
    with Opened(visitor, "", f"run={one.run}", visitor.cookies, SECONDS) as session:
        session.settle(SECONDS)
        text = session.text
    visitor.close()
    words = max(re.findall(r"[\w ,]+", one.question), key=len)  # what HTML and the protocol write as it is
    record = record_of(one, store)
    if not (words in text and record and record in text):
        print(f"not shown: {one}, record {record!r}, its words {words in text}", flush=True)
        return False
    return True


def judged(store: RecordStore, asked: list[str], seen: Seen, shown: list[bool]) -> int:
    """Prints what came of it; 1 where something was lost, doubled or not shown."""
    kept = [summary.record_id for summary in store.list(10**6)]
    questions = Counter(store.load(name).question.text for name in kept)
    answers = {one.question: record_of(one, store) for one in seen.answers}
    lost = [question for question, record in answers.items() if record not in kept]
    other = [q for q, record in answers.items() if record in kept and store.load(record).question.text != q]
    missing, twice = [q for q in asked if not questions[q]], [q for q in asked if questions[q] > 1]
    by = Counter(one.process for one in seen.answers)
    print(f"{len(asked)} questions: {by[0]} answers seen of the one, {by[1]} of the other, {seen.moved} asked again")
    print(f"{len(kept)} records, {len(set(kept))} different; of what was seen {len(lost)} lost, {len(other)} mixed up")
    print(f"questions without a record {len(missing)}; with two {len(twice)}: one that the killed process had begun")
    print(f"runs of the killed process that the other shows: {sum(shown)} of {len(shown)}")
    print(f"from Ask to the last score: median {median(seen.seconds):.1f} s, longest {max(seen.seconds):.1f} s")
    print("\n".join(seen.problems[:10]) or "no failure drawn")
    bad = lost or other or missing or seen.problems or len(twice) > 1 or len(set(kept)) < len(kept) or not all(shown)
    return int(bool(bad) or not shown)


if __name__ == "__main__":
    sys.exit(main())

"""A local model under visitors: `python -m tests.benchmarks.local_model --model smollm2-135m [--visitors 8]`.

One question, a further one, one whose process is killed (SIGKILL) while it writes and the next; then the visitors at
once, in one process as the page serves them, while questions to the default writer are scored beside them. Prints
seconds to the first word and to the end, resident memory, what a visitor who waits is told, and seconds of scoring
alone and beside them. Run with RAGQA_HOME as `ragqa models fetch` left it; seconds are of this machine with its load.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from ragqa.corpus.demo import DEMOS
from ragqa.errors import RagqaError
from ragqa.generation.local.server import HOST
from ragqa.pipeline import Pipeline, load_pipeline
from ragqa.settings.config import Config
from ragqa.settings.paths import Paths
from ragqa.types import Question
from ragqa.types.events.generation import Token, Working
from ragqa.types.events.pipeline import Answered
from ragqa.types.events.scoring import Scored


@dataclass
class Visit:
    """What one question came to; seconds from its asking."""

    first: float = 0.0
    answered: float = 0.0
    words: int = 0
    waited: list[str] = field(default_factory=list)
    error: str = ""

    def __str__(self) -> str:
        told = f"; told: {self.waited[0]!r}" if self.waited else ""
        return f"first word {self.first:.1f} s, answer {self.answered:.1f} s, {self.words} words{told} {self.error}"


def visit(pipeline: Pipeline, question: str, *, kill: bool = False) -> Visit:
    """Asks until the answer stands; ``kill`` ends the model's process at its first word."""
    found, began, written = Visit(), time.perf_counter(), 0
    try:
        for event in pipeline.run(Question(question)):
            if isinstance(event, Working) and "before this one" in event.phase:
                found.waited.append(event.phase)
            if isinstance(event, Token):
                found.first = found.first or time.perf_counter() - began
                written += 1
                if kill and HOST.pid:
                    os.kill(HOST.pid, signal.SIGKILL)
            if isinstance(event, Answered):
                found.answered = time.perf_counter() - began
                found.words = len(event.answer.text.split())
                found.error = "" if event.answer.finish_reason == "stop" else f"({event.answer.finish_reason})"
                break
    except RagqaError as error:
        found.error = f"{type(error).__name__}: {error}"
    return found


def scoring(pipeline: Pipeline, question: str) -> float:
    """Seconds of a question to the default writer, scored to the end."""
    began = time.perf_counter()
    for event in pipeline.run(Question(question)):
        if isinstance(event, Scored):
            break
    return time.perf_counter() - began


def resident(pid: int | None) -> str:
    """Its resident memory in MB, where the system says it."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if pid and status.exists() else []
    return next((f"{int(line.split()[1]) / 1000:.0f} MB" for line in lines if line.startswith("VmRSS")), "unknown")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--visitors", type=int, default=8)
    parser.add_argument("--words", type=int, default=60, help="most tokens of an answer")
    options = parser.parse_args()
    default = Config(index="encyclopedia")
    local = replace(
        default,
        generation=replace(default.generation, generator="llm", local_model=options.model, max_tokens=options.words),
    )
    paths = Paths.from_env()
    direct, llm = (load_pipeline(one, paths, recording=False) for one in (default, local))
    questions = [gold.question.text for gold in DEMOS["encyclopedia"].questions()]
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print("first:   ", visit(llm, questions[0]), "| resident", resident(HOST.pid))
    print("further: ", visit(llm, questions[1]), "| resident", resident(HOST.pid))
    print("killed:  ", visit(llm, questions[2], kill=True))
    print("the next:", visit(llm, questions[3]))
    for one in questions[:3]:
        scoring(direct, one)  # models loaded, pairs remembered for neither of the next
    alone = [scoring(direct, one) for one in questions[8:12]]
    visits: list[Visit] = []
    threads = [
        threading.Thread(target=lambda asked=one: visits.append(visit(llm, asked)))
        for one in questions[: options.visitors]
    ]
    for thread in threads:
        thread.start()
    beside, left = [], questions[12:]
    while any(thread.is_alive() for thread in threads) and left:
        beside.append(scoring(direct, left.pop(0)))
    for thread in threads:
        thread.join()
    for one in sorted(visits, key=lambda one: one.answered):
        print("visitor: ", one)
    waited, wrong = sum(bool(one.waited) for one in visits), sum("Error" in one.error for one in visits)
    print(f"{len(visits)} visitors: {waited} told that they wait, {wrong} with an error")
    print(f"scoring, median: alone {median(alone):.1f} s, beside them {median(beside):.1f} s ({len(beside)} times)")


if __name__ == "__main__":
    main()

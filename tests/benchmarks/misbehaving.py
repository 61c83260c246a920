"""What a misbehaving language model costs the server: memory, words and the turn, reply by reply.

``python -m tests.benchmarks.misbehaving``: a fresh process asks a question of each server of
`tests.support.misbehaving`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from dataclasses import replace

from ragqa.generation.llm.generator import LlmGenerator
from ragqa.server.queue import RunQueue
from ragqa.settings.config import Config, GenerationConfig
from ragqa.types import Question
from ragqa.ui.state.run import Run
from tests.support.helpers import make_pipeline
from tests.support.misbehaving import REPLIES, STOPPED
from tests.support.openai_server import Behaviour, OpenAIServer, answer
from tests.support.server import megabytes

MEGABYTES, SECONDS = 200.0, 5.0  # that a reply may cost, and that its turn may outlive it
SAMPLE = 0.005
ASKED = 1.0  # seconds before somebody stops a reply that does not end


def met(behaviour: Behaviour, *, stops: bool) -> dict[str, object]:
    """Growth at its peak in MB, seconds to the end (of a stop: after it), and what the page says."""
    turns, before, peak, done = RunQueue(1, 5), megabytes(os.getpid()), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(SAMPLE):
            peak[0] = max(peak[0], megabytes(os.getpid()) - before)

    with OpenAIServer(behaviour) as server:
        settings = GenerationConfig(base_url=server.base_url, model="test", timeout_seconds=30.0, max_retries=0)
        generator = LlmGenerator(settings, "sk-x")
        watching = threading.Thread(target=watch)
        watching.start()
        config = replace(Config(), generation=settings)
        run = Run(Question("Who must act?"), config, lambda: make_pipeline(generator=generator), turn=turns.take())
        began = time.monotonic()
        if stops:
            time.sleep(ASKED)
            run.stop()
            began = time.monotonic()
        view = run.wait(120)
        while turns.at_work:
            time.sleep(SAMPLE)
        seconds = time.monotonic() - began
        done.set()
        watching.join()
        generator.close()
    said = view.error or (view.answer.text or "a refusal" if view.answer else "")
    return {"megabytes": round(peak[0]), "seconds": round(seconds, 2), "says": " ".join(said.split())[:110]}


def main() -> None:
    """Prints a line of JSON a reply; exit code 1 where one costs more than it may or says nothing."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["RAGQA_HOME"] = home
        met(answer("Firms must act [1]."), stops=False)  # what is loaded at the first question
        rows = {name: met(one, stops=name in STOPPED) for name, one in (REPLIES | STOPPED).items()}
    for name, row in rows.items():
        print(json.dumps({"reply": name, **row}))
    worst = [max(float(str(row[key])) for row in rows.values()) for key in ("megabytes", "seconds")]
    print(f"{len(rows)} replies: at most {worst[0]:.0f} MB more, the turn free within {worst[1]:.1f} s")
    sys.exit(int(worst[0] > MEGABYTES or worst[1] > SECONDS or not all(row["says"] for row in rows.values())))


if __name__ == "__main__":
    main()

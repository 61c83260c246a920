"""Questions while a corpus is indexed, by the page's own line of turns and library jobs, against the same alone.

python -m tests.benchmarks.while_indexing --megabytes 3 --questions 12
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

QUESTIONS = ("How soon must a data breach be reported?", "Who must approve an outsourcing?", "What must a firm record?")


def asked(number: int) -> float:
    """Seconds from asking to the final scores."""
    from ragqa.settings.config import Config
    from ragqa.settings.paths import Paths
    from ragqa.types import Question
    from ragqa.ui.state import resources

    config, paths = Config.from_env(), Paths.from_env()
    began = time.monotonic()
    text = f"{QUESTIONS[number % len(QUESTIONS)]} Case {number}."
    view = resources.start_run(Question(text), config, partial(resources.pipeline, config, paths)).wait(600)
    assert not view.error, view.error
    return time.monotonic() - began


def staged(folder: Path, megabytes: float):
    """A corpus of so much text that waits to be indexed: every passage of another wording."""
    import random

    from ragqa.corpus.documents import Reader
    from ragqa.library.collection import make_collection
    from ragqa.library.upload import take
    from ragqa.settings.paths import Paths

    chance = random.Random(3)
    words = [
        f"{a}{b}" for a in "re un in de con pro sub trans".split() for b in "port form act firm quest cord".split()
    ]
    collection = make_collection("growing", Paths.from_env().library)
    for number in range(int(megabytes * 10)):
        lines = []
        while sum(map(len, lines)) < 100_000:
            lines.append(f"{number}.{len(lines) + 1} A firm must {' '.join(chance.choices(words, k=60))}.\n\n")
        path = folder / f"{number}.md"
        path.write_text(f"# Rule {number}\n\n{''.join(lines)}")
        with Reader() as reader, path.open("rb") as data:
            take(collection, path.name, data, reader)
    return collection


def main() -> None:
    """Prints medians and their ratio."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=float, default=3.0)
    options.add_argument("--questions", type=int, default=12)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RAGQA_HOME"] = folder
        from ragqa.settings.paths import Paths
        from ragqa.ui.state import resources

        paths = Paths.from_env()
        source = Path(folder) / "source"
        source.mkdir()
        collection = staged(source, given.megabytes)
        asked(-1)  # loads the models
        alone, beside = [], []
        for number in range(given.questions):
            alone.append(asked(number))
        jobs = resources.library_jobs(paths)
        assert not jobs.start(collection, "read", lambda: None).wait(600).error
        job = jobs.start(collection, "index", partial(resources.encoder_of, "minilm-l6", paths))
        said = resources.library_words(paths)
        number = given.questions
        while job.view.running and len(beside) < 10 * given.questions:
            beside.append(asked(number))
            print(f"{job.view.phase} {job.view.done:.0f} of {job.view.total:.0f}: {beside[-1]:.2f} s", flush=True)
            number += 1
            time.sleep(1)  # a reader's pause: who is at the page reads
        view = job.wait(3600)
        first, second = statistics.median(alone), statistics.median(beside)
        print(
            f"alone {first:.2f} s (n={len(alone)}), beside {second:.2f} s (n={len(beside)}): {second / first:.2f} times"
        )
        print(f"said: {said}\n{view.phase} after {job.seconds:.0f} s {view.error}")


if __name__ == "__main__":
    main()

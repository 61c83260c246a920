"""A library of many long documents: minutes, memory, killed at ten moments, one document more, equal bytes.

    python -m tests.benchmarks.library_size --folder FOLDER [--documents 200] [--pages 50]

Documents are rules of words drawn by a seed, some 450 words a page, half of them HTML, half Word. Every build is a
process of its own. The first is killed (SIGKILL) five times while it reads, five times while it encodes, and begun
again. Then one document is added; then the same library is indexed from nothing, every file read and every vector
encoded, and the files of both indexes are compared. Vectors are exact ("Flat"), those of the tests' encoder of hashed
texts, since encoding is measured
elsewhere; ``--delay`` makes it wait so many milliseconds a passage, as a model would. Reading files counts.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

from ragqa.corpus.documents import Reader
from ragqa.index import open_index
from ragqa.library import parse_cache
from ragqa.library.collection import Collection, collection_of, make_collection
from ragqa.library.update import MAX_TOKENS, index_events
from ragqa.library.upload import take
from ragqa.types.streams import returned
from tests.support.document_files import write_docx, write_html
from tests.support.fakes import FakeEncoder

WORDS_A_PAGE, NAME = 450, "many"
MOMENTS = [(stage, share) for stage in ("reading", "vectors") for share in (0.1, 0.3, 0.5, 0.7, 0.9)]


class SlowEncoder(FakeEncoder):
    """As slow as a model that takes ``delay`` seconds a passage."""

    delay = 0.0

    def encode(self, texts):  # type: ignore[no-untyped-def]
        time.sleep(self.delay * len(texts))
        return super().encode(texts)


def write_document(path: Path, seed: int, pages: int) -> None:
    chance = random.Random(seed)
    known = ["".join(chance.choices("aeiourstlnmdpkg", k=chance.randint(3, 9))) for _ in range(3000)]
    rows, n_words = [], 0
    for chapter in range(1, 10_000):
        rows.append((f"{chapter}.", " ".join(chance.choices(known, k=4)).upper(), 0))
        for rule in range(1, 21):
            words = chance.choices(known, k=chance.randint(20, 70))
            n_words += len(words)
            rows.append((f"{chapter}.1.{rule}", f"A Keeper must {' '.join(words)}.", 0))
        if n_words > pages * WORDS_A_PAGE:
            break
    (write_html if path.suffix == ".html" else write_docx)(path, rows)


def put_in(collection: Collection, paths: list[Path]) -> None:
    with Reader() as reader:
        for path in paths:
            with path.open("rb") as data:
                take(collection, path.name, data, reader)


def build(folder: Path, delay: float, *, reuse: bool) -> None:
    """In a process of its own: says how far it is, a line for each step, and at the end its memory in MB."""
    SlowEncoder.delay = delay
    collection = collection_of(NAME, folder)
    assert collection is not None
    waiting = collection.read().staged
    with Reader() as reader:
        for n, one in enumerate(waiting, start=1):
            parse_cache.read(collection, one, reader, MAX_TOKENS)
            print("reading", n, len(waiting), flush=True)
    steps = index_events(collection, folder / "indexes", SlowEncoder, reuse=reuse)

    def told():  # type: ignore[no-untyped-def]
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                return end.value
            print(step.stage, step.done, step.total, flush=True)
            yield step

    returned(told())
    usage = [resource.getrusage(who).ru_maxrss // 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print("megabytes", max(usage), flush=True)


def built(
    folder: Path, delay: float, *, reuse: bool = True, moment: tuple[str, float] | None = None
) -> tuple[float, int]:
    """Seconds and megabytes of a build; killed at the moment, a stage and its share."""
    command = [sys.executable, "-m", "tests.benchmarks.library_size", "--folder", str(folder), "--delay", str(delay)]
    command += ["--child", "reuse" if reuse else "anew"]
    began, megabytes = time.perf_counter(), 0
    with subprocess.Popen(
        [*command, "--child", "reuse" if reuse else "anew"], stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        for line in run.stdout:
            phase, *numbers = line.split()
            if phase == "megabytes":
                megabytes = int(numbers[0])
            elif moment and phase == moment[0] and float(numbers[0]) >= moment[1] * float(numbers[1]):
                run.kill()
                break
    assert run.returncode == 0 or moment, "the build failed"
    return time.perf_counter() - began, megabytes


def contents(folder: Path) -> dict[str, str]:
    return {one.path: one.sha256 for one in open_index(NAME, folder / "indexes").manifest.files}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--pages", type=int, default=50)
    parser.add_argument("--delay", type=float, default=0.0, help="milliseconds a passage that encoding takes")
    parser.add_argument("--child", choices=("reuse", "anew"))
    options = parser.parse_args()
    delay = options.delay / 1000
    if options.child:
        build(options.folder, options.delay, reuse=options.child == "reuse")
        return
    files = options.folder / "files"
    files.mkdir(parents=True, exist_ok=True)
    paths = [files / f"d{n:03}.{'html' if n % 2 else 'docx'}" for n in range(options.documents + 1)]
    for n, path in enumerate(paths):
        if not path.exists():
            write_document(path, n, options.pages)
    for old in (options.folder / NAME, options.folder / "indexes"):
        shutil.rmtree(old, ignore_errors=True)
    collection = make_collection(NAME, options.folder)
    began = time.perf_counter()
    put_in(collection, paths[:-1])
    figures: dict[str, object] = {"documents": options.documents, "pages": options.pages}
    figures["putting in, s"] = round(time.perf_counter() - began, 1)
    parts = [built(options.folder, delay, moment=moment)[0] for moment in MOMENTS]
    seconds, megabytes = built(options.folder, delay)
    figures |= {"killed after, s": [round(one, 1) for one in parts], "last part, s": round(seconds, 1)}
    print(json.dumps(figures), flush=True)
    put_in(collection, paths[-1:])
    added, _ = built(options.folder, delay)
    grown = contents(options.folder)
    shutil.rmtree(options.folder / "indexes")
    shutil.rmtree(options.folder / NAME / "readings")
    anew, megabytes = built(options.folder, delay, reuse=False)
    figures |= {"one more, s": round(added, 1), "anew, s": round(anew, 1), "MB": megabytes}
    figures |= {"times as fast": round(anew / added, 1), "equal bytes": grown == contents(options.folder)}
    figures["passages"] = len(open_index(NAME, options.folder / "indexes").passages)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()

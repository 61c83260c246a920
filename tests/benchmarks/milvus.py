"""An index in Milvus beside the same in a folder.

`RAGQA_INDEXES=FOLDER python -m tests.benchmarks.milvus --index adgm --questions ObliQA_dev.json [--kills]`

Corpora are copies of the passages of an existing index made by `tests.benchmarks.growth`: a fifth of the words
replaced, one word added that is nowhere else. Their vectors are the stored ones, from the second copy on with seeded
noise, so that nothing is encoded but questions. The server is milvus-lite, started here. Each size: build and moving,
bytes, opening, question to selection over both (the default settings; the encoder reads every question), the same ten
passages or not, and an update of one document. `--kills`: server and builder are killed (SIGKILL) during a search, a
build and an update; what is said, whether the index is what it was, and whether going on gives the index built anew.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ragqa.corpus.questions import load_questions
from ragqa.errors import IndexingError
from ragqa.evaluation.speed import measure_speed, summarise
from ragqa.index import build_events, index_info, open_index
from ragqa.index.manifest import Manifest
from ragqa.pipeline import Pipeline, load_pipeline
from ragqa.settings.config import Config, IndexingConfig
from ragqa.settings.paths import Paths
from ragqa.types import ModelInfo, Question
from ragqa.types.events.pipeline import Selected
from ragqa.types.streams import returned
from tests.benchmarks.growth import NOISE, VECTORS, write_source
from tests.support.milvus import MilvusServer

NAMES = ("files", "engine")
KILLED_SIZE, KILLED_ROWS = 1_000, 20  # passages, and rows a request, so that there is a middle to be killed in


class StoredVectors:
    """The vectors that passages were made from, those of copies with noise, by the number in a text's last word."""

    def __init__(self, folder: Path) -> None:
        self.info = ModelInfo(*json.loads((folder / "encoder.json").read_text()))
        self._vectors = np.load(folder / VECTORS)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        found = np.array([self._vector(int(text.rpartition("copy")[2])) for text in texts], dtype=np.float32)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    def _vector(self, number: int) -> np.ndarray:
        copy, n = divmod(number, len(self._vectors))
        noise = np.random.default_rng(number).standard_normal(self._vectors.shape[1], dtype=np.float32)
        return self._vectors[n] + (NOISE * noise if copy else 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", default="adgm", help="a folder index, whose passages and vectors are taken")
    parser.add_argument("--questions", type=Path, required=True, help="ObliQA's schema")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/ragqa-milvus-benchmark"))
    parser.add_argument("--sizes", type=int, nargs="*", default=[13_000, 130_000])
    parser.add_argument("--limit", type=int, default=100, help="questions a size")
    parser.add_argument("--kills", action="store_true")
    parser.add_argument("--step", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        builder(options.folder, *json.loads(options.step))
        return 0
    questions = [gold.question for gold in load_questions(options.questions)][: options.limit]
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    base = open_index(options.index, Paths.from_env().indexes)
    np.save(options.folder / VECTORS, base.vectors.reconstruct_n(0, len(base.passages)))
    manifest = base.manifest
    info = ModelInfo(manifest.encoder, manifest.encoder_fingerprint, manifest.encoder_precision)
    (options.folder / "encoder.json").write_text(json.dumps([info.name, info.fingerprint, info.precision]))
    server = MilvusServer()
    try:
        for size in options.sizes:
            measure(options, size, questions, server)
        failed = kills(options, questions[0], server) if options.kills else 0
    finally:
        server.remove()
        shutil.rmtree(options.folder, ignore_errors=True)
    return failed


# Size by size -------------------------------------------------------------------------------------------------------


def measure(options: argparse.Namespace, size: int, questions: Sequence[Question], server: MilvusServer) -> None:
    """Prints a size's figures."""
    folder = options.folder / str(size)
    folder.mkdir()
    write_source(options.index, size, folder / "source")
    say(f"{size:,} passages")
    before = bytes_of(server)
    for name in NAMES:
        began = time.perf_counter()
        manifest, moved = build(folder, name, server if name == "engine" else None)
        took = time.perf_counter() - began
        on_server = f", {(bytes_of(server) - before) / 1e6:,.1f} MB on the server" if moved else ""
        moving = f", of which moving {moved:,.1f} s" if moved else ""
        say(f"  {name}: built in {took:,.1f} s{moving}; {manifest.size_bytes / 1e6:,.1f} MB in its folder{on_server}")
    found = []
    for name in NAMES:
        pipeline = opened(folder, name)
        began = time.perf_counter()
        open_index(name, folder)
        again = time.perf_counter() - began
        rows = list(measure_speed(pipeline, questions, selection_only=True))
        _, middle, late, worst = summarise(rows)[0]
        say(f"  {name}: opened in {again:.2f} s; {len(rows)} questions to selection: median {middle / 1e3:.3f} s,")
        say(f"    99th percentile {late / 1e3:.3f} s, longest {worst / 1e3:.3f} s")
        found.append([ten(pipeline, question) for question in questions[:20]])
    same = sum(one == other for one, other in zip(*found, strict=True))
    say(f"  the same ten passages in the same order for {same} of {len(found[0])}")
    update(folder, server)


def update(folder: Path, server: MilvusServer) -> None:
    """One document gets a passage more and another goes: what is sent, how long moving takes."""
    changed(folder / "source", 1)
    before = index_info("engine", folder)
    began = time.perf_counter()
    manifest, moved = build(folder, "engine", server)
    took = time.perf_counter() - began
    assert before.engine is not None
    assert manifest.engine is not None
    sent = manifest.engine.next_row - before.engine.next_row
    kind = "updated" if manifest.engine.collection == before.engine.collection else "written anew"
    say(f"  one document changed, one removed: {kind}, {sent} rows sent, {took:,.1f} s, of which moving {moved:,.1f} s")


def changed(source: Path, number: int) -> None:
    """Puts a passage more into a document, and takes the one after it away."""
    files = sorted(source.glob("*.json"), key=lambda path: int(path.stem))
    items = json.loads(files[number].read_text())
    items.append({**items[-1], "ID": f"9{items[-1]['ID']}", "PassageID": f"{items[-1]['PassageID']}.999"})
    files[number].write_text(json.dumps(items))
    if number + 1 < len(files) - 1:
        files[number + 1].unlink()


def reword(source: Path, most: int) -> None:
    """So many passages say something else."""
    for path in sorted(source.glob("*.json")):
        items = json.loads(path.read_text())
        new = [{**item, "Passage": f"again {item['Passage']}"} for item in items[:most]]
        path.write_text(json.dumps([*new, *items[most:]]))
        most -= len(new)


def build(folder: Path, name: str, server: MilvusServer | None = None, uri: str = "") -> tuple[Manifest, float]:
    """The index of this name, and the seconds that moving it took."""
    stages: list[float] = []

    def see(event: Any) -> None:
        if event.stage == "milvus":
            stages.append(time.perf_counter())

    manifest = returned(events(folder, name, server.uri if server else uri), see)
    return manifest, stages[-1] - stages[0] if stages else 0.0


def events(folder: Path, name: str, uri: str) -> Any:
    """The steps of building it."""
    encoder = StoredVectors(folder.parent)
    source, config = folder / "source", IndexingConfig(encoder=encoder.info.name)
    return build_events(name, source, indexes=folder, config=config, encoder=encoder, format="obliqa", uri=uri)


def opened(folder: Path, name: str) -> Pipeline:
    paths = replace(Paths.from_env(), indexes=folder)
    return load_pipeline(replace(Config.from_env(), index=name), paths, recording=False)


def ten(pipeline: Pipeline, question: Question) -> list[str]:
    """The first ten passages."""
    for event in pipeline.run(question):
        if isinstance(event, Selected):
            ranked = event.selection.kept + event.selection.dropped
            return [one.passage.passage_id for one in ranked[:10]]
    return []


def bytes_of(server: MilvusServer) -> int:
    return sum(path.stat().st_size for path in server.folder.rglob("*") if path.is_file())


# Kills --------------------------------------------------------------------------------------------------------------


def kills(options: argparse.Namespace, question: Question, server: MilvusServer) -> int:
    """Prints what each kill left; 1 where something was half visible or did not go on."""
    folder, failed = options.folder / "kills", 0
    folder.mkdir()
    write_source(options.index, KILLED_SIZE, folder / "source")
    build(folder, "engine", server)
    pipeline = opened(folder, "engine")
    expected = ten(pipeline, question)
    began = time.perf_counter()
    server.kill()
    say(f"server killed, then a search: {told(lambda: ten(pipeline, question))}")
    server.start()
    failed += settled("  started again", lambda: ten(pipeline, question) == expected, began)
    for what, kill_server in (("build", True), ("build", False), ("update", True), ("update", False)):
        reword(folder / "source", 10**9 if what == "build" else 60)
        before = everything(folder, "engine", question)
        process = in_a_process(options, folder)
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("milvus"):
                server.kill() if kill_server else process.kill()
                break
        said = (process.stdout.read().strip().splitlines() or ["nothing: it is gone"])[-1]
        process.wait()
        began = time.perf_counter()
        say(f"{'server' if kill_server else 'builder'} killed during a{'n' if what == 'update' else ''} {what}: {said}")
        if kill_server:
            server.start()
        failed += settled("  the index is what it was", partial(is_still, folder, question, before), began)
        rest = in_a_process(options, folder, 500)
        rest.communicate()
        failed += rest.returncode != 0
        build(folder, "files")
        began = time.perf_counter()
        same = lambda: everything(folder, "engine", question) == everything(folder, "files", question)  # noqa: E731
        failed += settled("  the same command goes on: the index built anew", same, began)
    return int(failed > 0)


def everything(folder: Path, name: str, question: Question) -> tuple[list[str], list[str]]:
    """The passages of an index that was just opened, and what it finds."""
    index = open_index(name, folder)
    return [one.text for one in index.passages], ten(opened(folder, name), question)


def is_still(folder: Path, question: Question, before: tuple[list[str], list[str]]) -> bool:
    return everything(folder, "engine", question) == before


def settled(what: str, do: Callable[[], bool], began: float) -> int:
    """Prints whether it holds as soon as the server answers; 1 where it does not."""
    while True:
        try:
            held = do()
            break
        except IndexingError:
            time.sleep(0.5)
        if time.perf_counter() - began > 300:
            held = False
            break
    say(f"{what}: {'yes' if held else 'NO'}, {time.perf_counter() - began:.1f} s after")
    return int(not held)


def told(do: Callable[[], object]) -> str:
    try:
        return f"an answer all the same: {do()}"
    except IndexingError as error:
        return str(error)


def in_a_process(options: argparse.Namespace, folder: Path, rows: int = KILLED_ROWS) -> subprocess.Popen[str]:
    """A builder of its own, which says its stages."""
    uri = index_info("engine", folder).engine
    assert uri is not None
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks.milvus",
        "--folder",
        str(folder),
        "--step",
        json.dumps([uri.uri, rows]),
    ]
    command += ["--questions", str(options.questions)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def builder(folder: Path, uri: str, rows_at_once: int) -> None:
    """What a process that may be killed does; it says how far it is."""
    import ragqa.retrieval.milvus.client

    ragqa.retrieval.milvus.client.ROWS_AT_ONCE = rows_at_once
    try:
        for event in events(folder, "engine", uri):
            if event.stage == "milvus" and event.done:
                print(f"milvus {event.done} of {event.total}", flush=True)
    except IndexingError as error:
        print(error)
        sys.exit(1)


def say(line: str) -> None:
    print(
        f"{line}  [load {os.getloadavg()[0]:.1f}]" if line.startswith((" ", "server", "builder")) else line, flush=True
    )


if __name__ == "__main__":
    sys.exit(main())

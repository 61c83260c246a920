"""How an index grows with its corpus: `RAGQA_INDEXES=FOLDER python -m tests.benchmarks.growth --index adgm`.

The corpora are synthetic: copies of the passages of an existing index, in each a fifth of the words replaced by words
drawn from all of them (seeded) and one word added that is nowhere else; vectors are the stored ones plus seeded noise,
of length 1 again (mean cosine with the stored one .75), because to encode 1.3 million texts would take hours. Copies
and noise make neighbours less alike than those of a real corpus, so recall here is rather too low than too high.
Questions are twelve words in a row of fifty passages, encoded before anything is timed.

Every corpus is built and asked in processes of their own. "build" leaves out the encoder's time, "bytes" the source,
"open" is `open_index`, "MB" are resident (mapped files included) beyond what libraries take. The approximate index
shares all but its vectors with the exact one: its "build" is that of its vectors, its recall that of the exact top 100.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from ragqa.index import build_index, index_info, open_index
from ragqa.index.manifest import DENSE, describe_files, write_manifest
from ragqa.retrieval import retrievers_for
from ragqa.settings.config import IndexingConfig, RetrievalConfig
from ragqa.settings.paths import Paths
from ragqa.types import ModelInfo

SIZES = (13_000, 130_000, 1_300_000)
REPLACED = 0.2  # of the words of a passage
NOISE = 0.045  # standard deviation of each of 384 numbers
N_QUESTIONS, N_WORDS, DEPTH = 50, 12, 100
VECTORS = "vectors.npy"
QUESTIONS = "questions.json"


class NoisyVectors:
    """An encoder that looks up the vector a text was made from, by the number in its last word, and adds noise."""

    def __init__(self, vectors: np.ndarray) -> None:
        self.info = ModelInfo("noisy", "0" * 64)
        self.seconds = 0.0
        self._vectors = vectors
        self._random = np.random.default_rng(2)

    def encode(self, texts):
        began = time.perf_counter()
        rows = [int(text.rpartition("copy")[2]) % len(self._vectors) for text in texts]
        noise = self._random.standard_normal((len(rows), self._vectors.shape[1]), dtype=np.float32)
        found = self._vectors[rows] + NOISE * noise
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        self.seconds += time.perf_counter() - began
        return found


class KnownQuestions:
    """An encoder of the questions of `prepare` alone."""

    info = ModelInfo("noisy", "0" * 64)

    def __init__(self, questions: dict[str, list[float]]) -> None:
        self._vectors = {text: np.array([vector], dtype=np.float32) for text, vector in questions.items()}

    def encode_query(self, text):
        return self._vectors[text]


def prepare(index: str, folder: Path) -> None:
    """The vectors and questions that every corpus uses."""
    from ragqa.loading import load_encoder

    opened = open_index(index, Paths.from_env().indexes)
    np.save(folder / VECTORS, opened.vectors.reconstruct_n(0, opened.vectors.ntotal))
    random, questions = np.random.default_rng(3), []
    while len(questions) < N_QUESTIONS:
        words = re.findall(r"\w+", opened.passages[int(random.integers(len(opened.passages)))].text)
        if len(words) >= N_WORDS:
            start = int(random.integers(len(words) - N_WORDS + 1))
            questions.append(" ".join(words[start : start + N_WORDS]))
    encoder = load_encoder(opened.manifest.encoder)
    encoded = {text: encoder.encode_query(text)[0].tolist() for text in questions}
    (folder / QUESTIONS).write_text(json.dumps(encoded), encoding="utf-8")


def write_source(index: str, size: int, folder: Path) -> None:
    """Documents of ``size`` passages in ObliQA's format, a file each."""
    opened = open_index(index, Paths.from_env().indexes)
    base = tuple(opened.passages)
    words = [passage.text.split() for passage in base]
    everything = np.array([word for row in words for word in row], dtype=object)
    names = list(dict.fromkeys(passage.document_id for passage in base))
    random = np.random.default_rng(1)
    folder.mkdir()
    for copy in range(-(-size // len(base))):
        documents: dict[str, list[dict[str, object]]] = {}
        for n, passage in enumerate(base[: size - copy * len(base)]):
            text = np.array(words[n], dtype=object)
            changed = random.random(len(text)) < REPLACED
            text[changed] = everything[random.integers(len(everything), size=int(changed.sum()))]
            number = copy * len(base) + n
            document = copy * len(names) + names.index(passage.document_id)
            item = {
                "ID": str(number),
                "DocumentID": document,
                "PassageID": passage.number,
                "Passage": f"{' '.join(text)} copy{number}",
            }
            documents.setdefault(str(document), []).append(item)
        for name, items in documents.items():
            (folder / f"{name}.json").write_text(json.dumps(items), encoding="utf-8")


def build(folder: Path, size: int) -> dict[str, float]:
    """The exact index of this size."""
    encoder = NoisyVectors(np.load(folder / VECTORS))
    began = time.perf_counter()
    source = folder / f"source-{size}"
    build_index(f"flat-{size}", source, indexes=folder, config=IndexingConfig(), encoder=encoder, format="obliqa")
    return {"seconds": time.perf_counter() - began - encoder.seconds, "peak_mb": peak_mb()}


def convert(folder: Path, size: int, kind: str) -> dict[str, float]:
    """The approximate index of this size: the exact one's files with other vectors."""
    from ragqa.retrieval.dense import search_effort, write_vectors

    exact = open_index(f"flat-{size}", folder)
    vectors = exact.vectors.reconstruct_n(0, exact.vectors.ntotal)
    target = folder / f"approximate-{size}"
    shutil.copytree(exact.folder, target, copy_function=os.link)
    (target / DENSE).unlink()
    began = time.perf_counter()
    write_vectors(vectors, target / DENSE, kind)
    seconds = time.perf_counter() - began
    manifest = replace(exact.manifest, vectors=kind, search_effort=search_effort(kind))
    files = describe_files(target, manifest.context_passages, manifest.rankings)
    (target / "manifest.json").unlink()
    write_manifest(replace(manifest, files=files), target)
    return {"seconds": seconds, "peak_mb": peak_mb()}


def ask(folder: Path, name: str) -> dict[str, object]:
    """Opens the index and asks every question once."""
    import bm25s  # noqa: F401 - libraries are there before memory is measured
    import faiss  # noqa: F401
    import pydantic  # noqa: F401

    encoder = KnownQuestions(json.loads((folder / QUESTIONS).read_text(encoding="utf-8")))
    before = resident_mb()
    began = time.perf_counter()
    index = open_index(name, folder)
    opened = time.perf_counter() - began
    when_open = resident_mb() - before
    retrievers = retrievers_for(index, encoder, RetrievalConfig())
    spent: dict[str, list[float]] = {retriever.name: [] for retriever in retrievers}
    found: list[list[str]] = []
    for question in encoder._vectors:
        for retriever in retrievers:
            began = time.perf_counter()
            ranking = retriever.retrieve(question, DEPTH)
            spent[retriever.name].append(1e3 * (time.perf_counter() - began))
        found.append([hit.passage.passage_id for hit in ranking.hits])
    return {
        "open": opened,
        "mb_open": when_open,
        "mb_asked": resident_mb() - before,
        "ms": {retriever: median(times) for retriever, times in spent.items()},
        "found": found,
    }


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def groups(size: int) -> int:
    """The power of two next below 4 times the root of the size."""
    return 2 ** int(np.log2(4 * size**0.5))


def in_new_process(step: str, arguments: argparse.Namespace, *values: object) -> dict:
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks.growth",
        "--index",
        arguments.index,
        "--folder",
        arguments.folder,
    ]
    done = subprocess.run(
        [*map(str, command), "--step", json.dumps([step, *values])], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def measure(arguments: argparse.Namespace, size: int) -> list[str]:
    """The table's lines for one size; what was written for it is deleted."""
    folder, kind = arguments.folder, f"IVF{groups(size)},SQ8"
    in_new_process("source", arguments, size)
    lines, exact = [], None
    for name, label in ((f"flat-{size}", "Flat"), (f"approximate-{size}", kind)):
        built = in_new_process("build" if exact is None else "convert", arguments, size, kind)
        asked = in_new_process("ask", arguments, name)
        exact = exact or asked["found"]
        pairs = zip(exact, asked["found"], strict=True)
        recall = np.mean([len(set(one) & set(other)) / len(one) for one, other in pairs])
        ms = asked["ms"]
        lines.append(
            f"{size:>9,}  {label:<14} {built['seconds']:8.1f} {built['peak_mb']:8,.0f} "
            f"{index_info(name, folder).size_bytes / 1e6:9,.1f} {asked['open']:7.3f} {asked['mb_open']:8,.0f} "
            f"{asked['mb_asked']:8,.0f} {ms['bm25']:8.2f} {ms['context']:8.2f} {ms['dense']:8.2f} {recall:8.3f}"
        )
    for path in (f"source-{size}", f"flat-{size}", f"approximate-{size}"):
        shutil.rmtree(folder / path)
    return lines


def step(arguments: argparse.Namespace) -> object:
    name, *values = json.loads(arguments.step)
    if name == "prepare":
        return prepare(arguments.index, arguments.folder)
    if name == "source":
        return write_source(arguments.index, values[0], arguments.folder / f"source-{values[0]}")
    if name == "build":
        return build(arguments.folder, values[0])
    return convert(arguments.folder, *values) if name == "convert" else ask(arguments.folder, values[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", default="adgm", help="the index whose passages and vectors are perturbed")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/growth"), help="for 10 GB that are deleted again")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="passages")
    parser.add_argument("--step", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        print(json.dumps(step(arguments)))
        return
    arguments.folder.mkdir(parents=True, exist_ok=True)
    in_new_process("prepare", arguments)
    print(
        f"{'':>9}  {'':<14} {'build':>8} {'peak':>8} {'':>9} {'open':>7} {'MB when':>8} {'MB when':>8} "
        f"{'BM25':>8} {'context':>8} {'dense':>8} {'recall':>8}\n"
        f"{'passages':>9}  {'vectors':<14} {'s':>8} {'MB':>8} {'MB':>9} {'s':>7} {'open':>8} {'asked':>8} "
        f"{'ms':>8} {'ms':>8} {'ms':>8} {'@100':>8}"
    )
    for size in arguments.sizes:
        print("\n".join(measure(arguments, size)), flush=True)


if __name__ == "__main__":
    main()

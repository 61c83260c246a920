"""Passages to vectors, side by side in one process: `python -m tests.benchmarks.encoding --source FOLDER`.

Plain `SentenceTransformer.encode` in fp32 against ours as an index is built, in turns on the same passages; the ratio
is what counts, for seconds on one machine say little about another. Then how well the vectors agree.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from ragqa.corpus.formats import load_corpus
from ragqa.index.encoded import ENCODED_AT_ONCE
from ragqa.models.inference.precision import wait_passively

wait_passively()

from sentence_transformers import SentenceTransformer  # noqa: E402 - torch comes with it

from ragqa.retrieval.encoder import BertEncoder  # noqa: E402
from ragqa.retrieval.local_models import EMBEDDED, weights_of  # noqa: E402

ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True, help="a corpus")
    parser.add_argument("--limit", type=int, default=1500, help="passages, spread over the corpus")
    arguments = parser.parse_args()
    passages = load_corpus(arguments.source).passages
    step = max(1, len(passages) // arguments.limit)
    texts = [passage.text for passage in passages[::step]][: arguments.limit]
    plain = SentenceTransformer(str(weights_of(EMBEDDED).folder), device="cpu", local_files_only=True)
    encoders: dict[str, Callable[[list[str]], np.ndarray]] = {
        "SentenceTransformer.encode, fp32": lambda rows: plain.encode(rows, normalize_embeddings=True),
        "ragqa, fp32": _as_built(BertEncoder(precision="fp32")),
        "ragqa, default": _as_built(BertEncoder()),
    }
    for encode in encoders.values():
        encode(texts[:32])
    seconds: dict[str, list[float]] = {name: [] for name in encoders}
    vectors = {}
    for _ in range(ROUNDS):
        for name, encode in encoders.items():
            began = time.perf_counter()
            vectors[name] = encode(texts)
            seconds[name].append(time.perf_counter() - began)
    reference, *_ = encoders
    base = median(seconds[reference])
    print(f"{len(texts):,} passages of {arguments.source.name}, median of {ROUNDS} rounds in turns")
    for name, found in vectors.items():
        cosines = (found * vectors[reference]).sum(axis=1)
        spent = median(seconds[name])
        print(
            f"{name:>34}: {len(texts) / spent:6.0f} passages/s, {base / spent:.2f} times as fast, cosine with plain: "
            f"mean {cosines.mean():.5f}, least {cosines.min():.5f}"
        )


def _as_built(encoder: BertEncoder) -> Callable[[list[str]], np.ndarray]:
    """In the portions in which an index is built."""

    def encode(rows: list[str]) -> np.ndarray:
        starts = range(0, len(rows), ENCODED_AT_ONCE)
        return np.concatenate([encoder.encode(rows[start : start + ENCODED_AT_ONCE]) for start in starts])

    return encode


if __name__ == "__main__":
    main()

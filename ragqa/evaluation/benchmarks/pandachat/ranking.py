"""What PandaChat-RAG ranks with: an index of its texts in chunks of its size, and the pipeline's own fusion."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ragqa.corpus import load_corpus
from ragqa.errors import ConfigError
from ragqa.fusion import fuse
from ragqa.index import Index
from ragqa.plugins.protocols import Rescorer, Retriever
from ragqa.retrieval import rank
from ragqa.settings.config import FusionConfig, RetrievalConfig
from ragqa.types import Ranking

MAX_CHUNK_TOKENS: Final = 128  # words here; the benchmark's splitter counts 2.6 tokens (cl100k_base) to one of these
_WARM_UP: Final = "ogrevanje"  # ranked once before the first question: loading lazily is no question's time

Ranker = Callable[[str], Ranking]


def ranker_of(retrievers: Sequence[Retriever], retrieval: RetrievalConfig, fusion: FusionConfig) -> Ranker:
    """From a question's text to the fused ranking of its chunks, as the pipeline makes it before filtering.

    A retriever of weight 0, whose ranking would only be shown, is not asked, unless another one rescores what it finds.
    """
    weighted = tuple(retriever for retriever in retrievers if fusion.weights.get(retriever.name, 0) > 0)
    asked = retrievers if any(isinstance(retriever, Rescorer) for retriever in weighted) else weighted
    return lambda question: fuse(rank(asked, question, retrieval.top_k), fusion)


def warmed(ranker: Ranker) -> Ranker:
    """The ranker, which ranks something else before its first question."""
    cold, lock = [_WARM_UP], threading.Lock()

    def ranked(question: str) -> Ranking:
        with lock:
            while cold:
                ranker(cold.pop())
        return ranker(question)

    return ranked


def check_index(index: Index, data: Path) -> None:
    """Raises ConfigError unless this index is one of the data set's ``text_without_Q`` in chunks of 128 tokens at most.

    Raises CorpusError where ``data`` cannot be read.
    """
    manifest = index.manifest
    again = f"build one with `ragqa index build NAME --source {data}`, or name another with --index"
    if manifest.chunk_max_tokens > MAX_CHUNK_TOKENS:
        msg = (
            f"index {manifest.name!r} has chunks of up to {manifest.chunk_max_tokens} tokens; expected at most "
            f"{MAX_CHUNK_TOKENS}, the benchmark's rule; {again}"
        )
        raise ConfigError(msg)
    if (
        manifest.format != "pandachat"
        or manifest.corpus_sha256 != load_corpus(data, "pandachat", manifest.chunk_max_tokens).sha256
    ):
        msg = f"index {manifest.name!r} was made from {manifest.source!r}; expected one of the texts of {data}; {again}"
        raise ConfigError(msg)


def fits(data: Path, index: Index) -> bool:
    """Whether `check_index` takes it."""
    try:
        check_index(index, data)
    except ConfigError:
        return False
    return True

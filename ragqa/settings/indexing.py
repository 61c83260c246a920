"""Settings of an index: fixed once it is built."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ragqa.plugins import registry
from ragqa.settings.schema import PRECISIONS, Precision, check, check_all, setting

NO_ENCODER = "none"  # in place of an encoder's name: an index without vectors, for lexical retrieval only
_VECTORS = re.compile(r"Flat|SQ8|SQfp16|HNSW[1-9]\d{0,2}(_SQ8)?|IVF[1-9]\d{0,5},(Flat|SQ8|SQfp16|PQ[1-9]\d{0,3})")
_VECTOR_KINDS = "Flat, SQ8, SQfp16, HNSW32, HNSW32_SQ8, or IVF4096, with Flat, SQ8, SQfp16 or PQ48; numbers are yours"


@dataclass(frozen=True, slots=True)
class IndexingConfig:
    """How an index is built; recorded in its manifest."""

    bm25_k1: float = 1.2  # term-frequency saturation, > 0; best in a trial on ADGM questions
    bm25_b: float = setting(0.75, "BM25 b", 0.0, 1.0)  # length normalisation; the usual value
    encoder: str = "all-MiniLM-L6-v2"  # a name the model registry resolves, or "none": no vectors
    precision: Precision = setting("auto", "precision", choices=PRECISIONS)  # of vectors; auto: the faster one, timed
    analyser: str = ""  # one of `ragqa.english.words.ANALYSERS`; empty: chosen by the format or the passages
    context_passages: int = setting(3, "context", 0, 20)  # on each side of a passage; 0: no context ranking
    rankings: tuple[str, ...] = ()  # further ones: document, splade:MODEL, late:MODEL, dense:ENCODER (several)
    vectors: str = "Flat"  # a kind of FAISS index, see `ragqa.retrieval.dense`; Flat is exact, quick up to 200,000
    chunk_max_tokens: int = 128  # text corpora only: whitespace-separated tokens per chunk, >= 16 (PandaChat's limit)

    def __post_init__(self) -> None:
        check(self.bm25_k1 > 0, "BM25 k1", "above 0", self.bm25_k1)
        check_all(self)
        check(_VECTORS.fullmatch(self.vectors) is not None, "vectors", _VECTOR_KINDS, self.vectors)
        check(self.chunk_max_tokens >= 16, "chunk size", "at least 16 tokens", self.chunk_max_tokens)
        check(
            self.encoder != NO_ENCODER or self.vectors == "Flat",
            "vectors",
            "left out where the encoder is none",
            self.vectors,
        )
        *most, last = registry.further_rankings()
        expected = f"{', '.join(most)} or {last}, each once"
        for ranking in self.rankings:
            valid = registry.is_further_ranking(ranking) and ranking.partition(":")[2] not in {self.encoder, NO_ENCODER}
            check(valid, "a further ranking", expected, ranking)
        kinds = [name if name.startswith("dense:") else name.partition(":")[0] for name in self.rankings]
        check(len(set(kinds)) == len(kinds), "further rankings", expected, self.rankings)

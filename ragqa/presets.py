"""Named settings: each a choice somebody published or would want to compare with, and one line on what it does."""

from __future__ import annotations

from dataclasses import dataclass, field

from ragqa.config import FilteringConfig, FusionConfig, RetrievalConfig

__all__ = ["PRESETS", "Preset"]


@dataclass(frozen=True, slots=True)
class Preset:
    """Named settings with one line that says what they are for."""

    name: str
    explanation: str
    retrieval: RetrievalConfig = field(default_factory=RetrievalConfig)
    fusion: FusionConfig = field(default_factory=FusionConfig)
    filtering: FilteringConfig = field(default_factory=FilteringConfig)


PRESETS: tuple[Preset, ...] = (
    Preset(
        "RIRAG .70/.20",
        "The RIRAG paper's filter: relevance at least 0.70, no fall of 0.20 or more, at most ten passages.",
    ),
    Preset(
        "AUEB .90/.10",
        "AUEB's stricter filter. It was tuned on a commercial reranker's scores and does not carry over to min-max "
        "fused scores as it is: expect one or two passages.",
        filtering=FilteringConfig(threshold=0.9, max_drop=0.1),
    ),
    Preset(
        "no filter, k = 10",
        "The ten best passages whatever their scores: more coverage, more contradiction.",
        filtering=FilteringConfig(threshold=0.0, max_drop=1.0),
    ),
    Preset(
        "BM25 0.6 + dense 0.4",
        "Two rankings, as in the RIRAG paper: words and meaning, without the context of a passage.",
        fusion=FusionConfig.of(bm25=0.6, dense=0.4),
    ),
    Preset(
        "BM25 only",
        "Words alone. Exact terms and rule numbers win; paraphrases are missed.",
        fusion=FusionConfig.of(bm25=1),
    ),
    Preset(
        "dense only",
        "Meaning alone. Paraphrases win; exact rule numbers are missed.",
        fusion=FusionConfig.of(dense=1),
    ),
    Preset(
        "reciprocal rank fusion",
        "Ranks instead of scores. Robust when one retriever's scores are odd; the filter's threshold means less here.",
        fusion=FusionConfig.of("rrf", bm25=1, dense=1),
    ),
)

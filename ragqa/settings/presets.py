"""Named settings: published ones and others worth comparing, each with one line that explains it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ragqa.settings.config import RANKED, Config, FilteringConfig, FusionConfig, RerankingConfig, RetrievalConfig


@dataclass(frozen=True, slots=True)
class Preset:
    """Named settings with one line that explains their purpose.

    ``index`` names the index they were chosen on; empty: for any index. Weights may name rankings that few indexes
    have: `ragqa.retrieval.ranking.missing_rankings` lists those that an index lacks.
    """

    name: str
    explanation: str
    retrieval: RetrievalConfig = field(default_factory=RetrievalConfig)
    fusion: FusionConfig = field(default_factory=FusionConfig)
    filtering: FilteringConfig = field(default_factory=FilteringConfig)
    index: str = ""
    reranking: RerankingConfig = field(default_factory=RerankingConfig)

    @classmethod
    def of(cls, name: str, explanation: str, config: Config) -> Preset:
        """A preset for any index from the stages of ``config`` that presets cover."""
        return cls(name, explanation, config.retrieval, config.fusion, config.filtering, "", config.reranking)


def with_preset(config: Config, preset: Preset) -> Config:
    """The settings, replaced by those of the preset, and by its index if it names one."""
    return replace(
        config,
        index=preset.index or config.index,
        retrieval=preset.retrieval,
        fusion=preset.fusion,
        reranking=preset.reranking,
        filtering=preset.filtering,
    )


_RIRAG: tuple[tuple[str, str, str, str, str], ...] = (  # name, ranking, R@10 / M@10 without and with documents, how
    (
        "DRAGON+",
        "dense:dragon-plus",
        "74.3 / 58.1",
        "74.5 / 58.2",
        "the folder dragon-plus, both its towers in a Router",
    ),
    ("SPLADEv2", "splade", "75.7 / 60.4", "75.9 / 60.7", "such as naver/splade-cocondenser-ensembledistil"),
    ("ColBERTv2", "late", "77.7 / 63.0", "77.7 / 63.2", "colbert-ir/colbertv2.0"),
    (
        "NV-Embed-v2",
        "dense:openai:nvidia/NV-Embed-v2",
        "78.3 / 63.5",
        "78.2 / 63.6",
        "at a server that adds its instruction",
    ),
    (
        "BGE-EN-ICL",
        "dense:openai:BAAI/bge-en-icl",
        "77.1 / 62.4",
        "77.4 / 62.5",
        "0-shot, at a server that adds its instruction",
    ),
)
_OL3, _VL2, _VF2 = ("dense:openai:text-embedding-3-large", "dense:voyage:voyage-law-2", "dense:voyage:voyage-finance-2")
_RERANK_2 = RerankingConfig("voyage:rerank-2", depth=50, weight=1.0)  # N = 50 of figure 1; its order alone, 3.3
_AUEB: tuple[tuple[str, dict[str, float], str, str], ...] = (  # name, weights, R@10 / M@10, table
    ("AUEB OL3", {_OL3: 1}, "73.9 / 57.4", "1"),
    ("AUEB VL2", {_VL2: 1}, "77.1 / 62.8", "1"),
    ("AUEB VF2", {_VF2: 1}, "79.0 / 65.6", "1"),
    ("AUEB BM25 + OL3", {"bm25": 0.3, _OL3: 0.7}, "78.9 / 65.0", "2"),
    ("AUEB VL2 + VF2", {_VL2: 0.4, _VF2: 0.6}, "79.4 / 66.0", "2"),
    ("AUEB BM25 + VL2", {"bm25": 0.25, _VL2: 0.75}, "79.9 / 66.5", "2"),
    ("AUEB BM25 + VF2", {"bm25": 0.3, _VF2: 0.7}, "80.4 / 67.6", "2"),
    ("AUEB BM25 + VL2 + VF2", {"bm25": 0.25, _VL2: 0.2, _VF2: 0.55}, "81.1 / 69.0", "2"),
)


def _of_rirag() -> tuple[Preset, ...]:
    """RIRAG table 4: each ranking alone, then with BM25 over documents at its weight of .1."""
    found = [
        Preset(
            "RIRAG BM25 + documents",
            "RIRAG table 4: BM25 with BM25 over whole documents, R@10 / M@10 there 76.4 / 62.5, alone 76.1 / 62.4.",
            fusion=FusionConfig.of(bm25=0.9, document=0.1),
        )
    ]
    for name, ranking, alone, fused, how in _RIRAG:
        text = f"RIRAG table 4: {name} ({how})"
        found += [
            Preset(
                f"RIRAG {name}", f"{text}, R@10 / M@10 there {alone}.", fusion=FusionConfig.of("wsum", **{ranking: 1})
            ),
            Preset(
                f"RIRAG {name} + documents",
                f"{text} fused with BM25 over whole documents, R@10 / M@10 there {fused}.",
                fusion=FusionConfig.of("wsum", **{ranking: 0.9, "document": 0.1}),
            ),
        ]
    return tuple(found)


def _of_aueb() -> tuple[Preset, ...]:
    """AUEB tables 1 and 2, their final system under each filter of table 3, and those filters alone."""
    rows = [
        Preset(name, f"AUEB table {table}, R@10 / M@10 there {figures}.", fusion=FusionConfig("wsum", weights))
        for name, weights, figures, table in _AUEB
    ]
    filters = ((70, 20, 0.4708), (75, 5, 0.5006), (80, 5, 0.505), (85, 15, 0.5001), (90, 10, 0.5117))
    final = [
        Preset(
            "AUEB final" if (threshold, drop) == (90, 10) else f"AUEB final .{threshold:02.0f}/.{drop:02.0f}",
            f"AUEB's system with a filter of table 3 (RePASs there {repass:.4f}): the fusion of table 2's last row, "
            "whose best 50 Voyage's rerank-2 puts in its own order; R@10 / M@10 on the hidden test set 69.4 / 59.4. "
            "Their filter read the reranker's scores as they are, this one reads them min-max normalised.",
            fusion=rows[-1].fusion,
            filtering=FilteringConfig(threshold=threshold / 100, max_drop=drop / 100),
            reranking=_RERANK_2,
        )
        for threshold, drop, repass in reversed(filters)
    ]
    unranked = Preset(
        "AUEB final, not reranked",
        "AUEB's system without its reranker: the fusion of table 2's last row and the filter .90/.10, which then keeps "
        "one or two passages.",
        fusion=rows[-1].fusion,
        filtering=FilteringConfig(threshold=0.9, max_drop=0.1),
    )
    alone = [
        Preset(
            f"AUEB .{threshold:02.0f}/.{drop:02.0f}",
            f"A filter of AUEB table 3, tuned on a reranker's scores (RePASs there {repass:.4f}).",
            filtering=FilteringConfig(threshold=threshold / 100, max_drop=drop / 100),
        )
        for threshold, drop, repass in filters[1:4]
    ]
    return (*rows, *final, unranked, *alone)


_ADAPTED = "dense:all-MiniLM-L6-v2+encoder-adgm"  # the ranking that ranker-adgm-large reads
_WITH_ADAPTED = FusionConfig(weights={"bm25": 0.34, "context": 0.17, "dense": 0.09, "citations": 0.15, _ADAPTED: 0.25})
FORMER_NAMES = {"learned order": "learning to rank"}  # what 0.1.0 called a preset
PRESETS: tuple[Preset, ...] = (
    Preset(
        "learning to rank",
        "The best 50 passages are ranked by trees that have learnt from questions about rules; those of a relevance of "
        "at least 0.70 are kept, up to a fall of 0.20, at most ten. A corpus without vectors or not in English is "
        "ranked by fusion alone.",
        reranking=RANKED,
    ),
    Preset(
        "RIRAG .70/.20",
        "The RIRAG paper's filter: relevance at least 0.70, no fall of 0.20 or more, at most ten passages "
        "in the order of the fused scores.",
    ),
    Preset(
        "cross-encoder",
        "The selector of direct answers reads the best 40 passages with the question, a second a question. On 270 new "
        "questions about four collections of rules the answering passage is among ten for 86 % (71 % without), on the "
        "one collection of which it has read nothing for 80 % (69 %), on ADGM as without. English only.",
        reranking=RerankingConfig("answers-minilm-l12", depth=40, weight=0.4),
    ),
    Preset(
        "learning to rank, large",
        "As learning to rank, with one more ranking: by an encoder adapted to the same questions, which the index must "
        "have. R@10 / M@10 out of fold 83.3 / 71.1, where a rule and the rule it cites are needed 94.2 / 74.6. For "
        "regulation in English; on other corpora measure it first.",
        fusion=_WITH_ADAPTED,
        reranking=RerankingConfig("ranker-adgm-large", depth=50, weight=1.0),
    ),
    Preset(
        "adapted encoder",
        "The default with one more ranking: by an encoder adapted to 4,550 ADGM questions, which the index must have. "
        "R@10 / M@10 out of fold 82.1 / 68.3 (81.3 / 67.7 without), where a rule and the rule it cites are needed 90.6 "
        "/ 68.2 (87.6 / 65.5). On four other corpora in English not worse than the default, in Slovenian M@10 .4 less.",
        fusion=_WITH_ADAPTED,
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
        reranking=RANKED,
        filtering=FilteringConfig(threshold=0.0, max_drop=1.0),
    ),
    Preset(
        "BM25 0.6 + dense 0.4",
        "Two rankings, as in the RIRAG paper: words and meaning, without the context of a passage.",
        fusion=FusionConfig.of(bm25=0.6, dense=0.4),
    ),
    Preset(
        "BM25 only",
        "Lexical only. Exact terms and rule numbers win; paraphrases are missed.",
        fusion=FusionConfig.of(bm25=1),
    ),
    Preset(
        "dense only", "Dense only. Paraphrases win; exact rule numbers are missed.", fusion=FusionConfig.of(dense=1)
    ),
    Preset(
        "reciprocal rank fusion",
        "Ranks instead of scores. Robust when one retriever's scores are odd; the filter's threshold means less here.",
        fusion=FusionConfig.of("rrf", bm25=1, dense=1),
    ),
    *_of_rirag(),
    *_of_aueb(),
)

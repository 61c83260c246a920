"""All settings as one frozen tree of plain values, and the one place that reads the environment.

Objects are built from it in `ragqa.pipeline.load_pipeline`. Every field states its default, range and where the default
comes from. RIRAG = Gokhan et al. 2024, AUEB = Chasandras et al. 2025.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from ragqa.errors import ConfigError
from ragqa.types import ScoringMode

BM25Backend = Literal["bm25s", "rank_bm25"]
FusionMethod = Literal["wsum", "rrf"]
FURTHER_RANKINGS = ("document", "splade", "late", "dense")  # kinds of those an index may have besides its first three
GeneratorName = Literal[
    "concise", "extractive", "baseline", "llm", "obligations", "loc", "vrr", "fan-out", "fan-out-llm", "none"
]
NO_ENCODER = "none"  # in place of an encoder's name: an index without vectors, which ranks by words alone
LLM_GENERATORS = frozenset({"llm", "obligations", "loc", "vrr", "fan-out-llm"})  # those that ask a language model
CoverageInput = Literal["pair", "joined"]
SplitterName = Literal["nupunkt", "punkt"]
Precision = Literal["auto", "fp32", "bf16"]


def is_ranking_name(name: str) -> bool:
    """Whether a retriever may be called so: ``bm25``, ``context``, ``dense``, a further kind, or ``dense:ENCODER``."""
    return name in {"bm25", "context", *FURTHER_RANKINGS} or (name.startswith("dense:") and len(name) > len("dense:"))


def _check(condition: bool, name: str, expected: str, found: object) -> None:
    if not condition:
        msg = f"{name} must be {expected}, got {found!r}; change the setting and try again"
        raise ConfigError(msg)


_VECTORS = re.compile(r"Flat|SQ8|SQfp16|HNSW[1-9]\d{0,2}(_SQ8)?|IVF[1-9]\d{0,5},(Flat|SQ8|SQfp16|PQ[1-9]\d{0,3})")
_VECTOR_KINDS = "Flat, SQ8, SQfp16, HNSW32, HNSW32_SQ8, or IVF4096, with Flat, SQ8, SQfp16 or PQ48; numbers are yours"


@dataclass(frozen=True, slots=True)
class IndexingConfig:
    """How an index is built; recorded in its manifest, fixed once built."""

    bm25_k1: float = 1.2  # term-frequency saturation, > 0; best in a trial on ADGM questions
    bm25_b: float = 0.75  # length normalisation in [0, 1]; the usual value
    encoder: str = "all-MiniLM-L6-v2"  # a name the model registry resolves, or "none": no vectors
    precision: Precision = "auto"  # of the passages' vectors: bf16 where the processor has instructions for it
    analyser: str = ""  # one of `ragqa.analysers.ANALYSERS`; empty: regulation for rulebooks, english for text
    context_passages: int = (
        3  # on each side of a passage, read with it by the context ranking, 0 to 20; 0: no such ranking
    )
    rankings: tuple[str, ...] = ()  # further ones: document, splade:MODEL, late:MODEL, dense:ENCODER (several)
    vectors: str = "Flat"  # a kind of FAISS index, see `ragqa.retrieval.vectors`; Flat is exact, quick up to 200,000
    chunk_max_tokens: int = 128  # text corpora only: whitespace-separated tokens per chunk, >= 16 (PandaChat's limit)

    def __post_init__(self) -> None:
        _check(self.bm25_k1 > 0, "BM25 k1", "above 0", self.bm25_k1)
        _check(0 <= self.bm25_b <= 1, "BM25 b", "in [0, 1]", self.bm25_b)
        _check(self.precision in get_args(Precision), "precision", "auto, fp32 or bf16", self.precision)
        _check(0 <= self.context_passages <= 20, "context", "0 to 20 passages", self.context_passages)
        _check(_VECTORS.fullmatch(self.vectors) is not None, "vectors", _VECTOR_KINDS, self.vectors)
        _check(self.chunk_max_tokens >= 16, "chunk size", "at least 16 tokens", self.chunk_max_tokens)
        _check(
            self.encoder != NO_ENCODER or self.vectors == "Flat",
            "vectors",
            "left out where the encoder is none",
            self.vectors,
        )
        expected = "document, splade:MODEL, late:MODEL or dense:ENCODER, each once"
        for ranking in self.rankings:
            kind, _, model = ranking.partition(":")
            known = kind in FURTHER_RANKINGS and bool(model.strip()) == (kind != "document")
            _check(known and model not in {self.encoder, NO_ENCODER}, "a further ranking", expected, ranking)
        kinds = [name if name.startswith("dense:") else name.partition(":")[0] for name in self.rankings]
        _check(len(set(kinds)) == len(kinds), "further rankings", expected, self.rankings)


@dataclass(frozen=True, slots=True)
class RetrievalConfig:
    """How many candidates each retriever returns, and which BM25 library ranks."""

    top_k: int = 100  # candidates per retriever, 1 to 1000; RIRAG A.7 normalises over the top 100
    bm25_backend: BM25Backend = "bm25s"  # rank_bm25 gives the same ranking hundreds of times slower

    def __post_init__(self) -> None:
        _check(1 <= self.top_k <= 1000, "retrieval top-k", "in 1..1000", self.top_k)
        _check(self.bm25_backend in get_args(BM25Backend), "BM25 library", "bm25s or rank_bm25", self.bm25_backend)


def _default_weights() -> dict[str, float]:
    return {"bm25": 0.45, "context": 0.25, "dense": 0.3}  # of a few tried on ObliQA dev, see `ragqa eval retrieval`


@dataclass(frozen=True, slots=True)
class FusionConfig:
    """How the rankings of any number of retrievers are merged."""

    method: FusionMethod = "wsum"  # min-max weighted sum (RIRAG A.7, AUEB eq. 1) or reciprocal rank fusion
    weights: Mapping[str, float] = field(default_factory=_default_weights)  # by retriever, in [0, 1], summing to 1

    def __post_init__(self) -> None:
        _check(self.method in get_args(FusionMethod), "fusion method", "wsum or rrf", self.method)
        total = math.fsum(self.weights.values())
        valid = all(0 <= weight <= 1 for weight in self.weights.values()) and abs(total - 1) < 1e-6
        _check(valid, "fusion weights", "in [0, 1] and sum to 1", dict(self.weights))

    @classmethod
    def of(cls, method: FusionMethod = "wsum", **shares: float) -> FusionConfig:
        """Weights in the proportion of these shares, at least 0 and not all 0: ``of(bm25=3, dense=2)`` is .6 and .4."""
        total = math.fsum(shares.values())
        _check(all(share >= 0 for share in shares.values()) and 0 < total < math.inf, "shares", "0 or more", shares)
        return cls(method, {name: share / total for name, share in shares.items() if share})


@dataclass(frozen=True, slots=True)
class RerankingConfig:
    """Whether a reranker reads the best passages once more before filtering, and how much it counts."""

    model: str = ""  # ranker-adgm, a folder, a hub name, voyage:MODEL or openai:MODEL; empty: none
    depth: int = 50  # fused passages it reads, 1 to 1000; AUEB 3, the best they tried
    weight: float = 0.3  # of its min-max score against the fused one, in [0, 1]; best on ADGM; 1: it alone, as AUEB 3

    def __post_init__(self) -> None:
        _check(1 <= self.depth <= 1000, "rerank depth", "in 1..1000", self.depth)
        _check(0 <= self.weight <= 1, "rerank weight", "in [0, 1]", self.weight)


@dataclass(frozen=True, slots=True)
class FilteringConfig:
    """What survives: RIRAG 5.2, AUEB 4.1. Scores are re-normalised to [0, 1] over the fused candidates first."""

    threshold: float = 0.7  # lowest relevance kept, in [0, 1]; RIRAG 5.2
    max_drop: float = 0.2  # a fall this large or larger ends the list, in [0, 1], 1 = off; RIRAG 5.2
    top_k: int = 10  # most passages kept, 1 to 100; RIRAG 5.2

    def __post_init__(self) -> None:
        _check(0 <= self.threshold <= 1, "threshold", "in [0, 1]", self.threshold)
        _check(0 <= self.max_drop <= 1, "max drop", "in [0, 1]", self.max_drop)
        _check(1 <= self.top_k <= 100, "top-k", "in 1..100", self.top_k)


@dataclass(frozen=True, slots=True)
class GenerationConfig:
    """Who writes the answer. The key itself is never stored here: see `Config.from_env`."""

    generator: GeneratorName = "concise"  # needs no language model; "none" stops at the passages
    max_sentences: int = 12  # extractive: most sentences quoted, 1 to 100; a page's worth; concise: no more than these
    model: str = "gpt-4o-mini"  # LLM: name sent to the server
    base_url: str = ""  # LLM: OpenAI-compatible server, empty for the client's own default
    temperature: float = 0.0  # LLM: in [0, 2]; 0 for answers that can be repeated
    max_tokens: int = 800  # LLM: most tokens in the answer, 1 to 32768
    timeout_seconds: float = 60.0  # LLM: per request and between two pieces of a stream, > 0
    max_retries: int = 2  # LLM: further tries after 429, 5xx or a connection error, 0 to 10
    seed: int | None = None  # LLM: sent where given, one more for each further candidate or try; 0 to 2^31 - 1
    tries: int = 3  # LOC: most tries per obligation, 1 to 10; K of AUEB 4.4
    candidates: int = 5  # VRR: answers to choose from, 1 to 20; N of AUEB's released code
    rounds: int = 3  # VRR: most rounds of removing and inserting, 0 to 10; AUEB table 7, whose last step ends round 3
    candidate_temperature: float = 1.0  # VRR's candidates and LOC's second and later tries, in [0, 2]; AUEB's own
    max_sub_questions: int = 8  # fan-outs: most sub-questions in all, 1 to 30; FanOutQA's questions have 7 on average
    depth: int = 2  # fan-out-llm: 2 where an answer may ask further sub-questions, as FanOutQA's trees do; 1 or 2
    max_calls: int = 30  # LOC, VRR, fan-out-llm: most completions in one answer, 1 to 1000; retries of one count as it
    parallel_calls: int = 4  # LOC, VRR, fan-out-llm: completions under way at the same time, 1 to 16

    def __post_init__(self) -> None:
        names = get_args(GeneratorName)
        _check(self.generator in names, "generator", f"{', '.join(names[:-1])} or {names[-1]}", self.generator)
        _check(1 <= self.max_sentences <= 100, "most sentences", "in 1..100", self.max_sentences)
        _check(0 <= self.temperature <= 2, "temperature", "in [0, 2]", self.temperature)
        _check(1 <= self.max_tokens <= 32768, "most tokens", "in 1..32768", self.max_tokens)
        _check(self.timeout_seconds > 0, "time-out", "above 0 seconds", self.timeout_seconds)
        _check(0 <= self.max_retries <= 10, "retries", "in 0..10", self.max_retries)
        _check(self.seed is None or 0 <= self.seed < 2**31, "seed", "in 0..2147483647 or None", self.seed)
        _check(1 <= self.tries <= 10, "tries", "in 1..10", self.tries)
        _check(1 <= self.candidates <= 20, "candidates", "in 1..20", self.candidates)
        _check(0 <= self.rounds <= 10, "rounds", "in 0..10", self.rounds)
        hot = self.candidate_temperature
        _check(0 <= hot <= 2, "candidate temperature", "in [0, 2]", hot)
        _check(1 <= self.max_sub_questions <= 30, "most sub-questions", "in 1..30", self.max_sub_questions)
        _check(1 <= self.depth <= 2, "depth", "1 or 2", self.depth)
        _check(1 <= self.max_calls <= 1000, "most calls", "in 1..1000", self.max_calls)
        _check(1 <= self.parallel_calls <= 16, "parallel calls", "in 1..16", self.parallel_calls)


@dataclass(frozen=True, slots=True)
class ScoringConfig:
    """How RePASs is computed and read."""

    mode: ScoringMode = ScoringMode.PAPER  # the definition shown first; both are always computed
    coverage_threshold: float = 0.7  # an obligation is covered above this P(entailment), in [0, 1]; RIRAG 4
    verdict_threshold: float = 0.5  # E or C at or above this decides the verdict, in [0, 1]
    entailment_model: str = "nli-minilm-l6"  # a name the model registry resolves; RAGQA_ENTAILMENT_MODEL
    coverage_model: str = "nli-minilm-l6"  # likewise; RAGQA_COVERAGE_MODEL
    coverage_input: CoverageInput = "pair"  # "joined": one text "answer sentence [SEP] obligation", as the script does
    obligation_model: str = "obligations-tfidf"  # likewise; RAGQA_OBLIGATION_MODEL
    sentence_splitter: SplitterName = "nupunkt"  # punkt (NLTK, where its data is installed) splits as the script does
    precision: Precision = "auto"  # of the NLI arithmetic: bf16 where the processor has instructions for it

    def __post_init__(self) -> None:
        _check(self.mode in set(ScoringMode), "RePASs mode", "paper or script", self.mode)
        _check(0 <= self.coverage_threshold <= 1, "coverage threshold", "in [0, 1]", self.coverage_threshold)
        _check(0 <= self.verdict_threshold <= 1, "verdict threshold", "in [0, 1]", self.verdict_threshold)
        _check(self.coverage_input in get_args(CoverageInput), "coverage input", "pair or joined", self.coverage_input)
        _check(
            self.sentence_splitter in get_args(SplitterName),
            "sentence splitter",
            "nupunkt or punkt",
            self.sentence_splitter,
        )
        _check(self.precision in get_args(Precision), "precision", "auto, fp32 or bf16", self.precision)


SCORING_PROFILES: dict[str, ScoringConfig] = {
    "embedded": ScoringConfig(),
    # What RegNLP/RePASs scripts/evaluate_model.py loads; the last is a folder that its authors never published.
    "reference": ScoringConfig(
        mode=ScoringMode.SCRIPT,
        entailment_model="cross-encoder/nli-deberta-v3-xsmall",
        coverage_model="microsoft/deberta-large-mnli",
        coverage_input="joined",
        obligation_model="./models/obligation-classifier-legalbert",
        sentence_splitter="punkt",
        precision="fp32",
    ),
}


def scoring_from_env(environ: Mapping[str, str] | None = None) -> ScoringConfig:
    """The profile that ``RAGQA_SCORING_PROFILE`` names, with the models named one by one in its place.

    ``RAGQA_ENTAILMENT_MODEL``, ``RAGQA_COVERAGE_MODEL`` and ``RAGQA_OBLIGATION_MODEL`` each take an embedded name, the
    path of a local folder or a hub name. Where only the entailment model is named, coverage uses it too.
    """
    env = os.environ if environ is None else environ
    name = env.get("RAGQA_SCORING_PROFILE") or "embedded"
    _check(name in SCORING_PROFILES, "RAGQA_SCORING_PROFILE", " or ".join(SCORING_PROFILES), name)
    return scoring_with(
        SCORING_PROFILES[name],
        env.get("RAGQA_ENTAILMENT_MODEL") or "",
        env.get("RAGQA_COVERAGE_MODEL") or "",
        env.get("RAGQA_OBLIGATION_MODEL") or "",
    )


def scoring_with(
    scoring: ScoringConfig, entailment: str = "", coverage: str = "", obligation: str = ""
) -> ScoringConfig:
    """The configuration with these models in place of its own; an empty name leaves that one as it is.

    An entailment model named alone is used for coverage too, unless the profile has another model for coverage.
    """
    if entailment and not coverage and scoring.coverage_model == scoring.entailment_model:
        coverage = entailment
    return replace(
        scoring,
        entailment_model=entailment or scoring.entailment_model,
        coverage_model=coverage or scoring.coverage_model,
        obligation_model=obligation or scoring.obligation_model,
    )


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that decides an answer, one part per stage."""

    index: str = "rulebook"  # name of an index; RAGQA_INDEX
    retrieval: RetrievalConfig = field(default_factory=RetrievalConfig)
    fusion: FusionConfig = field(default_factory=FusionConfig)
    reranking: RerankingConfig = field(default_factory=RerankingConfig)
    filtering: FilteringConfig = field(default_factory=FilteringConfig)
    generation: GenerationConfig = field(default_factory=GenerationConfig)
    scoring: ScoringConfig = field(default_factory=ScoringConfig)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Config:
        """The defaults with what the environment says.

        ``RAGQA_INDEX`` names the corpus opened first; ``RAGQA_MODEL`` and ``OPENAI_BASE_URL`` the language model, which
        is chosen when a key or a server is given (`has_llm`). The key itself is never kept here.
        """
        env = os.environ if environ is None else environ
        generation = GenerationConfig(
            generator="llm" if has_llm(env) else "concise",
            model=env.get("RAGQA_MODEL") or GenerationConfig().model,
            base_url=env.get("OPENAI_BASE_URL", ""),
        )
        index = env.get("RAGQA_INDEX") or "rulebook"
        return cls(index=index, generation=generation, scoring=scoring_from_env(env))


def has_llm(environ: Mapping[str, str] | None = None) -> bool:
    """Whether a language model is configured: a key, or a server of one's own (which may need none)."""
    env = os.environ if environ is None else environ
    return bool(env.get("OPENAI_API_KEY") or env.get("OPENAI_BASE_URL"))


def api_key(environ: Mapping[str, str] | None = None) -> str | None:
    """``OPENAI_API_KEY``; for the generator only, never for a record, a log or a message."""
    env = os.environ if environ is None else environ
    return env.get("OPENAI_API_KEY") or None


def prompt_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """``RAGQA_PROMPTS``, the folder whose files take the place of the prompts that come with ragqa; None: not set."""
    env = os.environ if environ is None else environ
    return Path(env["RAGQA_PROMPTS"]).expanduser() if env.get("RAGQA_PROMPTS") else None

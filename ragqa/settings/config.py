"""All settings as one frozen tree of plain values; `ragqa.settings.environment` lists those read from variables.

Objects are built from it in `ragqa.pipeline` and `ragqa.loading`. Every field states its default, range and where the
default comes from. RIRAG = Gokhan et al. 2024, AUEB = Chasandras et al. 2025.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, Literal, get_args

from ragqa.errors import ConfigError
from ragqa.plugins import registry
from ragqa.types.scores import ScoringMode

BM25Backend = Literal["bm25s", "rank_bm25"]
FusionMethod = Literal["wsum", "rrf"]
FilterMethod = Literal["limits", "expected-f2"]
NO_ENCODER = "none"  # in place of an encoder's name: an index without vectors, which ranks by words alone
CoverageInput = Literal["pair", "joined"]
SplitterName = Literal["nupunkt", "punkt"]
Precision = Literal["auto", "fp32", "bf16"]


@dataclass(frozen=True, slots=True)
class Range:
    """Where a number of the settings must lie: in [``low``, ``high``]. ``name`` is what messages call it."""

    name: str
    low: float
    high: float
    explanation: str = ""

    @property
    def words(self) -> str:
        """``"1..20"`` of whole numbers, ``"[0, 1]"`` of others."""
        return f"{self.low}..{self.high}" if isinstance(self.low, int) else f"[{self.low:g}, {self.high:g}]"


def _ranged(default: float, low: float, high: float, name: str, explanation: str = "") -> Any:  # noqa: ANN401
    """A field with this range; whole numbers where ``low`` is one. ``explanation`` is for whoever chooses a value."""
    return field(default=default, metadata={"range": Range(name, low, high, explanation)})


def ranges(settings: type | object) -> dict[str, Range]:
    """The ranges of a class of settings, by field."""
    return {one.name: one.metadata["range"] for one in fields(settings) if "range" in one.metadata}  # type: ignore[arg-type]


def _check_ranges(settings: object) -> None:
    for name, allowed in ranges(settings).items():
        value = getattr(settings, name)
        _check(allowed.low <= value <= allowed.high, allowed.name, f"in {allowed.words}", value)


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
    bm25_b: float = _ranged(0.75, 0.0, 1.0, "BM25 b")  # length normalisation; the usual value
    encoder: str = "all-MiniLM-L6-v2"  # a name the model registry resolves, or "none": no vectors
    precision: Precision = "auto"  # of the passages' vectors: the faster one on this machine, timed once
    analyser: str = ""  # one of `ragqa.english.analysers.ANALYSERS`; empty: regulation for rulebooks, english for text
    context_passages: int = _ranged(3, 0, 20, "context")  # on each side of a passage; 0: no context ranking
    rankings: tuple[str, ...] = ()  # further ones: document, splade:MODEL, late:MODEL, dense:ENCODER (several)
    vectors: str = "Flat"  # a kind of FAISS index, see `ragqa.retrieval.vectors`; Flat is exact, quick up to 200,000
    chunk_max_tokens: int = 128  # text corpora only: whitespace-separated tokens per chunk, >= 16 (PandaChat's limit)

    def __post_init__(self) -> None:
        _check(self.bm25_k1 > 0, "BM25 k1", "above 0", self.bm25_k1)
        _check_ranges(self)
        _check(self.precision in get_args(Precision), "precision", "auto, fp32 or bf16", self.precision)
        _check(_VECTORS.fullmatch(self.vectors) is not None, "vectors", _VECTOR_KINDS, self.vectors)
        _check(self.chunk_max_tokens >= 16, "chunk size", "at least 16 tokens", self.chunk_max_tokens)
        _check(
            self.encoder != NO_ENCODER or self.vectors == "Flat",
            "vectors",
            "left out where the encoder is none",
            self.vectors,
        )
        *most, last = registry.further_rankings()
        expected = f"{', '.join(most)} or {last}, each once"
        for ranking in self.rankings:
            valid = registry.is_further_ranking(ranking) and ranking.partition(":")[2] not in {self.encoder, NO_ENCODER}
            _check(valid, "a further ranking", expected, ranking)
        kinds = [name if name.startswith("dense:") else name.partition(":")[0] for name in self.rankings]
        _check(len(set(kinds)) == len(kinds), "further rankings", expected, self.rankings)


@dataclass(frozen=True, slots=True)
class RetrievalConfig:
    """How many candidates each retriever returns, and which BM25 library ranks."""

    top_k: int = _ranged(100, 1, 1000, "retrieval top-k")  # candidates per retriever; RIRAG A.7 normalises over 100
    bm25_backend: BM25Backend = "bm25s"  # rank_bm25 gives the same ranking hundreds of times slower

    def __post_init__(self) -> None:
        _check_ranges(self)
        _check(self.bm25_backend in get_args(BM25Backend), "BM25 library", "bm25s or rank_bm25", self.bm25_backend)


def _default_weights() -> dict[str, float]:
    return {"bm25": 0.45, "context": 0.25, "dense": 0.3}  # of a few tried on ObliQA dev, see `ragqa eval retrieval`


CITATIONS_WEIGHT: Final = 0.15  # of citations followed, where nobody chose weights and the index has them


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

    model: str = ""  # ranker-adgm, ranker-adgm-large, a folder, a hub name, voyage:MODEL or openai:MODEL; empty: none
    depth: int = _ranged(50, 1, 1000, "rerank depth")  # fused passages it reads; AUEB 3, the best they tried
    weight: float = _ranged(0.3, 0.0, 1.0, "rerank weight")  # of its min-max score; best on ADGM; 1: it alone, AUEB 3

    def __post_init__(self) -> None:
        _check_ranges(self)


@dataclass(frozen=True, slots=True)
class FilteringConfig:
    """What survives: RIRAG 5.2, AUEB 4.1. Scores are re-normalised to [0, 1] over the fused candidates first.

    ``expected-f2`` cuts where the expected F2 of what is kept is highest, and reads neither threshold nor max drop.
    """

    threshold: float = _ranged(0.7, 0.0, 1.0, "threshold")  # lowest relevance kept; RIRAG 5.2
    max_drop: float = _ranged(0.2, 0.0, 1.0, "max drop")  # a fall this large ends the list, 1 = off; RIRAG 5.2
    top_k: int = _ranged(10, 1, 100, "top-k")  # most passages kept; RIRAG 5.2
    method: FilterMethod = "limits"  # the three above, or a learned cut: see `ragqa.filtering`

    def __post_init__(self) -> None:
        _check_ranges(self)
        _check(self.method in get_args(FilterMethod), "filter method", "limits or expected-f2", self.method)


@dataclass(frozen=True, slots=True)
class GenerationConfig:
    """Who writes the answer. The key itself is never stored here: see `Config.from_env`."""

    generator: str = "direct"  # needs no language model; "none" stops at the passages; see `ragqa.plugins.registry`
    max_sentences: int = _ranged(12, 1, 100, "most sentences")  # extractive: a page's worth; concise: fewer
    quote_anyway: bool = False  # direct, llm: answer from the nearest sentences what the corpus seems not to answer
    model: str = "gpt-4o-mini"  # LLM: name sent to the server
    base_url: str = ""  # LLM: OpenAI-compatible server, empty for the client's own default
    local_model: str = ""  # LLM on this machine, before any server: a catalogued name or a GGUF file
    temperature: float = _ranged(0.0, 0.0, 2.0, "temperature")  # LLM: 0 for answers that can be repeated
    max_tokens: int = _ranged(800, 1, 32768, "most tokens")  # LLM: in the answer
    timeout_seconds: float = 60.0  # LLM: per request and between two pieces of a stream, > 0
    max_retries: int = _ranged(2, 0, 10, "retries")  # LLM: further tries after 429, 5xx or a connection error
    seed: int | None = None  # LLM: sent where given, one more for each further candidate or try; 0 to 2^31 - 1
    tries: int = _ranged(3, 1, 10, "tries", "Most answers to one obligation until one covers it.")  # K of AUEB 4.4
    candidates: int = _ranged(5, 1, 20, "candidates", "Answers to choose from, by their RePASs.")  # N of AUEB's code
    rounds: int = _ranged(3, 0, 10, "rounds", "Most rounds of removing and inserting.")  # AUEB table 7: ends round 3
    candidate_temperature: float = _ranged(1.0, 0.0, 2.0, "candidate temperature")  # and LOC's later tries; AUEB's own
    max_sub_questions: int = _ranged(  # FanOutQA's questions have 7 on average
        8, 1, 30, "most sub-questions", "Most questions asked in all, those of the second level included."
    )
    depth: int = _ranged(2, 1, 2, "depth", "2: an answer may ask further sub-questions.")  # as FanOutQA's trees do
    max_calls: int = _ranged(30, 1, 1000, "most calls", "Most completions in one answer; retries are not counted.")
    parallel_calls: int = _ranged(4, 1, 16, "parallel calls")  # LOC, VRR, fan-out-llm: completions at the same time

    def __post_init__(self) -> None:
        if not _ANY_GENERATOR.get():
            *names, last = registry.names(registry.GENERATORS)
            known = registry.is_known(registry.GENERATORS, self.generator)
            _check(known, "generator", f"{', '.join(names)} or {last}", self.generator)
        _check_ranges(self)
        _check(self.timeout_seconds > 0, "time-out", "above 0 seconds", self.timeout_seconds)
        _check(self.seed is None or 0 <= self.seed < 2**31, "seed", "in 0..2147483647 or None", self.seed)


_ANY_GENERATOR: ContextVar[bool] = ContextVar("_ANY_GENERATOR", default=False)


@contextmanager
def any_generator() -> Iterator[None]:
    """Here settings may name a generator whose package is gone: a record of it can still be read."""
    token = _ANY_GENERATOR.set(True)
    try:
        yield
    finally:
        _ANY_GENERATOR.reset(token)


def option_ranges() -> dict[str, str]:
    """What values a generator's options take, in words: for `ragqa.plugins.registry.parts_table` and ``--help``."""
    plain = GenerationConfig()
    return {name: f"{one.low} to {one.high}, {getattr(plain, name)}" for name, one in ranges(plain).items()}


def option_help(name: str) -> str:
    """A line on this option of generators, and which of ragqa's own read it."""
    readers = ", ".join(part.name for part in registry.ours(registry.GENERATORS) if name in part.options)
    found = ranges(GenerationConfig)[name]
    return f"{readers}: {found.explanation[:1].lower()}{found.explanation[1:-1]}, {found.low} to {found.high}."


@dataclass(frozen=True, slots=True)
class ScoringConfig:
    """How RePASs is computed and read."""

    mode: ScoringMode = ScoringMode.PAPER  # the definition shown first; both are always computed
    coverage_threshold: float = _ranged(0.7, 0.0, 1.0, "coverage threshold")  # of P(entailment); RIRAG 4
    verdict_threshold: float = _ranged(0.5, 0.0, 1.0, "verdict threshold")  # E or C at or above it decides
    entailment_model: str = "nli-minilm-l6"  # a name the model registry resolves; RAGQA_ENTAILMENT_MODEL
    coverage_model: str = "nli-minilm-l6"  # likewise; RAGQA_COVERAGE_MODEL
    coverage_input: CoverageInput = "pair"  # "joined": one text "answer sentence [SEP] obligation", as the script does
    verdict_model: str = ""  # likewise, of verdicts; RAGQA_VERDICT_MODEL; "": the embedded verifier
    obligation_model: str = "obligations-tfidf"  # likewise; RAGQA_OBLIGATION_MODEL
    sentence_splitter: SplitterName = "nupunkt"  # punkt (NLTK, where its data is installed) splits as the script does
    precision: Precision = "auto"  # of the NLI arithmetic: the faster one on this machine, timed once

    def __post_init__(self) -> None:
        _check(self.mode in set(ScoringMode), "RePASs mode", "paper or script", self.mode)
        _check_ranges(self)
        _check(self.coverage_input in get_args(CoverageInput), "coverage input", "pair or joined", self.coverage_input)
        splitter = self.sentence_splitter
        _check(splitter in get_args(SplitterName), "sentence splitter", "nupunkt or punkt", splitter)
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

    ``RAGQA_ENTAILMENT_MODEL``, ``RAGQA_COVERAGE_MODEL``, ``RAGQA_VERDICT_MODEL`` and ``RAGQA_OBLIGATION_MODEL`` each
    take an embedded name, the path of a local folder or a hub name. Where only the entailment model is named, coverage
    uses it too, and verdicts unless they are given one of their own.
    """
    env = os.environ if environ is None else environ
    name = env.get("RAGQA_SCORING_PROFILE") or "embedded"
    _check(name in SCORING_PROFILES, "RAGQA_SCORING_PROFILE", " or ".join(SCORING_PROFILES), name)
    return scoring_with(
        SCORING_PROFILES[name],
        env.get("RAGQA_ENTAILMENT_MODEL") or "",
        env.get("RAGQA_COVERAGE_MODEL") or "",
        env.get("RAGQA_OBLIGATION_MODEL") or "",
        env.get("RAGQA_VERDICT_MODEL") or "",
    )


def scoring_with(
    scoring: ScoringConfig, entailment: str = "", coverage: str = "", obligation: str = "", verdict: str = ""
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
        verdict_model=verdict or scoring.verdict_model,
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
        is chosen when a key or a server is given (`has_llm`), ``RAGQA_LOCAL_MODEL`` one on this machine, which goes
        before them. The key itself is never kept here.
        """
        env = os.environ if environ is None else environ
        generation = GenerationConfig(
            generator="llm" if has_llm(env) else "direct",
            model=env.get("RAGQA_MODEL") or GenerationConfig().model,
            base_url=env.get("OPENAI_BASE_URL", ""),
            local_model=env.get("RAGQA_LOCAL_MODEL", ""),
        )
        index = env.get("RAGQA_INDEX") or "rulebook"
        return cls(index=index, generation=generation, scoring=scoring_from_env(env))


def has_llm(environ: Mapping[str, str] | None = None) -> bool:
    """Whether a language model is configured: one behind a server, or one on this machine."""
    env = os.environ if environ is None else environ
    return has_server(env) or bool(env.get("RAGQA_LOCAL_MODEL"))


def has_server(environ: Mapping[str, str] | None = None) -> bool:
    """Whether a server of language models is configured: a key, or a server of one's own (which may need none)."""
    env = os.environ if environ is None else environ
    return bool(env.get("OPENAI_API_KEY") or env.get("OPENAI_BASE_URL"))


def api_key(environ: Mapping[str, str] | None = None) -> str | None:
    """``OPENAI_API_KEY``; for the generator only, never for a record, a log or a message."""
    env = os.environ if environ is None else environ
    return env.get("OPENAI_API_KEY") or None


def prompt_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """``RAGQA_PROMPTS``, the folder of prompts that replace the bundled ones; None: not set."""
    env = os.environ if environ is None else environ
    return Path(env["RAGQA_PROMPTS"]).expanduser() if env.get("RAGQA_PROMPTS") else None


def page_models(environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """``RAGQA_PAGE_MODELS``: rerankers, with commas between them, that the page offers beside those of the registry."""
    env = os.environ if environ is None else environ
    return tuple(filter(None, (name.strip() for name in env.get("RAGQA_PAGE_MODELS", "").split(","))))

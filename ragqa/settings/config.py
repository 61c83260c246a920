"""All settings as one frozen tree of plain values; `ragqa.settings.environment` lists those read from variables.

`ragqa.pipeline` and `ragqa.loading` build objects from it. Every field is declared once, with its range, its meaning
and the source of its default; `ragqa.settings.schema` says who reads these. RIRAG = Gokhan et al. 2024, AUEB =
Chasandras et al. 2025.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from ragqa.plugins import registry
from ragqa.settings.environment import has_llm
from ragqa.settings.indexing import IndexingConfig as IndexingConfig
from ragqa.settings.schema import Checked, Place, SettingSpec, check, check_all, declared, library, setting
from ragqa.settings.scoring import ScoringConfig as ScoringConfig
from ragqa.settings.scoring import scoring_from_env

BM25Backend = Literal["bm25s", "rank_bm25"]
FusionMethod = Literal["wsum", "rrf"]
FilterMethod = Literal["limits", "expected-f2"]


@dataclass(frozen=True, slots=True)
class RetrievalConfig(Checked):
    """The number of candidates of each retriever, and the BM25 library."""

    top_k: int = setting(
        100,
        "retrieval top-k",
        1,
        1000,
        help="Number of passages that each ranking finds.",
        source="RIRAG A.7 normalises over 100",
        label="Candidates of each ranking",
        key="retrieval_top_k",
        places=Place.DIFFERENCE,
    )
    bm25_backend: BM25Backend = setting(
        "bm25s",
        "BM25 library",
        help="BM25 library. rank_bm25 gives the same ranking hundreds of times slower.",
        choices={"bm25s": "bm25s", "rank_bm25": "rank_bm25"},
        option="bm25-library",
        places=Place.OPTION,
    )


CITATIONS_WEIGHT: Final = 0.15  # of followed citations, if no weights were chosen and the index has references


@dataclass(frozen=True, slots=True)
class FusionConfig:
    """How the rankings of the retrievers are fused."""

    method: FusionMethod = setting(
        "wsum",
        "fusion method",
        help="How the rankings are combined. Weighted sum: their scores, each scaled to 0 to 1, times the weights. "
        "Reciprocal rank: only the ranks count, 1 / (60 + rank).",
        source="RIRAG A.7, AUEB eq. 1",
        choices={"wsum": "weighted sum", "rrf": "reciprocal rank"},
        key="fusion",
        label="Fusion",
    )
    # By retriever, in [0, 1], with sum 1; the best of a few tried on ObliQA dev, see `ragqa eval retrieval`.
    weights: Mapping[str, float] = field(default_factory=lambda: {"bm25": 0.45, "context": 0.25, "dense": 0.3})

    def __post_init__(self) -> None:
        check_all(self)
        weights = self.weights.values()
        valid = all(0 <= weight <= 1 for weight in weights) and abs(math.fsum(weights) - 1) < 1e-6
        check(valid, "fusion weights", "in [0, 1] and sum to 1", dict(self.weights))

    @classmethod
    def of(cls, method: FusionMethod = "wsum", **shares: float) -> FusionConfig:
        """Weights in proportion to these shares, each at least 0 and not all 0: ``of(bm25=3, dense=2)`` is .6, .4."""
        valid = all(0 <= share <= 1e300 for share in shares.values()) and any(shares.values())
        check(valid, "shares", "in 0..1e300, not all 0", shares)
        total = math.fsum(shares.values())
        return cls(method, {name: share / total for name, share in shares.items() if share})


@dataclass(frozen=True, slots=True)
class RerankingConfig(Checked):
    """Whether a reranker scores the best passages again before filtering, and with what weight."""

    model: str = setting(
        "",
        "reranker",
        help="Model that reorders the best passages. ranker-regulation, the default, is fast and was trained on "
        "questions about rules; it is left out where the corpus has no vectors or is not in English. "
        "answers-minilm-l12 reads each passage with the question, a second for 40 passages. "
        "RAGQA_PAGE_MODELS or a preset can add cross-encoders and rerankers behind an API.",
        group=registry.RERANKERS,
        key="reranker",
        off="",
    )
    depth: int = setting(
        50,
        "rerank depth",
        1,
        1000,
        help="Number of the best passages that the reranker reads.",
        source="AUEB 3, the best they tried",
        usual=(5, 100),
        step=5,
        key="rerank_depth",
        label="Depth of the reranker",
        under="reranker",
        when=bool,
    )
    weight: float = setting(
        0.3,
        "rerank weight",
        0.0,
        1.0,
        help="The reranker's share of the score; the rest is the fused score.",
        source="best on ADGM; AUEB 3: 1, it alone",
        step=0.05,
        key="rerank_weight",
        label="Weight of the reranker",
        under="reranker",
        when=bool,
    )


RANKED: Final = RerankingConfig("ranker-regulation", depth=50, weight=1.0)  # the default of `Config.from_env`


def choosing(reranking: RerankingConfig, model: str) -> RerankingConfig:
    """These settings with another reranker; the default one, or one in its place, begins with its own values."""
    if model == reranking.model or RANKED.model not in {model, reranking.model}:
        return replace(reranking, model=model)
    return RANKED if model == RANKED.model else RerankingConfig(model)


@dataclass(frozen=True, slots=True)
class FilteringConfig(Checked):
    """Which candidates are kept: RIRAG 5.2, AUEB 4.1. Scores are first normalised to [0, 1] over the fused candidates.

    ``expected-f2`` cuts where the expected F2 of the kept passages is highest; it ignores threshold and max drop.
    """

    threshold: float = setting(
        0.7,
        "threshold",
        0.0,
        1.0,
        help="The lowest relevance a passage may have to be kept. Higher: fewer, surer passages. The best one is "
        "always kept.",
        source="RIRAG 5.2",
        step=0.01,
        under="filter_method",
        when="limits".__eq__,
    )
    max_drop: float = setting(
        0.2,
        "max drop",
        0.0,
        1.0,
        help="The fall of relevance from one passage to the next that ends the list (1: off). Passages after such a "
        "fall are probably about something else.",
        source="RIRAG 5.2",
        step=0.01,
        off=1.0,
        under="filter_method",
        when="limits".__eq__,
    )
    top_k: int = setting(
        10,
        "top-k",
        1,
        100,
        help="The largest number of passages that an answer is written from.",
        source="RIRAG 5.2",
        usual=(1, 30),
    )
    method: FilterMethod = setting(
        "limits",
        "filter method",
        help="How the list is ended. Limits: by threshold, max drop and top-k, as published. Expected F2: each passage "
        "gets a probability of being relevant, from how relevance falls off, and the list ends where the expected F2 "
        "is highest; trained on questions about regulation.",
        choices={"limits": "threshold, max drop and top-k", "expected-f2": "the highest expected F2"},
        key="filter_method",
        label="Filter by",
    )
    in_force: str = setting(
        "",
        "as of",
        help="A day, YYYY-MM-DD: passages not in force on that day, according to their source, are dropped. Empty: the "
        "day that the question names (as of 1 March 2024), else none are dropped.",
        key="as_of",
        label="As of",
        off="",
        is_day=True,
    )


_of_generators = partial(setting, under="generator")  # has an effect for the generators that name it in their options


@dataclass(frozen=True, slots=True)
class GenerationConfig:
    """The generator of the answer and its settings. The key is never stored here: see `Config.from_env`."""

    generator: str = setting(
        "direct",
        "generator",
        help="Generator of the answer; none shows the passages at once.",
        group=registry.GENERATORS,
    )
    max_sentences: int = library(
        12,
        "most sentences",
        1,
        100,
        source="a page's worth",
        help="Largest number of sentences of an extractive answer.",
    )
    quote_anyway: bool = setting(
        False, "quote anyway", help="Quotes the nearest sentences instead of refusing.", under="generator"
    )
    model: str = setting(
        "gpt-4o-mini",
        "model",
        help="Language model, as its server names it; `ragqa models` lists them.",
        places=Place.OPTION | Place.PAGE,
        under="generator",
        when=registry.needs_language_model,
    )
    base_url: str = library("", "server", help="OpenAI-compatible; empty: the client's own default.")
    local_model: str = setting(
        "",
        "local model",
        help="Local language model, before any server: a name of `ragqa models list`, or a GGUF file.",
        places=Place.OPTION | Place.PAGE,
        under="generator",
        when=registry.needs_language_model,
    )
    temperature: float = library(0.0, "temperature", 0.0, 2.0, help="0 for answers that can be repeated.")
    max_tokens: int = library(800, "most tokens", 1, 32768, help="Largest number of tokens of an answer.")
    timeout_seconds: float = 60.0  # LLM: per request and between two pieces of a stream, > 0
    max_retries: int = library(2, "retries", 0, 10, help="Further tries after 429, 5xx or a connection error.")
    seed: int | None = None  # LLM: sent if given, increased by one for each further candidate or try; 0 to 2^31 - 1
    tries: int = _of_generators(
        3,
        "tries",
        1,
        10,
        help="Largest number of answers to an obligation until one covers it.",
        source="K of AUEB 4.4",
    )
    candidates: int = _of_generators(
        5, "candidates", 1, 20, help="Answers to choose from, by their RePASs.", source="N of AUEB's code"
    )
    rounds: int = _of_generators(
        3,
        "rounds",
        0,
        10,
        help="Largest number of rounds of removing and inserting.",
        source="AUEB table 7 ends with round 3",
    )
    candidate_temperature: float = library(
        1.0,
        "candidate temperature",
        0.0,
        2.0,
        help="Temperature of candidates and of LOC's later tries.",
        source="AUEB's own",
    )
    max_sub_questions: int = _of_generators(
        8,
        "most sub-questions",
        1,
        30,
        help="Largest number of sub-questions, both levels included.",
        source="FanOutQA's questions have 7 on average",
        option="sub-questions",
    )
    depth: int = _of_generators(
        2, "depth", 1, 2, help="2: an answer may ask further sub-questions.", source="FanOutQA's trees"
    )
    max_calls: int = _of_generators(
        30, "most calls", 1, 1000, help="Largest number of completions for one answer; retries are not counted."
    )
    parallel_calls: int = library(4, "parallel calls", 1, 16, help="LOC, VRR, fan-out-llm: concurrent completions.")

    def __post_init__(self) -> None:
        if not _ANY_GENERATOR.get():
            *names, last = registry.names(registry.GENERATORS)
            known = registry.is_known(registry.GENERATORS, self.generator)
            check(known, "generator", f"{', '.join(names)} or {last}", self.generator)
        check_all(self)
        check(self.timeout_seconds > 0, "time-out", "above 0 seconds", self.timeout_seconds)
        check(self.seed is None or 0 <= self.seed < 2**31, "seed", "in 0..2147483647 or None", self.seed)

    @property
    def asks_model(self) -> bool:
        """Whether the generator asks a language model; False for an unknown name."""
        return registry.needs_language_model(self.generator)

    def without_credentials(self) -> GenerationConfig:
        """The settings without ``user:password@`` and query in the server's address, and without a file's folder."""
        address = re.split("[?#]", _LOGIN.sub(r"\1", self.base_url))[0]
        return replace(self, local_model=Path(self.local_model).name, base_url=address)


# The beginning of an address, also of one that no request can use, and its login; a password may hold any letter.
_LOGIN: Final = re.compile(r"\A((?:[a-z][a-z0-9+.-]*:)?//?)?+(?:[^/?#@]*:(?!\d+[/?#]).*|[^/?#]*)@", re.IGNORECASE)
_ANY_GENERATOR: ContextVar[bool] = ContextVar("_ANY_GENERATOR", default=False)


@contextmanager
def any_generator() -> Iterator[None]:
    """Within this context settings may name an uninstalled generator, so that its records can still be read."""
    token = _ANY_GENERATOR.set(True)
    try:
        yield
    finally:
        _ANY_GENERATOR.reset(token)


@dataclass(frozen=True, slots=True)
class Config:
    """All settings that decide an answer, one part per stage."""

    index: str = "rulebook"  # name of an index; RAGQA_INDEX
    retrieval: RetrievalConfig = field(default_factory=RetrievalConfig)
    fusion: FusionConfig = field(default_factory=FusionConfig)
    reranking: RerankingConfig = field(default_factory=RerankingConfig)
    filtering: FilteringConfig = field(default_factory=FilteringConfig)
    generation: GenerationConfig = field(default_factory=GenerationConfig)
    scoring: ScoringConfig = field(default_factory=ScoringConfig)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Config:
        """The defaults, overridden by the environment, with learning to rank (`RANKED`).

        ``RAGQA_INDEX`` names the corpus opened first. ``RAGQA_MODEL`` and ``OPENAI_BASE_URL`` name the language model,
        which is used if a key or a server is given (`has_llm`); ``RAGQA_LOCAL_MODEL``, a model on this machine, takes
        precedence over them. The key itself is never kept here.
        """
        env = os.environ if environ is None else environ
        generation = GenerationConfig(
            generator="llm" if has_llm(env) else "direct",
            model=env.get("RAGQA_MODEL") or GenerationConfig().model,
            base_url=env.get("OPENAI_BASE_URL", ""),
            local_model=env.get("RAGQA_LOCAL_MODEL", ""),
        )
        index, scoring = env.get("RAGQA_INDEX") or "rulebook", scoring_from_env(env)
        return cls(index, reranking=RANKED, generation=generation, scoring=scoring)


SETTINGS: Final[tuple[SettingSpec, ...]] = tuple(
    one
    for part in fields(Config)
    if part.name != "index"
    for one in declared(type(getattr(Config(), part.name)), part.name)
)


def settings_at(place: Place, part: str = "") -> tuple[SettingSpec, ...]:
    """The settings visible at ``place``, of all parts or of ``part``, in the order of the stages."""
    return tuple(one for one in SETTINGS if place in one.places and part in ("", one.part))


def values_by_key(config: Config) -> dict[str, Any]:
    """The value of every setting, by key."""
    return {one.key: getattr(getattr(config, one.part), one.field) for one in SETTINGS}


def with_values(config: Config, values: Mapping[str, Any]) -> Config:
    """The settings with these values, by key, in place of their own. Raises ConfigError for an invalid value.

    Another reranker begins as by `choosing`, where no depth and weight are given.
    """
    by_part: dict[str, dict[str, Any]] = {}
    if "reranker" in values:
        config = replace(config, reranking=choosing(config.reranking, str(values["reranker"])))
    for one in SETTINGS:
        if one.key in values:
            by_part.setdefault(one.part, {})[one.field] = type(one.default)(values[one.key])
    return replace(config, **{part: replace(getattr(config, part), **changed) for part, changed in by_part.items()})


def without_default_reranker(config: Config) -> Config:
    """The settings for texts to check and policies, as it has learnt from questions, and for measuring rankings."""
    return replace(config, reranking=RerankingConfig()) if config.reranking == RANKED else config

"""Loads the objects that settings name: encoder, RePASs models, reranker, models of further rankings, added retrievers.

Heavy libraries (torch, OpenVINO, API clients) are imported only when an object that needs them is made. Names that
another package registered (`ragqa.plugins.registry`) are made by that package.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from ragqa.errors import ConfigError
from ragqa.index.manifest import FURTHER, Manifest
from ragqa.models import resolve_model
from ragqa.models.inference.precision import untimed, wait_passively
from ragqa.plugins import registry
from ragqa.plugins.protocols import Encoder, NliModel, ObligationClassifier, Reranker, Retriever, Selector
from ragqa.retrieval.api_encoder import ApiEncoder
from ragqa.retrieval.api_reranker import ApiReranker
from ragqa.retrieval.encoder import BertEncoder, SentenceTransformerEncoder, covers
from ragqa.retrieval.learned_ranker import LearnedRanker, is_ranker, rankings_read
from ragqa.retrieval.local_models import weights_of
from ragqa.retrieval.ranking import needs_no_files
from ragqa.retrieval.reranker import CrossEncoderReranker, MeanReranker, TextReranker
from ragqa.scoring.repass.nli import CrossEncoderNli, RememberingNli
from ragqa.scoring.repass.obligations import TfidfObligationClassifier, TransformerObligationClassifier
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.scoring.strength import load_strength
from ragqa.settings.config import RANKED, IndexingConfig, RerankingConfig, ScoringConfig
from ragqa.settings.indexing import NO_ENCODER
from ragqa.settings.paths import Paths
from ragqa.settings.schema import Precision
from ragqa.types import ModelInfo

if TYPE_CHECKING:
    from ragqa.index import Index

VERIFIER = "verifier-minilm-l6"  # the default NLI model of the verdicts
POLICY_READER = "policies-minilm-l6"  # reads policies against rules
_LOADING = Lock()  # of the policy reader
SELECTOR = "answers-minilm-l12"  # scores how well a sentence answers a question

# Added to the mean logit of two selectors, which is less sure of right sentences than one alone, so that four of five
# unanswerable questions of the sets on the card of `answers-mpnet` are refused.
AGREEING = 0.8

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Models:
    """The loaded models, shared by every pipeline and session."""

    encoder: Encoder
    entailment: NliModel
    coverage: NliModel  # the same object as ``entailment`` if both settings name the same model
    obligations: ObligationClassifier
    verdicts: NliModel | None = None  # the NLI model of the verdicts; None: ``entailment``
    reranker: Reranker | None = None  # None: the fused ranking is filtered without reranking
    further: Mapping[str, Any] = field(default_factory=dict)  # models of the index's further rankings, by retriever
    sentences: Encoder | None = None  # compares sentences for the verdicts; None: no such comparison
    selector: Selector | None = None  # scores which sentences answer; None: similarity to the question is used

    @property
    def reader(self) -> NliModel:
        """The NLI model of the verdicts."""
        return self.verdicts or self.entailment

    def scorer(self, config: ScoringConfig) -> RepassScorer:
        """A scorer that uses these models; cheap to make."""
        return RepassScorer(self.entailment, self.coverage, self.obligations, config, self.sentences, self.reader)

    @property
    def infos(self) -> dict[str, ModelInfo]:
        """The description of each model for a record, by role."""
        return ({"reranker": self.reranker.info} if self.reranker else {}) | {
            "encoder": self.encoder.info,
            "entailment": self.entailment.info,
            "coverage": self.coverage.info,
            "obligations": self.obligations.info,
            **({"verdicts": self.reader.info} if self.reader is not self.entailment else {}),
            **({"sentences": self.sentences.info} if self.sentences else {}),
            **({"answers": self.selector.info} if self.selector else {}),
            **{name: model.info for name, model in self.further.items()},
        }


def load_models(encoder: str, scoring: ScoringConfig, paths: Paths | None = None) -> Models:
    """The named models, loaded and checked; takes seconds. Raises ModelError, and ConfigError as `load_encoder` does.

    NLI results are cached in memory. If ``paths`` is given, NLI results and the vectors of an embedding server are also
    cached on disk.
    """
    with ThreadPoolExecutor(1, "ragqa-load") as beside:  # loads two models in parallel: OpenVINO frees the GIL
        selector = beside.submit(load_selector, scoring)
        strength = beside.submit(load_strength)
        loaded = load_encoder(encoder, paths=paths)
        own = IndexingConfig().encoder
        sentences = loaded if encoder in {own, NO_ENCODER} else load_encoder(own)
        readers = load_readers(scoring, paths)
        strength.result()
        return Models(loaded, *readers, sentences=sentences, selector=selector.result())


def load_selector(scoring: ScoringConfig, own: str = SELECTOR) -> TextReranker:
    """The model ``own``, or its mean with the larger one of ``scoring``, that scores which sentences answer a question.

    Raises ModelError.
    """
    wait_passively()
    with untimed():
        selectors = [CrossEncoderReranker(name, scoring.precision) for name in (own, scoring.answer_model) if name]
    return MeanReranker(*selectors, offset=AGREEING) if len(selectors) > 1 else selectors[0]


def load_encoder(name: str, precision: Precision = "auto", paths: Paths | None = None) -> Encoder:
    """The encoder of this name: on a server, in OpenVINO if it supports the model, else in sentence-transformers.

    ``precision`` is used for passages. Questions are always encoded in fp32, and so are passages outside OpenVINO.
    A server is not contacted yet; its vectors are cached on disk if ``paths`` is given. ``"none"``, the encoder of an
    index without vectors, gives the bundled encoder: quoting generators compare sentences with it.

    Raises ModelError, and ConfigError if a server's address or key cannot work.
    """
    if name in registry.entry_points_of(registry.ENCODERS):
        plugged: Encoder = registry.make(registry.ENCODERS, name)
        return plugged
    name = IndexingConfig().encoder if name == NO_ENCODER else name
    if registry.is_api_name(name):
        return ApiEncoder(name, cache=paths.vector_cache if paths else None)
    if covers(weights_of(name)):
        return BertEncoder(name, precision)
    wait_passively()
    return SentenceTransformerEncoder(name)


def load_further(rankings: Sequence[str], paths: Paths | None = None, precision: Precision = "auto") -> dict[str, Any]:
    """The models of further rankings (``splade:MODEL``, ``late:MODEL``, ``dense:ENCODER``) by retriever.

    ``document`` and the rankings of other packages have no model. ``precision`` and ``paths`` are as in `load_encoder`.
    Raises as `load_encoder` does, and ConfigError for a ranking of another package that adds no files to an index.
    """
    for name in rankings:
        if needs_no_files(name):
            raise ConfigError(f"the ranking {name!r} has no files: it works on every index; leave out --also {name}")
    return {
        registry.retriever_name(ranking): _load_ranking_model(ranking, paths, precision)
        for ranking in rankings
        if ":" in ranking
    }


def _load_ranking_model(ranking: str, paths: Paths | None, precision: Precision) -> Any:  # noqa: ANN401
    kind, _, name = ranking.partition(":")
    if kind == "dense":
        return load_encoder(name, precision, paths)
    wait_passively()
    return registry.make(registry.RETRIEVERS, ranking, name=name)


def added_retrievers(index: Index, weights: Mapping[str, float] | None = None) -> tuple[Retriever, ...]:
    """The retrievers of other packages on this index: first those with files in it, then weighted ones without files.

    If ``weights`` is None, every retriever that needs no files is made. A retriever that cannot be made is left out
    with a warning; if it has a weight, its ConfigError is raised instead.
    """
    added = registry.entry_points_of(registry.RETRIEVERS)
    rankings = (ranking for ranking in index.manifest.rankings if ranking.name in added)
    held = {ranking.name: index.folder / FURTHER / ranking.folder for ranking in rankings}
    wanted = added if weights is None else (name for name, weight in weights.items() if weight > 0 and name in added)
    retrievers = []
    for name in dict.fromkeys((*held, *wanted)):
        try:
            if name in held or needs_no_files(name):
                given = {"index": index} | ({"folder": held[name]} if name in held else {})
                retrievers.append(registry.make(registry.RETRIEVERS, name, **given))
        except ConfigError as error:
            if weights and weights.get(name):
                raise
            _logger.warning("%s", error)
    return tuple(retrievers)


def load_nli(name: str, precision: Precision = "auto", paths: Paths | None = None, *, joined: bool = False) -> NliModel:
    """The NLI model of this name, with a cache of its results. Raises ModelError.

    ``paths`` is as in `load_models`, ``joined`` as in `CrossEncoderNli`.
    """
    wait_passively()
    if name in registry.entry_points_of(registry.NLI_MODELS):
        model: NliModel = registry.make(registry.NLI_MODELS, name)
    else:
        model = CrossEncoderNli(name, precision, joined=joined)
    return RememberingNli(model, paths.pair_cache if paths else None)


def load_readers(
    scoring: ScoringConfig, paths: Paths | None = None
) -> tuple[NliModel, NliModel, ObligationClassifier, NliModel]:
    """The models of entailment, coverage, obligations and verdicts, in that order. Raises ModelError.

    Settings that name the same NLI model as entailment share one object.
    """
    entailment = coverage = load_nli(scoring.entailment_model, scoring.precision, paths)
    joined = scoring.coverage_input == "joined"
    if joined or scoring.coverage_model != scoring.entailment_model:
        coverage = load_nli(scoring.coverage_model, scoring.precision, paths, joined=joined)
    verifier = scoring.verdict_model or VERIFIER
    is_own = verifier != scoring.entailment_model
    verdicts = load_nli(verifier, scoring.precision, paths) if is_own else entailment
    return entailment, coverage, load_obligations(scoring), verdicts


def policy_scorer(scorer: RepassScorer, paths: Paths | None = None) -> RepassScorer:
    """The scorer whose verdicts read policies: by the model made for it, unless another verifier is named.

    The model is loaded once in a process. Raises ModelError.
    """
    config = scorer.config
    if config.verdict_model not in ("", VERIFIER):
        return scorer
    with _LOADING:
        reader = _policy_reader(config.precision, paths)
    return RepassScorer(scorer.entailment, scorer.coverage, scorer.obligations, config, scorer.encoder, reader)


@cache
def _policy_reader(precision: Precision, paths: Paths | None) -> NliModel:
    return load_nli(POLICY_READER, precision, paths)


def load_reranker(name: str, precision: Precision = "auto") -> Reranker:
    """The cross-encoder or learned ranker of this folder or name, loaded and checked, or an API client.

    A server is not contacted yet. ``precision`` applies only to a cross-encoder. Raises ModelError, and ConfigError if
    a server's address or key cannot work.
    """
    if name in registry.entry_points_of(registry.RERANKERS):
        reranker: Reranker = registry.make(registry.RERANKERS, name)
        return reranker
    if registry.is_api_name(name):
        return ApiReranker(name)
    wait_passively()
    if is_ranker(name):
        return LearnedRanker(name)
    return CrossEncoderReranker(name, precision)


def fitting_reranking(reranking: RerankingConfig, manifest: Manifest) -> RerankingConfig:
    """The settings for this index; the default, `RANKED`, is left out unless it is in English with all that it reads.

    Trained on English, it lowered MAP@10 on a Slovenian corpus from .993 to .981.
    """
    if reranking != RANKED:
        return reranking
    fits = manifest.analyser.language == "english" and {*rankings_read(RANKED.model)} <= {*manifest.retrievers}
    return RANKED if fits else RerankingConfig()


def with_reranker(
    models: Models,
    reranking: RerankingConfig,
    manifest: Manifest,
    load: Callable[[str], Reranker] | None = None,
) -> Models:
    """The same models with the reranker that these settings name, loaded in seconds (by ``load``), or with none.

    The selector is not loaded twice. With no reranker, nothing is imported or loaded. Raises as `load_reranker`.
    """
    reranking = fitting_reranking(reranking, manifest)
    if reranking.model == SELECTOR and isinstance(models.selector, CrossEncoderReranker):
        return replace(models, reranker=models.selector)
    return replace(models, reranker=(load or load_reranker)(reranking.model) if reranking.model else None)


def load_obligations(scoring: ScoringConfig) -> ObligationClassifier:
    """The obligation classifier of this configuration, on n-grams or a transformer. Raises ModelError."""
    folder = resolve_model(scoring.obligation_model, "obligations")
    if not (folder / "config.json").is_file():
        return TfidfObligationClassifier(scoring.obligation_model)
    wait_passively()
    return TransformerObligationClassifier(scoring.obligation_model, folder, scoring.precision)


def load_scorer(scoring: ScoringConfig, paths: Paths | None = None) -> RepassScorer:
    """Only the scorer, for answers written elsewhere; ``paths`` is as in `load_models`. Raises ModelError."""
    entailment, coverage, obligations, verdicts = load_readers(scoring, paths)
    encoder = load_encoder(IndexingConfig().encoder)
    return RepassScorer(entailment, coverage, obligations, scoring, encoder, verdicts)

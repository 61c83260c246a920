"""Names of models to loaded models: the encoder, RePASs' models, the reranker, those of further rankings.

Nothing is imported before it is asked for: torch, OpenVINO and the API clients are slow to load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ragqa.config import NO_ENCODER, IndexingConfig, Precision, RerankingConfig, ScoringConfig
from ragqa.paths import Paths
from ragqa.processor import wait_passively
from ragqa.protocols import Encoder, HitRanker, NliModel, ObligationClassifier, Reranker, Scorer
from ragqa.types import ModelInfo


@dataclass(frozen=True, slots=True)
class Models:
    """The loaded models, shared by every pipeline and session."""

    encoder: Encoder
    entailment: NliModel
    coverage: NliModel  # the same object as ``entailment`` where the same model does both
    obligations: ObligationClassifier
    reranker: Reranker | HitRanker | None = None  # None: the fused ranking is filtered as it is
    further: Mapping[str, Any] = field(default_factory=dict)  # of an index's further rankings, by retriever

    @property
    def infos(self) -> dict[str, ModelInfo]:
        """What a record says about them, by role."""
        return ({"reranker": self.reranker.info} if self.reranker else {}) | {
            "encoder": self.encoder.info,
            "entailment": self.entailment.info,
            "coverage": self.coverage.info,
            "obligations": self.obligations.info,
            **{name: model.info for name, model in self.further.items()},
        }


def load_models(encoder: str, scoring: ScoringConfig, paths: Paths | None = None) -> Models:
    """The models of these names, loaded and checked (seconds). Raises ModelError and, as `load_encoder`, ConfigError.

    NLI results are remembered in memory and, where ``paths`` are given, on disk, as are an embedding server's vectors.
    """
    return Models(load_encoder(encoder, paths=paths), *load_nli(scoring, paths), load_obligations(scoring))


def load_encoder(name: str, precision: Precision = "auto", paths: Paths | None = None) -> Encoder:
    """The encoder of this name: a server's, or by OpenVINO where that covers it, else by sentence-transformers.

    ``precision`` is that of passages; questions are always encoded in fp32, and so is all that OpenVINO does not cover.
    A server is not asked yet; its vectors are kept on disk where ``paths`` are given. ``"none"``, as an index without
    vectors says, gives the embedded one: quoting generators compare sentences by it.

    Raises ModelError, and ConfigError where a server's address or key cannot work.
    """
    from ragqa.http_client import is_api_name
    from ragqa.retrieval.api_encoder import ApiEncoder

    name = IndexingConfig().encoder if name == NO_ENCODER else name
    if is_api_name(name):
        return ApiEncoder(name, cache=paths.vector_cache if paths else None)
    from ragqa.retrieval.bert_encoder import BertEncoder, covers
    from ragqa.retrieval.weights import weights_of

    if covers(weights_of(name)):
        return BertEncoder(name, precision)
    wait_passively()
    from ragqa.retrieval.encoder import SentenceTransformerEncoder

    return SentenceTransformerEncoder(name)


def load_further(rankings: Sequence[str], paths: Paths | None = None, precision: Precision = "auto") -> dict[str, Any]:
    """The models of further rankings (``splade:MODEL``, ``late:MODEL``, ``dense:ENCODER``) by retriever.

    ``document`` has none. ``precision`` and ``paths`` as in `load_encoder`, which see for what is raised.
    """
    from ragqa.retrieval.names import retriever_name

    return {
        retriever_name(ranking): _load_ranking_model(ranking, paths, precision)
        for ranking in rankings
        if ":" in ranking
    }


def _load_ranking_model(ranking: str, paths: Paths | None, precision: Precision) -> Any:  # noqa: ANN401
    kind, _, name = ranking.partition(":")
    if kind == "dense":
        return load_encoder(name, precision, paths)
    wait_passively()
    if kind == "splade":
        from ragqa.retrieval.sparse_encoder import SpladeEncoder

        return SpladeEncoder(name)
    from ragqa.retrieval.token_encoder import LateEncoder

    return LateEncoder(name)


def load_nli(scoring: ScoringConfig, paths: Paths | None = None) -> tuple[NliModel, NliModel]:
    """The models for entailment and for coverage, one object where they are the same. Raises ModelError."""
    wait_passively()
    from ragqa.repass.nli import CrossEncoderNli, RememberingNli

    file = paths.pair_cache if paths else None
    entailment = RememberingNli(CrossEncoderNli(scoring.entailment_model, scoring.precision), file)
    joined = scoring.coverage_input == "joined"
    if scoring.coverage_model == scoring.entailment_model and not joined:
        return entailment, entailment
    coverage = CrossEncoderNli(scoring.coverage_model, scoring.precision, joined=joined)
    return entailment, RememberingNli(coverage, file)


def with_reranker(models: Models, reranking: RerankingConfig) -> Models:
    """The same models with the reranker that these settings name, loaded (seconds), or without one.

    Without one, nothing is imported or loaded. Raises as `load_reranker`.
    """
    return replace(models, reranker=load_reranker(reranking.model) if reranking.model else None)


def load_reranker(name: str, precision: Precision = "auto") -> Reranker | HitRanker:
    """The cross-encoder or learned order of this folder or name, loaded and checked, or an API, not asked yet.

    ``precision`` is a cross-encoder's. Raises ModelError, and ConfigError where a server's address or key cannot work.
    """
    from ragqa.http_client import is_api_name

    if is_api_name(name):
        from ragqa.retrieval.api_reranker import ApiReranker

        return ApiReranker(name)
    wait_passively()
    from ragqa.retrieval.learned_ranker import LearnedRanker, is_ranker

    if is_ranker(name):
        return LearnedRanker(name)
    from ragqa.retrieval.reranker import CrossEncoderReranker

    return CrossEncoderReranker(name, precision)


def load_obligations(scoring: ScoringConfig) -> ObligationClassifier:
    """The obligation classifier this configuration names: n-grams, or a transformer. Raises ModelError."""
    from ragqa.models import resolve_model
    from ragqa.repass.obligations import TfidfObligationClassifier

    folder = resolve_model(scoring.obligation_model, "obligations")
    if not (folder / "config.json").is_file():
        return TfidfObligationClassifier(scoring.obligation_model)
    wait_passively()
    from ragqa.repass.obligations import TransformerObligationClassifier

    return TransformerObligationClassifier(scoring.obligation_model, folder, scoring.precision)


def load_scorer(scoring: ScoringConfig, paths: Paths | None = None) -> Scorer:
    """The scorer alone, for answers written elsewhere; ``paths`` as in `load_models`. Raises ModelError."""
    from ragqa.repass.scorer import RepassScorer

    return RepassScorer(*load_nli(scoring, paths), load_obligations(scoring), scoring)

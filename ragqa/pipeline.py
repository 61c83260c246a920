"""Question in, events out: retrieval, fusion, perhaps reranking, filtering, generation, RePASs. Start reading here.

The page, the command line and the evaluator consume the same events. `load_pipeline` is the one place that turns
settings into loaded objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ragqa.cleaning import without_controls
from ragqa.config import (
    Config,
    GenerationConfig,
    Paths,
    Precision,
    RerankingConfig,
    ScoringConfig,
    api_key,
    prompt_folder,
)
from ragqa.errors import QuestionError
from ragqa.events import Answered, BestSoFar, Event, Fused, Kept, Recorded, Reranked, Retrieved, Scored, Selected
from ragqa.filtering import select
from ragqa.fusion import fuse, rerank
from ragqa.processor import wait_passively
from ragqa.protocols import Encoder, Generator, NliModel, ObligationClassifier, Reranker, Retriever, Scorer
from ragqa.recorder import Recorder
from ragqa.retrieval import rank
from ragqa.types import ModelInfo, Question

if TYPE_CHECKING:
    from ragqa.indexing import Index
    from ragqa.records import RecordStore
    from ragqa.repass.scorer import RepassScorer

__all__ = [
    "Models",
    "Pipeline",
    "assemble",
    "clean_question",
    "load_further",
    "load_models",
    "load_pipeline",
    "load_reranker",
    "load_scorer",
    "with_reranker",
]

MAX_QUESTION_CHARS = 8_000  # ten times the longest ObliQA question; longer is a pasted document


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One corpus, one set of settings, loaded objects. Holds no per-question state: share it between threads."""

    config: Config
    index: Index
    retrievers: Sequence[Retriever]
    generator: Generator | None  # None: passages only
    scorer: Scorer
    models: Models
    records: RecordStore | None = None

    def run(self, question: Question) -> Iterator[Event]:
        """The events of one question, in the order of `ragqa.events`, each as soon as it is known.

        The answer is on disk before `Answered` is yielded and its scores before `Recorded`. Raises QuestionError at
        once, GenerationError after `Selected`, ScoringError after `Answered`: what was yielded stays true. A best
        answer so far is on disk before `Kept`, and stays there where this is closed early.
        Where only passages are wanted (`generator` is None) nothing follows `Selected`, and nothing is kept.
        """
        question = clean_question(question)
        recorder = Recorder(question, self.config, self.index.manifest, self.models.infos, self.records)
        with recorder.keeping_failures():
            for event in self._stages(question):
                recorder.observe(event)
                yield event
                if isinstance(event, BestSoFar):
                    yield Kept(recorder.record_id)
                recorder.resume()
        if self.generator is not None:
            yield Recorded(recorder.record_id, dict(recorder.seconds))

    def _stages(self, question: Question) -> Iterator[Event]:
        config = self.config
        rankings = rank(self.retrievers, question.text, config.retrieval.top_k)
        yield Retrieved(rankings)
        fused = fuse(rankings, config.fusion)
        yield Fused(fused)
        ranking = fused
        if self.models.reranker:
            from ragqa.retrieval.reranker import read_again

            kind, depth = self.index.manifest.indexed_text, config.reranking.depth
            scores = read_again(self.models.reranker, question.text, fused, depth, kind)
            ranking = rerank(fused, scores, config.reranking)
            yield Reranked(ranking)
        selection = select(ranking, config.filtering)
        yield Selected(selection)
        if self.generator is None:
            return
        answer = yield from self.generator.stream(question, selection.passages)
        yield Answered(answer)
        scored: Scored = yield from self.scorer.stream(answer, selection.passages)
        yield scored


def clean_question(question: Question) -> Question:
    """The question without control characters and surrounding white space.

    Raises QuestionError when nothing is left or more than 8,000 characters are.
    """
    text = " ".join(
        without_controls(question.text.replace("\r", " ")).replace("\N{REPLACEMENT CHARACTER}", " ").split()
    )
    if not text:
        msg = "The question is empty; type a question, or choose one of the examples."
        raise QuestionError(msg)
    if len(text) > MAX_QUESTION_CHARS:
        msg = (
            f"The question has {len(text):,} characters; at most {MAX_QUESTION_CHARS:,} can be asked. "
            "Shorten it to the question itself."
        )
        raise QuestionError(msg)
    return Question(text, question.question_id)


@dataclass(frozen=True, slots=True)
class Models:
    """The loaded models, shared by every pipeline and session."""

    encoder: Encoder
    entailment: NliModel
    coverage: NliModel  # the same object as ``entailment`` where the same model does both
    obligations: ObligationClassifier
    reranker: Reranker | None = None  # None: the fused ranking is filtered as it is
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
    A server is not asked yet; its vectors are kept on disk where ``paths`` are given.

    Raises ModelError, and ConfigError where a server's address or key cannot work.
    """
    from ragqa.retrieval.api_encoder import ApiEncoder, is_api_name

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
    from ragqa.repass.nli import CrossEncoderNli
    from ragqa.repass.remembering import RememberingNli

    file = paths.pair_cache if paths else None
    entailment = RememberingNli(CrossEncoderNli(scoring.entailment_model, scoring.precision), file)
    joined = scoring.coverage_input == "joined"
    if scoring.coverage_model == scoring.entailment_model and not joined:
        return entailment, entailment
    coverage = CrossEncoderNli(scoring.coverage_model, scoring.precision, joined=joined)
    return entailment, RememberingNli(coverage, file)


def with_reranker(models: Models, reranking: RerankingConfig) -> Models:
    """The same models with the reranker that these settings name, loaded (seconds), or without one. Raises ModelError.

    Without one, nothing is imported or loaded.
    """
    return replace(models, reranker=load_reranker(reranking.model) if reranking.model else None)


def load_reranker(name: str, precision: Precision = "auto") -> Reranker:
    """The cross-encoder of this folder or hub name, loaded and checked. Raises ModelError."""
    wait_passively()
    from ragqa.repass.classifier import SequenceClassifier
    from ragqa.retrieval.reranker import CrossEncoderReranker

    return CrossEncoderReranker(name, lambda folder: SequenceClassifier(folder, precision))


def load_obligations(scoring: ScoringConfig) -> ObligationClassifier:
    """The obligation classifier this configuration names: n-grams, or a transformer. Raises ModelError."""
    from ragqa.models import resolve_model
    from ragqa.repass.obligations import TfidfObligationClassifier

    folder = resolve_model(scoring.obligation_model, "obligations")
    if not (folder / "config.json").is_file():
        return TfidfObligationClassifier(scoring.obligation_model)
    wait_passively()
    from ragqa.repass.transformer_obligations import TransformerObligationClassifier

    return TransformerObligationClassifier(scoring.obligation_model, folder, scoring.precision)


def assemble(config: Config, index: Index, models: Models, records: RecordStore | None = None) -> Pipeline:
    """A pipeline from objects that are already loaded; cheap, so that every change of settings may have its own.

    Raises ConfigError where a weight is of a ranking that the index lacks, IndexMismatchError as `retrievers_for`.
    """
    from ragqa.repass.scorer import RepassScorer
    from ragqa.retrieval import retrievers_for
    from ragqa.retrieval.names import fitting_fusion

    scorer = RepassScorer(models.entailment, models.coverage, models.obligations, config.scoring)
    manifest = index.manifest
    fusion = fitting_fusion(config.fusion, manifest.retrievers, manifest.encoder, manifest.name)
    return Pipeline(
        config=replace(config, fusion=fusion),
        index=index,
        retrievers=retrievers_for(index, models.encoder, config.retrieval, models.further),
        generator=_generator(config.generation, models, scorer),
        scorer=scorer,
        models=models,
        records=records,
    )


def load_pipeline(config: Config | None = None, paths: Paths | None = None, *, recording: bool = True) -> Pipeline:
    """A pipeline ready to run; settings and places from the environment where not given.

    Answers are kept on disk unless ``recording`` is false.

    Raises ConfigError, IndexingError or ModelError.
    """
    from ragqa.indexing import open_index
    from ragqa.records import RecordStore

    config, paths = config or Config.from_env(), paths or Paths.from_env()
    index = open_index(config.index, paths.indexes)
    models = with_reranker(load_models(index.manifest.encoder, config.scoring, paths), config.reranking)
    further = load_further([ranking.option for ranking in index.manifest.rankings], paths)
    return assemble(config, index, replace(models, further=further), RecordStore(paths.records) if recording else None)


def load_scorer(scoring: ScoringConfig, paths: Paths | None = None) -> Scorer:
    """The scorer alone, for answers written elsewhere; ``paths`` as in `load_models`. Raises ModelError."""
    from ragqa.repass.scorer import RepassScorer

    return RepassScorer(*load_nli(scoring, paths), load_obligations(scoring), scoring)


def _generator(config: GenerationConfig, models: Models, scorer: RepassScorer) -> Generator | None:
    """The generator of this name, with the scorer's own models where it checks what it writes."""
    match config.generator:
        case "none":
            return None
        case "extractive":
            from ragqa.generation.extractive import ExtractiveGenerator

            return ExtractiveGenerator(models.obligations, models.encoder, config)
        case "baseline":
            from ragqa.generation.baseline import BaselineGenerator

            return BaselineGenerator()
        case "llm":
            from ragqa.generation.llm import LlmGenerator

            return LlmGenerator(config, api_key(), prompt_folder())
        case _:
            return _verifying_generator(config, scorer)


def _verifying_generator(config: GenerationConfig, scorer: RepassScorer) -> Generator:
    from ragqa.repass.verifier import RepassVerifier

    verifier, key, prompts = RepassVerifier(scorer), api_key(), prompt_folder()
    match config.generator:
        case "obligations":
            from ragqa.generation.llm import ObligationsGenerator

            return ObligationsGenerator(config, verifier, key, prompts)
        case "loc":
            from ragqa.generation.loc import LocGenerator

            return LocGenerator(config, verifier, key, prompts)
        case _:
            from ragqa.generation.vrr import VrrGenerator

            return VrrGenerator(config, verifier, key, prompts)

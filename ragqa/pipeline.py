"""Question in, events out: retrieval, fusion, perhaps reranking, filtering, generation, RePASs. Start reading here.

The page, the command line and the evaluator consume the same events. `load_pipeline` is the one place that turns
settings into loaded objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ragqa.cleaning import without_controls
from ragqa.config import Config, GenerationConfig, api_key, prompt_folder
from ragqa.errors import QuestionError
from ragqa.events.generation import BestSoFar
from ragqa.events.pipeline import Answered, Event, Fused, Kept, Recorded, Reranked, Retrieved, Selected
from ragqa.events.scoring import Scored
from ragqa.filtering import select
from ragqa.fusion import fuse, rerank
from ragqa.loading import Models, load_further, load_models, with_reranker
from ragqa.paths import Paths
from ragqa.protocols import Generator, Retriever, Scorer, SearchingGenerator
from ragqa.recorder import Recorder
from ragqa.retrieval import rank
from ragqa.types import Question, Ranking

if TYPE_CHECKING:
    from ragqa.indexing import Index
    from ragqa.records import RecordStore
    from ragqa.repass.scorer import RepassScorer

MAX_QUESTION_CHARS = 8_000  # ten times the longest ObliQA question; longer is a pasted document


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One corpus, one set of settings, loaded objects. Holds no per-question state: share it between threads."""

    config: Config
    index: Index
    retrievers: Sequence[Retriever]
    generator: Generator | SearchingGenerator | None  # None: passages only
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
        ranking = fuse(rankings, config.fusion)
        yield Fused(ranking)
        if self.models.reranker:
            ranking = self._reranked(question.text, ranking)
            yield Reranked(ranking)
        if isinstance(self.generator, SearchingGenerator):
            answer, selection = yield from self.generator.stream_searching(question, ranking, self.search)
        else:
            selection = select(ranking, config.filtering)
            yield Selected(selection)
            if self.generator is None:
                return
            answer = yield from self.generator.stream(question, selection.passages)
        yield Answered(answer)
        scored: Scored = yield from self.scorer.stream(answer, selection.passages)
        yield scored

    def search(self, question: str) -> Ranking:
        """What is retrieved for this question, fused and, where there is a reranker, reranked; nothing is filtered."""
        ranking = fuse(rank(self.retrievers, question, self.config.retrieval.top_k), self.config.fusion)
        return self._reranked(question, ranking)

    def _reranked(self, question: str, fused: Ranking) -> Ranking:
        if not self.models.reranker:
            return fused
        from ragqa.retrieval.reranker import read_again

        config, kind = self.config.reranking, self.index.manifest.indexed_text
        scores = read_again(self.models.reranker, question, fused, config.depth, self.index, kind)
        return rerank(fused, scores, config)


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
        generator=_generator(config, models, scorer),
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


def _generator(config: Config, models: Models, scorer: RepassScorer) -> Generator | SearchingGenerator | None:
    """The generator of this name, with the scorer's own models where it checks what it writes."""
    generation = config.generation
    match generation.generator:
        case "none":
            return None
        case "extractive":
            from ragqa.generation.extractive import ExtractiveGenerator

            return ExtractiveGenerator(models.obligations, models.encoder, generation)
        case "baseline":
            from ragqa.generation.baseline import BaselineGenerator

            return BaselineGenerator()
        case "llm":
            from ragqa.generation.llm import LlmGenerator

            return LlmGenerator(generation, api_key(), prompt_folder())
        case "fan-out":
            from ragqa.generation.fanout.generator import FanOutGenerator, quoting
            from ragqa.repass.verifier import RepassVerifier

            answerer = quoting(models.obligations, models.encoder, RepassVerifier(scorer), generation)
            return FanOutGenerator(answerer, generation, config.filtering)
        case "fan-out-llm":
            from ragqa.generation.fanout.model import FanOutLlmGenerator

            return FanOutLlmGenerator(generation, config.filtering, api_key(), prompt_folder())
        case "concise":
            from ragqa.generation.concise import ConciseGenerator
            from ragqa.repass.verifier import RepassVerifier

            return ConciseGenerator(models.obligations, models.encoder, RepassVerifier(scorer), generation)
        case _:
            return _verifying_generator(generation, scorer)


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

"""Question in, events out: retrieval, fusion, optional reranking, filtering, generation, RePASs. Start reading here.

The page, the command line and the evaluator consume the same events. `assemble` makes a pipeline from settings and
loaded objects; `load_pipeline` loads the objects first. `ragqa.plugins.registry` maps the names in settings to parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ragqa.errors import ConfigError, QuestionError
from ragqa.filtering import as_asked, select, standing
from ragqa.fusion import by_number, fuse, led_by, rerank
from ragqa.generation.answers import check_answer
from ragqa.generation.relevance import relevance
from ragqa.index import Index, open_index
from ragqa.infra.cleaning import without_controls
from ragqa.loading import Models, added_retrievers, load_further, load_models, with_reranker
from ragqa.plugins import registry
from ragqa.plugins.protocols import Generator, Retriever, Scorer, SearchingGenerator
from ragqa.records.recorder import Recorder
from ragqa.records.store import RecordStore
from ragqa.retrieval import rank, retrievers_for
from ragqa.retrieval.ranking import fitting_fusion
from ragqa.retrieval.reranker import read_again
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.scoring.repass.verifier import RepassVerifier
from ragqa.settings.config import Config, RerankingConfig, without_default_reranker
from ragqa.settings.environment import api_key, has_llm, prompt_folder
from ragqa.settings.paths import Paths
from ragqa.types import Answer, ModelInfo, Passage, Question, Ranking, Selection
from ragqa.types.events.generation import BestSoFar
from ragqa.types.events.pipeline import Answered, Event, Fused, Recorded, Reranked, Retrieved, Selected, Stored
from ragqa.types.events.scoring import Relevance, RelevanceMeasured, Scored

if TYPE_CHECKING:
    from ragqa.generation.llm.client import ChatClient
    from ragqa.generation.second_opinion import SecondOpinions

MAX_QUESTION_CHARS = 8_000  # ten times the longest ObliQA question; longer is a pasted document
# Hits of each retriever of which only those of the named documents are used: a factor, and if none is found, a number.
WIDER, WIDEST = 10, 10_000
MAX_TEXT_CHARS = 30_000  # of a text to check: some ten pages; each sentence is compared with each source sentence


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One corpus, one set of settings and the loaded objects. It has no state per question, so threads may share it."""

    config: Config
    index: Index
    retrievers: Sequence[Retriever]
    generator: Generator | SearchingGenerator | None  # None: passages only
    scorer: Scorer
    models: Models
    records: RecordStore | None = None
    second: SecondOpinions | None = None  # a language model that gives second opinions on verdicts

    def run(self, question: Question) -> Iterator[Event]:
        """The events of one question, in the order of `ragqa.types.events`, each as soon as it is known.

        The answer is on disk before `Answered` is yielded and its scores before `Recorded`. Raises QuestionError before
        the first event, GenerationError after `Selected` and ScoringError after `Answered`; earlier events stay valid.
        A best answer so far is on disk before `Stored`, and stays there if the iterator is closed early.
        If `generator` is None, `Selected` is the last event and nothing is stored.
        """
        question = clean_question(question)
        this = self._for_statements() if question.given else self
        dated, undated = this._as_asked(question)
        generator = dated._generator_of(question)
        recorder = Recorder(question, dated.config, asdict(self.index.manifest), dated.infos, self.records)
        with recorder.storing_failures():
            for event in dated._stages(undated, generator):
                recorder.observe(event)
                yield event
                if isinstance(event, BestSoFar):
                    yield Stored(recorder.record_id)
                recorder.resume()
        if generator is not None:
            yield Recorded(recorder.record_id, dict(recorder.seconds))

    def check(self, text: str, question: str = "") -> Iterator[Event]:
        """The events of checking a text written elsewhere, with or without the question that it answers.

        Passages are retrieved for each sentence and for the whole text. The text is then scored, judged and recorded
        like an answer. Raises QuestionError and ScoringError as `run` does.
        """
        return self.run(Question(question, given=text or " "))

    def _for_statements(self) -> Pipeline:
        config = without_default_reranker(self.config)
        models = self.models if config.reranking.model else replace(self.models, reranker=None)
        return replace(self, config=config, models=models)

    def _as_asked(self, question: Question) -> tuple[Pipeline, Question]:
        """The pipeline for the day that the question names, and the question without it, if passages have dates.

        Raises QuestionError if there is no such day.
        """
        search = partial(rank, self.retrievers, question.searched, self.config.retrieval.top_k)
        filtering, asked = as_asked(self.config.filtering, question.text, search)
        if asked is None:
            return self, question
        if not asked.day:
            msg = (
                f"expected a day such as 1 March 2024 or 31.12.2023, found {asked.written!r}; correct it and ask again"
            )
            raise QuestionError(msg)
        config, generator, before = replace(self.config, filtering=filtering), self.generator, question.follow_up
        if isinstance(generator, SearchingGenerator):  # it selects passages itself
            generator = _generator(config, self.models, self.models.scorer(config.scoring), self.index)
        if before:
            same = (name for name in ("asked", "rewritten") if getattr(before, name) == question.text)
            before = replace(before, **dict.fromkeys(same, asked.rest))
        return replace(self, config=config, generator=generator), replace(question, text=asked.rest, follow_up=before)

    def _generator_of(self, question: Question) -> Generator | SearchingGenerator | None:
        if not question.given:
            return self.generator
        from ragqa.generation.given import GivenText  # a module that few questions need

        return GivenText(self.config.filtering)

    def _stages(self, question: Question, generator: Generator | SearchingGenerator | None) -> Iterator[Event]:
        config = self.config
        rankings = self._rankings(question.searched, question.query)
        yield Retrieved(rankings, self.models.encoder.info.name)
        ranking = self._led_by_number(question.query, fuse(rankings, config.fusion))
        yield Fused(ranking)
        if self.models.reranker:
            ranking = self._led_by_number(question.query, self._reranked(question.query, ranking))
            yield Reranked(ranking)
        if isinstance(generator, SearchingGenerator):
            answer, selection = yield from generator.stream_searching(question, ranking, self.search)
        else:
            selection = select(ranking, config.filtering)
            yield Selected(selection)
            if generator is None:
                return
            answer = yield from generator.stream(question, selection.passages)
        if config.generation.generator in registry.entry_points_of(registry.GENERATORS):
            check_answer(answer, len(selection.passages), self.config.generation.generator)
        day, named = config.filtering.in_force, self.index.documents_named(question.query)
        if day or named:
            from ragqa.records.words import as_of_words, within_words  # a module that few questions need

            said = (within_words(named, selection), as_of_words(day, selection) if day else "", answer.note)
            answer = replace(answer, note=" ".join(filter(None, said)))
        if alike := self._same_number(question.query, selection):
            answer = replace(answer, choices=alike)
        yield Answered(answer)
        if relevance := self.relevance(question, answer, selection.passages):
            yield RelevanceMeasured(relevance)
        scored: Scored = yield from self.scorer.stream(answer, selection.passages)
        if self.second:
            scored = yield from self.second.stream(scored)
        yield scored

    def search(self, question: str) -> Ranking:
        """The fused ranking for this question, reranked if there is a reranker, and filtered only by day."""
        ranking = fuse(self._rankings(question, question), self.config.fusion)
        ranking = self._led_by_number(question, self._reranked(question, ranking))
        return standing(ranking, self.config.filtering.in_force)

    def relevance(self, question: Question, answer: Answer, passages: Sequence[Passage]) -> Relevance | None:
        """How far the answer, written from these passages, answers the question; None for a refusal."""
        encoder = self.models.sentences or self.models.encoder
        names = self.index.documents_named(question.query)
        return relevance(question, answer, passages, encoder, self.models.selector, names)

    def _rankings(self, searched: str, asked: str) -> tuple[Ranking, ...]:
        """One ranking per retriever; if the question names documents, of their passages alone."""
        top_k, named = self.config.retrieval.top_k, self.index.documents_named(asked)
        if not named:
            return rank(self.retrievers, searched, top_k)
        from ragqa.corpus.numbered import without_names  # modules that few questions need

        documents = frozenset[str]().union(*named.values())
        searched = without_names(searched, named) or searched  # a name that all of their passages have tells nothing
        for n_hits in (WIDER * top_k, WIDEST):
            found = tuple(one.within(documents, top_k) for one in rank(self.retrievers, searched, n_hits))
            if any(one.hits for one in found):
                break
        return found

    def _led_by_number(self, question: str, ranking: Ranking) -> Ranking:
        """The ranking, with the rules that the question names by number first."""
        if not any(map(str.isdigit, question)):
            return ranking
        documents = [hit.passage.document_id for hit in ranking.hits]
        named = self.index.asked_by_number(question, documents)
        if named and "(" in question:
            from ragqa.corpus.asked_items import having_items  # a module that few questions need

            having = having_items(question, named, self.index.passages)
            named = self.index.asked_by_number(question, [*having, *documents])
        return led_by(ranking, named) if named else ranking

    def _same_number(self, question: str, selection: Selection) -> tuple[str, ...]:
        """If several documents have the number that the question names, the rule of each, the one shown first."""
        if not (named := by_number(selection)):
            return ()
        from ragqa.corpus.asked_items import alike as alike_in
        from ragqa.corpus.citing import cited_number  # modules that few questions need

        alike = alike_in(question, named, self.index.passages)
        rules = (f"{one.title or one.document_id} {cited_number(one.number)}" for one in (named[0], *alike))
        return tuple(rules) if alike else ()

    def _reranked(self, question: str, fused: Ranking) -> Ranking:
        if not self.models.reranker:
            return fused
        scores = read_again(self.models.reranker, question, fused, self.config.reranking.depth, self.index)
        return rerank(fused, scores, self.config.reranking)

    @property
    def infos(self) -> dict[str, ModelInfo]:
        """The description of each model for a record, by role, and the origin of parts from other packages."""
        added = {retriever.name: registry.origin(registry.RETRIEVERS, retriever.name) for retriever in self.retrievers}
        added["generator"] = registry.origin(registry.GENERATORS, self.config.generation.generator)
        return {name: info for name, info in added.items() if info} | self.models.infos


def clean_question(question: Question) -> Question:
    """The question and the text to check, without control characters and surplus white space.

    Raises QuestionError if nothing is left, or if the question exceeds 8,000 characters or the text 30,000.
    """
    text = _one_line(question.text)
    given = "\n".join(" ".join(line.split()) for line in _clean(question.given).split("\n")).strip()
    if question.given and not given:
        raise QuestionError("The text to check is empty; paste a sentence or more, or choose one of the examples.")
    if not text and not given:
        raise QuestionError("The question is empty; type a question, or choose one of the examples.")
    if len(text) > MAX_QUESTION_CHARS:
        raise QuestionError(
            f"The question has {len(text):,} characters; at most {MAX_QUESTION_CHARS:,} can be asked. "
            "Shorten it to the question itself."
        )
    if len(given) > MAX_TEXT_CHARS:
        raise QuestionError(
            f"The text has {len(given):,} characters; at most {MAX_TEXT_CHARS:,} can be checked at once. "
            "Check it in parts."
        )
    before = question.follow_up
    if before:  # `Question` compares these with the text
        before = replace(before, asked=_one_line(before.asked), rewritten=_one_line(before.rewritten))
    return replace(question, text=text, given=given, follow_up=before)


def _one_line(text: str) -> str:
    return " ".join(_clean(text).split())


def _clean(text: str) -> str:
    return without_controls(text.replace("\r\n", "\n").replace("\r", " ")).replace("\N{REPLACEMENT CHARACTER}", " ")


def assemble(
    config: Config,
    index: Index,
    models: Models,
    records: RecordStore | None = None,
    retrievers: Sequence[Retriever | Callable[[Index], Retriever]] = (),
) -> Pipeline:
    """A pipeline from loaded objects; cheap enough to be made again at every change of settings.

    ``retrievers`` are further retrievers, or functions that make one from the index. Raises ConfigError if the index
    lacks a ranking that has a weight, or one of ``retrievers`` has no weight; IndexMismatchError as `retrievers_for`.
    """
    scorer = models.scorer(config.scoring)
    manifest = index.manifest
    own = [_retriever(retriever, index) for retriever in retrievers]
    names = [retriever.name for retriever in own]
    fusion = fitting_fusion(config.fusion, (*manifest.retrievers, *names), manifest.encoder, manifest.name)
    idle = [name for name in names if name in manifest.retrievers or not fusion.weights.get(name)]
    if idle:
        raise ConfigError(
            f"the retriever {idle[0]!r} needs a name of its own and a weight, as in "
            f"FusionConfig.of(bm25=3, {idle[0]}=1); the weights are of {', '.join(fusion.weights)}"
        )
    named = {name: weight for name, weight in fusion.weights.items() if name not in names}
    of_index = retrievers_for(index, models.encoder, config.retrieval, models.further)
    return Pipeline(
        config=replace(config, fusion=fusion, reranking=config.reranking if models.reranker else RerankingConfig()),
        index=index,
        retrievers=(*of_index, *added_retrievers(index, named), *own),
        generator=_generator(config, models, scorer, index),
        scorer=scorer,
        models=models,
        records=records,
        second=_second(config),
    )


def load_pipeline(
    config: Config | None = None,
    paths: Paths | None = None,
    *,
    recording: bool = True,
    retrievers: Sequence[Retriever | Callable[[Index], Retriever]] = (),
) -> Pipeline:
    """A pipeline that is ready to run. Settings and paths default to those of the environment.

    Answers are stored on disk unless ``recording`` is false. ``retrievers`` is as in `assemble`; each retriever needs a
    weight under its name in ``config.fusion``.

    Raises ConfigError, IndexingError or ModelError.
    """
    config, paths = config or Config.from_env(), paths or Paths.from_env()
    index = open_index(config.index, paths.indexes)
    manifest = index.manifest
    loaded = load_models(manifest.encoder, config.scoring, paths)
    models = with_reranker(loaded, config.reranking, manifest)
    further = load_further([ranking.option for ranking in manifest.rankings], paths)
    records = RecordStore(paths.records) if recording else None
    return assemble(config, index, replace(models, further=further), records, retrievers)


def _retriever(given: Retriever | Callable[[Index], Retriever], index: Index) -> Retriever:
    """The given retriever, or the retriever that the given class or function makes from the index."""
    factory: Any = given
    if isinstance(given, type) or not hasattr(given, "retrieve"):
        factory = registry.call(factory, index=index)
    retriever: Retriever = factory
    return retriever


def opinion_client(config: Config) -> ChatClient:
    """The language model that gives second opinions. Raises ConfigError if none is configured."""
    if not (has_llm() or config.generation.local_model):
        raise ConfigError(
            f"verdicts by {config.scoring.verifier!r} ask a language model, found none: set OPENAI_API_KEY, "
            "OPENAI_BASE_URL or RAGQA_LOCAL_MODEL, or choose --verifier model"
        )
    from ragqa.generation.llm.client import ChatClient  # a module that few pipelines need

    return ChatClient(config.generation, api_key())


def _second(config: Config) -> SecondOpinions | None:
    """The second opinions on verdicts; None if the settings ask for none. Raises as `opinion_client`."""
    if config.scoring.verifier == "model":
        return None
    from ragqa.generation.second_opinion import SecondOpinions

    return SecondOpinions(opinion_client(config), of_all=config.scoring.verifier == "llm-all")


def _generator(
    config: Config, models: Models, scorer: RepassScorer, index: Index
) -> Generator | SearchingGenerator | None:
    """The configured generator, or None for "none". It verifies its drafts with the scorer's own models."""
    name = config.generation.generator
    if name == "none":
        return None
    generator: Generator | SearchingGenerator = registry.make(
        registry.GENERATORS,
        name,
        config=config.generation,
        filtering=config.filtering,
        encoder=models.encoder,
        obligations=models.obligations,
        selector=models.selector,
        names_of=index.documents_named,
        verifier=RepassVerifier(scorer),
        api_key=api_key(),
        prompts=prompt_folder(),
    )
    return generator

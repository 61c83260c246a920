"""Merges the rankings of a question and its sub-questions, and selects the passages for the answer. Pure.

A passage's score is its relevance to the question plus the largest addition by any one sub-question. A sub-question
about a name adds `OWN` to passages with that title, and to other passages a share that falls quickly with their
relevance to it. A bridge, found through a passage, adds only to the name's own passages, and less if it was found
further down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ragqa.english.words import quantity
from ragqa.filtering import select, standing, with_added
from ragqa.generation.answers import composed, separator_after
from ragqa.generation.fanout.names import plain_name
from ragqa.settings.config import FilteringConfig
from ragqa.types import (
    Answer,
    AnswerSentence,
    Candidate,
    Drop,
    Passage,
    Ranking,
    ScoredPassage,
    ScorePart,
    Selection,
    SubQuestion,
    min_max_norm,
)
from ragqa.types.events.generation import (
    EvidenceFound,
    PassagesAdded,
    SubQuestionAnswered,
    SubQuestionsAsked,
    TraceEvent,
)

# Of 81 settings around these, each half of HotpotQA set a chose these for the other half; eight neighbours were within
# .01. FURTHER_OWN was chosen on the encyclopedia's 26 questions, where an article has several passages.
OWN = 1.0  # for the best passage whose title is the name asked about
FURTHER_OWN = 0.25  # factor for each further passage with that title
OTHER = 0.5  # the most for a passage with another title
OTHER_POWER = 3
BRIDGE = 0.8  # for the passage titled with a name found in the best passage
BRIDGE_DECAY = 0.85  # factor for each passage further down in which the name was found
LOOKED_AT = 10  # best hits, among which a name's own passage must be
MAX_EVIDENCE = 2  # passages that each sub-question keeps


@dataclass(frozen=True, slots=True)
class RankedSubQuestion:
    """A sub-question with its ranking; ``hop`` is the rank, from 0, of the passage that a bridge was found in."""

    question: SubQuestion
    ranking: Ranking
    hop: int = 0


def own_passages(name: str, ranking: Ranking) -> frozenset[str]:
    """The ids of those of the best ten passages whose title is this name.

    A qualifier in the title, as in "Nile (river)", is ignored.
    """
    wanted = plain_name(name)
    return frozenset(
        hit.passage.passage_id for hit in ranking.hits[:LOOKED_AT] if plain_name(hit.passage.title) == wanted
    )


def merge(ranking: Ranking, found: Sequence[RankedSubQuestion]) -> Ranking:
    """One ranking of the passages found by the question and its sub-questions, best first.

    Each hit keeps the scores of the question's retrievers. Its ``reranking`` holds the two parts of its score: the
    question's, under the name of its ranking, and the sub-question's, under the name of its kind, with the rank there.
    Without sub-questions the order does not change.
    """
    own = dict(zip((hit.passage.passage_id for hit in ranking.hits), _norms(ranking), strict=True))
    place = {hit.passage.passage_id: rank for rank, hit in enumerate(ranking.hits, start=1)}
    hits = {hit.passage.passage_id: hit for hit in ranking.hits}
    added: dict[str, ScorePart] = {}
    blank = tuple(
        replace(part, raw=None, rank=None, normalised=0.0, contribution=0.0) for part in _first_parts(ranking)
    )
    for one in found:
        for passage_id, part in _added(one).items():
            if passage_id not in added or part.contribution > added[passage_id].contribution:
                added[passage_id] = part
        for hit in one.ranking.hits:
            hits.setdefault(hit.passage.passage_id, ScoredPassage(hit.passage, 0.0, blank))
    kind = found[0].question.kind if found else ""
    merged = []
    for passage_id, hit in hits.items():
        raw = hit.score if passage_id in own else None
        relevance = own.get(passage_id, 0.0)
        first = ScorePart(ranking.retriever, raw, place.get(passage_id), relevance, 1.0, relevance)
        second = added.get(passage_id, ScorePart(kind, None, None, 0.0, 0.0, 0.0))
        parts = (first, second)
        merged.append(replace(hit, score=first.contribution + second.contribution, reranking=parts))
    merged.sort(key=lambda hit: (-hit.score, place.get(hit.passage.passage_id, len(place)), hit.passage.passage_id))
    return Ranking("fan-out", tuple(merged))


def gather(ranking: Ranking, found: Sequence[RankedSubQuestion], filtering: FilteringConfig) -> Selection:
    """The union of the passages kept for the question and for each sub-question, in the merged order.

    The reason of every kept passage names the questions that found it; all other passages are dropped as no evidence.
    Without sub-questions this is the selection of `select`.
    """
    if not found:
        return select(ranking, filtering)
    kind = found[0].question.kind
    reasons: dict[str, list[str]] = {}
    whole = "the text as a whole" if found[0].question.is_sentence else "the question"
    own = select(ranking, filtering)
    for candidate in own.kept:
        reasons.setdefault(candidate.passage.passage_id, []).append(f"found by {whole} (rank {candidate.rank})")
    for one in found:
        for rank, hit in kept_by(one, filtering):
            words = f"found by {kind} {one.question.number} (rank {rank} there)"
            reasons.setdefault(hit.passage.passage_id, []).append(words)
    merged = merge(standing(ranking, filtering.in_force), found)
    kept: list[Candidate] = []
    dropped: list[Candidate] = []
    previous = 1.0
    for rank, (hit, relevance) in enumerate(zip(merged.hits, _norms(merged), strict=True), start=1):
        why = reasons.get(hit.passage.passage_id)
        drop = None if why else Drop.NOT_EVIDENCE
        words = f"kept: {', '.join(why)}" if why else f"dropped: no evidence to {whole} or a {kind}"
        candidate = Candidate(hit, rank, relevance, previous - relevance, drop, words)
        (kept if why else dropped).append(candidate)
        previous = relevance
    gone = (one for one in own.dropped if one.drop is Drop.NOT_IN_FORCE)
    dropped += [replace(one, rank=rank) for rank, one in enumerate(gone, start=len(merged.hits) + 1)]
    return Selection(tuple(kept), tuple(dropped))


def kept_by(found: RankedSubQuestion, filtering: FilteringConfig) -> tuple[tuple[int, ScoredPassage], ...]:
    """The evidence of a sub-question with its ranks: what the filter keeps, at most two passages.

    Passages titled with the sub-question's name come first.
    """
    kept = [(candidate.rank, candidate.hit) for candidate in select(found.ranking, filtering).kept]
    own = own_passages(found.question.name, found.ranking) if found.question.name else frozenset()
    firsts = [(rank, hit) for rank, hit in enumerate(found.ranking.hits, start=1) if hit.passage.passage_id in own]
    ids = {hit.passage.passage_id for _, hit in firsts}
    ordered = [*firsts, *(pair for pair in kept if pair[1].passage.passage_id not in ids)]
    return tuple(ordered[: min(MAX_EVIDENCE, filtering.top_k)])


def _added(found: RankedSubQuestion) -> dict[str, ScorePart]:
    """The score that this sub-question adds to each passage, by id."""
    question = found.question
    own = own_passages(question.name, found.ranking) if question.name else frozenset()
    parts = {}
    n_own = 0
    for rank, (hit, norm) in enumerate(zip(found.ranking.hits, _norms(found.ranking), strict=True), start=1):
        is_own = hit.passage.passage_id in own
        if question.is_bridge:
            weight = BRIDGE * BRIDGE_DECAY**found.hop * FURTHER_OWN**n_own if is_own else 0.0
            amount = weight
        else:
            weight = OWN * FURTHER_OWN**n_own if is_own else OTHER
            amount = weight * (1 + norm) / 2 if is_own else weight * norm**OTHER_POWER
        n_own += is_own
        if amount > 0:
            parts[hit.passage.passage_id] = ScorePart(question.kind, hit.score, rank, norm, weight, amount)
    return parts


def _norms(ranking: Ranking) -> Sequence[float]:
    return min_max_norm([hit.score for hit in ranking.hits])


def _first_parts(ranking: Ranking) -> tuple[ScorePart, ...]:
    return ranking.hits[0].parts if ranking.hits else ()


@dataclass(slots=True)
class Node:
    """A sub-question with its ranking, the passages that it may be answered from, and its answer once there is one.

    Citations of ``answer`` number ``evidence``.
    """

    found: RankedSubQuestion
    evidence: tuple[Passage, ...]
    answer: Answer | None = None

    @property
    def number(self) -> int:
        return self.found.question.number


@dataclass(slots=True)
class Tree:
    """The state of one question. ``root`` is the answer from the question's own evidence, if it was requested.

    ``left_out`` counts the sub-questions above the limit, which are not asked.
    """

    ranking: Ranking
    filtering: FilteringConfig
    nodes: list[Node] = field(default_factory=list)
    root: Answer | None = None
    left_out: int = 0

    def left_out_words(self, most: int) -> str:
        """A sentence about these, if there are any; at most ``most`` are asked."""
        n, are = quantity(self.left_out, "further sub-question"), "was" if self.left_out == 1 else "were"
        return f" {n} {are} left out: the most is {most}." if self.left_out else ""

    def add(self, found: RankedSubQuestion) -> tuple[Node, EvidenceFound]:
        """The node of this sub-question, and the event that reports its evidence."""
        hits = tuple((hit.passage.passage_id, hit.score) for hit in found.ranking.hits)
        evidence = tuple(hit.passage for _, hit in kept_by(found, self.filtering))
        node = Node(found, evidence)
        self.nodes.append(node)
        kept = tuple(passage.passage_id for passage in evidence)
        passages = tuple(hit.passage for hit in found.ranking.hits)
        return node, EvidenceFound(found.question.number, hits, kept, found.hop, passages)

    @property
    def selection(self) -> Selection:
        """The union of all evidence so far."""
        return gather(self.ranking, [node.found for node in self.nodes], self.filtering)

    @property
    def own_evidence(self) -> tuple[Passage, ...]:
        """The passages that are kept for the question itself."""
        return gather(self.ranking, (), self.filtering).passages

    def answers(self) -> Iterator[tuple[int, Answer, tuple[Passage, ...]]]:
        """Every answer as (number, answer, evidence that it cites), the question's own first."""
        if self.root is not None:
            yield 0, self.root, self.own_evidence
        for node in self.nodes:
            if node.answer is not None:
                yield node.number, node.answer, node.evidence

    def joined(self, answer: Answer, selection: Selection) -> Answer:
        """``answer`` with the sentences of all answers in the order of the tree, each once, citing ``selection``.

        Refusals are left out.
        """
        number_of = {passage.passage_id: number for number, passage in enumerate(selection.passages, start=1)}
        sentences: dict[str, tuple[str, AnswerSentence]] = {}
        separator = ""
        for _, part, evidence in self.answers():
            if part.is_refusal:
                continue
            position = 0
            for sentence in part.sentences:
                cited = {number_of[evidence[number - 1].passage_id] for number in sentence.citations}
                key = " ".join(sentence.text.casefold().split())
                between, known = sentences.get(key, (part.text[position : sentence.start] or separator, sentence))
                cited |= set(known.citations) if key in sentences else set()
                sentences[key] = (between, replace(known, citations=tuple(sorted(cited))))
                position = sentence.end
            separator = separator_after(part.text)
        return composed(answer, sentences.values())


def answered(number: int, answer: Answer, evidence: Sequence[Passage]) -> SubQuestionAnswered:
    """The event that reports this answer, whose citations number ``evidence``."""
    cited = {number for sentence in answer.sentences for number in sentence.citations}
    ids = tuple(evidence[number - 1].passage_id for number in sorted(cited))
    note = "" if answer.finish_reason == "stop" and not answer.is_refusal else answer.note
    return SubQuestionAnswered(number, answer.text, ids, note, answer.is_refusal)


def found_in(trace: Sequence[TraceEvent]) -> tuple[RankedSubQuestion, ...]:
    """The sub-questions that have evidence, in order; none if the trace is not of a fan-out."""
    questions = {
        one.number: one for event in trace if isinstance(event, SubQuestionsAsked) for one in event.sub_questions
    }
    found = []
    for event in trace:
        if isinstance(event, EvidenceFound):
            by_id = {passage.passage_id: passage for passage in event.passages}
            hits = [ScoredPassage(by_id[passage_id], score) for passage_id, score in event.hits]
            ranking = Ranking("sub-question", tuple(hits))
            found.append(RankedSubQuestion(questions[event.number], ranking, event.hop))
    return tuple(found)


def reselected(ranking: Ranking, trace: Sequence[TraceEvent], filtering: FilteringConfig) -> Selection:
    """The selection by these settings from the question's ranking and its sub-questions' evidence.

    Passages that were added for a direct answer are kept regardless of the filter.
    """
    added = {name for event in trace if isinstance(event, PassagesAdded) for name in event.passage_ids}
    return with_added(gather(ranking, found_in(trace), filtering), added)


def with_passages(trace: Sequence[TraceEvent], passages: Mapping[str, Passage]) -> tuple[TraceEvent, ...]:
    """The trace of a record with its passages restored: ``passages`` are given by id."""
    return tuple(
        replace(event, passages=tuple(passages[passage_id] for passage_id, _ in event.hits))
        if isinstance(event, EvidenceFound)
        else event
        for event in trace
    )

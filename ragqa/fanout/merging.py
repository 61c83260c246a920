"""What a question and its sub-questions found -> one ranking -> the passages an answer may be written from. Pure.

A passage's score is its relevance to the question plus the most that any one sub-question adds. A sub-question that is
about a name adds `OWN` to passages with that title, and to others a share that falls off quickly with their relevance
to it; one that was reached over a passage adds to the name's own passages alone, less for each passage further down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragqa.config import FilteringConfig
from ragqa.fanout.bridges import own_passages
from ragqa.filtering import select
from ragqa.normalisation import min_max_norm
from ragqa.types import Candidate, Drop, Ranking, ScoredPassage, ScorePart, Selection, SubQuestion

# Of 81 settings around these either half of HotpotQA set a chose these for the other; eight neighbours were within .01.
# FURTHER_OWN was chosen on the encyclopedia's 26 questions, where an article is several passages.
OWN = 1.0  # for the best passage whose title is the name asked about
FURTHER_OWN = 0.25  # of that for the second best passage with that title, a quarter again for each after it
OTHER = 0.5  # at most, for another passage
OTHER_POWER = 3
BRIDGE = 0.8  # for the own passage of a name found in the best passage
BRIDGE_DECAY = 0.85  # for each passage further down that it was found in
MAX_EVIDENCE = 2  # passages a sub-question keeps beyond what the question itself keeps


@dataclass(frozen=True, slots=True)
class Found:
    """A sub-question with its ranking; ``hop`` is the place, from 0, of the passage that a bridge was found in."""

    question: SubQuestion
    ranking: Ranking
    hop: int = 0


def merge(ranking: Ranking, found: Sequence[Found]) -> Ranking:
    """The passages of the question's ranking and of its sub-questions' in one, best first.

    Each hit keeps the scores of the question's retrievers and says under ``reranking`` what the two parts of its score
    are: the question's own, under the name of its ranking, and ``"sub-question"``, with the rank there. Without
    sub-questions the ranking is what it was, in the same order.
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
    merged = []
    for passage_id, hit in hits.items():
        raw = hit.score if passage_id in own else None
        relevance = own.get(passage_id, 0.0)
        first = ScorePart(ranking.retriever, raw, place.get(passage_id), relevance, 1.0, relevance)
        second = added.get(passage_id, ScorePart("sub-question", None, None, 0.0, 0.0, 0.0))
        parts = (first, second)
        merged.append(replace(hit, score=first.contribution + second.contribution, reranking=parts))
    merged.sort(key=lambda hit: (-hit.score, place.get(hit.passage.passage_id, len(place)), hit.passage.passage_id))
    return Ranking("fan-out", tuple(merged))


def gather(ranking: Ranking, found: Sequence[Found], filtering: FilteringConfig) -> Selection:
    """The union of what the question keeps of its ranking and each sub-question of its own, in the merged order.

    Every kept passage says who found it; everything else was no evidence to any of them. Without sub-questions it is
    what `select` keeps.
    """
    if not found:
        return select(ranking, filtering)
    reasons: dict[str, list[str]] = {}
    for candidate in select(ranking, filtering).kept:
        reasons.setdefault(candidate.passage.passage_id, []).append(f"found by the question (rank {candidate.rank})")
    for one in found:
        for rank, hit in kept_by(one, filtering):
            words = f"found by sub-question {one.question.number} (rank {rank} there)"
            reasons.setdefault(hit.passage.passage_id, []).append(words)
    merged = merge(ranking, found)
    kept: list[Candidate] = []
    dropped: list[Candidate] = []
    previous = 1.0
    for rank, (hit, relevance) in enumerate(zip(merged.hits, _norms(merged), strict=True), start=1):
        why = reasons.get(hit.passage.passage_id)
        drop = None if why else Drop.NOT_EVIDENCE
        words = f"kept: {', '.join(why)}" if why else "dropped: no evidence to the question or a sub-question"
        candidate = Candidate(hit, rank, relevance, previous - relevance, drop, words)
        (kept if why else dropped).append(candidate)
        previous = relevance
    return Selection(tuple(kept), tuple(dropped))


def kept_by(found: Found, filtering: FilteringConfig) -> tuple[tuple[int, ScoredPassage], ...]:
    """The evidence of a sub-question, with the rank it has there: what the filter keeps, at most two passages.

    A passage of the name's own comes before others.
    """
    kept = [(candidate.rank, candidate.hit) for candidate in select(found.ranking, filtering).kept]
    own = own_passages(found.question.name, found.ranking) if found.question.name else frozenset()
    firsts = [(rank, hit) for rank, hit in enumerate(found.ranking.hits, start=1) if hit.passage.passage_id in own]
    ids = {hit.passage.passage_id for _, hit in firsts}
    ordered = [*firsts, *(pair for pair in kept if pair[1].passage.passage_id not in ids)]
    return tuple(ordered[: min(MAX_EVIDENCE, filtering.top_k)])


def _added(found: Found) -> dict[str, ScorePart]:
    """What this sub-question adds to each passage, by id."""
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
            parts[hit.passage.passage_id] = ScorePart("sub-question", hit.score, rank, norm, weight, amount)
    return parts


def _norms(ranking: Ranking) -> Sequence[float]:
    return min_max_norm([hit.score for hit in ranking.hits])


def _first_parts(ranking: Ranking) -> tuple[ScorePart, ...]:
    return ranking.hits[0].parts if ranking.hits else ()

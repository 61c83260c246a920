"""The rule-based plan: taking a question apart, searching for each part, and following names to a second hop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ragqa.fanout.bridges import best_documents, bridges, own_passages
from ragqa.fanout.decomposition import Part, decompose
from ragqa.fanout.merging import Found
from ragqa.protocols import Search
from ragqa.types import Ranking, SubQuestion

FOUND = 20  # hits of a sub-question that are looked at
HOP_PASSAGES = 2  # the question's best documents whose names are followed
MAX_BRIDGES = 3  # second-hop questions asked; more change nothing on HotpotQA set a


def parts_of(question: str, ranking: Ranking, most: int) -> tuple[Part, ...]:
    """The parts that the rules find, with titles of the ten best passages as names that are whole."""
    titles = sorted({hit.passage.title for hit in ranking.hits[:10] if hit.passage.title})
    return decompose(question, most, titles)


def search_parts(parts: Sequence[Part], search: Search, first: int = 1, parent: int = 0) -> Iterator[Found]:
    """Each part as a sub-question, numbered from ``first``, with what it found."""
    for number, part in enumerate(parts, start=first):
        yield Found(SubQuestion(number, part.text, parent, part.reason, part.name), best_of(search(part.text)))


@dataclass(frozen=True, slots=True)
class _Bridge:
    part: Part
    ranking: Ranking
    hop: int
    rank: int  # of the name's own passage for the question itself


def second_hop(question: str, ranking: Ranking, search: Search, most: int, first: int = 1) -> tuple[Found, ...]:
    """The names in the best passages that the corpus has a passage of its own on, each asked what is left to ask.

    At most ``most`` and `MAX_BRIDGES`: those first whose own passage is the more relevant to the question, ties and
    passages that the question did not find in the order the names were met.
    """
    place = {hit.passage.passage_id: rank for rank, hit in enumerate(ranking.hits)}
    met: dict[str, _Bridge] = {}
    for hop, passage in enumerate(best_documents(ranking, HOP_PASSAGES)):
        for part in bridges(question, passage):
            if part.name.casefold() in met:
                continue
            found = search(part.text)
            own = own_passages(part.name, found)
            if own:
                rank = min(place.get(passage_id, len(place)) for passage_id in own)
                met[part.name.casefold()] = _Bridge(part, best_of(found), hop, rank)
    chosen = sorted(met.values(), key=lambda bridge: bridge.rank)[: min(most, MAX_BRIDGES)]
    return tuple(
        Found(
            SubQuestion(number, bridge.part.text, 0, bridge.part.reason, bridge.part.name, is_bridge=True),
            bridge.ranking,
            bridge.hop,
        )
        for number, bridge in enumerate(chosen, start=first)
    )


def best_of(ranking: Ranking) -> Ranking:
    """The ranking's best `FOUND` hits."""
    return replace(ranking, hits=ranking.hits[:FOUND])

"""Citations followed: what a good candidate cites, or what cites it, becomes a candidate with a score that says why.

An index that knows what its passages refer to (`ragqa.corpus.references`) has these edges; others lack the ranking.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np
import numpy.typing as npt

from ragqa.retrieval.ranking import CorpusRanker, Mask, Positions, best_positions, index_files
from ragqa.settings.config import FusionConfig
from ragqa.types import Passage, Ranking, ScoredPassage, min_max_norm

NAME: Final = "citations"
SEEDS: Final = 20  # best candidates whose citations are followed
WIDEST: Final = 10  # passages of a range, "rules 3.1 to 3.9", that are followed: a chapter is no citation of its rules
BOUNDS: Final = (0.0, 1.0)  # of scores: what fusion maps to 0 and 1
_AND_ASKS: Final = re.compile(
    r"(?i)\b(?:and|as well as|also)\b[^?]{0,60}\b"
    r"(?:how|what|which|when|who|whether|are there|is there|do|does|must|should|can)\b"
)
_OTHERWISE: Final = 0.3  # weight of a ranking that the default fusion does not know, in telling good candidates

Edges = Mapping[int, tuple[int, ...]]  # positions in the index
Cited = tuple[str, str, str]  # ids of a passage, and of the first and the last one that it cites
_Seed = tuple[Passage, float]  # a good candidate and its relevance in [0, 1]


@dataclass(frozen=True, slots=True)
class Links:
    """Which passages each passage cites, and which cite it, by position, ascending; those without any left out."""

    cites: Edges
    cited_by: Edges

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> Links:
        """From pairs of (the passage that cites, the one it cites); repeated ones and those to itself count not."""
        cites: dict[int, set[int]] = {}
        cited_by: dict[int, set[int]] = {}
        for source, target in pairs:
            if source != target:
                cites.setdefault(source, set()).add(target)
                cited_by.setdefault(target, set()).add(source)
        return cls(*({one: tuple(sorted(found)) for one, found in edges.items()} for edges in (cites, cited_by)))


NO_LINKS: Final = Links({}, {})


def asks_twice(question: str) -> bool:
    """Whether it asks for two things, "what must it do, and how does …?": one passage seldom answers both."""
    return _AND_ASKS.search(question) is not None


def links_of(cited: Iterable[Cited], positions_of: Callable[[Sequence[str]], Sequence[int]]) -> Links:
    """The links between these passages; of a wide range only its first ones."""
    found = list(cited)
    names = list(dict.fromkeys(name for several in found for name in several))
    place = dict(zip(names, positions_of(names), strict=True))
    return Links.of(
        (place[source], one)
        for source, target, last in found
        for one in range(place[target], min(place[last], place[target] + WIDEST - 1) + 1)
    )


class CitationRetriever(CorpusRanker):
    """Ranks what the best candidates of the other rankings cite, and what cites them."""

    def __init__(
        self,
        file: Path,
        passages: Sequence[Passage],
        order: Positions,
        hidden: Mask,
        positions_of: Callable[[Sequence[str]], Sequence[int]],
        read: Callable[[Iterable[bytes]], Iterable[Cited]],
    ) -> None:
        """``file`` is the index's file of references, mapped now and read when it is first needed.

        ``positions_of`` gives the positions of ids of the index, ``read`` what the lines of the file say.
        """
        super().__init__(NAME, passages, order, hidden)
        with index_files("the references of the passages", file):
            self._bytes: npt.NDArray[np.uint8] = np.memmap(file, np.uint8, "r")
        self._file = file
        self._positions_of = positions_of
        self._read = read
        self._links: Links | None = None
        self._lock = Lock()

    @property
    def links(self) -> Links:
        """Raises IndexMismatchError where the file holds something else."""
        with self._lock:
            if self._links is None:
                with index_files("the references of the passages", self._file):
                    cited = self._read(self._bytes.tobytes().splitlines())
                    self._links = links_of(cited, self._positions_of)
            return self._links

    def retrieve(self, question: str, top_k: int) -> Ranking:
        """Nothing: without candidates there is nothing to follow."""
        return Ranking(self.name, (), bounds=BOUNDS)

    def follow(self, question: str, rankings: Sequence[Ranking], top_k: int) -> Ranking:
        """At most ``top_k`` passages linked to the best candidates of these rankings, each with a note that says how.

        Where the question asks for two things, a hit also names the candidate that it belongs to (``via``).

        A candidate's relevance, in [0, 1], is the sum of its normalised scores, weighted as the default fusion does.
        What it cites has that divided by the square root of how many it cites, what cites it likewise; of several
        candidates the best counts.
        """
        seeds, pairs = _seeds(rankings), asks_twice(question)
        links, best = self.links, dict[int, tuple[float, int, str]]()
        for rank, (position, (_, relevance)) in enumerate(
            zip(self._positions_of([one.passage_id for one, _ in seeds]), seeds, strict=True), start=1
        ):
            for edges, how in ((links.cites, "cited by"), (links.cited_by, "cites")):
                linked = edges.get(position, ())
                for other in linked:
                    score = relevance / math.sqrt(len(linked))
                    if score > best.get(other, (0.0,))[0] and not self._hidden[other]:
                        best[other] = score, rank, how
        positions = np.fromiter(best, np.int64, len(best))
        scores = np.array([best[n][0] for n in positions.tolist()])
        chosen = best_positions(positions, scores, self._order, top_k).tolist()
        return Ranking.of(self.name, [self._hit(n, *best[n], seeds, pairs=pairs) for n in chosen], bounds=BOUNDS)

    def _hit(
        self, position: int, score: float, rank: int, how: str, seeds: Sequence[_Seed], *, pairs: bool
    ) -> ScoredPassage:
        passage, seed = self._passages[position], seeds[rank - 1][0]
        note = f"{how} {_name(seed, passage)} (rank {rank})"
        return ScoredPassage(passage, score, note=note, via=seed.passage_id if pairs else "")


def _seeds(rankings: Sequence[Ranking]) -> list[_Seed]:
    """The best candidates, best first."""
    finding = [one for one in rankings if one.finds and one.hits]
    weights = [FusionConfig().weights.get(one.retriever, _OTHERWISE) for one in finding]
    relevance: dict[str, float] = {}
    passages: dict[str, Passage] = {}
    for ranking, weight in zip(finding, weights, strict=True):
        normalised = min_max_norm([hit.score for hit in ranking.hits], ranking.bounds)
        for hit, value in zip(ranking.hits, normalised, strict=True):
            name = hit.passage.passage_id
            passages[name] = hit.passage
            relevance[name] = relevance.get(name, 0.0) + weight * value / sum(weights)
    ordered = sorted(relevance, key=lambda name: (-relevance[name], name))[:SEEDS]
    return [(passages[name], relevance[name]) for name in ordered]


def _name(passage: Passage, beside: Passage) -> str:
    """Its number, after its document where that is another."""
    number = passage.number or passage.passage_id
    return number if passage.document_id == beside.document_id else f"{passage.title or passage.document_id} {number}"

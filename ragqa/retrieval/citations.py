"""Follows citations: a passage that a good candidate cites, or that cites it, becomes a candidate too.

Only an index with resolved references (`ragqa.corpus.references`) has this ranking.
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

from ragqa.retrieval.ranking import CorpusRanker, Rankable, best_positions, index_files
from ragqa.settings.config import FusionConfig
from ragqa.types import Passage, Ranking, ScoredPassage, min_max_norm

NAME: Final = "citations"
SEEDS: Final = 20  # best candidates whose citations are followed
WIDEST: Final = 10  # passages followed of a range, "rules 3.1 to 3.9": citing a chapter is not citing each of its rules
BOUNDS: Final = (0.0, 1.0)  # the scores that fusion maps to 0 and 1
_AND_ASKS: Final = re.compile(
    r"(?i)\b(?:and|as well as|also)\b[^?]{0,60}\b"
    r"(?:how|what|which|when|who|whether|are there|is there|do|does|must|should|can)\b"
)
_OTHERWISE: Final = 0.3  # weight, in choosing good candidates, of a ranking that the default fusion does not know

Edges = Mapping[int, tuple[int, ...]]  # positions in the index
Cited = tuple[str, str, str]  # ids of a passage, and of the first and the last one that it cites
_Seed = tuple[Passage, float]  # a good candidate and its relevance in [0, 1]


@dataclass(frozen=True, slots=True)
class Links:
    """The passages that each passage cites and that cite it, by position, ascending; only passages that have some."""

    cites: Edges
    cited_by: Edges

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> Links:
        """The links of (citing, cited) pairs of positions; repeated pairs and self-citations are ignored."""
        cites: dict[int, set[int]] = {}
        cited_by: dict[int, set[int]] = {}
        for source, target in pairs:
            if source != target:
                cites.setdefault(source, set()).add(target)
                cited_by.setdefault(target, set()).add(source)
        return cls(
            *({position: tuple(sorted(others)) for position, others in edges.items()} for edges in (cites, cited_by))
        )


NO_LINKS: Final = Links({}, {})


def asks_twice(question: str) -> bool:
    """Whether the question asks for two things, "what must it do, and how does …?": one passage seldom answers both."""
    return _AND_ASKS.search(question) is not None


def links_of(cited: Iterable[Cited], positions_of: Callable[[Sequence[str]], Sequence[int]]) -> Links:
    """The links of these references; of a wide range, only its first `WIDEST` passages."""
    references = list(cited)
    names = list(dict.fromkeys(name for several in references for name in several))
    place = dict(zip(names, positions_of(names), strict=True))
    return Links.of(
        (place[source], position)
        for source, target, last in references
        for position in range(place[target], min(place[last], place[target] + WIDEST - 1) + 1)
    )


class CitationRetriever(CorpusRanker):
    """Ranks the passages that the best candidates of the other rankings cite, and the passages that cite these."""

    def __init__(
        self,
        file: Path,
        corpus: Rankable,
        positions_of: Callable[[Sequence[str]], Sequence[int]],
        read: Callable[[Iterable[bytes]], Iterable[Cited]],
    ) -> None:
        """``file`` is the index's file of references, mapped now and parsed when it is first needed.

        ``positions_of`` maps passage ids to positions in the index; ``read`` parses the lines of the file.
        """
        super().__init__(NAME, corpus)
        with index_files("the references of the passages", file):
            self._bytes: npt.NDArray[np.uint8] = np.memmap(file, np.uint8, "r")
        self._file = file
        self._positions_of = positions_of
        self._read = read
        self._links: Links | None = None
        self._lock = Lock()

    @property
    def links(self) -> Links:
        """The links of the file. Raises IndexMismatchError if the file holds something else."""
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
        """At most ``top_k`` passages linked to the best candidates of these rankings, each with an explaining note.

        If the question asks for two things, a hit also names its candidate (``via``).

        A candidate's relevance, in [0, 1], is the sum of its normalised scores with the weights of the default fusion.
        A passage that it cites scores this relevance divided by the square root of the number of passages it cites; the
        passages that cite it are scored likewise. A passage linked to several candidates has its highest score.
        """
        seeds, pairs = _seeds(rankings), asks_twice(question)
        links, best = self.links, dict[int, tuple[float, int, str]]()
        for rank, (position, (_, relevance)) in enumerate(
            zip(self._positions_of([passage.passage_id for passage, _ in seeds]), seeds, strict=True), start=1
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
    finding = [seed for seed in rankings if seed.finds and seed.hits]
    weights = [FusionConfig().weights.get(seed.retriever, _OTHERWISE) for seed in finding]
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
    """The passage's number, preceded by its document unless both passages are of one document."""
    number = passage.number or passage.passage_id
    return number if passage.document_id == beside.document_id else f"{passage.title or passage.document_id} {number}"

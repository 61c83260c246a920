"""The rule-based plan: splitting a question, searching for each part, and following names to a second hop."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ragqa.generation.fanout.decomposition import PlannedQuestion, decompose
from ragqa.generation.fanout.merging import RankedSubQuestion, own_passages
from ragqa.generation.fanout.names import FUNCTION_WORDS, SMALL_WORDS, names_in, plain_name
from ragqa.plugins.protocols import Search
from ragqa.types import Passage, Ranking, SubQuestion

MAX_NAMES = 12  # searched for one passage; a longer list is an index, not a text

_WORD = re.compile(r"\w+")
_DATE = re.compile(
    r"(?:\d|january|february|march|april|may|june|july|august|september|october|november|december)[\w ]*\b\d+$|\d+$"
)
_WORDS = re.compile(r"\w+(?:[-'’]\w+)*")


def best_documents(ranking: Ranking, count: int) -> tuple[Passage, ...]:
    """The best passage of each of the ``count`` best documents, best first."""
    best: dict[str, Passage] = {}
    for hit in ranking.hits:
        best.setdefault(hit.passage.document_id, hit.passage)
        if len(best) == count:
            break
    return tuple(best.values())


def bridges(question: str, passage: Passage) -> tuple[PlannedQuestion, ...]:
    """A question per name in the passage that is neither in the question nor the passage's own title.

    It asks the rest of the question, without the words that the passage has, about the name: "Party Never Ends is an
    album by the Romanian singer who studied at what college?" becomes "Inna: who studied at what college?". At most 12,
    in reading order.
    """
    asked = {word.casefold() for word in _WORD.findall(question)}
    title = plain_name(passage.title)
    parts: dict[str, PlannedQuestion] = {}
    rest = _rest(question, passage)
    for span in names_in(passage.text):
        name = plain_name(span.text)
        words = _WORD.findall(name)
        if name == title or not words or all(word in asked or word in FUNCTION_WORDS for word in words):
            continue
        if _DATE.match(name) or name in parts:
            continue
        reason = f"{span.text} is named in {passage.title or passage.document_id}"
        parts[name] = PlannedQuestion(f"{span.text}: {rest}?" if rest else f"{span.text}?", reason, span.text)
    return tuple(parts.values())[:MAX_NAMES]


def _rest(question: str, passage: Passage) -> str:
    """The words of the question that the passage lacks, each with the function words right before it."""
    known = {word.casefold() for word in _WORD.findall(f"{passage.title} {passage.text}")}
    kept: list[str] = []
    waiting: list[str] = []
    for word in _WORDS.findall(question):
        waiting.append(word)
        if word.casefold() in SMALL_WORDS:
            continue
        if word.casefold() not in known:
            kept += waiting
        waiting = []
    text = " ".join(kept)
    return text[:1].lower() + text[1:] if kept and kept[0].casefold() in SMALL_WORDS else text


FOUND = 20  # hits of a sub-question that are used
HOP_PASSAGES = 2  # the question's best documents whose names are followed
MAX_BRIDGES = 3  # second-hop questions; more change nothing on HotpotQA set a


def parts_of(question: str, ranking: Ranking) -> tuple[PlannedQuestion, ...]:
    """The parts that the rules find, with the titles of the ten best passages as whole names."""
    titles = sorted({hit.passage.title for hit in ranking.hits[:10] if hit.passage.title})
    return decompose(question, titles)


def search_parts(parts: Sequence[PlannedQuestion], search: Search) -> Iterator[RankedSubQuestion]:
    """Each part as a sub-question, numbered from 1, with its ranking."""
    for number, part in enumerate(parts, start=1):
        yield RankedSubQuestion(SubQuestion(number, part.text, 0, part.reason, part.name), best_of(search(part.text)))


@dataclass(frozen=True, slots=True)
class _Bridge:
    part: PlannedQuestion
    ranking: Ranking
    hop: int
    rank: int  # of the name's own passage for the question itself


def second_hop(
    question: str, ranking: Ranking, search: Search, most: int, first: int = 1
) -> tuple[RankedSubQuestion, ...]:
    """Bridges: sub-questions on names in the best passages for which the corpus has a passage of its own.

    At most ``most`` and at most `MAX_BRIDGES`. Names whose own passage ranks higher for the question come first; ties,
    and passages that the question did not find, keep the order of the names.
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
        RankedSubQuestion(
            SubQuestion(number, bridge.part.text, 0, bridge.part.reason, bridge.part.name, is_bridge=True),
            bridge.ranking,
            bridge.hop,
        )
        for number, bridge in enumerate(chosen, start=first)
    )


def best_of(ranking: Ranking) -> Ranking:
    """The ranking's best `FOUND` hits."""
    return replace(ranking, hits=ranking.hits[:FOUND])

"""The default without a language model: quotes the sentence that answers, then a few as evidence; or refuses.

It reads the sentences of the best passages, including some that the filter drops. If a sentence of a dropped passage
answers, its passage is kept as well (`PassagesAdded`). Quotes are verbatim.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from collections.abc import Generator as Stream
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import accumulate
from typing import Final

from ragqa.corpus.asked_items import asked_items
from ragqa.corpus.citing import short_names, title_words
from ragqa.corpus.numbered import asks_only_for, without_names
from ragqa.english.phrases import POINTING_BACK
from ragqa.english.sentences import GAP
from ragqa.english.words import ENGLISH, language_of, words_of
from ragqa.filtering import select, standing, with_added
from ragqa.generation.answers import NOTHING_KEPT, Quote, empty_answer, pieces_of, quoted
from ragqa.generation.direct.asking import UNNAMED, Part, parts_of
from ragqa.generation.direct.weighing import (
    LINE,
    SEPARATOR,
    Answerability,
    Evidence,
    Measured,
    Source,
    answerability,
    is_readable,
    log_odds,
    measured,
    score,
    stems_of,
    vectors_of,
)
from ragqa.generation.prompts import NO_TEXT
from ragqa.infra.cleaning import without_controls
from ragqa.plugins.protocols import Encoder, NamesOf, Search, Selector
from ragqa.settings.config import FilteringConfig, GenerationConfig
from ragqa.types import Answer, Question, Ranking, Selection
from ragqa.types.events.generation import GenerationEvent, PassagesAdded, Token
from ragqa.types.events.pipeline import Selected

READ, READ_OF_RERANKED = 16, 24  # sentences of a question that the selector reads; of a reranked ranking
EVIDENCE: Final = 3  # sentences after those that answer
EVIDENCE_WORDS: Final = 150  # of these sentences together
# How far the score of evidence may be below the lowest score of the sentences that answer: for other passages, likewise
# if no part is `SURE` of its answer, for the same passages, and for the next sentence if it limits or completes it.
NEAR, UNSURE, BESIDE, LIMITING = 1.0, 2.5, 2.0, 6.0
SURE: Final = 0.74  # answerability
NEWS: Final = 4.0  # added to the score of evidence, times the share of the question's words that only it has
RULE_WORDS: Final = 300  # of a rule asked for by its number
NEAREST: Final = 3  # passages that a refusal names
# A missing word may be a misspelt one: its fewest letters, and how alike the two must be, in [0, 1] (`difflib`).
FEWEST_LETTERS, ALMOST = 5, 0.82
MOST_CHOICES: Final = 4  # narrower questions offered for a vague one
LONGEST_HEADING: Final = 160  # characters
_LIMITS: Final = re.compile(
    r"\b(?:nevertheless|however|but|except|unless|only|not|no|never|despite|although|other than|instead|exceptions?)\b",
    re.IGNORECASE,
)
GOES_ON: Final = "The rule goes on after these sentences."
REFUSAL: Final = "The corpus does not answer the question."
ANYWAY: Final = "The corpus may not answer the question; its nearest sentences are quoted all the same."
HOW_ON: Final = "Ask in the words of the corpus, or have the nearest sentences quoted anyway."


@dataclass(frozen=True, slots=True)
class Weighed:
    """The sentences with their scores for each part, and the position of the best sentence for each part."""

    sources: tuple[Source, ...]
    scores: tuple[tuple[float, ...], ...]  # one row per part
    best: tuple[int, ...]  # one per part, all different if there are enough, except for the sides of a comparison
    answerable: tuple[Answerability, ...]  # one per part


@dataclass(frozen=True, slots=True)
class Draft:
    """The quoted answer, and how many of its sentences answer the question (possibly none)."""

    answer: Answer
    selection: Selection
    pieces: tuple[str, ...] = ()  # the answer as streamed, with citation marks
    n_leads: int = 0  # the number of sentences at the start that answer; the others are evidence


class DirectGenerator:
    """Quotes the sentence that answers each part of the question, then its evidence. May be shared by threads."""

    name = "direct, no language model"
    model = ""

    def __init__(
        self,
        encoder: Encoder,
        config: GenerationConfig,
        filtering: FilteringConfig,
        selector: Selector | None = None,
        names_of: NamesOf = lambda _: {},
    ) -> None:
        """Without ``selector`` only cosine similarity and words decide.

        ``names_of`` gives the names of documents in a question with the ids of each, as `Index.documents_named`.
        """
        self._names_of = names_of
        self._encoder = encoder
        self._selector = selector
        self._config = config
        self._filtering = filtering

    def stream_searching(
        self, question: Question, ranking: Ranking, search: Search
    ) -> Stream[GenerationEvent | Selected, None, tuple[Answer, Selection]]:
        """Yields the selection and one token per quoted sentence; returns the answer and the selection it cites.

        A question without an answerable part is refused, unless ``quote_anyway`` is set. A refusal cites nothing, has
        no sentence to be scored, and names the nearest passages. The note names parts without evidence.
        """
        del search  # one search is enough: the ranking is longer than the selection
        draft = yield from self.draft(question, ranking)
        yield from map(Token, draft.pieces)
        return draft.answer, draft.selection

    def draft(self, question: Question, ranking: Ranking) -> Stream[GenerationEvent | Selected, None, Draft]:
        """Yields the selection, but no part of the answer."""
        selection = select(ranking, self._filtering)
        evidence = Evidence(standing(ranking, self._filtering.in_force), self._names_of(question.query))
        parts = parts_of(question.query)
        named = tuple(source for source in evidence.sentences if source.rank < evidence.n_named)
        sources = tuple(filter(is_readable, named or evidence.sentences)) or named or evidence.sentences
        if not selection.kept or not sources:
            yield Selected(selection)
            note = NO_TEXT if selection.kept else NOTHING_KEPT
            return Draft(empty_answer(self.name, self.model, note), selection)
        if named and asks_only_for(question.query, evidence.passages[0]):
            rule, note = _rule(question.query, sources, evidence)
            draft = yield from _drafted(rule, len(rule), selection, evidence, self.name)
            return replace(draft, answer=replace(draft.answer, note=note))
        choices = _choices(question, parts, evidence)
        weighed = self._weighed(question, parts, sources, evidence)
        is_refused = not any(one.is_enough for one in weighed.answerable)
        if is_refused and not self._config.quote_anyway:
            yield Selected(selection)
            answer = self._refusal(question, weighed, evidence, ranking)
            answer = replace(answer, choices=choices or answer.choices)
            return Draft(answer, selection, (answer.text,))
        leads = self._leads(weighed)
        chosen = self._chosen(parts, weighed, leads, evidence)
        draft = yield from _drafted(chosen, 0 if is_refused else len(leads), selection, evidence, self.name)
        not_found = tuple(
            part.text.rstrip("?. ") for part, one in zip(parts, weighed.answerable, strict=True) if not one.is_enough
        )
        cut = [
            part.text.rstrip("?. ")
            for part, one, place in zip(parts, weighed.answerable, weighed.best, strict=True)
            if one.is_enough and place not in leads
        ]
        said = f"Not found: {'; '.join(not_found)}." if not_found else ""
        left = (
            f"Found but not quoted, as most sentences is {self._config.max_sentences}: {'; '.join(cut)}." if cut else ""
        )
        note = f"{said} {left}".strip()
        if is_refused:
            note = f"{ANYWAY} {_measured(max(weighed.answerable, key=lambda one: one.value))}"
        return replace(draft, answer=replace(draft.answer, note=note, not_found=not_found, choices=choices))

    def _weighed(
        self, question: Question, parts: Sequence[Part], sources: tuple[Source, ...], evidence: Evidence
    ) -> Weighed:
        vectors = self._encoder.encode([source.text for source in sources])
        scores, best, answerable = [], [], []
        meant = [evidence.places_in(sources, evidence.named_by(part.text)) for part in parts]
        query = without_names(question.query, evidence.unread, UNNAMED)
        parts = [part.without_names(evidence.unread) for part in parts]
        for part, asked, within in zip(parts, vectors_of(parts, query, self._encoder), meant, strict=True):
            cosines = (vectors @ asked[0]).tolist()
            of_part = [
                measured(part, source, cosine, evidence) for source, cosine in zip(sources, cosines, strict=True)
            ]
            of_part = self._read(query, part, len(parts), sources, of_part, within, evidence)
            scores.append(tuple(score(one) if n in within else -math.inf for n, one in enumerate(of_part)))
            top = max(range(len(sources)), key=lambda place: (scores[-1][place], -place))
            free = [place for place in range(len(sources)) if place not in best] or [top]
            best.append(top if part.is_side else max(free, key=lambda place: (scores[-1][place], -place)))
            found = answerability(part, of_part[top], evidence, len(question.query.split()))
            answerable.append(found if within else replace(found, value=0.0))
        return Weighed(sources, tuple(scores), tuple(best), tuple(answerable))

    def _read(
        self,
        query: str,
        part: Part,
        n_parts: int,
        sources: Sequence[Source],
        found: Sequence[Measured],
        within: Collection[int],
        evidence: Evidence,
    ) -> list[Measured]:
        """The values with the selector's log odds for the best sentences; the others get the lowest of these.

        Only the sources at the positions ``within`` are read.
        """
        if not self._selector or not within or language_of(query) != ENGLISH:
            return [*found]
        most = READ_OF_RERANKED if evidence.is_reranked else READ
        places = sorted(within, key=lambda n: (-score(found[n]), n))[: max(1, most // n_parts)]
        texts = [sources[n].in_context(evidence.passages[sources[n].rank]) for n in places]
        answers = log_odds(self._selector, part, query, texts)
        known = dict(zip(places, answers, strict=True))
        return [replace(one, answers=known.get(n, min(answers))) for n, one in enumerate(found)]

    def _leads(self, weighed: Weighed) -> list[int]:
        """The positions of the best sentences of the answerable parts, or of all parts if none is answerable."""
        is_any = any(one.is_enough for one in weighed.answerable)
        places = [
            place
            for place, found in zip(weighed.best, weighed.answerable, strict=True)
            if found.is_enough or not is_any
        ]
        return list(dict.fromkeys(places))[: self._config.max_sentences]

    def _chosen(
        self, parts: Sequence[Part], weighed: Weighed, leads: Sequence[int], evidence: Evidence
    ) -> list[Source]:
        """The sentences that answer, then evidence in the order of the passages."""
        n_further = min(EVIDENCE, self._config.max_sentences - len(leads))
        further = _further(parts, weighed, leads, n_further, evidence)
        return [weighed.sources[place] for place in (*leads, *sorted(further))]

    def _refusal(self, question: Question, weighed: Weighed, evidence: Evidence, ranking: Ranking) -> Answer:
        nearest = list(dict.fromkeys(weighed.sources[place].rank for place in weighed.best))
        ranks = [*nearest, *(rank for rank in range(len(evidence.passages)) if rank not in nearest)][:NEAREST]
        names = "; ".join(dict.fromkeys(short_names([evidence.passages[rank] for rank in ranks])))
        likeliest = max(weighed.answerable, key=lambda one: one.value)
        missing = f" No passage found has “{'”, “'.join(likeliest.missing)}”." if likeliest.missing else ""
        text, note = f"{REFUSAL}{missing} Nearest to it: {names}.", f"{_measured(likeliest)} {HOW_ON}"
        choices = _respelt(question.query, likeliest.missing, ranking)
        return Answer(text, (), self.name, self.model, raw=text, note=note, is_refusal=True, choices=choices)


def _rule(question: str, sources: Sequence[Source], evidence: Evidence) -> tuple[list[Source], str]:
    """The first sentences of the rule that is named by number; of an item, its sentences and the first; and a note."""
    named = evidence.passages[: evidence.n_named]
    items = [[" ".join(one.text.split()) for one in asked_items(question, passage)] for passage in named]
    found = [
        source
        for source in sources
        if not any(items)
        or not source.position
        or any(source.text in item or item in source.text for item in items[source.rank])
    ]
    totals = accumulate(len(source.text.split()) for source in found)
    begun = found[: max(1, sum(n_words <= RULE_WORDS for n_words in totals))]
    return begun, GOES_ON if len(begun) < len(found) else ""


def _drafted(
    chosen: Sequence[Source], n_leads: int, selection: Selection, evidence: Evidence, name: str
) -> Stream[GenerationEvent | Selected, None, Draft]:
    """The quoted sentences, the first ``n_leads`` of which answer, and the selection with their passages."""
    once: dict[str, Source] = {}
    for one in chosen:
        once.setdefault(one.text, one)
    n_leads, chosen = len({one.text for one in chosen[:n_leads]}), list(once.values())
    selection = yield from _with_their_passages(selection, chosen, evidence)
    texts = [" ".join(without_controls(one.text).split()) for one in selection.passages]  # as `Evidence` reads them
    quotes = [Quote(source.text, _citations(source, texts)) for source in chosen]
    return Draft(quoted(quotes, name, ""), selection, tuple(pieces_of(quotes)), n_leads)


def _further(parts: Sequence[Part], weighed: Weighed, leads: Sequence[int], most: int, evidence: Evidence) -> list[int]:
    """The positions of at most ``most`` further sentences: those that leads refer back to, then those that add most."""
    weights = {stem: evidence.rarity(stem) for part in parts for stem in part.content}
    total = sum(weights.values()) or 1.0
    highest = [max(column) for column in zip(*weighed.scores, strict=True)]
    lowest, own = min(highest[place] for place in leads), {weighed.sources[place].rank for place in leads}
    following = {(weighed.sources[place].rank, weighed.sources[place].position + 1) for place in leads}
    other = NEAR if any(one.value >= SURE for one in weighed.answerable) else UNSURE
    margins = [max(BESIDE, other) if source.rank in own else other for source in weighed.sources]
    for place, source in enumerate(weighed.sources):
        if (source.rank, source.position) in following and (_LIMITS.search(source.text) or _points_back(source)):
            margins[place] = LIMITING
    floors = [lowest - margin for margin in margins]
    if evidence.n_named:  # any sentence of a rule asked for by its number is evidence
        floors = [-math.inf] * len(floors)
    chosen = _pointed_to(weighed, leads)[:most]
    room = EVIDENCE_WORDS - sum(len(weighed.sources[place].text.split()) for place in chosen)
    said = frozenset().union(*(weighed.sources[place].reading.stems for place in leads))
    while len(chosen) < most:
        values = {
            place: highest[place]
            + NEWS * sum(weights[one] for one in weights.keys() - said if one in source.reading.stems) / total
            for place, source in enumerate(weighed.sources)
            if place not in (*leads, *chosen) and highest[place] >= floors[place] and len(source.text.split()) <= room
        }
        if not values:
            break
        chosen.append(max(values, key=lambda place: (values[place], -place)))
        said |= weighed.sources[chosen[-1]].reading.stems
        room -= len(weighed.sources[chosen[-1]].text.split())
    return chosen


def _pointed_to(weighed: Weighed, leads: Sequence[int]) -> list[int]:
    """The positions of the sentences before leads that begin with a backward reference: "It may be outsourced"."""
    place_of = {(source.rank, source.position): place for place, source in enumerate(weighed.sources)}
    pointing = (weighed.sources[place] for place in leads)
    before = [(one.rank, one.position - 1) for one in pointing if _points_back(one)]
    return [place_of[one] for one in dict.fromkeys(before) if one in place_of and place_of[one] not in leads]


def _points_back(source: Source) -> bool:
    return source.text.split()[0].casefold() in POINTING_BACK


def _with_their_passages(
    selection: Selection, chosen: Sequence[Source], evidence: Evidence
) -> Stream[GenerationEvent | Selected, None, Selection]:
    """The selection with the passages of all chosen sentences."""
    kept = {candidate.passage.passage_id for candidate in selection.kept}
    ids = dict.fromkeys(evidence.passages[source.rank].passage_id for source in chosen)
    added = tuple(name for name in ids if name not in kept)
    selection = with_added(selection, added)
    if added:
        yield PassagesAdded(added)
    yield Selected(selection)
    return selection


def _choices(question: Question, parts: Sequence[Part], evidence: Evidence) -> tuple[str, ...]:
    """Narrower questions that a vague one may mean, one per heading that it is found under, nearest first.

    Empty unless there are at least two.
    """
    if evidence.n_named or len(parts) > 1 or not parts[0].is_vague:
        return ()
    having = (one for one in evidence.passages if parts[0].content <= stems_of(one))
    headings = dict.fromkeys(
        (one.section.split(SEPARATOR)[-1][:LONGEST_HEADING], title_words(one.title)) for one in having
    )
    asked = question.query.rstrip(" ?.!")
    named = ((f"“{inner or title}”", f" of {title}" if inner and title else "") for inner, title in headings)
    narrower = [f"{asked}, under {inner}{outer}?" for inner, outer in named if inner != "“”"][:MOST_CHOICES]
    return tuple(narrower) if len(narrower) > 1 else ()


def _citations(source: Source, texts: Sequence[str]) -> tuple[int, ...]:
    """The numbers of the kept passages whose text contains the sentence, or the lead-in and the item of a list."""
    pieces = source.text.split(GAP)
    return tuple(number for number, text in enumerate(texts, start=1) if all(piece in text for piece in pieces))


def _respelt(question: str, missing: Sequence[str], ranking: Ranking) -> tuple[str, ...]:
    """The question with the missing words spelt as words of the passages are; () if none is spelt almost like one."""
    known = {word.lower for hit in ranking.hits for word in words_of(hit.passage.text)} if missing else set()
    respelt = question
    for word in missing:
        near = get_close_matches(word.lower(), [one for one in known if one[0] == word[0].lower()], 1, ALMOST)
        if near and len(word) >= FEWEST_LETTERS:
            respelt = re.sub(rf"\b{re.escape(word)}\b", near[0], respelt, flags=re.IGNORECASE)
    return (respelt,) if respelt != question else ()


def _measured(found: Answerability) -> str:
    """``"Probability of an answer 0.12 (0.50 needed): no passage found has "espresso"; …."``."""
    reasons = f": {'; '.join(found.reasons)}" if found.reasons else ""
    return f"Probability of an answer {found.value:.2f} ({LINE:.2f} needed){reasons}."

"""The default without a language model: the sentence that answers first, then a few of evidence; or a refusal.

The sentences of the best passages are read, also of some that the filter drops: where one of those answers, its passage
is kept as well (`PassagesAdded`). What is quoted is verbatim.
"""

from __future__ import annotations

from collections.abc import Generator as Stream
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ragqa.filtering import select, with_added
from ragqa.generation.answers import NOTHING_KEPT, Quote, empty_answer, pieces_of, quoted
from ragqa.generation.direct.asking import parts_of
from ragqa.generation.direct.candidates import Evidence, Source
from ragqa.generation.direct.choosing import chosen, clarification, stands_for
from ragqa.generation.direct.weighing import READ, Weighed, weighed
from ragqa.generation.prompts import NO_TEXT
from ragqa.plugins.protocols import Encoder, Search, Selector
from ragqa.settings.config import FilteringConfig, GenerationConfig
from ragqa.types import Answer, AnsweredPart, NearPassage, Passage, Question, Ranking, Selection
from ragqa.types.events.generation import GenerationEvent, PassagesAdded, Token
from ragqa.types.events.pipeline import Selected

NEAREST: Final = 3  # passages that a refusal names
REFUSAL: Final = "The corpus does not answer the question."
ANYWAY: Final = "The corpus may not answer the question; its nearest sentences are quoted all the same."
HOW_ON: Final = "Ask in the words of the corpus, or have the nearest sentences quoted anyway."


@dataclass(frozen=True, slots=True)
class Draft:
    """What is quoted, and of that the sentences that answer: none where nothing seems to."""

    answer: Answer
    selection: Selection
    pieces: tuple[str, ...] = ()  # the answer as it is streamed, marks included
    n_leads: int = 0  # the first so many sentences answer, the others are evidence


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
    ) -> None:
        """Without ``selector`` nearness and words alone decide."""
        self._encoder = encoder
        self._config = config
        self._filtering = filtering
        self._selector = selector

    def stream_searching(
        self, question: Question, ranking: Ranking, search: Search
    ) -> Stream[GenerationEvent | Selected, None, tuple[Answer, Selection]]:
        """Yields what is selected and one token per quoted sentence; returns the answer and what its citations count.

        A question none of whose parts is answerable is refused, unless ``quote_anyway``: an answer that cites nothing,
        has no sentence to be scored, and names the nearest passages. A part without evidence is named in the note.
        """
        del search  # one search is enough: the ranking goes deeper than what is kept
        draft = yield from self.draft(question, ranking)
        yield from map(Token, draft.pieces)
        return draft.answer, draft.selection

    def draft(self, question: Question, ranking: Ranking) -> Stream[GenerationEvent | Selected, None, Draft]:
        """Yields what is selected, and no word of the answer."""
        selection, evidence = select(ranking, self._filtering), Evidence(ranking)
        if not selection.kept or not evidence.sources:
            yield Selected(selection)
            note = NO_TEXT if selection.kept else NOTHING_KEPT
            return Draft(empty_answer(self.name, self.model, note), selection)
        parts = self._weighed(question, evidence)
        asked_back = clarification(question, parts, evidence)
        is_refused = not any(part.is_answered for part in parts)
        if is_refused and not self._config.quote_anyway:
            yield Selected(selection)
            answer = replace(self._refusal(parts, evidence), clarification=asked_back)
            return Draft(answer, selection, (answer.text,))
        leads, further = chosen(parts, evidence, self._config.max_sentences)
        selection = yield from _with_their_passages(selection, [*leads, *further], evidence)
        quotes, places = _quotes([*leads, *further], evidence, selection.passages)
        answer = replace(
            quoted(quotes, self.name, _note(parts, is_refused=is_refused)),
            parts=tuple(_answered(part, places) for part in parts),
            clarification=asked_back,
        )
        n_leads = 0 if is_refused else 1 + max(places[source] for source in leads)
        return Draft(answer, selection, tuple(pieces_of(quotes)), n_leads)

    def _weighed(self, question: Question, evidence: Evidence) -> list[Weighed]:
        parts = parts_of(question.text, question.context)
        most = max(1, READ // len(parts))
        return [weighed(part, evidence, most, self._encoder, self._selector) for part in parts]

    def _refusal(self, parts: Sequence[Weighed], evidence: Evidence) -> Answer:
        likeliest = max(parts, key=lambda one: one.value)
        sources = [part.sources[0] for part in parts] + list(likeliest.sources)
        nearest = list({source.rank: source for source in reversed(sources)}.values())[::-1]
        near = tuple(_near(source, likeliest, evidence) for source in nearest[:NEAREST])
        names = "; ".join(one.name + (f" (lacks {', '.join(one.lacks)})" if one.lacks else "") for one in near)
        missing = f" Not found: {', '.join(likeliest.absent)}." if likeliest.absent else ""
        text = f"{REFUSAL}{missing} Nearest to it, without answering it: {names}."
        return Answer(
            text,
            (),
            self.name,
            self.model,
            raw=text,
            note=f"{_measured(likeliest)} {HOW_ON}",
            is_refusal=True,
            parts=tuple(_answered(part, {}) for part in parts),
            nearest=near,
        )


def _quotes(
    sources: Sequence[Source], evidence: Evidence, passages: Sequence[Passage]
) -> tuple[list[Quote], dict[Source, int]]:
    """What is quoted, lead-ins and heads of tables once before what they introduce; the place of each source in it."""
    quotes: list[Quote] = []
    places: dict[Source, int] = {}
    introduced: tuple[int, int] | None = None
    for source in sources:
        if source.lead and introduced != (source.rank, source.position):
            quotes.append(Quote(source.lead, _citations(source.lead, source, evidence, passages)))
        introduced = (source.rank, source.position)
        places[source] = len(quotes)
        about = stands_for(source, evidence.passages[source.rank])
        quotes.append(Quote(source.text, _citations(source.text, source, evidence, passages), about))
    return quotes, places


def _citations(text: str, source: Source, evidence: Evidence, passages: Sequence[Passage]) -> tuple[int, ...]:
    """The numbers of the kept passages that have this text of the source: its own, and those that repeat it."""
    own = evidence.passages[source.rank].passage_id
    return tuple(
        number
        for number, passage in enumerate(passages, start=1)
        if passage.passage_id == own or text in " ".join(passage.text.split())
    )


def _with_their_passages(
    selection: Selection, sources: Sequence[Source], evidence: Evidence
) -> Stream[GenerationEvent | Selected, None, Selection]:
    """The selection with every passage that a chosen sentence is of."""
    kept = {candidate.passage.passage_id for candidate in selection.kept}
    ids = dict.fromkeys(evidence.passages[source.rank].passage_id for source in sources)
    added = tuple(name for name in ids if name not in kept)
    selection = with_added(selection, added)
    if added:
        yield PassagesAdded(added)
    yield Selected(selection)
    return selection


def _answered(part: Weighed, places: dict[Source, int]) -> AnsweredPart:
    place = places.get(part.sources[0], -1) if part.is_answered else -1
    return AnsweredPart(part.part.text, part.state, part.value, place, part.absent)


def _near(source: Source, part: Weighed, evidence: Evidence) -> NearPassage:
    passage = evidence.passages[source.rank]
    return NearPassage(passage.passage_id, _name(passage), part.lacks(source, evidence))


def _name(passage: Passage) -> str:
    """As a reader finds it: its title with its number or heading, else its id."""
    return " ".join(filter(None, (passage.title, passage.number or passage.section))) or passage.passage_id


def _note(parts: Sequence[Weighed], *, is_refused: bool) -> str:
    if is_refused:
        return f"{ANYWAY} {_measured(max(parts, key=lambda one: one.value))}"
    lacking = [part.part.text.rstrip("?. ") for part in parts if not part.is_answered]
    absent = dict.fromkeys(word for part in parts if part.state == "partly" for word in part.absent)
    notes = [f"Not found: {'; '.join(lacking)}."] if lacking else []
    notes += [f"No passage found has {', '.join(f'“{word}”' for word in absent)}."] if absent else []
    return " ".join(notes)


def _measured(part: Weighed) -> str:
    """``"Answerability 0.12 (below 0.5): no passage found has “espresso”; …."``."""
    reasons = f": {'; '.join(part.reasons)}" if part.reasons else ""
    return f"Answerability {part.value:.2f}{reasons}."

"""Which of the weighed sentences are quoted, what a pronoun at their head stands for, and what is asked back. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from ragqa.english.phrases import ParsedSentence
from ragqa.english.words import words_of
from ragqa.generation.direct.candidates import Evidence, Source
from ragqa.generation.direct.selector import points_back
from ragqa.generation.direct.weighing import Weighed
from ragqa.types import Clarification, Passage, Question

EVIDENCE: Final = 3  # sentences after those that answer
EVIDENCE_WORDS: Final = 150  # of them together
# How far below the best score of a part evidence may lie: of other passages, of those that answer, and right after the
# sentence that answers where it limits it.
NEAR, BESIDE, LIMITING = 0.6, 1.5, 4.0
VAGUE: Final = 1  # so few words of a question say what it is about
SURE: Final = 0.8  # so likely answered, it is understood
MOST_CHOICES: Final = 4
LONGEST_SUBJECT: Final = 10  # words
_LIMITS: Final = re.compile(
    r"\b(?:nevertheless|however|but|except|unless|only|not|no|never|despite|although|other than|instead|exceptions?)\b",
    re.IGNORECASE,
)
_UNIT: Final = re.compile(r"\A(?:this|these) (\w+)\b", re.IGNORECASE)


def chosen(parts: Sequence[Weighed], evidence: Evidence, most: int) -> tuple[list[Source], list[Source]]:
    """The sentences that answer, one a part, and those of evidence; items of a listing stand together.

    Of a rule that was asked for by its number what answers is the rule from its beginning.
    """
    if evidence.n_named:
        return _beginning(parts, evidence, most), []
    any_answered = any(part.is_answered for part in parts)
    answering = [part for part in parts if part.is_answered or not any_answered]
    leads = list(dict.fromkeys(part.sources[0] for part in answering))[:most]
    further = _further(answering, leads, min(EVIDENCE, most - len(leads)))
    beside = {lead: [one for one in further if one.lead and _listing(one) == _listing(lead)] for lead in leads}
    first: list[Source] = []
    for lead in leads:
        first += [one for one in sorted([lead, *beside[lead]], key=_place) if one not in first]
    return first, sorted((one for one in further if one not in first), key=_place)


def _beginning(parts: Sequence[Weighed], evidence: Evidence, most: int) -> list[Source]:
    best = list(dict.fromkeys(part.sources[0] for part in parts))[:most]
    n_words = accumulate(len(source.text.split()) for source in evidence.sources)
    fitting = [one for one, n in zip(evidence.sources, n_words, strict=True) if n <= EVIDENCE_WORDS and one not in best]
    return sorted([*best, *fitting[: most - len(best)]], key=_place)


def _further(parts: Sequence[Weighed], leads: Sequence[Source], most: int) -> list[Source]:
    """At most so many sentences nearly as good as those that answer, the best first."""
    own = {lead.rank for lead in leads}
    after = {(lead.rank, lead.position + 1) for lead in leads}
    behind: dict[Source, float] = {}
    for part in parts:
        for source, score in zip(part.sources, part.scores, strict=True):
            gap = max(part.scores) - score - _margin(source, own, after)
            if source not in leads and gap <= 0.0:
                behind[source] = min(gap, behind.get(source, 0.0))
    found: list[Source] = []
    room = EVIDENCE_WORDS
    for source in sorted(behind, key=lambda one: (behind[one], _place(one))):
        n_words = len(source.text.split())
        if len(found) < most and n_words <= room and all(source.text != one.text for one in (*found, *leads)):
            found.append(source)
            room -= n_words
    return found


def _margin(source: Source, own: set[int], after: set[tuple[int, int]]) -> float:
    if _listing(source) in after and _LIMITS.search(source.text):
        return LIMITING
    return BESIDE if source.rank in own else NEAR


def _listing(source: Source) -> tuple[int, int]:
    return source.rank, source.position


def _place(source: Source) -> tuple[int, int, int]:
    return source.rank, source.position, source.item


def stands_for(source: Source, passage: Passage) -> str:
    """What a pronoun or "this Rule" at the head of a sentence stands for; empty where it has none, or it is unknown."""
    unit = _UNIT.match(source.text)
    innermost = passage.section.rsplit(" › ", 1)[-1]
    if unit and passage.number and unit[1].casefold() in {"rule", "section", "article", "chapter", "part", "paragraph"}:
        return f"{unit[1]} {passage.number}"
    if not points_back(source.text):
        return ""
    return (_subject_of(source.before) if source.before and not points_back(source.before) else "") or innermost


def _subject_of(sentence: str) -> str:
    """What stands before its first auxiliary, or its first noun phrase; empty where it begins with a condition."""
    parsed = ParsedSentence(sentence)
    auxiliary = next((token for token in parsed.tokens if token.tag == "aux"), None)
    before = sentence[: auxiliary.start].strip() if auxiliary else ""
    if before and len(before.split()) <= LONGEST_SUBJECT and "," not in before:
        return before
    return parsed.subject.text if parsed.subject and parsed.subject.start == 0 else ""


def clarification(question: Question, parts: Sequence[Weighed], evidence: Evidence) -> Clarification | None:
    """What to ask back of a question that says nearly nothing; None where it is understood or there is no choice."""
    if evidence.n_named or question.context or len(parts) > 1:
        return None
    (part,) = parts
    if len(part.part.content) > VAGUE or part.value >= SURE:
        return None
    stems = part.part.content
    names = dict.fromkeys(filter(None, (_subject(passage, stems) for passage in evidence.passages)))
    choices = tuple(names)[:MOST_CHOICES]
    if len(choices) < 2:
        return None
    return Clarification(f"What does “{question.text.rstrip('?. ')}” ask about?", choices)


def _subject(passage: Passage, stems: frozenset[str]) -> str:
    """The innermost heading of a passage, or its title, that says more than these words."""
    for text in (passage.section.rsplit(" › ", 1)[-1], passage.title):
        if {word.stem for word in words_of(text)} - stems:
            return text
    return ""

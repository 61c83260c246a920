"""Words for readers: short names and places of passages, words for verdicts, headlines and trust facts. Pure.

The page and memos both take their words from here, so that they describe an answer alike.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from ragqa.corpus.documents.places import cited_number, place_words
from ragqa.corpus.documents.titles import short_title
from ragqa.english.words import quantity
from ragqa.records.comparison import Said
from ragqa.records.view import Shown, View, weak_match
from ragqa.scoring.repass.explanation import verdict_by_index
from ragqa.types import AnswerSentence, Drop, Passage, Selection
from ragqa.types.scores import CitationCheck, SentenceVerdict, Verdict

QUOTED: Final = "quoted"
NOT_SUPPORTED: Final = "not supported"
LONGEST_SHORT_NAME: Final = 28  # characters, without the number
LONGEST_NAME: Final = 60  # characters of a document in a note
_HEADLINES: Final = {"answered": "Answered", "partly": "Partly answered", "not found": "Not found in these documents"}
_COUNTED: Final = {"sources disagree": "where sources disagree", "no verdict": "without verdict"}
_FURTHER: Final = re.compile(r", | and | \((?=[^()]*\)$)|: ")
_KIND_OF_TEXT: Final = re.compile(r" (Rules|Rulebook|Regulations?|Directive|Act|Code|Policy|Module)$")


def cut(text: str, most: int) -> str:
    """The text, cut after a word to at most ``most`` characters and an ellipsis."""
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + "…"


def size_words(size: int) -> str:
    """A number of bytes in words, such as 3.2 MB."""
    if size < 1_000:
        return quantity(size, "byte")
    return f"{size / 1e6:,.1f} MB" if size >= 100_000 else f"{round(size / 1000):,} kB"


def short_name(passage: Passage) -> str:
    """The name of a passage in citations: the first words of its title, without a word like "Rules", and its number.

    A long title that ends with its short title in brackets gives that short title.
    """
    title = (passage.title or passage.document_id).removeprefix("The ")
    if len(title) > LONGEST_SHORT_NAME:
        title = short_title(title) or title
    title = _FURTHER.split(title, maxsplit=1)[0]
    name = cut(_KIND_OF_TEXT.sub("", title) or title, LONGEST_SHORT_NAME)
    return " ".join(filter(None, (name, cited_number(passage.number))))


def place(passage: Passage) -> str:
    """Where a passage stands: title, section path, number, page, days in force; the title occurs only once."""
    title, section = passage.title or passage.document_id, passage.section
    if f"{section} › ".startswith(f"{title} › "):
        section = section.removeprefix(title).removeprefix(" › ")
    number = "" if passage.section.endswith(passage.number) else cited_number(passage.number)
    page = place_words(passage.place)
    return ", ".join(filter(None, (" › ".join(filter(None, (title, section, number))), page, passage.days)))


def as_of_words(day: str, selection: Selection) -> str:
    """What an answer says about the day, YYYY-MM-DD, that it was asked as of."""
    gone = [one.passage for one in selection.dropped if one.drop is Drop.NOT_IN_FORCE]
    if not gone:
        return f"As of {day}: of the passages found, none was left out for its dates."
    named = "; ".join(f"{short_name(one)} ({one.days})" for one in gone[:3])
    more = f"; and {len(gone) - 3} more" if len(gone) > 3 else ""
    return f"As of {day}. Left out, not in force then: {named}{more}."


def within_words(documents: Collection[str], selection: Selection) -> str:
    """What an answer says about the documents, by id, that its question names; empty without any."""
    if not documents:
        return ""
    found = (one.passage for one in (*selection.kept, *selection.dropped))
    titles = {one.title or one.document_id for one in found if one.document_id in documents} or documents
    names = sorted(cut(short_title(title) or title, LONGEST_NAME) for title in titles)
    return f"Searched only in what the question names: {'; '.join(names)}."


def with_names(text: str, passages: Sequence[Passage]) -> str:
    """The text with passage numbers in brackets replaced by the short names of the passages."""

    def name(match: re.Match[str]) -> str:
        number = int(match[1])
        return f"{short_name(passages[number - 1])}; " if 0 < number <= len(passages) else match[0]

    return re.sub(r"; (?=[.,:)]|$| )", "", re.sub(r"\[(\d{1,3})\]", name, text))


def cited_by(sentence: AnswerSentence, check: CitationCheck | None) -> tuple[int, ...]:
    """The passages shown behind a sentence: those that it cites and those that the citation check added."""
    return tuple(sorted({*sentence.citations, *check.verified})) if check else sentence.citations


def mark_word(verdict: Verdict, judged: SentenceVerdict | Said | None = None) -> str:
    """The mark of a sentence; a supported sentence that is copied from a passage is only marked as quoted."""
    if judged and judged.quoted and verdict is Verdict.SUPPORTED:
        return QUOTED
    return NOT_SUPPORTED if verdict is Verdict.UNSUPPORTED else str(verdict)


def counted_mark(mark: str, count: int) -> str:
    """The number of sentences with this mark: ``"2 sentences not supported"``."""
    return f"{quantity(count, 'sentence')} {_COUNTED.get(mark, mark)}"


def headline(view: View, found: Shown) -> tuple[str, str]:
    """(words, state) of an answer; the state is ``"answered"``, ``"partly"`` or ``"not found"``.

    For a checked text the words say how many sentences are contradicted or not supported. Both are empty while the
    result is not known.
    """
    if view.answer is None or not (view.answer.text or view.answer.is_refusal):
        return "", ""
    if not view.asked.given:
        return _HEADLINES[view.answer.state], view.answer.state
    verdicts = list(verdict_by_index(found.sentences, found.verdicts).values())
    if not view.scored or not verdicts:
        return "", ""
    against = sum(one is not Verdict.SUPPORTED for one in verdicts)
    if not against:
        return "Every sentence is supported", "answered"
    refuted = sum(one not in {Verdict.SUPPORTED, Verdict.UNSUPPORTED, Verdict.NONE} for one in verdicts)
    counts = ((refuted, "contradicted"), (against - refuted, "not supported"))
    words = ", ".join(f"{count} {how}" for count, how in counts if count)
    return f"Of {quantity(len(verdicts), 'sentence')}: {words}", "partly"


def trust_facts(view: View, found: Shown) -> tuple[str, ...]:
    """Facts beside the counts of marks: raw verdicts, how many passages are used, duties left out."""
    if view.answer is None or view.selection is None:
        return ()
    checks = found.explanation.citations if found.explanation else ()
    used = {number for check in checks for number in check.verified or check.written}
    n_all = len(view.selection.kept) + len(view.selection.dropped)
    facts = [f"uses {len(used)} of {quantity(n_all, 'passage')}"] if checks or view.answer.is_refusal else []
    if found.sentences and not found.verdicts:
        facts.insert(0, "raw verdicts")
    if found.obligations and not view.answer.is_refusal and weak_match(view) is None:
        n_left = len(found.uncovered)
        facts.append(f"{quantity(n_left, 'duty', 'duties')} left out" if n_left else "no duty left out")
    return tuple(facts)

"""Words for readers: short names and places of passages, words for verdicts, headlines and trust facts. Pure.

The page and memos both take their words from here, so that they describe an answer alike.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from ragqa.corpus.asked_items import lacks
from ragqa.corpus.citing import cited_number, document_name, short_names, title_words
from ragqa.corpus.documents.places import place_words
from ragqa.english.words import quantity
from ragqa.fusion import by_number
from ragqa.records.comparison import Said
from ragqa.records.findings import findings_of
from ragqa.records.results import POSSIBLY, against_words
from ragqa.records.view import Shown, View, unsure_relevance, weak_match
from ragqa.scoring.repass.explanation import verdict_by_index
from ragqa.types import Answer, AnswerSentence, Drop, Passage, Selection
from ragqa.types.scores import CitationCheck, Cover, SentenceVerdict, Verdict

QUOTED: Final = "quoted"
NOT_SUPPORTED: Final = "not supported"
_HEADLINES: Final = {"answered": "Answered", "partly": "Partly answered", "not found": "Not found in these documents"}
SEVERAL: Final = "The question can mean several things"
DOUBTED: Final = POSSIBLY  # the documents may not cover the question, or the answer may not answer it
_COUNTED: Final = {"sources disagree": "where sources disagree", "no verdict": "without verdict"}


def size_words(size: int) -> str:
    """A number of bytes in words, such as 3.2 MB."""
    if size < 1_000:
        return quantity(size, "byte")
    return f"{size / 1e6:,.1f} MB" if size >= 100_000 else f"{round(size / 1000):,} kB"


def place(passage: Passage, *, whole: bool = False) -> str:
    """Where a passage stands: title, section path, number, page, days in force; the title occurs only once.

    Without ``whole`` a long title is cut to the short name of its document.
    """
    title, section = passage.title or passage.document_id, passage.section
    if f"{section} › ".startswith(f"{title} › "):
        section = section.removeprefix(title).removeprefix(" › ")
    title = title if whole else title_words(title)
    is_told = re.search(rf"(?:(?<!\w)|(?!\w)){re.escape(passage.number)}\Z", passage.section)  # no "1" in "Part 11"
    number = "" if is_told else cited_number(passage.number)
    page = place_words(passage.place)
    return ", ".join(filter(None, (" › ".join(filter(None, (title, section, number))), page, passage.days)))


def as_of_words(day: str, selection: Selection) -> str:
    """What an answer says about the day, YYYY-MM-DD, that it was asked as of."""
    gone = [one.passage for one in selection.dropped if one.drop is Drop.NOT_IN_FORCE]
    if not gone:
        return f"As of {day}: of the passages found, none was left out for its dates."
    named = "; ".join(f"{name} ({one.days})" for name, one in zip(short_names(gone[:3]), gone, strict=False))
    more = f"; and {len(gone) - 3} more" if len(gone) > 3 else ""
    return f"As of {day}. Left out, not in force then: {named}{more}."


def within_words(named: Mapping[str, Collection[str]], selection: Selection) -> str:
    """What an answer says about the names of documents in its question, each with the ids; empty without any."""
    if not named:
        return ""
    documents = frozenset[str]().union(*named.values())
    found = (one.passage for one in (*selection.kept, *selection.dropped))
    titles = {one.title or one.document_id for one in found if one.document_id in documents} or documents
    names = sorted(map(document_name, titles))
    return f"Searched only in what the question names: {'; '.join(names)}."


def with_names(text: str, passages: Sequence[Passage]) -> str:
    """The text with passage numbers in brackets replaced by the short names of the passages."""
    names = short_names(passages) if "[" in text else []

    def name(match: re.Match[str]) -> str:
        number = int(match[1])
        return f"{names[number - 1]}; " if 0 < number <= len(names) else match[0]

    return re.sub(r"; (?=[.,:)]|$| )", "", re.sub(r"\[(\d{1,3})\]", name, text))


def in_lines(text: str, passages: Iterable[Passage]) -> str:
    """The text with the line breaks that it has in the first of these passages that holds it; of the same length."""
    for passage in passages:
        lined = re.sub(r"\s+", lambda space: "\n" if "\n" in space[0] else " ", passage.text)
        at = lined.replace("\n", " ").find(text)
        if at >= 0:
            return lined[at : at + len(text)]
    return text


def note_of(answer: Answer) -> str:
    """The note of an answer without the parts that are not found, which the headline or a list names."""
    return answer.note.replace(f"Not found: {'; '.join(answer.not_found)}.", "").strip()


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
    """(words, state) of an answer; the state is ``"answered"``, ``"partly"`` (also if in doubt) or ``"not found"``.

    For a checked text the words say how many sentences are contradicted or not supported. Both are empty while the
    result is not known.
    """
    if view.answer is None or not (view.answer.text or view.answer.is_refusal):
        return "", ""
    if not view.asked.given:
        state = view.answer.state
        doubted = weak_match(view) is not None or unsure_relevance(view) is not None
        choices, named = view.answer.choices, by_number(view.selection) if view.selection else ()
        lacking = lacks(view.asked.query, named)
        several = f"{quantity(len(choices), 'document')} have {'that rule' if lacking else 'this number'}: choose one"
        doubt = (several if named else SEVERAL) if choices else DOUBTED if doubted else ""
        doubt = f"{lacking}. {doubt or 'The whole rule is shown'}" if lacking else doubt
        return (doubt, "partly") if doubt and state == "answered" else (_HEADLINES[state], state)
    verdicts = list(verdict_by_index(found.sentences, found.verdicts).values())
    if not view.scored or not verdicts:
        return "", ""
    if not (words := against_words(verdicts)):
        return "Every sentence is supported", "answered"
    return f"Of {quantity(len(verdicts), 'sentence')}: {words}", "partly"


def trust_facts(view: View, found: Shown) -> tuple[str, ...]:
    """Facts beside the counts of marks: raw verdicts, how many passages are used, obligations covered or missed."""
    if view.answer is None or view.selection is None:
        return ()
    checks = found.explanation.citations if found.explanation else ()
    used = {number for check in checks for number in check.verified or check.written}
    n_all = len(view.selection.kept) + len(view.selection.dropped)
    facts = [f"uses {len(used)} of {quantity(n_all, 'passage')}"] if checks or view.answer.is_refusal else []
    if found.sentences and not found.verdicts:
        facts.insert(0, "raw verdicts")
    if found.obligations and not view.answer.is_refusal and weak_match(view) is None:
        missed = [one for one in findings_of(view, found) if one.kind != "sentence" and one.is_near]
        words = f"misses {quantity(len(missed), 'obligation')}" if view.asked.given else ""
        facts.append(words or f"covers {coverage_words(view, found)}")
    return tuple(facts)


def coverage_words(view: View, found: Shown) -> str:
    """The number of obligations that the answer covers, and of all that are listed."""
    total = len(found.obligations) if view.scored else max(view.n_obligations, len(found.obligations))
    in_part = sum(one.cover is Cover.IN_PART for one in found.obligation_verdicts)
    partly = f" ({in_part} more in part)" if in_part else ""
    return f"{len(found.obligations) - len(found.uncovered)} of {quantity(total, 'obligation')}{partly}"

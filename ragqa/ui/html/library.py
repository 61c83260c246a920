"""The library -> HTML: previews of files, changes of new versions. Pure, every value escaped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from ragqa.corpus.documents import Heading, Reading
from ragqa.english.words import cut, quantity
from ragqa.library.changes import DocumentChange, PassageChange, word_changes
from ragqa.library.work_list import WorkItem
from ragqa.ui.html.reader import read_address
from ragqa.ui.html.template import Templates, text_html

_TEMPLATES: Final = Templates("library.html")
PAGES: Final = {"Ask": "ask", "Read": "read", "Register": "register", "Gaps": "gaps"}
SHOWN_HEADINGS = 400
SHOWN_CHANGES = 100
_ALIVE: Final = re.compile(r"[\\`*_{}\[\]()#+\-!|<>$:~&@]|(?<=\d)\.")  # the last part prevents lists
_LINKED: Final = re.compile(r"(?i)\bwww(?=\.)|https?:(?=//)|@")  # becomes a link although it is escaped
OFTEN = 5  # most frequent texts that were left out, shown with their counts
_KINDS = {"new": "good", "changed": "mixed", "gone": "bad"}


def plain_markdown(text: str) -> str:
    """Text escaped for Streamlit's Markdown, so that no text of visitors and corpora becomes markup."""
    return _ALIVE.sub(r"\\\g<0>", _LINKED.sub("\\g<0>\N{WORD JOINER}", text))


def links_html(corpus: str, pages: Mapping[str, str] = PAGES) -> str:
    """Links to these pages of a corpus; ``pages`` are the addresses by their words."""
    return _TEMPLATES.links(corpus, pages)


def reading_html(reading: Reading) -> str:
    """The preview of a file: counts, text that was dropped and why, warnings, the tree of headings and rules."""
    kinds = Counter(heading.kind for heading in reading.outline)
    counts = ", ".join(quantity(count, kind, kind if kind == "text" else "") for kind, count in kinds.most_common())
    n_passages, n_words = len(reading.passages), sum(len(passage.text.split()) for passage in reading.passages)
    told = [f"{quantity(n_passages, 'passage')} of {quantity(n_words, 'word')}" + (f"; {counts}" if counts else "")]
    if reading.dropped:
        left_out = ", ".join(f"{what} ({count:,})" for what, count in reading.dropped)
        told.append(f"Left out, as no part of the text: {left_out}.")
    often = [(text, times) for _, text, times in reading.left_out if text and times > 1][:OFTEN]
    if often:
        shown = ", ".join(f"“{cut(' '.join(text.split()), 60)}” ({times:,})" for text, times in often)
        told.append(f"Most often: {shown}.")
    return _TEMPLATES.reading(told, reading.warnings, outline_html(reading.outline))


def outline_html(outline: Sequence[Heading]) -> str:
    """The tree of headings, each line indented by its depth."""
    return _TEMPLATES.outline(outline[:SHOWN_HEADINGS], len(outline) - SHOWN_HEADINGS)


def change_html(change: DocumentChange) -> str:
    """The changes of one document: each new, changed or removed passage with its text before and after."""
    counts = [(f"{change.count(what)} {what}", kind) for what, kind in _KINDS.items() if change.count(what)]
    passages = [(one, _KINDS[one.what], *_sides(one)) for one in change.passages[:SHOWN_CHANGES]]
    return _TEMPLATES.change(change, counts, passages, len(change.passages) - SHOWN_CHANGES)


def _sides(one: PassageChange) -> tuple[str, str]:
    before, after = one.before[:3_000], one.after[:3_000]
    return marked_difference(before, after) if before and after else (text_html(before), text_html(after))


def marked_difference(before: str, after: str) -> tuple[str, str]:
    """Both texts, escaped, with the words marked that only one of them has."""
    sides: tuple[list[str], list[str]] = ([], [])
    for gone, new in word_changes(before, after):
        for side, words in zip(sides, (gone, new), strict=True):
            if words:
                text = text_html(words)
                side.append(text if gone == new else f'<mark class="rq-mark-mixed">{text}</mark>')
    return " ".join(sides[0]), " ".join(sides[1])


def work_html(items: Sequence[WorkItem], corpus: str, titles: Mapping[str, str], *, n_versions: int) -> str:
    """The work list of a new version: each changed row, its handling, and what rests on it; corpora by ``titles``."""
    counts = Counter[str](one.change.what for one in items)
    rows = []
    for one in items[:SHOWN_CHANGES]:
        before, after = (row.text if row else "" for row in (one.change.before, one.change.after))
        sides = marked_difference(before, after) if before and after else (text_html(before), text_html(after))
        address = read_address(corpus, one.row.passage_id, (one.row.start, one.row.end)) if after else ""
        who = ", ".join(filter(None, (one.handling.owner, one.handling.status)))
        rows.append((one, _KINDS[one.change.what], before and sides[0], after and sides[1], address, who))
    badges = [(f"{counts[what]} {what}", kind) for what, kind in _KINDS.items() if counts[what]]
    n_answers = len({name for one in items for name in one.answers})
    return _TEMPLATES.work(badges, rows, len(items) - SHOWN_CHANGES, n_answers, n_versions, corpus, titles)

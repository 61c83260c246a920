"""The library -> HTML: what was found in a file, what a new version changed. Pure, every value escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from ragqa.corpus.documents import Heading, Reading
from ragqa.library.changes import DocumentChange, PassageChange
from ragqa.ui.html.render import badge_html, text_html

SHOWN_HEADINGS = 400
SHOWN_CHANGES = 100
_KINDS = {"new": "good", "changed": "mixed", "gone": "bad"}


def plain_markdown(text: str) -> str:
    """Text that Streamlit reads as Markdown, as it is: names and descriptions come from visitors."""
    return "".join(f"\\{letter}" if letter in r"\`*_{}[]()#+-!|<>$:~&" else letter for letter in text)


def size_words(size: int) -> str:
    """Bytes as a person reads them."""
    return f"{size / 1e6:,.1f} MB" if size >= 100_000 else f"{max(1, round(size / 1000)):,} kB"


def seconds_words(seconds: float) -> str:
    """A time that is left, no more exact than it can be."""
    if seconds >= 90:
        return f"about {round(seconds / 60)} minutes left"
    return f"about {max(1, round(seconds))} s left"


def reading_html(reading: Reading) -> str:
    """What was found in a file: counts, what was dropped and why, warnings, the tree of its headings and rules."""
    kinds = Counter(heading.kind for heading in reading.outline)
    counts = ", ".join(f"{count:,} {_plural(kind, count)}" for kind, count in kinds.most_common())
    n_passages, n_words = len(reading.passages), sum(len(passage.text.split()) for passage in reading.passages)
    told = [f"{n_passages:,} {_plural('passage', n_passages)} of {n_words:,} words" + (f"; {counts}" if counts else "")]
    if reading.dropped:
        left_out = ", ".join(f"{what} ({count:,})" for what, count in reading.dropped)
        told.append(f"Left out, as no part of the text: {left_out}.")
    lines = "".join(f"<p>{text_html(line)}</p>" for line in told)
    warnings = "".join(f'<div class="rq-notice rq-mixed">{text_html(line)}</div>' for line in reading.warnings)
    return f'<div class="rq-found-in">{lines}{warnings}{outline_html(reading.outline)}</div>'


def _plural(word: str, count: int) -> str:
    return word if count == 1 or word == "text" else f"{word}s"


def outline_html(outline: Sequence[Heading]) -> str:
    """The tree, indented as deep as each line stands."""
    rows = "".join(
        f'<li style="--depth: {min(heading.depth, 8)}"><span class="rq-label">{escape(heading.number)}</span>'
        f"<span>{escape(heading.text)}</span></li>"
        for heading in outline[:SHOWN_HEADINGS]
    )
    more = len(outline) - SHOWN_HEADINGS
    rest = f'<p class="rq-fine">and {more:,} more</p>' if more > 0 else ""
    if not rows:
        return '<p class="rq-fine">No headings or numbers found: the text is cut by paragraphs.</p>'
    return (
        '<div class="rq-scroll rq-outline" tabindex="0" role="region" aria-label="Structure found">'
        f"<ul>{rows}</ul>{rest}</div>"
    )


def change_html(change: DocumentChange) -> str:
    """What became of one document, each passage that is new, changed or gone with its words before and after."""
    if change.what != "replaced":
        return f"<p>{badge_html(change.what, 'plain')} {change.n_same:,} passages</p>"
    counts = " ".join(badge_html(f"{change.count(what)} {what}", kind) for what, kind in _KINDS.items())
    moved = f", {change.n_moved:,} of them with another number" if change.n_moved else ""
    rows = "".join(_passage(one) for one in change.passages[:SHOWN_CHANGES])
    more = len(change.passages) - SHOWN_CHANGES
    rest = f'<p class="rq-fine">and {more:,} more</p>' if more > 0 else ""
    return f"<p>{counts} {change.n_same + change.n_moved:,} the same{moved}</p>{rows}{rest}"


def _passage(one: PassageChange) -> str:
    before, after = (text_html(text[:3_000]) for text in (one.before, one.after))
    if one.before and one.after:
        before, after = marked_difference(one.before[:3_000], one.after[:3_000])
    said = f'<div class="rq-passage"><del>{before}</del></div>' if one.before else ""
    said += f'<div class="rq-passage">{after}</div>' if one.after else ""
    name = escape(one.number or one.passage_id)
    return (
        f'<details class="rq-row rq-change"><summary><b>{name}</b> {badge_html(one.what, _KINDS[one.what])}</summary>'
        f'<div class="rq-inside">{said}</div></details>'
    )


def marked_difference(before: str, after: str) -> tuple[str, str]:
    """Both texts, escaped, the words marked that only one of them has."""
    from difflib import SequenceMatcher

    was, now = before.split(" "), after.split(" ")
    sides: tuple[list[str], list[str]] = ([], [])
    for what, i, j, k, m in SequenceMatcher(None, was, now, autojunk=False).get_opcodes():
        for side, words in zip(sides, (was[i:j], now[k:m]), strict=True):
            text = text_html(" ".join(words))
            if words:
                side.append(text if what == "equal" else f'<mark class="rq-mark-mixed">{text}</mark>')
    return " ".join(sides[0]), " ".join(sides[1])

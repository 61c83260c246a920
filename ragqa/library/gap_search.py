"""Rows of a gap run by words, label, chapter, policy, party and strength. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ragqa.library.gap_rows import ORDER, GapRow, GapRun, chapter_of


@dataclass(frozen=True, slots=True)
class WantedGaps:
    """The filters for rows; an empty filter accepts every row. ``party`` and each word match parts of the texts.

    With a ``policy`` (a title), ``label`` is the label of that policy, and rows without a reading of it are left out.
    """

    words: str = ""
    label: str = ""
    chapter: str = ""
    policy: str = ""
    party: str = ""
    strength: str = ""


def matching_gaps(run: GapRun, wanted: WantedGaps) -> list[GapRow]:
    """The rows that pass the filters, in the order of `ORDER`; of those not found first those with a near statement.

    Words are searched in rule, policies and comments.
    """
    words, party = wanted.words.casefold().split(), wanted.party.casefold()
    found = [
        gap
        for gap in run.gaps
        if (not wanted.strength or gap.row.strength == wanted.strength)
        and (not wanted.chapter or chapter_of(gap.row) == wanted.chapter)
        and (not party or (gap.row.parts.party and party in gap.row.parts.party.text.casefold()))
        and _is_labelled(run, gap, wanted)
        and (not words or _has(run, gap, words))
    ]
    return sorted(found, key=lambda gap: (ORDER.index(run.label(gap)), gap.nearest is None))


def _is_labelled(run: GapRun, gap: GapRow, wanted: WantedGaps) -> bool:
    if wanted.policy:
        labels = {one.label for one in gap.readings if one.title == wanted.policy}
        return bool(labels) and (not wanted.label or wanted.label in labels)
    return not wanted.label or run.label(gap) == wanted.label


def _has(run: GapRun, gap: GapRow, words: list[str]) -> bool:
    own = f"{gap.row.number} {gap.row.title} {gap.row.text} {run.correction(gap).comment}".casefold()
    left = [word for word in words if word not in own]
    if not left:
        return True
    said = (text for one in gap.deciding for text in (one.title, *one.words, *(each.text for each in one.statements)))
    policies = " ".join(said).casefold()
    return all(word in policies for word in left)

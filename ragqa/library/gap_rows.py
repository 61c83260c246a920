"""The values of a gap run: rows with what each policy comes to for them, what people said, the run as a whole. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, get_args

from ragqa.library.register import Obligation
from ragqa.records.words import quantity

Label = Literal["conflicts", "covered", "partly", "not found", "not applicable"]
LABELS: Final[tuple[Label, ...]] = get_args(Label)  # the first that a policy has is the row's
CONFIRMED: Final = "confirmed"
SAID: Final = (CONFIRMED, *LABELS)
UNSURE: Final = (0.2, 0.8)
ALL: Final = "all policies"
MEASURED: Final = (  # what the README of this room says of the labels
    "Measured on 60 planted cases: balanced accuracy .58 on the half held back; of 25 absent or conflicting one was "
    "called covered, but only five of ten conflicts and eleven of twenty covered rows were found. Read what is not "
    "found, too."
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of a policy, ``start`` to ``end`` in its passage's text."""

    passage_id: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PolicyReading:
    """What one policy comes to for a row.

    ``statements`` are what it says of it, none where the row is not found; ``words`` those of the row that are missing
    or that clash. ``probability`` is the verifier's, of `ObligationVerdict`; None in runs of older versions.
    """

    document_id: str
    title: str
    label: Label
    statements: tuple[Statement, ...] = ()
    words: tuple[str, ...] = ()
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class GapOpinion:
    """What a language model was asked of a row: ``before`` is the verifier's label.

    Not ``is_one``: its reply was no opinion. ``tokens`` were sent and written, 0 where nobody counted.
    """

    model: str
    before: Label
    reason: str
    is_one: bool
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class GapRow:
    """A row of the register and what the policies come to for it; ``key`` is a hash of what was read, and by what.

    ``near`` are the ids of the passages that were read, the nearest first.
    """

    row: Obligation
    label: Label
    readings: tuple[PolicyReading, ...] = ()
    key: str = ""
    near: tuple[str, ...] = ()
    second: GapOpinion | None = None

    @property
    def is_unsure(self) -> bool:
        """Whether a second opinion helps: it is covered in part, or a policy's probability is between `UNSURE`."""
        low, high = UNSURE
        told = [one.probability for one in self.readings if one.probability is not None]
        return self.label == "partly" or any(low <= one <= high for one in told)

    @property
    def deciding(self) -> tuple[PolicyReading, ...]:
        """The readings that have the row's label; of a row that is not found none has anything to show."""
        return tuple(one for one in self.readings if one.label == self.label and one.statements)


@dataclass(frozen=True, slots=True)
class Correction:
    """What a person said of a row, one of `SAID` or nothing, and a comment."""

    said: str = ""
    comment: str = ""


@dataclass(frozen=True)
class GapRun:
    """The rows that were asked for, what people said of them, and the statements of policies that no row rests on.

    ``stale`` are the ids of rows that were read anew since somebody spoke of them.
    """

    gaps: tuple[GapRow, ...]
    corrections: Mapping[str, Correction] = field(default_factory=dict)
    stale: frozenset[str] = frozenset()
    unasked: tuple[Statement, ...] = ()

    def correction(self, gap: GapRow) -> Correction:
        """What was said of this row; empty where nothing was."""
        return self.corrections.get(gap.row.obligation_id, Correction())

    def label(self, gap: GapRow) -> Label:
        """A person's label of a row, else the verifier's."""
        said = self.correction(gap).said if self.corrections else ""
        return next((label for label in LABELS if label == said), gap.label) if said else gap.label

    @cached_property
    def matrix(self) -> dict[tuple[str, str], Counter[str]]:
        """How often each label is given, by chapter and policy; under `ALL` rows by their one label."""
        counts: dict[tuple[str, str], Counter[str]] = {}
        for gap in self.gaps:
            chapter = chapter_of(gap.row)
            for policy, label in (*((one.title, one.label) for one in gap.readings), (ALL, self.label(gap))):
                counts.setdefault((chapter, policy), Counter())[label] += 1
        return counts

    @cached_property
    def opinions(self) -> str:
        """Which language model was asked, of how many rows, and what it took; "" where none was."""
        found = [gap.second for gap in self.gaps if gap.second]
        models, tokens = ", ".join(dict.fromkeys(one.model for one in found)), sum(one.tokens for one in found)
        rows = quantity(len(found), "row")
        return f"{models} was asked about {rows} that the verifier is not sure of, {tokens:,} tokens" if found else ""

    @property
    def agreement(self) -> tuple[int, int]:
        """How many labels of the verifier people found right, of how many they spoke of as they are read now."""
        said = [(self.correction(gap).said, gap.label) for gap in self.gaps if gap.row.obligation_id not in self.stale]
        judged = [word in (CONFIRMED, label) for word, label in said if word]
        return sum(judged), len(judged)


def chapter_of(row: Obligation) -> str:
    """The document, and the first part of the rule's number where it has several."""
    chapter, dot, _ = row.number.partition(".")
    return f"{row.title or row.document_id} {chapter if dot else ''}".strip()

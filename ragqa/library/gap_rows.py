"""The values of a gap run: rows with the result of each policy, people's corrections, the whole run. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, get_args

from ragqa.english.words import quantity
from ragqa.library.register import Obligation

MARK: Final = re.compile(r"(?:[-*•–]|\(?\w{1,3}[.)])[ \t]+(?=\S)")  # of a list item in a policy

Label = Literal["conflicts", "covered", "partly", "not found", "not applicable"]
LABELS: Final[tuple[Label, ...]] = get_args(Label)  # a row takes the first of these that a policy has
ORDER: Final[tuple[Label, ...]] = (
    "conflicts",
    "partly",
    "not found",
    "covered",
    "not applicable",
)  # rows are listed so
CONFIRMED: Final = "confirmed"
SAID: Final = (CONFIRMED, *LABELS)
UNSURE: Final = (0.2, 0.8)
ALL: Final = "all policies"
WEAKNESS: Final = "Half of the conflicts are missed: read the rows that are not found, too."
MEASURED: Final = (  # the figures of this package's README
    "Measured on 62 policies about rules that were not trained on: balanced accuracy .75, on 240 of two writers held "
    "out .65 (.56 if they stand among others), on 60 planted cases .63. Of 232 that do not cover their rule 24 were "
    "called covered; half of the conflicts were found, and one in nine covered rows was called a conflict."
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of a policy, ``start`` to ``end`` in its passage's text; ``lead`` is the lead-in of a list item."""

    passage_id: str
    text: str
    start: int
    end: int
    lead: str = ""

    @property
    def whole(self) -> str:
        """The sentence, or the list item after its lead-in."""
        return f"{self.lead.rstrip(':')} {MARK.sub('', self.text, count=1)}" if self.lead else self.text

    @property
    def is_item(self) -> bool:
        """Whether it begins with the mark of a list item."""
        return MARK.match(self.text) is not None


@dataclass(frozen=True, slots=True)
class PolicyReading:
    """The result of one policy for a row.

    ``statements`` are the policy's sentences on the row, empty where the row is not found. ``words`` are the words of
    the row that are missing or that clash. ``probability`` is the verifier's, in [0, 1], from `ObligationVerdict`;
    None in runs of older versions. ``clashes`` are, in a conflict, words of the rule with those of the policy.
    ``nearest`` is the statement nearest to a row that is not found, if it is near enough to be on the same subject.
    """

    document_id: str
    title: str
    label: Label
    statements: tuple[Statement, ...] = ()
    words: tuple[str, ...] = ()
    probability: float | None = None
    clashes: tuple[tuple[str, str], ...] = ()
    nearest: Statement | None = None


@dataclass(frozen=True, slots=True)
class GapOpinion:
    """A language model's opinion on a row; ``before`` is the verifier's label.

    Without ``is_one`` its reply was not a usable opinion. ``tokens`` counts prompt and reply, 0 where unknown.
    """

    model: str
    before: Label
    reason: str
    is_one: bool
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class GapRow:
    """A row of the register and its result; ``key`` is a hash of the texts that were read and of the verifier.

    ``near`` are the ids of the policies' passages that were read, the nearest first.
    """

    row: Obligation
    label: Label
    readings: tuple[PolicyReading, ...] = ()
    key: str = ""
    near: tuple[str, ...] = ()
    second: GapOpinion | None = None

    @property
    def is_unsure(self) -> bool:
        """Whether a second opinion helps: the label is "partly", or a policy's probability lies within `UNSURE`."""
        low, high = UNSURE
        told = [one.probability for one in self.readings if one.probability is not None]
        return self.label == "partly" or any(low <= one <= high for one in told)

    @property
    def nearest(self) -> Statement | None:
        """Of a row that is not found the statement on the same subject, for a person to read; None without one."""
        return next((one.nearest for one in self.readings if one.nearest), None) if self.label == "not found" else None

    @property
    def deciding(self) -> tuple[PolicyReading, ...]:
        """The readings with the row's label that have statements; empty for a row that is not found."""
        return tuple(one for one in self.readings if one.label == self.label and one.statements)


@dataclass(frozen=True, slots=True)
class Correction:
    """A person's judgement of a row, one of `SAID` or empty, and a comment."""

    said: str = ""
    comment: str = ""


@dataclass(frozen=True)
class GapRun:
    """The requested rows, people's corrections of them, and the policies' statements that no row rests on.

    ``stale`` are the ids of rows that were read again after a person had judged them.
    """

    gaps: tuple[GapRow, ...]
    corrections: Mapping[str, Correction] = field(default_factory=dict)
    stale: frozenset[str] = frozenset()
    unasked: tuple[Statement, ...] = ()

    def correction(self, gap: GapRow) -> Correction:
        """A person's correction of this row; empty where there is none."""
        return self.corrections.get(gap.row.obligation_id, Correction())

    def label(self, gap: GapRow) -> Label:
        """The label that a person gave the row, else the verifier's."""
        said = self.correction(gap).said if self.corrections else ""
        return next((label for label in LABELS if label == said), gap.label) if said else gap.label

    @cached_property
    def matrix(self) -> dict[tuple[str, str], Counter[str]]:
        """How often each label is given, by (chapter, policy); under `ALL` each row counts once, by its final label."""
        counts: dict[tuple[str, str], Counter[str]] = {}
        for gap in self.gaps:
            chapter = chapter_of(gap.row)
            for policy, label in (*((one.title, one.label) for one in gap.readings), (ALL, self.label(gap))):
                counts.setdefault((chapter, policy), Counter())[label] += 1
        return counts

    @cached_property
    def n_near(self) -> int:
        """The number of rows that are not found although a statement is on the same subject."""
        return sum(gap.nearest is not None and self.label(gap) == "not found" for gap in self.gaps)

    @cached_property
    def opinions(self) -> str:
        """Which language model was asked, about how many rows, with how many tokens; "" where none was asked."""
        found = [gap.second for gap in self.gaps if gap.second]
        models, tokens = ", ".join(dict.fromkeys(one.model for one in found)), sum(one.tokens for one in found)
        rows = quantity(len(found), "row")
        return f"{models} was asked about {rows} that the verifier is not sure of, {tokens:,} tokens" if found else ""

    @property
    def agreement(self) -> tuple[int, int]:
        """(labels of the verifier that people found right, labels they judged), without rows that are ``stale``."""
        said = [(self.correction(gap).said, gap.label) for gap in self.gaps if gap.row.obligation_id not in self.stale]
        judged = [word in (CONFIRMED, label) for word, label in said if word]
        return sum(judged), len(judged)


def chapter_of(row: Obligation, named: Callable[[str], str] = str) -> str:
    """The document's title, as ``named``, and the first part of the rule's number where that has several parts."""
    chapter, dot, _ = row.number.partition(".")
    return f"{named(row.title or row.document_id)} {chapter if dot else ''}".strip()

"""Labelled claims and questions about passages, rules with policies that may cover them, and the five folds of both.

The files are those of `RAGQA_DATA/claims` (`claims.jsonl`, `gaps.jsonl`); its README says how they were labelled.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from ragqa.lab.labelled import rows_of

FOLDS = 5

# Which fold an ADGM document is in: about as many claims in each, near-duplicate documents together
# (6 and 7; 15 and 16; 21, 26, 33, 35 and 37).
_DOCUMENTS_OF_FOLD = (
    (3, 4, 5, 6, 7, 8, 9, 17, 19, 20, 24, 31),
    (1, 13, 14, 25, 29, 30),
    (15, 16, 21, 26, 28, 33, 35, 36, 37),
    (2, 11, 18, 34, 39, 40),
    (10, 12, 22, 23, 27, 32, 38),
)
_FOLD_OF_DOCUMENT = {f"adgm:{document}": fold for fold, found in enumerate(_DOCUMENTS_OF_FOLD) for document in found}


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence about a passage, and its label by the passage; ``deciding`` are indexes of the passage's sentences."""

    text: str
    label: Literal["supported", "contradicted", "unsupported"]
    kind: str
    deciding: Annotated[tuple[int, ...], Field(alias="from")]


@dataclass(frozen=True, slots=True)
class ClaimQuestion:
    """A question and, if it is answerable, the sentences that answer it and the answer in a few words."""

    text: str
    answerable: bool
    sentences: tuple[int, ...] = ()
    short: str = ""
    near: str = ""  # for a near miss: the missing information


@dataclass(frozen=True, slots=True)
class ClaimedPassage:
    """A passage split into sentences, with six claims and two questions about it."""

    id: str
    corpus: str
    sentences: tuple[str, ...]
    writer: str
    claims: tuple[Claim, ...]
    questions: tuple[ClaimQuestion, ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class RulePart:
    """A part of a rule: its lead-in (key "lead"), an item, a deadline or a condition."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class ClashingWords:
    """The words of a policy and of a rule that contradict each other."""

    policy: str
    rule: str


@dataclass(frozen=True, slots=True)
class PolicyText:
    """A passage of a policy, compared with a rule; ``missing`` are keys of parts."""

    text: str
    label: Literal["covered", "partly", "conflicts", "absent"]
    missing: tuple[str, ...]
    clash: ClashingWords | None
    sentences: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Gap:
    """A rule split into parts, with three or four passages of policies."""

    id: str
    rule: str
    who: str
    strength: str
    deadline: str
    condition: str
    parts: tuple[RulePart, ...]
    texts: tuple[PolicyText, ...]


def read_claims(path: Path) -> tuple[ClaimedPassage, ...]:
    """The passages of ``claims.jsonl``, in the file's order. Raises CorpusError naming the line."""
    return rows_of(path, ClaimedPassage)


def read_gaps(path: Path) -> tuple[Gap, ...]:
    """The rules of ``gaps.jsonl``, in the file's order. Raises CorpusError naming the line."""
    return rows_of(path, Gap)


def claims_kind(path: Path) -> Literal["claims", "gaps", "wice", "written"]:
    """The kind of a file of claims, by its first line: passages with claims, rules with policies, or WiCE's claims.

    A folder is RAGQA_DATA, about whose passages our own claims were written.
    """
    if path.is_dir():
        return "written"
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
        first = lines.readline()
    return "claims" if '"claims"' in first else "gaps" if '"rule"' in first else "wice"


def fold_of(passage_id: str) -> int:
    """The fold of a passage or rule, 0 to 4: by its document for ADGM, else by its whole id.

    It is the same for claims, questions and gaps, so that no model is measured on a document that it was trained on.
    """
    document = ":".join(passage_id.split(":")[:2])
    if document in _FOLD_OF_DOCUMENT:
        return _FOLD_OF_DOCUMENT[document]
    return int(hashlib.sha256(passage_id.encode()).hexdigest(), 16) % FOLDS

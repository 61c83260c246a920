"""Experts' labels of a data set: relevant, indirect, irrelevant or null, for each question and passage.

``labels.jsonl`` has one label per line, {question, passage, reviewer, label}, appended when it is given; a later label
of the same reviewer replaces an earlier one. The reviewer `ADJUDICATOR` settles disagreements.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Final

from ragqa.corpus.files import read_utf8
from ragqa.errors import ConfigError, CorpusError, RecordError
from ragqa.infra.files import append_json_lines, locked
from ragqa.infra.journal import digest, translated
from ragqa.lab.dataset.stages import SPLIT, Row, rows_in

LABELS, LOCK = "labels.jsonl", ".labels.lock"
KINDS: Final = ("relevant", "indirect", "irrelevant", "null")
MEANINGS: Final = {
    "relevant": "the passage answers the question, or the part of it that is its own",
    "indirect": "it belongs to the subject and does not answer",
    "irrelevant": "it has nothing to do with the question",
    "null": "the question cannot be understood, or nobody would ask it",
}
ADJUDICATOR: Final = "adjudicated"
PATIENCE_SECONDS: Final = 10.0

Labels = Mapping[tuple[str, str], Mapping[str, str]]  # by question and passage, then by reviewer


@dataclass(frozen=True, slots=True)
class Pair:
    """A question with one of its passages, to be labelled."""

    row: Row
    passage: str

    @property
    def key(self) -> tuple[str, str]:
        return self.row["id"], self.passage


def pairs_of(folder: Path) -> list[Pair]:
    """All pairs to label, in an order independent of the set's, so that the first pairs are always a fair sample.

    Raises ConfigError if the folder holds no finished data set, CorpusError if its last stage is damaged.
    """
    if not (folder / SPLIT).is_file():
        msg = f"expected a finished data set in {folder}, found no {SPLIT}; run `ragqa dataset make` to its end first"
        raise ConfigError(msg)
    rows = rows_in(read_utf8(folder / SPLIT, SPLIT), SPLIT, ("id", "question", "passages"))
    return sorted(
        (Pair(row, one) for row in rows for one in row["passages"]),
        key=lambda pair: (digest({"id": pair.row["id"]}), pair.passage),
    )


def labels_in(folder: Path) -> Labels:
    """The latest label of each reviewer; a truncated last line is ignored. Raises CorpusError for other damage."""
    path = folder / LABELS
    found: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    if path.is_file():
        for key, reviewer, label in _read(read_utf8(path, path.name), path.name, is_ours=True):
            found[key][reviewer] = label
    return found


def _read(text: str, name: str, *, is_ours: bool) -> Iterator[tuple[tuple[str, str], str, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            one = json.loads(line)
            values = tuple(one[key] for key in ("question", "passage", "reviewer", "label"))
            whole = all(isinstance(value, str) and value for value in values) and values[3] in KINDS
            "".join(values).encode()  # half a surrogate pair cannot be stored
        except (ValueError, KeyError, TypeError, RecursionError):
            whole, values = False, ()
        if not whole:
            if is_ours and not text.endswith("\n") and number == text.count("\n") + 1:
                return
            raise CorpusError(
                f"{name}, line {number:,}: expected {{question, passage, reviewer, label}}, the label one of "
                f"{', '.join(KINDS)}, found {line[:80]!r}; correct the line"
            )
        yield (values[0], values[1]), values[2], values[3]


def give(folder: Path, given: Sequence[tuple[tuple[str, str], str, str]]) -> None:
    """Adds labels, each ((question, passage), reviewer, label); they are on disk when this returns.

    Raises ConfigError for an invalid label or reviewer, RecordError if the file cannot be written.
    """
    for _, reviewer, label in given:
        if label not in KINDS or not reviewer.strip():
            msg = f"expected a reviewer's name and one of {', '.join(KINDS)}, got {reviewer!r} and {label!r}"
            raise ConfigError(msg)
    rows = [
        {"question": key[0], "passage": key[1], "reviewer": reviewer, "label": label} for key, reviewer, label in given
    ]
    msg = f"another process writes labels into {folder} for longer than {PATIENCE_SECONDS:g} s; try again"
    with translated(folder), locked(folder / LOCK, lambda: RecordError(msg), PATIENCE_SECONDS):
        append_json_lines(folder / LABELS, rows)


def read_given(folder: Path, text: str, name: str) -> int:
    """Imports exported labels of pairs in this data set; returns their number. Raises as `give`, and CorpusError."""
    known = {pair.key for pair in pairs_of(folder)}
    given = [one for one in _read(text, name, is_ours=False) if one[0] in known]
    if not given:
        msg = f"{name}: expected labels of questions and passages of this data set, found none; choose another file"
        raise CorpusError(msg)
    give(folder, given)
    return len(given)


def decision(of_pair: Mapping[str, str]) -> str:
    """The final label: the adjudicator's, else the one that all reviewers gave; empty if they disagree or gave none."""
    if ADJUDICATOR in of_pair:
        return of_pair[ADJUDICATOR]
    said = set(of_pair.values())
    return said.pop() if len(said) == 1 else ""


def decisions(folder: Path) -> dict[str, str]:
    """The final labels by ``"question passage"``; undecided pairs are left out."""
    return {f"{key[0]} {key[1]}": held for key, of in labels_in(folder).items() if (held := decision(of))}


@dataclass(frozen=True, slots=True)
class Agreement:
    """Reviewers' agreement on pairs that several of them labelled; a coefficient is None if it is undefined.

    ``cohen`` is the kappa of the two who share most pairs, ``krippendorff`` the alpha for nominal labels over all.
    """

    n: int
    same: int
    cohen: float | None
    krippendorff: float | None
    reviewers: tuple[str, ...]


def agreement(labels: Labels) -> Agreement:
    """The agreement of all reviewers except the adjudicator."""
    shared = [
        {who: label for who, label in of.items() if who != ADJUDICATOR}
        for of in labels.values()
        if len([who for who in of if who != ADJUDICATOR]) > 1
    ]
    pairs = Counter(pair for of in shared for pair in combinations(sorted(of), 2))
    two = min(pairs, key=lambda pair: (-pairs[pair], pair)) if pairs else ()
    both = [(of[two[0]], of[two[1]]) for of in shared if set(two) <= of.keys()] if two else []
    return Agreement(
        len(both), sum(a == b for a, b in both), cohen(both), krippendorff([list(of.values()) for of in shared]), two
    )


def cohen(both: Sequence[tuple[str, str]]) -> float | None:
    """Cohen's kappa; None without pairs, and if chance agreement is 1."""
    n = len(both)
    first, second = Counter(a for a, _ in both), Counter(b for _, b in both)
    by_chance = sum(first[one] * second[one] for one in first) / n**2 if n else 1.0
    seen = sum(a == b for a, b in both) / n if n else 0.0
    return None if by_chance == 1.0 else (seen - by_chance) / (1.0 - by_chance)


def krippendorff(units: Sequence[Sequence[str]]) -> float | None:
    """Krippendorff's alpha for nominal values, of units with two or more labels; None if all labels are the same."""
    totals = Counter(label for unit in units for label in unit)
    n = totals.total()
    expected = n * n - sum(count * count for count in totals.values())
    seen = sum(sum(a != b for a in unit for b in unit) / (len(unit) - 1) for unit in units if len(unit) > 1)
    return None if not expected else 1.0 - (n - 1) * seen / expected

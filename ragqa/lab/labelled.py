"""Reads labelled sentence pairs, obligations and citations, from the user's files and from `data/`.

`data/ORIGIN.md` says where each of our own files comes from.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from ragqa.corpus.jsonl import read_json_lines
from ragqa.errors import CorpusError

LABELS = ("contradiction", "entailment", "neutral")  # in the order of the embedded model's columns
DATA = Path(__file__).parent / "data"

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """A premise, a hypothesis and their label, an index into `LABELS`.

    ``taught`` are a teacher's probabilities in the order of `LABELS`; empty if a person or a rule gave the label.
    """

    premise: str
    hypothesis: str
    label: int
    source: str
    taught: tuple[float, ...] = ()

    @property
    def n_chars(self) -> int:
        """The length in characters, used instead of tokens when batches are formed."""
        return len(self.premise) + len(self.hypothesis)


class _Exact:
    """A row of `data/`; unknown fields are rejected."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Contrast(_Exact):
    """A premise, a hypothesis that differs from it in one thing that matters, and perhaps a re-wording."""

    kind: str
    premise: str
    contradicted: str
    entailed: str  # "" if there is none


@dataclass(frozen=True, slots=True)
class LegalClause(_Exact):
    """A clause, with one hypothesis each that it entails, contradicts and leaves open."""

    premise: str
    entailed: str
    contradicted: str
    left_open: str


@dataclass(frozen=True, slots=True)
class LabelledSentence(_Exact):
    """A sentence, whether it is an obligation, its origin, and its weight in training."""

    text: str
    obligation: bool
    origin: str = ""  # "added" or "probe" for our own, a passage id for the rulebook's
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class CitedSentence(_Exact):
    """A sentence, the passages of its group it cites, and those it should cite; numbers from 1."""

    text: str
    written: tuple[int, ...]
    right: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CitationGroup(_Exact):
    """Passages of the demonstration rulebook by id, and sentences about them."""

    passage_ids: tuple[str, ...]
    sentences: tuple[CitedSentence, ...]


def rows_of(file: Path, kind: type[Row]) -> tuple[Row, ...]:
    """The rows of a JSON-lines file, gzipped or not, with the fields of ``kind``.

    Raises CorpusError naming the line.
    """
    adapter = TypeAdapter(kind)
    found: list[Row] = []
    try:
        whole = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        for line in whole.decode().rstrip("\n").split("\n"):
            found.append(adapter.validate_json(line, strict=True))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, ValidationError) as error:
        problem = str(error)
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            problem = " ".join(map(str, (first["msg"], *first["loc"])))
        fields = ", ".join(getattr(kind, "__dataclass_fields__", ()))
        raise CorpusError(
            f"{file.name}, line {len(found) + 1}: {problem}; expected a JSON object of {fields}; correct the line, or "
            "reinstall ragqa"
        ) from error
    return tuple(found)


@cache
def contrasts() -> tuple[Contrast, ...]:
    """Sixty contrasts, grouped by kind. They must not be trained on."""
    return rows_of(DATA / "contrasts.jsonl", Contrast)


@cache
def legal_clauses() -> tuple[LegalClause, ...]:
    """Twenty clauses. They must not be trained on."""
    return rows_of(DATA / "legal_clauses.jsonl", LegalClause)


@cache
def citation_groups() -> tuple[CitationGroup, ...]:
    """Twenty groups of three sentences about the demonstration rulebook. They must not be trained on."""
    return rows_of(DATA / "rulebook_citations.jsonl", CitationGroup)


@cache
def rulebook_sentences() -> tuple[LabelledSentence, ...]:
    """Fifty sentences of the demonstration rulebook. They must not be trained on."""
    return rows_of(DATA / "rulebook_obligations.jsonl", LabelledSentence)


@cache
def own_sentences(origin: str) -> tuple[LabelledSentence, ...]:
    """Our own sentences, obligations first: ``"added"`` extend the training data, ``"probe"`` are never trained on."""
    return tuple(row for row in rows_of(DATA / "own_obligations.jsonl", LabelledSentence) if row.origin == origin)


def contrast_pairs() -> list[LabelledPair]:
    """All pairs, contradictions first; ``source`` is the kind, and "same meaning" for a re-wording."""
    differing = [LabelledPair(row.premise, row.contradicted, 0, row.kind) for row in contrasts()]
    equal = [LabelledPair(row.premise, row.entailed, 1, "same meaning") for row in contrasts() if row.entailed]
    return [*differing, *equal]


def legal_pairs() -> list[LabelledPair]:
    """Sixty pairs, a clause's three together; ``source`` is "legal"."""
    return [
        LabelledPair(row.premise, hypothesis, LABELS.index(label), "legal")
        for row in legal_clauses()
        for label, hypothesis in (
            ("entailment", row.entailed),
            ("contradiction", row.contradicted),
            ("neutral", row.left_open),
        )
    ]


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """A claim, the sentences of the page that it cites, and whether they support all of it."""

    text: str
    evidence: tuple[str, ...]
    is_supported: bool


def read_claims(path: Path) -> list[LabelledClaim]:
    """The claims of a JSON-lines file in WiCE's form ({claim, label, evidence}), gzipped or not. Raises CorpusError.

    Only the label "supported" counts as supported, not "partially_supported".
    """
    return [
        LabelledClaim(str(row["claim"]), tuple(map(str, row["evidence"])), row["label"] == "supported")
        for _, row in _rows(path, "claim", "label", "evidence")
    ]


def read_pairs(path: Path) -> list[LabelledPair]:
    """The pairs of a JSON-lines file ({premise, hypothesis, label, set}), gzipped or not.

    Raises CorpusError naming the line if one is not such an object or has another label.
    """
    pairs = []
    for place, row in _rows(path, "premise", "hypothesis", "label"):
        if row["label"] not in LABELS:
            raise CorpusError(f"{place}: found the label {row['label']!r}, expected one of {', '.join(LABELS)}")
        label = LABELS.index(row["label"])
        pairs.append(LabelledPair(str(row["premise"]), str(row["hypothesis"]), label, str(row.get("set", ""))))
    return pairs


def _rows(path: Path, *keys: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a JSON-lines file, gzipped or not, with their places; each has these keys. Raises CorpusError."""
    for item in read_json_lines(path, path.name):
        missing = [key for key in keys if key not in item]
        if missing:
            msg = f"{item.place}: found no {missing[0]}; expected JSON lines of {{{', '.join(keys)}}}, may be gzipped"
            raise CorpusError(msg)
        yield item.place, item.values


def read_labelled_sentences(data: Path) -> list[LabelledSentence]:
    """The sentences of a JSON list of {Text, Obligation}, in file order. Raises CorpusError."""
    expected = "expected a JSON list of {Text: sentence, Obligation: true or false}"
    try:
        items = json.loads(data.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CorpusError(f"{data} cannot be read ({error}); {expected}. Give the path with --data.") from error
    if not isinstance(items, list) or not items:
        raise CorpusError(f"{data} holds no list of sentences; {expected}. Give the path with --data.")
    sentences = []
    for number, item in enumerate(items):
        text, label = (item.get("Text"), item.get("Obligation")) if isinstance(item, dict) else (None, None)
        if not isinstance(text, str) or not isinstance(label, bool):
            raise CorpusError(f"Item {number} of {data} is {str(item)[:80]!r}; {expected}. Correct the item.")
        sentences.append(LabelledSentence(text, label))
    return sentences

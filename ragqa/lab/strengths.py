"""Sentences and list items labelled by hand with how strongly they bind; their texts are read from RAGQA_DATA.

`data/strengths.jsonl` holds a line for each document: {document, is_test, labels}. It contains the texts of the
demonstration corpora. Of other documents it contains only the `digest` of each text, so that no text is copied;
`labelled_strengths` looks these up among the sentences of the document.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ragqa.corpus.formats import load_corpus
from ragqa.english.sentences import split_sentences, taken_apart
from ragqa.errors import CorpusError
from ragqa.lab.labelled import DATA, rows_of
from ragqa.types import Passage
from ragqa.types.scores import Strength

FILE = DATA / "strengths.jsonl"
PASSAGE_TOKENS = 400  # of the passages whose sentences were labelled
DIGITS = 16  # of a sha256


@dataclass(frozen=True, slots=True)
class LabelledDocument:
    """A document, by its path in RAGQA_DATA or in a demonstration corpus, with the labels of some of its texts."""

    document: str
    is_test: bool
    labels: dict[str, str]


@dataclass(frozen=True, slots=True)
class StrengthSentence:
    """A sentence or an item after its lead-in, white space normalised. Test sentences must not be trained on."""

    text: str
    strength: Strength
    document: str
    is_test: bool = False


def labelled_strengths(data: Path) -> tuple[StrengthSentence, ...]:
    """All labelled texts that are found in ``data`` (RAGQA_DATA); parsing the documents takes minutes.

    Raises CorpusError if a document is missing, or more than one in fifty of its labelled texts.
    """
    found = []
    for row in rows_of(FILE, LabelledDocument):
        path, texts = data / row.document, {label: label for label in row.labels}
        if "/" in row.document.partition("/")[2]:
            texts = {digest(text): text for text in _units_of(path)}
        n_lost = sum(key not in texts for key in row.labels)
        if n_lost > max(1, len(row.labels) // 50):
            raise CorpusError(
                f"{path}: {n_lost} of its {len(row.labels)} labelled texts were not found; expected the file as it was"
            )
        found += [
            StrengthSentence(texts[key], Strength(label), row.document, row.is_test)
            for key, label in row.labels.items()
            if key in texts
        ]
    return tuple(found)


def digest(text: str) -> str:
    """The first 16 digits of the sha256 of its letters and digits: a bullet, cell or space read otherwise keeps it."""
    return hashlib.sha256("".join(filter(str.isalnum, text.casefold())).encode()).hexdigest()[:DIGITS]


def _units_of(path: Path) -> Iterator[str]:
    """Every sentence of the document, and every item of a list after its lead-in."""
    kind = "obliqa" if path.suffix == ".json" else "documents"
    for passage in load_corpus(path, kind, PASSAGE_TOKENS).passages:
        yield from units(passage)


def units(passage: Passage) -> Iterator[str]:
    """The sentences of the passage and the items of its lists after their lead-in, white space normalised."""
    for span in split_sentences(passage.text):
        listing = taken_apart(span.text)
        for text in (span.text, *(item.after(listing.lead) for item in listing.items)):
            yield " ".join(text.split())

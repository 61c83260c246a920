"""Hand-written probes from the files beside this module, for those whose passages are in an index.

ORIGIN.md explains them and their parts, open and sealed. Only the content of the requested part is used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from ragqa.evaluation.benchmarks.verdicts.probes import REWORDED, Expected, Probe, words_of
from ragqa.evaluation.files import shipped_rows
from ragqa.index import Index
from ragqa.types import Passage

DATA: Final = Path(__file__).parent
EDITS, REWORDINGS, OBLIGATIONS = "verdict_edits.jsonl", "verdict_rewordings.jsonl", "verdict_obligations.jsonl"
WRITTEN: Final = "verdict_written.jsonl"  # texts by local models, judged against the passages that they were given
PARTS: Final = ("open", "sealed", "both")
LEAST_SHARED: Final = 0.3  # share of words of re-wordings; .52 to .58 in their own passages, .03 in other corpora
LONG_WORD: Final = 4

Row = Mapping[str, Any]


def labelled(index: Index, part: str) -> list[Probe]:
    """The probes of this part whose passages are in the index; possibly none."""
    documents: dict[str, list[Passage]] = defaultdict(list)
    for passage in index.passages:
        documents[passage.document_id].append(passage)
    probes = [_edit(row, own) for row, own in _found(EDITS, part, documents) if own]
    probes += [_obligation(row, own) for row, own in _found(OBLIGATIONS, part, documents) if own]
    reworded: dict[str, list[tuple[Row, Sequence[Passage]]]] = defaultdict(list)
    for row, own in _found(REWORDINGS, part, documents):
        reworded[row["corpus"]].append((row, own))
    for cases in reworded.values():
        if fmean(_shared(row["hypothesis"], own) for row, own in cases) >= LEAST_SHARED:
            probes += [
                Probe(REWORDED, text, Expected.SUPPORTED, text, _ids(own), by_hand=True)
                for text, own in ((row["hypothesis"], own) for row, own in cases)
                if own
            ]
    return probes


def written(index: Index, part: str) -> Iterator[Probe]:
    """Hand-labelled texts by language models, if the index has every passage that they were given."""
    for row in shipped_rows(DATA / WRITTEN):
        given = tuple(row["passages"])
        is_own = index.manifest.name == row["corpus"] and all(name in index.position_of for name in given)
        if part in ("both", row["part"]) and is_own:
            expected = Expected(row["label"])
            yield Probe(f"written, {expected}", row["hypothesis"], expected, row["question"], by_hand=True, given=given)


def _found(name: str, part: str, documents: Mapping[str, Sequence[Passage]]) -> Iterator[tuple[Row, Sequence[Passage]]]:
    """The rows of this part, each with its passages in the index, by id or by the quoted text."""
    for row in shipped_rows(DATA / name):
        if part in ("both", row["part"]):
            quoted = row.get("source") or row.get("obligation")
            place = row.get("passage_id", "").removeprefix(f"{row['document_id']}:")
            yield (
                row,
                [
                    passage
                    for passage in documents.get(row["document_id"], ())
                    if (quoted in passage.text if quoted else _is_called(passage, row["document_id"], place))
                ],
            )


def _is_called(passage: Passage, document_id: str, place: str) -> bool:
    """Whether it is this passage or a piece of it: an index may split a line of JSON (``0``, ``0#2``)."""
    return passage.passage_id in (place, f"{document_id}:{place}") or passage.passage_id.startswith(f"{place}#")


def _shared(text: str, passages: Sequence[Passage]) -> float:
    """The share of the text's longer words in these passages, because ids alone do not identify a corpus."""
    wanted = {word for word in words_of(text) if len(word) >= LONG_WORD}
    has = words_of(" ".join(passage.text for passage in passages))
    return len(wanted & has) / len(wanted) if wanted else 0.0


def _edit(row: Row, own: Sequence[Passage]) -> Probe:
    return Probe(
        row["kind"],
        row["hypothesis"],
        Expected(row["label"]),
        row["source"],
        _ids(own),
        change=" → ".join(row.get("clash", ())),
        by_hand=True,
    )


def _obligation(row: Row, own: Sequence[Passage]) -> Probe:
    return Probe(
        f"without its {row['kind']}",
        row["answer"],
        Expected(row["label"]),
        row["obligation"],
        _ids(own),
        obligation=row["obligation"],
        change=row["missing"],
        by_hand=True,
    )


def _ids(passages: Sequence[Passage]) -> tuple[str, ...]:
    return tuple(passage.passage_id for passage in passages)

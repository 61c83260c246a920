"""BM25 over whole documents: a passage's score is that of its document (RIRAG 5.1, document-level fusion).

A document has hundreds of passages but only one score, so this ranking adds no passage to the fused ranking: `rescore`
gives passages that other rankings found the score of their document. Scores are normalised between the lowest and
highest of all documents, as the paper fuses "the ranking of top-100 passages and the ranking of all the documents".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ragqa.english.words import Analyser
from ragqa.retrieval.analysis import TokenTable, tokenise
from ragqa.retrieval.bm25 import BM25_FILES, Bm25Model, TokenCounts, Windows, load_bm25, write_bm25
from ragqa.retrieval.ranking import CorpusRanker, Rankable, index_files
from ragqa.types import Passage, Ranking, ScoredPassage

IDS: Final = "documents.json"  # ids in order of first occurrence
DOCUMENT_OF: Final = "document_of.npy"  # for each passage, the place of its document among these ids
DOCUMENT_FILES: Final = (*BM25_FILES, DOCUMENT_OF, IDS)

Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """BM25 over documents: ``ids[i]`` is the id of document i; ``document_of``, shape (n_passages,), has each i."""

    model: Bm25Model
    ids: tuple[str, ...]
    document_of: Numbers


class DocumentBm25(CorpusRanker):
    """Ranks passages by the BM25 score of their document."""

    def __init__(self, documents: Documents, analyser: Analyser, corpus: Rankable) -> None:
        super().__init__("document", corpus)
        self._documents = documents
        self._analyser = analyser
        self._number_of = {document_id: number for number, document_id in enumerate(documents.ids)}

    def retrieve(self, question: str, top_k: int) -> Ranking:
        """At most ``top_k`` passages of the best documents, ties by passage id; used if there is no other ranking."""
        scores = self._scores(question)
        if scores is None:
            return Ranking(self.name, ())
        positions = self._above_zero(scores[self._documents.document_of], top_k)
        return replace(positions, bounds=_bounds(scores))

    def rescore(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """The given passages whose document shares a token with the question, with the document's score."""
        scores = self._scores(question)
        if scores is None:
            return Ranking(self.name, (), finds=False)
        numbers = [(passage, self._number_of.get(passage.document_id)) for passage in passages]
        scored = [ScoredPassage(passage, float(scores[n])) for passage, n in numbers if n is not None and scores[n] > 0]
        return Ranking.of(self.name, scored, finds=False, bounds=_bounds(scores))

    def _scores(self, question: str) -> npt.NDArray[np.float32] | None:
        """Shape (n_documents,); None if no token of the question occurs."""
        return self._documents.model.scores_of(tokenise(question, self._analyser))


def write_documents(
    blocks: Sequence[TokenCounts], ids: Sequence[str], document_of: Numbers, k1: float, b: float, folder: Path
) -> Iterator[tuple[int, int]]:
    """Writes `DOCUMENT_FILES` from the counts of documents; yields (done, total) scores as they are written."""
    yield from write_bm25(blocks, k1, b, folder)
    np.save(folder / DOCUMENT_OF, document_of, allow_pickle=False)
    (folder / IDS).write_text(json.dumps(ids, ensure_ascii=False), encoding="utf-8")


def by_document(table: TokenTable, document_of: npt.NDArray[np.integer[Any]]) -> tuple[TokenTable, Windows]:
    """The texts grouped by document, and the range of texts of each document.

    Text i belongs to document ``document_of[i]``. Documents are numbered from 0 without gaps. Texts keep their order
    within a document.
    """
    sizes = np.bincount(document_of)
    ends = np.cumsum(sizes)
    windows = np.stack([ends - sizes, ends], axis=1)
    order = np.argsort(document_of, kind="stable")
    if (order[1:] > order[:-1]).all():  # already grouped, as corpora are read
        return table, windows
    parts = [table.numbers[table.starts[n] : table.starts[n + 1]] for n in order]
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return TokenTable(np.concatenate(parts), starts, table.vocabulary), windows


def load_documents(folder: Path) -> Documents:
    """The output of `write_documents`, with arrays memory-mapped read-only. Raises IndexMismatchError."""
    model = load_bm25(folder)
    with index_files("the files of a ranking of documents", folder):
        ids = json.loads((folder / IDS).read_text(encoding="utf-8"))
        document_of = np.load(folder / DOCUMENT_OF, mmap_mode="r", allow_pickle=False)
        fits = document_of.ndim == 1 and document_of.dtype == np.int32 and isinstance(ids, list)
        if not fits or not len(ids) == len(set(ids)) == model.scores["num_docs"] == int(document_of.max()) + 1:
            raise ValueError(f"{IDS}, {DOCUMENT_OF} and the scores are not of the same documents")
    return Documents(model, tuple(ids), np.asarray(document_of))


def _bounds(scores: npt.NDArray[np.float32]) -> tuple[float, float]:
    return float(scores.min()), float(scores.max())

"""What only tests make in one call: BM25 and its files of texts at hand, passages of files, configurations measured.

The package itself makes the same in portions, as it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ragqa.corpus.jsonl import JsonLinesStream
from ragqa.corpus.questions import GoldQuestion, GoldUnit
from ragqa.corpus.wikipedia.dump import DumpStream
from ragqa.evaluation.benchmarks.retrieval.comparing import Result, measured
from ragqa.evaluation.benchmarks.retrieval.rankings import Rankings
from ragqa.fusion import fuse
from ragqa.generation.prompts import Message, build_prompt
from ragqa.retrieval.analysis import Analyser, TokenTable, headings, token_table
from ragqa.retrieval.bm25 import Bm25Model, Windows, _save_rest, counted, scores_of
from ragqa.retrieval.document_bm25 import by_document, write_documents
from ragqa.retrieval.ranking import Positions
from ragqa.settings.config import FusionConfig
from ragqa.types import Passage, Question


def tie_order(passages: Sequence[Passage]) -> Positions:
    """For each passage the place of its id among all ids sorted; shape (n_passages,)."""
    by_id = sorted(range(len(passages)), key=lambda position: passages[position].passage_id)
    order = np.empty(len(passages), dtype=np.int64)
    order[by_id] = np.arange(len(passages))
    return order


def hidden_passages(passages: Sequence[Passage], analyser: Analyser) -> npt.NDArray[np.bool_]:
    """Shape (n_passages,): True for what no retriever returns; nothing is hidden where all would be."""
    hidden = headings(passages, analyser)
    return hidden if not hidden.all() else np.zeros_like(hidden)


def build_bm25(token_lists: Iterable[Sequence[str]], k1: float, b: float) -> Bm25Model:
    """The scored matrix of passages given as tokens; passage i is column position i. Needs at least one passage.

    The lists may come from a generator; equal input gives equal files.
    """
    return scored_bm25(token_table(token_lists), k1, b)


def scored_bm25(table: TokenTable, k1: float, b: float, windows: Windows | None = None) -> Bm25Model:
    """Likewise of a table; with ``windows``, shape (n_passages, 2), passage i is read as texts first to last - 1."""
    scores = scores_of(tuple(counted(table, windows)), k1, b)
    data, indices = zip(*scores.blocks(), strict=True) if len(scores.vocabulary) else ((), ())
    matrix = {
        "data": np.concatenate([np.empty(0, np.float32), *data]),
        "indices": np.concatenate([np.empty(0, np.int32), *indices]),
        "indptr": scores.indptr,
        "num_docs": scores.n_texts,
    }
    return Bm25Model(scores.vocabulary, matrix, k1, b)


def save_bm25(model: Bm25Model, folder: Path) -> None:
    """Writes the five files of `BM25_FILES`: arrays without pickle, and JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("data", "indices"):
        np.save(folder / f"{name}.csc.index.npy", model.scores[name], allow_pickle=False)
    _save_rest(folder, model.vocabulary, model.scores["indptr"], model.k1, model.b, model.scores["num_docs"])


def save_documents(passages: Sequence[Passage], table: TokenTable, k1: float, b: float, folder: Path) -> None:
    """Writes `DOCUMENT_FILES`; text i of ``table`` is passage i. Needs at least one passage."""
    numbers: dict[str, int] = {}
    document_of = np.fromiter((numbers.setdefault(p.document_id, len(numbers)) for p in passages), np.int32)
    blocks = tuple(counted(*by_document(table, document_of)))
    for _ in write_documents(blocks, tuple(numbers), document_of, k1, b, folder):
        pass


def load_jsonl(source: Path, max_tokens: int = 128) -> tuple[Passage, ...]:
    """All passages of `JsonLinesStream` at once."""
    return tuple(passage for _, passages in JsonLinesStream(source, max_tokens).articles() for passage in passages)


def stream_passages(path: Path, max_tokens: int = 128, start: int = 0) -> Iterator[Passage]:
    """The passages of a dump, from the article at position ``start`` on. Raises CorpusError, ConfigError."""
    return (passage for _, passages in DumpStream(path, max_tokens).articles(start) for passage in passages)


def build_messages(question: Question, passages: Sequence[Passage]) -> list[Message]:
    """The system message with the rules, then one user message with the framed passages and the framed question."""
    return list(build_prompt(question, passages).messages)


def evaluate(
    questions: Sequence[GoldQuestion],
    columns: Sequence[Rankings],
    fusions: Mapping[str, FusionConfig],
    unit: GoldUnit = "passage",
) -> tuple[Result, ...]:
    """A result per retriever alone, then one per fusion of all of them. ``columns[r][q]``: retriever r, question q.

    Gold is keyed on (DocumentID, PassageID); of duplicates the first counts, as in the official relevance file. A gold
    passage that is not in the index counts as missed. Where ``unit`` is ``"document"`` gold are documents, and a
    ranking of passages counts as one of documents, each where its first passage stands. Raises CorpusError for a
    question without gold.
    """
    results = [measured(column[0].retriever, questions, column, unit) for column in columns if column]
    for name, config in fusions.items():
        fused = tuple(fuse(rankings, config) for rankings in zip(*columns, strict=True))
        results.append(measured(name, questions, fused, unit))
    return tuple(results)


def read_run(path: Path) -> dict[str, tuple[tuple[str, float], ...]]:
    """For each question id, in the order of the file, its (docid, score) pairs as trec_eval ranks them, best first."""
    hits: dict[str, list[tuple[str, float]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        question, _, docid, _, score, _ = line.split()
        hits.setdefault(question, []).append((docid, float(score)))
    by_score = lambda hit: (np.float32(hit[1]), hit[0].encode())  # noqa: E731
    return {question: tuple(sorted(found, key=by_score, reverse=True)) for question, found in hits.items()}

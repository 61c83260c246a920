"""Further rankings of an index: their files written, opened and handed to their retrievers; see `ragqa.manifest`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragqa.analysers import Analyser
from ragqa.config import IndexingConfig
from ragqa.errors import IndexingError, IndexMismatchError
from ragqa.indexing.steps import ENCODED, BuildProgress, encode, tokens_of
from ragqa.manifest import FURTHER, FurtherRanking, Manifest
from ragqa.protocols import Retriever
from ragqa.types import Passage

if TYPE_CHECKING:
    from ragqa.retrieval.analysis import IndexedText
    from ragqa.retrieval.ranking import Mask, Positions

__all__ = ["open_further", "write_further"]

Writing = Generator[BuildProgress, None, None]


def write_further(
    folder: Path,
    passages: Sequence[Passage],
    analyser: Analyser,
    kind: IndexedText,
    config: IndexingConfig,
    models: Mapping[str, Any],
) -> Generator[BuildProgress, None, tuple[FurtherRanking, ...]]:
    """Writes ``further/`` where the configuration has further rankings, and says what is there.

    ``models`` are theirs, by the names of their retrievers. Raises IndexingError where one is missing, ModelError.
    """
    from ragqa.retrieval.analysis import indexed_text
    from ragqa.retrieval.names import retriever_name

    rankings: list[FurtherRanking] = []
    for asked in config.rankings:
        name = retriever_name(asked)
        if name != "document" and name not in models:
            msg = f"expected a model for the ranking {asked!r}, found none; load it with `ragqa.loading.load_further`"
            raise IndexingError(msg)
        ranking = _described(name, models.get(name), 1 + sum(one.name.startswith("dense:") for one in rankings))
        place = folder / FURTHER / ranking.folder
        place.mkdir(parents=True)
        if name == "document":
            yield from _write_documents(place, passages, analyser, config)
        else:
            texts = [indexed_text(passage, kind) for passage in passages]
            yield from _write_vectors(place, name, texts, models[name], config.vectors)
        rankings.append(ranking)
    return tuple(rankings)


def open_further(
    folder: Path,
    manifest: Manifest,
    passages: Sequence[Passage],
    order: Positions,
    hidden: Mask,
    position_of: Mapping[str, int],
) -> dict[str, Callable[[Any], Retriever]]:
    """For each further ranking what makes its retriever, given its model; its files are open and memory-mapped.

    Raises IndexMismatchError.
    """
    makers = {}
    for ranking in manifest.rankings:
        place = folder / FURTHER / ranking.folder
        maker, n_passages = _opened(ranking.name, place, manifest, (passages, order, hidden), position_of)
        if n_passages != manifest.n_passages:
            msg = f"{FURTHER}/{ranking.folder} is of {n_passages:,} passages, expected {manifest.n_passages:,}"
            raise IndexMismatchError(msg)
        makers[ranking.name] = maker
    return makers


def _described(name: str, model: Any, number: int) -> FurtherRanking:  # noqa: ANN401 - whatever the ranking's model is
    folder = f"dense-{number}" if name.startswith("dense:") else name
    if model is None:
        return FurtherRanking(name, folder)
    return FurtherRanking(name, folder, model.info.name, model.info.fingerprint, model.info.precision)


def _write_documents(place: Path, passages: Sequence[Passage], analyser: Analyser, config: IndexingConfig) -> Writing:
    from ragqa.retrieval.analysis import context_analyser
    from ragqa.retrieval.document_bm25 import save_documents
    from ragqa.retrieval.token_table import token_table

    yield BuildProgress("document", 0, len(passages))
    table = token_table(tokens_of(passages, context_analyser(analyser)))
    save_documents(passages, table, config.bm25_k1, config.bm25_b, place)
    yield BuildProgress("document", len(passages), len(passages))


def _write_vectors(place: Path, name: str, texts: Sequence[str], model: Any, kind: str) -> Writing:  # noqa: ANN401
    from ragqa.retrieval.late_interaction import save_tokens
    from ragqa.retrieval.splade import save_sparse
    from ragqa.retrieval.vectors import write_vectors

    if name in {"splade", "late"}:
        steps: Iterator[tuple[int, int]] = (save_sparse if name == "splade" else save_tokens)(texts, model, place)
        yield from (BuildProgress(name, done, total) for done, total in steps)
        return
    vectors, rows = yield from encode(texts, model, kind, place / ENCODED, name)
    write_vectors(vectors, place / "vectors.faiss", kind, rows)
    (place / ENCODED).unlink()


def _opened(
    name: str,
    place: Path,
    manifest: Manifest,
    shared: tuple[Sequence[Passage], Positions, Mask],
    position_of: Mapping[str, int],
) -> tuple[Callable[[Any], Retriever], int]:
    """What makes the retriever of its model, and of how many passages its files are."""
    from ragqa.retrieval.analysis import context_analyser
    from ragqa.retrieval.dense import DenseRetriever
    from ragqa.retrieval.document_bm25 import DocumentBm25, load_documents
    from ragqa.retrieval.late_interaction import late_retriever, load_tokens
    from ragqa.retrieval.splade import SpladeRetriever, load_sparse
    from ragqa.retrieval.vectors import read_vectors

    if name == "document":
        documents = load_documents(place)
        retriever = DocumentBm25(documents, context_analyser(manifest.analyser), *shared)
        return (lambda _: retriever), len(documents.document_of)
    if name == "splade":
        sparse = load_sparse(place)
        return partial(SpladeRetriever, sparse, *shared), sparse.shape[0]
    if name == "late":
        tokens = load_tokens(place)
        return (lambda model: late_retriever(tokens, *shared, model, position_of)), len(tokens.text_of)
    vectors = read_vectors(place / "vectors.faiss", manifest.vectors)
    return (lambda model: DenseRetriever(vectors, *shared, model, name)), vectors.ntotal

"""Updates the index of a library corpus: only changed documents are read and encoded, and the changes are logged."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ragqa.corpus.choices import LOOKED_AT, chosen_analyser, spread
from ragqa.corpus.documents import Reader, UnreadableError
from ragqa.errors import CorpusError, IndexingError
from ragqa.index import BuildProgress, Index, build_events, list_indexes, open_index
from ragqa.index.build import LIBRARIES, version
from ragqa.index.engine import engine_of, known_texts
from ragqa.index.manifest import DENSE, FURTHER, Manifest
from ragqa.index.passage_arrays import digests_of
from ragqa.index.reuse import KnownVectors
from ragqa.infra.files import sha256_of
from ragqa.library import parse_cache
from ragqa.library.changes import (
    REREAD,
    DocumentChange,
    Rereading,
    Update,
    append,
    compared,
    digest,
    read_rereading,
    renamed,
    write_rereading,
)
from ragqa.library.collection import Catalogue, Collection, Document, now
from ragqa.library.questions import questions_of
from ragqa.library.upload import clear_incoming
from ragqa.plugins.protocols import Encoder
from ragqa.retrieval.analysis import indexed_text
from ragqa.retrieval.dense import read_vectors
from ragqa.settings.config import IndexingConfig
from ragqa.settings.indexing import NO_ENCODER
from ragqa.types import Passage

CHANGES: Final = "changes.jsonl"
MAX_TOKENS: Final = IndexingConfig().chunk_max_tokens

Updating = Generator[BuildProgress, None, Manifest]
FurtherModels = Callable[[Sequence[str]], Mapping[str, Any]]


def no_further(rankings: Sequence[str]) -> Mapping[str, Any]:
    """No models: for corpora whose further rankings, if any, need none."""
    del rankings
    return {}


def index_events(
    collection: Collection,
    indexes: Path,
    load_encoder: Callable[[], Encoder | None],
    *,
    load_further: FurtherModels = no_further,
    also: Sequence[str] = (),
    reuse: bool = True,
    uri: str = "",
) -> Updating:
    """Adds the staged files to the documents and builds their index; yields progress and returns the manifest.

    It can be stopped at any moment; the same call resumes it. ``load_encoder`` gives None for an index without vectors.
    Without ``reuse`` nothing of the earlier index is used; the result is the same. ``uri`` is the address of the engine
    for the index; empty: the engine that holds it now, if any. ``also`` are rankings, as `IndexingConfig` names them,
    in addition to those of the index; ``load_further`` gives their models, as `ragqa.loading.load_further`.
    Raises CorpusError, ModelError, IndexingError.
    """
    yield BuildProgress("corpus", 0, 1)
    clear_incoming(collection)
    _check_something_is_left(collection)
    before = collection.read()
    catalogue = collection.accept(lambda staged: parse_cache.is_readable(collection, staged, MAX_TOKENS))
    yield from _read_all(collection, catalogue)
    _read_replaced(collection, catalogue, before.indexed or {})
    if not catalogue.analyser:
        catalogue = _with_analyser(collection, catalogue)
    encoder = load_encoder()
    earlier = _manifest(collection.name, indexes)
    has = [ranking.option for ranking in earlier.rankings] if earlier else []
    rankings = tuple(dict.fromkeys((*has, *also)))
    models = load_further(rankings)
    config = IndexingConfig(
        analyser=catalogue.analyser, encoder=encoder.info.name if encoder else NO_ENCODER, rankings=rankings
    )
    known = _known(collection.name, indexes, encoder, models) if reuse else {}
    measured = collection.folder / parse_cache.MEASURED if reuse else None
    stream = parse_cache.LibraryStream(collection, catalogue.kept, config.chunk_max_tokens, measured)
    engine = engine_of(indexes / collection.name)
    where = uri or (engine.uri if engine else "")
    manifest = yield from build_events(
        collection.name, stream, indexes=indexes, config=config, encoder=encoder, models=models, known=known, uri=where
    )
    _finish(collection, catalogue, before.indexed or {}, open_index(collection.name, indexes))
    return manifest


def encoder_name(collection: Collection, indexes: Path) -> str:
    """The encoder of the corpus's index, "none" without vectors; the default encoder where there is no index yet."""
    known = _manifest(collection.name, indexes)
    return known.encoder if known else IndexingConfig().encoder


def _manifest(name: str, indexes: Path) -> Manifest | None:
    """The manifest of the corpus's index; None where there is no readable index."""
    return {entry.name: entry.manifest for entry in list_indexes(indexes)}.get(name)


def _check_something_is_left(collection: Collection) -> None:
    catalogue = collection.read()
    waiting = [one for one in catalogue.staged if parse_cache.is_readable(collection, one, MAX_TOKENS)]
    if not catalogue.kept and not waiting:
        msg = f"expected a document that can be read in {catalogue.title!r}, found none; add one, or delete the corpus"
        raise CorpusError(msg)


def _read_all(collection: Collection, catalogue: Catalogue) -> Generator[BuildProgress, None, None]:
    """Reads the files that were not read yet, one at a time; indexing reports those that cannot be read."""
    with Reader() as reader:
        for done, one in enumerate(catalogue.kept):
            yield BuildProgress("corpus", done, len(catalogue.kept), one.name)
            if parse_cache.is_known(collection, one, MAX_TOKENS):
                continue
            with suppress(UnreadableError):
                parse_cache.read(collection, one, reader, MAX_TOKENS)


def _read_replaced(collection: Collection, catalogue: Catalogue, indexed: dict[str, str]) -> None:
    """Reads the earlier versions with the present parser, so that only changes of the author count as changes."""
    with Reader() as reader:
        for one in catalogue.kept:
            if indexed.get(one.document_id, one.sha256) != one.sha256:
                with suppress(UnreadableError):
                    parse_cache.read_again(collection, indexed[one.document_id], reader, MAX_TOKENS)


def _known(name: str, indexes: Path, encoder: Encoder | None, models: Mapping[str, Any]) -> Mapping[str, KnownVectors]:
    """The vectors of the present index that the new one can reuse, by ranking.

    Vectors of another encoder, precision or library version, or of a damaged file, are left out.
    """
    try:
        index = open_index(name, indexes)
    except IndexingError:
        return {}
    manifest = index.manifest
    if manifest.vectors != "Flat" or manifest.libraries != {library: version(library) for library in LIBRARIES}:
        return {}
    files: dict[str, str] = {}
    if encoder and (manifest.encoder_fingerprint, manifest.encoder_precision) == _made_by(encoder):
        files["dense"] = DENSE
    files |= {
        ranking.name: f"{FURTHER}/{ranking.folder}/vectors.faiss"
        for ranking in manifest.rankings
        if ranking.name.startswith("dense:")
        and ranking.name in models
        and (ranking.fingerprint, ranking.precision) == _made_by(models[ranking.name])
    }
    announced = {entry.path: entry.sha256 for entry in manifest.files}
    whole = {
        ranking: path
        for ranking, path in files.items()
        if path not in announced or sha256_of(index.folder / path) == announced[path]
    }
    if not whole:
        return {}
    digests = (
        known_texts(index.folder)
        if manifest.engine
        else digests_of(indexed_text(passage, manifest.indexed_text) for passage in index.passages)
    )
    return {
        ranking: KnownVectors(
            digests, index.vectors if ranking == "dense" else read_vectors(index.folder / path, manifest.vectors)
        )
        for ranking, path in whole.items()
    }


def _made_by(encoder: Encoder) -> tuple[str, str]:
    return encoder.info.fingerprint, encoder.info.precision


def _finish(collection: Collection, built: Catalogue, indexed: dict[str, str], index: Index) -> None:
    """Stores the changes, the list of indexed documents and the example questions."""
    holds = {one.document_id: one.sha256 for one in built.kept}
    update = Update(now(), tuple(_changes(collection, indexed, built.kept)))
    if update.documents:
        append(collection.folder / CHANGES, update)
    _note_rereading(collection, indexed, built.kept)
    questions = questions_of(index.passages)
    collection.change(lambda before, _moves: replace(before, indexed=holds, questions=questions))
    parse_cache.forget(collection, MAX_TOKENS)


def _note_rereading(collection: Collection, indexed: dict[str, str], documents: Sequence[Document]) -> None:
    """Where a new parser version read an unchanged file, maps old ids to new ones, so that it is not a change."""
    ids: dict[str, str] = {}
    texts: set[str] = set()
    for one in documents:
        same_file = indexed.get(one.document_id) == one.sha256
        if old := parse_cache.before(collection, one.sha256, MAX_TOKENS) if same_file else None:
            before, after = parse_cache.passages_of(old, one), _passages(collection, one.sha256, one)
            same = {(passage.passage_id, passage.text) for passage in after}
            left = [passage for passage in before if (passage.passage_id, passage.text) not in same]
            ids |= renamed(left, after)
            texts |= set(map(digest, left))
    if texts:
        path = collection.folder / REREAD
        write_rereading(path, read_rereading(path).joined(Rereading(ids, frozenset(texts))))


def _changes(collection: Collection, indexed: dict[str, str], documents: Sequence[Document]) -> list[DocumentChange]:
    found = []
    for one in documents:
        if indexed.get(one.document_id) == one.sha256:
            continue
        after = _passages(collection, one.sha256, one)
        if one.document_id in indexed:
            before = _passages(collection, indexed[one.document_id], one)
            found.append(compared(one.document_id, one.version, before, after))
        else:
            found.append(DocumentChange(one.document_id, "added", one.version, len(after), 0))
    gone = indexed.keys() - {one.document_id for one in documents}
    for document_id in sorted(gone):
        reading = parse_cache.earlier(collection, indexed[document_id], MAX_TOKENS)
        found.append(DocumentChange(document_id, "removed", 0, len(reading.passages) if reading else 0, 0))
    return found


def _passages(collection: Collection, sha256: str, document: Document) -> tuple[Passage, ...]:
    reading = parse_cache.earlier(collection, sha256, MAX_TOKENS)
    return parse_cache.passages_of(reading, document) if reading else ()


# How words are read ------------------------------------------------------------------------------------------------


def _with_analyser(collection: Collection, catalogue: Catalogue) -> Catalogue:
    passages: list[Passage] = []
    for one in catalogue.kept:
        reading = parse_cache.earlier(collection, one.sha256, MAX_TOKENS)
        passages += spread(reading.passages, max(20, LOOKED_AT // len(catalogue.kept))) if reading else ()
    language, analyser, reason = chosen_analyser(passages)
    return collection.change(
        lambda before, _moves: replace(before, language=language, analyser=analyser, reason=reason)
    )

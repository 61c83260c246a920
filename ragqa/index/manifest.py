"""The manifest of an index folder (`manifest.json`), and the check that the files still match it.

::

    indexes/NAME/
    ├── manifest.json    this module
    ├── passages.jsonl   one Passage a line, then the numbered items of all passages (`ragqa.index.passages.itemised`)
    ├── passages.*.npy   the start of each line (offsets), the keys of the ids and their lines (ids), the place of each
    │                    id among all sorted ids (order), the passages that no retriever returns (hidden)
    ├── bm25/            bm25s: arrays and JSON
    ├── context/         the same for each passage with its neighbours; missing if context_passages is 0
    ├── references.jsonl  the references of passages (`ragqa.corpus.references`); missing if there are none
    ├── further/         a folder for each further ranking: document, splade, late, dense-1, ...; missing without them
    └── dense.faiss      FAISS, of the kind that the manifest names; row i is line i of passages.jsonl; missing if the
                         encoder is "none"

If an engine stores the corpus, `ENGINE_FILES` and `ENGINE_BM25_FILES` take the place of passages, matrices and vectors:
see `ragqa.index.engine`.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import TypeAdapter, ValidationError

from ragqa.english.words import Analyser, analyser_named
from ragqa.errors import IndexMismatchError
from ragqa.infra.files import sha256_of
from ragqa.plugins.registry import RETRIEVERS, entry_points_of
from ragqa.settings.config import IndexingConfig
from ragqa.settings.indexing import NO_ENCODER

SCHEMA_VERSION: Final = 3
MANIFEST: Final = "manifest.json"
PASSAGES: Final = "passages.jsonl"
OFFSETS: Final = "passages.offsets.npy"
IDS: Final = "passages.ids.npy"
ORDER: Final = "passages.order.npy"
HIDDEN: Final = "passages.hidden.npy"
DENSE: Final = "dense.faiss"
BM25: Final = "bm25"
CONTEXT: Final = "context"
FURTHER: Final = "further"
REFERENCES: Final = "references.jsonl"
PASSAGE_FILES: Final = (PASSAGES, OFFSETS, IDS, ORDER, HIDDEN)
BM25_FILES: Final = (
    "data.csc.index.npy",
    "indices.csc.index.npy",
    "indptr.csc.index.npy",
    "params.index.json",
    "vocabulary.npy",
)
ROWS: Final = "passages.rows.npy"
DIGESTS: Final = "passages.digests.npy"
LEFT_OUT: Final = "passages.left_out.npy"
STARTED: Final = "engine.json"  # in a building folder: the collection that is being written in an engine
ENGINE_FILES: Final = (*PASSAGE_FILES[2:], ROWS, DIGESTS, LEFT_OUT)
ENGINE_BM25_FILES: Final = (*BM25_FILES[2:], "numbers.npy", "idf0.npy", "lengths.npy", "words.json")
FURTHER_FILES: Final = {
    "document": (*BM25_FILES, "document_of.npy", "documents.json"),
    "splade": ("data.npy", "indices.npy", "indptr.npy", "shape.npy"),
    "late": ("offsets.npy", "text_of.npy", "vectors.f16"),
    "dense": ("vectors.faiss",),
}


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of the index: its path below the index folder with ``/``, its size and sha256."""

    path: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class FurtherRanking:
    """A ranking beside BM25, context and dense: the name of its retriever, and its folder below ``further/``.

    ``model`` is a name that the model's loader resolves, ``fingerprint`` the sha256 of its weights. A ranking without a
    model, such as ``document``, leaves ``model``, ``fingerprint`` and ``precision`` empty.
    """

    name: str
    folder: str
    model: str = ""
    fingerprint: str = ""
    precision: str = ""

    @property
    def option(self) -> str:
        """The value of `ragqa index build --also` that adds this ranking."""
        return self.name if self.name.startswith("dense:") or not self.model else f"{self.name}:{self.model}"


@dataclass(frozen=True, slots=True)
class CorpusEngine:
    """The engine that stores the corpus of an index: ``milvus``, its address without a login, and the collection.

    ``generation`` counts the updates of the collection from 1; ``next_row`` is the first key that no row has ever had.
    """

    kind: str
    uri: str
    collection: str
    generation: int
    next_row: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that determines the results of this index.

    ``source`` is the last part of the source's path, ``corpus_sha256`` the hash of its content. ``encoder`` is a name
    that the encoder's loader resolves, ``encoder_fingerprint`` the sha256 of its weights. ``indexed_text`` is the text
    of a passage that the encoder reads, ``analyser`` the analyser of BM25. ``created`` is UTC in ISO 8601. ``vectors``
    is the kind of FAISS index, ``search_effort`` that of an approximate one (0: exact). Without vectors, ``encoder`` is
    "none" and the other fields about encoder and vectors are empty or 0.
    """

    schema_version: int
    name: str
    source: str
    format: str
    corpus_sha256: str
    n_documents: int
    n_passages: int
    chunk_max_tokens: int
    indexed_text: Literal["text", "title-section-text"]
    analyser: Analyser
    analysis_version: int
    bm25_k1: float
    bm25_b: float
    context_passages: int
    encoder: str
    encoder_fingerprint: str
    encoder_precision: str
    dimension: int
    vectors: str
    search_effort: int
    libraries: dict[str, str]
    created: str
    files: tuple[FileEntry, ...]
    rankings: tuple[FurtherRanking, ...] = ()
    engine: CorpusEngine | None = None  # None: passages, BM25 and vectors are in the folder of the index

    @property
    def has_vectors(self) -> bool:
        """Whether it was built with an encoder; if not, only further rankings are not lexical."""
        return self.encoder != NO_ENCODER

    @property
    def retrievers(self) -> tuple[str, ...]:
        """The names of this index's retrievers, in order."""
        context = ("context",) if self.context_passages else ()
        dense = ("dense",) if self.has_vectors else ()
        refers = any(entry.path == REFERENCES and entry.size_bytes for entry in self.files)
        citations = ("citations",) if refers else ()
        return ("bm25", *context, *dense, *citations, *(ranking.name for ranking in self.rankings))

    @property
    def size_bytes(self) -> int:
        """The size of all files except the manifest."""
        return sum(entry.size_bytes for entry in self.files)


_MOST: Final = {
    **dict.fromkeys(("n_documents", "n_passages"), 10**10),
    **dict.fromkeys(("chunk_max_tokens", "search_effort", "dimension"), 10**6),
    **dict.fromkeys(("context_passages", "character_ngrams", "bm25_k1"), 1_000),
    "bm25_b": 1,
    "size_bytes": 2**50,
}


def rebuild_hint(name: str, manifest: Manifest | None = None) -> str:
    """The command that rebuilds a damaged index; ``manifest`` adds the options that the index was built with."""
    if manifest is None:
        return f"rebuild it with `ragqa index build {name} --source PATH`"
    from ragqa.corpus.documents import DOCUMENT_FORMATS  # not needed to read an index

    standard, engine = IndexingConfig(), manifest.engine
    analyser, chunk = str(manifest.analyser).partition(":")[0], manifest.chunk_max_tokens
    is_one_kind = manifest.format in {*DOCUMENT_FORMATS} - {"documents"}  # such as pdf, which is never detected
    options = [
        f"--format {manifest.format}" if is_one_kind else "",
        f"--encoder {shlex.quote(manifest.encoder)}" if manifest.encoder != standard.encoder else "",
        f"--analyser {analyser}" if manifest.analyser != analyser_named("", manifest.format) else "",
        f"--vectors {shlex.quote(manifest.vectors)}" if manifest.vectors not in {standard.vectors, ""} else "",
        f"--chunk-max-tokens {chunk}" if chunk != standard.chunk_max_tokens else "",
        f"--engine {engine.kind} --uri {shlex.quote(engine.uri)}" if engine else "",
        *(f"--also {shlex.quote(ranking.option)}" for ranking in manifest.rankings),
    ]
    command = " ".join(["ragqa index build", name, "--source PATH", *filter(None, options)])
    return f"rebuild it with `{command}` (it was made from {manifest.source!r})"


def index_files(
    context_passages: int,
    rankings: Sequence[FurtherRanking] = (),
    *,
    has_vectors: bool = True,
    found: Iterable[str] = (),
    engine: bool = False,
) -> tuple[str, ...]:
    """The paths of the files of an index except its manifest.

    Rankings of other packages have the files ``found`` directly in their folder. ``engine`` says that an engine stores
    passages, vectors and scores.
    """
    found = tuple(found)
    added: dict[str, list[str]] = {ranking.folder: [] for ranking in rankings if _is_added(ranking.name)}
    for path in sorted(found):
        _, folder, name = (*path.split("/", 2), "", "")[:3]
        if folder in added and re.fullmatch(r"[\w.-]+", name) and name.strip("."):
            added[folder].append(name)
    folders = (BM25, CONTEXT) if context_passages else (BM25,)
    further = (
        f"{FURTHER}/{ranking.folder}/{name}"
        for ranking in rankings
        for name in (added.get(ranking.folder) or FURTHER_FILES.get(ranking.name.partition(":")[0], ()))
    )
    vectors = (DENSE,) if has_vectors and not engine else ()
    references = (REFERENCES,) if REFERENCES in found else ()
    return (
        *(f"{folder}/{name}" for folder in folders for name in (ENGINE_BM25_FILES if engine else BM25_FILES)),
        *vectors,
        *(ENGINE_FILES if engine else PASSAGE_FILES),
        *references,
        *further,
    )


def _is_added(name: str) -> bool:
    """Whether this is the name of a ranking, and so of the folder, of another installed package."""
    return name in entry_points_of(RETRIEVERS)


def describe_files(
    folder: Path,
    context_passages: int,
    rankings: Sequence[FurtherRanking] = (),
    *,
    has_vectors: bool = True,
    engine: bool = False,
) -> tuple[FileEntry, ...]:
    """The size and sha256 of every index file in this folder."""
    paths = (*folder.glob(f"{FURTHER}/*/*"), folder / REFERENCES)
    found = (path.relative_to(folder).as_posix() for path in paths if path.is_file())
    return tuple(
        FileEntry(path, (folder / path).stat().st_size, sha256_of(folder / path))
        for path in index_files(context_passages, rankings, has_vectors=has_vectors, found=found, engine=engine)
    )


def write_manifest(manifest: Manifest, folder: Path) -> None:
    """Writes ``manifest.json`` with a digest of itself, so that a changed byte is detected."""
    fields = asdict(manifest)
    text = json.dumps({**fields, "digest": _digest(fields)}, indent=2, ensure_ascii=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> Manifest:
    """The manifest of this folder. Raises IndexMismatchError unless it is complete, unchanged and of this schema."""
    fields = _read_object(folder / MANIFEST)
    version, digest = fields.get("schema_version"), fields.pop("digest", None)
    if version != SCHEMA_VERSION:
        raise IndexMismatchError(f"expected an index of schema version {SCHEMA_VERSION}, found version {version}")
    if digest != _digest(fields):
        raise IndexMismatchError(f"{MANIFEST} was changed after the index was built (its digest does not fit)")
    try:
        manifest = TypeAdapter(Manifest).validate_json(json.dumps(fields), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        msg = f"{MANIFEST} is not a manifest of schema version {SCHEMA_VERSION}: {where}: {first['msg']}"
        raise IndexMismatchError(msg) from error
    _check_numbers(manifest)
    names = [ranking.name.partition(":")[0] for ranking in manifest.rankings]
    folders = [ranking.folder for ranking in manifest.rankings]
    foreign = [name for name in names if name not in FURTHER_FILES and not _is_added(name)]
    if foreign or not all(_is_added(name) or re.fullmatch(r"[a-z]+(-\d+)?", name) for name in folders):
        raise IndexMismatchError(
            f"{MANIFEST} names rankings {', '.join(names)} in {', '.join(folders)}, which this version does not know; "
            "if a package added one of them, install that"
        )
    listed = (entry.path for entry in manifest.files)
    expected = index_files(
        manifest.context_passages,
        manifest.rankings,
        has_vectors=manifest.has_vectors,
        found=listed,
        engine=manifest.engine is not None,
    )
    if tuple(entry.path for entry in manifest.files) != expected:
        msg = f"{MANIFEST} lists {len(manifest.files)} files, expected exactly {', '.join(expected)}"
        raise IndexMismatchError(msg)
    return manifest


def _check_numbers(manifest: Manifest) -> None:
    """Raises IndexMismatchError for a number out of range, which no build writes."""
    numbers = {name: getattr(manifest, name) for name in _MOST if hasattr(manifest, name)}
    numbers |= {"analyser.character_ngrams": manifest.analyser.character_ngrams}
    numbers |= {f"files.{entry.path}.size_bytes": entry.size_bytes for entry in manifest.files}
    for name, value in numbers.items():
        most = _MOST[name.rpartition(".")[2]]
        if not 0 <= value <= most:  # also true for NaN
            raise IndexMismatchError(f"{MANIFEST}: {name}: expected a number from 0 to {most:,}, found {value:.3g}")


def file_problems(folder: Path, manifest: Manifest, max_hashed_bytes: float = float("inf")) -> Iterable[str]:
    """The problems of the files, a line each: missing, of another size, or changed.

    Contents are hashed, smallest file first, as long as their sizes add up to at most ``max_hashed_bytes``.
    """
    hashed = 0
    for entry in sorted(manifest.files, key=lambda entry: entry.size_bytes):
        path = folder / entry.path
        if not path.is_file():
            yield f"{entry.path} is missing"
        elif (size := path.stat().st_size) != entry.size_bytes:
            yield f"{entry.path} has {size:,} bytes, expected {entry.size_bytes:,}"
        elif (hashed := hashed + size) <= max_hashed_bytes and (found := sha256_of(path)) != entry.sha256:
            yield f"{entry.path} was changed after the index was built (sha256 {found}, expected {entry.sha256})"


def _read_object(path: Path) -> dict[str, Any]:
    try:
        fields = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise IndexMismatchError(f"{path.name} is missing: half-written, or not an index") from error
    except (OSError, ValueError, RecursionError) as error:
        raise IndexMismatchError(f"{path.name} cannot be read: {error}") from error
    if not isinstance(fields, dict):
        raise IndexMismatchError(f"expected a JSON object in {path.name}, found {type(fields).__name__}")
    return fields


def _digest(fields: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()

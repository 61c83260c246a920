"""`ragqa index build | add | replace | remove | watched | list | info | verify | advise | delete`."""

from __future__ import annotations

import time
from collections.abc import Generator as Stream
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, TaskID
from rich.table import Table

from ragqa import loading
from ragqa.cli.benchmarks import command_of
from ragqa.cli.output import FittedTable, PrecisionChoice, plain, progress_bar, stderr, stdout
from ragqa.corpus.documents import Reader, UnreadableError
from ragqa.corpus.streams import PassageStream
from ragqa.corpus.wikipedia.pages import open_pages, read_titles
from ragqa.english.words import ANALYSERS, analyser_named
from ragqa.errors import ConfigError
from ragqa.index import BuildProgress, build_events, delete_index, index_info, list_indexes, open_index, verify_index
from ragqa.index.engine import check_engine
from ragqa.index.manifest import Manifest
from ragqa.lab.dataset.advice import ADVISE
from ragqa.library import parse_cache
from ragqa.library.changes import read_updates
from ragqa.library.collection import Collection, collection_of, collections, make_collection
from ragqa.library.names import safe_name
from ragqa.library.unread import unread, unread_in, unread_words
from ragqa.library.update import CHANGES, MAX_TOKENS, encoder_name, index_events
from ragqa.library.upload import take
from ragqa.library.watched import WATCHED, dismissed, proposals, set_dismissed, watched_folder
from ragqa.plugins.protocols import Encoder
from ragqa.plugins.registry import CORPUS_FORMATS, ENCODERS, further_rankings, is_known, listed
from ragqa.records.words import size_words
from ragqa.settings.config import IndexingConfig
from ragqa.settings.indexing import NO_ENCODER
from ragqa.settings.paths import Paths
from ragqa.types.streams import returned


def open_source(
    source: str, titles: Path | None, as_of: str, book: str, chunk_max_tokens: int, paths: Paths
) -> Path | PassageStream:
    """The path, or for an address the stream of its pages; fetches nothing yet. Raises ConfigError, CorpusError."""
    if not source.startswith(("http://", "https://")):
        given = [name for name, value in {"--titles": titles, "--as-of": as_of, "--book": book}.items() if value]
        if given:
            msg = f"{' and '.join(given)} need the address of a wiki as --source, found the path {source!r}; correct it"
            raise ConfigError(msg)
        return Path(source)

    if titles is None:
        msg = "an address as --source needs --titles FILE, the titles of its pages, one a line, found none; add it"
        raise ConfigError(msg)
    return open_pages(
        source, read_titles(titles), paths.wiki_pages, as_of=as_of or None, book=book, max_tokens=chunk_max_tokens
    )


app = typer.Typer(help="Build and manage indexes.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Lower-case letters, digits, - and _.")]
EngineKind = Annotated[
    str,
    typer.Option(
        "--engine", help="milvus: store passages, tokens and vectors on the server at --uri; default: in files."
    ),
]
Uri = Annotated[str, typer.Option(help="Address of the engine, such as http://localhost:19530.")]
Files = Annotated[
    list[Path] | None, typer.Argument(help="Documents, or ZIP archives of them.", exists=True, dir_okay=False)
]
Also = Annotated[
    list[str] | None, typer.Option(help=f"A further ranking: {', '.join(further_rankings())}; repeatable.")
]


@app.command()
def build(
    name: Name,
    source: Annotated[
        str, typer.Option(help="Folder or file of documents, dump or ZIM file; the address of an api.php or of Kiwix.")
    ],
    corpus_format: Annotated[
        str | None, typer.Option("--format", help=f"Corpus format: {listed(CORPUS_FORMATS)}; detected by default.")
    ] = None,
    analyser: Annotated[
        str, typer.Option(help=f"Analyser: {', '.join(ANALYSERS)}; default: by the corpus format.")
    ] = "",
    encoder_name: Annotated[
        str, typer.Option("--encoder", help=f"Encoder: {listed(ENCODERS)}; +FOLDER: an adapter; none: no vectors.")
    ] = IndexingConfig().encoder,
    precision: Annotated[
        PrecisionChoice, typer.Option(help="Encoder precision; auto: the faster one on this machine.")
    ] = PrecisionChoice.AUTO,
    vectors: Annotated[
        str, typer.Option(help="Kind of FAISS index: Flat is exact, IVF4096,SQ8 quick from 200,000 passages; HNSW32, …")
    ] = IndexingConfig().vectors,
    engine: EngineKind = "",
    uri: Uri = "",
    also: Also = None,
    chunk_max_tokens: Annotated[int, typer.Option(help="Text files: maximum words in a passage.")] = 128,
    titles: Annotated[Path | None, typer.Option(help="For an address: file of page titles, one a line.")] = None,
    as_of: Annotated[str, typer.Option(help="MediaWiki: revisions of a date, as 2023-11-01; default: today.")] = "",
    book: Annotated[str, typer.Option(help="Kiwix: book to read, if the server has several.")] = "",
) -> None:
    """Build an index of a folder of documents; an index of that name is replaced once the new one is complete.

    The same command resumes a stopped build; `ragqa index delete` removes it.
    """
    config = IndexingConfig(
        chunk_max_tokens=chunk_max_tokens,
        analyser=analyser,
        encoder=encoder_name,
        precision=precision.value,
        vectors=vectors,
        rankings=tuple(also or ()),
    )
    if corpus_format and not is_known(CORPUS_FORMATS, corpus_format):
        msg = f"--format must be one of {listed(CORPUS_FORMATS)}, got {corpus_format!r}; correct it and try again"
        raise ConfigError(msg)
    analyser_named(analyser)
    check_engine(engine, uri, vectors)
    paths = Paths.from_env()
    if collection_of(name, paths.library):
        raise ConfigError(
            f"{name!r} is a collection of the library; `ragqa index add {name} FILE` adds to it, or choose another name"
        )
    opened = open_source(source, titles, as_of, book, chunk_max_tokens, paths)
    began = time.perf_counter()
    with stderr().status("Loading the encoder"):
        has_vectors = config.encoder != NO_ENCODER
        encoder = loading.load_encoder(config.encoder, config.precision, paths) if has_vectors else None
        models = loading.load_further(config.rankings, paths, config.precision)
    with progress_bar() as bar:
        events = build_events(
            name,
            opened,
            indexes=paths.indexes,
            config=config,
            encoder=encoder,
            format=corpus_format,
            models=models,
            uri=uri,
        )
        manifest = _drawn(events, bar)
    seconds = time.perf_counter() - began
    _print_built(manifest, seconds)
    if isinstance(opened, Path):
        held = {one.document_id for one in open_index(name, paths.indexes).passages}
        names, total = unread_in(opened, corpus_format, held)
        _print_unread(dict.fromkeys(names, "the lines above say why"), total)


def _print_unread(reasons: Mapping[str, str], total: int) -> None:
    if words := unread_words(reasons, total):
        stdout().print(plain(words, style="yellow"))


def _print_built(manifest: Manifest, seconds: float) -> None:
    stdout().print(
        plain(
            f"index {manifest.name}: {manifest.n_passages:,} passages of {manifest.n_documents:,} documents, "
            f"{manifest.size_bytes / 1e6:.1f} MB, {seconds:.1f} s"
            + ("" if manifest.has_vectors else "; no vectors: lexical only")
        )
    )


def _drawn(events: Stream[BuildProgress, None, Manifest], bar: Progress) -> Manifest:
    tasks: dict[str, TaskID] = {}

    def draw(progress: BuildProgress) -> None:
        if progress.message:
            bar.console.print(plain(progress.message))
        if progress.stage not in tasks:
            tasks[progress.stage] = bar.add_task(progress.stage, total=progress.total)
        said = f"{progress.stage}: {progress.note}" if progress.note else progress.stage
        bar.update(tasks[progress.stage], completed=progress.done, total=progress.total, description=said)

    return returned(events, draw)


@app.command()
def add(
    name: Name,
    files: Files = None,
    title: Annotated[str, typer.Option(help="Title of a new collection.")] = "",
    encoder_name: Annotated[str, typer.Option("--encoder", help="Encoder, as for `build`; none: no vectors.")] = "",
    also: Also = None,
    engine: EngineKind = "",
    uri: Uri = "",
) -> None:
    """Add documents to a collection of the library, created if missing; only new passages are encoded.

    The index keeps its engine and its further rankings. Without documents, `--also` adds a ranking.
    """
    IndexingConfig(rankings=tuple(also or ()))
    check_engine(engine, uri)
    paths = Paths.from_env()
    collection = collection_of(name, paths.library) if files else _collection(name, paths)
    if collection is None:
        if name in {entry.name for entry in list_indexes(paths.indexes)}:
            msg = f"expected a collection or a new name, found {name!r}, an index built from a folder; choose another"
            raise ConfigError(msg)
        collection = make_collection(name, paths.library, title)
    _put_in(collection, files or (), None)
    _update(collection, paths, encoder_name, uri, also or ())


@app.command()
def replace(
    name: Name,
    file: Annotated[Path, typer.Argument(help="The new version.", exists=True, dir_okay=False)],
    document: Annotated[str, typer.Option(help="Id of the document to replace; default: that of the same name.")] = "",
) -> None:
    """Replace a document by a new version; list its new, changed and removed passages."""
    paths = Paths.from_env()
    collection = _collection(name, paths)
    target = document or next((d.document_id for d in collection.read().kept if d.name == safe_name(file.name)), "")
    collection.read().document(target or file.name)
    _put_in(collection, [file], target)
    _update(collection, paths)


@app.command()
def remove(name: Name, document: Annotated[str, typer.Argument(help="The document's id or file name.")]) -> None:
    """Remove a document from a collection; its file stays in the collection's `old` folder."""
    paths = Paths.from_env()
    collection = _collection(name, paths)
    held = next((d.document_id for d in collection.read().kept if document in {d.document_id, d.name}), document)
    collection.set_removed(held, removed=True)
    _update(collection, paths)


@app.command()
def watched(
    not_now: Annotated[str, typer.Option(metavar="FILE", help="Do not propose this file until it changes.")] = "",
    again: Annotated[str, typer.Option(metavar="FILE", help="Propose this file again.")] = "",
) -> None:
    """List the files of RAGQA_WATCHED_FOLDER that are new, or new versions; `add` and `replace` take them over."""
    folder = watched_folder()
    if folder is None:
        raise ConfigError(f"expected a folder to watch, found none; name it by {WATCHED}")
    paths = Paths.from_env()
    proposed = proposals(folder, collections(paths.library))
    for name in filter(None, (not_now, again)):
        digest = next((one.digest for one in proposed if one.name == name), "")
        if not digest:
            names = ", ".join(one.name for one in proposed) or "none"
            raise ConfigError(f"expected a proposed file, found {name!r}; choose one of: {names[:300]}")
        set_dismissed(paths.watched_dismissed, digest, is_dismissed=name == not_now)
    hidden = dismissed(paths.watched_dismissed)
    found = [one for one in proposed if one.digest not in hidden]
    table = FittedTable(str(folder))
    table.add_column("file")
    table.add_column("size", justify="right")
    table.add_column("what")
    for one in found:
        table.add_row(plain(one.name), size_words(one.size), plain(one.words))
    stdout().print(table if found else plain(f"{folder}: nothing new"))
    later = ", ".join(one.name for one in proposed if one.digest in hidden)
    if later:
        stdout().print(plain(f"not now: {later}"))


def _collection(name: str, paths: Paths) -> Collection:
    collection = collection_of(name, paths.library)
    if collection is None:
        there_are = ", ".join(one.name for one in collections(paths.library)) or "none yet"
        msg = f"no corpus {name!r} in the library (there are: {there_are}); `ragqa index add {name} FILE` makes it"
        raise ConfigError(msg)
    return collection


def _put_in(collection: Collection, files: Sequence[Path], replaces: str | None) -> None:
    with Reader() as reader:
        for file in files:
            with file.open("rb") as data:
                for line in take(collection, file.name, data, reader, replaces):
                    stderr().print(plain(line))
        staged = collection.read().staged
        for one in staged:
            with suppress(UnreadableError):
                parse_cache.read(collection, one, reader, MAX_TOKENS)
    refused = unread(collection, MAX_TOKENS)
    _print_unread(refused, len(staged))
    collection.unstage(tuple(refused))


def _update(
    collection: Collection, paths: Paths, encoder_name: str = "", uri: str = "", also: Sequence[str] = ()
) -> None:
    began, before = time.perf_counter(), read_updates(collection.folder / CHANGES, 1)
    with progress_bar() as bar:
        load = partial(encoder_for, collection, paths, encoder_name)
        further = partial(loading.load_further, paths=paths)
        events = index_events(collection, paths.indexes, load, load_further=further, also=also, uri=uri)
        manifest = _drawn(events, bar)
    _print_built(manifest, time.perf_counter() - began)
    latest = read_updates(collection.folder / CHANGES, 1)
    for update in latest if latest != before else ():
        for one in update.documents:
            counts = ", ".join(f"{one.count(what)} {what}" for what in ("new", "changed", "gone"))
            passages = f"{counts}, {one.n_same + one.n_moved} the same" if one.what == "replaced" else f"{one.n_same}"
            stdout().print(plain(f"{one.document_id}: {one.what}, passages: {passages}"))


def encoder_for(collection: Collection, paths: Paths, name: str = "") -> Encoder | None:
    """The encoder of this name, else that of the corpus's index, else the default; None for ``none``."""
    name = name or encoder_name(collection, paths.indexes)
    return None if name == NO_ENCODER else loading.load_encoder(name, paths=paths)


@app.command("list")
def list_all() -> None:
    """List the indexes."""
    table = FittedTable("Indexes")
    table.add_column("name")
    for heading, priority in (("documents", 2), ("passages", 0), ("MB", 3)):
        table.add_column(heading, priority, "right")
    table.add_column("built (UTC)", 1)
    table.add_column("source", least=16)
    for entry in list_indexes(Paths.from_env().indexes):
        manifest = entry.manifest
        if manifest is None:
            table.add_row(plain(entry.name), "", "", "", "", plain(entry.problem, style="red"))
            continue
        table.add_row(
            plain(entry.name),
            f"{manifest.n_documents:,}",
            f"{manifest.n_passages:,}",
            f"{manifest.size_bytes / 1e6:.1f}",
            plain(manifest.created[:16].replace("T", " ")),
            plain(manifest.source),
        )
    stdout().print(table)


@app.command()
def info(name: Name) -> None:
    """Print the manifest of an index."""
    manifest = index_info(name, Paths.from_env().indexes)
    table = Table(title=plain(f"Index {manifest.name}"), show_header=False)
    shown = Manifest.__dataclass_fields__.keys() - {"files", "rankings"}
    rows = {field: getattr(manifest, field) for field in Manifest.__dataclass_fields__ if field in shown}
    for field, value in rows.items():
        table.add_row(field, plain(str(value)))
    table.add_row("rankings", plain(", ".join(manifest.retrievers)))
    for ranking in manifest.rankings:
        made_by = f"{ranking.model}, sha256 {ranking.fingerprint[:16]}…" if ranking.model else "no model"
        table.add_row(plain(ranking.name), plain(f"{made_by}, in further/{ranking.folder}"))
    for entry in manifest.files:
        table.add_row(entry.path, f"{entry.size_bytes:,} bytes, sha256 {entry.sha256[:16]}…")
    stdout().print(table)


@app.command()
def verify(name: Name) -> None:
    """Verify an index: compare the hash of every file with the manifest."""
    manifest = verify_index(name, Paths.from_env().indexes)
    stdout().print(plain(f"index {manifest.name} is intact: {manifest.n_passages:,} passages, every hash matches"))


app.command("advise")(command_of(ADVISE))


@app.command()
def delete(name: Name, yes: Annotated[bool, typer.Option("--yes", help="Skip confirmation.")] = False) -> None:
    """Delete an index; its source documents stay."""
    if not yes:
        typer.confirm(f"Delete index {name!r}?", abort=True)
    delete_index(name, Paths.from_env().indexes)
    stdout().print(plain(f"index {name} deleted"))

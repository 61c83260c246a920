"""`ragqa index build | list | info | verify | delete`."""

from __future__ import annotations

import time
from collections.abc import Generator as Stream
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, TaskID
from rich.table import Table

from ragqa import loading
from ragqa.analysers import ANALYSERS, analyser_named
from ragqa.cli.output import PrecisionChoice, progress_bar, stderr, stdout
from ragqa.config import NO_ENCODER, IndexingConfig
from ragqa.corpus.streams import PassageStream
from ragqa.corpus.wikipedia.pages import open_pages, read_titles
from ragqa.errors import ConfigError
from ragqa.indexing import (
    BuildProgress,
    build_events,
    delete_index,
    index_info,
    list_indexes,
    verify_index,
)
from ragqa.manifest import Manifest
from ragqa.paths import Paths
from ragqa.registry import CORPUS_FORMATS, ENCODERS, further_rankings, is_known, listed
from ragqa.streams import returned
from ragqa.tables import FittedTable, plain


def open_source(
    source: str, titles: Path | None, as_of: str, book: str, chunk_max_tokens: int, paths: Paths
) -> Path | PassageStream:
    """The path, or the stream of the pages; nothing is fetched yet. Raises ConfigError, CorpusError."""
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


app = typer.Typer(help="Build and look after indexes.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Lower-case letters, digits, - and _.")]


@app.command()
def build(
    name: Name,
    source: Annotated[
        str, typer.Option(help="Folder or file of documents, dump or ZIM file; the address of an api.php or of Kiwix.")
    ],
    corpus_format: Annotated[
        str | None,
        typer.Option("--format", help=f"What the source holds: {listed(CORPUS_FORMATS)}; found out where not said."),
    ] = None,
    analyser: Annotated[
        str, typer.Option(help=f"How words are read: {', '.join(ANALYSERS)}; chosen by the format where not said.")
    ] = "",
    encoder_name: Annotated[
        str,
        typer.Option(
            "--encoder",
            help=f"Which vectors: {listed(ENCODERS)}; +FOLDER: an adapter; none: words alone.",
        ),
    ] = IndexingConfig().encoder,
    precision: Annotated[
        PrecisionChoice, typer.Option(help="Of the vectors; auto is the faster one on this machine, timed once.")
    ] = PrecisionChoice.AUTO,
    vectors: Annotated[
        str,
        typer.Option(help="Kind of FAISS index: Flat is exact, IVF4096,SQ8 quick from 200,000 passages; HNSW32, …"),
    ] = IndexingConfig().vectors,
    also: Annotated[
        list[str] | None,
        typer.Option(
            help=f"A further ranking: {', '.join(further_rankings())}; repeatable.",
        ),
    ] = None,
    chunk_max_tokens: Annotated[int, typer.Option(help="Text only: most words in a passage.")] = 128,
    titles: Annotated[Path | None, typer.Option(help="With an address: the pages' titles, one a line.")] = None,
    as_of: Annotated[str, typer.Option(help="MediaWiki: the pages as of a date like 2023-11-01; else today.")] = "",
    book: Annotated[str, typer.Option(help="Kiwix: the book to read, where it has several.")] = "",
) -> None:
    """Build an index of a folder of documents, or replace the one of that name once the new one is whole.

    Stopped at any moment, the same command resumes where it was; `ragqa index delete` removes what there is.
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
    paths = Paths.from_env()
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
        )
        manifest = _drawn(events, bar)
    seconds = time.perf_counter() - began
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


@app.command("list")
def list_all() -> None:
    """The indexes there are."""
    table = FittedTable("Indexes")
    table.add_column("name")
    for heading, priority in (("documents", 2), ("passages", 0), ("MB", 3)):
        table.add_column(heading, priority, "right")
    table.add_column("built", 1)
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
    """What an index's manifest says."""
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
    """Read every byte of an index and say whether it is what its manifest says."""
    manifest = verify_index(name, Paths.from_env().indexes)
    stdout().print(plain(f"index {manifest.name} is whole: {manifest.n_passages:,} passages, every hash as recorded"))


@app.command()
def delete(name: Name, yes: Annotated[bool, typer.Option("--yes", help="Do not ask first.")] = False) -> None:
    """Delete an index; the documents it was made from stay."""
    if not yes:
        typer.confirm(f"Delete index {name!r}?", abort=True)
    delete_index(name, Paths.from_env().indexes)
    stdout().print(plain(f"index {name} deleted"))

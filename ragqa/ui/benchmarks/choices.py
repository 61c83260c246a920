"""What the page can offer: question files, indexes that fit one, presets that fit an index. Slow looks are kept."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import streamlit as st

from ragqa import registry
from ragqa.config import has_llm
from ragqa.errors import ConfigError, CorpusError
from ragqa.evaluation.question_files import FileKind, QuestionFile, demo_files, question_files
from ragqa.evaluation.run_folder import translated
from ragqa.paths import Paths
from ragqa.preset_files import presets_in
from ragqa.presets import PRESETS
from ragqa.retrieval.names import lacking_rankings
from ragqa.ui import resources
from ragqa.ui.benchmarks.request import RERANKING, BenchmarkName

if TYPE_CHECKING:
    from ragqa.corpus.questions import GoldQuestion
    from ragqa.indexing import Index

MAX_UPLOAD_MB: Final = 50  # ObliQA's largest file has 20
LARGE: Final = 200_000  # passages: beyond them documents are not listed, only gold passages looked up
LOOKED_AT: Final = 30  # questions whose gold is looked for in an index


def data_folder() -> Path:
    """``RAGQA_DATA``, else the place where the command line looks for it; it need not be there."""
    return Path(os.environ.get("RAGQA_DATA") or "../shared/data").expanduser()


def files_for(kind: FileKind, paths: Paths) -> tuple[QuestionFile, ...]:
    """Those that come with ragqa, those of the data folder, those that were uploaded."""
    uploads = paths.home / "evaluations" / "uploads"
    uploaded = [
        QuestionFile(file.path, f"uploaded: {re.sub(r'^[0-9a-f]{10}-', '', file.label)}")
        for file in question_files(kind, uploads)
    ]
    return (*demo_files(kind), *question_files(kind, data_folder()), *uploaded)


def keep_upload(kind: FileKind, name: str, content: bytes, paths: Paths) -> Path:
    """The uploaded file on disk, after its loader read it. Raises CorpusError where it is something else, and keeps
    nothing then, RecordError where it cannot be kept.
    """
    stem = re.sub(r"[^A-Za-z0-9._-]", "-", Path(name).name)[-80:].lstrip(".-") or "questions.json"
    folder = paths.home / "evaluations" / "uploads"
    path = folder / f"{hashlib.sha256(content).hexdigest()[:10]}-{stem}"
    with translated(folder):
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    try:
        check_file(kind, path)
    except CorpusError as error:
        path.unlink(missing_ok=True)
        raise CorpusError(str(error).replace(path.name, stem)) from error
    return path


def check_file(kind: FileKind, path: Path) -> int:
    """How many questions the file holds, as its loader reads them. Raises CorpusError."""
    from ragqa.corpus.fanoutqa import load_fanoutqa
    from ragqa.corpus.pandachat import load_pandachat, load_pandachat_questions
    from ragqa.corpus.questions import load_asked
    from ragqa.evaluation.fanoutqa_submission import read_generations

    if kind == "pandachat":
        load_pandachat(path)
        return len(load_pandachat_questions(path))
    if kind == "fanoutqa":
        return len(load_fanoutqa(path))
    if kind == "generations":
        return len(read_generations(path))
    if kind == "asked":
        return len(load_asked(path))
    return len(_with_gold(path))


def count_of(kind: FileKind, path: Path) -> int:
    """As `check_file`, which looks again only where the file changed."""
    return _count(kind, path, _stamp(path))


@st.cache_data(show_spinner=False, max_entries=64)
def _count(kind: FileKind, path: Path, stamp: int) -> int:
    del stamp
    return check_file(kind, path)


def fitting_indexes(kind: FileKind, path: Path, paths: Paths) -> tuple[str, ...]:
    """The indexes that hold what these questions are about; every index for questions without gold.

    Raises CorpusError where the file cannot be read.
    """
    names = resources.index_names(paths)
    stamps = {name: _stamp(paths.indexes / name / "manifest.json") for name in names}
    return tuple(name for name in names if _fits(kind, path, _stamp(path), name, paths, stamps[name]))


@st.cache_data(show_spinner=False, max_entries=256)
def _fits(kind: FileKind, path: Path, stamp: int, name: str, _paths: Paths, index_stamp: int) -> bool:
    del stamp, index_stamp
    index = resources.corpus_or_none(name, _paths)
    if index is None:
        return False
    if kind == "pandachat":
        from ragqa.evaluation.pandachat import check_index

        try:
            check_index(index, path)
        except ConfigError:
            return False
        return True
    wanted = _gold_of(path)
    if not wanted:
        return kind == "asked"
    if any(name in index.position_of for name in wanted):
        return True
    return len(index.passages) <= LARGE and bool(wanted & _documents(index))


def _with_gold(path: Path) -> tuple[GoldQuestion, ...]:
    """The questions of any file with gold; evidence is not looked up yet. Raises CorpusError."""
    from ragqa.corpus.jsonl import looks_like_jsonl
    from ragqa.corpus.pandachat import looks_like_pandachat
    from ragqa.corpus.questions import load_gold, load_questions

    return load_gold(path, ())[0] if looks_like_jsonl(path) or looks_like_pandachat(path) else load_questions(path)


def _gold_of(path: Path) -> frozenset[str]:
    """Ids of gold passages and documents of the first questions; none where the file has no gold."""
    try:
        few = tuple(islice(_with_gold(path), LOOKED_AT))
    except CorpusError:
        return frozenset()
    documents = {document for question in few for document, _ in question.evidence}
    return frozenset().union(documents, *(question.gold for question in few))


def _documents(index: Index) -> frozenset[str]:
    return frozenset(passage.document_id for passage in index.passages)


def presets_for(index: str, paths: Paths, benchmark: BenchmarkName = "answers") -> tuple[str, ...]:
    """The names of presets whose rankings the index has; of those that rerank, only where the benchmark does."""
    rankings, encoder = resources.rankings_of(index, paths)
    own, _ = presets_in(paths.presets)
    return tuple(
        preset.name
        for preset in (*PRESETS, *own)
        if not lacking_rankings(preset.fusion, rankings, encoder)
        and (benchmark in RERANKING or not preset.reranking.model)
    )


def generators() -> tuple[str, ...]:
    """Who can write answers here: those that need a language model only where there is one."""
    writing = (part for part in registry.parts(registry.GENERATORS) if part.name != "none")
    return tuple(part.name for part in writing if has_llm() or registry.LANGUAGE_MODEL not in part.needs)


def new_index_name(wanted: str, taken: Sequence[str]) -> str:
    """``wanted``, or with a number behind it where that name is another corpus's."""
    names = (wanted, *(f"{wanted}-{n}" for n in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def _stamp(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0

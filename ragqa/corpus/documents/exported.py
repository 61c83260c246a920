"""Reads the description of an exported corpus in the process for untrusted files, and checks every value."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any, Final, NoReturn

from ragqa.corpus.documents.kinds import members
from ragqa.corpus.documents.model import MAX_BYTES, UnreadableError

ABOUT: Final = "corpus.json"
FILES: Final = "files/"
MAX_DOCUMENTS: Final = 5_000
_MAX_ABOUT: Final = 2**23
_MAX_TEXT: Final = 2_000
_MAX_RATIO: Final = 30  # of unpacked to packed size, for exports larger than one file may be; usual for text


def exported(path: Path) -> dict[str, Any]:
    """Title, description and ``documents``, each with id, member, version and date added. Raises UnreadableError."""
    infos = {info.filename: info for info in members(path, most=MAX_DOCUMENTS * MAX_BYTES)}
    if ABOUT not in infos:
        refuse("an archive without it")
    if infos[ABOUT].file_size > _MAX_ABOUT:
        refuse("one that is too long")
    try:
        with zipfile.ZipFile(path) as archive:
            about = json.loads(archive.read(ABOUT))
    except (ValueError, RecursionError, OSError, zipfile.BadZipFile, NotImplementedError) as error:
        refuse(f"something else ({str(error)[:60]})")
    if not isinstance(about, dict) or not isinstance(about.get("documents"), list) or not about["documents"]:
        refuse("one without documents")
    if len(about["documents"]) > MAX_DOCUMENTS:
        refuse(f"one of {len(about['documents']):,} documents, above {MAX_DOCUMENTS:,}")
    documents = [
        _document(one) if isinstance(one, dict) else refuse("one with other values") for one in about["documents"]
    ]
    ids = [document_id for document_id, *_ in documents]
    if len(set(ids)) < len(ids) or not all(text.strip() for text in ids):
        refuse("one that names a document twice, or without an id")
    missing = next((document_id for document_id, name, *_ in documents if name not in infos), None)
    if missing is not None:
        refuse(f"one without {missing[:80]!r}")
    total = sum(infos[name].file_size for _, name, *_ in documents)
    largest = max(infos[name].file_size for _, name, *_ in documents)
    if largest > MAX_BYTES or total > max(MAX_BYTES, _MAX_RATIO * path.stat().st_size):
        refuse(f"one of {len(documents):,} files, {total:,} bytes in {path.stat().st_size:,}")
    return {"title": _text(about.get("title")), "description": _text(about.get("description")), "documents": documents}


def _document(told: dict[str, Any]) -> tuple[str, str, int, str]:
    version = told.get("version", 1)
    if isinstance(version, bool) or not isinstance(version, int) or not 0 < version < 10**6:
        refuse("one with other versions")
    return _text(told.get("id")), FILES + _text(told.get("file")), version, _text(told.get("added", ""))


def _text(value: object) -> str:
    """The value, if it is a text. Raises UnreadableError if it is not, is too long or has a lone surrogate."""
    if not isinstance(value, str) or len(value) > _MAX_TEXT or any("\ud800" <= letter <= "\udfff" for letter in value):
        refuse("one with other values")
    return value


def refuse(found: str) -> NoReturn:
    """Raises UnreadableError that says what was found instead of an export."""
    msg = f"expected an export of a corpus, a ZIP archive with {ABOUT}, found {found}; export it again"
    raise UnreadableError(msg)

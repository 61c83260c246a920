"""The kind of a file by its name and by its bytes; a file is refused if they differ."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ragqa.corpus.documents.model import MAX_BYTES, UnreadableError

SUFFIXES: Final[Mapping[str, str]] = {
    **dict.fromkeys((".pdf",), "PDF"),
    **dict.fromkeys((".docx", ".docm"), "Word"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "HTML"),
    **dict.fromkeys((".xlsx", ".xlsm"), "Excel"),
    **dict.fromkeys((".csv", ".tsv"), "CSV"),
    ".xml": "XML",
    **dict.fromkeys((".md", ".markdown", ".txt"), "text"),
    ".zip": "ZIP",
}
_SAVE_AS: Final = {
    **dict.fromkeys((".doc", ".odt", ".rtf", ".pages"), "save it as .docx"),
    **dict.fromkeys((".xls", ".ods", ".numbers"), "save it as .xlsx"),
    **dict.fromkeys((".ppt", ".pptx", ".odp", ".epub", ".mht", ".mhtml", ".eml", ".msg"), "save it as PDF or HTML"),
    **dict.fromkeys((".tif", ".tiff", ".jpg", ".jpeg"), "read its text with OCR and save that as PDF"),
    **dict.fromkeys((".7z", ".rar", ".tar", ".gz", ".tgz"), "unpack it, or pack its files as .zip"),
}
_MAX_MEMBERS: Final = 20_000
_HEAD: Final = 2**16  # bytes of an XML file that are looked at
_FEW: Final = 30  # words
_MAX_RATIO: Final = 200  # of unpacked to packed size; below 30 for text in real documents


def kind_of(name: str) -> str:
    """The kind of a file with this name, a value of `SUFFIXES`; empty for an unsupported file."""
    return SUFFIXES.get(Path(name).suffix.lower(), "")


def is_prose(path: Path) -> bool:
    """Whether an XML file begins with words in its elements, as a document does and settings do not; no wiki's dump."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return b"<mediawiki" not in head and len(re.sub(rb"<[^>]*>", b" ", head).split()) >= _FEW


def advice(name: str) -> str:
    """The advice for a document of an unsupported kind; empty for other files."""
    return _SAVE_AS.get(Path(name).suffix.lower(), "")


def check(path: Path, kind: str) -> None:
    """Raises UnreadableError unless the file's bytes are of this kind and it is neither empty nor too large."""
    size = path.stat().st_size
    if not size:
        msg = "expected a document, found an empty file; save it again or take it out"
        raise UnreadableError(msg)
    if size > MAX_BYTES:
        msg = f"expected at most {MAX_BYTES >> 20} MB, found {size >> 20} MB; split it"
        raise UnreadableError(msg)
    with path.open("rb") as file:
        found = _kind_of_bytes(file.read(4096), path)
    if found == "an OLE file":
        msg = (
            f"expected {_named(kind)}, found a file that is protected by a password or of an Office before 2007; "
            "save it without a password in today's format"
        )
        raise UnreadableError(msg)
    expected = {"PDF", "Word", "Excel", "ZIP"}
    if (kind in expected or found) and found != kind and not (kind == "CSV" and found == "HTML"):
        better = next((suffix for suffix, name in SUFFIXES.items() if name == found), "")
        advice = f"if that is right, name it {path.stem[:60]}{better}" if better else "save it again or take it out"
        msg = f"expected {_named(kind)} by its name, found {_named(found) if found else 'something else'}; {advice}"
        raise UnreadableError(msg)


def _named(kind: str) -> str:
    return f"{'an' if kind in {'HTML', 'Excel', 'XML'} else 'a'} {kind} file" if " " not in kind else kind


def _kind_of_bytes(head: bytes, path: Path) -> str:
    """PDF, Word, Excel, ZIP, HTML or "an OLE file"; "a file of bytes" for other binary files, empty for other text."""
    if b"%PDF-" in head[:1024]:
        return "PDF"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _kind_of_archive(path)
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return "an OLE file"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):  # UTF-16 with its mark
        return ""
    if b"\0" in head:
        return "a file of bytes"
    lowered = head.lower()
    return "HTML" if b"<html" in lowered or b"<!doctype html" in lowered else ""


def _kind_of_archive(path: Path) -> str:
    names = {info.filename for info in members(path)}
    if "word/document.xml" in names:
        return "Word"
    return "Excel" if "xl/workbook.xml" in names else "ZIP"


def members(path: Path, most: int = MAX_BYTES) -> tuple[zipfile.ZipInfo, ...]:
    """The members of an archive. Raises UnreadableError if it is damaged, encrypted or unpacks to over ``most`` bytes.

    `zipfile` reads no more of a member than its entry states, so the sizes checked here are reliable.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            infos = tuple(info for info in archive.infolist() if not info.is_dir())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, UnicodeError) as error:
        msg = f"expected a whole archive, found a damaged one ({str(error)[:80]}); save or download it again"
        raise UnreadableError(msg) from error
    packed, unpacked = sum(info.compress_size for info in infos), sum(info.file_size for info in infos)
    if len(infos) > _MAX_MEMBERS or unpacked > most or unpacked > max(packed, 50_000) * _MAX_RATIO:
        msg = (
            f"expected at most {_MAX_MEMBERS:,} files of {most >> 20:,} MB in all, packed no closer than 1 to "
            f"{_MAX_RATIO}, found {len(infos):,} files of {unpacked / 2**20:,.0f} MB in {packed / 2**20:,.1f} MB; "
            "take it out, or unpack it yourself"
        )
        raise UnreadableError(msg)
    if any(info.flag_bits & 1 for info in infos):
        msg = "expected an open archive, found one that is protected by a password; unpack it yourself"
        raise UnreadableError(msg)
    return infos

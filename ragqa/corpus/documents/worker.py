"""The process that reads documents: `python -m ragqa.corpus.documents.worker`, with a JSON object a line in and out.

It reads untrusted files. So it is confined, has bounded memory and time, writes only to a temporary folder, and may be
killed at any moment. `ragqa.corpus.documents.process` starts it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import zipfile
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any, Final

from ragqa.corpus.answers import answers_in
from ragqa.corpus.documents.confined import confine, limit_processor
from ragqa.corpus.documents.conservation import check_words
from ragqa.corpus.documents.counting import doubtful
from ragqa.corpus.documents.docx import parse_docx
from ragqa.corpus.documents.exported import exported
from ragqa.corpus.documents.html import parse_html
from ragqa.corpus.documents.kinds import check, members
from ragqa.corpus.documents.labels import DOTTED, GUIDANCE, RANKS
from ragqa.corpus.documents.markdown import is_rules, parse_markdown
from ragqa.corpus.documents.markup import parse_markup
from ragqa.corpus.documents.model import BROKEN, MAX_BYTES, Parsed, Unit, UnreadableError
from ragqa.corpus.documents.passages import passages_of
from ragqa.corpus.documents.pdf import parse_pdf
from ragqa.corpus.documents.pdf_picture import picture_of
from ragqa.corpus.documents.plain import parse_plain
from ragqa.corpus.documents.sheets import parse_csv, parse_xlsx
from ragqa.corpus.documents.structure import build
from ragqa.corpus.documents.titles import leave_out_contents, title_of
from ragqa.corpus.text import MARKDOWN, chunks
from ragqa.errors import CorpusError
from ragqa.types import Passage

MAX_MEMORY: Final = 2 * 2**30  # bytes
SHOWN: Final = 5  # numbers in one line
MAX_SHOWN: Final = 500  # distinct left-out texts in a reply
_PARSERS: Final[Mapping[str, Callable[[Path], Parsed]]] = {
    "PDF": parse_pdf,
    "Word": parse_docx,
    "Excel": parse_xlsx,
    "CSV": parse_csv,
    "XML": parse_markup,
    "text": lambda path: (parse_markdown if path.suffix.lower() in MARKDOWN else parse_plain)(path),  # if `is_rules`
}


def read_document(
    path: Path, kind: str, document_id: str, max_tokens: int, beside: Sequence[Path] = ()
) -> dict[str, Any]:
    """The values of `ragqa.corpus.documents.process.Reading` for this file. Raises CorpusError."""
    check(path, kind)
    if kind == "text" and not is_rules(path):
        passages = tuple(chunks(path, path.name, document_id, max_tokens))
        if not passages:
            msg = "expected text, found none below its headings; take it out"
            raise UnreadableError(msg)
        return {"title": passages[0].title, "passages": _as_dicts(passages)}
    parsed = parse_html(path, beside) if kind == "HTML" else _PARSERS[kind](path)
    leave_out_contents(parsed)
    root = build(parsed.blocks)
    title = title_of(parsed, document_id.rpartition("/")[2])
    passages = passages_of(root, document_id, title, max_tokens)
    check_words(parsed, passages)
    if n_broken := sum(len(BROKEN.findall(block.text)) for block in parsed.blocks):
        parsed.warnings.append(
            f"{n_broken:,} places look as if read in another encoding than written, look at the text"
        )
    if unsure := doubtful(root):
        shown = ", ".join(unsure[:SHOWN]) + (" …" if len(unsure) > SHOWN else "")
        parsed.warnings.append(f"{len(unsure):,} numbers stand twice or out of order, look at them: {shown}")
    return {
        "title": title,
        "passages": _as_dicts(passages),
        "outline": [_shown(unit) for unit in root.walk() if unit.kind != "text"],
        "dropped": dict(parsed.dropped),
        "left_out": [(reason, text[:300], times) for (reason, text), times in parsed.left_out.most_common(MAX_SHOWN)],
        "warnings": parsed.warnings,
    }


def _as_dicts(passages: Iterable[Passage]) -> list[dict[str, Any]]:
    names = [field.name for field in fields(Passage)]
    return [{name: getattr(passage, name) for name in names} for passage in passages]


def _shown(unit: Unit) -> dict[str, Any]:
    first = next((block.text for block in unit.texts if block.text), "")
    if unit.style == DOTTED:
        kind = "rule"
    elif unit.style in RANKS or unit.style == GUIDANCE:
        kind = unit.style
    else:
        kind = "item" if unit.style else unit.kind
    return {
        "depth": sum(1 for _ in unit.above()),
        "kind": kind,
        "number": unit.number if unit.style else "",
        "text": first[:120],
    }


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """The reply to one request; ``refused`` is a line with the reason why it failed."""
    try:
        path = Path(request["path"])
        if "answers" in request:
            return {"answers": _answers(path, request["name"], request["answers"])}
        if "exported" in request:
            return {"exported": exported(path)}
        if "page" in request:
            check(path, "PDF")
            return {"picture": b64encode(picture_of(path, request["page"], request["boxes"])).decode()}
        if "kind" not in request:
            check(path, "ZIP")
            return {"members": [info.filename for info in members(path)]}
        arguments = request["kind"], request["document_id"], request["max_tokens"]
        if not request["member"]:
            return read_document(path, *arguments, [Path(one) for one in request["beside"]])
        with tempfile.TemporaryDirectory() as folder:
            return read_document(_unpacked(path, request["member"], Path(folder)), *arguments)
    except CorpusError as error:
        return {"refused": " ".join(str(error).split())}  # one line, even if a library's message has several
    except MemoryError:
        return {"refused": f"expected a document that can be read in {MAX_MEMORY >> 30} GB, found more; split it"}
    except RecursionError:
        return {"refused": "expected a document, found one nested too deeply to be read; save it again"}
    except Exception as error:  # a parser of untrusted bytes may raise anything
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:80]}"
        return {"refused": f"expected a whole file, found one that cannot be read ({why}); save it again"}


def _answers(path: Path, name: str, most: int) -> list[tuple[int, str, str]]:
    """The number, question and answer of the items with an answer."""
    items = (item for item in answers_in(path.read_bytes(), name).items if not item.skipped)
    return [(item.number, item.question, item.answer) for item in islice(items, most)]


def _unpacked(path: Path, member: str, folder: Path) -> Path:
    """Unpacks the member into a file of its own; of its name, only the suffix is used."""
    target = folder / f"member{Path(member).suffix.lower()}"
    try:
        with zipfile.ZipFile(path) as archive, archive.open(member) as packed:
            target.write_bytes(packed.read(MAX_BYTES + 1))
    except (zipfile.BadZipFile, OSError, KeyError, NotImplementedError, EOFError, zlib.error) as error:
        msg = f"expected a whole file in the archive, found a damaged one ({str(error)[:80]}); pack it again"
        raise UnreadableError(msg) from error
    return target


def main() -> None:
    """Answers requests until the input ends."""
    os.nice(5)  # questions have priority
    confine(MAX_MEMORY, 2 * MAX_BYTES)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries must not mix with replies
    for line in sys.stdin:
        request = json.loads(line)
        limit_processor(request["seconds"])
        json.dump(answer(request), out)
        out.write("\n")
        out.flush()


if __name__ == "__main__":
    main()

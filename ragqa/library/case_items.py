"""Resolves the items of a case to their present state: records, documents, rows of a register, gap runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote, urlencode

from ragqa.english.words import cut, quantity
from ragqa.errors import RagqaError, RecordError
from ragqa.index import Index
from ragqa.infra.journal import JOURNAL, Journal, digest
from ragqa.library.changes import REREAD, PassageChange, read_rereading, stale
from ragqa.library.collection import collections, corpus_titles
from ragqa.library.document import document_at, documents_of
from ragqa.library.gap_runs import versions_of
from ragqa.library.register import Obligation
from ragqa.library.register_search import rule_name
from ragqa.library.register_store import Register, load
from ragqa.records.cases import Seen
from ragqa.records.store import RecordStore, SealedRecord
from ragqa.settings.paths import Paths

DOCUMENT, ROW, GAPS, RECORD = "document", "row", "gaps", "record"


@dataclass(frozen=True, slots=True)
class ItemLooker:
    """Resolves items for one person. ``corpus`` opens an index that the person may read, and gives None for others.

    ``records`` holds the records that the person may see. A call maps each reference to its item and leaves out
    items that do not exist or that the person may not see. It does not mark a record as opened.
    """

    records: RecordStore
    paths: Paths
    corpus: Callable[[str], Index | None]

    def __call__(self, refs: Sequence[str]) -> dict[str, Seen]:
        """Raises RecordError where the records cannot be read."""
        sealed = self.records.sealed([ref.removeprefix(f"{RECORD}:") for ref in refs if ref.startswith(f"{RECORD}:")])
        found = {f"{RECORD}:{name}": self._record(one) for name, one in sealed.items()}
        for ref in refs:
            kind, _, rest = ref.partition(":")
            name, _, inner = rest.partition("/")
            index = self.corpus(name) if kind in {DOCUMENT, ROW, GAPS} and name else None
            seen = None
            if index and kind == DOCUMENT:
                seen = _document(index, name, inner)
            elif index and kind == ROW:
                seen = _row(_register(self.paths.registers / f"{name}.jsonl"), index, name, inner)
            elif index and kind == GAPS and (policies := self.corpus(inner)):
                rows = _register(self.paths.registers / f"{name}.jsonl").rows
                seen = _gaps(self.paths, (name, inner), (index, policies), rows)
            if seen:
                found[ref] = seen
        return found

    def _record(self, one: SealedRecord) -> Seen:
        """The record's hash, and the changes of the passages that it cites, where record and corpus can be read."""
        parts = {RECORD: one.sha256}
        changed: tuple[PassageChange, ...] = ()
        with suppress(RecordError):
            if index := self.corpus(one.index):
                if index.manifest.corpus_sha256 != one.corpus_sha256:
                    record = self.records.load(one.record_id, is_opened=False)
                    changed = stale(record, index, read_rereading(self.paths.library / one.index / REREAD))
                parts["rules cited"] = digest({"changed": [asdict(change) for change in changed]})
        versions = {"ragqa": one.ragqa_version, "corpus": one.index, "sha256 of the corpus": one.corpus_sha256}
        address = f"records?record={quote(one.record_id, safe='')}"
        return Seen(one.title, parts, versions, one.authors, one.text, address)


@lru_cache(maxsize=32)
def _document(index: Index, corpus: str, document_id: str) -> Seen | None:
    """A document with its whole text from the index; None where the index does not hold it."""
    if document_id not in (known := documents_of(index)):
        return None
    view = document_at(index, known[document_id][0])
    texts = [passage.text for passage in index.passages[view.start : view.stop]]
    parts = {DOCUMENT: hashlib.sha256("\n".join(texts).encode()).hexdigest()}
    versions = {"corpus": corpus, "sha256 of the corpus": index.manifest.corpus_sha256}
    address = f"read?corpus={quote(corpus, safe='')}&document={quote(document_id, safe='')}"
    return Seen(view.title, parts, versions, (), "\n".join((document_id, *texts)), address)


def _register(path: Path) -> Register:
    """The register of a corpus; an empty one where its file cannot be read."""
    try:
        return load(path)
    except RagqaError:
        return Register()


def _gaps(
    paths: Paths, names: tuple[str, str], indexes: tuple[Index, Index], rows: Sequence[Obligation]
) -> Seen | None:
    """A run of `ragqa gaps`: the label of each row and people's corrections; None where there is no run.

    ``names`` and ``indexes`` are those of the rules and the policies, ``rows`` the register of the rules: results of
    rows that are gone do not count.
    """
    folder = paths.home / "gaps" / names[0] / names[1]
    try:
        gaps = [entry["gap"] for _, entry in Journal(folder / JOURNAL).read()]
        found, corrections = {told["row"]["obligation_id"]: told for told in gaps}, folder / "corrections.json"
        said = corrections.read_text(encoding="utf-8") if corrections.exists() else ""
    except (OSError, KeyError, TypeError, RagqaError):
        return None
    if not found:
        return None
    of_text = {(told["row"].get("document_id"), told["row"]["text"]): told for told in found.values()}
    there = {
        row.obligation_id: found.get(row.obligation_id) or of_text.get((row.document_id, row.text)) for row in rows
    }
    kept = {name: told for name, told in there.items() if told} if rows else found
    labels = {name: [told["row"]["text"], told["label"]] for name, told in kept.items()}
    parts = {"results": digest(labels), "corrections": digest({"said": said})}
    text = "\n".join(" ".join(told) for told in labels.values())
    titles = corpus_titles(names, collections(paths.library))
    title = f"{titles[names[1]]} held against {titles[names[0]]}, {quantity(len(labels), 'row')}"
    address = f"gaps?{urlencode({'corpus': names[0], 'policies': names[1]})}"
    return Seen(title, parts, versions_of(*names, indexes), (), text, address)


def _row(register: Register, index: Index, corpus: str, obligation_id: str) -> Seen | None:
    """A row of the register: its text and its handling; None where the register no longer holds it."""
    row = next((one for one in register.rows if one.obligation_id == obligation_id), None)
    if row is None:
        return None
    handling = asdict(register.handling(obligation_id))
    parts = {"words": digest({"text": row.text, "number": row.number}), "handling": digest(handling)}
    versions = {"corpus": corpus, "sha256 of the corpus": index.manifest.corpus_sha256}
    address = f"read?corpus={quote(corpus, safe='')}&passage={quote(row.passage_id, safe='')}"
    title = f"{rule_name(row)} {cut(row.text, 120)}"
    return Seen(title, parts, versions, (), "\n".join((row.text, *handling.values())), address)

"""What is related to a passage, from references and glossaries that all sessions share."""

from __future__ import annotations

from ragqa.index import Index
from ragqa.index.references import read_references
from ragqa.library.definitions import Glossary
from ragqa.library.related import References, Related, related
from ragqa.settings.paths import Paths
from ragqa.ui.shared import shared
from ragqa.ui.state import resources


def stamp_of(corpus: str, paths: Paths) -> int:
    """When the corpus was indexed, in nanoseconds since 1970; 0 where it is not known."""
    manifest = paths.indexes / corpus / "manifest.json"
    return manifest.stat().st_mtime_ns if manifest.exists() else 0


@shared(most=8)
def references_of(corpus: str, stamp: int, _paths: Paths) -> References:
    """The references of the corpus that was indexed at ``stamp``. Raises AccessError, IndexingError."""
    return read_references(resources.open_corpus(corpus, _paths).folder)


@shared(spinner="Looking for defined terms (once)", most=8)
def terms_of(corpus: str, stamp: int, _paths: Paths) -> Glossary:
    """The terms that the corpus defines. Raises as `references_of`."""
    return Glossary(resources.open_corpus(corpus, _paths).passages)


def related_to(index: Index, corpus: str, passage_id: str, paths: Paths) -> Related | None:
    """What is related to this passage of the corpus; None where the passage is gone."""
    position = index.position_of.get(passage_id)
    if position is None:
        return None
    stamp = stamp_of(corpus, paths)
    return related(index, references_of(corpus, stamp, paths), terms_of(corpus, stamp, paths), index.passages[position])

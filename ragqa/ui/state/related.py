"""What is related to a passage, from files and glossaries that all sessions share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from ragqa.index import Index
from ragqa.index.references import read_references
from ragqa.library.definitions import Glossary
from ragqa.library.related import References, Related, related
from ragqa.settings.paths import Paths
from ragqa.types import Passage
from ragqa.ui.shared import shared
from ragqa.ui.state import resources


def stamp_of(corpus: str, paths: Paths) -> int:
    """When the corpus was indexed, 0 where that is not known."""
    manifest = paths.indexes / corpus / "manifest.json"
    return manifest.stat().st_mtime_ns if manifest.exists() else 0


@shared(most=8)
def references_of(corpus: str, stamp: int, _paths: Paths) -> References:
    """The references of the corpus as it is since ``stamp``. Raises AccessError, IndexingError."""
    return read_references(resources.open_corpus(corpus, _paths).folder)


@shared(spinner="Looking for defined terms (once)", most=8)
def terms_of(corpus: str, stamp: int, _paths: Paths) -> Glossary:
    """The terms that the corpus defines. Raises as `references_of`."""
    return Glossary(resources.open_corpus(corpus, _paths).passages)


def related_to(index: Index, corpus: str, passage_id: str, paths: Paths) -> Related | None:
    """What is related to this passage of the corpus; None where it is not in it any more."""
    position = index.position_of.get(passage_id)
    if position is None:
        return None
    stamp = stamp_of(corpus, paths)
    return related(index, references_of(corpus, stamp, paths), terms_of(corpus, stamp, paths), index.passages[position])


def related_to_all(index: Index, corpus: str, passages: Sequence[Passage], paths: Paths) -> Related:
    """What is related to any of these passages of the corpus, each once, and is none of them."""
    found = [one for each in passages if (one := related_to(index, corpus, each.passage_id, paths))]
    referring = dict.fromkeys(chain.from_iterable(one.referring for one in found))
    terms = {use.definition.term.casefold(): use for one in found for use in one.terms}
    return Related(
        tuple(one for one in chain.from_iterable(one.refers for one in found) if not {*one.targets} & {*passages}),
        tuple(one for one in referring if one not in passages),
        tuple(terms.values()),
    )

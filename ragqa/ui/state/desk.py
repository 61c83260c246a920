"""The case desk of the person at the page."""

from __future__ import annotations

from pathlib import Path

from ragqa.index import Index
from ragqa.library.case_items import ItemLooker
from ragqa.records.case_store import CaseStore
from ragqa.server.access.audit import audit_log
from ragqa.server.access.desk import CaseDesk
from ragqa.server.access.policy import Act
from ragqa.settings.paths import Paths
from ragqa.ui import access
from ragqa.ui.shared import shared
from ragqa.ui.state import resources


def case_desk(paths: Paths, name: str = "") -> CaseDesk:
    """This person's desk, in any thread; ``name`` is the typed name, which is used only without sign-in."""
    gate = access.gate()

    def corpus(index: str) -> Index | None:
        return resources.corpus_or_none(index, paths) if gate.may(Act.READ, index) else None

    look = ItemLooker(resources.record_store(paths.records), paths, access.bound(corpus))
    return CaseDesk(gate, gate.seeing(_case_store(paths.records)), look, audit_log(paths.home), name)


@shared()
def _case_store(path: Path | str) -> CaseStore:
    return CaseStore(path)

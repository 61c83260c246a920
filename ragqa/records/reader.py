"""Who looks into a store of records, and which rows that shows, as SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

ALL: Final = "1 = 1"
NONE: Final = "1 = 0"


@dataclass(frozen=True, slots=True)
class RecordReader:
    """Who looks into a store. ``names`` are what a record may be shared with, ``hidden`` corpora not theirs to read.

    ``refused`` is told of every id that was asked for and not found or not shown. ``everything``: all is shown.
    """

    author: str
    names: frozenset[str]
    hidden: frozenset[str]
    refused: Callable[[str], None]
    everything: bool = False
    opened: Callable[[str], None] | None = None  # is told of every record that is read

    def condition(self) -> tuple[str, tuple[str, ...]]:
        """SQL that holds of the rows of ``records`` that are shown, and its values."""
        if self.everything:
            return ALL, ()
        names, hidden = sorted(self.names), sorted(self.hidden)
        shared = f"record_id IN (SELECT record_id FROM readers WHERE who IN ({marks(names)}))" if names else NONE  # noqa: S608 - marks only
        open_to = f"index_name NOT IN ({marks(hidden)})" if hidden else ALL
        return f"{shared} AND {open_to}", (*names, *hidden)


def marks(values: Sequence[str]) -> str:
    """A mark for each of these values."""
    return ",".join("?" * len(values))

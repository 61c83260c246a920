"""The person who reads a store of records, and the rows that they may see, as SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

ALL: Final = "1 = 1"
NONE: Final = "1 = 0"


@dataclass(frozen=True, slots=True)
class RecordReader:
    """The person who reads a store. Records are shared with ``names``; ``hidden`` are corpora they may not read.

    ``refused`` is called with every requested id that is missing or not theirs to see. With ``everything`` they see all
    records.
    """

    author: str
    names: frozenset[str]
    hidden: frozenset[str]
    refused: Callable[[str], None]
    everything: bool = False
    opened: Callable[[str], None] | None = None  # called with the id of every record that is read

    def condition(self) -> tuple[str, tuple[str, ...]]:
        """The SQL condition for the rows of ``records`` that they may see, and its values."""
        if self.everything:
            return ALL, ()
        names, hidden = sorted(self.names), sorted(self.hidden)
        shared = f"record_id IN (SELECT record_id FROM readers WHERE who IN ({marks(names)}))" if names else NONE  # noqa: S608 - marks only
        open_to = f"index_name NOT IN ({marks(hidden)})" if hidden else ALL
        return f"{shared} AND {open_to}", (*names, *hidden)


def marks(values: Sequence[str]) -> str:
    """A placeholder for each of these values, separated by commas."""
    return ",".join("?" * len(values))

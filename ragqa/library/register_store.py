"""The register of a corpus on disk: the rows of every version, and how each row is handled.

A row stores the time of the version that added it and, once it is gone, of the first version without it. The register
of any version follows from these times. One process at a time changes the file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ragqa.errors import ConfigError, CorpusError
from ragqa.infra.disk_cache import RecentResults
from ragqa.infra.files import append_json_lines, locked, write_whole
from ragqa.infra.garbage import collecting_paused
from ragqa.library.register import Obligation, RowChange, compared, register
from ragqa.library.register_parts import Parts
from ragqa.types import Passage, Span
from ragqa.types.scores import Strength

NOT_APPLICABLE: Final = "not applicable"
STATUSES: Final = ("open", "in progress", "done", NOT_APPLICABLE)
RULES_OF_ROWS: Final = "3"  # raise it where other rows are found in the same text, so that they are extracted again
_PATIENCE: Final = 3.0  # seconds to wait for another process's change


@dataclass(frozen=True, slots=True)
class Handling:
    """Who handles a row, and its status; ``due`` is a day, YYYY-MM-DD, or empty.

    ``reason`` says why a row is not applicable.
    """

    owner: str = ""
    status: str = ""
    due: str = ""
    note: str = ""
    reason: str = ""


FIELDS: Final = tuple(field.name for field in fields(Handling))


_ROW: Final = tuple(field.name for field in fields(Obligation) if field.name != "parts")


@dataclass(frozen=True, slots=True)
class PastRow:
    """A row that is gone: the version of time ``since`` added it, that of ``until`` was the first without it."""

    row: Obligation
    since: str
    until: str


@dataclass(frozen=True, slots=True)
class Register:
    """The rows of a corpus, and how each is handled, by id; rows that nobody handles are not in ``handlings``.

    ``since`` gives, by id, the time (UTC, ISO 8601) of the version that added a row. If a row of ``past`` returns, it
    has its handling again. ``corpus`` is the hash of the corpus that the rows were read from, ``made_by`` the version
    of the rules that found them (`RULES_OF_ROWS`).
    """

    rows: tuple[Obligation, ...] = ()
    handlings: Mapping[str, Handling] = field(default_factory=dict)
    past: tuple[PastRow, ...] = ()
    since: Mapping[str, str] = field(default_factory=dict)
    corpus: str = ""
    made_by: str = ""

    @property
    def duties(self) -> list[Obligation]:
        """The rows without the recitals."""
        return [row for row in self.rows if not row.is_recital]

    def listed(self, *, recitals: bool = False) -> list[Obligation]:
        """All rows or, without ``recitals``, the duties and the recitals that somebody handles."""
        return [row for row in self.rows if recitals or not row.is_recital or row.obligation_id in self.handlings]

    def is_of(self, corpus: str) -> bool:
        """Whether today's rules found the rows in the corpus with this hash."""
        return (self.corpus, self.made_by) == (corpus, RULES_OF_ROWS)

    def handling(self, obligation_id: str) -> Handling:
        return self.handlings.get(obligation_id, Handling())

    @property
    def gone(self) -> tuple[Obligation, ...]:
        """The rows that are gone and that somebody had handled."""
        there = {row.obligation_id for row in self.rows}
        past = {one.row.obligation_id: one.row for one in self.past}
        return tuple(row for name, row in past.items() if name in self.handlings and name not in there)

    @property
    def versions(self) -> tuple[str, ...]:
        """The time of each version, the oldest first; version n is the n-th, counted from 1."""
        times = {self.since.get(row.obligation_id, "") for row in self.rows}
        return tuple(sorted(times | {time for one in self.past for time in (one.since, one.until)}))

    def since_words(self, obligation_id: str) -> str:
        """Since which version a row has its text; "" where that is unknown, or where there is one version."""
        since = self.since.get(obligation_id, "")
        if not since or len(self.versions) < 2:
            return ""
        return f"unchanged since version {self.versions.index(since) + 1}, {since[:10]}"

    def changes(self, version: int = 0) -> tuple[RowChange, ...]:
        """How rows changed since this version; 0: since the last but one. Raises ConfigError where there is none."""
        versions = self.versions
        if not version and len(versions) < 2:
            return ()
        if version not in range(len(versions)):
            msg = f"expected an earlier version of the register, from 1 to {len(versions) - 1}, found {version}"
            raise ConfigError(msg)
        then = versions[version - 1 if version else -2]
        before = [row for row in self.rows if self.since.get(row.obligation_id, "") <= then]
        before += [one.row for one in self.past if one.since <= then < one.until]
        return compared(before, self.rows)


_OPENED: Final[RecentResults[Path, tuple[tuple[int, int, int], Register]]] = RecentResults(4)  # used last


def renewed(before: Register, rows: Sequence[Obligation], corpus: str = "") -> tuple[Register, tuple[RowChange, ...]]:
    """The register of a new version, and how its rows changed; changed rows keep their handling."""
    changes = compared((*before.rows, *before.gone), rows)
    now = {(one.after or one.before): one.before for one in changes if one.before}
    kept = {row.obligation_id: before.handling(old.obligation_id) for row, old in now.items() if row}
    kept = {name: one for name, one in kept.items() if one != Handling()}
    known = set(before.gone)
    told = tuple(one for one in changes if one.what != "gone" or one.before not in known)
    at = datetime.now(UTC).isoformat(timespec="microseconds")
    ids = {row.obligation_id for row in rows}
    left = (row for row in before.rows if row.obligation_id not in ids)
    past = (PastRow(row, before.since.get(row.obligation_id, ""), at) for row in left)
    there = {row.obligation_id: before.since.get(row.obligation_id, "") for row in before.rows}
    since = {name: there.get(name, at) for name in ids}
    return Register(tuple(rows), kept, (*before.past, *past), since, corpus, RULES_OF_ROWS), told


def change(path: Path, how: Callable[[Register], Register]) -> Register:
    """Applies ``how`` to the register of this file and saves it before it returns. Raises ConfigError, CorpusError.

    The file is locked meanwhile: another process waits, and fails with ConfigError after three seconds. Where only the
    handling of rows changed, lines are appended to the file; the next version writes them into their rows.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    msg = f"the register {path.stem!r} is being changed by another ragqa; try again when it has finished"
    with locked(path.with_suffix(".lock"), lambda: ConfigError(msg), _PATIENCE):
        before = load(path)
        after = how(before)
        if path.exists() and after.rows is before.rows and after.past is before.past and after.corpus == before.corpus:
            names = before.handlings.keys() | after.handlings.keys()
            edited = [name for name in sorted(names) if after.handling(name) != before.handling(name)]
            if edited:
                append_json_lines(path, ({"id": name, "handling": asdict(after.handling(name))} for name in edited))
        else:
            save(path, after)
        _OPENED.remember({path: (_stamp(path), after)})
    return after


def up_to_date(path: Path, passages: Sequence[Passage], corpus: str) -> Register:
    """The register of this file; extracted again from the passages where it is not of the corpus and of today's rules.

    Raises as `change`, and ModelError.
    """
    found = load(path)
    if found.is_of(corpus):
        return found
    return change(
        path, lambda held: held if held.is_of(corpus) else renewed(held, tuple(register(passages)), corpus)[0]
    )


def save(path: Path, held: Register) -> None:
    """Replaces the whole file: a line with the corpus and the version of the rules, then one line per row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    there = (_line(held, row, held.since.get(row.obligation_id, ""), "") for row in held.rows)
    past = (_line(held, one.row, one.since, one.until) for one in held.past)
    lines = [
        json.dumps(one, ensure_ascii=False) for one in ({"corpus": held.corpus, "made_by": held.made_by}, *there, *past)
    ]
    write_whole(path, ["\n".join((*lines, ""))])


def _line(held: Register, row: Obligation, since: str, until: str) -> dict[str, Any]:
    told = {name: getattr(row, name) for name in _ROW} | {"parts": asdict(row.parts)}
    handling = held.handlings.get(row.obligation_id)
    return {"row": told, "handling": asdict(handling) if handling else {}, "since": since, "until": until}


def load(path: Path) -> Register:
    """Reads what `save` and `change` wrote; an empty register where there is no file. Raises CorpusError if invalid.

    A file that has not changed since this process read or wrote it is not read again.
    """
    try:
        stamp = _stamp(path)
    except OSError:
        return Register()
    held = _OPENED.known([path]).get(path)
    if held is None or held[0] != stamp:
        try:
            with collecting_paused():
                held = stamp, _read(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            msg = f"{path} cannot be read as a register ({error}); restore it from a backup, or delete it to begin anew"
            raise CorpusError(msg) from error
        _OPENED.remember({path: held})
    return held[1]


def _stamp(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read(text: str) -> Register:
    rows: list[Obligation] = []
    past: list[PastRow] = []
    handlings: dict[str, Handling] = {}
    times: dict[str, str] = {}
    corpus = made_by = ""
    whole = text[: text.rfind("\n") + 1]  # a last line that was cut off by a kill does not count
    for told in json.loads(f"[{','.join(filter(None, whole.split(chr(10))))}]"):
        if "corpus" in told:
            corpus, made_by = str(told["corpus"]), str(told.get("made_by", ""))
            continue
        if "id" in told:
            handlings[told["id"]] = Handling(**told["handling"])
            continue
        of = told["row"]
        parts = Parts(*(Span(**one) if one else None for one in of["parts"].values()))
        row = Obligation(**of | {"strength": Strength(of["strength"]), "parts": parts})
        since, until = told.get("since", ""), told.get("until", "")
        if told["handling"]:
            handlings[row.obligation_id] = Handling(**told["handling"])
        if until:
            past.append(PastRow(row, since, until))
        else:
            rows.append(row)
            if since:
                times[row.obligation_id] = since
    known = {name: one for name, one in handlings.items() if one != Handling()}
    return Register(tuple(rows), known, tuple(past), times, corpus, made_by)

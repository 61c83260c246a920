"""Compares a register of obligations with policies, row by row: covered, partly, conflicts or not found.

For each row, the nearest passages of the policies are read, each policy by itself. A row is in conflict where one
policy conflicts, else covered where one policy covers it. Each row is stored when it has been read, so a run can be
resumed. A row is read again only where its text, its passages or the verifier have changed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Final, Protocol

from pydantic import TypeAdapter, ValidationError

from ragqa.english.sentences import reads_as_heading, split_sentences
from ragqa.errors import CorpusError
from ragqa.infra.files import write_whole
from ragqa.infra.garbage import collecting_paused
from ragqa.infra.journal import JOURNAL, Journal
from ragqa.library import edits
from ragqa.library.edits import SheetRow, Taken
from ragqa.library.firms import addressed_by, name_of_firm
from ragqa.library.gap_rows import LABELS, MARK, SAID, Correction, GapRow, GapRun, Label, PolicyReading, Statement
from ragqa.library.register import Obligation, compared
from ragqa.library.register_search import rule_name
from ragqa.library.register_store import NOT_APPLICABLE, Register
from ragqa.library.register_units import without_headings
from ragqa.scoring.policies import (
    NO_FIRM,
    RULES_OF_POLICIES,
    Firm,
    clash_words,
    cover_of_all,
    policy_verdicts,
    similarity_of,
)
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.scoring.verdicts import RULES_VERSION
from ragqa.scoring.verdicts.windows import Similarity
from ragqa.types import Passage, Ranking
from ragqa.types.scores import Cover, ObligationVerdict

READ: Final = 12  # passages of the policies that are read for a row
# A policy is read where the cosine of the row to one of its statements is at least this. Of 160 policies written for a
# rule, .80 of those that cover it and .91 of those that conflict reach it; of rows on other subjects, .17.
NEAR: Final = 0.5
CORRECTIONS: Final = "corrections.json"
_LABEL_OF: Final[Mapping[Cover, Label]] = {
    Cover.COVERED: "covered",
    Cover.IN_PART: "partly",
    Cover.IN_CONFLICT: "conflicts",
    Cover.NOT_COVERED: "not found",
}
_BLOCK: Final = re.compile(r"(?:(?!\n[ \t]*\n).)+", re.DOTALL)
_ITEM: Final = re.compile(rf"(?<=\n)[ \t]*{MARK.pattern}")  # its mark begins a line


@dataclass(frozen=True, slots=True)
class Policies:
    """The passages of the policies, and the function that ranks them for a text."""

    passages: Sequence[Passage]
    search: Callable[[str], Ranking]


@dataclass(frozen=True, slots=True)
class GapProgress:
    """How many of ``total`` rows are done, the last row, and whether it was read now or known from before."""

    done: int
    total: int
    last: GapRow
    is_read: bool


def statements_of(passage: Passage) -> Iterator[Statement]:
    """The sentences of a policy's passage, without the headings in it."""
    return chain.from_iterable(paragraphs_of(passage))


def paragraphs_of(passage: Passage) -> Iterator[list[Statement]]:
    """The sentences and list items of each paragraph; the items of a list belong to the paragraph before them.

    An item has the last sentence before the list as lead-in if that ends with a colon.
    """
    held: list[Statement] = []
    for block in _BLOCK.finditer(passage.text):
        words = block[0].strip()
        is_item = MARK.match(words) is not None
        if words.startswith("#") or (reads_as_heading(words) and not is_item):
            continue
        found: list[Statement] = []
        begins = [0, *(mark.start() for mark in _ITEM.finditer(block[0])), len(block[0])]
        for begin, end in pairwise(begins):
            for sentence in split_sentences(block[0][begin:end]):
                span = without_headings(sentence)
                start = block.start() + begin + span.start
                one = Statement(passage.passage_id, span.text, start, start + len(span.text))
                if one.is_item:
                    before = next((each.text for each in reversed([*held, *found]) if not each.is_item), "")
                    one = replace(one, lead=before if before.endswith(":") else "")
                found.append(one)
        is_titled = bool(found) and not block[0].lstrip().startswith(found[0].text)
        if held and (is_titled or not is_item):
            yield held
            held = []
        held += found
    if held:
        yield held


class GapStore:
    """The stored rows and corrections of a gap run, in one folder; for one process at a time (`infra.journal.held`).

    Raises RecordError where the journal is damaged, CorpusError where journal or corrections hold something else.
    """

    def __init__(self, folder: Path, *, restart: bool = False) -> None:
        """Opens the folder; ``restart`` deletes the rows that were read, but keeps people's corrections."""
        if restart:
            (folder / JOURNAL).unlink(missing_ok=True)
        self._folder, self._journal = folder, Journal(folder / JOURNAL)
        self.known: dict[str, tuple[GapRow, str]] = {}  # by id: the row, and a hash of all policies
        self._of_text: dict[tuple[str, str], tuple[GapRow, str]] = {}  # the same, by document and text of the rule
        self.corrections: dict[str, Correction] = {}
        self._on: dict[str, str] = {}  # by id: the key that the row had when a person judged it
        self._stamps: list[tuple[int, int]] = [(0, 0), (0, 0)]
        self.n_changed = 0  # grows whenever `known` changes
        self.refresh()

    def refresh(self) -> GapStore:
        """Reads again the files that another process has changed. Raises as the class does."""
        try:
            for place, (name, read) in enumerate(((JOURNAL, self._read_rows), (CORRECTIONS, self._read_corrections))):
                stamp = _stamp(self._folder / name)
                if stamp != self._stamps[place]:
                    with collecting_paused():
                        read()
                    self._stamps[place] = stamp
        except (ValidationError, ValueError, KeyError, TypeError) as error:
            msg = f"{self._folder} cannot be read as a gap run ({error}); restore it from a backup, or delete it"
            raise CorpusError(msg) from error
        return self

    def _read_rows(self) -> None:
        known = {}
        for _, entry in self._journal.read():
            gap = _GAP.validate_python(entry["gap"])
            known[gap.row.obligation_id] = gap, entry["policies"]
        self.known, self.n_changed = known, self.n_changed + 1
        self._of_text = {(one[0].row.document_id, one[0].row.text): one for one in known.values()}

    def _read_corrections(self) -> None:
        file = self._folder / CORRECTIONS
        told = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        self.corrections = {name: Correction(one["said"], one["comment"]) for name, one in told.items()}
        self._on = {name: str(one["on"]) for name, one in told.items()}

    def result(self, row: Obligation) -> tuple[GapRow, str] | None:
        """What is stored for this row, also where the rule had another number then; with the hash of all policies."""
        found = self.known.get(row.obligation_id) or self._of_text.get((row.document_id, row.text))
        return (replace(found[0], row=row), found[1]) if found else None

    def put(self, gap: GapRow, policies: str, *, is_read: bool = True) -> None:
        """Stores a row; with ``is_read`` it is on disk when this returns."""
        self._journal.append({"gap": asdict(gap), "policies": policies}, sync=is_read)
        self.known[gap.row.obligation_id] = self._of_text[gap.row.document_id, gap.row.text] = gap, policies
        self.n_changed += 1

    def take(self, sheet: Mapping[str, SheetRow[Correction]], rows: Iterable[Obligation]) -> Taken[Correction]:
        """Imports corrections from a sheet or the page. Raises CorpusError where one is not in `SAID`."""
        of_id = {row.obligation_id: row for row in rows}
        for name, row in sheet.items():
            if row.now.said not in ("", *SAID):
                rule = f"{rule_name(of_id[name])} ({name})" if name in of_id else f"row {name}"
                msg = f"{rule}: expected one of {', '.join(SAID)} or nothing in 'said', found {row.now.said!r}"
                raise CorpusError(f"{msg}; nothing of this sheet is imported until it is corrected")
        self._rename(of_id)
        taken = edits.merged(self.corrections, of_id.keys(), sheet, Correction())
        for name, one in taken.edits.items():
            if one != self.corrections.get(name) and name in of_id and (found := self.result(of_id[name])):
                self._on[name] = found[0].key
        self.corrections = taken.edits
        self._save()
        return taken

    def _rename(self, rows: Mapping[str, Obligation]) -> None:
        """Moves corrections to the rows (by id) that differ from theirs only in the number."""
        corrections, on = dict(self.corrections), dict(self._on)  # others may be reading them
        for name, row in rows.items():
            held = None if name in self.known else self._of_text.get((row.document_id, row.text))
            old = held[0].row.obligation_id if held else ""
            if old in corrections and old not in rows and name not in corrections:
                corrections[name], on[name] = corrections.pop(old), on.pop(old, "")
        self.corrections, self._on = corrections, on

    def carry(self, rows: Sequence[Obligation]) -> None:
        """Moves corrections to the rows that replaced theirs in a new version of the register."""
        self._rename({row.obligation_id: row for row in rows})
        now = {row.obligation_id for row in rows}
        lost = [self.known[name][0].row for name in self.corrections if name not in now and name in self.known]
        for change in compared(lost, [row for row in rows if row.obligation_id not in self.known]) if lost else ():
            if change.before and change.after:
                old, new = change.before.obligation_id, change.after.obligation_id
                said, on = self.corrections.pop(old), self._on.pop(old, "")
                if new not in self.corrections:  # else a person has judged the new row since
                    self.corrections[new], self._on[new] = said, on
        self._save()

    def stale(self, gaps: Iterable[GapRow]) -> frozenset[str]:
        """The ids of rows that were read again after a person had judged them."""
        ids = ((gap.row.obligation_id, gap.key) for gap in gaps)
        return frozenset(
            name for name, key in ids if key and name in self.corrections and self._on.get(name, key) != key
        )

    def close(self) -> None:
        """Closes the journal."""
        self._journal.close()

    def standing(self, gaps: Sequence[GapRow], unasked: Iterable[Statement]) -> GapRun:
        """The run of these rows and statements, with people's corrections, also of rows with another number now."""
        self._rename({gap.row.obligation_id: gap.row for gap in gaps if gap.key})
        return GapRun(tuple(gaps), dict(self.corrections), self.stale(gaps), tuple(unasked))

    def _save(self) -> None:
        file = self._folder / CORRECTIONS
        if self.corrections or file.exists():
            told = {name: asdict(one) | {"on": self._on.get(name, "")} for name, one in self.corrections.items()}
            write_whole(file, [json.dumps(told, ensure_ascii=False)])
            self._stamps[1] = _stamp(file)


def _stamp(file: Path) -> tuple[int, int]:
    """The file's modification time in nanoseconds and its size; zeros where there is no file."""
    found = file.stat() if file.exists() else None
    return (found.st_mtime_ns, found.st_size) if found else (0, 0)


_GAP: Final = TypeAdapter(GapRow)


class SecondReader(Protocol):
    """Gives a second opinion on rows that the verifier is not sure of."""

    failed: str  # why no more rows are asked about, and what to do next; "" while they are

    @property
    def model(self) -> str: ...

    def of(self, gap: GapRow, passages: Sequence[Passage]) -> GapRow:
        """The row with an opinion, or unchanged."""


def gap_events(
    store: GapStore,
    register: Register,
    rows: Sequence[Obligation],
    policies: Policies,
    scorer: RepassScorer,
    second: SecondReader | None = None,
) -> Generator[GapProgress, None, GapRun]:
    """Compares these rows of the register with the policies. Yields after each row; can be stopped and resumed.

    A row whose status is *not applicable* is not read. ``second`` is asked about rows that the verifier is not sure of.
    Raises ScoringError, RecordError and the errors of ``policies.search``.
    """
    store.carry(register.rows)
    made_by = f"{scorer.verdicts.info.fingerprint} {RULES_VERSION} {RULES_OF_POLICIES} {READ} {NEAR}"
    similarity = similarity_of(scorer)
    addressed = addressed_by(register.rows)
    name = name_of_firm([one.text for one in policies.passages], (row.text for row in register.rows))
    whole = _digest(
        made_by,
        name,
        second.model if second else "",
        *(text for one in policies.passages for text in (one.passage_id, one.text)),
    )
    gaps = []
    for row in rows:
        before, seen = store.result(row) or (None, "")
        if is_left_out(register, row):
            gap, is_read = GapRow(row, NOT_APPLICABLE), False
        elif before and seen == whole:
            gap, is_read = before, False
            if row.obligation_id not in store.known:
                store.put(gap, whole, is_read=False)
        else:
            found = [hit.passage for hit in policies.search(row.text).hits[:READ]]
            near = sorted(found, key=lambda one: one.passage_id)
            firm = Firm(addressed.get(row.obligation_id, ""), name)
            key = _digest(
                made_by, row.text, *astuple(firm), *(text for one in near for text in (one.passage_id, one.text))
            )
            asks_anew = before and second and before.second and before.second.model != second.model
            is_read = before is None or before.key != key or bool(asks_anew)
            if is_read or before is None:
                readings = _read(row, near, scorer, similarity, firm)
                label: Label = min((one.label for one in readings), key=LABELS.index, default="not found")
                gap = GapRow(row, label, readings, key, tuple(one.passage_id for one in found))
            else:
                gap = before
            if second and gap.second is None and gap.is_unsure:
                gap = second.of(gap, found)
                is_read = is_read or gap.second is not None
            is_left = second is not None and gap.second is None and gap.is_unsure  # to be asked by the next run
            store.put(gap, "" if is_left else whole, is_read=is_read)
        gaps.append(gap)
        yield GapProgress(len(gaps), len(rows), gap, is_read)
    return store.standing(gaps, unasked(policies.passages, gaps))


def is_left_out(register: Register, row: Obligation) -> bool:
    """Whether a person set the row's status to *not applicable*."""
    return register.handling(row.obligation_id).status.strip().lower() == NOT_APPLICABLE


def _read(
    row: Obligation,
    passages: Sequence[Passage],
    scorer: RepassScorer,
    similarity: Similarity | None,
    firm: Firm = NO_FIRM,
) -> tuple[PolicyReading, ...]:
    """The result of each policy among these passages; only a policy on the row's subject (`NEAR`) is read."""
    titles = {passage.document_id: passage.title or passage.document_id for passage in passages}
    said: dict[str, list[Statement]] = {name: [] for name in titles}
    places: dict[str, list[int]] = {name: [] for name in titles}
    for n, (name, paragraph) in enumerate((one.document_id, each) for one in passages for each in paragraphs_of(one)):
        said[name] += paragraph
        places[name] += [n] * len(paragraph)
    nearest: dict[str, Statement] = {}
    for name, statements in said.items():
        cosines = [float(one) for one in similarity(row.text, [one.whole for one in statements])] if similarity else []
        if max(cosines, default=0.0) >= NEAR:
            nearest[name] = statements[cosines.index(max(cosines))]
        elif similarity:
            statements.clear()
            places[name].clear()
    texts = [[one.whole for one in statements] for statements in said.values()]
    rule = Passage(row.passage_id, row.document_id, row.text)
    verdicts = policy_verdicts(rule, texts, scorer, similarity, list(places.values()), firm)
    return tuple(
        _reading(name, titles[name], said[name], each, nearest.get(name))
        for name, each in zip(said, verdicts, strict=True)
    )


def _reading(
    document_id: str,
    title: str,
    said: Sequence[Statement],
    verdicts: Sequence[ObligationVerdict],
    nearest: Statement | None,
) -> PolicyReading:
    label = _LABEL_OF[cover_of_all(verdicts)]
    deciding = [one for one in verdicts if label != "conflicts" or one.cover is Cover.IN_CONFLICT]
    places = dict.fromkeys(one.answer_index for one in deciding if one.answer_index is not None)
    words = tuple(span.text for one in deciding for span in one.missing)
    told = [one.probability for one in deciding if one.probability is not None]
    probability = (min if label == "covered" else max)(told) if told else None
    clashes = dict.fromkeys(
        clash_words(span.text, said[one.answer_index].whole)
        for one in deciding
        if label == "conflicts" and one.answer_index is not None
        for span in one.missing
    )
    statements, near = tuple(said[n] for n in places), nearest if label == "not found" else None
    return PolicyReading(document_id, title, label, statements, words, probability, tuple(clashes), near)


def unasked(passages: Iterable[Passage], gaps: Iterable[GapRow]) -> Iterator[Statement]:
    """The statements of the policies that no row rests on, without lead-ins of lists, which state nothing alone."""
    asked = {(one.passage_id, one.start) for gap in gaps for each in gap.readings for one in each.statements}
    for passage in passages:
        statements = list(statements_of(passage))
        leads = {one.lead for one in statements}
        for one in statements:
            if (one.passage_id, one.start) not in asked and one.text not in leads:
                yield one


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "backslashreplace")).hexdigest()

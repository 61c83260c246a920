"""The register of obligations: rows, who and when and if, versions, sheets out and back in, the command."""

import csv
import gc
import json
import random
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from openpyxl import load_workbook

from ragqa.corpus.demo import DEMOS
from ragqa.corpus.formats import load_corpus
from ragqa.errors import ConfigError, CorpusError
from ragqa.infra.files import locked
from ragqa.library import register_store
from ragqa.library.edits import SheetRow, read_edits
from ragqa.library.register import compared, register
from ragqa.library.register_parts import parts_of
from ragqa.library.register_search import Wanted, matching
from ragqa.library.register_sheets import HEADS, merged, write_sheet
from ragqa.library.register_store import FIELDS, STATUSES, Handling, Register, change, load, renewed, save
from ragqa.types import Passage
from ragqa.types.scores import Strength
from tests.conftest import DATA
from tests.support.killed import in_a_process

TEXT = (
    '"Client" means a person. Where a firm holds money, it must within two days:\n(a) tell the Client; and\n'
    "(b) open an account. Firms should keep a log. The Regulator may ask for it. A firm must act at once."
)
PASSAGE = Passage("1:2.1", "1", TEXT, "Rules", number="2.1")


def rows_of(text=TEXT, number="2.1"):
    return tuple(register([replace(PASSAGE, text=text, number=number, passage_id=f"1:{number}")]))


def words(span):
    return span.text if span else ""


def test_rows_read_by_themselves_and_know_where_they_stand():
    rows = rows_of()
    assert [(one.text, str(one.strength)) for one in rows] == [
        ("Where a firm holds money, it must within two days tell the Client", "must"),
        ("Where a firm holds money, it must within two days open an account", "must"),
        ("Firms should keep a log.", "should"),
        ("A firm must act at once.", "must"),
    ]
    assert [TEXT[one.start : one.end] for one in rows][:2] == ["tell the Client", "open an account"]
    assert len({one.obligation_id for one in rows}) == 4
    assert [one.obligation_id for one in rows_of()] == [one.obligation_id for one in rows]
    assert [one.strength for one in register([PASSAGE], advice=False)] == [Strength.MUST] * 3


@pytest.mark.parametrize(
    ("text", "party", "deadline", "condition"),
    [
        ("A firm must act at once.", "A firm", "", ""),
        ("An agent who sells must report within 30 days of the sale.", "An agent", "within 30 days of the sale", ""),
        ("If the seller agrees, the buyer must pay.", "the buyer", "", "If the seller agrees"),
        ("If a firm fails, it must tell the Commission.", "a firm", "", "If a firm fails"),
        ("Records must be kept by the operator for six years.", "the operator", "for six years", ""),
        ("Records must be kept.", "", "", ""),
        ("The report must reach us by 31 January, unless it is waived.", "The report", "by 31 January", "unless it is"),
        ("Subject to Rule 4.1, a firm must review it every 12 months.", "a firm", "every 12 months", "Subject to Rule"),
        ("Before it opens a branch, a firm must tell us.", "a firm", "Before it opens a branch", ""),
        ("While it is short of funds a firm must pay no dividend.", "a firm", "", "While it is short of funds"),
        ("Every year the firm must test its plan.", "the firm", "Every year", ""),
        ("The firm must report at least monthly.", "The firm", "monthly", ""),
        ("It must pay by the end of the next Business Day.", "It", "by the end of the next Business Day", ""),
        ("The firm must tell us shortly after it knows.", "The firm", "shortly after it knows", ""),
        ("A report after 72 hours must say why.", "A report after 72 hours", "", ""),
        ("It is no licence, and its holder must not trade.", "its holder", "", ""),
        ("A firm is required to keep a log.", "A firm", "", ""),
        ("No account must be taken of gifts received by a clerk.", "", "", ""),
        ("For example, if a firm is late, it should tell us.", "a firm", "", "For example, if a firm"),
        ("The report should initially be made in writing.", "", "", ""),
        ("A person may leave if it is told that goods, land or cash must be moved.", "A person", "", "if it is told"),
        ("The firm must tell the owner twice per month free of charge.", "The firm", "per month", ""),
        ("It must not sell except: (a) at noon; or (b) within two days of a fair.", "It", "", ""),
        ("", "", "", ""),
    ],
)
def test_who_when_and_if_are_words_of_the_text(text, party, deadline, condition):
    parts = parts_of(text)
    assert (words(parts.party), words(parts.deadline)) == (party, deadline)
    assert words(parts.condition).startswith(condition)
    assert bool(parts.condition) == bool(condition)
    for span in filter(None, (parts.party, parts.deadline, parts.condition)):
        assert text[span.start : span.end] == span.text


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("must either:\n(a) pay; or\n(b) say why not.", ["must either: (a) pay; or (b) say why not."]),
        ("must not:\n(a) lie; or\n(b) steal.", ["must not lie", "must not steal"]),
        ("must tell us on:\n(a) a fire; or\n(b) a flood.", ["must tell us on a fire", "must tell us on a flood"]),
        ("must hold the greater of:\n(a) 5; and\n(b) 7.", ["must hold the greater of: (a) 5; and (b) 7."]),
        ("must:\n(a) keep a log.\n(b) lock the door.", ["must keep a log", "must lock the door"]),
        (
            "must not sail unless it:\n(a) has oars; and\n(b) has a map.",
            ["must not sail unless it: (a) has oars; and (b) has a map."],
        ),
        (
            "must lie at one of the following piers:\n(a) A; and\n(b) B.",
            ["must lie at one of the following piers: (a) A; and (b) B."],
        ),
    ],
)
def test_items_are_rows_where_each_is_asked_for(text, rows):
    assert [row.text for row in rows_of(f"Hours\nA firm {text}")] == [f"A firm {row}" for row in rows]


LEAD = "Rules › 7 Lamps › A keeper must not hang any of the following in a harbour:"
CUT = (
    ("7.1", "This rule is about light. A keeper must not hang any of the following in a harbour:", "Rules › 7 Lamps"),
    ("7.1.(a)", "a lamp that burns with a red flame; and", LEAD),
    ("7.1.(b)", "a lamp without a hood, by which is meant:\n(i) a shade of tin;\n(ii) a shade of glass.", LEAD),
    ("7.1.(c)", "a lamp on a mast, except where it serves to:", LEAD),
    ("7.1.(c).(i)", "guide a ship;", f"{LEAD} › a lamp on a mast, except where it serves to:"),
    ("7.1.(c).(ii)", "warn a swimmer. The keeper must write that down.", f"{LEAD} › a lamp on a mast, except where"),
    ("7.2", "A keeper must trim each lamp.", "Rules › 7 Lamps"),
)


def passages_of(*rows):
    return [Passage(f"1:{number}", "1", text, "Rules", section, number) for number, text, section in rows]


def test_a_list_that_was_cut_into_passages_gives_the_rows_of_the_whole():
    passages = passages_of(*CUT)
    rows = list(register(passages))
    lead = "A keeper must not hang any of the following in a harbour:"
    assert [(row.number, row.text) for row in rows] == [
        ("7.1.(a)", f"{lead} a lamp that burns with a red flame"),
        ("7.1.(b)", f"{lead} a lamp without a hood, by which is meant a shade of tin"),
        ("7.1.(b)", f"{lead} a lamp without a hood, by which is meant a shade of glass"),
        ("7.1.(c)", f"{lead} a lamp on a mast, except where it serves to: (i) guide a ship; (ii) warn a swimmer."),
        ("7.1.(c).(ii)", "The keeper must write that down."),
        ("7.2", "A keeper must trim each lamp."),
    ]
    text_of = {one.passage_id: one.text for one in passages}
    assert [text_of[row.passage_id][row.start : row.end] for row in rows[:2]] == [
        "a lamp that burns with a red flame",
        "a shade of tin",
    ]
    alone = list(register(passages[1:2]))  # the passage that an answer cites
    assert [row.obligation_id for row in alone] == [rows[0].obligation_id]


@pytest.mark.parametrize(
    ("first", "second", "texts"),
    [
        ("A firm must:", "pay;", ["A firm must pay"]),
        ("Where a firm holds money:", "The firm must pay.", ["Where a firm holds money The firm must pay"]),
        ("Firms must do as follows:", "The firm must pay.", ["Firms must do as follows:", "The firm must pay."]),
        ("Firms must be fair.", "The firm must pay.", ["Firms must be fair.", "The firm must pay."]),
        ("Duties of Firms", "The firm must pay.", ["The firm must pay."]),
    ],
)
def test_a_passage_below_an_open_sentence_completes_it(first, second, texts):
    rows = register(passages_of(("4.1", first, "Rules"), ("4.1.(1)", second, f"Rules › {first}")))
    assert [row.text for row in rows] == texts


WHY = (("(1)", "Lamps should be of use."), ("(2)", "Boats must be safe."), ("(2).(a)", "Crews must be safe."))
RULES = (("Part I.Article 1.1.", "A keeper must trim each lamp."), ("Annex.(1)", "A keeper must lock the door."))


def test_recitals_are_no_duties_but_keep_what_people_said_of_them(tmp_path):
    passages = passages_of(*((number, text, "") for number, text in (*WHY, *RULES)))
    rows = tuple(register(passages))
    assert [row.is_recital for row in rows] == [True, True, True, False, False]
    assert not any(row.is_recital for row in register(passages[:3]))  # no articles: these are the rules
    old = tuple(replace(row, is_recital=False) for row in rows)  # as an earlier version found them
    file = tmp_path / "some.jsonl"
    save(file, Register(old, {rows[1].obligation_id: Handling("Ann")}, corpus="5" * 64))
    held = register_store.up_to_date(file, passages, "5" * 64)
    assert held.duties == list(rows[3:])
    assert [row.number for row in matching(held, (), Wanted())] == ["(2)", *(number for number, _ in RULES)]
    assert matching(held, (), Wanted(recitals=True)) == list(rows)
    assert held.handling(rows[1].obligation_id) == Handling("Ann")
    assert load(file) == held
    assert register_store.up_to_date(file, passages, "5" * 64) is held


@pytest.mark.parametrize(
    ("text", "strength"),
    [
        ("Negative interest must not be passed on to Retail Clients.", "must not"),
        ("The lead partner must rotate after seven years and must not return for three.", "must"),
        ("When it counts its funds no account must be taken of gifts.", "must not"),
        ("A firm should establish that each store must seek approval of its fees.", "should"),
    ],
)
def test_the_verb_of_what_obliges_says_whether_it_is_forbidden(text, strength):
    assert [row.strength for row in rows_of(text)] == [strength]


def test_the_demonstration_rulebook():
    demo = DEMOS["rulebook"]
    passages = load_corpus(demo.source, demo.format).passages
    rows = list(register(passages))
    texts = {passage.passage_id: passage.text for passage in passages}
    assert 600 < len(rows) < 900
    assert sum(one.parts.party is not None for one in rows) > len(rows) / 2
    assert len({one.obligation_id for one in rows}) == len(rows)
    assert all(texts[one.passage_id][one.start : one.end].split()[-1] in one.text for one in rows)
    assert not [one.text for one in rows if one.text.startswith('"') and " means " in one.text and one.strength.binds]


def _labelled(part):
    """The passages of this part and their labels: where a row's words stand, its strength, who, when, if (offsets)."""
    lines = Path(__file__).with_name("register_labels.jsonl").read_text().splitlines()
    labels = {line["passage"]: line["rows"] for line in map(json.loads, lines) if line["part"] == part}
    source, form = DEMOS["rulebook"].source, DEMOS["rulebook"].format
    if part != "rulebook":
        source, form = DATA / "obliqa", "obliqa"
        if not source.is_dir():
            pytest.skip(f"no ADGM passages in {source}; set RAGQA_DATA to the folder of the data sets")
    return [one for one in load_corpus(source, form).passages if one.passage_id in labels], labels


def measured(part):
    """F1 of rows; of those found the share with the right strength, deadline and party; each in [0, 1]."""
    passages, labels = _labelled(part)
    n_found, n_labels, pairs = 0, 0, []
    for passage in passages:
        left = [label for label in labels[passage.passage_id] if label[1] != Strength.MAY]
        n_labels += len(left)
        for row in register([passage]):
            n_found += 1
            label = next((one for one in left if row.start <= one[0] < row.end), None)
            if label:
                left.remove(label)
                pairs.append((passage.text, label, row))

    def alike(place, span, text):
        label, found = " ".join(text[slice(*place or (0, 0))].casefold().split()), words(span).casefold()
        return label in found or found in label if label and found else label == found

    return (
        2 * len(pairs) / (n_found + n_labels),
        sum(label[1] == row.strength for _, label, row in pairs) / len(pairs),
        sum(alike(label[3], row.parts.deadline, text) for text, label, row in pairs) / len(pairs),
        sum(alike(label[2], row.parts.party, text) for text, label, row in pairs) / len(pairs),
    )


@pytest.mark.parametrize(
    ("part", "least"),
    [
        ("rulebook", (0.95, 0.95, 0.90, 0.85)),
        ("ADGM open", (0.91, 0.95, 0.90, 0.85)),
        ("ADGM sealed", (0.89, 0.95, 0.88, 0.85)),
    ],
)
def test_the_rows_of_rules_that_were_labelled_by_reading(part, least):
    """Labelled before the register was run on them; nothing that was trained on is among them but in document 9.

    Wanted are .95 (ADGM .92) for rows, .95 for strength, .90 for deadlines, .85 for parties; on 90 rows one is .011.
    """
    found = measured(part)
    assert all(one >= wanted for one, wanted in zip(found, least, strict=True)), found


def test_rows_of_a_new_version():
    before = rows_of()
    now = rows_of(TEXT.replace("two days", "three days").replace(" Firms should keep a log.", ""), number="2.2")
    new = rows_of("A clerk must lock the vault. A ship must carry lamps.", number="9")
    found = compared(before, (*now, *new))
    assert [one.what for one in found] == ["changed", "changed", "unchanged", "new", "new", "gone"]
    assert found[2].before.number == "2.1"
    assert found[2].after.number == "2.2"
    held = Register(before, {before[3].obligation_id: Handling("Ann"), before[2].obligation_id: Handling("Ben")})
    kept, _ = renewed(held, now)
    assert {
        row.obligation_id: kept.handling(row.obligation_id)
        for row in kept.rows
        if kept.handling(row.obligation_id) != Handling()
    } == {now[2].obligation_id: Handling("Ann")}


def test_what_was_noted_on_a_row_that_is_gone_returns_with_it(tmp_path):
    before, now = rows_of(), rows_of(TEXT.replace(" Firms should keep a log.", ""))
    (log,) = [row for row in before if "log" in row.text]
    without, changes = renewed(Register(before, {log.obligation_id: Handling("Ben")}), now)
    assert [one.what for one in changes].count("gone") == 1
    save(tmp_path / "some.jsonl", without)
    without, changes = renewed(load(tmp_path / "some.jsonl"), now)
    assert "gone" not in [one.what for one in changes]  # it is told once
    again, _ = renewed(without, before)
    assert again.handling(log.obligation_id) == Handling("Ben")
    assert again.gone == ()


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_a_sheet_goes_out_and_its_edits_come_back(tmp_path, suffix):
    first, second, third, fourth = rows = rows_of()
    held = Register(
        rows, {first.obligation_id: Handling("Ann", "open", "", "=1+1"), second.obligation_id: Handling("Ben")}
    )
    file = tmp_path / f"register{suffix}"
    write_sheet(file, held, rows)
    sheet = read_edits(file, Handling)
    assert {name: row.now for name, row in sheet.items()} == {
        one.obligation_id: held.handling(one.obligation_id) for one in rows
    }
    assert merged(held, sheet)[1].n_taken == 0
    sheet[first.obligation_id] = replace(sheet[first.obligation_id], now=Handling("Ann", "done", "2026-03-01", "=1+1"))
    sheet[second.obligation_id] = replace(sheet[second.obligation_id], now=Handling("Eve"))
    sheet["0" * 12] = sheet[third.obligation_id]
    since = replace(
        held, handlings={**held.handlings, second.obligation_id: Handling("Dan"), fourth.obligation_id: Handling("Fay")}
    )
    now, taken = merged(since, sheet)
    assert taken.n_taken == 2
    assert now.handling(first.obligation_id) == Handling("Ann", "done", "2026-03-01", "=1+1")
    assert now.handling(fourth.obligation_id) == Handling("Fay")
    assert [(one.field, one.here, one.there) for one in taken.conflicts] == [("owner", "Dan", "Eve")]
    assert taken.unknown == ("0" * 12,)
    assert next(taken.words("a", rows)) == "a: 2 fields imported, 1 conflict, 1 unknown row"


@pytest.mark.parametrize("day", ["2026-W05-6", "20261231"])
def test_a_day_in_another_form_of_the_standard_is_refused(day):
    (row, *_) = rows = rows_of()
    now, taken = merged(Register(rows), {row.obligation_id: SheetRow(Handling(due=day), Handling())})
    assert (now.handling(row.obligation_id), [one.found for one in taken.refused]) == (Handling(), [day])


def test_a_sheet_brings_no_status_or_day_that_the_page_would_not_take_and_the_rest_of_it(tmp_path):
    first, second, third, _ = rows = rows_of()
    edited = {
        first.obligation_id: Handling("Ann", "Done!", "31/12/2026"),
        second.obligation_id: Handling("Ben", "done", "2026-02-30"),
        third.obligation_id: Handling("Eve", "done", "2026-12-31"),
    }
    now, taken = merged(Register(rows), {name: SheetRow(one, Handling()) for name, one in edited.items()})
    assert now.handling(first.obligation_id) == Handling("Ann")
    assert now.handling(second.obligation_id) == Handling("Ben", "done")
    assert now.handling(third.obligation_id) == Handling("Eve", "done", "2026-12-31")
    result, *refused = taken.words("register.csv", rows)
    assert result == "register.csv: 6 fields imported, 0 conflicts, 0 unknown rows, 3 not imported"
    assert sum("due: expected a day, YYYY-MM-DD, found '31/12/2026'" in line for line in refused) == 1
    assert sum("status: expected one of open, in progress, done, not app" in line for line in refused) == 1
    assert all(line.startswith("not imported in ") for line in refused)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("soffice") is None, reason="no LibreOffice on this machine")
def test_five_hundred_rows_edited_and_saved_by_libreoffice_come_back_whole(tmp_path):
    demo = DEMOS["rulebook"]
    rows = tuple(register(load_corpus(demo.source, demo.format).passages))[:500]
    ids = [row.obligation_id for row in rows]
    notes = (
        "=1+1",
        "@x",
        "two  lines\nof it",
        "+44 20",
        "'quoted'",
        "007",
        "ä “ö” \u4e2d",
        "1.10",
        "TRUE",
        "2026-03-01",
    )
    handlings = {
        name: Handling(f"Owner {n}", "open", "2026-03-01", notes[n % len(notes)], "-")
        for n, name in enumerate(ids[::3])
    }
    held, file, saved = Register(rows, handlings), tmp_path / "register.xlsx", tmp_path / "saved"
    write_sheet(file, held, rows)
    book = load_workbook(file)
    for n in range(45):
        field = FIELDS[n % len(FIELDS)]
        words = {"status": "done", "due": "2027-01-31"}.get(field, f"edit {n}")
        book.active.cell(2 + 11 * n, 1 + HEADS.index(field), words)
    book.save(file)
    command = ["soffice", f"-env:UserInstallation=file://{tmp_path}/profile", "--headless", "--convert-to", "xlsx"]
    subprocess.run([*command, "--outdir", str(saved), str(file)], check=True, capture_output=True, timeout=300)
    if not (saved / file.name).is_file():
        pytest.skip("LibreOffice is here without Calc")
    since = dict(held.handlings)
    for n in range(5):
        mine = {"status": "in progress", "due": "2028-01-31"}.get(FIELDS[n], "mine")
        since[ids[11 * n]] = replace(held.handling(ids[11 * n]), **{FIELDS[n]: mine})
    now = replace(held, handlings=since)
    after, taken = merged(now, read_edits(saved / file.name, Handling))
    assert (taken.n_taken, len(taken.conflicts), taken.unknown) == (40, 5, ())
    assert {one.obligation_id for one in taken.conflicts} == {ids[11 * n] for n in range(5)}
    touched = {ids[11 * n] for n in range(45)}
    assert {name: one for name, one in after.handlings.items() if name not in touched} == {
        name: one for name, one in handlings.items() if name not in touched
    }
    back = load_workbook(saved / file.name).active
    for line, row in zip(back.iter_rows(min_row=2, values_only=True), rows, strict=True):
        assert (line[0], line[HEADS.index("text")]) == (row.obligation_id, row.text)
    assert [one.formula1 for one in back.data_validations.dataValidation] == [f'"{",".join(STATUSES)}"']


def test_no_cell_is_a_formula(tmp_path):
    row = replace(rows_of()[0], text="=HYPERLINK(1)", title="@cmd", number="+1")
    held = Register((row,), {row.obligation_id: Handling(note="-2")})
    for suffix in (".csv", ".xlsx"):
        write_sheet(tmp_path / f"some{suffix}", held, [row])
    lines = list(csv.reader((tmp_path / "some.csv").read_text(encoding="utf-8-sig").splitlines()))
    assert lines[1][HEADS.index("text")] == "'=HYPERLINK(1)"
    cells = load_workbook(tmp_path / "some.xlsx").active[2]
    assert {cell.data_type for cell in cells if cell.value} == {"s"}
    assert read_edits(tmp_path / "some.csv", Handling)[row.obligation_id].now.note == "-2"


@pytest.mark.parametrize(("name", "content"), [("a.csv", "id,owner\n1,2\n"), ("a.xlsx", "none"), ("a.csv", "")])
def test_a_file_that_is_no_register_is_refused(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(CorpusError):
        read_edits(tmp_path / name, Handling)
    with pytest.raises(CorpusError, match="ending in"):
        write_sheet(tmp_path / "a.txt", Register(), [])


def test_what_is_on_disk_is_what_was_saved(tmp_path):
    rows = rows_of()
    held = Register(rows, {rows[0].obligation_id: Handling("Ann", note="“done”")})
    save(tmp_path / "registers" / "some.jsonl", held)
    assert load(tmp_path / "registers" / "some.jsonl") == held
    assert load(tmp_path / "none.jsonl").rows == ()
    (tmp_path / "bad.jsonl").write_text("{}\n")
    with pytest.raises(CorpusError, match="cannot be read as a register"):
        load(tmp_path / "bad.jsonl")


def test_nothing_is_collected_while_a_large_register_is_read(tmp_path):
    (row, *_) = rows_of()
    save(tmp_path / "large.jsonl", Register(tuple(replace(row, obligation_id=f"{n:012x}") for n in range(3_000))))
    told = []
    gc.callbacks.append(lambda phase, _: told.append(phase))
    try:
        assert len(load(tmp_path / "large.jsonl").rows) == 3_000
    finally:
        gc.callbacks.pop()
    assert told.count("start") <= 1  # before or after it
    assert gc.isenabled()


def noted(name, note):
    return lambda held: replace(held, handlings={**held.handlings, name: Handling(note=note)})


def test_what_is_noted_is_added_to_the_file_and_a_line_that_was_half_written_is_none(tmp_path):
    rows, file = rows_of(), tmp_path / "some.jsonl"
    first, second = (row.obligation_id for row in rows[:2])
    change(file, lambda held: renewed(held, rows, "abc")[0])
    written = file.read_bytes()
    change(file, noted(first, "a\u2028b"))
    held = change(file, noted(second, "c"))
    assert file.read_bytes().startswith(written)
    whole = file.read_bytes()
    for cut in (1, 20):
        file.write_bytes(whole[:-cut])
        assert load(file).handlings == {first: Handling(note="a\u2028b")}
    assert change(file, noted(second, "c")) == load(file) == held
    assert (held.corpus, len(held.versions)) == ("abc", 1)
    change(file, lambda held: replace(held, handlings={}))
    file.write_bytes(file.read_bytes() + b" ")  # as if another process had written it
    assert load(file).handlings == {}


def test_nothing_that_was_noted_is_lost_to_twenty_kills_nor_to_a_second_writer(tmp_path):
    file, rows, moments = tmp_path / "some.jsonl", rows_of(), random.Random(37)
    change(file, lambda held: renewed(held, rows)[0])

    def work(turn, say):
        for n in range(40):
            change(file, noted(rows[n % 3].obligation_id, f"{turn}, {n}"))
            some = rows[: 3 + n % 8 // 4]
            if n % 4 == 3:
                change(file, lambda held, some=some: renewed(held, some)[0])  # a version is written whole
            say(n)

    for turn in range(1, 21):
        said = in_a_process(partial(work, turn), after=turn, moments=moments).said
        kept = load(file)
        for n in said[-3:]:  # what was said is there, or what the row was noted with next
            assert kept.handling(rows[n % 3].obligation_id).note in {f"{turn}, {n}", f"{turn}, {n + 3}"}
        assert kept.rows[:3] == rows[:3]
    change(file, lambda held: replace(held, handlings={}))

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(subprocess.run, [sys.executable, "-c", _WRITER, str(file)], check=True)
        for n in range(30):
            change(file, noted(f"mine {n}", "x"))
        other.result()
    assert len(load(file).handlings) == 60


def test_an_import_that_is_killed_is_done_by_importing_again(tmp_path):
    moments, (row, *_) = random.Random(7), rows_of()
    rows = tuple(replace(row, obligation_id=f"{n:012x}") for n in range(400))
    sheet = {one.obligation_id: SheetRow(Handling("Ann", note="x" * 200), Handling()) for one in rows}
    for turn in range(20):
        file = tmp_path / f"{turn}.jsonl"
        change(file, lambda _: Register(rows))

        def work(say, file=file):
            say("begun")
            change(file, lambda held: merged(held, sheet)[0])

        in_a_process(work, after=1, moments=moments)
        found = load(file)
        assert found.rows == rows
        assert merged(found, sheet)[1].conflicts == ()
        change(file, lambda held: merged(held, sheet)[0])
        assert len(load(file).handlings) == len(rows)


_WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
from ragqa.library.register_store import Handling, change
for n in range(30):
    change(Path(sys.argv[1]), lambda held: replace(held, handlings={**held.handlings, f"other {n}": Handling("Eve")}))
"""


def test_the_register_knows_what_it_held_at_every_version(tmp_path):
    file = tmp_path / "some.jsonl"
    texts = (TEXT, TEXT.replace("two days", "three days"), TEXT.replace(" A firm must act at once.", ""), TEXT)
    for rows in map(rows_of, (*texts, TEXT)):  # the same once more is no version
        change(file, lambda held, rows=rows: renewed(held, rows)[0])
    held = load(file)
    assert len(held.versions) == 4
    told = [[one.what for one in held.changes(version) if one.what != "unchanged"] for version in (1, 2, 3)]
    assert told == [[], ["changed", "changed"], ["new"]]
    assert held.changes() == held.changes(3)
    for version in (4, -1):
        with pytest.raises(ConfigError, match="from 1 to 3"):
            held.changes(version)
    assert Register(rows_of()).changes() == ()


def test_the_command(tmp_path, monkeypatch, ended):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))

    def run(*arguments):
        return ended("register", "rulebook", *arguments).out

    file = tmp_path / "rows.csv"
    run("--csv", str(file), "--document", "7")
    lines = list(csv.reader(file.read_text(encoding="utf-8-sig").splitlines()))
    assert lines[0] == list(HEADS)
    lines[1][HEADS.index("owner")] = "Ann"
    with file.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows(lines)
    said = run("--take", str(file))
    assert "1 field imported, 0 conflicts" in said
    assert "unchanged" in said
    rows = json.loads(run("--json", "--document", "7"))
    assert [row["owner"] for row in rows if row["owner"]] == ["Ann"]
    assert set(FIELDS) < set(rows[0])
    with locked(tmp_path / "registers" / "rulebook.lock", AssertionError):
        refused = ended("register", "rulebook", "--json", "--document", "7", code=2)
    assert "is being changed by another ragqa" in " ".join(refused.err.split())


def test_many_threads_that_open_registers_do_not_disturb_one_another(tmp_path, monkeypatch):
    paths = [tmp_path / f"{n}.jsonl" for n in range(5)]
    for path in paths:
        register_store.save(path, Register(corpus=path.stem))
    monkeypatch.setattr(register_store._OPENED, "capacity", 0)  # whatever one thread opens, another throws out
    failed, stop = [], threading.Event()

    def load(path):
        while not stop.is_set():
            try:
                assert register_store.load(path).corpus == path.stem
            except Exception as error:
                failed.append(error)
                return

    threads = [threading.Thread(target=load, args=(path,)) for path in paths]
    for thread in threads:
        thread.start()
    stop.wait(1)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failed

"""What a new version asks of its readers: twelve planted changes, the rows and answers that rest on them, no others."""

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from ragqa.corpus.demo import DEMOS
from ragqa.index import build_index, open_index
from ragqa.library import register_store as store
from ragqa.library.gap_rows import GapRow
from ragqa.library.gaps import GapStore
from ragqa.library.register import register
from ragqa.library.work_list import answers_before, gap_results, work_list
from ragqa.records.store import RecordStore
from ragqa.settings.config import IndexingConfig
from ragqa.settings.paths import Paths
from ragqa.types import Question
from ragqa.ui.html.library import work_html
from tests.support.fakes import FakeEncoder, answer
from tests.support.helpers import make_pipeline

pytestmark = pytest.mark.long
PLAN = json.loads(Path(__file__).with_name("second_version.json").read_text(encoding="utf-8"))


def second_version(rows):
    """The document with what was planted in it, and what is no change of an obligation."""
    found = [dict(row) for row in rows if row["PassageID"] not in PLAN["removed"]]
    for number, was, now in PLAN["edits"]:
        (row,) = [row for row in found if row["PassageID"] == number]
        assert row["Passage"].count(was) == 1, number
        row["Passage"] = row["Passage"].replace(was, now)
    for row in found:
        row["PassageID"] = PLAN["renumbered"].get(row["PassageID"], row["PassageID"])
    for after, number, text in PLAN["inserted"]:
        place = next(n for n, row in enumerate(found) if row["PassageID"] == after)
        found.insert(place + 1, {"ID": number, "DocumentID": 9, "PassageID": number, "Passage": text})
    return found


def indexed(folder, paths):
    build_index("rules", folder, indexes=paths.indexes, config=IndexingConfig(), encoder=FakeEncoder())
    return open_index("rules", paths.indexes)


@pytest.fixture
def world(tmp_path, monkeypatch):
    """The corpus in its second version, its register of both, and an answer for each of some passages of the first."""
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    monkeypatch.setenv("RAGQA_INDEXES", str(tmp_path / "indexes"))
    paths, folder = Paths.from_env(), tmp_path / "source"
    folder.mkdir()
    for name in ("8.json", "9.json"):
        shutil.copy(DEMOS["rulebook"].source / "documents" / name, folder)
    first = indexed(folder, paths)
    records = RecordStore(paths.records)
    texts = {passage.number: passage for passage in first.passages if passage.document_id == "9"}
    kept = {}
    for number in PLAN["answers"]:
        record_id = list(make_pipeline(records=records).run(Question(f"What does {number} say?")))[-1].record_id
        made = records.load(record_id)
        cites = replace(made.candidates[0], passage_id=texts[number].passage_id)
        manifest = {**made.manifest, "corpus_sha256": first.manifest.corpus_sha256}
        said = answer("It says so.", [(1,)])
        records.save(
            replace(
                made,
                index="rules",
                passages=(texts[number],),
                candidates=(cites,),
                rankings=(),
                manifest=manifest,
                answer=said,
                scored=None,
            )
        )
        kept[number] = record_id
    file = paths.registers / "rules.jsonl"
    rows = tuple(register(first.passages))
    handled = {}
    for number in PLAN["handled"]:
        row = next(row for row in rows if (row.document_id, row.number) == ("9", number))
        handled[row.obligation_id] = store.Handling("Ann", "open", note=number)
    store.change(file, lambda _: replace(store.renewed(store.Register(), rows)[0], handlings=handled))
    document = json.loads((folder / "9.json").read_text(encoding="utf-8"))
    (folder / "9.json").write_text(json.dumps(second_version(document)), encoding="utf-8")
    return paths, indexed(folder, paths), file, kept


def test_the_planted_changes_are_found_with_what_rests_on_them_and_nothing_else(world):
    paths, index, file, kept = world
    found = store.change(file, lambda before: store.renewed(before, tuple(register(index.passages)))[0])
    answers = answers_before("rules", index.manifest.corpus_sha256, RecordStore(paths.records))
    folder = paths.home / "gaps" / "rules"
    now, then = found.rows, [one.row for one in found.past]
    for policies, rows in {"ours": then, "read again": [*then, *now], "hidden": then}.items():
        (folder / policies).mkdir(parents=True)
        gaps = GapStore(folder / policies)
        for row in rows:
            gaps.put(GapRow(row, "covered"), "")
        gaps.close()
    results = gap_results(folder, ("ours", "read again", "rules"))
    items = work_list(found, found.changes(), answers, index, results)
    for one in items:
        resting = {"new": [], "changed": ["ours"], "gone": ["ours", "read again"]}[one.change.what]
        assert one.gaps == dict.fromkeys(resting, "covered")
    html = work_html(items, "rules", {"read again": "Staff handbook"}, n_versions=2)
    assert '<a href="gaps?corpus=rules&amp;policies=read%20again" target="_self">Staff handbook</a>' in html
    told = {(one.change.what, one.row.number): one for one in items}
    assert sorted((one.change.what, one.row.number) for one in items) == sorted(
        (what, number) for what, number, _ in PLAN["planted"]
    )
    for what, number, words in PLAN["planted"]:
        assert any(words in one.row.text for one in items if (one.change.what, one.row.number) == (what, number)), words
    assert len(told) == len(PLAN["planted"]) - 1  # two in one rule
    for number, expected in PLAN["answers"].items():
        resting = [one.change.what for one in items if kept[number] in one.answers]
        assert sorted(resting) == sorted(expected), number
    for number, expected in PLAN["handled"].items():
        assert [one.change.what for one in items if one.handling.note == number] == expected


def test_the_command_lists_it_also_for_an_answer_from_a_version_between(world, monkeypatch, ended):
    paths, index, _, kept = world

    def run(*arguments):
        return ended("register", "rules", "--changes", *arguments).out

    said = " ".join(run().split())
    assert "Version 2: 4 new, 5 changed, 3 gone. 4 kept answers to look at." in said
    assert "within [-60-] {+30+} days" in said
    rows = json.loads(run("--json"))
    assert Counter(row["what"] for row in rows) == {"changed": 5, "new": 4, "gone": 3}
    (gone,) = [row for row in rows if row["number"] == "4.2.3"]
    assert (gone["owner"], gone["answers"], gone["after"]) == ("Ann", {kept["4.2.3"]: "What does 4.2.3 say?"}, "")
    assert json.loads(run("--json", "--document", "8")) == []

    records = RecordStore(paths.records)
    (now,) = [one for one in index.passages if one.passage_id == "9:6.1.1"]
    between = records.load(kept["6.1.1"])
    records.save(replace(between, passages=(now,), manifest={"corpus_sha256": index.manifest.corpus_sha256}))
    document = json.loads((paths.home / "source" / "9.json").read_text(encoding="utf-8"))
    for row in document:
        row["Passage"] = row["Passage"].replace("within 48 hours", "within 36 hours")
    (paths.home / "source" / "9.json").write_text(json.dumps(document), encoding="utf-8")
    indexed(paths.home / "source", paths)
    for since in ((), ("--since", "1")):
        rows = json.loads(run("--json", *since))
        assert [list(row["answers"]) for row in rows if "36 hours" in row["after"]] == [[kept["6.1.1"]]]
    assert len(rows) == len(PLAN["planted"])

"""What the items of a case refer to: documents, rows of a register, gap runs, and records whose rules have changed."""

import shutil
from dataclasses import replace

import pytest

from ragqa.index import build_index, open_index
from ragqa.infra.journal import JOURNAL, Journal
from ragqa.library.case_items import ItemLooker
from ragqa.library.collection import make_collection
from ragqa.library.register import Obligation
from ragqa.library.register_store import Handling, Register, save
from ragqa.records.sign_off import changes
from ragqa.records.store import RecordStore
from ragqa.settings.config import IndexingConfig
from ragqa.settings.paths import Paths
from ragqa.types import Question
from ragqa.types.scores import Strength
from tests.support.fakes import FakeEncoder
from tests.support.helpers import make_pipeline

pytestmark = pytest.mark.long
ROW = Obligation("0a1b2c", "A firm must act at once.", Strength.MUST, "rules", "Rules", "1.1", "rules:1", 0, 24)


@pytest.fixture
def world(tmp_path):
    """A looker who may read ``rules`` and ``policies``, not ``closed``; ``rebuild`` gives a corpus another text."""
    paths = Paths(tmp_path, tmp_path / "indexes")

    def rebuild(name, text, file="1.md"):
        source = tmp_path / f"source-{name}"
        source.mkdir(exist_ok=True)
        (source / file).write_text(f"# Rules\n\n{text}\n")
        build_index(name, source, indexes=paths.indexes, config=IndexingConfig(), encoder=FakeEncoder())

    for name in ("rules", "policies", "closed"):
        rebuild(name, "A firm must act at once.")
    corpus = lambda name: open_index(name, paths.indexes) if name in {"rules", "policies"} else None  # noqa: E731
    return paths, ItemLooker(RecordStore(paths.records), paths, corpus), rebuild


def test_a_document_is_its_text_and_a_closed_corpus_shows_nothing(world):
    paths, look, rebuild = world
    document = open_index("rules", paths.indexes).passages[0].document_id
    ref = f"document:rules/{document}"
    wrong = (f"document:closed/{document}", "document:rules/none", "document:rules", "document:../rules/1.md", "x", "")
    (before,) = look([ref, *wrong]).values()
    assert "act at once" in before.text
    assert before.address.startswith("read?corpus=rules&document=")
    assert look([ref])[ref] == before
    rebuild("rules", "A firm must act within a day.")
    assert changes(before.parts, look([ref])[ref].parts) == ("document changed",)


def test_a_row_is_its_words_and_how_it_is_dealt_with(world):
    paths, look, _ = world
    ref = f"row:rules/{ROW.obligation_id}"
    assert look([ref]) == {}
    save(paths.registers / "rules.jsonl", Register((ROW,)))
    before = look([ref])[ref]
    assert before.title == "Rules 1.1 A firm must act at once."
    save(paths.registers / "rules.jsonl", Register((ROW,), {ROW.obligation_id: Handling("Bob", "done")}))
    now = look([ref, "row:rules/none", f"row:closed/{ROW.obligation_id}"])
    assert set(now) == {ref}
    assert "Bob" in now[ref].text
    assert changes(before.parts, now[ref].parts) == ("handling changed",)
    (paths.registers / "rules.jsonl").write_text("no register")
    assert look([ref]) == {}


def test_a_gap_run_is_what_was_found_and_what_people_said(world):
    paths, look, _ = world
    folder, ref = paths.home / "gaps" / "rules" / "policies", "gaps:rules/policies"
    folder.mkdir(parents=True)
    journal = Journal(folder / JOURNAL)
    list(journal.read())
    assert look([ref]) == {}
    gap = {"row": {"obligation_id": "0a1b2c", "text": "A firm must act at once."}, "label": "covered"}
    journal.append({"gap": gap})
    before = look([ref])[ref]
    assert before.title == "policies held against rules, 1 row"
    journal.append({"gap": gap})  # read again, to the same end
    assert look([ref, "gaps:rules/closed", "gaps:rules/..", "gaps:rules/"]) == {ref: before}
    journal.append({"gap": gap | {"label": "conflicts"}})
    journal.close()
    (folder / "corrections.json").write_text("{}")
    assert changes(before.parts, look([ref])[ref].parts) == ("results changed", "corrections changed")
    assert before.address == "gaps?corpus=rules&policies=policies"
    assert before.versions["sha256 of the policies"] == open_index("policies", paths.indexes).manifest.corpus_sha256
    make_collection("rules", paths.library, "Rules of 2026")
    assert look([ref])[ref].title == "policies held against Rules of 2026, 1 row"  # as its memo has it
    shutil.rmtree(paths.library)
    save(paths.registers / "rules.jsonl", Register((replace(ROW, obligation_id="another"),)))
    assert look([ref])[ref].title == "policies held against rules, 0 rows"  # none of its rows is there any more
    journal = Journal(folder / JOURNAL)
    list(journal.read())
    told = {"obligation_id": "old", "document_id": ROW.document_id, "text": ROW.text}
    journal.append({"gap": {"row": told, "label": "covered"}})
    journal.close()
    assert look([ref])[ref].title == "policies held against rules, 1 row"  # the same rule, which has another number now


def test_a_record_says_when_the_rules_that_it_cites_have_changed(world):
    paths, look, rebuild = world
    record = look.records.load(list(make_pipeline(records=look.records).run(Question("Who?")))[-1].record_id)
    index = open_index("rules", paths.indexes)
    passages = (replace(record.passages[0], passage_id=index.passages[0].passage_id, text=index.passages[0].text),)
    renamed = {record.passages[0].passage_id: passages[0].passage_id}
    candidates = tuple(
        replace(one, passage_id=renamed[one.passage_id]) for one in record.candidates if one.passage_id in renamed
    )
    manifest = {"corpus_sha256": index.manifest.corpus_sha256}
    look.records.save(
        replace(
            record, index="rules", passages=passages, candidates=candidates, rankings=(), manifest=manifest, trace=()
        )
    )
    ref = f"record:{record.record_id}"
    before = look([ref, "record:none"])[ref]
    assert set(before.parts) == {"record", "rules cited"}
    assert before.versions["sha256 of the corpus"] == index.manifest.corpus_sha256
    rebuild("rules", "A bank may wait.", "2.md")
    assert changes(before.parts, look([ref])[ref].parts) == ()  # the corpus is another, not what is cited
    rebuild("rules", "A firm must act within a day.")
    assert changes(before.parts, look([ref])[ref].parts) == ("rules cited changed",)

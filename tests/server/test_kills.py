"""kill -9 while an index is built, files are dropped, questions asked, records of an earlier version opened.

Whatever a process has said is done stays done, nothing is half, and doing again what was under way ends as if nothing
had happened. `ragqa score` and `ragqa eval answers` are killed in tests/evaluation.
"""

import io
import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from ragqa.index import build_index, list_indexes, open_index, verify_index
from ragqa.infra.files import sha256_of
from ragqa.library import parse_cache
from ragqa.library.collection import TRASH, Collection, collection_of, make_collection
from ragqa.library.transfer import delete, deleted, restore
from ragqa.library.update import MAX_TOKENS, index_events
from ragqa.library.upload import take
from ragqa.records.case_store import CaseStore
from ragqa.records.store import RecordStore
from ragqa.scoring import strength
from ragqa.server.access.audit import AuditLog
from ragqa.server.access.desk import CaseDesk
from ragqa.server.access.gate import Gate
from ragqa.server.access.policy import Act
from ragqa.settings.config import IndexingConfig
from ragqa.types import Question
from ragqa.types.events.pipeline import Answered, Recorded
from ragqa.types.scores import Strength
from ragqa.types.streams import returned
from tests.support.document_files import RULES, write_docx, write_html
from tests.support.fakes import FakeEncoder
from tests.support.fuzzed import Inside
from tests.support.helpers import make_pipeline
from tests.support.killed import in_a_process

pytestmark = pytest.mark.long
OLD = Path(__file__).parents[1] / "fixtures" / "v0.1.0" / "records.sqlite3"
MANY = [pytest.param(20, marks=pytest.mark.slow)]


def spread(n_changes, n_kills):
    """That many moments of a work, evenly over its changes of files, from 1."""
    return [1 + (2 * n + 1) * n_changes // (2 * n_kills) for n in range(n_kills)]


# Indexes ------------------------------------------------------------------------------------------------------------


def building(folder, text):
    """The work of building an index of three files."""

    def do(_say):
        (folder / "source").mkdir(parents=True, exist_ok=True)
        for number in range(3):
            (folder / "source" / f"{number}.md").write_text(f"# Rules {number}\n\n{text} {number} at once.\n")
        source, indexes = folder / "source", folder / "indexes"
        build_index("demo", source, indexes=indexes, config=IndexingConfig(), encoder=FakeEncoder(), format="text")

    return do


def outcome(look, folder):
    """What a process of its own says of the folder."""
    return in_a_process(lambda say: say(look(folder))).said[0]


def index_of(folder):
    """The texts of the index, after each of its hashes was compared, and the hashes."""
    index = open_index("demo", folder / "indexes")
    verify_index("demo", folder / "indexes")
    return [[one.text for one in index.passages], {one.path: one.sha256 for one in index.manifest.files}]


@pytest.mark.parametrize("n_kills", [1, *MANY])
def test_an_index_is_the_old_or_the_new_one(tmp_path, n_kills):
    before, then = "Firms must act", "Banks must wait"
    in_a_process(building(tmp_path / "whole", before))
    old = outcome(index_of, tmp_path / "whole")
    whole = in_a_process(building(tmp_path / "whole", then))
    new = outcome(index_of, tmp_path / "whole")
    assert old[0] != new[0]
    for moment in spread(whole.changes, n_kills):
        folder = tmp_path / str(moment)
        in_a_process(building(folder, before))
        assert in_a_process(building(folder, then), at_change=moment).changes is None
        assert outcome(index_of, folder) in (old, new), moment
        in_a_process(building(folder, then))
        assert outcome(index_of, folder) == new, moment
        assert [one.name for one in (folder / "indexes").iterdir() if one.is_dir()] == ["demo"], moment


# The library --------------------------------------------------------------------------------------------------------


class FakeStrengths:
    """Stands in for the model, whose threads a fork does not have: it would wait for them for ever."""

    def strengths(self, texts):
        return [Strength.MUST if "must" in text else Strength.NONE for text in texts]


class Curator:
    """Does what may be done again where it was cut off."""

    def __init__(self, home):
        self.library, self.indexes, self.reader = home / "library", home / "indexes", Inside()

    @property
    def collection(self):
        return collection_of("ferries", self.library)

    def drop(self, name, data):
        take(self.collection or make_collection("ferries", self.library), name, io.BytesIO(data), self.reader)
        for one in self.collection.read().staged:
            parse_cache.read(self.collection, one, self.reader, MAX_TOKENS)

    def index(self):
        returned(index_events(self.collection, self.indexes, FakeEncoder))

    def remove(self):
        for one in self.collection.read().documents:
            if one.name == "boats.docx":
                self.collection.set_removed(one.document_id, removed=True)

    def discard(self):
        self.collection.unstage(tuple(one.name for one in self.collection.read().staged))

    def throw_away(self):
        if self.collection:
            delete(self.collection, self.indexes)

    def bring_back(self):
        for one in deleted(self.library):
            restore(one.key, self.library, self.indexes)

    def steps(self, first, second, changed, note, other):
        """What is done in a week, step by step."""
        return [
            *(partial(self.drop, "ferries.html", first), partial(self.drop, "boats.docx", second), self.index),
            *(partial(self.drop, "ferries.html", changed), self.index),
            *(partial(self.drop, "note.md", note), partial(self.drop, "note.md", other), self.discard),
            *(self.remove, self.index, self.throw_away, self.bring_back),
        ]


def state(home):
    """What the library holds; asserts that each file that it speaks of is there, whole, and what it says."""
    collection, where = collection_of("ferries", home / "library"), "library"
    if collection is None:
        thrown = deleted(home / "library")
        if not thrown:
            return {"where": "nowhere", "files": [], "indexed": None}
        collection, where = Collection(home / "library" / TRASH / thrown[0].key), "trash"
    catalogue = collection.read()
    for one in (*catalogue.documents, *catalogue.staged):
        assert collection.path_of(one).is_file(), f"{one.name} is gone"
        assert sha256_of(collection.path_of(one)) == one.sha256, f"{one.name} is another file"
    if (
        catalogue.indexed is not None
        and where == "library"
        and "ferries" in {one.name for one in list_indexes(home / "indexes")}
    ):
        verify_index("ferries", home / "indexes")
    staged = [["staged", one.name, one.sha256] for one in catalogue.staged]
    documents = [["gone" if one.removed else "held", one.name, one.sha256] for one in catalogue.documents]
    return {"where": where, "files": sorted(staged + documents), "indexed": catalogue.indexed}


def contents(found):
    return {sha256 for _, _, sha256 in found["files"]}


@pytest.mark.parametrize("n_kills", [2, pytest.param(30, marks=pytest.mark.slow)])
def test_what_was_dropped_is_there_and_whole(tmp_path, n_kills, monkeypatch):
    monkeypatch.setattr(strength, "load_strength", FakeStrengths)
    write_html(tmp_path / "a")
    write_docx(tmp_path / "b")
    write_html(tmp_path / "c", RULES[:6])
    files = [(tmp_path / name).read_bytes() for name in "abc"] + [b"# Note\n\nFerries run.", b"# N\n\nNo."]

    def work(home, since=0):
        def do(say):
            for number, step in enumerate(Curator(home).steps(*files)):
                if number >= since:
                    step()
                    say([number, state(home)])

        return do

    whole = in_a_process(work(tmp_path / "whole"))
    after = [found for _, found in whole.said]
    for moment in spread(whole.changes, n_kills):
        home = tmp_path / str(moment)
        ended = in_a_process(work(home), at_change=moment)
        assert ended.changes is None
        assert ended.said == whole.said[: len(ended.said)]
        n_done = len(ended.said)
        found = outcome(state, home)
        if n_done:
            before, then = after[n_done - 1], after[n_done]
            assert contents(before) & contents(then) <= contents(found) <= contents(before) | contents(then), moment
        rest = in_a_process(work(home, n_done))
        assert rest.said[-1] == whole.said[-1], (moment, n_done)


# Questions ----------------------------------------------------------------------------------------------------------


def whole_records(file):
    """The status of each record of the store; asserts that the database and each record in it are whole."""
    store = RecordStore(file)
    if isinstance(file, Path):
        with closing(sqlite3.connect(file)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    found = {one.record_id: one.status for one in store.list(limit=100_000)}
    assert all(store.load(name).status == status for name, status in found.items())
    return found


@pytest.mark.parametrize("n_kills", [2, *MANY])
def test_an_answer_that_was_shown_is_kept_and_its_question_logged(tmp_path, place, n_kills):
    moments, file, log = random.Random(19), place, AuditLog(tmp_path / "audit")

    def ask(say):
        gate = Gate(audit=log)
        pipeline = make_pipeline(records=gate.seeing(RecordStore(file)))
        while True:
            with gate.doing(Act.QUESTION, "rulebook"):
                say("logged")
                for event in pipeline.run(Question("Who must act?")):
                    if isinstance(event, Answered):
                        say("answered")
                    elif isinstance(event, Recorded):
                        say(["scored", event.record_id])

    n_logged, scored = 0, []
    for _ in range(n_kills):
        said = in_a_process(ask, after=moments.randrange(1, 40), moments=moments).said
        n_logged += said.count("logged")
        n_answered = said.count("answered")
        scored += [one[1] for one in said if isinstance(one, list)]
        found = whole_records(file) if n_answered else {}
        assert all(found[name] == "scored" for name in scored)
        assert len(found) >= len(scored)
        log.append("mark", "x")  # which puts back what was being written
        assert log.verify().broken is None
        assert sum(one["act"] == "question" for one in log.entries()) >= n_logged
    assert scored


# Cases --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_kills", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_what_was_said_of_a_case_is_kept_and_logged(tmp_path, place, n_kills):
    moments, log = random.Random(37), AuditLog(tmp_path / "audit")
    desk = CaseDesk(Gate(), CaseStore(place), lambda refs: {}, log, "Ann")
    case_id = in_a_process(lambda say: say(desk.begin("Outsourcing").case_id)).said[0]

    def work(say):
        for n in range(1_000):
            desk.note(case_id, f"{kill}.{n}")
            say(f"{kill}.{n}")

    for kill in range(n_kills):
        first = desk.store.load(case_id).version
        done = in_a_process(work, after=moments.randrange(1, 30), moments=moments)
        case = desk.store.load(case_id)  # its chain of hashes is whole
        texts = [one.text for one in case.notes]
        assert set(done.said) <= set(texts), kill
        assert len(texts) == len(set(texts)) <= case.version - 1
        assert case.version - first in (len(done.said), len(done.said) + 1)
        desk.note(case_id, f"after kill {kill}")
        assert log.verify().broken is None
        logged = sum(one.get("what") == "noted" for one in log.entries())
        assert logged >= len(texts) + 1


# Records of an earlier version ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_kills", [2, *MANY])
def test_records_of_an_earlier_version_outlive_being_opened(tmp_path, n_kills):
    moments = random.Random(19)
    before = whole_records(shutil.copy(OLD, tmp_path / "undisturbed.sqlite3"))

    def open_and_write(file):
        def do(say):
            store = RecordStore(file)
            say(store.shared_with(next(iter(before))))  # the table that 0.1.0 did not have
            for number in range(200):
                for name in before:
                    store.save(replace(store.load(name), record_id=f"{name}-{number}"))
                    say(f"{name}-{number}")

        return do

    for number in range(n_kills):
        file = Path(shutil.copy(OLD, tmp_path / f"{number}.sqlite3"))
        said = in_a_process(open_and_write(file), after=moments.choice([0, 0, 1, 2, 9, 30]), moments=moments).said
        found = whole_records(file)
        assert before.items() <= found.items()
        assert set(said[1:]) <= found.keys()
        assert len(found) <= len(before) + len(said)

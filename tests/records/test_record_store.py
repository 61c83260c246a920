"""The store in either place: who sees what, runs, schemas of other versions, copies, and servers that go away."""

import multiprocessing
import random
import re
import threading
import time
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from ragqa.cli import app
from ragqa.errors import ConfigError, RecordError
from ragqa.records.database import MIGRATIONS, AwayError, PostgresEngine, engine_of
from ragqa.records.reader import RecordReader
from ragqa.records.store import RecordStore
from ragqa.settings.paths import Paths
from ragqa.types import Question
from ragqa.types.events.scoring import PartRelevance, Relevance
from tests.support.helpers import make_pipeline


@pytest.fixture
def store(place):
    return RecordStore(place, patience=60)


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    store = RecordStore(tmp_path_factory.mktemp("one") / "records.sqlite3")
    list(make_pipeline(records=store).run(Question("Who must act?")))
    return replace(store.load(store.list()[0].record_id), manifest={"corpus_sha256": "c0ffee"})


def numbered(record, *numbers):
    return (replace(record, record_id=f"r{number:03}") for number in numbers)


def reader(author, *names, hidden=(), refused=None):
    return RecordReader(
        author, frozenset({author, *names}), frozenset(hidden), ([] if refused is None else refused).append
    )


def ids(store):
    return [one.record_id for one in store.list()]


def test_everybody_sees_their_own_and_what_is_shared_with_them(store, record):
    one, two, nobodys = numbered(record, 1, 2, 3)
    guessed = []
    ann, bob = store.seen_by(reader("ann")), store.seen_by(reader("bob", "group:insurers", refused=guessed))
    ann.save(one)
    bob.save(two)
    store.save(nobodys)
    assert (ids(ann), ids(bob), ids(store)) == (["r001"], ["r002"], ["r003", "r002", "r001"])
    for stranger in (bob.load, bob.check, bob.shared_with, lambda one: bob.share(one, "bob", shared=True)):
        with pytest.raises(RecordError, match="no record 'r001'"):
            stranger("r001")
    assert guessed == ["r001"] * 4
    (sealed,) = bob.sealed(["r001", "r002"]).values()
    assert (sealed.record_id, sealed.corpus_sha256, sealed.authors) == ("r002", "c0ffee", ("bob",))
    assert (sealed.title, record.answer.text in sealed.text) == (record.question.title, True)
    ann.share("r001", "group:insurers", shared=True)
    ann.share("r001", "group:insurers", shared=True)
    assert bob.load("r001") == one
    assert (ann.shared_with("r001"), bob.shared_with("r001")) == (("group:insurers",), None)
    with pytest.raises(RecordError, match="no record"):
        bob.share("r001", "bob", shared=True)
    assert ids(store.seen_by(reader("bob", "group:insurers", hidden=[record.index]))) == []
    assert ids(store.seen_by(replace(reader("eve"), names=frozenset()))) == []
    assert ids(store.seen_by(replace(reader("eve"), everything=True))) == ["r003", "r002", "r001"]
    ann.share("r001", "ann", shared=False)
    ann.share("r001", "group:insurers", shared=False)
    assert (ids(ann), ids(bob)) == (["r001"], ["r002"])


def test_words_are_found_in_question_or_note_in_any_case_and_any_alphabet(store, record):
    for one in numbered(record, 1, 2, 3):
        store.save(replace(one, question=Question(f"Wer darf in ÄGYPTEN {one.record_id}?")))
    store.set_note("r002", "Für ΣΟΦΙΑ, 100 %")
    assert [one.record_id for one in store.list(words="ägypten DARF")] == ["r003", "r002", "r001"]
    assert [one.record_id for one in store.list(1, after=1, words="ägypten")] == ["r002"]
    assert [one.record_id for one in store.list(words="σοφια 100 wer")] == ["r002"]
    assert store.list(words="1%0") == store.list(words="r_0") == ()


def test_records_are_found_by_result_day_and_author(store, record):
    answer = record.answer
    for one, told in zip(
        numbered(record, 1, 2, 3), ({}, {"is_refusal": True}, {"not_found": ("when it is due",)}), strict=True
    ):
        saved = replace(one, answer=replace(answer, **told), created_at=f"2026-05-0{one.record_id[-1]}T23:59:00+00:00")
        store.seen_by(reader("ann" if told else "bob")).save(saved)
    part = PartRelevance("Who?", "who", 0.5, 0.5, 0.5, 0.5, 0, "Sentence 1 answers.", is_read=True)
    store.save(replace(record, record_id="r005", answer_relevance=Relevance(0.5, (part,))))
    store.save(replace(record, record_id="r004", question=Question("", given="We act.")))
    store.save(replace(record, record_id="r006", answer=replace(answer, choices=("Fees, under A?", "Fees, under B?"))))
    words = {"r001": "Answered", "r002": "Not found", "r003": "Partly answered"}
    words |= dict.fromkeys(("r005", "r006"), "Possibly answered")
    found = store.results(["r001", "r002", "r003", "r004", "r005", "r006"])
    assert {name: found[name] for name in words} == words
    assert found["r004"].startswith("Checked: 1 ")
    assert [one.record_id for one in store.list(result="Not found")] == ["r002"]
    assert [one.record_id for one in store.list(since="2026-05-02", until="2026-05-03")] == ["r003", "r002"]
    assert [one.record_id for one in store.list(1, after=1, author="ann")] == ["r002"]
    assert store.authors() == ("ann", "bob")
    assert store.seen_by(reader("ann")).results(["r001"]) == {}


def test_a_record_is_discarded_by_its_author_had_back_for_a_day_and_then_deleted(store, record, monkeypatch):
    ann, bob = store.seen_by(reader("ann")), store.seen_by(reader("bob"))
    for one in numbered(record, 1, 2):
        ann.save(one)
    ann.share("r001", "bob", shared=True)
    for others in (bob.discard, lambda one: bob.set_note(one, "x")):
        with pytest.raises(RecordError):
            others("r001")
    ann.set_note("r001", "for the board")
    ann.discard("r001")
    assert (ids(ann), ids(bob), ids(store)) == (["r002"], [], ["r002"])
    with pytest.raises(RecordError):
        bob.restore("r001")
    ann.restore("r001")
    assert (ids(ann), ann.note("r001")) == (["r002", "r001"], "for the board")
    ann.discard("r001")
    monkeypatch.setattr("ragqa.records.store.UNDO_DAYS", -1)
    ann.discard("r002")
    assert store.chosen(["r001", "r002"]) == ()


@pytest.mark.parametrize("text", ["'; DROP TABLE records; --", "%s", "?", "r\x00", "é" * 300, ""])
def test_an_id_that_is_none_finds_nothing(store, text):
    store.list()
    with pytest.raises(RecordError):
        store.load(text)
    assert store.list() == ()


def test_a_run_is_known_to_who_began_it_and_leads_to_its_record(store, record):
    ann = store.seen_by(reader("ann"))
    ann.begin("run-1")
    assert ann.run("run-1").record_id == ""
    ann.save(record)
    ann.link("run-1", record.record_id)
    assert (ann.run("run-1").record_id, ann.run("run-1").who) == (record.record_id, "ann")
    assert store.run("run-1") == ann.run("run-1")
    assert store.seen_by(reader("bob")).run("run-1") is None
    assert store.run("run-2") is None


def test_a_store_of_before_versions_is_brought_forward_and_a_later_one_is_refused(place, record):
    engine = engine_of(place)
    with engine.transaction(alone=True) as execute:
        for number in (0, 1):
            execute(engine.own(MIGRATIONS[number]))
    RecordStore(place).save(record)
    assert RecordStore(place).load(record.record_id) == record
    versions = [(n + 1,) for n in range(len(MIGRATIONS))]
    with engine.transaction() as execute:
        assert execute("SELECT version FROM store_version ORDER BY version").fetchall() == versions
        execute("INSERT INTO store_version VALUES (99)")
    with pytest.raises(RecordError, match=f"schema 99, this ragqa knows {len(MIGRATIONS)}.*upgrade"):
        RecordStore(place).list()


def test_processes_that_begin_at_once_make_one_schema(place):
    found = []
    threads = [threading.Thread(target=lambda: found.append(RecordStore(place).list())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [()] * 8


def test_a_copy_takes_all_along_and_leaves_what_is_there(store, record, tmp_path):
    old = RecordStore(tmp_path / "old.sqlite3")
    for one in numbered(record, *range(120)):
        old.seen_by(reader("ann")).save(one)
    old.share("r007", "bob", shared=True)
    old.seen_by(reader("ann")).set_note("r005", "Ask Bob.")
    store.save(replace(record, record_id="r001", status="answered"))
    done = old.copy_to(store)
    assert (done.copied, done.known, done.different) == (119, 1, ("r001",))
    assert store.load("r001").status == "answered"
    assert store.note("r005") == "Ask Bob."
    assert ids(store.seen_by(reader("bob"))) == ["r007"]
    again = old.copy_to(store)
    assert (again.copied, again.known) == (0, 120)
    back = RecordStore(tmp_path / "back.sqlite3")
    store.copy_to(back)
    assert back.load("r007") == old.load("r007")
    assert back.list(500) == store.list(500)


def test_a_second_copy_shares_nothing_anew(record, tmp_path):
    old, new = (RecordStore(tmp_path / f"{name}.sqlite3") for name in ("old", "new"))
    old.seen_by(reader("ann")).save(record)
    old.share(record.record_id, "bob", shared=True)
    old.copy_to(new)
    new.share(record.record_id, "bob", shared=False)
    old.copy_to(new)
    assert new.shared_with(record.record_id) == ()


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:s3cret@word@h/db",
        "postgresql://u:s3cret#@h/db",
        "postgresql://u:s3cret%zz@h/db",
        "postgresql://u:s3cret%00@h/db",
        "postgresql://u:s3cret/@h/db",
        "postgresql://u:s3cret@h",
        "mysql://u:s3cret@h/db",
        "postgresql://u:s3cret@h/db?bogus=s3cret",
    ],
)
def test_an_address_that_cannot_be_understood_is_not_repeated(address):
    pytest.importorskip("psycopg")
    with pytest.raises((ConfigError, RecordError), match="RAGQA_RECORDS") as told:
        RecordStore(address).list()
    cause = told.value.__cause__
    assert "s3cret" not in f"{told.value} {cause}"


def test_the_address_stands_in_no_representation():
    paths = Paths(records_at="postgresql://u:s3cret@h/db")
    assert "s3cret" not in repr(paths)
    assert paths.records.endswith("@h/db")
    assert Paths(records_at="/a/b.sqlite3").records.name == "b.sqlite3"


@pytest.mark.long
class TestServer:
    @pytest.fixture
    def place(self, postgres):
        return postgres.new_database()

    def test_one_that_refuses_says_so_at_once_and_without_the_password(self, postgres):
        name = re.escape(f"postgresql://127.0.0.1:{postgres.port}/")
        for address, words in (
            (postgres.address("postgres", "wr0ng-word"), "password authentication failed"),
            (postgres.address("nowhere"), 'database "nowhere" does not exist'),
        ):
            with pytest.raises(RecordError, match=f"server {name}.* denies access: .*{words}.*RAGQA_RECORDS") as told:
                RecordStore(address).begin("run")
            assert not isinstance(told.value, AwayError)
            assert "word@" not in str(told.value)
            assert "wr0ng-word" not in str(told.value)

    def test_one_that_is_not_there_says_so(self, postgres):
        address = postgres.address("postgres").replace(str(postgres.port), "1")
        with pytest.raises(AwayError, match=r"postgresql://127.0.0.1:1/postgres is unreachable: .*refused.*try again"):
            RecordStore(address).list()
        with pytest.raises(AwayError, match="is unreachable"):
            RecordStore(address, patience=0.3).share("r", "w", shared=True)

    def test_what_is_stored_waits_for_a_server_that_is_started_again(self, postgres, store, record):
        one, two, three = numbered(record, 1, 2, 3)
        store.save(one)
        for end, save in ((postgres.kill, two), (postgres.stop, three)):
            end()
            with pytest.raises(AwayError, match="is unreachable"):
                store.list()
            thread = threading.Thread(target=store.save, args=(save,))
            thread.start()
            time.sleep(0.5)
            postgres.start()
            thread.join()
        assert ids(store) == ["r003", "r002", "r001"]

    def test_a_commit_that_was_cut_off_is_done_once(self, postgres, store, record):
        """Every connection is ended by the server, over and over, while others save: each record is there, once."""
        saved, stop = [], threading.Event()
        store.list()

        def cut():
            with PostgresEngine(postgres.address("postgres")).transaction() as execute:
                while not stop.is_set():
                    execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname <> 'postgres'")
                    time.sleep(0.002)

        def save(start):
            for one in numbered(record, *range(start, start + 15)):
                store.seen_by(reader("ann")).save(one)
                saved.append(one.record_id)

        threads = [threading.Thread(target=save, args=(start,)) for start in (0, 100, 200)]
        cutting = threading.Thread(target=cut)
        for thread in (cutting, *threads):
            thread.start()
        for thread in threads:
            thread.join()
        stop.set()
        cutting.join()
        assert sorted(saved) == sorted(ids(store.seen_by(reader("ann")))) == sorted(ids(store))
        assert len(saved) == 45

    def test_a_full_server_is_waited_for(self, postgres, store, record):
        import psycopg

        store.list()
        held = []
        with pytest.raises(psycopg.OperationalError):
            while len(held) < 500:
                held.append(psycopg.connect(store.place))
        thread = threading.Thread(target=store.save, args=(record,))
        try:
            thread.start()
            time.sleep(0.5)
        finally:
            for connection in held:
                connection.close()
        thread.join()
        assert len(store.list()) == 1

    @pytest.mark.parametrize("n_kills", [2, pytest.param(50, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
    def test_what_was_acknowledged_outlives_kills_of_application_and_server(self, postgres, store, record, n_kills):
        """SIGKILL in turn; an application that was not killed goes on by itself when the server is back."""
        moments, work, said = random.Random(21), multiprocessing.get_context("fork"), []

        def save(pipe, start):
            for one in numbered(record, *range(start, start + 100_000)):
                RecordStore(store.place, reader("ann"), patience=60).save(one)
                pipe.send(one.record_id)

        def begun(start):
            mine, theirs = work.Pipe(duplex=False)
            process = work.Process(target=save, args=(theirs, start))
            process.start()
            theirs.close()
            return process, mine

        def told(until):
            while pipe.poll(max(0.0, until - time.monotonic())):
                try:
                    said.append(pipe.recv())
                except EOFError:
                    return

        process, pipe = begun(0)
        for kill in range(n_kills):
            before = len(said)
            while len(said) == before:
                told(time.monotonic() + moments.uniform(0.05, 0.5))
            if kill % 2:
                postgres.kill()
                postgres.start()
            else:
                process.kill()
                process.join()
                told(time.monotonic())
                process, pipe = begun((kill + 1) * 100_000)
        process.kill()
        process.join()
        told(time.monotonic())
        kept = [one.record_id for one in store.seen_by(reader("ann")).list(10**6)]
        assert len(set(kept)) == len(kept) == len(ids_of(store))
        assert set(said) <= set(kept)
        assert len(kept) - len(said) <= n_kills + 1  # what was stored and not yet said when its process was killed
        assert all(store.load(name) == replace(record, record_id=name) for name in kept[-20:])
        print(f"{n_kills} kills: {len(said)} acknowledged, {len(kept)} kept")


def test_the_command_deletes_what_is_older_than_the_day_and_leaves_authors_the_rest(record, tmp_path, monkeypatch):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    store = RecordStore(Paths.from_env().records)
    ann = store.seen_by(reader("ann"))
    for number, month in ((1, "01"), (2, "03"), (3, "04")):
        (one,) = numbered(record, number)
        ann.save(replace(one, created_at=f"2026-{month}-01T00:00:00+00:00"))

    def deleted(*options):
        assert CliRunner().invoke(app, ["records", "delete", *options, "--yes"]).exit_code == 0
        return sorted(ids(ann))

    assert deleted("--before", "20260201") == ["r002", "r003"]
    assert deleted("--before", "2026-W06-1") == ["r002", "r003"]
    assert deleted("--before", "2026-02-01", "--who", "ann") == ["r002", "r003"]
    assert deleted("r002", "--who", "ann") == ["r003"]
    assert deleted("--who", "ann") == ids(store) == []


def ids_of(store):
    return {one.record_id for one in store.list(10**6)}


def test_records_are_deleted_by_id_author_and_age_with_who_may_read_them(store, record):
    one, two, three = numbered(record, 1, 2, 3)
    ann, bob = store.seen_by(reader("ann")), store.seen_by(reader("bob"))
    ann.save(replace(one, created_at="2026-01-01T00:00:00+00:00"))
    ann.save(replace(two, created_at="2026-03-01T00:00:00+00:00"))
    bob.save(replace(three, created_at="2026-01-01T00:00:00+00:00"))
    bob.share("r003", "ann", shared=True)
    ann.begin("run-1")
    ann.link("run-1", "r001")
    assert store.chosen() == ()
    assert sorted(store.chosen(before="2026-02-01")) == ["r001", "r003"]
    assert store.chosen(who="ann", before="2026-02-01") == ("r001",)
    assert store.chosen(["r002", "r003"], who="ann") == ("r002",)
    store.delete(store.chosen(who="ann", before="2026-02-01"))
    assert sorted(ids(store)) == ["r002", "r003"]
    assert store.run("run-1") is None
    assert sorted(ids(ann)) == ["r002", "r003"]
    store.delete(store.chosen(who="ann"), who="ann")
    assert ids(store) == ["r003"]
    assert ids(ann) == []

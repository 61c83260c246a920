"""What a reader says of a verdict: kept with the record, and written as claims."""

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from ragqa.cli import app
from ragqa.errors import RecordError
from ragqa.lab.claims import read_claims
from ragqa.records.reader import RecordReader
from ragqa.records.record import AnswerRecord
from ragqa.records.store import RecordStore
from ragqa.types.scores import Verdict
from tests.records.test_record_store import record  # noqa: F401 - a fixture


@pytest.fixture
def store(tmp_path, monkeypatch, record):  # noqa: F811
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    found = RecordStore(tmp_path / "records.sqlite3")
    found.save(record)
    return found


def test_what_is_said_last_of_a_sentence_stays_with_the_record(store, record):  # noqa: F811
    store.comment(record.record_id, 0, Verdict.SUPPORTED, "The rule says so.")
    store.comment(record.record_id, 0, Verdict.CONTRADICTED, "It says 72 hours.")
    again = store.load(record.record_id)
    assert [(one.index, one.verdict, one.why) for one in again.feedback] == [
        (0, Verdict.CONTRADICTED, "It says 72 hours.")
    ]
    assert replace(again, feedback=()) == record
    assert AnswerRecord.from_json(again.to_json()) == again


def test_another_person_says_nothing_of_it(store, record):  # noqa: F811
    reader = RecordReader("b", frozenset({"b"}), frozenset(), lambda _: None)
    with pytest.raises(RecordError):
        store.seen_by(reader).comment(record.record_id, 0, Verdict.SUPPORTED, "")


def test_an_administrator_who_says_something_of_it_is_no_author(store, record):  # noqa: F811
    store.seen_by(RecordReader("ann", frozenset({"ann"}), frozenset(), lambda _: None)).save(record)
    admin = RecordReader("admin", frozenset({"admin"}), frozenset(), lambda _: None, everything=True)
    store.seen_by(admin).comment(record.record_id, 0, Verdict.SUPPORTED, "")
    assert store.sealed([record.record_id])[record.record_id].authors == ("ann",)
    assert store.chosen(who="admin") == ()  # `ragqa records delete --who admin` keeps it


def test_what_two_people_say_at_once_is_both_kept(store, record, monkeypatch):  # noqa: F811
    first = RecordStore(store.place)
    load, others = first.load, [1]

    def slowly(record_id):
        found = load(record_id)
        while others:
            store.comment(record_id, others.pop(), Verdict.UNSUPPORTED, "said meanwhile")
        return found

    monkeypatch.setattr(first, "load", slowly)
    first.comment(record.record_id, 0, Verdict.SUPPORTED, "said first")
    assert {one.why for one in store.load(record.record_id).feedback} == {"said first", "said meanwhile"}


def test_it_is_written_as_claims_that_a_verifier_is_taught_on(store, record, tmp_path):  # noqa: F811
    store.comment(record.record_id, 0, Verdict.UNSUPPORTED, "It goes further.")
    out = tmp_path / "claims.jsonl"
    written = CliRunner().invoke(app, ["records", "feedback", "--out", str(out)])
    assert written.exit_code == 0, written.output
    (passage,) = read_claims(out)
    (claim,) = passage.claims
    assert (claim.label, claim.kind) == ("unsupported", "feedback")
    assert claim.text == record.scored.paper.sentences[0].sentence.text
    assert all(0 <= n < len(passage.sentences) for n in claim.deciding)

"""`ragqa case` from a terminal: one person files and submits, another decides; names are kept and called not proven."""

import json
import os
import re

import pytest
from typer.testing import CliRunner

from ragqa.cli import app
from ragqa.errors import AccessError, RecordError
from ragqa.records.case_store import CaseStore
from ragqa.records.store import RecordStore
from ragqa.server.access.audit import audit_log
from ragqa.settings.paths import Paths
from ragqa.types import Question
from tests.support.helpers import make_pipeline


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Runs `ragqa case …`; gives what it prints, raises what it raises."""
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments, by=""):
        who = ("--as", by) if by else ()
        done = CliRunner().invoke(app, ["case", *arguments, *who], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    return run


def test_a_case_from_its_first_note_to_its_approval(call):
    paths = Paths.from_env()
    store = RecordStore(paths.records)
    record_id = list(make_pipeline(records=store).run(Question("Who must feed the aardvark?")))[-1].record_id
    case = call("new", "Outsourcing [of] the ledger", by="Ann").strip()
    assert "item 1" in call("add", case, record_id, by="Ann")
    assert "item 2" in call("add", case, "document:rulebook/1", by="Ann")
    call("remove", case, "2", by="Ann")
    call("note", case, "Ask the vendor", by="Ann")
    call("task", case, "Call", "--owner", "Bob", "--due", "2026-12-31", by="Ann")
    call("done", case, "1", by="Bob")
    for about in (("1",), ()):
        call("submit", case, *about, by="Ann")
        with pytest.raises(AccessError, match="another person"):
            call("approve", case, *about, by="ann")
        call("return", case, *about, "--why", "cite the rule", by="Bob")
        call("submit", case, *about, by="Ann")
        assert "approved" in call("approve", case, *about, by="Bob")
    call("submit", case, "1", by="Ann")
    assert "overridden" in call("override", case, "1", "--why", "the lawyer says no", by="Bob")
    said = call("show", case)
    for words in (
        "Outsourcing [of] the ledger",
        "the case is approved by Bob (name not proven)",
        "item 1  Who must feed the aardvark?  (overridden by Bob (name not proven))",
        "task 1  Call  (Bob, 2026-12-31, done by Bob (name not proven))",
        "Bob (name not proven) returned item 1: cite the rule",
    ):
        assert words in said
    assert len(re.findall(r"T\d\d:\d\d UTC(?:  (?:Ann|Bob) |: Ask the vendor)", said)) == len(
        re.findall(r"T\d\d:\d\d", said)
    )
    assert "changed (UTC)" in call("list")
    told = json.loads(call("show", case, "--json"))
    assert told["review"][-1]["by"] == {"name": "Bob", "id": "", "proven": False}
    assert told["review"][-1]["parts"]["item 1"]
    assert json.loads(call("list", "--json"))[0]["case_id"] == case
    assert "approved" in call("list")
    assert "note 1: Ask the vendor" in call("search", "vendor aardvark")
    assert json.loads(call("search", "lawyer", "--json"))[0]["places"]
    assert json.loads(call("search", "zebra", "--json")) == []
    steps = [(one["act"], one["what"], one["name"]) for one in audit_log(paths.home).entries() if "what" in one]
    assert steps[0] == ("case", "opened", "Ann (name not proven)")
    assert ("review", "approved", "Bob (name not proven)") in steps
    memo = CliRunner().invoke(app, ["memo", record_id], catch_exceptions=False).stdout
    assert "approved by Bob (name not proven), 2" in memo
    other = paths.home / "other.sqlite3"
    copied = CliRunner().invoke(app, ["records", "copy", str(paths.records), str(other)], catch_exceptions=False)
    assert "steps of cases" in copied.stderr
    assert CaseStore(other).list() == CaseStore(paths.records).list()
    with pytest.raises(RecordError, match="`ragqa case list` lists the cases"):
        call("show", "nope")


@pytest.mark.parametrize("error", [KeyError("getpwuid(): uid not found: 1234"), OSError("No username set")])
def test_a_user_without_a_name_is_named_by_number(call, monkeypatch, error):
    def nobody():
        raise error

    monkeypatch.setattr("getpass.getuser", nobody)
    case = call("new", "Outsourcing").strip()
    assert f"opened by user {os.getuid()}" in call("show", case)

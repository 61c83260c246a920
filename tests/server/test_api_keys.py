"""Keys of programs: told once, kept as hashes, revoked at once."""

import json

import pytest
from typer.testing import CliRunner

from ragqa.cli import app
from ragqa.errors import AccessError, ConfigError
from ragqa.server.access.policy import Role
from ragqa.server.api.keys import KeyStore


def test_a_key_opens_until_it_is_revoked_and_its_secret_is_kept_nowhere(tmp_path):
    store = KeyStore(tmp_path)
    key, secret = store.make("ann@example.org", Role.ANALYST, ("risk",))
    person = store.person(secret)
    assert (person.id, person.email, person.role) == ("ann@example.org", "ann@example.org", Role.ANALYST)
    assert person.groups == {"risk"}
    assert secret not in (tmp_path / "keys.json").read_text()
    assert (tmp_path / "keys.json").stat().st_mode & 0o077 == 0
    store.revoke(key.id)
    with pytest.raises(AccessError, match="valid key"):
        store.person(secret)


@pytest.mark.parametrize("secret", ["", "ragqa_", "ragqa_guess", "\ud800", "x" * 100_000])
def test_a_guess_opens_nothing(tmp_path, secret):
    store = KeyStore(tmp_path)
    store.make("ann@example.org", Role.ADMINISTRATOR)
    with pytest.raises(AccessError, match="valid key"):
        store.person(secret)


@pytest.mark.parametrize(("person", "role"), [("", Role.READER), ("ann", Role.NONE)])
def test_a_key_is_for_somebody_with_a_role(tmp_path, person, role):
    with pytest.raises(ConfigError, match="whom the key is for"):
        KeyStore(tmp_path).make(person, role)


def test_a_damaged_file_lets_nobody_in(tmp_path):
    (tmp_path / "keys.json").write_text('[{"id": 1}]')
    with pytest.raises(ConfigError, match="restore the file"):
        KeyStore(tmp_path).person("ragqa_x")


def test_the_command_makes_lists_and_revokes_and_the_log_has_each(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    monkeypatch.setenv("RAGQA_AUDIT_ANCHOR", str(tmp_path / "elsewhere"))
    made = CliRunner().invoke(app, ["keys", "make", "ann@example.org", "--role", "reader"])
    assert made.exit_code == 0, made.output
    key_id = made.stdout.split()[1]
    assert "valid" in CliRunner().invoke(app, ["keys", "list"]).stdout
    assert CliRunner().invoke(app, ["keys", "revoke", key_id]).exit_code == 0
    listed = CliRunner().invoke(app, ["keys", "list"]).stdout
    assert "revoked" in listed
    assert made.stdout.splitlines()[1] not in listed
    entries = [json.loads(line) for line in (tmp_path / "audit" / "audit.jsonl").read_text().splitlines()]
    assert [entry["what"] for entry in entries] == ["made, reader", "revoked"]
    assert [line.split(":")[0] for line in (tmp_path / "elsewhere").read_text().splitlines()] == ["1", "2"]


def test_what_is_shared_with_an_address_is_shared_with_its_key_in_any_letter_case(tmp_path):
    _, secret = KeyStore(tmp_path).make("Ann@Example.org", Role.ANALYST)
    assert "ann@example.org" in KeyStore(tmp_path).person(secret).names

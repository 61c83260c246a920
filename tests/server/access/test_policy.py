"""Who is who, and who may do what: the file, the claims, and every pair of role and act."""

import os

import pytest

from ragqa.errors import ConfigError
from ragqa.server.access.policy import LEAST, NOBODY, Act, Person, Policy, Role, read_policy

NOW = 1_000_000.0
FILE = """
session_hours = 8
[[people]]
email = "Ann@Example.org"
role = "analyst"
groups = ["insurers"]
[[people]]
subject = "s-7"
role = "administrator"
[[people]]
claim = "teams"
value = "library"
role = "curator"
groups = ["library"]
[corpora]
closed = ["insurers"]
nobodys = []
"""


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "access.toml"
    path.write_text(FILE)
    return read_policy(path)


def claims(**changes):
    return {"is_logged_in": True, "iss": "https://id", "sub": "s-1", "iat": NOW - 60, **changes}


@pytest.mark.parametrize(
    ("said", "role", "groups"),
    [
        ({"email": "ann@example.org", "email_verified": True}, Role.ANALYST, {"insurers"}),
        ({"email": "ANN@EXAMPLE.ORG ", "email_verified": True}, Role.ANALYST, {"insurers"}),
        ({"email": "ann@example.org", "email_verified": False}, Role.NONE, set()),
        ({"email": "ann@example.org"}, Role.NONE, set()),
        ({"email": "ann@example.org", "email_verified": "true"}, Role.NONE, set()),
        ({"sub": "s-7"}, Role.ADMINISTRATOR, set()),
        ({"sub": "S-7"}, Role.NONE, set()),
        ({"teams": ["library", "x"]}, Role.CURATOR, {"library"}),
        ({"teams": "library"}, Role.CURATOR, {"library"}),
        ({"teams": "librarylibrary"}, Role.NONE, set()),
        ({"teams": {"library": 1}}, Role.NONE, set()),
        ({"teams": ["library"], "sub": "s-7"}, Role.ADMINISTRATOR, {"library"}),
    ],
)
def test_who_somebody_is(policy, said, role, groups):
    person = policy.person(claims(**said), NOW)
    assert (person.role, person.groups) == (role, groups)


@pytest.mark.parametrize(
    "said",
    [
        {"is_logged_in": False},
        {"is_logged_in": "True"},
        {"iat": NOW - 8 * 3600},
        {"iat": NOW + 200},
        {"iat": None},
        {"iat": True},
        {"iat": "999990"},
        {"iat": float("nan")},
        {"iss": ""},
        {"sub": None},
        {"sub": 7},
    ],
)
def test_what_makes_nobody(policy, said):
    assert policy.person(claims(**said), NOW) is None
    assert policy.person({}, NOW) is None


def test_each_role_may_what_the_one_before_may_and_nobody_anything():
    policy = Policy(corpora={"closed": frozenset({"insurers"})})
    for act, least in LEAST.items():
        for role in Role:
            person = Person("id", role)
            assert policy.may(person, act) == (role >= least)
            assert policy.may(person, act, "closed") == (role is Role.ADMINISTRATOR)
        assert not policy.may(NOBODY, act)
    assert not policy.may(Person("id", Role.ADMINISTRATOR), Act.REFUSAL)  # is not for anybody to do
    assert policy.may(Person("id", Role.READER, frozenset({"insurers"})), Act.READ, "closed")


def test_hidden_corpora(policy):
    assert policy.hidden(Person("id", Role.CURATOR, frozenset({"insurers"}))) == {"nobodys"}
    assert policy.hidden(Person("id", Role.ADMINISTRATOR)) == set()
    assert policy.hidden(NOBODY) == {"closed", "nobodys"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("default_role = 'king'", "a role of none, reader"),
        ("default_role = 3", "a role of none, reader"),
        ("session_hours = 0", "session_hours"),
        ("session_hours = true", "session_hours"),
        ("trust_email = 'no'", "trust_email"),
        ("peple = []", "only"),
        ("people = ['ann']", r"\[\[people\]\]"),
        ("people = 1", r"\[\[people\]\]"),
        ("[[people]]\nrole = 'reader'", "email, or subject, or claim"),
        ("[[people]]\nemail = 'a@b'\nsubject = 's'", "email, or subject, or claim"),
        ("[[people]]\nclaim = 'teams'", "claim with value"),
        ("[[people]]\nemail = ''\nrole = 'administrator'", "email, or subject, or claim"),
        ("[[people]]\nemail = 'a@b'\ngroups = 'insurers'", "a list of groups"),
        ("[[people]]\nemail = 'a@b'\nrol = 'reader'", "only"),
        ("corpora = 1", r"table \[corpora\]"),
        ("[corpora]\nclosed = 'insurers'", "a list of groups"),
        ("no toml", "a TOML file"),
    ],
)
def test_a_wrong_file_is_refused_with_what_was_expected(tmp_path, text, words):
    path = tmp_path / "access.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words):
        read_policy(path)


def test_a_changed_file_counts_at_once_and_a_missing_one_is_refused(tmp_path):
    path = tmp_path / "access.toml"
    path.write_text("default_role = 'reader'")
    assert read_policy(path).person(claims(), NOW).role is Role.READER
    path.write_text("default_role = 'analyst'")
    assert read_policy(path).person(claims(), NOW).role is Role.ANALYST
    path.unlink()
    with pytest.raises(ConfigError, match="Access is denied until"):
        read_policy(path)


def test_a_changed_file_counts_at_once_also_with_the_size_and_time_of_the_earlier_one(tmp_path):
    path = tmp_path / "access.toml"
    path.write_text("default_role = 'curator'")
    os.utime(path, (1, 1))
    assert read_policy(path).person(claims(), NOW).role is Role.CURATOR
    path.write_text("default_role = 'analyst'")
    os.utime(path, (1, 1))  # as rsync, tar and cp -p leave it
    assert read_policy(path).person(claims(), NOW).role is Role.ANALYST


def policy_of(tmp_path, text):
    path = tmp_path / "other.toml"
    path.write_text(text)
    return read_policy(path)


def test_none_takes_away_what_other_rules_give(tmp_path):
    policy = policy_of(
        tmp_path,
        """
default_role = "reader"
[[people]]
claim = "teams"
value = "library"
role = "curator"
[[people]]
subject = "s-7"
role = "none"
[[people]]
subject = "s-8"
groups = ["insurers"]
""",
    )
    assert policy.person(claims(sub="s-7", teams=["library"]), NOW).role is Role.NONE
    assert policy.person(claims(sub="s-1", teams=["library"]), NOW).role is Role.CURATOR
    assert policy.person(claims(sub="s-8", teams=["library"]), NOW).role is Role.CURATOR
    assert policy.person(claims(sub="s-8"), NOW).role is Role.NONE  # as ever: named, and no role said
    assert policy.person(claims(sub="s-9"), NOW).role is Role.READER


def test_a_rule_of_one_issuer_means_nobody_of_another(tmp_path):
    policy = policy_of(tmp_path, '[[people]]\nissuer = "https://id"\nsubject = "s-7"\nrole = "administrator"\n')
    assert policy.person(claims(sub="s-7"), NOW).role is Role.ADMINISTRATOR
    assert policy.person(claims(sub="s-7", iss="https://other"), NOW).role is Role.NONE
    policy.check_issuers(2, "x")
    unclear = policy_of(tmp_path, '[[people]]\nsubject = "s-7"\nrole = "administrator"\n')
    unclear.check_issuers(1, "x")
    with pytest.raises(ConfigError, match="issuer"):
        unclear.check_issuers(2, "x")

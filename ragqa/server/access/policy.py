"""Roles, what each may do, and the file that assigns them. Nothing here uses the network or the page."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from ragqa.errors import ConfigError


class Role(IntEnum):
    """The roles; each may also do everything that the roles before it may."""

    NONE = 0
    READER = 1
    ANALYST = 2
    CURATOR = 3
    ADMINISTRATOR = 4


class Act(StrEnum):
    """The acts of the page and of programs; `LEAST` gives the least role for each, the audit log who did it."""

    READ = "read"
    QUESTION = "question"
    CHECK = "check"
    SWEEP = "sweep"
    SHARE = "share"
    FEEDBACK = "feedback"
    RECORD = "record"  # a note on one's own record, or its deletion
    CASE = "case"  # opening, adding, sharing, submitting
    REVIEW = "review"  # a decision on what another person submitted
    REGISTER = "register"  # a change of how an obligation is handled
    PRESET = "preset"
    UPLOAD = "upload"
    INDEX = "index"
    RENAME = "rename"
    DELETION = "deletion"
    RESTORE = "restore"
    IMPORT = "import"
    EXPORT = "export"
    VERIFY = "verify"
    EVALUATION = "evaluation"
    AUDIT = "audit"
    # Acts that are only logged
    SIGN_IN = "sign-in"
    SIGN_OUT = "sign-out"
    REFUSAL = "refusal"
    FAILURE = "failure"
    KEY = "key"


LEAST: Final = {
    Act.READ: Role.READER,
    **dict.fromkeys((Act.QUESTION, Act.CHECK, Act.SWEEP, Act.SHARE, Act.FEEDBACK), Role.ANALYST),
    **dict.fromkeys((Act.RECORD, Act.REGISTER, Act.CASE, Act.REVIEW, Act.PRESET), Role.ANALYST),
    **dict.fromkeys((Act.UPLOAD, Act.INDEX, Act.RENAME, Act.DELETION, Act.RESTORE), Role.CURATOR),
    **dict.fromkeys((Act.IMPORT, Act.EXPORT, Act.VERIFY), Role.CURATOR),
    **dict.fromkeys((Act.EVALUATION, Act.AUDIT), Role.ADMINISTRATOR),
}
GROUP, ROLE = "group:", "role:"  # prefixes of groups and roles that a record or a case is shared with
CLOCKS: Final = 120.0  # seconds that the provider's clock may be ahead


@dataclass(frozen=True, slots=True)
class Person:
    """The person who acts. ``id`` is ISSUER|SUBJECT, which is unique; ``email`` is verified, or empty."""

    id: str
    role: Role = Role.NONE
    groups: frozenset[str] = frozenset()
    email: str = ""

    @property
    def name(self) -> str:
        """The name to show: the address, else the id."""
        return self.email or self.id

    @property
    def names(self) -> frozenset[str]:
        """The names by which records and cases are shared with this person: id, email, groups, own and lower roles."""
        roles = (ROLE + role.name.lower() for role in Role if Role.NONE < role <= self.role)
        email = {self.email} if self.email and not self.email.startswith((GROUP, ROLE)) else set[str]()
        return frozenset({self.id, *email, *(GROUP + group for group in self.groups), *roles})


LOCAL: Final = Person("local", Role.ADMINISTRATOR)  # everybody at a page without sign-in
NOBODY: Final = Person("")


@dataclass(frozen=True, slots=True)
class AccessRule:
    """One [[people]] table: a person by exactly one of email, subject or claim, and their role and groups.

    An empty ``issuer`` means any provider.
    """

    issuer: str = ""
    email: str = ""
    subject: str = ""
    claim: tuple[str, str] = ("", "")
    role: Role | None = None  # None: the role comes from other rules for the same person, if any
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Policy:
    """The content of the access file. ``corpora`` maps each restricted corpus to the groups that may read it."""

    people: tuple[AccessRule, ...] = ()
    corpora: Mapping[str, frozenset[str]] = field(default_factory=dict)
    default_role: Role = Role.NONE
    session_hours: float = 12.0
    trust_email: bool = False
    log_questions: bool = False
    questions_per_hour: int = 0  # for each person; 0: no limit
    upload_mb_per_hour: int = 0

    def person(self, claims: Mapping[str, Any], now: float) -> Person | None:
        """The person with these claims; None without a valid sign-in. ``now`` is in seconds since 1970."""
        issuer, subject, since = (claims.get(name) for name in ("iss", "sub", "iat"))
        if claims.get("is_logged_in") is not True or not (_is_text(issuer) and _is_text(subject)):
            return None
        if isinstance(since, bool) or not isinstance(since, int | float):
            return None
        if not now - 3600.0 * self.session_hours < since < now + CLOCKS:
            return None
        email = str(claims.get("email") or "")
        trusted = self.trust_email or claims.get("email_verified") is True
        address = email.strip().casefold() if trusted else ""
        found = [rule for rule in self.people if _is_meant(rule, claims, address, str(subject))]
        roles = [rule.role for rule in found if rule.role is not None]
        role = Role.NONE if found and Role.NONE in (roles or [Role.NONE]) else max(roles, default=self.default_role)
        groups = frozenset(group for rule in found for group in rule.groups)
        return Person(f"{issuer}|{subject}", role, groups, address)

    def check_issuers(self, n_providers: int, path: str) -> None:
        """Raises ConfigError if rules without issuer would apply to several providers, whose names can collide."""
        if n_providers > 1 and any(not rule.issuer for rule in self.people):
            expected = f"an issuer in each [[people]], as there are {n_providers} providers"
            raise _wrong(Path(path), expected, "none in one")

    def may(self, person: Person, act: Act, corpus: str = "") -> bool:
        """Whether this person may do this act, with this corpus if one is named."""
        return act in LEAST and person.role >= LEAST[act] and (not corpus or self._reads(person, corpus))

    def hidden(self, person: Person) -> frozenset[str]:
        """The corpora that this person may not read."""
        return frozenset(name for name in self.corpora if not self._reads(person, name))

    def _reads(self, person: Person, corpus: str) -> bool:
        is_open = corpus not in self.corpora or bool(self.corpora[corpus] & person.groups)
        return person.role is Role.ADMINISTRATOR or (person.role >= Role.READER and is_open)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_meant(rule: AccessRule, claims: Mapping[str, Any], email: str, subject: str) -> bool:
    if rule.issuer and rule.issuer != claims.get("iss"):
        return False
    if rule.email:
        return rule.email == email
    if rule.subject:
        return rule.subject == subject
    name, value = rule.claim
    said = claims.get(name)
    return value in said if isinstance(said, list | tuple) else value == said


# The file -----------------------------------------------------------------------------------------------------------

_SWITCHES: Final = ("trust_email", "log_questions")
_MOST: Final = ("questions_per_hour", "upload_mb_per_hour")
_TOP: Final = {"default_role", "session_hours", "people", "corpora", *_SWITCHES, *_MOST}
_PERSON: Final = {"issuer", "email", "subject", "claim", "value", "role", "groups"}


def read_policy(path: Path) -> Policy:
    """The policy in this TOML file, read again when it has changed. Raises ConfigError, which names the mistake."""
    try:
        stamp = path.stat()
        return _read(path, (stamp.st_mtime_ns, stamp.st_ctime_ns, stamp.st_ino, stamp.st_size))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _wrong(path, "a TOML file that says who has which role", str(error)) from error


@lru_cache(maxsize=4)
def _read(path: Path, stamp: tuple[int, ...]) -> Policy:
    del stamp
    told = tomllib.loads(path.read_text(encoding="utf-8"))
    _only(path, told, _TOP)
    corpora = told.get("corpora", {})
    if not isinstance(corpora, dict):
        raise _wrong(path, "a table [corpora] of lists of groups", repr(corpora))
    people = told.get("people", [])
    if not isinstance(people, list):
        raise _wrong(path, "[[people]] tables", repr(people)[:80])
    hours = told.get("session_hours", 12)
    if isinstance(hours, bool) or not isinstance(hours, int | float) or not 0 < hours <= 24 * 30:
        raise _wrong(path, "session_hours over 0 and up to 720", repr(hours))
    switches = {name: told.get(name, False) for name in _SWITCHES}
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise _wrong(path, f"{name} = true or false", repr(value))
    most = {name: told.get(name, 0) for name in _MOST}
    for name, value in most.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise _wrong(path, f"{name} as a whole number from 0, which means any number", repr(value))
    return Policy(
        tuple(_rule(path, one) for one in people),
        {name: _groups(path, groups) for name, groups in corpora.items()},
        _role(path, told.get("default_role", "none")),
        float(hours),
        **switches,
        **most,
    )


def _rule(path: Path, told: object) -> AccessRule:
    if not isinstance(told, dict):
        raise _wrong(path, "[[people]] tables", repr(told))
    _only(path, told, _PERSON)
    named = [name for name in ("email", "subject", "claim") if _is_text(told.get(name))]
    if len(named) != 1 or (named == ["claim"]) != _is_text(told.get("value")):
        raise _wrong(path, "in each [[people]] email, or subject, or claim with value", repr(told)[:80])
    claim = (told["claim"], told["value"]) if named == ["claim"] else ("", "")
    email = str(told.get("email", "")).strip().casefold()
    issuer = told.get("issuer", "")
    if not isinstance(issuer, str):
        raise _wrong(path, "issuer as a text", repr(issuer))
    role = _role(path, told["role"]) if "role" in told else None
    groups = _groups(path, told.get("groups", []))
    return AccessRule(issuer.strip(), email, str(told.get("subject", "")), claim, role, groups)


def _role(path: Path, name: object) -> Role:
    known = {role.name.lower(): role for role in Role}
    if not isinstance(name, str) or name not in known:
        raise _wrong(path, f"a role of {', '.join(known)}", repr(name))
    return known[name]


def _groups(path: Path, told: object) -> frozenset[str]:
    if not isinstance(told, list) or not all(map(_is_text, told)):
        raise _wrong(path, "a list of groups' names", repr(told))
    return frozenset(told)


def _only(path: Path, told: Mapping[str, Any], known: set[str]) -> None:
    for name in told:
        if name not in known:
            raise _wrong(path, f"only {', '.join(sorted(known))}", repr(name))


def _wrong(path: Path, expected: str, found: str) -> ConfigError:
    return ConfigError(f"{path}: expected {expected}, found {found}; correct it. Access is denied until it is fixed.")

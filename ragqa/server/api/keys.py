"""API keys of programs: made and revoked by `ragqa keys`, stored as hashes in RAGQA_HOME/keys.json."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from ragqa.errors import AccessError, ConfigError
from ragqa.infra.files import locked, write_whole
from ragqa.server.access.policy import Person, Role

PREFIX: Final = "ragqa_"
_PATIENCE: Final = 10.0  # seconds to wait for another process that writes


@dataclass(frozen=True, slots=True)
class Key:
    """A key without its secret. ``person`` is ISSUER|SUBJECT or any address; the key's records belong to it."""

    id: str
    sha256: str
    person: str
    role: str
    groups: tuple[str, ...] = ()
    created: str = ""
    revoked: str = ""

    def owner(self) -> Person:
        """The person that this key acts for."""
        email = self.person.casefold() if "@" in self.person and "|" not in self.person else ""
        return Person(self.person, Role[self.role.upper()], frozenset(self.groups), email)


class KeyStore:
    """The keys of one RAGQA_HOME; any number of processes may read, and one at a time may write."""

    def __init__(self, home: Path) -> None:
        self.path = home / "keys.json"

    def entries(self) -> tuple[Key, ...]:
        """All keys, including revoked ones, oldest first. Raises ConfigError where the file is damaged."""
        if not self.path.exists():
            return ()
        try:
            return TypeAdapter(tuple[Key, ...]).validate_json(self.path.read_bytes())
        except (OSError, ValidationError) as error:
            msg = f"{self.path}: expected the keys that `ragqa keys` wrote, found {str(error)[:200]}; restore the file"
            raise ConfigError(msg) from error

    def make(self, person: str, role: Role, groups: tuple[str, ...] = ()) -> tuple[Key, str]:
        """A new key and its secret, which is not stored anywhere. Raises ConfigError."""
        if not person.strip() or role is Role.NONE:
            msg = "expected whom the key is for and a role of reader, analyst, curator, administrator; name both"
            raise ConfigError(msg)
        secret = PREFIX + secrets.token_urlsafe(32)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        key = Key(secrets.token_hex(4), _hashed(secret), person.strip(), role.name.lower(), groups, now)
        with self._held():
            self._write((*self.entries(), key))
        return key, secret

    def revoke(self, key_id: str) -> Key:
        """Revokes a key at once, for every process. Raises ConfigError where no key has this id."""
        with self._held():
            keys = self.entries()
            found = next((key for key in keys if key.id == key_id), None)
            if found is None:
                raise ConfigError(f"expected the id of a key, as `ragqa keys list` shows them, found {key_id[:40]!r}")
            ended = replace(found, revoked=found.revoked or datetime.now(UTC).isoformat(timespec="seconds"))
            self._write(tuple(ended if key.id == key_id else key for key in keys))
        return ended

    def person(self, secret: str) -> Person:
        """The person with this secret. Raises AccessError with the same message for a wrong and a revoked key."""
        wanted = _hashed(secret)
        found = [key for key in self.entries() if hmac.compare_digest(key.sha256, wanted) and not key.revoked]
        if not found:
            msg = "expected Authorization: Bearer and a valid key of `ragqa keys make`, found another; ask for one"
            raise AccessError(msg)
        return found[0].owner()

    def _held(self) -> AbstractContextManager[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)

        def refusal() -> ConfigError:
            return ConfigError(f"{self.path} is being written by another process; try again")

        return locked(self.path.with_name(".keys.lock"), refusal, _PATIENCE)

    def _write(self, keys: tuple[Key, ...]) -> None:
        write_whole(self.path, [json.dumps([asdict(key) for key in keys], indent=1)])
        self.path.chmod(0o600)


def _hashed(secret: str) -> str:
    """The hash of a secret; 256 random bits need no slow hash function."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()

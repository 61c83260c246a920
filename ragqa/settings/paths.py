"""Where things live on this machine: records, caches, presets, indexes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

from ragqa.errors import ConfigError

INDEXES = "indexes"
PROJECT_INDEXES = Path(__file__).resolve().parents[2] / "indexes"
PACKAGED_INDEXES = Path(__file__).resolve().parents[1] / "index" / "demo"  # the demonstration indexes, in a wheel


def _default_home() -> Path:
    return Path(platformdirs.user_data_dir("ragqa", appauthor=False))


def expanded(path: str, what: str) -> Path:
    """The path, with the home folder in place of ``~``. Raises ConfigError, naming ``what``, for an unknown user's."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        msg = f"{what}: expected a path, found {path[:100]!r}, and that user has no home here; write it in full"
        raise ConfigError(msg) from error


@dataclass(frozen=True, slots=True)
class Paths:
    """Where things live on this machine; never part of a record."""

    home: Path = field(default_factory=_default_home)  # records; RAGQA_HOME
    indexes: Path = PROJECT_INDEXES  # RAGQA_INDEXES; the checkout's own by default
    records_at: str = field(default="", repr=False)  # RAGQA_RECORDS: a file, or an address, which may hold a password

    @property
    def records(self) -> Path | str:
        """A file, or the address of a PostgreSQL database."""
        if "://" in self.records_at:
            return self.records_at
        return expanded(self.records_at, "RAGQA_RECORDS") if self.records_at else self.home / "records.sqlite3"

    @property
    def pair_cache(self) -> Path:
        """NLI probabilities already computed; safe to delete at any time."""
        return self.home / "nli-pairs.sqlite3"

    @property
    def precision_timings(self) -> Path:
        """Timings of bf16 and fp32 on this machine; safe to delete at any time, they are measured again."""
        return self.home / "precision.json"

    @property
    def vector_cache(self) -> Path:
        """Vectors that embedding servers returned; safe to delete at any time, they are requested again."""
        return self.home / "vectors.sqlite3"

    @property
    def wiki_pages(self) -> Path:
        """Pages fetched from wiki servers; safe to delete at any time, they are fetched again."""
        return self.home / "wikipedia"

    @property
    def local_models(self) -> Path:
        """The folder of fetched language models; it need not exist."""
        return self.home / "models"

    @property
    def library(self) -> Path:
        """The documents added on the page or by `ragqa index add`, one folder per corpus."""
        return self.home / "library"

    @property
    def registers(self) -> Path:
        """The folder of registers of obligations and their handling, one file per corpus; it need not exist."""
        return self.home / "registers"

    @property
    def watched_dismissed(self) -> Path:
        """The digests of files of the watched folder that somebody does not want now; it need not exist."""
        return self.home / "watched.json"

    @property
    def presets(self) -> Path:
        """A folder of preset files, ``*.json``; it need not exist."""
        return self.home / "presets"

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Paths:
        """``RAGQA_HOME`` and ``RAGQA_INDEXES``, else the user's data folder and the checkout's ``indexes/``.

        If ``RAGQA_HOME`` is set, or ragqa is installed without its checkout, indexes are in the home folder, and those
        missing there are read from the checkout or the package (`behind`).
        """
        env = os.environ if environ is None else environ
        if env.get("RAGQA_HOME"):
            home = expanded(env["RAGQA_HOME"], "RAGQA_HOME")
            beside = home / INDEXES
        else:
            home = _default_home()
            beside = PROJECT_INDEXES if PROJECT_INDEXES.is_dir() else home / INDEXES
        indexes = expanded(env["RAGQA_INDEXES"], "RAGQA_INDEXES") if env.get("RAGQA_INDEXES") else beside
        return cls(home, indexes, env.get("RAGQA_RECORDS", "").strip())


def behind(indexes: Path) -> Path | None:
    """The folder of the indexes missing in ``indexes``: the checkout's, or the package's if there is no checkout.

    None unless ``indexes`` is the home folder's own: a folder chosen by the user is used alone.
    """
    home = expanded(os.environ.get("RAGQA_HOME") or str(_default_home()), "RAGQA_HOME")
    if os.environ.get("RAGQA_INDEXES") or indexes != home / INDEXES:
        return None
    return next((folder for folder in (PROJECT_INDEXES, PACKAGED_INDEXES) if folder.is_dir()), None)


def keep_private(home: Path, *, new_files: bool = False) -> None:
    """Creates this folder, and makes it accessible to its owner only, if that is us. Raises ConfigError.

    ``new_files``: likewise all files that this process makes from now on.
    """
    if new_files:
        os.umask(0o077)
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if home.stat().st_uid == os.getuid():
            home.chmod(0o700)
    except OSError as error:
        msg = f"RAGQA_HOME: expected a folder that can be written, found {home} ({error.strerror}); name another one"
        raise ConfigError(msg) from error

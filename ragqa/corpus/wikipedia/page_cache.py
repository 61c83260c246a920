"""Pages already fetched, a small gzipped JSON file each: what is whole is found again, the rest fetched again."""

from __future__ import annotations

import gzip
import json
import logging
import os
import tempfile
import zlib
from hashlib import sha256
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)


class PageCache:
    """Files below ``folder``, named by the sha256 of their key; may be deleted at any time.

    Written aside and moved into place, so several processes may share it. A disk that fails costs requests, no answer.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, *key: str) -> dict[str, Any] | None:
        """What was kept under this key, None where nothing was or it cannot be read."""
        try:
            value = json.loads(gzip.decompress(self._path(key).read_bytes()))
        except (OSError, EOFError, ValueError, zlib.error):
            return None
        return value if isinstance(value, dict) and value.pop("key", None) == list(key) else None

    def put(self, value: dict[str, Any], *key: str) -> None:
        """Keeps it under this key; a failure is logged."""
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            number, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
            try:
                with os.fdopen(number, "wb") as file:
                    file.write(gzip.compress(json.dumps({**value, "key": key}).encode(), 6, mtime=0))
                Path(name).replace(path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            logger.warning("%s could not be kept in %s: %s", key[1] if len(key) > 1 else key, self.folder, error)

    def _path(self, key: tuple[str, ...]) -> Path:
        digest = sha256(json.dumps(key).encode()).hexdigest()
        return self.folder / digest[:2] / f"{digest}.json.gz"

"""Files of others as text, with errors that say what is wrong and what to do."""

from __future__ import annotations

from pathlib import Path

from ragqa.errors import CorpusError


def read_utf8(path: Path, name: str) -> str:
    r"""The file's text, line endings as ``\n``, without a byte-order mark. ``name`` is what errors call the file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        msg = f"{name} cannot be read: {error.strerror or error}; check its permissions and try again"
        raise CorpusError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"{name} is not UTF-8 text (byte {error.start} cannot be read); save it as UTF-8 and try again"
        raise CorpusError(msg) from error

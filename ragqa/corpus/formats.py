"""What a source of passages may hold."""

from __future__ import annotations

from typing import Literal

CorpusFormat = Literal["obliqa", "text", "jsonl", "pandachat", "dump", "zim", "mediawiki", "kiwix"]

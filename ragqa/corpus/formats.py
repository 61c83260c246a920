"""What a source of passages may hold."""

from __future__ import annotations

CorpusFormat = str  # a name that `ragqa.registry` has among CORPUS_FORMATS

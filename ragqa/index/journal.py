"""The progress of a build on disk, so that a stopped build can be resumed.

::

    .building-NAME-PID/
    ├── journal.json     this module
    ├── index/           the finished part of the future index
    ├── portions/        the files of each portion (see `ragqa.index.portions`)
    ├── counts/          the token counts of each lexical ranking, until its files are written
    ├── *.lengths.npy    the lengths of the texts, for each lexical ranking
    ├── *.vectors        vectors that are not in FAISS yet (see `ragqa.index.encoded`)
    └── engine.json      the collection that is being written (see `ragqa.index.engine`)

Every file is on disk before the journal records it. On resuming, a file is cut to the length that the journal records.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from ragqa.index.folders import JOURNAL, delete
from ragqa.infra.files import flush_tree, write_whole


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """The progress of a stage: ``done`` of ``total`` passages, vectors, scores or files. A stage ends at its total.

    ``note`` adds detail, as the size of a corpus is not known before it is read. ``message`` is to be shown once, for
    example whether a stopped build is resumed.
    """

    stage: str  # corpus, BM25, vectors, the name of a further ranking, files
    done: int
    total: int
    note: str = ""
    message: str = ""


VERSION: Final = 3
INDEX: Final = "index"


@dataclass(slots=True)
class BuildJournal:
    """The finished steps of a build with these settings; `save` writes them to disk."""

    folder: Path
    settings: Mapping[str, Any]  # plain values: everything that determines the content of the index
    n_portions: int = 0
    n_articles: int = 0  # with text
    n_passages: int = 0
    n_bytes: int = 0  # of passages.jsonl
    next_article: int = 0  # the first article of the source that is not read yet
    is_read: bool = False  # whether the source is read to its end
    n_blocks: dict[str, int] = field(default_factory=dict)  # of counts, by ranking
    n_encoded: dict[str, int] = field(default_factory=dict)  # vectors, by ranking
    dimensions: dict[str, int] = field(default_factory=dict)  # of those vectors
    finished: list[str] = field(default_factory=list)  # rankings whose files are complete

    @property
    def index(self) -> Path:
        """The folder that becomes the index."""
        return self.folder / INDEX

    def save(self) -> None:
        """Replaces the journal on disk atomically; it is flushed when this returns."""
        told = {name: value for name, value in asdict(self).items() if name != "folder"}
        write_whole(self.folder / JOURNAL, [json.dumps({"version": VERSION} | told, ensure_ascii=False, indent=1)])

    def finish(self, ranking: str, *temporary: Path) -> None:
        """Records that the files of this ranking are complete, and deletes the ``temporary`` files behind them."""
        flush_tree(self.index)
        self.finished.append(ranking)
        self.save()
        for path in temporary:
            delete(path)

    def discard(self) -> None:
        """Marks this build as one that cannot be resumed."""
        (self.folder / JOURNAL).unlink(missing_ok=True)


def resume(folder: Path, settings: Mapping[str, Any]) -> tuple[BuildJournal, str]:
    """The journal in ``folder`` and a message to show. With other settings, the folder is emptied for a new journal.

    The message is empty if there was no journal before.
    """
    settings = json.loads(json.dumps(settings))
    before = _read(folder)
    if before and before.settings == settings and before.index.is_dir():
        return before, _resuming(before)
    said = _starting_over(before, settings) if (folder / JOURNAL).exists() else ""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    journal = BuildJournal(folder, settings)
    journal.index.mkdir()
    return journal, said


def _read(folder: Path) -> BuildJournal | None:
    """The journal in this folder; None if there is none or another version wrote it."""
    try:
        told = json.loads((folder / JOURNAL).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(told, dict) or told.pop("version", 0) != VERSION:
        return None
    return BuildJournal(folder, **told)


def _resuming(journal: BuildJournal) -> str:
    if not journal.is_read:
        return f"resuming after article {journal.n_articles:,} ({journal.n_passages:,} passages)"
    encoded = sum(journal.n_encoded.values())
    return f"resuming after all {journal.n_passages:,} passages and {encoded:,} vectors"


def _starting_over(before: BuildJournal | None, settings: Mapping[str, Any]) -> str:
    if before is None:
        return "starting over: the stopped build cannot be resumed"
    changed = [name for name in {**before.settings, **settings} if before.settings.get(name) != settings.get(name)]
    reason = f"with another {' and '.join(changed)}" if changed else "and is incomplete"
    return f"starting over: the stopped build was made {reason}"

"""How far a build has come, on disk, so that a stopped one can be resumed: what `journal.json` says is done stays done.

::

    .building-NAME-PID/
    ├── journal.json     this module
    ├── index/           what becomes the index, as far as it is there
    ├── portions/        of each portion: see `ragqa.index.portions`
    ├── counts/          for each ranking by words how often tokens occur, until its files are written
    ├── *.lengths.npy    for each ranking by words how long its texts are
    ├── *.vectors        vectors on their way into FAISS (see `ragqa.index.encoded`)
    └── engine.json      the collection that is being written (see `ragqa.index.engine`)

Every file is on disk before the journal says so; what a file holds beyond what the journal says is cut off.
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
    """``done`` of ``total`` of this stage are done: passages, vectors, scores, files; a stage ends at its total.

    ``note`` says more of how far it is: the size of a corpus is not known before it is read.
    ``message`` is to be shown once: what became of a stopped build.
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
    """What is done of a build with these settings; `save` keeps it."""

    folder: Path
    settings: Mapping[str, Any]  # plain values: whatever decides what the index will hold
    n_portions: int = 0
    n_articles: int = 0  # with text
    n_passages: int = 0
    n_bytes: int = 0  # of passages.jsonl
    next_article: int = 0  # where the source is read on
    is_read: bool = False  # to its end
    n_blocks: dict[str, int] = field(default_factory=dict)  # of counts, by ranking
    n_encoded: dict[str, int] = field(default_factory=dict)  # vectors, by ranking
    dimensions: dict[str, int] = field(default_factory=dict)  # of those vectors
    finished: list[str] = field(default_factory=list)  # rankings whose files are whole

    @property
    def index(self) -> Path:
        """The folder that becomes the index."""
        return self.folder / INDEX

    def save(self) -> None:
        """Takes the place of the journal before in one step; it is on disk when this returns."""
        told = {name: value for name, value in asdict(self).items() if name != "folder"}
        write_whole(self.folder / JOURNAL, [json.dumps({"version": VERSION} | told, ensure_ascii=False, indent=1)])

    def finish(self, ranking: str, *temporary: Path) -> None:
        """Says that the files of this ranking are whole, and removes those that they were made of."""
        flush_tree(self.index)
        self.finished.append(ranking)
        self.save()
        for path in temporary:
            delete(path)

    def discard(self) -> None:
        """Marks this build as not to be resumed."""
        (self.folder / JOURNAL).unlink(missing_ok=True)


def resume(folder: Path, settings: Mapping[str, Any]) -> tuple[BuildJournal, str]:
    """The journal here if it has these settings, else a new one, ``folder`` emptied; and a message to show.

    The message is empty where there was nothing before.
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
    """None where there is no journal, or none that this version wrote."""
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

"""A register of 20,000 made rows on a real server: seconds to open its page, to filter it, to note on a row.

``python -m tests.benchmarks.register_size [ROWS]``
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ragqa.corpus.demo import DEMOS
from ragqa.index import build_index, open_index
from ragqa.library.edits import SheetRow
from ragqa.library.register import register
from ragqa.library.register_sheets import merged
from ragqa.library.register_store import Handling, change, load, renewed
from ragqa.settings.config import NO_ENCODER, IndexingConfig
from ragqa.settings.paths import Paths
from tests.support.server import running_app
from tests.support.visitor import Visitor


def timed(what: str, do: Callable[[], object], times: int = 5) -> None:
    """Prints the median and the longest of so many."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        do()
        took.append(time.perf_counter() - began)
    print(f"{what}: {sorted(took)[times // 2]:.2f} s, at most {max(took):.2f}")


def main(n_rows: int) -> None:
    """Makes the register in a home of its own, and measures."""
    with tempfile.TemporaryDirectory() as home:
        paths = Paths.from_env({"RAGQA_HOME": home, "RAGQA_INDEXES": f"{home}/indexes"})
        config = IndexingConfig(encoder=NO_ENCODER)
        source, kind = DEMOS["rulebook"].source, DEMOS["rulebook"].format
        manifest = build_index("made", source, indexes=paths.indexes, config=config, encoder=None, format=kind)
        found = tuple(register(open_index("made", paths.indexes).passages))
        rows = tuple(
            replace(found[n % len(found)], obligation_id=f"{n:012x}", text=f"{found[n % len(found)].text} ({n})")
            for n in range(n_rows)
        )
        file = paths.registers / "made.jsonl"
        change(file, lambda held: renewed(held, rows, manifest.corpus_sha256)[0])
        (file.parent / "same.jsonl").write_bytes(file.read_bytes())
        timed("read from disk", lambda: load(file.parent / "same.jsonl"), 1)
        name = rows[7].obligation_id
        owners = iter("abcdefgh")

        def note() -> None:
            now = Handling(next(owners))
            change(file, lambda held: merged(held, {name: SheetRow(now, held.handling(name))})[0])

        timed("a row noted on", note)
        with running_app(Path(home), RAGQA_INDEXES=f"{home}/indexes") as address:
            visitor = Visitor(address)
            query = "corpus=made"
            timed("the page, the first time", lambda: visitor.opened("register", query), 1)
            timed("the page", lambda: visitor.opened("register", query))
            with visitor.opened("register", query) as session:
                words = iter(("4.1", "client money", "4.1", "breach hours", "no such words"))
                box = session.widgets["register_words"]
                assert f"of {n_rows:,}, {n_rows:,} in the register" in session.text
                timed("a filter", lambda: session.run(**{box: ("string_value", next(words))}))
                assert "No row has all of this" in session.text
                assert not session.failures


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)

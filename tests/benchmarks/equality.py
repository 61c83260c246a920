"""What two checkouts make of the same: `python -m tests.benchmarks.equality BEFORE [AFTER] [--obliqa FOLDER]`.

The files of both demonstration indexes, built by each; the answer and both RePASs of every example question; with
``--obliqa`` the figures of the dev questions in that folder, ranked with the defaults. BEFORE and AFTER (this one)
are folders of git worktrees. Verdicts are counted where they differ: the models behind them changed on purpose.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

CORPORA = {"rulebook": ("rulebook", "obliqa"), "encyclopedia": ("encyclopedia/articles", "text")}
ANSWER = """
import json, sys
from ragqa import Config, load_pipeline
from ragqa.corpus.demo import DEMOS
from dataclasses import replace
for name, demo in DEMOS.items():
    pipeline = load_pipeline(replace(Config.from_env(), index=name), recording=False)
    for item in demo.questions():
        row = {"id": item.question.question_id}
        for event in pipeline.run(item.question):
            match type(event).__name__:
                case "Selected": row["passages"] = [passage.passage_id for passage in event.selection.passages]
                case "Answered": row |= {"answer": event.answer.text, "refusal": event.answer.is_refusal}
                case "Scored":
                    for mode, scored in (("paper", event.paper), ("script", event.script)):
                        row[mode] = [scored.repass.entailment, scored.repass.contradiction,
                                     scored.repass.obligation_coverage, scored.repass.composite]
                    row["verdicts"] = [str(each.verdict) for each in event.paper.verdicts]
        print(json.dumps(row), flush=True)
"""


def run(tree: Path, home: Path, *arguments: str) -> str:
    """The standard output of this Python in the checkout, with a RAGQA_HOME of its own."""
    environment = os.environ | {"PYTHONPATH": str(tree), "RAGQA_HOME": str(home)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def index_files(tree: Path, home: Path) -> dict[str, str]:
    """SHA-256 of each file of the demonstration indexes that the checkout builds; of a manifest, without its dates."""
    for name, (source, kind) in CORPORA.items():
        folder = str(tree / "ragqa/corpus/demo" / source)
        options = ("--source", folder, "--format", kind, "--precision", "fp32")
        run(tree, home, "-m", "ragqa", "index", "build", name, *options)
    files = [path for path in sorted((home / "indexes").rglob("*")) if path.is_file()]
    return {str(path.relative_to(home / "indexes")): sha256(_content(path)).hexdigest() for path in files}


def _content(path: Path) -> bytes:
    if path.name != "manifest.json":
        return path.read_bytes()
    manifest = json.loads(path.read_text("utf-8"))
    changing = ("created", "libraries", "source", "digest")
    return json.dumps({key: value for key, value in manifest.items() if key not in changing}, sort_keys=True).encode()


def obliqa_figures(tree: Path, home: Path, folder: Path, encoder: str) -> Any:
    """The report of the dev questions with the default settings; the index is built where ``home`` lacks it."""
    if not (home / "indexes/obliqa").exists():
        source = ("--source", str(folder / "documents"), "--format", "obliqa", "--encoder", encoder)
        run(tree, home, "-m", "ragqa", "index", "build", "obliqa", *source)
    questions = str(folder / "ObliQA_dev.json")
    report = run(
        tree, home, "-m", "ragqa", "eval", "retrieval", "--questions", questions, "--index", "obliqa", "--json"
    )
    return json.loads(report)


def differing(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Names whose values differ, or that only one side has."""
    return sorted(name for name in before | after if before.get(name) != after.get(name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path, nargs="?", default=Path.cwd())
    parser.add_argument("--parts", nargs="*", default=["indexes", "answers"], help="indexes, answers, or both")
    parser.add_argument("--obliqa", type=Path, help="RAGQA_DATA/obliqa: measure its dev questions too")
    parser.add_argument("--encoder", default="all-MiniLM-L6-v2", help="of ObliQA's index; none: lexical rankings alone")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        homes = {given.before.resolve(): Path(folder, "before"), given.after.resolve(): Path(folder, "after")}
        if "indexes" in given.parts:
            files = [index_files(tree, home) for tree, home in homes.items()]
            print(f"index files       {len(files[0])} and {len(files[1])}; differing: {differing(*files) or 'none'}")
        if "answers" in given.parts:
            compare_answers(homes)
        if given.obliqa:
            shared = Path(folder, "obliqa")
            figures = [obliqa_figures(tree, shared, given.obliqa.resolve(), given.encoder) for tree in homes]
            print(f"ObliQA dev        equal: {figures[0] == figures[1]}")
            for side in figures:
                print(json.dumps(side)[:2000])


def compare_answers(homes: dict[Path, Path]) -> None:
    """Prints which example questions differ in what, asked of each checkout's own demonstration indexes."""
    rows = []
    for tree, home in homes.items():
        if not (home / "indexes").exists():
            shutil.copytree(tree / "indexes", home / "indexes")
        rows.append({row["id"]: row for row in map(json.loads, run(tree, home, "-c", ANSWER).splitlines())})
    print(f"example questions {len(rows[0])} and {len(rows[1])}")
    for part in ("passages", "answer", "refusal", "paper", "script", "verdicts"):
        others = differing(*({name: row.get(part) for name, row in side.items()} for side in rows))
        print(f"  {part:15} differ in {len(others)}{': ' if others else ''}{', '.join(others)}", flush=True)


if __name__ == "__main__":
    main()

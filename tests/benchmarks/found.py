"""Is the passage found that is meant: thirty rules asked for by number, and follow-ups that are rewritten by rules?

`numbered_questions.jsonl` names rules of three corpora: the demonstration rulebook, RAGQA_DATA/obliqa and
RAGQA_DATA/documents/rulebook-html. A rule counts as found if its passage, or the first one below it, is ranked first.
`thread_questions.jsonl` are follow-ups on rulebook-html; here the passage must be among the first ten. Build indexes of
these two folders first, then::

    python -m tests.benchmarks.found demo=rulebook adgm=NAME pages=NAME

With ``--threads`` the follow-ups of `ragqa.evaluation.benchmarks.expected_facts` that are not sealed are asked, too.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import typer

from ragqa.conversation import Turn, rewrite
from ragqa.evaluation.benchmarks.expected_facts.facts import FOLLOW_UPS, FURTHER_FOLLOW_UPS, rows
from ragqa.pipeline import load_pipeline
from ragqa.settings.config import Config
from ragqa.settings.paths import Paths
from ragqa.types import Question

HERE = Path(__file__).parent
AMONG = 10
_OF_PAGE = re.compile(r"\Awww\.prarulebook\.co\.uk_(?:pra-rules|guidance_[a-z-]+)_(.*)_21-01-2026__\w+(?=:)")


def found(indexes: list[str], *, threads: bool = False) -> None:
    """Prints each miss, and the counts; each of ``indexes`` is CORPUS=NAME."""
    names = dict(one.split("=") for one in indexes)
    counts: dict[str, list[bool]] = defaultdict(list)
    for corpus, kind, question, gold, most in _asked(threads):
        if corpus in names:
            ids = [_OF_PAGE.sub(r"\1", one) for one in _ids(names[corpus], question, most)]
            is_found = any(one == name or one.startswith(f"{name}.") for one in ids for name in gold)
            counts[f"{corpus}, {kind}"].append(is_found)
            if not is_found:
                print(corpus, kind, question.query.replace("\n", " // "), gold, ids[:2], sep=" | ", flush=True)
    for name, outcomes in counts.items():
        print(f"{name}: {sum(outcomes)} of {len(outcomes)}")


def _asked(threads: bool) -> Iterator[tuple[str, str, Question, tuple[str, ...], int]]:
    for row in _rows("numbered_questions.jsonl"):
        yield row["corpus"], "by number", Question(row["question"]), (row["passage"],), 1
    for row in _rows("thread_questions.jsonl"):
        yield "pages", "follow-up", _follow_up(row), (row["passage"],), AMONG
    for row in (one for name in (FOLLOW_UPS, FURTHER_FOLLOW_UPS) for one in rows(name) if threads):
        if row["part"] != "sealed" and "documents" in row:
            gold = tuple(
                one if ":" in one else f"{document['document_id']}:{one}"
                for document in row["documents"]
                for one in document["passage_ids"]
            )
            yield row["corpus"].replace("rulebook", "demo"), f"follow-up, {row['part']}", _follow_up(row), gold, AMONG


def _rows(name: str) -> Iterator[dict[str, str]]:
    return map(json.loads, (HERE / name).read_text(encoding="utf-8").splitlines())


def _follow_up(row: dict[str, str]) -> Question:
    rewritten = rewrite(row["follow_up"], [Turn(row["question"], row["answer"])])
    return Question(rewritten.rewritten, follow_up=rewritten)


_PIPELINES = {}


def _ids(index: str, question: Question, most: int) -> list[str]:
    if index not in _PIPELINES:
        config = replace(Config.from_env(), index=index)
        _PIPELINES[index] = load_pipeline(config, Paths.from_env(), recording=False)
    return [hit.passage.passage_id for hit in _PIPELINES[index].search(question.searched).hits[:most]]


if __name__ == "__main__":
    typer.run(found)

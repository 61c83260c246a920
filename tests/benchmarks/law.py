"""Three hundred questions on published law: how many are answered in full, in part, or refused, by an index of these.

About a hundred of them nothing there answers; the parts whose names end in `sealed` are for reported figures. The parts
`third` and `rulebook-third` were written from passages drawn at random: choose nothing by them. Build the index first,
of the documents of RAGQA_DATA/documents/eurlex and sbp-pdf in one folder, without vectors (`third`: with them), and for
the parts whose names begin with `rulebook` one of RAGQA_DATA/documents/rulebook-html, then::

    python -m tests.benchmarks.law law --part open
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import typer

from ragqa.evaluation.benchmarks.expected_facts.facts import Facts, judge, patterns
from ragqa.pipeline import load_pipeline
from ragqa.settings.config import Config
from ragqa.settings.paths import Paths
from ragqa.types import Question
from ragqa.types.streams import returned

QUESTIONS = Path(__file__).with_name("law_questions.jsonl")


def law(index: str, part: str = "open") -> None:
    """Prints a line for each question of the part, and the counts."""
    pipeline = load_pipeline(replace(Config.from_env(), index=index), Paths.from_env(), recording=False)
    counts: Counter[str] = Counter()
    for row in map(json.loads, QUESTIONS.read_text(encoding="utf-8").splitlines()):
        if row["part"] != part:
            continue
        question, ranking = Question(row["question"]), pipeline.search(row["question"])
        answer, _ = returned(pipeline.generator.stream_searching(question, ranking, pipeline.search))
        if "facts" in row:
            facts = Facts({one["part"]: patterns(one["any_of"]) for one in row["facts"]}, patterns(row["wrong"]))
            outcome = str(judge(answer, facts).outcome)
            lead = replace(answer, text=answer.sentences[0].text if answer.sentences else "")
            counts["first sentence answers"] += bool(judge(lead, facts).found)
        else:
            outcome = f"unanswerable, {'refused' if answer.state == 'not found' else 'answered'}"
        counts[outcome] += 1
        print(outcome, row["question"], answer.text[:200].replace("\n", " "), sep=" | ")
    print(", ".join(f"{name} {count}" for name, count in sorted(counts.items())))


if __name__ == "__main__":
    typer.run(law)

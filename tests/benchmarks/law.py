"""Six hundred questions on published law: how many are answered in full, in part, or refused, by an index of these.

About 220 of them nothing there answers; the parts whose names end in `sealed` are for reported figures. The parts
`third`, `fourth`, `fifth`, those of a rulebook with such names, `examiners` and `controls` are of passages drawn at
random: choose nothing by them. Build the index first, of the documents of RAGQA_DATA/documents/eurlex and sbp-pdf in
one folder, without vectors (from `third` on: with them), for the parts whose names begin with `rulebook` one of
RAGQA_DATA/documents/rulebook-html, for `examiners` one of us-supervision-pdf, for `controls` one of nist-xlsx, then::

    python -m tests.benchmarks.law law --part open --preset cross-encoder
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
from ragqa.settings.preset_files import find_preset
from ragqa.settings.presets import PRESETS, with_preset
from ragqa.types import Question
from ragqa.types.streams import returned

QUESTIONS = Path(__file__).with_name("law_questions.jsonl")


def law(index: str, part: str = "open", preset: str = PRESETS[0].name) -> None:
    """Prints a line for each question of the part, and the counts."""
    paths = Paths.from_env()
    config = with_preset(replace(Config.from_env(), index=index), find_preset(preset, paths.presets))
    pipeline = load_pipeline(config, paths, recording=False)
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
            texts = "\n".join(hit.passage.text for hit in ranking.hits[:10])
            counts["facts among ten passages"] += bool(judge(replace(answer, text=texts), facts).found)
        else:
            outcome = f"unanswerable, {'refused' if answer.state == 'not found' else 'answered'}"
        counts[outcome] += 1
        print(outcome, row["question"], answer.text[:200].replace("\n", " "), sep=" | ")
    print(", ".join(f"{name} {count}" for name, count in sorted(counts.items())))


if __name__ == "__main__":
    typer.run(law)

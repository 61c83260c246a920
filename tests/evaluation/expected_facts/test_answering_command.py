"""`ragqa eval answering`: every case of a part is asked of its corpus, and outcomes are counted by corpus and kind."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ragqa.cli import app
from ragqa.errors import ConfigError
from ragqa.evaluation.benchmark import Item, Task
from ragqa.evaluation.benchmarks.expected_facts.benchmark import BENCHMARK, Case, separation
from ragqa.evaluation.benchmarks.expected_facts.facts import Facts, patterns
from ragqa.evaluation.benchmarks.generated_answers.solving import ReceivedAnswer
from ragqa.types import Question
from tests.support.fakes import answer
from tests.support.helpers import make_pipeline

FACTS = Facts({"year": patterns(["1912"]), "place": patterns(["belfast"])}, patterns(["1913"]))


def outcome_of(said, facts=FACTS, **fields):
    solution = asdict(ReceivedAnswer(answer(said, **fields), (), (), {"retrieval": 0.5}))
    item = Item(1, Question("When, and where?", "answer-1"), Case("encyclopedia", "two-part", facts))
    return BENCHMARK.score(Task((item,), {}, {"encyclopedia": make_pipeline()}), item, solution)


@pytest.mark.parametrize(
    ("said", "outcome", "right", "first", "beside"),
    [
        ("In 1912.\nIt was built in Belfast.", "full", True, True, 0.0),
        ("It sank.\nIn 1912.", "part", False, False, 0.5),
        ("In 1913.\nIn Belfast.", "wrong", False, False, 0.5),
        ("It sank.", "none", False, False, 1.0),
    ],
)
def test_an_answer_is_judged_by_its_facts_and_each_sentence_by_itself(said, outcome, right, first, beside):
    scores = outcome_of(said)
    assert (scores["outcome"], scores["right"], scores["first"], scores["beside"]) == (outcome, right, first, beside)
    assert scores["words"] == len(said.split())
    assert scores["seconds"] == 0.5


def test_a_refusal_is_right_only_where_the_corpus_does_not_answer():
    assert outcome_of("The corpus does not answer.", is_refusal=True)["outcome"] == "refused"
    assert not outcome_of("The corpus does not answer.", is_refusal=True)["right"]
    assert outcome_of("The corpus does not answer.", None, is_refusal=True)["right"]
    answered = outcome_of("In 1912.", None)
    assert (answered["outcome"], answered["right"]) == ("answered", False)


def test_relevance_is_measured_of_every_answer_and_of_no_refusal():
    assert 0.0 < outcome_of("In 1912.\nIt was built in Belfast.")["relevance"] < 1.0
    assert outcome_of("The corpus does not answer.", is_refusal=True)["relevance"] is None
    assert outcome_of("The corpus does not answer.", is_refusal=True)["beside"] is None


def test_separation_counts_pairs_in_the_right_order():
    assert separation([0.9, 0.5], [0.1, 0.5]) == (1 + 1 + 1 + 0.5) / 4
    assert separation([], [0.5]) is None


def test_a_generator_that_writes_nothing_is_refused():
    result = CliRunner().invoke(app, ["eval", "answering", "--generator", "none", "--index", "rulebook"])
    assert isinstance(result.exception, ConfigError)
    assert "the generator must write answers" in str(result.exception)


@pytest.mark.model
def test_a_run_counts_by_corpus_and_kind_and_continues(tmp_path):
    options = ["eval", "answering", "--index", "encyclopedia", "--out", str(tmp_path / "run"), "--json"]
    first = CliRunner().invoke(app, [*options, "--limit", "3"])
    assert first.exit_code == 0, first.output
    report = json.loads(first.stdout)
    assert report["n_done"] == 3
    total = next(row for row in report["answerable"] if row["corpus"] == row["kind"] == "all")
    assert sum(n for name, n in total.items() if name not in ("corpus", "kind")) == 3
    again = CliRunner().invoke(app, [*options[:-1], "--limit", "3"], env={"COLUMNS": "150"})
    assert "Questions that the corpus answers" in again.stdout
    assert Path(tmp_path / "run" / "journal.jsonl").exists()

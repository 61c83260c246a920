"""`ragqa eval follow-ups`: the open threads by rules, and a wrong rewriting counted as such."""

import json

from typer.testing import CliRunner

from ragqa.cli import app
from ragqa.evaluation.benchmark import Item, Task
from ragqa.evaluation.benchmarks.follow_ups.benchmark import BENCHMARK
from ragqa.settings.paths import Paths
from ragqa.types import Question
from ragqa.types.streams import returned

ROW = {"kind": "and for", "question": "How high is Everest?", "must": ["K2"], "must_not": ["everest"]}


def test_a_rewriting_is_right_with_all_of_must_and_none_of_must_not():
    item = Item(1, Question("And K2?", "follow-1"), ROW)
    for text, right in (("How high is K2?", True), ("How high are K2 and Everest?", False), ("How high?", False)):
        assert BENCHMARK.score(Task((item,), {}, None), item, {"rewritten": text})["right"] is right


def test_the_command_counts_by_kind_and_continues(tmp_path):
    command = ["eval", "follow-ups", "--json", "--out", str(tmp_path / "run")]
    for _ in range(2):
        data = json.loads(CliRunner().invoke(app, command).stdout)
        assert (data["n_done"], sum(data["asked"].values()), data["by"]) == (20, 20, {"rules": 20})
        assert sum(data["right"].values()) >= 18


def test_the_stamp_holds_the_prompt_that_is_sent(tmp_path, monkeypatch):
    def stamp():
        return returned(BENCHMARK.load(BENCHMARK.settings(), Paths.from_env())).stamp

    plain = stamp()
    (tmp_path / "follow_up.txt").write_text("Rewrite it briefly.")
    monkeypatch.setenv("RAGQA_PROMPTS", str(tmp_path))
    assert stamp()["prompt"] != plain["prompt"]

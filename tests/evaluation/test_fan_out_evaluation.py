"""`ragqa eval retrieval --fan-out`: measured beside single-shot retrieval, with the arithmetic written out."""

import json

import pytest
from ragqa.evaluation.fan_out import compare_fan_out, fan_out_all
from typer.testing import CliRunner

from ragqa.cli import app
from ragqa.corpus.questions import GoldQuestion
from ragqa.evaluation.retrieval import measured
from ragqa.types import Question
from tests.support.fan_out_world import BRIDGE, COMPARISON, WHOLE, WordRetriever

GOLD = (
    GoldQuestion(Question(BRIDGE), frozenset({"light:1", "holm:1"})),
    GoldQuestion(Question(COMPARISON), frozenset({"eben:1", "tarn:1"})),
    GoldQuestion(Question(WHOLE), frozenset({"town:1", "gone:1"})),
)


def done(steps):
    counts = []
    while True:
        try:
            counts.append(next(steps))
        except StopIteration as stop:
            return counts, stop.value


def test_merged_rankings_their_time_and_the_mean_number_of_sub_questions():
    retriever = WordRetriever()

    def search(question):
        return retriever.retrieve(question, 100)

    single = tuple(search(gold.question.text) for gold in GOLD)
    counts, (rankings, milliseconds, n_asked) = done(fan_out_all(GOLD, single, search))
    assert counts == [1, 2, 3]
    assert n_asked == pytest.approx((1 + 2 + 0) / 3)
    assert milliseconds > 0
    assert [hit.passage.passage_id for hit in rankings[2].hits] == [hit.passage.passage_id for hit in single[2].hits]
    assert {hit.passage.passage_id for hit in rankings[1].hits[:2]} == {"eben:1", "tarn:1"}


def test_recall_and_all_gold_are_those_of_the_rankings():
    retriever = WordRetriever()
    single = measured("fused", GOLD, tuple(retriever.retrieve(gold.question.text, 1) for gold in GOLD))
    whole = measured("fan-out", GOLD, tuple(retriever.retrieve(gold.question.text, 100) for gold in GOLD))
    found = {one.name: one for one in compare_fan_out(single, whole)}
    assert list(found) == ["R@2", "all gold@2", "R@5", "all gold@5", "R@10", "all gold@10"]
    assert found["R@5"].single == pytest.approx((1 / 2 + 1 / 2 + 1 / 2) / 3)
    assert found["R@5"].fan_out == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert (found["all gold@5"].single, found["all gold@5"].fan_out) == (0.0, pytest.approx(2 / 3))
    assert found["R@5"].test.mean_difference == pytest.approx(found["R@5"].fan_out - found["R@5"].single)
    assert all(0 < one.adjusted_p <= 1 for one in found.values())


@pytest.mark.model
def test_the_command_prints_both_and_writes_them_as_json(tmp_path):
    questions = "ragqa/corpus/demo/encyclopedia/questions.json"
    options = ["eval", "retrieval", "--index", "encyclopedia", "--questions", questions, "--limit", "4", "--fan-out"]
    result = CliRunner().invoke(app, [*options, "--json", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "report.json").read_text())
    assert set(report["measures"]) >= {"fused", "fused, fan-out"}
    assert [one["name"] for one in report["fan_out"]["measures"]][:2] == ["R@2", "all gold@2"]
    for one in report["fan_out"]["measures"]:
        name = one["name"]
        if name.startswith("R@"):
            assert one["fan_out"] == pytest.approx(report["measures"]["fused, fan-out"][name])
    shown = CliRunner().invoke(app, options)
    assert "fan-out by rules" in shown.output


@pytest.mark.model
def test_on_the_demonstration_encyclopedia_it_is_no_worse_than_single_shot():
    questions = "ragqa/corpus/demo/encyclopedia/questions.json"
    result = CliRunner().invoke(
        app, ["eval", "retrieval", "--index", "encyclopedia", "--questions", questions, "--fan-out", "--json"]
    )
    report = json.loads(result.stdout[result.stdout.index("{") :])
    for one in report["fan_out"]["measures"]:
        assert one["fan_out"] >= one["single"], one["name"]

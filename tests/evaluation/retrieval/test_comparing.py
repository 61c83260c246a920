"""Configurations side by side: measures per question, tests against a baseline, files that read back."""

import json

import pytest

from ragqa.corpus.questions import GoldQuestion
from ragqa.evaluation.benchmarks.retrieval.comparing import compare, compare_all_gold, measured, write_outputs
from ragqa.settings.config import FusionConfig
from ragqa.types import Question, Ranking, ScoredPassage
from tests.support.fakes import passage
from tests.support.made import evaluate, read_run

QUESTIONS = tuple(
    GoldQuestion(Question(f"question {n}", str(n)), frozenset(gold)) for n, gold in enumerate(("a", "bc"))
)


def column(name, order, questions=QUESTIONS):
    hits = [ScoredPassage(passage(letter), 10.0 - n) for n, letter in enumerate(order)]
    return tuple(Ranking.of(name, hits) for _ in questions)


def test_each_ranking_and_each_fusion_is_measured():
    columns = [column("bm25", "ad"), column("dense", "dcb")]
    fusions = {"fused": FusionConfig(), "words": FusionConfig.of(bm25=1)}
    results = {result.name: result for result in evaluate(QUESTIONS, columns, fusions)}
    assert list(results) == ["bm25", "dense", "fused", "words"]
    assert results["bm25"].values["R@10"] == [1.0, 0.0]
    assert results["dense"].values["R@10"] == [0.0, 1.0]
    assert results["dense"].values["AP@10"] == [0.0, pytest.approx((1 / 2 + 2 / 3) / 2)]
    assert results["fused"].means["R@10"] == 1.0
    assert results["words"].values == results["bm25"].values


def test_documents_count_where_their_first_passage_stands():
    rankings = (
        Ranking.of("bm25", [ScoredPassage(passage(name), 9.0 - n) for n, name in enumerate(("d:1", "d:2", "e:1"))]),
    )
    questions = (GoldQuestion(Question("q"), frozenset("e")),)
    (result,) = evaluate(questions, [rankings], {}, "document")
    assert (result.means["Success@1"], result.means["Success@2"], result.means["RR@10"]) == (0.0, 1.0, 0.5)


def test_comparisons_are_against_the_baseline_and_adjusted():
    many = QUESTIONS * 20
    columns = [column("bm25", "a", many), column("dense", "bc", many)]
    results = evaluate(many, columns, {"fused": FusionConfig()})
    found = {(c.name, c.measure): c for c in compare(results, "fused")}
    assert set(found) == {(name, measure) for name in ("bm25", "dense") for measure in ("R@10", "AP@10")}
    worse = found["bm25", "R@10"]
    assert worse.test.mean_difference == pytest.approx(-0.5)
    assert worse.test.p_value < 0.001
    assert all(c.adjusted_p >= c.test.p_value for c in found.values())


def test_recall_and_all_gold_with_the_arithmetic_written_out():
    gold = tuple(GoldQuestion(Question(f"{n}", f"{n}"), frozenset("ab")) for n in range(3))
    single = measured("fused", gold, column("fused", "a", gold))
    whole = measured("fan-out", gold, (*column("fan-out", "ab", gold[:2]), *column("fan-out", "b", gold[2:])))
    found = {one.name: one for one in compare_all_gold(single, whole)}
    assert list(found) == ["R@2", "all gold@2", "R@5", "all gold@5", "R@10", "all gold@10"]
    assert found["R@5"].single == pytest.approx((1 / 2 + 1 / 2 + 1 / 2) / 3)
    assert found["R@5"].fan_out == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert (found["all gold@5"].single, found["all gold@5"].fan_out) == (0.0, pytest.approx(2 / 3))
    assert found["R@5"].test.mean_difference == pytest.approx(found["R@5"].fan_out - found["R@5"].single)
    assert all(0 < one.adjusted_p <= 1 for one in found.values())


def test_the_files_are_a_run_that_reads_back_and_a_report(tmp_path):
    results = evaluate(QUESTIONS, [column("bm25", "ad")], {"my fusion (.5)": FusionConfig.of(bm25=1)})
    names = write_outputs(tmp_path, QUESTIONS, results, {"n_questions": 2})
    assert {path.name for path in tmp_path.iterdir()} == set(names)
    assert "my-fusion---5.run" in names
    assert [name for name, _ in read_run(tmp_path / "bm25.run")["0"]] == ["a", "d"]
    first = json.loads((tmp_path / "bm25.questions.jsonl").read_text().splitlines()[0])
    assert (first["gold"], first["found"], first["values"]["R@10"]) == (["a"], ["a", "d"], 1.0)
    assert json.loads((tmp_path / "report.json").read_text()) == {"n_questions": 2}

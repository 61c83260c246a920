"""`ragqa eval retrieval` as its user runs it: tables, files, presets, rerankers, fan-out, continuing after a stop."""

import gzip
import json
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from ragqa.cli import app
from ragqa.corpus.demo import DEMOS
from ragqa.english.words import Analyser
from ragqa.errors import ConfigError
from ragqa.evaluation.benchmarks.retrieval import benchmark, tables
from ragqa.evaluation.benchmarks.retrieval.benchmark import BENCHMARK, QUESTIONS
from ragqa.evaluation.benchmarks.retrieval.setups import setups_of
from ragqa.evaluation.benchmarks.retrieval.tables import published_rows
from ragqa.evaluation.catalogue import benchmark_of, demo_files, offered_files
from ragqa.evaluation.run import run
from ragqa.plugins import registry
from ragqa.settings.config import Config, FusionConfig
from ragqa.settings.paths import Paths
from ragqa.settings.presets import PRESETS, Preset
from ragqa.types import Ranking, ScoredPassage
from tests.support.fakes import FakeRetriever, passage
from tests.support.made import read_run
from tests.support.pandachat_set import submission, write_set

DEMO = DEMOS["rulebook"]
ENCYCLOPEDIA = DEMOS["encyclopedia"].question_files[0]


def invoke(*options, index="rulebook", questions=DEMO.question_files[0]):
    fixed = ["eval", "retrieval", "--index", index, "--questions", str(questions)]
    return CliRunner().invoke(app, [*fixed, *options], env={"COLUMNS": "200"})


def test_published_rows_are_those_that_the_presets_tell_of():
    told = " ".join(preset.explanation for preset in PRESETS)
    assert len(published_rows()) == 15
    for row in published_rows():
        assert f"{100 * row['recall']:.1f} / {100 * row['mean_average_precision']:.1f}" in told, row


def test_files_with_gold_are_known_by_what_they_hold(tmp_path):
    (tmp_path / "sets").mkdir()
    write_set(tmp_path / "sets" / "panda.json")
    (tmp_path / "sets" / "submission.json").write_text(json.dumps(submission([], [], [], [])))
    (tmp_path / "obliqa.json").write_text(json.dumps([{"QuestionID": "1", "Question": "?", "Passages": []}]))
    (tmp_path / "asked.json").write_text(json.dumps([{"QuestionID": "1", "Question": "?"}]))
    (tmp_path / "lines.jsonl").write_text(json.dumps({"question": "?", "gold_passage_ids": [1]}))
    (tmp_path / "noise.json").write_bytes(b"\xff\xfe{")
    found = {file.label for file in offered_files(QUESTIONS, tmp_path)}
    assert found == {"obliqa.json", "lines.jsonl", "sets/panda.json"}
    assert offered_files(QUESTIONS, tmp_path / "nowhere") == ()
    assert {file.path.name for file in demo_files(QUESTIONS)} == {
        "questions.json",
        "questions_1.json",
        "questions_2.json",
    }


def test_presets_of_one_name_are_refused_as_their_figures_would_be_mixed():
    settings = BENCHMARK.settings(questions=DEMO.question_files[0])
    for names in (("mine", "mine"), ("my own", "my-own")):
        presets = [Preset(name, "", fusion=FusionConfig.of(bm25=n, dense=1)) for n, name in enumerate(names, start=1)]
        with pytest.raises(ConfigError, match=f"found {names[0]!r} and {names[1]!r}"):
            setups_of(settings, ("bm25", "dense"), presets, Config())


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Runs the benchmark on one passage with retrievers of these names; the names in the report."""
    one = passage("1:1.1")
    gold = [{"DocumentID": 1, "PassageID": "1.1", "Passage": ""}]
    file = tmp_path / "questions.json"
    file.write_text(json.dumps([{"QuestionID": "q", "Question": "Who reports?", "Passages": gold}]))
    about = {"name": "rules", "encoder": "", "encoder_fingerprint": "", "n_documents": 1, "n_passages": 1}
    manifest = SimpleNamespace(files=[], rankings=(), size_bytes=1, analyser=Analyser(), **about)
    index = SimpleNamespace(passages=(one,), position_of={"1:1.1": 0}, manifest=manifest)

    def run_it(*names, file=file, **how):
        found = [FakeRetriever(Ranking.of(name, [ScoredPassage(one, 1.0)])) for name in names]
        monkeypatch.setattr(benchmark, "retrievers_of", lambda *_, **__: (index, found, FusionConfig()))
        settings = BENCHMARK.settings(questions=file, index="rules")
        *_, last = run(BENCHMARK, settings, tmp_path / "run", Paths(tmp_path), **how)
        return list(last.report.data["measures"])

    return run_it


def test_a_run_does_not_go_on_with_a_retriever_that_a_package_has_added_meanwhile(measured, monkeypatch):
    assert measured("bm25") == ["bm25", "fused"]
    points = {"titles": EntryPoint("titles", "no.module:Titles", registry.RETRIEVERS)}
    monkeypatch.setattr(registry, "entry_points_of", lambda _: points)
    with pytest.raises(ConfigError, match=r"settings.added was None, is \['titles'\]"):
        measured("bm25", "titles")


def test_packed_questions_are_asked(measured, tmp_path):
    file = tmp_path / "questions.jsonl.gz"
    file.write_bytes(gzip.compress(b'{"question": "Who reports?", "gold_passage_ids": ["1"]}'))
    assert measured("bm25", file=file) == ["bm25", "fused"]


def test_no_ranking_of_others_is_overwritten(measured, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "bm25.run").write_text("mine")
    with pytest.raises(ConfigError, match=r"holds bm25\.run of something else"):
        measured("bm25")
    (tmp_path / "run" / "bm25.run").unlink()
    measured("bm25")
    assert measured("bm25", restart=True) == ["bm25", "fused"]


@pytest.mark.model
def test_rankings_and_fusions_are_shown_written_and_restored(tmp_path, monkeypatch):
    out = tmp_path / "out"
    result = invoke("--limit", "6", "--preset", "BM25 0.6 + dense 0.4", "--out", str(out))
    assert result.exit_code == 0, result.output
    for name in ("bm25", "context", "dense", "fused", "BM25 0.6 + dense 0.4"):
        assert name in result.stdout
    assert "ublished" not in result.stdout, "measured on other questions"
    report = json.loads((out / "report.json").read_text())
    assert list(report["measures"]) == ["bm25", "context", "dense", "citations", "fused", "BM25 0.6 + dense 0.4"]
    assert report["n_questions"] == 6
    assert report["milliseconds"]["dense"] > 0
    assert {one["name"] for one in report["comparisons"]} == set(report["measures"]) - {"fused"}
    hits = read_run(out / "fused.run")
    first = json.loads((out / "fused.questions.jsonl").read_text().splitlines()[0])
    assert [name for name, _ in hits[first["question_id"]]][:10] == first["found"]
    monkeypatch.setattr(tables, "OBLIQA_TEST", (6, 10))  # documents of the rulebook
    assert "Beside published figures" in invoke("--limit", "6").stdout
    again = invoke("--limit", "6", "--preset", "BM25 0.6 + dense 0.4", "--out", str(out), "--json")
    assert "6 are done already" in again.stderr
    assert json.loads(again.stdout)["measures"] == report["measures"]
    other = invoke("--limit", "6", "--out", str(out), "--json")  # scored again, not ranked again
    assert json.loads(other.stdout)["measures"]["fused"] == report["measures"]["fused"]


@pytest.mark.model
def test_a_reranker_and_the_learned_ranking_are_measured_beside_the_baseline(tmp_path):
    result = invoke(
        "--limit", "3", "--reranker", "ranker-adgm", "--rerank-weight", "0.5", "--rerank-weight", "1", "--json"
    )
    assert result.exit_code == 0, result.output
    measures = json.loads(result.stdout)["measures"]
    assert list(measures)[-2:] == ["fused, reranked 0.5", "fused, reranked 1"]
    unknown = invoke("--baseline", "nothing")
    assert unknown.exit_code == 1 or "must be one of 'bm25'" in str(unknown.exception)


@pytest.mark.model
def test_the_fan_out_is_measured_beside_single_shot(tmp_path):
    result = invoke("--limit", "4", "--fan-out", "--out", str(tmp_path), index="encyclopedia", questions=ENCYCLOPEDIA)
    assert result.exit_code == 0, result.output
    assert "fan-out by rules" in result.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert set(report["measures"]) >= {"fused", "fused, fan-out"}
    assert [one["name"] for one in report["fan_out"]["measures"]][:2] == ["R@2", "all gold@2"]
    for one in report["fan_out"]["measures"]:
        if one["name"].startswith("R@"):
            assert one["fan_out"] == pytest.approx(report["measures"]["fused, fan-out"][one["name"]])


@pytest.mark.model
@pytest.mark.slow
def test_on_the_demonstration_encyclopedia_fan_out_is_no_worse_than_single_shot():
    result = invoke("--fan-out", "--json", index="encyclopedia", questions=ENCYCLOPEDIA)
    for one in json.loads(result.stdout)["fan_out"]["measures"]:
        assert one["fan_out"] >= one["single"], one["name"]


@pytest.mark.model
def test_rows_show_what_was_found_and_what_would_be_right(tmp_path):
    settings = BENCHMARK.settings(questions=DEMO.question_files[0], limit=2)
    last = list(run(benchmark_of("retrieval"), settings, tmp_path / "run", Paths.from_env()))[-1]
    row = last.rows[0]
    assert row.gold
    assert len(row.hits) == 10
    assert row.right == (row.values["R@10"] == 1)
    assert {hit.passage_id for hit in row.hits if hit.is_gold} <= set(row.gold)
    assert last.report.figures[0].label == "R@10"
    assert [file.name for file in last.report.files] == ["fused.run", "fused.questions.jsonl", "report.json"]
    assert all(Path(tmp_path / "run" / file.name).is_file() for file in last.report.files)

"""`from ragqa import score`: the numbers of `ragqa score`, and nothing of the page."""

import json
import subprocess
import sys
from dataclasses import asdict

import pytest
from typer.testing import CliRunner

import ragqa
from ragqa.cli import app
from ragqa.evaluation import metric
from ragqa.evaluation.benchmarks.external_answers import benchmark
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.settings.config import ScoringConfig
from ragqa.types.scores import ScoringMode
from tests.support.fakes import FakeEncoder, FakeObligations, FakeSelector
from tests.support.hashed_nli import HashedNli

TRIPLES = [
    ("What must a firm do?", ["A firm must act. Cats sleep."], "It must act."),
    ("", ["Cats sleep.", "Dogs must bark."], "Dogs bark. Cats sleep."),
    ("Who barks?", [], "Dogs bark."),
]


@pytest.fixture
def loaded(monkeypatch):
    configs = []

    def load(config, *_):
        configs.append(config)
        nli = HashedNli()
        return RepassScorer(nli, nli, FakeObligations(), config, FakeEncoder())

    monkeypatch.setattr(metric, "load_scorer", load)
    monkeypatch.setattr(metric, "load_selector", lambda _: FakeSelector(act=2.0))
    monkeypatch.setattr(benchmark, "load_scorer", load)
    metric._models.cache_clear()
    yield configs
    metric._models.cache_clear()


def test_the_numbers_are_those_of_the_command(loaded, tmp_path, monkeypatch):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path / "home"))
    rows = [
        {"QuestionID": str(n), "Question": question, "RetrievedPassages": passages, "Answer": answer}
        for n, (question, passages, answer) in enumerate(TRIPLES)
    ]
    (tmp_path / "answers.json").write_text(json.dumps(rows))
    result = CliRunner().invoke(app, ["score", str(tmp_path / "answers.json"), "--json"])
    assert result.exit_code == 0, result.output
    for row, found in zip(json.loads(result.stdout), ragqa.score_all(TRIPLES), strict=True):
        told = row["paper"]
        assert told["repass"] == asdict(found.repass)
        assert [one["verdict"] for one in told["verdicts"]] == [one.verdict for one in found.breakdown.verdicts]


def test_models_are_loaded_once_for_the_same_settings(loaded):
    list(ragqa.score_all(TRIPLES))
    first = ragqa.score(*TRIPLES[0])
    assert len(loaded) == 1
    script = ragqa.score(*TRIPLES[0], config=ScoringConfig(mode=ScoringMode.SCRIPT))
    assert len(loaded) == 2
    assert (first.mode, script.mode) == (ScoringMode.PAPER, ScoringMode.SCRIPT)
    assert first.scored.script.repass == script.repass


def test_a_question_adds_its_relevance_and_no_question_none(loaded):
    with_question, without, _ = ragqa.score_all(TRIPLES)
    assert with_question.relevance is not None
    assert without.relevance is None
    assert 0.0 <= with_question.supported + with_question.contradicted <= 1.0


def test_nothing_of_the_page_is_loaded():
    code = "import sys, ragqa; ragqa.score; print('streamlit' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"

"""`ragqa eval verdicts` on fake models: what it reports, keeps and continues, and what a language model adds."""

import json

import pytest
from typer.testing import CliRunner

import ragqa.evaluation.benchmarks.verdicts.benchmark as verdicts
from ragqa.cli import app
from ragqa.errors import ConfigError
from ragqa.evaluation.run import run
from ragqa.index import build_index, open_index
from ragqa.pipeline import assemble
from ragqa.settings.config import IndexingConfig
from ragqa.settings.paths import Paths
from ragqa.types.scores import NliProbabilities
from tests.support.fakes import FakeEncoder, FakeNli, fake_models
from tests.support.openai_server import OpenAIServer, answer, cut_after

RULES = """# Rules

## Records

A firm must keep records for six years. The firm must notify the Commission within 72 hours.

## Fees

An annual fee of HMD 500 is due on 31 January. A late fee is 5 per cent of it.
"""
LAKES = """# Lakes

The deep lake lies in the south of Russia. Its greatest depth is 1,642 metres. It was first mapped in 1890.
"""


class Contradicting(FakeNli):
    """Equal sentences entail; what shares its first three words contradicts; the rest is neutral."""

    def _default(self, premise, hypothesis):
        if premise != hypothesis and premise.split()[:3] == hypothesis.split()[:3]:
            return NliProbabilities(0.9, 0.05, 0.05)
        return super()._default(premise, hypothesis)


@pytest.fixture(scope="module")
def indexes(tmp_path_factory):
    source, folder = tmp_path_factory.mktemp("corpus"), tmp_path_factory.mktemp("indexes")
    (source / "rules.md").write_text(RULES)
    (source / "lakes.md").write_text(LAKES)
    build_index("small", source, indexes=folder, config=IndexingConfig(), encoder=FakeEncoder())
    return folder


@pytest.fixture
def nli(indexes, monkeypatch):
    model = Contradicting()
    monkeypatch.setenv("RAGQA_INDEXES", str(indexes))
    monkeypatch.setattr(
        verdicts,
        "pipeline_for",
        lambda config, paths: assemble(config, open_index(config.index, paths.indexes), fake_models(model)),
    )
    return model


def invoke(*options):
    return CliRunner().invoke(app, ["eval", "verdicts", "--index", "small", *options], env={"COLUMNS": "200"})


def test_every_kind_that_the_corpus_gives_is_judged_three_times(nli, tmp_path):
    result = invoke("--out", str(tmp_path / "run"), "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report == json.loads((tmp_path / "run" / "report.json").read_text())
    judges = report["judges"]
    assert list(judges) == ["verdicts", "thresholds", "model"]
    kinds = judges["thresholds"]
    assert {"verbatim", "removed", "number", "date", "unit", "amount", "modal", "negation", "other document"} <= set(
        kinds
    )
    assert kinds["verbatim"]["right"]["share"] == 1
    assert kinds["removed"]["said"]["supported"]["count"] == 0
    assert judges["model"]["verbatim"]["right"]["share"] == 1
    assert kinds["obligation"]["expected"] == "covered"
    assert report["counts"]["scored"] == sum(
        len(kind) and kind["n"] for name, kind in kinds.items() if name != "all edits"
    )
    wrong = report["wrong"]
    assert all(one["said"]["verdicts"] != one["expected"] for one in wrong)
    assert all({"text", "reason", "passages", "change"} <= set(one) for one in wrong)


def test_the_tables_are_printed(nli):
    result = invoke("--n", "1", "--kind", "verbatim", "--kind", "number")
    assert result.exit_code == 0, result.output
    for part in ("verbatim → supported", "number → contradicted", "sources disagree", "model alone", "1.00 [.21–1.00]"):
        assert part in result.stdout
    assert "negation" not in result.stdout


def test_a_run_continues_and_other_rules_score_it_again_without_retrieval(nli, tmp_path, monkeypatch):
    out = ("--out", str(tmp_path / "run"), "--n", "2")
    first = invoke(*out, "--json")
    n_pairs = len(nli.pairs)
    again = invoke(*out, "--json")
    assert "left" in again.stderr
    assert json.loads(again.stdout) == json.loads(first.stdout)
    assert len(nli.pairs) == n_pairs
    monkeypatch.setattr(verdicts, "RULES_VERSION", "other")
    monkeypatch.setattr(verdicts, "passages_for", None)  # solved already
    third = invoke(*out, "--json")
    assert json.loads(third.stdout)["rules"] == "other"
    assert len(nli.pairs) > n_pairs


def test_an_edit_that_another_passage_states_is_skipped(nli, monkeypatch, tmp_path):
    monkeypatch.setattr(verdicts, "stated_in", lambda text, passages: passages[0])
    report = json.loads(invoke("--n", "1", "--kind", "number", "--kind", "verbatim", "--json").stdout)
    assert set(report["judges"]["verdicts"]) == {"verbatim"}
    assert report["counts"]["skipped"] == 1


def test_rows_show_sentence_verdict_reason_and_passages(nli, tmp_path):
    settings = verdicts.BENCHMARK.settings(index="small", n=1)
    rows = list(run(verdicts.BENCHMARK, settings, tmp_path / "run", Paths.from_env()))[-1].rows
    number = next(row for row in rows if row.question_id == "number")
    assert number.sentences[0].text == number.answer == number.question
    assert number.sentences[0].citations
    assert any(hit.is_gold for hit in number.hits)
    assert any(step.startswith("changed: ") for step in number.steps)
    assert set(number.values) == {"verdicts", "thresholds", "model"}


def test_nothing_to_probe_is_said(nli):
    result = invoke("--cases", "labelled")
    assert isinstance(result.exception, ConfigError)
    assert "found none" in str(result.exception)


def test_re_wording_wants_a_language_model(nli):
    assert "OPENAI_BASE_URL" in verdicts.BENCHMARK.lacks({"reword": True})
    assert isinstance(invoke("--reword").exception, ConfigError)


def test_a_language_model_re_words_once(nli, monkeypatch, tmp_path):
    options = ("--reword", "--n", "1", "--kind", "verbatim", "--json", "--out", str(tmp_path / "run"))
    with OpenAIServer(answer("Six years is how long\nrecords are kept.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        report = json.loads(invoke(*options).stdout)
        assert report["judges"]["verdicts"]["re-worded"]["n"] == 1
        assert report["wrong"][0]["text"] == "Six years is how long records are kept."
        invoke(*options)
        assert len(server.requests) == 1


@pytest.mark.parametrize(("reply", "found"), [(cut_after("Six years"), "a part of it"), (answer(""), "no text")])
def test_a_re_wording_that_breaks_off_or_is_empty_is_not_judged(nli, monkeypatch, tmp_path, reply, found):
    options = ("--reword", "--n", "1", "--kind", "verbatim", "--json", "--out", str(tmp_path / "run"))
    with OpenAIServer(reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        report = json.loads(invoke(*options).stdout)
    assert report["counts"]["failed"] == 1
    assert "re-worded" not in report["judges"]["verdicts"]
    assert found in (tmp_path / "run" / "journal.jsonl").read_text()


def test_sealed_cases_are_not_run_unless_they_are_named():
    assert verdicts.BENCHMARK.option("part").default == "open"
    assert verdicts.BENCHMARK.option("cases").default == "made"

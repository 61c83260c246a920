"""`ragqa score`: continuing after a crash at every step on disk, refusals, duplicates, skipped and failed items."""

import csv
import json
import os
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import ragqa.cli
from ragqa.cli import app
from ragqa.cli.output import fail
from ragqa.corpus.answers import read_answers
from ragqa.errors import CorpusError, ModelError, RagqaError, ScoringError
from ragqa.evaluation import run as run_module
from ragqa.evaluation.benchmarks.external_answers import benchmark as scoring
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.settings.config import ScoringConfig
from ragqa.types import ModelInfo
from tests.support.fakes import FakeObligations
from tests.support.hashed_nli import HashedNli

ITEMS = [
    {
        "QuestionID": "a",
        "Question": "Q1",
        "RetrievedPassages": ["A firm must act. Cats sleep."],
        "Answer": "It must act.",
    },
    {"QuestionID": "twice", "Question": "Q2", "RetrievedPassages": ["Cats sleep."], "Answer": "Dogs bark. Cats sleep."},
    {"QuestionID": "none", "Question": "Q3", "RetrievedPassages": ["Cats sleep."], "Answer": "  "},
    {"QuestionID": "twice", "Question": "Q2", "RetrievedPassages": ["Cats sleep."], "Answer": "Dogs bark. Cats sleep."},
    {"QuestionID": "twice", "Question": "Q4", "RetrievedPassages": ["Dogs must bark."], "Answer": "Dogs must bark."},
]
OUTPUTS = ("results.csv", "results.txt", "details.json")


class Scorers:
    """Stands for `load_scorer`: counts what was loaded and scored, and breaks where told to."""

    def __init__(self):
        self.nli, self.configs, self.scored, self.broken = HashedNli(), [], [], {}

    def load(self, config, *_):
        self.configs.append(config)
        scorer = RepassScorer(self.nli, self.nli, FakeObligations(), config)
        outer = self

        class Watched(RepassScorer):
            def stream(self, answer, passages):
                outer.scored.append(answer.text)
                if answer.text in outer.broken:
                    raise outer.broken[answer.text]
                return (yield from scorer.stream(answer, passages))

        return Watched(self.nli, self.nli, FakeObligations(), config)


@pytest.fixture
def scorers(monkeypatch):
    found = Scorers()
    monkeypatch.setattr(scoring, "load_scorer", found.load)
    monkeypatch.setenv("COLUMNS", "300")
    for name in ("SCORING_PROFILE", "ENTAILMENT_MODEL", "COVERAGE_MODEL", "VERDICT_MODEL", "OBLIGATION_MODEL"):
        monkeypatch.delenv(f"RAGQA_{name}", raising=False)
    return found


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "answers.json"
    path.write_text(json.dumps(ITEMS))
    return path


def score(*arguments):
    result = CliRunner().invoke(app, ["score", *map(str, arguments)])
    if result.exception and not isinstance(result.exception, (SystemExit, RagqaError)):
        raise result.exception
    return result


def outputs(folder):
    return {name: (folder / name).read_bytes() for name in OUTPUTS}


def table(folder):
    with (folder / "results.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def expected(scorers, file, tmp_path):
    """The three files of a run that nothing interrupts."""
    assert score(file, "--out", tmp_path / "expected").exit_code == 0
    scorers.scored.clear()
    scorers.configs.clear()
    return outputs(tmp_path / "expected")


# What is written


def test_the_table_has_a_row_per_answer_in_the_files_order(scorers, file, tmp_path):
    result = score(file, "--out", tmp_path / "out", "--mode", "script")
    assert result.exit_code == 0
    rows = table(tmp_path / "out")
    assert [row["QuestionID"] for row in rows] == ["a", "twice", "twice", "twice"]
    assert rows[1] == rows[2] != rows[3]
    for row in rows:
        parts = [float(row[f"{name}_score"]) for name in ("obligation_coverage", "entailment", "contradiction")]
        assert float(row["composite_score"]) == round((parts[0] + parts[1] - parts[2] + 1) / 3, 5)
    means = dict(line.split(": ") for line in (tmp_path / "out" / "results.txt").read_text().splitlines())
    assert float(means["Average Entailment Score"]) == pytest.approx(
        sum(float(r["entailment_score"]) for r in rows) / 4
    )
    assert "4 answers, 1 skipped" in result.stdout


def test_details_hold_every_pair_and_say_what_made_them(scorers, file, tmp_path):
    score(file, "--out", tmp_path / "out", "--mode", "script")
    details = json.loads((tmp_path / "out" / "details.json").read_text())
    assert details["settings"]["mode"] == "script"
    assert details["ragqa_version"] == ragqa.__version__
    assert details["input_sha256"] == read_answers(file).sha256
    assert details["models"]["entailment_model"] == {"name": "hashed-nli", "fingerprint": "3" * 64, "precision": "fp32"}
    assert details["models"]["sentence_splitter"].startswith("nupunkt")
    assert details["counts"] == {"scored": 4, "skipped": 1, "failed": 0}
    assert [item["status"] for item in details["items"]] == ["scored", "scored", "skipped", "scored", "scored"]
    assert details["items"][2]["note"] == "no answer: it is empty"
    for item in details["items"]:
        for mode in ("paper", "script") if item["status"] == "scored" else ():
            breakdown = item[mode]
            assert {name: breakdown[name] for name in details["models"]} == details["models"]
            for row, premise in zip(breakdown["entailment_matrix"], breakdown["premises"], strict=True):
                for value, sentence in zip(row, breakdown["sentences"], strict=True):
                    pair = (premise["text"], sentence["sentence"]["text"])
                    assert value == HashedNli().predict([pair])[0].entailment
    rows = table(tmp_path / "out")
    scored = [item for item in details["items"] if item["status"] == "scored"]
    assert [str(item["figures"]["composite"]) for item in scored] == [row["composite_score"] for row in rows]


def test_paper_mode_writes_the_same_columns_unrounded(scorers, file, tmp_path):
    score(file, "--out", tmp_path / "out", "--mode", "paper")
    first = table(tmp_path / "out")[0]
    details = json.loads((tmp_path / "out" / "details.json").read_text())["items"][0]["paper"]["repass"]
    assert float(first["entailment_score"]) == details["entailment"]


def test_nothing_to_score_gives_a_table_without_rows_and_averages_of_zero(scorers, tmp_path):
    file = tmp_path / "answers.json"
    file.write_text(json.dumps([ITEMS[2]]))
    result = score(file, "--out", tmp_path / "out")
    assert result.exit_code == 0
    assert scorers.configs == []  # no model was loaded
    assert table(tmp_path / "out") == []
    assert "nan" not in (tmp_path / "out" / "results.txt").read_text().lower()


# Going on


def test_a_second_run_scores_nothing_and_writes_the_same(scorers, file, expected, tmp_path):
    result = score(file, "--out", tmp_path / "expected")
    assert "continuing: 5 are done already, 0 are left" in result.stderr
    assert scorers.scored == []
    assert outputs(tmp_path / "expected") == expected


def numbers(folder, step):
    """The items of which the journal has a whole line of this step."""
    journal = folder / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True) if journal.exists() else []
    found = [json.loads(line)["entry"]["item"] for line in lines if line.endswith("\n")]
    return [item["number"] for item in found if item["step"] == step]


class Crash(BaseException):
    """Not caught by anything, as a killed process catches nothing."""


class Disk:
    """Counts what is done to the disk and stops before, halfway through or after the n-th step."""

    def __init__(self, monkeypatch, stop_at, manner):
        self.steps, self.stop_at, self.manner = 0, stop_at, manner
        self.real = {name: getattr(os, name) for name in ("write", "fsync", "replace", "ftruncate")}
        for name in self.real:
            monkeypatch.setattr(os, name, lambda *arguments, name=name: self.step(name, *arguments))

    def step(self, name, *arguments):
        self.steps += 1
        if self.steps == self.stop_at:
            if name == "write" and self.manner == "halfway":
                self.real["write"](arguments[0], bytes(arguments[1][: len(arguments[1]) // 2]))
            elif self.manner == "after":
                self.real[name](*arguments)
            raise Crash
        return self.real[name](*arguments)


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("manner", ["before", "halfway", "after"])
def test_a_crash_at_any_step_on_disk_loses_and_doubles_nothing(
    scorers, file, expected, tmp_path, monkeypatch, manner, every
):
    stop_at, crashed = 1 - every, True
    while crashed:
        stop_at += every
        folder = tmp_path / f"{manner}-{stop_at}"
        with monkeypatch.context() as patch:
            disk, crashed = Disk(patch, stop_at, manner), False
            try:
                score(file, "--out", folder)
            except Crash:
                crashed = True
        scorers.scored.clear()
        solved = numbers(folder, "solved")
        result = score(file, "--out", folder)
        assert result.exit_code == 0, (stop_at, result.exception)
        assert outputs(folder) == expected, stop_at
        assert len(scorers.scored) == len({1, 2, 4, 5}.difference(solved))
        for step in ("solved", "scored"):
            assert numbers(folder, step) == [1, 2, 3, 4, 5]
    assert disk.steps > 25  # every step of a whole run was one to crash at


def test_a_half_written_item_is_said_and_scored_again(scorers, file, expected, tmp_path):
    journal = tmp_path / "expected" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-2]) + lines[-2][:-20])
    result = score(file, "--out", tmp_path / "expected")
    assert "discarded an incomplete entry" in result.stderr
    assert scorers.scored == ["Dogs must bark."]
    assert outputs(tmp_path / "expected") == expected


def test_two_lines_for_one_item_count_once(scorers, file, expected, tmp_path):
    journal = tmp_path / "expected" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes() * 2)
    assert score(file, "--out", tmp_path / "expected").exit_code == 0
    assert outputs(tmp_path / "expected") == expected


# Refusals


def refusal(*arguments):
    result = score(*arguments)
    assert isinstance(result.exception, RagqaError), result.output
    with pytest.raises(SystemExit) as stop:
        fail(result.exception)
    return stop.value.code, str(result.exception)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--mode", "script"], "settings.mode was paper, is script"),
        (["--obligation-model", "other"], "settings.obligation_model was obligations-tfidf, is other"),
        (["--entailment-model", "./x"], "settings.entailment_model was nli-minilm-l6, is ./x"),
        (["--precision", "fp32"], "settings.precision was auto, is fp32"),
        (["--splitter", "punkt"], "settings.sentence_splitter was nupunkt, is punkt"),
        (["--profile", "reference"], "settings.coverage_model was nli-minilm-l6, is microsoft/deberta-large-mnli"),
    ],
)
@pytest.mark.long
def test_a_folder_of_other_settings_is_refused(scorers, file, expected, tmp_path, monkeypatch, options, message):
    monkeypatch.setattr(scoring, "splitter_name", str)  # punkt need not be installed
    code, found = refusal(file, "--out", tmp_path / "expected", *options)
    assert code == 2
    assert message in found
    assert "--restart" in found
    assert outputs(tmp_path / "expected") == expected


def test_a_folder_of_another_input_is_refused_whatever_the_files_name(scorers, file, expected, tmp_path):
    same = file.rename(tmp_path / "renamed.json")
    assert score(same, "--out", tmp_path / "expected").exit_code == 0
    assert outputs(tmp_path / "expected") == expected
    same.write_text(json.dumps(ITEMS[:-1]))
    code, message = refusal(same, "--out", tmp_path / "expected")
    assert (code, "input_sha256 was" in message, "n_items was 5, is 4" in message) == (2, True, True)


def test_another_version_of_ragqa_is_refused(scorers, file, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "__version__", "9.9")
    assert "ragqa_version was" in refusal(file, "--out", tmp_path / "expected")[1]


def test_other_weights_under_the_same_name_are_refused(scorers, file, expected, tmp_path):
    journal = tmp_path / "expected" / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:6]))
    scorers.nli.info = ModelInfo("hashed-nli", "4" * 64)
    code, message = refusal(file, "--out", tmp_path / "expected")
    assert code == 2
    assert "entailment_model.fingerprint was 333333333333…, is 444444444444…" in message
    scorers.nli.info = ModelInfo("hashed-nli", "3" * 64)
    assert score(file, "--out", tmp_path / "expected").exit_code == 0
    assert outputs(tmp_path / "expected") == expected


def test_a_model_that_cannot_be_loaded_leaves_the_folder_free(scorers, file, expected, tmp_path, monkeypatch):
    def missing(config, *_):
        raise ModelError("no such model")

    with monkeypatch.context() as patch:
        patch.setattr(scoring, "load_scorer", missing)
        assert refusal(file, "--out", tmp_path / "out", "--entailment-model", "typo")[0] == 3
    assert score(file, "--out", tmp_path / "out").exit_code == 0
    assert outputs(tmp_path / "out") == expected


def test_a_journal_of_another_run_is_refused(scorers, file, expected, tmp_path):
    score(file, "--out", tmp_path / "other", "--mode", "script")
    (tmp_path / "expected" / "journal.jsonl").write_bytes((tmp_path / "other" / "journal.jsonl").read_bytes())
    assert "of another run" in refusal(file, "--out", tmp_path / "expected")[1]


def test_results_of_something_else_are_never_overwritten(scorers, file, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "results.csv").write_text("mine")
    for options in ([], ["--restart"]):
        code, message = refusal(file, "--out", tmp_path / "out", *options)
        assert code == 2
        assert "results.csv of something else" in message
    assert (tmp_path / "out" / "results.csv").read_text() == "mine"


def test_a_folder_that_cannot_be_made_or_written_is_one_message(scorers, file, tmp_path, monkeypatch):
    code, message = refusal(file, "--out", file)
    assert (code, "cannot be used" in message) == (6, True)

    def full(descriptor, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        assert "No space left on device" in refusal(file, "--out", tmp_path / "out")[1]
    assert score(file, "--out", tmp_path / "out").exit_code == 0


def test_a_wrong_item_stops_everything_before_a_model_is_loaded(scorers, file, tmp_path):
    file.write_text(json.dumps([*ITEMS, {"Answer": "x"}]))
    result = score(file, "--out", tmp_path / "out")
    assert isinstance(result.exception, CorpusError)
    assert scorers.configs == []
    assert not (tmp_path / "out").exists()


def test_without_a_folder_the_run_is_kept_under_ragqa_home(scorers, file, expected, tmp_path, monkeypatch):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path / "home"))
    assert score(file).exit_code == 0
    (folder,) = (tmp_path / "home" / "evaluations").iterdir()
    assert outputs(folder) == expected
    assert score(file, "--details").exit_code == 0
    assert len(scorers.scored) == 4
    assert score(file, "--restart").exit_code == 0
    assert len(scorers.scored) == 8
    score(file, "--obligation-model", "other")
    monkeypatch.setenv("RAGQA_ENTAILMENT_MODEL", "from-environment")
    score(file)
    assert len(scorers.scored) == 16
    assert len(list(folder.parent.iterdir())) == 3


# Failures and breaks


@pytest.mark.long
def test_an_item_that_fails_is_said_and_tried_again(scorers, file, expected, tmp_path):
    scorers.broken["Dogs must bark."] = ScoringError("the model broke")
    result = score(file, "--out", tmp_path / "out")
    assert result.exit_code == 5
    assert "item 5 (twice): the model broke" in result.stderr
    assert "3 answers, 1 skipped, 1 failed" in " ".join(result.stdout.split())
    assert len(table(tmp_path / "out")) == 3
    failed = json.loads((tmp_path / "out" / "details.json").read_text())["items"][4]
    assert (failed["status"], failed["note"]) == ("failed", "the model broke")
    scorers.scored.clear()
    assert score(file, "--out", tmp_path / "out").exit_code == 5
    scorers.broken.clear()
    result = score(file, "--out", tmp_path / "out")
    assert "1 that failed are retried" in result.stderr
    assert result.exit_code == 0
    assert scorers.scored == ["Dogs must bark."] * 2
    assert outputs(tmp_path / "out") == expected


@pytest.mark.parametrize("with_folder", [True, False])
def test_ctrl_c_says_how_to_continue(scorers, file, expected, tmp_path, with_folder):
    scorers.broken["Dogs must bark."] = KeyboardInterrupt()
    options = ["--out", tmp_path / "out"] if with_folder else []
    result = score(file, *options)
    assert result.exit_code == 130
    assert "The same command, without --restart, continues" in result.stderr
    assert "Traceback" not in result.output
    if with_folder:
        assert not (tmp_path / "out" / "results.csv").exists()
        scorers.broken.clear()
        scorers.scored.clear()
        assert score(file, *options).exit_code == 0
        assert len(scorers.scored) == 1
        assert outputs(tmp_path / "out") == expected


# Printing and settings


@pytest.mark.long
def test_json_and_details_print_what_was_scored_before_too(scorers, file, expected, tmp_path):
    fresh = json.loads(score(file, "--json").stdout)
    again = json.loads(score(file, "--json", "--out", tmp_path / "expected").stdout)
    assert fresh == again
    assert [row["QuestionID"] for row in fresh] == [item["QuestionID"] for item in ITEMS]
    assert fresh[2]["skipped"] == "no answer: it is empty"
    shown = score(file, "--details", "--out", tmp_path / "expected").stdout
    assert shown == score(file, "--details").stdout
    assert shown.count("RePASs (paper mode) =") == 4


def test_many_skipped_items_are_counted_and_the_first_named(scorers, tmp_path):
    file = tmp_path / "answers.json"
    file.write_text(json.dumps([{"QuestionID": str(n), "Answer": ""} for n in range(12)]))
    said = score(file).stderr
    assert "skipped 12 items: item 1 (0): no answer: it is empty" in said
    assert "item 10 (9)" in said
    assert "item 11 (10)" not in said
    assert "and 2 more" in said


@pytest.mark.long
def test_settings_come_from_options_then_the_environment_then_the_profile(scorers, file, monkeypatch):
    score(file)
    monkeypatch.setenv("RAGQA_OBLIGATION_MODEL", "from-environment")
    score(file, "--profile", "reference", "--precision", "auto", "--mode", "paper", "--splitter", "nupunkt")
    score(file, "--obligation-model", "o", "--entailment-model", "e", "--coverage-model", "c")
    default, reference, named = scorers.configs
    assert default == ScoringConfig()
    assert (reference.entailment_model, reference.obligation_model) == (
        "cross-encoder/nli-deberta-v3-xsmall",
        "from-environment",
    )
    assert (reference.precision, reference.mode, reference.sentence_splitter) == ("auto", "paper", "nupunkt")
    assert named == replace(ScoringConfig(), obligation_model="o", entailment_model="e", coverage_model="c")
    score(file, "--profile", "reference", "--splitter", "nupunkt")
    assert scorers.configs[-1].mode == "script"  # the profile's own

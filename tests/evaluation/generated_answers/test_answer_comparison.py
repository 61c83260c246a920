"""Runs side by side, published figures, and the ablations of AUEB's tables."""

import json

import pytest
from typer.testing import CliRunner

from ragqa.cli import app, evaluate
from ragqa.errors import ConfigError, RagqaError, RecordError
from ragqa.evaluation.benchmarks.generated_answers.ablations import AUEB, Study, published_beside, step_means, variants
from ragqa.evaluation.benchmarks.generated_answers.comparing import compare_runs, load_run, published_rows
from ragqa.evaluation.benchmarks.generated_answers.measures import MEASURES
from ragqa.plugins.registry import needs_language_model
from ragqa.settings.config import Config
from tests.support.answers_entry import load_pipeline
from tests.support.fakes import FakeGenerator
from tests.support.helpers import ANSWER


def write_run(folder, composites, **changes):
    """A finished run whose answers have these composites, in the order of q1, q2, …; None is a failed question."""
    folder.mkdir()
    rows = []
    for number, composite in enumerate(composites, start=1):
        row = {"QuestionID": f"q{number}", "Question": f"What of {number}?", "status": "scored"}
        values = dict.fromkeys((measure.key for measure in MEASURES), 0.5) | {"composite": composite} | changes
        rows.append(row | ({"values": values} if composite is not None else {"status": "failed"}))
    (folder / "details.json").write_text(json.dumps(rows))
    return folder


def compare(*folders, options=()):
    return CliRunner().invoke(app, ["eval", "compare", *map(str, folders), *options], env={"COLUMNS": "240"})


# Comparison ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_means_and_differences_are_over_the_questions_that_all_runs_scored(tmp_path):
    base = load_run(write_run(tmp_path / "base", [0.4, 0.5, 0.6, None]))
    other = load_run(write_run(tmp_path / "other", [0.5, 0.7, None, 0.9]))
    (of_base, of_other), comparisons = compare_runs([base, other])
    assert of_base["composite"] == pytest.approx((0.4 + 0.5) / 2)
    assert of_other["composite"] == pytest.approx((0.5 + 0.7) / 2)
    found = {comparison.measure: comparison for comparison in comparisons}
    assert (found["composite"].name, found["composite"].n) == ("other", 2)
    assert found["composite"].test.mean_difference == pytest.approx((0.1 + 0.2) / 2)
    assert found["composite"].test.p_value == 2 / 4  # of four exchanges two are as extreme
    assert found["entailment"].test.p_value == 1.0
    assert (base.n_unscored, other.n_unscored) == (1, 1)


def test_the_tables_show_runs_differences_and_published_rows_marked_as_others(tmp_path):
    result = compare(write_run(tmp_path / "base", [0.4, 0.5]), write_run(tmp_path / "other", [0.5, 0.7]))
    assert result.exit_code == 0, result.output
    assert "means over 2 questions" in result.stdout
    assert "differences from base" in result.stdout
    assert "+0.1500" in result.stdout
    assert "published: figures of other models, none computed here" in result.stdout
    assert "human experts" in result.stdout
    assert "0.859" in result.stdout


def test_one_run_alone_is_shown_beside_what_was_published(tmp_path):
    result = compare(write_run(tmp_path / "base", [0.4, 0.5]))
    assert result.exit_code == 0, result.output
    assert "differences" not in result.stdout


def test_the_figures_come_as_json(tmp_path):
    folders = [write_run(tmp_path / "base", [0.4, 0.5]), write_run(tmp_path / "other", [0.5, 0.7])]
    found = json.loads(compare(*folders, options=["--json"]).stdout)
    assert found["runs"]["other"]["means"]["composite"] == pytest.approx(0.6)
    assert {row["source"].partition(" ")[0] for row in found["published"]} == {"Gokhan", AUEB}
    assert len(found["comparisons"]) == 5


def test_two_runs_of_one_name_are_told_apart_by_their_place(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    folders = [write_run(tmp_path / "a" / "out", [0.4]), write_run(tmp_path / "b" / "out", [0.5])]
    assert set(json.loads(compare(*folders, options=["--json"]).stdout)["runs"]) == set(map(str, folders))


def test_a_measure_that_an_answer_does_not_have_is_left_out_of_its_test(tmp_path):
    base = load_run(write_run(tmp_path / "base", [0.4, 0.5], lix=None))
    other = load_run(write_run(tmp_path / "other", [0.5, 0.7]))
    assert "lix" not in {comparison.measure for comparison in compare_runs([base, other])[1]}


def test_runs_without_a_question_in_common_do_not_compare(tmp_path):
    runs = [load_run(write_run(tmp_path / "a", [0.4, None])), load_run(write_run(tmp_path / "b", [None, 0.4]))]
    with pytest.raises(ConfigError, match=r"found none \(scored: a 1, b 1\)"):
        compare_runs(runs)
    with pytest.raises(ConfigError, match="at least one folder"):
        compare_runs([])


def test_an_unfinished_run_and_no_run_are_refused(tmp_path):
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "run.json").write_text("{}")
    with pytest.raises(RecordError, match="found an unfinished run"):
        load_run(tmp_path / "begun")
    with pytest.raises(RecordError, match="found none"):
        load_run(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "{}",
        "[1]",
        '[{"QuestionID": "1"}]',
        '[{"QuestionID": "1", "Question": "A?", "status": "scored", "values": {"composite": "high"}}]',
        '[{"QuestionID": "1", "Question": "A?", "status": "scored", "values": {"composite": 0.5}}]',
    ],
)
def test_details_of_something_else_are_refused(tmp_path, content):
    (tmp_path / "details.json").write_text(content)
    if content == "{}":
        assert load_run(tmp_path).values == {}
        return
    with pytest.raises(RecordError, match="expected what `ragqa eval answers` wrote"):
        load_run(tmp_path)


# Published ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "row", [row for row in published_rows() if row.entailment is not None], ids=lambda row: row.name
)
def test_each_published_composite_is_that_of_its_parts(row):
    """Copying errors would show: every composite is (E - C + OC + 1) / 3 of its row, rounded."""
    composite = (row.entailment - row.contradiction + row.obligation_coverage + 1) / 3
    assert row.composite == pytest.approx(composite, abs=0.0012)


def test_a_table_that_is_not_here_has_no_rows():
    assert published_rows("1", AUEB) == ()
    assert len(published_rows("7", AUEB)) == 10


# Ablations ----------------------------------------------------------------------------------------------------------


def test_the_filter_study_takes_the_five_pairs_of_table_3():
    found = variants(Study.FILTER, Config())
    pairs = [(variant.config.filtering.threshold, variant.config.filtering.max_drop) for variant in found]
    assert pairs == [(0.7, 0.2), (0.75, 0.05), (0.8, 0.05), (0.85, 0.15), (0.9, 0.1)]
    assert {variant.config.generation.generator for variant in found} == {Config().generation.generator}
    assert len(published_beside(Study.FILTER)) == 5


def test_the_other_studies_name_their_generators_and_ask_a_language_model():
    for study, names in (
        (Study.OBLIGATION_CONTEXT, ["llm", "obligations", "obligations"]),
        (Study.STEPS, ["extractive", "loc", "vrr"]),
    ):
        found = [variant.config.generation.generator for variant in variants(study, Config())]
        assert found == names
        assert any(map(needs_language_model, names))
        assert len({variant.name for variant in variants(study, Config())}) == 3


def test_without_a_server_a_study_that_needs_one_says_so(tmp_path):
    for study in ("obligation-context", "steps"):
        arguments = ["eval", "ablation", study, "--questions", "q.json", "--out", str(tmp_path)]
        error = CliRunner().invoke(app, arguments).exception
        assert isinstance(error, RagqaError)
        assert "found neither OPENAI_API_KEY nor OPENAI_BASE_URL" in str(error)
    error = CliRunner().invoke(app, ["eval", "ablation", "colour", "--questions", "q", "--out", "o"]).exception
    assert "must be one of filter, obligation-context, steps" in str(error)


def test_a_study_runs_every_variant_in_a_folder_of_its_own_and_continues_there(tmp_path, monkeypatch):
    def fake(config, *_):
        return load_pipeline(0.0, config, generator=FakeGenerator(ANSWER))

    monkeypatch.setattr(evaluate, "pipeline_for", fake)
    monkeypatch.setattr(evaluate, "assemble", fake)
    (tmp_path / "q.json").write_text(json.dumps([{"QuestionID": f"q{n}", "Question": f"What of {n}?"} for n in (1, 2)]))
    arguments = ["eval", "ablation", "filter", "--questions", str(tmp_path / "q.json"), "--out", str(tmp_path / "out")]
    found = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    names = [variant.name for variant in variants(Study.FILTER, Config())]
    assert list(found["runs"]) == names
    assert sorted(folder.name for folder in (tmp_path / "out").iterdir()) == sorted(names)
    assert {row["table"] for row in found["published"]} == {"3"}
    assert len(found["comparisons"]) == 4 * 5
    again = CliRunner().invoke(app, arguments, env={"COLUMNS": "240"})
    assert again.exit_code == 0, again.output
    assert again.stderr.count("continuing: 2 are done already, 0 are left") == 5
    assert f"differences from {names[0]}" in again.stdout
    assert "From Chasandras et al. 2025, table 3." in again.stdout


def step(name, entailment, contradiction, coverage):
    return {
        "step": name,
        "entailment": entailment,
        "contradiction": contradiction,
        "obligation_coverage": coverage,
        "composite": 0.0,
    }


def test_the_score_after_each_step_is_over_all_questions_and_what_ended_early_keeps_its_score():
    first = [
        step("candidate 2", 0.9, 0.1, 0.5),  # arrived first; the better one
        step("candidate 1", 0.4, 0.1, 0.5),
        step("removal 1", 0.9, 0.0, 0.5),
        step("insertion 1", 0.8, 0.0, 1.0),
        step("removal 2", 0.8, 0.0, 1.0),
    ]
    second = [step("candidate 1", 0.6, 0.2, 0.0), step("removal 1", 0.6, 0.1, 0.0)]
    found = {name: (repass, n) for name, repass, n in step_means([{"steps": first}, {"steps": second}, {"steps": []}])}
    assert list(found) == ["preprocessing", "verify", "removal 1", "insertion 1", "removal 2"]
    assert found["preprocessing"][0].entailment == pytest.approx((0.4 + 0.6) / 2)
    assert found["verify"][0].entailment == pytest.approx((0.9 + 0.6) / 2)
    assert found["removal 1"][0].contradiction == pytest.approx((0.0 + 0.1) / 2)
    assert found["insertion 1"][0].obligation_coverage == pytest.approx((1.0 + 0.0) / 2)
    assert [n for _, n in found.values()] == [2, 2, 2, 1, 1]
    assert step_means([]) == ()

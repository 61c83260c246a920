"""PandaChat-RAG's submissions and results: the schema, a hit at k, the published rows, nothing doubled."""

import json
import math
from types import SimpleNamespace

import pytest

from ragqa.corpus.pandachat import load_pandachat_questions
from ragqa.errors import ConfigError, CorpusError
from ragqa.evaluation.benchmarks.pandachat.results import (
    PUBLISHED_ONLY,
    compared,
    markdown_table,
    merge_rows,
    published,
    report_of,
    system_of_file,
    write_report,
    write_results,
)
from ragqa.evaluation.benchmarks.pandachat.submissions import (
    PandachatRow,
    annotated,
    evaluate_submission,
    is_right,
    read_submission,
    submission_file_name,
    submission_json,
    write_submission,
)
from tests.support.pandachat_set import BREAD, CAT, GARDEN, QUERIES, items, submission, write_set

# Names and figures as the benchmark prints them: its README.md at commit 65283d1, made there by evaluate.py.
PUBLISHED_TABLE = """\
| eval_scenario   | system                                 |   evaluated-top-k |   time_per_question (s) |   correct_retrieval_count |   correct_retrieval_per |
|:----------------|:---------------------------------------|------------------:|------------------------:|--------------------------:|------------------------:|
| aqa-sl          | bge-m3                                 |                 2 |                0.579386 |                       206 |                100      |
| aqa-sl          | multilingual-e5-large                  |                 2 |                0.583859 |                       206 |                100      |
| aqa-sl          | multilingual-e5-base                   |                 2 |                0.285738 |                       205 |                 99.5146 |
| aqa-sl          | text-embedding-3-small                 |                 2 |                0.692316 |                       205 |                 99.5146 |
| aqa-sl          | local-storage-text-embedding-3-small   |                 2 |                0.641238 |                       205 |                 99.5146 |
| aqa-sl          | qdrant-docker-openai-embedding-3-small |                 2 |                0.395684 |                       205 |                 99.5146 |
| aqa-sl          | gte-multilingual-base                  |                 2 |                0.310006 |                       204 |                 99.0291 |
| aqa-sl          | text-embedding-3-large                 |                 2 |                1.19002  |                       204 |                 99.0291 |
| aqa-sl          | multilingual-e5-small                  |                 2 |                0.15392  |                       203 |                 98.5437 |
| aqa-sl          | text-embedding-ada-002                 |                 2 |                0.631284 |                       203 |                 98.5437 |
| aqa-sl          | qdrant-openai-embedding-3-small        |                 2 |                0.42931  |                       199 |                 96.6019 |"""  # noqa: E501
PUBLISHED = published()
SOURCES = ([CAT, GARDEN], [CAT], [], [CAT, CAT, GARDEN])  # right at 2, at 1, never, at 3


@pytest.fixture
def questions(tmp_path):
    return load_pandachat_questions(write_set(tmp_path / "set.json"))


def write(tmp_path, payload, name="submission_x.json"):
    file = tmp_path / name
    file.write_text(payload if isinstance(payload, str) else json.dumps(payload), encoding="utf-8")
    return file


# A hit at k ---------------------------------------------------------------------------------------------------------


def test_duplicates_count_towards_k():
    assert not is_right("a", ["b", "b", "a"], 2)
    assert is_right("a", ["b", "b", "a"], 3)
    assert is_right("a", ["a"], 5)
    assert not is_right("a", [], 1)
    with pytest.raises(ConfigError, match="k must be at least 1, got 0"):
        is_right("a", ["a"], 0)


@pytest.mark.parametrize(("k", "n_right"), [(1, 1), (2, 2), (3, 3), (100, 3)])
def test_a_submission_at_any_k(tmp_path, questions, k, n_right):
    found = read_submission(write(tmp_path, submission(*SOURCES)), questions)
    row, wrong = evaluate_submission(found, k, questions)
    assert row == PandachatRow("ours", k, 0.5, n_right, 4)
    assert row.percent == 100 * n_right / 4
    assert len(wrong) == 4 - n_right
    assert QUERIES[2] in wrong


def test_sources_may_be_written_as_text_and_numbers_as_nan(tmp_path, questions):
    payload = submission(*SOURCES, time_per_question=math.nan)
    for row in payload["df"]:
        row |= {"sources": str(row["sources"]), "multi_questions_doc": math.nan}
    file = write(tmp_path, payload)
    assert "NaN" in file.read_text("utf-8")
    found = read_submission(file, questions)
    assert found.seconds is None
    assert [sources for _, _, sources in found.rows] == [tuple(one) for one in SOURCES]
    assert "NaN" not in json.dumps(annotated(found, (1,)))


def test_rows_may_stand_in_any_order(tmp_path, questions):
    payload = submission(*SOURCES)
    payload["df"].reverse()
    row, _ = evaluate_submission(read_submission(write(tmp_path, payload), questions), 2, questions)
    assert row.n_right == 2


def test_the_first_questions_alone(tmp_path, questions):
    payload = submission(*SOURCES)
    del payload["df"][2:]
    file = write(tmp_path, payload)
    with pytest.raises(CorpusError, match="a row for each of 4 questions, found 2; missing is .* and 1 more"):
        read_submission(file, questions)
    row, _ = evaluate_submission(read_submission(file, questions, 2), 2, questions[:2])
    assert (row.n_right, row.n_questions) == (2, 2)
    whole = read_submission(write(tmp_path, submission(*SOURCES)), questions, 1)
    assert evaluate_submission(whole, 2, questions[:1])[0].n_right == 1


# The schema ---------------------------------------------------------------------------------------------------------


def changed(number, **values):
    """A submission with these values in a row; None takes the key away."""
    payload = submission(*SOURCES)
    row = payload["df"][number] | values
    payload["df"][number] = {key: value for key, value in row.items() if value is not None or key not in values}
    return payload


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ([], "submission_x.json: expected an object with 'eval_scenario', .* found a list of 0"),
        ("{", "not valid JSON"),
        (submission(*SOURCES, eval_scenario="aqa-hr"), "expected the scenario 'aqa-sl' .* found 'aqa-hr'"),
        (submission(*SOURCES, system=" "), "a text that is not empty under 'system'"),
        (submission(*SOURCES, time_per_question="1 s"), "seconds, 0 or more, under .* found the text"),
        (submission(*SOURCES, time_per_question=-1), "found the number -1"),
        (submission(*SOURCES, time_per_question=True), "found the value true"),
        (submission(*SOURCES, time_per_question=math.inf), "found the number inf"),
        (submission(*SOURCES, df={}), "'df': expected a list, found an object"),
        (submission(*SOURCES, df=["row"]), "'df', item 1: expected an object, found the text 'row'"),
        (submission(*SOURCES, df=submission(*SOURCES)["df"] * 2), "expected one row for each question, found 2 for"),
        (changed(0, query=None), "item 1: expected 'query' with a text, found 'answer'"),
        (changed(1, query="Kaj?"), "item 2: expected a question of the data set under 'query', found 'Kaj\\?'"),
        (changed(1, document=BREAD), "item 2: expected this question's document, 'splet.2', found 'splet.3'"),
        (changed(2, answer=None), "item 3: expected 'answer' with a text"),
        (changed(2, text_without_Q=7), "item 3: expected a text under 'text_without_Q', found the number 7"),
        (changed(2, multi_questions_doc=None), "item 3: expected 'multi_questions_doc', null or 'x'"),
        (changed(3, sources=None), "item 4: expected a list of documents under 'sources', found no such key"),
        (changed(3, sources=GARDEN), "item 4: expected a list of documents under 'sources', found the text"),
        (changed(3, sources="["), "expected a list of documents under 'sources', found the text"),
        (changed(3, sources="{'a': 1}"), "expected a list of documents under 'sources', found the text"),
        (changed(3, sources={}), "expected a list of documents under 'sources', found an object"),
        (changed(3, sources=[1]), "item 4: expected texts in the list under 'sources', found the number 1"),
        (changed(3, sources="[1]"), "item 4: expected texts in the list under 'sources', found the number 1"),
        (changed(3, sources=["splet.9"]), "item 4: expected documents of the data set .* found 'splet.9'"),
    ],
)
def test_what_is_no_submission_is_refused_with_the_reason(tmp_path, questions, payload, message):
    with pytest.raises(CorpusError, match=message):
        read_submission(write(tmp_path, payload), questions)


def test_missing_files_and_keys_are_named(tmp_path, questions):
    with pytest.raises(CorpusError, match="expected a submission"):
        read_submission(tmp_path / "none.json", questions)
    payload = submission(*SOURCES)
    del payload["time_per_question"]
    with pytest.raises(CorpusError, match="found no such key"):
        read_submission(write(tmp_path, payload), questions)


def test_a_data_set_that_asks_twice_cannot_tell_rows_apart(tmp_path, questions):
    with pytest.raises(CorpusError, match="twice"):
        read_submission(write(tmp_path, submission(*SOURCES)), (*questions, questions[0]))


# Writing ------------------------------------------------------------------------------------------------------------


def test_what_is_written_is_accepted_and_like_the_benchmarks_own(tmp_path, questions):
    file = tmp_path / submission_file_name("ours")
    assert file.name == "submission_ours.json"
    write_submission(file, submission_json("ours", 0.5, items(), SOURCES))
    assert json.loads(file.read_text("ascii")) == submission(*SOURCES)
    assert file.read_text("ascii").startswith('{\n  "eval_scenario": "aqa-sl",\n  "system": "ours",\n  "time')
    read = read_submission(file, questions)
    assert [sources for _, _, sources in read.rows] == [tuple(one) for one in SOURCES]


@pytest.mark.parametrize("system", ["../a/b", "", "žaba results", "a" * 3])
def test_file_names_are_those_the_benchmarks_script_reads(system):
    name = submission_file_name(system)
    assert name.startswith("submission_")
    assert name.endswith(".json")
    assert "results" not in name
    assert "/" not in name


def test_what_evaluation_adds_is_as_the_benchmark_adds_it(tmp_path, questions):
    rows = annotated(read_submission(write(tmp_path, submission(*SOURCES)), questions), (1, 2))["df"]
    assert rows[0]["sources-eval-1"] == {"correct_source": [], "incorrect_source": [CAT]}
    assert rows[0]["sources-eval-2"] == {"correct_source": [GARDEN], "incorrect_source": [CAT]}
    assert [row["sources-correct-context-2"] for row in rows] == ["yes", "yes", "no", "no"]
    assert [row["sources-correct-context-1"] for row in rows] == ["no", "yes", "no", "no"]


# Results ------------------------------------------------------------------------------------------------------------


def test_the_published_table_is_reproduced():
    assert markdown_table([row.as_json() for row in PUBLISHED]) == PUBLISHED_TABLE


def test_an_empty_table_and_unmeasured_seconds():
    assert markdown_table([]).count("\n") == 1
    assert "|                     nan |" in markdown_table([PandachatRow("a|b", 2, None, 1, 2).as_json()])


def test_a_row_takes_the_place_of_its_own_and_of_no_other():
    before = [row.as_json() for row in PUBLISHED[:2]]
    new = PandachatRow("bge-m3", 2, 0.1, 205)
    assert merge_rows(before, [new]) == [new.as_json(), before[1]]
    other_k = PandachatRow("bge-m3", 1, 0.1, 205)
    assert merge_rows(before, [other_k]) == [*before, other_k.as_json()]
    assert merge_rows([*before, *before], []) == before  # what evaluate.py doubled


def test_evaluating_twice_writes_the_same_files(tmp_path):
    ours = PandachatRow("ours", 2, 0.01, 206)
    files = write_results(tmp_path, [ours])
    once = [file.read_bytes() for file in files]
    assert [file.read_bytes() for file in write_results(tmp_path, [ours])] == once
    rows = json.loads(once[0])
    assert len(rows) == len(PUBLISHED) + 1
    assert rows[-1] == ours.as_json()


def test_results_of_others_are_kept_and_damaged_ones_refused(tmp_path):
    own = {"eval_scenario": "aqa-hr", "system": "x", "evaluated-top-k": 2, "note": "kept"}
    file = write(tmp_path, [own], "results.json")
    _, table = write_results(tmp_path, [PandachatRow("ours", 2, 0.01, 206)])
    assert json.loads(file.read_text("utf-8"))[0] == own
    assert "aqa-hr" not in table.read_text("utf-8")
    write(tmp_path, "{}", "results.json")
    with pytest.raises(CorpusError, match=r"results.json: expected a list of objects"):
        write_results(tmp_path, [])


def test_systems_stand_beside_the_published_ones(tmp_path, questions):
    read = read_submission(write(tmp_path, submission(*SOURCES, system="bge-m3")), questions)
    figures = system_of_file(read, "x.json", (1, 2), questions)
    lines = compared([figures])
    assert len(lines) == len(PUBLISHED)
    assert [line.origin for line in lines].count(PUBLISHED_ONLY) == len(PUBLISHED) - 1
    (own,) = (line for line in lines if line.name == "bge-m3")
    assert lines[-1] is own  # 2 of 4 here, whatever was published
    assert [row.n_right for row in own.rows] == [1, 2]
    assert own.published == PUBLISHED[0]


def test_results_take_no_row_of_a_part_of_the_questions(tmp_path, questions):
    read = read_submission(write(tmp_path, submission(*SOURCES)), questions)
    figures = [system_of_file(read, "submission_x.json", (2,), questions[:1])]
    out = tmp_path / "out"
    write_report(out, report_of(figures, tmp_path, 1, 4), figures, {"submission_x.json": read}, (2,))
    assert sorted(path.name for path in out.iterdir()) == ["report.json", "submission_x.json_results.json"]
    write_report(out, report_of(figures, tmp_path, 4, 4), figures, {}, (2,))
    assert (out / "results-aqa-sl.md").is_file()


# Real files ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def real(shared_data):
    folder = shared_data / "pandachat"
    return SimpleNamespace(
        questions=load_pandachat_questions(folder),
        submissions=sorted((folder / "submissions").glob("*.json")),
        results=folder / "results.json",
    )


@pytest.mark.data
def test_published_rows_are_the_published_ones(real):
    assert [row.as_json() for row in PUBLISHED] == json.loads(real.results.read_text("utf-8"))


@pytest.mark.data
def test_the_real_submissions_have_their_published_figures(real, tmp_path):
    published = {row.system: row for row in PUBLISHED}
    found = []
    for file in real.submissions:
        row, wrong = evaluate_submission(read_submission(file, real.questions), 2, real.questions)
        assert row == published[row.system]
        assert len(wrong) == 206 - row.n_right
        found.append(row)
    assert sorted(row.n_right for row in found) == [199, 203, 206]
    results, table = write_results(tmp_path, found)
    assert results.read_bytes() == real.results.read_bytes()
    assert table.read_text("utf-8") == PUBLISHED_TABLE

"""Questions of a sheet: found by their head, answered beside it, resumed, other columns and formulas left alone."""

import csv

import pytest
from openpyxl import Workbook, load_workbook

from ragqa.errors import ConfigError, QuestionError
from ragqa.records.questionnaire import HEADS, Questionnaire, failure, reply
from ragqa.records.view import View, advance
from ragqa.settings.config import Config
from ragqa.types import Question
from tests.support.helpers import make_pipeline

ROWS = [["No.", "Question", "Owner"], ["1", "What must a firm do?", "=1+1"], ["2", "", "x"], ["3", "Who pays?", "@me"]]
ANSWERED = ("Answered", "=cmd", "+rule", "1 sentence quoted", 0.75, 0.5, "r-1")


@pytest.fixture(params=[".csv", ".xlsx"])
def file(request, tmp_path):
    path = tmp_path / f"questions{request.param}"
    if request.param == ".csv":
        with path.open("w", encoding="utf-8", newline="") as out:
            csv.writer(out, delimiter=";").writerows(ROWS)
    else:
        book = Workbook()
        book.active.append(["Due diligence"])
        book.active.append([])
        for row in ROWS:
            book.active.append(row)
        book.create_sheet("Notes")["A1"] = "kept"
        book.save(path)
    return path


def read(path):
    """Rows of cells; of a workbook, a cell that is a formula is (formula,)."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file, delimiter=";"))
    sheet = load_workbook(path)["Sheet"]
    rows = [[(one.value,) if one.data_type == "f" else one.value for one in row] for row in sheet.iter_rows()]
    return rows[2:]


def test_the_questions_are_below_their_head_and_a_row_without_one_is_none(file, tmp_path):
    sheet = Questionnaire(file, tmp_path / f"out{file.suffix}")
    assert list(sheet.questions.values()) == ["What must a firm do?", "Who pays?"]
    assert sheet.waiting == sheet.questions
    assert list(Questionnaire(file, tmp_path / f"out{file.suffix}", "owner").questions.values())[1:] == ["x", "@me"]
    with pytest.raises(QuestionError, match=r"expected a column with the head 'What'.*--column"):
        Questionnaire(file, tmp_path / f"out{file.suffix}", "What")


@pytest.mark.parametrize("first", ["Due diligence", "Due diligence, 2026, for banks", "sep=;"])
def test_the_delimiter_is_that_of_the_head_also_below_a_title(tmp_path, first):
    file, out = tmp_path / "q.csv", tmp_path / "out.csv"
    file.write_text(f"{first}\nNo.;Question;Owner\n1;Who pays, and when?;a, b\n", encoding="utf-8")
    sheet = Questionnaire(file, out)
    assert list(sheet.questions.values()) == ["Who pays, and when?"]
    sheet.put(3, ANSWERED)
    assert out.read_text(encoding="utf-8").splitlines()[2].startswith("1;Who pays, and when?;a, b;Answered;")


def test_answers_stand_beside_and_the_rest_stays(file, tmp_path):
    out = tmp_path / f"out{file.suffix}"
    sheet = Questionnaire(file, out)
    first, last = sheet.questions
    sheet.put(first, ANSWERED)
    rows = read(out)
    assert rows[0] == [*ROWS[0], *HEADS]
    is_csv = file.suffix == ".csv"
    assert rows[1][:3] == (ROWS[1] if is_csv else ["1", "What must a firm do?", ("=1+1",)])
    assert rows[1][4:6] == (["'=cmd", "'+rule"] if is_csv else ["=cmd", "+rule"])  # text by its type
    assert [float(one) for one in rows[1][7:9]] == [0.75, 0.5]
    assert rows[3][:3] == ROWS[3]
    if not is_csv:
        assert load_workbook(out)["Notes"]["A1"].value == "kept"
    again = Questionnaire(file, out)
    assert list(again.waiting) == [last]
    again.put(last, failure(QuestionError("too long")))
    rows = read(out)
    assert rows[1][4] == ("'=cmd" if is_csv else "=cmd")
    assert rows[3][3] == "Failed: too long"
    assert list(Questionnaire(file, out).waiting) == [last]  # what failed is asked again
    assert list(Questionnaire(out, out).waiting) == [last]
    assert read(out)[0] == [*ROWS[0], *HEADS]


def test_a_changed_question_is_asked_again_and_a_foreign_file_is_not_written(file, tmp_path):
    out = tmp_path / f"out{file.suffix}"
    sheet = Questionnaire(file, out)
    first, _ = sheet.questions
    sheet.put(first, ANSWERED)
    other = tmp_path / f"other{file.suffix}"
    other.write_bytes(file.read_bytes())
    with pytest.raises(ConfigError, match="has no answers of ragqa"):
        Questionnaire(file, other)
    if file.suffix == ".csv":
        file.write_text(file.read_text().replace("a firm do", "a bank do"))
        assert first in Questionnaire(file, out).waiting


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", b"x"),
        ("a.xlsx", b"no book"),
        ("gone.csv", None),
        ("open.csv", b'question\n"Who pays?\n' + b"x,1\n" * 50_000),
    ],
)
def test_a_file_that_is_no_questionnaire_is_refused(tmp_path, name, content):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(QuestionError):
        Questionnaire(path, tmp_path / f"out{path.suffix}")
    with pytest.raises(ConfigError, match="--out"):
        Questionnaire(path, tmp_path / "out.other")


def test_a_reply_has_result_answer_rules_verdicts_scores_and_record():
    asked = Question("What must a firm do?")
    view = View(asked, Config())
    for event in make_pipeline().run(asked):
        view = advance(view, event)
    found = dict(zip(HEADS, reply(view), strict=True))
    assert found["ragqa result"] == "Answered"
    assert found["ragqa answer"].startswith("A firm must act at once.")
    assert found["ragqa rules"].startswith("General 1.1")
    assert found["ragqa verdicts"] == "1 sentence quoted; 1 sentence not supported"
    assert 0 < found["ragqa RePASs"] <= 1
    assert found["ragqa record"] == view.record_id

"""What is taken out of text, and cells that a spreadsheet would compute."""

import csv
import io

import pytest

from ragqa.evaluation.answer_file import AnswerScores
from ragqa.evaluation.benchmarks.external_answers.results import csv_text
from ragqa.infra.cleaning import cell

FORMULAE = ["=1+1", "+1", "-1+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "＝1", "＋1", "－1", "＠x"]


@pytest.mark.parametrize("text", FORMULAE)
def test_a_cell_is_never_a_formula(text):
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "a", "1", "a=b", "'=1", "Who must act?", "a-b"])
def test_other_cells_stay_as_they_are(text):
    assert cell(text) == text


@pytest.mark.parametrize("text", [*FORMULAE, 'a",=1', 'a"\n=1'])
def test_a_question_id_of_results_csv_is_never_a_formula(text):
    rows = list(csv.reader(io.StringIO(csv_text([(text, AnswerScores(1.0, 0.5, 0.0, -0.25))]), newline="")))
    assert len(rows) == 2
    assert not rows[1][0].lstrip().startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠"))
    assert rows[1][1:] == ["1.0", "0.5", "0.0", "-0.25"]

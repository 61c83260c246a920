"""The table and the averages as written-out arithmetic; the journal torn, altered and whole."""

import csv
import json
import math
import os

import pytest

from ragqa.errors import RecordError
from ragqa.evaluation.answer_file import AnswerScores, figures_of
from ragqa.evaluation.benchmarks.external_answers.results import averages, averages_text, csv_text
from ragqa.infra.journal import Journal
from ragqa.types import ModelInfo
from ragqa.types.scores import Breakdown, ObligationScore, Premise, RePASs, ScoringMode

MODEL = ModelInfo("m", "0" * 64)


def evaluation(mode, entailment, contradiction, covered):
    obligations = tuple(
        ObligationScore(n, Premise("x", "p", 0, 0, 1), does, 0.0, 0.0, None, "") for n, does in enumerate(covered)
    )
    share = sum(covered) / len(covered) if covered else 0.0
    parts = RePASs(entailment, contradiction, round(share, 5) if mode is ScoringMode.SCRIPT else share)
    return Breakdown(mode, parts, (), obligations, (), (), (), 0.7, 0.5, MODEL, MODEL, MODEL, "s", 0)


# The table


def test_script_mode_leaves_coverage_unrounded_and_rounds_the_composite():
    figures = figures_of(evaluation(ScoringMode.SCRIPT, 0.11765, 0.00885, [True, False, False]))
    assert figures == AnswerScores(0.11765, 0.00885, 1 / 3, round((1 / 3 + 0.11765 - 0.00885 + 1) / 3, 5))
    # a row of the baseline that RegNLP/RePASs publishes, with the same parts
    assert csv_text([("q", figures)]).splitlines()[1] == "q,0.11765,0.00885,0.3333333333333333,0.48071"


def test_paper_mode_rounds_nothing():
    figures = figures_of(evaluation(ScoringMode.PAPER, 0.123456789, 0.1, [True, False]))
    assert figures == AnswerScores(0.123456789, 0.1, 1 / 2, (0.123456789 - 0.1 + 1 / 2 + 1) / 3)


@pytest.mark.parametrize("mode", list(ScoringMode))
def test_without_an_obligation_the_coverage_is_the_whole_number_0(mode):
    """As in the baseline's table: ``0eb99ea8-…,0.17311,0.00216,0,0.39032``, and 0.0 where none is covered."""
    none, uncovered = (figures_of(evaluation(mode, 0.5, 0.25, covered)) for covered in ([], [False]))
    assert csv_text([("a", none)]).splitlines()[1].split(",")[3] == "0"
    assert csv_text([("a", uncovered)]).splitlines()[1].split(",")[3] == "0.0"
    assert none.composite == uncovered.composite == pytest.approx((0.5 - 0.25 + 0 + 1) / 3, abs=1e-5)


def test_the_table_has_the_references_columns_and_line_ends():
    text = csv_text([("q,1", AnswerScores(0.5, 0.0, 0, 1e-05)), ("q,1", AnswerScores(0.5, 0.0, 1.0, 0.25))])
    assert text == (
        "QuestionID,entailment_score,contradiction_score,obligation_coverage_score,composite_score\r\n"
        '"q,1",0.5,0.0,0,1e-05\r\n'
        '"q,1",0.5,0.0,1.0,0.25\r\n'
    )


def test_averages_are_the_means_of_the_columns():
    means = averages(
        [AnswerScores(0.1, 0.2, 0, 0.3), AnswerScores(0.2, 0.4, 1.0, 0.7), AnswerScores(0.6, 0.3, 0.5, 0.2)]
    )
    assert means.values == pytest.approx(((0.1 + 0.2 + 0.6) / 3, (0.2 + 0.4 + 0.3) / 3, 1.5 / 3, (0.3 + 0.7 + 0.2) / 3))
    assert averages_text(AnswerScores(0.11377999999999999, 0.09597, 0.7, 0.5726030000000001)) == (
        "Average Entailment Score: 0.11377999999999999\n"
        "Average Contradiction Score: 0.09597\n"
        "Average Obligation Coverage Score: 0.7\n"
        "Average Final Composite Score: 0.5726030000000001\n"
    )


def test_averages_of_nothing_are_zeros_and_never_nan():
    assert averages([]).values == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.data
def test_published_rows_follow_from_their_parts(shared_data):
    """E, C and OC of the published rows give their composite by this arithmetic, to the last of 5 decimals."""
    items = json.loads((shared_data / "repass" / "reference_cases.json").read_text())["items"]
    for item in items:
        row = item["expected"]
        parts = (row["obligation_coverage_score"], row["entailment_score"], row["contradiction_score"])
        composite = round((parts[0] + parts[1] - parts[2] + 1) / 3, 5)
        assert composite == pytest.approx(row["composite_score"], abs=1.1e-5)
        text = csv_text([("q", AnswerScores(parts[1], parts[2], parts[0], row["composite_score"]))])
        assert next(csv.reader(text.splitlines()[1:]))[1:] == [str(row[name]) for name in row]


# The journal


@pytest.fixture
def journal(tmp_path):
    found = Journal(tmp_path / "journal.jsonl")
    yield found
    found.close()


def entries(journal):
    return [entry for _, entry in journal.read()]


def refill(journal, count=3):
    list(journal.read())
    offsets = [journal.append({"n": n, "text": "é\u2028\ud800"}) for n in range(count)]
    journal.close()
    return offsets


def test_entries_come_back_in_order_and_one_by_one(journal):
    assert entries(journal) == []
    offsets = refill(journal)
    assert [entry["n"] for entry in entries(journal)] == [0, 1, 2]
    assert journal.entry_at(offsets[1]) == {"n": 1, "text": "é\u2028\ud800"}
    assert not journal.dropped_torn_line
    lines = journal.path.read_text().splitlines()
    assert [json.loads(line)["entry"]["n"] for line in lines] == [0, 1, 2]  # JSON lines, for other programs


def test_wherever_the_last_line_is_torn_it_is_dropped_and_the_next_entry_takes_its_place(journal):
    offsets = refill(journal)
    whole = journal.path.read_bytes()
    for length in range(offsets[2] + 1, len(whole)):
        journal.path.write_bytes(whole[:length])
        assert [entry["n"] for entry in entries(journal)] == [0, 1]
        assert journal.dropped_torn_line
        assert journal.append({"n": 2, "text": "é\u2028\ud800"}) == offsets[2]
        journal.close()
        assert journal.path.read_bytes() == whole


def test_a_tail_of_zeros_is_dropped(journal):
    refill(journal)
    journal.path.write_bytes(journal.path.read_bytes() + bytes(100))
    assert len(entries(journal)) == 3
    assert journal.dropped_torn_line


def test_an_altered_line_before_the_last_is_refused_wherever_it_was_changed(journal):
    offsets = refill(journal)
    whole = journal.path.read_bytes()
    for position in range(offsets[1], offsets[2] - 1):  # without its line end it runs into the last line and is torn
        changed = bytearray(whole)
        changed[position] ^= 1
        journal.path.write_bytes(changed)
        with pytest.raises(RecordError, match="line 2, was altered"):
            entries(journal)


def test_an_entry_altered_under_way_is_refused(journal):
    offsets = refill(journal)
    journal.path.write_bytes(journal.path.read_bytes().replace(b'"n": 1', b'"n": 7'))
    with pytest.raises(RecordError, match="altered while it was in use"):
        journal.entry_at(offsets[1])


def test_a_number_that_is_not_finite_is_not_written(journal):
    list(journal.read())
    with pytest.raises(ValueError, match="JSON compliant"):
        journal.append({"n": math.nan})
    assert not journal.path.exists()


def test_a_system_that_takes_a_byte_at_a_time_gets_the_whole_line(journal, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data[:7])))
    refill(journal)
    assert len(entries(journal)) == 3

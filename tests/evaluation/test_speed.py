"""Seconds of a question's stages, also where no answer is written."""

from types import SimpleNamespace

from ragqa.evaluation.speed import measure_speed
from ragqa.types import Question, Selection
from ragqa.types.events.pipeline import Selected


def test_without_an_answer_nothing_takes_time_after_the_selection():
    pipeline = SimpleNamespace(run=lambda _: iter([Selected(Selection((), ()))]))
    (row,) = measure_speed(pipeline, [Question("Who reports?")])
    assert row.milliseconds_to_selection > 0
    assert (row.seconds_to_first_sentence_score, row.seconds_to_final_scores) == (0.0, 0.0)

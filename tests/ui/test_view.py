"""What the page knows: event by event, from a record, and while a run goes on or breaks."""

import itertools
import threading
from dataclasses import replace

import pytest

from ragqa.errors import GenerationError
from ragqa.records.store import RecordStore
from ragqa.records.view import View, advance, from_record, provisional, reselect, shown
from ragqa.settings.config import Config, FilteringConfig
from ragqa.types import Question
from ragqa.types.events.pipeline import Selected
from ragqa.types.events.scoring import ObligationScored, SentenceScored
from ragqa.types.scores import CitationStatus, ScoringMode
from ragqa.ui.state.run import Run
from tests.support.fakes import FakeGenerator, answer
from tests.support.helpers import ANSWER, make_pipeline


def views(store=None):
    view = View(Question("Who must act?"), Config())
    seen = [view]
    for event in make_pipeline(records=store).run(view.asked):
        view = advance(view, event)
        seen.append(view)
    return seen


def test_each_event_adds_and_nothing_disappears():
    seen = views()
    for before, after in itertools.pairwise(seen):
        for name in ("rankings", "selection", "answer", "scored"):
            assert getattr(after, name) or not getattr(before, name)
    last = seen[-1]
    assert (last.running, last.phase) == (False, "Done")
    assert last.record_id
    assert last.seconds["scoring"] >= 0


def test_the_phase_says_what_happens_with_its_count():
    phases = [view.phase for view in views()]
    assert "Retrieved 3 + 3 passages" in phases
    assert "Fused into 3 candidates" in phases
    assert any(phase.startswith("Kept ") for phase in phases)
    assert "2 of 2 sentences final" in phases
    assert "2 of 2 sentences final, 2 of 2 obligations final" in phases


def test_a_record_gives_the_same_view_as_the_run(tmp_path):
    store = RecordStore(tmp_path / "records.sqlite3")
    last = views(store)[-1]
    again = from_record(store.load(last.record_id))
    for name in ("question", "rankings", "selection", "answer", "scored", "sentences", "obligations"):
        assert getattr(again, name) == getattr(last, name), name


def test_a_record_shows_its_own_decisions_where_todays_rule_decides_otherwise(tmp_path):
    store = RecordStore(tmp_path / "records.sqlite3")
    everything = Config(filtering=FilteringConfig(threshold=0.0, max_drop=1.0))
    lines = answer("Nothing here matters.", [(3,)])
    events = list(make_pipeline(config=everything, generator=FakeGenerator(lines), records=store).run(Question("Who?")))
    record = store.load(events[-1].record_id)
    strict = FilteringConfig(threshold=1.0, top_k=1)  # as if the rule had changed: today it keeps one of the three
    view = from_record(replace(record, filtering=strict))
    assert view.selection == next(event.selection for event in events if isinstance(event, Selected))
    assert view.selection.passages == record.kept
    assert view.explained.paper.citations[0].status is CitationStatus.CONFIRMED
    assert reselect(view, view.config.fusion, strict, view.config.reranking) == view.selection
    moved = reselect(view, view.config.fusion, replace(strict, top_k=2), view.config.reranking)
    assert len(moved.kept) == 1


def test_a_record_that_was_never_scored_is_shown_with_its_error(tmp_path):
    store = RecordStore(tmp_path / "records.sqlite3")
    record = store.load(views(store)[-1].record_id)
    view = from_record(replace(record, scored=None, status="scoring failed", error="the model broke"))
    assert (view.scored, view.error, view.answer) == (None, "the model broke", ANSWER)


def test_provisional_scores_are_means_over_what_is_there():
    seen = views()
    assert provisional(seen[0]) is None
    first = next(view for view in seen if len(view.sentences) == 1)
    assert provisional(first).entailment == pytest.approx(0.9)
    assert provisional(first).obligation_coverage == 0.0
    assert provisional(seen[-1]).entailment == pytest.approx((0.9 + 0.1) / 2)
    assert provisional(seen[-1]).obligation_coverage == pytest.approx(1 / 2)


def test_a_provisional_score_is_replaced_in_its_place_and_known_as_final_only_then():
    scored = views()[-1].scored.paper
    first, second = scored.sentences
    view = replace(views()[0], n_sentences=2)
    for event in (
        SentenceScored(replace(second, entailment=0.05), 0, 2, final=False),
        SentenceScored(replace(first, entailment=0.4), 0, 2, final=False),
    ):
        view = advance(view, event)
    assert [score.index for score in view.sentences] == [0, 1]
    assert (view.final_sentences, view.phase) == (frozenset(), "Scored provisionally: best premises only")
    assert provisional(view).entailment == pytest.approx((0.4 + 0.05) / 2)
    view = advance(view, SentenceScored(first, 1, 2, final=True))
    assert view.sentences[0] == first
    assert (len(view.sentences), view.final_sentences) == (2, {0})
    assert provisional(view).entailment == pytest.approx((0.9 + 0.05) / 2)


def test_a_provisional_obligation_is_replaced_too():
    scored = views()[-1].scored.paper
    first, second = scored.obligations
    view = views()[0]
    view = advance(view, ObligationScored(replace(second, best=0.01), 0, 2, final=False))
    view = advance(view, ObligationScored(first, 1, 2, final=True))
    assert ([score.index for score in view.obligations], view.final_obligations) == ([0, 1], {0})
    view = advance(view, ObligationScored(second, 2, 2, final=True))
    assert view.obligations == scored.obligations
    assert view.final_obligations == {0, 1}


def test_a_long_answer_is_scored_provisionally_first_and_ends_final():
    lines = answer("\n".join(f"The firm number {n} must act." for n in range(40)))
    view = View(Question("Who must act?"), Config())
    seen = []
    for event in make_pipeline(generator=FakeGenerator(lines)).run(view.asked):
        view = advance(view, event)
        seen.append(view)
    complete = [v for v in seen if len(v.sentences) == 40 and len(v.final_sentences) < 40]
    assert complete, "no complete provisional breakdown came"
    assert all(len(v.sentences) <= 40 for v in seen)
    last = seen[-1]
    assert last.final_sentences == frozenset(range(40))
    assert len(last.final_obligations) == last.n_obligations == len(last.obligations)


def test_a_view_with_scores_carries_its_explanation_in_both_modes():
    last = views()[-1]
    for mode in ScoringMode:
        composite = last.scored.of(mode).repass.composite
        assert f"= {composite:.3f}" in last.explained.of(mode).arithmetic.formula
    assert any("script" in line for line in last.explained.differences)
    assert views()[0].explained is None


def test_problems_are_what_is_not_plainly_supported_by_what_it_cites():
    lines = answer("A firm must act at once.\nA firm must act at once.\nThe moon is green.", [(1,), (2,)])
    view = Run(Question("Who?"), Config(), lambda: make_pipeline(generator=FakeGenerator(lines))).wait(20)
    found = shown(view, ScoringMode.PAPER)
    assert [score.index for score in found.sentences_with_problems] == [1, 2]
    assert [score.index for score in replace(found, explanation=None).sentences_with_problems] == [2]
    assert [score.covered for score in found.uncovered] == [False]


def test_reselecting_changes_neither_the_view_nor_its_answer():
    last = views()[-1]
    before = repr(last)
    everything = reselect(last, last.config.fusion, FilteringConfig(threshold=0.0, max_drop=1.0))
    assert len(everything.kept) == 3
    assert repr(last) == before


def test_a_run_ends_with_its_record():
    view = Run(Question("Who must act?"), Config(), make_pipeline).wait(20)
    assert (view.running, view.error) == (False, "")
    assert view.scored
    assert view.record_id


def test_a_run_whose_generator_fails_keeps_its_passages():
    broken = FakeGenerator(ANSWER, GenerationError("the server is down; start it"), error_after=3)
    view = Run(Question("Who?"), Config(), lambda: make_pipeline(generator=broken)).wait(20)
    assert (view.error, view.running) == ("the server is down; start it", False)
    assert view.rankings
    assert view.text.split() == ANSWER.raw.split()[:3]


def test_a_bug_is_reported_by_reference_and_never_by_trace(caplog):
    def load():
        raise ZeroDivisionError("secret detail")

    view = Run("Who?", Config(), load).wait(20)
    assert "Reference" in view.error
    assert "secret detail" not in view.error
    assert "ZeroDivisionError" not in view.error
    reference = view.error.split("Reference ")[1].split(" ")[0]
    assert reference in caplog.text


def test_a_run_can_be_stopped_and_keeps_what_is_there():
    reached, go_on = threading.Event(), threading.Event()

    class Waiting(FakeGenerator):
        def stream(self, question, passages):
            reached.set()
            go_on.wait(10)
            return (yield from super().stream(question, passages))

    run = Run(Question("Who?"), Config(), lambda: make_pipeline(generator=Waiting(ANSWER)))
    assert reached.wait(10)
    run.stop()
    go_on.set()
    view = run.wait(20)
    assert "Stopped at your request" in view.error
    assert view.rankings
    assert view.answer is None

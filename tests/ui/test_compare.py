"""Two answers side by side: the numbers are the pipeline's own, the pairs are right, texts stay texts."""

import re
from dataclasses import replace

import pytest

from ragqa.records.comparison import PassageRow, compare
from ragqa.records.store import RecordStore
from ragqa.records.view import View, advance, from_record
from ragqa.settings.config import Config, FilteringConfig, FusionConfig
from ragqa.types import Question
from ragqa.types.events.pipeline import Answered, Recorded, Selected
from ragqa.types.events.scoring import Scored
from ragqa.ui.html.compare import COMPARE, passages_html, sentences_html, summary_html
from tests.support.fakes import FakeGenerator, answer, passage
from tests.support.helpers import ANSWER, make_pipeline
from tests.ui.test_render import HOSTILE, assert_harmless

WIDE = FilteringConfig(0.0, 1.0, 10)
OTHER = answer("A firm must act at once.\nThe moon is quite green.\nIt must not sleep.", [(1,), (2,), (2,)])


def run(config=None, written=ANSWER, question="Who must act?", store=None):
    config = config or Config()
    view, events = View(Question(question), config), []
    for event in make_pipeline(config=config, generator=FakeGenerator(written), records=store).run(Question(question)):
        events.append(event)
        view = advance(view, event)
    return view, events


@pytest.fixture(scope="module")
def both():
    return run(), run(Config(filtering=WIDE, fusion=FusionConfig.of(dense=1)), OTHER)


def test_the_numbers_are_those_of_the_pipeline_for_each_alone(both):
    (a, events_a), (b, events_b) = both
    found = compare(a, b)
    by_name = {row.name: row for row in found.scores}
    for side, view, events in (("a", a, events_a), ("b", b, events_b)):
        (scored,) = [event for event in events if isinstance(event, Scored)]
        (selection,) = [event.selection for event in events if isinstance(event, Selected)]
        (said,) = [event.answer for event in events if isinstance(event, Answered)]
        (seconds,) = [event.seconds for event in events if isinstance(event, Recorded)]
        repass = scored.of(view.config.scoring.mode).repass
        assert getattr(by_name["RePASs"], side) == repass.composite
        assert getattr(by_name["Entailment E"], side) == repass.entailment
        assert getattr(by_name["Contradiction C"], side) == repass.contradiction
        assert getattr(by_name["Obligation coverage OC"], side) == repass.obligation_coverage
        assert getattr(by_name["Passages kept"], side) == len(selection.kept)
        assert getattr(by_name["Sentences"], side) == len(said.sentences)
        for row in found.seconds[:-1]:
            assert getattr(row, side) == seconds.get(row.name)
        ranks = {one.passage.passage_id: one.rank for one in (*selection.kept, *selection.dropped)}
        kept = {one.passage.passage_id for one in selection.kept}
        for row in found.passages:
            assert getattr(row, f"rank_{side}") == ranks.get(row.passage.passage_id)
            assert getattr(row, f"kept_{side}") == (row.passage.passage_id in kept)
        verdicts = [one for one in (getattr(row, side) for row in found.sentences) if one]
        assert {one.text for one in verdicts} == {one.text for one in said.sentences}
        judged = {one.index: one.verdict for one in scored.of(view.config.scoring.mode).verdicts}
        assert {one.number - 1: one.verdict for one in verdicts} == judged


def test_sentences_are_paired_same_then_reworded(both):
    (a, _), (b, _) = both
    rows = compare(a, b).sentences
    assert [row.match for row in rows] == ["same", "reworded", "only B"]
    assert (rows[1].a.text, rows[1].b.text) == ("The moon is green.", "The moon is quite green.")


def test_what_differs_is_said_in_words(both):
    (a, _), (b, _) = both
    found = compare(a, b)
    assert "Threshold 0.70 → 0.00" in [row.words for row in found.differs]
    assert "Weight of Dense 0.30 → 1.00" in [row.words for row in found.differs]
    assert "2 of the kept passages in both, 0 only in A, 1 only in B." in found.words
    assert "Sentences: 1 same, 1 reworded, 1 only B." in found.words
    assert any(line.startswith("RePASs ") for line in found.words)


def test_a_quotation_is_called_one_and_not_praised_as_support():
    view, _ = run(Config(filtering=WIDE))
    copied, _ = run(Config(filtering=WIDE), answer(view.selection.passages[0].text, [(1,)]))
    found = compare(copied, view)
    assert found.verdicts == ("1 quoted", "1 quoted, 1 unsupported")
    html = sentences_html(found.sentences)
    assert ">quoted<" in html
    assert ">supported<" not in html


def test_the_same_answer_by_other_passages_is_not_just_called_worse():
    (a, _), (b, _) = run(), run(Config(filtering=FilteringConfig(0.0, 1.0, 1)))
    found = compare(a, b)
    assert found.scores[0].change
    assert "The answers are the same word for word: only the passages that they are scored by differ." in found.words
    assert "same word for word" not in " ".join(compare(a, a).words)


def test_an_answer_compared_with_itself_differs_in_nothing(both):
    (a, _), _ = both
    found = compare(a, a)
    assert found.differs == ()
    assert {row.moved for row in found.passages} == {0}
    assert {row.match for row in found.sentences} == {"same"}
    assert not any(row.change for row in (*found.scores, *found.seconds))
    assert found.words[0] == "Both keep the same 2 passages."


def test_passages_of_two_corpora_are_never_the_same(both):
    (a, _), _ = both
    found = compare(a, replace(a, config=replace(a.config, index="encyclopedia")))
    assert all(row.moved is None for row in found.passages)
    assert len(found.passages) == 2 * len(compare(a, a).passages)


def test_two_records_compare_as_their_runs_did(tmp_path):
    store = RecordStore(tmp_path / "records.sqlite3")
    (a, _), (b, _) = run(store=store), run(Config(filtering=WIDE), OTHER, store=store)
    again = compare(*(from_record(store.load(view.record_id)) for view in (a, b)))
    now = compare(a, b)
    for name in ("differs", "words", "scores", "verdicts", "sentences", "passages", "seconds"):
        assert getattr(again, name) == getattr(now, name), name


def test_unfinished_views_compare_as_far_as_they_are(both):
    (a, _), _ = both
    nothing = View(Question("Who else?"), Config())
    found = compare(nothing, a)
    assert [row.words for row in found.differs] == ["Question Who else? → Who must act?"]
    assert {row.match for row in found.sentences} == {"only B"}
    assert compare(nothing, nothing).passages == ()
    assert COMPARE.values(compare(nothing, nothing).scores, "Scores").count("<tr>") == 1


def test_corpora_that_differ_are_called_by_their_titles(both):
    (a, _), _ = both
    found = compare(a, replace(a, config=replace(a.config, index="other-rules")))
    html = summary_html(found, {a.config.index: "Rulebook of 2025", "other-rules": "Rules of others"})
    assert "Corpus Rulebook of 2025 → <b>Rules of others</b>" in html
    assert "other-rules" not in html


def test_hostile_texts_stay_text(both):
    view, _ = run(written=answer(HOSTILE, [(1,)]), question=HOSTILE)
    found = compare(both[0][0], view)
    html = summary_html(found, {}) + COMPARE.values(found.scores, HOSTILE) + sentences_html(found.sentences)
    assert "alert(1)" in assert_harmless(html + passages_html(found.passages)).text


def test_a_passage_below_the_ranks_that_are_drawn_has_its_rank_and_its_line():
    moved = {1: 40, 2: 31, 3: 1}
    rows = [PassageRow(passage(f"1:{a}", number=f"{a}"), a, b, False, False) for a, b in moved.items()]
    picture, _, _ = passages_html([*rows, PassageRow(passage("1:9", number="9"), 50, 60, False, False)]).partition(
        "<table"
    )
    assert [(one, two) for one, two in re.findall(r"top:([\d.]+)px\"><b>(\d+)</b>", picture)] == [
        *(("450.0", "40"), ("430.0", "31"), ("20", "1"))
    ]
    assert "100% 459.0px" in picture  # the line ends at its passage
    assert "height:474.0px" in picture
    assert "60" not in re.findall(r"<b>(\d+)</b>", picture)

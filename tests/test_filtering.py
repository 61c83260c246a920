import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragqa.errors import ConfigError
from ragqa.filtering import expected_f2, probabilities, select
from ragqa.settings.config import FilteringConfig
from ragqa.types import Drop, Ranking, ScoredPassage
from tests.support.fakes import passage, ranking


def fused(*values: float) -> Ranking:
    return ranking("fused", {f"p{number:02d}": value for number, value in enumerate(values)})


def reasons(selection):
    return [candidate.drop for candidate in sorted((*selection.kept, *selection.dropped), key=lambda c: c.rank)]


def test_relevance_is_renormalised_over_all_candidates():
    selection = select(fused(0.9, 0.8, 0.1), FilteringConfig())
    assert [c.relevance for c in selection.kept] == pytest.approx([1.0, (0.8 - 0.1) / (0.9 - 0.1)])
    assert reasons(selection) == [None, None, Drop.BELOW_THRESHOLD]


def test_a_fall_of_exactly_max_drop_ends_the_list():
    selection = select(fused(1.0, 0.75, 0.75, 0.0), FilteringConfig(threshold=0.5, max_drop=0.25))
    assert reasons(selection) == [None, Drop.AFTER_MAX_DROP, Drop.AFTER_MAX_DROP, Drop.BELOW_THRESHOLD]
    assert "falls 0.250 below" in selection.dropped[0].explanation
    assert "after the fall at rank 2" in selection.dropped[1].explanation


def test_max_drop_1_switches_the_rule_off():
    assert reasons(select(fused(1.0, 0.0), FilteringConfig(threshold=0.0, max_drop=1.0))) == [None, None]


def test_beyond_top_k():
    selection = select(fused(1.0, 0.9, 0.8, 0.0), FilteringConfig(threshold=0.5, max_drop=1.0, top_k=2))
    assert reasons(selection) == [None, None, Drop.BEYOND_TOP_K, Drop.BELOW_THRESHOLD]


def test_what_is_not_in_force_on_the_day_is_dropped_and_says_so():
    days = {"p00": ("2027-01-01", ""), "p01": ("2022-01-01", "2026-07-01"), "p02": ("2022-01-01", "")}
    ranked = fused(1.0, 0.9, 0.8, 0.0)
    hits = [
        replace(hit, passage=replace(hit.passage, effective=since, until=until))
        for hit in ranked.hits
        for since, until in (days.get(hit.passage.passage_id, ("", "")),)
    ]
    ranked = replace(ranked, hits=tuple(hits))
    selection = select(ranked, FilteringConfig(in_force="2026-07-01"))
    assert [one.passage.passage_id for one in selection.kept] == ["p02"]
    assert [(one.rank, one.drop) for one in selection.dropped] == [
        (2, Drop.BELOW_THRESHOLD),
        (3, Drop.NOT_IN_FORCE),
        (4, Drop.NOT_IN_FORCE),
    ]
    words = "dropped: in force since 2022-01-01, until 2026-07-01, not on 2026-07-01"
    assert selection.dropped[2].explanation == words
    assert len(select(ranked, FilteringConfig()).kept) == 3
    assert select(ranked, FilteringConfig(in_force="2020-01-01")).kept[0].passage.passage_id == "p03"
    with pytest.raises(ConfigError, match="a day as YYYY-MM-DD, or empty, got '1 July'"):
        FilteringConfig(in_force="1 July")


def version(year, text="A firm reports a loss within five days.", **fields):
    given = {"title": "Loss Rules", "number": "1.1", "effective": f"{year}-01-01"} | fields
    return ScoredPassage(passage(f"loss{year}:1.1", text, **given), 1.0)


@pytest.mark.parametrize(("day", "kept"), [("2021-06-01", []), ("2022-01-01", [2022]), ("2026-06-01", [2025])])
def test_a_rule_is_in_force_until_its_next_version_is(day, kept):
    ranked = Ranking.of("fused", [version(2025, "A firm reports a loss within three days."), version(2022)])
    selection = select(ranked, FilteringConfig(in_force=day))
    assert [one.passage.passage_id for one in selection.kept] == [f"loss{year}:1.1" for year in kept]
    if kept == [2025]:
        (gone,) = selection.dropped
        assert gone.explanation == "dropped: in force since 2022-01-01, until 2025-01-01, not on 2026-06-01"


@pytest.mark.parametrize(
    "other",
    [
        version(2025, "Boats carry ropes, lamps and a bell."),  # another rule of this number
        version(2025, title="Gain Rules"),
        version(2025, number=""),
        version(2025, effective=""),
        version(2025, document_id="loss2022"),
    ],
)
def test_what_is_no_version_of_a_rule_replaces_nothing(other):
    selection = select(Ranking.of("fused", [other, version(2022)]), FilteringConfig(in_force="2026-06-01"))
    assert len(selection.kept) == 2


def test_the_best_passage_is_always_kept():
    selection = select(fused(0.3, 0.1), FilteringConfig(threshold=1.0, max_drop=0.0))
    assert [c.passage.passage_id for c in selection.kept] == ["p00"]
    assert "always" in selection.kept[0].explanation


def test_equal_scores_are_all_fully_relevant():
    assert reasons(select(fused(0.4, 0.4, 0.4), FilteringConfig(threshold=1.0))) == [None, None, None]


def test_one_passage_and_none():
    assert len(select(fused(0.2), FilteringConfig()).kept) == 1
    empty = select(Ranking("fused", ()), FilteringConfig())
    assert (empty.kept, empty.dropped, empty.passages) == ((), (), ())


values = st.lists(st.floats(0, 1), max_size=30)
configs = st.builds(
    FilteringConfig, threshold=st.floats(0, 1), max_drop=st.floats(0, 1), top_k=st.integers(min_value=1, max_value=12)
)


@given(values, configs)
def test_kept_and_dropped_together_are_the_ranking(scores, config):
    whole = fused(*scores)
    selection = select(whole, config)
    assert tuple(c.hit for c in (*selection.kept, *selection.dropped)) == whole.hits
    assert all((c.drop is None) == (c in selection.kept) for c in (*selection.kept, *selection.dropped))
    assert len(selection.kept) <= config.top_k


@given(values, configs, st.floats(0, 1))
def test_raising_the_threshold_never_adds_a_passage(scores, config, other):
    low, high = sorted((config.threshold, other))
    kept = [
        {c.rank for c in select(fused(*scores), FilteringConfig(threshold, config.max_drop, config.top_k)).kept}
        for threshold in (low, high)
    ]
    assert kept[1] <= kept[0]


def test_expected_f2_by_hand():
    assert expected_f2([0.5, 0.5]) == pytest.approx([5 * 0.5 / (4 + 1), 5 * 1.0 / (4 + 2)])
    assert expected_f2([0.9, 0.8, 0.1]) == pytest.approx([4.5 / 8.2, 8.5 / 9.2, 9 / 10.2])
    weights = {"bias": 0.0, "relevance": 1.0, "others": -2.0, "lead": 0.5}
    assert probabilities([1.0, 0.5], weights) == pytest.approx([1 / (1 + math.exp(-0.25)), 1 / (1 + math.exp(0.25))])
    assert (probabilities([]), expected_f2([])) == ([], [])


def test_expected_f2_keeps_one_that_stands_out_and_several_that_are_alike():
    by_f2 = FilteringConfig(method="expected-f2")
    alone = select(fused(1.0, *[0.3] * 10, 0.0), by_f2)
    assert reasons(alone) == [None, *[Drop.AFTER_CUT] * 9, *[Drop.BEYOND_TOP_K] * 2]
    assert "the best passage always is" in alone.kept[0].explanation
    assert "expected F2 is highest after 1" in alone.dropped[0].explanation
    alike = select(fused(1.0, 0.97, 0.95, *[0.2] * 10, 0.0), by_f2)
    assert len(alike.kept) == 3
    assert len(select(fused(1.0, 0.97, 0.95, 0.0), FilteringConfig(method="expected-f2", top_k=2)).kept) == 2
    assert select(Ranking("fused", ()), by_f2).passages == ()


@given(values, st.integers(1, 12))
def test_expected_f2_keeps_a_beginning_of_the_ranking(given_values, top_k):
    selection = select(fused(*sorted(given_values, reverse=True)), FilteringConfig(top_k=top_k, method="expected-f2"))
    assert [one.rank for one in selection.kept] == list(range(1, len(selection.kept) + 1))
    assert len(selection.kept) + len(selection.dropped) == len(given_values)
    assert min(1, len(given_values)) <= len(selection.kept) <= min(top_k, 10)
    assert all(one.explanation.startswith("kept" if one.drop is None else "dropped") for one in selection.kept)


def test_a_relevance_that_ends_the_list_is_never_rounded_to_the_threshold():
    limits = select(fused(1.0, 0.8, 0.6996, 0.0), FilteringConfig(threshold=0.7, max_drop=1.0)).limits
    assert limits[0].reason == "rank 3 has a relevance just below 0.70"

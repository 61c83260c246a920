"""Settings without a browser: which limit binds, what differs, what is stale, values there and back, terms, presets."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa import filtering
from ragqa.corpus.questions import GoldQuestion
from ragqa.errors import ConfigError
from ragqa.evaluation.measures import kept_figures
from ragqa.filtering import select, with_added
from ragqa.records.differences import differences
from ragqa.records.limits import limits
from ragqa.records.store import RecordStore
from ragqa.settings.config import Config, FilteringConfig, FusionConfig, GenerationConfig, RerankingConfig
from ragqa.settings.preset_files import find_preset, save_preset
from ragqa.settings.presets import PRESETS, Preset
from ragqa.types import Drop, Limit, Question
from ragqa.types.scores import ScoringMode
from ragqa.ui.html.curve import curve_html
from ragqa.ui.state.settings_values import config_of, values_of, with_preset
from ragqa.ui.state.stale import stale
from ragqa.ui.state.terms import TERMS, term_html
from tests.support.fakes import ranking
from tests.support.helpers import make_pipeline
from tests.ui.test_render import Tags, assert_harmless
from tests.ui.test_view import views

RANKINGS = ("bm25", "context", "dense")
SCORES = ranking("fused", {"a": 1.0, "b": 0.9, "c": 0.8, "d": 0.4, "e": 0.0})
UNIT = st.floats(0, 1)
THRESHOLD, MAX_DROP, TOP_K, CUT = "threshold", "max_drop", "top_k", "filter_method"


@pytest.mark.parametrize(
    ("filtering", "binding", "kept", "words"),
    [
        (
            FilteringConfig(0.85, 1.0, 10),
            (THRESHOLD,),
            2,
            "List ends at rank 2, by the threshold: rank 3 has a relevance",
        ),
        (FilteringConfig(0.1, 0.3, 10), (MAX_DROP,), 3, "List ends at rank 3, by max drop: rank 4 falls 0.40 below"),
        (FilteringConfig(0.1, 1.0, 1), (TOP_K,), 1, "List ends at rank 1, by top-k"),
        (FilteringConfig(0.7, 0.2, 10), (THRESHOLD, MAX_DROP), 3, "List ends at rank 3, by the threshold and max drop"),
        (FilteringConfig(0.0, 1.0, 10), (), 5, "No limit reached: all 5 kept."),
        (FilteringConfig(method="expected-f2"), (CUT,), 3, "List ends at rank 3, by expected F2: dropped: 0.0"),
        (FilteringConfig(top_k=2, method="expected-f2"), (TOP_K,), 2, "List ends at rank 2, by top-k"),
    ],
)
def test_the_limit_that_ends_the_list_is_named(filtering, binding, kept, words):
    found = limits(select(SCORES, filtering))
    assert (found.binding, found.kept) == (binding, kept)
    assert found.summary.startswith(words)
    for name, line in found.words.items():
        assert line.startswith("Ends the list here") == (name in binding)
    curve = curve_html(select(SCORES, filtering), 30)
    assert assert_harmless(curve).text.count(", ends the list") == len([name for name in binding if name != TOP_K]) + (
        TOP_K in binding
    )


@settings(max_examples=100)
@given(st.lists(UNIT, max_size=12), UNIT, UNIT, st.integers(1, 12))
def test_what_the_limits_keep_together_is_what_the_filter_keeps(scores, threshold, drop, top_k):
    filtering = FilteringConfig(threshold, drop, top_k)
    selection = select(ranking("fused", {f"p{n}": score for n, score in enumerate(scores)}), filtering)
    found = limits(selection)
    assert (found is None) == (not scores)
    if found:
        assert found.kept == len(selection.kept)
        for name, other in ((THRESHOLD, (threshold, 1.0, 100)), (MAX_DROP, (0.0, drop, 100)), (TOP_K, (0, 1.0, top_k))):
            alone = select(
                ranking("fused", {f"p{n}": score for n, score in enumerate(scores)}), FilteringConfig(*other)
            )
            assert found.alone[name] == len(alone.kept)


def test_what_another_rule_keeps_behind_the_end_or_leaves_out_before_it_is_told_with_its_reason():
    filtering = FilteringConfig(0.85, 1.0, 10)
    found = select(SCORES, filtering)
    quoted = limits(with_added(found, {"d"}))
    assert quoted.kept == 3
    assert quoted.summary.endswith("Kept all the same: rank 4 (it holds a sentence of the answer).")
    second = replace(found.kept[1], drop=Drop.BEYOND_TOP_K, explanation="dropped: says what rank 1 says")
    without = limits(replace(found, kept=found.kept[:1], dropped=(second, *found.dropped)))
    assert without.kept == 1
    assert "List ends at rank 2" in without.summary
    assert without.summary.endswith("Left out all the same: rank 2 (says what rank 1 says).")


def test_the_curve_has_a_point_for_each_candidate_and_no_limit_beyond_it():
    html = curve_html(select(SCORES, FilteringConfig()), 3)
    shows = [value for name, value in Tags(html).pairs if name == "data-show"]
    assert shows == ["p1", "p2", "p3"]
    assert "max drop" not in Tags(html).text  # its fall is at rank 4
    assert curve_html(select(ranking("fused", {}), FilteringConfig()), 3) == ""


class Enough(filtering.FilterRule):
    """Keeps the best passages until their relevances come to two."""

    def __init__(self, relevances, config):
        sums = (n for n in range(1, len(relevances)) if sum(relevances[:n]) >= 2)
        super().__init__(relevances, config, {"threshold": next(sums, len(relevances))})

    def kept(self, rank):
        return "not enough before it"

    def dropped(self, rank):
        return Drop.AFTER_CUT, f"enough after {self.end}"

    def limit(self, setting):
        return Limit(setting, "the sum", "sum 2", f"they come to 2 after {self.end}")


def test_the_rule_of_the_filter_is_swapped_in_one_place(monkeypatch, tmp_path):
    monkeypatch.setitem(filtering.RULES, "limits", Enough)
    selection = select(SCORES, FilteringConfig())
    assert [one.passage.passage_id for one in selection.kept] == ["a", "b", "c"]  # 1 + .9 < 2
    html = Tags(curve_html(selection, 30))
    assert "sum 2, ends the list" in html.text
    assert any(value.endswith("dropped: enough after 3") for name, value in html.pairs if name == "title")
    found = limits(selection)
    assert found.summary == "List ends at rank 3, by the sum: they come to 2 after 3."
    assert found.words == {"threshold": "Ends the list here: they come to 2 after 3."}
    gold = [GoldQuestion(Question("Who?"), frozenset("ad"))]
    (figures,) = kept_figures(gold, [SCORES], [FilteringConfig()])
    assert figures[1:, 0].tolist() == [1 / 3, 1 / 2, 3]
    store = RecordStore(tmp_path / "records.sqlite3")
    recorded = list(make_pipeline(records=store).run(Question("Who must act?")))[-1]
    assert {one.explanation for one in store.load(recorded.record_id).candidates} <= {
        "kept: not enough before it",
        "dropped: enough after 1",
        "dropped: enough after 2",
    }


def changed(**parts):
    return replace(Config(), **parts)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (changed(index="encyclopedia"), ["Corpus rulebook → encyclopedia"]),
        (
            changed(filtering=FilteringConfig(0.5, 1.0, 4)),
            ["Threshold 0.70 → 0.50", "Max drop 0.20 → off", "Top-k 10 → 4"],
        ),
        (
            changed(fusion=FusionConfig.of(bm25=1)),
            ["Weight of BM25 0.45 → 1.00", "Weight of Context 0.25 → 0.00", "Weight of Dense 0.30 → 0.00"],
        ),
        (changed(fusion=FusionConfig("rrf")), ["Fusion weighted sum → reciprocal rank"]),
        (changed(reranking=RerankingConfig("ranker-adgm", 20)), ["Reranker off → Learning to rank, one rulebook"]),
        (changed(reranking=RerankingConfig("", 20, 0.9)), []),
        (
            changed(generation=GenerationConfig("extractive", max_sentences=3)),
            ["Generator direct, no language model → extractive, no language model"],
        ),
        (changed(generation=GenerationConfig("direct", quote_anyway=True)), ["Quote anyway no → yes"]),
        (changed(generation=GenerationConfig("direct", model="other")), []),
        (changed(scoring=replace(Config().scoring, mode=ScoringMode.SCRIPT)), ["RePASs mode paper → script"]),
    ],
)
def test_what_differs_is_told_in_words_and_what_has_no_effect_is_not(other, words):
    assert [row.words for row in differences(Config(), other)] == words
    assert differences(other, other) == ()


def test_the_language_model_differs_only_where_it_is_asked():
    llm = [changed(generation=GenerationConfig("llm", model=name)) for name in ("one", "two")]
    assert [row.words for row in differences(*llm)] == ["Language model one → two"]
    assert "Language model none → one" in [row.words for row in differences(Config(), llm[0])]


@pytest.mark.parametrize(
    ("settings_now", "label"),
    [
        (changed(index="encyclopedia", filtering=FilteringConfig(0.0)), "other corpus"),
        (changed(generation=GenerationConfig("extractive")), "other generator"),
        (changed(generation=GenerationConfig("direct", quote_anyway=True)), "other options"),
        (changed(filtering=FilteringConfig(1.0, 0.01, 1)), "earlier filter"),
        (
            changed(fusion=FusionConfig.of(dense=1), filtering=FilteringConfig(1.0, 0.01, 1)),
            "earlier filter and weights",
        ),
        (changed(retrieval=replace(Config().retrieval, top_k=50)), "other candidates"),
    ],
)
def test_whatever_was_changed_labels_what_it_makes_stale(settings_now, label):
    view = views()[-1]
    assert [one.label for one in stale(view, settings_now)] == [label]
    assert stale(view, view.config) == ()


def test_a_change_that_keeps_the_same_passages_makes_nothing_stale():
    assert stale(views()[-1], changed(filtering=FilteringConfig(0.71, 0.2, 10))) == ()


@pytest.mark.parametrize("preset", PRESETS[:8], ids=lambda preset: preset.name)
def test_a_presets_values_give_its_settings_again(preset):
    config = with_preset(Config(), preset, RANKINGS, "all-MiniLM-L6-v2")
    again = config_of(values_of(config, RANKINGS), config.index, config, config.retrieval, RANKINGS)
    assert differences(config, again) == ()
    assert (again.filtering, again.reranking) == (preset.filtering, preset.reranking)


def test_every_term_explains_itself_on_focus_and_names_are_unique():
    html = "".join(term_html(name, name, "here") for name in TERMS)
    tags = assert_harmless(html)
    ids = [value for name, value in tags.pairs if name == "id"]
    assert len(set(ids)) == len(TERMS)
    assert [value for name, value in tags.pairs if name == "aria-describedby"] == ids
    for words in TERMS.values():
        assert words.endswith(".")
        assert not re.search(r"\bmaxima\b|min-max", words)


def test_settings_are_saved_under_a_name_once(tmp_path):
    mine = Preset("Outsourcing, strict", "Saved on the page.", filtering=FilteringConfig(0.9, 0.1, 3))
    file = save_preset(mine, tmp_path / "presets")
    assert file.name == "outsourcing-strict.json"
    assert find_preset("Outsourcing, strict", file.parent) == mine
    assert save_preset(replace(mine, name="outsourcing: strict"), file.parent).name == "outsourcing-strict-2.json"
    with pytest.raises(ConfigError, match="there is a preset"):
        save_preset(mine, file.parent)
    for name in ("", "BM25 only", "two\nlines", "x" * 81):
        with pytest.raises(ConfigError, match="name"):
            save_preset(replace(mine, name=name), file.parent)
    assert len(list(file.parent.iterdir())) == 2


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    (tmp_path / "presets").write_text("a file")
    with pytest.raises(ConfigError, match="cannot be written"):
        save_preset(Preset("mine", "x"), tmp_path / "presets")

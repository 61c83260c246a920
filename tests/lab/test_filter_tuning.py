"""The rest of `ragqa tune`: what a filter keeps, measured as `select` keeps it, the choice, indexes, the preset."""

import json
import shutil

import numpy as np
import pytest

import ragqa
from ragqa.corpus.questions import GoldQuestion
from ragqa.errors import ConfigError
from ragqa.evaluation.measures import kept_figures
from ragqa.evaluation.significance import PairedTest
from ragqa.filtering import select
from ragqa.lab.questions import Fold, folds_by_gold
from ragqa.lab.tuning.search import TunedSettings, preset_file
from ragqa.lab.tuning.tuning import RankingSetting, Tuned, TunedFilter, filters, tune, tune_filter
from ragqa.settings.config import FilteringConfig, FusionConfig
from ragqa.settings.preset_files import read_preset
from ragqa.types import Question
from tests.lab.test_tuning import call as call
from tests.lab.test_tuning import file as file
from tests.support.fakes import ranking

ALL = filters(FilteringConfig())


def ask(*gold):
    return GoldQuestion(Question("?"), frozenset(gold))


def figures_of(questions, fused, candidates=ALL, beta=2.0, unit="passage"):
    return np.stack(list(kept_figures(questions, fused, candidates, beta, unit)))


def test_the_grid_holds_the_published_filters_and_ends_with_the_default():
    assert len(ALL) == 21 * 11 + 1
    assert ALL[-1] == FilteringConfig()
    for threshold, max_drop in ((0.7, 0.2), (0.75, 0.05), (0.9, 0.1), (0.0, 1.0)):
        assert FilteringConfig(threshold, max_drop) in ALL[:-1]


def test_figures_by_hand():
    # relevance 1, .75, .5, 0: the default keeps the first (a fall of .25), .5 without max drop keeps three
    fused = [ranking("fused", {"a": 8.0, "b": 7.0, "c": 6.0, "d": 4.0})]
    some = (FilteringConfig(), FilteringConfig(0.5, 1.0), FilteringConfig(0.0, 1.0, top_k=2))
    (found,) = figures_of([ask("b", "x")], fused, some)
    assert found[3].tolist() == [1, 3, 2]
    assert found[1].tolist() == pytest.approx([0, 1 / 3, 1 / 2])
    assert found[2].tolist() == pytest.approx([0, 1 / 2, 1 / 2])
    assert found[0].tolist() == pytest.approx([0, 5 * (1 / 3) * (1 / 2) / (4 / 3 + 1 / 2), 1 / 2])
    (found,) = figures_of([ask("b", "x")], fused, some, beta=1.0)
    assert found[0].tolist() == pytest.approx([0, 2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2), 1 / 2])
    (empty,) = figures_of([ask("b")], [ranking("fused", {})], some)
    assert not empty.any()
    with pytest.raises(ConfigError, match="beta must be above 0"):
        figures_of([ask("b")], fused, some, beta=-1)


@pytest.mark.parametrize("unit", ["passage", "document"])
@pytest.mark.parametrize("grid", [0, 3, 20])
@pytest.mark.long
def test_kept_is_what_select_keeps(grid, unit):
    rng = np.random.default_rng(grid)
    ids = [f"{n % 7}:{n}" for n in range(30)]
    pool = ids if unit == "passage" else list("0123456")
    candidates = (*ALL, *(FilteringConfig(t, d, k) for t in (0.0, 0.33) for d in (0.07, 1.0) for k in (1, 3, 100)))
    candidates += tuple(FilteringConfig(top_k=k, method="expected-f2") for k in (1, 3, 10, 100))
    for _ in range(12):
        names = rng.choice(ids, rng.integers(1, 25), replace=False).tolist()
        scores = rng.integers(0, grid, len(names)) / 20 if grid else rng.random(len(names))
        fused = ranking("fused", dict(zip(names, scores.tolist(), strict=True)))
        gold = set(rng.choice(pool, 3, replace=False).tolist())
        (found,) = figures_of([ask(*gold)], [fused], candidates, unit=unit)
        for config, (f, precision, recall, kept) in zip(candidates, found.T, strict=True):
            chosen = select(fused, config).passages
            units = {one.passage_id if unit == "passage" else one.document_id for one in chosen}
            assert kept == len(chosen)
            assert (precision, recall) == pytest.approx((len(units & gold) / len(units), len(units & gold) / 3))
            assert f == pytest.approx(5 * precision * recall / (4 * precision + recall) if units & gold else 0)


def test_the_filter_is_chosen_on_other_questions_than_it_is_tested_on():
    # Three filters; the third is the default. Fold 1 trains on questions 1 and 2, fold 2 on question 0.
    def table(f):
        return np.stack([np.array(f, float)] * 4, axis=1)

    of_first = table([[0.0, 1.0, 0.5], [1.0, 0.0, 0.5], [1.0, 0.2, 0.1]])
    of_second = table([[0.1, 0.9, 0.3], [0.2, 0.8, 0.3], [0.3, 0.7, 0.3]])
    some = (FilteringConfig(0.1, 0.2), FilteringConfig(0.2, 0.2), FilteringConfig())
    folds = (Fold((0,), (1, 2)), Fold((1, 2), (0,)))
    found = tune_filter([of_first, of_second, of_first], some, folds)
    assert [fold.chosen for fold in found.folds] == [some[0], some[1]]
    assert [fold.tuned for fold in found.folds] == pytest.approx([0.0, (0.8 + 0.7) / 2])
    assert [fold.default for fold in found.folds] == pytest.approx([0.5, 0.3])
    assert found.tuned["F"] == pytest.approx((0.0 + 0.8 + 0.7) / 3)
    assert found.default["F"] == pytest.approx((0.5 + 0.3 + 0.3) / 3)
    assert found.final == some[0], "2/3 against .4"
    level = np.ones((3, 4, len(ALL)))
    assert tune_filter([level] * 3, ALL, folds).final == FilteringConfig(), "of equals the nearest the default"


def test_a_planted_threshold_is_found():
    """Gold lies at relevance .8 and .6, what is wrong at .3 and below: every threshold from .35 to .6 keeps just it."""
    questions = [ask(f"{n}:a", f"{n}:b", f"{n}:c") for n in range(30)]
    fused = [
        ranking("fused", {f"{n}:a": 1.0, f"{n}:b": 0.8, f"{n}:c": 0.6, f"{n}:x": 0.3, f"{n}:y": 0.2, f"{n}:z": 0.0})
        for n in range(30)
    ]
    found = tune_filter([figures_of(questions, fused)] * 6, ALL, folds_by_gold(questions))
    assert found.tuned == {"F": 1.0, "precision": 1.0, "recall": 1.0, "kept": 3.0}
    assert found.final.threshold == 0.6
    assert found.final.max_drop in (0.25, 0.3)
    assert found.default["F"] < 1
    assert found.test.p_value < 0.001


def test_depth_and_index_are_chosen_and_the_nearest_to_the_default_at_a_tie():
    half, folds = FusionConfig.of(bm25=1, dense=1), (Fold((0, 1), (2, 3)), Fold((2, 3), (0, 1)))
    ways = [RankingSetting(name, depth, half) for name in ("other", "rules") for depth in (50, 100, 200)]
    ways.append(RankingSetting("rules", 100, FusionConfig()))
    values = np.zeros((4, 1, 7))
    assert tune(values, ways, ("AP@10",), folds).final == RankingSetting("rules", 100, half)
    values[:, 0, 2] = 1
    assert tune(values, ways, ("AP@10",), folds).final == RankingSetting("other", 200, half)


# COMMAND =============================================================================================================


def tuned(call, file, target, *more):
    return call(
        "tune", "--index", "rules", "--questions", str(file), "--folds", "2", "--step", "0.5", "--depth", "5",
        "--write", str(target), *more,
    )  # fmt: skip


@pytest.mark.long
def test_the_preset_written_is_accepted_where_presets_are(call, file, tmp_path, monkeypatch):
    target = tmp_path / "mine.json"
    code, out, error = tuned(call, file, target)
    assert code == 0, error
    assert "ragqa ask --preset" in out
    preset, written = read_preset(target), json.loads(target.read_text())
    assert (preset.name, preset.index) == ("mine", "rules")
    assert preset.retrieval.top_k == 100, "eight questions show nothing: what is not better stays at its default"
    assert (preset.fusion, preset.filtering) == (FusionConfig(), FilteringConfig())
    assert "8 questions of questions.json" in preset.explanation
    assert "p = " in preset.explanation
    evidence = written["evidence"]
    assert len(evidence["questions_file_sha256"]) == 64
    assert evidence["n_folds"] == 2
    assert "bm25s" in evidence["libraries"]
    assert evidence["command"].startswith("ragqa tune --index=rules --questions=")
    assert evidence["created"].endswith("+00:00")
    assert evidence["versions"]["ragqa"] == ragqa.__version__
    assert evidence["evidence"]["difference"]["p_value"] <= 1
    assert evidence["filter"]["difference"]["p_value"] <= 1
    code, out, error = call(
        "ask", "When is an audit arranged?", "--preset", str(target), "--generator", "none", "--json"
    )
    assert code == 0, error
    assert "1.2" in out, "of the index that the preset names"
    code, out, error = call(
        "eval", "retrieval", "--index", "rules", "--questions", str(file), "--preset", str(target), "--json"
    )
    assert code == 0, error
    assert "mine" in json.loads(out)["measures"]


def test_a_preset_holds_what_is_better_and_the_default_of_what_is_not(file, tmp_path):
    good, bad = PairedTest(0.1, 0.05, 0.15, 0.001), PairedTest(0.1, -0.05, 0.25, 0.2)
    assert (good.is_better, bad.is_better, PairedTest(-0.1, -0.2, -0.05, 0.001).is_better) == (True, False, False)
    way = RankingSetting("rules", 50, FusionConfig("wsum", {"bm25": 0.75, "context": 0.0, "dense": 0.25}))
    ranked = Tuned("AP@10", (), {"AP@10": 0.7}, {"AP@10": 0.6}, good, way)
    about = {"questions": {"name": "q.json", "n_questions": 8}}
    for test, kept in ((good, FilteringConfig(0.5, 1.0)), (bad, FilteringConfig())):
        found = TunedFilter(2.0, (), {"F": 0.5}, {"F": 0.4}, test, FilteringConfig(0.5, 1.0))
        target = tmp_path / "held.json"
        target.write_text(preset_file("held", about, TunedSettings(ranked, found, way, 1, 1), "ragqa tune", file))
        preset = read_preset(target)
        assert (preset.retrieval.top_k, preset.fusion.weights) == (50, {"bm25": 0.75, "dense": 0.25})
        assert preset.filtering == kept
        assert "Tuned ranking: MAP@10 tuned 0.700, default 0.600 (p = 0.0010)." in preset.explanation


@pytest.mark.long
def test_several_indexes_of_a_corpus_are_compared_and_of_two_corpora_refused(call, file, tmp_path):
    source = str(tmp_path / "rules")
    assert call("index", "build", "letters", "--source", source, "--analyser", "characters")[0] == 0
    arguments = ("--questions", str(file), "--folds", "2", "--step", "0.5", "--depth", "5", "--json")
    code, out, error = call("tune", "--index", "rules", "--index", "letters", *arguments)
    assert code == 0, error
    report = json.loads(out)
    assert [one["name"] for one in report["indexes"]] == ["rules", "letters"]
    assert report["n_candidates"] == 2 * 7
    assert report["index"]["name"] in ("rules", "letters")
    shutil.copytree(tmp_path / "rules", tmp_path / "others")
    items = json.loads((tmp_path / "others" / "1.json").read_text())
    (tmp_path / "others" / "1.json").write_text(json.dumps(items[1:]))
    assert call("index", "build", "others", "--source", str(tmp_path / "others"))[0] == 0
    _, _, error = call("tune", "--index", "rules", "--index", "others", *arguments)
    assert "indexes of one corpus" in str(error)


def test_too_many_ways_to_rank_are_refused(call, file):
    depths = [part for depth in range(1, 28) for part in ("--depth", str(depth))]
    _, _, error = call("tune", "--index", "rules", "--questions", str(file), "--folds", "2", *depths)
    assert "at most 6,000 ways to rank" in str(error)

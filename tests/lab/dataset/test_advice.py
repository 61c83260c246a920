"""`ragqa index advise`: the preset to take is one that is surely no worse than the default on made questions."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from ragqa.cli import app
from ragqa.evaluation.significance import paired_test
from ragqa.index import open_index
from ragqa.lab.dataset.advice import (
    ASKED,
    FEWEST,
    MOST_LOST,
    PresetResult,
    candidates,
    default_of,
    made_questions,
    taken,
)
from ragqa.loading import load_obligations
from ragqa.settings.config import RerankingConfig, ScoringConfig
from ragqa.settings.indexing import NO_ENCODER
from ragqa.settings.paths import Paths
from ragqa.settings.presets import PRESETS, Preset

DEFAULT, FUSION_ONLY = (one.name for one in PRESETS[:2])
BASE = [0.2, 0.5, 1.0, 0.5] * 20


def candidate(name, gains):
    values = [one + gain for one, gain in zip(BASE, gains, strict=True)]
    return PresetResult(name, sum(values) / len(values), 1.0, paired_test(values, BASE))


def measured(*others):
    ranked = sorted((candidate(name, gains) for name, gains in others), key=lambda one: -one.average_precision)
    return [candidate(DEFAULT, [0.0] * len(BASE)), *ranked]


def advised(*arguments):
    result = CliRunner().invoke(app, ["index", "advise", *arguments])
    assert result.exit_code == 0, result.output + str(result.exception)
    return result


def test_the_highest_mean_is_taken_only_where_its_interval_stays_by_the_default():
    sure, chancy = [0.1] * len(BASE), [0.0] * 70 + [-4.0, 7.0] * 5
    assert taken(measured(("sure", sure), ("chancy", chancy))) == "sure"
    assert candidate("chancy", chancy).test.mean_difference > candidate("sure", sure).test.mean_difference
    assert taken(measured(("chancy", chancy))) == DEFAULT


def test_an_equal_preset_and_a_loss_within_the_limit_are_not_taken():
    assert taken(measured(("equal", [0.0] * len(BASE)))) == DEFAULT
    loses = candidate("loses", [-MOST_LOST / 2] * len(BASE))
    assert loses.is_safe
    assert taken([candidate(DEFAULT, [0.0] * len(BASE)), loses]) == DEFAULT


def test_candidates_are_each_way_to_order_once_and_no_server_is_asked():
    index = open_index("rulebook", Paths.from_env().indexes)
    again = replace(PRESETS[1], name="the same again")
    served = Preset("served", "", reranking=RerankingConfig("voyage:rerank-2", depth=50, weight=1.0))
    broken = Preset("broken", "", reranking=RerankingConfig("no-such-folder", depth=50, weight=1.0))
    unread = Preset("unread", "", reranking=RerankingConfig("ranker-adgm-large", depth=50, weight=1.0))
    found, left_out = candidates(index, (again, served, broken, unread))
    names = [one.name for one in found]
    words = ("BM25 0.6 + dense 0.4", "BM25 only", "dense only", "reciprocal rank fusion")
    assert names == [FUSION_ONLY, "cross-encoder", *words]
    assert len(left_out) == 1
    assert left_out[0].startswith("broken: ")


def test_the_default_of_an_index_without_vectors_is_fusion_only():
    index = open_index("rulebook", Paths.from_env().indexes)
    assert default_of(index).name == DEFAULT
    lexical = SimpleNamespace(manifest=replace(index.manifest, encoder=NO_ENCODER))
    assert "dense" not in lexical.manifest.retrievers
    assert default_of(lexical).name == FUSION_ONLY


def test_questions_made_have_gold_of_the_index_and_a_seed_gives_the_same():
    index, classifier = open_index("rulebook", Paths.from_env().indexes), load_obligations(ScoringConfig())
    made = made_questions(index, classifier, 40, 1)
    assert len(made) == len({one.question.text for one in made}) == 40
    assert all(one.gold <= index.position_of.keys() for one in made)
    assert made == made_questions(index, classifier, 40, 1)
    assert made != made_questions(index, classifier, 40, 2)


@pytest.mark.model
@pytest.mark.timeout(300)
def test_a_rulebook_is_measured_and_what_is_taken_is_safe(tmp_path):
    out = ("--questions", str(FEWEST), "--out", str(tmp_path / "run"))
    found = json.loads(advised("rulebook", *out, "--json").stdout)
    by_name = {one["name"]: one for one in found["presets"]}
    assert next(iter(by_name)) == DEFAULT
    assert {FUSION_ONLY, "BM25 only"} <= by_name.keys()
    assert found["take"] == DEFAULT or by_name[found["take"]]["test"]["low"] >= -MOST_LOST
    asked = json.loads((tmp_path / "run" / ASKED).read_text(encoding="utf-8"))
    assert len(asked) == found["n_questions"] == FEWEST
    assert f"Take {found['take']!r}" in " ".join(advised("rulebook", *out).stdout.split())


def test_where_nothing_obliges_the_default_is_advised():
    said = " ".join(advised("encyclopedia").stdout.split())
    assert f"Take {DEFAULT!r}, the default" in said
    assert f"at least {FEWEST}" in said

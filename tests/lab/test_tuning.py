"""`ragqa tune`: folds without a passage on both sides, candidates measured as `fuse` and ir-measures do, the choice."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import ragqa.loading
from ragqa.cli import app
from ragqa.corpus.questions import GoldQuestion
from ragqa.errors import ConfigError, CorpusError, IndexingError
from ragqa.evaluation.benchmarks.retrieval.rankings import cut_columns as cut
from ragqa.evaluation.measures import measure_run
from ragqa.fusion import fuse
from ragqa.lab.questions import Fold, choose, folds_by_gold
from ragqa.lab.tuning.tuning import RankingSetting, candidates, check_measure, measured, tune
from ragqa.settings.config import FilteringConfig, FusionConfig
from ragqa.types import Question
from tests.support.fakes import FakeEncoder, ranking

MEASURES = ("AP@10", "R@10", "nDCG@10", "RR@10", "Success@1", "AP@2", "nDCG@1", "R@100")
NAMES = ("bm25", "context", "dense")


def ask(*gold):
    return GoldQuestion(Question("?"), frozenset(gold))


def values_of(questions, columns, fusions, measures, unit="passage"):
    return np.stack(list(measured(questions, columns, fusions, measures, unit)))


def one_by_one(questions, columns, fusions, measures, unit="passage"):
    """The same table by the product's own stages: (n_questions, n_measures, n_fusions)."""
    table = []
    for fusion in fusions:
        fused = [fuse(rankings, fusion) for rankings in zip(*columns, strict=True)]
        run = [
            [hit.passage.passage_id if unit == "passage" else hit.passage.document_id for hit in row.hits]
            for row in fused
        ]
        found = measure_run([question.gold for question in questions], run, measures)
        table.append([found[name] for name in measures])
    return np.array(table).transpose(2, 1, 0)


# FOLDS ===============================================================================================================

gold_sets = st.lists(
    st.sets(st.sampled_from([f"{n}:{m}" for n in range(6) for m in range(5)]), min_size=1, max_size=3), max_size=60
)


@settings(deadline=None)
@given(gold_sets, st.integers(2, 6), st.integers(0, 5))
def test_each_question_is_tested_once_and_no_passage_is_on_both_sides(gold, n_folds, seed):
    questions = [ask(*ids) for ids in gold]
    try:
        folds = folds_by_gold(questions, n_folds, seed)
    except CorpusError:
        return
    assert len(folds) == n_folds
    assert sorted(n for fold in folds for n in fold.test) == list(range(len(questions)))
    assert folds == folds_by_gold(questions, n_folds, seed)
    home = {}
    for number, fold in enumerate(folds):
        tested = {name for n in fold.test for name in gold[n]}
        assert tested.isdisjoint(name for n in fold.train for name in gold[n])
        left_out = set(range(len(questions))) - set(fold.test) - set(fold.train)
        assert all(tested & gold[n] for n in left_out), "nothing is left out without need"
        assert fold.train
        for n in fold.test:
            assert home.setdefault(min(gold[n]), number) == number
        assert list(fold.test) == sorted(fold.test)


def test_folds_are_equal_where_gold_allows_and_another_seed_deals_others():
    questions = [ask(f"p{n:02}") for n in range(23)]
    folds = folds_by_gold(questions, 5)
    assert sorted(len(fold.test) for fold in folds) == [4, 4, 5, 5, 5]
    assert all(len(fold.test) + len(fold.train) == 23 for fold in folds)
    assert folds != folds_by_gold(questions, 5, seed=1)


def test_a_question_that_shares_gold_with_the_tested_is_not_learnt_from():
    questions = [ask("a"), ask("b"), ask("a", "c"), ask("b", "c"), ask("d"), ask("e")]
    for fold in folds_by_gold(questions, 2):
        if 0 in fold.test:
            assert 2 in fold.test  # the same first gold id
            assert 3 not in fold.train  # shares c with question 2


@pytest.mark.parametrize(
    ("questions", "n_folds", "error", "message"),
    [
        ([ask("a"), ask("b")], 1, ConfigError, "at least 2, got 1"),
        ([], 2, CorpusError, "found 0 in 0 questions"),
        ([ask("a"), ask("a"), ask("b")], 3, CorpusError, "at least 3 gold passages, one per fold, found 2"),
        ([ask("a"), ask()], 2, CorpusError, "none for 1 of 2, first for question 2"),
        ([ask("a", "c"), ask("b", "c")], 2, CorpusError, "found that all 2 share gold"),
    ],
)
def test_too_little_to_fold_is_said(questions, n_folds, error, message):
    with pytest.raises(error, match=message):
        folds_by_gold(questions, n_folds)


def test_the_choice_by_hand():
    # three questions, one measure, three candidates; two folds
    values = np.array([[[0.0, 1.0, 0.5]], [[1.0, 0.0, 0.5]], [[0.0, 0.2, 0.1]]])
    folds = (Fold((0,), (1, 2)), Fold((1, 2), (0,)))
    chosen = choose(values, folds, np.array([2.0, 1.0, math.inf]))
    # train means: fold 1 .5, .1, .3 -> the first; fold 2 0, 1, .5 -> the second; all 1/3, .4, 1.1/3 -> the second
    assert (chosen.by_fold, chosen.by_all) == ((0, 1), 1)
    assert chosen.out_of_fold.tolist() == [[0.0], [0.0], [0.2]]


# CANDIDATES ==========================================================================================================


def test_candidates_are_the_simplex_and_rrf():
    found = candidates(NAMES)
    assert len(found) == 231 + 1
    assert len({tuple(fusion.weights.items()) for fusion in found}) == 232
    assert all(math.fsum(fusion.weights.values()) == pytest.approx(1) for fusion in found)
    assert FusionConfig("wsum", {"bm25": 9 / 20, "context": 5 / 20, "dense": 6 / 20}) in found
    assert FusionConfig().weights in [fusion.weights for fusion in found]
    assert found[-1] == FusionConfig.of("rrf", bm25=1, context=1, dense=1)
    assert [fusion.weights for fusion in candidates(["a", "b"], 0.5)[:-1]] == [
        {"a": 0.0, "b": 1.0},
        {"a": 0.5, "b": 0.5},
        {"a": 1.0, "b": 0.0},
    ]
    assert [fusion.weights for fusion in candidates(["a"], 1)] == [{"a": 1.0}, {"a": 1.0}]
    assert len(candidates(NAMES, 1 / 3)) == 10 + 1


@pytest.mark.parametrize("step", [0, -0.1, 0.3, 2, math.nan, math.inf, 1e-9, 0.001])
def test_steps_that_give_no_grid_are_refused(step):
    with pytest.raises(ConfigError, match="step must be 1 divided by a whole number"):
        candidates(NAMES, step)
    with pytest.raises(ConfigError, match="of 0 rankings"):
        candidates([], 0.5)


@pytest.mark.parametrize("name", ["AP", "AP@0", "P@10", "ap@10", "AP@x", "nDCG@12345", ""])
def test_an_unknown_measure_is_refused(name):
    with pytest.raises(ConfigError, match="measure must be"):
        check_measure(name)


# MEASURING ===========================================================================================================


def test_measures_by_hand():
    columns = [[ranking("bm25", {"1:a": 9.0, "1:b": 5.0, "2:c": 1.0})], [ranking("dense", {"2:c": 0.8, "2:d": 0.4})]]
    half = FusionConfig.of(bm25=1, dense=1)
    # a = .5 * 1, b = .5 * (5 - 1) / (9 - 1), c = .5 * 0 + .5 * 1, d = 0: a and c tie, a first; then b, d
    (row,) = measured([ask("2:c", "2:d")], columns, [half], ("AP@10", "R@2", "nDCG@10", "RR@10", "Success@1"))
    assert row[:, 0].tolist() == pytest.approx(
        [
            (1 / 2 + 2 / 4) / 2,
            1 / 2,
            (1 / math.log2(3) + 1 / math.log2(5)) / (1 / math.log2(2) + 1 / math.log2(3)),
            1 / 2,
            0,
        ]
    )
    # alone, bm25 does not have d at all, and the documents stand 1, 2
    (row,) = measured([ask("2:d")], columns, [FusionConfig.of(bm25=1)], ("R@100",))
    assert row.tolist() == [[0.0]]
    (row,) = measured([ask("2")], columns, [half, FusionConfig.of(dense=1)], ("RR@10",), "document")
    assert row.tolist() == [[1 / 2, 1.0]]


def random_columns(rng, n_questions, grid):
    """Rankings of up to 12 of 20 passages in 6 documents; on a grid of few scores, so that ties abound."""
    ids = [f"{n % 6}:{n}" for n in range(20)]
    columns = []
    for name in NAMES:
        rows = []
        for _ in range(n_questions):
            chosen = rng.choice(ids, size=rng.integers(0, 13), replace=False)
            scores = rng.integers(0, grid, len(chosen)) / 7 if grid else rng.normal(size=len(chosen))
            rows.append(ranking(name, dict(zip(chosen.tolist(), scores.tolist(), strict=True))))
        columns.append(rows)
    return ids, columns


@pytest.mark.parametrize("unit", ["passage", "document"])
@pytest.mark.parametrize("grid", [0, 2, 4, 11])
@pytest.mark.long
def test_as_fuse_and_ir_measures_on_random_rankings_ties_included(grid, unit, monkeypatch):
    monkeypatch.setattr("ragqa.lab.tuning.tuning.NUMBERS_AT_ONCE", 150)  # several blocks
    rng = np.random.default_rng(grid)
    ids, columns = random_columns(rng, 16, grid)
    pool = [*ids, "nowhere:1"] if unit == "passage" else [*"012345", "nowhere"]
    questions = [ask(*rng.choice(pool, size=rng.integers(1, 5), replace=False).tolist()) for _ in range(16)]
    extra = (FusionConfig(), FusionConfig.of("rrf", bm25=1, dense=2), FusionConfig.of(bm25=1, other=1))
    fusions = (*candidates(NAMES, 0.1), *candidates(NAMES, 1 / 3), *extra)
    found = values_of(questions, columns, fusions, MEASURES, unit)
    assert found.shape == (16, len(MEASURES), len(fusions))
    np.testing.assert_allclose(found, one_by_one(questions, columns, fusions, MEASURES, unit), rtol=0, atol=1e-9)


def test_sums_that_tie_only_when_added_exactly_tie_here_too():
    weights = {"bm25": 0.1, "context": 0.2, "dense": 0.7}
    p, q = (0.1 * 0.5, 0.2 * 0.75, 0.7 * 0.75), (0.1 * 0.25, 0.2 * 0, 0.7 * 1)
    assert math.fsum(p) == math.fsum(q) == 0.725
    assert p[0] + p[1] + p[2] < q[0] + q[1] + q[2], "plain addition puts q first"
    columns = [
        [ranking("bm25", {"p": 0.5, "q": 0.25, "top": 1.0, "low": 0.0})],
        [ranking("context", {"p": 0.75, "q": 0.0, "top": 1.0})],
        [ranking("dense", {"p": 0.75, "q": 1.0, "low": 0.0})],
    ]
    fusion = FusionConfig("wsum", weights)
    assert [hit.passage.passage_id for hit in fuse([rows[0] for rows in columns], fusion).hits][:2] == ["p", "q"]
    assert values_of([ask("p")], columns, [fusion], ("RR@10",)).tolist() == [[[1.0]]]


def test_empty_rankings_and_scores_that_are_no_numbers():
    empty = [[ranking("bm25", {})], [ranking("dense", {})]]
    assert values_of([ask("a")], empty, candidates(["bm25", "dense"], 0.5), ("AP@10",)).tolist() == [[[0.0] * 4]]
    for score in (math.nan, math.inf):
        broken = [[ranking("bm25", {"a": score, "b": 1.0})]]
        with pytest.raises(IndexingError, match="finite scores from retriever 'bm25'"):
            values_of([ask("a")], broken, candidates(["bm25"], 1), ("AP@10",))
    with pytest.raises(ValueError, match="shorter"):
        values_of([ask("a")] * 2, empty, candidates(["bm25", "dense"], 0.5), ("AP@10",))


# CHOOSING ============================================================================================================


def by_chance(n_questions, seed=0):
    """Question n is answered by passage n; every ranking puts the same 15 passages in an order drawn for itself."""
    rng = np.random.default_rng(seed)
    ids = [f"1:{n}" for n in range(n_questions)]
    sets = [list(dict.fromkeys([*rng.choice(ids, 14, replace=False).tolist(), own])) for own in ids]
    columns = [[ranking(name, {one: float(rng.random()) for one in names}) for names in sets] for name in NAMES]
    return [ask(own) for own in ids], columns


def planted(n_questions, perfect):
    """As above, but ``perfect`` has the answer at 1 and a decoy at .9; the others have the decoy at 1, the answer at 0.

    The answer comes first where w > .9 w + (1 - w), w the weight of the perfect one: above .909.
    """
    questions, columns = by_chance(n_questions)
    for name, rows in zip(NAMES, columns, strict=True):
        for n, question in enumerate(questions):
            (own,) = question.gold
            right, wrong = (1.0, 0.9) if name == perfect else (0.0, 1.0)
            rest = {hit.passage.passage_id: hit.score / 2 for hit in rows[n].hits}
            rows[n] = ranking(name, rest | {own: right, "0:decoy": wrong, "0:low": 0.0})
    return questions, columns


def tuned(questions, columns, step=0.05, seed=0):
    fusions = (*candidates(NAMES, step), FusionConfig())
    values = values_of(questions, columns, fusions, ("AP@10", "R@10"))
    ways = [RankingSetting("rules", 100, fusion) for fusion in fusions]
    return tune(values, ways, ("AP@10", "R@10"), folds_by_gold(questions, 5, seed), seed)


@pytest.mark.parametrize("perfect", NAMES)
@pytest.mark.long
def test_a_perfect_ranking_gets_nearly_all_weight_and_is_found_better(perfect):
    questions, columns = planted(150, perfect)
    found = tuned(questions, columns)
    for way in (found.final, *(fold.chosen for fold in found.folds)):
        assert way.fusion.weights[perfect] == 0.95, "the first above .909; nearer the defaults than 1"
    assert found.tuned["AP@10"] == 1.0 > found.default["AP@10"]
    assert found.test.p_value < 0.001
    assert (
        0 < found.test.low <= found.test.mean_difference == pytest.approx(found.tuned["AP@10"] - found.default["AP@10"])
    )
    sizes = [len(fold.test) for fold in folds_by_gold(questions)]
    mean = sum(size * fold.tuned for size, fold in zip(sizes, found.folds, strict=True)) / 150
    assert mean == pytest.approx(found.tuned["AP@10"])


def test_the_same_seed_gives_the_same_result():
    questions, columns = by_chance(40)
    assert tuned(questions, columns, 0.1, seed=1) == tuned(questions, columns, 0.1, seed=1)
    assert tuned(questions, columns, 0.1, seed=1) != tuned(questions, columns, 0.1, seed=2)


@pytest.mark.long
def test_chance_alone_is_not_found_better():
    found = [tuned(*by_chance(100, seed), step=0.1).test for seed in range(6)]
    assert sum(test.p_value < 0.05 for test in found) <= 1
    assert all(abs(test.mean_difference) < 0.1 for test in found)


def test_where_all_are_equal_the_defaults_are_kept():
    questions, (rows, *_) = by_chance(30)
    columns = [
        [ranking(name, {hit.passage.passage_id: hit.score for hit in row.hits}) for row in rows] for name in NAMES
    ]
    found = tuned(questions, columns)
    assert {tuple(fold.chosen.fusion.weights.values()) for fold in found.folds} == {(0.45, 0.25, 0.3)}
    assert found.final.fusion.weights == FusionConfig().weights
    assert (found.test.mean_difference, found.test.p_value) == (0.0, 1.0)
    assert tuned(questions, columns, step=0.5).final.fusion.weights == {"bm25": 0.5, "context": 0.0, "dense": 0.5}


# COMMAND =============================================================================================================

WORDS = ("custody", "audit", "capital", "complaint", "outsourcing", "valuation", "prospectus", "liquidity")


@pytest.fixture
def call(monkeypatch, tmp_path):
    """Runs a command; gives its exit code, standard output and exception."""
    monkeypatch.setenv("RAGQA_INDEXES", str(tmp_path / "indexes"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(ragqa.loading, "load_encoder", lambda name, precision="auto", paths=None: FakeEncoder())
    rows = [
        {"ID": n, "DocumentID": 1, "PassageID": f"1.{n}", "Passage": f"A firm must arrange {word} within {n} days."}
        for n, word in enumerate(WORDS)
    ]
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "1.json").write_text(json.dumps(rows))

    def run(*arguments):
        result = CliRunner().invoke(app, list(arguments))
        return result.exit_code, result.stdout, result.exception

    assert run("index", "build", "rules", "--source", str(tmp_path / "rules"))[0] == 0
    return run


@pytest.fixture
def file(tmp_path):
    items = [
        {
            "QuestionID": str(n),
            "Question": f"When is {word} arranged?",
            "Passages": [{"DocumentID": 1, "PassageID": f"1.{n}", "Passage": ""}],
        }
        for n, word in enumerate(WORDS)
    ]
    path = tmp_path / "questions.json"
    path.write_text(json.dumps(items))
    return path


def test_the_command_prints_folds_means_and_a_verdict(call, file):
    code, out, error = call("tune", "--index", "rules", "--questions", str(file), "--folds", "3", "--step", "0.25")
    assert code == 0, error
    words = " ".join(out.split())
    assert "rules: 8 questions, 48 ways to rank, folds with no gold passage on both sides" in words, "16 at 3 depths"
    parts = ("MAP@10 on test", "F2 on test", "Each question where it is tested: R@10", "95 % interval")
    for part in (*parts, "The tuned filter keeps", "ragqa ask --fusion", "--threshold 0.", "--max-drop "):
        assert part in words
    assert "beyond chance" in words or "worse than the defaults" in words


@pytest.mark.long
def test_the_command_writes_what_it_found(call, file, tmp_path):
    target = tmp_path / "fusion.json"
    arguments = ("tune", "--index", "rules", "--questions", str(file), "--measure", "RR@10", "--folds", "2")
    arguments += ("--depth", "3", "--depth", "9")
    code, out, error = call(*arguments, "--step", "0.5", "--seed", "4", "--json", "--out", str(target))
    assert code == 0, error
    report = json.loads(target.read_text())
    assert json.loads(out) == report
    assert (report["measure"], report["seed"], report["step"], report["n_candidates"]) == ("RR@10", 4, 0.5, 14)
    assert report["depth"] in (3, 9) == tuple(report["depths"])
    assert FilteringConfig(report["filter"]["threshold"], report["filter"]["max_drop"], report["filter"]["top_k"])
    assert set(report["filter"]["out_of_fold"]["tuned"]) == {"F", "precision", "recall", "kept"}
    assert FusionConfig(report["method"], report["weights"])
    assert len(report["evidence"]["folds"]) == 2
    assert set(report["evidence"]["out_of_fold"]["tuned"]) == {"RR@10", "R@10"}
    assert report["index"]["name"] == "rules"
    assert len(report["index"]["fingerprint"]) == len(report["questions"]["sha256"]) == 64
    assert report["encoder"] == {"name": report["encoder"]["name"], "fingerprint": FakeEncoder().info.fingerprint}
    assert call(*arguments, "--step", "0.5", "--seed", "4", "--json")[1] == out
    assert [path.name for path in tmp_path.glob(".fusion*")] == []


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--measure", "P@10", "measure must be"),
        ("--step", "0.3", "step must be"),
        ("--folds", "9", "at least 9 gold passages"),
        ("--out", "/nowhere/fusion.json", "folder that exists"),
        ("--index", "nope", "no index 'nope'"),
        ("--beta", "0", "beta must be above 0"),
        ("--depth", "0", "retrieval top-k must be in 1..1000"),
        ("--write", "/nowhere/mine.json", "--write must be in a folder that exists"),
        ("--write", "mine.txt", "ends in .json"),
        ("--write", "BM25 only.json", "belongs to a bundled preset"),
    ],
)
@pytest.mark.long
def test_the_command_says_what_is_wrong(call, file, option, value, message):
    code, _, error = call("tune", "--index", "rules", "--questions", str(file), option, value)
    assert code == 1
    assert message in str(error)


# RANKINGS THAT ONLY RESCORE ==========================================================================================


def with_documents(lexical, dense):
    """A ranking of all that both found, by document, in bounds wider than its hits."""
    names = sorted({hit.passage.passage_id for one in (lexical, dense) for hit in one.hits})
    found = ranking("document", {name: 1.0 + int(name[0]) for name in names})
    return replace(found, finds=False, bounds=(0.0, 9.0))


rescored_columns = st.lists(
    st.tuples(
        *[
            st.dictionaries(
                st.sampled_from([f"{n}:{m}" for n in range(3) for m in range(4)]), st.integers(0, 4), max_size=9
            )
            for _ in range(2)
        ]
    ),
    min_size=1,
    max_size=4,
)


@settings(deadline=None)
@given(rescored_columns)
@pytest.mark.long
def test_measured_as_fused_where_a_ranking_only_rescores(rows):
    pairs = [(ranking("bm25", dict(a)), ranking("dense", dict(b))) for a, b in rows]
    columns = [tuple(column) for column in zip(*((a, b, with_documents(a, b)) for a, b in pairs), strict=True)]
    questions = [ask("0:1", "2:3")] * len(rows)
    fusions = candidates(("bm25", "dense", "document"), 0.25)
    expected = one_by_one(questions, columns, fusions, MEASURES)
    assert values_of(questions, columns, fusions, MEASURES) == pytest.approx(expected, abs=1e-12)


def test_cut_leaves_what_the_others_still_find():
    lexical, dense = ranking("bm25", {"0:1": 3.0, "1:1": 2.0}), ranking("dense", {"2:1": 3.0, "0:2": 2.0})
    documents = with_documents(lexical, dense)
    (short,), (near,), (scored,) = cut([(lexical,), (dense,), (documents,)], 1)
    assert [hit.passage.passage_id for hit in (*short.hits, *near.hits)] == ["0:1", "2:1"]
    assert {hit.passage.passage_id for hit in scored.hits} == {"0:1", "2:1"}
    assert (scored.finds, scored.bounds) == (False, (0.0, 9.0))
    assert cut([(), ()], 3) == [(), ()]

"""Equals the reference script's loop (`tests.support.reference_loop`): same weights, fp32, mode `script`."""

import json

import numpy as np
import pytest

from ragqa.generation.answers import answer_of_text
from ragqa.scoring.repass.obligations import TfidfObligationClassifier
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.settings.config import ScoringConfig
from ragqa.types import Passage
from ragqa.types.scores import ScoringMode
from ragqa.types.streams import returned
from tests.support.streams import drain

pytestmark = pytest.mark.model

EQUAL = 1e-5 + 1e-9  # one step of the script's five decimals, where a rounding falls on either side

CASES = {
    "supported, contradicted and made up": (
        [
            "A firm must keep records of every client for six years. Records may be kept on paper.",
            "The Commission may ask for records. A firm must give them within 10 days of being asked.",
            "A firm must not destroy a record. The Commission publishes a list of firms. Clients may read it.",
        ],
        "A firm must keep records of every client for six years. A firm must hand records over within 20 days. "
        "A firm may destroy records. Every firm must appoint an auditor.",
    ),
    # The passages have no full stop: joined with one space they are one source sentence, which is what the script sees.
    "a heading runs into the next passage": (
        ["3.1 Client money", "A firm must hold client money in a separate account", "and must reconcile it every day."],
        "A firm must hold client money in a separate account and must reconcile it every day. It is not hard.",
    ),
    "more than sixteen answer sentences, some of them equal": (
        ["A Person must notify the Regulator in writing of each change. The notice takes effect on the next day."],
        " ".join(["A Person must notify the Regulator of a change.", "The notice has an effect."] * 3)
        + " "
        + " ".join(f"The Regulator must answer notice number {number} in writing." for number in range(1, 14)),
    ),
}
EMPTY = {
    "an obligation nobody answers with one": (["A firm must insure itself."], "It was a fine day. The sun shone."),
    "no obligation in the passages": (["The sky is blue. Grass is green."], "A firm must look at the sky."),
}


@pytest.fixture(scope="module")
def obligations():
    return TfidfObligationClassifier()


@pytest.fixture(scope="module")
def loop(obligations):
    from tests.support.reference_loop import ReferenceLoop

    return ReferenceLoop(obligations)


@pytest.fixture(scope="module")
def nli():
    from ragqa.scoring.repass.nli import CrossEncoderNli

    return CrossEncoderNli("nli-minilm-l6", "fp32")


@pytest.fixture(scope="module")
def product(nli, obligations):
    config = ScoringConfig(mode=ScoringMode.SCRIPT, precision="fp32")
    return RepassScorer(nli, nli, obligations, config)


def script_breakdown(scorer, passages, text):
    given = [Passage(str(n), "", passage) for n, passage in enumerate(passages)]
    return returned(scorer.stream(answer_of_text(text), given)).of(ScoringMode.SCRIPT)


def assert_equal(found, expected, coverage):
    """Every number of the breakdown, and every pair probability behind it, to 1e-5."""
    assert found.entailment_model.precision.startswith("fp32")
    assert tuple(premise.text for premise in found.premises) == expected.source_sentences
    assert tuple(score.sentence.text for score in found.sentences) == expected.answer_sentences
    assert tuple(score.obligation.text for score in found.obligations) == expected.obligations
    shape = len(expected.source_sentences), len(expected.answer_sentences)
    for matrix, wanted in (
        (found.entailment_matrix, expected.entailment_matrix),
        (found.contradiction_matrix, expected.contradiction_matrix),
    ):
        assert np.abs(np.reshape(matrix, shape) - wanted).max(initial=0.0) <= 1e-5
    covering = dict(zip(expected.coverage, coverage.predict(list(expected.coverage)), strict=True))
    assert {pair: found.entailment for pair, found in covering.items()} == pytest.approx(expected.coverage, abs=1e-5)
    for score in found.obligations:
        seen = [value for (_, obligation), value in expected.coverage.items() if obligation == score.obligation.text]
        if not score.covered:  # otherwise the loop has stopped early, perhaps before the best
            assert score.best == pytest.approx(max(seen, default=0.0), abs=1e-5)
    assert tuple(score.covered for score in found.obligations) == expected.covered
    assert found.repass.entailment == pytest.approx(expected.entailment, abs=EQUAL)
    assert found.repass.contradiction == pytest.approx(expected.contradiction, abs=EQUAL)
    assert found.repass.obligation_coverage == pytest.approx(expected.obligation_coverage, abs=EQUAL)
    assert found.repass.composite == pytest.approx(expected.composite, abs=EQUAL)


@pytest.mark.parametrize("name", [*CASES, *EMPTY])
def test_the_product_equals_the_loop(name, product, loop, nli):
    passages, text = (CASES | EMPTY)[name]
    assert_equal(script_breakdown(product, passages, text), loop.score(passages, text), nli)


def test_the_product_equals_the_loop_where_coverage_reads_one_joined_text(nli, obligations):
    from ragqa.scoring.repass.nli import CrossEncoderNli
    from tests.support.reference_loop import ReferenceLoop

    joined = CrossEncoderNli("nli-minilm-l6", "fp32", joined=True)
    config = ScoringConfig(mode=ScoringMode.SCRIPT, precision="fp32", coverage_input="joined")
    passages, text = CASES["supported, contradicted and made up"]
    expected = ReferenceLoop(obligations, coverage_input="joined").score(passages, text)
    assert_equal(script_breakdown(RepassScorer(nli, joined, obligations, config), passages, text), expected, joined)


def test_the_cases_show_what_they_are_for(loop):
    """A loop that finds nothing would be equal to anything that finds nothing."""
    mixed, heading, long = (loop.score(*case) for case in CASES.values())
    assert mixed.entailment_matrix.max() > 0.9
    assert mixed.contradiction_matrix.max() > 0.5
    assert 0 < sum(mixed.covered) < len(mixed.covered)
    assert len(heading.source_sentences) == 1
    assert heading.covered == (False,)
    assert len(long.answer_sentences) > 16
    assert len(set(long.answer_sentences)) < len(long.answer_sentences)
    unanswered, without = (loop.score(*case) for case in EMPTY.values())
    assert unanswered.covered == (False,)
    assert unanswered.coverage == {}
    assert without.covered == ()
    assert without.obligation_coverage == 0.0


def test_the_loop_leaves_off_at_the_first_sentence_that_covers(loop):
    text = "A firm must insure itself. A firm must insure itself against fire."
    found = loop.score(["A firm must insure itself."], text)
    assert found.covered == (True,)
    assert list(found.coverage) == [("A firm must insure itself.", "A firm must insure itself.")]
    assert found.n_pairs == 1 * 2 + 1


def test_the_loop_does_the_script_s_arithmetic(loop):
    from tests.support.reference_loop import LoopScore

    found = LoopScore(
        source_sentences=("a", "b"),
        answer_sentences=("c", "d", "e"),
        entailment_matrix=np.array([[0.1, 0.9, 0.0], [0.3, 0.2, 0.0]]),
        contradiction_matrix=np.array([[0.0, 0.1, 0.5], [0.1, 0.0, 0.1]]),
        obligations=("a", "b"),
        covered=(True, False),
        coverage={},
        n_pairs=6,
    )
    entailment, contradiction = 0.4, 0.23333  # (.3 + .9 + 0) / 3; (.1 + .1 + .5) / 3 = .23333…, with five decimals
    assert found.entailment == pytest.approx(entailment, abs=1e-12)
    assert found.contradiction == contradiction
    assert found.obligation_coverage == 1 / 2
    assert found.composite == pytest.approx((1 / 2 + entailment - contradiction + 1) / 3, abs=1e-12)
    nothing = loop.score([], "")
    assert (nothing.entailment, nothing.contradiction, nothing.obligation_coverage) == (0.0, 0.0, 0.0)
    assert nothing.composite == 1 / 3


def test_one_joined_text_is_not_a_pair_and_the_loop_knows_both(loop, obligations):
    """Token types differ: 0 and 1 for a pair, 0 throughout for one text."""
    from tests.support.reference_loop import ReferenceLoop

    passages, text = CASES["supported, contradicted and made up"]
    joined = ReferenceLoop(obligations, coverage_input="joined").score(passages, text)
    pair = loop.score(passages, text)
    assert np.array_equal(joined.entailment_matrix, pair.entailment_matrix)
    both = joined.coverage.keys() & pair.coverage.keys()
    assert both
    assert any(abs(joined.coverage[key] - pair.coverage[key]) > 1e-4 for key in both)
    (sentence, obligation), entailment = next(iter(joined.coverage.items()))
    row = loop.probabilities([f"{sentence} [SEP] {obligation}"])[0]
    assert entailment == float(row[loop.entailment])


def test_the_benchmark_reads_the_stages_of_a_scoring_off_its_events(product):
    from tests.benchmarks.repass import as_pass

    passages = [Passage(str(n), "", text) for n, text in enumerate(text for case in CASES.values() for text in case[0])]
    stream = product.stream(
        answer_of_text(CASES["more than sixteen answer sentences, some of them equal"][1]), passages
    )
    events, scored = drain(stream)
    n_wanted = len(scored.script.sentences) + len(scored.script.obligations)
    found = as_pass(list(enumerate(events, start=1)), scored, (len(events) + 1, 0.5), 7)
    assert found.is_provisional
    told = {(type(event), event.score.index) for event in events[: found.first_seconds]}
    assert len(told) == n_wanted
    assert len({(type(event), event.score.index) for event in events[: found.first_seconds - 1]}) == n_wanted - 1
    assert found.first_seconds < found.shown_seconds <= len(events) < found.seconds
    assert sum(event.final for event in events[: found.shown_seconds - 1]) < n_wanted
    assert found.first.entailment <= found.exact.entailment + EQUAL  # a maximum over fewer premises
    assert found.exact.entailment == scored.script.repass.entailment
    assert found.covered == tuple(score.covered for score in scored.script.obligations)
    assert (found.processor_seconds, found.n_pairs) == (0.5, 7)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_product_equals_the_loop_on_the_published_cases(request, shared_data, product, loop, nli):
    """All 34, one to three minutes: only where slow tests are asked for, ``pytest -m "data and slow"``."""
    if "slow" not in request.config.option.markexpr:
        pytest.skip(
            'takes minutes; run it with: pytest tests/scoring/repass/test_repass_reference.py -m "data and slow"'
        )
    items = json.loads((shared_data / "repass" / "reference_cases.json").read_text("utf-8"))["items"]
    n_pairs = 0
    for item in items:
        expected = loop.score(item["RetrievedPassages"], item["Answer"])
        assert_equal(script_breakdown(product, item["RetrievedPassages"], item["Answer"]), expected, nli)
        n_pairs += expected.n_pairs
    print(f"\n{len(items)} cases, {n_pairs:,} pairs in the loop: equal to 1e-5")
    assert len(items) == 34

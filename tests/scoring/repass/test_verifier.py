"""RePASs as generators use it: obligations, cover, what contradicts; the same numbers as the final scoring."""

from dataclasses import replace

import pytest

from ragqa.errors import ScoringError
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.scoring.repass.verifier import RepassVerifier, contradicted, mean_contradiction
from ragqa.settings.config import ScoringConfig
from ragqa.types.scores import Coverage, ScoringMode
from ragqa.types.streams import returned
from tests.support.fakes import FakeObligations, answer, passage
from tests.support.scripted import PASSAGES, RECORDS, REPORTS, Told, nli

TOLD = {
    "Calm.": Told(0.5, 0.1),
    "Doubtful.": Told(0.5, 0.4),
    "Wrong.": Told(0.1, 0.8),
    "It keeps.": Told(0.6, 0.0, ((RECORDS, 0.71),)),
    "It must keep.": Told(0.6, 0.0, ((RECORDS, 0.7),)),
}


def verifier(mode=ScoringMode.PAPER, obligations=None):
    model = nli(TOLD)
    return RepassVerifier(RepassScorer(model, model, obligations or FakeObligations(), ScoringConfig(mode=mode)))


def breakdown(text, mode=ScoringMode.PAPER):
    checked = verifier(mode)
    return checked.breakdown(returned(checked.stream(answer(text), PASSAGES)))


def test_each_passage_keeps_its_own_obligations_in_order():
    passages = [
        passage("1:1", "It is blue. A Firm must act. It must not rest."),
        passage("1:2", "Nothing here."),
        passage("2:1", "A Firm must act."),
        passage("2:2", " "),
    ]
    assert verifier().obligations(passages) == (
        ("A Firm must act.", "It must not rest."), (), ("A Firm must act.",), (),
    )  # fmt: skip
    assert verifier().obligations([]) == ()


def test_cover_is_strictly_above_the_threshold_and_names_the_best():
    assert verifier().coverage(answer("Calm.\nIt keeps."), RECORDS) == Coverage(0.71, covered=True)
    assert verifier().coverage(answer("Calm.\nIt must keep."), RECORDS) == Coverage(0.7, covered=False)
    assert verifier().coverage(answer(""), RECORDS) == Coverage(0.0, covered=False)


def test_cover_in_script_mode_looks_at_obligations_only():
    checked = verifier(ScoringMode.SCRIPT)
    assert checked.coverage(answer("It keeps."), RECORDS) == Coverage(0.0, covered=False)
    assert checked.coverage(answer("It must keep."), RECORDS).best == 0.7


def test_cover_is_what_the_final_breakdown_says():
    found = breakdown("Calm.\nIt keeps.").obligations[0]
    assert verifier().coverage(answer("Calm.\nIt keeps."), RECORDS) == Coverage(found.best, found.covered)


def test_the_breakdown_is_that_of_the_configured_mode():
    assert breakdown("Calm.").mode is ScoringMode.PAPER
    assert breakdown("Calm.", ScoringMode.SCRIPT).mode is ScoringMode.SCRIPT


def test_the_mean_is_over_answers_not_over_sentences():
    one, three = breakdown("Wrong."), breakdown("Calm.\nCalm.\nDoubtful.")
    assert mean_contradiction([one, three]) == pytest.approx((0.8 + (0.1 + 0.1 + 0.4) / 3) / 2)
    assert mean_contradiction([]) == 0.0


def test_sentences_strictly_above_the_mean_go_all_of_them():
    found = breakdown("Wrong.\nCalm.\nDoubtful.\nWrong.")
    assert contradicted(found, 0.2) == (0, 2, 3)
    assert contradicted(found, 0.4) == (0, 3)
    assert contradicted(found, 0.8) == ()


def test_the_least_contradicted_stays_where_all_would_go():
    assert contradicted(breakdown("Wrong.\nDoubtful.\nDoubtful."), 0.1) == (0, 2)
    assert contradicted(breakdown("Wrong."), 0.1) == ()
    assert contradicted(replace(breakdown("Wrong."), sentences=()), 0.1) == ()


def test_a_classifier_that_fails_is_a_scoring_error():
    class Broken(FakeObligations):
        def classify(self, sentences):
            raise RuntimeError("no")

    with pytest.raises(ScoringError, match="obligation classifier"):
        verifier(obligations=Broken()).obligations(PASSAGES)


def test_premises_of_the_two_passages():
    assert [premise.text for premise in breakdown("Calm.").premises] == [RECORDS, REPORTS]

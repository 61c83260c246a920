"""`ragqa train verdicts` and `ragqa eval claims`: fitted from claims, measured on documents not learnt from."""

import json

import pytest
from typer.testing import CliRunner

import ragqa.cli.evaluate_models as measuring
import ragqa.cli.train_verdicts as command
from ragqa.cli import app
from ragqa.errors import ConfigError
from ragqa.lab.claims import Claim, ClaimedPassage, ClashingWords, Gap, PolicyText, RulePart
from ragqa.lab.training.claim_verdicts import claim_rates, judge_claims, judge_gaps, policy_rates
from ragqa.lab.training.verdicts import LABELS, VERDICTS, Case, cases_of, chosen, fitted, out_of_fold, shares
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.scoring.verdicts.belief import FEATURES, Look, features, probabilities
from ragqa.settings.config import ScoringConfig
from ragqa.types.scores import NliProbabilities, Verdict
from tests.support.fakes import FakeEncoder, FakeNli, FakeObligations

pytestmark = pytest.mark.long
SAID = {
    "supported": NliProbabilities(0.05, 0.9, 0.05),
    "contradicted": NliProbabilities(0.9, 0.05, 0.05),
    "unsupported": NliProbabilities(0.1, 0.2, 0.7),
}
TEXTS = {
    "supported": "In spring firms borrow from banks.",
    "contradicted": "In spring no firm borrows from banks.",
    "unsupported": "In spring ducks swim.",
}


class Verifier(FakeNli):
    """Says of a claim what its label would have, by its text."""

    def _default(self, premise, hypothesis):
        return next((SAID[label] for label, text in TEXTS.items() if text == hypothesis), SAID["unsupported"])


def scorer():
    return RepassScorer(FakeNli(), FakeNli(), FakeObligations(), ScoringConfig(), FakeEncoder(), Verifier())


def passages(n=8):
    claims = tuple(Claim(text, label, "plain", (0,)) for label, text in TEXTS.items())
    return [
        ClaimedPassage(f"adgm:{k}:1", "adgm", ("Banks lend money to firms in spring.",), "w", claims, ())
        for k in range(n)
    ]


def cases(n=12):
    found = []
    for k in range(n):
        for label, said in enumerate(SAID.values()):
            shift = 0.04 * (k % 3) / 3
            moved = NliProbabilities(
                *(value + shift / 3 for value in (said.contradiction, said.entailment, said.neutral))
            )
            found.append(Case(f"document {k}", "plain", label, (Look(moved, 1.0, 1), Look(said, 0.4, 3))))
    return found


def test_the_weights_part_the_labels_and_probabilities_sum_to_one():
    weights = fitted(cases())
    assert set(weights) == {Verdict.SUPPORTED, Verdict.CONTRADICTED}
    assert all(tuple(of) == FEATURES == tuple(features(cases(1)[0].looks)) for of in weights.values())
    for case in cases():
        of = probabilities(case.looks, weights)
        assert sum(of.values()) == pytest.approx(1.0)
        assert max(of, key=of.get) is VERDICTS[case.label]


def test_the_line_is_the_lowest_that_supports_few_false_sentences():
    known = cases()
    found = shares(known, out_of_fold(known, 4))
    best = chosen(found)
    assert (best.balanced, best.contradicted, best.unsupported) == (1.0, 0.0, 0.0)
    assert best.line == found[0].line
    careless = shares(known, [{verdict: dict.fromkeys(FEATURES, 0.0) for verdict in VERDICTS[:2]}] * len(known))
    assert chosen(careless).contradicted in (0.0, 1.0)


def test_too_few_documents_or_labels_are_an_error():
    with pytest.raises(ConfigError, match="at least 5 documents, found 2"):
        out_of_fold(cases(2), 5)
    with pytest.raises(ConfigError, match="found supported"):
        fitted([case for case in cases() if LABELS[case.label] == "supported"])


def test_claims_are_judged_by_their_own_passage():
    judged = [one for of in judge_claims(passages(2), scorer()) for one in of]
    rates = claim_rates(judged)
    assert rates.balanced == 1.0
    assert rates.share("contradicted", "supported") == 0.0
    assert rates.kinds["supported", "plain"] == {"supported": 2}
    assert len([case for of in cases_of(passages(2), scorer()) for case in of]) == 6


RULE = "A Firm must: (a) keep a register of gifts; and (b) train its staff."


def gap():
    parts = (RulePart("(a)", "keep a register of gifts"), RulePart("(b)", "train its staff"))
    texts = (
        PolicyText("A Firm must keep a register of gifts and train its staff.", "covered", (), None, (0,)),
        PolicyText("A Firm must keep a register of gifts.", "partly", ("(b)",), None, (0,)),
        PolicyText(
            "A Firm keeps no register of gifts.", "conflicts", (), ClashingWords("no register", "register"), (0,)
        ),
        PolicyText("Ducks swim.", "absent", (), None, (0,)),
    )
    return Gap("adgm:1:1", RULE, "A Firm", "must", "", "", parts, texts)


class OfParts(FakeNli):
    def _default(self, premise, hypothesis):
        if "no register" in premise:
            return SAID["contradicted"] if "register" in hypothesis else SAID["unsupported"]
        word = "register" if "register" in hypothesis else "train"
        return SAID["supported"] if word in premise else SAID["unsupported"]


def test_policies_are_judged_part_by_part_and_what_is_missing_is_named():
    of_parts = RepassScorer(FakeNli(), FakeNli(), FakeObligations(), ScoringConfig(), FakeEncoder(), OfParts())
    judged = [one for of in judge_gaps([gap()], of_parts) for one in of]
    assert [one.said for one in judged] == ["covered", "partly", "conflicts", "absent"]
    assert [one.named for one in judged] == [False, True, False, False]
    assert policy_rates(judged).balanced == 1.0


def write_claims(path, n=8):
    rows = [
        {
            "id": one.id,
            "corpus": one.corpus,
            "sentences": one.sentences,
            "writer": "w",
            "claims": [{"text": c.text, "label": c.label, "kind": c.kind, "from": [0]} for c in one.claims],
            "questions": [],
        }
        for one in passages(n)
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def test_the_commands_print_figures_and_write_nothing(monkeypatch, tmp_path):
    for module in (command, measuring):
        monkeypatch.setattr(module, "load_scorer", lambda *_: scorer())
    file = write_claims(tmp_path / "claims.jsonl")
    fitted_now = CliRunner().invoke(app, ["train", "verdicts", "--claims", str(file)])
    assert fitted_now.exit_code == 0, fitted_now.output
    assert "24 claims" in fitted_now.output
    assert "contradicted: bias" in fitted_now.output
    measured = CliRunner().invoke(app, ["eval", "claims", str(file), "--json"])
    assert json.loads(measured.stdout)["balanced"] == 1.0
    shown = CliRunner().invoke(app, ["eval", "claims", str(file), "--limit", "1"])
    assert "balanced accuracy 1.000" in shown.output
    assert list(tmp_path.iterdir()) == [file]

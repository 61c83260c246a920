"""`ragqa train verdicts` and `ragqa eval claims`: fitted from claims, measured on documents not learnt from."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import ragqa.cli.evaluate_models as measuring
import ragqa.cli.train_reading as command
from ragqa.cli import app
from ragqa.errors import ConfigError
from ragqa.lab.claims import Claim, ClaimedPassage, ClashingWords, Gap, PolicyText, RulePart, fold_of
from ragqa.lab.training.claim_verdicts import claim_rates, judge_claims, judge_gaps, policy_rates
from ragqa.lab.training.verdicts import (
    LABELS,
    LEAST_DENIAL,
    LINES,
    VERDICTS,
    ReadClaim,
    cases_of,
    chosen,
    fitted,
    out_of_fold,
    shares,
    written,
)
from ragqa.lab.written import WrittenPassage
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.scoring.verdicts.belief import Calibration, Look, calibration, calibration_of, features, probabilities
from ragqa.settings.config import ScoringConfig
from ragqa.types import Passage
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


BACK = NliProbabilities(0.1, 0.1, 0.8)  # of all: it tells nothing


def cases(n=12):
    found = []
    for k in range(n):
        for label, said in enumerate(SAID.values()):
            shift = 0.04 * (k % 3) / 3
            moved = NliProbabilities(
                *(value + shift / 3 for value in (said.contradiction, said.entailment, said.neutral))
            )
            looks = (Look(moved, BACK, 1.0, 1, "Banks lend."), Look(said, BACK, 0.4, 3, "Ducks swim."))
            found.append(ReadClaim(f"document {k}", "plain", label, looks))
    return found


def test_the_weights_part_the_labels_and_probabilities_sum_to_one():
    known = fitted(cases())
    assert set(known.weights) == {Verdict.SUPPORTED, Verdict.CONTRADICTED}
    names = tuple(features(cases(1)[0].looks))
    assert all(set(of) == set(names) for of in known.weights.values())
    for case in cases():
        of = probabilities(case.looks, known)
        assert sum(of.values()) == pytest.approx(1.0)
        assert max(of, key=of.get) is VERDICTS[case.label]


def test_the_lines_are_the_lowest_that_support_few_false_sentences_and_deny_few_true_ones():
    known = cases()
    apart = out_of_fold(known, 4)
    best = chosen(known, apart)
    assert best.balanced == 1.0
    assert best.contradicted == LEAST_DENIAL
    assert LINES[0] < best.supported < 0.2
    assert not shares(known, apart, best.supported - 0.01, 1.0).is_allowed()
    careless = Calibration({verdict: {"bias": 0.0} for verdict in VERDICTS[:2]}, 0.5, 0.5)
    assert chosen(known, [careless] * len(known)).called[1][0] == 0.0


def test_what_is_written_is_read_again(tmp_path):
    known = replace(fitted(cases()), supported=0.4, contradicted=0.5)
    file = tmp_path / "belief.json"
    file.write_text(written(known, "36 claims"))
    again = calibration(file)
    assert (again.supported, again.contradicted) == (0.4, 0.5)
    assert again.weights[Verdict.SUPPORTED] == pytest.approx(known.weights[Verdict.SUPPORTED], abs=1e-4)


def test_the_shipped_weights_weigh_what_is_measured():
    assert set(calibration().weights[Verdict.SUPPORTED]) == set(features(cases(1)[0].looks))


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


def test_claims_are_judged_by_what_was_retrieved_for_them():
    asked = []
    source = Passage("1", "other", "Banks lend money to firms in spring.")
    found = list(judge_claims(passages(1), scorer(), lambda text: asked.append(text) or [source]))
    assert asked == [claim.text for claim in passages(1)[0].claims]
    assert len(found[0]) == len(asked)


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


def test_the_commands_print_figures_and_write_nothing_unasked(monkeypatch, tmp_path):
    for module in (command, measuring):
        monkeypatch.setattr(module, "load_scorer", lambda *_: scorer())
    file = write_claims(tmp_path / "claims.jsonl")
    fitted_now = CliRunner().invoke(app, ["train", "verdicts", "--claims", str(file)])
    assert fitted_now.exit_code == 0, fitted_now.output
    assert "24 claims" in fitted_now.output
    assert "Most probable label, out of 5 parts: balanced accuracy 1.000" in " ".join(fitted_now.output.split())
    measured = CliRunner().invoke(app, ["eval", "claims", str(file), "--json"])
    assert json.loads(measured.stdout)["balanced"] == 1.0
    shown = CliRunner().invoke(app, ["eval", "claims", str(file), "--limit", "1"])
    assert "balanced accuracy 1.000" in shown.output
    assert list(tmp_path.iterdir()) == [file]
    out = tmp_path / "belief.json"
    assert CliRunner().invoke(app, ["train", "verdicts", "--claims", str(file), "--out", str(out)]).exit_code == 0
    assert json.loads(out.read_text())["fitted_on"].startswith("24 claims")


def test_of_a_folder_our_own_claims_that_measure_are_judged(monkeypatch, tmp_path):
    asked = []

    def ours(data, *, is_test):
        asked.append((data, is_test))
        return [WrittenPassage(one, "") for one in passages(2)]

    monkeypatch.setattr(measuring, "load_scorer", lambda *_: scorer())
    monkeypatch.setattr(measuring, "written_passages", ours)
    measured = CliRunner().invoke(app, ["eval", "claims", str(tmp_path), "--json"])
    assert json.loads(measured.stdout)["balanced"] == 1.0
    assert asked == [(tmp_path, True)]


def test_each_fold_is_read_by_its_own_verifier(monkeypatch, tmp_path):
    loaded = []

    def load(config, _):
        loaded.append(config.verdict_model)
        return scorer()

    monkeypatch.setattr(command, "load_scorer", load)
    file, out = write_claims(tmp_path / "claims.jsonl", 40), tmp_path / "belief.json"
    folds = ["--fold", "0", "--fold", "3"]
    asked = ["train", "verdicts", "--claims", str(file), *folds, "--out", str(out)]
    told = CliRunner().invoke(app, [*asked, "--verdict-model", "one", "--verdict-model", "two"])
    assert told.exit_code == 0, told.output
    assert loaded == ["one", "two"]
    n = 3 * sum(fold_of(one.id) in (0, 3) for one in passages(40))
    assert json.loads(out.read_text())["fitted_on"].startswith(f"{n} claims, folds 0, 3")
    wrong = CliRunner().invoke(app, [*asked, *3 * ["--verdict-model", "one"]])
    assert "expected one --verdict-model, or one for each of the 2 --fold, got 3" in str(
        wrong.exception or wrong.output
    )


def test_a_verifier_with_a_calibration_of_its_own_is_judged_by_it(tmp_path):
    own = written(Calibration({Verdict.SUPPORTED: {"bias": 1.0}, Verdict.CONTRADICTED: {"bias": -1.0}}, 0.9, 0.8), "x")
    (tmp_path / "calibration.json").write_text(own, encoding="utf-8")
    assert calibration_of(str(tmp_path)).supported == 0.9
    assert calibration_of("") == calibration_of(str(tmp_path / "another")) == calibration()

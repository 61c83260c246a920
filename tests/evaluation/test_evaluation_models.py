"""What the models are worth: labelled pairs, agreement with published scores, obligations; on fakes."""

import gzip
import json
import random
import re

import pytest
from typer.testing import CliRunner

import ragqa.loading
from ragqa.cli import app
from ragqa.config import ScoringConfig
from ragqa.corpus.demo import DEMOS
from ragqa.errors import ConfigError, CorpusError
from ragqa.evaluation.agreement import CaseAgreement, agreement, read_published, score_published
from ragqa.evaluation.contrasts import CONTRASTS, contrast_pairs
from ragqa.evaluation.legal_pairs import LEGAL, legal_pairs
from ragqa.evaluation.nli import PairReport, evaluate_pairs, pairs_evaluated
from ragqa.evaluation.obligation_measures import (
    ObligationMeasures,
    measure_obligations,
    rulebook_sentences,
    split_sentences_of,
)
from ragqa.evaluation.reference_files import Figures
from ragqa.evaluation.rulebook_obligations import RULEBOOK_SENTENCES
from ragqa.repass.scorer import RepassScorer
from ragqa.sentences import split_sentences
from ragqa.training.nli_data import LABELS, LabelledPair
from ragqa.training.obligation_sentences import (
    ADDED_OBLIGATIONS,
    ADDED_STATEMENTS,
    PROBE_OBLIGATIONS,
    PROBE_STATEMENTS,
)
from ragqa.types import NliProbabilities
from tests.support.fakes import FakeNli, FakeObligations

CONTRADICTION, ENTAILMENT, NEUTRAL = range(3)
TABLE = {
    ("a", "denied"): NliProbabilities(0.8, 0.1, 0.1),
    ("a", "follows"): NliProbabilities(0.1, 0.8, 0.1),
    ("a", "undecided"): NliProbabilities(0.4, 0.4, 0.2),
}
PAIRS = [
    LabelledPair("a", "denied", CONTRADICTION, "first"),
    LabelledPair("a", "follows", ENTAILMENT, "first"),
    LabelledPair("a", "open", ENTAILMENT, "second"),  # FakeNli: neutral
    LabelledPair("a", "undecided", ENTAILMENT, "second"),  # a tie: contradiction
]


# Labelled pairs


def test_pairs_are_counted_by_gold_and_found_label():
    report = evaluate_pairs(FakeNli(TABLE), PAIRS, "some pairs")
    assert report.confusion == ((1, 0, 0), (1, 1, 1), (0, 0, 0))  # a row per gold label: C, E, N
    assert report.n_pairs == 4
    assert report.accuracy == 2 / 4
    assert report.recall == {"contradiction": 1 / 1, "entailment": 1 / 3, "neutral": None}
    assert report.correct_of == {"first": (2, 2), "second": (0, 2)}
    assert report.name == "some pairs"
    assert report.model == FakeNli.info
    assert report.pairs_per_second == pytest.approx(4 / report.seconds)


def test_progress_comes_before_the_report(monkeypatch):
    monkeypatch.setattr("ragqa.evaluation.nli.PAIRS_PER_STEP", 3)
    *progress, report = pairs_evaluated(FakeNli(TABLE), PAIRS)
    assert progress == [3, 4]
    assert isinstance(report, PairReport)
    assert report.accuracy == 2 / 4


def test_no_pairs_have_no_accuracy():
    report = evaluate_pairs(FakeNli(), [])
    assert report.n_pairs == 0
    assert report.accuracy is None
    assert set(report.recall.values()) == {None}


def test_a_report_without_time_has_no_speed():
    report = PairReport("", FakeNli.info, ((1, 0, 0), (0, 0, 0), (0, 0, 0)), {}, 0.0)
    assert report.pairs_per_second == 0.0


# The built-in sets


def test_sixty_contrasts_and_their_re_wordings():
    pairs = contrast_pairs()
    labels = [LABELS[pair.label] for pair in pairs]
    assert labels.count("contradiction") == 60
    assert 20 <= labels.count("entailment") <= 35
    assert labels.count("neutral") == 0
    assert {pair.source for pair in pairs} == {*CONTRASTS, "same meaning"}
    assert len({(pair.premise, pair.hypothesis) for pair in pairs}) == len(pairs)
    assert len({pair.premise for pair in pairs}) == 60
    assert {pair.premise for pair in pairs if pair.label == ENTAILMENT} < {pair.premise for pair in pairs}


@pytest.mark.parametrize("kind", ["number", "date", "amount", "unit"])
def test_a_contrast_in_a_figure_changes_a_figure_or_its_unit(kind):
    for premise, other, _ in CONTRASTS[kind]:
        said, says = premise.split(), other.split()
        assert said != says
        if len(said) == len(says):  # otherwise a word was added as well
            assert 1 <= sum(a != b for a, b in zip(said, says, strict=True)) <= 2, other


def test_sixty_legal_pairs_twenty_of_each_label():
    pairs = legal_pairs()
    assert [pair.label for pair in pairs].count(CONTRADICTION) == 20
    assert [pair.label for pair in pairs].count(ENTAILMENT) == 20
    assert [pair.label for pair in pairs].count(NEUTRAL) == 20
    assert len({(pair.premise, pair.hypothesis) for pair in pairs}) == 60
    clause, entailed, contradicted, open_one = LEGAL[0]
    assert [(pair.premise, pair.hypothesis, LABELS[pair.label]) for pair in pairs[:3]] == [
        (clause, entailed, "entailment"),
        (clause, contradicted, "contradiction"),
        (clause, open_one, "neutral"),
    ]


@pytest.mark.data
def test_no_built_in_pair_is_in_the_shared_training_file(shared_data):
    with gzip.open(shared_data / "nli" / "train.jsonl.gz", "rt", encoding="utf-8") as lines:
        premises = {json.loads(line)["premise"] for line in lines}
    assert not premises & {pair.premise for pair in (*contrast_pairs(), *legal_pairs())}


# Agreement


def case(number, published, found):
    return CaseAgreement(number, str(number), 2, 1, published, found)


def test_agreement_is_pearson_and_the_mean_difference():
    rows = [
        case(1, Figures(0.1, 0.2, 0.5, 0.4), Figures(0.2, 0.2, 1.0, 0.5)),
        case(2, Figures(0.3, 0.2, 0.5, 0.4), Figures(0.6, 0.1, 0.5, 0.5)),
        case(3, Figures(0.5, 0.2, 0.5, 0.7), Figures(0.4, 0.0, 0.0, 0.5)),
    ]
    entailment, contradiction, coverage, composite = agreement(rows)
    # Deviations from the means .3 and .4: (-.2, 0, .2) and (-.2, .2, 0); r = .04 / sqrt(.08 * .08)
    assert entailment.pearson == pytest.approx(0.04 / 0.08)
    assert entailment.mean_published == pytest.approx((0.1 + 0.3 + 0.5) / 3)
    assert entailment.mean_found == pytest.approx((0.2 + 0.6 + 0.4) / 3)
    assert entailment.mean_difference == pytest.approx((0.1 + 0.3 - 0.1) / 3)
    assert entailment.mean_distance == pytest.approx((0.1 + 0.3 + 0.1) / 3)
    assert contradiction.pearson is None  # one side is the same throughout
    assert contradiction.mean_difference == pytest.approx((0.0 - 0.1 - 0.2) / 3)
    assert coverage.pearson is None
    assert composite.part == "composite"
    assert composite.mean_difference == pytest.approx((0.1 + 0.1 - 0.2) / 3)


def test_agreement_without_cases_is_no_number_and_no_failure():
    assert [(part.pearson, part.mean_difference, part.mean_distance) for part in agreement([])] == [
        (None, 0.0, 0.0)
    ] * 4


PUBLISHED = {
    "QuestionID": "q1",
    "RetrievedPassages": ["A firm must act at once. The sky is blue."],
    "Answer": "A firm must act at once. It rains.",
    "expected": {
        "entailment_score": 0.5,
        "contradiction_score": 0.25,
        "obligation_coverage_score": 1,
        "composite_score": 0.75,
    },
}


def write(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: {"note": "…", "items": rows}])
def test_published_cases_are_read_and_scored_in_script_mode(tmp_path, wrap):
    (one,) = read_published(write(tmp_path / "cases.json", wrap([PUBLISHED])))
    assert one.published == Figures(0.5, 0.25, 1.0, 0.75)
    nli = FakeNli()
    (row,) = score_published(RepassScorer(nli, nli, FakeObligations(), ScoringConfig()), [one])
    assert (row.number, row.question_id, row.n_source_sentences, row.n_answer_sentences) == (1, "q1", 2, 2)
    # FakeNli: .9 for equal sentences, else .1; one obligation, covered by its equal
    assert row.found.entailment == pytest.approx((0.9 + 0.1) / 2)
    assert row.found.contradiction == pytest.approx((0.1 + 0.1) / 2)
    assert row.found.obligation_coverage == 1.0
    assert row.found.composite == pytest.approx((0.5 - 0.1 + 1 + 1) / 3, abs=1e-5)


def test_one_text_of_passages_and_a_missing_id_are_taken(tmp_path):
    row = PUBLISHED | {"RetrievedPassages": "One text.", "QuestionID": None}
    (one,) = read_published(write(tmp_path / "cases.json", [row]))
    assert one.item.passages == ("One text.",)
    assert one.item.question_id == "1"


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ({"rows": []}, "null"),
        ("text", "the text 'text'"),
        ([3], "item 1.*the number 3"),
        ([PUBLISHED | {"RetrievedPassages": [1]}], "a list of 1 under RetrievedPassages"),
        ([PUBLISHED | {"Answer": 7}], "the number 7 under Answer"),
        ([PUBLISHED | {"expected": []}], "a list of 0 under expected"),
        ([PUBLISHED | {"expected": PUBLISHED["expected"] | {"entailment_score": float("nan")}}], "the number nan"),
        ([PUBLISHED | {"expected": PUBLISHED["expected"] | {"composite_score": True}}], "the value true"),
        ([PUBLISHED, PUBLISHED | {"expected": {}}], "item 2.*null, null, null, null as scores"),
    ],
)
def test_a_file_that_is_something_else_is_refused(tmp_path, content, found):
    with pytest.raises(CorpusError, match=rf"(?s)cases\.json.*expected.*found.*{found}|cases\.json.*{found}"):
        read_published(write(tmp_path / "cases.json", content))


# Obligations


def test_obligations_are_counted():
    sentences = [
        ("A firm must act.", True),
        ("Nobody is to act.", True),
        ("It must be late.", False),
        ("The sky is blue.", False),
        ("A firm must wait.", True),
    ]
    measured = measure_obligations(FakeObligations(), sentences, "five")  # the fake looks for "must"
    assert measured == ObligationMeasures("five", 5, 2, ("Nobody is to act.",), ("It must be late.",))
    assert measured.precision == 2 / 3
    assert measured.recall == 2 / 3
    assert measured.f1 == 2 * 2 / (2 * 2 + 1 + 1)


def test_nothing_to_measure_is_zero_and_no_failure():
    measured = measure_obligations(FakeObligations(), [])
    assert (measured.f1, measured.precision, measured.recall) == (0.0, 0.0, 0.0)


def test_the_fifty_sentences_are_the_rulebook_s_and_drawn_by_the_seed():
    rows = []
    for file in sorted(DEMOS["rulebook"].source.glob("documents/*.json"), key=lambda path: int(path.stem)):
        for passage in json.loads(file.read_text("utf-8")):
            spans = split_sentences(passage["Passage"])
            place = f"{passage['DocumentID']}:{passage['PassageID']}"
            rows += [(place, span.text) for span in spans if len(span.text.split()) >= 6]
    drawn = random.Random(2026).sample(rows, 50)
    assert [(place, text) for place, text, _ in RULEBOOK_SENTENCES] == drawn


def test_the_labels_are_of_both_kinds_and_follow_the_words():
    """ "must" always obliges in these fifty; whatever else does has been read, and says "may" with "no"."""
    labels = dict(rulebook_sentences())
    assert 20 <= sum(labels.values()) <= 30
    for text, label in labels.items():
        assert label == bool(re.search(r"\bmust\b|^No .* may\b", text)), text


def test_the_fifty_sentences_were_not_trained_on():
    trained = {*ADDED_OBLIGATIONS, *ADDED_STATEMENTS, *PROBE_OBLIGATIONS, *PROBE_STATEMENTS}
    assert not trained & {text for text, _ in rulebook_sentences()}


def labelled(tmp_path, n):
    rows = [{"Text": f"Sentence {k} must be.", "Obligation": k % 2 == 0} for k in range(n)]
    return write(tmp_path / "labelled.json", rows)


@pytest.mark.long
def test_the_split_is_the_one_of_the_training(tmp_path):
    from sklearn.model_selection import train_test_split

    data = labelled(tmp_path, 40)
    _, expected = train_test_split(list(range(40)), test_size=0.2, random_state=42)
    assert split_sentences_of(data) == [(f"Sentence {k} must be.", k % 2 == 0) for k in expected]
    assert len(expected) == 8


def test_too_few_sentences_are_refused(tmp_path):
    with pytest.raises(CorpusError, match=r"cannot be split .*--data"):
        split_sentences_of(labelled(tmp_path, 1))


# Commands


@pytest.fixture
def call(monkeypatch):
    nli, obligations = FakeNli(TABLE), FakeObligations()
    asked = []

    def load_nli(scoring, paths=None):
        asked.append(scoring)
        return nli, nli

    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(ragqa.loading, "load_nli", load_nli)
    monkeypatch.setattr(ragqa.loading, "load_obligations", lambda scoring: obligations)

    def invoke(*arguments):
        return CliRunner().invoke(app, ["eval", *map(str, arguments)], catch_exceptions=True)

    invoke.asked = asked
    return invoke


def write_pairs(path):
    rows = [{"premise": p.premise, "hypothesis": p.hypothesis, "label": LABELS[p.label]} for p in PAIRS]
    with gzip.open(path, "wt", encoding="utf-8") as out:
        out.write("\n".join(map(json.dumps, rows)))
    return path


def test_eval_nli_prints_a_table_per_set(call, tmp_path):
    pairs = write_pairs(tmp_path / "pairs.jsonl.gz")
    result = call("nli", "--pairs", pairs, "--contrasts", "--legal", "--model", "some-model", "--precision", "fp32")
    assert result.exit_code == 0, result.output
    assert "pairs.jsonl.gz:accuracy0.5000,4pairs" in "".join(result.stdout.split())  # wrapped where the path is long
    assert "contrasts: accuracy" in result.stdout
    assert "legal: accuracy" in result.stdout
    assert "same meaning" in result.stdout
    (scoring,) = call.asked
    assert (scoring.entailment_model, scoring.precision) == ("some-model", "fp32")


def test_eval_nli_as_json(call, tmp_path):
    pairs = write_pairs(tmp_path / "pairs.jsonl.gz")
    result = call("nli", "--pairs", pairs, "--pairs", pairs, "--limit", 1, "--json")
    (figures,) = json.loads(result.stdout)  # the same file twice is measured once
    assert (figures["accuracy"], figures["n_pairs"]) == (1.0, 1)
    assert figures["recall"]["contradiction"] == 1.0
    result = call("nli", "--pairs", pairs, "--legal", "--json")
    assert [row["name"] for row in json.loads(result.stdout)] == [str(pairs), "legal"]


def test_eval_nli_of_an_empty_file(call, tmp_path):
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    result = call("nli", "--pairs", empty)
    assert "no pairs, 0 pairs" in " ".join(result.stdout.split())


def test_eval_nli_wants_something_to_measure_on(call):
    result = call("nli")
    assert isinstance(result.exception, ConfigError)
    assert "--pairs FILE, --contrasts or --legal" in str(result.exception)


def test_eval_agreement(call, tmp_path):
    file = write(tmp_path / "cases.json", {"items": [PUBLISHED, PUBLISHED | {"Answer": "It rains."}]})
    result = call("agreement", "--cases", file, "--each", "--model", "m")
    assert result.exit_code == 0, result.output
    assert "2 published cases, script mode, m" in result.stdout
    assert "0.500 / 0.500" in result.stdout
    (scoring,) = call.asked
    assert (scoring.entailment_model, scoring.coverage_model) == ("m", "m")
    figures = json.loads(call("agreement", "--cases", file, "--json").stdout)
    entailment = figures["parts"][0]
    assert entailment["mean_difference"] == pytest.approx(((0.5 - 0.5) + (0.1 - 0.5)) / 2)
    assert [row["n_answer_sentences"] for row in figures["cases"]] == [2, 1]


def test_eval_obligations(call, tmp_path):
    result = call("obligations", "--data", labelled(tmp_path, 40), "--each")
    assert result.exit_code == 0, result.output
    assert re.search(r"rulebook sentences\W+50", result.stdout)
    assert re.search(r"test part, seed 42\W+8", result.stdout)
    assert "missed: No member who took part in the investigation may sit on the panel." in result.stdout
    assert "false alarm: Sentence" in result.stdout
    (figures,) = json.loads(call("obligations", "--json").stdout)
    assert figures["n_sentences"] == 50
    assert figures["precision"] == 1.0  # the fake finds "must", which is nearly all there is to find
    assert figures["f1"] == pytest.approx(2 * figures["recall"] / (1 + figures["recall"]))


# The real models


@pytest.mark.model
def test_the_embedded_classifier_on_the_fifty_sentences():
    from ragqa.repass.obligations import TfidfObligationClassifier

    measured = measure_obligations(TfidfObligationClassifier(), rulebook_sentences())
    assert measured.f1 >= 0.95

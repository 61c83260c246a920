"""What the models are worth: labelled pairs, agreement with published scores, obligations, citations; on fakes."""

import gzip
import json
import random
import re

import pytest
from typer.testing import CliRunner

import ragqa.cli.evaluate_models
import ragqa.loading
from ragqa.cli import app
from ragqa.corpus.demo import DEMOS
from ragqa.corpus.formats import load_corpus
from ragqa.english.sentences import split_sentences
from ragqa.errors import ConfigError, CorpusError, RagqaError
from ragqa.evaluation.answer_file import AnswerScores
from ragqa.lab.labelled import (
    LABELS,
    CitationGroup,
    CitedSentence,
    LabelledClaim,
    LabelledPair,
    LabelledSentence,
    citation_groups,
    contrast_pairs,
    contrasts,
    legal_clauses,
    legal_pairs,
    own_sentences,
    rows_of,
    rulebook_sentences,
)
from ragqa.lab.measures import (
    CaseAgreement,
    agreement,
    balanced_accuracy,
    check_claims,
    check_groups,
    citation_report,
    kind_of,
    read_published,
    score_published,
)
from ragqa.lab.training.nli import PairReport, evaluate_pairs
from ragqa.lab.training.obligations import ObligationMeasures, held_out_sentences, measure_obligations
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.settings.config import ScoringConfig
from ragqa.types.scores import NliProbabilities, Verdict
from ragqa.types.streams import returned
from tests.support.fakes import FakeNli, FakeObligations, passage

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
    report = returned(evaluate_pairs(FakeNli(TABLE), PAIRS, "some pairs"))
    assert report.confusion == ((1, 0, 0), (1, 1, 1), (0, 0, 0))  # a row per gold label: C, E, N
    assert report.n_pairs == 4
    assert report.accuracy == 2 / 4
    assert report.recall == {"contradiction": 1 / 1, "entailment": 1 / 3, "neutral": None}
    assert report.correct_of == {"first": (2, 2), "second": (0, 2)}
    assert report.name == "some pairs"
    assert report.model == FakeNli.info
    assert report.pairs_per_second == pytest.approx(4 / report.seconds)


def test_progress_comes_before_the_report(monkeypatch):
    monkeypatch.setattr("ragqa.lab.training.nli.PAIRS_PER_STEP", 3)
    progress = []
    report = returned(evaluate_pairs(FakeNli(TABLE), PAIRS), progress.append)
    assert progress == [3, 4]
    assert isinstance(report, PairReport)
    assert report.accuracy == 2 / 4


def test_no_pairs_have_no_accuracy():
    report = returned(evaluate_pairs(FakeNli(), []))
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
    assert {pair.source for pair in pairs} == {*(row.kind for row in contrasts()), "same meaning"}
    assert len({(pair.premise, pair.hypothesis) for pair in pairs}) == len(pairs)
    assert len({pair.premise for pair in pairs}) == 60
    assert {pair.premise for pair in pairs if pair.label == ENTAILMENT} < {pair.premise for pair in pairs}


@pytest.mark.parametrize("kind", ["number", "date", "amount", "unit"])
def test_a_contrast_in_a_figure_changes_a_figure_or_its_unit(kind):
    of_kind = [row for row in contrasts() if row.kind == kind]
    assert of_kind
    for row in of_kind:
        said, says = row.premise.split(), row.contradicted.split()
        assert said != says
        if len(said) == len(says):  # otherwise a word was added as well
            assert 1 <= sum(a != b for a, b in zip(said, says, strict=True)) <= 2, row


def test_sixty_legal_pairs_twenty_of_each_label():
    pairs = legal_pairs()
    assert [pair.label for pair in pairs].count(CONTRADICTION) == 20
    assert [pair.label for pair in pairs].count(ENTAILMENT) == 20
    assert [pair.label for pair in pairs].count(NEUTRAL) == 20
    assert len({(pair.premise, pair.hypothesis) for pair in pairs}) == 60
    first = legal_clauses()[0]
    assert [(pair.premise, pair.hypothesis, LABELS[pair.label]) for pair in pairs[:3]] == [
        (first.premise, first.entailed, "entailment"),
        (first.premise, first.contradicted, "contradiction"),
        (first.premise, first.left_open, "neutral"),
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
        case(1, AnswerScores(0.1, 0.2, 0.5, 0.4), AnswerScores(0.2, 0.2, 1.0, 0.5)),
        case(2, AnswerScores(0.3, 0.2, 0.5, 0.4), AnswerScores(0.6, 0.1, 0.5, 0.5)),
        case(3, AnswerScores(0.5, 0.2, 0.5, 0.7), AnswerScores(0.4, 0.0, 0.0, 0.5)),
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


def test_claims_are_judged_and_weighed_by_label():
    claims = [
        LabelledClaim("Firms must keep records.", ("Firms must keep records.", "The sky is blue."), is_supported=True),
        LabelledClaim("Firms must sell boats.", ("The sky is blue.",), is_supported=False),
    ]
    nli = FakeNli()
    checked = list(check_claims(claims, RepassScorer(nli, nli, FakeObligations(), ScoringConfig())))
    assert [one.verdict for one in checked] == [Verdict.SUPPORTED, Verdict.UNSUPPORTED]
    assert balanced_accuracy([(True, True), (True, False), (False, False)]) == pytest.approx(0.75)
    assert balanced_accuracy([(True, True)]) is None


@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: {"note": "…", "items": rows}])
def test_published_cases_are_read_and_scored_in_script_mode(tmp_path, wrap):
    (one,) = read_published(write(tmp_path / "cases.json", wrap([PUBLISHED])))
    assert one.published == AnswerScores(0.5, 0.25, 1.0, 0.75)
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
        LabelledSentence("A firm must act.", obligation=True),
        LabelledSentence("Nobody is to act.", obligation=True),
        LabelledSentence("It must be late.", obligation=False),
        LabelledSentence("The sky is blue.", obligation=False),
        LabelledSentence("A firm must wait.", obligation=True),
    ]
    measured = measure_obligations(FakeObligations().classify, sentences, "five")  # the fake looks for "must"
    assert measured == ObligationMeasures("five", 5, 2, ("Nobody is to act.",), ("It must be late.",))
    assert measured.precision == 2 / 3
    assert measured.recall == 2 / 3
    assert measured.f1 == 2 * 2 / (2 * 2 + 1 + 1)


def test_nothing_to_measure_is_zero_and_no_failure():
    measured = measure_obligations(FakeObligations().classify, [])
    assert (measured.f1, measured.precision, measured.recall) == (0.0, 0.0, 0.0)


def test_the_fifty_sentences_are_the_rulebook_s_and_drawn_by_the_seed():
    rows = []
    for file in sorted(DEMOS["rulebook"].source.glob("documents/*.json"), key=lambda path: int(path.stem)):
        for item in json.loads(file.read_text("utf-8")):
            spans = split_sentences(item["Passage"])
            place = f"{item['DocumentID']}:{item['PassageID']}"
            rows += [(place, span.text) for span in spans if len(span.text.split()) >= 6]
    drawn = random.Random(2026).sample(rows, 50)
    assert [(row.origin, row.text) for row in rulebook_sentences()] == drawn


def test_the_labels_are_of_both_kinds_and_follow_the_words():
    """ "must" always obliges in these fifty; whatever else does has been read, and says "may" with "no"."""
    labels = {row.text: row.obligation for row in rulebook_sentences()}
    assert 20 <= sum(labels.values()) <= 30
    for text, label in labels.items():
        assert label == bool(re.search(r"\bmust\b|^No .* may\b", text)), text


def test_the_fifty_sentences_were_not_trained_on():
    trained = {row.text for origin in ("added", "probe") for row in own_sentences(origin)}
    assert len(trained) == 76 + 147 + 24 + 34
    assert not trained & {row.text for row in rulebook_sentences()}


def labelled(tmp_path, n):
    rows = [{"Text": f"Sentence {k} must be.", "Obligation": k % 2 == 0} for k in range(n)]
    return write(tmp_path / "labelled.json", rows)


@pytest.mark.long
def test_the_split_is_the_one_of_the_training(tmp_path):
    from sklearn.model_selection import train_test_split

    data = labelled(tmp_path, 40)
    _, expected = train_test_split(list(range(40)), test_size=0.2, random_state=42)
    found = [(row.text, row.obligation) for row in held_out_sentences(data)]
    assert found == [(f"Sentence {k} must be.", k % 2 == 0) for k in expected]
    assert len(expected) == 8


def test_too_few_sentences_are_refused(tmp_path):
    with pytest.raises(CorpusError, match=r"cannot be split .*--data"):
        held_out_sentences(labelled(tmp_path, 1))


# Commands


@pytest.fixture
def call(monkeypatch):
    nli, obligations = FakeNli(TABLE), FakeObligations()
    asked = []

    def load_nli(name, precision="auto", paths=None):
        asked.append((name, precision))
        return nli

    monkeypatch.setenv("COLUMNS", "160")
    for module in (ragqa.loading, ragqa.cli.evaluate_models):
        monkeypatch.setattr(module, "load_nli", load_nli)
        monkeypatch.setattr(module, "load_obligations", lambda scoring: obligations)

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
    assert call.asked == [("some-model", "fp32")]


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
    assert call.asked == [("m", "auto")]  # one model, for coverage and verdicts too
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


# The files


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"text": "a", "obligation": 1}', "valid boolean obligation"),
        ('{"text": "a", "obligation": true, "label": 1}', "Unexpected keyword argument label"),
        ('{"text": "a"}', "Field required obligation"),
        ("nonsense", "Invalid JSON"),
    ],
)
def test_a_line_that_is_something_else_is_named(tmp_path, line, problem):
    file = tmp_path / "sentences.jsonl"
    file.write_text(f'{{"text": "One.", "obligation": true}}\n{line}\n')
    with pytest.raises(
        CorpusError, match=rf"sentences\.jsonl, line 2: .*{problem}.*; expected a JSON object of text, obl"
    ):
        rows_of(file, LabelledSentence)


# Labelled citations -------------------------------------------------------------------------------------------------


def test_sixty_sentences_over_passages_of_the_rulebook_that_exist():
    sentences = [sentence for group in citation_groups() for sentence in group.sentences]
    assert len(sentences) == len({sentence.text for sentence in sentences}) == 60
    kinds = [kind_of(sentence) for sentence in sentences]
    counts = {kind: kinds.count(kind) for kind in set(kinds)}
    assert counts == {
        "right citation": 22,
        "wrong citation, another is right": 17,
        "wrong citation, none is right": 5,
        "citation missing": 13,
        "nothing cited, nothing to cite": 3,
    }
    demo = DEMOS["rulebook"]
    known = {found.passage_id: found.text for found in load_corpus(demo.source, demo.format).passages}
    for group in citation_groups():
        assert len(set(group.passage_ids)) == 3
        for sentence in group.sentences:
            assert {*sentence.written, *sentence.right} <= {1, 2, 3}
            assert all(sentence.text not in known[name] for name in group.passage_ids)  # in words of its own


def test_precision_and_recall_are_those_of_the_changes():
    passages = [passage("1:a", "Firms act."), passage("1:b", "Cats sleep.")]
    group = CitationGroup(
        ("1:a", "1:b"),
        (
            CitedSentence("Firms do act.", (1,), (1,)),  # entailed by 1: stays
            CitedSentence("Cats do sleep.", (1,), (2,)),  # entailed by 2: two right changes
            CitedSentence("Cats rest.", (), (2,)),  # entailed by none: a change is missing
            CitedSentence("Dogs bark.", (), ()),  # entailed by 1, wrongly: a wrong change
        ),
    )
    yes = NliProbabilities(0.05, 0.9, 0.05)
    pairs = [("Firms act.", "Firms do act."), ("Cats sleep.", "Cats do sleep."), ("Firms act.", "Dogs bark.")]
    nli = FakeNli(dict.fromkeys(pairs, yes))
    scorer = RepassScorer(nli, nli, FakeObligations(), ScoringConfig())
    found = citation_report(list(check_groups([group], passages, scorer)))
    assert (found.changes.precision, found.changes.recall) == (2 / 3, 2 / 3)
    assert (found.before.precision, found.before.recall) == (1 / 2, 1 / 3)
    assert (found.after.precision, found.after.recall) == (2 / 3, 2 / 3)
    assert found.exact == {
        "right citation": (1, 1),
        "wrong citation, another is right": (1, 1),
        "citation missing": (0, 1),
        "nothing cited, nothing to cite": (0, 1),
    }
    with pytest.raises(RagqaError, match="expected passage 9:9"):
        list(check_groups([CitationGroup(("9:9",), ())], passages, scorer))
    nothing = citation_report([])
    assert (nothing.changes.precision, nothing.changes.recall, nothing.exact) == (None, None, {})


# The real models


@pytest.mark.model
def test_the_embedded_classifier_on_the_fifty_sentences():
    from ragqa.scoring.repass.obligations import TfidfObligationClassifier

    measured = measure_obligations(TfidfObligationClassifier().classify, rulebook_sentences())
    assert measured.f1 >= 0.95


@pytest.mark.slow
@pytest.mark.model
def test_the_check_makes_citations_better_with_the_embedded_model():
    found = json.loads(CliRunner().invoke(app, ["eval", "citations", "--json"]).stdout)
    assert found["after"]["precision"] > 0.9 > 0.6 > found["before"]["precision"]
    assert found["changes"]["precision"] >= 0.8  # 36 of 45
    assert found["changes"]["recall"] > 0.65

"""The scorer with the embedded models: scoring again, from memory and from disk, and the order of the passages."""

import json
from statistics import fmean

import pytest

from ragqa.english.sentences import split_sentences
from ragqa.scoring.repass.nli import RememberingNli
from ragqa.scoring.repass.obligations import TfidfObligationClassifier
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.settings.config import ScoringConfig
from ragqa.types import Answer, AnswerSentence
from ragqa.types.scores import ScoringMode
from ragqa.types.streams import returned
from tests.support.fakes import FakeNli, answer, passage
from tests.support.streams import Returning

pytestmark = pytest.mark.model

PASSAGES = [
    passage("a", "A firm must keep records of every client for six years. Records may be kept on paper."),
    passage("b", "The Commission may ask for records. A firm must give them within ten days of being asked."),
    passage("c", "Nothing in this Part applies to a firm that holds no client money. It must say so once a year."),
    passage("d", "A firm must not destroy a record. The Commission publishes a list of firms. Clients may read it."),
]
ANSWER = answer(
    "A firm must keep records of every client for six years.\n"
    "A firm must hand records over within ten days.\n"
    "A firm may destroy records.\n"
    "The list of firms is secret.\n"
    "A firm must appoint an auditor."
)


@pytest.fixture(scope="module")
def load():
    from ragqa.scoring.repass.nli import CrossEncoderNli

    return CrossEncoderNli


def score(nli, passages=PASSAGES):
    return returned(RepassScorer(nli, nli, TfidfObligationClassifier(), ScoringConfig()).stream(ANSWER, passages))


def test_scoring_again_gives_the_same_numbers_from_a_fresh_model_from_memory_and_from_disk(load, tmp_path):
    file = tmp_path / "pairs.sqlite3"
    fresh = score(load())
    remembering = RememberingNli(load(), file)
    computed, from_memory = score(remembering), score(remembering)
    assert computed == from_memory == fresh
    assert score(RememberingNli(load(), file)) == fresh


def test_the_order_of_the_passages_leaves_the_parts_unchanged(load):
    nli = load(precision="fp32")
    one, other = score(nli), score(nli, PASSAGES[::-1])
    for mode in ScoringMode:
        parts, turned = one.of(mode).repass, other.of(mode).repass
        assert turned.entailment == pytest.approx(parts.entailment, abs=1e-5)
        assert turned.contradiction == pytest.approx(parts.contradiction, abs=1e-5)
        assert turned.obligation_coverage == parts.obligation_coverage


def test_an_unsupported_and_a_contradicted_sentence_are_told_apart(load):
    verbatim, _, destroys, _, auditor = score(load()).paper.sentences
    assert verbatim.entailment > 0.9
    assert verbatim.entailment_premise.passage_id == "a"
    assert destroys.contradiction > 0.5
    assert destroys.contradiction_premise.passage_id == "d"
    assert auditor.entailment < 0.5


class Counted(FakeNli):
    """Another model; counts the pairs asked."""

    def __init__(self, model):
        super().__init__()
        self.model, self.info = model, model.info

    def predict(self, pairs):
        self.pairs.extend(pairs)
        return self.model.predict(pairs)


@pytest.mark.data
@pytest.mark.slow
def test_the_first_round_comes_close_with_few_pairs(load, shared_data):
    """What `ragqa.scoring.repass.scorer` says of its rounds, measured on the published cases (a minute)."""
    counted = Counted(load())
    scorer = RepassScorer(counted, counted, TfidfObligationClassifier(), ScoringConfig())
    errors, n_first, n_all = [], 0, 0
    for item in json.loads((shared_data / "repass" / "reference_cases.json").read_text())["items"]:
        spans = split_sentences(item["Answer"])
        said = Answer(item["Answer"], tuple(AnswerSentence(s.text, s.start, s.end) for s in spans), "", "")
        passages = [passage(str(n), text) for n, text in enumerate(item["RetrievedPassages"])]
        counted.pairs.clear()
        first, n_pairs, scored = first_breakdown(scorer.stream(said, passages), counted)
        final = scored.paper.repass
        errors.append([abs(a - b) for a, b in zip(first, (final.entailment, final.contradiction), strict=True)])
        n_first += n_pairs
        n_all += scored.paper.n_pairs
    entailment, contradiction = (fmean(column) for column in zip(*errors, strict=True))
    print(f"\nfirst round: {n_first} of {n_all} pairs, E off by {entailment:.3f}, C by {contradiction:.3f}")
    assert n_first / n_all < 0.18
    assert entailment < 0.07
    assert contradiction < 0.07


def first_breakdown(stream, counted):
    """E and C once every sentence and obligation has been told of, and the pairs it took; then the whole."""
    latest, first, n_pairs = {}, None, 0
    whole = Returning(stream)
    for event in whole:
        if first is None or (type(event), event.score.index) not in latest:
            latest[type(event), event.score.index] = event.score
            sentences = [score for score in latest.values() if hasattr(score, "contradiction")]
            first = fmean(s.entailment for s in sentences), fmean(s.contradiction for s in sentences)
            n_pairs = len(counted.pairs)
    return first, n_pairs, whole.result

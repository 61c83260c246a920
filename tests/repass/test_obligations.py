"""The obligation classifier: its arithmetic against scikit-learn's, its files, its training command, its sense."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ragqa
from ragqa.errors import CorpusError, ModelError
from ragqa.models import check_model
from ragqa.repass.obligations import (
    NgramWeights,
    TfidfObligationClassifier,
    load_weights,
    ngrams,
    probability,
    save_weights,
)
from ragqa.sentences import split_sentences
from ragqa.training.obligation_report import f1_score
from ragqa.training.obligation_sentences import (
    ADDED_OBLIGATIONS,
    ADDED_STATEMENTS,
    PROBE_OBLIGATIONS,
    PROBE_STATEMENTS,
)
from ragqa.training.obligations import read_labelled_sentences, train_obligations, without_duty

SMALL = NgramWeights({"must": (1.5, 4.0), "firm": (1.0, 0.5), "firm must": (2.0, 1.0), "may": (1.25, -3.0)}, -0.5)


@pytest.fixture(scope="module")
def classifier():
    return TfidfObligationClassifier()


# Arithmetic


def test_ngrams_are_lower_cased_words_of_two_or_more_characters():
    assert list(ngrams("A firm MUST do it.")) == [
        *("firm", "must", "do", "it"),
        *("firm must", "must do", "do it"),
        *("firm must do", "must do it"),
    ]
    assert list(ngrams("")) == list(ngrams("? ! a")) == []
    assert list(ngrams("Łódź müssen")) == ["łódź", "müssen", "łódź müssen"]


def test_probability_written_out():
    # "firm" twice, "must" and "firm must" once each
    firm, must, both = (1 + math.log(2)) * 1.0, 1.5, 2.0
    length = math.sqrt(firm**2 + must**2 + both**2)
    score = (firm * 0.5 + must * 4.0 + both * 1.0) / length - 0.5
    assert probability(SMALL, "Firm: the firm must.") == pytest.approx(1 / (1 + math.exp(-score)), rel=1e-12)


@pytest.mark.parametrize("text", ["", " ", "unknown words", "\u0007", "🙂"])
def test_without_a_known_ngram_only_the_intercept_speaks(text):
    assert probability(SMALL, text) == 1 / (1 + math.exp(0.5))


@given(st.text(max_size=60))
def test_probability_lies_between_0_and_1(text):
    assert 0 <= probability(SMALL, text) <= 1


@pytest.mark.long
def test_the_same_numbers_as_scikit_learn():
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    texts = [*ADDED_OBLIGATIONS, *ADDED_STATEMENTS]
    labels = [True] * len(ADDED_OBLIGATIONS) + [False] * len(ADDED_STATEMENTS)
    vectorizer = TfidfVectorizer(ngram_range=(1, 3), min_df=2, sublinear_tf=True)
    regression = LogisticRegression(C=10.0, max_iter=3000).fit(vectorizer.fit_transform(texts), labels)
    numbers = zip(vectorizer.idf_.tolist(), regression.coef_[0].tolist(), strict=True)
    weights = NgramWeights(
        dict(zip(vectorizer.get_feature_names_out(), numbers, strict=True)), regression.intercept_[0]
    )
    probes = [*PROBE_OBLIGATIONS, *PROBE_STATEMENTS, "", "Müssen wir? We must must must."]
    expected = regression.predict_proba(vectorizer.transform(probes))[:, 1]
    assert [probability(weights, text) for text in probes] == pytest.approx(expected.tolist(), abs=1e-12)


# Files


def test_weights_survive_the_disk(tmp_path):
    save_weights(SMALL, tmp_path / "w.safetensors")
    assert load_weights(tmp_path / "w.safetensors") == SMALL  # all numbers of SMALL are exact in float32


def test_the_same_weights_make_the_same_file(tmp_path):
    for name in ("one", "two"):
        save_weights(SMALL, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("damage", ["missing", "truncated", "not safetensors", "without idf", "unequal", "nan"])
def test_damaged_weights_are_refused(tmp_path, damage):
    import numpy as np
    from safetensors.numpy import load_file, save_file

    file = tmp_path / "w.safetensors"
    save_weights(SMALL, file)
    tensors = load_file(file)
    if damage == "missing":
        file.unlink()
    elif damage == "truncated":
        file.write_bytes(file.read_bytes()[:-4])
    elif damage == "not safetensors":
        file.write_bytes(b"\x80\x04pickled")
    elif damage == "without idf":
        del tensors["idf"]
        save_file(tensors, file)
    elif damage == "unequal":
        save_file(tensors | {"idf": np.ones(3, np.float32)}, file)
    else:
        save_file(tensors | {"idf": np.array([1, 2, 3, np.nan], np.float32)}, file)
    with pytest.raises(ModelError, match=r"w\.safetensors .*reinstall ragqa, or run `ragqa train obligations`"):
        load_weights(file)


# The embedded model


def test_the_embedded_model_knows_its_own_fingerprint(classifier):
    assert classifier.info.name == "obligations-tfidf"
    assert len(classifier.info.fingerprint) == 64
    assert classifier.classify([]) == []


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("An Authorised Firm must notify the Commission within three days.", True),
        ("A bank shall hold enough liquid assets.", True),
        ("Lake Baikal is the deepest lake in the world.", False),
        ("Definitions", False),
        ("The Commission may extend the period.", False),
        ("", False),
        ("\u200e\u0007 🙂", False),
    ],
)
def test_plain_cases(classifier, sentence, expected):
    assert classifier.classify([sentence]) == [expected]


def test_the_probe(classifier):
    assert sum(classifier.classify(PROBE_OBLIGATIONS)) >= 22
    assert sum(classifier.classify(PROBE_STATEMENTS)) <= 1


def test_encyclopedia_sentences_are_rarely_taken_for_obligations(classifier):
    """The demonstration encyclopedia is not trained on: 72 % by the data set alone, 2 % with the widening."""
    articles = Path(ragqa.__file__).parent / "corpus" / "demo" / "encyclopedia" / "articles"
    sentences = [span.text for file in articles.glob("*.md") for span in split_sentences(file.read_text())]
    assert len(sentences) > 500
    assert sum(classifier.classify(sentences)) / len(sentences) < 0.05


def test_a_very_long_sentence_is_no_trouble(classifier):
    assert classifier.classify(["The firm must pay. " * 5_000]) == [True]


# Training


def test_the_added_sentences_and_the_probe_do_not_overlap():
    lists = [ADDED_OBLIGATIONS, ADDED_STATEMENTS, PROBE_OBLIGATIONS, PROBE_STATEMENTS]
    everything = [text for sentences in lists for text in sentences]
    assert len(everything) == len(set(everything))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Firms must keep records.", "Firms keep records."),
        ("A bank shall report and must answer.", "A bank report and answer."),
        ("The seller IS REQUIRED TO return it.", "The seller return it."),
        ("Guests have to sign.", "Guests sign."),
        ("The mustard is hot.", None),
        ("", None),
    ],
)
def test_without_duty(text, expected):
    assert without_duty(text) == expected


@pytest.fixture
def labelled(tmp_path):
    """Sixty made-up sentences, one of them twice, in the schema of the data set."""
    things = ["ships", "banks", "schools", "farms", "trains", "clubs"]
    acts = ["keep records", "pay the fee", "close on Sunday", "train their staff", "report each year"]
    items = [{"Text": f"All {thing} must {act}.", "Obligation": True} for thing in things for act in acts]
    items += [{"Text": f"Some {thing} could {act}.", "Obligation": False} for thing in things for act in acts]
    items[-1] = items[0]
    file = tmp_path / "labelled.json"
    file.write_text(json.dumps(items))
    return file


def test_training_writes_a_model_that_loads_and_works(labelled, tmp_path):
    out = tmp_path / "new" / "tiny"
    report = train_obligations(labelled, out)
    assert sorted(file.name for file in out.iterdir()) == ["MODEL.json", "README.md", "weights.safetensors"]
    assert (report.n_train, report.n_test, report.n_duplicates) == (48, 12, 1)
    assert report.shipped.f1 == 1.0
    trained = TfidfObligationClassifier(str(out))
    assert trained.info.name == "tiny"
    assert trained.info.fingerprint == check_model(out, "obligations")
    assert trained.classify(["All clubs must keep records.", "Some clubs could keep records."]) == [True, False]
    assert f"({report.shipped.n_fresh})" in (out / "README.md").read_text()
    assert "F1 on the 12 test sentences: 1.0000" in str(report)


@pytest.mark.long
def test_training_twice_gives_the_same_weights(labelled, tmp_path):
    for name in ("one", "two"):
        train_obligations(labelled, tmp_path / name)
    one, two = (load_weights(tmp_path / name / "weights.safetensors") for name in ("one", "two"))
    assert one.vocabulary.keys() == two.vocabulary.keys()
    assert probability(one, "All ships must pay.") == pytest.approx(probability(two, "All ships must pay."), abs=1e-6)


def test_a_relative_out_folder_with_an_embedded_name_is_the_one_that_is_measured(labelled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = train_obligations(labelled, Path("obligations-tfidf"))
    assert report.n_ngrams == len(load_weights(tmp_path / "obligations-tfidf" / "weights.safetensors").vocabulary)
    assert report.shipped.f1 == 1.0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "holds no list of sentences"),
        ('{"Text": "x"}', "holds no list of sentences"),
        ('[{"Text": "x", "Obligation": "yes"}]', "Item 0"),
        ('[{"Text": null, "Obligation": true}]', "Item 0"),
        ('["x"]', "Item 0"),
    ],
)
def test_unusable_data_is_refused(tmp_path, content, message):
    file = tmp_path / "data.json"
    file.write_text(content)
    with pytest.raises(CorpusError, match=message):
        read_labelled_sentences(file)


def test_missing_data_is_refused(tmp_path):
    with pytest.raises(CorpusError, match="Give the path with --data"):
        train_obligations(tmp_path / "none.json", tmp_path / "out")


def test_data_with_one_label_only_is_refused_and_writes_nothing(tmp_path):
    file = tmp_path / "data.json"
    file.write_text(json.dumps([{"Text": f"Ship {n} must sail.", "Obligation": True} for n in range(20)]))
    with pytest.raises(CorpusError, match="sentences of both kinds"):
        train_obligations(file, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("labels", "found", "expected"),
    [
        ([], [], 0.0),
        ([False], [False], 0.0),
        ([True], [True], 1.0),
        ([True, True, False, False], [True, False, True, False], 2 * 1 / (2 * 1 + 1 + 1)),
    ],
)
def test_f1(labels, found, expected):
    assert f1_score(labels, found) == expected


@pytest.mark.data
def test_the_embedded_weights_on_the_reference_split(classifier, shared_data):
    """The reference split: 80/20, seed 42; the figure of the model card."""
    from sklearn.model_selection import train_test_split

    sentences = read_labelled_sentences(shared_data / "obligations" / "ObligationClassificationDataset.json")
    assert len(sentences) == 2_296
    _, test = train_test_split(sentences, test_size=0.2, random_state=42)
    found = classifier.classify([sentence.text for sentence in test])
    assert f1_score([sentence.obligation for sentence in test], found) >= 0.987

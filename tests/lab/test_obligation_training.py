"""Training the obligation classifier: its data, what is written and reported, and what is refused."""

import json
from pathlib import Path

import pytest

from ragqa.errors import CorpusError
from ragqa.lab.labelled import LabelledSentence, own_sentences, read_labelled_sentences
from ragqa.lab.training.obligations import held_out_sentences, measure_obligations, train_obligations, without_duty
from ragqa.models import check_model
from ragqa.scoring.repass.obligations import TfidfObligationClassifier, load_weights, probability


def test_the_added_sentences_and_the_probe_do_not_overlap():
    everything = [row.text for origin in ("added", "probe") for row in own_sentences(origin)]
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
    card = train_obligations(labelled, out)
    assert sorted(file.name for file in out.iterdir()) == ["MODEL.json", "README.md", "weights.safetensors"]
    assert card.figures[1][:2] == ("F1, test part (12 sentences)", "1.0000")
    assert "The data set repeats 1 texts" in card.figures_note
    assert "The train part (48 sentences)" in card.data
    trained = TfidfObligationClassifier(str(out))
    assert trained.info.name == "tiny"
    assert trained.info.fingerprint == check_model(out, "obligations")
    assert trained.classify(["All clubs must keep records.", "Some clubs could keep records."]) == [True, False]
    assert (out / "README.md").read_text() == str(card)


def test_training_twice_gives_the_same_weights(labelled, tmp_path):
    for name in ("one", "two"):
        train_obligations(labelled, tmp_path / name)
    one, two = (load_weights(tmp_path / name / "weights.safetensors") for name in ("one", "two"))
    assert one.vocabulary.keys() == two.vocabulary.keys()
    assert probability(one, "All ships must pay.") == pytest.approx(probability(two, "All ships must pay."), abs=1e-6)


def test_a_relative_out_folder_with_an_embedded_name_is_the_one_that_is_measured(labelled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    card = train_obligations(labelled, Path("obligations-tfidf"))
    n_ngrams = len(load_weights(tmp_path / "obligations-tfidf" / "weights.safetensors").vocabulary)
    assert f"({n_ngrams:,} of them)" in card.use
    assert card.figures[1][1] == "1.0000"


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
    sentences = [LabelledSentence("", label) for label in labels]
    assert measure_obligations(lambda texts: found, sentences).f1 == expected


@pytest.mark.data
def test_the_embedded_weights_on_the_reference_split(shared_data):
    """The reference split: 80/20, seed 42; the figure of the model card."""
    file = shared_data / "obligations" / "ObligationClassificationDataset.json"
    assert len(read_labelled_sentences(file)) == 2_296
    assert measure_obligations(TfidfObligationClassifier().classify, held_out_sentences(file)).f1 >= 0.987

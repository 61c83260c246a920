"""Training the classifier of strength: the labels are found again, the figures are right, the weights repeat."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file

from ragqa.errors import CorpusError
from ragqa.lab import strengths
from ragqa.lab.labelled import own_sentences, rulebook_sentences
from ragqa.lab.strengths import FILE, StrengthSentence, digest, labelled_strengths
from ragqa.lab.training.packing import pack_adapter
from ragqa.lab.training.strength import Binding, Sample, StrengthTraining, samples_of, train_strength
from ragqa.models import resolve_model
from ragqa.scoring.strength import COLUMNS, StrengthClassifier, load_strength
from ragqa.types.scores import Strength

MUST, NONE, MAY = Strength.MUST, Strength.NONE, Strength.MAY


def test_no_text_of_others_is_in_the_file_and_no_document_is_in_both_parts():
    rows = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    assert len({row["document"] for row in rows}) == len(rows)
    others = [row for row in rows if "/" in row["document"].partition("/")[2]]
    assert len(others) > 60
    assert all(len(key) == 16 and " " not in key for row in others for key in row["labels"])
    assert sum(len(row["labels"]) for row in rows if row["is_test"]) >= 300


def test_labelled_texts_are_found_again_by_their_hashes(tmp_path, monkeypatch):
    folder = tmp_path / "documents" / "made"
    folder.mkdir(parents=True)
    (folder / "rules.txt").write_text("A firm must:\n(a) act at once; and\n(b) keep   books.\n\nIt may rest.\n")
    wanted = {"A firm must keep books": "must", "It may rest.": "may"}
    labels = {digest(text): label for text, label in wanted.items()}
    rows = [
        {"document": "documents/made/rules.txt", "is_test": True, "labels": labels},
        {"document": "rulebook/1", "is_test": False, "labels": {"A day is a day.": "none"}},
    ]
    monkeypatch.setattr(strengths, "FILE", tmp_path / "labels.jsonl")
    strengths.FILE.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = labelled_strengths(tmp_path)
    assert {one.text: str(one.strength) for one in found} == wanted | {"A day is a day.": "none"}
    assert {one.document for one in found if one.is_test} == {"documents/made/rules.txt"}
    (folder / "rules.txt").write_text("All is new.")
    with pytest.raises(CorpusError, match="2 of its 2 labelled texts were not found"):
        labelled_strengths(tmp_path)


def test_a_text_is_the_same_by_its_letters_and_digits():
    assert digest("• Keep  a log | of 3 days.") == digest("keep a log of 3 days") != digest("Keep a log of 30 days.")


@pytest.mark.data
@pytest.mark.slow
def test_every_labelled_text_is_found_in_the_data(shared_data):
    n_labels = sum(len(json.loads(line)["labels"]) for line in FILE.read_text(encoding="utf-8").splitlines())
    assert len(labelled_strengths(shared_data)) == n_labels


def test_figures():
    found = Binding.of([MUST, MUST, NONE, MAY], [MUST, NONE, MUST, MAY])
    assert (found.precision, found.recall, found.f1, found.strengths) == (0.5, 0.5, 0.5, 0.5)
    assert Binding.of([NONE], [NONE]).f1 == 0.0


def test_samples_are_the_training_part_and_our_own_sentences_by_whether_they_bind():
    sentences = [
        StrengthSentence("All ships must report.", MUST, "one"),
        StrengthSentence("Ships may report.", MAY, "two", is_test=True),
    ]
    first, *own = samples_of(sentences)
    assert first == Sample("All ships must report.", (COLUMNS.index(MUST),))
    assert len(own) == len(own_sentences("added"))
    assert {one.columns for one in own} == {(0, 1, 2), (3, 4, 5)}


def test_training_learns_resumes_and_gives_the_same_weights(tmp_path):
    things = ("ships", "banks", "schools", "farms", "trains", "clubs", "mines", "shops")
    samples = [Sample(f"All {thing} must report.", (0,)) for thing in things]
    samples += [Sample(f"Those {thing} report.", (3, 4, 5)) for thing in things]
    training = StrengthTraining(epochs=25, batch_size=8, n_layers=2, rank=2, learning_rate=1e-2, warmup_steps=1)
    losses = [one.loss for one in train_strength(training, samples, tmp_path / "whole")]
    assert losses[-1] < 0.3
    for stop in (20, None):
        last = list(train_strength(replace(training, stop_after=stop), samples, tmp_path / "parts"))[-1]
    assert last.step == last.steps == 50
    whole, parts = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "parts"))
    assert max(np.abs(whole[name].astype(float) - parts[name]).max() for name in whole) < 1e-2
    model = StrengthClassifier(str(tmp_path / "whole"))
    assert [one.binds for one in model.strengths(["All mills must report.", "Those mills report."])] == [True, False]


def test_the_packed_model_is_an_adapter_that_reads_with_the_tokenizer_of_its_body(tmp_path):
    samples = [Sample("All ships must report.", (0,)), Sample("Ships report.", (5,))] * 4
    training = StrengthTraining(epochs=1, batch_size=4, n_layers=2, rank=2)
    list(train_strength(training, samples, tmp_path / "trained"))
    body = shutil.copytree(resolve_model("nli-minilm-l6"), tmp_path / "nli-minilm-l6")
    pack_adapter(tmp_path / "trained", body, 2, tmp_path / "packed")
    assert not (tmp_path / "packed" / "tokenizer.json").exists()
    assert sum(file.stat().st_size for file in (tmp_path / "packed").iterdir()) < 100_000
    trained, packed = (StrengthClassifier(str(tmp_path / name)) for name in ("trained", "packed"))
    texts = ["All ships must report.", "No ship may sail."]
    logits = [one._classifier.logits([(text, "") for text in texts]) for one in (trained, packed)]
    assert np.abs(logits[0] - logits[1]).max() < 0.02


def test_the_embedded_model_on_our_own_sentences():
    """The probe of RePASs' classifier and the fifty of the rulebook: never trained on."""
    for sentences in (own_sentences("probe"), rulebook_sentences()):
        labels = [MUST if one.obligation else NONE for one in sentences]
        assert Binding.of(labels, load_strength().strengths([one.text for one in sentences])).f1 >= 0.95

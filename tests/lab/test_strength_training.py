"""Training the classifier of strength: the labels are found again, the figures are right, the weights repeat."""

import json

import numpy as np
import pytest

from ragqa.errors import CorpusError
from ragqa.lab import strengths
from ragqa.lab.labelled import LabelledSentence, own_sentences, rulebook_sentences
from ragqa.lab.strengths import FILE, StrengthSentence, digest, labelled_strengths
from ragqa.lab.training.strength import Binding, fit
from ragqa.scoring.strength import load_strength
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


def test_training_tells_what_binds_and_gives_the_same_weights_twice():
    things = ("ships", "banks", "schools", "farms", "trains", "clubs")
    train = [StrengthSentence(f"All {thing} must report.", MUST, thing) for thing in things]
    train += [StrengthSentence(f"Some {thing} may report.", MAY, thing) for thing in things]
    train += [StrengthSentence(f"Those {thing} report.", NONE, thing) for thing in things]
    further = [LabelledSentence(f"The {thing} must pay.", obligation=True, weight=0.1) for thing in things]
    one, other = fit(train, further), fit(train, further)
    assert one.rows == other.rows
    assert np.array_equal(one.numbers, other.numbers)
    texts = ("All mills must report.", "Some mills may report.", "Those mills report.")
    assert [one.strength(text) for text in texts] == [MUST, MAY, NONE]


def test_the_embedded_weights_on_our_own_sentences():
    """The probe of RePASs' classifier and the fifty of the rulebook: never trained on."""
    for sentences, least in ((own_sentences("probe"), 0.9), (rulebook_sentences(), 0.9)):
        labels = [MUST if one.obligation else NONE for one in sentences]
        assert Binding.of(labels, [load_strength().strength(one.text) for one in sentences]).f1 >= least

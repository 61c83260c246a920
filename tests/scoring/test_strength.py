"""How strongly a sentence binds: the embedded model on plain cases, what it remembers, folders of other models."""

import json
import shutil

import pytest

from ragqa.errors import ModelError
from ragqa.models import resolve_model
from ragqa.scoring import strength as module
from ragqa.scoring.strength import MODEL, StrengthClassifier, load_strength, strength_of, strengths_of
from ragqa.types.scores import Strength


@pytest.mark.parametrize(
    ("text", "strength"),
    [
        ("A firm must act at once.", "must"),
        ("The operator shall keep records of every order for six years.", "must"),
        ("The firm must not hold the money of others.", "must not"),
        ("No member may vote twice.", "must not"),
        ("An agent may only do so with the client's consent.", "may only"),
        ("Firms should keep a log.", "should"),
        ("The Regulator may impose a fine.", "may"),
        ("“Client” means a person who pays for a service.", "none"),
        ("For the purposes of this rule an offer shall be deemed to be a promise.", "none"),
        ("These Rules take effect on 1 January 2026.", "none"),
        ("OUTSOURCING OF FUNCTIONS", "none"),
        ("Change each password before its first use.", "must"),
        ("Keys may be lent out only with the consent of the warden.", "may only"),
        ("Consent expires after two years.", "none"),
        (" ", "none"),
    ],
)
def test_the_embedded_model_knows_duties_from_what_binds_nobody(text, strength):
    assert strength_of(text) == strength


def test_what_binds_and_what_is_listed():
    assert [one for one in Strength if one.binds] == ["must", "must not", "may only"]
    assert [one for one in Strength if one.is_listed and not one.binds] == ["should"]


def test_texts_are_read_once_whatever_their_white_space(monkeypatch):
    model = load_strength()
    texts = ("A ship must carry lamps at sea.", "A  ship must\ncarry lamps at sea.", "")
    assert strengths_of(texts) == [Strength.MUST, Strength.MUST, Strength.NONE]
    monkeypatch.setattr(model, "_classifier", None)  # a further reading would fail
    assert strengths_of(texts[::-1]) == [Strength.NONE, Strength.MUST, Strength.MUST]
    assert strengths_of([]) == []


def test_the_oldest_texts_are_forgotten(monkeypatch):
    monkeypatch.setattr(module, "REMEMBERED", 2)
    model = StrengthClassifier()
    model.strengths(["A", "B", "C"])
    assert list(model._known) == ["B", "C"]


def test_a_model_of_other_labels_or_another_kind_is_refused(tmp_path):
    with pytest.raises(ModelError, match="kind"):
        StrengthClassifier("nli-minilm-l6")
    folder = shutil.copytree(resolve_model("nli-minilm-l6"), tmp_path / "other")
    manifest = json.loads((folder / "MODEL.json").read_text()) | {"kind": "strength"}
    (folder / "MODEL.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelError, match="expected the labels must, must not, .* found contradiction, entailment"):
        StrengthClassifier(str(folder))
    assert load_strength() is load_strength(MODEL)

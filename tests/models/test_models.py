"""The registry: names, fingerprints, and weights that are not the announced ones."""

import hashlib
import json
import re

import pytest

import ragqa.models
from ragqa.errors import ModelError
from ragqa.models import ADAPTERS, EMBEDDED, check_model, fingerprint, resolve_model

WEIGHTS = b"some weights"
SHA256 = hashlib.sha256(WEIGHTS).hexdigest()


@pytest.fixture
def folder(tmp_path):
    """A small model folder as the embedded ones are."""
    (tmp_path / "model.safetensors").write_bytes(WEIGHTS)
    manifest = {"name": "small", "kind": "nli", "weights": "model.safetensors", "sha256": SHA256}
    (tmp_path / "MODEL.json").write_text(json.dumps(manifest))
    return tmp_path


@pytest.mark.parametrize("name", [*EMBEDDED, *ADAPTERS])
def test_embedded_models_have_weights_card_and_manifest(name):
    folder = resolve_model(name)
    manifest = json.loads((folder / "MODEL.json").read_text())
    assert manifest["name"] == name
    assert re.fullmatch("[0-9a-f]{64}", manifest["sha256"])
    assert (folder / manifest["weights"]).is_file()
    card = (folder / "README.md").read_text()
    assert card.startswith(f"# {name}")
    assert "## Weak points" in card


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("nli-minilm-l6", "nli"),
        ("obligations-tfidf", "obligations"),
        ("ranker-adgm", "ranker"),
        ("ranker-adgm-large", "ranker"),
        ("encoder-adgm", "adapter"),
    ],
)
def test_embedded_weights_are_the_announced_ones(name, kind):
    folder = resolve_model(name)
    assert check_model(folder, kind) == json.loads((folder / "MODEL.json").read_text())["sha256"]


def test_no_model_is_stored_as_pickle():
    stored = [file for name in (*EMBEDDED, *ADAPTERS) for file in resolve_model(name).iterdir()]
    assert {file.suffix for file in stored} <= {".json", ".md", ".safetensors", ".txt"}


def test_a_local_folder_is_resolved(folder, monkeypatch):
    assert resolve_model(str(folder)) == folder.resolve()
    monkeypatch.chdir(folder.parent)
    assert resolve_model(folder.name) == folder.resolve()


def test_an_embedded_name_wins_over_a_folder_of_that_name(tmp_path, monkeypatch):
    (tmp_path / "nli-minilm-l6").mkdir()
    monkeypatch.chdir(tmp_path)
    assert resolve_model("nli-minilm-l6").parent.name == "models"
    assert resolve_model("./nli-minilm-l6") == (tmp_path / "nli-minilm-l6").resolve()


@pytest.mark.parametrize("name", ["", "no-such-model", "cross-encoder/nli-deberta-v3-xsmall", "\u202eodd\n"])
def test_an_unknown_name_is_answered_with_the_names_there_are(name):
    with pytest.raises(ModelError, match="embedded 'nli-minilm-l6'"):
        resolve_model(name)


def test_a_file_is_no_model(folder):
    with pytest.raises(ModelError, match="No model"):
        resolve_model(str(folder / "MODEL.json"))


def test_a_missing_embedded_model_says_reinstall(monkeypatch, tmp_path):
    monkeypatch.setattr(ragqa.models, "_HERE", tmp_path)
    with pytest.raises(ModelError, match="reinstall ragqa"):
        resolve_model("nli-minilm-l6")


def test_fingerprint_of_a_folder_and_of_its_weights_file(folder):
    assert fingerprint(folder) == fingerprint(folder / "model.safetensors") == SHA256


def test_fingerprint_of_a_sharded_model(tmp_path):
    (tmp_path / "model-2.safetensors").write_bytes(WEIGHTS[5:])
    (tmp_path / "model-1.safetensors").write_bytes(WEIGHTS[:5])
    assert fingerprint(tmp_path) == SHA256


def test_a_folder_without_a_manifest_has_nothing_to_compare_with(folder):
    (folder / "MODEL.json").unlink()
    assert check_model(folder, "nli") == SHA256


def test_altered_weights_are_refused_with_both_fingerprints(folder):
    (folder / "model.safetensors").write_bytes(WEIGHTS + b"!")
    found = hashlib.sha256(WEIGHTS + b"!").hexdigest()
    with pytest.raises(ModelError, match=f"expected sha256 {SHA256}, found {found}; reinstall ragqa"):
        check_model(folder, "nli")


def test_another_kind_of_model_is_refused(folder):
    with pytest.raises(ModelError, match="kind 'nli', expected 'obligations'"):
        check_model(folder, "obligations")


@pytest.mark.parametrize(
    ("text", "message"), [("{", "cannot be read as JSON"), ("[]", "JSON object, found list"), ("\xff", "as JSON")]
)
def test_a_broken_manifest_is_refused(folder, text, message):
    (folder / "MODEL.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ModelError, match=message):
        check_model(folder, "nli")


def test_an_embedded_model_without_its_manifest_is_refused(folder, monkeypatch):
    (folder / "MODEL.json").unlink()
    monkeypatch.setattr(ragqa.models, "_HERE", folder.parent)
    with pytest.raises(ModelError, match=r"no MODEL\.json.*reinstall"):
        check_model(folder, "nli")


def test_missing_weights_are_refused(folder):
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="cannot be read"):
        check_model(folder, "nli")
    (folder / "MODEL.json").unlink()
    with pytest.raises(ModelError, match=r"no \*\.safetensors weights"):
        check_model(folder, "nli")

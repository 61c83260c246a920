"""Models named by the person: local folders of other architectures, hub names, an obligation transformer, punkt."""

import os
import socket
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest

from ragqa.english.sentences import split_sentences, splitter_name
from ragqa.errors import ConfigError, ModelError
from ragqa.loading import VERIFIER, load_nli, load_obligations, load_readers
from ragqa.models import resolve_model
from ragqa.models.hub import fetch, is_hub_name
from ragqa.settings.config import ScoringConfig
from ragqa.settings.scoring import SCORING_PROFILES, scoring_from_env, scoring_with
from ragqa.types.scores import ScoringMode
from tests.scoring.repass.test_nli import numbers
from tests.support.helpers import forget_cached
from tests.support.tiny_models import PAIRS, tiny_encoding, transformers_logits, write_classifier

pytestmark = pytest.mark.model

DEBERTA = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "hidden_act": "gelu"}


@pytest.mark.parametrize(
    ("architecture", "settings"),
    [("DebertaV2", {**DEBERTA, "type_vocab_size": 0}), ("Deberta", {**DEBERTA, "type_vocab_size": 0}), ("Bert", {})],
)
def test_a_local_folder_of_another_architecture_gives_what_transformers_gives(tmp_path, architecture, settings):
    import numpy as np

    folder = write_classifier(tmp_path, ["contradiction", "neutral", "entailment"], architecture, **settings)
    scoring = ScoringConfig(entailment_model=str(folder), coverage_model=str(folder), verdict_model=str(folder))
    model, same, _, also = load_readers(scoring)
    assert model is same is also
    for (premise, hypothesis), found in zip(PAIRS, model.predict(PAIRS), strict=True):
        encoded = tiny_encoding(folder, premise, hypothesis)
        logits = transformers_logits(folder, encoded)[0].astype(float)
        expected = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        assert numbers([found]) == pytest.approx([expected[0], expected[2], expected[1]], abs=0.02)  # bf16 or fp32
    exact = load_nli(str(folder), "fp32")
    for (premise, hypothesis), found in zip(PAIRS, exact.predict(PAIRS), strict=True):
        logits = transformers_logits(folder, tiny_encoding(folder, premise, hypothesis))[0].astype(float)
        expected = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        assert numbers([found]) == pytest.approx([expected[0], expected[2], expected[1]], abs=1e-5)


def test_the_reference_profile_is_two_models_and_the_script(tmp_path):
    entailment = write_classifier(tmp_path / "e", ["contradiction", "entailment", "neutral"], "DebertaV2", **DEBERTA)
    coverage = write_classifier(tmp_path / "c", ["CONTRADICTION", "NEUTRAL", "ENTAILMENT"], "Deberta", **DEBERTA)
    obligations = write_classifier(tmp_path / "o", ["LABEL_0", "LABEL_1"])
    scoring = scoring_with(SCORING_PROFILES["reference"], str(entailment), str(coverage), str(obligations))
    assert scoring.mode is ScoringMode.SCRIPT
    one, two, classifier, verdicts = load_readers(scoring)
    assert (one.info.name, two.info.name) == ("e", "c")
    assert verdicts.info.name == VERIFIER
    assert two.info.precision.endswith("joined input")
    assert one.predict(PAIRS[:2]) != two.predict(PAIRS[:2])
    assert classifier.info.name == "o"
    words = ["firms must keep records", "the sky is blue", "firms must keep records"]
    found = classifier.classify(words)
    assert found[0] == found[2]
    assert classifier.classify([]) == []
    import numpy as np

    for text, obliges in zip(words, found, strict=True):
        ids = np.array([[2, *tiny_ids(obligations, text), 3]])
        inputs = {"input_ids": ids, "attention_mask": ids * 0 + 1, "token_type_ids": ids * 0}
        assert bool(transformers_logits(obligations, inputs)[0].argmax() == 1) == obliges


def tiny_ids(folder, text):
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text, add_special_tokens=False).ids


def test_models_of_the_environment():
    environ = {"RAGQA_SCORING_PROFILE": "reference", "RAGQA_OBLIGATION_MODEL": "./mine"}
    scoring = scoring_from_env(environ)
    assert scoring.entailment_model == "cross-encoder/nli-deberta-v3-xsmall"
    assert scoring.obligation_model == "./mine"
    assert scoring_from_env({"RAGQA_ENTAILMENT_MODEL": "a/b"}).coverage_model == "a/b"
    assert scoring_from_env({}) == ScoringConfig()
    with pytest.raises(ConfigError, match="embedded or reference"):
        scoring_from_env({"RAGQA_SCORING_PROFILE": "other"})


@pytest.mark.parametrize(
    ("labels", "column"),
    [
        (["LABEL_0", "LABEL_1"], 1),
        (["Obligation", "Other"], 0),
        (["no", "yes"], 1),
        (["a", "b"], None),
        (["obligation", "yes"], None),
        (["obligation", "other", "more"], None),
    ],
)
def test_the_obligation_label_is_read_or_refused(labels, column, tmp_path):
    from ragqa.scoring.repass.obligations import obligation_column

    config = {"id2label": dict(enumerate(labels))}
    if column is None:
        with pytest.raises(ModelError, match="expected two, one of them 'obligation'"):
            obligation_column(config, tmp_path)
    else:
        assert obligation_column(config, tmp_path) == column


# The hub ------------------------------------------------------------------------------------------------------------


def test_a_hub_name_is_told_from_a_path():
    assert is_hub_name("cross-encoder/nli-deberta-v3-xsmall")
    assert not any(map(is_hub_name, ["nli-minilm-l6", "./models/x", "/models/x", "a/b/c", "~/x", ""]))


@pytest.mark.parametrize(("kind", "alternative"), [("nli", "'nli-minilm-l6'"), ("obligations", "'obligations-tfidf'")])
def test_a_hub_model_that_is_not_to_be_had_is_one_clear_message(kind, alternative):
    with pytest.raises(ModelError, match="'nobody/nothing' is not on this machine and could not be fetched") as caught:
        resolve_model("nobody/nothing", kind)
    assert alternative in str(caught.value)


def test_verdicts_may_rest_on_a_model_of_their_own(tmp_path):
    other = write_classifier(tmp_path / "reader", ["contradiction", "entailment", "neutral"], "DebertaV2", **DEBERTA)
    scoring = scoring_from_env({"RAGQA_VERDICT_MODEL": str(other)})
    assert (scoring.entailment_model, scoring.verdict_model) == ("nli-minilm-l6", str(other))
    entailment, coverage, _, verdicts = load_readers(scoring)
    assert entailment is coverage
    assert verdicts.info.name == "reader"


def test_the_reference_profile_says_what_is_missing():
    with pytest.raises(ModelError, match=r"cross-encoder/nli-deberta-v3-xsmall.*nli-minilm-l6"):
        load_readers(SCORING_PROFILES["reference"])
    with pytest.raises(ModelError, match=r"obligation-classifier-legalbert.*obligations-tfidf"):
        load_obligations(SCORING_PROFILES["reference"])


def test_a_hub_that_never_answers_is_given_up(tmp_path):
    """It takes the connection and says nothing, as some firewalls do; in a process of its own, for the endpoint."""
    code = (
        "from ragqa.models import hub\n"
        "from ragqa.errors import ModelError\n"
        "hub.TIMEOUT_SECONDS = 0.5\n"
        "try:\n"
        "    hub.fetch('some/model', 'use another')\n"
        "except ModelError as error:\n"
        "    assert \"'some/model' is not on this machine and could not be fetched\" in str(error), error\n"
        "    print('given up')\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        environ = os.environ | {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=60, check=False
        )
    assert done.stdout == "given up\n", done.stderr


def test_a_cached_model_is_used_and_pickled_weights_are_refused(tmp_path, monkeypatch):
    asked = []

    def snapshot(name, *, local_files_only, **_):
        asked.append(local_files_only)
        return str(tmp_path)

    hub = SimpleNamespace(snapshot_download=snapshot, model_info=lambda name, timeout: None)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(ModelError, match="pickled ones are never loaded"):
        fetch("some/model", "use another")
    assert asked == [True, False]
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert fetch("some/model", "use another") == tmp_path
    assert asked == [True, False, True]


# Punkt --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def nltk(monkeypatch):
    """NLTK as far as it is used, splitting after every full stop."""
    from ragqa.english import sentences

    class PunktTokenizer:
        def __init__(self, language):
            assert language == "english"

        def span_tokenize(self, text):
            start = 0
            for position, character in enumerate(text):
                if character == ".":
                    yield start, position + 1
                    start = position + 1

    module = ModuleType("nltk.tokenize")
    module.PunktTokenizer = PunktTokenizer
    monkeypatch.setitem(sys.modules, "nltk", ModuleType("nltk"))
    monkeypatch.setitem(sys.modules, "nltk.tokenize", module)
    monkeypatch.setattr(sentences, "version", lambda name: f"9.9 of {name}")
    forget_cached(sentences)
    yield
    forget_cached(sentences)


def test_punkt_splits_where_it_is_installed(nltk):
    spans = split_sentences("  No. 5 is old. It stands.", "punkt")
    assert [span.text for span in spans] == ["No.", "5 is old.", "It stands."]
    assert all(span.text == "  No. 5 is old. It stands."[span.start : span.end] for span in spans)
    assert splitter_name("punkt") == "NLTK punkt 9.9 of nltk"


def test_punkt_that_is_not_installed_says_how_to_install_it(monkeypatch):
    from ragqa.english import sentences

    forget_cached(sentences)
    monkeypatch.setitem(sys.modules, "nltk.tokenize", None)
    for use in (lambda: split_sentences("A. B.", "punkt"), lambda: splitter_name("punkt")):
        with pytest.raises(ConfigError, match=r"pip install nltk.*or use nupunkt"):
            use()
    with pytest.raises(ConfigError, match="must be nupunkt or punkt"):
        split_sentences("A.", "spacy")

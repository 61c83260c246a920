"""Models are loaded side by side, and no timing of precisions counts the work of another load."""

import threading

import pytest

from ragqa import loading
from ragqa.errors import ModelError
from ragqa.settings.config import ScoringConfig
from ragqa.settings.indexing import NO_ENCODER
from tests.support.fakes import FakeEncoder


@pytest.fixture
def beside(monkeypatch):
    """The selector loads only once the encoder does; what loading it gives or raises may be set."""
    encoder_loads, made = threading.Event(), ["the selector"]

    def load_encoder(name, precision="auto", paths=None):
        encoder_loads.set()
        return FakeEncoder()

    def selector(name, precision):
        assert encoder_loads.wait(60)
        if isinstance(made[0], Exception):
            raise made[0]
        return made[0]

    monkeypatch.setattr(loading, "load_encoder", load_encoder)
    monkeypatch.setattr(loading, "load_readers", lambda scoring, paths: ("nli", "nli", "obligations", "verdicts"))
    monkeypatch.setattr(loading, "CrossEncoderReranker", selector)
    return made


@pytest.mark.parametrize("encoder", ["all-MiniLM-L6-v2", NO_ENCODER])
def test_the_selector_is_loaded_beside_the_others_and_the_encoder_once(beside, encoder):
    models = loading.load_models(encoder, ScoringConfig())
    assert (models.selector, models.entailment, models.verdicts) == ("the selector", "nli", "verdicts")
    assert models.sentences is models.encoder


def test_a_selector_that_cannot_be_loaded_is_said(beside):
    beside[0] = ModelError("its weights are gone")
    with pytest.raises(ModelError, match="gone"):
        loading.load_models("all-MiniLM-L6-v2", ScoringConfig())

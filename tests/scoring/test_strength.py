"""How strongly a sentence binds: what is weighed, the embedded weights on plain cases, files that are none."""

import numpy as np
import pytest

from ragqa.errors import ModelError
from ragqa.scoring.strength import COLUMNS, StrengthWeights, load_strength, patterns, read_weights, write_weights
from ragqa.types.scores import Strength


def test_sentences_of_one_build_have_one_outline():
    one, other = patterns("Each firm must keep books."), patterns("Every  licensed bank must file returns.")
    outline = "o N must V N"
    assert outline in one
    assert outline in other
    assert "w must keep" in one - other


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
        (" ", "none"),
    ],
)
def test_the_embedded_weights_know_duties_from_what_binds_nobody(text, strength):
    assert load_strength().strength(text) == strength


def test_what_binds_and_what_is_listed():
    assert [one for one in Strength if one.binds] == ["must", "must not", "may only"]
    assert [one for one in Strength if one.is_listed and not one.binds] == ["should"]


def test_weights_are_written_and_read(tmp_path):
    numbers = np.zeros((2, 1 + len(COLUMNS)), np.float32)
    numbers[0, 0] = 2.0
    intercepts = np.array([-1.0, *(0.0 for _ in COLUMNS)], np.float32)
    write_weights(StrengthWeights({"w shall": 0, "o N": 1}, numbers, intercepts), tmp_path / "some")
    found = read_weights(tmp_path / "some")
    assert found.rows == {"w shall": 0, "o N": 1}
    assert [found.strength(text).binds for text in ("It shall.", "It can.")] == [True, False]


@pytest.mark.parametrize("content", [b"", b"no weights"])
def test_a_file_that_holds_no_weights_is_refused(tmp_path, content):
    (tmp_path / "some").write_bytes(content)
    with pytest.raises(ModelError, match="cannot be read as weights of strength"):
        read_weights(tmp_path / "some")
    with pytest.raises(ModelError, match="cannot be read"):
        read_weights(tmp_path / "missing")

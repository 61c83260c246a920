"""A command echoed as it would be typed again."""

import shlex
from pathlib import Path

from ragqa.lab.model_folder import command_line


def test_options_are_echoed_in_order_repeated_and_left_out_where_not_given():
    options = {"index": ("a", "b"), "fold": "", "limit": None, "lr": 5e-4, "step": 1 / 3, "seed": 0, "test": []}
    assert command_line("train retriever", options) == (
        "ragqa train retriever --index=a --index=b --lr=0.0005 --step=0.333333333333 --seed=0"
    )


def test_values_are_quoted_for_a_shell():
    found = command_line("tune", {"questions": Path("my files/q.json"), "write": "$HOME"})
    assert shlex.split(found) == ["ragqa", "tune", "--questions=my files/q.json", "--write=$HOME"]
    assert "'--write=$HOME'" in found

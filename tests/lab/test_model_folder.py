"""What stands beside trained weights: the model card, and a command echoed as it would be typed again."""

import shlex
from pathlib import Path

from ragqa.lab.training.model_folder import ModelCard, command_line, files_table, write_card
from ragqa.models import fingerprint

CARD = ModelCard(
    title="tiny: which is it?",
    use="A tiny model.",
    figures=[("ranking", "R@10"), ("fused", "0.5000")],
    figures_note="On three questions.",
    data="Two pairs.",
    command="ragqa train reranker --index=a",
    seed=7,
    sources=[("file", "sha256"), ("q.json", "abc")],
    further="Nothing else.",
    limits="English only.",
)


def test_a_card_says_all_of_it_in_order(tmp_path):
    write_card(tmp_path, CARD)
    text = (tmp_path / "README.md").read_text()
    parts = (
        *("# tiny: which is it?\n", "A tiny model.", "## Figures", "| ranking | R@10 |\n|---|---|\n| fused | 0.5000 |"),
        *("On three questions.", "## Trained on", "Two pairs.", "| q.json | abc |", "Nothing else.", "with seed 7 by:"),
        *(
            "\n    ragqa train reranker --index=a\n",
            "## Weak points\n\nEnglish only.",
            "## Licence\n\nragqa is licensed",
        ),
    )
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_what_was_not_measured_is_said_and_what_is_not_known_is_left_out():
    card = str(
        ModelCard(
            title="x",
            use="u",
            figures=[("questions", "before", "after")],
            figures_note="n",
            data="d",
            command="c",
            seed=1,
        )
    )
    assert "|---|---|---|\n| not measured |  |  |" in card
    assert "Weak points" not in card
    assert "\n\n\n" not in card


def test_files_are_listed_with_their_digest(tmp_path):
    file = tmp_path / "q.json"
    file.write_text("[]")
    assert files_table([file], ("corpus", "f00")) == [
        ("file", "sha256"),
        ("q.json", fingerprint(file)),
        ("corpus", "f00"),
    ]


def test_options_are_echoed_in_order_repeated_and_left_out_where_not_given():
    options = {"index": ("a", "b"), "fold": "", "limit": None, "lr": 5e-4, "stop_after": 3, "seed": 0, "test": []}
    assert command_line("train retriever", options | {"step": 1 / 3}) == (
        "ragqa train retriever --index=a --index=b --lr=0.0005 --stop-after=3 --seed=0 --step=0.333333333333"
    )


def test_values_are_quoted_for_a_shell():
    found = command_line("tune", {"questions": Path("my files/q.json"), "write": "$HOME"})
    assert shlex.split(found) == ["ragqa", "tune", "--questions=my files/q.json", "--write=$HOME"]
    assert "'--write=$HOME'" in found

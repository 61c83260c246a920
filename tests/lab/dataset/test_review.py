"""Labels: who said what, what holds, how far reviewers agree, and labels taken away and back."""

import json

import pytest

from ragqa.errors import ConfigError, CorpusError
from ragqa.lab.dataset.review import (
    ADJUDICATOR,
    LABELS,
    agreement,
    cohen,
    decisions,
    give,
    krippendorff,
    labels_in,
    pairs_of,
    read_given,
)
from ragqa.lab.dataset.stages import SPLIT, as_lines


@pytest.fixture
def folder(tmp_path):
    rows = [{"id": f"q{n}", "question": "What?", "passages": ["a", "b"][: 1 + n % 2]} for n in range(10)]
    (tmp_path / SPLIT).write_text(as_lines(rows))
    return tmp_path


def test_the_latest_label_counts_and_a_torn_line_does_not(folder):
    give(folder, [(("q1", "a"), "Ann", "relevant"), (("q1", "a"), "Ann", "null"), (("q1", "a"), "Bo", "null")])
    assert labels_in(folder) == {("q1", "a"): {"Ann": "null", "Bo": "null"}}
    with (folder / LABELS).open("a") as file:
        file.write('{"question": "q1", "pas')
    assert labels_in(folder) == {("q1", "a"): {"Ann": "null", "Bo": "null"}}
    give(folder, [(("q2", "a"), "Ann", "relevant")])
    assert labels_in(folder)["q2", "a"] == {"Ann": "relevant"}
    assert len((folder / LABELS).read_text().splitlines()) == 4


@pytest.mark.parametrize(
    "line",
    ["[" * 100_000, json.dumps({"question": "q1", "passage": "a", "reviewer": "\ud800", "label": "null"})],
)
def test_a_line_that_cannot_be_read_or_stored_is_named(folder, line):
    with pytest.raises(CorpusError, match="given, line 1: expected .question, passage"):
        read_given(folder, line + "\n", "given")


def test_a_damaged_line_within_is_named(folder):
    (folder / LABELS).write_text('{"question": "q1"}\n{}\n')
    with pytest.raises(CorpusError, match=r"labels.jsonl, line 1: expected .question, passage"):
        labels_in(folder)


def test_what_holds_is_what_all_say_or_what_was_adjudicated(folder):
    give(folder, [(("q1", "a"), who, label) for who, label in (("Ann", "relevant"), ("Bo", "indirect"))])
    give(folder, [(("q2", "a"), "Ann", "irrelevant"), (("q3", "a"), "Ann", "null"), (("q3", "a"), "Bo", "null")])
    assert decisions(folder) == {"q2 a": "irrelevant", "q3 a": "null"}
    give(folder, [(("q1", "a"), ADJUDICATOR, "relevant")])
    assert decisions(folder)["q1 a"] == "relevant"
    assert agreement(labels_in(folder)).n == 2


def test_labels_and_reviewers_that_are_none(folder, tmp_path):
    for reviewer, label in (("Ann", "maybe"), (" ", "null")):
        with pytest.raises(ConfigError, match="expected a reviewer's name and one of relevant"):
            give(folder, [(("q1", "a"), reviewer, label)])
    with pytest.raises(ConfigError, match="run `ragqa dataset make` to its end"):
        pairs_of(folder / "nothing")


def test_pairs_come_in_an_order_of_their_own_and_labels_go_out_and_in(folder, tmp_path):
    pairs = pairs_of(folder)
    assert len(pairs) == 15
    assert [pair.row["id"] for pair in pairs] != sorted(pair.row["id"] for pair in pairs)
    give(folder, [(pair.key, "Ann", "relevant") for pair in pairs])
    text = (folder / LABELS).read_text()
    (folder / LABELS).unlink()
    stray = json.dumps({"question": "other", "passage": "a", "reviewer": "Ann", "label": "null"})
    assert read_given(folder, text + stray, "mine.jsonl") == 15
    assert (folder / LABELS).read_text() == text
    for bad, words in (("{}", "mine.jsonl, line 1"), (stray, "found none")):
        with pytest.raises(CorpusError, match=words):
            read_given(folder, bad, "mine.jsonl")


def test_cohens_kappa_of_a_known_table():
    both = [("yes", "yes")] * 20 + [("yes", "no")] * 5 + [("no", "yes")] * 10 + [("no", "no")] * 15
    assert cohen(both) == pytest.approx(0.4)
    assert cohen([]) is None
    assert cohen([("a", "a")] * 3) is None


def test_krippendorffs_alpha_of_published_data():
    """Krippendorff 2011, "Computing Krippendorff's alpha-reliability", section C: nominal, four observers, .743."""
    first = "1 2 3 3 2 1 4 1 2 * * *".split()
    second = "1 2 3 3 2 2 4 1 2 5 * 3".split()
    third = "* 3 3 3 2 3 4 2 2 5 1 *".split()
    fourth = "1 2 3 3 2 4 4 1 2 5 1 *".split()
    units = [[one for one in unit if one != "*"] for unit in zip(first, second, third, fourth, strict=True)]
    assert krippendorff([unit for unit in units if len(unit) > 1]) == pytest.approx(0.743, abs=0.0005)
    assert krippendorff([["a", "a"]]) is None

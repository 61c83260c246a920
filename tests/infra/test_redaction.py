"""What looks like a key, and what is known to be one, leaves no text."""

import json

import pytest

from ragqa.infra.cleaning import plain_line, without_keys


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("bad key sk-proj-AbC*****6789.", "bad key [key]"),
        ("pa-0123456789 was refused", "[key] was refused"),
        ("Authorization: bearer abc.def", "Authorization: [key]"),
        ("postgresql://me:secret@host/db", "postgresql://[key]host/db"),
        ("http://me:sec@ret@host/v1, a@b", "http://[key]host/v1, a@b"),
        ("task-force and pa-1", "task-force and pa-1"),
        ('known s3cr"t and x', "known [key] and x"),
        ("quoted " + json.dumps('s3cr"t'), 'quoted "[key]"'),
    ],
)
def test_keys_are_cut_out(text, plain):
    assert without_keys(text, 's3cr"t', "x", "") == plain


def test_one_line_of_a_length():
    assert plain_line("two\nlines\x00 and\ttab", 100) == "two lines and tab"
    assert plain_line("y" * 10, 10) == "y" * 10
    assert plain_line("y" * 11, 10) == "y" * 9 + "…"
    assert plain_line("a key abcd1234 at the end", 12, "abcd1234") == "a key [key]…"

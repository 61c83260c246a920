import itertools

from hypothesis import given
from hypothesis import strategies as st

from ragqa.english.sentences import split_sentences


def test_sentences_are_verbatim_slices_without_surrounding_space():
    text = "  A firm must comply with Rule 4.2.1.\n\nIt must not wait. "
    assert [(s.text, s.start) for s in split_sentences(text)] == [
        ("A firm must comply with Rule 4.2.1.", 2),
        ("It must not wait.", text.index("It")),
    ]


def test_the_mark_of_a_note_after_a_full_stop_ends_the_sentence():
    text = "Checks may be made by others, as the firm thinks appropriate.37 The firm must see 3.37 The end."
    assert [span.text for span in split_sentences(text)] == [
        "Checks may be made by others, as the firm thinks appropriate.37",
        "The firm must see 3.37 The end.",
    ]


def test_a_note_in_brackets_on_its_own_line_is_no_part_of_the_next_sentence():
    text = "A firm must wait [or\nask].\n[Note: This rule is new]\nA firm must not hurry [Note: new] at all."
    assert [span.text for span in split_sentences(text)] == [
        "A firm must wait [or\nask].",
        "[Note: This rule is new]",
        "A firm must not hurry [Note: new] at all.",
    ]


def test_blank_text_has_no_sentences():
    assert split_sentences("") == split_sentences(" \n\t ") == ()


@given(st.text(max_size=200))
def test_any_text_is_sliced_in_order(text):
    spans = split_sentences(text)
    assert all(span.text == text[span.start : span.end] and span.text.strip() == span.text for span in spans)
    assert all(before.end <= after.start for before, after in itertools.pairwise(spans))
    assert "".join("".join(span.text.split()) for span in spans) == "".join(text.split())

"""Citation marks and Markdown: what is taken out of a text, and which sentence cites what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragqa.english.sentences import split_sentences
from ragqa.generation.citations import MAX_NUMBER, MAX_RANGE, CitedText, PlainLine, parse_cited_text, plain_line
from tests.support.effort import grows_no_faster


def cited(raw, n_passages=3):
    """[(sentence, citations), …], after checking what always holds."""
    return [(sentence.text, sentence.citations) for sentence in checked(raw, n_passages).sentences]


def checked(raw, n_passages=3):
    result = parse_cited_text(raw, n_passages)
    position = 0
    for sentence in result.sentences:
        assert result.text[sentence.start : sentence.end] == sentence.text == sentence.text.strip() != ""
        assert sentence.start >= position
        position = sentence.end
        assert list(sentence.citations) == sorted(set(sentence.citations))
        assert all(1 <= number <= n_passages for number in sentence.citations)
    assert list(result.rejected) == sorted(set(result.rejected))
    assert not [number for number in result.rejected if 1 <= number <= n_passages]
    return result


# Marks --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mark", "numbers"),
    [
        ("[1]", (1,)),
        ("[1][3]", (1, 3)),
        ("[3] [1]", (1, 3)),
        ("[1], [3]", (1, 3)),
        ("[1] and [3]", (1, 3)),
        ("[1, 3]", (1, 3)),
        ("[1,3,]", (1, 3)),
        ("[1; 3]", (1, 3)),
        ("[1 & 3]", (1, 3)),
        ("[1 and 3]", (1, 3)),
        ("[2-3]", (2, 3)),
        ("[1–3]", (1, 2, 3)),
        ("[3-1]", (1, 2, 3)),
        ("[1-2, 3]", (1, 2, 3)),
        ("[2, 2][2]", (2,)),
        ("[ 2 ]", (2,)),
        ("[02]", (2,)),
        ("[٢]", (2,)),
        ("[Passage 2]", (2,)),
        ("[passages 1 and 3]", (1, 3)),
        ("[Passage 1, Passage 3]", (1, 3)),
        ("[Source 2]", (2,)),
        ("[passage no. 2]", (2,)),
        ("[Passage #2]", (2,)),
        ("[^2]", (2,)),
        ("【2】", (2,)),
        ("([2])", (2,)),
        ("([1], [2])", (1, 2)),
    ],
)
@pytest.mark.parametrize("where", ["A Firm must act {}.", "A Firm must act. {}", "A Firm must act.{}"])
def test_every_form_of_a_mark(mark, numbers, where):
    assert cited(where.format(mark)) == [("A Firm must act.", numbers)]


@pytest.mark.parametrize(
    "text",
    [
        "The word [sic] stays.",
        "See [2024] 3 WLR 12 on this.",
        "See Rule 3.2.1(2) and Rule 4(1)(a).",
        "See [Rule 2] on this.",
        "See [Schedule 1] on this.",
        "See [2.1] on this.",
        "See [1:3] on this.",
        "See [1 3] on this.",
        "See pages [101-350] on this.",
        "A box [ ] and another [x] stay.",
        "An empty [] and a comma [,] stay.",
        "A price of [1000] stays.",
        "A long number [1234567890123456789] stays.",
        "A mark [1\n] over two lines stays.",
        "An open [1 stays, and so does 2] here.",
        "(1) is a paragraph and {1} is none.",
    ],
)
def test_brackets_that_are_no_marks_stay(text):
    result = checked(text)
    assert result.text == text
    assert result.rejected == ()
    assert not any(sentence.citations for sentence in result.sentences)


def test_a_large_number_cites_only_where_so_many_passages_were_given():
    number = MAX_NUMBER + 1
    assert cited(f"Yes [{number}].", number) == [("Yes.", (number,))]
    assert cited(f"Yes [{number}].", number - 1) == [(f"Yes [{number}].", ())]


def test_a_range_has_a_longest_length():
    assert cited(f"Yes [1-{MAX_RANGE}].", MAX_RANGE) == [("Yes.", tuple(range(1, MAX_RANGE + 1)))]
    assert cited(f"Yes [1-{MAX_RANGE + 1}].", 3) == [(f"Yes [1-{MAX_RANGE + 1}].", ())]


def test_numbers_that_name_no_passage_are_rejected():
    result = checked("Ann acts [9]. Ben acts [0]. Cid acts [2, 4]. Dan acts [3-5]. Eve acts [9].")
    assert result.rejected == (0, 4, 5, 9)
    assert [sentence.citations for sentence in result.sentences] == [(), (), (2,), (3,), ()]
    assert result.text == "Ann acts. Ben acts. Cid acts. Dan acts. Eve acts."


def test_without_passages_every_number_is_rejected():
    assert parse_cited_text("Yes [1].", 0).rejected == (1,)


@pytest.mark.parametrize(
    "raw", ["A Firm must act [1]. It must [", "A Firm must act [1]. It must [2", "A Firm must act [1]. It must [2, "]
)
def test_a_mark_that_a_break_cuts_off_is_taken_out(raw):
    assert cited(raw) == [("A Firm must act.", (1,)), ("It must", ())]


# Whose mark ---------------------------------------------------------------------------------------------------------


def test_a_mark_belongs_to_the_sentence_before_it_even_after_its_full_stop():
    assert cited("Firms must act. [1] They must report. [2][3] That is all.") == [
        ("Firms must act.", (1,)),
        ("They must report.", (2, 3)),
        ("That is all.", ()),
    ]


def test_a_mark_inside_a_sentence_belongs_to_it():
    assert cited("Firms must act [1] and, where asked [2], report. They may rest.") == [
        ("Firms must act and, where asked, report.", (1, 2)),
        ("They may rest.", ()),
    ]


def test_marks_at_both_places_are_joined():
    assert cited("Firms must act [3]. [1] They may rest [2].") == [
        ("Firms must act.", (1, 3)),
        ("They may rest.", (2,)),
    ]


def test_a_mark_that_opens_a_line_belongs_to_what_follows():
    assert cited("[2] Firms must act.\n[1] They must report.") == [
        ("Firms must act.", (2,)),
        ("They must report.", (1,)),
    ]


def test_marks_alone_on_a_line_belong_to_what_stands_above():
    result = checked("Firms must act.\n[1][2]\n\nThey may rest.")
    assert [sentence.citations for sentence in result.sentences] == [(1, 2), ()]


def test_marks_alone_above_everything_belong_to_the_first_sentence():
    assert cited("[1]\n\nFirms must act. They may rest.") == [("Firms must act.", (1,)), ("They may rest.", ())]


def test_marks_without_any_sentence_cite_nothing():
    assert parse_cited_text("[1]\n[7]", 3) == CitedText("", (), (7,))


# White space --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("Firms must act [1] .", "Firms must act."),
        ("Firms must act [1], then rest.", "Firms must act, then rest."),
        ("Firms[1]must act.", "Firms must act."),
        ("Firms [1]must act.", "Firms must act."),
        ("Firms[1] must act.", "Firms must act."),
        ("Firms must act (see [1]).", "Firms must act (see)."),
        ("Firms must act ([1] below).", "Firms must act (below)."),
        ("Firms must act. [1].", "Firms must act."),
        ("Firms must act.[1]. They may rest.", "Firms must act. They may rest."),
        ('They must "act" [1].', 'They must "act".'),
        ("Firms  must   act [1].", "Firms  must   act."),
        ("  Firms must act [1].  \n\n", "Firms must act."),
        ("Firms must act ([1]) [2] now.", "Firms must act now."),
        ("Café 10\u00a0% [1] – naïve\u200d 日本 [2]。", "Café 10\u00a0% – naïve\u200d 日本。"),
    ],
)
def test_white_space_is_repaired_where_a_mark_stood(raw, text):
    assert checked(raw).text == text


# Sentences and Markdown ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t"])
def test_blank_text_has_no_sentence(text):
    assert parse_cited_text(text, 3) == CitedText("", (), ())


def test_prose_is_split_by_the_one_splitter():
    text = "A Firm must act under s. 12 of the Act. It must keep records, e.g. of calls.\n\nMr. Smith may rest."
    assert [sentence.text for sentence in checked(text).sentences] == [span.text for span in split_sentences(text)]
    assert len(checked(text).sentences) == 3


def test_markdown_is_taken_off():
    raw = "## Duties\n\n**Records:** Firms must *keep* records [1].\n\n> Quoted text stays.\n\n---\nThe ***end***."
    result = checked(raw)
    assert result.text == "Duties\n\nRecords: Firms must keep records.\n\nQuoted text stays.\n\n\nThe end."
    assert [sentence.citations for sentence in result.sentences] == [(1,), (), ()]


def test_items_of_a_list_are_sentences_of_their_own_even_without_full_stops():
    raw = "Duties of a Firm\n- Firms must act [1]\n- Firms must report [2]\n* Firms must rest [3]\n\nThat is all"
    assert cited(raw) == [
        ("Duties of a Firm", ()),
        ("Firms must act", (1,)),
        ("Firms must report", (2,)),
        ("Firms must rest", (3,)),
        ("That is all", ()),
    ]


def test_items_that_continue_their_lead_in_stay_in_its_sentence():
    raw = "A Firm must:\n1. keep records [1];\n2. report, and\n3) act or\n- rest [2]."
    assert cited(raw) == [("A Firm must:\nkeep records;\nreport, and\nact or\nrest.", (1, 2))]


def test_a_heading_ends_what_stands_above():
    assert cited("No full stop [1]\n### Next\nFirms must act [2].") == [
        ("No full stop", (1,)),
        ("Next\nFirms must act.", (2,)),
    ]


def test_wrapped_lines_of_an_item_stay_together():
    assert cited("- Firms must\n  act [1]\n- rest [2]") == [("Firms must\nact", (1,)), ("rest", (2,))]


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        ("- item", PlainLine("item", is_item=True)),
        ("  * item", PlainLine("item", is_item=True)),
        ("• item", PlainLine("item", is_item=True)),
        ("12. item", PlainLine("item", is_item=True)),
        ("1) **Bold** item", PlainLine("Bold item", is_item=True)),
        ("### Heading", PlainLine("Heading", is_heading=True)),
        ("> - quoted item", PlainLine("quoted item", is_item=True)),
        ("* * *", PlainLine("")),
        ("____", PlainLine("")),
        ("a **b** *c* ***d***", PlainLine("a b c d")),
        *((line, PlainLine(line)) for line in (
            "(a) item", "3.2.1 Rule", "2024. Year", "-5 degrees", "#hashtag", ">5", "5 * 3 * 2", "fee* and charge*",
            "a*b*c", "**open", "snake_case_name", "- ", "", "-",
        )),
    ],
)  # fmt: skip
def test_plain_line(line, plain):
    expected = PlainLine("", is_item=True) if line == "- " else plain
    assert plain_line(line) == expected


# Any text -----------------------------------------------------------------------------------------------------------

pieces = st.sampled_from(
    ["[", "]", "【", "】", "1", "2", "9", "-", ",", " ", "\n", ".", "A Firm must act", "(", ")", "*", "#", "and", "[1]"]
)


@given(st.lists(pieces).map("".join) | st.text(), st.integers(0, 12))
def test_any_text_gives_slices_and_valid_citations(raw, n_passages):
    checked(raw, n_passages)


@given(
    st.lists(st.sampled_from(["Firms must act.", "They must report at once.", "Nobody may wait for it."]), max_size=6),
    st.data(),
)
def test_marks_do_not_change_the_text(sentences, data):
    numbers = [data.draw(st.lists(st.integers(1, 5), max_size=3)) for _ in sentences]
    raw = " ".join(
        sentence[:-1] + "".join(f" [{number}]" for number in cites) + "."
        for sentence, cites in zip(sentences, numbers, strict=True)
    )
    result = checked(raw, 5)
    assert result.text == " ".join(sentences)
    assert [s.citations for s in result.sentences] == [tuple(sorted(set(cites))) for cites in numbers]


@pytest.mark.parametrize(
    "unit",
    ["[", "[1", "[1]", "[1] ", "[1,", "[1] and ", "([", "a [1].", "[0-99]. ", "[passage" + " " * 190 + "x]",
     " " * 190 + "[1]", "[" + "1 " * 99 + "]", "- [1]\n", "- a\n", "*a", "***a", "** ", "- ", "_ ",
     "#", "> ", "\n", " ", "1. "],
)  # fmt: skip
@pytest.mark.long
def test_hostile_text_takes_linear_time(unit):
    assert grows_no_faster(lambda n: parse_cited_text(unit * (n // len(unit)), 3), 12_500)

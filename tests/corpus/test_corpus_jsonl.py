"""JSON lines of documents and of questions -> passages and gold."""

import gzip
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragqa.corpus.jsonl import looks_like_jsonl, read_json_lines
from ragqa.corpus.questions import GoldQuestion, load_paragraph_questions
from ragqa.errors import ConfigError, CorpusError
from ragqa.types import Passage, Question
from tests.support.made import load_jsonl

THREE = "The heron waits. It stands in the shallow water. Then it strikes."  # 3, 6 and 3 tokens


def write(path, *lines):
    text = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text) if path.suffix.lower() == ".gz" else text)
    return path


def line(text, **more):
    return {"text": text, **more}


def load(tmp_path, *lines, max_tokens=128):
    return load_jsonl(write(tmp_path / "birds.jsonl", *lines), max_tokens)


def ids(passages):
    return [passage.passage_id for passage in passages]


# Passages -----------------------------------------------------------------------------------------------------------


def test_fields_of_a_short_and_a_long_text(tmp_path):
    passages = load(tmp_path, line("One owl.", id=7, title="Owls"), line(THREE, id="h", title="Herons"), max_tokens=6)
    assert passages == (
        Passage("7", "7", "One owl.", "Owls", "", "1", 0, 8),
        Passage("h", "h", "The heron waits.", "Herons", "", "1", 0, 16),
        Passage("h#2", "h", "It stands in the shallow water.", "Herons", "", "2", 17, 48),
        Passage("h#3", "h", "Then it strikes.", "Herons", "", "3", 49, 65),
    )


@pytest.mark.parametrize(("max_tokens", "n_passages"), [(12, 1), (11, 2), (9, 2), (8, 3), (6, 3), (3, 4)])
def test_sentences_are_kept_whole_where_they_fit(tmp_path, max_tokens, n_passages):
    passages = load(tmp_path, line(THREE, id=1), max_tokens=max_tokens)
    assert len(passages) == n_passages
    assert all(len(passage.text.split()) <= max_tokens for passage in passages)


def test_texts_are_cleaned_and_blank_ones_left_out(tmp_path):
    passages = load(tmp_path, line(" A\u200b \u00a0wren\r\n", id=" 1 ", title=" The\n wren "), line(" \n", id=2))
    assert passages == (Passage("1", "1", "A  wren", "The wren", "", "1", 0, 7),)


def test_a_text_that_is_not_a_number_is_no_text(tmp_path):
    assert ids(load(tmp_path, b'{"id": 1, "text": NaN}', line("A wren.", id=2))) == ["2"]


@given(st.lists(st.text(alphabet="ab.\n\t ,A", max_size=80), min_size=1, max_size=4), st.integers(1, 9))
@pytest.mark.long
def test_no_word_is_lost_and_ids_are_unique(tmp_path_factory, texts, max_tokens):
    folder = tmp_path_factory.mktemp("any")
    lines = [line(text, title="T") for text in [*texts, "end"]]
    passages = load(folder, *lines, max_tokens=max_tokens)
    assert " ".join(p.text for p in passages).split() == " ".join([*texts, "end"]).split()
    assert len(set(ids(passages))) == len(passages)
    assert all(len(p.text.split()) <= max_tokens for p in passages)
    assert all(p.end - p.start == len(p.text) for p in passages)


# Ids ----------------------------------------------------------------------------------------------------------------


def test_the_title_is_the_id_where_none_is_given(tmp_path):
    lines = [line("a", title="Wren"), line("b", title="Wren"), line("c", title="Wren", id=None), line("d", id="Wren")]
    passages = load(tmp_path, *lines, line("e", id="Wren (3)"))
    assert [p.document_id for p in passages] == ["Wren (2)", "Wren (4)", "Wren (5)", "Wren", "Wren (3)"]
    assert [p.title for p in passages] == ["Wren", "Wren", "Wren", "", ""]


def test_an_id_is_not_taken_by_a_chunk(tmp_path):
    passages = load(tmp_path, line(THREE, id="h"), line("Taken.", id="h#2"), max_tokens=6)
    assert ids(passages) == ["h", "h#3", "h#4", "h#2"]
    assert [p.number for p in passages] == ["1", "2", "3", "1"]
    assert [p.document_id for p in passages] == ["h", "h", "h", "h#2"]


def test_ids_as_beir_writes_them(tmp_path):
    assert ids(load(tmp_path, line("a", _id="x"), line("b", _id="y", id="z"))) == ["x", "z"]


def test_an_id_that_repeats_is_refused(tmp_path):
    expected = r"birds\.jsonl, line 3: expected an id of its own, found '1', which birds\.jsonl, line 1 has; give each"
    with pytest.raises(CorpusError, match=expected):
        load(tmp_path, line("a", id=1), line("b", id=2), line("c", id="1"))


def test_an_id_that_repeats_across_files_is_refused(tmp_path):
    write(tmp_path / "a.jsonl", line("a", id=1))
    write(tmp_path / "b.jsonl", line("b", id=1))
    with pytest.raises(CorpusError, match=r"b\.jsonl, line 1: .* which a\.jsonl, line 1 has"):
        load_jsonl(tmp_path, 128)


# Files --------------------------------------------------------------------------------------------------------------


def test_a_folder_by_name_without_questions_and_hidden_files(tmp_path):
    write(tmp_path / "b.jsonl", line("b", id="b"))
    write(tmp_path / "a.JSONL.gz", line("a", id="a"))
    write(tmp_path / "empty.jsonl")
    write(tmp_path / "a_questions.jsonl", {"question": "?"})
    write(tmp_path / ".c.jsonl", b"broken")
    write(tmp_path / "deeper" / "d.jsonl", line("d", id="d"))
    (tmp_path / "notes.txt").write_text("n")
    assert ids(load_jsonl(tmp_path, 128)) == ["a", "b"]


def test_gzip_blank_lines_and_byte_order_mark(tmp_path):
    mark = b"\xef\xbb\xbf"
    path = write(tmp_path / "x.jsonl.gz", mark + json.dumps(line("a", id=1)).encode(), b"", b"  \r", line("b", id=2))
    assert ids(load_jsonl(path, 128)) == ["1", "2"]
    assert [item.place for item in read_json_lines(path, "x")] == ["x, line 1", "x, line 4"]


def test_lines_are_read_as_they_are_asked_for(tmp_path):
    items = read_json_lines(write(tmp_path / "x.jsonl", line("a"), b"broken"), "x")
    assert next(items).text("text") == "a"
    with pytest.raises(CorpusError, match="line 2"):
        next(items)


def test_line_separators_inside_a_text_do_not_end_a_line(tmp_path):
    raw = json.dumps(line("a\u2028b\u0085c", id=1), ensure_ascii=False).encode()
    assert load(tmp_path, raw)[0].text == "a\nb\nc"


def test_what_looks_like_json_lines(tmp_path):
    assert not looks_like_jsonl(tmp_path)
    assert not looks_like_jsonl(tmp_path / "none.jsonl")
    path = write(tmp_path / "x.jsonl", b"broken")
    assert looks_like_jsonl(path)  # so that `load_jsonl` says what is wrong with it
    assert looks_like_jsonl(tmp_path)
    (tmp_path / "x.json").write_text("[]")
    assert not looks_like_jsonl(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (b'{"id": 1, "text": ', r"expected one whole JSON object, found other text \(.*, column \d+\); correct it"),
        (b'{"id": 1, "text": "a"} {}', "found other text .Extra data, column 24"),
        (b"[" * 100_000, "expected one whole JSON object"),
        (b'{"id": ' + b"9" * 5000 + b', "text": "a"}', "expected one whole JSON object"),
        (b'["a"]', "expected one JSON object, found a list of 1; write one object a line"),
        (b"null", "expected one JSON object, found null"),
        (b'{"id": 1, "body": "a"}', "expected 'text' with a text, found 'id', 'body'; correct the file"),
        (b'{"id": 1, "text": 5}', "expected a text under 'text', found the number 5"),
        (b'{"id": 1, "text": null}', "expected a text under 'text', found null"),
        (b'{"id": 1, "text": ["a"]}', "expected a text under 'text', found a list of 1"),
        (b'{"id": true, "text": "a"}', "expected a whole number or a text that is not empty under 'id'"),
        (b'{"id": " ", "text": "a"}', "expected a whole number or a text that is not empty under 'id'"),
        (b'{"id": 1, "title": 5, "text": "a"}', "expected a text under 'title', found the number 5"),
        (b'{"title": " ", "text": "a"}', "expected an 'id' or a 'title', found neither; add one of them"),
        (b'{"id": 1, "text": "\xe9"}', r"expected UTF-8 text, found a byte that is none \(byte 20 of the line\); save"),
    ],
)
def test_a_broken_line_is_named(tmp_path, broken, message):
    with pytest.raises(CorpusError, match=rf"^birds\.jsonl, line 2: .*{message}.*try again$"):
        load(tmp_path, line("fine", id="fine"), broken)


@pytest.mark.parametrize(
    ("lines", "found"), [((), "0 lines"), ((b" ", b""), "0 lines"), ((line(" ", id=1),), "1 lines")]
)
def test_no_text_at_all(tmp_path, lines, found):
    with pytest.raises(CorpusError, match=f"expected at least one line with text under 'text', found {found}"):
        load(tmp_path, *lines)


def test_no_file(tmp_path):
    with pytest.raises(CorpusError, match="no JSON lines in .*; expected a .jsonl or .jsonl.gz file"):
        load_jsonl(tmp_path, 128)
    with pytest.raises(CorpusError, match="no JSON lines in"):
        load_jsonl(tmp_path / "none.jsonl", 128)


@pytest.mark.parametrize("cut", [False, True])
def test_gzip_that_is_none_or_cut_short(tmp_path, cut):
    path = write(tmp_path / "x.jsonl.gz", *[line(os.urandom(40).hex(), id=n) for n in range(99)])
    path.write_bytes(path.read_bytes()[:500] if cut else b"plain")
    with pytest.raises(
        CorpusError, match=r"x\.jsonl\.gz cannot be read: .*; check its permissions and that it is whole"
    ):
        load_jsonl(path, 128)


def test_chunk_size_below_one(tmp_path):
    with pytest.raises(ConfigError, match="at least 1 token, got 0"):
        load(tmp_path, line("a", id=1), max_tokens=0)


# Questions ----------------------------------------------------------------------------------------------------------


def ask(tmp_path, *lines):
    return load_paragraph_questions(write(tmp_path / "birds_questions.jsonl", *lines))


def test_questions(tmp_path):
    questions = ask(
        tmp_path,
        {
            "question": " Which bird\nwaits? ",
            "gold_passage_ids": [3, "h", 3],
            "answers": ["the heron"],
            "level": "easy",
        },
        {"question": "And then?", "gold_passage_ids": [], "question_id": "q"},
        {"question": "Why?", "gold_passage_ids": ["h"], "id": 9, "question_id": None},
    )
    assert questions == (
        GoldQuestion(Question("Which bird waits?", "1"), frozenset({"3", "h"}), ("the heron",)),
        GoldQuestion(Question("And then?", "q"), frozenset()),
        GoldQuestion(Question("Why?", "9"), frozenset({"h"})),
    )


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"gold_passage_ids": [1]}, "expected 'question' with a text, found 'gold_passage_ids'"),
        ({"question": " ", "gold_passage_ids": [1]}, "expected a text that is not empty under 'question'"),
        ({"question": "?"}, "expected a list of ids under 'gold_passage_ids', found no 'gold_passage_ids'; correct"),
        ({"question": "?", "gold_passage_ids": 5}, "found the number 5"),
        ({"question": "?", "gold_passage_ids": [1, None]}, "'gold_passage_ids': .* under 'id 2', found null"),
        ({"question": "?", "gold_passage_ids": [1], "answers": "a"}, "expected a list of texts under 'answers'"),
        ({"question": "?", "gold_passage_ids": [1], "id": 1}, "expected an id of its own, found '1', which a question"),
    ],
)
def test_a_broken_question_is_named(tmp_path, broken, message):
    with pytest.raises(CorpusError, match=rf"^birds_questions\.jsonl, line 2.*{message}"):
        ask(tmp_path, {"question": "?", "gold_passage_ids": [1]}, broken)


def test_no_question(tmp_path):
    with pytest.raises(CorpusError, match="found no line"):
        ask(tmp_path)
    with pytest.raises(CorpusError, match="no file"):
        load_paragraph_questions(tmp_path / "none.jsonl")


# Real files ---------------------------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "n_documents", "n_chunked", "n_questions", "n_gold"),
    [("hotpotqa_a", 4968, 867, 500, 2), ("xquad_en", 240, 84, 1190, 1)],
)
def test_the_wikipedia_files(shared_data, name, n_documents, n_chunked, n_questions, n_gold):
    folder = shared_data / "wikipedia"
    whole = load_jsonl(folder / f"{name}.jsonl", 2000)
    assert len(whole) == n_documents
    assert all(passage.passage_id == passage.document_id and passage.title for passage in whole)
    chunked = load_jsonl(folder / f"{name}.jsonl", 128)
    assert len({passage.document_id for passage in chunked}) == n_documents
    assert len({passage.document_id for passage in chunked if passage.number == "2"}) == n_chunked
    assert max(len(passage.text.split()) for passage in chunked) <= 128
    texts = {passage.document_id: passage.text for passage in whole}
    assert all(texts[passage.document_id][passage.start : passage.end] == passage.text for passage in chunked)

    questions = load_paragraph_questions(folder / f"{name}_questions.jsonl")
    assert len(questions) == n_questions
    assert {len(question.gold) for question in questions} == {n_gold}
    assert set().union(*(question.gold for question in questions)) <= texts.keys()
    assert all(question.answers for question in questions)

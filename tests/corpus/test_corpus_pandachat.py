"""PandaChat-RAG-sl's format -> passages that know their document, and questions with their gold document."""

import json
import math

import pytest

from ragqa.corpus.pandachat import (
    DocumentQuestion,
    load_pandachat,
    load_pandachat_questions,
    looks_like_pandachat,
    pandachat_text,
)
from ragqa.errors import ConfigError, CorpusError
from ragqa.types import Passage, Question

LAKE = "Jezero<p><p> Voda je mrzla. V njej živi postrv. <p>Obala je kamnita.<p>"
LAKE_TEXT = "Jezero\n\nVoda je mrzla. V njej živi postrv.\n\nObala je kamnita."


def item(query="Kaj je v vodi?", document="splet.1", text=LAKE, **more):
    asked = f"{query}<p>{text}" if isinstance(text, str) else text
    return {
        "query": query,
        "answer": "Postrv.",
        "document": document,
        "text": asked,
        "text_without_Q": text,
        "multi_questions_doc": math.nan,
        **more,
    }


def write(path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def load(tmp_path, *items, max_tokens=128):
    return load_pandachat(write(tmp_path / "set.json", list(items)), max_tokens)


# Passages -----------------------------------------------------------------------------------------------------------


def test_paragraphs_are_merged_while_they_fit(tmp_path):
    assert load(tmp_path, item()) == (Passage("splet.1", "splet.1", LAKE_TEXT, number="1", end=len(LAKE_TEXT)),)


def test_a_long_paragraph_is_split_between_sentences(tmp_path):
    passages = load(tmp_path, item(), max_tokens=4)
    assert [(p.passage_id, p.text) for p in passages] == [
        ("splet.1", "Jezero\n\nVoda je mrzla."),
        ("splet.1#2", "V njej živi postrv."),
        ("splet.1#3", "Obala je kamnita."),
    ]
    assert [p.number for p in passages] == ["1", "2", "3"]
    assert all(LAKE_TEXT[p.start : p.end] == p.text for p in passages)


def test_a_document_of_several_questions_is_loaded_once_and_keeps_to_itself(tmp_path):
    passages = load(tmp_path, item("A?"), item("B?", "splet.2", "Gora."), item("C?"), item("D?", 3, " <p>"))
    assert [p.passage_id for p in passages] == ["splet.1", "splet.2"]
    assert [p.document_id for p in passages] == ["splet.1", "splet.2"]


def test_not_a_number_is_no_text(tmp_path):
    assert [p.document_id for p in load(tmp_path, item(), item(document="2", text=math.nan))] == ["splet.1"]


@pytest.mark.parametrize(
    ("marked", "text"),
    [
        ("", ""),
        ("<p> <p>", ""),
        ("a<p>b", "a\n\nb"),
        ("a\n\n b\u200b<p>c\u00a0d", "a b\n\nc d"),
        ("levo <<<p>desno", "levo <<\n\ndesno"),
    ],
)
def test_pandachat_text(marked, text):
    assert pandachat_text(marked) == text


# Questions ----------------------------------------------------------------------------------------------------------


def test_questions(tmp_path):
    path = write(tmp_path / "set.json", [item(" Kaj\nje to? "), item("Kje?", 2)])
    assert load_pandachat_questions(path) == (
        DocumentQuestion(Question("Kaj je to?", "1"), frozenset({"splet.1"})),
        DocumentQuestion(Question("Kje?", "2"), frozenset({"2"})),
    )


def test_a_folder_with_one_such_file(tmp_path):
    write(tmp_path / "set.json", [item()])
    write(tmp_path / "results.json", [{"system": "x"}])
    write(tmp_path / "submission.json", {"df": [item(sources=["splet.1"])]})
    assert looks_like_pandachat(tmp_path)
    assert len(load_pandachat(tmp_path)) == len(load_pandachat_questions(tmp_path)) == 1
    write(tmp_path / "tes.json", [item()])
    assert not looks_like_pandachat(tmp_path)
    with pytest.raises(CorpusError, match="found set.json and tes.json; name the file itself and try again"):
        load_pandachat(tmp_path)


@pytest.mark.parametrize(
    ("value", "looks_right"),
    [
        ([item()], True),
        (" [\n {\n" + json.dumps(item())[1:] + "]", True),
        ("\ufeff" + json.dumps([item()]), True),
        ([], False),
        ({"df": [item()]}, False),
        ([{"ID": "1", "DocumentID": 1, "PassageID": "1", "Passage": "a"}], False),
        ("not JSON", False),
    ],
)
def test_what_looks_like_pandachat(tmp_path, value, looks_right):
    path = write(tmp_path / "set.json", value)
    assert looks_like_pandachat(path) is looks_right
    assert not looks_like_pandachat(path.rename(tmp_path / "set.txt"))
    assert not looks_like_pandachat(path)


# Errors -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text_without_Q": 5}, "set.json, item 2: expected a text under 'text_without_Q', found the number 5"),
        ({"document": None}, "set.json, item 2: expected a whole number or a text that is not empty under 'document'"),
        ({"text_without_Q": "Gora."}, "set.json, item 2: expected the text that document 'splet.1' has further up"),
    ],
)
def test_a_broken_item_is_named(tmp_path, change, message):
    with pytest.raises(CorpusError, match=message):
        load(tmp_path, item(), item(**change))


def test_missing_keys_are_named(tmp_path):
    with pytest.raises(CorpusError, match="item 1: expected 'document' with"):
        load(tmp_path, {"query": "Kaj?"})
    with pytest.raises(CorpusError, match="item 1: expected 'query' with a text"):
        load_pandachat_questions(write(tmp_path / "set.json", [{"document": "1"}]))


def test_nothing_to_load(tmp_path):
    with pytest.raises(CorpusError, match="found 1 without"):
        load(tmp_path, item(text="<p>"))
    with pytest.raises(CorpusError, match="found an empty one"):
        load(tmp_path)
    with pytest.raises(CorpusError, match="not valid JSON"):
        load_pandachat(write(tmp_path / "broken.json", "[{"))
    for path in (tmp_path / "none", tmp_path / "none.json"):
        with pytest.raises(CorpusError, match="expected one JSON file, a list of .*, found none; name the file"):
            load_pandachat(path)
    with pytest.raises(ConfigError, match="at least 1 token"):
        load(tmp_path, item(), max_tokens=0)


# Real files ---------------------------------------------------------------------------------------------------------


@pytest.mark.data
def test_the_data_set(shared_data):
    folder = shared_data / "pandachat"
    passages, questions = load_pandachat(folder), load_pandachat_questions(folder)
    documents = {passage.document_id for passage in passages}
    assert (len(documents), len(questions)) == (160, 206)
    assert len({passage.passage_id for passage in passages}) == len(passages)
    assert max(len(passage.text.split()) for passage in passages) <= 128
    assert {name for question in questions for name in question.gold_documents} == documents
    items = json.loads((folder / "pandachat-rag-si-dataset.json").read_text(encoding="utf-8"))
    for document in documents:
        marked = next(item["text_without_Q"] for item in items if item["document"] == document)
        words = [word for passage in passages if passage.document_id == document for word in passage.text.split()]
        assert words == pandachat_text(marked).split()


@pytest.mark.data
def test_submissions_name_documents_as_we_do_and_only_the_data_set_looks_like_it(shared_data):
    folder = shared_data / "pandachat"
    documents = {passage.document_id for passage in load_pandachat(folder)}
    submissions = sorted((folder / "submissions").glob("*.json"))
    assert len(submissions) == 3
    for path in submissions:
        rows = json.loads(path.read_text(encoding="utf-8"))["df"]
        assert {source for row in rows for source in row["sources"]} <= documents
        assert [row["query"] for row in rows] == [q.question.text for q in load_pandachat_questions(folder)]
    others = [*submissions, folder / "results.json", folder / "submissions", *(shared_data / "obliqa").rglob("*.json")]
    assert not any(looks_like_pandachat(path) for path in others)

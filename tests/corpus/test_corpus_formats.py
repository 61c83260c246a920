"""What a source is taken for, and what the gold ids of a question file name."""

import json

import pytest

from ragqa.corpus.formats import detect_format, load_corpus
from ragqa.corpus.questions import load_gold
from ragqa.english.words import ANALYSERS, analyser_named
from ragqa.errors import CorpusError

LAKE = {"id": 7, "title": "Lake", "text": "It is deep. It is cold."}
PANDA = {"query": "Zakaj srbi?", "document": "web.1", "text": "x", "text_without_Q": "Koža srbi.<p>Pomaga hlajenje."}
RULE = {"ID": "1", "DocumentID": 1, "PassageID": "1.1", "Passage": "A firm must act."}


@pytest.fixture
def sources(tmp_path):
    files = {
        "jsonl": json.dumps(LAKE),
        "pandachat": json.dumps([PANDA]),
        "obliqa": json.dumps([RULE]),
        "text": "# Lake\n\nIt is deep.",
    }
    endings = {"jsonl": "lakes.jsonl", "pandachat": "panda.json", "obliqa": "1.json", "text": "lake.md"}
    for name, text in files.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / endings[name]).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", ["jsonl", "pandachat", "obliqa", "text"])
def test_each_format_is_known_by_its_files(sources, name):
    assert detect_format(sources / name) == name
    corpus = load_corpus(sources / name)
    assert corpus.format == name
    assert corpus.passages


def test_slovenian_is_read_by_character_ngrams():
    assert analyser_named("", "pandachat") == ANALYSERS["characters"]
    assert analyser_named("", "jsonl") == ANALYSERS["english"]


def test_several_formats_at_once_must_be_told_apart(sources):
    (sources / "obliqa" / "lakes.jsonl").write_text(json.dumps(LAKE))
    with pytest.raises(CorpusError, match="1 JSON and 1 JSON lines files; say which by --format obliqa or jsonl"):
        detect_format(sources / "obliqa")
    assert load_corpus(sources / "obliqa", "jsonl").passages[0].title == "Lake"


def test_gold_of_lines_and_of_pandachat_are_documents(sources):
    questions = sources / "questions.jsonl"
    questions.write_text(json.dumps({"question": "How deep?", "gold_passage_ids": [7], "answers": ["very"]}))
    (found,), unit = load_gold(questions, ())
    assert (found.gold, unit) == (frozenset({"7"}), "document")
    (found,), unit = load_gold(sources / "pandachat", ())
    assert (found.gold, unit, found.question.text) == (frozenset({"web.1"}), "document", "Zakaj srbi?")


def test_gold_of_obliqa_are_passages(tmp_path):
    file = tmp_path / "questions.json"
    file.write_text(json.dumps([{"QuestionID": "q", "Question": "Who?", "Passages": [RULE]}]))
    (found,), unit = load_gold(file, ())
    assert (found.gold, unit) == (frozenset({"1:1.1"}), "passage")

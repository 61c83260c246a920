"""Files of answers: every shape that occurs, what is skipped as the reference does, errors that name the place."""

import hashlib
import json

import pytest

from ragqa.corpus.answers import read_answers
from ragqa.errors import CorpusError, ScoringError
from ragqa.evaluation.answer_file import score_item
from ragqa.generation.answers import answer_of_text
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.settings.config import ScoringConfig
from tests.support.fakes import FakeNli, FakeObligations

ITEM = {"QuestionID": "q1", "Question": "Why?", "RetrievedPassages": ["One.", "Two."], "Answer": "One. Two."}


def read(tmp_path, content):
    if not isinstance(content, bytes):
        content = (content if isinstance(content, str) else json.dumps(content)).encode()
    file = tmp_path / "answers.json"
    file.write_bytes(content)
    return read_answers(file)


def item_of(tmp_path, **changes):
    row = {name: value for name, value in (ITEM | changes).items() if value is not ...}
    return read(tmp_path, [ITEM, row]).items[1]


def test_a_list_of_items(tmp_path):
    answers = read(tmp_path, [ITEM, ITEM])
    assert answers.name == "answers.json"
    assert answers.sha256 == hashlib.sha256(json.dumps([ITEM, ITEM]).encode()).hexdigest()
    assert [item.number for item in answers.items] == [1, 2]
    first = answers.items[0]
    assert (first.question_id, first.question, first.passages, first.answer) == (
        "q1",
        "Why?",
        ("One.", "Two."),
        "One. Two.",
    )
    assert first.skipped == ""


def test_json_lines_with_blank_lines_a_byte_order_mark_and_line_separators_inside_texts(tmp_path):
    line = json.dumps(ITEM | {"Answer": "One.\u2028Two.\x85"}, ensure_ascii=False)
    content = "\ufeff" + line + "\r\n\r\n" + line + "\n"
    assert [item.answer for item in read(tmp_path, content).items] == ["One.\u2028Two.\x85"] * 2


def test_one_object_and_an_empty_list(tmp_path):
    assert len(read(tmp_path, ITEM).items) == 1
    assert read(tmp_path, []).items == ()


@pytest.mark.parametrize(
    ("value", "passages"),
    [
        ('["a", "b"]', ("a", "b")),  # as in some published files
        ("A text.", ("A text.",)),  # the reference takes it as it is
        ("[sic] A text.", ("[sic] A text.",)),
        ([], ()),
    ],
)
def test_passages_in_every_shape(tmp_path, value, passages):
    assert item_of(tmp_path, RetrievedPassages=value).passages == passages


def test_texts_are_not_cleaned(tmp_path):
    text = "  A\u200e\tb\x00 \ud800 "
    item = item_of(tmp_path, Answer=text, RetrievedPassages=[text])
    assert (item.answer, item.passages) == (text, (text,))


@pytest.mark.parametrize(("value", "shown"), [(7, "7"), (None, ""), (..., ""), ("q", "q")])
def test_question_ids(tmp_path, value, shown):
    assert item_of(tmp_path, QuestionID=value).question_id == shown


@pytest.mark.parametrize(
    ("value", "reason"), [("", "it is empty"), (" \n\t", "it is empty"), (None, "it is null"), (..., "has no 'Answer'")]
)
def test_items_without_an_answer_are_skipped_with_the_reason(tmp_path, value, reason):
    item = item_of(tmp_path, Answer=value, RetrievedPassages=...)  # the reference does not look at its passages
    assert reason in item.skipped
    assert item.passages == ()


def test_the_hash_tells_items_apart(tmp_path):
    changes = [{}, {"QuestionID": "q2"}, {"Question": "x"}, {"RetrievedPassages": ["One. Two."]}, {"Answer": "x"}]
    hashes = [item_of(tmp_path, **change).sha256 for change in changes]
    assert len(set(hashes)) == len(changes)
    assert item_of(tmp_path).sha256 == hashes[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"RetrievedPassages": ...}, "item 2: RetrievedPassages: expected a list of texts.*found only 'QuestionID'"),
        ({"RetrievedPassages": 3}, "item 2: RetrievedPassages: .* found the number 3"),
        ({"RetrievedPassages": None}, "item 2: RetrievedPassages: .* found null"),
        ({"RetrievedPassages": ["a", None]}, "item 2: RetrievedPassages: expected a text as passage 2, found null"),
        ({"RetrievedPassages": '["a", 3]'}, "passage 2, found the number 3"),
        ({"Answer": 3}, "item 2: Answer: expected a text, found the number 3"),
        ({"Answer": float("nan")}, "item 2: Answer: expected a text, found the number nan"),
        ({"Answer": ["a"]}, "item 2: Answer: expected a text, found a list"),
        ({"Question": {}}, "item 2: Question: expected a text, found an object"),
        ({"QuestionID": True}, "item 2: QuestionID: expected a text, found the value true"),
        ({"QuestionID": 1.5}, "item 2: QuestionID: expected a text, found the number 1.5"),
    ],
)
def test_a_wrong_item_is_named_with_its_field(tmp_path, changes, message):
    with pytest.raises(CorpusError, match=message):
        item_of(tmp_path, **changes)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not JSON: it is empty"),
        (" \n", "is not JSON: it is empty"),
        ('[{"Answer": "x"', "is not JSON: .*line 1 column"),
        ('{"Answer": "a", "RetrievedPassages": ["b"]}\n{"Answer": ', "line by line: line 2: "),
        ("[" * 100_000, "nested too deeply"),
        ("[3]", "item 1: expected an object, found the number 3"),
        ('[{"answer": "x"}, {"answer": "y"}]', "none of the 2 items has 'Answer', the first has 'answer'"),
        (b"\xff\xfe", "cannot read .* as UTF-8"),
    ],
)
def test_a_file_that_is_no_list_of_items(tmp_path, content, message):
    with pytest.raises(CorpusError, match=message):
        read(tmp_path, content)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(CorpusError, match="cannot read"):
        read_answers(tmp_path / "nothing.json")


def test_sentences_of_an_answer_are_slices_of_it():
    text = " One is here.  Two is there. "
    answer = answer_of_text(text)
    assert [sentence.text for sentence in answer.sentences] == ["One is here.", "Two is there."]
    assert all(text[sentence.start : sentence.end] == sentence.text for sentence in answer.sentences)
    assert answer.text == answer.raw == text


def test_an_item_goes_through_the_scorer(tmp_path):
    nli = FakeNli()
    scored = score_item(item_of(tmp_path), RepassScorer(nli, nli, FakeObligations(), ScoringConfig()))
    assert [score.sentence.text for score in scored.paper.sentences] == ["One.", "Two."]
    assert [(premise.text, premise.passage_id) for premise in scored.paper.premises] == [("One.", "1"), ("Two.", "2")]
    # each answer sentence is identical to one source sentence: .9 for that pair
    assert scored.paper.repass.entailment == (0.9 + 0.9) / 2


def test_a_failing_scorer_is_not_hidden(tmp_path):
    class Broken:
        def stream(self, answer, passages):
            raise ScoringError("the model broke")
            yield

    with pytest.raises(ScoringError, match="broke"):
        score_item(item_of(tmp_path), Broken())

"""ObliQA documents and questions -> passages and gold."""

import json
import logging
import sys

import pytest

from ragqa.corpus.cleaning import clean_line, clean_text
from ragqa.corpus.obliqa import files, load_item_ids, load_obliqa
from ragqa.corpus.questions import GoldQuestion, load_questions, resolve_gold
from ragqa.errors import CorpusError
from ragqa.types import Passage, Question


def item(number, text, document=1, **more):
    return {"ID": f"{document}-{number}", "DocumentID": document, "PassageID": number, "Passage": text, **more}


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def load(tmp_path, *items):
    write(tmp_path / "1.json", list(items))
    return load_obliqa(tmp_path)


# Cleaning -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("", ""),
        (" \n\t ", ""),
        ("Rule \u200e7.2", "Rule 7.2"),
        ("\u202aa\u202b\u202c\u202d\u202eb\u2066\u2067\u2068\u2069c\u200f", "abc"),
        ("zero\u200bwidth\ufeff soft\u00adhyphen", "zerowidth softhyphen"),
        ("\x00\x01\x08a\x1b[0m\x7f\x9f", "a[0m"),
        ("one\r\ntwo\rthree\nfour\tfive", "one\ntwo\nthree\nfour\tfive"),
        ("form\x0cfeed\u2028line\x85next", "form\nfeed\nline\nnext"),
        ("no\u00a0break\u202fspace", "no break space"),
        ("family \U0001f468\u200d\U0001f469", "family \U0001f468\u200d\U0001f469"),  # joiners change what is seen
        ("hidden\U000e0041\U000e0042", "hidden"),
        ("half \ud83d pair", "half \ufffd pair"),
        ("\uf0fc yes \uf0a7 item", "✓ yes ▪ item"),
        ("שלום עולם", "שלום עולם"),
        ("\u200e", ""),
    ],
)
def test_clean_text(text, cleaned):
    assert clean_text(text) == cleaned


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("Fees\n/Table Start\nA | 1\nB | 2\n/Table End\nafter", "Fees\nA | 1\nB | 2\nafter"),
        ("\\Table Start\nA | 1\n\\Table End", "A | 1"),
        ("Guidance /Table Start\nA\nlast row /Table End", "Guidance\nA\nlast row"),
        ("/Table Start Number\taddend\n1\t2", "Number\taddend\n1\t2"),
        ("A\n/Table Start and /Table End\nB", "A\nB"),
        ("Write /Table Start above it.", "Write /Table Start above it."),  # a sentence about markers stays
        ("/Table Start\n\nA\n\n/Table End", "A"),
        ("The Timetable Starts on Monday", "The Timetable Starts on Monday"),
        ("A\n\n/Table Start\nB", "A\n\nB"),  # blank lines of the text stay
        ("/Table Start\n/Table End", ""),
    ],
)
def test_table_markers_go_and_rows_stay(text, cleaned):
    assert clean_text(text) == cleaned


def test_clean_line_has_single_spaces():
    assert clean_line(" a\n\tb\u00a0 c ") == "a b c"


# Passages -----------------------------------------------------------------------------------------------------------


def test_passage_fields(tmp_path):
    (passage,) = load(tmp_path, item("1.1.(2)", " A firm must report.\u200e ", document=7))
    assert passage == Passage(
        "7:1.1.(2)", "7", "A firm must report.", title="Document 7", section="", number="1.1.(2)", start=0, end=0
    )


def test_blank_passages_are_dropped(tmp_path):
    passages = load(tmp_path, item("1", ""), item("2", " \n"), item("3", "\u200e"), item("4", "Text."))
    assert [passage.number for passage in passages] == ["4"]


def test_repeated_numbers_keep_every_passage(tmp_path):
    passages = load(tmp_path, item("1.", "first"), item("1.", "second"), item("1.", ""), item("1.", "third"))
    assert [(p.passage_id, p.text) for p in passages] == [("1:1.", "first"), ("1:1.#2", "second"), ("1:1.#3", "third")]
    assert {p.number for p in passages} == {"1."}


def test_the_first_passage_with_text_keeps_the_plain_id(tmp_path):
    assert [p.passage_id for p in load(tmp_path, item("1.", ""), item("1.", "text"))] == ["1:1."]


def test_an_invented_id_never_takes_a_real_one(tmp_path):
    passages = load(tmp_path, item("1", "a"), item("1", "b"), item("1#2", "c"), item("1", "d"))
    assert [p.passage_id for p in passages] == ["1:1", "1:1#3", "1:1#2", "1:1#4"]


def test_the_same_number_in_two_documents_is_two_passages(tmp_path):
    passages = load(tmp_path, item("1", "a", document=1), item("1", "b", document="two"))
    assert [(p.passage_id, p.document_id, p.title) for p in passages] == [
        ("1:1", "1", "Document 1"),
        ("two:1", "two", "Document two"),
    ]


def test_the_id_key_is_not_needed_and_nan_is_no_text(tmp_path):
    write(
        tmp_path / "1.json",
        '\ufeff[{"DocumentID": 1, "PassageID": "1", "Passage": NaN, "Score": NaN},'
        ' {"DocumentID": 1, "PassageID": "2", "Passage": "Text."}]',
    )
    assert [p.number for p in load_obliqa(tmp_path)] == ["2"]


# Sections -----------------------------------------------------------------------------------------------------------


def sections(tmp_path, *pairs):
    return {p.number: p.section for p in load(tmp_path, *(item(number, text) for number, text in pairs))}


def test_section_is_the_path_of_headings_above(tmp_path):
    found = sections(
        tmp_path,
        ("1.", "INTRODUCTION\n"),
        ("1.2", "Application"),
        ("1.2.1", ""),
        ("1.2.1.(1)", "A firm must report."),
        ("1.2.1.(1).Guidance.1.", "It may ask."),
        ("1.20.1", "Another rule."),
    )
    assert found == {
        "1.": "",
        "1.2": "1. INTRODUCTION",
        "1.2.1.(1)": "1. INTRODUCTION › 1.2 Application",
        "1.2.1.(1).Guidance.1.": "1. INTRODUCTION › 1.2 Application",
        "1.20.1": "1. INTRODUCTION",  # 1.2 is a prefix of 1.20 as text, not as a number
    }


def test_sections_of_named_parts(tmp_path):
    found = sections(
        tmp_path,
        ("Part 3", "Permission"),
        ("Part 3.Chapter 1", "Scope"),
        ("Part 3.Chapter 1.7.", "Activities"),
        ("Part 3.Chapter 1.7.(2)", "A firm must apply."),
        ("Part 31.1.", "Another part."),
        ("8.Guidance on asking (again)", "Asking"),
        ("8.Guidance on asking (again).1", "It may ask."),
    )
    assert found["Part 3.Chapter 1.7.(2)"] == (
        "Part 3 Permission › Part 3.Chapter 1 Scope › Part 3.Chapter 1.7. Activities"
    )
    assert found["Part 31.1."] == ""
    assert found["8.Guidance on asking (again).1"] == "8.Guidance on asking (again) Asking"


@pytest.mark.parametrize(
    ("text", "is_heading"),
    [
        ("Definitions", True),
        ("Who may apply?", True),
        ("A Firm must:", True),
        (" ".join(["Word"] * 12), True),
        (" ".join(["Word"] * 13), False),
        ("A firm must report.", False),
        ("The first condition;", False),
        ("The first condition; and", False),
        ("The second condition; or", False),
        ("the end of a list", False),
    ],
)
def test_what_is_a_heading(tmp_path, text, is_heading):
    found = sections(tmp_path, ("2", text), ("2.1", "A firm must report."))
    assert found["2.1"] == (f"2 {text}" if is_heading else "")


def test_bracket_without_a_dot_is_a_step_and_numbering_may_start_again(tmp_path):
    passages = load(
        tmp_path,
        item("1", "Old"),
        item("1(a)", "One."),
        item("1", "New"),
        item("1(b)", "Two."),
        item("1", "a list item;"),
        item("1(c)", "Three."),
        item("1(a)", "Four.", document=2),
    )
    assert [p.section for p in passages if "(" in p.number] == ["1 Old", "1 New", "1 New", ""]


# Files --------------------------------------------------------------------------------------------------------------


def test_files_come_in_numeric_order(tmp_path):
    for number in (10, 2, 1):
        write(tmp_path / f"{number}.json", [item("1", f"text {number}", document=number)])
    write(tmp_path / ".hidden.json", "{")
    write(tmp_path / "notes.md", "# no")
    assert [p.document_id for p in load_obliqa(tmp_path)] == ["1", "2", "10"]


def test_documents_folder_with_titles_beside_it(tmp_path):
    write(tmp_path / "documents" / "1.json", [item("1", "a"), item("1", "b", document=2)])
    write(tmp_path / "titles.json", {"1": "General Rules"})
    write(tmp_path / "questions.json", [{"QuestionID": "q"}])
    expected = ["General Rules", "Document 2"]
    assert [p.title for p in load_obliqa(tmp_path)] == expected
    assert [p.title for p in load_obliqa(tmp_path / "documents")] == expected
    assert [p.title for p in load_obliqa(tmp_path / "documents" / "1.json")] == expected
    assert [path.name for path in files(tmp_path)] == ["1.json"]


def test_titles_in_the_folder_win_and_an_empty_documents_folder_does_not_count(tmp_path):
    folder = tmp_path / "corpus"
    (folder / "documents").mkdir(parents=True)
    write(folder / "1.json", [item("1", "a")])
    write(folder / "titles.json", {"1": "Near"})
    write(tmp_path / "titles.json", {"1": "Far"})
    assert [p.title for p in load_obliqa(folder)] == ["Near"]


def test_no_documents(tmp_path):
    with pytest.raises(CorpusError, match="no JSON document in"):
        load_obliqa(tmp_path)
    with pytest.raises(CorpusError, match="no JSON document in"):
        load_obliqa(write(tmp_path / "notes.txt", "text"))
    with pytest.raises(CorpusError, match="no JSON document in"):
        load_obliqa(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"3\.json is not valid JSON"),
        ("", r"3\.json is not valid JSON"),
        ("[" * 100_000, r"3\.json is not valid JSON"),
        ('{"a": 1}', r"3\.json: expected a list of objects at the top, found an object"),
        ("[5]", r"3\.json, item 1: expected an object, found the number 5"),
        ("[null]", "item 1: expected an object, found null"),
        ('[{"DocumentID": 1, "PassageID": "1"}]', "item 1: expected 'Passage' with a text, found 'DocumentID', 'Passa"),
        ("[{}]", "expected 'DocumentID' .*, found no key at all"),
        ([item("1", "a"), item("2", 5)], "item 2: expected a text under 'Passage', found the number 5"),
        ([item("1", None)], "expected a text under 'Passage', found null"),
        ([item("1", ["a"])], "found a list of 1"),
        ([item("1", {})], "found an object"),
        ([item(1, "a")], "expected a text under 'PassageID', found the number 1"),
        ([item("\u200e ", "a")], "expected a text that is not empty under 'PassageID', found an empty text"),
        ([item("1", "a", document=True)], "expected a whole number or a text .* 'DocumentID', found the value true"),
        ([item("1", "a", document=1.5)], "'DocumentID', found the number 1.5"),
        ([item("1", "a", document=" ")], "'DocumentID', found an empty text"),
        ([], "all 0 passages are empty"),
        ([item("1", "")], "all 1 passages are empty"),
    ],
)
def test_errors_name_file_item_expected_and_found(tmp_path, content, message):
    write(tmp_path / "3.json", content)
    with pytest.raises(CorpusError, match=message) as raised:
        load_obliqa(tmp_path)
    if not message.startswith("all"):
        assert str(tmp_path) not in str(raised.value)


def test_errors_name_the_subfolder(tmp_path):
    write(tmp_path / "documents" / "3.json", "{")
    with pytest.raises(CorpusError, match=r"^documents/3\.json is not"):
        load_obliqa(tmp_path)


def test_not_utf8(tmp_path):
    (tmp_path / "1.json").write_bytes('[{"Passage": "caf\u00e9"}]'.encode("latin-1"))
    with pytest.raises(CorpusError, match=r"1\.json is not UTF-8 text \(byte 17 cannot be read\); save it as UTF-8"):
        load_obliqa(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a link that points nowhere")
def test_a_file_that_vanishes(tmp_path, monkeypatch):
    path = write(tmp_path / "1.json", [item("1", "a")])
    monkeypatch.setattr("ragqa.corpus.obliqa.files", lambda source: (path,))
    path.unlink()
    with pytest.raises(CorpusError, match=r"1\.json cannot be read: No such file"):
        load_obliqa(tmp_path)


@pytest.mark.parametrize(
    ("titles", "message"),
    [(["a"], "found a list of 1"), ({"1": 5}, "a title that is no text"), ("{", "titles.json is not valid JSON")],
)
def test_bad_titles(tmp_path, titles, message):
    write(tmp_path / "titles.json", titles)
    with pytest.raises(CorpusError, match=message):
        load(tmp_path, item("1", "a"))


# Questions ----------------------------------------------------------------------------------------------------------


def test_obliqa_questions(tmp_path):
    gold = [{"DocumentID": 3, "PassageID": "1.1.(2)", "Passage": "text"}, {"DocumentID": 10, "PassageID": "4)"}]
    path = write(
        tmp_path / "questions.json",
        [
            {"QuestionID": "q1", "Question": "Who\u200e must \nreport?", "Passages": gold, "Group": 1},
            {"QuestionID": 2, "Question": "When?", "Passages": gold[:1], "Answer": "Now."},
        ],
    )
    assert load_questions(path) == (
        GoldQuestion(Question("Who must report?", "q1"), frozenset({"3:1.1.(2)", "10:4)"})),
        GoldQuestion(Question("When?", "2"), frozenset({"3:1.1.(2)"}), answers=("Now.",)),
    )


def test_questions_with_evidence(tmp_path):
    proof = [{"DocumentID": "lake-one", "Sentence": "It is deep."}]
    path = write(
        tmp_path / "q.json", [{"QuestionID": "q", "Question": "How?", "Answers": ["a", "b"], "Evidence": proof}]
    )
    assert load_questions(path) == (
        GoldQuestion(Question("How?", "q"), frozenset(), ("a", "b"), (("lake-one", "It is deep."),)),
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"Question": "a", "Passages": []}, "expected 'QuestionID'"),
        ({"QuestionID": "q", "Question": " ", "Passages": []}, "not empty under 'Question'"),
        ({"QuestionID": "q", "Question": "a"}, "expected 'Passages' or 'Evidence', found neither"),
        ({"QuestionID": "q", "Question": "a", "Passages": 1}, "item 1, 'Passages': expected a list, found the number"),
        ({"QuestionID": "q", "Question": "a", "Passages": [1]}, "item 1, 'Passages', item 1: expected an object"),
        ({"QuestionID": "q", "Question": "a", "Passages": [{"DocumentID": 1}]}, "expected 'PassageID'"),
        ({"QuestionID": "q", "Question": "a", "Passages": [], "Answers": "b"}, "expected a list of texts .* 'b'"),
        ({"QuestionID": "q", "Question": "a", "Passages": [], "Answers": [1]}, "list of texts .* the number 1"),
    ],
)
def test_bad_questions(tmp_path, values, message):
    with pytest.raises(CorpusError, match=message):
        load_questions(write(tmp_path / "q.json", [values]))


def test_no_question_file(tmp_path):
    with pytest.raises(CorpusError, match="no file"):
        load_questions(tmp_path / "none.json")


def asked(*evidence, gold=()):
    return GoldQuestion(Question("Why?", "q"), frozenset(gold), evidence=evidence)


CHUNKS = (
    Passage("a:2", "a", "of the second chunk. It ends.", start=40),
    Passage("a:1", "a", "It begins.  It goes\non to the start", start=0),
    Passage("a:3", "a", "It ends.", start=80),
    Passage("b:1", "b", "It begins."),
)


@pytest.mark.parametrize(
    ("evidence", "gold"),
    [
        (("a", "It begins."), {"a:1"}),
        (("a", "It begins. It goes on"), {"a:1"}),  # white space does not count
        (("a", "to the start of the second chunk."), {"a:1", "a:2"}),  # split by a border
        (("a", "to the start"), {"a:1"}),  # ends with its chunk
        (("a", "of the second chunk."), {"a:2"}),  # begins with its chunk
        (("a", "It ends."), {"a:2", "a:3"}),  # stands twice
        (("a", "chunk. It ends. It ends."), {"a:2", "a:3"}),
    ],
)
def test_resolve_gold(evidence, gold):
    (question,) = resolve_gold([asked(evidence)], CHUNKS)
    assert question.gold == gold


def test_questions_with_answers_need_no_gold_where_none_is_asked_for(tmp_path):
    path = tmp_path / "questions.json"
    path.write_text('[{"QuestionID": "q", "Question": "a", "Answer": "b"}]', encoding="utf-8")
    (found,) = load_questions(path, needs_gold=False)
    assert (found.gold, found.answers) == (frozenset(), ("b",))


def test_resolve_gold_adds_to_the_gold_there_is():
    (question,) = resolve_gold([asked(("b", "It begins."), ("a", "It goes"), gold=["c:9"])], CHUNKS)
    assert question.gold == {"b:1", "a:1", "c:9"}


@pytest.mark.parametrize("evidence", [("a", "It never says so."), ("nowhere", "It begins."), ("a", " ")])
def test_evidence_that_stands_nowhere_is_logged(evidence, caplog):
    with caplog.at_level(logging.WARNING):
        (question,) = resolve_gold([asked(evidence)], CHUNKS)
    assert question.gold == frozenset()
    assert "evidence of question q not found" in caplog.text


# The real thing -----------------------------------------------------------------------------------------------------


@pytest.mark.data
def test_adgm(shared_data):
    passages = load_obliqa(shared_data / "obliqa" / "documents")
    assert len(passages) == 13_732 - 720
    assert len({p.passage_id for p in passages}) == len(passages)
    assert len({p.document_id for p in passages}) == 40
    assert not any(mark in p.text for p in passages for mark in ("Table Start", "Table End", "\u200e", "\r"))
    by_id = {p.passage_id: p for p in passages}
    assert by_id["1:1.2.1.(1)"].section == "1. INTRODUCTION › 1.2 Application"


@pytest.mark.data
def test_adgm_questions(shared_data):
    ids = {p.passage_id for p in load_obliqa(shared_data / "obliqa")}
    questions = load_questions(shared_data / "obliqa" / "ObliQA_dev.json")
    assert len(questions) == 2_788
    assert sum(len(question.gold) for question in questions) == 3_677
    assert all(question.gold <= ids for question in questions)


def test_item_ids_belong_to_the_passage_ids_of_the_index(tmp_path):
    rows = [("a", 1, "1.1", "First."), ("b", 1, "1.2", ""), ("c", 1, "1.1", "Again."), ("d", 2, "1.1", "Other.")]
    items = [dict(zip(("ID", "DocumentID", "PassageID", "Passage"), row, strict=True)) for row in rows]
    (tmp_path / "1.json").write_text(json.dumps(items), encoding="utf-8")
    assert load_item_ids(tmp_path) == {"1:1.1": "a", "1:1.1#2": "c", "2:1.1": "d"}
    assert list(load_item_ids(tmp_path)) == [passage.passage_id for passage in load_obliqa(tmp_path)]


@pytest.mark.parametrize(("ids", "found"), [(("a", "a"), "'a' several times"), (("a", None), "a passage without one")])
def test_item_ids_that_name_no_passage_are_refused(tmp_path, ids, found):
    items = [
        {"DocumentID": 1, "PassageID": str(n), "Passage": "Text."} | ({"ID": name} if name else {})
        for n, name in enumerate(ids)
    ]
    (tmp_path / "1.json").write_text(json.dumps(items), encoding="utf-8")
    with pytest.raises(CorpusError, match=found):
        load_item_ids(tmp_path)

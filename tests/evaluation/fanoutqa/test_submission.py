"""What FanOutQA's leaderboard takes: the real files pass, broken ones are refused with the reason."""

from __future__ import annotations

import json

import pytest

from ragqa.errors import CorpusError
from ragqa.evaluation.benchmarks.fanoutqa.questions import load_fanoutqa
from ragqa.evaluation.benchmarks.fanoutqa.reporting import leaderboard, published
from ragqa.evaluation.benchmarks.fanoutqa.settings import LeaderboardSetting
from ragqa.evaluation.benchmarks.fanoutqa.submission import (
    FIELDS,
    check_generations,
    check_metadata,
    read_generations,
    write_submission,
)

IDS = [f"id{number:03}" for number in range(200)]
METADATA = {
    "name": "Our System",
    "authors": "A, B",
    "url": None,
    "citation": "A and B, 2026",
    "type": "OTHER",
    "context": 8192,
    "is_trained_for_function_calling": False,
    "details": "test",
    "closedbook_generations": "our.jsonl",
    "openbook_generations": None,
    "evidenceprovided_generations": None,
}


def lines(ids=IDS, **changed):
    return [json.dumps({"id": name, "answer": changed.get(name, f"answer {name}")}) for name in ids]


def check(tmp_path, content):
    path = tmp_path / "generations.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else "\n".join(content).encode())
    return check_generations(path, set(IDS))


@pytest.mark.data
def test_the_real_generations_and_metadata_are_valid(shared_data):
    folder = shared_data / "fanoutqa"
    known = {question.question_id for question in load_fanoutqa(folder / "fanout-final-test.json")}
    found = check_generations(folder / "example-openbook-generations.jsonl", known)
    assert found.problems == ()
    assert found.n == 721
    assert [note.split()[0] for note in found.notes] == ["3", "4", "1"]  # missing, long, withdrawn
    assert len(read_generations(folder / "example-openbook-generations.jsonl")) == 722
    assert check_metadata(json.loads((folder / "example-metadata.json").read_text())).problems == ()


def test_answers_as_long_as_documents_are_not_scored(tmp_path):
    file = tmp_path / "generations.jsonl"
    file.write_text("\n".join(lines(id003="x" * 20_001)))
    with pytest.raises(CorpusError, match="line 4: the answer to 'id003' has 20,001 characters, at most 20,000"):
        read_generations(file)


def test_whole_generations_are_valid(tmp_path):
    assert check(tmp_path, lines()) == check_generations(tmp_path / "generations.jsonl", set(IDS))
    found = check(tmp_path, ["", *lines(), ""])
    assert (found.is_valid, found.n, found.notes) == (True, 200, ())
    long = check(tmp_path, lines(id000="x" * 4_001, id001=""))
    assert long.is_valid
    assert [note.split()[0] for note in long.notes] == ["1", "1"]
    two_left_out = check(tmp_path, lines(IDS[2:]))
    assert two_left_out.is_valid
    assert two_left_out.notes == ("2 of 200 questions have no answer; each counts 0",)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "200 of 200 questions have no answer"),
        (["{}", *lines()], "line 1: expected a text under 'id', found none"),
        ([*lines(IDS[1:]), '{"id": "id000"}'], "line 200: expected a text under 'answer', found none"),
        ([*lines(IDS[1:]), '{"id": "id000", "answer": null}'], "'answer', found null"),
        ([*lines(IDS[1:]), '{"id": "id000", "answer": ["a"]}'], "'answer', found a list of 1"),
        ([*lines(IDS[1:]), '{"id": 0, "answer": "a"}'], "'id', found the number 0"),
        ([json.dumps([json.loads(line) for line in lines()])], "line 1: expected a JSON object, found a list of 200"),
        ([*lines(), '{"id": "id'], "line 201: expected a JSON object, found"),
        ([*lines(), lines()[7]], "line 201: id 'id007' has an answer in line 8 already"),
        ([*lines(), '{"id": "7dcbbbdc7f1120cd", "answer": "a"}'], "line 201: id '7dcbbbdc7f1120cd' is no question"),
        (lines(id003="x" * 20_001), "line 4: the answer to 'id003' has 20,001 characters, at most 20,000"),
        (lines(IDS[3:]), "3 of 200 questions have no answer, each would count 0; at most 2 may be missing"),
        (lines(**dict.fromkeys(IDS[:3], " ")), "3 of 200 questions have no answer"),
        ("\n".join(lines()).encode("utf-16"), "expected UTF-8, found other bytes"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_broken_generations_are_refused_with_the_reason(tmp_path, content, reason):
    found = check(tmp_path, content)
    assert not found.is_valid
    assert any(reason in problem for problem in found.problems), found.problems


def test_every_problem_is_said_and_a_missing_file_too(tmp_path):
    found = check(tmp_path, [*lines(), "1", "2", lines()[0]])
    assert [problem.partition(":")[0] for problem in found.problems] == ["line 201", "line 202", "line 203"]
    with pytest.raises(CorpusError, match="none.jsonl cannot be read"):
        check_generations(tmp_path / "none.jsonl", set(IDS))


def test_answers_to_score_must_be_lines_of_answers(tmp_path):
    path = tmp_path / "g.jsonl"
    path.write_text("\n".join(lines(IDS[:2])))
    assert read_generations(path) == {"id000": "answer id000", "id001": "answer id001"}
    path.write_text("\n".join([*lines(IDS[:2]), lines()[0]]))
    with pytest.raises(CorpusError, match="g.jsonl, line 3: id 'id000' has an answer already"):
        read_generations(path)
    path.write_text('{"id": "a"}')
    with pytest.raises(CorpusError, match="g.jsonl, line 1: expected a text under 'answer'"):
        read_generations(path)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"name": ""}, "'name' must be a text, found an empty text"),
        ({"name": None}, "'name' must be a text, found null"),
        ({"type": "BIG"}, "'type' must be FOUNDATION | FINETUNE | PROMPT | OTHER"),
        ({"context": "32,000"}, "'context' must be a whole number above 0"),
        ({"context": True}, "'context' must be a whole number above 0"),
        ({"context": 0}, "'context' must be a whole number above 0"),
        ({"is_trained_for_function_calling": "yes"}, "must be true or false"),
        ({"closedbook_generations": "a/b.jsonl"}, "must be the name of a .jsonl file or null"),
        ({"closedbook_generations": "b.json"}, "must be the name of a .jsonl file or null"),
        ({"closedbook_generations": None}, "no setting has generations"),
        ({"score": 1.0}, "'score' is no field of the metadata"),
        ({"authors": "The list of authors, in natural language"}, "still is the template's text"),
    ],
)
def test_broken_metadata_is_refused_with_the_reason(changes, reason):
    found = check_metadata(METADATA | changes)
    assert any(reason in problem for problem in found.problems), found.problems


def test_metadata_needs_every_field_but_the_details():
    assert check_metadata(METADATA).is_valid
    assert "open-book, evidence-provided" in check_metadata(METADATA).notes[0]
    for key in FIELDS:
        found = check_metadata({name: value for name, value in METADATA.items() if name != key})
        assert found.is_valid == (key == "details"), key
    assert not check_metadata([METADATA]).is_valid


def test_a_submission_is_written_as_a_pull_request_adds_it(tmp_path):
    answers = {LeaderboardSetting.OPEN_BOOK: {name: f"ä {name}" for name in IDS} | {"id007": " "}}
    files = write_submission(tmp_path, METADATA, answers, IDS)
    assert [str(path.relative_to(tmp_path)) for path in files] == [
        "leaderboard-submissions/metadata/our-system.json",
        "leaderboard-submissions/openbook-generations/our-system.jsonl",
    ]
    written = json.loads(files[0].read_text(encoding="utf-8"))
    assert written["openbook_generations"] == "our-system.jsonl"
    assert written["closedbook_generations"] is None
    found = check_generations(files[1], set(IDS))
    assert (found.is_valid, found.n) == (True, 199)
    assert list(read_generations(files[1])) == [name for name in IDS if name != "id007"]


def test_a_submission_that_breaks_a_rule_is_not_written(tmp_path):
    with pytest.raises(CorpusError, match="open-book: 190 of 200 questions have no answer"):
        write_submission(tmp_path, METADATA, {LeaderboardSetting.OPEN_BOOK: dict.fromkeys(IDS[:10], "x")}, IDS)
    with pytest.raises(CorpusError, match="metadata: 'context' must be"):
        write_submission(
            tmp_path, METADATA | {"context": -1}, {LeaderboardSetting.OPEN_BOOK: dict.fromkeys(IDS, "x")}, IDS
        )
    assert list(tmp_path.iterdir()) == []


def test_the_published_rows_are_what_they_should_be():
    origin, rows = published()
    assert origin.endswith("(the data of https://fanoutqa.com), as read on 2026-11-21")
    assert len({(row.name, row.setting) for row in rows}) == len(rows) == 16 * 3 + 4
    for row in rows:
        assert all(0 <= figure <= 1 for figure in row.figures), row
        assert row.strict < row.loose
        assert row.rouge2 < row.rougeL < row.rouge1
    best = leaderboard(LeaderboardSetting.EVIDENCE_PROVIDED)[0]
    assert (best.name, best.loose) == ("Claude 3 Opus", 0.715)
    assert [row.loose for row in leaderboard(LeaderboardSetting.OPEN_BOOK)] == sorted(
        (row.loose for row in leaderboard(LeaderboardSetting.OPEN_BOOK)), reverse=True
    )

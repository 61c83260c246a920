"""`ragqa eval answers`: what it keeps, what it writes, how it continues, what it refuses."""

import json
from dataclasses import asdict, replace

import pytest
from typer.testing import CliRunner

import ragqa.evaluation.benchmarks.generated_answers.benchmark as answers
from ragqa.cli import app
from ragqa.corpus.answers import read_answers
from ragqa.corpus.questions import load_asked
from ragqa.errors import CorpusError, GenerationError, RagqaError
from ragqa.evaluation.benchmark import Outcome, Status
from ragqa.evaluation.benchmarks.generated_answers.measures import MEASURES, lix, means
from ragqa.evaluation.files import has_gold, has_questions
from ragqa.evaluation.loading import answer_stamp_of
from ragqa.evaluation.run import run
from ragqa.settings.config import Config
from ragqa.settings.paths import Paths
from ragqa.types import Question, Usage
from tests.support.answers_entry import load_pipeline
from tests.support.fakes import FakeEncoder, FakeGenerator, answer
from tests.support.helpers import ANSWER, PASSAGES
from tests.support.made import read_run
from tests.support.openai_server import OpenAIServer
from tests.support.openai_server import answer as server_answer

PAID = replace(ANSWER, usage=Usage(1000, 200))
EMPTY = answer("", finish_reason="empty", note="nothing came")


class Writer(FakeGenerator):
    """Answers each question alike, or fails where the question is among those named."""

    def __init__(self, result=PAID, failing=()):
        super().__init__(result)
        self.failing = set(failing)

    def stream(self, question, passages):
        if question.question_id in self.failing:
            self.calls.append((question, tuple(passages)))
            msg = f"no answer to {question.question_id}"
            raise GenerationError(msg)
        return (yield from super().stream(question, passages))

    @property
    def asked(self):
        return [question.question_id for question, _ in self.calls]


@pytest.fixture
def place(tmp_path):
    rows = [{"QuestionID": f"q{n}", "Question": f"What of {n}?"} for n in range(1, 5)]
    (tmp_path / "questions.json").write_text(json.dumps(rows))
    return tmp_path


@pytest.fixture
def call(place, monkeypatch):
    """Runs the command around this generator: (exit code, standard output, standard error)."""

    def run(*options, writer=None, command="answers", questions="questions.json", out="out"):
        monkeypatch.setattr(
            answers, "pipeline_for", lambda config, *_a, **_k: load_pipeline(0.0, config, generator=writer or Writer())
        )
        arguments = ["--questions", str(place / questions), "--out", str(place / out), *options]
        result = CliRunner().invoke(app, ["eval", command, *arguments], env={"COLUMNS": "200"})
        if isinstance(result.exception, RagqaError):
            return type(result.exception).__name__, result.stdout, str(result.exception)
        return result.exit_code, result.stdout, result.stderr

    return run


def read(place, name, out="out"):
    return json.loads((place / out / name).read_text())


# What is written ----------------------------------------------------------------------------------------------------


def test_the_answers_are_in_the_form_of_rirag_a6_and_ragqa_score_reads_them(call, place):
    assert call()[0] == 0
    rows = read(place, "answers.json")
    assert [row["QuestionID"] for row in rows] == ["q1", "q2", "q3", "q4"]
    assert set(rows[0]) == {"QuestionID", "Question", "RetrievedPassages", "Answer", "RetrievedIDs"}
    assert rows[0]["RetrievedPassages"] == [PASSAGES[0].text, PASSAGES[1].text]
    assert rows[0]["RetrievedIDs"] == ["1:1.1", "1:1.2"]
    assert rows[0]["Answer"] == ANSWER.text
    assert [item.answer for item in read_answers(place / "out" / "answers.json").items] == [ANSWER.text] * 4


def test_the_run_file_holds_the_whole_ranking_of_each_question(call, place):
    call()
    run = read_run(place / "out" / "ranking.run")
    assert list(run) == ["q1", "q2", "q3", "q4"]
    assert [name for name, _ in run["q1"]] == ["1:1.1", "1:1.2", "2:3.4"]


def test_details_tell_what_was_written_what_was_verified_and_every_measure(call, place):
    call()
    detail = read(place, "details.json")[0]
    assert detail["status"] == "scored"
    assert {measure.key for measure in MEASURES} <= set(detail["values"])
    assert detail["as_written"] == ANSWER.raw
    check = detail["sentences"][1]["citations"]
    assert (check["written"], check["verified"]) == ([2], [] if check["status"] == "removed" else check["verified"])
    assert set(detail["seconds"]) == {"retrieval", "fusion", "filtering", "generation"}


def test_an_answer_from_passages_without_obligations_has_no_problem_if_it_is_supported(place):
    pipeline = load_pipeline(0.0, Config(), generator=Writer(answer("Nothing here matters.", [(1,)])))
    task = answers.task_of(pipeline, answers.BENCHMARK.settings(questions=place / "questions.json"))
    received = answers.ReceivedAnswer(pipeline.generator.result, PASSAGES[2:], (), {})
    scores = answers.score(task, task.items[0], asdict(received))
    (sentence,) = scores["sentences"]
    done = {"solution": asdict(received), "scores": {**scores, "sentences": [sentence | {"verdict": "supported"}]}}
    assert scores["values"]["obligation_coverage"] == 0
    assert answers.row(task, Outcome(task.items[0], Status.SCORED, read=done.get)).right is True


def test_the_report_adds_up_tokens_and_money(call, place):
    code, out, _ = call("--price-in", "2", "--price-out", "10", "--json")
    report = json.loads(out)
    assert code == 0
    assert report == read(place, "report.json")
    assert report["tokens"] == {"prompt": 4 * 1000, "completion": 4 * 200}
    assert report["money"] == pytest.approx((4 * 1000 * 2 + 4 * 200 * 10) / 1_000_000)
    assert report["counts"] == {"scored": 4, "empty": 0, "failed": 0, "left": 0}
    assert report["means"]["words"] == len(ANSWER.text.split())


def test_an_answer_without_a_sentence_is_counted_and_in_no_mean(call, place):
    call(writer=Writer(EMPTY), out="empty")
    report = read(place, "report.json", "empty")
    assert report["counts"]["empty"] == 4
    assert set(report["means"].values()) == {None}
    assert [row["Answer"] for row in read(place, "answers.json", "empty")] == [""] * 4


def test_the_table_names_every_measure(call):
    _, out, _ = call()
    assert all(measure.heading in out for measure in MEASURES)
    assert "4,000 tokens sent, 800 written in all" in out


# Continuing -----------------------------------------------------------------------------------------------------------


def test_a_question_under_way_when_the_process_died_is_asked_again_and_said(call, place):
    call()
    journal = place / "out" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-2]) + lines[-2][:50])  # begun, and a torn line
    again = Writer()
    _, out, err = call(writer=again)
    assert again.asked == ["q4"]
    assert "discarded an incomplete entry" in err
    assert "1 were in progress when the last run ended" in err
    assert "asked again after a stop or a failure: 1" in out


def test_other_questions_are_refused(call, place):
    call()
    (place / "questions.json").write_text(json.dumps([{"QuestionID": "q1", "Question": "Something else?"}]))
    assert call()[0] == "ConfigError"


def test_patience_and_parallel_questions_decide_no_answer(call, place, monkeypatch):
    call("--parallel", "3")
    again = Writer()
    assert call("--parallel", "1", writer=again)[0] == 0
    assert again.asked == []
    assert [row["QuestionID"] for row in read(place, "answers.json")] == ["q1", "q2", "q3", "q4"]


# What is refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "found no question"),
        ('[{"Question": "A?"}]', "QuestionID"),
        ('[{"QuestionID": "1"}]', "Question"),
        ('[{"QuestionID": "1", "Question": "A?"}, {"QuestionID": "1", "Question": "B?"}]', "'1' several times"),
        ('[{"QuestionID": "1", "Question": " "}]', "not empty"),
    ],
)
def test_broken_questions_are_named(call, place, content, message):
    (place / "broken.json").write_text(content)
    kind, _, found = call(questions="broken.json")
    assert kind == "CorpusError"
    assert message in found
    assert not (place / "out" / "journal.jsonl").exists()


def test_questions_come_with_or_without_gold(place, tmp_path):
    gold = [{"QuestionID": "g", "Question": "Why?", "Passages": [{"DocumentID": 1, "PassageID": "1.1"}]}]
    (tmp_path / "gold.json").write_text(json.dumps(gold))
    assert load_asked(tmp_path / "gold.json") == (Question("Why?", "g"),)
    assert len(load_asked(place / "questions.json")) == 4
    lines = tmp_path / "plain.jsonl"
    lines.write_text('{"question": "Why?"}\n{"question": "How?", "id": "h", "gold_passage_ids": [1]}\n')
    assert load_asked(lines) == (Question("Why?", "1"), Question("How?", "h"))
    assert (has_questions(lines), has_gold(lines)) == (True, True)
    lines.write_text('{"question": "Why?", "gold_passage_ids": 1}\n')
    with pytest.raises(CorpusError, match="expected a list of ids"):
        load_asked(lines)
    lines.write_text('{"question": "Why?"}\n')
    assert (has_questions(lines), has_gold(lines)) == (True, False)
    lines.write_text('{"id": 1, "text": "A question?"}\n')
    assert not has_questions(lines)
    with pytest.raises(CorpusError, match="no file"):
        load_asked(tmp_path / "nowhere.json")


def test_the_stamp_of_an_answer_holds_all_that_decides_it_and_nothing_else(place, monkeypatch):
    def stamp(**changes):
        config = Config(generation=replace(Config().generation, **changes))
        return answer_stamp_of(place / "questions.json", load_pipeline(0.0, config, generator=Writer()))

    monkeypatch.delenv("RAGQA_PROMPTS", raising=False)
    plain = stamp()
    assert stamp(timeout_seconds=7.0, max_retries=0, parallel_calls=2) == plain
    assert stamp(base_url="http://me:secret@localhost/v1") == stamp(base_url="http://localhost/v1") != plain
    assert plain["models"]["encoder"]["name"] == FakeEncoder().info.name
    assert stamp(generator="vrr") != plain
    assert stamp(model="another") != plain
    monkeypatch.setenv("RAGQA_PROMPTS", str(place))
    assert stamp() == plain | {"prompts": str(place)}
    stamps = []
    for text in ("Answer briefly.", "Answer at length."):
        (place / "answer.txt").write_text(text)
        stamps.append(stamp())
    assert stamps[0] != stamps[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--price-in", "1"), "go together"),
        (("--generator", "nobody"), "generator must be"),
        (("--preset", "nobody"), "unknown preset"),
    ],
)
def test_wrong_options_are_named_before_anything_is_asked(call, place, options, message):
    writer = Writer()
    kind, _, found = call(*options, writer=writer)
    assert kind == "ConfigError"
    assert message in found
    assert writer.asked == []


@pytest.mark.long
def test_passages_only_are_no_answers(place, monkeypatch):
    pipeline = replace(load_pipeline(0.0, Config()), generator=None)
    monkeypatch.setattr(answers, "pipeline_for", lambda *_a, **_k: pipeline)
    arguments = ["eval", "answers", "--questions", str(place / "questions.json"), "--out", str(place / "none")]
    assert "got 'none'" in str(CliRunner().invoke(app, arguments).exception)


# The run itself -----------------------------------------------------------------------------------------------------


def run_of(tmp_path, pipeline, n, parallel=1):
    """How each of ``n`` questions ended through this pipeline, by number, and what the run raised."""
    rows = [{"QuestionID": f"q{n}", "Question": f"What of {n}?"} for n in range(1, n + 1)]
    (tmp_path / "questions.json").write_text(json.dumps(rows))
    settings = answers.BENCHMARK.settings(questions=tmp_path / "questions.json", parallel=parallel)
    task, found, raised = answers.task_of(pipeline, settings), {}, None
    try:
        for progress in run(answers.BENCHMARK, settings, tmp_path / "run", Paths(tmp_path), task=task):
            if progress.outcome:
                found[progress.outcome.item.number] = progress.outcome
    except GenerationError as error:
        raised = str(error)
    return found, raised


def test_failures_between_answers_end_nothing(tmp_path):
    writer = Writer(failing=[f"q{n}" for n in range(1, 21) if n % 3])
    found, raised = run_of(tmp_path, load_pipeline(0.0, Config(), generator=writer), 20)
    assert raised is None
    assert sum(outcome.status is Status.SCORED for outcome in found.values()) == 6


def test_what_a_server_had_written_is_not_asked_for_again_when_the_work_on_it_broke_off(tmp_path):
    config = replace(Config().generation, generator="vrr", max_retries=0, rounds=0, parallel_calls=1)
    with OpenAIServer(server_answer("A firm must act at once [1].")) as server:
        config = replace(Config(), generation=replace(config, base_url=server.base_url, model="test"))
        broken = load_pipeline(0.0, config)
        broken.generator._verifier.stream = None  # a bug, once the first candidate has come
        with pytest.raises(TypeError):
            run_of(tmp_path, broken, 1)
        assert len(server.requests) == 1
        found, _ = run_of(tmp_path, load_pipeline(0.0, config), 1)
        assert len(server.requests) == 5
    assert found[1].solution["answer"]["usage"] == {"prompt_tokens": 5 * 100, "completion_tokens": 5 * 20}


# The page -----------------------------------------------------------------------------------------------------------


def test_a_row_has_the_answer_its_passages_and_what_is_gold(tmp_path):
    gold = [
        {"QuestionID": "q1", "Question": "Why?", "Passages": [{"DocumentID": 1, "PassageID": "1.1", "Passage": "x"}]}
    ]
    (tmp_path / "questions.json").write_text(json.dumps(gold))
    settings = answers.BENCHMARK.settings(questions=tmp_path / "questions.json", price_in=2.0, price_out=10.0)
    config = replace(Config(), generation=replace(Config().generation, generator="llm"))
    task = answers.task_of(load_pipeline(0.0, config, generator=Writer()), settings)
    last = list(run(answers.BENCHMARK, settings, tmp_path / "run", Paths(tmp_path), task=task))[-1]
    (row,) = last.rows
    assert (row.answer, row.gold) == (ANSWER.text, ("1:1.1",))
    assert [(hit.passage_id, hit.is_gold) for hit in row.hits] == [("1:1.1", True), ("1:1.2", False)]
    assert [step.partition(":")[0] for step in row.steps] == ["retrieval", "fusion", "filtering", "generation"]
    assert [sentence.text for sentence in row.sentences] == [sentence.text for sentence in ANSWER.sentences]
    labels = [figure.label for figure in last.report.figures]
    assert labels == ["RePASs", "Tokens", "E", "C", "OC", "Relevance", "Copied"]
    assert last.report.figures[1].text == f"1,000 + 200, {(1000 * 2 + 200 * 10) / 1e6:.2f} of about 0.00"
    ours = [line for line in last.report.comparisons[0].lines if line.is_ours]
    assert [line.name for line in ours] == ["llm, mode paper", "llm, mode script"]


def test_what_was_published_is_shown_before_anything_has_run():
    (comparison,) = answers.BENCHMARK.published({}).comparisons
    assert "human experts" in [line.name for line in comparison.lines]


# Measures -----------------------------------------------------------------------------------------------------------


def test_lix_is_words_per_sentence_and_the_share_of_long_words():
    expected = 6 / 2 + 100 * 2 / 6  # "custodian" and "quickly" have seven letters or more
    assert lix(["The custodian sleeps.", "A mother quickly!"]) == pytest.approx(expected)
    assert lix(["The 3.2.1 custodian sleeps 1,000,000.", "A mother quickly!"]) == pytest.approx(expected)
    assert lix([]) is None
    assert lix(["12 3.4"]) is None


def test_a_mean_is_over_the_answers_that_have_the_measure():
    rows = [{"lix": 10.0, "words": 3.0}, {"lix": None, "words": 5.0}]
    found = means(rows)
    assert (found["lix"], found["words"], found["copied"]) == (10.0, (3 + 5) / 2, None)

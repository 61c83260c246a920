"""The command line in-process: real corpus, index, fusion, filter, generator, scorer and records around fake models."""

import csv
import hashlib
import io
import json
import logging
import os
import subprocess
import sys
from dataclasses import asdict, replace

import pytest
from docx import Document
from typer.main import get_command
from typer.testing import CliRunner

import ragqa.cli
import ragqa.loading
from ragqa.cli import COMMANDS, app, load_command
from ragqa.cli.output import tracked
from ragqa.errors import ConfigError, GenerationError, QuestionError, RagqaError, ScoringError
from ragqa.infra.journal import JOURNAL
from ragqa.models.catalogue import LocalModel
from ragqa.models.inference.precision import Timing, timings
from ragqa.pipeline import Pipeline
from ragqa.records.record import AnswerRecord
from ragqa.records.store import RecordStore
from ragqa.settings.paths import Paths
from tests.support.fakes import FakeEncoder, FakeNli, FakeReranker, fake_models
from tests.support.hostile import hostile_texts, write_hostile_corpus
from tests.support.openai_server import OpenAIServer, answer

RULES = [
    ("1.", "DUTIES"),
    ("1.1", "A firm must report suspicious conduct within two days."),
    ("1.2", "A firm may ask the regulator for more time."),
    ("1.3", "Records of Client Money must be kept for six years."),
    ("2.1", "The sky over the Centre is usually blue."),
]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    folder = tmp_path_factory.mktemp("places")
    rows = [{"ID": n, "DocumentID": 1, "PassageID": n, "Passage": text} for n, text in RULES]
    (folder / "rules").mkdir()
    (folder / "rules" / "1.json").write_text(json.dumps(rows))
    write_hostile_corpus(folder / "hostile")
    return folder


@pytest.fixture
def call(monkeypatch, places):
    """Runs a command; gives its exit code, standard output and standard error."""
    monkeypatch.setenv("RAGQA_INDEXES", str(places / "indexes"))
    monkeypatch.setenv("COLUMNS", "200")
    models = fake_models()
    monkeypatch.setattr(ragqa.loading, "load_models", lambda encoder, scoring, paths=None: models)
    monkeypatch.setattr(ragqa.loading, "load_nli", lambda *_: models.entailment)
    monkeypatch.setattr(ragqa.loading, "load_obligations", lambda scoring: models.obligations)
    monkeypatch.setattr(ragqa.loading, "load_encoder", lambda name, precision="auto", paths=None: FakeEncoder())

    def run(*arguments):
        result = CliRunner().invoke(app, list(arguments))
        return result.exit_code, result.stdout, result.stderr, result.exception

    for name in ("rules", "hostile"):
        if not (places / "indexes" / name).is_dir():
            code, _, _, error = run("index", "build", name, "--source", str(places / name))
            assert code == 0, error
    return run


@pytest.mark.long
def test_python_m_ragqa_is_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    command = [sys.executable, "-m", "ragqa", "records", "show", "nope"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 6, done.stderr
    assert "ragqa records list" in " ".join(done.stderr.split())


@pytest.mark.long
def test_build_list_info_verify_delete(call, places):
    code, out, _, _ = call("index", "build", "again", "--source", str(places / "rules"), "--format", "obliqa")
    assert code == 0
    assert "index again: 5 passages of 1 documents" in out
    listed = call("index", "list")[1]
    assert "again" in listed
    assert "built (UTC)" in listed
    assert "corpus_sha256" in call("index", "info", "again")[1]
    assert "is intact" in call("index", "verify", "again")[1]
    assert call("index", "delete", "again", "--yes")[0] == 0
    assert "again" not in call("index", "list")[1]


def test_a_damaged_index_is_listed_with_what_is_wrong(call, places):
    assert call("index", "build", "torn", "--source", str(places / "rules"))[0] == 0
    (places / "indexes" / "torn" / "manifest.json").write_text("{")
    assert "cannot be read" in " ".join(call("index", "list")[1].split())
    assert isinstance(call("ask", "Who?", "--index", "torn")[3], RagqaError)
    assert call("index", "delete", "torn", "--yes")[0] == 0


def test_ask_prints_passages_answer_scores_and_the_record(call):
    code, out, _, error = call("ask", "Which conduct must a firm report?", "--index", "rules")
    assert code == 0, error
    for part in ("Passages: kept", "A firm must report suspicious conduct", "direct, no language model", "RePASs"):
        assert part in out
    record_id = out.split("record ")[1].split(";")[0]
    assert record_id in call("records", "list")[1]
    assert "Answer sentences" in call("records", "show", record_id)[1]


def test_a_memo_quotes_the_corpus_word_for_word(call, tmp_path):
    first = AnswerRecord.from_json(call("ask", "How long must records be kept?", "--index", "rules", "--json")[1])
    last = AnswerRecord.from_json(call("ask", "--follow", first.record_id, "And why?", "--json")[1])
    out = tmp_path / "memo.docx"
    code, _, err, error = call("memo", last.record_id, first.record_id, "--out", str(out))
    assert code == 0, error
    assert "memo.docx" in err
    quoted = [one.text for one in Document(out).paragraphs if one.style.name == "Quote"]
    assert quoted
    assert set(quoted) <= {text for _, text in RULES}
    printed = call("memo", first.record_id)[1]
    assert printed.startswith("# How long must records be kept?\n")
    assert "expected a file that ends in" in str(call("memo", first.record_id, "--out", str(tmp_path / "memo"))[3])
    assert "a folder that exists" in str(call("memo", first.record_id, "--out", str(tmp_path / "no" / "a.md"))[3])
    assert "no record 'nope'" in str(call("memo", "nope")[3])


def test_a_questionnaire_is_answered_row_by_row_and_goes_on_after_a_kill(call, tmp_path, monkeypatch):
    file, out = tmp_path / "questions.csv", tmp_path / "answers.csv"
    file.write_text(
        "Question,Owner\nWhat must a firm report?,Ann\n" + "x" * 9_000 + ",Bob\nHow long are records kept?,=1\n"
    )
    command = ("ask", "--batch", str(file), "--out", str(out), "--index", "rules")
    asked, run = [], Pipeline.run

    def killed(pipeline, question):
        asked.append(question.text[:9])
        if len(asked) == 3:
            raise KeyboardInterrupt
        return run(pipeline, question)

    monkeypatch.setattr(Pipeline, "run", killed)
    assert call(*command)[0]
    code, _, err, error = call(*command)
    assert code == 0, error
    assert asked == ["What must", "xxxxxxxxx", "How long ", "xxxxxxxxx", "How long "]
    assert "1 questions answered, 1 failed, 1 were answered before" in " ".join(err.split())
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert [row["Owner"] for row in rows] == ["Ann", "Bob", "=1"]
    assert rows[1]["ragqa result"].startswith("Failed: The question has 9,000 characters")
    store = RecordStore(Paths.from_env().records)
    assert rows[0]["ragqa answer"] == store.load(rows[0]["ragqa record"]).answer.text
    assert rows[2]["ragqa rules"] == "Document 1 1.3"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--batch", "q.csv"], "--batch expects --out"),
        (["Who?", "--batch", "q.csv", "--out", "a.csv"], "--batch expects --out"),
        (["Who?", "--out", "a.csv"], "no --batch"),
        (["--batch", "q.csv", "--out", "a.csv", "--generator", "none"], "choose another --generator"),
        (["--batch", "q.csv", "--out", "a.csv"], "expected a file of questions"),
    ],
)
def test_a_questionnaire_that_cannot_be_is_refused(call, arguments, message):
    assert message in str(call("ask", *arguments)[3])


def test_check_takes_a_text_standard_input_and_a_file_of_answers(call, tmp_path):
    text = "A firm must report suspicious conduct within two days. The sky is green."
    (tmp_path / "reply.txt").write_text(text)
    code, out, _, error = call("check", str(tmp_path / "reply.txt"), "--index", "rules")
    assert code == 0, error
    for part in ("a text given to be checked", "The sky is green.", "1 supported, 1 unsupported", "RePASs"):
        assert part in out, part
    assert "A firm must report" in call("records", "list")[1]
    rows = [{"Question": "Who reports?", "RetrievedPassages": ["Elsewhere."], "Answer": text}, {"Answer": None}]
    (tmp_path / "answers.json").write_text(json.dumps(rows))
    code, out, err, error = call("check", str(tmp_path / "answers.json"), "--index", "rules", "--json")
    assert code == 0, error
    assert "skipped 1 item without an answer: 2" in err
    record = AnswerRecord.from_json(out)
    assert (record.question.text, record.question.given) == ("Who reports?", text)
    assert CliRunner().invoke(app, ["check", "-", "--index", "rules"], input=text).exit_code == 0
    (tmp_path / "none.json").write_text('[{"Answer": ""}]')
    for file, message in (("nothing.txt", "cannot read"), ("none.json", "holds no answer")):
        assert message in str(call("check", str(tmp_path / file))[3])


def test_a_text_that_cannot_be_checked_does_not_keep_the_others_from_it(call, tmp_path):
    answers = tmp_path / "answers.json"
    texts = ("A firm must act. " * 2_000, "A firm must report conduct within two days.")
    rows = [
        {"QuestionID": str(n), "Question": "Who?", "Answer": text, "RetrievedPassages": ["A."]}
        for n, text in enumerate(texts)
    ]
    answers.write_text(json.dumps(rows))
    _, out, err, error = call("check", str(answers), "--index", "rules", "--json")
    assert json.loads(out)["question"]["given"] == texts[1]
    assert "0: The text has 33,999 characters; at most 30,000" in " ".join(err.split())
    assert isinstance(error, QuestionError)
    assert str(error) == "1 of 2 texts could not be read; the lines above say why"


def test_ask_reranks_where_a_reranker_is_named(call, monkeypatch):
    asked = []
    table = {text: float(number == "2.1") for number, text in RULES}
    monkeypatch.setattr(ragqa.loading, "load_reranker", lambda name: asked.append(name) or FakeReranker(table))
    question = ("ask", "Which conduct must a firm report to the Centre?", "--index", "rules")
    options = ("--reranker", "some/model", "--rerank-depth", "20", "--rerank-weight", "0.9")
    record = AnswerRecord.from_json(call(*question, *options, "--json")[1])
    assert asked == ["some/model"]
    assert (record.reranking.model, record.reranking.depth, record.reranking.weight) == ("some/model", 20, 0.9)
    assert record.candidates[0].passage_id == "1:2.1"
    out = call(*question, *options, "--generator", "none")[1]
    assert "reranker" in out.split("decision")[0]
    assert "reranker" not in call(*question, "--reranker", "", "--generator", "none")[1]
    assert len(asked) == 2
    record = AnswerRecord.from_json(call(*question, "--json")[1])
    assert asked[2:] == [record.reranking.model] == ["ranker-regulation"]
    assert "rerank weight must be in [0, 1]" in str(call(*question, "--rerank-weight", "3")[3])


def test_ask_json_is_the_whole_record_and_nothing_else(call, tmp_path):
    options = [
        "--threshold",
        "0",
        "--max-drop",
        "1",
        "--top-k",
        "2",
        "--mode",
        "script",
        "--weight",
        "bm25=3",
        "--weight",
        "dense=7",
    ]
    code, out, _, _ = call("ask", "Which conduct must a firm report?", "--index", "rules", "--json", *options)
    record = AnswerRecord.from_json(out)
    assert code == 0
    assert len(record.kept) == 2
    assert (record.fusion.weights, record.scoring.mode) == ({"bm25": 0.3, "dense": 0.7}, "script")
    exported = call("records", "export", record.record_id)[1]
    assert AnswerRecord.from_json(exported) == record
    today = replace(record, filtering=replace(record.filtering, top_k=1))  # as if the rule were another one since
    RecordStore(Paths.from_env().records).save(today)
    assert "Passages: kept 2 of" in call("records", "show", record.record_id)[1]
    RecordStore(Paths.from_env().records).save(record)
    target = tmp_path / "record.json"
    assert call("records", "export", record.record_id, "--out", str(target))[0] == 0
    assert AnswerRecord.from_json(target.read_text()) == record


def test_both_bm25_libraries_rank_alike(call):
    question = ("ask", "Which conduct must a firm report?", "--index", "rules", "--json", "--bm25-library")
    ours, theirs = (AnswerRecord.from_json(call(*question, name)[1]) for name in ("bm25s", "rank_bm25"))
    assert [hit for hit, _ in ours.rankings[0].hits] == [hit for hit, _ in theirs.rankings[0].hits]
    assert theirs.retrieval.bm25_backend == "rank_bm25"


def test_a_preset_sets_the_filter(call):
    _, out, _, _ = call("ask", "What must a firm do?", "--index", "rules", "--json", "--preset", "no filter, k = 10")
    assert AnswerRecord.from_json(out).filtering.threshold == 0.0


def test_score_reads_a_file_of_answers(call, tmp_path):
    items = [
        {"Question": "Q1", "RetrievedPassages": ["A firm must act. Cats sleep."], "Answer": "A firm must act."},
        {"Question": "Q2", "RetrievedPassages": '["Nothing here."]', "Answer": "Dogs must bark.", "extra": 1},
    ]
    file = tmp_path / "answers.json"
    file.write_text(json.dumps(items))
    code, out, _, error = call("score", str(file), "--details")
    assert code == 0, error
    # Q1: E .9 (identical), C .05; the one obligation is covered by it. Q2: E .1, C .1, no obligation.
    assert f"{(0.9 - 0.1 + 1 + 1) / 3:.3f}" in out
    rows = json.loads(call("score", str(file), "--json", "--mode", "script")[1])
    assert [row["Question"] for row in rows] == ["Q1", "Q2"]
    assert rows[0]["script"]["repass"]["obligation_coverage"] == 1.0


@pytest.mark.long
def test_eval_prints_recall_and_map(call, tmp_path):
    gold = [{"DocumentID": 1, "PassageID": "1.1", "Passage": ""}]
    file = tmp_path / "questions.json"
    file.write_text(
        json.dumps([{"QuestionID": "q", "Question": "report suspicious conduct within two days", "Passages": gold}])
    )
    report = json.loads(call("eval", "retrieval", "--index", "rules", "--questions", str(file), "--json")[1])
    assert report["measures"]["bm25"]["R@10"] == report["measures"]["bm25"]["AP@10"] == 1.0
    assert "MAP@10" in call("eval", "retrieval", "--index", "rules", "--questions", str(file))[1]
    timed = Timing("scoring", "OpenVINO", FakeNli.info.fingerprint, timings().processor, 0.25, 0.125)
    Paths.from_env().precision_timings.write_text(json.dumps([asdict(timed)]))
    said = call("eval", "speed", "--index", "rules", "--questions", str(file))[1]
    assert "milliseconds to selection" in said
    assert "entailment: fake-nli, fp32; scoring timed here: fp32 250.0 ms, bf16 125.0 ms\n" in said
    assert f"encoder: {FakeEncoder().info.name}, fp32\n" in said
    arguments = ("--questions", str(file), "--preset", "BM25 only", "--selection")
    found = call("eval", "speed", "--index", "rules", *arguments)[1]
    assert "rules, BM25 only: 1 questions" in found
    assert "99th percentile" in found
    assert "final scores" in said
    assert "final scores" not in found


@pytest.mark.long
def test_eval_retrieval_writes_runs_results_and_a_report(call, tmp_path):
    gold = [{"DocumentID": 1, "PassageID": "1.1", "Passage": ""}]
    file, out = tmp_path / "questions.json", tmp_path / "out"
    file.write_text(json.dumps([{"QuestionID": "q", "Question": "report suspicious conduct", "Passages": gold}]))
    arguments = ["eval", "retrieval", "--index", "rules", "--questions", str(file), "--out", str(out)]
    text = call(*arguments, "--preset", "BM25 only", "--baseline", "bm25")[1]
    assert "MAP@10" in text
    assert "BM25 only" in text
    report = json.loads((out / "report.json").read_text())
    assert report["measures"]["BM25 only"] == report["measures"]["bm25"]
    assert {c["name"] for c in report["comparisons"]} == {"context", "dense", "fused", "BM25 only"}
    assert (out / "fused.run").read_text().startswith("q Q0 1:1.1 1 ")
    row = json.loads((out / "bm25.questions.jsonl").read_text())
    assert (row["question_id"], row["gold"], row["values"]["R@10"]) == ("q", ["1:1.1"], 1.0)
    for wrong in ("--baseline", "--preset"):
        code, _, _, error = call(*arguments, wrong, "nobody")
        assert code == 1
        assert isinstance(error, ConfigError)
        assert "'nobody'" in str(error)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["ask", "  ", "--index", "rules"], 2, "question is empty"),
        (["ask", "Who?", "--index", "rules", "--threshold", "7"], 2, "threshold must be in"),
        (["ask", "Who?", "--index", "rules", "--preset", "x"], 2, "unknown preset"),
        (["ask", "Who?", "--index", "rules", "--weight", "bm25"], 2, "RANKING=SHARE"),
        (["ask", "Who?", "--index", "nope"], 3, "no index 'nope'"),
        (["index", "build", "../up", "--source", "."], 2, ""),
        (["index", "build", "x", "--source", "/nowhere"], 3, "does not exist"),
        (["records", "show", "nope"], 6, "ragqa records list"),
        (["score", "/nowhere.json"], 3, "cannot be read"),
    ],
)
@pytest.mark.long
def test_every_failure_is_one_message_and_an_exit_code(call, ended, arguments, code, message):
    captured = ended(*arguments, code=code)
    assert message in " ".join(captured.err.split())
    assert "Traceback" not in captured.out + captured.err


@pytest.mark.parametrize(
    ("error", "code"), [(GenerationError("down"), 4), (ScoringError("broke"), 5), (ZeroDivisionError("bug"), 1)]
)
def test_failures_inside_the_pipeline_have_their_own_codes(call, ended, monkeypatch, error, code):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(ragqa.pipeline, "load_pipeline", fail)
    assert "Traceback" not in ended("ask", "Who?", code=code).err
    logging.getLogger().handlers.clear()


@pytest.mark.parametrize(
    ("index", "every"), [("rules", 40), ("hostile", 20), pytest.param("hostile", 1, marks=pytest.mark.slow)]
)
def test_hostile_questions_end_in_an_answer(call, index, every):
    for text in hostile_texts()[::every]:
        code, out, err, error = call("ask", "--index", index, "--json", "--", text)
        if code:
            assert isinstance(error, RagqaError), (text, error)
            continue
        AnswerRecord.from_json(out)
        assert "\x1b" not in out
        assert "Traceback" not in out + err


@pytest.mark.long
def test_hostile_passages_reach_the_terminal_without_control_characters(call):
    for text in hostile_texts()[::20]:
        _, out, _, _ = call("ask", "--index", "hostile", "--", text[:100])
        assert "\x1b" not in out
        assert "\x07" not in out


def test_brackets_in_a_question_are_no_markup(call):
    question = "Must a firm report conduct [/b] and must it keep records [red]?"
    code, _, _, error = call("ask", question, "--index", "rules", "--generator", "fan-out")
    assert code == 0, error


def test_brackets_in_what_a_bar_counts_are_no_markup(capsys):
    assert tracked(iter([1, 2]), 2, "pairs [/v2].jsonl") == [1, 2]
    assert "pairs [/v2].jsonl" in capsys.readouterr().err


@pytest.mark.long
def test_every_generator_that_asks_a_language_model(call, monkeypatch):
    duty, record = "A firm must report suspicious conduct within two days.", "Records of Client Money must be kept."
    filters = ("--threshold", "0", "--max-drop", "1", "--top-k", "2")
    options = (*filters, "--candidates", "2", "--rounds", "1", "--tries", "1", "--max-calls", "3")
    for generator in ("obligations", "loc", "vrr"):
        with OpenAIServer(answer(f"{duty} [1]"), answer(f"{duty} [1]"), answer(f"{duty} [1] {record} [1]")) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            command = ("ask", "What must a firm report?", "--index", "rules", "--generator", generator)
            code, out, err, error = call(*command, *options)
            assert code == 0, error
            assert duty in out
            assert "RePASs (paper mode)" in out
            assert 1 <= len(server.requests) <= 3
            if generator != "obligations":
                assert "of a budget of 3" in " ".join(err.split())
                assert "Best so far" in err
    record_id = out.rsplit("record ", 1)[1].split(";")[0]
    code, out, _, _ = call("records", "show", record_id)
    assert code == 0
    assert "Candidate 1 written" in out


def test_the_baseline_generator_quotes_the_passages(call):
    code, out, _, error = call("ask", "What must a firm report?", "--index", "rules", "--generator", "baseline")
    assert code == 0, error
    assert "the kept passages, no language model" in out


def test_models_lists_what_the_server_offers(call, monkeypatch):
    with OpenAIServer(models=("large", "tiny")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("RAGQA_MODEL", "tiny")
        code, out, err, _ = call("models")
        assert (code, out.split("\n")[:2], err) == (0, ["  large", "* tiny"], "")
        monkeypatch.setenv("RAGQA_MODEL", "other")
        assert "does not list other" in call("models")[2]


def test_models_lists_those_for_this_machine_where_the_server_does_not_answer(call, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    _, out, _, error = call("models")
    assert "smollm2-135m (local" in out
    assert isinstance(error, GenerationError)


def test_models_without_a_server_lists_those_for_this_machine(call, monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("RAGQA_LOCAL_MODEL", "smollm2-135m")
    code, out, _, _ = call("models", "list")
    assert code == 0
    assert "* smollm2-135m (local, not fetched): SmolLM2 135M Instruct, Q4_1, Apache-2.0, 98 MB" in " ".join(
        out.split()
    )


def test_a_local_model_is_fetched_from_a_file_listed_and_removed(call, monkeypatch, tmp_path):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path / "home"))
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF weights")
    model = LocalModel("tiny", "Tiny", "MIT", "tiny.gguf", 12, hashlib.sha256(own.read_bytes()).hexdigest(), ())
    for module in ("ragqa.models.catalogue", "ragqa.cli.models"):
        monkeypatch.setattr(f"{module}.LOCAL_MODELS", (model,))
    monkeypatch.setattr("ragqa.generation.local.server.has_library", lambda: True)
    code, out, _, error = call("models", "fetch", "tiny", "--from", str(own))
    assert code == 0, error
    assert "ragqa ask --local-model tiny" in " ".join(out.split())
    assert "tiny (local, here)" in call("models", "list")[1]
    assert "0 MB freed" in call("models", "remove", "tiny")[1]
    assert "tiny (local, not fetched)" in call("models", "list")[1]
    assert "expected one of the models tiny" in str(call("models", "fetch", "other")[3])
    assert "ragqa models fetch tiny" in str(call("ask", "What?", "--index", "rules", "--local-model", "tiny")[3])


def test_ask_names_the_model(call, monkeypatch):
    with OpenAIServer(answer("A firm must report [1].")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        options = ("--index", "rules", "--generator", "llm", "--model", "tiny")
        assert call("ask", "What must a firm report?", *options)[0] == 0
        assert server.requests[0].body["model"] == "tiny"


def test_a_follow_up_is_shown_as_it_stands_alone_and_asked_of_the_same_corpus(call):
    first = AnswerRecord.from_json(call("ask", "How long must records be kept?", "--index", "rules", "--json")[1])
    code, out, err, error = call("ask", "--follow", first.record_id, "And why?", "--json")
    record = AnswerRecord.from_json(out)
    assert code == 0, error
    assert "Asked as: Why must records be kept?" in err
    assert (record.index, record.question.text) == ("rules", "Why must records be kept?")
    found = record.question.follow_up
    assert (found.record_id, found.asked, found.rewritten) == (first.record_id, "And why?", record.question.text)
    assert 'asked as "And why?"' in call("records", "show", record.record_id)[1]
    other = call("ask", "--follow", first.record_id, "And why?", "--as", "Why are records kept?", "--json")[1]
    assert AnswerRecord.from_json(other).question.text == "Why are records kept?"
    assert "no --follow" in str(call("ask", "And why?", "--as", "Why are records kept?")[3])


def test_a_corpus_of_the_library_is_kept_document_by_document(call, tmp_path, monkeypatch):
    monkeypatch.setenv("RAGQA_INDEXES", str(tmp_path / "indexes"))
    file = tmp_path / "note.md"
    file.write_text("# Note\n\nA firm must keep records.\n\n## More\n\nA firm may ask for time.")
    code, out, _, _ = call("index", "add", "mine", str(file))
    assert (code, "2 passages of 1 documents" in out) == (0, True)
    file.write_text("# Note\n\nA firm must keep records.\n\n## More\n\nA firm may ask for more time.")
    code, out, _, _ = call("index", "replace", "mine", str(file))
    assert (code, "note: replaced, passages: 0 new, 1 changed, 0 gone, 1 the same" in out) == (0, True)
    assert "name it by RAGQA_WATCHED_FOLDER" in str(call("index", "watched")[3])
    monkeypatch.setenv("RAGQA_WATCHED_FOLDER", str(tmp_path))
    assert call("index", "watched")[1].endswith(": nothing new\n")
    os.utime(file, (0, file.write_text("# Note\n\nA firm must keep all records.")))
    assert "new version of note in mine" in call("index", "watched")[1]
    assert "not now: note.md" in call("index", "watched", "--not-now", "note.md")[1]
    assert "choose one of: note.md" in str(call("index", "watched", "--not-now", "other.md")[3])
    assert "new version of note in mine" in call("index", "watched", "--again", "note.md")[1]
    *_, error = call("index", "remove", "mine", "other")
    assert isinstance(error, RagqaError)
    assert "choose one of: note" in str(error)
    *_, error = call("index", "build", "mine", "--source", str(tmp_path))
    assert "ragqa index add mine FILE" in str(error)
    (tmp_path / "two.md").write_text("# Two\n\nAnother text of its own.")
    call("index", "add", "mine", str(tmp_path / "two.md"))
    code, out, _, _ = call("index", "add", "mine", "--also", "document")
    assert (code, "added" in out) == (0, False)
    (tmp_path / "torn.pdf").write_text("no PDF")
    (tmp_path / "bare.docx").write_text("")
    files = [str(tmp_path / name) for name in ("torn.pdf", "bare.docx")]
    out = call("index", "add", "mine", *files)[1]
    assert "2 of 2 files were not read: torn.pdf (expected a PDF file by its name, found something else" in out
    (tmp_path / "folder").mkdir()
    for name in ("torn.pdf", "bare.docx", "note.md"):
        (tmp_path / name).rename(tmp_path / "folder" / name)
    out = call("index", "build", "folder", "--source", str(tmp_path / "folder"), "--format", "documents")[1]
    assert "2 of 3 files were not read: bare.docx, torn.pdf (the lines above say why)" in out
    code, out, _, _ = call("index", "remove", "mine", "note.md")
    assert "note: removed" in out
    assert "document" in call("index", "info", "mine")[1], "it stays"
    assert "`ragqa index add nobody FILE` makes it" in str(call("index", "add", "nobody", "--also", "document")[3])
    assert "further ranking" in str(call("index", "add", "mine", "--also", "nothing")[3])


def test_records_are_copied_to_another_store_and_what_is_there_otherwise_is_named(call, tmp_path):
    call("ask", "Must a firm report?", "--index", "rules")
    store = RecordStore(Paths.from_env().records)
    record = store.load(store.list()[0].record_id)
    there = tmp_path / "other.sqlite3"
    code, _, err, _ = call("records", "copy", str(store.place), str(there))
    assert (code, "copied 1 records, 0 were there already" in err) == (0, True)
    RecordStore(there).save(replace(record, status="answered"))
    error = call("records", "copy", str(store.place), str(there))[3]
    assert record.record_id in str(error)
    assert RecordStore(there).load(record.record_id).status == "answered"
    assert "there is no record file" in str(call("records", "copy", str(tmp_path / "none"), str(there))[3])
    assert "the same store" in str(call("records", "copy", str(there), str(there))[3])


@pytest.mark.parametrize(
    ("policies", "verifier"), [("hostile", "lmm"), ("hostile", "llm"), ("nowhere", "model"), ("..", "model")]
)
def test_a_gap_run_that_cannot_begin_anew_deletes_nothing(call, policies, verifier):
    folder = Paths.from_env().home / "gaps" / "rules" / policies
    folder.mkdir(parents=True, exist_ok=True)
    (folder / JOURNAL).write_text("")
    code, _, _, error = call("gaps", "rules", policies, "--restart", "--verifier", verifier)
    assert (code, isinstance(error, RagqaError)) == (1, True)
    assert (folder / JOURNAL).exists()


def test_a_gap_run_goes_on_where_it_ended_and_begins_anew_where_it_is_asked_to(call):
    stored = Paths.from_env().home / "gaps" / "rules" / "hostile" / JOURNAL
    sizes = []
    for more in ((), (), ("--restart",)):
        code, out, _, error = call("gaps", "rules", "hostile", "--json", *more)
        assert code == 0, error
        assert json.loads(out)
        sizes.append(stored.stat().st_size)
    assert 0 < sizes[0] == sizes[1] == sizes[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_of_commands_says_what_each_command_says_of_itself(name):
    command = load_command(name)
    assert COMMANDS[name][2] == command.get_short_help_str(1000)
    listed = get_command(app).commands[name]
    assert listed.get_short_help_str(60) == command.get_short_help_str(60)


def test_every_command_is_in_the_table_and_a_misspelt_one_is_suggested(call):
    assert list(get_command(app).commands) == list(COMMANDS)
    code, _, err, _ = call("recrods")
    assert code == 2
    assert "Did you mean 'records'?" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ask", b"\xff\xfe", "--index", "rulebook"], "expected arguments in UTF-8, found"),
        (["records", "show", b"\xed\xa0\x80"], "expected arguments in UTF-8, found"),
        (["score", "x" * 5_000], "expected a file or folder that can be used"),
        (["licences", "--sbom", "."], "expected a file or folder that can be used, found '.'"),
        (["index", "build", "mine", "--source", "x" * 5_000], "expected"),
    ],
)
def test_odd_arguments_have_their_sentence(tmp_path, arguments, words):
    command = [sys.executable, "-m", "ragqa", *arguments]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "RAGQA_HOME": str(tmp_path)}, check=False)
    assert done.returncode in {2, 3}
    said = " ".join(done.stderr.decode().split())
    assert words in said
    assert "unexpectedly" not in said
    assert "Traceback" not in said


@pytest.mark.long
@pytest.mark.parametrize("there", [True, False])
def test_what_a_command_keeps_is_its_owners_alone(tmp_path, there):
    home = tmp_path / "homes" / "home"
    if there:
        home.mkdir(parents=True)
        home.chmod(0o755)
    env = os.environ | {"RAGQA_HOME": str(home)}
    before = os.umask(0o022)
    try:
        subprocess.run([sys.executable, "-m", "ragqa", "keys", "list"], env=env, check=True)
    finally:
        os.umask(before)
    assert home.stat().st_mode & 0o777 == 0o700

"""Retrieval question by question: the same figures as all at once, kept on disk, gone on with after a stop."""

import json
from dataclasses import replace

import pytest

from ragqa.config import FusionConfig, IndexingConfig, RetrievalConfig
from ragqa.corpus.demo import DEMOS
from ragqa.errors import ConfigError, CorpusError
from ragqa.evaluation.published_retrieval import PUBLISHED_RETRIEVAL
from ragqa.evaluation.question_files import demo_files, question_files
from ragqa.evaluation.retrieval import compare, evaluate
from ragqa.evaluation.retrieval_report import output_names, report_of, write_outputs
from ragqa.evaluation.retrieval_run import open_retrieval_folder, run_retrieval, stamp_of
from ragqa.evaluation.run_files import read_run
from ragqa.indexing import build_index, open_index
from ragqa.presets import PRESETS
from ragqa.retrieval import rank, retrievers_for
from tests.support.fakes import FakeEncoder
from tests.support.pandachat_set import submission, write_set

FUSION, RETRIEVAL = FusionConfig(), RetrievalConfig(top_k=20)
DEMO = DEMOS["rulebook"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """An index of the demonstration rulebook, its retrievers and its questions."""
    indexes = tmp_path_factory.mktemp("indexes")
    encoder = FakeEncoder()
    build_index("rules", DEMO.source, indexes=indexes, config=IndexingConfig(), encoder=encoder)
    index = open_index("rules", indexes)
    return index, retrievers_for(index, encoder, RETRIEVAL), DEMO.questions()[:6]


class Counting:
    """Passes on to a retriever; notes what it was asked."""

    def __init__(self, inner):
        self.inner, self.name, self.calls = inner, inner.name, []

    def retrieve(self, question, top_k):
        self.calls.append(question)
        return self.inner.retrieve(question, top_k)


def finished(stream):
    seen = []
    while True:
        try:
            seen.append(next(stream))
        except StopIteration as stop:
            return seen, stop.value


def stamp(index, **changes):
    return stamp_of(index, DEMO.question_files[0], replace(RETRIEVAL, **changes), FUSION)


@pytest.mark.long
def test_the_figures_are_those_of_all_at_once(world):
    index, retrievers, questions = world
    seen, run = finished(run_retrieval(index, retrievers, questions, RETRIEVAL, FUSION))
    assert [outcome.number for outcome in seen] == [1, 2, 3, 4, 5, 6]
    columns = list(zip(*(rank(retrievers, one.question.text, 20) for one in questions), strict=True))
    expected = {result.name: result.means for result in evaluate(questions, columns, {"fused": FUSION})}
    found = {result.name: result.means for result in run.results(FUSION)}
    assert found == {name: pytest.approx(means) for name, means in expected.items()}
    assert list(found) == ["fused", "bm25", "context", "dense"]
    assert found["fused"]["R@10"] == pytest.approx(sum(outcome.values["R@10"] for outcome in seen) / 6)


def test_a_stopped_run_goes_on_and_ranks_nothing_twice(world, tmp_path):
    index, retrievers, questions = world
    fresh, _ = finished(run_retrieval(index, retrievers, questions, RETRIEVAL, FUSION))
    names = [retriever.name for retriever in retrievers]
    with open_retrieval_folder(tmp_path, stamp(index), names) as folder:
        stream = run_retrieval(index, retrievers, questions, RETRIEVAL, FUSION, folder=folder)
        next(stream), next(stream)
        stream.close()
    counting = [Counting(retriever) for retriever in retrievers]
    with open_retrieval_folder(tmp_path, stamp(index), names) as folder:
        seen, _ = finished(run_retrieval(index, counting, questions, RETRIEVAL, FUSION, folder=folder))
    assert [outcome.kept for outcome in seen] == [True, True, False, False, False, False]
    asked = [call for call in counting[0].calls if call != "warm-up"]
    assert asked == [one.question.text for one in questions[2:]]
    assert [outcome.fused for outcome in seen] == [outcome.fused for outcome in fresh]
    assert [outcome.values for outcome in seen] == [outcome.values for outcome in fresh]


def test_a_folder_belongs_to_one_run_and_begins_anew_when_told(world, tmp_path):
    index, retrievers, questions = world
    with open_retrieval_folder(tmp_path, stamp(index), ()) as folder:
        finished(run_retrieval(index, retrievers, questions, RETRIEVAL, FUSION, limit=1, folder=folder))
    with (
        pytest.raises(ConfigError, match="top_k was 20, is 30"),
        open_retrieval_folder(tmp_path, stamp(index, top_k=30), ()),
    ):
        pass
    with open_retrieval_folder(tmp_path, stamp(index, top_k=30), (), restart=True) as folder:
        assert folder.rankings(1, index) is None


def test_no_question_and_no_gold_are_refused_at_once(world):
    index, retrievers, questions = world
    with pytest.raises(ConfigError, match="at least one question"):
        next(run_retrieval(index, retrievers, (), RETRIEVAL, FUSION))
    bare = (*questions[:2], replace(questions[2], gold=frozenset()))
    with pytest.raises(CorpusError, match="first for question 3"):
        next(run_retrieval(index, retrievers, bare, RETRIEVAL, FUSION))


def test_the_files_are_a_run_that_reads_back_and_a_report(world, tmp_path):
    index, retrievers, questions = world
    _, run = finished(run_retrieval(index, retrievers, questions, RETRIEVAL, FUSION))
    results = run.results(FUSION)
    report = report_of("rules", index, 6, results, compare(results, "fused"), {"fused": 1.0})
    write_outputs(tmp_path / "out", questions, results, report)
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(output_names([r.name for r in results]))
    hits = read_run(tmp_path / "out" / "fused.run")
    assert [name for name, _ in hits[questions[0].question.question_id]] == [
        hit.passage.passage_id for hit in results[0].rankings[0].hits
    ]
    assert json.loads((tmp_path / "out" / "report.json").read_text())["n_questions"] == 6


def test_published_rows_are_those_that_the_presets_tell_of():
    told = " ".join(preset.explanation for preset in PRESETS)
    for row in PUBLISHED_RETRIEVAL:
        assert f"{100 * row.recall:.1f} / {100 * row.mean_average_precision:.1f}" in told, row


def test_files_are_known_by_what_they_hold(tmp_path):
    (tmp_path / "sets").mkdir()
    write_set(tmp_path / "sets" / "panda.json")
    (tmp_path / "sets" / "submission.json").write_text(json.dumps(submission([], [], [], [])))
    (tmp_path / "obliqa.json").write_text(json.dumps([{"QuestionID": "1", "Question": "?", "Passages": []}]))
    (tmp_path / "asked.json").write_text(json.dumps([{"QuestionID": "1", "Question": "?"}]))
    (tmp_path / "lines.jsonl").write_text(json.dumps({"question": "?", "gold_passage_ids": [1]}))
    (tmp_path / "answers.jsonl").write_text(json.dumps({"id": "1", "answer": "x"}))
    (tmp_path / "fan.json").write_text(json.dumps([{"id": "1", "question": "?", "necessary_evidence": []}]))
    (tmp_path / "noise.json").write_bytes(b"\xff\xfe{")

    def labels(kind):
        return {file.label for file in question_files(kind, tmp_path)}

    assert labels("gold") == {"obliqa.json", "lines.jsonl", "sets/panda.json"}
    assert labels("asked") == {"obliqa.json", "asked.json", "lines.jsonl", "sets/panda.json"}
    assert labels("pandachat") == {"sets/panda.json"}
    assert labels("fanoutqa") == {"fan.json"}
    assert labels("generations") == {"answers.jsonl"}
    assert question_files("gold", tmp_path / "nowhere") == ()
    assert {file.path.name for file in demo_files("gold")} == {"questions.json", "questions_1.json", "questions_2.json"}
    assert demo_files("pandachat") == ()

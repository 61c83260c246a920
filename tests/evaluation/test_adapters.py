"""RePASs in other evaluators and corpora in other frameworks, against the real packages where they are installed."""

import asyncio
from dataclasses import dataclass

import pytest

import ragqa
from ragqa.evaluation import metric
from ragqa.scoring.repass.scorer import RepassScorer
from tests.support.fakes import FakeEncoder, FakeObligations, FakeSelector
from tests.support.hashed_nli import HashedNli

QUESTION, PASSAGES, ANSWER = "What must a firm do?", ["A firm must act. Cats sleep."], "It must act."


@pytest.fixture
def expected(monkeypatch):
    """The composite that `ragqa.score` gives."""
    nli = HashedNli()
    monkeypatch.setattr(
        metric, "load_scorer", lambda config: RepassScorer(nli, nli, FakeObligations(), config, FakeEncoder())
    )
    monkeypatch.setattr(metric, "load_selector", lambda _: FakeSelector())
    metric._models.cache_clear()
    yield ragqa.score(QUESTION, PASSAGES, ANSWER).repass.composite
    metric._models.cache_clear()


def installed(name):
    return pytest.importorskip(name, reason=f"{name} is not installed: pip install {name}", exc_type=ImportError)


@pytest.mark.filterwarnings("ignore")
def test_deepeval(expected):
    installed("deepeval")
    from deepeval.test_case import LLMTestCase

    from ragqa.evaluation.adapters.deepeval import RePASsMetric

    made = RePASsMetric(threshold=0.01)
    case = LLMTestCase(input=QUESTION, actual_output=ANSWER, retrieval_context=PASSAGES)
    assert asyncio.run(made.a_measure(case)) == made.measure(case) == expected
    assert made.is_successful() is (expected >= 0.01)
    assert made.reason


@pytest.mark.filterwarnings("ignore")
def test_phoenix(expected):
    installed("phoenix.evals")
    from ragqa.evaluation.adapters.phoenix import repass

    (found,) = repass.evaluate({"input": QUESTION, "context": PASSAGES, "output": ANSWER})
    assert (found.name, found.score) == ("repass", expected)
    assert found.explanation


@pytest.mark.filterwarnings("ignore")
def test_ragas(expected):
    installed("ragas")
    from ragqa.evaluation.adapters.ragas import repass

    given = {"user_input": QUESTION, "retrieved_contexts": PASSAGES, "response": ANSWER}
    found = asyncio.run(repass.ascore(**given))
    assert (found.value, repass.score(**given).value, repass.batch_score([given])[0].value) == (expected,) * 3
    assert found.reason


@pytest.mark.filterwarnings("ignore")
def test_inspect_ai(expected):
    installed("inspect_ai")
    from inspect_ai.scorer import Target

    from ragqa.evaluation.adapters.inspect_ai import repass

    @dataclass
    class Output:
        completion: str = ANSWER

    @dataclass
    class State:
        output: Output
        metadata: dict
        input_text: str = QUESTION

    found = asyncio.run(repass()(State(Output(), {"passages": PASSAGES}), Target("")))
    assert (found.value, found.answer) == (expected, ANSWER)


@pytest.mark.model
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("framework", ["langchain", "llama_index"])
def test_retrievers_of_frameworks_find_what_a_search_finds(framework, monkeypatch, tmp_path):
    installed({"langchain": "langchain_core", "llama_index": "llama_index.core"}[framework])
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    from ragqa.server.api import service
    from ragqa.server.api.local import LocalBackend

    backend, question = LocalBackend(), "How long must a firm keep its records?"
    rows = service.search(backend, service.asked_of(backend, "rulebook", question), 5)
    if framework == "langchain":
        from ragqa.server.api.langchain import RagqaRetriever

        found = RagqaRetriever(corpus="rulebook", limit=5).invoke(question)
        assert [one.page_content for one in found] == [row["text"] for row in rows]
        assert found[0].metadata["relevance"] == rows[0]["relevance"]
    else:
        from ragqa.server.api.llama_index import RagqaRetriever

        found = RagqaRetriever("rulebook", limit=5).retrieve(question)
        assert [one.node.text for one in found] == [row["text"] for row in rows]
        assert [one.score for one in found] == [row["relevance"] for row in rows]

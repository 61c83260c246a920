"""Training a minute cross-encoder: groups, a run that is killed and resumed, the command, and what it measures."""

import json

import numpy as np
import pytest

from ragqa.errors import ConfigError, CorpusError, ModelError
from ragqa.lab.training.reranker import (
    KnownRankings,
    RerankerTraining,
    base_folder,
    groups_by_step,
    steps_of,
    train_reranker,
)
from tests.lab.test_retriever_training import (  # noqa: F401 - fixtures
    PASSAGES,
    QUESTIONS,
    TEXTS,
    asked,
    base,
    data_of,
    gathered,
    indexed,
    write_questions,
)
from tests.support.fakes import ranking
from tests.support.tiny_models import tensors_of, whole_training

# Data -----------------------------------------------------------------------------------------------------------------


def test_groups_hold_every_pair_once_an_epoch_with_its_own_negatives():
    data = gathered()
    assert steps_of(data, 2, 10) == 2 * 5
    whole = list(groups_by_step(data, 2, 10, 2, seed=1))
    assert [len(step) for step in whole] == [10, 10, 10, 10, 8] * 2
    epoch = [group for step in whole[:5] for group in step]
    assert {(group.question, group.passages[0]) for group in epoch} == set(data.pairs)
    for group in epoch:
        wrong, own = set(group.passages[1:]), set(data.negatives[group.question])
        assert len(group.passages) == 3
        assert len(wrong & own) == min(2, len(own))
        assert not {data.text_of[n] for n in wrong} & data.gold_texts[group.question]
    for skip in (0, 3, 5, 7, 10):
        assert list(groups_by_step(data, 2, 10, 2, seed=1, skip=skip)) == whole[skip:]
    assert list(groups_by_step(data, 2, 10, 2, seed=2)) != whole
    assert {g.question for g in whole[0]} != {g.question for g in whole[5]}


def test_a_question_with_few_negatives_gets_others_that_are_not_gold():
    # Passage 3 has the text of passage 0, which is gold of question 0; its only own negative is 2.
    data = data_of([{0}, {1}], [0, 1, 2, 0], ((0, 0), (1, 1)), ((2,), (3,)))
    for seed in range(20):
        first = next(g for g in next(groups_by_step(data, 1, 2, 3, seed)) if g.question == 0)
        assert first.passages[:2] == (0, 2)
        assert set(first.passages[2:]) <= {1, 2}
    lonely = data_of([{0}], [0, 0], ((0, 0),), ((),))
    with pytest.raises(CorpusError, match="expected passages that are not gold.*take more questions"):
        next(groups_by_step(lonely, 1, 2, 3, 1))


def test_known_rankings_are_a_retriever():
    known = KnownRankings("fused", {"q": ranking("fused", {"a": 2.0, "b": 1.0})})
    assert [hit.passage.passage_id for hit in known.retrieve("q", 1).hits] == ["a"]
    assert known.name == "fused"


# Training -------------------------------------------------------------------------------------------------------------


def training_of(folder, **options):
    settings = {"epochs": 30, "negatives": 2, "batch_size": 12, "learning_rate": 5e-3, "warmup_steps": 3}
    return RerankerTraining(
        base=str(folder), **settings | {"max_tokens": 24, "dropout": 0.0, "checkpoint_every": 16} | options
    )


@pytest.fixture(scope="module")
def trained(base, tmp_path_factory):  # noqa: F811
    return whole_training(train_reranker, training_of(base), gathered(), tmp_path_factory.mktemp("whole"))


WEIGHTS = "model.safetensors"


@pytest.mark.model
def test_the_loss_falls_and_the_folder_is_a_reranker(trained):
    from ragqa.loading import load_reranker

    assert [now.step for now in trained.reports[:5]] == [10, 16, 20, 30, 32]
    assert trained.reports[-1].step == trained.reports[0].steps == 120
    assert trained.reports[-1].loss < 0.5 * trained.reports[0].loss
    assert {tensor.dtype for tensor in tensors_of(trained.out / WEIGHTS).values()} == {np.dtype(np.float16)}
    assert json.loads((trained.out / "MODEL.json").read_text())["kind"] == "reranker"
    assert json.loads((trained.out / "tokenizer_config.json").read_text())["model_max_length"] == 24
    reranker = load_reranker(str(trained.out), "fp32")
    assert "OpenVINO" in reranker.info.precision
    right = 0
    for question in QUESTIONS[:24]:
        (gold,) = question.gold
        scores = reranker.score(question.question.text, TEXTS[:24])
        right += scores[int(gold.partition(":")[2])] > np.quantile(scores, 0.7)
    assert right >= 14  # by chance 7


@pytest.mark.model
def test_what_is_written_scores_as_training_did(base, trained, tmp_path):  # noqa: F811
    """The exported folder through OpenVINO against the trainer's own weights by transformers: same input, same cut."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from ragqa.loading import load_reranker

    question, text = QUESTIONS[0].question.text, " ".join([TEXTS[0]] * 12)  # longer than 24 tokens
    model = AutoModelForSequenceClassification.from_pretrained(trained.out, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(trained.out)
    inputs = tokenizer(question, text, truncation="longest_first", max_length=24, return_tensors="pt")
    assert inputs["input_ids"].shape[1] == 24
    with torch.inference_mode():
        expected = float(model.eval()(**inputs).logits[0, 0])
    assert load_reranker(str(trained.out), "fp32").score(question, [text]) == pytest.approx([expected], abs=1e-3)


@pytest.mark.model
def test_training_goes_on_from_a_reranker_and_refuses_what_is_no_model(trained, tmp_path):
    again = list(train_reranker(training_of(trained.out, stop_after=2), gathered(), tmp_path / "more"))
    assert again[-1].loss < trained.reports[0].loss  # it knows already
    for name in ("openai:text-embedding-3-large", "all-MiniLM-L6-v2+./adapter"):
        with pytest.raises(ConfigError, match="name one with --base"):
            base_folder(name)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="found none"):
        base_folder(str(tmp_path / "empty"))
    (tmp_path / "empty" / "model.safetensors").write_bytes(b"")
    with pytest.raises(ModelError, match="name another --base"):
        list(train_reranker(training_of(tmp_path / "empty"), gathered(), tmp_path / "out"))
    assert base_folder("nli-minilm-l6")[0].name == "nli-minilm-l6"


# The commands ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def call(indexed, tmp_path, monkeypatch):  # noqa: F811
    """Runs a command over the tiny index, with the questions on disk."""
    from typer.testing import CliRunner

    from ragqa.cli import app

    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments, questions=tuple(QUESTIONS), asked=True):
        write_questions(tmp_path / "questions.json", questions)
        options = ["--index", "tiny", "--questions", str(tmp_path / "questions.json")] if asked else []
        return CliRunner().invoke(app, [*arguments, *options])

    return run


@pytest.mark.model
@pytest.mark.slow
def test_the_command_writes_a_reranker_with_its_card_and_eval_measures_it(call, base, tmp_path):  # noqa: F811
    out = tmp_path / "model"
    options = ["--out", str(out), "--batch", "12", "--negatives", "3", "--lr", "0.003"]
    result = call("train", "reranker", *options, "--fold", "2/4", "--epochs", "2")
    assert result.exit_code == 0, result.output
    for ranking_name in ("fused: R@10 ", "fused, reranked 0.2: R@10 ", "fused, reranked 1: R@10 "):
        assert ranking_name in result.stdout
    assert f"--reranker {out} --rerank-weight " in result.stdout.replace("\n", "")
    card = (out / "README.md").read_text()
    for part in (
        "| fused, reranked 0.5 | 0.",
        "Measured on 12 questions",
        "--fold=2/4",
        f"--base={base}",
        "questions.json |",
    ):
        assert part in card
    measured = call(
        "eval", "retrieval", "--reranker", str(out), "--rerank-weight", "0.3", "--rerank-weight", "1", "--json"
    )
    assert measured.exit_code == 0, measured.output
    report = json.loads(measured.stdout)
    rows = ("fused", "fused, reranked 0.3", "fused, reranked 1")
    assert all(0 < report["measures"][row]["AP@10"] <= 1 for row in rows)
    assert report["milliseconds"]["fused, reranked 1"] > 0
    assert {c["name"] for c in report["comparisons"]} >= set(rows[1:])
    again = call("eval", "retrieval", "--reranker", str(out), "--rerank-weight", "0.3")
    assert "fused, reranked 0.3" in again.stdout
    second = json.loads(call("eval", "retrieval", "--reranker", str(out), "--rerank-weight", "0.3", "--json").stdout)
    assert second["milliseconds"]["fused, reranked 0.3"] is None  # kept
    assert second["measures"]["fused, reranked 0.3"] == report["measures"]["fused, reranked 0.3"]
    wrong = call("eval", "retrieval", "--reranker", str(out), "--rerank-weight", "2")
    assert "rerank weight must be in [0, 1]" in str(wrong.exception)


@pytest.mark.model
@pytest.mark.parametrize(
    ("questions", "options", "message"),
    [
        ([], (), "expected questions with gold passages"),
        ([asked("what", "7:1")], (), "name the index of the corpus"),
        (QUESTIONS, ("--fold", "5/4"), "--fold must be K/N"),
        (QUESTIONS, ("--base", "./nowhere"), "./nowhere"),
    ],
)
def test_the_command_says_what_is_wrong(call, tmp_path, questions, options, message):
    result = call("train", "reranker", "--out", str(tmp_path / "model"), *options, questions=questions)
    assert result.exit_code != 0
    assert message in str(result.exception) or message in " ".join(result.output.split())
    assert len(PASSAGES) == len(TEXTS)

"""What the answer selector learns from, how it is measured, and a run that is killed and resumed."""

import gzip
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from transformers import BertForSequenceClassification

from ragqa.errors import ModelError
from ragqa.lab.claims import fold_of
from ragqa.lab.training import answers as training_of_answers
from ragqa.lab.training.answers import (
    AnswerSources,
    AnswersTraining,
    LabelledQuestion,
    gather_questions,
    measures,
    questions_sha256,
    train_answers,
)
from ragqa.lab.training.answers import _loss as loss_of
from ragqa.lab.training.loop import WEIGHTS, load_classifier
from ragqa.lab.training.reranker import LABELS
from ragqa.lab.training.taught_answers import LEARNT, taught_lists, unlabelled_lists
from ragqa.lab.written import JudgedQuestion
from ragqa.models.inference.pair_encoding import PairEncoder
from ragqa.models.inference.torch_engine import load_tokenizer
from tests.support.fakes import FakeEncoder
from tests.support.tiny_models import tensors_of, write_trainable

VOCABULARY = "a firm keeps records it them for six years fees are due in may how long kept who reads the".split()
SENTENCES = ["A firm keeps records.", "It keeps them for six years.", "Fees are due in May."]
QUESTIONS = [
    {"text": "How long are records kept?", "answerable": True, "sentences": [1], "short": "six years"},
    {"text": "Who reads the records?", "answerable": False, "near": "readers"},
]


def row(n):
    common = {"corpus": "wikipedia", "title": "Records", "sentences": SENTENCES, "claims": [], "writer": "t"}
    return {"id": f"hotpot:{n}", "questions": QUESTIONS, **common}


@pytest.fixture
def claims(tmp_path):
    file = tmp_path / "claims.jsonl"
    file.write_text("\n".join(json.dumps(row(n)) for n in range(20)))
    return file


def test_a_near_miss_has_no_sentence_that_answers_and_a_fold_is_held_out_whole(claims):
    train, held_out = gather_questions(AnswerSources(claims=claims, fold=2, passes=1))
    n_held = sum(fold_of(f"hotpot:{n}") == 2 for n in range(20))
    assert (len(held_out), len(train)) == (2 * n_held, 2 * (20 - n_held))
    assert {one.answers for one in held_out} == {(False, True, False), (False, False, False)}
    assert held_out[0].sentences[0] == "Records: A firm keeps records."
    for one in train:
        right = [text.rpartition(": ")[2] for text, answers in zip(one.sentences, one.answers, strict=True) if answers]
        assert right == ([SENTENCES[1]] if one.question == QUESTIONS[0]["text"] else [])


def test_sentences_of_other_passages_stand_beside_a_questions_own(claims):
    other = {**row(90), "title": "Registers", "sentences": ["A bank reads and keeps records of complaints."]}
    claims.write_text(
        "\n".join(map(json.dumps, [row(1), {**other, "questions": []}, {**other, "questions": QUESTIONS[1:]}]))
    )
    train, _ = gather_questions(AnswerSources(claims=claims, passes=1, n_foreign=1))
    foreign = [text for one in train[:2] for text in one.sentences if "bank" in text]
    assert len(foreign) == 2
    without, _ = gather_questions(AnswerSources(claims=claims, passes=1, n_foreign=0))
    assert not any("bank" in text for one in without[:2] for text in one.sentences)


def test_squad_gives_the_sentence_with_the_answer_and_leaves_out_what_must_not_be_learnt(claims, tmp_path):
    context = "Gold is soft. It melts at 1,064 degrees."
    rows = [
        {"question": question, "title": "Gold", "context": context, "answerable": bool(answers), "answers": answers}
        for question, answers in (("When does it melt?", ["1,064"]), ("Who found it?", []), ("Left out?", []))
    ]
    squad, without = tmp_path / "squad.jsonl.gz", tmp_path / "without.jsonl"
    squad.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    without.write_text(json.dumps({"question": "Left out?"}))
    claims.write_text(json.dumps({**row(1), "questions": []}))
    train, _ = gather_questions(AnswerSources(claims=claims, squad=squad, without=without))
    found = {one.question: dict(zip(one.sentences, one.answers, strict=True)) for one in train}
    assert set(found) == {"When does it melt?", "Who found it?"}
    assert [text.endswith("1,064 degrees.") for text, right in found["When does it melt?"].items() if right] == [True]
    assert not any(found["Who found it?"].values())


def test_the_same_seed_gathers_the_same(claims):
    sources = AnswerSources(claims=claims)
    assert questions_sha256(gather_questions(sources)[0]) == questions_sha256(gather_questions(sources)[0])
    other = replace(sources, seed=2)
    assert questions_sha256(gather_questions(sources)[0]) != questions_sha256(gather_questions(other)[0])


def test_a_killed_run_resumes_to_the_same_weights_and_shares_the_word_embeddings(claims, tmp_path):
    base, words = (write_trainable(tmp_path / name, VOCABULARY) for name in ("base", "words"))
    weights = tensors_of(words / WEIGHTS)
    (of_words,) = (name for name in weights if name.endswith("word_embeddings.weight"))
    weights[of_words] = weights[of_words] + np.float32(1)
    save_file(weights, words / WEIGHTS, metadata={"format": "pt"})
    train, held_out = gather_questions(AnswerSources(claims=claims, fold=2))
    training = AnswersTraining(base=str(base), words=str(words), frozen_layers=0, checkpoint_every=2, warmup_steps=1)
    *_, last = train_answers(training, train, held_out, tmp_path / "whole")
    assert 0 <= last.held_out <= 1
    run = train_answers(training, train, held_out, tmp_path / "killed")
    next(report for report in run if report.step == 2)
    run.close()
    list(train_answers(training, train, held_out, tmp_path / "killed"))
    whole, resumed = (tensors_of(tmp_path / folder / WEIGHTS) for folder in ("whole", "killed"))
    assert all(np.allclose(whole[name], resumed[name], atol=2e-3) for name in whole)
    (name,) = (name for name in whole if name.endswith("word_embeddings.weight"))
    assert np.array_equal(whole[name], weights[of_words].astype(np.float16))


def test_low_rank_factors_leave_the_lower_layers_and_the_words_and_give_a_classifier_one_output(claims, tmp_path):
    base = write_trainable(tmp_path / "base", VOCABULARY, BertForSequenceClassification)  # with two outputs
    train, _ = gather_questions(AnswerSources(claims=claims))
    training = AnswersTraining(base=str(base), words="none", rank=2, frozen_layers=1, warmup_steps=1, stop_after=2)
    assert training.learning_rate > AnswersTraining(base=str(base)).learning_rate
    list(train_answers(training, train, [], tmp_path / "out"))
    before, after = tensors_of(base / WEIGHTS), tensors_of(tmp_path / "out" / WEIGHTS)
    assert after["classifier.weight"].shape[0] == 1
    body = {name for name in after if not name.startswith("classifier")}
    changed = {name for name in body if not np.allclose(after[name], before[name].astype(np.float16), atol=1e-3)}
    assert changed
    assert all(name.startswith("bert.encoder.layer.1.") for name in changed)


def test_word_embeddings_of_another_width_are_refused(claims, tmp_path):
    base = write_trainable(tmp_path / "base", VOCABULARY)
    training = AnswersTraining(base=str(base), words="nli-minilm-l6", frozen_layers=0)
    with pytest.raises(ModelError, match="expected word embeddings of shape"):
        next(train_answers(training, [LabelledQuestion("a", ("b",), (True,))], [], tmp_path / "out"))


def test_measures_are_of_the_first_sentence_and_of_the_best_ones():
    answered = LabelledQuestion("a", ("x", "y"), (False, True))
    near = LabelledQuestion("b", ("x", "y"), (False, False))
    found = measures([answered, answered, near], [[0.1, 0.9], [0.4, 0.2], [0.3, 0.5]])
    assert (found.first, found.n_first, found.auc, found.n) == (0.5, 2, pytest.approx(0.5), 3)
    assert math.isnan(measures([near], [[0.1, 0.2]]).auc)


def test_so_many_questions_are_drawn_and_the_judged_ones_stand_beside_them(claims, tmp_path, monkeypatch):
    judged = JudgedQuestion(
        "how long records", (("It keeps them for six years.", "Records", 1.0), ("Fees are due.", "", 0.0))
    )
    monkeypatch.setattr(training_of_answers, "written_passages", lambda *_: ())
    monkeypatch.setattr(training_of_answers, "judged_questions", lambda *_: (judged,))
    train, _ = gather_questions(AnswerSources(claims=claims, written=tmp_path, passes=2, n_questions=3))
    assert len(train) == 2 * (3 + 1)
    (found,) = {one for one in train if one.question == judged.question}
    assert set(zip(found.sentences, found.answers, strict=True)) == {
        ("Records: It keeps them for six years.", 1.0),
        ("Fees are due.", 0.0),
    }


def test_questions_about_law_are_in_each_pass_if_they_are_asked_for(claims, monkeypatch):
    law = JudgedQuestion("who pays", (("Act › 1: The owner pays.", "", 1.0), ("Act › 2: Fees are due.", "", 0.0)))
    monkeypatch.setattr(training_of_answers, "law_questions", lambda: (law,))
    without, _ = gather_questions(AnswerSources(claims=claims, passes=2))
    train, _ = gather_questions(AnswerSources(claims=claims, passes=2, law=True))
    assert len(train) == len(without) + 2
    assert (law.sentences[0][0], law.sentences[1][0]) in {one.sentences for one in train}


def test_a_part_of_an_answer_is_half_an_answer_to_learn(tmp_path):
    base = write_trainable(tmp_path / "base", VOCABULARY)
    model = load_classifier(base, LABELS, dropout=0.0, seed=1, frozen_layers=0)
    encoder = PairEncoder(load_tokenizer(base), 32)
    none, part, whole = (
        loss_of(model, encoder, False, [LabelledQuestion("fees", ("fees are due",), (answers,))]).item()
        for answers in (0.0, 0.5, 1.0)
    )
    assert part == pytest.approx((none + whole) / 2)


class Said:
    """A selector that gives every text one score."""

    def __init__(self, score):
        self.score = lambda question, texts: [score] * len(texts)


def test_lists_hold_the_nearest_sentences_and_sometimes_not_those_that_answer(claims, tmp_path):
    rows = [{**row(n), "sentences": [f"{text[:-1]} in town {n}." for text in SENTENCES]} for n in range(20)]
    claims.write_text("\n".join(map(json.dumps, rows)))
    further = tmp_path / "further.json"
    further.write_text(json.dumps([{"Question": "When are fees due?"}]))
    sources = AnswerSources(claims=claims, fold=2)
    lists = unlabelled_lists(sources, further, FakeEncoder(), 100)
    held_out = [f"town {n}." for n in range(20) if fold_of(f"hotpot:{n}") == 2]
    assert not any(text.endswith(town) for one in lists for text in one.sentences for town in held_out)
    assert {len(one.sentences) for one in lists} == {LEARNT}
    answered = [one for one in lists if one.question == QUESTIONS[0]["text"]]
    n_right = sum(1.0 in one.answers for one in answered)
    assert 0 < n_right < len(answered) == len(lists) // 2  # some lists lack the passage that answers
    (without_labels,) = [one for one in lists if one.question == "When are fees due?"]
    assert all(map(math.isnan, without_labels.answers))


def test_what_two_selectors_say_in_the_mean_is_mixed_with_labels():
    one = LabelledQuestion("When?", ("In May.", "In June.", "In July."), (1.0, 0.0, math.nan))
    ((taught,),) = taught_lists([one], Said(4.0), Said(0.0))
    told = 1 / (1 + math.exp(-1.0))  # half the mean logit of 2
    assert taught.answers == pytest.approx((0.7 * told + 0.3, 0.7 * told, told))
    assert taught.taught[2] == pytest.approx(1.0)
    assert questions_sha256([taught]) != questions_sha256([replace(taught, taught=())])


def test_the_loss_of_taught_sentences_is_least_where_the_model_agrees(monkeypatch):
    told = (2.0, -1.0)
    one = LabelledQuestion("When?", ("In May.", "In June."), tuple(1 / (1 + math.exp(-x)) for x in told), told)
    losses = []
    for logits in ((4.0, -2.0), (2.0, -2.0), (4.0, 0.0)):  # half of them are log odds
        monkeypatch.setattr(training_of_answers, "logits_of", lambda *_, said=logits, **__: torch.tensor(said))
        losses.append(float(loss_of(None, None, False, [one])))
    assert losses[0] == min(losses)

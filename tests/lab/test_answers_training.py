"""What the answer selector learns from and how it is measured."""

import gzip
import json
import math

import numpy as np
import pytest

from ragqa.lab.claims import ClaimedPassage, ClaimQuestion, fold_of
from ragqa.lab.training.answers import (
    FULLY,
    NOT,
    PARTLY,
    AnswerSources,
    LabelledQuestion,
    gather_questions,
    measures,
    questions_sha256,
)

SENTENCES = ("A firm keeps records.", "It keeps them for six years.", "Fees are due in May.")


def claimed(passage_id, answers=(1,)):
    questions = (
        ClaimQuestion("How long are records kept?", answerable=True, sentences=answers, short="six years"),
        ClaimQuestion("Who reads the records?", answerable=False, near="readers"),
    )
    return ClaimedPassage(passage_id, "wikipedia", SENTENCES, "t", (), questions, "Records")


PASSAGES = tuple(claimed(f"hotpot:{n}") for n in range(20))


def test_a_near_miss_has_no_sentence_that_answers_and_a_fold_is_held_out_whole():
    train, held_out = gather_questions(AnswerSources(PASSAGES, {}, fold=2, times=1, n_joined=0))
    n_held = sum(fold_of(one.id) == 2 for one in PASSAGES)
    assert (len(held_out), len(train)) == (2 * n_held, 2 * (len(PASSAGES) - n_held))
    assert {one.labels for one in held_out} == {(NOT, FULLY, NOT), (NOT, NOT, NOT)}
    assert held_out[0].sentences[0] == "Records | A firm keeps records."


def test_what_needs_two_sentences_is_answered_by_each_in_part():
    _, held_out = gather_questions(
        AnswerSources((claimed("hotpot:1", (0, 1)),), {}, fold=fold_of("hotpot:1"), n_joined=0)
    )
    assert held_out[0].labels == (PARTLY, PARTLY, NOT)


def test_two_questions_put_as_one_are_answered_in_part():
    train, _ = gather_questions(AnswerSources(PASSAGES, {}, times=1, n_joined=3))
    joined = [one for one in train if ", and " in one.question]
    assert len(joined) == 3
    assert all(PARTLY in one.labels and FULLY not in one.labels for one in joined)


def test_squad_gives_the_sentence_with_the_answer_and_leaves_out_what_must_not_be_learnt(tmp_path):
    rows = [
        {
            "question": q,
            "title": "Gold",
            "context": "Gold is soft. It melts at 1,064 degrees.",
            "answerable": a,
            "answers": x,
        }
        for q, a, x in (("When does it melt?", True, ["1,064"]), ("Who found it?", False, []), ("Left out?", False, []))
    ]
    file = tmp_path / "squad.jsonl.gz"
    file.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    train, _ = gather_questions(AnswerSources((), {}, squad=file, left_out=frozenset({"Left out?"}), n_joined=0))
    found = {one.question: dict(zip(one.sentences, one.labels, strict=True)) for one in train}
    assert set(found) == {"When does it melt?", "Who found it?"}
    assert [text.endswith("1,064 degrees.") for text, label in found["When does it melt?"].items() if label] == [True]
    assert not any(found["Who found it?"].values())


def test_the_same_seed_gathers_the_same():
    sources = AnswerSources(PASSAGES, {}, n_joined=5)
    assert questions_sha256(gather_questions(sources)[0]) == questions_sha256(gather_questions(sources)[0])


def test_measures_are_of_the_first_sentence_and_of_the_best_ones():
    answered = LabelledQuestion("a", ("x", "y"), (NOT, FULLY))
    near = LabelledQuestion("b", ("x", "y"), (NOT, NOT))
    found = measures([answered, answered, near], [np.array([0.1, 0.9]), np.array([0.4, 0.2]), np.array([0.3, 0.5])])
    assert (found.first, found.n_first, found.auc, found.n) == (0.5, 2, pytest.approx(0.5), 3)
    assert math.isnan(measures([near], [np.array([0.1, 0.2])]).auc)

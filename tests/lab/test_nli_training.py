"""Training a minute NLI model: the data, what is made from sentences, and a run that is killed and resumed."""

import gzip
import json
import random
from collections import Counter
from itertools import islice

import numpy as np
import pytest

from ragqa.errors import CorpusError, ModelError
from ragqa.lab.labelled import LABELS, LabelledPair, read_claims, read_pairs
from ragqa.lab.training.loop import batches_of_epoch
from ragqa.lab.training.nli import NliSources, NliTraining, gather, hold_out, train_nli, weighed
from ragqa.lab.training.nli_made_pairs import (
    another_number,
    another_word,
    made_pairs,
    one_item,
    opposite_duty,
    other_duty_word,
    quoting_pairs,
    without_aside,
    without_leading_clause,
    without_limit,
)
from tests.support.tiny_models import tensors_of, write_trainable

CONTRADICTION, ENTAILMENT, NEUTRAL = range(3)


def pairs_of(n, source="mnli_x"):
    return [LabelledPair(f"premise {k} " + "word " * (k % 7), f"hypothesis {k}", k % 3, source) for k in range(n)]


# Reading ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pairs.jsonl", "pairs.jsonl.gz"])
def test_pairs_are_read_plain_and_gzipped(tmp_path, name):
    row = {"premise": "It rains.", "hypothesis": "It is dry.", "label": "contradiction", "set": "own"}
    text = json.dumps(row) + "\n\n"
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    assert read_pairs(tmp_path / name) == [LabelledPair("It rains.", "It is dry.", CONTRADICTION, "own")]
    assert LABELS[CONTRADICTION] == "contradiction"


@pytest.mark.parametrize("line", ["{", "[]", '{"premise": "a"}', '{"premise": "a", "hypothesis": "b", "label": "yes"}'])
def test_a_bad_line_is_named(tmp_path, line):
    good = json.dumps({"premise": "a", "hypothesis": "b", "label": "neutral"})
    (tmp_path / "pairs.jsonl").write_text(f"{good}\n{line}\n")
    with pytest.raises(CorpusError, match=r"pairs\.jsonl, line 2"):
        read_pairs(tmp_path / "pairs.jsonl")


def test_claims_are_supported_only_where_the_label_says_so(tmp_path):
    labels = ["supported", "partially_supported", "not_supported"]
    rows = [json.dumps({"claim": "It rains.", "label": label, "evidence": ["Rain."]}) for label in labels]
    (tmp_path / "claims.jsonl").write_text("\n".join(rows))
    assert [claim.is_supported for claim in read_claims(tmp_path / "claims.jsonl")] == [True, False, False]
    (tmp_path / "claims.jsonl").write_text(rows[0] + '\n{"claim": "a"}')
    with pytest.raises(CorpusError, match=r"claims\.jsonl, line 2: found no label"):
        read_claims(tmp_path / "claims.jsonl")


def test_a_missing_or_wrongly_zipped_file_is_an_error(tmp_path):
    (tmp_path / "pairs.jsonl.gz").write_text("not zipped")
    for name in ("pairs.jsonl.gz", "absent.jsonl"):
        with pytest.raises(CorpusError, match="cannot be read"):
            read_pairs(tmp_path / name)


# Sampling -----------------------------------------------------------------------------------------------------------


def test_held_out_premises_are_not_trained_on():
    pairs = [LabelledPair(f"premise {k // 3}", f"hypothesis {k}", k % 3, "mnli") for k in range(300)]
    rest, held = hold_out(pairs, 20, seed=1)
    assert len(held) == 20
    assert not {pair.premise for pair in rest} & {pair.premise for pair in held}
    assert hold_out(pairs, 20, seed=1) == (rest, held)


def test_a_share_says_how_often_a_set_is_used():
    pairs = pairs_of(400, "mnli_a") + pairs_of(400, "fewgen_1") + pairs_of(10, "mnli_b_special") + pairs_of(5, "other")
    chosen = weighed(pairs, {"mnli": 1.5, "fewgen": 0.0, "mnli_b": 3.0}, seed=2)
    counts = Counter(pair.source for pair in chosen)
    assert counts["fewgen_1"] == 0
    assert counts["mnli_b_special"] == 3 * 10
    assert counts["other"] == 5
    assert 400 * 1.3 < counts["mnli_a"] < 400 * 1.7


def test_an_epoch_holds_every_pair_once_in_batches_of_alike_length():
    pairs = pairs_of(1000)
    batches = list(batches_of_epoch(pairs, 16, seed=5))
    assert Counter(pair for batch in batches for pair in batch) == Counter(pairs)
    assert all(len(batch) <= 16 for batch in batches)
    spread = sum(max(p.n_chars for p in b) - min(p.n_chars for p in b) for b in batches) / len(batches)
    assert spread < 5
    assert batches == list(batches_of_epoch(pairs, 16, seed=5))
    assert batches != list(batches_of_epoch(pairs, 16, seed=6))


# Edits --------------------------------------------------------------------------------------------------------------


def test_a_changed_number_is_never_the_same_and_never_that_of_a_rule():
    chance = random.Random(1)
    text = "Under Rule 5.2.1 and Section 7, a firm must report within 30 days, in March, two times, or pay $1,500."
    for _ in range(200):
        changed = another_number(text, chance)
        assert changed != text
        assert "Rule 5.2.1 and Section 7," in changed
    assert another_number("A firm must act in accordance with Rule 7.", chance) is None


@pytest.mark.parametrize(
    ("edit", "text", "expected"),
    [
        (opposite_duty, "A firm may not lend.", {"A firm may lend.", "A firm must lend."}),
        (opposite_duty, "It is old.", {"It is not old."}),
        (opposite_duty, "Fees apply.", {None}),
        (another_word, "Pay before noon.", {"Pay after noon."}),
        (another_word, "Pay at noon.", {None}),
        (other_duty_word, "Pay promptly.", {"Pay without delay.", "Pay quickly."}),
        (other_duty_word, "Pay now.", {None}),
        (without_aside, "A firm (or its agent) must pay.", {"A firm must pay."}),
        (without_aside, "A firm must (a) pay.", {None}),
        (
            without_leading_clause,
            "Under Rule 3, a firm must keep its own records.",
            {"A firm must keep its own records."},
        ),
        (without_leading_clause, "Under Rule 3, act now.", {None}),
        (
            one_item,
            "A firm must do the following: (a) keep all records; and (b) report each breach.",
            {"A firm must do keep all records.", "A firm must do report each breach."},
        ),
        (one_item, "A firm must: (a) keep all records; (b) file.", {"A firm must keep all records.", None}),
        (one_item, "A firm must do one of these: (a) keep all records; (b) report each breach.", {None}),
    ],
)
def test_an_edit_gives_what_it_promises(edit, text, expected):
    assert {edit(text, random.Random(seed)) for seed in range(20)} <= expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A firm may lend to its own staff, unless the board has refused it.", "A firm may lend to its own staff."),
        ("A firm may lend to staff only if the board has agreed to it.", "A firm may lend to staff."),
        ("A firm may only lend to its staff.", "A firm may lend to its staff."),
        ("A firm may lend if the board has agreed to it.", None),  # too little would be left
        ("A firm may lend to its own staff.", None),
    ],
)
def test_what_limits_a_sentence_is_left_out(text, expected):
    assert without_limit(text) == expected


# Made pairs -----------------------------------------------------------------------------------------------------------

DOCUMENT = [
    "A firm must notify the Commission within 30 days of the event.",
    "The Commission may, where appropriate, extend the period by ten days.",
    "In accordance with Rule 4, every licensed broker must keep a register of clients.",
    "Each custodian shall hold the assets of customers apart from its own assets.",
    "No director may vote on a contract in which the director has an interest.",
    "A fund (or its manager) must publish the price of its units every Friday.",
    "A broker may lend money to a client only if the client has asked for it in writing.",
    "An insurer must: (a) hold enough liquid assets; (b) test them each quarter; and (c) report.",
    "The register must be open to inspection during business hours at the head office.",
]


def test_made_pairs_have_the_labels_their_making_says():
    made = made_pairs([DOCUMENT, [*DOCUMENT[::-1], "The sky over the harbour was blue in 1985."]], 400, seed=3)
    by_source = {pair.source for pair in made}
    assert by_source == {
        f"made_{name}"
        for name in ("same", "reworded", "beside", "listed", "number", "duty", "denial", "apart", "unlimited")
    }
    for pair in made:
        if pair.premise == pair.hypothesis:
            assert pair.label == ENTAILMENT
        if pair.source == "made_duty":
            assert pair.label == CONTRADICTION
        if pair.source == "made_beside":
            assert pair.label == ENTAILMENT
            assert len(pair.premise) > len(pair.hypothesis) or "required" in pair.hypothesis
        if pair.source == "made_apart":
            assert pair.label == NEUTRAL
        if pair.source == "made_unlimited":  # what leaves out "only if" is not said; nor does it say what had it
            assert (pair.label == NEUTRAL) == (("only" in pair.premise) != ("only" in pair.hypothesis))
    assert len({(pair.premise, pair.hypothesis) for pair in made}) == len(made)
    assert made == made_pairs([DOCUMENT, [*DOCUMENT[::-1], "The sky over the harbour was blue in 1985."]], 400, seed=3)


def test_nothing_is_made_from_documents_without_sentences():
    assert made_pairs([], 10, seed=1) == []
    assert made_pairs([["Short.", "Too short."]], 10, seed=1) == []


def test_an_answer_sentence_that_repeats_its_source_is_entailed_by_it():
    answers = [
        (["A firm must notify the Commission within 30 days."], DOCUMENT[:1]),
        (["A firm must notify the Commission within 45 days."], DOCUMENT[:1]),
        (["Nothing here repeats what the source says."], DOCUMENT[3:4]),
    ] * 8
    made = quoting_pairs(answers, 100, seed=1)
    entailed = {pair.hypothesis for pair in made if pair.label == ENTAILMENT}
    assert entailed == {"A firm must notify the Commission within 30 days."}
    assert any(pair.label == NEUTRAL for pair in made)


def test_all_sources_come_together(tmp_path):
    rows = [{"premise": f"p {k}", "hypothesis": "h", "label": "neutral", "set": "mnli_x"} for k in range(100)]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "1.json").write_text(json.dumps([{"Passage": " ".join(DOCUMENT)}]))
    (tmp_path / "articles.jsonl").write_text("\n".join(json.dumps({"text": " ".join(DOCUMENT)}) for _ in range(2)))
    answer = {"Answer": f"{DOCUMENT[0]} [#SRC:1] and [#TGT:2].", "Passages": [{"Passage": DOCUMENT[0]}]}
    (tmp_path / "answers.json").write_text(json.dumps([answer] * 3))
    sources = NliSources(
        (tmp_path / "pairs.jsonl",),
        (tmp_path / "rules", tmp_path / "articles.jsonl"),
        tmp_path / "answers.json",
        40,
        5,
        10,
    )
    train, held = gather(sources)
    assert len(held) == 10
    assert {pair.source.partition("_")[0] for pair in train} == {"mnli", "made"}
    assert any(pair.source == "made_quoting" for pair in train)
    assert not any("#SRC" in pair.hypothesis for pair in train)
    (tmp_path / "answers.json").write_text("{")
    with pytest.raises(CorpusError, match="expected a JSON list"):
        gather(sources)


# Training -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    from transformers import BertForSequenceClassification

    words = ["yes", "no", "maybe", "red", "green", "blue"]
    settings = {"num_labels": 3, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return write_trainable(tmp_path_factory.mktemp("base"), words, BertForSequenceClassification, **settings)


def colours(n):
    """The hypothesis's first word is the label."""
    chance = random.Random(4)
    first = ("no", "yes", "maybe")
    return [
        LabelledPair(
            " ".join(chance.choices(["red", "green", "blue"], k=4)),
            f"{first[k % 3]} {chance.choice(['red', 'blue'])}",
            k % 3,
            "x",
        )
        for k in range(n)
    ]


@pytest.mark.model
def test_a_killed_training_goes_on_to_the_same_weights(base, tmp_path):
    training = NliTraining(
        base=str(base),
        epochs=3,
        batch_size=16,
        learning_rate=3e-3,
        warmup_steps=5,
        max_tokens=24,
        dropout=0.1,
        checkpoint_every=20,
    )
    pairs, held = colours(320), colours(60)
    whole = list(train_nli(training, pairs, held, tmp_path / "whole"))
    assert whole[-1].step == whole[-1].steps == 3 * 20
    assert whole[-1].held_out > 0.95
    assert whole[-1].loss < whole[0].loss

    list(islice(train_nli(training, pairs, held, tmp_path / "killed"), 3))  # left after 30 steps, saved at 20
    assert not (tmp_path / "killed" / "model.safetensors").exists()
    resumed = list(train_nli(training, pairs, held, tmp_path / "killed"))
    assert resumed[0].step > 20
    expected, found = (tensors_of(tmp_path / name / "model.safetensors") for name in ("whole", "killed"))
    assert expected.keys() == found.keys()
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], atol=2e-3)

    with pytest.raises(ModelError, match="other settings or data"):
        next(train_nli(training, pairs[:100], held, tmp_path / "killed"))
    (tmp_path / "killed" / "checkpoint.safetensors").write_bytes(b"torn")
    with pytest.raises(ModelError, match="begin the training anew"):
        next(train_nli(training, pairs, held, tmp_path / "killed"))


@pytest.mark.model
def test_the_weights_written_are_an_nli_model(base, tmp_path):
    from ragqa.scoring.repass.nli import CrossEncoderNli

    training = NliTraining(
        base=str(base), epochs=3, batch_size=16, learning_rate=3e-3, warmup_steps=5, max_tokens=24, dropout=0.0
    )
    list(train_nli(training, colours(320), [], tmp_path / "tiny"))
    model = CrossEncoderNli(str(tmp_path / "tiny"), "fp32")
    agree, deny = model.predict([("red green", "yes red"), ("red green", "no red")])
    assert agree.entailment > 0.5
    assert deny.contradiction > 0.5
    assert json.loads((tmp_path / "tiny" / "MODEL.json").read_text())["sha256"] == model.info.fingerprint


@pytest.mark.model
def test_frozen_layers_and_the_embeddings_below_them_stay_as_they_are(base, tmp_path):
    training = NliTraining(base=str(base), batch_size=16, max_tokens=24, frozen_layers=1, learning_rate=3e-3)
    list(train_nli(training, colours(64), [], tmp_path / "tiny"))
    before, after = tensors_of(base / "model.safetensors"), tensors_of(tmp_path / "tiny" / "model.safetensors")
    stay = {name for name in after if ".embeddings." in name or ".layer.0." in name}
    same = {name for name in after if np.array_equal(after[name], before[name].astype(np.float16))}
    assert stay
    assert stay <= same < after.keys()


def test_low_rank_factors_are_trained_above_frozen_layers_and_written_into_the_weights(base, tmp_path):
    training = NliTraining(base=str(base), batch_size=8, learning_rate=1e-2, frozen_layers=1, rank=2, warmup_steps=1)
    list(train_nli(training, colours(64), [], tmp_path / "out"))
    before, after = tensors_of(base / "model.safetensors"), tensors_of(tmp_path / "out" / "model.safetensors")
    assert before.keys() == after.keys()
    changed = {name for name in after if not np.allclose(before[name], after[name], atol=2e-3)}
    layers = {name for name in changed if "encoder.layer." in name}
    assert layers
    assert all("encoder.layer.1." in name and name.endswith("weight") for name in layers)
    assert not any("embeddings" in name for name in changed)


@pytest.mark.model
def test_the_command_writes_weights_and_a_card_and_can_stop_early(base, tmp_path):
    from typer.testing import CliRunner

    from ragqa.cli import app

    rows = [
        {"premise": pair.premise, "hypothesis": pair.hypothesis, "label": LABELS[pair.label], "set": "mnli_own"}
        for pair in colours(400)
    ]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    arguments = ["train", "nli", "--pairs", str(tmp_path / "pairs.jsonl"), "--out", str(tmp_path / "out")]
    arguments += ["--base", str(base), "--batch-size", "16", "--limit", "200", "--epochs", "2"]
    for stop_after in ("7", "7", "9"):  # again with nothing left to do, then on from there
        result = CliRunner().invoke(app, [*arguments, "--stop-after", stop_after])
        assert result.exit_code == 0, result.output
        card = (tmp_path / "out" / "README.md").read_text()
        assert "200 pairs" in card
        assert "| mnli_own | 200 |" in card
    assert f"step {stop_after} of 26" in result.stderr
    assert (tmp_path / "out" / "MODEL.json").is_file()

"""The NLI model: labels, order, memory, batches, turns between threads; a tiny model made here, and the real one."""

import json
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.errors import ModelError, ScoringError
from ragqa.infra import disk_cache
from ragqa.infra.disk_cache import FairLock, RecentResults
from ragqa.loading import load_nli
from ragqa.models import resolve_model
from ragqa.models.inference import classifier, pair_encoding
from ragqa.models.inference.classifier import SequenceClassifier
from ragqa.models.inference.pair_encoding import batches_by_length, padded_length
from tests.support.effort import effort
from tests.support.processor import has_bf16
from tests.support.tiny_models import PAIRS, transformers_logits, write_classifier

pytestmark = pytest.mark.long

LABELS = ["contradiction", "entailment", "neutral"]


# Batches


def test_batches_hold_one_padded_length_shortest_first_and_are_bounded_in_tokens():
    lengths = [17, 2, 3, 9, 8, 16, 1]  # padded: 24, 8, 8, 16, 8, 16, 8
    assert batches_by_length(lengths, token_budget=3 * 8) == [[1, 2, 4], [6], [3], [5], [0]]


@pytest.mark.parametrize(("lengths", "expected"), [([], []), ([4], [[0]]), ([100], [[0]]), ([2, 7], [[0, 1]])])
def test_batches_at_the_edges(lengths, expected):
    assert batches_by_length(lengths, token_budget=16) == expected


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 400))
def test_every_item_is_in_one_batch_within_the_budget(lengths, budget):
    batches = batches_by_length(lengths, budget)
    assert sorted(n for batch in batches for n in batch) == list(range(len(lengths)))
    for batch in batches:
        (padded,) = {padded_length(lengths[n]) for n in batch}
        assert len(batch) == 1 or padded * len(batch) <= budget


# Sharing


def test_recent_results_forget_the_least_recently_used():
    recent = RecentResults(capacity=2)
    recent.remember({"a": 1, "b": 2})
    assert recent.known(["a"]) == {"a": 1}  # now b is the older one
    recent.remember({"c": 3})
    assert recent.known(["a", "b", "c", "d"]) == {"a": 1, "c": 3}
    assert len(recent) == 2


def test_recent_results_without_room_remember_nothing():
    recent = RecentResults(capacity=0)
    recent.remember({"a": 1})
    assert recent.known(["a"]) == {}


def test_the_lock_serves_a_waiter_before_the_thread_that_takes_it_again(monkeypatch):
    waiting = threading.Event()

    class Condition(threading.Condition):
        def wait(self, timeout=None):
            waiting.set()
            return super().wait(timeout)

    monkeypatch.setattr(disk_cache, "Condition", Condition)
    lock, order = FairLock(), []

    def other():
        with lock:
            order.append("other")

    with lock:
        thread = threading.Thread(target=other)
        thread.start()
        assert waiting.wait(60)
    with lock:
        order.append("again")
    thread.join()
    assert order == ["other", "again"]


def test_the_lock_survives_errors_and_interrupted_waiters(monkeypatch):
    class Condition(threading.Condition):
        def wait(self, timeout=None):
            raise KeyboardInterrupt

    monkeypatch.setattr(disk_cache, "Condition", Condition)
    lock = FairLock()
    with pytest.raises(ValueError, match="inside"), lock:
        with pytest.raises(KeyboardInterrupt):
            lock.__enter__()
        msg = "inside"
        raise ValueError(msg)
    with lock:
        pass


# A tiny model with random weights


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return write_classifier(tmp_path_factory.mktemp("tiny"), ["CONTRADICTION", "Entailment", "neutral"])


def load(folder, **settings):
    from ragqa.scoring.repass.nli import CrossEncoderNli

    return CrossEncoderNli(str(folder), **{"precision": "fp32", **settings})


def numbers(results):
    return [value for result in results for value in (result.contradiction, result.entailment, result.neutral)]


def test_results_are_probabilities_in_the_order_given(tiny):
    results = load(tiny).predict(PAIRS)
    assert [sum(numbers([result])) for result in results] == pytest.approx([1.0] * len(PAIRS), abs=1e-6)
    assert len(set(results)) == len(PAIRS)
    nli = load(tiny)
    assert [nli.predict([pair])[0] for pair in PAIRS] == results
    assert nli.predict(PAIRS[::-1]) == results[::-1]


def test_no_pairs(tiny):
    assert load(tiny).predict([]) == []


def test_label_order_is_read_from_the_model(tiny, tmp_path):
    other = write_classifier(tmp_path, ["neutral", "contradiction", " ENTAILMENT"])
    (one,), (two,) = load(tiny).predict(PAIRS[:1]), load(other).predict(PAIRS[:1])
    assert (one.contradiction, one.entailment, one.neutral) == (two.neutral, two.contradiction, two.entailment)


@pytest.mark.parametrize(
    "labels",
    [
        ["LABEL_0", "LABEL_1", "LABEL_2"],
        ["entailment", "not_entailment"],
        ["entailment", "entailment", "neutral"],
        ["contradiction", "entailment", "neutral", "other"],
    ],
)
def test_labels_that_cannot_be_told_are_refused(labels, tmp_path):
    from ragqa.scoring.repass.nli import label_columns

    with pytest.raises(ModelError, match="expected contradiction, entailment and neutral"):
        label_columns({"id2label": dict(enumerate(labels))}, tmp_path)


def test_labels_numbered_in_two_ways_are_refused(tmp_path):
    from ragqa.scoring.repass.nli import label_columns

    config = {"id2label": {0: "contradiction", 1: "entailment", 2: "neutral"}}
    assert label_columns(config | {"label2id": {"Contradiction": 0, "entailment": 1, "neutral": 2}}, tmp_path) == [
        0,
        1,
        2,
    ]
    with pytest.raises(ModelError, match="in two ways"):
        label_columns(config | {"label2id": {"entailment": 0, "contradiction": 1, "neutral": 2}}, tmp_path)


def test_equal_pairs_are_computed_once(tiny, monkeypatch):
    asked, logits = [], SequenceClassifier._logits
    monkeypatch.setattr(SequenceClassifier, "_logits", lambda self, pairs: asked.extend(pairs) or logits(self, pairs))
    first = load(tiny).predict([PAIRS[0], PAIRS[1], PAIRS[0]])
    assert asked == [PAIRS[0], PAIRS[1]]
    assert first[0] == first[2]


def test_pairs_beyond_one_encoding(tiny, monkeypatch):
    expected = load(tiny).predict(PAIRS)
    monkeypatch.setattr(classifier, "PAIRS_PER_ENCODING", 2)
    monkeypatch.setattr(classifier, "TOKEN_BUDGET", 8)
    assert load(tiny).predict(PAIRS) == expected


def test_long_pairs_are_cut_the_longer_one_first(tiny):
    nli = load(tiny)
    long = "the sky is blue " * 10_000
    cut = "the sky is blue " * 20
    assert numbers(nli.predict([(long, "firms must")])) == pytest.approx(
        numbers(nli.predict([(cut, "firms must")])), abs=1e-6
    )
    assert len(nli.predict([(long, long), (long, long[1:])])) == 2


def test_a_longer_pair_is_no_more_work(tiny):
    """What the model cannot read is cut before the tokenizer, which would take minutes."""
    nli = load(tiny)
    text = "the sky is blue " * 100_000
    few, many = (effort(lambda n=n: nli.predict([(text[:n], text[1:n])])) for n in (len(text) // 100, len(text)))
    assert many < 20 * few


@pytest.mark.parametrize("text", ["\ud800 lone surrogate", "\x00\u200e\u202e", "🙂" * 50, " \n\t "])
def test_odd_text_is_computed(tiny, text):
    (result,) = load(tiny).predict([(text, text)])
    assert all(math.isfinite(value) for value in numbers([result]))


def test_numbers_that_are_not_finite_are_refused(tiny, monkeypatch):
    import numpy as np

    nli = load(tiny)
    monkeypatch.setattr(SequenceClassifier, "logits", lambda self, pairs: np.full((len(pairs), 3), np.nan))
    with pytest.raises(ScoringError, match="not finite"):
        nli.predict(PAIRS[:1])


def test_info_names_the_weights_and_the_arithmetic(tiny):
    from ragqa.models import fingerprint

    assert load(tiny).info.name == tiny.name
    assert load(tiny).info.fingerprint == fingerprint(tiny)
    assert load(tiny).info.precision.startswith("fp32, OpenVINO ")
    assert load(tiny, precision="auto").info.precision[:4] in {"fp32", "bf16"}
    assert load(tiny, joined=True).info.precision.endswith(", joined input")


def test_bf16_is_close_to_fp32_and_what_is_not_computed_in_it_is_not_called_so(tiny, caplog):
    """OpenVINO computes fp32 where the processor has no bf16, without a word."""
    exact, by_bf16 = load(tiny).predict(PAIRS), load(tiny, precision="bf16")
    coarse = by_bf16.predict(PAIRS)
    assert numbers(coarse) == pytest.approx(numbers(exact), abs=0.05)
    assert (numbers(coarse) != numbers(exact)) == has_bf16()
    assert by_bf16.info.precision.startswith("bf16, OpenVINO " if has_bf16() else "fp32, OpenVINO ")
    assert ("OpenVINO has no bf16 on this processor: fp32 is used" in caplog.text) != has_bf16()


@pytest.mark.parametrize("damage", ["no tokenizer", "no config", "broken weights", "pickled weights only"])
def test_a_folder_that_is_no_model_is_refused(tmp_path, damage):
    write_classifier(tmp_path, LABELS)
    weights = tmp_path / "model.safetensors"
    if damage == "no tokenizer":
        for file in tmp_path.glob("tokenizer*"):
            file.unlink()
    elif damage == "no config":
        (tmp_path / "config.json").unlink()
    elif damage == "broken weights":
        weights.write_bytes(weights.read_bytes()[:100])
    else:
        weights.rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelError, match="choose|Choose"):
        load(tmp_path)


def test_altered_weights_are_refused(tmp_path):
    write_classifier(tmp_path, LABELS)
    (tmp_path / "MODEL.json").write_text(
        json.dumps({"kind": "nli", "weights": "model.safetensors", "sha256": "0" * 64})
    )
    with pytest.raises(ModelError, match="reinstall ragqa"):
        load(tmp_path)


def test_loading_leaves_the_progress_bars_of_others_alone(tiny):
    from transformers.utils import logging

    before = logging.is_progress_bar_enabled()
    load(tiny)
    assert logging.is_progress_bar_enabled() == before


def test_a_short_question_is_not_kept_waiting_by_a_long_one(tiny, monkeypatch):
    """Two sessions: the one with a single pair is served after the running turn, not after all forty."""
    monkeypatch.setattr(classifier, "TOKEN_BUDGET", 1)  # every pair its own batch
    monkeypatch.setattr(pair_encoding, "TOKENS_PER_TURN", 1)  # and its own turn
    done, started, asked, forward = [], threading.Event(), threading.Event(), classifier.OpenVinoEngine.infer

    def watched(engine, batches):
        started.set()
        assert asked.wait(60)
        done.append(threading.current_thread().name)
        return forward(engine, batches)

    class Condition(threading.Condition):
        def wait(self, timeout=None):
            asked.set()  # the short question stands in the queue
            return super().wait(timeout)

    monkeypatch.setattr(disk_cache, "Condition", Condition)
    nli = load(tiny)
    monkeypatch.setattr(classifier.OpenVinoEngine, "infer", watched)
    many = [("firms " * n, "sky") for n in range(1, 41)]
    thread = threading.Thread(target=nli.predict, args=(many,), name="long")
    thread.start()
    assert started.wait(60)
    nli.predict([("blue", "blue blue")])
    thread.join()
    short = next(n for n, name in enumerate(done) if name != "long")
    assert len(done) == 41
    assert short <= 3  # the turn under way, and one between reading and computing


# The real weights


@pytest.fixture(scope="module")
def real():
    from ragqa.scoring.repass.nli import CrossEncoderNli

    return CrossEncoderNli(precision="fp32")


PREMISE = "An Authorised Firm must notify the Commission of a breach within three days."
REAL_PAIRS = [
    (PREMISE, "A firm has to tell the Commission about a breach."),
    (PREMISE, "An Authorised Firm must not notify the Commission of a breach."),
    (PREMISE, "Lake Baikal is the deepest lake in the world."),
    ("Gold melts at 1,064 degrees.", "Gold is a metal."),
    ("The board met twice. " * 12, "The board met."),
    ("The fee is payable on the first day of March.", "No fee is payable."),
]


@pytest.mark.model
def test_real_weights_tell_entailment_contradiction_and_neutral_apart(real):
    entailed, contradicted, unrelated = real.predict(REAL_PAIRS[:3])
    assert entailed.entailment > 0.5
    assert contradicted.contradiction > 0.5
    assert unrelated.neutral > 0.5
    assert real.info.name == "nli-minilm-l6"


@pytest.mark.model
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_pair_has_the_same_bits_whatever_is_beside_it(precision):
    """So a record can be re-scored to the same numbers, and sessions do not touch each other's."""
    nli = load("nli-minilm-l6", precision=precision)
    together = nli.predict(REAL_PAIRS)
    assert [nli.predict([pair])[0] for pair in REAL_PAIRS] == together
    assert nli.predict(REAL_PAIRS[::-1])[::-1] == together
    assert nli.predict([*REAL_PAIRS * 3, *((h, p) for p, h in REAL_PAIRS)])[: len(REAL_PAIRS)] == together


@pytest.mark.model
def test_two_threads_at_once_get_the_same_numbers(real):
    expected = real.predict(REAL_PAIRS)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda turn: real.predict(REAL_PAIRS[turn:] + REAL_PAIRS[:turn]), range(4)))
    for turn, results in enumerate(found):
        assert results[len(results) - turn :] + results[: len(results) - turn] == expected


# The graph against transformers ------------------------------------------------------------------------------------


@pytest.mark.model
@pytest.mark.parametrize("n_tokens", [3, 17, 96, 512])
def test_the_graph_computes_what_transformers_computes(n_tokens):
    import numpy as np

    from ragqa.models.inference.bert_graph import OpenVinoEngine, bert_shape
    from ragqa.models.inference.classifier import read_config

    folder = resolve_model("nli-minilm-l6")
    chance = np.random.default_rng(1)
    inputs = {
        "input_ids": chance.integers(1000, 20000, (3, n_tokens)),
        "attention_mask": np.ones((3, n_tokens), np.int64),
        "token_type_ids": chance.integers(0, 2, (3, n_tokens)),
    }
    inputs["attention_mask"][1, n_tokens // 2 + 1 :] = 0
    engine = OpenVinoEngine(folder, bert_shape(read_config(folder)), "fp32")
    assert np.abs(engine.infer([inputs])[0] - transformers_logits(folder, inputs)).max() < 2e-5


# Encoding -----------------------------------------------------------------------------------------------------------

PIECES = [*"abcXYZ 0129.,;()", "é", "\u200e", "🙂", "中", "\n", "[SEP]", "must "]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


@pytest.mark.model
@settings(deadline=None, max_examples=60)  # a busy machine may take long over one
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5))
def test_pairs_are_encoded_as_the_tokenizer_itself_does(pairs):
    from ragqa.models.inference.pair_encoding import PairEncoder

    encoder, itself = PairEncoder(real_tokenizer(), 24), real_tokenizer()
    itself.no_padding()
    itself.enable_truncation(24, strategy="longest_first")
    for found, expected in zip(encoder.encode(pairs), itself.encode_batch(pairs), strict=True):
        assert found.ids == expected.ids
        assert found.types == expected.type_ids


@cache
def real_tokenizer_text():
    return (resolve_model("nli-minilm-l6") / "tokenizer.json").read_text(encoding="utf-8")


def real_tokenizer():
    from tokenizers import Tokenizer

    return Tokenizer.from_str(real_tokenizer_text())


@pytest.mark.model
def test_a_joined_pair_is_one_text_and_a_text_stands_alone():
    from ragqa.models.inference.pair_encoding import PairEncoder

    itself = real_tokenizer()
    (joined,) = PairEncoder(real_tokenizer(), 512, "joined").encode([("A firm.", "A duty.")])
    assert joined.ids == itself.encode("A firm. [SEP] A duty.").ids
    assert set(joined.types) == {0}
    (alone,) = PairEncoder(real_tokenizer(), 6, "text").encode([("A firm must keep its records.", "")])
    assert alone.ids[:5] == itself.encode("A firm must keep its records.").ids[:5]
    assert len(alone.ids) == 6


def test_padding_is_to_a_multiple_of_eight():
    from ragqa.models.inference.pair_encoding import EncodedPair, padded_inputs

    inputs = padded_inputs([EncodedPair([5, 6, 7], [0, 0, 1]), EncodedPair([9], [0])], pad_id=4)
    assert inputs["input_ids"].tolist() == [[5, 6, 7, 4, 4, 4, 4, 4], [9, 4, 4, 4, 4, 4, 4, 4]]
    assert inputs["attention_mask"].tolist() == [[1, 1, 1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0]]
    assert inputs["token_type_ids"].tolist() == [[0, 0, 1, 0, 0, 0, 0, 0], [0] * 8]


def test_the_larger_verifier_says_how_it_is_fetched(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    with pytest.raises(ModelError, match="ragqa models fetch verifier-mpnet"):
        load_nli("verifier-mpnet")

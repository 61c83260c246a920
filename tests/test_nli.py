"""The NLI model: labels, order, memory, batches, turns between threads; a tiny model made here, and the real one."""

import json
import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragqa.errors import ModelError, ScoringError
from ragqa.repass.batches import batches_by_length
from ragqa.repass.sharing import FairLock, RecentResults

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "firms",
    "must",
    "may",
    "keep",
    "records",
    "not",
    "the",
    "sky",
    "is",
    "blue",
]
PAIRS = [
    ("firms must keep records", "firms keep records"),
    ("the sky is blue", "firms must keep records"),
    ("the sky", "the sky is not blue"),
    ("", ""),
    ("firms may not keep the records the firms must not keep", "is the sky blue"),
]


# Batches


def test_batches_are_sorted_by_length_and_bounded_in_tokens():
    assert batches_by_length([9, 2, 3, 2, 3], token_budget=6) == [[1, 3], [2, 4], [0]]


@pytest.mark.parametrize(("lengths", "expected"), [([], []), ([4], [[0]]), ([100], [[0]]), ([2, 2], [[0, 1]])])
def test_batches_at_the_edges(lengths, expected):
    assert batches_by_length(lengths, token_budget=4) == expected


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 200))
def test_every_item_is_in_one_batch_within_the_budget(lengths, budget):
    batches = batches_by_length(lengths, budget)
    assert sorted(n for batch in batches for n in batch) == list(range(len(lengths)))
    assert all(len(batch) == 1 or max(lengths[n] for n in batch) * len(batch) <= budget for batch in batches)


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


def wait_until(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "waited ten seconds in vain"
        time.sleep(0.001)


def test_the_lock_serves_a_waiter_before_the_thread_that_takes_it_again():
    lock, order = FairLock(), []

    def other():
        with lock:
            order.append("other")

    with lock:
        thread = threading.Thread(target=other)
        thread.start()
        wait_until(lambda: lock._next_ticket == 2)
    with lock:
        order.append("again")
    thread.join()
    assert order == ["other", "again"]


def test_the_lock_survives_errors_and_interrupted_waiters(monkeypatch):
    lock = FairLock()

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(ValueError, match="inside"), lock:
        monkeypatch.setattr(lock._changed, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            lock.__enter__()
        monkeypatch.undo()
        msg = "inside"
        raise ValueError(msg)
    with lock:
        pass


# A tiny model with random weights


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("tiny"), {0: "CONTRADICTION", 1: "Entailment", 2: "neutral"})


def make_model(folder, id2label, positions=64):
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordPiece({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=positions,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    ).save_pretrained(folder)
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=positions,
        initializer_range=0.8,
        num_labels=len(id2label),
        id2label=id2label,
        label2id={label: n for n, label in id2label.items()},
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def load(folder, **settings):
    from ragqa.repass.nli import CrossEncoderNli

    return CrossEncoderNli(str(folder), **{"precision": "fp32", **settings})


class Counting:
    """Stands before `_forward` and counts the rows it computes."""

    def __init__(self, nli):
        self.rows, self._forward = [], nli._forward
        nli._forward = self

    def __call__(self, rows):
        self.rows.append(len(rows["input_ids"]))
        return self._forward(rows)


def numbers(results):
    return [value for result in results for value in (result.contradiction, result.entailment, result.neutral)]


def test_results_are_probabilities_in_the_order_given(tiny):
    results = load(tiny).predict(PAIRS)
    assert [sum(numbers([result])) for result in results] == pytest.approx([1.0] * len(PAIRS), abs=1e-6)
    assert len(set(results)) == len(PAIRS)
    nli = load(tiny, remembered=0)
    assert numbers([nli.predict([pair])[0] for pair in PAIRS]) == pytest.approx(numbers(results), abs=1e-6)
    assert numbers(nli.predict(PAIRS[::-1])) == pytest.approx(numbers(results[::-1]), abs=1e-6)


def test_no_pairs(tiny):
    assert load(tiny).predict([]) == []


def test_label_order_is_read_from_the_model(tiny, tmp_path):
    other = make_model(tmp_path, {0: "neutral", 1: "contradiction", 2: " ENTAILMENT"})
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
    from ragqa.repass.nli import label_columns

    with pytest.raises(ModelError, match="expected contradiction, entailment and neutral"):
        label_columns(dict(enumerate(labels)), tmp_path)


def test_equal_pairs_are_computed_once_and_remembered(tiny):
    nli = load(tiny)
    counting = Counting(nli)
    first = nli.predict([PAIRS[0], PAIRS[1], PAIRS[0]])
    assert sum(counting.rows) == 2
    assert first[0] == first[2]
    assert nli.predict([PAIRS[1], PAIRS[0]]) == [first[1], first[0]]
    assert sum(counting.rows) == 2


def test_more_pairs_than_are_remembered(tiny):
    nli = load(tiny, remembered=2)
    assert len(nli.predict(PAIRS)) == len(PAIRS)
    assert len(nli._recent) == 2
    assert len(load(tiny, remembered=0).predict(PAIRS)) == len(PAIRS)


def test_pairs_beyond_one_encoding(tiny, monkeypatch):
    from ragqa.repass import nli as module

    expected = load(tiny).predict(PAIRS)
    monkeypatch.setattr(module, "PAIRS_PER_ENCODING", 2)
    monkeypatch.setattr(module, "TOKEN_BUDGET", 8)
    assert numbers(load(tiny).predict(PAIRS)) == pytest.approx(numbers(expected), abs=1e-6)


def test_long_pairs_are_cut_the_longer_one_first(tiny):
    nli = load(tiny)
    long = "the sky is blue " * 10_000
    cut = "the sky is blue " * 20
    assert numbers(nli.predict([(long, "firms must")])) == pytest.approx(
        numbers(nli.predict([(cut, "firms must")])), abs=1e-6
    )
    started = time.perf_counter()
    assert len(nli.predict([(long, long), (long, long[1:])])) == 2
    assert time.perf_counter() - started < 5  # the tokenizer alone would take minutes


@pytest.mark.parametrize("text", ["\ud800 lone surrogate", "\x00\u200e\u202e", "🙂" * 50, " \n\t "])
def test_odd_text_is_computed(tiny, text):
    (result,) = load(tiny).predict([(text, text)])
    assert all(math.isfinite(value) for value in numbers([result]))


def test_numbers_that_are_not_finite_are_refused_and_not_remembered(tiny):
    import torch

    nli = load(tiny)
    with torch.no_grad():
        nli._model.classifier.weight.fill_(float("nan"))
    with pytest.raises(ScoringError, match="not finite"):
        nli.predict(PAIRS[:1])
    assert len(nli._recent) == 0


def test_info_names_the_weights_and_the_arithmetic(tiny):
    from ragqa.models import fingerprint

    assert load(tiny).info.name == tiny.name
    assert load(tiny).info.fingerprint == fingerprint(tiny)
    assert load(tiny).info.precision == "fp32"
    assert load(tiny, precision="bf16").info.precision == "bf16"
    assert load(tiny, precision="auto").info.precision in {"fp32", "bf16"}


def test_bf16_is_close_to_fp32(tiny):
    exact, coarse = load(tiny).predict(PAIRS), load(tiny, precision="bf16").predict(PAIRS)
    assert numbers(coarse) == pytest.approx(numbers(exact), abs=0.05)
    assert numbers(coarse) != numbers(exact)


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        ("processor: 0\nflags\t\t: fpu avx512f avx512_bf16\n", "bf16"),
        ("flags\t\t: fpu amx_bf16 amx_tile\n", "bf16"),
        ("flags\t\t: fpu avx2\n", "fp32"),
        ("Features : neon\n", "fp32"),
        (None, "fp32"),
    ],
)
def test_bf16_is_chosen_where_the_processor_has_it(tmp_path, cpuinfo, expected):
    from ragqa.repass.nli import choose_precision

    if cpuinfo is not None:
        (tmp_path / "cpuinfo").write_text(cpuinfo)
    assert choose_precision(tmp_path / "cpuinfo") == expected


@pytest.mark.parametrize("damage", ["no tokenizer", "no config", "broken weights", "pickled weights only"])
def test_a_folder_that_is_no_model_is_refused(tmp_path, damage):
    make_model(tmp_path, {0: "contradiction", 1: "entailment", 2: "neutral"})
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
    with pytest.raises(ModelError, match="Reinstall ragqa, or choose nli-minilm-l6|Choose another folder"):
        load(tmp_path)


def test_altered_weights_are_refused(tmp_path):
    make_model(tmp_path, {0: "contradiction", 1: "entailment", 2: "neutral"})
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
    """Two sessions: the one with a single pair is served after the running batch, not after all forty."""
    from ragqa.repass import nli as module

    monkeypatch.setattr(module, "TOKEN_BUDGET", 1)  # every pair its own batch
    nli = load(tiny)
    done, started = [], threading.Event()
    forward = nli._forward

    def slow(rows):
        started.set()
        time.sleep(0.005)
        result = forward(rows)
        done.append(len(rows["input_ids"][0]))
        return result

    nli._forward = slow
    many = [("firms " * n, "sky") for n in range(1, 41)]
    thread = threading.Thread(target=nli.predict, args=(many,))
    thread.start()
    started.wait(10)
    nli.predict([("blue", "blue blue")])
    finished_before = len(done)
    thread.join()
    assert len(done) == 41
    assert finished_before < 30


# The real weights


@pytest.fixture(scope="module")
def real():
    from ragqa.repass.nli import CrossEncoderNli

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
def test_real_numbers_are_the_same_twice_and_with_other_neighbours(real):
    together, alone, reversed_order = (
        numbers(results)
        for results in (
            computed_anew(real, REAL_PAIRS),
            [computed_anew(real, [pair])[0] for pair in REAL_PAIRS],
            computed_anew(real, REAL_PAIRS[::-1])[::-1],
        )
    )
    assert numbers(computed_anew(real, REAL_PAIRS)) == together
    assert alone == pytest.approx(together, abs=1e-5)
    assert reversed_order == pytest.approx(together, abs=1e-5)


@pytest.mark.model
def test_two_threads_at_once_get_the_same_numbers(real):
    expected = numbers(computed_anew(real, REAL_PAIRS))
    real._recent = RecentResults(0)  # nothing remembered: both threads compute everything
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda turn: real.predict(REAL_PAIRS[turn:] + REAL_PAIRS[:turn]), range(4)))
    for turn, results in enumerate(found):
        again = results[len(results) - turn :] + results[: len(results) - turn]
        assert numbers(again) == pytest.approx(expected, abs=1e-5)


def computed_anew(nli, pairs):
    nli._recent = RecentResults(100)
    return nli.predict(pairs)


@pytest.mark.model
@pytest.mark.data
@pytest.mark.slow
def test_agreement_with_published_scores(shared_data):
    """Script mode on 34 published cases: Pearson r of E and C, as in the model card (measured: .59 and .70)."""
    import numpy as np

    from ragqa.config import ScoringConfig
    from ragqa.repass.nli import CrossEncoderNli
    from ragqa.repass.obligations import TfidfObligationClassifier
    from ragqa.repass.scorer import RepassScorer
    from ragqa.sentences import split_sentences
    from ragqa.types import Answer, AnswerSentence, Passage

    items = json.loads((shared_data / "repass" / "reference_cases.json").read_text())["items"]
    nli = CrossEncoderNli()
    scorer = RepassScorer(nli, nli, TfidfObligationClassifier(), ScoringConfig())
    found, published, n_pairs, started = [], [], 0, time.perf_counter()
    for item in items:
        texts = item["RetrievedPassages"]
        texts = json.loads(texts) if isinstance(texts, str) and texts.lstrip().startswith("[") else texts
        passages = [Passage(str(n), "d", text) for n, text in enumerate([texts] if isinstance(texts, str) else texts)]
        spans = split_sentences(item["Answer"])
        sentences = tuple(AnswerSentence(span.text, span.start, span.end) for span in spans)
        stream = scorer.stream(Answer(item["Answer"], sentences, "published", ""), passages)
        while True:
            try:
                next(stream)
            except StopIteration as stop:
                script = stop.value.script
                break
        n_pairs += script.n_pairs
        found.append((script.repass.entailment, script.repass.contradiction))
        published.append((item["expected"]["entailment_score"], item["expected"]["contradiction_score"]))
    seconds = time.perf_counter() - started
    here, there = np.array(found), np.array(published)
    r_entailment, r_contradiction = (float(np.corrcoef(here[:, n], there[:, n])[0, 1]) for n in (0, 1))
    print(f"\nr(E) {r_entailment:.3f}, r(C) {r_contradiction:.3f}; {n_pairs:,} pairs in {seconds:.0f} s")
    assert r_entailment > 0.55
    assert r_contradiction > 0.65

"""Training a minute encoder to rank: pairs, masks, factors, and a run that is killed and resumed."""

import json
from itertools import islice

import numpy as np
import pytest

from ragqa.corpus.questions import GoldQuestion
from ragqa.errors import ConfigError, CorpusError, ModelError
from ragqa.lab.training.loop import Progress, Reading, load_checkpoint
from ragqa.lab.training.retriever import (
    RetrieverData,
    RetrieverTraining,
    batches,
    gather_pairs,
    masked,
    nearest,
    steps_of,
    text_numbers,
    train_retriever,
    with_equal_gold,
)
from ragqa.types import Passage, Question, Ranking, ScoredPassage
from tests.support.tiny_models import tensors_of, whole_training, write_sentence_encoder

WORDS = [
    f"{first}{second}"
    for first in ("red", "green", "blue", "old", "new", "big")
    for second in ("cat", "dog", "hen", "fox")
]
N = len(WORDS)
# Passage n names word n; passage N repeats passage 0, passage N + 1 is beside the point.
TEXTS = [
    *(f"rule {word} pays {WORDS[(n + 5) % N]}" for n, word in enumerate(WORDS)),
    f"rule {WORDS[0]} pays {WORDS[5]}",
    "rule pays",
]
PASSAGES = tuple(Passage(f"1:{n}", "1", text) for n, text in enumerate(TEXTS))
POSITION_OF = {passage.passage_id: n for n, passage in enumerate(PASSAGES)}


class SharedWords:
    """Ranks by the number of words shared."""

    name = "bm25"

    def retrieve(self, question, top_k):
        words = set(question.split())
        hits = [ScoredPassage(passage, float(len(words & set(passage.text.split())))) for passage in PASSAGES]
        return Ranking(self.name, Ranking.of(self.name, [hit for hit in hits if hit.score]).hits[:top_k])


def asked(text, *gold):
    return GoldQuestion(Question(text, text), frozenset(gold))


QUESTIONS = [asked(f"does {word} pay {WORDS[(n + 5) % N]}", f"1:{n}") for n, word in enumerate(WORDS)]
QUESTIONS += [asked(f"pay {word}", f"1:{n}") for n, word in enumerate(WORDS)]


def gathered(questions=tuple(QUESTIONS), **options):
    return gather_pairs(questions, TEXTS, POSITION_OF, SharedWords(), **options)


def write_questions(file, questions):
    """In ObliQA's schema."""
    rows = [
        {
            "QuestionID": str(n),
            "Question": item.question.text,
            "Passages": [dict(zip(("DocumentID", "PassageID"), name.split(":"), strict=True)) for name in item.gold],
        }
        for n, item in enumerate(questions)
    ]
    file.write_text(json.dumps(rows))


# Data -----------------------------------------------------------------------------------------------------------------


def test_pairs_are_questions_with_their_gold_and_negatives_share_words_but_no_gold_text():
    data = gathered([*QUESTIONS, asked("unheard of", "1:3", "9:9")])
    assert data.pairs[0] == (0, 0)
    assert len(data.pairs) == len(QUESTIONS) + 1
    assert data.n_missing == 1
    assert data.text_of[N] == data.text_of[0]
    assert data.negatives[-1] == ()
    for question, passage in data.pairs[:-1]:
        assert data.negatives[question]
        assert passage not in data.negatives[question]
    assert N not in data.negatives[0]  # of the same text as its gold


def test_a_limit_draws_pairs_and_the_seed_decides_which():
    few = gathered(limit=10, seed=3)
    assert len(few.pairs) == 10
    assert set(few.pairs) <= set(gathered().pairs)
    assert few.pairs == gathered(limit=10, seed=3).pairs
    assert few.pairs != gathered(limit=10, seed=4).pairs
    assert few.sha256 != gathered().sha256 == gathered().sha256


def test_nothing_to_learn_from_is_an_error():
    with pytest.raises(CorpusError, match="found none; name a file with questions"):
        gathered([])
    with pytest.raises(CorpusError, match="for example no '7:1'; name the index"):
        gathered([asked("what", "7:1"), asked("why", "7:2")])


def data_of(gold, text_of, pairs, negatives):
    texts = tuple(f"text {number}" for number in text_of)
    gold_texts = tuple(frozenset(found) for found in gold)
    return RetrieverData(tuple("q" * len(gold)), texts, tuple(text_of), gold_texts, negatives, pairs)


def test_other_gold_and_equal_texts_are_masked_and_the_own_gold_is_not():
    # Passage 3 has the text of passage 0. Question 0 has the texts of passages 0 and 1 as gold, question 1 that of 2.
    data = data_of([{0, 1}, {2}], [0, 1, 2, 0], ((0, 0), (0, 1), (1, 2)), ((2,), (3,)))
    found = masked(data, [0, 0, 1], [0, 1, 2, 3, 2])
    expected = [[0, 1, 0, 1, 0], [1, 0, 0, 1, 0], [0, 0, 0, 0, 1]]
    np.testing.assert_array_equal(found, np.array(expected, dtype=bool))


def test_batches_hold_every_pair_once_an_epoch_and_go_on_where_they_were():
    data = gathered()
    assert steps_of(data, 3, 10) == 3 * 4
    whole = list(batches(data, 3, 10, seed=1))
    assert len(whole) == 12
    seen = [pair for batch in whole[:4] for pair in zip(batch.questions, batch.documents, strict=False)]
    assert len(set(seen)) == 40
    assert set(seen) <= set(data.pairs)
    for batch in whole:
        assert len(batch.documents) == 20
        assert batch.masked.shape == (10, 20)
    for skip in (0, 3, 4, 7, 12):
        rest = list(batches(data, 3, 10, seed=1, skip=skip))
        assert [(b.questions, b.documents) for b in rest] == [(b.questions, b.documents) for b in whole[skip:]]
    assert [b.documents for b in batches(data, 3, 10, seed=2)] != [b.documents for b in whole]


def test_few_pairs_make_one_batch_and_a_question_without_negatives_gets_any():
    data = gathered([asked("unheard of", "1:3"), QUESTIONS[0]])
    (batch,) = batches(data, 1, 96, seed=1)
    assert steps_of(data, 1, 96) == 1
    assert sorted(batch.questions) == [0, 1]
    assert len(batch.documents) == 4


def test_equal_texts_are_one_gold_for_folds():
    questions = [asked("a", "1:0"), asked("b", f"1:{N}"), asked("c", "9:9", "1:1")]
    found = with_equal_gold(questions, POSITION_OF, text_numbers(TEXTS))
    assert [item.gold for item in found] == [{"1:0"}, {"1:0"}, {"9:9", "1:1"}]


def test_the_nearest_are_ranked_by_cosine_then_id_without_the_hidden():
    vectors = np.array([[1, 0], [0, 1], [1, 0], [0.6, 0.8]], dtype=np.float32)
    hidden = np.array([False, True, False, False])
    assert nearest(vectors[:2], vectors, hidden, np.array([2, 0, 1, 3]), 3) == [[2, 0, 3], [3, 2, 0]]


# Training -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return write_sentence_encoder(tmp_path_factory.mktemp("base"), ["does", "pay", "pays", "rule", *WORDS])


def training_of(base, **options):
    settings = {"epochs": 15, "rank": 4, "layers": 1, "learning_rate": 5e-3, "batch_size": 16, "warmup_steps": 3}
    return RetrieverTraining(base=str(base), **settings | {"precision": "fp32", "checkpoint_every": 10} | options)


@pytest.fixture(scope="module")
def trained(base, tmp_path_factory):
    return whole_training(train_retriever, training_of(base), gathered(), tmp_path_factory.mktemp("whole"))


def steps_in(reports):
    """The reports without those of reading, one by one."""
    return (now for now in reports if isinstance(now, Progress))


ADAPTER = "adapter_model.safetensors"


@pytest.mark.model
def test_the_loss_falls(trained):
    reading = [now for now in trained.reports if isinstance(now, Reading)]
    assert reading[-1].done == reading[-1].total == len(QUESTIONS) + len(TEXTS) - 1  # one is never asked for
    training = list(steps_in(trained.reports))
    assert [now.step for now in training] == [10, 20, 30, 40, 45]
    assert training[-1].steps == 45
    assert training[-1].loss < 0.6 * training[0].loss


@pytest.mark.model
def test_the_adapter_is_one_of_peft_and_changes_the_model(base, trained):
    from ragqa.lab.training.lora_layers import TARGETS
    from ragqa.models.inference.weights import merge_adapter, read_weights

    config = json.loads((trained.out / "adapter_config.json").read_text())
    assert (config["peft_type"], config["r"], config["lora_alpha"]) == ("LORA", 4, 8)
    assert config["base_model_name_or_path"] == str(base)
    assert config["layers_to_transform"] == [1]
    factors = tensors_of(trained.out / ADAPTER)
    prefix = "base_model.model.encoder.layer.1."
    assert set(factors) == {f"{prefix}{target}.lora_{side}.weight" for target in TARGETS for side in "AB"}
    assert {tensor.dtype for tensor in factors.values()} == {np.dtype(np.float16)}
    before = read_weights(base)
    after = merge_adapter(before, trained.out)
    changed = {name for name in before if not np.array_equal(before[name], after[name])}
    assert changed == {f"encoder.layer.1.{target}.weight" for target in TARGETS}


@pytest.mark.model
def test_every_encoder_with_the_adapter_gives_the_trainers_vectors(base, trained):
    import torch

    from ragqa.lab.training.lora_layers import RetrieverModel
    from ragqa.retrieval.encoder import BertEncoder, SentenceTransformerEncoder

    model = RetrieverModel(str(base), 1, 4, 1, "fp32")
    plain = BertEncoder(str(base), "fp32").encode(TEXTS)
    np.testing.assert_allclose(model.encode(TEXTS).cpu().numpy(), plain, atol=1e-3)  # untrained: the base itself
    (stamp,) = stamp_of(trained.out)
    load_checkpoint(trained.out, model.bert, torch.optim.AdamW(model.factors), stamp)
    own = model.encode(TEXTS).cpu().numpy()
    assert np.abs(own - plain).max() > 0.05
    for encoder in (BertEncoder, SentenceTransformerEncoder):
        options = ("fp32",) if encoder is BertEncoder else ()
        vectors = encoder(f"{base}+{trained.out}", *options).encode(TEXTS)
        np.testing.assert_allclose(vectors, own, atol=1e-3)
    twice = RetrieverModel(f"{base}+{trained.out}", 1, 4, 1, "fp32")  # training can start from an adapted model
    np.testing.assert_allclose(twice.encode(TEXTS).cpu().numpy(), own, atol=1e-3)


def stamp_of(folder):
    from safetensors import safe_open

    with safe_open(folder / "checkpoint.safetensors", framework="np") as saved:
        return [saved.metadata()["stamp"]]


@pytest.mark.model
def test_a_training_that_was_killed_ends_as_if_it_had_not_been(base, trained, tmp_path):
    data = gathered()
    assert [now.step for now in islice(steps_in(train_retriever(training_of(base), data, tmp_path)), 2)] == [10, 20]
    assert not (tmp_path / ADAPTER).exists()
    rest = list(steps_in(train_retriever(training_of(base), data, tmp_path)))
    figures = {now.step: now.loss for now in steps_in(trained.reports)}
    assert {now.step: now.loss for now in rest} == {step: loss for step, loss in figures.items() if step > 20}
    for name in (ADAPTER, "checkpoint.safetensors"):
        expected, found = tensors_of(trained.out / name), tensors_of(tmp_path / name)
        assert expected.keys() == found.keys()
        assert all(np.array_equal(expected[key], found[key]) for key in expected)
    with pytest.raises(ModelError, match="other settings or data"):
        list(train_retriever(training_of(base, seed=2), data, tmp_path))
    with pytest.raises(ModelError, match="other settings or data"):
        list(train_retriever(training_of(base), gathered(limit=20), tmp_path))


@pytest.mark.model
def test_bf16_trains_as_well(base, trained, tmp_path):
    reports = list(train_retriever(training_of(base, precision="bf16"), gathered(), tmp_path))
    assert reports[-1].loss == pytest.approx(trained.reports[-1].loss, abs=0.3)


@pytest.mark.model
def test_a_model_that_cannot_be_trained_is_an_error(base, tmp_path):
    import shutil

    with pytest.raises(ConfigError, match="--layers must be 1 to 2, the layers of this encoder, got 3"):
        list(train_retriever(training_of(base, layers=3), gathered(), tmp_path / "out"))
    other = tmp_path / "other"
    shutil.copytree(base, other)
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {"model_type": "roberta"}))
    with pytest.raises(ModelError, match="expected a BERT with mean pooling"):
        list(train_retriever(training_of(other), gathered(), tmp_path / "out"))
    assert not (tmp_path / "out").exists()


# The command ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def indexed(base, monkeypatch, tmp_path):
    """RAGQA_INDEXES with an index of the passages by the tiny encoder; gives what runs the command."""
    from typer.testing import CliRunner

    from ragqa.cli import app
    from ragqa.index import build_index
    from ragqa.retrieval.encoder import BertEncoder
    from ragqa.settings.config import IndexingConfig
    from ragqa.settings.paths import Paths

    monkeypatch.setenv("RAGQA_INDEXES", str(tmp_path / "indexes"))
    rows = [{"ID": str(n), "DocumentID": 1, "PassageID": str(n), "Passage": text} for n, text in enumerate(TEXTS)]
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "1.json").write_text(json.dumps(rows))
    encoder = BertEncoder(str(base), "fp32")
    indexes = Paths.from_env().indexes
    build_index("tiny", tmp_path / "corpus", indexes=indexes, config=IndexingConfig(), encoder=encoder)

    def run(questions, *options):
        write_questions(tmp_path / "questions.json", questions)
        command = ["train", "retriever", "--index", "tiny", "--questions", str(tmp_path / "questions.json")]
        command += ["--out", str(tmp_path / "out"), "--layers", "1", "--rank", "4", "--batch", "16"]
        return CliRunner().invoke(app, [*command, *options])

    return run


@pytest.mark.model
def test_the_command_writes_an_adapter_for_index_build_and_measures_a_fold(base, indexed, tmp_path):
    from ragqa.retrieval.local_models import weights_of

    result = indexed(QUESTIONS, "--fold", "2/4", "--epochs", "20", "--lr", "0.005")
    assert result.exit_code == 0, result.output
    assert "R@10, 12 questions: " in result.stdout
    assert "MAP@10, 12 questions: " in result.stdout
    assert f"--encoder {base}+{tmp_path / 'out'}" in result.stdout.replace("\n", "").replace(
        "use: ragqa index build ", ""
    )
    assert weights_of(f"{base}+{tmp_path / 'out'}").adapters == (tmp_path / "out",)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "--fold=2/4" in card
    assert "| MAP@10, 12 questions | 0." in card
    assert "questions.json | " in card
    assert weights_of(str(base)).sha256 in card


@pytest.mark.model
def test_the_command_can_stop_early_and_measures_nothing_without_a_fold(indexed, tmp_path):
    result = indexed(QUESTIONS, "--stop-after", "2", "--limit", "20")
    assert result.exit_code == 0, result.output
    card = (tmp_path / "out" / "README.md").read_text()
    assert "20 pairs of" in card
    assert "2 of 2 steps" in card
    assert "not measured" in card


@pytest.mark.model
@pytest.mark.parametrize(
    ("questions", "options", "message"),
    [
        ([], (), "expected questions with gold passages"),
        ([asked("what", "7:1")], (), "name the index of the corpus"),
        (QUESTIONS, ("--fold", "5/4"), "--fold must be K/N"),
        (QUESTIONS, ("--fold", "one"), "--fold must be K/N"),
        (QUESTIONS, ("--layers", "3"), "--layers must be 1 to 2"),
        (QUESTIONS, ("--out", "a+b"), "without + in its path"),
    ],
)
def test_the_command_says_what_is_wrong(indexed, questions, options, message):
    result = indexed(questions, *options)
    assert result.exit_code != 0
    assert message in str(result.exception) or message in " ".join(result.output.split())


# Without questions ----------------------------------------------------------------------------------------------------


@pytest.fixture
def unasked(base, indexed, tmp_path):
    """As `indexed`, over an index of duties under headings, and without ``--questions`` unless an option gives them."""
    from typer.testing import CliRunner

    from ragqa.cli import app
    from ragqa.index import build_index
    from ragqa.retrieval.encoder import BertEncoder
    from ragqa.settings.config import IndexingConfig
    from ragqa.settings.paths import Paths

    duties = [f"A {word} must pay the {WORDS[(n + 5) % N]} rule within five days." for n, word in enumerate(WORDS)]
    rows = [{"DocumentID": 1, "PassageID": str(n), "Passage": text} for n, text in enumerate(duties)]
    (tmp_path / "duties").mkdir()
    (tmp_path / "duties" / "1.json").write_text(json.dumps(rows))
    encoder = BertEncoder(str(base), "fp32")
    build_index(
        "duties", tmp_path / "duties", indexes=Paths.from_env().indexes, config=IndexingConfig(), encoder=encoder
    )
    write_questions(tmp_path / "asked.json", [asked(f"does {word} pay", f"1:{n}") for n, word in enumerate(WORDS)])

    def run(*options):
        command = ["train", "retriever", "--index", "duties", "--out", str(tmp_path / "out"), "--layers", "1"]
        return CliRunner().invoke(app, [*command, "--rank", "4", "--batch", "16", *options])

    return run


@pytest.mark.model
def test_without_questions_the_corpus_is_learnt_from_and_the_card_says_so(unasked, tmp_path):
    result = unasked("--test", str(tmp_path / "asked.json"))
    assert result.exit_code == 0, result.output
    assert "MAP@10, 24 questions: " in result.stdout
    card = (tmp_path / "out" / "README.md").read_text()
    assert "pairs of 48 pseudo-queries and their gold passages" in card, "two of each duty"
    assert "heading 0, definition 0, reference 0, duty 48, neighbour 0." in card
    assert "on questions that were not trained on" in card
    assert "without a language model and without reading a question" in card
    assert "| duties | " in card
    assert "asked.json | " in card
    assert "epochs 1," in card
    assert "--test=" in card


@pytest.mark.model
def test_pseudo_queries_beside_questions_are_counted_apart_and_only_questions_are_tested(unasked, tmp_path):
    result = unasked("--questions", str(tmp_path / "asked.json"), "--pseudo", "10", "--fold", "1/4")
    assert result.exit_code == 0, result.output
    assert "R@10, 6 questions: " in result.stdout
    card = (tmp_path / "out" / "README.md").read_text()
    assert "28 pairs of 18 questions and 10 pseudo-queries" in card
    assert "duty 10" in card
    assert "share no gold passage with the questions trained on" in card
    assert "what was held out are" in card
    assert "--pseudo=10" in card


@pytest.mark.model
def test_options_that_do_not_go_together_are_refused(unasked, tmp_path):
    asked_file = str(tmp_path / "asked.json")
    for options, message in (
        (("--fold", "1/4"), "measures on a part of --questions, got none"),
        (("--questions", asked_file, "--test", asked_file), "--test measures what pseudo-queries alone bring"),
    ):
        result = unasked(*options)
        assert result.exit_code != 0
        assert message in str(result.exception)


def test_what_is_spared_is_neither_a_negative_nor_wrong():
    question = QUESTIONS[0]
    plain, sparing = gathered([question]), gathered([question], spared={0: frozenset({"1:5", "9:9"})})
    assert 5 in plain.negatives[0]
    assert 5 not in sparing.negatives[0]
    assert masked(plain, [0], [0, 5]).tolist() == [[False, False]]
    assert masked(sparing, [0], [0, 5]).tolist() == [[False, True]]
    assert plain.pairs == sparing.pairs
    assert plain.sha256 != sparing.sha256

"""Trains the classifier of strength on labelled sentences, and measures it on documents set apart.

The first layers of the NLI model, which read the form of a sentence, are fine-tuned by low-rank factors
(`ragqa.lab.training.lora_layers`) under a new output layer. Sentences of which only is known whether they bind count by
the sum of the probabilities of the strengths that do, or do not.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragqa.lab.labelled import own_sentences
from ragqa.lab.strengths import StrengthSentence
from ragqa.lab.training.loop import (
    Progress,
    Training,
    TrainingRun,
    batches_of_epoch,
    export_classifier,
    load_classifier,
    stamp_of,
)
from ragqa.lab.training.model_folder import ModelCard, settings_of
from ragqa.models import fingerprint, resolve_model
from ragqa.models.inference.weights import tokenizer_folder
from ragqa.scoring.repass.obligations import TfidfObligationClassifier
from ragqa.scoring.strength import BINDING, COLUMNS, KIND, StrengthClassifier
from ragqa.types.scores import Strength

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

ALL = tuple(range(len(COLUMNS)))
BINDS, BINDS_NOT = ALL[: len(BINDING)], ALL[len(BINDING) :]


@dataclass(frozen=True, slots=True, kw_only=True)
class StrengthTraining(Training):
    """The settings of the classifier of strength; learnt by low-rank factors."""

    base: str = "nli-minilm-l6"
    epochs: int = 4
    batch_size: int = 32
    learning_rate: float = 6e-4
    warmup_steps: int = 40
    n_layers: int = 6  # of the base, from the lowest
    rank: int = 16  # of the factors
    dropout: float = 0.05
    max_tokens: int = 128


@dataclass(frozen=True, slots=True)
class Sample:
    """A text and the columns of the strengths that it may have."""

    text: str
    columns: tuple[int, ...]

    @property
    def n_chars(self) -> int:
        return len(self.text)


@dataclass(frozen=True, slots=True)
class Binding:
    """Measures of how well binding sentences are recognised; each in [0, 1]."""

    precision: float
    recall: float
    f1: float
    strengths: float  # share of all sentences whose strength is right

    @classmethod
    def of(cls, labels: Sequence[Strength], calls: Sequence[Strength]) -> Binding:
        """The measures of these calls against the labels."""
        hits = sum(label.binds and call.binds for label, call in zip(labels, calls, strict=True))
        wanted, called = sum(label.binds for label in labels), sum(call.binds for call in calls)
        same = sum(label is call for label, call in zip(labels, calls, strict=True))
        return cls(
            hits / called if called else 0.0,
            hits / wanted if wanted else 0.0,
            2 * hits / (wanted + called) if wanted + called else 0.0,
            same / len(labels) if labels else 0.0,
        )


def samples_of(sentences: Sequence[StrengthSentence]) -> list[Sample]:
    """What to train on: the sentences outside the test part, and our own of which only is known whether they bind."""
    known = [Sample(one.text, (COLUMNS.index(one.strength),)) for one in sentences if not one.is_test]
    return known + [Sample(one.text, BINDS if one.obligation else BINDS_NOT) for one in own_sentences("added")]


def train_strength(training: StrengthTraining, samples: Sequence[Sample], out: Path) -> Iterator[Progress]:
    """Trains, and writes weights, config, tokenizer and MODEL.json to ``out``; killed, it resumes.

    Raises ModelError.
    """
    from transformers import AutoTokenizer

    from ragqa.lab.training.lora_layers import add_lora, merge_lora  # imports torch

    base = resolve_model(training.base)
    model = load_classifier(base, COLUMNS, dropout=training.dropout, seed=training.seed)
    body: Any = model.base_model
    body.encoder.layer = body.encoder.layer[: training.n_layers]
    model.config.num_hidden_layers = training.n_layers
    add_lora(body, training.n_layers, training.rank, training.seed)
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder(base), local_files_only=True)
    digest = hashlib.sha256(json.dumps([(one.text, one.columns) for one in samples]).encode()).hexdigest()
    steps = training.epochs * -(-len(samples) // training.batch_size)
    run = TrainingRun(model, training, steps, out, stamp_of(asdict(training), fingerprint(base), digest))

    def batches() -> Iterator[list[Sample]]:
        for epoch in range(training.epochs):
            yield from batches_of_epoch(samples, training.batch_size, training.seed * 1000 + epoch)

    def export() -> None:
        merge_lora(model)
        export_classifier(model, base, out, KIND)

    loss = partial(_loss, model, tokenizer, training.max_tokens)
    yield from run.train(islice(batches(), run.done, None), loss, export)


def _loss(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, max_tokens: int, batch: Sequence[Sample]
) -> torch.Tensor:
    """The mean of minus the logarithm of the summed probability of the columns of each sample."""
    import torch

    model.train()
    texts = [one.text for one in batch]
    encoded = tokenizer(
        texts, truncation=True, max_length=max_tokens, padding=True, pad_to_multiple_of=8, return_tensors="pt"
    )
    logits = model(**encoded.to(model.device)).logits.float()
    allowed = torch.tensor([[n in one.columns for n in ALL] for one in batch], device=model.device)
    right = logits.masked_fill(~allowed, -torch.inf).logsumexp(1)
    loss: torch.Tensor = (logits.logsumexp(1) - right).mean()
    return loss


def measured(model: Path, sentences: Sequence[StrengthSentence]) -> tuple[list[Strength], list[Strength]]:
    """(labels, calls) of the test part by the model in this folder. Raises ModelError."""
    test = [one for one in sentences if one.is_test]
    return [one.strength for one in test], StrengthClassifier(str(model)).strengths([one.text for one in test])


def strength_card(
    name: str,
    training: StrengthTraining,
    sentences: Sequence[StrengthSentence],
    calls: Sequence[Strength],
    command: str,
) -> ModelCard:
    """The card; ``calls`` are the model's on the test part of the sentences."""
    test = [one for one in sentences if one.is_test]
    labels, makers = [one.strength for one in test], [_maker(one) for one in test]
    old = TfidfObligationClassifier().classify([one.text for one in test])
    rows = [
        ("test part", len(test), Binding.of(labels, calls)),
        (
            "test part, RePASs' obligations-tfidf",  # an obligation is a "must"
            len(test),
            Binding.of(labels, [Strength.MUST if one else Strength.NONE for one in old]),
        ),
    ]
    for maker in sorted(set(makers)):
        own = Binding.of(_of(maker, labels, makers), _of(maker, calls, makers))
        rows.append((f"test part, {maker}", makers.count(maker), own))
    pairs = Counter(zip(labels, calls, strict=True)).most_common()
    wrong = [(pair, n) for pair, n in pairs if pair[0] is not pair[1]][:6]
    return ModelCard(
        title=f"{name}: does this sentence bind somebody, and how?",
        use="One of must, must not, may only, should, may, none for a sentence or a list item after its lead-in, by a "
        "transformer over one text. It says which obligations are listed, missed and registered; RePASs keeps "
        "obligations-tfidf.",
        figures=[
            ("what", "sentences", "F1 of what binds", "precision", "recall", "right strength"),
            *(
                (name, f"{n:,}", f"{one.f1:.3f}", f"{one.precision:.3f}", f"{one.recall:.3f}", f"{one.strengths:.3f}")
                for name, n, one in rows
            ),
        ],
        figures_note="Must, must not and may only bind. The test documents were set apart before anything was trained; "
        "`own` sentences are of the writer of a part of the training. Most frequent mistakes there (label, called): "
        + "; ".join(f"{label} called {call}: {n}" for (label, call), n in wrong)
        + ".",
        data=f"{len(sentences) - len(test):,} sentences and items labelled by reading "
        "(`ragqa/lab/data/strengths.jsonl`): drawn at random, drawn where an earlier fit was unsure, or written for "
        "this project; and our own added sentences, of which only is known whether they bind. "
        f"Settings: {settings_of(training)}.",
        command=command,
        seed=training.seed,
        limits="One person labelled a quarter of them, a language model the others. English only.",
    )


def _of(maker: str, strengths: Sequence[Strength], makers: Sequence[str]) -> list[Strength]:
    return [strength for strength, other in zip(strengths, makers, strict=True) if other == maker]


def _maker(one: StrengthSentence) -> str:
    parts = one.document.split("/")
    return parts[1] if parts[0] == "documents" else parts[0]

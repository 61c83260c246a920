"""The NLI cross-encoder: gathers training pairs, trains a folder of fp16 weights, and measures any model on pairs."""

from __future__ import annotations

import hashlib
import random
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ragqa.lab.labelled import LABELS, LabelledPair, read_pairs
from ragqa.lab.training.loop import (
    Progress,
    Training,
    TrainingRun,
    batches_of_epoch,
    stamp_of,
    trains_in_bf16,
)
from ragqa.lab.training.model_folder import ModelCard, settings_of
from ragqa.lab.training.nli_made_pairs import made_pairs, quoting_pairs
from ragqa.lab.training.taught import rows_of, sentences_of, written_answers
from ragqa.models import fingerprint, resolve_model
from ragqa.models.inference.weights import tokenizer_folder
from ragqa.plugins.protocols import NliModel
from ragqa.types import ModelInfo

if TYPE_CHECKING:
    import torch
    from transformers import BatchEncoding, PreTrainedModel, PreTrainedTokenizerBase

KIND = "nli"
PAIRS_PER_STEP = 512  # between two progress reports: about a second

# How often each set is used per epoch, by the beginning of its name. FewGen's hypotheses are model-written and noisy
# and FEVER's premises long, so both are reduced; contract clauses and hand-made contrasts are few and close to our use.
SET_SHARES: dict[str, float] = {
    "mnli": 1.3,
    "taxinli": 1.0,
    "snli": 0.4,
    "wanli": 1.0,
    "cad": 1.0,
    "semiauto": 0.7,
    "fever_ggkorn": 0.15,
    "fever": 0.4,
    "foolmetwice": 1.0,
    "fewgen": 0.0,
    "contractnli": 3.0,
    "cb": 2.0,
}


@dataclass(frozen=True, slots=True)
class NliSources:
    """Files to train on; only ``pairs`` must be given."""

    pairs: tuple[Path, ...]  # JSON lines of {premise, hypothesis, label, set}
    documents: tuple[Path, ...] = ()  # folders or files of passages: ObliQA documents, or JSON lines with a text
    answers: Path | None = None  # JSON list of {Answer, Passages}
    n_made: int = 40_000  # pairs made from the documents, shared equally among them
    n_quoting: int = 3_000  # from the answers, at most
    n_held_out: int = 1_500
    limit: int | None = None  # train on a random sample of this many of all these pairs
    seed: int = 1


def gather(sources: NliSources) -> tuple[list[LabelledPair], list[LabelledPair]]:
    """(training pairs, each as often as its set's share; held-out pairs). Raises CorpusError."""
    read = [pair for path in sources.pairs for pair in read_pairs(path)]
    mnli = [pair for pair in read if pair.source.startswith("mnli")]
    rest, held_out = hold_out(mnli, sources.n_held_out, sources.seed)
    kept_out = {pair.premise for pair in held_out}
    others = [pair for pair in read if not pair.source.startswith("mnli") and pair.premise not in kept_out]
    train = weighed([*rest, *others], SET_SHARES, sources.seed)
    for path in sources.documents:
        train += made_pairs(_documents(path), sources.n_made // len(sources.documents), sources.seed)
    if sources.answers:
        answers = [
            (answer.sentences, [sentence for text in answer.sources for sentence in sentences_of(text)])
            for answer in written_answers(sources.answers)
        ]
        train += quoting_pairs(answers, sources.n_quoting, sources.seed)
    if sources.limit is not None and sources.limit < len(train):
        train = random.Random(sources.seed).sample(train, sources.limit)
    return train, held_out


def _documents(path: Path) -> list[list[str]]:
    """Sentences per document; a file of single articles gives groups of a hundred sentences."""
    if path.is_dir():
        files = sorted(path.glob("*.json"))
        return [[s for row in rows_of(file) for s in sentences_of(str(row.get("Passage", "")))] for file in files]
    sentences = [s for row in rows_of(path) for s in sentences_of(str(row.get("text", "")))]
    return [sentences[start : start + 100] for start in range(0, len(sentences), 100)]


def hold_out(pairs: Sequence[LabelledPair], n: int, seed: int) -> tuple[list[LabelledPair], list[LabelledPair]]:
    """(the rest, ``n`` pairs drawn at random); no premise occurs in both."""
    held = random.Random(seed).sample(range(len(pairs)), min(n, len(pairs) // 10))
    premises = {pairs[index].premise for index in held}
    return [pair for pair in pairs if pair.premise not in premises], [pairs[index] for index in held]


def weighed(pairs: Iterable[LabelledPair], shares: Mapping[str, float], seed: int) -> list[LabelledPair]:
    """Each pair as often as its set's share says: 2.5 is twice, and once more for a random half of the set.

    The longest matching prefix of the set's name in ``shares`` counts; a set without one is used once.
    """
    chance = random.Random(seed)
    shares_of: dict[str, float] = {}
    chosen = []
    for pair in pairs:
        if pair.source not in shares_of:
            known = [name for name in shares if pair.source.startswith(name)]
            shares_of[pair.source] = shares[max(known, key=len)] if known else 1.0
        whole, part = divmod(shares_of[pair.source], 1)
        chosen.extend([pair] * (int(whole) + (chance.random() < part)))
    return chosen


def pairs_sha256(pairs: Sequence[LabelledPair]) -> str:
    """The sha256 of the texts and labels, in order."""
    digest = hashlib.sha256()
    for pair in pairs:
        label = pair.taught or pair.label
        digest.update(f"{label}\0{pair.premise}\0{pair.hypothesis}\0".encode("utf-8", "replace"))
    return digest.hexdigest()


# Training ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class NliTraining(Training):
    """Training settings. The defaults worked best in trials on two processor cores."""

    base: str = "nli-minilm-l6"  # an embedded name or a folder: a model with a tokenizer
    epochs: int = 1
    batch_size: int = 48
    learning_rate: float = 1e-4
    warmup_steps: int = 200
    max_tokens: int = 240  # of a pair; the longer text is cut first
    label_smoothing: float = 0.05  # in [0, 1)
    dropout: float = 0.1  # between layers, in [0, 1)
    frozen_words: bool = True  # word embeddings are not trained
    frozen_layers: int = 0  # lowest layers that are not trained; if any, no embeddings are trained either
    rank: int = 0  # of low-rank factors trained instead of the other layers; 0 trains the layers themselves
    checkpoint_every: int = 250


def train_nli(
    training: NliTraining,
    pairs: Sequence[LabelledPair],
    held_out: Sequence[LabelledPair],
    out: Path,
    first: Sequence[LabelledPair] = (),
) -> Iterator[Progress]:
    """Trains in ``out``, on the GPU if there is one, yields every 10 steps, and writes the weights when done.

    The pairs ``first`` are seen once, before the epochs of the others. Resumes at a checkpoint of the same settings and
    data. Raises ModelError if the checkpoint or the base does not fit.
    """
    from transformers import AutoTokenizer

    from ragqa.lab.training.lora_layers import export_merged, load_adaptable  # imports torch

    base = resolve_model(training.base)
    model = load_adaptable(
        base,
        LABELS,
        rank=training.rank,
        frozen_layers=training.frozen_layers,
        seed=training.seed,
        dropout=training.dropout,
        frozen_words=training.frozen_words,
    )
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder(base), local_files_only=True)
    steps = -(-len(first) // training.batch_size) + training.epochs * -(-len(pairs) // training.batch_size)
    base_sha256 = fingerprint(base)
    learner = _Learner(model, tokenizer, training, trains_in_bf16(model, base_sha256))
    stamp = stamp_of(asdict(training), base_sha256, pairs_sha256([*first, *pairs]))
    run = TrainingRun(model, training, steps, out, stamp)

    def batches() -> Iterator[list[LabelledPair]]:
        yield from batches_of_epoch(first, training.batch_size, training.seed)
        for epoch in range(training.epochs):
            yield from batches_of_epoch(pairs, training.batch_size, training.seed * 1000 + epoch)

    yield from run.train(
        islice(batches(), run.done, None),
        learner.loss,
        partial(export_merged, model, base, out, KIND),
        partial(learner.accuracy, held_out) if held_out else None,
    )


@dataclass(frozen=True, slots=True)
class _Learner:
    """A model in training, with its tokenizer."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    training: NliTraining
    bf16: bool

    def loss(self, batch: Sequence[LabelledPair]) -> torch.Tensor:
        import torch
        from torch.nn import functional

        self.model.train()
        smoothing = self.training.label_smoothing
        known = [
            [smoothing / len(LABELS) + (1 - smoothing) * (n == pair.label) for n in range(len(LABELS))]
            for pair in batch
        ]
        wanted = [pair.taught or row for pair, row in zip(batch, known, strict=True)]
        logits = self.logits(batch)
        return functional.cross_entropy(logits.float(), torch.tensor(wanted, device=self.model.device))

    def accuracy(self, pairs: Sequence[LabelledPair]) -> float:
        """The share of these pairs whose most probable label is right, in [0, 1]."""
        import torch

        self.model.eval()  # type: ignore[no-untyped-call]
        right = 0
        for batch in batches_of_epoch(pairs, self.training.batch_size, 0):
            with torch.inference_mode():
                labels = self.logits(batch).argmax(-1).tolist()
            right += sum(label == pair.label for label, pair in zip(labels, batch, strict=True))
        return right / len(pairs)

    def logits(self, batch: Sequence[LabelledPair]) -> torch.Tensor:
        """The logits, of shape (n_pairs, 3)."""
        import torch

        encoded: BatchEncoding = self.tokenizer(
            [pair.premise for pair in batch],
            [pair.hypothesis for pair in batch],
            truncation="longest_first",
            max_length=self.training.max_tokens,
            padding=True,
            pad_to_multiple_of=8,  # few shapes, because torch keeps a compiled kernel for each, up to gigabytes
            return_tensors="pt",
        )
        with torch.autocast(self.model.device.type, torch.bfloat16, enabled=self.bf16):
            logits: torch.Tensor = self.model(**encoded.to(self.model.device)).logits
        return logits


def nli_card(
    name: str, training: NliTraining, pairs: Sequence[LabelledPair], last: Progress, command: str
) -> ModelCard:
    """The card of weights trained on ``pairs``; ``last`` is the training's last report."""
    held_out = "not measured" if last.held_out is None else f"{last.held_out:.4f}"
    labels = Counter(LABELS[pair.label] for pair in pairs).most_common()
    sets = Counter(pair.source for pair in pairs).most_common()
    return ModelCard(
        title=f"{name}: does one sentence entail or contradict another?",
        use=f"A three-way NLI cross-encoder (labels {', '.join(LABELS)}), weights in half precision as safetensors. "
        "Used by RePASs. English only.",
        figures=[("what", "figure"), ("accuracy on training pairs held out, at the end", held_out)],
        figures_note="Measure exactly these weights: `ragqa eval nli --model FOLDER --pairs FILE --contrasts --legal`, "
        "FOLDER being this one.",
        data=f"{len(pairs):,} pairs ({', '.join(f'{count:,} {label}' for label, count in labels)}), {last.steps:,} "
        f"steps from `{training.base}` (weights {fingerprint(resolve_model(training.base))[:12]}). "
        f"Settings: {settings_of(training)}.",
        sources=[("set", "pairs per epoch"), *((source, f"{count:,}") for source, count in sets)],
        further="Sets named `made_…` are made from the sentences of documents at training time "
        "(`nli_made_pairs.py`): quotations and rewordings (entailment), a sentence with its neighbours as "
        "premise (entailment), changed numbers, duties and denials (contradiction), sentences of one document that do "
        "not bear on each other (neutral). `made_quoting` are sentences of written answers and their sources, labelled "
        "by the words they share; nobody checked those labels. No sentence is stored in the weights' folder.",
        command=command,
        seed=training.seed,
    )


# Measuring ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PairReport:
    """A model's results on labelled pairs.

    ``confusion[gold][found]`` counts pairs, both in the order of `LABELS` (contradiction, entailment, neutral).
    ``correct_of`` holds (correct, pairs) for each set of pairs.
    """

    name: str
    model: ModelInfo
    confusion: tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]
    correct_of: dict[str, tuple[int, int]]
    seconds: float

    @property
    def n_pairs(self) -> int:
        return sum(map(sum, self.confusion))

    @property
    def accuracy(self) -> float | None:
        """The share of pairs whose most probable label is the gold one; None without pairs."""
        return sum(self.confusion[n][n] for n in range(len(LABELS))) / self.n_pairs if self.n_pairs else None

    @property
    def recall(self) -> dict[str, float | None]:
        """The share found per gold label; None if no pair has the label."""
        rows = zip(LABELS, self.confusion, strict=True)
        return {label: row[LABELS.index(label)] / sum(row) if sum(row) else None for label, row in rows}

    @property
    def pairs_per_second(self) -> float:
        """By wall-clock time; equal pairs are computed once, so a file with repetitions looks faster."""
        return self.n_pairs / self.seconds if self.seconds > 0 else 0.0


def evaluate_pairs(model: NliModel, pairs: Sequence[LabelledPair], name: str = "") -> Generator[int, None, PairReport]:
    """Yields the number of pairs done, and returns the report over all of them.

    The most probable label counts; at a tie the first of contradiction, entailment, neutral. Raises ScoringError if the
    model returns numbers that are not finite.
    """
    counts: Counter[tuple[int, int]] = Counter()
    correct: Counter[str] = Counter()
    began = time.perf_counter()
    for start in range(0, len(pairs), PAIRS_PER_STEP):
        step = pairs[start : start + PAIRS_PER_STEP]
        for pair, found in zip(step, model.predict([(p.premise, p.hypothesis) for p in step]), strict=True):
            values = (found.contradiction, found.entailment, found.neutral)
            label = values.index(max(values))
            counts[pair.label, label] += 1
            correct[pair.source] += label == pair.label
        yield start + len(step)
    seconds = time.perf_counter() - began
    rows = [(counts[gold, 0], counts[gold, 1], counts[gold, 2]) for gold in range(len(LABELS))]
    of_set = Counter(pair.source for pair in pairs)
    return PairReport(
        name=name,
        model=model.info,
        confusion=(rows[0], rows[1], rows[2]),
        correct_of={source: (correct[source], of_set[source]) for source in of_set},
        seconds=seconds,
    )

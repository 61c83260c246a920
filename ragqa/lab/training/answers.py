"""The answer selector: questions with labelled sentences gathered, a cross-encoder trained on them and measured.

A sentence answers a question fully, in part or not. A question's sentences are learnt together, against the answer
"none of them": the sentence that answers is to come first, and of a near miss no sentence is to come before "none".
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ragqa.corpus.obliqa import SEPARATOR as BETWEEN
from ragqa.corpus.obliqa import load_obliqa
from ragqa.english.reading import read
from ragqa.english.sentences import split_sentences
from ragqa.english.words import words_of
from ragqa.errors import CorpusError
from ragqa.generation.direct.selector import BREAK, HEADINGS, KIND, LABELS, shown
from ragqa.lab.claims import ClaimedPassage, fold_of
from ragqa.lab.training.loop import (
    Progress,
    Training,
    TrainingRun,
    batches_of_epoch,
    export_classifier,
    load_classifier,
    stamp_of,
    trains_in_bf16,
)
from ragqa.lab.training.model_folder import ModelCard, settings_of
from ragqa.models import fingerprint, resolve_model

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

NOT, PARTLY, FULLY = range(len(LABELS))
MOST_SENTENCES = 4  # of a question, in training: those that answer and the nearest others
NEAREST = 12  # sentences of other passages that are looked at
ALIKE = 0.6  # of the words of two sentences: they may answer the same
FURTHER_SENTENCES = 3  # the same where nothing is known of the question but its paragraph


# Data --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question and sentences, each as the model reads it with its label: an index into `LABELS`."""

    question: str
    sentences: tuple[str, ...]
    labels: tuple[int, ...]

    @property
    def n_chars(self) -> int:
        """Stands for the length in tokens when batches are made."""
        return len(self.question) + max(map(len, self.sentences))

    @property
    def is_answered(self) -> bool:
        """Whether a sentence answers it, at least in part."""
        return any(self.labels)


@dataclass(frozen=True, slots=True)
class AnswerSources:
    """What to train on; of the claims those of ``fold`` are held out."""

    claims: Sequence[ClaimedPassage]
    headings: Mapping[str, str]  # what stands above a passage, by its id among the claims
    squad: Path | None = None  # JSON lines of {question, title, context, answerable, answers}
    left_out: frozenset[str] = frozenset()  # questions that must not be learnt
    fold: int | None = None
    times: int = 2  # how often a question of the claims is read in an epoch
    n_squad: int = 2_000  # questions, drawn at random
    n_joined: int = 300  # pairs of questions on one passage, of which a sentence answers one
    n_elsewhere: int = 2  # sentences of other passages beside a question's own, those nearest to it in words
    seed: int = 1


def gather_questions(sources: AnswerSources) -> tuple[list[LabelledQuestion], list[LabelledQuestion]]:
    """(questions to train on, questions held out: all sentences of their passages). Raises CorpusError."""
    chance = random.Random(sources.seed)
    train: list[LabelledQuestion] = []
    held_out: list[LabelledQuestion] = []
    for passage in sources.claims:
        above = passage.title or sources.headings.get(passage.id, "")
        if fold_of(passage.id) == sources.fold:
            held_out += _of_claims(passage, above)
            continue
        for _ in range(sources.times):
            train += [_cut(one, MOST_SENTENCES, chance) for one in _of_claims(passage, above, chance)]
    with_both = [one for one in sources.claims if fold_of(one.id) != sources.fold]
    for passage in chance.sample(with_both, min(sources.n_joined, len(with_both))):
        train.append(_cut(_joined(passage, sources.headings, chance), MOST_SENTENCES, chance))
    if sources.squad:
        train += _of_squad(sources.squad, sources.left_out, sources.n_squad, chance)
    return [*_with_others(train, sources.n_elsewhere)], held_out


def _with_others(questions: Sequence[LabelledQuestion], most: int) -> Iterator[LabelledQuestion]:
    """Each question with the sentences nearest to it that are of other questions' passages: they do not answer."""
    texts = list(dict.fromkeys(text for one in questions for text in one.sentences))
    stems = [read(text.rpartition(BREAK)[2]).content for text in texts]
    holding: dict[str, list[int]] = defaultdict(list)
    for place, found in enumerate(stems):
        for stem in found:
            holding[stem].append(place)
    for one in questions:
        own = {text.rpartition(BREAK)[2] for text in one.sentences}
        shared: dict[int, float] = defaultdict(float)
        for stem in sorted(read(one.question).content):
            for place in holding[stem]:
                shared[place] += math.log(len(texts) / len(holding[stem])) / (8 + len(stems[place]))
        others: list[str] = []
        for place in sorted(shared, key=lambda n: (-shared[n], n))[:NEAREST]:
            sentence = texts[place].rpartition(BREAK)[2]
            beside = any(len(stems[place] & read(text).content) > ALIKE * len(stems[place]) for text in own)
            if not beside and len(others) < most:
                others.append(texts[place])
                own.add(sentence)
        yield replace(one, sentences=(*one.sentences, *others), labels=(*one.labels, *(NOT for _ in others)))


def headings_of(documents: Path) -> dict[str, str]:
    """What stands above each passage of these ObliQA documents, by its id among the claims."""
    return {
        f"adgm:{one.passage_id}": BETWEEN.join(one.section.split(BETWEEN)[-HEADINGS:]) for one in load_obliqa(documents)
    }


def texts_of(file: Path) -> frozenset[str]:
    """The questions of a file of JSON lines. Raises CorpusError."""
    return frozenset(str(row["question"]) for row in _rows(file))


def _of_claims(passage: ClaimedPassage, above: str, chance: random.Random | None = None) -> Iterator[LabelledQuestion]:
    """Its questions; with ``chance`` what stands above and before a sentence is now shown and now not."""
    texts = _texts(passage.sentences, above, chance)
    for question in passage.questions:
        found = set(question.sentences)
        labels = tuple((PARTLY if len(found) > 1 else FULLY) if n in found else NOT for n in range(len(texts)))
        yield LabelledQuestion(question.text, texts, labels)


def _texts(sentences: Sequence[str], above: str, chance: random.Random | None) -> tuple[str, ...]:
    shows_above = chance is None or chance.random() < 0.6
    shows_before = chance is not None and chance.random() < 0.25
    return tuple(
        shown(text, above if shows_above else "", sentences[n - 1] if shows_before and n else "")
        for n, text in enumerate(sentences)
    )


def _joined(passage: ClaimedPassage, headings: Mapping[str, str], chance: random.Random) -> LabelledQuestion:
    """Both questions of a passage put as one: what answers the one answers this in part."""
    first, second = chance.sample(list(_of_claims(passage, passage.title or headings.get(passage.id, ""), chance)), 2)
    text = f"{first.question.rstrip('?')}, and {second.question[:1].lower()}{second.question[1:]}"
    labels = tuple(PARTLY if any(both) else NOT for both in zip(first.labels, second.labels, strict=True))
    return LabelledQuestion(text, first.sentences, labels)


def _cut(question: LabelledQuestion, most: int, chance: random.Random) -> LabelledQuestion:
    """At most so many sentences: those that answer, and of the others those that share most words with the question."""
    words = {word.stem for word in words_of(question.question)}
    shared = [len(words & {word.stem for word in words_of(text)}) for text in question.sentences]
    places = sorted(range(len(shared)), key=lambda n: (question.labels[n] == NOT, -shared[n], chance.random()))[:most]
    return replace(
        question,
        sentences=tuple(question.sentences[n] for n in places),
        labels=tuple(question.labels[n] for n in places),
    )


def _of_squad(file: Path, left_out: frozenset[str], n: int, chance: random.Random) -> list[LabelledQuestion]:
    rows = [row for row in _rows(file) if row["question"] not in left_out]
    rows = chance.sample(rows, min(n, len(rows)))
    found = []
    for row in rows:
        sentences = [span.text for span in split_sentences(row["context"])]
        holding = [n for n, text in enumerate(sentences) if any(answer in text for answer in row["answers"])]
        if row["answerable"] and not holding:
            continue
        labels = [NOT] * len(sentences)
        if row["answerable"]:
            words = {word.stem for word in words_of(row["question"])}
            labels[max(holding, key=lambda n: len(words & {w.stem for w in words_of(sentences[n])}))] = FULLY
        texts = _texts(sentences, row["title"], chance)
        others = [
            n for n in range(len(sentences)) if labels[n] != NOT or n not in holding
        ]  # a repeated answer is left out
        question = LabelledQuestion(row["question"], tuple(texts[n] for n in others), tuple(labels[n] for n in others))
        found.append(_cut(question, FURTHER_SENTENCES, chance))
    return found


def _rows(file: Path) -> list[dict[str, Any]]:
    try:
        with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as stream:
            return [json.loads(line) for line in stream]
    except (OSError, ValueError) as error:
        msg = f"cannot read {file}: {error}; expected JSON lines of objects with a question"
        raise CorpusError(msg) from error


def questions_sha256(questions: Sequence[LabelledQuestion]) -> str:
    """Of texts and labels, in their order."""
    digest = hashlib.sha256()
    for one in questions:
        digest.update(json.dumps([one.question, one.sentences, one.labels]).encode())
    return digest.hexdigest()


# Training ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersTraining(Training):
    """How to train. Defaults are those that paid in trials on two processor cores."""

    base: str = "nli-minilm-l6"
    epochs: int = 1
    batch_size: int = 12  # questions
    learning_rate: float = 1e-4
    warmup_steps: int = 60
    max_tokens: int = 144  # of a pair; the longer text is cut first
    dropout: float = 0.1
    frozen_layers: int = 2  # of the lowest; they are the base's, and a fifth of the time is saved
    checkpoint_every: int = 100


def train_answers(
    training: AnswersTraining, questions: Sequence[LabelledQuestion], held_out: Sequence[LabelledQuestion], out: Path
) -> Iterator[Progress]:
    """Trains in ``out`` and writes the weights when done; resumes at its checkpoint as `train_nli` does."""
    from transformers import AutoTokenizer

    base = resolve_model(training.base)
    model = load_classifier(
        base, LABELS, dropout=training.dropout, seed=training.seed, frozen_layers=training.frozen_layers
    )
    tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True)
    steps = training.epochs * -(-len(questions) // training.batch_size)
    base_sha256 = fingerprint(base)
    bf16 = trains_in_bf16(model, base_sha256)
    run = TrainingRun(model, training, steps, out, stamp_of(asdict(training), base_sha256, questions_sha256(questions)))
    logits = partial(_logits, model, tokenizer, training, bf16)
    yield from run.train(
        islice(_batches(training, questions), run.done, None),
        partial(_loss, model, logits),
        partial(export_classifier, model, base, out, KIND),
        partial(_held_out, model, logits, held_out) if held_out else None,
    )


def _batches(training: AnswersTraining, questions: Sequence[LabelledQuestion]) -> Iterator[list[LabelledQuestion]]:
    for epoch in range(training.epochs):
        yield from batches_of_epoch(questions, training.batch_size, training.seed * 1000 + epoch)


def _logits(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    training: AnswersTraining,
    bf16: bool,
    batch: Sequence[LabelledQuestion],
) -> torch.Tensor:
    """Shape (n_sentences of all questions, 3)."""
    import torch

    encoded = tokenizer(
        [one.question for one in batch for _ in one.sentences],
        [text for one in batch for text in one.sentences],
        truncation="longest_first",
        max_length=training.max_tokens,
        padding=True,
        pad_to_multiple_of=8,
        return_tensors="pt",
    )
    with torch.autocast(model.device.type, torch.bfloat16, enabled=bf16):
        found: torch.Tensor = model(**encoded.to(model.device)).logits
    return found.float()


def _loss(model: PreTrainedModel, logits: partial[torch.Tensor], batch: Sequence[LabelledQuestion]) -> torch.Tensor:
    """The mean of two: each sentence's label, and each question's sentence among all and "none"."""
    import torch
    from torch.nn import functional

    model.train()
    found = logits(batch)
    labels = torch.tensor([label for one in batch for label in one.labels], device=found.device)
    of_sentences = functional.cross_entropy(found, labels)
    lead = torch.logsumexp(found[:, PARTLY:], -1) - found[:, NOT]  # how much likelier it answers than not, as a log
    of_questions, start = [], 0
    for one in batch:
        end = start + len(one.labels)
        leads, none = lead[start:end], lead.new_zeros(1)
        answering = leads[labels[start:end] != NOT] if one.is_answered else none
        of_questions.append(torch.logsumexp(torch.cat([none, leads]), 0) - torch.logsumexp(answering, 0))
        start = end
    return (of_sentences + torch.stack(of_questions).mean()) / 2


def _held_out(model: PreTrainedModel, logits: partial[torch.Tensor], questions: Sequence[LabelledQuestion]) -> float:
    """The area under the curve of answered questions against the others."""
    import torch

    model.eval()  # type: ignore[no-untyped-call]
    scores: list[npt.NDArray[np.float64]] = []
    with torch.inference_mode():
        for one in questions:
            scores.append(torch.softmax(logits([one]), -1).numpy().astype(np.float64) @ WORTH)
    return measures(questions, scores).auc


def answers_card(
    name: str, training: AnswersTraining, questions: Sequence[LabelledQuestion], last: Progress, command: str
) -> ModelCard:
    """The card of weights trained on ``questions``; ``last`` is the training's last report."""
    held_out = "not measured" if last.held_out is None else f"{last.held_out:.3f}"
    n_sentences = sum(len(one.labels) for one in questions)
    return ModelCard(
        title=f"{name}: does a sentence answer a question?",
        use=f"A cross-encoder of question and sentence (labels {', '.join(LABELS)}), by which the direct answer "
        "chooses what it quotes and what it refuses. English only.",
        figures=[("what", "figure"), ("AUC, answerable against near miss, on the fold held out", held_out)],
        figures_note="Measure exactly these weights: `ragqa eval answering`.",
        data=f"{len(questions):,} questions with {n_sentences:,} sentences, {last.step:,} steps from `{training.base}` "
        f"(weights {fingerprint(resolve_model(training.base))[:12]}). Settings: {settings_of(training)}.",
        further="Questions are those of `RAGQA_DATA/claims`, written for this project, and of SQuAD 2.0 (CC BY-SA "
        "4.0). No sentence is stored in the weights' folder.",
        command=command,
        seed=training.seed,
    )


# Measuring ---------------------------------------------------------------------------------------------------------

WORTH = np.array([0.0, 0.5, 1.0])  # of a sentence that does not answer, answers in part, answers fully


@dataclass(frozen=True, slots=True)
class AnswersReport:
    """What scores of sentences are worth: shares and an area under a curve, in [0, 1]; NaN where nothing was asked."""

    first: float  # of the answered questions with several sentences, one that answers comes first
    n_first: int
    auc: float  # the best sentence of an answered question before that of another
    n: int


def measures(questions: Sequence[LabelledQuestion], scores: Sequence[npt.NDArray[np.float64]]) -> AnswersReport:
    """``scores`` of each question's sentences, in their order."""
    several = [
        bool(one.labels[int(found.argmax())])
        for one, found in zip(questions, scores, strict=True)
        if one.is_answered and len(one.labels) > 1
    ]
    best = np.array([float(found.max()) for found in scores])
    answered = np.array([one.is_answered for one in questions])
    ahead = best[answered][:, None] - best[~answered][None, :]
    auc = float(((ahead > 0) + 0.5 * (ahead == 0)).mean()) if ahead.size else float("nan")
    return AnswersReport(float(np.mean(several)) if several else float("nan"), len(several), auc, len(questions))

"""The answer selector: gathers questions with labelled sentences, and trains and measures a cross-encoder on them.

A question's sentences are trained together with the option "none of them". The sentence that answers should rank first;
for a near miss, no sentence should rank before "none". The folds are those of `ragqa.lab.claims`.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ragqa.corpus.jsonl import read_json_lines
from ragqa.corpus.obliqa import load_obliqa
from ragqa.english.reading import read
from ragqa.english.sentences import split_sentences
from ragqa.errors import ModelError
from ragqa.generation.direct.weighing import SCALE, heading_above, in_context
from ragqa.lab.claims import ClaimedPassage, fold_of, read_claims
from ragqa.lab.training.loop import (
    WEIGHTS,
    Progress,
    Training,
    TrainingRun,
    batches_of_epoch,
    stamp_of,
    trains_in_bf16,
)
from ragqa.lab.training.model_folder import ModelCard, settings_of
from ragqa.lab.training.reranker import LABELS, logits_of
from ragqa.lab.written import JudgedQuestion, judged_questions, law_questions, written_passages
from ragqa.models import fingerprint, resolve_model
from ragqa.models.inference.pair_encoding import PairEncoder
from ragqa.models.inference.torch_engine import load_tokenizer
from ragqa.retrieval.reranker import KIND

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

OWN = 4  # sentences of a question's own passage: those that answer, then those nearest in words
OWN_OF_SQUAD = 3
NEAREST = 14  # sentences of other passages that are considered
FOREIGN = 4  # of these that are kept to draw from
OF_JUDGED = 8  # sentences per question with judged sentences of a corpus: all that answer, then others
ALIKE = 0.6  # share of words in common from which two sentences may give the same answer
WITH_HEADING = 0.6  # chance that the model sees the headings above a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSources:
    """What to train on; ``fold`` (0 to 4) is held out, None trains on all."""

    claims: Path  # claims.jsonl
    documents: Path | None = None  # ObliQA's, for the headings above the claims' passages
    squad: Path | None = None  # JSON lines of {question, title, context, answerable, answers}
    without: Path | None = None  # JSON lines of questions that must not be trained on
    written: Path | None = None  # RAGQA_DATA, whose further passages have questions of our own
    law: bool = False  # our own questions about texts of law, in each pass
    fold: int | None = None
    passes: int = 2  # over the claims' questions and the judged ones, with new sentences drawn in each
    n_questions: int | None = None  # of the claims' and our own in a pass, drawn at random; None: all
    n_squad: int = 1_000  # questions, drawn at random
    n_foreign: int = 2  # sentences of other passages in addition to a question's own
    seed: int = 1


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question and sentences as the model reads them, each with a label of whether it answers."""

    question: str
    sentences: tuple[str, ...]
    answers: tuple[float, ...]  # 1, 0, or .5 for a part of the answer; of taught sentences the probability
    taught: tuple[float, ...] = ()  # a teacher's log odds that each answers; empty if a person or a rule labelled them

    @property
    def n_chars(self) -> int:
        """The length in characters, used instead of tokens when batches are formed."""
        return len(self.question) + max(map(len, self.sentences))


@dataclass(slots=True)
class _Candidates:
    question: str
    sentences: tuple[str, ...]
    answers: tuple[float, ...]
    heading: str
    foreign: list[tuple[str, str]] = field(default_factory=list)  # (sentence, heading) of other passages

    @property
    def as_read(self) -> LabelledQuestion:
        texts = tuple(in_context(text, self.heading) for text in self.sentences)
        return LabelledQuestion(self.question, texts, self.answers)


def gather_questions(sources: AnswerSources) -> tuple[list[LabelledQuestion], list[LabelledQuestion]]:
    """(training questions; questions of the held-out fold with all sentences of their passage). Raises CorpusError."""
    chance = random.Random(sources.seed)
    headings = _headings(sources.documents) if sources.documents else {}
    learnt: list[_Candidates] = []
    held_out: list[LabelledQuestion] = []
    for passage in read_claims(sources.claims):
        asked = list(_of_claims(passage, passage.title or headings.get(passage.id, "")))
        if fold_of(passage.id) == sources.fold:
            held_out += (one.as_read for one in asked)
        else:
            learnt += asked
    for written in written_passages(sources.written, sources.fold) if sources.written else ():
        learnt += _of_claims(written.claimed, written.heading)
    squad = list(of_squad(sources, chance)) if sources.squad else []
    _find_foreign([*learnt, *squad])
    judged = judged_questions(sources.written, sources.fold) if sources.written else ()
    train = []
    for _ in range(sources.passes):
        n = sources.n_questions
        these = learnt if n is None else chance.sample(learnt, min(n, len(learnt)))
        train += [_drawn(one, sources.n_foreign, chance) for one in these]
        train += [_drawn_of_judged(one, chance) for one in judged]
        train += law_lists(sources)
    return [*train, *(_drawn(one, max(0, sources.n_foreign - 1), chance) for one in squad)], held_out


def law_lists(sources: AnswerSources) -> list[LabelledQuestion]:
    """Our own questions about texts of law, if they are asked for. Raises CorpusError."""
    found = []
    for one in law_questions() if sources.law else ():
        texts, _, far = zip(*one.sentences, strict=True)
        found.append(LabelledQuestion(one.question, texts, far))
    return found


def _headings(documents: Path) -> dict[str, str]:
    """The headings above each passage of these ObliQA documents, by the passage's id among the claims."""
    return {f"adgm:{one.passage_id}": heading_above("", one.section) for one in load_obliqa(documents)}


def _of_claims(passage: ClaimedPassage, heading: str) -> Iterator[_Candidates]:
    for question in passage.questions:
        answers = tuple(question.answerable and n in question.sentences for n in range(len(passage.sentences)))
        yield _Candidates(question.text, passage.sentences, answers, heading)


def of_squad(sources: AnswerSources, chance: random.Random) -> Iterator[_Candidates]:
    """SQuAD's questions, each with the likeliest answering sentence by words, and no other that contains the answer."""
    left_out = {str(row["question"]) for row in _rows(sources.without)} if sources.without else set()
    rows = [row for row in _rows(sources.squad) if row["question"] not in left_out]
    for row in chance.sample(rows, min(sources.n_squad, len(rows))):
        texts = [span.text for span in split_sentences(row["context"])]
        holding = [n for n, text in enumerate(texts) if any(answer in text for answer in row["answers"])]
        words = read(row["question"]).content
        shared = [len(words & read(text).content) for text in texts]
        if row["answerable"] != bool(holding):
            continue
        right = max(holding, key=shared.__getitem__) if holding else -1
        places = [n for n in range(len(texts)) if n == right or n not in holding]
        places = sorted(places, key=lambda n: (n != right, -shared[n]))[:OWN_OF_SQUAD]
        heading = row["title"].replace("_", " ")
        answers = tuple(n == right for n in places)
        yield _Candidates(row["question"], tuple(texts[n] for n in places), answers, heading)


def _rows(file: Path | None) -> Iterator[dict[str, Any]]:
    return (item.values for item in read_json_lines(file, file.name)) if file else iter(())


def _find_foreign(questions: Sequence[_Candidates]) -> None:
    """Finds for each question the nearest sentences of other passages, weighted by rare words."""
    pool = list(dict.fromkeys((text, one.heading) for one in questions for text in one.sentences))
    stems = [read(text).content for text, _ in pool]
    holding: dict[str, list[int]] = defaultdict(list)
    for place, known in enumerate(stems):
        for stem in known:
            holding[stem].append(place)
    for one in questions:
        own = {text: read(text).content for text in one.sentences}
        nearness: dict[int, float] = defaultdict(float)
        for stem in sorted(read(one.question).content):
            for place in holding[stem]:
                nearness[place] += math.log(len(pool) / len(holding[stem])) / (8 + len(stems[place]))
        for place in sorted(nearness, key=lambda n: (-nearness[n], n))[:NEAREST]:
            alike = any(len(stems[place] & other) > ALIKE * len(stems[place]) for other in own.values())
            if pool[place][0] not in own and not alike and len(one.foreign) < FOREIGN:
                one.foreign.append(pool[place])
                own[pool[place][0]] = stems[place]


def _drawn(asked: _Candidates, n_foreign: int, chance: random.Random) -> LabelledQuestion:
    """A few of the question's sentences, drawn at random with or without their headings."""
    words = read(asked.question).content
    near = [len(words & read(text).content) + 2 * chance.random() for text in asked.sentences]
    places = sorted(range(len(near)), key=lambda n: (not asked.answers[n], -near[n]))[:OWN]
    heading = asked.heading if chance.random() < WITH_HEADING else ""
    foreign = chance.sample(asked.foreign, min(n_foreign, len(asked.foreign)))
    texts = [in_context(asked.sentences[n], heading) for n in places]
    texts += [in_context(text, above if chance.random() < WITH_HEADING else "") for text, above in foreign]
    answers = (*(asked.answers[n] for n in places), *(False for _ in foreign))
    return LabelledQuestion(asked.question, tuple(texts), answers)


def _drawn_of_judged(asked: JudgedQuestion, chance: random.Random) -> LabelledQuestion:
    """The question with each sentence under its headings, as the direct generator presents it to the selector."""
    others = [one for one in asked.sentences if not one[2]]
    right = [one for one in asked.sentences if one[2]][:OF_JUDGED]
    found = [*right, *chance.sample(others, min(len(others), OF_JUDGED - len(right)))]
    texts = tuple(in_context(text, heading) for text, heading, _ in found)
    return LabelledQuestion(asked.question, texts, tuple(answers for *_, answers in found))


def questions_sha256(questions: Sequence[LabelledQuestion]) -> str:
    """The sha256 of texts and labels, in order."""
    digest = hashlib.sha256()
    for one in questions:
        digest.update(json.dumps([one.question, one.sentences, one.answers, *one.taught]).encode())
    return digest.hexdigest()


# Training ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersTraining(Training):
    """Training settings. The defaults worked best in trials on two processor cores."""

    base: str  # a folder with a cross-encoder of one output; with ``rank`` any classifier, which gets a new output
    words: str = "nli-minilm-l6"  # source of its word embeddings (same vocabulary), which it shares when packed
    rank: int = 0  # of low-rank factors trained instead of the layers that are not frozen; 0 trains these
    epochs: int = 1
    batch_size: int = 8  # questions
    learning_rate: float = 0.0  # 0 becomes 5e-4 for low-rank factors, 4e-5 for the weights themselves
    warmup_steps: int = 80
    max_tokens: int = 112  # of a pair; the longer text is cut first
    dropout: float = 0.1
    frozen_layers: int = 2  # of the lowest
    checkpoint_every: int = 100

    def __post_init__(self) -> None:
        if not self.learning_rate:
            object.__setattr__(self, "learning_rate", 5e-4 if self.rank else 4e-5)


def train_answers(
    training: AnswersTraining, questions: Sequence[LabelledQuestion], held_out: Sequence[LabelledQuestion], out: Path
) -> Iterator[Progress]:
    """Trains in ``out`` and writes the weights when done; resumes at its checkpoint as `train_nli` does.

    Raises ModelError if the base is no cross-encoder of one output, or if the word embeddings have another shape, and
    ConfigError if the base has no layer to train.
    """
    from ragqa.lab.training.lora_layers import export_merged, load_adaptable  # imports torch

    base = resolve_model(training.base, KIND)
    words = base if training.rank else resolve_model(training.words)
    model = load_adaptable(
        base,
        LABELS,
        rank=training.rank,
        frozen_layers=training.frozen_layers,
        seed=training.seed,
        dropout=training.dropout,
    )
    if not training.rank:
        _share_words(model, words)
    encoder = PairEncoder(load_tokenizer(base), training.max_tokens)
    base_sha256 = fingerprint(base)
    bf16 = trains_in_bf16(model, base_sha256)
    steps = training.epochs * -(-len(questions) // training.batch_size)
    stamp = stamp_of(asdict(training), base_sha256, fingerprint(words), questions_sha256(questions))
    run = TrainingRun(model, training, steps, out, stamp)

    def batches() -> Iterator[list[LabelledQuestion]]:
        for epoch in range(training.epochs):
            yield from batches_of_epoch(questions, training.batch_size, training.seed * 1000 + epoch)

    yield from run.train(
        islice(batches(), run.done, None),
        partial(_loss, model, encoder, bf16),
        partial(export_merged, model, base, out, KIND),
        partial(_held_out, model, encoder, held_out, bf16) if held_out else None,
    )


def _share_words(model: PreTrainedModel, words: Path) -> None:
    import torch
    from safetensors.numpy import load_file

    found = [tensor for name, tensor in load_file(words / WEIGHTS).items() if name.endswith("word_embeddings.weight")]
    embeddings: Any = model.get_input_embeddings()
    if len(found) != 1 or found[0].shape != tuple(embeddings.weight.shape):
        shapes = ", ".join(str(tensor.shape) for tensor in found) or "none"
        msg = f"expected word embeddings of shape {tuple(embeddings.weight.shape)} in {words}, found {shapes}; "
        msg += "name weights of the same vocabulary and width"
        raise ModelError(msg)
    embeddings.weight.data.copy_(torch.from_numpy(found[0].astype(np.float32)))


def _loss(model: PreTrainedModel, encoder: PairEncoder, bf16: bool, batch: Sequence[LabelledQuestion]) -> torch.Tensor:
    """The loss per sentence, plus half the loss of each question's choice among its sentences and "none" (logit 0).

    Of taught sentences the choice is that of the teacher's log odds, as a distribution.
    """
    import torch
    from torch.nn import functional

    pairs = [(one.question, text) for one in batch for text in one.sentences]
    logits = SCALE * logits_of(model, encoder, pairs, bf16=bf16)
    answers = logits.new_tensor([answer for one in batch for answer in one.answers])
    lists, start = [], 0
    for one in batch:
        end = start + len(one.answers)
        among = torch.cat([logits.new_zeros(1), logits[start:end]])
        if one.taught:
            told = torch.softmax(among.new_tensor([0.0, *one.taught]), 0)
            lists.append(-(told * torch.log_softmax(among, 0)).sum())
            start = end
            continue
        most = answers[start:end].max()  # half if there is only a part of the answer
        wanted = most * torch.logsumexp(logits[start:end][answers[start:end] == most], 0)
        lists.append(torch.logsumexp(among, 0) - wanted)
        start = end
    return functional.binary_cross_entropy_with_logits(logits, answers) + 0.5 * torch.stack(lists).mean()


def _held_out(model: PreTrainedModel, encoder: PairEncoder, questions: Sequence[LabelledQuestion], bf16: bool) -> float:
    """The area under the ROC curve of answered questions against near misses."""
    import torch

    scores = []
    with torch.inference_mode():
        for one in questions:
            pairs = [(one.question, text) for text in one.sentences]
            scores.append(logits_of(model, encoder, pairs, bf16=bf16, is_training=False).tolist())
    return measures(questions, scores).auc


def answers_card(
    name: str, training: AnswersTraining, questions: Sequence[LabelledQuestion], last: Progress, command: str
) -> ModelCard:
    """The card of weights trained on ``questions``; ``last`` is the training's last report."""
    held_out = "not measured" if last.held_out is None else f"{last.held_out:.3f}"
    n_sentences = sum(len(one.answers) for one in questions)
    return ModelCard(
        title=f"{name}: does a sentence answer a question?",
        use="A cross-encoder of one output over (question, sentence with what stands above it): half its logit is the "
        "log odds that the sentence answers. The direct answer chooses and refuses by it. English only.",
        figures=[("what", "figure"), ("AUC, answerable against near miss, on the fold held out", held_out)],
        figures_note="Measure exactly these weights: `ragqa eval answering`.",
        data=f"{len(questions):,} questions with {n_sentences:,} sentences, {last.step:,} steps from `{training.base}` "
        f"(weights {fingerprint(resolve_model(training.base))[:12]}). Settings: {settings_of(training)}.",
        further="Questions are those of `RAGQA_DATA/claims` and of `ragqa/lab/data` (`--written`), written for this "
        "project, and of SQuAD 2.0 (CC BY-SA 4.0). No sentence is stored in the weights' folder.",
        command=command,
        seed=training.seed,
    )


# Measuring ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AnswersReport:
    """Measures of sentence scores: shares and an area under a curve, in [0, 1]; NaN without questions."""

    first: float  # share of answered questions with several sentences whose first one answers
    n_first: int
    auc: float  # of best sentences: answered questions against the others
    n: int


def measures(questions: Sequence[LabelledQuestion], scores: Sequence[Sequence[float]]) -> AnswersReport:
    """The measures of ``scores``, which hold a score for each sentence of each question."""
    several = [
        one.answers[max(range(len(found)), key=found.__getitem__)]
        for one, found in zip(questions, scores, strict=True)
        if any(one.answers) and len(one.answers) > 1
    ]
    best = np.array([max(found) for found in scores])
    answered = np.array([any(one.answers) for one in questions])
    ahead = best[answered][:, None] - best[~answered][None, :]
    auc = float(((ahead > 0) + 0.5 * (ahead == 0)).mean()) if ahead.size else float("nan")
    return AnswersReport(float(np.mean(several)) if several else float("nan"), len(several), auc, len(questions))

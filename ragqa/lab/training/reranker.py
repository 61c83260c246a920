"""Trains a cross-encoder to rank the gold passage first: draws groups, and trains a folder of fp16 weights.

The wrong passages of a group come from the top of the fused ranking, because a reranker gets its best passages. The
loss is the cross entropy of the gold passage among its group, over the logits that the model gives to (question,
passage) (Nogueira and Cho 2019, https://arxiv.org/abs/1901.04085, for the input; Han et al. 2020,
https://arxiv.org/abs/2004.08476, equation 2 with softmax, for the list). The order of the data, and thus the whole run,
depends only on the seed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ragqa import models
from ragqa.errors import ConfigError, CorpusError
from ragqa.evaluation.measures import display_name
from ragqa.lab.questions import MEASURES
from ragqa.lab.training.loop import (
    Progress,
    Training,
    TrainingRun,
    export_classifier,
    load_classifier,
    stamp_of,
    trains_in_bf16,
)
from ragqa.lab.training.model_folder import ModelCard, settings_of
from ragqa.lab.training.ranker import RankingMeans
from ragqa.lab.training.retriever import RetrieverData, drawn_steps
from ragqa.models.inference.pair_encoding import PairEncoder, padded_inputs
from ragqa.models.inference.torch_engine import load_tokenizer
from ragqa.plugins.registry import is_api_name
from ragqa.retrieval.local_models import weights_of
from ragqa.retrieval.reranker import KIND
from ragqa.types import Ranking

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

LABELS = ("relevance",)
PAIRS_PER_PASS = 8  # of similar length, computed together on a CPU; on a GPU a step is one pass
TOKEN_STEP = 32  # lengths are padded to its multiples, because torch keeps megabytes of kernel for each shape


@dataclass(frozen=True, slots=True)
class Group:
    """A question, its gold passage and wrong ones, by position; ``passages[0]`` is the gold one."""

    question: int
    passages: tuple[int, ...]


class KnownRankings:
    """Precomputed rankings as a `ragqa.plugins.protocols.Retriever`."""

    def __init__(self, name: str, by_question: Mapping[str, Ranking]) -> None:
        self.name, self._by_question = name, by_question

    def retrieve(self, question: str, top_k: int) -> Ranking:
        """The best ``top_k`` of this question's ranking. Raises KeyError if it has none."""
        return Ranking(self.name, self._by_question[question].hits[:top_k])


def steps_of(data: RetrieverData, epochs: int, batch_size: int) -> int:
    """The number of lists that `groups_by_step` yields; the last one of an epoch may be short."""
    return epochs * -(-len(data.pairs) // batch_size)


def groups_by_step(
    data: RetrieverData, epochs: int, batch_size: int, n_negatives: int, seed: int, *, skip: int = 0
) -> Iterator[list[Group]]:
    """Every pair of ``data`` as a group once per epoch, ``batch_size`` per step, without the first ``skip`` steps.

    Steps are those of `drawn_steps`. Negatives are drawn from the question's own without repetition; if there are too
    few, also from those of all questions, without its gold texts. Raises CorpusError if there are none.
    """
    anything = np.array(data.used_passages, np.int64)
    for pairs, chance in drawn_steps(data, batch_size, steps_of(data, 1, batch_size), epochs, seed, skip):
        yield [
            Group(question, (gold, *_negatives(data, question, n_negatives, anything, chance)))
            for question, gold in pairs
        ]


def _negatives(
    data: RetrieverData, question: int, count: int, anything: npt.NDArray[np.int64], chance: np.random.Generator
) -> list[int]:
    own = data.negatives[question]
    drawn: list[int] = chance.permutation(np.array(own, np.int64))[:count].tolist()
    gold = data.gold_texts[question]
    if len(drawn) < count:
        others = [passage for passage in anything.tolist() if data.text_of[passage] not in gold]
        if not others:
            raise CorpusError(
                f"expected passages that are not gold for the question {data.questions[question][:80]!r}, found none "
                f"among the {len(anything):,} there are to learn from; take more questions or another index"
            )
        drawn += [others[n] for n in chance.integers(len(others), size=count - len(drawn)).tolist()]
    return drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerTraining(Training):
    """Training settings.

    With the defaults one trial on two processor cores gained .014 MAP@10 (ObliQA dev, fold 1/5).
    """

    base: str  # an embedded name, an encoder's name or a folder: a model with a tokenizer
    epochs: int = 1
    negatives: int = 4  # wrong passages per gold one, >= 1
    batch_size: int = 8  # gold passages, with their negatives
    learning_rate: float = 1e-4
    warmup_steps: int = 40
    max_tokens: int = 224  # of question and passage; the longer text is cut first; >= 8
    dropout: float = 0.1  # between layers, in [0, 1)


def train_reranker(training: RerankerTraining, data: RetrieverData, out: Path) -> Iterator[Progress]:
    """Trains in ``out``, yields every 10 steps, and writes the weights when done.

    Resumes at ``out``'s checkpoint if it has the same settings and data. Uses the GPU if there is one. Raises
    ModelError if the base or the checkpoint does not fit, ConfigError if ``base`` names no folder, and CorpusError if
    there are no negatives.
    """
    base, base_sha256 = base_folder(training.base)
    model = load_classifier(base, LABELS, dropout=training.dropout, seed=training.seed)
    encoder = PairEncoder(load_tokenizer(base), training.max_tokens)
    bf16 = trains_in_bf16(model, base_sha256)
    steps = steps_of(data, training.epochs, training.batch_size)
    run = TrainingRun(model, training, steps, out, stamp_of(asdict(training), base_sha256, data.sha256))
    reports = run.train(
        groups_by_step(data, training.epochs, training.batch_size, training.negatives, training.seed, skip=run.done),
        partial(_loss, model, encoder, data, bf16),
        partial(_export, model, base, out, encoder, training.max_tokens),
    )
    for now in reports:
        yield replace(now, pairs_per_second=now.pairs_per_second * (1 + training.negatives))


def base_folder(name: str) -> tuple[Path, str]:
    """The folder of the model that training starts from, and the sha256 of its weights.

    ``name`` is that of an embedded model, or an encoder's as for `weights_of`: a folder or a hub name. Raises
    ConfigError for an encoder with an adapter or on a server, and ModelError if there is no such model.
    """
    if is_api_name(name) or ("+" in name and not Path(name).expanduser().is_dir()):
        msg = f"expected a model to start from, found {name!r}, which is no single folder; name one with --base"
        raise ConfigError(msg)
    if name in models.EMBEDDED:
        folder = models.resolve_model(name)
        return folder, models.fingerprint(folder)
    found = weights_of(name)
    return found.folder, found.sha256


def _loss(
    model: PreTrainedModel, encoder: PairEncoder, data: RetrieverData, bf16: bool, groups: Sequence[Group]
) -> torch.Tensor:
    import torch
    from torch.nn import functional

    pairs = [(data.questions[group.question], data.passages[n]) for group in groups for n in group.passages]
    logits = logits_of(model, encoder, pairs, bf16=bf16).view(len(groups), -1)
    return functional.cross_entropy(logits, torch.zeros(len(groups), dtype=torch.long, device=model.device))


def logits_of(
    model: PreTrainedModel,
    encoder: PairEncoder,
    pairs: Sequence[tuple[str, str]],
    *,
    bf16: bool,
    is_training: bool = True,
) -> torch.Tensor:
    """The logits, of shape (n_pairs,), in the order of the pairs."""
    import torch
    from torch.nn import functional

    model.train(is_training)
    device = model.device
    encoded = encoder.encode(pairs)
    found: list[torch.Tensor] = []
    order: list[int] = []
    by_length = sorted(range(len(encoded)), key=lambda n: len(encoded[n].ids))
    size = PAIRS_PER_PASS if device.type == "cpu" else len(by_length)
    for start in range(0, len(by_length), size):
        batch = by_length[start : start + size]
        inputs = padded_inputs([encoded[n] for n in batch], int(model.config.pad_token_id or 0))
        padding = -inputs["input_ids"].shape[1] % TOKEN_STEP
        tensors: dict[str, Any] = {
            name: functional.pad(torch.from_numpy(rows), (0, padding)).to(device) for name, rows in inputs.items()
        }
        if not getattr(model.config, "type_vocab_size", 0) > 1:
            del tensors["token_type_ids"]
        with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
            found.append(model(**tensors).logits[:, 0].float())
        order += batch
    return torch.cat(found)[torch.argsort(torch.tensor(order, device=device))]


def _export(model: PreTrainedModel, base: Path, out: Path, encoder: PairEncoder, max_tokens: int) -> None:
    """Writes the folder for `CrossEncoderReranker`; its tokenizer truncates as in training."""
    export_classifier(model, base, out, KIND)
    encoder.save_tokenizer(out / "tokenizer.json")
    file = out / "tokenizer_config.json"
    config = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    file.write_text(json.dumps(config | {"model_max_length": max_tokens}, indent=2) + "\n", encoding="utf-8")


def reranker_card(
    name: str,
    training: RerankerTraining,
    data: RetrieverData,
    last: Progress,
    *,
    base_sha256: str,
    command: str,
    sources: Sequence[Sequence[str]],
    figures: Sequence[RankingMeans],
    n_tested: int,
) -> ModelCard:
    """The card. ``sources`` is a table of the files read; ``last`` is the last report.

    ``figures`` are on ``n_tested`` questions that were not trained on.
    """
    asked = len({question for question, _ in data.pairs})
    measured = f"Measured on {n_tested:,} questions" if n_tested else "To be measured on questions"
    return ModelCard(
        title=f"{name}: which passage answers a question?",
        use="A cross-encoder of one output over (question, passage), weights in half precision as safetensors, made "
        f"from `{training.base}` (weights sha256 {base_sha256}). Use it: `ragqa ask QUESTION --reranker FOLDER "
        "--rerank-weight WEIGHT`, FOLDER being this one.",
        figures=[
            ("ranking", *map(display_name, MEASURES)),
            *((one.name, *(f"{mean:.4f}" for mean in one.means)) for one in figures),
        ],
        figures_note=f'{measured} that share no gold passage with those trained on. The number after "reranked" is '
        "WEIGHT, the reranker's share of the score; the rest is the fused one's.",
        data=f"{len(data.pairs):,} pairs of {asked:,} questions and their gold passages ({data.n_missing:,} gold ids "
        f"not in the index), each beside {training.negatives} passages that the fused ranking puts high and that are "
        f"not gold; {last.step:,} of {last.steps:,} steps; {last.seconds:.0f} seconds in the last run. Settings: "
        f"{settings_of(training)}.",
        sources=sources,
        command=command,
        seed=training.seed,
    )

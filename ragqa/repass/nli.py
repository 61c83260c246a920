"""A three-way NLI cross-encoder from a local folder of Hugging Face weights, for the processor.

This module imports torch; load it only where a model is loaded.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch

from ragqa.errors import ModelError, ScoringError
from ragqa.models import check_model, resolve_model
from ragqa.protocols import NliModel
from ragqa.repass.batches import batches_by_length
from ragqa.repass.sharing import FairLock, RecentResults
from ragqa.types import ModelInfo, NliProbabilities

__all__ = ["CrossEncoderNli", "Precision", "choose_precision", "label_columns"]

Pair = tuple[str, str]
Precision = Literal["auto", "fp32", "bf16"]

KIND = "nli"
ROLES = ("contradiction", "entailment", "neutral")
MAX_TOKENS = 512  # of premise and hypothesis together; the longer one is cut first
MAX_CHARS = 4_000  # of either; fills 512 tokens. Cutting two texts of 100,000 to 512 tokens takes the tokenizer 17 s
TOKEN_BUDGET = 1536  # per batch, padding included; the fastest of 256 to 8,192 on 2 cores (see the model card)
PAIRS_PER_ENCODING = 512  # tokenised at a time: bounds memory and how long the tokenizer is held
REMEMBERED_PAIRS = 20_000  # a few hundred answers' worth, some 10 MB
BF16_FLAGS = {"amx_bf16", "avx512_bf16"}  # processors on which bf16 was measured to be faster

logger = logging.getLogger(__name__)


class CrossEncoderNli(NliModel):
    """P(contradiction), P(entailment), P(neutral) of sentence pairs. Locks itself: share it between threads."""

    def __init__(
        self, model: str = "nli-minilm-l6", precision: Precision = "auto", remembered: int = REMEMBERED_PAIRS
    ) -> None:
        """The model of this name, or in this folder, checked and loaded (about a second). Raises ModelError.

        ``precision`` is that of the arithmetic; probabilities are fp32 in any case. ``"auto"`` takes bf16 where the
        processor has instructions for it, which shifts a probability by up to 0.02 and is about 1.6 times as fast.
        """
        folder = resolve_model(model)
        self._bf16 = (choose_precision() if precision == "auto" else precision) == "bf16"
        self._info = ModelInfo(folder.name, check_model(folder, KIND), "bf16" if self._bf16 else "fp32")
        self._tokenizer, self._model = _load(folder)
        self._columns = label_columns(self._model.config.id2label, folder)
        self._max_tokens = min(MAX_TOKENS, self._tokenizer.model_max_length)
        self._lock = FairLock()  # tokenizers shared by threads raise "Already borrowed"
        self._recent: RecentResults[Pair, NliProbabilities] = RecentResults(remembered)

    @property
    def info(self) -> ModelInfo:
        return self._info

    def predict(self, pairs: Sequence[Pair]) -> list[NliProbabilities]:
        """One result per (premise, hypothesis), in the order given; equal and recently seen pairs cost nothing.

        Premise and hypothesis beyond 512 tokens together are cut, the longer one first, and neither is read beyond its
        4,000th character. In fp32 a result depends on the other pairs by less than 1e-5 (bf16: 0.005). Raises
        ScoringError where a result is not a number.
        """
        results = self._recent.known(dict.fromkeys(pairs))
        missing = [pair for pair in dict.fromkeys(pairs) if pair not in results]
        for start in range(0, len(missing), PAIRS_PER_ENCODING):
            results.update(self._compute(missing[start : start + PAIRS_PER_ENCODING]))
        return [results[pair] for pair in pairs]

    def _compute(self, pairs: list[Pair]) -> dict[Pair, NliProbabilities]:
        with self._lock:
            encoded = self._encode(pairs)
        results: dict[Pair, NliProbabilities] = {}
        for batch in batches_by_length([len(ids) for ids in encoded["input_ids"]], TOKEN_BUDGET):
            with self._lock:  # one batch at a time, so that sessions take turns
                probabilities = self._forward({name: [rows[n] for n in batch] for name, rows in encoded.items()})
            if not torch.isfinite(probabilities).all():
                msg = (
                    f"The NLI model {self._info.name} gave numbers that are not finite in {self._info.precision}; "
                    "the answer is kept. Check the model's files, or reinstall ragqa."
                )
                raise ScoringError(msg)
            rows = probabilities[:, self._columns].tolist()
            found = {pairs[n]: NliProbabilities(*row) for n, row in zip(batch, rows, strict=True)}
            self._recent.remember(found)
            results.update(found)
        return results

    def _encode(self, pairs: list[Pair]) -> dict[str, list[list[int]]]:
        encoded = self._tokenizer(
            [_encodable(premise) for premise, _ in pairs],
            [_encodable(hypothesis) for _, hypothesis in pairs],
            truncation="longest_first",
            max_length=self._max_tokens,
        )
        return dict(encoded)

    def _forward(self, rows: dict[str, list[list[int]]]) -> torch.Tensor:
        """Probabilities of shape (n_rows, 3), fp32, columns as the model has them."""
        fillers = {"input_ids": self._tokenizer.pad_token_id, "token_type_ids": self._tokenizer.pad_token_type_id}
        inputs = {name: _padded(values, fillers.get(name) or 0) for name, values in rows.items()}
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=self._bf16):
            logits: torch.Tensor = self._model(**inputs).logits
        return torch.softmax(logits.float(), dim=-1)


def choose_precision(cpuinfo: Path = Path("/proc/cpuinfo")) -> Literal["fp32", "bf16"]:
    """bf16 where the processor says it has instructions for it, fp32 where it does not or cannot be asked."""
    try:
        flags = next((line for line in cpuinfo.read_text().splitlines() if line.startswith("flags")), "")
    except OSError:
        return "fp32"
    return "bf16" if BF16_FLAGS & set(flags.split()) else "fp32"


def label_columns(id2label: dict[int, str], folder: Path) -> list[int]:
    """The model's columns of contradiction, entailment and neutral, in that order; case does not matter.

    Raises ModelError unless the labels are exactly these three: a guess would swap support and contradiction.
    """
    column_of = {str(label).strip().lower(): int(column) for column, label in id2label.items()}
    if len(id2label) != len(ROLES) or set(column_of) != set(ROLES):
        msg = (
            f"The NLI model in {folder} has the labels {sorted(map(str, id2label.values()))}; expected contradiction, "
            "entailment and neutral. Name them in id2label of its config.json, or choose the embedded nli-minilm-l6."
        )
        raise ModelError(msg)
    return [column_of[role] for role in ROLES]


def _load(folder: Path) -> tuple[Any, Any]:
    """Tokenizer and fp32 model of this folder, from safetensors and nothing else."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer
    from transformers.utils import logging as transformers_logging

    display: Any = transformers_logging  # its functions are not annotated
    showed_progress = display.is_progress_bar_enabled()
    display.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = AutoModelForSequenceClassification.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, dtype=torch.float32
        )
    except Exception as error:
        msg = (
            f"The NLI model in {folder} cannot be loaded ({type(error).__name__}: {str(error).strip()[:300]}); "
            "expected a sequence-classification model with its tokenizer. Reinstall ragqa, or choose nli-minilm-l6."
        )
        raise ModelError(msg) from error
    finally:
        if showed_progress:
            display.enable_progress_bar()
    if len(tokenizer) * 2 < model.config.vocab_size:  # transformers makes an empty tokenizer where there is none
        msg = (
            f"The tokenizer in {folder} knows {len(tokenizer):,} pieces of words, its model expects "
            f"{model.config.vocab_size:,}: its files are missing. Reinstall ragqa, or choose nli-minilm-l6."
        )
        raise ModelError(msg)
    logger.info("loaded the NLI model %s", folder)
    return tokenizer, model.eval()


def _padded(rows: list[list[int]], filler: int) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [filler] * (longest - len(row)) for row in rows])


def _encodable(text: str) -> str:
    """The text as the tokenizer can take it: no lone surrogates, which have no UTF-8 form, and no endless length."""
    return text[:MAX_CHARS].encode("utf-8", "replace").decode("utf-8")

"""A transformer that classifies texts or pairs of texts: tokenizer, engine, batches and turns in one object."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ragqa.errors import ModelError
from ragqa.infra.disk_cache import FairLock
from ragqa.models.inference.bert_graph import STREAMS, OpenVinoEngine, bert_shape, openvino_version
from ragqa.models.inference.pair_encoding import (
    LENGTH_STEP,
    EncodedPair,
    InputForm,
    Inputs,
    PairEncoder,
    batches_by_length,
    padded_inputs,
    read_tokenizer,
    turns_of,
)
from ragqa.models.inference.precision import INPUTS, Computed, Subject, timings, trial_batch
from ragqa.models.inference.torch_engine import TorchEngine, graphics_card, load_tokenizer, torch_version
from ragqa.models.inference.weights import tokenizer_folder
from ragqa.settings.schema import Precision

Pair = tuple[str, str]

MAX_TOKENS = 512  # of premise and hypothesis together; the longer one is cut first
TOKEN_BUDGET = 768  # per batch, padding included
PAIRS_PER_ENCODING = 512  # tokenised at a time: bounds memory and how long the tokenizer is held
TRIAL = (2, 104)  # pairs and their tokens in each batch of a timing, as in typical use
GPU_DEVICE = Path("/dev/nvidiactl")  # checked first, because importing torch takes seconds

logger = logging.getLogger(__name__)


class Engine(Protocol):
    """Computes the logits of padded batches, in ``precision``."""

    precision: str

    def infer(self, batches: Sequence[Inputs]) -> list[npt.NDArray[np.float32]]:
        """float32 arrays of shape (n_rows, n_labels), one per batch."""
        ...


AnEngine = TypeVar("AnEngine", bound=Engine)


class SequenceClassifier:
    """A loaded model folder. It locks itself for a few batches at a time, so that sessions take turns."""

    def __init__(
        self, folder: Path, precision: Precision = "auto", form: InputForm = "pair", fingerprint: str = ""
    ) -> None:
        """OpenVINO for BERT, PyTorch for others and on a GPU; ``arithmetic`` says which. Raises ModelError.

        ``"auto"`` is the faster precision on this machine. It is timed (`ragqa.models.inference.precision`) unless it
        is known for weights with this ``fingerprint``; without a fingerprint it is timed each time.
        """
        self.config = read_config(folder)
        max_tokens = _max_tokens(folder)
        batch = trial_batch(TRIAL[0], min(TRIAL[1], max_tokens))
        self._engine, self.arithmetic = _load_engine(folder, self.config, precision, fingerprint, batch)
        if form == "joined":
            self.arithmetic += ", joined input"
        self._encoder = PairEncoder(_tokenizer(folder, self.config), max_tokens, form)
        self._pad_id = int(self.config.get("pad_token_id") or 0)
        self._lock = FairLock()

    def logits(self, pairs: Sequence[Pair]) -> npt.NDArray[np.float32]:
        """float32 array of shape (n_pairs, n_labels), in the order given; equal pairs are computed once."""
        row = {pair: n for n, pair in enumerate(dict.fromkeys(pairs))}
        distinct, every = list(row), range(0, len(row), PAIRS_PER_ENCODING)
        found = [self._logits(distinct[n : n + PAIRS_PER_ENCODING]) for n in every]
        return (
            np.concatenate(found)[[row[pair] for pair in pairs]] if found else np.zeros((0, self.n_labels), np.float32)
        )

    @property
    def n_labels(self) -> int:
        return len(self.config["id2label"])

    def _logits(self, pairs: Sequence[Pair]) -> npt.NDArray[np.float32]:
        with self._lock:
            encoded: list[EncodedPair] = self._encoder.encode(pairs)
        found = np.zeros((len(pairs), self.n_labels), np.float32)
        for turn in turns_of(batches_by_length([len(pair.ids) for pair in encoded], TOKEN_BUDGET), encoded):
            inputs = [padded_inputs([encoded[n] for n in batch], self._pad_id) for batch in turn]
            with self._lock:
                results = self._engine.infer(inputs)
            for batch, logits in zip(turn, results, strict=True):
                found[batch] = logits
        return found


def _load_engine(
    folder: Path, config: dict[str, Any], precision: Precision, fingerprint: str, batch: Inputs
) -> tuple[Engine, str]:
    """The engine, and its precision, library and version in words. Raises ModelError.

    A model that OpenVINO does not support is loaded by PyTorch, which raises if it cannot load it either.
    """
    shape, version = (bert_shape(config), openvino_version()) if not GPU_DEVICE.exists() else (None, None)
    if shape and version:
        try:
            library = f"OpenVINO {version}"
            make = partial(OpenVinoEngine, folder, shape, streams=STREAMS)
            engine = _made(make, precision, Subject("scoring", library, fingerprint), batch)
            # A mismatch between the graph and the model shows here, not in the middle of an answer.
            found = engine.infer([{name: np.ones((1, 8), np.int64) for name in INPUTS}])[0].shape
            if found == (1, len(config["id2label"])):
                return engine, f"{engine.precision}, {library}"
            reason = f"its logits have the shape {found}"
        except (ModelError, RuntimeError) as error:
            reason = str(error).strip()[:300]
        logger.warning("OpenVINO cannot compute %s (%s): PyTorch does, about half as fast", folder.name, reason)
    elif shape:
        logger.warning("OpenVINO cannot be imported: %s is computed by PyTorch, about half as fast", folder.name)
    library, card = f"PyTorch {torch_version()}", graphics_card()
    subject = Subject("scoring", f"{library} on {card}" if card else library, fingerprint, on_gpu=bool(card))
    by_torch = _made(partial(TorchEngine, folder), precision, subject, batch)
    device = "" if by_torch.device == "cpu" else f" on {by_torch.device}"
    return by_torch, f"{by_torch.precision}, {library}{device}"


def _made(make: Callable[[Computed], AnEngine], precision: Precision, subject: Subject, batch: Inputs) -> AnEngine:
    """The engine with this precision, or with the faster one for "auto"."""
    if precision != "auto":
        return make(precision)
    made: dict[Computed, AnEngine] = {}

    def trial(wanted: Computed) -> Callable[[], object]:
        made[wanted] = make(wanted)
        return partial(made[wanted].infer, [batch] * STREAMS)

    chosen = timings().faster(subject, trial)
    return made[chosen] if chosen in made else make(chosen)


def read_config(folder: Path) -> dict[str, Any]:
    """The model's config.json, with ``id2label`` by column number. Raises ModelError if it cannot be read."""
    with _reading(folder / "config.json") as config:
        named = config.get("id2label") or {0: "LABEL_0", 1: "LABEL_1"}
        config["id2label"] = {int(column): str(label) for column, label in named.items()}
    return config


@contextmanager
def _reading(file: Path) -> Iterator[dict[str, Any]]:
    """The object in this file. Raises ModelError if it cannot be read, or if the block cannot read its values."""
    try:
        yield json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, AttributeError, TypeError, OverflowError) as error:
        raise ModelError(
            f"{file} cannot be read as a model's configuration ({error}); choose another folder, or an embedded model."
        ) from error


def _tokenizer(folder: Path, config: dict[str, Any]) -> Any:  # noqa: ANN401 - a tokenizers.Tokenizer
    """The folder's tokenizer; that of its base for an adapter without one. Raises ModelError."""
    folder = tokenizer_folder(folder)
    has_file = (folder / "tokenizer.json").is_file()
    tokenizer = read_tokenizer(folder) if has_file else load_tokenizer(folder)
    known, expected = tokenizer.get_vocab_size(), int(config.get("vocab_size", 0))
    if known * 2 < expected:  # transformers creates an empty tokenizer if there is none
        raise ModelError(
            f"The tokenizer in {folder} knows {known:,} pieces of words, its model expects {expected:,}: its files are "
            "missing. Reinstall ragqa, or choose an embedded model."
        )
    return tokenizer


def _max_tokens(folder: Path) -> int:
    """The smallest of 512, the tokenizer's limit and the model's positions, of which padding takes whole steps.

    Raises ModelError.
    """
    limits = [MAX_TOKENS]
    for name, key in (("config.json", "max_position_embeddings"), ("tokenizer_config.json", "model_max_length")):
        if (folder / name).is_file():
            with _reading(folder / name) as known:
                limit = int(known.get(key) or MAX_TOKENS)
                limits.append(limit // LENGTH_STEP * LENGTH_STEP if name == "config.json" else limit)
    return min(limit for limit in limits if limit > 0)

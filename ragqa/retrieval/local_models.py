"""Loading a model of sentence-transformers' from this machine, and cutting texts into batches for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from ragqa.errors import ModelError
from ragqa.retrieval.weights import EMBEDDED, EncoderWeights

INSTEAD: Final = f"download it again, or use {EMBEDDED}, which comes with ragqa"

Model = TypeVar("Model")


def load_local(kind: Callable[..., Model], weights: EncoderWeights, what: str, instead: str) -> Model:
    """The model of this folder in fp32 on the CPU, without a word on the terminal; nothing is downloaded.

    ``kind`` is a class of sentence-transformers, ``what`` says what was expected, ``instead`` what to do where it is
    something else. Raises ModelError.
    """
    import torch

    try:
        with _quiet():
            return kind(
                str(weights.folder),
                device="cpu",
                local_files_only=True,
                model_kwargs={"use_safetensors": True, "dtype": torch.float32},
            )
    except Exception as error:  # these libraries raise whatever their own libraries raise
        msg = f"expected {what} in {weights.folder}, found one that cannot be loaded: {error}; {instead}"
        raise ModelError(msg) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Loading without transformers' progress bar and remarks; its settings are put back afterwards."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def batches_by_length(lengths: Sequence[int], tokens_per_batch: int) -> Iterator[list[int]]:
    """Positions in ``lengths``, longest first, in batches of at most ``tokens_per_batch`` tokens with padding.

    A text that is longer goes alone; no text gives no batch.
    """
    batch: list[int] = []
    for position in sorted(range(len(lengths)), key=lambda position: -lengths[position]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > tokens_per_batch:
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch


def distinct(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """The different texts in order of first occurrence, and for each text its place among them."""
    places: dict[str, int] = {}
    place_of_text = [places.setdefault(text, len(places)) for text in texts]
    return list(places), place_of_text


def token_lengths(tokenizer: Any, texts: Sequence[str], most: int | None) -> list[int]:  # noqa: ANN401 - transformers' own
    """How many tokens each text has, at most ``most`` (None: 512)."""
    rows = tokenizer(list(texts), truncation=True, max_length=most or 512)["input_ids"] if texts else []
    return [len(row) for row in rows]

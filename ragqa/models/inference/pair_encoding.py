"""Turns sentence pairs into token ids and padded batches.

Each distinct sentence is tokenised once, however many pairs it is in. The padded length of a pair depends on the pair
alone, and a batch holds one length only. So the result for a pair does not depend on the other pairs in its batch, and
an equal pair has equal bits in every session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ragqa.errors import ModelError

Pair = tuple[str, str]
Inputs = Mapping[str, npt.NDArray[np.int64]]  # input_ids, attention_mask and token_type_ids of one batch
# "joined" is the single text "premise [SEP] hypothesis", as in the reference script's coverage model; "text" is the
# first text alone.
InputForm = Literal["pair", "joined", "text"]
LENGTH_STEP = 8  # tokens; a coarser step pads more, a finer one makes more batches
TOKENS_PER_TURN = 6144  # after which another session may compute: 0.4 s on two cores
MAX_CHARS = 4_000  # of either text; fills 512 tokens. Cutting two texts of 100,000 to 512 tokens takes 17 s


@dataclass(frozen=True, slots=True)
class EncodedPair:
    """Token ids of a pair with its special tokens, and which of the two texts (0 or 1) each belongs to."""

    ids: list[int]
    types: list[int]


class PairEncoder:
    """A fast tokenizer for the models. Its owner must lock it, because tokenizers shared by threads may fail."""

    def __init__(self, tokenizer: Any, max_tokens: int, form: InputForm = "pair") -> None:  # noqa: ANN401
        """``tokenizer`` is a `tokenizers.Tokenizer`, which this encoder modifies."""
        self._tokenizer = tokenizer
        self._tokenizer.no_padding()
        self._max_tokens = max_tokens
        self._form = form

    def encode(self, pairs: Sequence[Pair]) -> list[EncodedPair]:
        """One encoding per pair, at most ``max_tokens`` long: the longer text is cut first, at its end."""
        if self._form != "pair":
            self._cut()
            texts = [self._one_text(premise, hypothesis) for premise, hypothesis in pairs]
            return [EncodedPair(found.ids, found.type_ids) for found in self._tokenizer.encode_batch(texts)]
        distinct = list(dict.fromkeys(text for pair in pairs for text in pair))
        self._tokenizer.no_truncation()
        plain = self._tokenizer.encode_batch([encodable(text) for text in distinct], add_special_tokens=False)
        encoding_of = dict(zip(distinct, plain, strict=True))
        self._cut()
        found = [self._tokenizer.post_process(encoding_of[p], encoding_of[h], True) for p, h in pairs]
        return [EncodedPair(encoding.ids, encoding.type_ids) for encoding in found]

    def save_tokenizer(self, file: Path) -> None:
        """Writes the tokenizer as a tokenizer.json without truncation."""
        self._tokenizer.no_truncation()
        self._tokenizer.save(str(file))

    def _cut(self) -> None:
        self._tokenizer.enable_truncation(self._max_tokens, strategy="longest_first")

    def _one_text(self, premise: str, hypothesis: str) -> str:
        return encodable(premise) if self._form == "text" else f"{encodable(premise)} [SEP] {encodable(hypothesis)}"


def read_tokenizer(folder: Path) -> Any:  # noqa: ANN401 - a tokenizers.Tokenizer
    """The tokenizer of the folder's tokenizer.json. Raises ModelError."""
    from tokenizers import Tokenizer

    file = folder / "tokenizer.json"
    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises plain Exception
        msg = f"{file} cannot be read ({str(error)[:300]}); reinstall ragqa, or choose another model."
        raise ModelError(msg) from error


def padded_inputs(pairs: Sequence[EncodedPair], pad_id: int) -> Inputs:
    """``input_ids``, ``attention_mask`` and ``token_type_ids``, each int64 of shape (n_pairs, padded length)."""
    shape = (len(pairs), max(padded_length(len(pair.ids)) for pair in pairs))
    ids, mask, types = np.full(shape, pad_id, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for row, pair in enumerate(pairs):
        ids[row, : len(pair.ids)] = pair.ids
        mask[row, : len(pair.ids)] = 1
        types[row, : len(pair.types)] = pair.types
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def encodable(text: str) -> str:
    """The text without lone surrogates, which have no UTF-8 form, and cut at `MAX_CHARS`."""
    return text[:MAX_CHARS].encode("utf-8", "replace").decode("utf-8")


def padded_length(length: int) -> int:
    """The next multiple of 8 tokens."""
    return -(-length // LENGTH_STEP) * LENGTH_STEP


def batches_by_length(lengths: Sequence[int], token_budget: int) -> list[list[int]]:
    """Positions grouped into batches of one padded length each, shortest first; ties keep the order given.

    The padded length of a batch times its size is at most ``token_budget``, unless a single item is longer. Every
    position occurs once; without items there is no batch.
    """
    batches: list[list[int]] = []
    last = -1
    for position in sorted(range(len(lengths)), key=lambda position: padded_length(lengths[position])):
        length = padded_length(lengths[position])
        if length != last or length * (len(batches[-1]) + 1) > token_budget:
            batches.append([])
            last = length
        batches[-1].append(position)
    return batches


def turns_of(batches: Sequence[Sequence[int]], encoded: Sequence[EncodedPair]) -> Iterator[list[Sequence[int]]]:
    """Groups of batches with at most 6,144 tokens, or one larger batch; the longest pairs come first.

    So the last batch of a group, which one stream may compute alone, is a short one.
    """
    turn: list[Sequence[int]] = []
    n_tokens = 0
    for batch in reversed(batches):
        size = len(batch) * padded_length(len(encoded[batch[0]].ids))
        if turn and n_tokens + size > TOKENS_PER_TURN:
            yield turn
            turn, n_tokens = [], 0
        turn.append(batch)
        n_tokens += size
    if turn:
        yield turn

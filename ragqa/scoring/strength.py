"""How strongly a sentence binds: a duty, a prohibition, a permission that restricts, advice, a permission, or nothing.

Learnt from labelled sentences (`ragqa.lab.training.strength`), without a list of duty words. The features of a sentence
are its patterns: its words and pairs of words, and up to four steps of its outline. In the outline, a word of an open
class is only a verb, a participle or a noun, so that "Each firm must keep" and "A bank must file" have the same
outline. Each pattern has a weight, and the weights are summed; scikit-learn is needed only for training.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ragqa.english.phrases import AUXILIARIES, DETERMINERS, PREPOSITIONS, PRONOUNS, WH, is_base
from ragqa.english.words import STOP_WORDS
from ragqa.errors import ModelError
from ragqa.models import check_model, resolve_model
from ragqa.types.scores import Strength

KIND: Final = "strength"
MODEL: Final = "strength"
WEIGHTS_FILE: Final = "weights.safetensors"
BINDING: Final = (Strength.MUST, Strength.MUST_NOT, Strength.MAY_ONLY)
OTHERS: Final = (Strength.SHOULD, Strength.MAY, Strength.NONE)
COLUMNS: Final = (*BINDING, *OTHERS)  # of the weights; a column before them tells whether the sentence binds at all
STEPS: Final = 4  # of the outline, in one pattern
LONGEST: Final = 2_000  # words of a sentence that are read; a longer text is a table

_CLOSED: Final = DETERMINERS | PREPOSITIONS | AUXILIARIES | WH | PRONOUNS | STOP_WORDS
_TOKEN: Final = re.compile(r"\d+(?:[.,]\d+)*|[^\W_]+(?:['’&/-][^\W_]+)*|[^\w\s]")
_LENGTHS: Final = (4, 8, 16, 32, 64)

Weights = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class StrengthWeights:
    """A row of ``numbers`` (n_patterns, 7) for each pattern, and the intercepts (7,)."""

    rows: dict[str, int]
    numbers: Weights
    intercepts: Weights

    def strength(self, text: str) -> Strength:
        """The strength of a sentence; blank text binds nobody."""
        known = [self.rows[pattern] for pattern in patterns(text) if pattern in self.rows]
        scores = self.numbers[known].sum(axis=0) + self.intercepts
        among = BINDING if scores[0] > 0 else OTHERS
        return max(among, key=lambda one: float(scores[1 + COLUMNS.index(one)])) if text.strip() else Strength.NONE


def patterns(text: str) -> set[str]:
    """The patterns of a sentence, which do not depend on its white space."""
    tokens = _TOKEN.findall(text)[:LONGEST]
    words = ["^", *(token.lower() for token in tokens), "$"]
    outline = _outline(tokens)
    found = {f"w {word}" for word in words} | {f"w {first} {second}" for first, second in pairwise(words)}
    for steps in range(1, STEPS + 1):
        found |= {"o " + " ".join(outline[n : n + steps]) for n in range(len(outline) - steps + 1)}
    return found | set(_looks(text.split()))


def _outline(tokens: Sequence[str]) -> list[str]:
    """The tokens, with words of open classes replaced by their form; several nouns in a row count as one."""
    outline = ["^"]
    for token in tokens:
        lower = token.lower().replace("’", "'")
        if not token[0].isalnum() or lower in _CLOSED:
            step = lower
        elif token[0].isdigit():
            step = "0"
        elif token[0].isupper() and len(outline) > 1:
            step = "N"
        else:
            step = "V" if is_base(lower) else "ED" if lower.endswith("ed") else "ING" if lower.endswith("ing") else "N"
        if step != "N" or outline[-1] != "N":
            outline.append(step)
    return [*outline, "$"]


def _looks(words: Sequence[str]) -> Iterator[str]:
    """Features of layout and length: whether it looks like a heading, a list item or a table."""
    if not words:
        return
    letters = [word for word in words if word[0].isalpha()]
    yield f"length {sum(len(words) > bound for bound in _LENGTHS)}"
    yield f"capitals {round(4 * sum(word[0].isupper() for word in letters) / max(1, len(letters)))}"
    if words[0][0].islower():
        yield "begins small"


@lru_cache(maxsize=4)
def load_strength(model: str = MODEL) -> StrengthWeights:
    """The model of this name, or in this folder, checked. Raises ModelError."""
    folder = resolve_model(model, KIND)
    check_model(folder, KIND)
    return read_weights(folder / WEIGHTS_FILE)


@lru_cache(maxsize=20_000)
def strength_of(text: str) -> Strength:
    """The strength of a sentence or of a list item after its lead-in. Raises ModelError."""
    return load_strength().strength(text)


def write_weights(weights: StrengthWeights, file: Path) -> None:
    """Writes them as safetensors: the patterns as one UTF-8 text, one per line, and their numbers as float16."""
    from safetensors.numpy import save

    tensors: dict[str, npt.NDArray[Any]] = {
        "patterns": np.frombuffer("\n".join(weights.rows).encode(), dtype=np.uint8),
        "numbers": weights.numbers.astype(np.float16),
        "intercepts": weights.intercepts,
    }
    file.write_bytes(save(tensors))


def read_weights(file: Path) -> StrengthWeights:
    """The weights of this file. Raises ModelError if `write_weights` did not write it."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors = load_file(file)
        rows = {pattern: n for n, pattern in enumerate(tensors["patterns"].tobytes().decode().split("\n"))}
        numbers, intercepts = tensors["numbers"].astype(np.float32), tensors["intercepts"].astype(np.float32)
        if numbers.shape != (len(rows), 1 + len(COLUMNS)) or intercepts.shape != (1 + len(COLUMNS),):
            raise ValueError(f"{len(rows)} patterns with numbers of shape {numbers.shape}")
        if not math.isfinite(float(np.abs(numbers).sum() + np.abs(intercepts).sum())):
            raise ValueError("numbers that are not finite")
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise ModelError(
            f"{file} cannot be read as weights of strength ({type(error).__name__}: {error}); reinstall ragqa, or run "
            "`ragqa train obligations --strength`."
        ) from error
    return StrengthWeights(rows, numbers, intercepts)

"""Labelled sentence pairs: read, weighed by the set they come from, split and put into batches. No torch here."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragqa.errors import CorpusError

LABELS = ("contradiction", "entailment", "neutral")  # in the order of the embedded model's columns
POOL_BATCHES = 50  # batches sorted by length together: little padding, and still a shuffled epoch

# How often each set is used per epoch, by the beginning of its name. FewGen's hypotheses are model-written and noisy
# and FEVER's premises long, so both are thinned; contract clauses and hand-made contrasts are few and near our use.
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
class LabelledPair:
    """A premise, a hypothesis and what the one says about the other: an index into `LABELS`."""

    premise: str
    hypothesis: str
    label: int
    source: str

    @property
    def n_chars(self) -> int:
        """Stands for the length in tokens when batches are made."""
        return len(self.premise) + len(self.hypothesis)


def read_pairs(path: Path) -> list[LabelledPair]:
    """The pairs of a JSON-lines file ({premise, hypothesis, label, set}), gzipped or not.

    Raises CorpusError naming the line where one is not such an object or its label is none of the three.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
            return [_pair(line, number, path) for number, line in enumerate(lines, start=1) if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        msg = f"cannot read {path}: {error}; expected JSON lines of {{premise, hypothesis, label, set}}, may be gzipped"
        raise CorpusError(msg) from error


def _pair(line: str, number: int, path: Path) -> LabelledPair:
    try:
        row = json.loads(line)
        return LabelledPair(
            str(row["premise"]), str(row["hypothesis"]), LABELS.index(row["label"]), str(row.get("set", ""))
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        msg = f"{path.name}, line {number}: {error}; expected premise, hypothesis and a label of {', '.join(LABELS)}"
        raise CorpusError(msg) from error


def hold_out(pairs: Sequence[LabelledPair], n: int, seed: int) -> tuple[list[LabelledPair], list[LabelledPair]]:
    """(the rest, ``n`` pairs drawn at random); no premise of the one occurs in the other."""
    held = random.Random(seed).sample(range(len(pairs)), min(n, len(pairs) // 10))
    premises = {pairs[index].premise for index in held}
    return [pair for pair in pairs if pair.premise not in premises], [pairs[index] for index in held]


def weighed(pairs: Iterable[LabelledPair], shares: Mapping[str, float], seed: int) -> list[LabelledPair]:
    """Each pair as often as its set's share says: 2.5 is twice, and once more for a random half of the set.

    The longest beginning of the set's name that ``shares`` knows counts; a set it does not know is used once.
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


def batches_of_epoch(pairs: Sequence[LabelledPair], batch_size: int, seed: int) -> Iterator[list[LabelledPair]]:
    """All pairs in batches of alike lengths, in an order that ``seed`` fixes; the last batch may be smaller."""
    chance = random.Random(seed)
    order = list(range(len(pairs)))
    chance.shuffle(order)
    pool = batch_size * POOL_BATCHES
    for start in range(0, len(order), pool):
        members = sorted(order[start : start + pool], key=lambda index: pairs[index].n_chars)
        batches = [members[first : first + batch_size] for first in range(0, len(members), batch_size)]
        chance.shuffle(batches)
        yield from ([pairs[index] for index in batch] for batch in batches)


def pairs_sha256(pairs: Sequence[LabelledPair]) -> str:
    """Of the texts and labels, in their order."""
    digest = hashlib.sha256()
    for pair in pairs:
        digest.update(f"{pair.label}\0{pair.premise}\0{pair.hypothesis}\0".encode("utf-8", "replace"))
    return digest.hexdigest()

"""A three-way NLI cross-encoder and its cache: what a premise says about a hypothesis, as three probabilities.

`CrossEncoderNli` computes the probabilities. `RememberingNli` computes no pair twice: it keeps results in memory and,
if a file is given, in a `PairCache` on disk that all processes share.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np

from ragqa.errors import ModelError, ScoringError
from ragqa.infra.disk_cache import CacheFormat, DiskCache, RecentResults
from ragqa.infra.metrics import METRICS
from ragqa.models import check_model, resolve_model, shown_name
from ragqa.models.inference.classifier import SequenceClassifier
from ragqa.plugins.protocols import NliModel
from ragqa.scoring.repass.arithmetic import is_distribution, is_probabilities
from ragqa.settings.schema import Precision
from ragqa.types import ModelInfo
from ragqa.types.scores import NliProbabilities

Pair = tuple[str, str]

KIND = "nli"
ROLES = ("contradiction", "entailment", "neutral")
REMEMBERED_PAIRS = 20_000  # in memory: some fifty answers with ten passages each, 7 MB
KEY_BYTES = 16  # of the sha256: two of a million pairs share a key with a probability of 1e-27
MAX_PAIRS = 1_000_000  # on disk: some 80 MB; at 360 pairs an answer, the last 2,800 different answers or more
SCHEMA_VERSION = 1
PATIENCE_SECONDS = 0.5
PAIRS_PER_CALL = 48  # under half a second at 100 pairs a second: the longest wait after pressing Stop


class CrossEncoderNli(NliModel):
    """P(contradiction), P(entailment), P(neutral) of sentence pairs. Locks itself: share it between threads."""

    def __init__(self, model: str = "nli-minilm-l6", precision: Precision = "auto", *, joined: bool = False) -> None:
        """The model of this name, or in this folder, checked and loaded. Raises ModelError.

        ``precision`` is that of the arithmetic; ``"auto"`` takes bf16, which shifts a probability by up to 0.02, if a
        timing on this machine found it faster. ``joined`` feeds premise and hypothesis as the one text "premise [SEP]
        hypothesis", as the reference script does for obligation coverage.
        """
        folder = resolve_model(model, KIND)
        fingerprint = check_model(folder, KIND)
        self._classifier = SequenceClassifier(folder, precision, "joined" if joined else "pair", fingerprint)
        self._columns = label_columns(self._classifier.config, folder)
        self._info = ModelInfo(shown_name(model, folder), fingerprint, self._classifier.arithmetic)

    @property
    def info(self) -> ModelInfo:
        """``precision`` names the arithmetic and the library that did it: "bf16, OpenVINO 2026.4.1"."""
        return self._info

    def predict(self, pairs: Sequence[Pair]) -> list[NliProbabilities]:
        """One result per (premise, hypothesis), in the order given; equal pairs are computed once.

        Premise and hypothesis beyond 512 tokens together are cut, the longer one first, and neither is read beyond its
        4,000th character. With OpenVINO a pair has the same bits whatever pairs are beside it; with PyTorch results
        depend on them by less than 1e-5 (bf16: 0.005). Raises ScoringError if a result is not finite.
        """
        logits = self._classifier.logits(pairs).astype(np.float64)[:, self._columns]
        if not np.isfinite(logits).all():
            raise ScoringError(
                f"The NLI model {self._info.name} gave numbers that are not finite in {self._info.precision}; "
                "the answer is not lost. Check the model's files, or reinstall ragqa."
            )
        exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
        return [NliProbabilities(*row) for row in probabilities.tolist()]


def label_columns(config: dict[str, Any], folder: Path) -> list[int]:
    """The model's columns of contradiction, entailment and neutral, in that order; case does not matter.

    Raises ModelError unless ``id2label`` names exactly these three and ``label2id``, where there is one, agrees: a
    guess would swap support and contradiction.
    """
    labels = {int(column): str(label).strip().lower() for column, label in config.get("id2label", {}).items()}
    column_of = {label: column for column, label in labels.items()}
    inverse = {str(label).strip().lower(): int(column) for label, column in (config.get("label2id") or {}).items()}
    if len(labels) != len(ROLES) or set(column_of) != set(ROLES):
        raise ModelError(
            f"The NLI model in {folder} has the labels {sorted(labels.values())}; expected contradiction, entailment "
            "and neutral. Name them in id2label of its config.json, or choose the embedded nli-minilm-l6."
        )
    if inverse and inverse != column_of:
        raise ModelError(
            f"The NLI model in {folder} numbers its labels in two ways: id2label says {column_of}, label2id says "
            f"{inverse}. Make them agree in its config.json, or choose the embedded nli-minilm-l6."
        )
    return [column_of[role] for role in ROLES]


class RememberingNli(NliModel):
    """Another model with a cache. Safe to share between threads if the model is; the file is safe between processes.

    Pairs that several threads need at the same time are computed once, by the first of them.
    """

    def __init__(self, model: NliModel, file: Path | None = None, remembered: int = REMEMBERED_PAIRS) -> None:
        """``remembered`` pairs stay in memory; ``file`` caches up to a million, for other processes and later ones."""
        self._model = model
        self._recent: RecentResults[bytes, NliProbabilities] = RecentResults(remembered)
        self._disk = PairCache(file) if file else None
        self._pending: dict[bytes, Future[NliProbabilities]] = {}  # being computed by some thread
        self._lock = Lock()  # of _pending

    @property
    def info(self) -> ModelInfo:
        """The wrapped model's; a cached number is exactly the one that it gave."""
        return self._model.info

    def known(self, pairs: Iterable[Pair]) -> dict[Pair, NliProbabilities]:
        """The results of those pairs that need no computation."""
        keys = self._keys(pairs)
        by_key = self._look_up(keys.values())
        METRICS.count("ragqa_pair_cache_total", len(by_key), outcome="hit")
        return {pair: by_key[key] for pair, key in keys.items() if key in by_key}

    def predict(self, pairs: Sequence[Pair]) -> list[NliProbabilities]:
        """One result per (premise, hypothesis), in the order given. Raises what the wrapped model raises."""
        keys = self._keys(pairs)
        results = self._look_up(keys.values())
        missing = {key: pair for pair, key in keys.items() if key not in results}
        METRICS.count("ragqa_pair_cache_total", len(results), outcome="hit")
        METRICS.count("ragqa_pair_cache_total", len(missing), outcome="miss")
        while missing:
            # A pair that another thread failed to compute is claimed in the next round: it may succeed here.
            results.update(self._claim_and_compute(missing))
            missing = {key: pair for key, pair in missing.items() if key not in results}
        return [results[keys[pair]] for pair in pairs]

    def close(self) -> None:
        """Closes the file; the next use opens it again."""
        if self._disk:
            self._disk.close()

    def _keys(self, pairs: Iterable[Pair]) -> dict[Pair, bytes]:
        info = self.info
        return {pair: pair_key(info, *pair) for pair in dict.fromkeys(pairs)}

    def _look_up(self, keys: Iterable[bytes]) -> dict[bytes, NliProbabilities]:
        wanted = list(keys)
        by_key = self._recent.known(wanted)
        if self._disk and len(by_key) < len(wanted):
            read = self._disk.known([key for key in wanted if key not in by_key])
            self._recent.remember(read)
            by_key.update(read)
        return by_key

    def _claim_and_compute(self, missing: dict[bytes, Pair]) -> dict[bytes, NliProbabilities]:
        """Computes the pairs that no thread is computing, then waits for the others."""
        claimed: dict[bytes, Pair] = {}
        others: dict[bytes, Future[NliProbabilities]] = {}
        with self._lock:
            results = self._recent.known(missing)  # another thread may have finished since they were looked up
            for key, pair in missing.items():
                if key in self._pending:
                    others[key] = self._pending[key]
                elif key not in results:
                    self._pending[key] = Future()
                    claimed[key] = pair
        results.update(self._compute(claimed))  # before waiting, so that no two threads wait for each other
        results.update({key: future.result() for key, future in others.items() if future.exception() is None})
        return results

    def _compute(self, claimed: dict[bytes, Pair]) -> dict[bytes, NliProbabilities]:
        if not claimed:
            return {}
        began = perf_counter()
        try:
            computed = dict(zip(claimed, self._model.predict(list(claimed.values())), strict=True))
            # A result that is no distribution is returned, for the scorer to reject, but not cached.
            sound = {key: result for key, result in computed.items() if is_distribution(result)}
            self._recent.remember(sound)
        except BaseException as error:
            for key in claimed:
                self._resolved(key).set_exception(error)
            raise
        METRICS.count("ragqa_pairs_scored_total", len(computed))
        METRICS.count("ragqa_pairs_seconds_total", perf_counter() - began)
        for key, result in computed.items():
            self._resolved(key).set_result(result)
        if self._disk:
            self._disk.add(sound)
        return computed

    def _resolved(self, key: bytes) -> Future[NliProbabilities]:
        with self._lock:
            return self._pending.pop(key)


def pair_key(info: ModelInfo, premise: str, hypothesis: str) -> bytes:
    """The key of a cached result, 16 bytes: a hash of the model and the two texts.

    The fingerprint of its weights, its precision and its name stand for the model, because they decide the numbers.
    Each part is preceded by its length, so that different pairs never give the same input.
    """
    digest = hashlib.sha256()
    for part in (info.fingerprint, info.precision, info.name, premise, hypothesis):
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.digest()[:KEY_BYTES]


class PairCache(DiskCache[NliProbabilities]):
    """NLI results on disk, shared by all processes that score: numbers by `pair_key`, no text."""

    def __init__(self, file: Path, max_pairs: int = MAX_PAIRS) -> None:
        """Only the use of a pair in the older half is recorded, so that reading rarely writes.

        At least half of the ``max_pairs`` kept are the most recently used ones.
        """
        super().__init__(file, _FORMAT, max_pairs)


def _probabilities(numbers: Sequence[object]) -> NliProbabilities | None:
    floats = [number for number in numbers if isinstance(number, float)]
    result = NliProbabilities(*floats) if len(floats) == 3 else None
    return result if result is not None and is_distribution(result) else None


_FORMAT: CacheFormat[NliProbabilities] = CacheFormat(
    table="pairs",
    columns=ROLES,
    column_type="REAL",
    version=SCHEMA_VERSION,
    patience_seconds=PATIENCE_SECONDS,
    holds="NLI results",
    user="scoring",
    to_row=lambda r: (r.contradiction, r.entailment, r.neutral) if is_distribution(r) else None,
    from_row=_probabilities,
    renews=True,
)


class PairResults:
    """The pair probabilities of one model that are known so far in one scoring."""

    def __init__(self, nli: NliModel) -> None:
        self.known: dict[Pair, NliProbabilities] = {}
        self._nli = nli

    def recall(self, pairs: Iterable[Pair]) -> None:
        """Adds the results of those pairs that the model has cached."""
        self._add(self._nli.known(pairs))

    def missing(self, pairs: Iterable[Pair]) -> list[Pair]:
        """The pairs that are not known yet, each once."""
        return [pair for pair in dict.fromkeys(pairs) if pair not in self.known]

    def compute(self, pairs: Iterable[Pair]) -> Iterator[None]:
        """Computes these pairs; each step is one call of the model with at most 48 pairs.

        So the caller can stop soon, and sessions that share a model take turns. Raises ScoringError if the model fails
        or returns something other than probabilities.
        """
        missing = self.missing(pairs)
        for start in range(0, len(missing), PAIRS_PER_CALL):
            some = missing[start : start + PAIRS_PER_CALL]
            with translated(f"the NLI model {self._nli.info.name} failed on {len(some)} sentence pairs"):
                self._add(dict(zip(some, self._nli.predict(some), strict=True)))
            yield

    def _add(self, probabilities: dict[Pair, NliProbabilities]) -> None:
        for (premise, hypothesis), result in probabilities.items():
            if not is_probabilities(result):
                raise ScoringError(
                    f"RePASs could not be computed: the NLI model {self._nli.info.name} gave {result} for the premise "
                    f"'{premise[:80]}' and the hypothesis '{hypothesis[:80]}', expected numbers in [0, 1]. "
                    "The answer is not lost; check the model's files, or reinstall ragqa."
                )
        self.known.update(probabilities)


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turns any error of a model into a ScoringError that says what happened and that the answer is not lost."""
    try:
        yield
    except ScoringError:
        raise
    except Exception as error:
        detail = str(error).strip() or "no further message"
        msg = f"RePASs could not be computed: {what} ({type(error).__name__}: {detail[:300]}). "
        msg += "The answer is not lost; ask again to have it scored."
        raise ScoringError(msg) from error

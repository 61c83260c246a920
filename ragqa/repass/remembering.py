"""An NLI model that computes no pair twice: results are kept in memory and, where a file is given, on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Lock

from ragqa.inference.sharing import RecentResults
from ragqa.protocols import NliModel
from ragqa.repass.arithmetic import is_distribution
from ragqa.repass.pair_cache import PairCache
from ragqa.types import ModelInfo, NliProbabilities

Pair = tuple[str, str]

REMEMBERED_PAIRS = 20_000  # in memory: some fifty answers with ten passages each, 7 MB
KEY_BYTES = 16  # of the sha256: two of a million pairs share a key with a probability of 1e-27


class RememberingNli(NliModel):
    """Another model with a memory. Safe to share between threads where the model is; the file between processes.

    Pairs that several threads want at the same time are computed once, by the first of them.
    """

    def __init__(self, model: NliModel, file: Path | None = None, remembered: int = REMEMBERED_PAIRS) -> None:
        """``remembered`` pairs stay in memory; ``file`` keeps up to a million, for other processes and later ones."""
        self._model = model
        self._recent: RecentResults[bytes, NliProbabilities] = RecentResults(remembered)
        self._disk = PairCache(file) if file else None
        self._pending: dict[bytes, Future[NliProbabilities]] = {}  # being computed by some thread
        self._lock = Lock()  # of _pending

    @property
    def info(self) -> ModelInfo:
        """That of the model behind; a remembered number is exactly the one it gave."""
        return self._model.info

    def known(self, pairs: Iterable[Pair]) -> dict[Pair, NliProbabilities]:
        """Those of these pairs that need no computing, with their results."""
        keys = self._keys(pairs)
        found = self._look_up(keys.values())
        return {pair: found[key] for pair, key in keys.items() if key in found}

    def predict(self, pairs: Sequence[Pair]) -> list[NliProbabilities]:
        """One result per (premise, hypothesis), in the order given. Raises what the model behind raises."""
        keys = self._keys(pairs)
        results = self._look_up(keys.values())
        missing = {key: pair for pair, key in keys.items() if key not in results}
        while missing:
            # What another thread failed to compute is claimed in the next round: its failure may not be ours.
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
        found = self._recent.known(wanted)
        if self._disk and len(found) < len(wanted):
            read = self._disk.known([key for key in wanted if key not in found])
            self._recent.remember(read)
            found.update(read)
        return found

    def _claim_and_compute(self, missing: dict[bytes, Pair]) -> dict[bytes, NliProbabilities]:
        """Computes those of these pairs that no thread is computing, then waits for the others."""
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
        try:
            computed = dict(zip(claimed, self._model.predict(list(claimed.values())), strict=True))
            # What is no probability is handed on, for the scorer to refuse, but not remembered.
            sound = {key: result for key, result in computed.items() if is_distribution(result)}
            self._recent.remember(sound)
        except BaseException as error:
            for key in claimed:
                self._resolved(key).set_exception(error)
            raise
        for key, result in computed.items():
            self._resolved(key).set_result(result)
        if self._disk:
            self._disk.keep(sound)
        return computed

    def _resolved(self, key: bytes) -> Future[NliProbabilities]:
        with self._lock:
            return self._pending.pop(key)


def pair_key(info: ModelInfo, premise: str, hypothesis: str) -> bytes:
    """What a result is kept under, 16 bytes: the model and the two texts, no two alike by accident.

    The model is its weights' fingerprint, its precision and its name, for these decide the numbers. Each part is
    preceded by its length, so that no text can pass for two.
    """
    digest = hashlib.sha256()
    for part in (info.fingerprint, info.precision, info.name, premise, hypothesis):
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.digest()[:KEY_BYTES]

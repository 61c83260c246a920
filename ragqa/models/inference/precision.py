"""Finds the faster precision on this machine: both are timed once, with the real weights, and the result is stored.

bf16 moves a probability by up to .02, which is worth it only if it saves time. No processor flag shows whether it does:
on an Intel processor with avx512_bf16 and without AMX, 13 answers took 14.2 to 16.6 s in bf16 and 9.4 to 12.5 s in
fp32.

Timings are in CPU time, because other programs distort wall time: an engine compared with itself, on two cores shared
by five threads, was .51 to 1.88 times as fast by wall time and .90 to 1.14 times by CPU time.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from ragqa.infra.files import replacing
from ragqa.models.inference.pair_encoding import Inputs
from ragqa.settings.paths import Paths


def wait_passively() -> None:
    """Lets waiting threads of torch sleep instead of spin. Call it before torch is first imported.

    Spinning saves microseconds on an idle machine. If anything else needs the processor (another session, another
    virtual machine), it costs seconds: 65 pairs took 1.0 s with this and up to 18 s without, on two busy cores.
    ``OMP_WAIT_POLICY`` in the environment takes precedence.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


Computed = Literal["fp32", "bf16"]
Purpose = Literal["scoring", "encoding", "training"]
Trial = Callable[[Computed], Callable[[], object]]  # prepares a precision and returns the function to time

INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids")
CPUINFO: Final = Path("/proc/cpuinfo")
BF16_FLAGS: Final = {"amx_bf16", "avx512_bf16"}  # flags of processors on which bf16 was sometimes faster
GAIN: Final = 1.2  # bf16 must be this many times as fast: less is not worth its rounding, and may be noise
SECONDS: Final = 0.8  # after which no further round starts; about a second with the preparation
ROUNDS: Final = (5, 15)  # at least and at most
MOST_KEPT: Final = 200  # timings in the file; the oldest are dropped first

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a timing, which is valid for this subject on this processor."""

    purpose: Purpose
    library: str  # with its version, and the graphics card if one is used
    weights: str  # their sha256; "" if the timing must not be stored
    on_gpu: bool = False


@dataclass(frozen=True, slots=True)
class Timing:
    """The least seconds that the same work took in each precision: CPU time, or wall time on a GPU."""

    purpose: str
    library: str
    weights: str
    processor: str
    fp32: float
    bf16: float

    @property
    def faster(self) -> Computed:
        return "bf16" if self.bf16 * GAIN < self.fp32 else "fp32"

    def __str__(self) -> str:
        return f"{self.purpose} timed here: fp32 {1000 * self.fp32:,.1f} ms, bf16 {1000 * self.bf16:,.1f} ms"

    def holds_for(self, subject: Subject, processor: str) -> bool:
        known = (self.purpose, self.library, self.weights, self.processor)
        return known == (subject.purpose, subject.library, subject.weights, processor)


_timed: list[Timing] = []  # in this process, even if no file can be written
_turn = threading.RLock()  # simultaneous timings would disturb each other


def untimed() -> AbstractContextManager[object]:
    """While this is held, no other thread times: for work that would otherwise count in their timings."""
    return _turn


class Timings:
    """The timings of this machine, in a JSON file that all processes share and that may be deleted at any time.

    It is replaced in one rename. Of two processes that write at once, one may lose its timing, which is then repeated.
    """

    def __init__(self, file: Path, cpuinfo: Path = CPUINFO, clock: Callable[[], float] | None = None) -> None:
        """``clock`` returns seconds; by default it is CPU time, or wall time on a GPU."""
        self._file = file
        self._clock = clock
        self._flags, self.processor = _processor(cpuinfo)

    def faster(self, subject: Subject, trial: Trial) -> Computed:
        """The precision to use. Timed at most once, and not at all on a processor without bf16.

        ``trial`` is called once with each precision, and the function that it returns several times. Raises what they
        raise.
        """
        if not (subject.on_gpu or BF16_FLAGS & self._flags):
            return "fp32"
        known = self._known(subject)
        if known is None:
            with _turn:
                known = self._known(subject) or self._remembered(subject, self._time(subject, trial))
        return known.faster

    def of_weights(self, sha256: str) -> list[Timing]:
        """The timings of these weights on this processor, oldest first."""
        known = dict.fromkeys([*self.read(), *_timed])
        return [timing for timing in known if timing.weights == sha256 and timing.processor == self.processor]

    def read(self) -> list[Timing]:
        """The timings in the file, oldest first; none if it cannot be read."""
        try:
            entries = json.loads(self._file.read_text(encoding="utf-8"))
            return [_timing(entry) for entry in entries]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError, KeyError) as error:
            logger.warning("%s cannot be read (%s): precisions are timed again", self._file, error)
            return []

    def _known(self, subject: Subject) -> Timing | None:
        known = [*_timed, *self.read()] if subject.weights else []
        return next((timing for timing in known if timing.holds_for(subject, self.processor)), None)

    def _remembered(self, subject: Subject, timing: Timing) -> Timing:
        """This timing, stored, or that of another process which was first."""
        known = self._known(subject) or timing
        if known is timing and subject.weights:
            _timed.append(timing)
            self._write([*self.read(), timing])
        return known

    def _time(self, subject: Subject, trial: Trial) -> Timing:
        runs: dict[Computed, Callable[[], object]] = {"fp32": trial("fp32"), "bf16": trial("bf16")}
        for run in runs.values():
            run()  # the first run compiles kernels
        least = dict.fromkeys(runs, float("inf"))
        clock = self._clock or (time.perf_counter if subject.on_gpu else time.process_time)
        began = clock()
        for number in range(ROUNDS[1]):
            for precision in sorted(runs, reverse=number % 2 == 0):  # the order alternates
                start = clock()
                runs[precision]()
                least[precision] = min(least[precision], clock() - start)
            if number + 1 >= ROUNDS[0] and clock() - began >= SECONDS:
                break
        timing = Timing(subject.purpose, subject.library, subject.weights, self.processor, **least)
        logger.info("%s is taken: %s (%s)", timing.faster, timing, subject.library)
        return timing

    def _write(self, timings: list[Timing]) -> None:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            lines = ",\n".join(json.dumps(asdict(timing)) for timing in timings[-MOST_KEPT:])
            with replacing(self._file, shared=True) as new:
                new.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
        except OSError as error:
            logger.warning("%s cannot be written (%s): precisions are timed again next time", self._file, error)


def timings() -> Timings:
    """The timings stored under RAGQA_HOME."""
    return Timings(Paths.from_env().precision_timings)


def trial_batch(n_rows: int, n_tokens: int) -> Inputs:
    """A batch of this shape; its content does not affect the time."""
    return {name: np.ones((n_rows, n_tokens), np.int64) for name in INPUTS} | {
        "token_type_ids": np.zeros((n_rows, n_tokens), np.int64)
    }


def _timing(entry: dict[str, Any]) -> Timing:
    words = {name: str(entry[name]) for name in ("purpose", "library", "weights", "processor")}
    fp32, bf16 = float(entry["fp32"]), float(entry["bf16"])
    if not (isfinite(fp32) and isfinite(bf16)):
        raise ValueError(f"expected seconds, found {fp32} and {bf16}")
    return Timing(**words, fp32=fp32, bf16=bf16)


def _processor(cpuinfo: Path) -> tuple[set[str], str]:
    """The processor's flags, and its name with a digest of them; no flags if they cannot be read."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    said = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in reversed(lines))}
    flags = said.get("flags", "").split()
    digest = hashlib.sha256(" ".join(sorted(flags)).encode()).hexdigest()[:12]
    return set(flags), f"{said.get('model name', 'unknown')}, flags {digest}"

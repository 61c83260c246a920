"""Which precision is faster here: both are timed once, on the real weights, and the answer is remembered.

bf16 moves a probability by up to .02, which is worth it only where it saves time. Whether it does, no flag tells: on an
Intel processor with avx512_bf16 and no AMX 13 answers took 14.2 to 16.6 s in bf16 and 9.4 to 12.5 s in fp32.

The clock is the processor's, for other programs hold up the one on the wall: an engine against itself, on two cores
that five threads wanted, came out .51 to 1.88 times as fast by the wall and .90 to 1.14 by the processor.
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

    Spinning saves microseconds on an idle machine. Where anything else wants the processor (another session, a virtual
    machine's neighbour) it costs seconds: 65 pairs took 1.0 s with this and up to 18 s without, on two busy cores.
    ``OMP_WAIT_POLICY`` in the environment has the last word.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


Computed = Literal["fp32", "bf16"]
Purpose = Literal["scoring", "encoding", "training"]
Trial = Callable[[Computed], Callable[[], object]]  # makes ready, and gives what is timed

INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids")
CPUINFO: Final = Path("/proc/cpuinfo")
BF16_FLAGS: Final = {"amx_bf16", "avx512_bf16"}  # processors on which bf16 was measured to be faster, at times
GAIN: Final = 1.2  # bf16 must be so many times as fast: less is not worth its rounding, and may be noise
SECONDS: Final = 0.8  # of the clock, after which no further round is begun; with what goes before, about a second
ROUNDS: Final = (5, 15)  # at least, however slow the weights are, and at most
MOST_KEPT: Final = 200  # timings in the file; the oldest leave first

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is timed. A timing holds for this and for the processor."""

    purpose: Purpose
    library: str  # with its version, and the graphics card where one computes
    weights: str  # their sha256; "": not to be remembered
    on_gpu: bool = False


@dataclass(frozen=True, slots=True)
class Timing:
    """The least seconds that the same work took in either precision: of the processor, of the wall on a GPU."""

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


_timed: list[Timing] = []  # in this process, also where no file can be written
_turn = threading.RLock()  # two timings at once would time each other


def untimed() -> AbstractContextManager[object]:
    """While this is held no other thread times: for work beside others that would be counted as theirs."""
    return _turn


class Timings:
    """The timings of this machine, in a JSON file that all processes share and that may be deleted at any time.

    It is replaced in one rename. Of two processes that write at once one may lose its timing, which is then made again.
    """

    def __init__(self, file: Path, cpuinfo: Path = CPUINFO, clock: Callable[[], float] | None = None) -> None:
        """``clock`` takes the place of the processor's, and of the wall's on a GPU; it gives seconds."""
        self._file = file
        self._clock = clock
        self._flags, self.processor = _processor(cpuinfo)

    def faster(self, subject: Subject, trial: Trial) -> Computed:
        """The precision to take for this. Timed at most once, and not at all on a processor without bf16.

        ``trial`` is called once with each precision, what it gives several times. Raises what they raise.
        """
        if not (subject.on_gpu or BF16_FLAGS & self._flags):
            return "fp32"
        known = self._known(subject)
        if known is None:
            with _turn:
                known = self._known(subject) or self._remembered(subject, self._time(subject, trial))
        return known.faster

    def of_weights(self, sha256: str) -> list[Timing]:
        """What is known of these weights on this processor, the oldest first."""
        known = dict.fromkeys([*self.read(), *_timed])
        return [timing for timing in known if timing.weights == sha256 and timing.processor == self.processor]

    def read(self) -> list[Timing]:
        """Those in the file, the oldest first; none where it cannot be read."""
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
        """This timing, or that of another process which was first."""
        known = self._known(subject) or timing
        if known is timing and subject.weights:
            _timed.append(timing)
            self._write([*self.read(), timing])
        return known

    def _time(self, subject: Subject, trial: Trial) -> Timing:
        runs: dict[Computed, Callable[[], object]] = {"fp32": trial("fp32"), "bf16": trial("bf16")}
        for run in runs.values():
            run()  # the first time, kernels are made
        least = dict.fromkeys(runs, float("inf"))
        clock = self._clock or (time.perf_counter if subject.on_gpu else time.process_time)
        began = clock()
        for number in range(ROUNDS[1]):
            for precision in sorted(runs, reverse=number % 2 == 0):  # neither always follows the other
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
    """Those under RAGQA_HOME."""
    return Timings(Paths.from_env().precision_timings)


def trial_batch(n_rows: int, n_tokens: int) -> Inputs:
    """A batch of this shape; what is in it does not matter to the clock."""
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
    """Its flags, and its name with a digest of them; without flags where it cannot be asked."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    said = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in reversed(lines))}
    flags = said.get("flags", "").split()
    digest = hashlib.sha256(" ".join(sorted(flags)).encode()).hexdigest()[:12]
    return set(flags), f"{said.get('model name', 'unknown')}, flags {digest}"

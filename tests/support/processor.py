"""What this machine's processor can do, said by others than ragqa, and a made-up machine whose clock the test moves."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

from ragqa.models.inference.bert_graph import openvino_version
from ragqa.models.inference.precision import Subject, Timings

SUBJECT = Subject("scoring", "OpenVINO 1.2.3", "ab" * 32)
WITH_BF16 = "processor : 0\nmodel name : Made Up\nflags : fpu avx512_bf16\n\nprocessor : 1\nmodel name : Made Up\n"


def has_bf16() -> bool:
    """Whether OpenVINO computes in bf16 here, as it says itself; it must where the processor names instructions."""
    assert openvino_version()  # imports it without its telemetry
    import openvino

    found = "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    cpuinfo = Path("/proc/cpuinfo")
    assert found or not cpuinfo.exists() or "_bf16" not in cpuinfo.read_text(), "a processor with bf16 that is not used"
    return found


class Bench:
    """A machine with bf16 whose trials take the seconds they are told to, and what was run on it."""

    def __init__(self, folder, fp32=(2.0,), bf16=(1.0,), cpuinfo=WITH_BF16):
        folder.mkdir(exist_ok=True)
        (folder / "cpuinfo").write_text(cpuinfo)
        self.now, self.ran, self.made = 0.0, [], []
        self.seconds = {"fp32": cycle(fp32), "bf16": cycle(bf16)}
        self.file = folder / "precision.json"
        self.timings = Timings(self.file, folder / "cpuinfo", lambda: self.now)

    def trial(self, wanted):
        self.made.append(wanted)
        return lambda: self.run(wanted)

    def run(self, wanted):
        self.ran.append(wanted)
        self.now += next(self.seconds[wanted])

    def faster(self, subject=SUBJECT):
        """The choice for this subject, whose trials are `run`."""
        return self.timings.faster(subject, self.trial)

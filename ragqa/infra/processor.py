"""How this process shares the processor with others."""

from __future__ import annotations

import os


def wait_passively() -> None:
    """Lets waiting threads of torch sleep instead of spin. Call it before torch is first imported.

    Spinning saves microseconds on an idle machine. Where anything else wants the processor (another session, a virtual
    machine's neighbour) it costs seconds: 65 pairs took 1.0 s with this and up to 18 s without, on two busy cores.
    ``OMP_WAIT_POLICY`` in the environment has the last word.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")

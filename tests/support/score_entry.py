"""`ragqa score` around a fake scorer, as a process: ``python -m tests.support.score_entry SECONDS score FILE …``.

Every sentence of an answer takes SECONDS; the word ``Ready`` on standard output says that scoring begins.
"""

import hashlib
import signal
import sys
import time

import ragqa.evaluation.benchmarks.external_answers.benchmark as scoring
from ragqa.cli import main
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.types import ModelInfo
from ragqa.types.scores import NliProbabilities
from tests.support.fakes import FakeObligations


class HashedNli:
    """Probabilities from the texts' hash: the same ones in every process, and different from pair to pair."""

    info = ModelInfo("hashed-nli", "3" * 64)

    def __init__(self, seconds=0.0):
        self.seconds, self.calls = seconds, 0

    def predict(self, pairs):
        self.calls += 1
        time.sleep(self.seconds)
        return [self._of(*pair) for pair in pairs]

    def known(self, pairs):
        return {}

    def _of(self, premise, hypothesis):
        entailment, contradiction = hashlib.sha256(f"{premise}|{hypothesis}".encode()).digest()[:2]
        return NliProbabilities(contradiction / 512, entailment / 512, 1 - (contradiction + entailment) / 512)


def load_scorer(seconds, config):
    print("Ready", flush=True)
    nli = HashedNli(seconds)
    return RepassScorer(nli, nli, FakeObligations(), config)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
    pause = float(sys.argv.pop(1))
    scoring.load_scorer = lambda config, *_: load_scorer(pause, config)
    main()

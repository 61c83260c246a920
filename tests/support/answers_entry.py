"""`ragqa eval answers` around fake models and a real server, as a process of its own.

::

    OPENAI_BASE_URL=… python -m tests.support.answers_entry SECONDS eval answers --generator llm --out DIR …

Every call of the NLI model takes SECONDS; the word ``Ready`` on standard output says that the work begins.
"""

import signal
import sys
from dataclasses import dataclass, replace
from types import SimpleNamespace

import ragqa.evaluation.benchmarks.generated_answers.benchmark as answers
from ragqa.cli import main
from ragqa.generation.llm.generator import LlmGenerator
from ragqa.generation.vrr import VrrGenerator
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.scoring.repass.verifier import RepassVerifier
from tests.support.fakes import FakeObligations, fake_models
from tests.support.hashed_nli import HashedNli
from tests.support.helpers import FakeManifest, make_pipeline


@dataclass(frozen=True)
class Manifest(FakeManifest):
    files: tuple = ()


def asking(config, scorer):
    """A generator that asks the configured server: one call, or VRR's several."""
    return VrrGenerator(config, RepassVerifier(scorer)) if config.generator == "vrr" else LlmGenerator(config)


def load_pipeline(seconds, config, *, generator=None):
    """A pipeline on fakes that asks the configured server, or has this generator."""
    nli = HashedNli(seconds)
    scorer = RepassScorer(nli, nli, FakeObligations(), config.scoring)
    return make_pipeline(
        config=config,
        index=SimpleNamespace(
            manifest=Manifest(), passages=(), asked_by_number=lambda *_: (), documents_named=lambda _: {}
        ),
        generator=generator or asking(replace(config.generation, max_retries=0), scorer),
        scorer=scorer,
        models=fake_models(nli),
    )


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
    pause = float(sys.argv.pop(1))

    def ready(config, *_arguments, **_options):
        print("Ready", flush=True)
        return load_pipeline(pause, config)

    answers.pipeline_for = ready
    main()

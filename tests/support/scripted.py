"""What the tests of LOC and VRR share: sentences whose scores are given, and a generator run against a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from ragqa.generation.loc import LocGenerator
from ragqa.generation.vrr import VrrGenerator
from ragqa.scoring.repass.nli import RememberingNli
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.scoring.repass.verifier import RepassVerifier
from ragqa.settings.config import GenerationConfig, ScoringConfig
from ragqa.types import Answer, Question
from ragqa.types.scores import NliProbabilities
from ragqa.types.streams import returned
from tests.support.fakes import FakeNli, FakeObligations, passage
from tests.support.openai_server import Behaviour, OpenAIServer
from tests.support.streams import drain

QUESTION = Question("What must a Firm do?")
RECORDS, REPORTS = "A Firm must keep records.", "A Firm must file reports."
PASSAGES = [passage("1:1", RECORDS, title="Rules"), passage("2:1", REPORTS, title="Other Rules")]
CONFIG = GenerationConfig(model="test-model", timeout_seconds=5.0, max_retries=1, parallel_calls=1)


@dataclass(frozen=True)
class Told:
    """What the fake NLI says of a sentence: its E (from the first premise), its C (from the second), what it covers."""

    entailment: float = 0.0
    contradiction: float = 0.0
    covers: tuple[tuple[str, float], ...] = ()


def nli(told: Mapping[str, Told], premises: Sequence[str] = (RECORDS, REPORTS)) -> FakeNli:
    """A fake that knows these sentences; everything else is neutral."""
    table = {}
    for sentence, known in told.items():
        for n, premise in enumerate(premises):
            e, c = (known.entailment, 0.0) if n == 0 else (0.0, known.contradiction)
            table[premise, sentence] = NliProbabilities(c, e, 1 - e - c)
            best = dict(known.covers).get(premise, 0.0)
            table[sentence, premise] = NliProbabilities(0.0, best, 1 - best)
    return Neutral(table)


class Neutral(FakeNli):
    """As `FakeNli`, but what is not in the table neither entails nor contradicts anything."""

    def _default(self, premise: str, hypothesis: str) -> NliProbabilities:
        return NliProbabilities(0.0, 0.0, 1.0)


@dataclass
class Finished:
    events: list
    answer: Answer
    requests: list
    nli: FakeNli
    scorer: RepassScorer

    def of(self, kind: type) -> list:
        return [event for event in self.events if isinstance(event, kind)]


class Session:
    """A generator, its models and its server, closed at the end of the ``with`` block."""

    def __init__(self, kind: type, script: Sequence[Behaviour], told: Mapping[str, Told], **settings: object) -> None:
        self._stack = ExitStack()
        self.server = self._stack.enter_context(OpenAIServer(*script))
        self.nli = nli(told)
        remembering = RememberingNli(self.nli)
        scoring = settings.pop("scoring", ScoringConfig())
        self.scorer = RepassScorer(remembering, remembering, settings.pop("obligations", FakeObligations()), scoring)
        config = replace(CONFIG, **({"base_url": self.server.base_url} | settings))
        self.generator = kind(config, RepassVerifier(self.scorer), "sk-test-0123456789")
        self._stack.callback(self.generator.close)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stack.close()


def ask(kind: type, *script: Behaviour, told=None, passages=None, question=QUESTION, **settings) -> Finished:
    """One question against this script: what was yielded, the answer, the requests."""
    with Session(kind, script, told or {}, **settings) as session:
        events, result = drain(session.generator.stream(question, PASSAGES if passages is None else passages))
        return Finished(events, result, session.server.requests, session.nli, session.scorer)


def loc(*script: Behaviour, **settings) -> Finished:
    return ask(LocGenerator, *script, **settings)


def vrr(*script: Behaviour, **settings) -> Finished:
    return ask(VrrGenerator, *script, **settings)


def scored(finished: Finished, passages=None):
    """The final scoring of the answer, as the pipeline does it."""
    return returned(finished.scorer.stream(finished.answer, PASSAGES if passages is None else passages))

"""The NLI work of one answer, in the order that makes it useful: what is asked of the models, and when.

A `Unit` is one number-to-be, an answer sentence's or an obligation's. The scheduler makes units known, in short calls;
what is said about them is the scorer's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, groupby

from ragqa.errors import ScoringError
from ragqa.protocols import NliModel
from ragqa.repass.arithmetic import is_probabilities
from ragqa.repass.breakdown import Pair, View
from ragqa.repass.remembering import RememberingNli
from ragqa.repass.similarity import by_similarity
from ragqa.types import NliProbabilities

PAIRS_PER_CALL = 48  # under half a second at 100 pairs a second: what a reader waits after pressing Stop


class PairResults:
    """The pair probabilities of one model known so far in one scoring."""

    def __init__(self, nli: NliModel) -> None:
        self.known: dict[Pair, NliProbabilities] = {}
        self._nli = nli

    def recall(self, pairs: Iterable[Pair]) -> None:
        """Makes those of these pairs known that the model remembers."""
        if isinstance(self._nli, RememberingNli):
            self._add(self._nli.known(pairs))

    def missing(self, pairs: Iterable[Pair]) -> list[Pair]:
        """Those of these pairs that are not known yet, each once."""
        return [pair for pair in dict.fromkeys(pairs) if pair not in self.known]

    def compute(self, pairs: Sequence[Pair]) -> None:
        """Asks the model for these distinct pairs. Raises ScoringError where it fails or gives no probabilities."""
        with translated(f"the NLI model {self._nli.info.name} failed on {len(pairs)} sentence pairs"):
            self._add(dict(zip(pairs, self._nli.predict(pairs), strict=True)))

    def _add(self, found: dict[Pair, NliProbabilities]) -> None:
        for (premise, hypothesis), result in found.items():
            if not is_probabilities(result):
                msg = (
                    f"RePASs could not be computed: the NLI model {self._nli.info.name} gave {result} for the premise "
                    f"'{premise[:80]}' and the hypothesis '{hypothesis[:80]}', expected numbers in [0, 1]. "
                    "The answer is kept; check the model's files, or reinstall ragqa."
                )
                raise ScoringError(msg)
        self.known.update(found)


@dataclass(frozen=True, slots=True)
class Round:
    """How much a provisional round looks at: pairs per answer sentence, and pairs per obligation."""

    premises: int
    answer_sentences: int


# On 34 published cases (on 20 ADGM answers from ten passages), embedded model: after the first round 16 (6) % of the
# pairs are known and E is .052 (.000) too low on average, C .057 (.040); after the second 30 (21) %, .012 (.000) and
# .016 (.005). OC is off by .002 (.000) from the first on, so one answer sentence per obligation is enough. The 34
# again: `pytest tests/repass/test_repass_model.py -m "data and slow" -s`.
PROVISIONAL_ROUNDS = (Round(1, 1), Round(5, 1))


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """An answer sentence or an obligation (``index`` among its kind), and the pairs behind its score.

    ``pairs`` come in the order they are wanted in. Nothing can be left out once an obligation is covered: the breakdown
    shows the sentence that covers it best and by what margin, and any pair may still raise both.
    """

    index: int
    of_obligation: bool
    results: PairResults
    pairs: tuple[Pair, ...]

    def is_known(self, provisional: Round | None = None) -> bool:
        """Whether the pairs of this round are known; all of them for None."""
        return all(pair in self.results.known for pair in self.wanted(provisional))

    def wanted(self, provisional: Round | None) -> tuple[Pair, ...]:
        """The pairs that this round looks at; all of them for None."""
        if provisional is None:
            return self.pairs
        return self.pairs[: provisional.answer_sentences if self.of_obligation else provisional.premises]


def units_of(view: View, entailment: PairResults, coverage: PairResults) -> list[Unit]:
    """The answer's sentences and then the obligations of this view, each with all its pairs in the view's order."""
    return [
        *(Unit(n, False, entailment, tuple(view.sentence_pairs(n))) for n in range(len(view.sentences))),
        *(Unit(n, True, coverage, tuple(view.obligation_pairs(n))) for n in range(len(view.obligations))),
    ]


def likeliest_first(view: View, units: Sequence[Unit]) -> list[Unit]:
    """The same units in the same order, the pairs of each with the most similar premises first."""
    premises, sentences = [premise.text for premise in view.premises], [sentence.text for sentence in view.sentences]
    obligations = [obligation.text for obligation in view.obligations]
    looked_at = [sentences[n] for n in view.looked_at]
    orders = {False: by_similarity(premises, sentences), True: by_similarity(looked_at, obligations)}
    return [replace(unit, pairs=tuple(unit.pairs[n] for n in orders[unit.of_obligation][unit.index])) for unit in units]


def compute(units: Sequence[Unit], provisional: Round | None) -> Iterator[tuple[list[Unit], Unit | None]]:
    """Makes the pairs of these units known that this round looks at; all of them for None.

    Yields once before the first call of a model and then after each: the units that are done by now, in their order,
    and the next one, whose pairs may be known in part (None: all are done).
    """
    waiting = list(units)
    for _ in chain([None], _calls(units, provisional)):
        n_done = next((n for n, unit in enumerate(waiting) if not unit.is_known(provisional)), len(waiting))
        done, waiting = waiting[:n_done], waiting[n_done:]
        yield done, waiting[0] if waiting else None


def _calls(units: Sequence[Unit], provisional: Round | None = None) -> Iterator[None]:
    """One call of a model per step, until all pairs wanted are known. A call takes at most 48 pairs.

    So whoever drives this can stop soon, and sessions that share a model take turns. Units of one model that stand next
    to each other share calls.
    """
    for results, group in groupby(units, key=lambda unit: unit.results):
        missing = results.missing(pair for unit in group for pair in unit.wanted(provisional))
        for start in range(0, len(missing), PAIRS_PER_CALL):
            results.compute(missing[start : start + PAIRS_PER_CALL])
            yield


def count_missing(units: Sequence[Unit]) -> int:
    """How many pairs must still be computed for all of these units."""
    return len({(id(unit.results), pair) for unit in units for pair in unit.results.missing(unit.pairs)})


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Any error of a model as a ScoringError that says what happened and that the answer is kept."""
    try:
        yield
    except ScoringError:
        raise
    except Exception as error:
        detail = str(error).strip() or "no further message"
        msg = f"RePASs could not be computed: {what} ({type(error).__name__}: {detail[:300]}). "
        msg += "The answer is kept; ask again to have it scored."
        raise ScoringError(msg) from error

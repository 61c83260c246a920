"""What `pipeline.run` yields, in the order the work happens. The page, the command line and the evaluator read these.

::

    Retrieved -> Fused (-> Reranked) -> Selected -> Token* -> Answered
        -> (SentenceScored | ObligationScored)* -> Scored -> Recorded

In the place of `Token`, generators that verify what they write (LOC, VRR) say what they do::

    LOC: CallsPlanned -> (ObligationAnswered | BestSoFar)*
    VRR: CallsPlanned -> (CandidateWritten | CandidateScored | BestSoFar)*
                      -> (SentencesRemoved | ObligationsInserted | BestSoFar)*

with `Working` in between, a few times a second, and `Kept` after each `BestSoFar`. A fan-out searches for itself, so
that `Selected` comes once all evidence is found::

    fan-out: (CallsPlanned ->) (SubQuestionsAsked | EvidenceFound | SubQuestionAnswered | BestSoFar)*
             -> Selected -> SubQuestionAnswered* -> Token* -> Answered
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ragqa.types import (
    Answer,
    Evaluation,
    ObligationScore,
    Passage,
    Ranking,
    RePASs,
    ScoringMode,
    Selection,
    SentenceScore,
    SubQuestion,
)

__all__ = [
    "Answered",
    "BestSoFar",
    "CallsPlanned",
    "CandidateScored",
    "CandidateWritten",
    "Event",
    "EvidenceFound",
    "Fused",
    "GenerationEvent",
    "Kept",
    "MissingObligation",
    "ObligationAnswered",
    "ObligationScored",
    "ObligationsInserted",
    "Recorded",
    "RemovedSentence",
    "Reranked",
    "Retrieved",
    "Scored",
    "Selected",
    "SentenceScored",
    "SentencesRemoved",
    "SubQuestionAnswered",
    "SubQuestionsAsked",
    "Token",
    "TraceEvent",
    "Working",
]


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One ranking per retriever."""

    rankings: tuple[Ranking, ...]


@dataclass(frozen=True, slots=True)
class Fused:
    """The rankings merged into one; each hit carries its parts."""

    ranking: Ranking


@dataclass(frozen=True, slots=True)
class Reranked:
    """The fused ranking with its best passages in the order of a reranker; only where one is set."""

    ranking: Ranking


@dataclass(frozen=True, slots=True)
class Selected:
    """What the answer may be written from, and why the rest may not."""

    selection: Selection


@dataclass(frozen=True, slots=True)
class Token:
    """The next piece of the answer's raw text, as the generator wrote it."""

    text: str


@dataclass(frozen=True, slots=True)
class CallsPlanned:
    """Before the first call of LOC, VRR or a fan-out: what it will take.

    ``fewest`` and ``most`` completions, neither above ``budget``; about ``prompt_tokens`` sent and at most
    ``completion_tokens`` written by ``most`` of them. ``n_obligations`` were found in the kept passages; a fan-out
    looks for none and says how many sub-questions it asks at most, ``n_sub_questions``.
    """

    fewest: int
    most: int
    prompt_tokens: int
    completion_tokens: int
    budget: int
    n_obligations: int
    n_sub_questions: int = 0
    kind: Literal["calls planned"] = "calls planned"


@dataclass(frozen=True, slots=True)
class Working:
    """Nothing new but a sign of life: what is done now, completions asked for so far, characters they brought."""

    phase: str
    calls: int = 0
    characters: int = 0


@dataclass(frozen=True, slots=True)
class CandidateWritten:
    """VRR: a candidate, numbered from 1 in the order asked for; they arrive in any order.

    ``finish_reason`` is that of `Answer`, or ``"failed"`` without text; ``note`` says why.
    """

    number: int
    text: str
    finish_reason: str
    note: str = ""
    is_refusal: bool = False
    kind: Literal["candidate written"] = "candidate written"


@dataclass(frozen=True, slots=True)
class CandidateScored:
    """VRR: what a candidate is worth; one without text, and a refusal beside others that answer, gets no score."""

    number: int
    repass: RePASs
    kind: Literal["candidate scored"] = "candidate scored"


@dataclass(frozen=True, slots=True)
class ObligationAnswered:
    """LOC: the answer to one obligation in one attempt (from 1), and the best P(entailment) of its sentences for it.

    ``number`` counts from 1 to ``total``; ``passage_index`` is that of the kept passage (from 0). ``best`` is None for
    a passage without obligations, where there is nothing to cover.
    """

    number: int
    total: int
    obligation: str
    passage_index: int
    attempt: int
    text: str
    best: float | None
    covered: bool
    note: str = ""
    kind: Literal["obligation answered"] = "obligation answered"


@dataclass(frozen=True, slots=True)
class RemovedSentence:
    """A sentence that was taken out: its contradiction and the source sentence that gave it, if there is one."""

    text: str
    contradiction: float
    premise: str = ""
    passage_index: int | None = None


@dataclass(frozen=True, slots=True)
class SentencesRemoved:
    """VRR: the sentences whose contradiction lies above ``mean``, and the score of what is left.

    ``mean`` is that of C over the candidates, the chosen one as it stands now. Nothing may have been above it.
    """

    round: int
    mean: float
    removed: tuple[RemovedSentence, ...]
    repass: RePASs
    note: str = ""
    kind: Literal["sentences removed"] = "sentences removed"


@dataclass(frozen=True, slots=True)
class MissingObligation:
    """An obligation that the answer did not cover, best P(entailment) before and after the correction."""

    text: str
    passage_index: int
    before: float
    after: float
    covered: bool


@dataclass(frozen=True, slots=True)
class ObligationsInserted:
    """VRR: the answer corrected by the language model for the obligations it missed, and its score.

    Where the model gave nothing usable the answer stays as it was and ``note`` says why.
    """

    round: int
    obligations: tuple[MissingObligation, ...]
    text: str
    repass: RePASs
    note: str = ""
    kind: Literal["obligations inserted"] = "obligations inserted"


@dataclass(frozen=True, slots=True)
class BestSoFar:
    """The best answer so far and the step that gave it. Stop, a failure or an empty budget leave this one.

    ``repass`` in the configured mode and ``scored`` are None where it has no score yet (LOC), ``scored`` also in a
    record, where only the last one is kept. ``selection`` is what its citations count, where that is not the one that
    was `Selected` (a fan-out, which still searches); None in a record, too.
    """

    answer: Answer
    step: str
    repass: RePASs | None = None
    scored: Scored | None = None
    selection: Selection | None = None
    kind: Literal["best so far"] = "best so far"


@dataclass(frozen=True, slots=True)
class SubQuestionsAsked:
    """Fan-out: questions that another one was taken apart into, none where it was not; ``by`` rules or a model.

    ``note`` says what a reader must know: that a plan could not be read, that there was nothing to take apart.
    """

    sub_questions: tuple[SubQuestion, ...]
    by: Literal["rules", "model"]
    note: str = ""
    kind: Literal["sub-questions asked"] = "sub-questions asked"


@dataclass(frozen=True, slots=True)
class EvidenceFound:
    """Fan-out: what a sub-question found, (passage_id, score) best first, and the ids it keeps as evidence.

    ``hop`` is the place, from 0, of the passage that the name of a bridge was found in. ``passages`` are those of the
    hits; empty in a record, which has them once for all.
    """

    number: int
    hits: tuple[tuple[str, float], ...]
    kept: tuple[str, ...]
    hop: int = 0
    passages: tuple[Passage, ...] = ()
    kind: Literal["evidence found"] = "evidence found"


@dataclass(frozen=True, slots=True)
class SubQuestionAnswered:
    """Fan-out: the answer to a sub-question from its own evidence, and the ids of the passages it cites.

    ``number`` 0 is the question itself, answered from what it found by itself. ``text`` is empty where there is none,
    and ``note`` says why.
    """

    number: int
    text: str
    cited: tuple[str, ...]
    note: str = ""
    is_refusal: bool = False
    kind: Literal["sub-question answered"] = "sub-question answered"


@dataclass(frozen=True, slots=True)
class Kept:
    """The best answer so far is on disk under this id."""

    record_id: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The whole answer, split into sentences with verified citations."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class SentenceScored:
    """The score of an answer sentence so far. ``done`` of ``total`` sentences have a final one.

    While ``final`` is false it has met only the most similar source sentences: both maxima can still rise. The same
    sentence (``score.index``) comes again, at last with ``final``.
    """

    score: SentenceScore
    done: int
    total: int
    final: bool = True


@dataclass(frozen=True, slots=True)
class ObligationScored:
    """The score of an obligation so far; ``done``, ``total`` and ``final`` as in `SentenceScored`."""

    score: ObligationScore
    done: int
    total: int
    final: bool = True


@dataclass(frozen=True, slots=True)
class Scored:
    """The final breakdown in both modes, from the same pair probabilities."""

    paper: Evaluation
    script: Evaluation

    def of(self, mode: ScoringMode) -> Evaluation:
        """The breakdown in this mode."""
        return self.paper if mode is ScoringMode.PAPER else self.script


@dataclass(frozen=True, slots=True)
class Recorded:
    """The answer and its scores are on disk under this id. ``seconds`` is the pipeline's own work per stage."""

    record_id: str
    seconds: Mapping[str, float]


TraceEvent = (
    CallsPlanned
    | CandidateWritten
    | CandidateScored
    | ObligationAnswered
    | SentencesRemoved
    | ObligationsInserted
    | BestSoFar
    | SubQuestionsAsked
    | EvidenceFound
    | SubQuestionAnswered
)
"""What a record keeps of LOC's, VRR's and a fan-out's work."""

GenerationEvent = Token | Working | TraceEvent
"""What a generator yields."""

Event = (
    Retrieved
    | Fused
    | Reranked
    | Selected
    | GenerationEvent
    | Kept
    | Answered
    | SentenceScored
    | ObligationScored
    | Scored
    | Recorded
)

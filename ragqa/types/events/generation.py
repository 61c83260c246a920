"""What generators yield while they write: text, or what is being done, why, and how good it is so far.

LOC and VRR verify what they write; a fan-out searches for itself::

    LOC: CallsPlanned -> (ObligationAnswered | BestSoFar)*
    VRR: CallsPlanned -> (CandidateWritten | CandidateScored | BestSoFar)*
                      -> (SentencesRemoved | ObligationsInserted | BestSoFar)*
    fan-out: (CallsPlanned ->) (SubQuestionsAsked | EvidenceFound | SubQuestionAnswered | BestSoFar)*
             -> Selected -> SubQuestionAnswered* -> Token* -> Answered

with `Working` in between, a few times a second. The pipeline says after each `BestSoFar` under which id it is stored
(`ragqa.types.events.pipeline`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ragqa.types import Answer, Passage, Selection, SubQuestion
from ragqa.types.events.scoring import Scored
from ragqa.types.scores import RePASs


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
    """Shows that work continues: what is done now, completions asked for so far, characters they brought."""

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
    record, where only the last one is stored. ``selection`` is what its citations count, where that is not the one that
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
class PassagesAdded:
    """Direct answer: the ids of passages that are kept beyond the filter, as each holds a sentence of the answer."""

    passage_ids: tuple[str, ...]
    kind: Literal["passages added"] = "passages added"


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
    | PassagesAdded
)
"""What a record stores of the work of LOC, VRR, a fan-out and a direct answer."""

GenerationEvent = Token | Working | TraceEvent
"""What a generator yields."""

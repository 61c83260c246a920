"""What generators yield while they write: text, or what is being done, why, and how good it is so far.

LOC and VRR verify what they write; a fan-out searches for itself::

    LOC: CallsPlanned -> (ObligationAnswered | BestSoFar)*
    VRR: CallsPlanned -> (CandidateWritten | CandidateScored | BestSoFar)*
                      -> (SentencesRemoved | ObligationsInserted | BestSoFar)*
    fan-out: (CallsPlanned ->) (SubQuestionsAsked | EvidenceFound | SubQuestionAnswered | BestSoFar)*
             -> Selected -> SubQuestionAnswered* -> Token* -> Answered

`Working` comes in between, a few times a second. After each `BestSoFar` the pipeline yields the id of its record
(`Stored` of `ragqa.types.events.pipeline`).
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
    """The expected cost of LOC, VRR or a fan-out, before its first call.

    It takes between ``fewest`` and ``most`` completions, both at most ``budget``. The ``most`` completions send about
    ``prompt_tokens`` and write at most ``completion_tokens``. ``n_obligations`` is the number of obligations in the
    kept passages. A fan-out looks for no obligations; it asks at most ``n_sub_questions`` sub-questions.
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
    """Shows progress: the current phase, the completions requested so far and the characters received."""

    phase: str
    calls: int = 0
    characters: int = 0


@dataclass(frozen=True, slots=True)
class CandidateWritten:
    """VRR: a candidate. Candidates are numbered from 1 in the order of the requests and arrive in any order.

    ``finish_reason`` is as in `Answer`, or ``"failed"`` if there is no text; ``note`` says why.
    """

    number: int
    text: str
    finish_reason: str
    note: str = ""
    is_refusal: bool = False
    kind: Literal["candidate written"] = "candidate written"


@dataclass(frozen=True, slots=True)
class CandidateScored:
    """VRR: the score of a candidate. A candidate without text gets none, nor does a refusal if another one answers."""

    number: int
    repass: RePASs
    kind: Literal["candidate scored"] = "candidate scored"


@dataclass(frozen=True, slots=True)
class ObligationAnswered:
    """LOC: the answer to one obligation in one attempt (from 1), with the best P(entailment) among its sentences.

    ``number`` counts from 1 to ``total``; ``passage_index`` is the index of the kept passage, from 0. ``best`` is None
    for a passage without obligations.
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
    """A removed sentence, its contradiction and the source sentence that caused it, if there is one."""

    text: str
    contradiction: float
    premise: str = ""
    passage_index: int | None = None


@dataclass(frozen=True, slots=True)
class SentencesRemoved:
    """VRR: the removed sentences, whose contradiction lies above ``mean``, and the score of the remaining answer.

    ``mean`` is the mean C of the candidates, with the chosen candidate in its current form. ``removed`` may be empty.
    """

    round: int
    mean: float
    removed: tuple[RemovedSentence, ...]
    repass: RePASs
    note: str = ""
    kind: Literal["sentences removed"] = "sentences removed"


@dataclass(frozen=True, slots=True)
class MissingObligation:
    """An obligation that the answer did not cover, with its best P(entailment) before and after the correction."""

    text: str
    passage_index: int
    before: float
    after: float
    covered: bool


@dataclass(frozen=True, slots=True)
class ObligationsInserted:
    """VRR: the answer after the language model added the missing obligations, and its score.

    If the model's reply is unusable, the answer is unchanged and ``note`` says why.
    """

    round: int
    obligations: tuple[MissingObligation, ...]
    text: str
    repass: RePASs
    note: str = ""
    kind: Literal["obligations inserted"] = "obligations inserted"


@dataclass(frozen=True, slots=True)
class BestSoFar:
    """The best answer so far and the step that gave it. It is the result if the user stops, a step fails or the budget
    is spent.

    ``repass`` is the score in the configured mode. ``repass`` and ``scored`` are None if there is no score yet (LOC);
    ``scored`` is also None in a record, which stores only the last one. ``selection`` holds the passages that the
    citations number, if they differ from `Selected` (in a fan-out that still searches); it is None in a record.
    """

    answer: Answer
    step: str
    repass: RePASs | None = None
    scored: Scored | None = None
    selection: Selection | None = None
    kind: Literal["best so far"] = "best so far"


@dataclass(frozen=True, slots=True)
class SubQuestionsAsked:
    """Fan-out: the sub-questions of a question, none if it was not split; found ``by`` rules or by a model.

    ``note`` tells the reader, for example, that a plan could not be parsed or that there was nothing to split.
    """

    sub_questions: tuple[SubQuestion, ...]
    by: Literal["rules", "model"]
    note: str = ""
    kind: Literal["sub-questions asked"] = "sub-questions asked"


@dataclass(frozen=True, slots=True)
class EvidenceFound:
    """Fan-out: the hits of a sub-question, (passage_id, score) best first, and the ids that it keeps as evidence.

    ``hop`` is the place, from 0, of the passage that contains the name of a bridge. ``passages`` are the passages of
    the hits; empty in a record, which stores each passage only once.
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

    ``number`` 0 is the question itself, answered from its own hits. ``text`` is empty if there is no answer, and
    ``note`` says why.
    """

    number: int
    text: str
    cited: tuple[str, ...]
    note: str = ""
    is_refusal: bool = False
    kind: Literal["sub-question answered"] = "sub-question answered"


@dataclass(frozen=True, slots=True)
class PassagesAdded:
    """Direct answer: the ids of passages that the filter dropped, kept because each holds a sentence of the answer."""

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
"""The events of LOC, VRR, a fan-out and a direct answer that a record stores."""

GenerationEvent = Token | Working | TraceEvent
"""What a generator yields."""

"""An answer with every verdict there is, whatever today's rules would say of it: verdicts written by hand.

The texts are invented, the probabilities a table's; one source sentence contradicts a true sentence with .9 and is not
believed.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from ragqa.scoring.repass.attribution import check_citations
from ragqa.scoring.repass.scorer import Event, RepassScorer
from ragqa.settings.config import ScoringConfig
from ragqa.types import Answer, Passage, Span
from ragqa.types.events.scoring import Scored
from ragqa.types.scores import Breakdown, Cover, NliProbabilities, ObligationVerdict, SentenceVerdict, Verdict
from ragqa.types.streams import returned
from tests.support.fakes import FakeNli, FakeObligations, answer, passage

REPORT = "A harbour operator must report an oil spill to the Harbour Office within two hours."
STATE = "The report must state the place, the time and the estimated volume."
SIX = "The operator shall keep a record of every spill for six years."
TWO = "Records of spills are kept for two years in the harbour archive."
PAPER = "Records may be kept on paper or as files."
STAFF = "New staff must be trained before they work on a quay."
LATE = "An oil spill is reported to the Harbour Office within six hours."
GREEN = "The Harbour Office is painted green."
SLOVENIAN = "Upravljavec mora poročati o vsakem razlitju."

SOURCES = (
    passage("H:4.1", f"{REPORT} {STATE}", title="Harbour Rules", section="Part 4 › Spills", number="4.1"),
    passage("H:4.2", f"{SIX} {PAPER}", title="Harbour Rules", section="Part 4 › Spills", number="4.2"),
    passage("G:2", f"{TWO} The archive is open to the public.", title="Harbour Guide", number="2"),
    passage("H:9.1", STAFF, title="Harbour Rules", section="Part 9 › Training", number="9.1"),
)
ALL_VERDICTS = answer("\n".join((REPORT, SIX, LATE, GREEN, SLOVENIAN)), [(1,), (3,), (1,), (2,), ()])
_TABLE = {
    (PAPER, REPORT): NliProbabilities(0.9, 0.02, 0.08),
    (TWO, SIX): NliProbabilities(0.8, 0.1, 0.1),
    (REPORT, LATE): NliProbabilities(0.85, 0.05, 0.1),
    (STAFF, GREEN): NliProbabilities(0.1, 0.7, 0.2),
}


def span(text: str, words: str) -> Span:
    """Where these words stand in the text."""
    start = text.index(words)
    return Span(words, start, start + len(words))


def judged_by_hand(evaluation: Breakdown) -> Breakdown:
    """This breakdown of `ALL_VERDICTS` over `SOURCES` with its verdicts and the citations they allow."""
    place = {premise.text: number for number, premise in enumerate(evaluation.premises)}
    quoted = "Quoted word for word from [1]."
    verdicts = (
        SentenceVerdict(0, Verdict.SUPPORTED, quoted, "quotation", (place[REPORT],), doubted=(place[PAPER],)),
        SentenceVerdict(
            1,
            Verdict.DISAGREEING,
            "[2] says six years, [3] two years.",
            "number",
            (place[SIX],),
            (place[TWO],),
            said=(span(SIX, "six years"),),
            found=(span(TWO, "two years"),),
        ),
        SentenceVerdict(
            2,
            Verdict.CONTRADICTED,
            "[1] says two hours, the answer six.",
            "number",
            contradicting=(place[REPORT],),
            said=(span(LATE, "six hours"),),
            found=(span(REPORT, "two hours"),),
        ),
        SentenceVerdict(3, Verdict.UNSUPPORTED, "No source says this.", "nothing", doubted=(place[STAFF],)),
        SentenceVerdict(4, Verdict.NONE, "In Slovenian, which the model cannot read.", "language"),
    )
    covers = (
        ObligationVerdict(0, Cover.COVERED, "Said by sentence 1.", "quotation", 0),
        ObligationVerdict(
            1, Cover.IN_PART, "Sentence 1 tells of the report.", "part", 0, (span(STATE, "the estimated volume"),)
        ),
        ObligationVerdict(2, Cover.NOT_COVERED, "No sentence of the answer says this.", "nothing"),
    )
    judged = replace(evaluation, verdicts=verdicts, obligation_verdicts=covers, verdict_rules="by hand")
    return replace(judged, citations=check_citations(judged, SOURCES))


class HandJudged:
    """A scorer of `ALL_VERDICTS` over `SOURCES` whose events are the true scorer's, and whose end is judged by hand."""

    def stream(self, given: Answer, passages: Sequence[Passage]) -> Generator[Event, None, Scored]:
        nli = FakeNli(_TABLE)
        scored = yield from RepassScorer(nli, nli, FakeObligations(), ScoringConfig()).stream(given, passages)
        return Scored(judged_by_hand(scored.paper), judged_by_hand(scored.script))


def scored_by_hand() -> Scored:
    return returned(HandJudged().stream(ALL_VERDICTS, SOURCES))


def before_rules(evaluation: Breakdown) -> Breakdown:
    """The breakdown as a record of the time before there were rules has it."""
    return replace(evaluation, verdicts=(), obligation_verdicts=(), verdict_rules="", citations=())

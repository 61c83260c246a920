"""No text of a passage, an answer or a model becomes markup in the breakdown, provisional or final."""

from dataclasses import replace

import pytest

from ragqa.records.case_words import search
from ragqa.records.cases import CaseEvent, Seen, Signer, Step, case_of
from ragqa.scoring.repass.explanation import explain
from ragqa.types import ModelInfo, Question, Span
from ragqa.types.events.scoring import Scored
from ragqa.types.scores import Cover, ObligationVerdict, Premise, RePASs, SentenceVerdict, Verdict
from ragqa.ui.html.cases import case_html, cases_html
from ragqa.ui.html.render import answer_html
from ragqa.ui.html.scores import (
    gauges_html,
    growth_html,
    modes_html,
    obligations_html,
    pairs_html,
    provenance_html,
    sentence_table_html,
)
from tests.support.fakes import answer, passage
from tests.support.helpers import PASSAGES, make_pipeline
from tests.ui.test_render import HOSTILE, assert_harmless, cards_of

BAD = passage("1:1", HOSTILE, title=HOSTILE, section=HOSTILE, number=HOSTILE)
PREMISE = Premise(HOSTILE, "1:1", 0, 0, len(HOSTILE))
PART = Span(HOSTILE[3:40], 3, 40)  # cuts a tag in two


@pytest.fixture(scope="module")
def evaluation():
    """A breakdown whose every text is hostile."""
    paper = next(event.paper for event in make_pipeline().run(Question("Who?")) if isinstance(event, Scored))
    sentence = answer(HOSTILE, [(1,)]).sentences[0]
    score = replace(
        paper.sentences[0], sentence=sentence, entailment_premise=PREMISE, contradiction_premise=PREMISE, index=0
    )
    obligation = replace(paper.obligations[0], obligation=PREMISE, answer_text=HOSTILE, index=0)
    return replace(
        paper,
        sentences=(score,),
        obligations=(obligation,),
        premises=(PREMISE,),
        entailment_matrix=((0.9,),),
        contradiction_matrix=((0.1,),),
        looked_at=(0,),
        coverage_matrix=((0.9,),),
        entailment_model=ModelInfo(HOSTILE, HOSTILE, HOSTILE),
        sentence_splitter=HOSTILE,
        verdicts=(
            SentenceVerdict(
                0, Verdict.DISAGREEING, HOSTILE, HOSTILE, (0,), (0,), doubted=(0,), said=(PART,), found=(PART,)
            ),
        ),
        obligation_verdicts=(ObligationVerdict(0, Cover.IN_PART, HOSTILE, HOSTILE, 0, (PART,)),),
        verdict_rules=HOSTILE,
    )


@pytest.mark.parametrize("final", [None, ()], ids=["final", "provisional"])
@pytest.mark.parametrize("raw", [True, False], ids=["raw", "judged"])
def test_hostile_text_stays_text_in_the_breakdown(evaluation, final, raw):
    explanation = explain(evaluation, [BAD])
    scores = evaluation.sentences
    verdicts, covers = ((), ()) if raw else (evaluation.verdicts, evaluation.obligation_verdicts)
    shown = {"final": final, "explanation": explanation}
    for html in (
        sentence_table_html(scores, verdicts, final),
        obligations_html(evaluation.obligations, [BAD], 0.7, verdicts=covers, **shown),
        answer_html(
            answer(HOSTILE), scores, passages=PASSAGES[:1], final=final, checks=evaluation.citations, verdicts=verdicts
        ),
        *cards_of(replace(evaluation, verdicts=verdicts), [BAD], explanation, final=final).values(),
        pairs_html(evaluation, [BAD], "entailment"),
        gauges_html(RePASs(0.5, 0.1, 0.25), final=final is None, mode=HOSTILE),
        modes_html(evaluation, evaluation, [HOSTILE]),
        provenance_html([(HOSTILE, HOSTILE)]),
    ):
        assert "alert(1)" in assert_harmless(html).text


def test_hostile_text_stays_text_in_a_case():
    by = Signer(HOSTILE, HOSTILE)
    seen = Seen(HOSTILE, {HOSTILE: "a"}, {HOSTILE: HOSTILE}, text=HOSTILE, address="records?record=r1")
    event = CaseEvent(Step.OPENED, by, HOSTILE, HOSTILE, ref=HOSTILE, owner=HOSTILE, due=HOSTILE)
    steps = (Step.OPENED, Step.SHARED, Step.ADDED, Step.NOTED, Step.TASKED, Step.SUBMITTED, Step.APPROVED)
    events = [replace(event, step=step) for step in steps]
    events += [replace(event, step=step, item=1, parts={HOSTILE: "b"}) for step in (Step.SUBMITTED, Step.RETURNED)]
    for done in ([], [replace(event, step=Step.DONE, item=1)]):
        case = case_of(HOSTILE, [*events, *done])
        found = list(search([case], HOSTILE.split()[0], {HOSTILE: seen}))
        for html in (case_html(case, {HOSTILE: seen}), case_html(case, {}), cases_html(found, {HOSTILE: seen})):
            assert "alert(1)" in assert_harmless(html).text


def test_what_surrounds_the_breakdown_is_harmless_too(evaluation):
    explanation = explain(evaluation, [BAD])
    gauges = gauges_html(evaluation.repass, final=True, mode="paper", explanation=explanation)
    assert_harmless(gauges + growth_html(explanation.growth))

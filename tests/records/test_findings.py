"""A checked text as a list: sentences with verdict, rule, note; duties it misses; a CSV that computes nothing."""

import csv
import io
from dataclasses import replace

import pytest

from ragqa.english.words import quantity
from ragqa.generation.citations import parse_cited_text
from ragqa.generation.given import without_headings
from ragqa.records.findings import findings_csv, findings_of
from ragqa.records.view import View, advance, shown
from ragqa.records.words import trust_facts
from ragqa.settings.config import Config
from ragqa.types import Question
from ragqa.types.scores import ScoringMode, Strength
from ragqa.ui.html.findings import findings_html
from tests.support.helpers import make_pipeline


def checked(text):
    view = View(Question("", given=text), Config())
    for event in make_pipeline(generator=None).check(text):
        view = advance(view, event)
    return view, shown(view, view.config.scoring.mode)


def test_sentences_come_with_verdict_rule_and_note_and_then_the_duties_that_are_missed():
    view, found = checked("A firm must act at once. The moon is green.")
    findings = findings_of(view, found, {1: "ask the vendor"})
    assert [(one.kind, str(one.verdict)) for one in findings[:2]] == [
        ("sentence", "supported"),
        ("sentence", "unsupported"),
    ]
    assert findings[0].rule in view.selection.passages
    assert findings[1].note == "ask the vendor"
    assert {one.kind for one in findings[2:]} == {"duty"}
    assert len(findings) - 2 == len(found.uncovered)
    html = findings_html(view, found, {1: "<b>ask</b>"})
    assert "&lt;b&gt;ask" in html
    assert 'href="read?passage=' in html
    assert '<span class="rq-label">2</span>&ensp;<span class="rq-said"' in html  # as reasons number the sentences


def test_a_checked_text_misses_as_many_obligations_as_its_table_lists():
    view, found = checked("A firm must act at once. The moon is green.")
    near = [one for one in findings_of(view, found) if one.kind != "sentence" and one.is_near]
    assert len(near) < len(found.uncovered)
    assert trust_facts(view, found)[-1] == f"misses {quantity(len(near), 'obligation')}"


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("nothing", "No source sentence says “as note [99] says” (probability 0.80)."),
        ("second opinion", "model, asked for a second opinion: source [99] says nothing. The nearest: [99]."),
    ],
)
def test_a_number_in_brackets_that_others_wrote_names_no_passage(rule, reason):
    view, _ = checked("A firm must act at once. The moon is green.")
    paper = view.scored.paper
    told = replace(paper.verdicts[1], reason=reason, rule=rule, supporting=(), contradicting=())
    paper = replace(paper, verdicts=(paper.verdicts[0], told))
    view = replace(view, scored=replace(view.scored, paper=paper))
    one = findings_of(view, shown(view, ScoringMode.PAPER))[1]
    nearest = paper.sentences[1].entailment_premise
    assert (one.premise, one.rule) == (nearest, view.selection.passages[nearest.passage_index])


def test_what_binds_nobody_is_no_missed_duty_and_advice_is_named_so():
    view, _ = checked("The moon is green.")
    paper = view.scored.paper
    strengths = [Strength.NONE, Strength.SHOULD, *[Strength.MUST] * len(paper.obligations)]
    covers = [replace(one, strength=strengths[n]) for n, one in enumerate(paper.obligation_verdicts)]
    view = replace(view, scored=replace(view.scored, paper=replace(paper, obligation_verdicts=tuple(covers))))
    found = shown(view, ScoringMode.PAPER)
    assert [one.index for one in found.obligations] == [one.index for one in paper.obligations][1:]
    findings = findings_of(view, found)
    assert {one.index: one.kind for one in findings if one.kind != "sentence"}[1] == "recommendation"
    assert findings[-1].kind == "recommendation"
    assert "recommendation" in findings_html(view, found, {})
    assert len(shown(view, ScoringMode.PAPER, raw=True).obligations) == len(paper.obligations)


def test_no_cell_of_the_file_is_a_formula():
    view, found = checked("=SUM(A1) is what the firm adds up. A firm must act at once.")
    rows = list(csv.reader(io.StringIO(findings_csv(findings_of(view, found, {0: "@cmd", 1: "+1"})))))
    assert rows[1][2].startswith("'=SUM(A1)")
    assert (rows[1][-1], rows[2][-1]) == ("'@cmd", "'+1")
    assert all(not cell.startswith(("=", "+", "-", "@", "\t", "\r")) for row in rows for cell in row)


def test_headings_of_a_checked_text_are_not_judged():
    text = "Outsourcing policy\n\n1. Purpose\nThis policy applies to all units.\nWe keep a register\nWe test it."
    read = parse_cited_text(text, 0)
    found = [one.text for one in without_headings(read.text, read.sentences)]
    assert found == ["This policy applies to all units.", "We keep a register\nWe test it."]
    alone = parse_cited_text("Lake Baikal, the deepest lake", 0)
    assert without_headings(alone.text, alone.sentences) == alone.sentences
    assert without_headings("[", ()) == ()  # such a text has no sentence

"""The findings of a check: each sentence with its verdict and rule, then the missing duties. Pure."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ragqa.infra.cleaning import cell
from ragqa.records.view import Shown, View, weak_match
from ragqa.scoring.repass.explanation import verdict_by_index
from ragqa.types import Passage
from ragqa.types.scores import Cover, Premise, Strength, Verdict

_HEADS: Final = ("kind", "number", "text", "verdict", "rule", "place", "rule text", "reason", "note")
_NEAREST: Final = re.compile(r" The nearest: \[(\d+)\]\.\Z")  # only the judge's own words: others may have any number
_WORST: Final = (Cover.IN_CONFLICT, Cover.IN_PART, Cover.NOT_COVERED)


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence of the text, or a duty that it misses.

    ``rule`` is the passage with the deciding words, or with the nearest ones. ``is_near`` says of a duty whether its
    rule is also the ``rule`` of a sentence.
    """

    kind: str  # "sentence", "duty" or "recommendation"
    index: int
    text: str
    verdict: Verdict | Cover | None  # None while there is none
    reason: str = ""
    rule: Passage | None = None
    premise: Premise | None = None
    note: str = ""
    is_near: bool = True


def findings_of(view: View, found: Shown, notes: Mapping[int, str] | None = None) -> tuple[Finding, ...]:
    """The sentences in order, then the duties that the text contradicts, covers in part, or does not cover.

    Recommendations follow the duties, in the same order.
    ``notes`` are readers' notes on sentences, by index.
    """
    if view.answer is None or view.selection is None:
        return ()
    passages, known = view.selection.passages, verdict_by_index(found.sentences, found.verdicts)
    judged, scores = {one.index: one for one in found.verdicts}, {one.index: one for one in found.sentences}
    sentences = []
    for index, sentence in enumerate(view.answer.sentences):
        verdict, score = judged.get(index), scores.get(index)
        premise = score.entailment_premise if score else None
        if verdict and verdict.deciding is not None and found.premises:
            premise = found.premises[verdict.deciding]
        rule = passages[premise.passage_index] if premise else None
        reason, note = verdict.reason if verdict else "", (notes or {}).get(index, "")
        named = _NEAREST.search(reason) if verdict and verdict.rule == "nothing" else None
        if verdict and verdict.deciding is None and named and premise:  # the verifier's nearest passage, by its reason
            rule = passages[int(named[1]) - 1]
            premise = premise if rule.passage_id == premise.passage_id else None
        sentences.append(Finding("sentence", index, sentence.text, known.get(index), reason, rule, premise, note))
    if not view.scored or weak_match(view) is not None:
        return tuple(sentences)
    near = {one.rule.passage_id for one in sentences if one.rule}
    covers, duties = {one.index: one for one in found.obligation_verdicts}, []
    for missed in found.uncovered:
        cover, rule = covers.get(missed.index), passages[missed.obligation.passage_index]
        duties.append(
            Finding(
                "recommendation" if cover and cover.strength is Strength.SHOULD else "duty",
                missed.index,
                missed.obligation.text,
                cover.cover if cover else Cover.NOT_COVERED,
                cover.reason if cover else "",
                rule,
                missed.obligation,
                is_near=rule.passage_id in near,
            )
        )
    return (*sentences, *sorted(duties, key=_urgency))


def _urgency(one: Finding) -> tuple[bool, bool, int]:
    return not one.is_near, one.kind != "duty", _WORST.index(Cover(str(one.verdict)))


def findings_csv(findings: tuple[Finding, ...]) -> str:
    """The findings as CSV with a head row; cells are escaped so that no spreadsheet reads a formula."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(_HEADS)
    for one in findings:
        kind = one.kind if one.is_near else f"{one.kind} of a rule further away"
        words = one.premise.text if one.premise else ""
        rule = (one.rule.number, _place(one.rule), words) if one.rule else ("", "", "")
        row = (kind, str(one.index + 1), one.text, str(one.verdict or ""), *rule, one.reason, one.note)
        writer.writerow(map(cell, row))
    return out.getvalue()


def _place(passage: Passage) -> str:
    return " › ".join(filter(None, (passage.title or passage.document_id, passage.section)))

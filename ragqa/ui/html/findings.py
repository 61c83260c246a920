"""A checked text -> HTML: a table of sentences, verdicts, rules and reasons, then the missing duties. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ragqa.records.findings import findings_of
from ragqa.records.view import Shown, View
from ragqa.records.words import with_names
from ragqa.types.scores import Verdict
from ragqa.ui.html.cards import COVER_CLASS, obligation_card
from ragqa.ui.html.render import mark_of
from ragqa.ui.html.template import Templates

_TEMPLATES: Final = Templates("findings.html")


def findings_html(view: View, found: Shown, notes: Mapping[int, str]) -> str:
    """The table; a sentence opens the card ``s{index}``, a duty the card ``o{index}``. ``notes`` are by sentence."""
    passages = view.selection.passages if view.selection else ()
    text, position, rows = view.answer.text if view.answer else "", 0, []
    judged, findings = {one.index: one for one in found.verdicts}, findings_of(view, found, notes)
    for one, sentence in zip(findings, view.answer.sentences if view.answer else (), strict=False):
        between, position = re.sub(r"\n\s*", "\n", text[position : sentence.start].strip()), sentence.end
        verdict = judged.get(one.index)
        words, kind = mark_of(one.verdict, verdict) if isinstance(one.verdict, Verdict) else ("", "")
        is_final = view.scored is not None or one.index in view.final_sentences
        row = {"one": one, "between": between, "judged": verdict, "words": words, "kind": kind, "is_final": is_final}
        is_decided = verdict is None or verdict.deciding is not None
        rows.append(row | {"reason": with_names(one.reason, passages), "is_decided": is_decided})
    duties = [one for one in findings if one.kind != "sentence"]
    near, far = [one for one in duties if one.is_near], [one for one in duties if not one.is_near]
    return _TEMPLATES.table(rows, near, far, COVER_CLASS)


def duty_cards(view: View, found: Shown, threshold: float) -> dict[str, str]:
    """The card of each duty that the text misses."""
    judged = {one.index: one for one in found.obligation_verdicts}
    passages = view.selection.passages if view.selection and view.scored else ()
    return {
        f"o{one.index}": obligation_card(one, judged.get(one.index), passages, threshold, None)
        for one in (found.uncovered if passages else ())
    }

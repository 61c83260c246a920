"""Explanations of the page's figures for analysts; those of settings are in `ragqa.settings`. Pure."""

from __future__ import annotations

from html import escape
from typing import Final

TERMS: Final[dict[str, str]] = {
    "RePASs": "How well the passages support the answer, from 0 to 1: (E − C + OC + 1) / 3. 1 is best. It says "
    "nothing about whether the passages themselves are the right ones.",
    "E": "Entailment: how surely the passages say what each answer sentence says, on average. 1 is best.",
    "C": "Contradiction: how surely some passage says otherwise, on average. 0 is best.",
    "OC": "Obligation coverage: the share of the obligations in the passages that the answer covers. 1 is best.",
    "verdict": "The result of rules on a sentence and its sources: they compare numbers, dates, names, conditions and "
    "exceptions, and also use E and C.",
    "RePASs raw": "Instead of the verdicts by rules: two thresholds on the highest raw probabilities.",
    "relevance": "The score of a passage for this question, scaled so that the best has 1 and the last 0.",
}


def term_html(name: str, shown: str, place: str) -> str:
    """``shown`` (HTML) with the explanation of ``name`` on hover and focus; ``place`` makes its id unique."""
    tip = f"rq-term-{place}-{''.join(letter for letter in name if letter.isalnum())}"
    return (
        f'<span class="rq-term"><button type="button" class="rq-term-name" aria-describedby="{tip}">{shown}</button>'
        f'<span class="rq-tip" role="tooltip" id="{tip}">{escape(TERMS[name])}</span></span>'
    )

"""What the terms on the page mean, in an analyst's words: the one table behind every hint and every help. Pure."""

from __future__ import annotations

from html import escape
from typing import Final

TERMS: Final[dict[str, str]] = {
    # scores
    "RePASs": "How well the passages bear the answer out, from 0 to 1: (E − C + OC + 1) / 3. 1 is best. It says "
    "nothing about whether the passages themselves are the right ones.",
    "E": "Entailment: how surely the passages say what each answer sentence says, on average. 1 is best.",
    "C": "Contradiction: how surely some passage says otherwise, on average. 0 is best.",
    "OC": "Obligation coverage: the share of the duties in the passages that the answer covers. 1 is best.",
    "verdict": "What rules make of a sentence and its sources: they compare numbers, dates, names, conditions and "
    "exceptions, and look at E and C as well.",
    "RePASs raw": "Instead of the verdicts by rules: two thresholds on the highest raw probabilities.",
    "relevance": "The score of a passage for this question, stretched so that the best has 1 and the last 0.",
    # settings
    "preset": "Named settings: how passages are found, ordered and cut off.",
    "fusion": "How several rankings become one. Weighted sum: their scores, each stretched to 0 to 1, times the "
    "weights. Reciprocal rank: only the places count, 1 / (60 + rank).",
    "reranker": "Puts the best passages in a new order: ranker-adgm is quick and was trained on questions about "
    "regulation; a cross-encoder's or an API's where RAGQA_PAGE_MODELS or a preset names it.",
    "rerank_depth": "How many of the best passages the reranker reads again.",
    "rerank_weight": "The reranker's share of the score; the rest is the score before.",
    "filter_method": "What ends the list. Limits: threshold, max drop and top-k below, as published. Expected F2: each "
    "passage gets a probability of being relevant, from how relevance falls off, and the list ends where the most is "
    "gained; learnt on questions about regulation.",
    "threshold": "The lowest relevance a passage may have to be kept. Higher: fewer, surer passages. The best one is "
    "always kept.",
    "max_drop": "Where relevance falls by this much from one passage to the next, the list ends there: what follows is "
    "another matter. 1 switches it off.",
    "top_k": "The most passages an answer is written from, however good they are.",
    "generator": "Who writes the answer; none shows what retrieval finds, at once.",
    "quote_anyway": "Answers from the nearest sentences what the corpus seems not to answer, instead of refusing.",
    "mode": "How RePASs is computed: by the paper's definition, or as the reference script does, which published "
    "figures are made with.",
}


def term_html(name: str, shown: str, place: str) -> str:
    """``shown``, already HTML, that tells what ``name`` means under the pointer and on focus; ``place`` is unique."""
    tip = f"rq-term-{place}-{''.join(letter for letter in name if letter.isalnum())}"
    return (
        f'<span class="rq-term"><button type="button" class="rq-term-name" aria-describedby="{tip}">{shown}</button>'
        f'<span class="rq-tip" role="tooltip" id="{tip}">{escape(TERMS[name])}</span></span>'
    )

"""Values -> Altair charts. Pure; text reaches the browser as data, never as markup."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from ragqa.config import FilteringConfig
from ragqa.repass.explanation import PassageStep
from ragqa.types import Drop, Selection
from ragqa.ui.render import place
from ragqa.ui.render_trace import PathStep

_DECISIONS = ["kept", Drop.BELOW_THRESHOLD, Drop.AFTER_MAX_DROP, Drop.BEYOND_TOP_K]
_COLOURS = ["#228b54", "#78879199", "#d68c14", "#4a7fb5"]
_SHAPES = ["circle", "cross", "triangle-down", "square"]
_OF_A_UNION = ["kept", Drop.NOT_EVIDENCE]  # in the first two colours and shapes


def score_curve(selection: Selection, filtering: FilteringConfig, limit: int) -> alt.LayerChart:
    """Relevance by rank for the best ``limit`` candidates, with the threshold line and the fall that ended the list.

    Of a fan-out, which keeps a union of what each question's own filter keeps, neither line nor fall is shown.
    """
    is_union = any(candidate.drop is Drop.NOT_EVIDENCE for candidate in selection.dropped)
    decisions = _OF_A_UNION if is_union else _DECISIONS
    colours, shapes = _COLOURS[: len(decisions)], _SHAPES[: len(decisions)]
    candidates = sorted((*selection.kept, *selection.dropped), key=lambda c: c.rank)[:limit]
    frame = pd.DataFrame(
        {
            "rank": [c.rank for c in candidates],
            "relevance": [c.relevance for c in candidates],
            "decision": [str(c.drop) if c.drop else "kept" for c in candidates],
            "passage": [place(c.passage) for c in candidates],
            "why": [c.explanation for c in candidates],
        }
    )
    x = alt.X("rank:Q", title="rank", axis=alt.Axis(tickMinStep=1, format="d"), scale=alt.Scale(nice=False))
    y = alt.Y("relevance:Q", title="relevance", scale=alt.Scale(domain=[0, 1]))
    line = alt.Chart(frame).mark_line(strokeWidth=1.5, color="#788791").encode(x=x, y=y)
    points = (
        alt.Chart(frame)
        .mark_point(filled=True, size=70, opacity=1)
        .encode(
            x=x,
            y=y,
            color=alt.Color("decision:N", scale=alt.Scale(domain=decisions, range=colours), title=None),
            shape=alt.Shape("decision:N", scale=alt.Scale(domain=decisions, range=shapes), title=None),
            tooltip=["rank:Q", alt.Tooltip("relevance:Q", format=".3f"), "decision:N", "passage:N", "why:N"],
        )
    )
    threshold = pd.DataFrame({"relevance": [filtering.threshold], "label": [f"threshold {filtering.threshold:.2f}"]})
    rule = alt.Chart(threshold).mark_rule(strokeDash=[6, 4], color="#0f8a9d", size=1.5).encode(y="relevance:Q")
    label = (
        alt.Chart(threshold)
        .mark_text(align="right", dy=-7, dx=-4, color="#0f8a9d")
        .encode(y="relevance:Q", x=alt.value("width"), text="label:N")
    )
    limits = [] if is_union else [rule, label, *_fall_layers(selection, filtering)]
    layers = [line, *limits, points]
    return (
        alt.layer(*layers)
        .properties(height=340)
        .configure_legend(orient="bottom", columns=2)
        .configure_view(strokeWidth=0)
    )


def _fall_layers(selection: Selection, filtering: FilteringConfig) -> list[alt.Chart]:
    """A vertical mark at the first fall of max drop or more, if there is one."""
    candidates = (*selection.kept, *selection.dropped)
    fallen = [c for c in candidates if c.fall >= filtering.max_drop and filtering.max_drop < 1 and c.rank > 1]
    if not fallen:
        return []
    first = min(fallen, key=lambda c: c.rank)
    frame = pd.DataFrame({"rank": [first.rank - 0.5], "label": [f"drop {first.fall:.2f}"]})
    rule = alt.Chart(frame).mark_rule(strokeDash=[2, 3], color="#d68c14", size=1.5).encode(x="rank:Q")
    label = (
        alt.Chart(frame)
        .mark_text(align="left", dx=5, color="#d68c14", baseline="top")
        .encode(x="rank:Q", y=alt.value(4), text="label:N")
    )
    return [rule, label]


def growth_chart(growth: Sequence[PassageStep]) -> alt.Chart:
    """E and C of the answer with the source sentences of the first k kept passages only, k = 1, 2, …"""
    rows = [
        {"passages": step.k, "part": part, "score": value}
        for step in growth
        for part, value in (("Entailment E", step.entailment), ("Contradiction C", step.contradiction))
    ]
    parts = ["Entailment E", "Contradiction C"]
    x = alt.X("passages:O", title="best passages", axis=alt.Axis(labelAngle=0))
    y = alt.Y("score:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=5))
    return (
        alt.Chart(pd.DataFrame(rows))
        .mark_line(point=alt.OverlayMarkDef(size=45), strokeWidth=2)
        .encode(
            x=x,
            y=y,
            color=alt.Color("part:N", scale=alt.Scale(domain=parts, range=["#228b54", "#cc3333"]), title=None),
            strokeDash=alt.StrokeDash("part:N", scale=alt.Scale(domain=parts, range=[[1, 0], [5, 3]]), title=None),
            tooltip=["passages:O", "part:N", alt.Tooltip("score:Q", format=".3f")],
        )
        .properties(height=280)
        .configure_legend(orient="bottom")
        .configure_view(strokeWidth=0)
    )


def path_chart(path: Sequence[PathStep]) -> alt.Chart:
    """RePASs and its parts after every step of VRR, in the order of the steps."""
    parts = ["RePASs", "Entailment E", "Contradiction C", "Coverage OC"]
    rows = [
        {"step": step.step, "order": order, "part": part, "score": value}
        for order, step in enumerate(path)
        for part, value in zip(
            parts,
            (
                step.repass.composite,
                step.repass.entailment,
                step.repass.contradiction,
                step.repass.obligation_coverage,
            ),
            strict=True,
        )
    ]
    legend = alt.Legend(symbolType="stroke", symbolSize=300, columns=2)
    colours, dashes = ["#0f8a9d", "#228b54", "#cc3333", "#d68c14"], [[1, 0], [6, 3], [2, 3], [8, 3, 2, 3]]
    return (
        alt.Chart(pd.DataFrame(rows))
        .mark_line(point=alt.OverlayMarkDef(size=40), strokeWidth=2)
        .encode(
            x=alt.X(
                "step:N",
                title=None,
                sort=alt.EncodingSortField("order"),
                axis=alt.Axis(labelAngle=0, labelOverlap=True),
            ),
            y=alt.Y("score:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=5)),
            color=alt.Color("part:N", scale=alt.Scale(domain=parts, range=colours), title=None, legend=legend),
            strokeDash=alt.StrokeDash("part:N", scale=alt.Scale(domain=parts, range=dashes), title=None),
            tooltip=["step:N", "part:N", alt.Tooltip("score:Q", format=".3f")],
        )
        .properties(height=260)
        .configure_legend(orient="bottom")
        .configure_view(strokeWidth=0)
    )

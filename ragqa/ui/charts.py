"""Values -> Altair charts. Pure; text reaches the browser as data, never as markup."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from ragqa.repass.explanation import PassageStep
from ragqa.ui.render_trace import PathStep


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

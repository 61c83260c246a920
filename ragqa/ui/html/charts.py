"""Values -> Altair charts. Pure; text reaches the browser as data, never as markup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import altair as alt
import pandas as pd

from ragqa.evaluation.sweep import Sweep
from ragqa.plugins import registry
from ragqa.scoring.repass.explanation import PassageStep
from ragqa.ui.html.trace import PathStep

_PARTS: Final = {  # colour and dashes of each line
    "RePASs": ("#0f8a9d", [1, 0]),
    "Entailment E": ("#228b54", [6, 3]),
    "Contradiction C": ("#cc3333", [2, 3]),
    "Coverage OC": ("#d68c14", [8, 3, 2, 3]),
}


def growth_chart(growth: Sequence[PassageStep]) -> alt.Chart:
    """E and C of the answer against only the first k kept passages, for k = 1, 2, …"""
    found = [(str(step.k), (step.entailment, step.contradiction)) for step in growth]
    return _lines(found, ["Entailment E", "Contradiction C"], "best passages")


def path_chart(path: Sequence[PathStep]) -> alt.Chart:
    """RePASs and its parts after every step of VRR, in order."""
    every = ((step.step, step.repass) for step in path)
    found = [(name, (r.composite, r.entailment, r.contradiction, r.obligation_coverage)) for name, r in every]
    return _lines(found, list(_PARTS))


def _lines(found: Sequence[tuple[str, Sequence[float]]], parts: list[str], title: str | None = None) -> alt.Chart:
    """A line for each part of the score by step, in the order given."""
    rows = [
        {"step": name, "order": order, "part": part, "score": value}
        for order, (name, values) in enumerate(found)
        for part, value in zip(parts, values, strict=True)
    ]
    colours, dashes = zip(*(_PARTS[part] for part in parts), strict=True)
    legend = alt.Legend(symbolType="stroke", symbolSize=300, columns=2)
    x = {"sort": alt.EncodingSortField("order"), "axis": alt.Axis(labelAngle=0, labelOverlap=True)}
    return (
        alt.Chart(pd.DataFrame(rows))
        .mark_line(point=alt.OverlayMarkDef(size=40), strokeWidth=2)
        .encode(
            x=alt.X("step:N", title=title, **x),
            y=alt.Y("score:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=5)),
            color=alt.Color("part:N", scale=alt.Scale(domain=parts, range=colours), title=None, legend=legend),
            strokeDash=alt.StrokeDash("part:N", scale=alt.Scale(domain=parts, range=dashes), title=None),
            tooltip=["step:N", "part:N", alt.Tooltip("score:Q", format=".3f")],
        )
        .properties(height=270)
        .configure_legend(orient="bottom")
        .configure_view(strokeWidth=0)
    )


# Sweeps -----------------------------------------------------------------------------------------------------------

Marked = Sequence[tuple[str, Mapping[str, float]]]  # (word, settings that it marks)

MEASURES = {
    "f2": "F2 of what is kept",
    "recall": "recall of what is kept",
    "recall_at_10": "R@10 before the filter",
    "kept": "passages kept",
}


def sweep_surface(found: Sweep, measure: str, names: Mapping[str, str], marked: Marked = ()) -> alt.LayerChart:
    """A heat map over the two axes of a sweep; choosing a cell gives its values as the selection ``point``.

    ``names`` are the labels of the settings. A ``marked`` cell has its words below the number, and a border.
    """
    across, up = found.axes
    rows = []
    for one in found.points:
        value, said = getattr(one, measure) or 0.0, [word for word, at in marked if at == one.values]
        number = f"{value:.1f}" if measure == "kept" else f"{value:.2f}"
        row = {"x": one.values[across.name], "y": one.values[up.name], **one.values, "value": value, "kept": one.kept}
        rows.append(row | {"label": "\n".join(filter(None, (number, ", ".join(said)))), "marked": bool(said)})
    point = alt.selection_point(name="point", fields=[across.name, up.name], on="click", clear="dblclick")
    base = alt.Chart(pd.DataFrame(rows)).encode(
        x=alt.X("x:O", title=_title(across.name, names), axis=alt.Axis(labelAngle=0)),
        y=alt.Y("y:O", title=_title(up.name, names), sort="descending"),
    )
    colour = alt.Color("value:Q", title=MEASURES[measure], scale=alt.Scale(range=["#eef6f7", "#5aa3b3"]), legend=None)
    tip = [
        alt.Tooltip("x:O", title=_title(across.name, names)),
        alt.Tooltip("y:O", title=_title(up.name, names)),
        alt.Tooltip("value:Q", title=MEASURES[measure], format=".3f"),
        alt.Tooltip("kept:Q", title=MEASURES["kept"], format=".2f"),
    ]
    cells = base.mark_rect(cursor="pointer").encode(color=colour, tooltip=tip).add_params(point)
    border = base.transform_filter("datum.marked").mark_rect(filled=False, stroke="#d68c14", strokeWidth=3).encode()
    lifted = alt.expr("datum.marked ? -6 : 0")
    words = base.mark_text(fontSize=11, color="#17262b", lineBreak="\n", dy=lifted).encode(text="label:N")
    return alt.layer(cells, words, border).properties(height=420).configure_view(strokeWidth=0)


def sweep_lines(found: Sweep, names: Mapping[str, str], marked: Marked = ()) -> alt.LayerChart:
    """F2, recall and R@10 over the one axis of a sweep; without gold, the number of kept passages.

    A ``marked`` value has a vertical line with its word.
    """
    (axis,) = found.axes
    shown = [name for name in MEASURES if name != "kept"] if found.has_gold else ["kept"]
    rows = [
        {axis.name: one.values[axis.name], "measure": MEASURES[name], "value": getattr(one, name), "kept": one.kept}
        for one in found.points
        for name in shown
    ]
    point = alt.selection_point(name="point", fields=[axis.name], on="click", nearest=True, clear="dblclick")
    labels = [MEASURES[name] for name in shown]
    dashes, colours = [[1, 0], [6, 3], [2, 3]], ["#0f8a9d", "#228b54", "#d68c14"]
    base = alt.Chart(pd.DataFrame(rows)).encode(
        x=alt.X(f"{axis.name}:Q", title=_title(axis.name, names), axis=alt.Axis(tickMinStep=1, format="d")),
        y=alt.Y("value:Q", title=None, scale=alt.Scale(domain=[0, 1]) if found.has_gold else alt.Undefined),
        color=alt.Color("measure:N", title=None, scale=alt.Scale(domain=labels, range=colours[: len(labels)])),
        strokeDash=alt.StrokeDash("measure:N", title=None, scale=alt.Scale(domain=labels, range=dashes[: len(labels)])),
        tooltip=[
            alt.Tooltip(f"{axis.name}:Q", title=_title(axis.name, names)),
            "measure:N",
            alt.Tooltip("value:Q", format=".3f"),
            alt.Tooltip("kept:Q", title=MEASURES["kept"], format=".2f"),
        ],
    )
    words: dict[float, list[str]] = {}
    for word, at in marked:
        words.setdefault(at[axis.name], []).append(word)
    told = [{"at": value, "words": ", ".join(several)} for value, several in words.items()]
    marks = alt.Chart(pd.DataFrame(told or [{"at": 0.0, "words": ""}])).encode(x="at:Q")
    lines = marks.mark_rule(strokeDash=[2, 2], color="#d68c14").encode()
    ends = marks.mark_text(align="left", dx=4, y=8, color="#94600a").encode(text="words:N")
    points = base.mark_point(filled=True, size=60).add_params(point)
    return (
        alt.layer(base.mark_line(strokeWidth=2), points, *((lines, ends) if told else ()))
        .properties(height=340)
        .configure_legend(orient="bottom", columns=2)
        .configure_view(strokeWidth=0)
    )


def _title(setting: str, names: Mapping[str, str]) -> str:
    unit = {"top_k": "passages"}.get(setting, "0 to 1")
    return f"{names.get(setting) or 'Weight of ' + registry.label(setting.removeprefix('weight_'))} ({unit})"

"""Values -> Altair charts. Pure; text reaches the browser as data, never as markup."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from ragqa.config import FilteringConfig
from ragqa.repass.explanation import PassageStep
from ragqa.types import Breakdown, Drop, Selection
from ragqa.ui.render import place
from ragqa.ui.render_trace import PathStep

HEAT_MAP_HEIGHT, LOWEST_ROW, HIGHEST_ROW = 900, 6, 22  # pixels; two hundred source sentences fit two screens
HATCHES = 40  # lines over the width of a heat map; a phone still shows them apart

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


def heat_map(evaluation: Breakdown, kind: str) -> alt.LayerChart:
    """P(entailment) or P(contradiction) of every pair: source sentences down, answer sentences across.

    ``kind`` is ``"entailment"`` or ``"contradiction"``. Zero is transparent, so that it is the background's colour in
    every theme. A cell that the verdict does not believe is hatched. Hovering a cell names both sentences in full.
    """
    matrix, doubted = _matrix(evaluation, kind), doubted_cells(evaluation, kind)
    names = [f"{row + 1} · [{premise.passage_index + 1}]" for row, premise in enumerate(evaluation.premises)]
    rows = [
        {
            "source": names[row],
            "answer": column + 1,
            "probability": matrix[row][column],
            "verdict": _NOT_BELIEVED if (row, column) in doubted else "",
            "source sentence": premise.text,
            "answer sentence": score.sentence.text,
        }
        for row, premise in enumerate(evaluation.premises)
        for column, score in enumerate(evaluation.sentences)
    ]
    row_height = max(LOWEST_ROW, min(HIGHEST_ROW, HEAT_MAP_HEIGHT // max(1, len(evaluation.premises))))
    hue = "34, 139, 84" if kind == "entailment" else "204, 51, 51"
    cells = alt.Chart(pd.DataFrame(rows)).encode(
        x=alt.X(
            "answer:O",
            title="answer sentence",
            axis=alt.Axis(labelAngle=0, orient="top"),
            scale=alt.Scale(type="band", domain=[score.index + 1 for score in evaluation.sentences]),
        ),
        y=alt.Y(
            "source:N",
            title="source sentence · [passage]",
            axis=alt.Axis(labelOverlap=True),
            scale=alt.Scale(type="band", domain=names),
        ),
        tooltip=[
            alt.Tooltip("probability:Q", format=".3f", title=f"P({kind})"),
            "verdict:N",
            "answer sentence:N",
            "source sentence:N",
        ],
    )
    scale = alt.Scale(domain=[0, 1], range=[f"rgba({hue}, 0)", f"rgba({hue}, 1)"])
    shade = alt.Color("probability:Q", scale=scale, title=f"P({kind})", legend=alt.Legend(orient="bottom"))
    filled = cells.mark_rect(stroke="#78879155", strokeWidth=0.5).encode(
        color=shade,
        fillOpacity=alt.condition(alt.datum.verdict == _NOT_BELIEVED, alt.value(0.3), alt.value(1)),
    )
    n_lines = max(2, HATCHES // max(2, len(evaluation.sentences)))
    return alt.layer(filled, _hatched(cells, f"rgba({hue}, 0.7)", n_lines)).properties(height=alt.Step(row_height))


def doubted_cells(evaluation: Breakdown, kind: str) -> set[tuple[int, int]]:
    """(row, column) of the probabilities of this kind that reach the threshold and are not believed."""
    matrix = _matrix(evaluation, kind)
    cells = {(row, one.index) for one in evaluation.verdicts for row in one.doubted}
    return {(row, column) for row, column in cells if matrix[row][column] >= evaluation.verdict_threshold}


def _matrix(evaluation: Breakdown, kind: str) -> tuple[tuple[float, ...], ...]:
    return evaluation.entailment_matrix if kind == "entailment" else evaluation.contradiction_matrix


_NOT_BELIEVED = "not believed"


def _hatched(cells: alt.Chart, colour: str, n_lines: int) -> alt.LayerChart:
    """Slanted lines in the cells that are not believed, which are filled only faintly; Vega knows no hatching."""
    x, y = cells.encoding.x, cells.encoding.y
    lines = [
        cells.mark_rule(stroke=colour, strokeWidth=1.5).encode(
            x=x.copy().bandPosition(line / n_lines),
            x2=alt.X2("answer:O", bandPosition=(line + 1) / n_lines),
            y=y.copy().bandPosition(1),
            y2=alt.Y2("source:N", bandPosition=0),
        )
        for line in range(n_lines)
    ]
    return alt.layer(*lines).transform_filter(alt.datum.verdict == _NOT_BELIEVED)


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

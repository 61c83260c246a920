"""Breaks retrieval down by number of gold passages, type of question and document, and by pairs. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Final

from ragqa.corpus.questions import GoldQuestion
from ragqa.evaluation.report import Comparison, Line
from ragqa.evaluation.significance import paired_test

CANDIDATES: Final = 200  # passages that later stages can choose from, at most
FIRST: Final = 10  # ranks that count as found
SHOWN_DOCUMENTS: Final = 8  # with most questions; the report's JSON has all

Ranks = Mapping[str, int]  # of the gold passages that were found, from 1
_WHETHER: Final = re.compile(
    r"(?i)^(?:is|are|was|were|can|could|do|does|did|must|may|should|shall|will|would|has|have)\b"
)
_ASKED: Final = re.compile(r"(?i)\b(what|how|which|when|who|whom|whose|why|where|whether)\b")
_SAME: Final = {"whom": "who", "whose": "who"}


def ranks_of(gold: frozenset[str], found: Sequence[str]) -> dict[str, int]:
    """The first rank, from 1, of each gold id in ``found``; missing ids are left out."""
    ranks: dict[str, int] = {}
    for rank, name in enumerate(found, start=1):
        if name in gold:
            ranks.setdefault(name, rank)
    return ranks


def question_type(text: str) -> str:
    """The type of a question by its words: "whether", "what", "how", …, "other"."""
    sentences = [one.strip() for one in re.split(r"(?<=[.?!])\s+", text) if one.strip()]
    asked = next((one for one in sentences if one.endswith("?")), text).lstrip("- ")
    if _WHETHER.match(asked):
        return "whether"
    found = _ASKED.search(asked)
    return _SAME.get(found[1].lower(), found[1].lower()) if found else "other"


@dataclass(frozen=True, slots=True)
class PairFigures:
    """Shares of cross-reference questions, in [0, 1], with both, one or neither passage among the first ten.

    ``reciprocal_rank`` is the mean of 1 / rank of the lower-ranked passage of the pair, 0 if one is missing. ``recall``
    is the share of the pairs' passages among the first ten.
    """

    both: float
    only_source: float
    only_target: float
    neither: float
    reciprocal_rank: float
    recall: float


def both_found(pair: Sequence[str], ranks: Ranks) -> float:
    """1 if both passages are among the first ten, else 0."""
    return float(all(ranks.get(name, FIRST + 1) <= FIRST for name in pair))


def pair_reciprocal_rank(pair: Sequence[str], ranks: Ranks) -> float:
    """1 / rank of the lower-ranked passage of the pair; 0 if one was not found."""
    return 1 / max(ranks[name] for name in pair) if all(name in ranks for name in pair) else 0.0


def pair_figures(pairs: Sequence[Sequence[str]], ranks: Sequence[Ranks]) -> PairFigures:
    """The figures over at least one pair (citing passage, cited passage), with the ranks of each question."""
    seen = [
        tuple(found.get(name, FIRST + 1) <= FIRST for name in pair) for pair, found in zip(pairs, ranks, strict=True)
    ]
    return PairFigures(
        both=fmean(one == (True, True) for one in seen),
        only_source=fmean(one == (True, False) for one in seen),
        only_target=fmean(one == (False, True) for one in seen),
        neither=fmean(not any(one) for one in seen),
        reciprocal_rank=fmean(pair_reciprocal_rank(pair, found) for pair, found in zip(pairs, ranks, strict=True)),
        recall=fmean(fmean(map(float, one)) for one in seen),
    )


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """The questions of one group: their number, R@10, and the share of gold among at most 200 candidates, in [0, 1]."""

    n_questions: int
    recall: float
    candidates: float


def groups_of(gold: Sequence[GoldQuestion], *, documents: bool) -> dict[str, list[int]]:
    """The positions of the questions in each named group: by number of gold passages, type, kind and document."""
    n_gold: dict[str, list[int]] = {}
    types: dict[str, list[int]] = {}
    files: dict[str, list[int]] = {}
    for place, one in enumerate(gold):
        several = f"{len(one.gold)} gold passage{'s' if len(one.gold) > 1 else ''}"
        n_gold.setdefault(several, []).append(place)
        types.setdefault(f"asks {question_type(one.question.text)}", []).append(place)
        if one.kind:
            types.setdefault(f"kind {one.kind}", []).append(place)
        owners = sorted({name.partition(":")[0] for name in one.gold}) if documents else []
        if owners:
            owner = f"document {owners[0]}" if len(owners) == 1 else "several documents"
            files.setdefault(owner, []).append(place)
    by_size: Callable[[str], tuple[int, str]] = lambda name: (-len((types | files)[name]), name)  # noqa: E731
    ordered = [*sorted(n_gold, key=lambda name: (len(name.split()[0]), name)), *sorted(types, key=by_size)]
    return {name: (n_gold | types | files)[name] for name in [*ordered, *sorted(files, key=by_size)]}


def group_figures(gold: Sequence[GoldQuestion], ranks: Sequence[Ranks], places: Sequence[int]) -> GroupFigures:
    """The figures of the questions at these positions, at least one."""
    shares = [
        [sum(rank <= depth for rank in ranks[n].values()) / len(gold[n].gold) for n in places]
        for depth in (FIRST, CANDIDATES)
    ]
    return GroupFigures(len(places), fmean(shares[0]), fmean(shares[1]))


def breakdown(
    gold: Sequence[GoldQuestion], ranks: Mapping[str, Sequence[Ranks]], shown: str, *, documents: bool
) -> tuple[Comparison, dict[str, Any]]:
    """The configuration ``shown`` by groups as a table, and every configuration's as JSON; ``ranks`` are by name."""
    groups = groups_of(gold, documents=documents)
    found = {
        name: {group: group_figures(gold, of_one, places) for group, places in groups.items()}
        for name, of_one in ranks.items()
    }
    rare = [name for name in groups if name.startswith("document ")][SHOWN_DOCUMENTS:]
    lines = [
        Line(group, (f"{one.n_questions:,}", f"{one.recall:.3f}", f"{one.candidates:.3f}"), "this run")
        for group, one in found[shown].items()
        if group not in rare
    ]
    table = Comparison(
        ("questions", f"R@{FIRST}", f"among {CANDIDATES}"),
        tuple(lines),
        f"among {CANDIDATES}: share of the gold among the first {CANDIDATES}, from which later stages can "
        "choose." + (f" {len(rare)} more documents are in the report's JSON." if rare else ""),
        f"{shown}: by gold passages, type of question and document",
        "questions",
    )
    return table, {name: {group: asdict(one) for group, one in of_one.items()} for name, of_one in found.items()}


def pairs_beside(
    gold: Sequence[GoldQuestion], ranks: Mapping[str, Sequence[Ranks]], baseline: str
) -> tuple[Comparison, dict[str, Any]] | None:
    """Cross-reference questions under every configuration, as a table and as JSON; None if there are none."""
    places = [n for n, one in enumerate(gold) if one.pair]
    if not places:
        return None
    pairs = [gold[n].pair for n in places]
    of_each = {name: [of_one[n] for n in places] for name, of_one in ranks.items()}
    before = [both_found(pair, one) for pair, one in zip(pairs, of_each[baseline], strict=True)]
    lines, data = [], {}
    for name, of_one in of_each.items():
        figures = asdict(pair_figures(pairs, of_one))
        test = paired_test([both_found(pair, one) for pair, one in zip(pairs, of_one, strict=True)], before)
        data[name] = figures | {"p": test.p_value}
        p = "" if name == baseline else f"{test.mean_difference:+.3f} ({test.p_value:.3f})"
        lines.append(Line(name, (*(f"{value:.3f}" for value in figures.values()), p), "this run"))
    table = Comparison(
        ("both", "only source", "only target", "neither", "RR of the pair", "R@10", "Δ both (p)"),
        tuple(lines),
        "Both: the passage that cites and the one it cites are among the first ten. RR of the pair: mean of 1 / "
        f"rank of the later one. p against {baseline}: paired permutation test.",
        f"{len(places):,} cross-reference questions",
        "ranking",
    )
    return table, data

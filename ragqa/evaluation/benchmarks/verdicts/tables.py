"""Counts verdicts by kind of probe and judge: shares with 95 % intervals, as tables and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Final

from ragqa.evaluation.benchmarks.verdicts.judging import JUDGES
from ragqa.evaluation.benchmarks.verdicts.probes import Expected, Probe
from ragqa.evaluation.report import Comparison, Line
from ragqa.types.scores import Cover, Verdict

Z: Final = 1.959964  # of 95 %
SENTENCE_COLUMNS: Final = (
    Verdict.SUPPORTED,
    Verdict.CONTRADICTED,
    Verdict.UNSUPPORTED,
    Verdict.DISAGREEING,
    Verdict.NONE,
)
COVER_COLUMNS: Final = tuple(Cover)
TOTALS: Final = {
    Expected.CONTRADICTED: "all edits",
    Expected.NOT_SUPPORTED: "all that say more",
    Expected.IN_PART: "all that lack something",
}
CAPTION: Final = (
    "How many, the share of the row, its 95 % interval (Wilson). Raw maxima that both reach the threshold count under "
    '"sources disagree".'
)


@dataclass(frozen=True, slots=True)
class Judged:
    """A probe and each judge's verdict on it."""

    probe: Probe
    said: Mapping[str, str]

    def is_right(self, judge: str) -> bool:
        """Whether this judge's verdict is right; for "not supported", every verdict without support is."""
        said = self.said[judge]
        if self.probe.expected is Expected.NOT_SUPPORTED:
            return said not in (Verdict.SUPPORTED, Verdict.DISAGREEING)
        return said == str(self.probe.expected)


def wilson(count: int, n: int) -> tuple[float, float]:
    """The 95 % interval of the share ``count / n`` (Wilson 1927), in [0, 1]; (0, 1) if ``n`` is 0.

    With ``p = count / n`` and ``z = 1.96``: ``(p + z^2 / 2n ± z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)``.
    """
    if not n:
        return 0.0, 1.0
    share, square = count / n, Z * Z / n
    middle, half = share + square / 2, Z * sqrt(share * (1 - share) / n + square / (4 * n))
    return max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))


def tables(found: Sequence[Judged]) -> tuple[Comparison, ...]:
    """The shares of right verdicts by judge; then each judge's confusion matrices for sentences and obligations."""
    if not found:
        return ()
    groups = dict(_grouped(found))
    beside = Comparison(
        ("probes", "verdicts", "thresholds", "model alone"),
        tuple(
            Line(
                _row(name, group),
                (f"{len(group):,}", *(_share(_n_right(group, judge), len(group)) for judge in JUDGES)),
            )
            for name, group in groups.items()
        ),
        "; ".join(f"{short}: {words}" for short, words in JUDGES.items()),
        "The share that is right, with its 95 % interval",
        "probe → right verdict",
    )
    return (beside, *(table for judge in JUDGES for table in _confusions(judge, groups)))


def data_of(found: Sequence[Judged]) -> dict[str, Any]:
    """The same as JSON values, by judge and kind of probe."""
    return {
        judge: {
            name: {
                "expected": str(group[0].probe.expected),
                "n": len(group),
                "right": _figure(_n_right(group, judge), len(group)),
                "said": {
                    column: _figure(Counter(one.said[judge] for one in group)[column], len(group))
                    for column in _columns(group)
                },
            }
            for name, group in _grouped(found)
        }
        for judge in JUDGES
    }


def _confusions(judge: str, groups: Mapping[str, Sequence[Judged]]) -> Iterator[Comparison]:
    for columns in (SENTENCE_COLUMNS, COVER_COLUMNS):
        lines = []
        for name, group in groups.items():
            if _columns(group) == columns:
                counts = Counter(one.said[judge] for one in group)
                cells = tuple(f"{(n := counts[column]):,} · {_share(n, len(group))}" for column in columns)
                lines.append(Line(_row(name, group), cells))
        if lines:
            title = f"What is said by {JUDGES[judge]}"
            yield Comparison(columns, tuple(lines), CAPTION, title, "probe → right verdict", is_shares=True)


def _grouped(found: Sequence[Judged]) -> Iterator[tuple[str, list[Judged]]]:
    """The probes by kind, made ones first; several kinds with one of `TOTALS` are followed by their total."""
    for by_hand in (False, True):
        groups: dict[str, list[Judged]] = {}
        for one in found:
            if one.probe.by_hand is by_hand:
                groups.setdefault(one.probe.name, []).append(one)
        for name, group in groups.items():
            yield name, group
            expected = group[0].probe.expected
            alike = [other for other, those in groups.items() if those[0].probe.expected is expected]
            if expected in TOTALS and len(alike) > 1 and name == alike[-1]:
                total = f"{TOTALS[expected]}, by hand" if by_hand else TOTALS[expected]
                yield total, [one for other in alike for one in groups[other]]


def _columns(group: Sequence[Judged]) -> tuple[str, ...]:
    return COVER_COLUMNS if group[0].probe.obligation else SENTENCE_COLUMNS


def _row(name: str, group: Sequence[Judged]) -> str:
    return f"{name} → {group[0].probe.expected}"


def _n_right(group: Sequence[Judged], judge: str) -> int:
    return sum(one.is_right(judge) for one in group)


def _figure(count: int, n: int) -> dict[str, Any]:
    return {"count": count, "share": count / n, "interval": list(wilson(count, n))}


def _share(count: int, n: int) -> str:
    low, high = wilson(count, n)
    return f"{_plain(count / n)} [{_plain(low)}–{_plain(high)}]"


def _plain(share: float) -> str:
    """``".05"``, ``"1.00"``; three decimals if two would round to 0 or 1."""
    two = f"{share:.2f}"
    written = f"{share:.3f}" if two in ("0.00", "1.00") and float(two) != round(share, 3) else two
    return written.removeprefix("0")

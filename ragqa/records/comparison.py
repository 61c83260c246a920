"""Compares two answers: settings, passages, sentences, verdicts, scores and seconds. Pure.

Both answers are a `View` of a run or of a stored record. Every number is taken from them; no score is computed again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from ragqa.english.words import quantity
from ragqa.records.differences import Difference, differences
from ragqa.records.view import Shown, View, shown
from ragqa.scoring.repass.explanation import counted, verdict_by_index
from ragqa.types import Candidate, Passage
from ragqa.types.events.pipeline import STAGE_NAMES
from ragqa.types.scores import Verdict

LISTED = 10  # passages of each ranking that are listed; kept passages are always listed
REWORDED = 0.6  # least ratio of matching characters, in [0, 1], of two sentences that count as reworded


@dataclass(frozen=True, slots=True)
class PassageRow:
    """A passage that A or B keeps or ranks high; a rank is None where the passage is not among the candidates."""

    passage: Passage
    rank_a: int | None
    rank_b: int | None
    kept_a: bool
    kept_b: bool

    @property
    def moved(self) -> int | None:
        """How many ranks higher the passage is in B; None where A or B does not have it."""
        return None if self.rank_a is None or self.rank_b is None else self.rank_a - self.rank_b


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence of one answer: its number from 1, its verdict (None before scoring), whether it is a quotation."""

    number: int
    text: str
    verdict: Verdict | None
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class SentenceRow:
    """A sentence of A and the matching sentence of B; None where there is none."""

    a: Said | None
    b: Said | None

    @property
    def match(self) -> str:
        """``"same"``, ``"reworded"``, ``"only A"`` or ``"only B"``."""
        if self.a is None:
            return "only B"
        if self.b is None:
            return "only A"
        return "same" if _plain(self.a.text) == _plain(self.b.text) else "reworded"


@dataclass(frozen=True, slots=True)
class ValueRow:
    """A number of A and B, None if unknown. ``digits``: its decimals; ``higher``: 1 if more is better, -1 if worse."""

    name: str
    a: float | None
    b: float | None
    digits: int = 3
    higher: int = 0

    @property
    def change(self) -> float | None:
        """B minus A."""
        return None if self.a is None or self.b is None else self.b - self.a


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The comparison of A and B; ``words`` summarise it in sentences."""

    differs: tuple[Difference, ...]
    words: tuple[str, ...]
    scores: tuple[ValueRow, ...]
    verdicts: tuple[str, str]
    sentences: tuple[SentenceRow, ...]
    passages: tuple[PassageRow, ...]
    seconds: tuple[ValueRow, ...]


def compare(a: View, b: View) -> SideBySide:
    """Compares two views, each in its own RePASs mode; an unfinished view with what it has so far."""
    found = [shown(view, view.config.scoring.mode) for view in (a, b)]
    sentences, passages = _sentences(a, b, *found), _passages(a, b)
    scores = _scores(a, b, *found)
    counts = [_count_words(one) or "no verdicts" for one in found]
    questions = () if a.question == b.question else (Difference("question", "Question", a.question, b.question),)
    return SideBySide(
        (*questions, *differences(a.config, b.config)),
        tuple(_words(passages, sentences, scores)),
        scores,
        (counts[0], counts[1]),
        sentences,
        passages,
        _seconds(a, b),
    )


def _count_words(one: Shown) -> str:
    quoted = _quoted(one)
    rest = counted(verdict for index, verdict in _verdicts(one).items() if index not in quoted)
    return ", ".join(([f"{len(quoted)} quoted"] if quoted else []) + [words for _, words in rest])


def _quoted(one: Shown) -> set[int]:
    return {made.index for made in one.verdicts if made.quoted and made.verdict is Verdict.SUPPORTED}


def _verdicts(one: Shown) -> dict[int, Verdict]:
    return dict(verdict_by_index(one.sentences, one.verdicts))


def _candidates(view: View) -> dict[str, Candidate]:
    if view.selection is None:
        return {}
    both = (*view.selection.kept, *view.selection.dropped)
    return {one.passage.passage_id: one for one in sorted(both, key=lambda one: one.rank)}


def _passages(a: View, b: View) -> tuple[PassageRow, ...]:
    """Passages that A or B keeps or ranks among the best, by their better rank.

    Passages of different corpora are never the same passage.
    """
    apart = a.config.index != b.config.index
    ones = {("a" if apart else "", name): one for name, one in _candidates(a).items()}
    others = {("b" if apart else "", name): one for name, one in _candidates(b).items()}
    rows = []
    for key in dict.fromkeys((*ones, *others)):
        pair = (ones.get(key), others.get(key))
        if not any(one and (one.drop is None or one.rank <= LISTED) for one in pair):
            continue
        passage = next(one.passage for one in pair if one)
        ranks, kept = [one.rank if one else None for one in pair], [bool(one and one.drop is None) for one in pair]
        rows.append(PassageRow(passage, ranks[0], ranks[1], kept[0], kept[1]))
    return tuple(sorted(rows, key=lambda row: min(rank for rank in (row.rank_a, row.rank_b) if rank)))


def _said(view: View, found: Shown) -> list[Said]:
    if view.answer is None:
        return []
    verdicts, quoted = _verdicts(found), _quoted(found)
    return [Said(n + 1, one.text, verdicts.get(n), n in quoted) for n, one in enumerate(view.answer.sentences)]


def _sentences(a: View, b: View, found_a: Shown, found_b: Shown) -> tuple[SentenceRow, ...]:
    """Pairs equal sentences, then the most similar ones; rows are in the order of A, then the rest of B."""
    left, right = _said(a, found_a), _said(b, found_b)
    pairs: dict[int, Said] = {}
    free = list(right)
    for one in left:
        same = next((other for other in free if _plain(other.text) == _plain(one.text)), None)
        if same:
            pairs[one.number] = same
            free.remove(same)
    likeness = sorted(
        ((_likeness(one.text, other.text), one, other) for one in left if one.number not in pairs for other in free),
        key=lambda row: -row[0],
    )
    for alike, one, other in likeness:
        if alike >= REWORDED and one.number not in pairs and other in free:
            pairs[one.number] = other
            free.remove(other)
    return (*(SentenceRow(one, pairs.get(one.number)) for one in left), *(SentenceRow(None, other) for other in free))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".")


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, _plain(one), _plain(other), autojunk=False).ratio()


def _scores(a: View, b: View, found_a: Shown, found_b: Shown) -> tuple[ValueRow, ...]:
    one, other = _figures(a, found_a), _figures(b, found_b)
    return tuple(ValueRow(name, one[name], other[name], *how) for name, how in _SHOWN.items())


_SHOWN = {  # digits, and whether more is better
    "RePASs": (3, 1),
    "Entailment E": (3, 1),
    "Contradiction C": (3, -1),
    "Obligation coverage OC": (3, 1),
    "Answer relevance": (3, 1),
    "Obligations covered": (0, 1),
    "Obligations in all": (0, 0),
    "Passages kept": (0, 0),
    "Sentences": (0, 0),
}


def _figures(view: View, found: Shown) -> dict[str, float | None]:
    repass = found.evaluation.repass if found.evaluation else None
    return {
        "RePASs": repass.composite if repass else None,
        "Entailment E": repass.entailment if repass else None,
        "Contradiction C": repass.contradiction if repass else None,
        "Obligation coverage OC": repass.obligation_coverage if repass else None,
        "Answer relevance": view.answer_relevance.value if view.answer_relevance else None,
        "Obligations covered": float(len(found.obligations) - len(found.uncovered)) if repass else None,
        "Obligations in all": float(len(found.obligations)) if repass else None,
        "Passages kept": float(len(view.selection.kept)) if view.selection else None,
        "Sentences": float(len(view.answer.sentences)) if view.answer else None,
    }


def _seconds(a: View, b: View) -> tuple[ValueRow, ...]:
    stages = [stage for stage in STAGE_NAMES if stage in a.seconds or stage in b.seconds]
    rows = [ValueRow(stage, a.seconds.get(stage), b.seconds.get(stage), 2) for stage in stages]
    totals = [sum(view.seconds.get(stage, 0.0) for stage in stages) or None for view in (a, b)]
    return (*rows, ValueRow("in all", totals[0], totals[1], 2)) if rows else ()


def _words(passages: Sequence[PassageRow], sentences: Sequence[SentenceRow], scores: Sequence[ValueRow]) -> list[str]:
    kept = Counter((row.kept_a, row.kept_b) for row in passages)
    in_both, only_a, only_b = kept[True, True], kept[True, False], kept[False, True]
    found = [
        f"Both keep the same {quantity(in_both, 'passage')}."
        if not only_a and not only_b
        else f"{in_both} of the kept passages in both, {only_a} only in A, {only_b} only in B."
    ]
    matches = Counter(row.match for row in sentences)
    if sentences:
        parts = [f"{matches[name]} {name}" for name in ("same", "reworded", "only A", "only B") if matches[name]]
        found.append(f"Sentences: {', '.join(parts)}.")
    judged = [row for row in sentences if row.a and row.b and row.a.verdict and row.b.verdict]
    turned = [
        row for row in judged if row.a and row.b and (row.a.verdict, row.a.quoted) != (row.b.verdict, row.b.quoted)
    ]
    if turned:
        found.append(f"{quantity(len(turned), 'sentence')} in both with another verdict.")
    repass = scores[0]
    if repass.change is not None and repass.a is not None and repass.b is not None:
        if abs(repass.change) < 0.0005:
            found.append(f"RePASs {repass.a:.3f} in both.")
        else:
            most = max(scores[1:4], key=lambda row: abs(row.change or 0.0))
            found.append(
                f"RePASs {repass.a:.3f} → {repass.b:.3f} ({repass.change:+.3f}), most of it by {most.name} "
                f"({most.change or 0.0:+.3f}).".replace("-", "−")
            )
            if {row.match for row in sentences} == {"same"}:
                found.append(
                    "The answers are the same word for word: only the passages that they are scored by differ."
                )
    return found

"""How well the check of citations does on labelled sentences: what it corrected, and what it made worse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ragqa.errors import CorpusError
from ragqa.evaluation.rulebook_citations import CitationGroup, LabelledSentence
from ragqa.protocols import Scorer
from ragqa.types import Answer, AnswerSentence, CitationCheck, Passage


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A labelled sentence and what the check made of it."""

    labelled: LabelledSentence
    check: CitationCheck


@dataclass(frozen=True, slots=True)
class Counts:
    """Right ones among those found, and how many there were to find; precision and recall in [0, 1], None for 0 / 0."""

    n_right: int
    n_found: int
    n_expected: int

    @property
    def precision(self) -> float | None:
        return self.n_right / self.n_found if self.n_found else None

    @property
    def recall(self) -> float | None:
        return self.n_right / self.n_expected if self.n_expected else None


@dataclass(frozen=True, slots=True)
class CitationReport:
    """``changes``: citations put in or taken out, against those to be. ``before``, ``after``: the citations that stand.

    ``exact`` counts, by kind of sentence, those whose citations are just right afterwards, and all of the kind.
    """

    changes: Counts
    before: Counts
    after: Counts
    exact: Mapping[str, tuple[int, int]]


def check_groups(
    groups: Iterable[CitationGroup], passages: Iterable[Passage], scorer: Scorer
) -> Iterator[CheckedSentence]:
    """Each sentence with its check in mode ``paper``, a group at a time as if it were an answer to its passages.

    Raises CorpusError where a passage of a group is not among ``passages``, and ScoringError.
    """
    by_id = {passage.passage_id: passage for passage in passages}
    for group in groups:
        missing = [name for name in group.passage_ids if name not in by_id]
        if missing:
            msg = f"expected passage {missing[0]} of the demonstration rulebook, found none; reinstall ragqa"
            raise CorpusError(msg)
        checks = _checks(group, [by_id[name] for name in group.passage_ids], scorer)
        yield from map(CheckedSentence, group.sentences, checks)


def _checks(group: CitationGroup, passages: Sequence[Passage], scorer: Scorer) -> tuple[CitationCheck, ...]:
    sentences, text = [], ""
    for labelled in group.sentences:
        text += " " if text else ""
        sentences.append(AnswerSentence(labelled.text, len(text), len(text) + len(labelled.text), labelled.written))
        text += labelled.text
    stream = scorer.stream(Answer(text, tuple(sentences), "labelled", ""), passages)
    while True:
        try:
            next(stream)
        except StopIteration as stop:
            found: tuple[CitationCheck, ...] = stop.value.paper.citations
            return found


def kind_of(labelled: LabelledSentence) -> str:
    """What is wrong with the sentence's citations as it was written, if anything."""
    if labelled.written == labelled.right:
        return "right citation" if labelled.right else "nothing cited, nothing to cite"
    if not labelled.written:
        return "citation missing"
    return "wrong citation, another is right" if labelled.right else "wrong citation, none is right"


def report(checked: Sequence[CheckedSentence]) -> CitationReport:
    """Precision and recall over all sentences."""
    exact: dict[str, tuple[int, int]] = {}
    changes, before, after = [], [], []
    for one in checked:
        written, right = set(one.labelled.written), set(one.labelled.right)
        verified = set(one.check.verified)
        changes.append((written ^ verified, written ^ right))
        before.append((written, right))
        after.append((verified, right))
        good, total = exact.get(kind_of(one.labelled), (0, 0))
        exact[kind_of(one.labelled)] = (good + (verified == right), total + 1)
    return CitationReport(_counts(changes), _counts(before), _counts(after), exact)


def _counts(pairs: Iterable[tuple[set[int], set[int]]]) -> Counts:
    """Summed over (found, expected); a change that was expected is right, whichever way it goes."""
    rows = [(len(found & expected), len(found), len(expected)) for found, expected in pairs]
    return Counts(*(sum(column) for column in zip(*rows, strict=True))) if rows else Counts(0, 0, 0)

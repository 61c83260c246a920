"""Measures the scorer: corrected citations, judged claims, and agreement with published RePASs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import correlation, fmean
from typing import TypeGuard

from ragqa.corpus.answers import AnswerItem
from ragqa.corpus.files import describe, read_json
from ragqa.errors import CorpusError
from ragqa.evaluation.answer_file import AnswerScores, figures_of, score_item
from ragqa.lab.labelled import CitationGroup, CitedSentence, LabelledClaim
from ragqa.plugins.protocols import Scorer
from ragqa.settings.scoring import SplitterName
from ragqa.types import Answer, AnswerSentence, Passage
from ragqa.types.scores import CitationCheck, Verdict
from ragqa.types.streams import returned

PARTS = ("entailment", "contradiction", "obligation_coverage", "composite")  # of `AnswerScores`, reliable ones first
SCHEMA = (
    "a list of {QuestionID, RetrievedPassages, Answer, expected: {entailment_score, contradiction_score, "
    "obligation_coverage_score, composite_score}}, alone or under 'items'"
)


# Citations ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SentenceCheck:
    """A labelled sentence and its check."""

    labelled: CitedSentence
    check: CitationCheck


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of right, found and expected items; precision and recall are in [0, 1], None for 0 / 0."""

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
    """Counts of the changed citations against the expected changes, and of the citations before and after the check.

    ``exact`` holds for each kind of sentence how many have exactly the right citations afterwards, and the total.
    """

    changes: Counts
    before: Counts
    after: Counts
    exact: Mapping[str, tuple[int, int]]


def check_groups(
    groups: Iterable[CitationGroup], passages: Iterable[Passage], scorer: Scorer
) -> Iterator[SentenceCheck]:
    """Each sentence with its check in mode ``paper``; each group is scored like an answer to its passages.

    Raises CorpusError if a passage of a group is not among ``passages``, and ScoringError.
    """
    by_id = {passage.passage_id: passage for passage in passages}
    for group in groups:
        missing = [name for name in group.passage_ids if name not in by_id]
        if missing:
            msg = f"expected passage {missing[0]} of the demonstration rulebook, found none; reinstall ragqa"
            raise CorpusError(msg)
        checks = _checks(group, [by_id[name] for name in group.passage_ids], scorer)
        yield from map(SentenceCheck, group.sentences, checks)


def _checks(group: CitationGroup, passages: Sequence[Passage], scorer: Scorer) -> tuple[CitationCheck, ...]:
    sentences, text = [], ""
    for labelled in group.sentences:
        text += " " if text else ""
        sentences.append(AnswerSentence(labelled.text, len(text), len(text) + len(labelled.text), labelled.written))
        text += labelled.text
    answer = Answer(text, tuple(sentences), "labelled", "")
    return returned(scorer.stream(answer, passages)).paper.citations


def kind_of(labelled: CitedSentence) -> str:
    """The kind of error in the sentence's written citations, if any."""
    if labelled.written == labelled.right:
        return "right citation" if labelled.right else "nothing cited, nothing to cite"
    if not labelled.written:
        return "citation missing"
    return "wrong citation, another is right" if labelled.right else "wrong citation, none is right"


def citation_report(checked: Sequence[SentenceCheck]) -> CitationReport:
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
    """The counts summed over (found, expected); an expected change is right, whether it adds or removes."""
    rows = [(len(found & expected), len(found), len(expected)) for found, expected in pairs]
    return Counts(*(sum(column) for column in zip(*rows, strict=True))) if rows else Counts(0, 0, 0)


# Claims -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim, with its verdict and its raw verdict."""

    claim: LabelledClaim
    verdict: Verdict
    raw: Verdict


def check_claims(claims: Iterable[LabelledClaim], scorer: Scorer) -> Iterator[CheckedClaim]:
    """Each claim as an answer of one sentence to passages of one evidence sentence each. Raises ScoringError."""
    for claim in claims:
        passages = [Passage(str(n), "evidence", text) for n, text in enumerate(claim.evidence, start=1)]
        sentence = AnswerSentence(claim.text, 0, len(claim.text))
        found = returned(scorer.stream(Answer(claim.text, (sentence,), "labelled", ""), passages)).paper
        yield CheckedClaim(claim, found.verdicts[0].verdict, found.sentences[0].verdict)


def balanced_accuracy(judged: Iterable[tuple[bool, bool]]) -> float | None:
    """The mean of the shares judged right among supported and among other claims, from (actual, judged) pairs."""
    rows = list(judged)
    shares = [[said == is_so for is_so, said in rows if is_so is wanted] for wanted in (True, False)]
    return fmean(fmean(share) for share in shares) if all(shares) else None


# Agreement ------------------------------------------------------------------------------------------------------------
# E and C depend on the NLI model alone, so their comparison is reliable. OC, and with it the composite, also depends on
# an obligation classifier whose weights were never published, and on its NLI model's input: their comparison is only
# rough.


@dataclass(frozen=True, slots=True)
class PublishedCase:
    """An answer, the texts of its passages and the figures published for it."""

    item: AnswerItem
    published: AnswerScores


@dataclass(frozen=True, slots=True)
class CaseAgreement:
    """One case: the published figures and ours, both in mode ``script``."""

    number: int
    question_id: str
    n_source_sentences: int
    n_answer_sentences: int
    published: AnswerScores
    found: AnswerScores


@dataclass(frozen=True, slots=True)
class PartAgreement:
    """One part over all cases.

    ``pearson`` is None for fewer than two cases, or if one side is constant. ``mean_difference`` is the mean of ours
    minus published, ``mean_distance`` that of its absolute value; both 0 without cases.
    """

    part: str
    pearson: float | None
    mean_published: float
    mean_found: float
    mean_difference: float
    mean_distance: float


def read_published(path: Path) -> tuple[PublishedCase, ...]:
    """The cases of a JSON file, with unchanged texts. Raises CorpusError naming the item."""
    content = read_json(path, path.name)
    rows = content.get("items") if isinstance(content, dict) else content
    if not isinstance(rows, list):
        raise CorpusError(f"{path.name}: expected {SCHEMA}, found {describe(rows)}; give a file of published cases")
    return tuple(_case(row, number, path.name) for number, row in enumerate(rows, start=1))


def _case(row: object, number: int, name: str) -> PublishedCase:
    problem = f"{name}, item {number}: expected {SCHEMA}"
    if not isinstance(row, dict):
        raise CorpusError(f"{problem}; found {describe(row)}; correct the item and try again")
    passages, answer, expected = (row.get(key) for key in ("RetrievedPassages", "Answer", "expected"))
    if isinstance(passages, str):
        passages = [passages]
    if not isinstance(passages, list) or not all(isinstance(text, str) for text in passages):
        msg = f"{problem}; found {describe(passages)} under RetrievedPassages; correct the item and try again"
        raise CorpusError(msg)
    if not isinstance(answer, str) or not isinstance(expected, dict):
        raise CorpusError(
            f"{problem}; found {describe(answer)} under Answer and {describe(expected)} under expected; "
            "correct the item and try again"
        )
    scores = [expected.get(f"{part}_score") for part in PARTS]
    numbers = [float(score) for score in scores if _is_number(score)]
    if len(numbers) < len(PARTS):
        msg = f"{problem}; found {', '.join(map(describe, scores))} as scores; correct the item and try again"
        raise CorpusError(msg)
    question_id = str(row.get("QuestionID") or number)
    item = AnswerItem(number, question_id, str(row.get("Question") or ""), tuple(passages), answer)
    return PublishedCase(item, AnswerScores(*numbers))


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def score_published(
    scorer: Scorer, cases: Sequence[PublishedCase], splitter: SplitterName = "nupunkt"
) -> Iterator[CaseAgreement]:
    """Yields each case in order as soon as it is scored. Raises ScoringError."""
    for case in cases:
        breakdown = score_item(case.item, scorer, splitter).script
        yield CaseAgreement(
            number=case.item.number,
            question_id=case.item.question_id,
            n_source_sentences=len(breakdown.premises),
            n_answer_sentences=len(breakdown.sentences),
            published=case.published,
            found=figures_of(breakdown),
        )


def agreement(cases: Sequence[CaseAgreement]) -> tuple[PartAgreement, ...]:
    """Entailment, contradiction, obligation coverage and composite, each over all these cases."""
    return tuple(_part(part, cases) for part in PARTS)


def _part(part: str, cases: Sequence[CaseAgreement]) -> PartAgreement:
    published = [float(getattr(case.published, part)) for case in cases]
    found = [float(getattr(case.found, part)) for case in cases]
    differences = [ours - theirs for ours, theirs in zip(found, published, strict=True)]
    varied = len(set(published)) > 1 and len(set(found)) > 1  # the `correlation` of constants is rounding noise
    return PartAgreement(
        part=part,
        pearson=correlation(published, found) if varied else None,
        mean_published=fmean(published) if cases else 0.0,
        mean_found=fmean(found) if cases else 0.0,
        mean_difference=fmean(differences) if cases else 0.0,
        mean_distance=fmean(map(abs, differences)) if cases else 0.0,
    )

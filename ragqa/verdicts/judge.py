"""What the sources say of an answer: each rule in turn, and the first that decides gives verdict and reason.

Pure: probabilities of an NLI model in, verdicts out; no model is asked, and RePASs is not changed by any of this. The
order: a sentence quoted word for word is supported; a source sentence on the same subject contradicts by a clash of
numbers, dates, units, names or parties, or by the model's word; what says the same supports, unless a condition was
left out; else nothing is said of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ragqa.config import ScoringConfig
from ragqa.types import (
    AnswerSentence,
    Breakdown,
    Cover,
    NliProbabilities,
    ObligationVerdict,
    Passage,
    Premise,
    SentenceVerdict,
    Span,
    Verdict,
)
from ragqa.verdicts import RULES_VERSION
from ragqa.verdicts.belief import Evidence, contradicts, is_doubtful, support
from ragqa.verdicts.clashes import Clash, clashes, foreign_name, strength, unmatched
from ragqa.verdicts.language import ENGLISH, language_of
from ragqa.verdicts.quantities import Date, Quantity
from ragqa.verdicts.reading import Reading, read
from ragqa.verdicts.scope import dropped_scope, missing_deadline, widened
from ragqa.verdicts.subject import covers, headings_of, is_elsewhere, knows_subject, unknown_names

Similarity = Callable[[str, Sequence[str]], Sequence[float]]
Table = Mapping[tuple[str, str], NliProbabilities]
LOOKED_AT = 4  # source sentences per answer sentence: the most similar ones
COMPARED = 24  # source sentences per answer sentence whose vectors are compared


@dataclass(frozen=True, slots=True)
class _Look:
    """One source sentence as it bears on an answer sentence."""

    position: int
    evidence: Evidence
    support: float
    clash: Clash | None
    contradicts: bool
    missing: Span | None  # a condition of the source that the answer leaves out


class Judge:
    """Judges the sentences of one answer against the source sentences of its passages. Make one for each scoring."""

    def __init__(
        self,
        premises: Sequence[Premise],
        passages: Sequence[Passage],
        config: ScoringConfig,
        similarity: Similarity | None = None,
    ) -> None:
        """``premises`` are the source sentences of ``passages`` (kept, best first).

        ``similarity`` gives the cosine of one text to each of others; without it cosines are estimated from the words
        in common. It is asked for the source sentences with the most words in common only.
        """
        self.premises = premises
        self._threshold, self._coverage_threshold = config.verdict_threshold, config.coverage_threshold
        self._similarity = similarity
        self._headings = [headings_of(passages)[premise.passage_index] for premise in premises] if premises else []
        self._readable = [language_of(passages[premise.passage_index].text) == ENGLISH for premise in premises]
        self._words = [_words(premise.text) for premise in premises]
        self._passage_words = [_words(passage.text) for passage in passages]
        self._similar: dict[str, tuple[list[float], list[float]]] = {}

    # Sentences ------------------------------------------------------------------------------------------------------

    def second_looks(self, sentence: AnswerSentence) -> list[tuple[str, str]]:
        """The pairs (answer sentence, source sentence) that the verdict wants to know: the other way round.

        None where nothing compares sentences: their verdicts do without.
        """
        if self._similarity is None or self._quotes(sentence.text) or self._unread(sentence.text):
            return []
        return [(sentence.text, self.premises[n].text) for n in self._candidates(sentence.text)]

    def sentence(
        self,
        index: int,
        sentence: AnswerSentence,
        entailment: Sequence[float],
        contradiction: Sequence[float],
        table: Table | None = None,
    ) -> SentenceVerdict:
        """The verdict on one answer sentence.

        ``entailment`` and ``contradiction`` are raw, one per source sentence, 0 where not known yet; ``table`` holds
        the second looks as far as they are known.
        """
        made = self._judged(index, sentence.text, entailment, contradiction, table or {})
        doubted = tuple(
            n
            for n in range(len(self.premises))
            if (entailment[n] >= self._threshold and n not in made.supporting)
            or (contradiction[n] >= self._threshold and n not in made.contradicting)
        )
        return replace(made, doubted=doubted)

    def so_far(self, index: int, sentence: AnswerSentence, entailment: Sequence[float]) -> SentenceVerdict:
        """What can be said at once, while pairs are still unknown: quotations, and what the model clearly supports."""
        quotes = self._quotes(sentence.text)
        if quotes:
            reason = self._quotation(sentence.text, quotes)
            return SentenceVerdict(index, Verdict.SUPPORTED, reason, "quotation", tuple(quotes))
        best = max(range(len(entailment)), key=lambda n: entailment[n], default=None)
        if best is not None and entailment[best] >= self._threshold:
            reason = f"So far {self._number(best)} supports this (entailment {entailment[best]:.2f})."
            return SentenceVerdict(index, Verdict.SUPPORTED, reason, "entailment", (best,))
        return SentenceVerdict(index, Verdict.UNSUPPORTED, "So far no source sentence says this.", "nothing")

    def _judged(
        self, index: int, text: str, entailment: Sequence[float], contradiction: Sequence[float], table: Table
    ) -> SentenceVerdict:
        quotes = self._quotes(text)
        if self._unread(text) and not quotes:
            reason = (
                f"The model cannot read this language ({self._language(text)}); only a word-for-word quotation counts."
            )
            return SentenceVerdict(index, Verdict.NONE, reason, "language")
        looks = [
            self._look(text, n, entailment[n], contradiction[n], table)
            for n in self._candidates(text)
            if n not in quotes
        ]
        if quotes:
            other = next((look for look in looks if self._disagrees(text, look)), None)
            if other and other.clash:
                return self._disagreeing(index, quotes, other, other.clash)
            return SentenceVerdict(index, Verdict.SUPPORTED, self._quotation(text, quotes), "quotation", tuple(quotes))
        against = sorted((look for look in looks if look.contradicts), key=_weight, reverse=True)
        backing = sorted((look for look in looks if self._backs(look)), key=lambda look: -look.support)
        if against:
            return self._contradicted(index, text, against)
        if backing:
            best = backing[0]
            reason = (
                f"{self._number(best.position)} says the same in other words "
                f"(entailment {best.evidence.entailment:.2f}, similarity {best.evidence.cosine:.2f})."
            )
            positions = tuple(look.position for look in backing)
            return SentenceVerdict(index, Verdict.SUPPORTED, reason, "entailment", positions)
        return self._unsupported(index, text, looks)

    def _contradicted(self, index: int, text: str, against: Sequence[_Look]) -> SentenceVerdict:
        first, positions = against[0], tuple(look.position for look in against)
        number = self._number(first.position)
        if first.clash:
            return SentenceVerdict(
                index,
                Verdict.CONTRADICTED,
                f"{number} {first.clash.words}.",
                first.clash.kind,
                contradicting=positions,
                said=(first.clash.said,),
                found=(first.clash.found,),
            )
        reason = (
            f"{number} speaks of the same thing and says otherwise (contradiction {first.evidence.contradiction:.2f})."
        )
        return SentenceVerdict(index, Verdict.CONTRADICTED, reason, "contradiction", contradicting=positions)

    def _disagreeing(self, index: int, quotes: Sequence[int], other: _Look, clash: Clash) -> SentenceVerdict:
        reason = f"{self._number(quotes[0])} says this word for word, but {self._number(other.position)} {clash.words}."
        return SentenceVerdict(
            index,
            Verdict.DISAGREEING,
            reason,
            clash.kind,
            tuple(quotes),
            (other.position,),
            said=(clash.said,),
            found=(clash.found,),
        )

    def _unsupported(self, index: int, text: str, looks: Sequence[_Look]) -> SentenceVerdict:
        for look in looks:
            if look.missing and look.support > 0:
                left_out = look.missing.text
                reason = (
                    f"{self._number(look.position)} says it under a condition that the answer leaves out: “{left_out}”."
                )
                return SentenceVerdict(index, Verdict.UNSUPPORTED, reason, "condition", found=(look.missing,))
        if not looks:
            return SentenceVerdict(index, Verdict.UNSUPPORTED, "No source sentence says this.", "nothing")
        nearest = max(looks, key=lambda look: look.evidence.cosine)
        reason = f"No source sentence says this; the nearest is in {self._number(nearest.position)}."
        return SentenceVerdict(index, Verdict.UNSUPPORTED, reason, "nothing")

    def _look(self, text: str, n: int, entailment: float, contradiction: float, table: Table) -> _Look:
        said, found, headings = read(text), self._reading(n), self._headings[n]
        cover, cosine = (values[n] for values in self._similarities(text))
        back = table.get((text, self.premises[n].text), NliProbabilities(contradiction, entailment, 0.0))
        evidence = Evidence(
            entailment=entailment,
            contradiction=contradiction,
            backwards=back.entailment,
            backwards_contradiction=back.contradiction,
            cosine=cosine,
            cover=cover,
            unknown_names=unknown_names(said, found, headings),
            lacks_numbers=bool(
                unmatched(said.quantities, found.quantities, Quantity.equals)
                or unmatched(said.dates, found.dates, Date.fits)
            ),
            is_elsewhere=is_elsewhere(said, found, headings),
            knows_subject=knows_subject(said, found, headings),
            differs_in_strength=strength(said) != strength(found),
        )
        clash = next(clashes(said, found), None) or foreign_name(said, found, headings.stems)
        believed = clash if clash and clash_counts(clash, evidence) else None
        missing = dropped_scope(said, found) or widened(said, found)
        return _Look(n, evidence, support(evidence), believed, bool(believed) or contradicts(evidence), missing)

    def _backs(self, look: _Look) -> bool:
        believed = look.support > 0 and not look.missing and not look.contradicts and self._readable[look.position]
        return believed and not is_doubtful(look.evidence)

    def _disagrees(self, text: str, look: _Look) -> bool:
        """Whether a source sentence says the same as one quoted, but for one number or date: a finding of its own."""
        said, found = read(text).content, self._reading(look.position).content
        alike = bool(found) and len(said & found) / len(found) >= SAME
        return bool(look.clash) and alike and look.evidence.cover >= SAME and look.evidence.cosine >= NEARLY_EQUAL

    # Quotations -----------------------------------------------------------------------------------------------------

    def _quotes(self, text: str) -> list[int]:
        """Positions of source sentences that say this word for word, whole ones first; nothing may be dropped."""
        words = _words(text)
        if not words:
            return []
        whole = [n for n, its in enumerate(self._words) if its == words]
        parts = [n for n, its in enumerate(self._words) if n not in whole and self._is_part(text, words, its, n)]
        across = [] if whole or parts else self._across(words)
        return [*whole, *parts, *across]

    def _is_part(self, text: str, words: tuple[str, ...], its: tuple[str, ...], n: int) -> bool:
        if len(words) < MIN_PART or not _contains(its, words):
            return False
        said, found = read(text), self._reading(n)
        return not dropped_scope(said, found) and not _is_framed(words, its)

    def _across(self, words: tuple[str, ...]) -> list[int]:
        """The first source sentence of a passage that has these words in a run over several of its sentences."""
        for number, its in enumerate(self._passage_words):
            if len(words) >= MIN_PART and _contains(its, words):
                inside = [n for n, p in enumerate(self.premises) if p.passage_index == number]
                first = [n for n in inside if len(self._words[n]) >= MIN_PART and _contains(words, self._words[n])]
                if first:
                    return first
        return []

    def _quotation(self, text: str, quotes: Sequence[int]) -> str:
        number = self._number(quotes[0])
        if self._words[quotes[0]] == _words(text):
            return f"Quoted word for word from {number}."
        return f"Part of a sentence of {number}, word for word."

    # What is looked at ----------------------------------------------------------------------------------------------

    def _candidates(self, text: str) -> list[int]:
        if not self.premises:
            return []
        cover, cosine = self._similarities(text)
        return sorted(range(len(self.premises)), key=lambda n: -(cover[n] + cosine[n]))[:LOOKED_AT]

    def _similarities(self, text: str) -> tuple[list[float], list[float]]:
        """For each source sentence the cover and the cosine."""
        if text not in self._similar:
            cover = covers(read(text), [self._reading(n) for n in range(len(self.premises))], self._headings)
            cosine = [0.35 + 0.6 * share for share in cover]
            if self._similarity:
                near = sorted(range(len(cover)), key=lambda n: -cover[n])[:COMPARED]
                values = self._similarity(text, [self.premises[n].text for n in near])
                cosine = [0.0] * len(cover)
                for n, value in zip(near, values, strict=True):
                    cosine[n] = float(value)
            self._similar[text] = cover, cosine
        return self._similar[text]

    def _reading(self, n: int) -> Reading:
        return read(self.premises[n].text)

    def _number(self, n: int) -> str:
        return f"[{self.premises[n].passage_index + 1}]"

    def _unread(self, text: str) -> bool:
        return self._language(text) != ENGLISH

    def _language(self, text: str) -> str:
        own = language_of(text)
        if own != ENGLISH or any(self._readable) or not self.premises:
            return own
        return language_of(self.premises[0].text) if language_of(self.premises[0].text) != ENGLISH else "unknown"

    # Obligations ----------------------------------------------------------------------------------------------------

    def obligation(
        self,
        index: int,
        obligation: Premise,
        said: Sequence[tuple[int, AnswerSentence]],
        entailment: Sequence[float],
    ) -> ObligationVerdict:
        """Whether the answer tells of this obligation, and what of it is missing.

        ``said`` are answer sentences with their indexes, ``entailment`` P(entailment | answer sentence, obligation) of
        each, 0 where not known yet.
        """
        words, wanted = _words(obligation.text), read(obligation.text)
        for number, sentence in said:
            if _contains(_words(sentence.text), words):
                reason = f"Sentence {number + 1} says it word for word."
                return ObligationVerdict(index, Cover.COVERED, reason, "quotation", number)
        in_part = None
        for position in sorted(range(len(said)), key=lambda n: -entailment[n]):
            number, told = said[position][0], read(said[position][1].text)
            missing = _missing(told, wanted)
            if entailment[position] > self._coverage_threshold and not missing:
                reason = f"Sentence {number + 1} says it in other words (entailment {entailment[position]:.2f})."
                return ObligationVerdict(index, Cover.COVERED, reason, "entailment", number)
            if not in_part and missing and (_tells_of(told, wanted) or entailment[position] > self._coverage_threshold):
                words_missing = ", ".join(f"“{span.text}”" for span in missing)
                reason = f"Sentence {number + 1} says it without {words_missing}."
                in_part = ObligationVerdict(index, Cover.IN_PART, reason, "condition", number, missing)
        return in_part or ObligationVerdict(index, Cover.NOT_COVERED, "No sentence of the answer says this.", "nothing")


MIN_PART = 4  # words of a part of a sentence that count as a quotation
SAME = 0.8  # share of words from which two sentences say the same of the same thing but for what clashes
NEARLY_EQUAL = 0.85  # cosine likewise
TOLD_IN_PART = 0.5  # share of an obligation's content words from which the answer tells a part of it
CLASH_COSINE, CLASH_COVER = 0.6, 0.4
NAME_COSINE, NAME_COVER = 0.7, 0.4
NAME_CONTRADICTION = 0.1  # P of the model that a name in place of another wants beside it


def clash_counts(clash: Clash, evidence: Evidence) -> bool:
    """Whether a clash is of the same thing: names clash only in sentences that are closer to each other."""
    if evidence.is_elsewhere:
        return False
    if clash.kind in {"entity", "party"}:
        is_close = evidence.cosine >= NAME_COSINE and evidence.cover >= NAME_COVER
        return is_close and (clash.is_certain or evidence.contradiction >= NAME_CONTRADICTION)
    return evidence.knows_subject and evidence.cosine >= CLASH_COSINE and evidence.cover >= CLASH_COVER


def _weight(look: _Look) -> tuple[bool, float]:
    return look.clash is not None, look.evidence.contradiction + look.evidence.cosine


def _tells_of(told: Reading, wanted: Reading) -> bool:
    """Whether an answer sentence has enough of an obligation's words, and the first of them, who or what is obliged."""
    first = next((word.stem for word in wanted.words if word.stem in wanted.content), None)
    shared = told.content & wanted.content
    return first in shared and len(shared) >= TOLD_IN_PART * len(wanted.content)


def _missing(told: Reading, wanted: Reading) -> tuple[Span, ...]:
    """The conditions, periods and dates of an obligation that an answer sentence does not have."""
    found = [dropped_scope(told, wanted), missing_deadline(told, wanted)]
    found += [one.span for one in unmatched(wanted.quantities, told.quantities, Quantity.equals)]
    found += [one.span for one in unmatched(wanted.dates, told.dates, Date.fits)]
    return tuple(dict.fromkeys(span for span in found if span))


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.lower for word in read(text).words)


def _contains(words: tuple[str, ...], run: tuple[str, ...]) -> bool:
    """Whether ``run`` stands in ``words`` in one piece."""
    if not run or len(run) > len(words):
        return False
    return any(words[n : n + len(run)] == run for n, word in enumerate(words) if word == run[0])


_FRAMES = frozenset(
    "not no never said says say claims claimed claim believed believe alleged denied deny whether".split()
)


def _is_framed(run: tuple[str, ...], words: tuple[str, ...]) -> bool:
    """Whether what stands before the quoted part denies it or only reports it."""
    start = next(n for n in range(len(words)) if words[n : n + len(run)] == run)
    return bool(_FRAMES & set(words[max(0, start - 6) : start]))


def judged(breakdown: Breakdown, judge: Judge, table: Table | None = None) -> Breakdown:
    """The breakdown with the verdicts on its sentences and obligations; its numbers stay as they are."""
    said = [(n, breakdown.sentences[n].sentence) for n in breakdown.looked_at]
    entailing, contradicting = breakdown.entailment_matrix, breakdown.contradiction_matrix
    return replace(
        breakdown,
        verdicts=tuple(
            judge.sentence(
                score.index,
                score.sentence,
                [row[score.index] for row in entailing],
                [row[score.index] for row in contradicting],
                table,
            )
            for score in breakdown.sentences
        ),
        obligation_verdicts=tuple(
            judge.obligation(score.index, score.obligation, said, breakdown.coverage_matrix[score.index])
            for score in breakdown.obligations
        ),
        verdict_rules=RULES_VERSION,
    )

"""What the sources say of an answer: each rule in turn, and the first that decides gives verdict and reason.

Pure: probabilities of an NLI model in, verdicts out; no model is asked, and RePASs is not changed by any of this. The
order: a sentence quoted word for word is supported; a source sentence on the same subject contradicts by a clash of
numbers, dates, units, names or parties, or by the model's word; what says the same supports, unless a condition was
left out; else nothing is said of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ragqa.english.dates import Date
from ragqa.english.language import ENGLISH, language_of
from ragqa.english.quantities import Quantity, unmatched
from ragqa.english.reading import read
from ragqa.scoring.verdicts import RULES_VERSION
from ragqa.scoring.verdicts.belief import (
    SUPPORT,
    Evidence,
    clashes_on_subject,
    contradicts,
    is_clear,
    is_doubtful,
    support,
)
from ragqa.scoring.verdicts.clashes import Clash, clashes, foreign_name, opposed, strength
from ragqa.scoring.verdicts.obligations import cover_of
from ragqa.scoring.verdicts.quotations import Quotations
from ragqa.scoring.verdicts.scope import dropped_scope, widened
from ragqa.scoring.verdicts.subject import covers, headings_of, is_elsewhere, knows_subject, unknown_names
from ragqa.settings.scoring import ScoringConfig
from ragqa.types import AnswerSentence, Passage, Span
from ragqa.types.scores import Breakdown, NliProbabilities, ObligationVerdict, Premise, SentenceVerdict, Verdict

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
        weights: Mapping[str, float] = SUPPORT,
    ) -> None:
        """``premises`` are the source sentences of ``passages`` (kept, best first).

        ``similarity`` gives the cosine of one text to each of others; without it cosines are estimated from the words
        in common. It is asked for the source sentences with the most words in common only.
        ``weights`` are those of `ragqa.scoring.verdicts.belief.support`.
        """
        self.premises = premises
        self._threshold, self._coverage_threshold = config.verdict_threshold, config.coverage_threshold
        self._similarity, self._weights = similarity, weights
        self._languages = [language_of(passage.text) for passage in passages]
        self._readable = [n for n, premise in enumerate(premises) if self._languages[premise.passage_index] == ENGLISH]
        above = headings_of(passages)
        self._headings = [above[premise.passage_index] for premise in premises]
        self._readings = [read(premise.text) for premise in premises]
        known = zip(self._readings, self._headings, strict=True)
        self._known = [found.content | headings.stems for found, headings in known]
        self._quotations = Quotations(premises)
        self._similar: dict[str, tuple[list[float], list[float]]] = {}

    # Sentences ------------------------------------------------------------------------------------------------------

    def second_looks(self, sentence: AnswerSentence) -> list[tuple[str, str]]:
        """The pairs that the verdict wants to know: the source sentences it looks at and this one, both ways round.

        None where nothing compares sentences: their verdicts do without, from the raw probabilities.
        """
        if self._similarity is None or self._quotations.of(sentence.text) or self._unread(sentence.text):
            return []
        sources = [self.premises[n].text for n in self._candidates(sentence.text)]
        return [pair for source in sources for pair in ((source, sentence.text), (sentence.text, source))]

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
        the second looks as far as they are known, which go before them.
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
        at_once = self._quoted_or_unread(index, sentence.text)
        if at_once:
            return at_once
        best = max(range(len(entailment)), key=lambda n: entailment[n], default=None)
        if best is not None and entailment[best] >= self._threshold:
            reason = f"So far {self._number(best)} supports this (entailment {entailment[best]:.2f})."
            return SentenceVerdict(index, Verdict.SUPPORTED, reason, "entailment", (best,))
        return SentenceVerdict(index, Verdict.UNSUPPORTED, "So far no source sentence says this.", "nothing")

    def _judged(
        self, index: int, text: str, entailment: Sequence[float], contradiction: Sequence[float], table: Table
    ) -> SentenceVerdict:
        at_once, quotation = self._quoted_or_unread(index, text), self._quotations.of(text)
        if at_once and not quotation:
            return at_once
        quoted = quotation.positions if quotation else ()
        looks = [
            self._look(text, n, entailment[n], contradiction[n], table)
            for n in self._candidates(text)
            if n not in quoted
        ]
        against = sorted((look for look in looks if look.contradicts), key=_weight, reverse=True)
        backing = sorted((look for look in looks if self._backs(look)), key=lambda look: -look.support)
        if at_once:
            return self._unless_disagreeing(at_once, text, against)
        if backing and (not against or _outweighs(backing[0], against)):
            return self._unless_disagreeing(self._supported(index, backing), text, against)
        return self._contradicted(index, against) if against else self._unsupported(index, looks)

    def evidence(
        self, sentence: AnswerSentence, entailment: Sequence[float], contradiction: Sequence[float], table: Table
    ) -> list[Evidence]:
        """What is known of each source sentence that only its support may decide on; none where another rule decides.

        Arguments as of `sentence`.
        """
        text = sentence.text
        if self._quoted_or_unread(0, text):
            return []
        looks = [self._look(text, n, entailment[n], contradiction[n], table) for n in self._candidates(text)]
        if any(look.contradicts for look in looks):
            return []
        found = [look.evidence for look in looks if not look.missing and not is_doubtful(look.evidence)]
        return [] if any(map(is_clear, found)) else found

    def _quoted_or_unread(self, index: int, text: str) -> SentenceVerdict | None:
        """What needs no probabilities: a quotation is supported, and a language that nobody reads has no verdict."""
        quotation = self._quotations.of(text)
        if quotation:
            reason = quotation.part.format(self._number(quotation.positions[0]))
            return SentenceVerdict(index, Verdict.SUPPORTED, reason, "quotation", quotation.positions)
        if not self._unread(text):
            return None
        reason = f"The model cannot read this language ({self._language(text)}); only a word-for-word quotation counts."
        return SentenceVerdict(index, Verdict.NONE, reason, "language")

    def _supported(self, index: int, backing: Sequence[_Look]) -> SentenceVerdict:
        best = backing[0]
        reason = (
            f"{self._number(best.position)} says the same in other words "
            f"(entailment {best.evidence.entailment:.2f}, similarity {best.evidence.cosine:.2f})."
        )
        positions = tuple(look.position for look in backing)
        return SentenceVerdict(index, Verdict.SUPPORTED, reason, "entailment", positions)

    def _contradicted(self, index: int, against: Sequence[_Look]) -> SentenceVerdict:
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

    def _unless_disagreeing(self, supported: SentenceVerdict, text: str, against: Sequence[_Look]) -> SentenceVerdict:
        """The same verdict, or that sources disagree, where another one says the same but for what clashes."""
        for look in against:
            if look.clash and self._disagrees(text, look, look.clash):
                return replace(
                    supported,
                    verdict=Verdict.DISAGREEING,
                    reason=f"{supported.reason[:-1]}, but {self._number(look.position)} {look.clash.words}.",
                    rule=look.clash.kind,
                    contradicting=(look.position,),
                    said=(look.clash.said,),
                    found=(look.clash.found,),
                )
        return supported

    def _unsupported(self, index: int, looks: Sequence[_Look]) -> SentenceVerdict:
        for look in looks:
            if look.missing and look.support > 0:
                left_out = look.missing.text
                reason = (
                    f"{self._number(look.position)} says it under a condition that the answer leaves out: “{left_out}”."
                )
                return SentenceVerdict(index, Verdict.UNSUPPORTED, reason, "condition")
        if not looks:
            return SentenceVerdict(index, Verdict.UNSUPPORTED, "No source sentence says this.", "nothing")
        nearest = max(looks, key=lambda look: look.evidence.cosine)
        reason = f"No source sentence says this; the nearest is in {self._number(nearest.position)}."
        return SentenceVerdict(index, Verdict.UNSUPPORTED, reason, "nothing")

    def _look(self, text: str, n: int, entailment: float, contradiction: float, table: Table) -> _Look:
        said, found, headings = read(text), self._readings[n], self._headings[n]
        cover, cosine = (values[n] for values in self._similarities(text))
        forth, back = table.get((self.premises[n].text, text)), table.get((text, self.premises[n].text))
        entailed = forth.entailment if forth else entailment
        evidence = Evidence(
            entailment=entailed,
            contradiction=forth.contradiction if forth else contradiction,
            backwards=back.entailment if back else entailed,
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
            is_opposed=opposed(said, found),
        )
        clash = next(clashes(said, found), None) or foreign_name(said, found, headings.stems)
        believed = clash if clash and clashes_on_subject(clash, evidence) else None
        missing = dropped_scope(said, found) or widened(said, found)
        return _Look(
            n, evidence, support(evidence, self._weights), believed, bool(believed) or contradicts(evidence), missing
        )

    def _backs(self, look: _Look) -> bool:
        believed = (look.support > 0 or is_clear(look.evidence)) and not look.missing and not look.contradicts
        return believed and not is_doubtful(look.evidence)

    def _disagrees(self, text: str, look: _Look, clash: Clash) -> bool:
        """Whether a source sentence says the same but for one number or date: a finding of its own.

        Another name or party makes it another rule: regulations say much of several firms in nearly the same words.
        """
        if clash.kind in {"entity", "party"}:
            return False
        said = read(text).content - read(clash.said.text).stems
        found = self._readings[look.position].content - read(clash.found.text).stems
        alike = len(said & found) >= SAME * max(len(said), len(found), 1)
        return alike and look.evidence.cosine >= NEARLY_EQUAL

    # What is looked at ----------------------------------------------------------------------------------------------

    def _candidates(self, text: str) -> list[int]:
        """Positions of the source sentences that are looked at: the most similar ones that can be read."""
        if not self._readable or not read(text).words:
            return []
        cover, cosine = self._similarities(text)
        return sorted(self._readable, key=lambda n: -(cover[n] + cosine[n]))[:LOOKED_AT]

    def _similarities(self, text: str) -> tuple[list[float], list[float]]:
        """For each source sentence the cover and the cosine."""
        if text not in self._similar:
            cover = covers(read(text), self._known)
            cosine = [0.35 + 0.6 * share for share in cover]
            if self._similarity:
                near = sorted(range(len(cover)), key=lambda n: -cover[n])[:COMPARED]
                values = self._similarity(text, [self.premises[n].text for n in near])
                cosine = [0.0] * len(cover)
                for n, value in zip(near, values, strict=True):
                    cosine[n] = float(value)
            self._similar[text] = cover, cosine
        return self._similar[text]

    def _number(self, n: int) -> str:
        return f"[{self.premises[n].passage_index + 1}]"

    def _unread(self, text: str) -> bool:
        return self._language(text) != ENGLISH

    def _language(self, text: str) -> str:
        """The language of an answer sentence; that of the sources where none of them can be read."""
        own = language_of(text)
        if own != ENGLISH or self._readable or not self.premises:
            return own
        return self._languages[self.premises[0].passage_index]

    # Obligations ----------------------------------------------------------------------------------------------------

    def obligation(
        self,
        index: int,
        obligation: Premise,
        said: Sequence[tuple[int, AnswerSentence]],
        entailment: Sequence[float],
    ) -> ObligationVerdict:
        """Whether the answer tells of this obligation; see `ragqa.scoring.verdicts.obligations.cover_of`."""
        readable = self._languages[obligation.passage_index] == ENGLISH
        return cover_of(index, obligation, said, entailment, self._coverage_threshold, readable=readable)


SAME = 0.9  # share of words from which two sentences say the same of the same thing but for what clashes
NEARLY_EQUAL = 0.85  # cosine likewise
CLEAR = 1.0  # support from which a source sentence outweighs others that say otherwise


def _outweighs(best: _Look, against: Sequence[_Look]) -> bool:
    """Whether a source sentence clearly says it, numbers and all, and is nearer than any that says otherwise."""
    nearest = max(look.evidence.cosine + look.evidence.cover for look in against)
    is_nearer = best.evidence.cosine + best.evidence.cover >= nearest
    is_sure = best.support >= CLEAR or is_clear(best.evidence)
    return is_sure and is_nearer and not best.evidence.lacks_numbers


def _weight(look: _Look) -> tuple[bool, float]:
    return look.clash is not None, look.evidence.contradiction + look.evidence.cosine


def judged(
    breakdown: Breakdown, judge: Judge, table: Table | None = None, made: Mapping[int, SentenceVerdict] | None = None
) -> Breakdown:
    """The breakdown with the verdicts on its sentences and obligations; its numbers stay as they are.

    ``made`` are verdicts on sentences, by index, that stand already: from the same source sentences and probabilities.
    """
    made = made or {}
    said = [(n, breakdown.sentences[n].sentence) for n in breakdown.looked_at]
    entailing, contradicting = breakdown.entailment_matrix, breakdown.contradiction_matrix
    return replace(
        breakdown,
        verdicts=tuple(
            made.get(score.index)
            or judge.sentence(
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

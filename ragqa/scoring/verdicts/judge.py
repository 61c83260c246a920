"""Judges an answer against its sources: by quotation, or by what the verifier reads in the nearest windows.

It turns probabilities into verdicts, calls no NLI model and leaves RePASs unchanged. A sentence quoted word for word
is supported and *quoted*. A sentence that repeats a source except for a number or date is contradicted by it. For all
others the verifier's probabilities on a few windows decide, by calibrated weights (`ragqa.scoring.verdicts.belief`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ragqa.english.clauses import Clause, clauses
from ragqa.english.reading import read
from ragqa.english.words import ENGLISH, language_of
from ragqa.scoring.strength import strength_of
from ragqa.scoring.verdicts import RULES_VERSION
from ragqa.scoring.verdicts.belief import Belief, Look, belief, calibration_of
from ragqa.scoring.verdicts.copies import Clash, Quotations, clash_of, edited
from ragqa.scoring.verdicts.obligations import ReadPart, Said, cover_of, parts_read, quoted_in, repeated
from ragqa.scoring.verdicts.windows import Similarity, Window, Windows
from ragqa.settings.scoring import ScoringConfig
from ragqa.types import AnswerSentence, Passage, Span
from ragqa.types.scores import (
    Breakdown,
    Cover,
    NliProbabilities,
    ObligationScore,
    ObligationVerdict,
    Premise,
    SentenceVerdict,
    Strength,
    Verdict,
)

Table = Mapping[tuple[str, str], NliProbabilities]
STANDS = 0.5  # P(entailment), or 1 - P(contradiction), of a clause that is not the one that fails
SAME = 0.9  # share of words in common from which two sentences say the same except for the clash


class Judge:
    """Judges the sentences of one answer against the source sentences of its passages. Create one for each scoring."""

    def __init__(
        self,
        premises: Sequence[Premise],
        passages: Sequence[Passage],
        config: ScoringConfig,
        similarity: Similarity | None = None,
    ) -> None:
        """``premises`` are the source sentences of ``passages`` (kept, best first); ``similarity``: see `Windows`."""
        self.premises = premises
        self._threshold = config.verdict_threshold
        self._calibration = calibration_of(config.verdict_model)
        self._languages = [language_of(passage.text) for passage in passages]
        self._unreadable = frozenset(
            n for n, premise in enumerate(premises) if self._languages[premise.passage_index] != ENGLISH
        )
        self._similarity = similarity
        self._windows = Windows(premises, passages, similarity)
        self._parts_of: dict[tuple[str, tuple[str, ...]], list[ReadPart]] = {}
        self._verdicts: dict[str, SentenceVerdict] = {}  # by text of the sentence
        self._quotations = Quotations(premises)

    # Sentences ------------------------------------------------------------------------------------------------------

    def second_looks(self, sentence: AnswerSentence) -> list[tuple[str, str]]:
        """The pairs that the verifier reads for this sentence's verdict, in both directions; empty if it needs none."""
        if self._quoted_or_unread(0, sentence.text):
            return []
        windows = self._of(sentence.text)
        forth = [(window.text, sentence.text) for window in windows]
        forth += [(_widest(windows).text, clause.text) for clause in _clauses(sentence.text) if windows]
        return forth + [(sentence.text, window.evidence) for window in windows]

    def looks(self, text: str, table: Table) -> list[Look]:
        """The verifier's results for the windows of this sentence; empty for a quotation or another language."""
        if self._quoted_or_unread(0, text):
            return []
        return [self._look(window, table[window.text, text], table[text, window.evidence]) for window in self._of(text)]

    def sentence(
        self,
        index: int,
        sentence: AnswerSentence,
        entailment: Sequence[float],
        contradiction: Sequence[float],
        table: Table,
    ) -> SentenceVerdict:
        """The verdict on one answer sentence.

        ``table`` holds the results of its `second_looks`. ``entailment`` and ``contradiction`` are raw, one per source
        sentence. They do not affect the verdict; where the verdict rejects them, ``doubted`` names the source sentence.
        """
        made = replace(self._verdict_of(sentence.text, table), index=index)
        doubted = tuple(
            n
            for n in range(len(self.premises))
            if (entailment[n] >= self._threshold and n not in made.supporting)
            or (contradiction[n] >= self._threshold and n not in made.contradicting)
        )
        return replace(made, doubted=doubted)

    def so_far(self, index: int, sentence: AnswerSentence, entailment: Sequence[float]) -> SentenceVerdict:
        """A provisional verdict while pairs are still unknown: by quotation, or by clear raw entailment."""
        at_once = self._quoted_or_unread(index, sentence.text)
        if at_once:
            return at_once
        best = max(range(len(entailment)), key=lambda n: entailment[n], default=None)
        if best is not None and entailment[best] >= self._threshold:
            reason = f"So far {self._number(best)} supports this (entailment {entailment[best]:.2f})."
            return SentenceVerdict(index, Verdict.SUPPORTED, reason, "entailment", (best,))
        return SentenceVerdict(index, Verdict.UNSUPPORTED, "So far no source sentence says this.", "nothing")

    def _verdict_of(self, text: str, table: Table) -> SentenceVerdict:
        """The verdict on a sentence whose looks are all known, computed once."""
        if text not in self._verdicts:
            self._verdicts[text] = self._judged(0, text, table)
        return self._verdicts[text]

    def _judged(self, index: int, text: str, table: Table) -> SentenceVerdict:
        at_once, quotation = self._quoted_or_unread(index, text), self._quotations.of(text)
        if at_once:
            return self._unless_disagreeing(at_once, text, quotation.positions) if quotation else at_once
        windows = self._of(text)
        if not windows:
            return SentenceVerdict(index, Verdict.UNSUPPORTED, "No source sentence says this.", "nothing")
        looks = self.looks(text, table)
        found = belief(looks, self._calibration)
        supporting = _supporting(windows, looks, found) if found.verdict is Verdict.SUPPORTED else ()
        clash = self._edited(text, supporting)
        if clash:
            return self._clashing(index, *clash)
        failing = None if supporting else _failing(text, _widest(windows).text, found.verdict, table)
        made = self._believed(text, index, windows, looks, found, supporting, failing)
        return self._unless_disagreeing(made, text, made.supporting) if supporting else made

    def _believed(
        self,
        text: str,
        index: int,
        windows: Sequence[Window],
        looks: Sequence[Look],
        found: Belief,
        supporting: tuple[int, ...],
        failing: Clause | None,
    ) -> SentenceVerdict:
        """The verdict of the belief; the reason names the clause that fails, if it is the only one."""
        against = found.verdict is Verdict.CONTRADICTED
        n = found.deciding
        place = windows[n].positions[0]
        words = failing and f"“{failing.span.text}”"
        said, source = read(text), read(self.premises[place].text)
        clash = clash_of(said, source)
        otherwise = f"says otherwise than {words}" if words else "is on the same matter and says otherwise"
        reason = {
            Verdict.SUPPORTED: f"{self._number(place)} says the same in other words",
            Verdict.CONTRADICTED: f"{self._number(place)} {clash.words if clash else otherwise}",
        }.get(found.verdict, f"No source sentence says {words or 'this'}")
        unsure = "; not sure" if found.unsure else ""
        is_far = found.verdict is Verdict.UNSUPPORTED and not words
        nearest = f" The nearest: {self._number(windows[0].positions[0])}." if is_far else ""
        return SentenceVerdict(
            index,
            found.verdict,
            f"{reason} (probability {found.probability:.2f}{unsure}).{nearest}",
            {Verdict.SUPPORTED: "entailment", Verdict.CONTRADICTED: "contradiction"}.get(found.verdict, "nothing"),
            supporting,
            (place,) if against else (),
            said=(failing.span,) if failing else (),
            probability=found.probability,
            unsure=found.unsure,
            evidence=windows[n].evidence,
        )

    def _clashing(self, index: int, place: int, clash: Clash) -> SentenceVerdict:
        reason = f"{self._number(place)} {clash.words}."
        return SentenceVerdict(
            index,
            Verdict.CONTRADICTED,
            reason,
            clash.kind,
            contradicting=(place,),
            said=(clash.said,),
            found=(clash.found,),
            evidence=self.premises[place].text,
        )

    def _edited(self, text: str, supporting: Sequence[int]) -> tuple[int, Clash] | None:
        """A source sentence that this repeats except for a number or date, unless a supporting one has that too."""
        said = read(text)
        for window in self._of(text):
            place = window.positions[0]
            clash = edited(said, read(self.premises[place].text))
            if clash and not any(n != place and _has(self.premises[n].text, clash) for n in supporting):
                return place, clash
        return None

    def _quoted_or_unread(self, index: int, text: str) -> SentenceVerdict | None:
        """A verdict without probabilities: a quotation is supported; a language that no model reads has no verdict."""
        quotation = self._quotations.of(text)
        if quotation:
            place = quotation.positions[0]
            reason = quotation.part.format(self._number(place))
            return SentenceVerdict(
                index,
                Verdict.SUPPORTED,
                reason,
                "quotation",
                quotation.positions,
                quoted=True,
                evidence=self.premises[place].text,
            )
        if not self._unread(text):
            return None
        reason = f"The model cannot read this language ({self._language(text)}); only a word-for-word quotation counts."
        return SentenceVerdict(index, Verdict.NONE, reason, "language")

    def _unless_disagreeing(self, supported: SentenceVerdict, text: str, backing: Sequence[int]) -> SentenceVerdict:
        """The same verdict, or *sources disagree* if another passage says the same except for a number or date.

        Sentences of the same passage may differ in a number, as those of a list do.
        """
        said, own = read(text), {self.premises[n].passage_index for n in backing}
        for window in self._windows.of(text, self._unreadable | frozenset(backing)):
            place = window.positions[0]
            if self.premises[place].passage_index in own:
                continue
            clash = edited(said, read(self.premises[place].text), SAME)
            if clash:
                return replace(
                    supported,
                    verdict=Verdict.DISAGREEING,
                    reason=f"{supported.reason[:-1]}, but {self._number(place)} {clash.words}.",
                    rule=clash.kind,
                    contradicting=(place,),
                    said=(clash.said,),
                    found=(clash.found,),
                )
        return supported

    def _look(self, window: Window, said: NliProbabilities, back: NliProbabilities) -> Look:
        return Look(said, back, window.near, self.premises[window.positions[0]].passage_index, window.evidence)

    def _of(self, text: str) -> tuple[Window, ...]:
        return self._windows.of(text, self._unreadable)

    def _number(self, n: int) -> str:
        return f"[{self.premises[n].passage_index + 1}]"

    def _unread(self, text: str) -> bool:
        return self._language(text) != ENGLISH

    def _language(self, text: str) -> str:
        """The language of an answer sentence, or of the sources if none of them can be read."""
        own = language_of(text)
        if own != ENGLISH or len(self._unreadable) < len(self.premises) or not self.premises:
            return own
        return self._languages[self.premises[0].passage_index]

    # Obligations ----------------------------------------------------------------------------------------------------

    def obligation_looks(self, obligation: Premise, said: Said) -> list[tuple[str, str]]:
        """The pairs that the verifier reads for this obligation, against the answer sentences ``said``.

        They include the pairs of the sentences' own verdicts: a sentence that an obligation contradicts is in conflict
        with it.
        """
        if quoted_in(obligation, said) is not None or not self._is_readable(obligation):
            return []
        own = [(part.evidence, part.text) for part in self._parts(obligation, said) if part.evidence]
        return own + [pair for _, sentence in said for pair in self.second_looks(sentence)]

    def obligation(self, index: int, obligation: Premise, said: Said, table: Table) -> ObligationVerdict:
        """How strongly this obligation binds and whether the answer covers it; ``table`` holds its looks."""
        return replace(self._cover(index, obligation, said, table), strength=self._strength(obligation))

    def unread(self, index: int, obligation: Premise, said: Said) -> ObligationVerdict | None:
        """The verdict that needs no reading: stated word for word, or in another language; None if there is none."""
        place = quoted_in(obligation, said)
        if place is not None:
            return ObligationVerdict(
                index, Cover.COVERED, f"Sentence {place + 1} says it word for word.", "quotation", place
            )
        if not self._is_readable(obligation):
            reason = "The model cannot read this language, and no sentence says it word for word."
            return ObligationVerdict(index, Cover.NOT_COVERED, reason, "language")
        return None

    def _cover(self, index: int, obligation: Premise, said: Said, table: Table) -> ObligationVerdict:
        if known := self.unread(index, obligation, said):
            return known
        found = cover_of(index, self._parts(obligation, said), table)
        if found.cover is not Cover.IN_CONFLICT and (clash := self._denied(index, obligation, said, table)):
            return clash
        verdicts = ((n, one.text, self._verdict_of(one.text, table)) for n, one in said)
        supported = [(n, text, self._of(text)) for n, text, verdict in verdicts if verdict.rule == "entailment"]
        own = {(n,) for n, premise in enumerate(self.premises) if premise.text == obligation.text}
        return repeated(found, obligation, supported, own, table)

    def _denied(self, index: int, obligation: Premise, said: Said, table: Table) -> ObligationVerdict | None:
        """The verdict *in conflict* if this obligation contradicts a sentence of the answer, else None."""
        for n, sentence in said:
            verdict = self._verdict_of(sentence.text, table)
            if verdict.verdict is Verdict.CONTRADICTED and any(
                self.premises[place].text == obligation.text for place in verdict.contradicting
            ):
                words = verdict.found or (Span(obligation.text, 0, len(obligation.text)),)
                reason = f"Sentence {n + 1} contradicts “{words[0].text.rstrip('.')}”."
                return ObligationVerdict(index, Cover.IN_CONFLICT, reason, verdict.rule, n, words)
        return None

    def obligation_so_far(self, score: ObligationScore) -> ObligationVerdict:
        """A provisional verdict by the obligation coverage of RePASs, while pairs are still unknown."""
        strength = self._strength(score.obligation)
        if score.covered and score.answer_index is not None:
            reason = f"So far sentence {score.answer_index + 1} says this (entailment {score.best:.2f})."
            return ObligationVerdict(
                score.index, Cover.COVERED, reason, "entailment", score.answer_index, strength=strength
            )
        reason = "So far no sentence says this."
        return ObligationVerdict(score.index, Cover.NOT_COVERED, reason, "nothing", strength=strength)

    def _parts(self, obligation: Premise, said: Said) -> list[ReadPart]:
        key = obligation.text, tuple(sentence.text for _, sentence in said)
        if key not in self._parts_of:
            self._parts_of[key] = parts_read(obligation, said, self._similarity)
        return self._parts_of[key]

    def _strength(self, obligation: Premise) -> Strength | None:
        return strength_of(obligation.text) if self._is_readable(obligation) else None

    def _is_readable(self, obligation: Premise) -> bool:
        return self._languages[obligation.passage_index] == ENGLISH


def _clauses(text: str) -> tuple[Clause, ...]:
    """The clauses of a sentence that has several."""
    found = clauses(text)
    return found if len(found) > 1 else ()


def _widest(windows: Sequence[Window]) -> Window:
    """The longest window around the nearest sentence."""
    return max((one for one in windows if one.positions[0] == windows[0].positions[0]), key=lambda one: len(one.text))


def _failing(text: str, evidence: str, verdict: Verdict, table: Table) -> Clause | None:
    """The only clause that fails where the others stand: one not entailed, or, of a contradicted sentence, denied."""
    said = {one: table[evidence, one.text] for one in _clauses(text)}
    if verdict is Verdict.CONTRADICTED:
        failing = [one for one, found in said.items() if found.contradiction > STANDS]
    else:
        failing = [one for one, found in said.items() if found.entailment < STANDS]
    return failing[0] if len(failing) == 1 and len(said) > 1 else None


def _supporting(windows: Sequence[Window], looks: Sequence[Look], found: Belief) -> tuple[int, ...]:
    """The nearest sentence of each window in the supporting passages, the deciding one first."""
    backing = zip(windows, looks, strict=True)
    others = (window.positions[0] for window, look in backing if look.passage in found.supporting)
    return tuple(dict.fromkeys((windows[found.deciding].positions[0], *others)))


def _has(text: str, clash: Clash) -> bool:
    """Whether this text contains the answer's side of a clash."""
    return set(read(clash.said.text).plain) <= set(read(text).plain)


def judged(
    breakdown: Breakdown, judge: Judge, table: Table, made: Mapping[int, SentenceVerdict] | None = None
) -> Breakdown:
    """The breakdown with the verdicts on its sentences and obligations; its numbers do not change.

    ``made`` are verdicts on sentences, by index, that are already known for the same source sentences and
    probabilities.
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
            judge.obligation(score.index, score.obligation, said, table) for score in breakdown.obligations
        ),
        verdict_rules=RULES_VERSION,
    )

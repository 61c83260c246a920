"""Labelled pairs made from the sentences of documents: what no NLI data set says about rules, numbers and quotations.

Each maker changes one sentence in a way whose label is known. Sentences come from the user's documents at training
time; none is stored here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from ragqa.training.nli_data import LABELS, LabelledPair
from ragqa.training.sentence_edits import (
    another_number,
    another_word,
    one_item,
    opposite_duty,
    other_duty_word,
    without_aside,
    without_leading_clause,
)

CONTRADICTION, ENTAILMENT, NEUTRAL = (LABELS.index(label) for label in LABELS)

OPENINGS = (
    "Additionally, {}",
    "In summary, {}",
    "According to the rules, {}",
    "The passages state that {}",
    "Under the applicable rules, {}",
    "Furthermore, {}",
    "Specifically, {}",
    "It is stated that {}",
    "To comply, note that {}",
    "Yes, {}",
)
DENIALS = (
    "The provided passages do not state that {}",
    "The passages do not specify whether {}",
    "There is no information in the passages on whether {}",
    "The provided material does not say that {}",
    "It is not the case that {}",
    "Nothing in the rules says that {}",
)
MIN_WORDS, MAX_WORDS = 6, 160
MAX_CHANGED_WORDS = 55  # of a sentence with one word changed: a pair cut to its first tokens must still show it


def made_pairs(documents: Sequence[Sequence[str]], n: int, seed: int) -> list[LabelledPair]:
    """About ``n`` pairs from these documents, each a sequence of sentences in reading order.

    About half are entailed (quotations, rewordings, a sentence with its neighbours as premise, an item of a listing), a
    third contradicted (a number, a duty or a word changed, denials; beside a changed number the unchanged sentence, so
    that numbers must be read), the rest neutral: sentences of one document that do not bear on each other. More of
    those, or denials of what another sentence says as neutral, made the model blind to contradiction (agreement with
    the published C fell from .71 to .54).
    """
    usable = [[text for text in document if MIN_WORDS <= len(text.split()) <= MAX_WORDS] for document in documents]
    usable = [document for document in usable if len(document) >= 4]
    chance = random.Random(seed)
    sizes = [len(document) for document in usable]
    makers = [
        *((_same, 6), (_reworded, 12), (_beside, 12), (_listed, 14)),
        *((_number, 16), (_duty, 10), (_denial, 8), (_apart, 14)),
    ]
    made: dict[tuple[str, str], LabelledPair] = {}
    tries = 0
    while usable and len(made) < n and tries < 20 * n:
        tries += 1
        document = chance.choices(usable, sizes)[0]
        (maker,) = chance.choices([maker for maker, _ in makers], [weight for _, weight in makers])
        for pair in maker(document, chance):
            made.setdefault((pair.premise, pair.hypothesis), pair)
    return list(made.values())


def quoting_pairs(
    answers: Sequence[tuple[Sequence[str], Sequence[str]]], n: int, seed: int, least_shared: float = 0.75
) -> list[LabelledPair]:
    """At most ``n`` pairs from written answers, each (answer sentences, sentences of its own sources).

    An answer sentence is entailed by the source sentence that holds at least ``least_shared`` of its words (a weak
    label: nobody checked it); against a source sentence of another answer that shares little it is neutral.
    """
    chance = random.Random(seed)
    made = []
    for sentences, sources in answers:
        for sentence in sentences:
            if not sources or len(sentence.split()) < MIN_WORDS:
                continue
            best = max(sources, key=lambda source: _shared(sentence, source))
            if _shared(sentence, best) >= least_shared and not _numbers_differ(sentence, best):
                made.append(LabelledPair(best, sentence, ENTAILMENT, "made_quoting"))
            _, others = answers[chance.randrange(len(answers))]
            if others is not sources and others and chance.random() < 0.35:
                other = chance.choice(others)
                if _shared(sentence, other) < 0.4:
                    made.append(LabelledPair(other, sentence, NEUTRAL, "made_quoting"))
    chance.shuffle(made)
    return made[:n]


# Makers: (sentences of a document, chance) -> pairs -----------------------------------------------------------------


def _same(document: Sequence[str], chance: random.Random) -> Iterator[LabelledPair]:
    text = chance.choice(document)
    yield LabelledPair(text, text, ENTAILMENT, "made_same")


def _reworded(document: Sequence[str], chance: random.Random) -> Iterator[LabelledPair]:
    text = chance.choice(document)
    edits: list[Callable[[str, random.Random], str | None]] = [
        other_duty_word,
        without_aside,
        without_leading_clause,
        one_item,
        _with_opening,
    ]
    chance.shuffle(edits)
    changed = next((new for edit in edits if (new := edit(text, chance))), None)
    if changed:
        if chance.random() < 0.3:
            changed = _with_opening(changed, chance)
        yield LabelledPair(text, changed, ENTAILMENT, "made_reworded")


def _beside(document: Sequence[str], chance: random.Random) -> Iterator[LabelledPair]:
    """The premise is two or three sentences running on, as where a heading stands before a rule."""
    start = chance.randrange(len(document) - 1)
    run = document[start : start + chance.choice((2, 2, 3))]
    text = chance.choice(run)
    hypothesis = (other_duty_word(text, chance) or text) if chance.random() < 0.3 else text
    if sum(len(part.split()) for part in run) <= MAX_WORDS:
        yield LabelledPair(" ".join(run), hypothesis, ENTAILMENT, "made_beside")


def _number(document: Sequence[str], chance: random.Random) -> Iterator[LabelledPair]:
    text = chance.choice(document)
    changed = another_number(text, chance)
    if changed and len(text.split()) <= MAX_CHANGED_WORDS:
        yield LabelledPair(text, changed, CONTRADICTION, "made_number")
        yield LabelledPair(text, text, ENTAILMENT, "made_number")  # the same shape, unchanged: numbers must be read


def _duty(document: Sequence[str], chance: random.Random) -> Iterator[LabelledPair]:
    text = chance.choice(document)
    changed = opposite_duty(text, chance) if chance.random() < 0.75 else another_word(text, chance)
    if changed and len(text.split()) <= MAX_CHANGED_WORDS:
        premise, hypothesis = (text, changed) if chance.random() < 0.7 else (changed, text)
        yield LabelledPair(premise, hypothesis, CONTRADICTION, "made_duty")


def _listed(document: Sequence[str], chance: random.Random) -> Iterator[LabelledPair]:
    """One item of a long listing, wherever it stands, perhaps reworded."""
    listings = [text for text in document if ":" in text and "(" in text]
    if not listings:
        return
    text = chance.choice(listings)
    changed = one_item(text, chance)
    if changed:
        if chance.random() < 0.4:
            changed = other_duty_word(changed, chance) or changed
        if chance.random() < 0.3:
            changed = _with_opening(changed, chance)
        yield LabelledPair(text, changed, ENTAILMENT, "made_listed")


def _denial(document: Sequence[str], chance: random.Random) -> Iterator[LabelledPair]:
    """A denial ("The passages do not state that …") contradicts a premise that does state it."""
    text = chance.choice(document)
    if len(text.split()) <= MAX_CHANGED_WORDS:
        hypothesis = chance.choice(DENIALS).format(_inner(other_duty_word(text, chance) or text))
        yield LabelledPair(text, hypothesis, CONTRADICTION, "made_denial")


def _apart(document: Sequence[str], chance: random.Random) -> Iterator[LabelledPair]:
    """Two sentences of one document; in a quarter of the draws the one of eight that shares most words."""
    hypothesis = chance.choice(document)
    others = [text for text in chance.sample(document, min(8, len(document))) if _shared(hypothesis, text) < 0.6]
    if not others:
        return
    premise = max(others, key=lambda text: _shared(hypothesis, text)) if chance.random() < 0.25 else others[0]
    if chance.random() < 0.25:
        hypothesis = _with_opening(hypothesis, chance)
    yield LabelledPair(premise, hypothesis, NEUTRAL, "made_apart")


# Words --------------------------------------------------------------------------------------------------------------


def _with_opening(text: str, chance: random.Random) -> str:
    return chance.choice(OPENINGS).format(_inner(text))


def _inner(text: str) -> str:
    """The sentence as it stands after "that": its first letter small, unless the word is a name or an abbreviation."""
    first = text.split(maxsplit=1)[0]
    return text if len(first) > 1 and not first[1:].islower() else text[0].lower() + text[1:]


def _shared(hypothesis: str, premise: str) -> float:
    """Share of the hypothesis's words of four or more letters that the premise has, in [0, 1]."""
    words = {word for word in _words(hypothesis) if len(word) > 3}
    return len(words & set(_words(premise))) / len(words) if words else 0.0


def _numbers_differ(hypothesis: str, premise: str) -> bool:
    return bool({w for w in _words(hypothesis) if w[0].isdigit()} - set(_words(premise)))


def _words(text: str) -> list[str]:
    return [word.strip(".,;:()[]\"'“”‘’") for word in text.lower().split() if word.strip(".,;:()[]\"'“”‘’")]

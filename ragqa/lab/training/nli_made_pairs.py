"""Labelled pairs made from documents' sentences: rules, numbers and quotations that NLI data sets lack.

Each maker edits one sentence in a way whose effect on the meaning, and thus the label, is known. Sentences come from
the user's documents at training time; none is stored here.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence

from ragqa.evaluation.benchmarks.verdicts.edits import MONTH, MONTHS, NUMBER, RULE_BEFORE, SMALL, SMALL_WORD
from ragqa.lab.labelled import LABELS, LabelledPair

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
MAX_CHANGED_WORDS = 55  # of a sentence with a changed word, which must survive truncation


def made_pairs(documents: Sequence[Sequence[str]], n: int, seed: int) -> list[LabelledPair]:
    """About ``n`` pairs from these documents, each a sequence of sentences in reading order.

    About half are entailed: quotations, rewordings, a sentence with its neighbours as premise, an item of a list. A
    third are contradicted: a changed number, duty or word, and denials. A changed number comes with the unchanged
    sentence, so that numbers must be read. The rest are neutral: sentences without a limit of the premise ("only",
    "unless"), and unrelated sentences of one document. More unrelated ones, or denials of another sentence as neutral,
    made the model miss contradictions (agreement with the published C fell from .71 to .54).
    """
    usable = [[text for text in document if MIN_WORDS <= len(text.split()) <= MAX_WORDS] for document in documents]
    usable = [document for document in usable if len(document) >= 4]
    chance = random.Random(seed)
    sizes = [len(document) for document in usable]
    makers = [
        *((_same, 6), (_reworded, 12), (_beside, 12), (_listed, 14)),
        *((_number, 16), (_duty, 10), (_denial, 8), (_apart, 14), (_unlimited, 40)),
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

    An answer sentence is entailed by the source sentence that has at least ``least_shared`` of its words (a weak,
    unchecked label). Against a source sentence of another answer with few shared words it is neutral.
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
    """The premise is two or three consecutive sentences, such as a heading before a rule."""
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
        yield LabelledPair(text, text, ENTAILMENT, "made_number")  # unchanged, so that numbers must be read


def _duty(document: Sequence[str], chance: random.Random) -> Iterator[LabelledPair]:
    text = chance.choice(document)
    changed = opposite_duty(text, chance) if chance.random() < 0.75 else another_word(text, chance)
    if changed and len(text.split()) <= MAX_CHANGED_WORDS:
        premise, hypothesis = (text, changed) if chance.random() < 0.7 else (changed, text)
        yield LabelledPair(premise, hypothesis, CONTRADICTION, "made_duty")


def _listed(document: Sequence[str], chance: random.Random) -> Iterator[LabelledPair]:
    """One item of a long list, perhaps reworded."""
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


def _unlimited(document: Sequence[str], chance: random.Random) -> Iterator[LabelledPair]:
    """A rule without its exception, condition or "only" says more than the premise; with it, the same."""
    text = chance.choice(document)
    changed = without_limit(text)
    if changed and len(text.split()) <= MAX_CHANGED_WORDS:
        yield LabelledPair(text, changed, NEUTRAL, "made_unlimited")
        yield LabelledPair(text, other_duty_word(text, chance) or text, ENTAILMENT, "made_unlimited")
        yield LabelledPair(changed, text, NEUTRAL if " only " in f" {text} " else ENTAILMENT, "made_unlimited")


def _apart(document: Sequence[str], chance: random.Random) -> Iterator[LabelledPair]:
    """Two sentences of one document; in a quarter of the cases, the most similar one of eight."""
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
    """The sentence as it follows "that": with a lower-case first letter, unless its first word is an abbreviation."""
    first = text.split(maxsplit=1)[0]
    return text if len(first) > 1 and not first[1:].islower() else text[0].lower() + text[1:]


def _shared(hypothesis: str, premise: str) -> float:
    """The share of the hypothesis's words of four or more letters that the premise has, in [0, 1]."""
    words = {word for word in _words(hypothesis) if len(word) > 3}
    return len(words & set(_words(premise))) / len(words) if words else 0.0


def _numbers_differ(hypothesis: str, premise: str) -> bool:
    return bool({w for w in _words(hypothesis) if w[0].isdigit()} - set(_words(premise)))


def _words(text: str) -> list[str]:
    return [word.strip(".,;:()[]\"'“”‘’") for word in text.lower().split() if word.strip(".,;:()[]\"'“”‘’")]


# Edits: (sentence, chance) -> the new sentence, or None if there is nothing to change ----------------------------

# (pattern, replacement): the duty becomes its opposite or is lifted.
_OPPOSITES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"\b(must|shall) not\b", ("may", "must", "is free to")),
    (r"\bmay not\b", ("may", "must")),
    (r"\bmay only\b", ("may always", "need not only")),
    (r"\b(must|shall)\b", ("must not", "need not", "may choose not to", "is not required to", "shall not")),
    (r"\bmay\b", ("may not", "must not", "must never")),
    (r"\bis required to\b", ("is not required to", "is forbidden to")),
    (r"\bare required to\b", ("are not required to", "are forbidden to")),
    (r"\bis prohibited\b", ("is permitted", "is allowed")),
    (r"\bare prohibited from\b", ("are permitted to consider", "are allowed to go on")),
    (r"\bis permitted\b", ("is prohibited", "is not permitted")),
    (r"\bshould\b", ("should not", "need not")),
    (r"\bwill\b", ("will not", "will never")),
    (r"\b(is|was|are|were|has|have|had|can|could)\b(?! not| no\b)", (r"\1 not",)),
)
# (pattern, words that mean the same)
_DUTY_WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"\bmust not\b", ("shall not", "is prohibited from being allowed to", "is not allowed to")),
    (r"\b(must|shall)\b(?! not)", ("is required to", "has to", "is obliged to", "shall", "must")),
    (r"\bis required to\b", ("must", "has to", "is obliged to")),
    (r"\bmay\b(?! not| only)", ("is permitted to", "can", "is allowed to")),
    (r"\bshould\b(?! not)", ("ought to", "is expected to")),
    (r"\bin accordance with\b", ("according to", "in line with", "under")),
    (r"\bprior to\b", ("before",)),
    (r"\bensure that\b", ("make sure that", "see to it that")),
    (r"\bin respect of\b", ("regarding", "concerning")),
    (r"\bcommence\b", ("begin", "start")),
    (r"\bpromptly\b", ("without delay", "quickly")),
    (r"\bat least\b", ("no fewer than", "a minimum of")),
)
_WORDS_APART = [
    tuple(pair.split("/"))
    for pair in (
        "before/after, increase/decrease, more/less, higher/lower, above/below, minimum/maximum, at least/at most, "
        "all/none of the, each/no, first/last, always/never, daily/monthly, annually/quarterly, annual/quarterly, "
        "immediately/within one year, written/oral, direct/indirect, public/confidential, include/exclude, "
        "includes/excludes, accept/reject, inside/outside, internal/external, buyer/seller, born/buried, "
        "largest/smallest, north/south, east/west, won/lost, older/younger, both/neither"
    ).split(", ")
]
_UNIT = re.compile(r"\b(days?|weeks?|months?|years?|hours?|minutes?|million|billion|thousand)\b")
_UNITS = ("day", "week", "month", "year", "hour")
_ASIDE = re.compile(
    r"\s*\((?![a-z0-9]{1,4}\))[^()]{3,120}\)|,\s(?:where|if|as) (?:applicable|appropriate|relevant|necessary),"
)
_LEADING = re.compile(
    r"^(?:In accordance with|For the purposes? of|In addition to|Pursuant to|In relation to|Under|Without limiting|"
    r"In respect of|Subject to)\b[^,:;]{4,120},\s+(?=[a-zA-Z])"
)
_LIMIT = re.compile(  # up to the end of the sentence
    r",? (?:unless|except(?: where| that| for| if)?|provided that|only (?:if|where|when|after)|if|save (?:that|where))"
    r" [^.:;]{12,160}\.$"
)
_ITEM_MARK = re.compile(r"(?:^|[\s;])\((?:[a-z]{1,2}|[ivx]{1,5}|\d{1,2})\)\s*")


def another_number(text: str, chance: random.Random) -> str | None:
    """Changes one number, amount, month or unit of time, but no number that names a rule."""
    found = [match for match in NUMBER.finditer(text) if not RULE_BEFORE.search(text[: match.start()])]
    choices = [*found, *SMALL_WORD.finditer(text), *MONTH.finditer(text), *_UNIT.finditer(text)]
    if not choices:
        return None
    match = chance.choice(choices)
    return text[: match.start()] + _changed(match.group(), chance) + text[match.end() :]


def _changed(found: str, chance: random.Random) -> str:
    small = found.lower()
    if small in SMALL:
        other = chance.choice([word for word in SMALL if word != small])
        return other.capitalize() if found[0].isupper() else other
    if found in MONTHS:
        return chance.choice([month for month in MONTHS if month != found])
    singular = small.rstrip("s")
    if singular in _UNITS:
        return chance.choice([unit for unit in _UNITS if unit != singular]) + ("s" if small.endswith("s") else "")
    if small in ("million", "billion", "thousand", "minute", "minutes"):
        return {"million": "billion", "billion": "million", "thousand": "million"}.get(small, "years")
    whole, dot, rest = found.partition(".")
    value = int(whole.replace(",", ""))
    if 1000 <= value <= 2100 and "," not in whole:  # a year
        return str(value + chance.choice((-40, -12, -7, -3, -1, 1, 2, 5, 11, 30)))
    others = [value * 2, value * 3, value * 10, value + 1, value + 5, max(0, value - 1), value // 2, value + 12]
    new = chance.choice([other for other in others if other != value])
    return (f"{new:,}" if "," in whole else str(new)) + dot + rest


def opposite_duty(text: str, chance: random.Random) -> str | None:
    """Turns the duty, permission or plain statement into its opposite: "must" into "must not" or "need not"."""
    for pattern, words in _OPPOSITES:
        match = re.search(pattern, text)
        if match:
            return text[: match.start()] + match.expand(chance.choice(words)) + text[match.end() :]
    return None


def another_word(text: str, chance: random.Random) -> str | None:
    """Replaces one word by one that excludes it: "before" by "after", "each" by "no"."""
    pairs = [*_WORDS_APART, *((b, a) for a, b in _WORDS_APART)]
    chance.shuffle(pairs)
    for word, other in pairs:
        match = re.search(rf"\b{word}\b", text, re.I)
        if match:
            new = other.capitalize() if match.group()[0].isupper() else other
            return text[: match.start()] + new + text[match.end() :]
    return None


def other_duty_word(text: str, chance: random.Random) -> str | None:
    """Replaces one or two phrases by others of the same meaning: "must" by "is required to"."""
    changed, n_changed = text, 0
    patterns = list(_DUTY_WORDS)
    chance.shuffle(patterns)
    for pattern, words in patterns:
        match = re.search(pattern, changed)
        if match and n_changed < 2:
            new = chance.choice([word for word in words if word != match.group()] or [match.group()])
            changed, n_changed = changed[: match.start()] + new + changed[match.end() :], n_changed + 1
    return changed if changed != text else None


def without_aside(text: str, chance: random.Random) -> str | None:
    """The sentence without a remark in brackets, or an ", if applicable,"."""
    asides = list(_ASIDE.finditer(text))
    if not asides:
        return None
    match = chance.choice(asides)
    return (text[: match.start()] + text[match.end() :]).strip()


def without_leading_clause(text: str, chance: random.Random) -> str | None:
    """The sentence without a leading clause such as "In accordance with Rule 3,"."""
    match = _LEADING.match(text)
    rest = text[match.end() :] if match else ""
    return rest[0].upper() + rest[1:] if len(rest.split()) > 5 else None


def without_limit(text: str) -> str | None:
    """The sentence without a final ", unless …", "provided that …" or "if …", or without its "only"."""
    match = _LIMIT.search(text)
    if match:
        rest = text[: match.start()].rstrip(" ,")
        return f"{rest}." if len(rest.split()) > 5 else None
    return (
        re.sub(r"\bonly (?=\w)", "", text, count=1) if re.search(r"\b(may|can|applies|apply) only \w", text) else None
    )


def one_item(text: str, chance: random.Random) -> str | None:
    """The list cut to one of its items: "must: (a) keep records; (b) report." as "must report."."""
    lead, colon, listing = text.partition(":")
    items = [item.strip(" \t\n;.,") for item in _ITEM_MARK.split(listing)[1:]]
    items = [re.sub(r"[;,]?\s*\b(and|or)$", "", item).strip(" ;,.") for item in items]
    alternatives = re.search(r"\b(either|one of|any of|whichever|unless|if|where)\b", lead) or re.search(
        r"\bor\s*\(", listing
    )
    if not colon or len(items) < 2 or alternatives or not 3 <= len(lead.split()) <= 60:
        return None
    item = chance.choice(items)
    if not 3 <= len(item.split()) <= 45 or ":" in item:
        return None
    shortened = re.sub(r"\s*,?\s*(?:all of )?(?:the|each of the) following(?: [a-z]+){0,3}$", "", lead.strip())
    return f"{shortened} {item}."

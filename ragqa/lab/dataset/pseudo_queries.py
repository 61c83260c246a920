"""Training questions for an encoder, made from a corpus alone: from its headings, definitions, duties and references.

They serve for a rulebook without real questions. As in the inverse cloze task (Lee et al. 2019,
https://aclanthology.org/P19-1612, section 3), the corpus supplies both sides: a text about a passage, and the passage.
No language model and no real question is used.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

from ragqa.corpus.questions import GoldQuestion
from ragqa.english.sentences import reads_as_heading, split_sentences
from ragqa.errors import CorpusError
from ragqa.types import Passage, Question

Kind = Literal["heading", "definition", "reference", "duty", "neighbour"]

SEPARATOR = " › "  # between the headings of a section
MOST_BENEATH = 12  # passages; a heading over more says too little about each
MOST_GOLD = 3  # passages that a text is paired with; its other passages are spared
SHORTEST, LONGEST = 6, 40  # words of a sentence that is used as a question
_NUMBER = re.compile(r"^\S*\d\S*\s+|^(?:Part|PART|Schedule|Chapter|APP|SECTION)\s+\S+\s+")
_CITED = re.compile(
    r"(?:(?:(?:referred to|set out|specified|prescribed|required) )?(?:in accordance with|for the purposes of|"
    r"pursuant to|subject to|in|under|by|of|with|to|on) )?(?P<book>\b[A-Z]{2,6} )?"
    r"\b(?:rule|section|chapter|paragraph)s? (?P<number>(?-i:[A-Z])?\d+(?:\.\d+)+)(?P<rest>(?:\(\w{1,4}\))*)"
    r"(?:(?:,| and| or| to)+ [A-Z]?\d[\d.]*(?:\(\w{1,4}\))*)*,?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PseudoQuery:
    """A text to search with, the ids of passages that it must find, and of those that it may find as well.

    ``gold`` holds 1 to 3 ids in the corpus's order. ``spared`` is disjoint from it: passages that the text is also
    about, or was taken from, which must not count as wrong answers.
    """

    text: str
    gold: tuple[str, ...]
    kind: Kind
    spared: frozenset[str] = frozenset()

    @property
    def question(self) -> GoldQuestion:
        """As a question with gold, for `ragqa.lab.training.retriever.gather_pairs`."""
        return GoldQuestion(Question(self.text), frozenset(self.gold))


def pseudo_queries(passages: Sequence[Passage], seed: int = 1) -> tuple[PseudoQuery, ...]:
    """All pseudo-queries of this corpus, by kind in the order of `Kind`, each in the order of the passages.

    ``heading``: a heading -> passages beneath it. ``definition``: "X means ..." -> "What is X?". ``reference``: a
    sentence that cites Rule 3.2.1, without the citation -> the passages of that rule. ``duty``: "A firm must ..." -> a
    question. ``neighbour``: the first sentence of a passage -> the next passage of its section. No text occurs twice in
    a kind; the same passages and ``seed`` (0 or more) give the same result. Raises CorpusError if nothing is found.
    """
    shown = [passage for passage in passages if not reads_as_heading(passage.text)]
    chance = random.Random(seed)
    found = [
        query
        for made in (
            _headings(shown, chance),
            _definitions(shown, chance),
            _references(shown),
            _duties(shown, chance),
            _neighbours(shown),
        )
        for query in _without_repeats(made)
    ]
    if not found:
        raise CorpusError(
            f"expected headings, definitions, references or duties in {len(passages):,} passages to make questions of, "
            "found none; name a file of questions with --questions"
        )
    return tuple(found)


def draw(queries: Sequence[PseudoQuery], n: int, seed: int = 1) -> tuple[PseudoQuery, ...]:
    """A random sample of at most ``n`` of them, in their order."""
    if n >= len(queries):
        return tuple(queries)
    chosen = random.Random(seed).sample(range(len(queries)), n)
    return tuple(queries[place] for place in sorted(chosen))


def counts_of(queries: Sequence[PseudoQuery]) -> dict[Kind, int]:
    """The number of each kind, 0 included, in the order of `Kind`."""
    counts = Counter(query.kind for query in queries)
    return {kind: counts[kind] for kind in get_args(Kind)}


def _without_repeats(queries: Iterator[PseudoQuery]) -> Iterator[PseudoQuery]:
    """The first query of each text; the gold of later ones is spared, because it answers the same text."""
    first: dict[str, PseudoQuery] = {}
    also: defaultdict[str, set[str]] = defaultdict(set)
    for query in queries:
        first.setdefault(query.text.lower(), query)
        also[query.text.lower()] |= {*query.gold, *query.spared}
    for key, query in first.items():
        yield PseudoQuery(query.text, query.gold, query.kind, frozenset(also[key] - set(query.gold)))


def _headings(passages: Sequence[Passage], chance: random.Random) -> Iterator[PseudoQuery]:
    beneath: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for passage in passages:
        if passage.section:
            beneath[passage.document_id, passage.section].append(passage.passage_id)
    paths = {key: [bare(part) for part in key[1].split(SEPARATOR)] for key in beneath}
    last = Counter(path[-1].lower() for path in paths.values())
    for key, ids in beneath.items():
        path = paths[key]
        alone = last[path[-1].lower()] == 1 and len(path[-1].split()) > 1
        text = path[-1] if alone else ", ".join(reversed(path[-2:]))  # "Application" needs the heading above it
        if len(ids) <= MOST_BENEATH and len(text.split()) > 1 and not text.endswith((":", "—")):
            yield _query(text, ids, "heading", chance)
    for passage in passages:
        if own := _own_heading(passage.text):
            yield PseudoQuery(own, (passage.passage_id,), "heading")


def _own_heading(text: str) -> str:
    """The heading at the beginning of a passage, on its own lines or as a sentence, of 2 to 24 words; else ""."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    above = []
    for line in lines[:-1]:
        if not reads_as_heading(line) or line.endswith((":", "—", "-")):
            break
        above.append(line.rstrip("."))
    if not above:
        first, dot, rest = lines[0].partition(". ") if lines else ("", "", "")
        is_heading = bool(dot) and len(rest.split()) > 3 and reads_as_heading(first) and first[:1].isupper()
        above = [first] if is_heading and not re.search(r"\d|\b(?:must|shall|may|is|are)\b", first) else []
    words = ", ".join(reversed(above[-2:]))
    return words if 2 <= len(words.split()) <= 24 else ""


def bare(heading: str) -> str:
    """A heading without its number: ``"APP6.A6.7 Market Risk"`` -> ``"Market Risk"``."""
    return _NUMBER.sub("", heading, count=1).strip() or heading


def _definitions(passages: Sequence[Passage], chance: random.Random) -> Iterator[PseudoQuery]:
    for passage in passages:
        for question in definition_questions(passage.text, chance):
            yield PseudoQuery(question, (passage.passage_id,), "definition")


def _references(passages: Sequence[Passage]) -> Iterator[PseudoQuery]:
    of_rule: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for passage in passages:
        for name in _names(passage.number):
            of_rule[passage.document_id, name].append(passage.passage_id)
    for passage in passages:
        for span in split_sentences(passage.text) if _CITED.search(passage.text) else ():
            sentence = " ".join(span.text.split())
            text = " ".join(_CITED.sub("", sentence).split()).replace(" .", ".").replace(" ,", ",")
            if not SHORTEST <= len(text.split()) <= LONGEST:
                continue
            for cited in _CITED.finditer(sentence):
                exact = of_rule.get((passage.document_id, cited["number"] + cited["rest"]))
                ids = [] if cited["book"] else exact or of_rule.get((passage.document_id, cited["number"]), [])
                gold = tuple(name for name in ids if name != passage.passage_id)[:MOST_GOLD]
                if gold:
                    spared = {*ids, passage.passage_id} - set(gold)
                    yield PseudoQuery(text, gold, "reference", frozenset(spared))
                    break  # one rule per sentence: it says too little about a second


def _names(number: str) -> tuple[str, ...]:
    """The names by which a rule is cited: ``"3.2.1.(4)"`` -> ``"3.2.1"`` and ``"3.2.1(4)"``; guidance is no rule."""
    if "uidance" in number:
        return ()
    name = number.rstrip(".").replace(".(", "(")
    return tuple(dict.fromkeys((name, name.partition("(")[0])))


def _duties(passages: Sequence[Passage], chance: random.Random) -> Iterator[PseudoQuery]:
    for passage in passages:
        for span in split_sentences(passage.text)[:4]:  # later ones are mostly asides
            for question in duty_questions(span.text, chance):
                yield PseudoQuery(question, (passage.passage_id,), "duty")


def _neighbours(passages: Sequence[Passage]) -> Iterator[PseudoQuery]:
    for before, after in pairwise(passages):
        if before.section and (before.document_id, before.section) == (after.document_id, after.section):
            spans = split_sentences(before.text)
            text = " ".join(spans[0].text.split()) if spans else ""
            if SHORTEST <= len(text.split()) <= LONGEST:
                yield PseudoQuery(text, (after.passage_id,), "neighbour", frozenset({before.passage_id}))


def _query(text: str, ids: Sequence[str], kind: Kind, chance: random.Random) -> PseudoQuery:
    gold = [ids[place] for place in sorted(chance.sample(range(len(ids)), min(MOST_GOLD, len(ids))))]
    return PseudoQuery(text, tuple(gold), kind, frozenset(ids) - set(gold))


# Templates: a sentence as a question, which asks for what is left out of the sentence ---------------

MAX_SUBJECT_WORDS = 9
MAX_DEED_WORDS = 14  # a longer deed is cut at the last possible place
SHORT_DEED_WORDS = 4  # up to here the next clause is added
LEAST_WORDS = 5  # a shorter question names no subject
MOST_TERMS = 10  # of one passage: a glossary has hundreds
_DUTY = re.compile(
    r"(?:(?P<condition>(?:If|Where|When|Before|After|Unless|In|For|On|Upon|Subject to|Except)\b[^,;:]{3,120}), )?"
    r"(?P<subject>[A-Z“\"(]?[^,;:]{2,90}?) (?P<verb>must|shall|should|may) (?P<no>not |only )?(?P<deed>[a-z].+)",
    re.DOTALL,
)
_VAGUE = re.compile(
    r"(?:it|they|he|she|this|these|those|such|that|there|which|who|and|or|nothing|no one)\b|.*\b(?:which|\d)",
    re.IGNORECASE,
)
_DETERMINER = re.compile(r"(?:An?|The|Each|Every|Any|All|No|Where|If|In|For|On|Before|After|When|Unless|Upon)\b")
_LIST = re.compile(r":?\s*(?:\n|\([a-z0-9]{1,4}\)).*", re.DOTALL)  # from the first item of a list
_NAMES_ITEMS = re.compile(r".*\b(?:includ|contain|consider|specif|disclos|stat|provid|compris|cover|set out)\w*$")
_CUT = re.compile(
    r"[,;:]| (?=(?:unless|except|where|if|which|provided|including|so that|in order|in accordance|pursuant|"
    r"as (?:set out|specified|defined|referred|calculated|prescribed))\b)"
)
_DANGLING = {"a", "an", "the", "of", "to", "and", "or", "in", "for", "with", "by", "that", "not", "than", "is", "are"}
_DANGLING |= {"its", "their", "which", "on", "at", "from", "any", "under"}
TIME = re.compile(
    r"\b(?:immediately|promptly|annually|at least|without (?:undue )?delay|as soon as|no later than|not later than|"
    r"within [\w-]+(?: \w+)? (?:hour|day|week|month|year)s?)\b"
)
_LEADING_NUMBER = re.compile(r"^\(?\w{1,4}[.)]\s+")
_NAME = r"[A-Z][\w&/’'-]*(?: (?:(?:of|the|and|in|for|to|a) ){0,2}[A-Z][\w&/’'-]*){0,6}"  # content words in capitals
_MEANS = (
    r"(?:,? in this context,| \|)? ?(?:\bmeans\b(?! of)|Means\b|has the (?:same )?meaning|is defined as\b|refers to\b)"
)
_DEFINITIONS = (
    re.compile(rf"(?:^|[.;:,|\n]\s*|\b[Tt]he (?:term |expression )?|\bAn? )(?P<term>{_NAME}){_MEANS}"),
    re.compile(rf"[“\"](?P<term>[^”\"\n]{{3,60}})[”\"]{_MEANS}"),
)


@dataclass(frozen=True, slots=True)
class Duty:
    """A sentence's statement of what somebody must or may do: ``"If C, S must not D"``; ``no`` is "not", "only" or "".

    A determiner at the start of ``subject`` is in lower case. ``deed`` is cut at the end of a clause, ``whole`` is not.
    ``has_items`` tells whether a list of items follows.
    """

    subject: str
    verb: str
    no: str
    deed: str
    whole: str
    condition: str
    has_items: bool

    @property
    def names_items(self) -> bool:
        """Whether the list items are the objects of its verb: "must include: (a) …"."""
        return bool(self.has_items and not self.no and _NAMES_ITEMS.match(self.deed))


def duty_of(sentence: str) -> Duty | None:
    """The duty, ban or permission that the sentence states; None if there is none or its subject is vague ("it")."""
    found = _DUTY.match(_LEADING_NUMBER.sub("", " ".join(_LIST.sub("", sentence).split())))
    if not found:
        return None
    subject, condition = found["subject"].strip('“"( '), found["condition"] or ""
    if not subject or _VAGUE.match(subject) or len(subject.split()) > MAX_SUBJECT_WORDS:
        return None
    if re.match(r"Subject|Except|.*\(\d+\)$", condition):  # "Subject to (3)" adds nothing to a question
        condition = ""
    no, whole = (found["no"] or "").strip(), found["deed"]
    has_items = bool(_LIST.search(sentence))
    return Duty(_lowered(subject), found["verb"], no, _deed(whole), whole, _lowered(condition), has_items)


def duty_questions(sentence: str, chance: random.Random) -> list[str]:
    """At most two questions about the duty, ban or permission in this sentence; none if it has none.

    ``"A Fund Manager must keep records."`` gives two questions like "Must a Fund Manager keep records?", drawn by
    ``chance``. A sentence whose subject is "it" or the like gives none, because the question would name nobody.
    """
    duty = duty_of(sentence)
    if duty is None or not (duty.names_items or " " in duty.deed):
        return []
    condition = f" {duty.condition}" if duty.condition else ""
    if duty.names_items:
        return [f"What {duty.verb} {duty.subject} {duty.deed}{condition}?"]
    texts = _templates(duty.subject, duty.verb, duty.no, duty.deed, condition)
    long_enough = [text for text in texts if len(text.split()) >= LEAST_WORDS]
    return chance.sample(long_enough, min(2, len(long_enough)))


def _templates(subject: str, verb: str, no: str, deed: str, condition: str) -> list[str]:
    first, _, rest = deed.partition(" ")
    rest = re.sub(r"^(?:that|to|by|with|on|and \w+) ", "", rest)
    if no == "only":
        texts = [f"When may {subject} {deed}?", f"What conditions apply before {subject} may {deed}?"]
    elif no:
        texts = [f"May {subject} {deed}{condition}?", f"What restrictions apply to {subject} regarding {rest}?"]
    elif verb == "may":
        texts = [f"Can {subject} {deed}{condition}?", f"In what circumstances may {subject} {deed}?"]
    elif first == "be":
        texts = [f"Must {subject} {deed}{condition}?", f"What are the requirements for {subject} to {deed}?"]
    else:
        texts = [
            f"What are the requirements for {subject} regarding {rest}{condition}?",
            f"Must {subject} {deed}{condition}?",
            f"What must {subject} do to {deed}?",
            f"How should {subject} {deed}{condition}?",
        ]
        if condition:
            texts.append(f"What must {subject} do{condition}?")
    before = TIME.split(deed)[0].strip()
    if before != deed and len(before.split()) > 1:
        texts.append(f"When {verb} {subject} {before}{condition}?")
    return texts


def _deed(text: str) -> str:
    """The action, cut at the end of a clause, of at most 14 words."""
    deed = ""
    for piece in _CUT.split(text.rstrip(".;:—, ")):
        longer = f"{deed}, {piece.strip()}".strip(", ")
        if len(deed.split()) > SHORT_DEED_WORDS or (deed and len(longer.split()) > MAX_DEED_WORDS):
            break
        deed = longer
    words = deed.split()[:MAX_DEED_WORDS]
    while words and words[-1].lower() in _DANGLING:
        words.pop()
    return " ".join(words)


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:] if _DETERMINER.match(text) else text


def definition_questions(text: str, chance: random.Random) -> list[str]:
    """A question for each term that this text defines, at most ten.

    Each is one of "What is X?", "What does X mean?", "definition of X" and "How is X defined?", drawn by ``chance``.
    """
    forms = ("What is {}?", "What does {} mean?", "definition of {}", "How is {} defined?")
    return [chance.choice(forms).format(term) for term in defined_terms(text)[:MOST_TERMS]]


def defined_terms(text: str) -> list[str]:
    """The terms that this text defines, in order."""
    found = {match["term"]: match.start() for form in _DEFINITIONS for match in form.finditer(text)}
    return [term for term in sorted(found, key=lambda term: found[term]) if len(term) > 2 and not _VAGUE.match(term)]

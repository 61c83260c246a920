"""Sentences of a rulebook turned into questions by templates: duties and definitions. No model, no text from elsewhere.

A template keeps the sentence's own words and leaves some of them out: what is left out is what the question asks for.
"""

from __future__ import annotations

import random
import re

MAX_SUBJECT_WORDS = 9
MAX_DEED_WORDS = 14  # a longer one is cut at the last place where it may be cut
SHORT_DEED_WORDS = 4  # the next clause is taken too
LEAST_WORDS = 5  # a shorter question names nothing to look for
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
_LIST = re.compile(r":?\s*(?:\n|\([a-z0-9]{1,4}\)).*", re.DOTALL)  # where the items of a list begin
_NAMES_ITEMS = re.compile(r".*\b(?:includ|contain|consider|specif|disclos|stat|provid|compris|cover|set out)\w*$")
_CUT = re.compile(
    r"[,;:]| (?=(?:unless|except|where|if|which|provided|including|so that|in order|in accordance|pursuant|"
    r"as (?:set out|specified|defined|referred|calculated|prescribed))\b)"
)
_DANGLING = {"a", "an", "the", "of", "to", "and", "or", "in", "for", "with", "by", "that", "not", "than", "is", "are"}
_DANGLING |= {"its", "their", "which", "on", "at", "from", "any", "under"}
_TIME = re.compile(
    r"\b(?:immediately|promptly|annually|at least|without (?:undue )?delay|as soon as|no later than|not later than|"
    r"within [\w-]+(?: \w+)? (?:hour|day|week|month|year)s?)\b"
)
_LEADING_NUMBER = re.compile(r"^\(?\w{1,4}[.)]\s+")
_NAME = r"[A-Z][\w&/’'-]*(?: (?:(?:of|the|and|in|for|to|a) ){0,2}[A-Z][\w&/’'-]*){0,6}"  # each word of weight capital
_MEANS = (
    r"(?:,? in this context,| \|)? ?(?:\bmeans\b(?! of)|Means\b|has the (?:same )?meaning|is defined as\b|refers to\b)"
)
_DEFINITIONS = (
    re.compile(rf"(?:^|[.;:,|\n]\s*|\b[Tt]he (?:term |expression )?|\bAn? )(?P<term>{_NAME}){_MEANS}"),
    re.compile(rf"[“\"](?P<term>[^”\"\n]{{3,60}})[”\"]{_MEANS}"),
)


def duty_questions(sentence: str, chance: random.Random) -> list[str]:
    """At most two questions that this sentence answers, of a duty, a ban or a permission; none where it states none.

    ``"A Fund Manager must keep records."`` gives two like "Must a Fund Manager keep records?", drawn by ``chance``; a
    sentence whose subject is "it" or the like gives none, as the question would name nobody.
    """
    found = _DUTY.match(_LEADING_NUMBER.sub("", " ".join(_LIST.sub("", sentence).split())))
    if not found:
        return []
    subject, deed = found["subject"].strip('“"( '), _deed(found["deed"])
    items = bool(_LIST.search(sentence) and not found["no"] and _NAMES_ITEMS.match(deed))  # which the question asks for
    if _VAGUE.match(subject) or len(subject.split()) > MAX_SUBJECT_WORDS or not (items or " " in deed):
        return []
    condition = found["condition"] or ""
    is_empty = re.match(r"Subject|Except|.*\(\d+\)$", condition)  # "Subject to (3)" asks nothing
    condition = "" if is_empty or not condition else f" {_lowered(condition)}"
    texts = _templates(_lowered(subject), found["verb"], (found["no"] or "").strip(), deed, condition)
    if items:
        return [f"What {found['verb']} {_lowered(subject)} {deed}{condition}?"]
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
    before = _TIME.split(deed)[0].strip()
    if before != deed and len(before.split()) > 1:
        texts.append(f"When {verb} {subject} {before}{condition}?")
    return texts


def _deed(text: str) -> str:
    """What is to be done, cut where a clause ends, of at most 14 words."""
    kept = ""
    for piece in _CUT.split(text.rstrip(".;:—, ")):
        longer = f"{kept}, {piece.strip()}".strip(", ")
        if len(kept.split()) > SHORT_DEED_WORDS or (kept and len(longer.split()) > MAX_DEED_WORDS):
            break
        kept = longer
    words = kept.split()[:MAX_DEED_WORDS]
    while words and words[-1].lower() in _DANGLING:
        words.pop()
    return " ".join(words)


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:] if _DETERMINER.match(text) else text


def definition_questions(text: str, chance: random.Random) -> list[str]:
    """A question for each term this text defines, at most ten; none where it defines none.

    One of "What is X?", "What does X mean?", "definition of X" and "How is X defined?", drawn by ``chance``.
    """
    found = {match["term"]: match.start() for form in _DEFINITIONS for match in form.finditer(text)}
    terms = [term for term in sorted(found, key=lambda term: found[term]) if len(term) > 2 and not _VAGUE.match(term)]
    forms = ("What is {}?", "What does {} mean?", "definition of {}", "How is {} defined?")
    return [chance.choice(forms).format(term) for term in terms[:MOST_TERMS]]

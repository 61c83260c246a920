"""Parses the previous question and its answer for a follow-up: subject, verb, the thing asked for. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from ragqa.english.phrases import ParsedSentence, Phrase, third_person
from ragqa.english.reading import read
from ragqa.english.words import stem

_IDENTIFIES: Final = re.compile(r"\b(?:called|named|name|known as)\b", re.IGNORECASE)
MAX_CHARS: Final = 600  # of the answer sentence that is parsed, and of the question in the gist
_ARTICLE: Final = re.compile(r"\A(?:an?|the|any|each|every|all|some) ", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Turn:
    """A question that stands alone, and its answer; the answer is empty if there was none or it was a refusal."""

    question: str
    answer: str = ""

    @property
    def gist(self) -> str:
        """The question and the first sentence of its answer, a line each, at most 600 characters each."""
        return f"{self.question[:MAX_CHARS]}\n{_first_sentence(self.answer)}".strip()


@dataclass(frozen=True)
class Before:
    """The turn that a follow-up points back to, parsed."""

    turn: Turn
    asked: ParsedSentence = field(init=False)
    said: ParsedSentence = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "asked", ParsedSentence(" ".join(self.turn.question.split()).rstrip("?. ")))
        object.__setattr__(self, "said", ParsedSentence(_first_sentence(self.turn.answer)))

    @property
    def wants_name(self) -> bool:
        """Whether a later pronoun means the answer of this question: "Which metal …?", "What is … called?"."""
        words = [token.lower for token in self.asked.tokens[:2]]
        asks_which = words[:1] in (["which"], ["what"]) and any(phrase.in_question for phrase in self.asked.phrases)
        focus = self.focus()
        is_named = words == ["what", "is"] and focus is not None and focus.is_name and not focus.text[0].isdigit()
        return asks_which or is_named or words[:1] == ["who"] or bool(_IDENTIFIES.search(self.asked.text))

    def focus(self) -> Phrase | None:
        """The answer phrase with the noun that the question asks for, else the first phrase new in the answer."""
        known = read(self.asked.text).stems
        asked = {stem(phrase.head) for phrase in self.asked.phrases if phrase.in_question}
        new = [
            phrase
            for phrase in self.said.phrases
            if not read(phrase.text).content <= known and not phrase.head.isdigit()
        ]
        same = [phrase for phrase in self.said.phrases if stem(phrase.head) in asked]
        return next(iter([*same, *new]), None)

    @property
    def action(self) -> tuple[str, str]:
        """`ParsedSentence.action` of the question or, for "What happens if …", of the condition."""
        match = re.search(r"\bhappens? (?:if|when) ", self.asked.text)
        return (ParsedSentence(self.asked.text[match.end() :]) if match else self.asked).action

    @property
    def clause(self) -> str:
        """The question from its auxiliary on: "must a firm acknowledge a complaint"; empty if it has none."""
        asked = self.asked
        if asked.auxiliary and not asked.is_asked_of_subject:
            which = [phrase.text for phrase in asked.phrases if phrase.in_question]
            is_open = asked.tokens[0].lower in {"which", "what", "how"} and asked.action[0] and not asked.action[1]
            thing = f" the {which[0]}" if which and is_open else ""  # "Which documents must an applicant send?"
            return asked.text[asked.auxiliary.start :] + thing
        focus = self.focus()
        if asked.auxiliary and focus:
            rest = asked.text[asked.auxiliary.end :].strip()
            return f"{asked.auxiliary.text} {small(focus)} {rest}"
        verb, after = self.action
        if asked.is_asked_of_subject and focus and verb and asked.verb:
            return f"{'does' if asked.verb.text == third_person(verb) else 'did'} {small(focus)} {verb} {after}"
        return ""

    @property
    def is_denied(self) -> bool:
        """Whether the answer begins with "no"."""
        return bool(re.match(r"no\b(?! more| less)", self.turn.answer.strip(), re.IGNORECASE))

    @property
    def parts(self) -> tuple[str, str, str]:
        """The auxiliary, the subject and the rest: ("must", "a firm", "tell the Commission"); empty without them."""
        asked, aux = self.asked, self.asked.auxiliary
        if aux is None or asked.subject is None or asked.is_asked_of_subject:
            return "", "", ""
        end = asked.verb.start if asked.verb else asked.subject.end
        subject, rest = asked.text[aux.end : end].strip(), asked.text[end:].strip()
        if linked := re.search(r" (?:be|been)\Z", subject):
            subject, rest = subject[: linked.start()], f"{linked[0].strip()} {rest}"
        return aux.text.lower(), subject, rest

    def assertion(self, is_denied: bool = False) -> str:
        """The question as a statement, which may be negated: "a firm must tell the Commission"; empty if impossible."""
        aux, subject, rest = self.parts
        verb, after = self.asked.action
        if not is_denied and verb and aux in {"do", "does"}:
            return f"{subject} {third_person(verb) if aux == 'does' else verb} {after}"
        return f"{subject} {aux} {'not ' if is_denied else ''}{rest}" if subject else ""

    @property
    def statement(self) -> str:
        """The answer as a clause to put after a question word: "was gold fixed at 35 dollars"; empty if impossible."""
        aux, subject = self.said.auxiliary, self.said.subject
        if aux is None or subject is None or subject.start != 0 or subject.end > aux.start:
            return ""
        return (
            f"{aux.text} {small(subject)}{self.said.text[subject.end : aux.start].rstrip()}{self.said.text[aux.end :]}"
        )

    @property
    def topic(self) -> str:
        """The topic of the question: its subject, else the focus of its answer, with all attached phrases."""
        subject = self.asked.subject or self.focus()
        if subject is None:
            return ""
        is_first = subject.start == 0 or bool(subject.determiner)
        return lowered(subject.whole) if is_first else subject.whole


def _first_sentence(answer: str) -> str:
    """The first sentence of an answer, which most likely names the thing, without a leading "yes" or "no"."""
    first = re.split(r"(?<=\w[.!?])\s", answer)[0][:MAX_CHARS]
    return re.sub(r"\A(?:yes|no)\b[,:.]? *", "", first, flags=re.IGNORECASE).rstrip(". ")


def small(phrase: Phrase) -> str:
    """The phrase for the middle of a sentence: a single capitalised word need not be a name and gets a small letter."""
    if phrase.determiner:
        return lowered(phrase.text)
    return phrase.text if len(phrase.text.split()) > 1 and phrase.is_name else lowered(phrase.text)


def lowered(text: str) -> str:
    """The text with a small first letter if it begins with an article, or is one word that is no abbreviation."""
    is_small = _ARTICLE.match(text) or (" " not in text and not text[1:2].isupper())
    return text[:1].lower() + text[1:] if is_small else text

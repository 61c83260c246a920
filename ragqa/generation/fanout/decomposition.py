"""Splits a question into sub-questions by rules for English, without a model. Pure.

The rules are tried in this order, and the first that applies wins: several questions in one, a difference between two
things, a comparison or list of names, a list of things, one preposition repeated ("for X and for Y"), and a second
clause ("..., and in which year?").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ragqa.english.phrases import ParsedSentence
from ragqa.generation.fanout.names import FUNCTION_WORDS, groups_of, names_in
from ragqa.types import Span

MIN_PART_WORDS = 2  # a shorter part is no question
MIN_LISTED = 3
MAX_CHARS = 1_000  # a longer question is a pasted document, and is left whole
MAX_SIDES = 8
MAX_THING_WORDS = 3
MAX_MEMBER_WORDS = 14  # of each of two alternatives that a question offers

_WHO = r"(?:who|whom|whose|what|which|when|where|why|how)"
_DEGREE = (
    r"(?:first|last|earlier|later|older|younger|oldest|youngest|more|most|fewer|less|least|(?:is|are|was|were) \w+er|"
    r"(?:larg|small|tall|long|short|high|low|deep|heavi|great|big|clos|fa[rs]th|near)\w*e(?:r|st))"
)
_COMPARED = (
    r"(?:both|each|either|respective(?:ly)?|common|same|shared?|differ\w*|compared|compare(?=\W*$)|of the two|"
    rf"{_DEGREE})"
)
_COMPARES = re.compile(rf"\b{_COMPARED}\b", re.IGNORECASE)
_CUES = re.compile(rf"\b(?:between|are|were|{_COMPARED})\b", re.IGNORECASE)
_CHOOSES = re.compile(rf"(?::|\b{_DEGREE}(?: \w+)?,)\s*$", re.IGNORECASE)  # before the things to choose from
_QUESTION_MARK = re.compile(r"(?<=\?)\s+(?=\S)")
_SEMICOLON = re.compile(rf";\s+(?=(?:and\s+)?{_WHO}\b)", re.IGNORECASE)
_SECOND_CLAUSE = re.compile(
    rf",?\s+and\s+(?=(?:(?:in|on|at|by|to|from|for|of|with|under)\s+)?{_WHO}\s+\w)|,\s+(?=how\s+\w)", re.IGNORECASE
)
_BACK = re.compile(
    r"\b(?:it|its|they|them|their|he|him|his|she|her|this|that|these|those|each|the former|the latter)\b"
)
_REPEATED = re.compile(
    r"\b(for|of|on|about|by|from|in|under|to|when|where|with)\s+([^,;?]{3,80}?)(?:,\s*|\s+)(?:and|or)\s+\1\s+"
    r"([^,;?]{3,80}?)(?=\s*[?.;]|\s*$)",
    re.IGNORECASE,
)
_FEW_WORDS = r"[\w'’-]+(?: [\w'’-]+){0,5}"
_THINGS = re.compile(rf"(?<![\w'’-]){_FEW_WORDS}(?:, {_FEW_WORDS}){{1,20}},? (?:and|or) {_FEW_WORDS}")
_LISTS = re.compile(
    r"(?:\b(?:which|each|all|any|both) of(?: the| these| those)?(?: [\w-]+){0,4}|"
    r"\b(?:for|of|on|about|between|to|in))\s*$",
    re.IGNORECASE,
)
_DIFFERENCE = re.compile(  # "the difference between A and B", "How do A and B differ?"
    r"\b(?:(?P<between>(?:differences?|distinctions?|differs?|distinguish|compar(?:e|ison)) between)|how (?:do|are))\s+"
    r"(?P<one>[^,:;?]{2,80}?)\s+and\s+(?P<other>[^,:;?]{2,80}?)"
    r"(?(between)(?=\s*\??$)|(?=\s+(?:differ|compare)\b|\s+different(?:\s*\??$|\s+from\b)))",
    re.IGNORECASE,
)
_DIFFERS_FROM = re.compile(
    r"\bhow (?:do|does|is|are) (?P<one>[^,:;?]{2,80}?) differ(?:ent)? from (?P<other>(?!(?:\S+ ){1,2}to )[^,:;?]+)",
    re.IGNORECASE,
)
_DIFFERS_ON = re.compile(  # "How do A and B differ on fees?", "the difference between A and B on fees"
    r"(?:(?<= differ)\s+(?=in\b|over\b)|\s+(?=on\b|regarding\b))(?P<by>\w+)\s+"
    r"(?P<what>(?:(?!\band\b)[^,:;?]){3,80}?)\s*\??$",
    re.IGNORECASE,
)
_NO_SIDE = re.compile(r"(?:I|we|you|for|of|on|about|by|from|in|under|to|with)\b", re.IGNORECASE)
_ONLY_TWO = re.compile(r"[,:]\s+(?:the\s+|an?\s+)?([^,:?]{2,60}?)\s+or\s+(?:the\s+|an?\s+)?([^,:?]{2,60}?)\s*\??$")
_FIRST_TWO = re.compile(r"([^,:?]{2,60}?)\s+or\s+([^,:?]{2,60}?)(?=\s*[,:]\s*(?:which|who|whose)\b)", re.IGNORECASE)
_NAMES_TO_CHOOSE = re.compile(r"[,:] (?:the )?[A-Z][^,:?]* or (?:the )?[A-Z][^,:?]*\?*$")
_CHOICE = re.compile(r"(?:[^,:]*\b)?(?:which|who|whose|what)\b", re.IGNORECASE)
_BOTH = re.compile(r"\b(?:both|either|each of)\s+(?=the\b|[A-Z0-9\"“])|(?<=\w)\s+both\b", re.IGNORECASE)
_SINGULAR = {"are": "is", "were": "was", "do": "does", "have": "has"}
_PREPOSITION = re.compile(r"\b(?:for|of|on|about|by|from|in|under|to|with|at|than|as)(?:\s+the)?\s*$", re.IGNORECASE)
_OPENS = re.compile(r"\s*(?:(?:how )?are|were|is|was|do|does|did|have|has|can|could|may|must)\b", re.IGNORECASE)

_DO = re.compile(r"\b(?:do|does)\s+$", re.IGNORECASE)
_AMONG = re.compile(
    r"(?:\b(?:who|which)\s+of(?: the| these| those)?(?: (?:two|three|four|five|six))?(?: [a-z]+)?|\bout of|"
    r"\b(?:between|among))"
    r"(?:\s+the)?\s*$",
    re.IGNORECASE,
)
_LINK = re.compile(r"(?:\s*(?:[,:]|\b(?:out of|between|of the following|the|an?|either|both)\b))*\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PlannedQuestion:
    """A sub-question, with the reason for it in words and the name that it is about, if there is one."""

    text: str
    reason: str
    name: str = ""


Rule = Callable[[str, Sequence[str]], "list[PlannedQuestion]"]


def decompose(question: str, titles: Sequence[str] = ()) -> tuple[PlannedQuestion, ...]:
    """At least two parts; none if the rules find nothing to split.

    ``titles`` of passages found for the question are treated as whole names, such as "Fun and Fancy Free".
    """
    text = " ".join(question.split())
    if len(text) > MAX_CHARS:
        return ()
    rules = (_several, _differing, _named_members, _listed_things, _repeated, _clauses)
    return _first_split(text, rules, titles)


def sides_of(question: str) -> tuple[PlannedQuestion, ...]:
    """A question for each thing that the question compares or offers to choose from, at most eight; else none."""
    text = " ".join(question.split())
    if len(text) > MAX_CHARS or re.search(r"\bwhether\b", text, re.IGNORECASE):
        return ()
    is_choice = _COMPARES.search(text) or (_CHOICE.match(text) and _NAMES_TO_CHOOSE.search(text))
    rules = (_differing, _named_members, _listed_things, _repeated) if is_choice else (_differing,)
    sides = _first_split(text, rules)
    return sides if len(sides) <= MAX_SIDES else ()


def _first_split(text: str, rules: Sequence[Rule], titles: Sequence[str] = ()) -> tuple[PlannedQuestion, ...]:
    for rule in rules:
        parts = tuple({part.text.casefold(): part for part in rule(text, titles)}.values())
        if len(parts) > 1:
            return parts
    return ()


def _several(text: str, _titles: Sequence[str]) -> list[PlannedQuestion]:
    """Consecutive questions, each with its own question mark or after a semicolon."""
    pieces = [piece for sentence in _QUESTION_MARK.split(text) for piece in _SEMICOLON.split(sentence)]
    if len(pieces) < 2 or any(len(piece.split()) < MIN_PART_WORDS for piece in pieces):
        return []
    return _with_context(pieces, "one of several questions")


def _differing(text: str, _titles: Sequence[str]) -> list[PlannedQuestion]:
    """A question for each of two things whose difference is asked for."""
    text = _DIFFERS_FROM.sub(r"how do \g<one> and \g<other> differ", text)
    about = _DIFFERS_ON.search(text)
    if about and len(re.findall(rf"\b{about['by']}\b", text)) > 1:  # "between a note on fees and a note on costs"
        about = None
    text = text[: about.start()] if about else text
    match = _DIFFERENCE.search(text)
    if not match or any(map(_NO_SIDE.match, match.group("one", "other"))) or _has_verb(match["one"]):
        return []
    one, other = match["one"].split(), match["other"].split()
    is_shared = len(one) < len(other) and other[0].casefold() not in {"a", "an", "the"}
    shared = [*one, other[-1]] if is_shared else one  # "retail and professional clients"
    members = (" ".join(shared), match["other"])
    parts = _members(
        text, [(*match.span(n), member) for n, member in zip(("one", "other"), members, strict=True)], named=False
    )
    if about:
        asked = (f"What about {about['what']} of {member}?" for member in members)
        return [replace(part, text=_tidy(text)) for part, text in zip(parts, asked, strict=True)]
    return parts


def _named_members(text: str, titles: Sequence[str]) -> list[PlannedQuestion]:
    """A question for each name of a comparison or list."""
    groups = groups_of(text, names_in(text, titles))
    chosen = next((group for group in groups if re.search(r"\bor\b", text[group[0].end : group[-1].start])), None)
    if chosen is None and groups and _CUES.search(_without(text, groups[0])):
        chosen = groups[0]
    if chosen is None:
        return []
    return _members(text, [(span.start, span.end, span.text) for span in chosen], named=True)


def _listed_things(text: str, _titles: Sequence[str]) -> list[PlannedQuestion]:
    """A question for each of three or more things in a list, or of two at an end: "…, gold or lead?"."""
    for row in _THINGS.finditer(text):
        pieces = [(match.start() + row.start(), match[0]) for match in re.finditer(r"[^,]+", row[0])]
        last = re.search(r"(?:^|\s)(?:and|or)\s+", pieces[-1][1])
        if not last:
            continue
        if pieces[-1][1][: last.start()].strip():  # "x, y and z": two things follow the last comma
            at = pieces[-1][0]
            pieces[-1:] = [(at, pieces[-1][1][: last.start()]), (at + last.end(), pieces[-1][1][last.end() :])]
        else:
            pieces[-1] = (pieces[-1][0] + last.end(), pieces[-1][1][last.end() :])
        if len(pieces) < MIN_LISTED:
            continue
        middle = max(len(piece.split()) for _, piece in pieces[1:-1])
        bounds = [_trimmed(at, piece) for at, piece in pieces]
        bounds[0] = _words_from_right(text, bounds[0], middle)
        bounds[-1] = _words_from_left(text, bounds[-1], middle)
        before = text[: bounds[0][0]]
        if not (_LISTS.search(before) or _CHOOSES.search(before)):
            continue
        members = [(start, end, text[start:end]) for start, end in bounds]
        if all(_is_thing(member) for _, _, member in members):
            return _members(text, members, named=False)
    two = _FIRST_TWO.match(text)
    if not two or not _COMPARES.search(text, two.end()) or not all(map(_is_thing, two.groups())):
        two = _ONLY_TWO.search(text) if _CHOICE.match(text) else None
        two = two if two and _CHOOSES.search(text[: two.start() + 1]) else None
    if two and all(_is_choice(two[n]) for n in (1, 2)):
        return _members(text, [(two.start(n), two.end(n), two[n]) for n in (1, 2)], named=False)
    return []


def _repeated(text: str, _titles: Sequence[str]) -> list[PlannedQuestion]:
    """A question each for X and Y of "What are the requirements for X and for Y?"."""
    match = _REPEATED.search(text)
    before = text[: match.start()] if match else ""
    if not match or before.endswith(", "):  # "for A, for B and for C"
        return []
    after = text[match.end() :]
    members = (match[2], match[3])
    reason = f"{match[1].lower()} {members[0]}, and {match[1].lower()} {members[1]}"
    return [PlannedQuestion(_tidy(f"{before}{match[1]} {member}{after}"), reason) for member in members]


def _clauses(text: str, _titles: Sequence[str]) -> list[PlannedQuestion]:
    """A second question after "and": "Who published it, and in which year?"."""
    pieces = [piece.strip(" ,") for piece in _SECOND_CLAUSE.split(text)]
    if len(pieces) < 2 or not re.search(rf"\b{_WHO}\b", pieces[0], re.IGNORECASE):
        return []
    return _with_context(pieces, "one of several things asked")


def _members(text: str, spans: Sequence[tuple[int, int, str]], *, named: bool) -> list[PlannedQuestion]:
    """The question with each member in place of all of them, or the member before the rest of the question."""
    before, after = text[: spans[0][0]], text[spans[-1][1] :]
    names = [member for _, _, member in spans]
    reason = f"one of {', '.join(names[:-1])} and {names[-1]}"
    opening = _OPENS.match(before)
    in_place = (bool(_PREPOSITION.search(before)) and not _AMONG.search(before)) or bool(opening or _DO.search(before))
    parts = []
    for name in names:
        if in_place:
            asked = f"{before if opening else _DO.sub('does ', before)}{name}{after}"
            if opening and opening[0].strip().lower() in _SINGULAR:
                verb = _SINGULAR[opening[0].strip().lower()]
                asked = verb.capitalize() + asked[opening.end() :]
            asked = _BOTH.sub("", asked)
        else:
            rest = _BOTH.sub("", f"{_LINK.sub('', _AMONG.sub('', before))} {after.lstrip(' ,')}").strip(" ,:?")
            verb, _, words = rest.partition(" ")
            rest = f"{_SINGULAR.get(verb, verb)} {words}"
            asked = f"{name}: {_lowered(rest)}?"
        parts.append(PlannedQuestion(_tidy(asked), reason, name if named else ""))
    return parts


def _with_context(pieces: Sequence[str], reason: str) -> list[PlannedQuestion]:
    """The pieces as questions; one that refers back or has no name gets the names or words of the first piece."""
    parts = []
    for number, piece in enumerate(pieces):
        asked = re.sub(r"^and\s+", "", piece.strip(), flags=re.IGNORECASE)
        bare = asked.rstrip("?. ")
        if number and (_BACK.search(bare.lower()) or not names_in(bare)):
            names = [span.text for span in names_in(pieces[0])]
            about = ", ".join(names) if names else _content(pieces[0])
            bare = f"{bare} ({about})" if about else bare
        parts.append(PlannedQuestion(f"{bare[:1].upper()}{bare[1:]}?", reason))
    return parts


def _content(text: str) -> str:
    return " ".join(word for word in re.findall(r"[\w'’-]+", text) if word.casefold() not in FUNCTION_WORDS)


def _without(text: str, group: Sequence[Span]) -> str:
    return text[: group[0].start] + text[group[-1].end :]


def _is_thing(member: str) -> bool:
    """Whether this can be a list member: a few content words, with only articles or "of" between."""
    words = [word for word in member.casefold().split() if word not in {"a", "an", "the", "of"}]
    is_plain = not any(word in FUNCTION_WORDS or _COMPARES.match(word) for word in words)
    return 1 <= len(words) <= MAX_THING_WORDS and is_plain


def _has_verb(side: str) -> bool:
    """Whether a word after the first makes this a clause: "firms show retail", "firms that lend"."""
    return any(word.tag in {"verb", "wh", "link"} for word in ParsedSentence(side).tokens[1:])


def _is_choice(member: str) -> bool:
    words = member.casefold().split()
    return len(words) <= MAX_MEMBER_WORDS and not re.fullmatch(rf"and|does|{_WHO}", words[0])


def _trimmed(start: int, piece: str) -> tuple[int, int]:
    left = len(piece) - len(piece.lstrip())
    return start + left, start + left + len(piece.strip())


def _words_from_right(text: str, bounds: tuple[int, int], count: int) -> tuple[int, int]:
    """The last ``count`` words: a list's beginning is not marked, so its first member gets the middle ones' length."""
    words = list(re.finditer(r"\S+", text[bounds[0] : bounds[1]]))[-count:]
    return (bounds[0] + words[0].start(), bounds[1]) if words else bounds


def _words_from_left(text: str, bounds: tuple[int, int], count: int) -> tuple[int, int]:
    words = list(re.finditer(r"\S+", text[bounds[0] : bounds[1]]))[:count]
    return (bounds[0], bounds[0] + words[-1].end()) if words else bounds


def _lowered(text: str) -> str:
    """The text with a lower-case first letter if its first word is a function word, so that it can follow a colon."""
    first = text.split(" ", 1)[0]
    return text[:1].lower() + text[1:] if first.casefold() in FUNCTION_WORDS else text


def _tidy(text: str) -> str:
    """The text with single spaces, none before punctuation, and one question mark at the end."""
    text = re.sub(r"\s+([,;:?.])", r"\1", " ".join(text.split()))
    text = re.sub(r",\s*(?=[,:])", "", text).rstrip(" ,;.?")
    return f"{text[:1].upper()}{text[1:]}?"

"""A short answer without a language model: the sentences that answer the question, each once, in reading order."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from collections.abc import Generator as Stream
from dataclasses import dataclass

from ragqa.english.sentences import reads_as_heading
from ragqa.generation.answers import Quote, empty_answer, nothing_kept, pieces_of, quoted, quotes_of
from ragqa.generation.prompts import NO_TEXT
from ragqa.plugins.protocols import Encoder, FloatMatrix, ObligationClassifier, Verifier
from ragqa.settings.config import GenerationConfig
from ragqa.types import Answer, Passage, Question
from ragqa.types.events.generation import Token

OMISSION = "[…]"  # replaces items that were left out

_LABEL = re.compile(r"(?<!\S)\(?([a-z]|[ivx]{2,5}|\d{1,2})[.)]\s+")
_AFTER = {  # the labels that follow the first one of a list
    "a": tuple("bcdefghijklmnopqrstuvwxyz"),
    "i": ("ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv", "xv"),
    "1": tuple(str(number) for number in range(2, 100)),
}
# Three words in capitals or more, one of them long (no abbreviations), before a word in small letters.
_TITLE = re.compile(
    r"\A(?=[^a-z]*[A-Z]{7})(?:[^\Wa-z_][^\WA-Za-z_]*[A-Z][^a-z\s]*\s+(?:[&–-]\s+)?){3,}(?=[A-Z]\w*[a-z]|An? )"
)
_MIN_WORDS_AFTER = 6
# Words that make the items conditions or alternatives: without one of the items the sentence would mean something else.
_BINDING = re.compile(
    r"\b(?:if|unless|where|when|provided that|except|either|any of|one of|not|no)\b[^.;]*\Z", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class EnumeratedSentence:
    """``lead`` and ``items`` joined by single spaces are the sentence; each item begins with its label."""

    lead: str
    items: tuple[str, ...]

    def with_items(self, kept: Collection[int]) -> str:
        """The sentence with these items, and `OMISSION` for each run of others; with all items, the sentence itself."""
        pieces = [self.lead]
        for index, item in enumerate(self.items):
            if index in kept:
                pieces.append(item)
            elif pieces[-1] != OMISSION:
                pieces[-1:] = [pieces[-1].removesuffix(" and"), OMISSION]
        text = " ".join(pieces)
        return text + "." if text.endswith(OMISSION) else text


def enumerated(sentence: str) -> EnumeratedSentence | None:
    """A sentence that lists at least three duties, split into its parts; None for any other.

    The labels ascend from (a), (i) or (1) without a gap; nested lists stay within their item. A list of conditions or
    alternatives ("if", "unless", "any of", a last "or", a negation in the lead) gives None, because it must be read as
    a whole.
    """
    marks = list(_LABEL.finditer(sentence))
    for start, mark in enumerate(marks):
        labels = _AFTER.get(mark.group(1), ())
        if not labels:
            continue
        starts = [mark.start()]
        for further in marks[start + 1 :]:
            if len(starts) <= len(labels) and further.group(1) == labels[len(starts) - 1]:
                starts.append(further.start())
        lead = sentence[: starts[0]].strip()
        items = tuple(sentence[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True))
        is_whole = _BINDING.search(lead) is not None or any(item.endswith(" or") for item in items)
        return EnumeratedSentence(lead, items) if lead and len(items) >= 3 and not is_whole else None
    return None


def without_running_title(sentence: str) -> str:
    """The sentence without a running title in capitals that a converter left before it."""
    found = _TITLE.match(sentence)
    rest = sentence[found.end() :] if found else ""
    return rest if len(rest.split()) >= _MIN_WORDS_AFTER else sentence


# Chosen on 300 ADGM dev questions. Compared with the extractive generator, answers have a fifth fewer words and nine
# tenths of its duties, and .95 of the kept gold passages are quoted instead of .87.
MAX_SENTENCES = 8
MAX_WORDS = 250  # after the first sentence, which may be longer
RELEVANCE_RATIO = 0.6  # a sentence must reach this share of the best one's relevance
OBLIGATION_BONUS = 0.15  # on the cosine, for a sentence that obliges somebody
MIN_WORDS = 9  # a shorter sentence is quoted only if it is an obligation, or if there is nothing else
LONG_WORDS = 50  # a longer list of duties is quoted with its most relevant items only
ITEM_RATIO = 0.8  # an item must reach this share of the best item's cosine with the question
MAX_ITEMS = 3
_NUMBER = re.compile(r"\d[\w.()]*")
SHORTENED = f"Lists are shortened where {OMISSION} stands; the passages have them whole."


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A sentence as it would be quoted; relevance is its cosine with the question, raised for an obligation."""

    quote: Quote
    source: str  # the whole sentence
    position: int  # among the sentences of the passages
    obliges: bool
    relevance: float

    @property
    def n_words(self) -> int:
        return len(self.quote.text.split())

    @property
    def is_readable(self) -> bool:
        """Whether it can stand alone: it is no heading, and short only if it is an obligation."""
        text = self.quote.text
        return not (reads_as_heading(text) or text.isupper()) and (self.obliges or self.n_words >= MIN_WORDS)


class ConciseGenerator:
    """Quotes the few sentences that answer the question, and only the most relevant items of long lists of duties."""

    name = "concise, no language model"
    model = ""

    def __init__(
        self, obligations: ObligationClassifier, encoder: Encoder, verifier: Verifier, config: GenerationConfig
    ) -> None:
        self._obligations = obligations
        self._encoder = encoder
        self._verifier = verifier
        self._config = config

    def stream(self, question: Question, passages: Sequence[Passage]) -> Stream[Token, None, Answer]:
        """Yields one token per quoted sentence, ``"sentence [1][3] "``, and returns the answer made of them.

        It quotes the most relevant sentences, at most `MAX_SENTENCES` (and ``max_sentences``) and `MAX_WORDS`. It
        leaves out headings, sentences far below the best one, and obligations that the sentences chosen so far already
        cover (by RePASs's own rule). Passages come in the order of their best sentence, sentences in the order of their
        passage. Words are verbatim, except that ``[…]`` replaces left-out items of a list and that running titles in
        capitals are dropped. Without passages, or without text in them, the answer is empty and its note says what to
        change.
        """
        if not passages:
            return nothing_kept(self.name, self.model)
        quotes = quotes_of(passages)
        if not quotes:
            return empty_answer(self.name, self.model, NO_TEXT)
        chosen = self._chosen(self._candidates(question, quotes))
        ordered = _in_reading_order(chosen)
        yield from (Token(piece) for piece in pieces_of(ordered))
        return quoted(ordered, self.name, _note(quotes, chosen))

    def _candidates(self, question: Question, quotes: Sequence[Quote]) -> list[_Candidate]:
        """Every sentence that may be quoted, most relevant first; never empty."""
        asked = self._encoder.encode_query(question.text)[0]
        flags = self._obligations.classify([quote.text for quote in quotes])
        shown = self._shortened([without_running_title(quote.text) for quote in quotes], asked)
        whole = self._encoder.encode([quote.text for quote in quotes]) @ asked
        cosines = whole.clip(min=self._encoder.encode(shown) @ asked).tolist()
        found = [
            _Candidate(Quote(text, quote.citations), quote.text, position, obliges, cosine + OBLIGATION_BONUS * obliges)
            for position, (quote, text, obliges, cosine) in enumerate(zip(quotes, shown, flags, cosines, strict=True))
        ]
        readable = [candidate for candidate in found if candidate.is_readable] or found
        return sorted(readable, key=lambda candidate: (-candidate.relevance, candidate.position))

    def _shortened(self, sentences: Sequence[str], asked: FloatMatrix) -> list[str]:
        """The sentences, with long lists of duties cut to the items nearest to the question."""
        lists = {
            index: found
            for index, sentence in enumerate(sentences)
            if len(sentence.split()) > LONG_WORDS and (found := enumerated(sentence)) is not None
        }
        items = [item for found in lists.values() for item in found.items]
        cosines = iter((self._encoder.encode(items) @ asked).tolist() if items else ())
        texts = list(sentences)
        for index, found in lists.items():
            own = sorted(((next(cosines), item) for item in range(len(found.items))), reverse=True)
            near = [item for cosine, item in own[:MAX_ITEMS] if cosine >= min(own[0][0], ITEM_RATIO * own[0][0])]
            texts[index] = found.with_items(near)
        return texts

    def _chosen(self, candidates: Sequence[_Candidate]) -> list[_Candidate]:
        best = candidates[0].relevance
        floor = min(best, RELEVANCE_RATIO * best)  # if the best is below 0, only equals of it remain
        limit = min(MAX_SENTENCES, self._config.max_sentences)
        chosen: list[_Candidate] = []
        n_words = 0
        for candidate in candidates:
            if len(chosen) == limit or candidate.relevance < floor:
                break
            if chosen and (n_words + candidate.n_words > MAX_WORDS or self._is_covered(candidate, chosen)):
                continue
            chosen.append(candidate)
            n_words += candidate.n_words
        return chosen

    def _is_covered(self, candidate: _Candidate, chosen: Sequence[_Candidate]) -> bool:
        """Whether the chosen sentences cover it already; never true of a rule with a number that they lack."""
        numbers = {number for other in chosen for number in _NUMBER.findall(other.source)}
        if not candidate.obliges or not numbers.issuperset(_NUMBER.findall(candidate.source)):
            return False
        answer = quoted([other.quote for other in chosen], self.name, "")
        return self._verifier.coverage(answer, candidate.source).covered


def _in_reading_order(chosen: Sequence[_Candidate]) -> list[Quote]:
    """Passages in the order of their best sentence, sentences in the order of their passage."""
    best: dict[int, int] = {}
    for candidate in chosen:
        best.setdefault(candidate.quote.citations[0], len(best))
    order = sorted(chosen, key=lambda candidate: (best[candidate.quote.citations[0]], candidate.position))
    return [candidate.quote for candidate in order]


def _note(quotes: Sequence[Quote], chosen: Sequence[_Candidate]) -> str:
    parts = []
    if len(chosen) < len(quotes):
        parts.append(f"{len(chosen)} of {len(quotes)} sentences are quoted: those nearest to the question.")
    if any(OMISSION in candidate.quote.text for candidate in chosen):
        parts.append(SHORTENED)
    return " ".join(parts)

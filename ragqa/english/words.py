"""The words of a text, their stems, the language of a text, and the settings of the analysers for BM25."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple, get_args

from ragqa.errors import ConfigError

_per_thread = threading.local()

Field = Literal["number", "title", "section", "text"]


@dataclass(frozen=True, slots=True)
class Analyser:
    """The steps by which `ragqa.retrieval.analysis` turns passages and questions into tokens.

    These steps always apply: unify compatibility forms (NFKC), remove invisible characters, convert to lower case, keep
    words of two letters or more.
    """

    language: str = "english"  # of the Snowball stemmer; empty: no stemming
    stop_words: bool = True  # remove NLTK's English stop words (R@10 .773 on ObliQA dev, .767 with Lucene's 33)
    dotted_numbers: bool = False  # "4.3.1" is one token: rule numbers and decimals
    bigrams: bool = False  # add each pair of neighbouring tokens as a term
    character_ngrams: int = 0  # split words into overlapping pieces of this many letters; 0: whole words
    folds_accents: bool = False  # replace "č" by "c"
    fields: tuple[Field, ...] = ("text",)  # the fields of a passage that are indexed, in this order
    hides_headings: bool = False  # passages that read as headings are never returned; they still name their section

    def __post_init__(self) -> None:
        if self.language and self.language not in _languages():
            msg = f"the stemmer's language must be one of {', '.join(_languages())}, or empty, got {self.language!r}"
        elif not (self.character_ngrams == 0 or 2 <= self.character_ngrams <= 8):
            msg = f"character n-grams must be 0 (off) or 2 to 8 letters long, got {self.character_ngrams}"
        elif not self.fields or not set(self.fields) <= set(get_args(Field)):
            msg = f"an analyser's fields must be some of {', '.join(get_args(Field))}, got {self.fields!r}"
        else:
            return
        msg += "; change the analyser and build the index again"
        raise ConfigError(msg)

    def __str__(self) -> str:
        """The name and the settings that differ from the defaults: ``"regulation: bigrams, dotted_numbers"``."""
        name = next((name for name, known in ANALYSERS.items() if known == self), "own")
        plain = Analyser()
        changed = [
            field.name if getattr(self, field.name) is True else f"{field.name} {getattr(self, field.name)!r}"
            for field in fields(self)
            if getattr(self, field.name) != getattr(plain, field.name)
        ]
        return f"{name}: {', '.join(changed) or 'stems without stop words'}"


def _languages() -> tuple[str, ...]:
    import Stemmer  # half a millisecond

    return tuple(Stemmer.algorithms())


def stemmer(language: str) -> Any:  # noqa: ANN401 - a Stemmer.Stemmer
    """This thread's stemmer for a language. A stemmer has one C buffer, so threads must not share it."""
    import Stemmer

    stemmers: dict[str, Any] = _per_thread.__dict__.setdefault("stemmers", {})
    if language not in stemmers:
        stemmers[language] = Stemmer.Stemmer(language)
    return stemmers[language]


ANALYSERS: dict[str, Analyser] = {
    # Bigrams cost the two-document questions of HotpotQA (both in the top 10: .728 against .774), so they are not here.
    "english": Analyser(fields=("title", "section", "text")),
    # ObliQA dev, BM25 alone: R@10 .772 -> .780, MAP@10 .615 -> .636; fused with MiniLM: .796 -> .804, .645 -> .667.
    "regulation": Analyser(dotted_numbers=True, bigrams=True, hides_headings=True),
    # For documents cut at numbers: only the fields above an item have the sentence that it completes, and the act.
    "headed": Analyser(dotted_numbers=True, bigrams=True, hides_headings=True, fields=("title", "section", "text")),
    # For languages without a Snowball stemmer, such as Slovenian.
    "characters": Analyser(
        language="", stop_words=False, character_ngrams=4, folds_accents=True, fields=("title", "section", "text")
    ),
}


def analyser_named(name: str, corpus_format: str = "text") -> Analyser:
    """The analyser of this name; if the name is empty, that of the corpus format. Raises ConfigError."""
    chosen = name or {"obliqa": "regulation", "pandachat": "characters"}.get(corpus_format, "english")
    if chosen not in ANALYSERS:
        msg = f"analyser must be one of {', '.join(ANALYSERS)}, got {name!r}; change --analyser and try again"
        raise ConfigError(msg)
    return ANALYSERS[chosen]


ENGLISH = "en"
SURE = 0.95  # least probability at which a language other than English is accepted
MIN_LETTERS = 40  # shorter texts are too often names and numbers
LOOKED_AT = 1_000  # characters
_FREQUENT = re.compile(
    r"\b(?:the|of|and|that|which|with|from|this|must|shall|are|be|by|may|not|were|its|have|than|their|who|other|where|each"
    r"|if|it|about|between|when)\b"
)
PLAINLY = 0.15  # share of these words, rare in other languages, from which a text is English without asking the model


@lru_cache(maxsize=4_000)
def language_of(text: str) -> str:
    """The ISO 639 code of the text's language; English if the text is too short or no other language is certain."""
    text = text[:LOOKED_AT]
    if sum(map(str.isalpha, text)) < MIN_LETTERS or len(_FREQUENT.findall(text)) >= PLAINLY * len(text.split()):
        return ENGLISH
    language, probability = _identifier().classify(text)
    return str(language) if probability >= SURE else ENGLISH


@cache
def _identifier() -> Any:  # noqa: ANN401 - a library without types
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)?")

# Words that are ignored when two sentences are compared.
STOP_WORDS = frozenset(
    "a an the of to in on at by for with from and or as than that this these those it its itself they them their he "
    "him his she her we us our i you your who whom whose which what when where while is are was were be been being "
    "am has have had having do does did done will would shall should may might can could must not no nor never so "
    "such there here then also too very more most less least other another any some each every all both either "
    "neither one into onto out up down over under about between among through during before after again if unless "
    "except only own same just even ever still yet but however although though because since until without within "
    "upon per via".split()
)


class Word(NamedTuple):
    """A word or number, ``text[start:end]``; ``lower`` is it in lower case without a possessive ending."""

    lower: str
    start: int
    end: int
    is_capital: bool
    stem: str


def words_of(text: str) -> tuple[Word, ...]:
    """The words of a text in order."""
    found = []
    for match in _WORD.finditer(text):
        written = match.group()
        lower = written.casefold()
        if "'" in lower or "’" in lower:
            lower = lower.replace("’", "'").removesuffix("'s")
        found.append(Word(lower, match.start(), match.end(), written[0].isupper(), stem(lower)))
    return tuple(found)


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The stem of a word in lower case."""
    found: str = stemmer("english").stemWord(word)
    return found


def cut(text: str, most: int) -> str:
    """The text, cut after a word to at most ``most`` characters and an ellipsis."""
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + "…"


def quantity(count: int, noun: str, nouns: str = "") -> str:
    """A number with its noun: ``1 passage``, ``2 passages``; ``nouns`` is an irregular plural."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def duration_words(seconds: float) -> str:
    """An estimated time in words, such as ``"about 3 min"``."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    return f"about {round(seconds / 60)} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"

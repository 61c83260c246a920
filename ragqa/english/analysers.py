"""How text becomes BM25 tokens, as data: an index names an analyser, its manifest keeps all of it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from ragqa.errors import ConfigError

_per_thread = threading.local()

Field = Literal["number", "title", "section", "text"]


@dataclass(frozen=True, slots=True)
class Analyser:
    """What `ragqa.retrieval.analysis` does to passages and questions, in this order.

    Always: compatibility forms unified (NFKC), invisible characters out, lower case, words of two letters or more.
    """

    language: str = "english"  # of the Snowball stemmer; empty: words stay as they are
    stop_words: bool = True  # NLTK's English ones are left out (R@10 .773 on ObliQA dev, .767 with Lucene's 33)
    dotted_numbers: bool = False  # "4.3.1" is one token: rule numbers and decimals
    bigrams: bool = False  # neighbouring tokens count as a term of their own
    character_ngrams: int = 0  # words become their overlapping pieces of this many letters; 0: words stay whole
    folds_accents: bool = False  # "č" is read as "c"
    fields: tuple[Field, ...] = ("text",)  # of a passage, one after the other
    hides_headings: bool = False  # what reads as a heading is never returned; it still names its section

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
        """The settings that differ from the plain ones, ``"regulation: bigrams, dotted_numbers"``."""
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
    """This thread's stemmer of a language: it keeps one C buffer, and two threads in it corrupt each other's stems."""
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
    # For languages without a Snowball stemmer, such as Slovenian.
    "characters": Analyser(
        language="", stop_words=False, character_ngrams=4, folds_accents=True, fields=("title", "section", "text")
    ),
}


def analyser_named(name: str, corpus_format: str = "text") -> Analyser:
    """The analyser of this name; of no name, that of the format. Raises ConfigError."""
    chosen = name or {"obliqa": "regulation", "pandachat": "characters"}.get(corpus_format, "english")
    if chosen not in ANALYSERS:
        msg = f"analyser must be one of {', '.join(ANALYSERS)}, got {name!r}; change --analyser and try again"
        raise ConfigError(msg)
    return ANALYSERS[chosen]

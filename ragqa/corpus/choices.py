"""Chooses the language and the analyser of a corpus from a sample of its passages."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeVar

from ragqa.corpus.documents import DocumentStream
from ragqa.corpus.reference_numbers import ITEM, path_of
from ragqa.corpus.streams import PassageStream
from ragqa.english.words import ENGLISH, language_of
from ragqa.types import Passage

LOOKED_AT: Final = 400  # passages
_DOCUMENTS: Final = 6  # documents that are read for the sample
_SENTENCE: Final = 60  # characters: shorter passages are mostly headings, which do not show the language
# Share of passages with a rule number from which a corpus gets the analyser of rules below headings.
_NUMBERED: Final = 0.5

T = TypeVar("T")


def chosen_analyser(passages: Sequence[Passage]) -> tuple[str, str, str]:
    """The language (ISO 639) of these passages, the name of the analyser that fits, and the reason in a sentence."""
    texts = [one for one in passages if len(one.text) > _SENTENCE] or passages
    votes = Counter(language_of(one.text) for one in spread(texts, LOOKED_AT) if len(one.text) > _SENTENCE)
    language = votes.most_common(1)[0][0] if votes else ENGLISH
    if language != ENGLISH:
        return language, "characters", f"The text is not in English ({language}): character n-grams are its tokens."
    share = sum(is_rule_number(one.number) for one in texts) / max(1, len(texts))
    if share >= _NUMBERED:
        reason = f"{share:.0%} of the passages have a rule number: numbers and the headings above are tokens."
        return language, "headed", reason
    return language, "english", f"English; {share:.0%} of the passages have a rule number."


def is_rule_number(number: str) -> bool:
    """Whether a passage's number is printed in the text, such as 4.2.1 or Article 6, and not an ordinal."""
    path = path_of(number)
    return len(path) > 1 or (bool(path) and path[0][0] not in {"", ITEM}) or number.endswith(")")


def sample_of(stream: PassageStream) -> tuple[Passage, ...]:
    """Passages from some documents, spread over the whole corpus; none if it is not a folder of documents."""
    if not isinstance(stream, DocumentStream):
        return ()
    paths = tuple(spread(stream.paths, _DOCUMENTS))
    some = replace(stream, paths=paths, messages=deque(), unnumbered=[], left_out=Counter())
    most = -(-LOOKED_AT // len(paths))
    return tuple(one for _, passages in some.articles() for one in spread(passages, most))


def spread(several: Sequence[T], most: int) -> Sequence[T]:
    """At most ``most`` of these, evenly spread."""
    return several[:: max(1, -(-len(several) // most))]

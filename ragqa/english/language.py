"""Which language a text is in: the embedded NLI model and the rules read English only."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

ENGLISH = "en"
SURE = 0.95  # probability from which another language is believed
MIN_LETTERS = 40  # shorter texts are too often names and numbers
LOOKED_AT = 1_000  # characters
_FREQUENT = re.compile(
    r"\b(?:the|of|and|that|which|with|from|this|must|shall|are|be|by|may|not|were|its|have|than|their|who|other|where|each"
    r"|if|it|about|between|when)\b"
)
PLAINLY = 0.15  # share of such words, hardly any other language's, from which no model is asked


@lru_cache(maxsize=4_000)
def language_of(text: str) -> str:
    """The ISO 639 code of the text's language; English where the text is too short, or no other language is sure."""
    text = text[:LOOKED_AT]
    if sum(map(str.isalpha, text)) < MIN_LETTERS or len(_FREQUENT.findall(text)) >= PLAINLY * len(text.split()):
        return ENGLISH
    language, probability = _identifier().classify(text)
    return str(language) if probability >= SURE else ENGLISH


@cache
def _identifier() -> Any:  # noqa: ANN401 - a library without types
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

"""Whether an answer says that the passages do not answer the question, and what that does to its scores. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragqa.types import AnswerSentence

MAX_SENTENCES = 3  # a longer answer says something, whatever it begins with

REFUSAL_NOTE = (
    "The language model says that the passages do not answer the question. RePASs does not measure such an answer: no "
    "passage entails it (E near 0), it covers no obligation, and the published NLI models read it as contradicting the "
    "passages (C near 1). Read the passages, keep more of them, or ask in the words of the corpus."
)

_SOURCE = (
    r"(?:corpus|passages?|provided (?:text|information)|information(?: provided)?|documents?|obligations?|sources?|"
    r"excerpts?|context|text|regulations?|rules?|materials?)"
)
_SILENT = (
    r"(?:say|state|answer|address|contain|mention|provide|specify|cover|include|discuss|describe|speak|give|explain|"
    r"allow|relate|pertain|offer|set out|indicate)"
)
_NOT = r"(?:(?:do|does|did|can|could|is|are)(?: not|n['’]t)|cannot|(?:contain|provide|give|say|offer)s? (?:no|nothing))"
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\A(?:unfortunately,? |i am sorry,? |sorry,? |based on [\w ]+,? )?(?:none of )?(?:the |these |this |your )?"
        rf"(?:\w+ ){{0,3}}{_SOURCE}(?: \w+){{0,4}} {_NOT}(?: (?:directly|explicitly|specifically|clearly))?"
        rf"(?: {_SILENT}\b|\b)",
        rf"\Anone of the (?:\w+ ){{0,3}}{_SOURCE} {_SILENT}",
        r"\A(?:i|we) (?:cannot|can(?:not|['’]t)|could not|am unable to|are unable to|do not|don['’]t) "
        r"(?:answer|determine|find|know|say|tell|have (?:enough|sufficient))",
        rf"\A(?:there is|there are) (?:no|not enough|insufficient) (?:\w+ ){{0,3}}(?:{_SOURCE}|answer|obligations?)\b"
        r".*\b(?:question|passages?|corpus|documents?)\b",
        r"\A(?:the question|it) (?:cannot|can ?not|can['’]t|could not) be (?:answered|determined|said)",
    )
)


def reads_as_refusal(sentences: Sequence[AnswerSentence]) -> bool:
    """Whether the answer only says, in English as the prompts ask, that the passages do not answer the question.

    At most three sentences, the first of which says so, and none of the others cites a passage. An answer to a part
    of the question that names what the passages leave open is none.
    """
    if not 1 <= len(sentences) <= MAX_SENTENCES or any(sentence.citations for sentence in sentences[1:]):
        return False
    first = " ".join(sentences[0].text.split())
    return any(pattern.search(first) for pattern in _PATTERNS)

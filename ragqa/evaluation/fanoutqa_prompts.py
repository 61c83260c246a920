"""What a model is asked in FanOutQA: the prompt's file as the system message, the rest framed as data.

The intent is that of the paper's prompts (Zhu et al. 2024), in our own words. Wikipedia's text, the question
and the model's own searches stand between tags with a code, a digest of all of them, so that no page can close a tag or
give an instruction (as in `ragqa.generation.prompts`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from ragqa.cleaning import without_invisible
from ragqa.generation.prompts import Message, load_prompt
from ragqa.types import PromptVersion

PROMPTS = ("fanoutqa_closed_book", "fanoutqa_open_book", "fanoutqa_evidence_provided", "fanoutqa_judge")
MAX_ATTRIBUTE_CHARS = 200  # of a title or a search above a fragment
_TAGS = "question|document|fragment|result|search|reference|submission"
_TAG_LIKE = re.compile(rf"[<＜﹤‹〈](?=[\s/]*(?:{_TAGS}))", re.IGNORECASE)
_CONTROL_TOKEN = re.compile(r"([<\[](?=\||/?INST\]|</?SYS>>|/?s>|(?:start|end)_of_turn>)|\|(?=>))", re.IGNORECASE)


def instructions(name: str) -> str:
    """The prompt of this name as it comes with ragqa; a benchmark's wording is not a user's to change."""
    return load_prompt(name).instructions


def prompt_version(name: str) -> PromptVersion:
    """The prompt's name with the first 12 digits of its sha256."""
    return PromptVersion(name, hashlib.sha256(instructions(name).encode()).hexdigest()[:12])


def code_of(texts: Iterable[str]) -> str:
    """The code that tags around these texts carry: none of their authors can know it."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()[:12]


def frame(name: str, code: str, text: str, **attributes: str) -> str:
    """The text between tags, what looks like a tag or a control token in it changed just enough not to be one."""
    shown = "".join(f' {key}="{_attribute(value)}"' for key, value in attributes.items())
    return f"<{name}-{code}{shown}>\n{defused(text)}\n</{name}-{code}>"


def defused(text: str) -> str:
    """The text without invisible characters, and without anything that looks like a tag of ours."""
    return _CONTROL_TOKEN.sub(r"\1 ", _TAG_LIKE.sub("(", without_invisible(text)))


def messages_of(name: str, code: str, content: str) -> list[Message]:
    """The system message of this prompt for frames of this code, and what is framed as the user's."""
    return [
        {"role": "system", "content": instructions(name).replace("{code}", code)},
        {"role": "user", "content": content},
    ]


def _attribute(text: str) -> str:
    return " ".join(defused(text).replace('"', "'").replace(">", "").split())[:MAX_ATTRIBUTE_CHARS]

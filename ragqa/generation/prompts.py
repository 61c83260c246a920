"""What a language model is asked: a prompt's instructions, then framed passages and question. Pure.

The instructions (`ragqa.generation.prompt_files`) have the intent of RIRAG's (section 5.2) and AUEB's (appendix B)
prompts in our own words. Passages, question and an answer to correct come from outside and may hold instructions. Each
stands in a frame whose tag carries a code, a digest of everything framed, so the author of a passage cannot know it;
what looks like a tag of ours or like a chat template's control token is defused inside the frame, and the system
message says that frames hold data only.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from ragqa.cleaning import without_invisible
from ragqa.generation.prompt_files import PromptText, load_prompt
from ragqa.types import Passage, PromptVersion, Question

QUESTION_MAX_CHARS = 4_000  # about 1,000 tokens
PASSAGE_MAX_CHARS = 6_000  # about 1,500 tokens; the longest kept passages are tables
PASSAGES_MAX_CHARS = 60_000  # all passages together: ten of the longest, about 15,000 tokens
ANSWER_MAX_CHARS = 30_000  # of an answer to correct; a longer one is not sent
MIN_PASSAGE_CHARS = 200  # a passage that would be cut below this is not sent at all
SOURCE_MAX_CHARS = 200  # title and section above a passage

_CUT = " […]"
_TAG_LIKE = re.compile(r"[<＜﹤‹〈](?=[\s/]*(?:passage|question|answer))", re.IGNORECASE)
_CONTROL_TOKEN = re.compile(r"([<\[](?=\||/?INST\]|</?SYS>>|/?s>|(?:start|end)_of_turn>)|\|(?=>))", re.IGNORECASE)


class Message(TypedDict):
    """One chat message as the protocol has it."""

    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages, the highest passage number an answer may cite, in words what had to be cut, which prompt it is."""

    messages: tuple[Message, ...]
    n_passages: int
    version: PromptVersion
    note: str = ""

    @property
    def n_chars(self) -> int:
        """How much is sent."""
        return sum(len(message["content"]) for message in self.messages)


def build_messages(question: Question, passages: Sequence[Passage]) -> list[Message]:
    """The system message with the rules, then one user message with the framed passages and the framed question."""
    return list(build_prompt(question, passages).messages)


def build_prompt(question: Question, passages: Sequence[Passage], text: PromptText | None = None) -> Prompt:
    """The messages for this question and the first passages that fit, best first; citation [n] means passages[n - 1].

    Cut are a question above `QUESTION_MAX_CHARS`, a passage above `PASSAGE_MAX_CHARS` and, once all passages reach
    `PASSAGES_MAX_CHARS`, the rest; the note says so. Equal input gives equal messages. ``text`` is the prompt
    "answer" where not given.
    """
    return build_numbered_prompt(question, list(enumerate(passages, start=1)), text or load_prompt("answer"))


def build_numbered_prompt(
    question: Question, numbered: Sequence[tuple[int, Passage]], text: PromptText, answer: str = ""
) -> Prompt:
    """As `build_prompt`, for passages with the numbers given, ascending; ``answer`` is one to correct, marks included.

    An answer above `ANSWER_MAX_CHARS` would come back shortened: do not send it.
    """
    asked, asked_cut = _bounded(without_invisible(question.text).strip(), QUESTION_MAX_CHARS)
    passages = [passage for _, passage in numbered]
    texts, n_cut = _fitting([without_invisible(passage.text).strip() for passage in passages])
    sources = [_source(passage) for passage in passages[: len(texts)]]
    written = _bounded(without_invisible(answer).strip(), ANSWER_MAX_CHARS)[0]
    parts = [asked, *texts, *sources, *([written] if written else [])]
    code = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
    blocks = [
        f'<passage-{code} number="{number}">\n{_defused(source)}\n{_defused(body)}\n</passage-{code}>'
        for (number, _), source, body in zip(numbered, sources, texts, strict=False)
    ]
    blocks.append(f"<question-{code}>\n{_defused(asked)}\n</question-{code}>")
    if written:
        blocks.append(f"<answer-{code}>\n{_defused(written)}\n</answer-{code}>")
    return Prompt(
        messages=(
            {"role": "system", "content": text.system(code)},
            {"role": "user", "content": "\n\n".join(blocks)},
        ),
        n_passages=max((number for number, _ in numbered[: len(texts)]), default=0),
        version=text.version,
        note=_note(asked_cut=asked_cut, n_cut=n_cut, n_left_out=len(passages) - len(texts)),
    )


def _fitting(texts: Sequence[str]) -> tuple[list[str], int]:
    """The first texts within both limits, and how many of them were cut."""
    fitting: list[str] = []
    left = PASSAGES_MAX_CHARS
    n_cut = 0
    for text in texts:
        limit = min(PASSAGE_MAX_CHARS, left)
        if limit < min(len(text), MIN_PASSAGE_CHARS):
            break
        bounded, is_cut = _bounded(text, limit)
        fitting.append(bounded)
        left -= min(len(text), limit)
        n_cut += is_cut
    return fitting, n_cut


def _bounded(text: str, limit: int) -> tuple[str, bool]:
    """The text, or its first ``limit`` characters and a mark; whether it was cut."""
    return (text, False) if len(text) <= limit else (text[:limit].rstrip() + _CUT, True)


def _source(passage: Passage) -> str:
    """Where the passage comes from, on one line."""
    names = (passage.title or passage.document_id, passage.section, passage.number)
    line = " | ".join(" ".join(without_invisible(name).split()) for name in names if name.strip())
    return "Source: " + _bounded(line, SOURCE_MAX_CHARS)[0]


def _defused(text: str) -> str:
    """The text with what looks like a tag or a control token changed just enough not to be one."""
    return _CONTROL_TOKEN.sub(r"\1 ", _TAG_LIKE.sub("(", text))


def _note(*, asked_cut: bool, n_cut: int, n_left_out: int) -> str:
    """What a reader must know about cuts; empty where nothing was cut."""
    notes = []
    if asked_cut:
        notes.append(f"Of the question, the language model got the first {QUESTION_MAX_CHARS:,} characters only.")
    if n_cut:
        notes.append(f"Passages sent to the language model only in part, for their length: {n_cut}.")
    if n_left_out:
        notes.append(f"Kept passages not sent to the language model, since all together are too long: {n_left_out}.")
    return " ".join(notes)

"""Clean-up: removes text that is no answer from a small language model's reply. Pure: text in, text out.

Such models repeat themselves until they are stopped, copy the frames and rules they were sent, begin with a remark
about the task, and wrap an answer in code or JSON. ``Answer.raw`` keeps the whole reply; a note describes what was
removed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ragqa.generation.answers import without
from ragqa.infra.cleaning import without_controls
from ragqa.types import Answer, AnswerSentence

COPIED_WORDS: Final = 7  # words in a row from the instructions that make a sentence a copy of them
ASKED_AGAIN: Final = 0.8  # share of words from the question that makes a question in the answer an echo of it
SILENCE: Final = " the corpus does not say "  # the sentence that the prompts require for unanswered parts, as `_words`
FRAMES: Final = 2  # tags: an opening and a closing one
REPEATED_WORDS: Final = 5  # a line of at least this many words may not be repeated
LOOKED_BACK: Final = 2_000  # characters searched for a repetition
REPEATED_CHARS: Final = 80  # if this many characters at the end of the text ...
REPEATS: Final = 4  # ... occur this often, the model is repeating itself

_FRAME: Final = re.compile(
    r"</?(?:passage|question|answer)(?:-[0-9a-f]{4,16}|-\{code\})?(?:\s+number=\"?\d*\"?)?\s*/?>"
)
_FENCE: Final = re.compile(r"^[ \t]*(?:```|~~~)[\w-]*[ \t]*$", re.MULTILINE)
_LEAD: Final = re.compile(
    r"^[ \t]*(?:the )?(?:relevant )?(?:passage|source|question)s?(?: is| are)?:[ \t]*$", re.MULTILINE | re.IGNORECASE
)
_ABOUT: Final = re.compile(r"the question is\b", re.IGNORECASE)
_TASK: Final = re.compile(
    r"^[ \t]*to answer (?:the|this|your) question(?:\s*[\"“][^\"”\n]*[\"”])?[^.:\n]*"
    r"(?:\b(?:we|i) (?:need|have|must|should|will)\b[^.:\n]*[.:]|\bfollowing\b[^.:\n]*:)(?=\s|\Z)",
    re.MULTILINE | re.IGNORECASE,
)
_WHOLE: Final = re.compile(r"[.!?:;。！？…][\"'”’)\]»*]*\Z")
_LABEL: Final = re.compile(r"\A\s*\**(?:answer|final answer|response|corrected answer)\**\s*:\**\s*", re.IGNORECASE)
_REMARK: Final = re.compile(
    r"(?:sure|certainly|of course|okay|ok)?(?: thing)?[,!.]?\s*"
    r"(?:(?:here is|here's|here are|below is|the following is|i(?: wi|')ll answer)\b[^.]{0,120}[:.])?\Z",
    re.IGNORECASE,
)
_KEYS: Final = ("answer", "response", "text")
_PIECES: Final = re.compile(r"[.!?\n]")
_WORDS: Final = re.compile(r"[^\W_]+")


class Repetition:
    """Detects a stretch of text that is repeated again and again as the text grows."""

    def __init__(self) -> None:
        self._tail = ""
        self._unread = 0

    def add(self, text: str) -> bool:
        """Appends text; returns whether the whole now ends in repetitions."""
        self._tail = (self._tail + text)[-LOOKED_BACK:]
        self._unread += len(text)
        if self._unread < REPEATED_CHARS:
            return False
        self._unread = 0
        return self._tail.count(self._tail[-REPEATED_CHARS:]) >= REPEATS if len(self._tail) > REPEATED_CHARS else False


def unwrapped(raw: str, prompt: str = "") -> str:
    """The reply without frames, fences, label, lines of ``prompt``, repeated lines and a JSON wrapper."""
    lines = {_words(line) for line in prompt.splitlines()}
    bare = _TASK.sub("", _LEAD.sub("", _FENCE.sub("", _FRAME.sub("", raw))))
    kept: list[str] = []
    for line in bare.split("\n"):
        words = _words(line)
        if not words.strip() or words not in lines:
            kept.append(line)
        if len(words.split()) >= REPEATED_WORDS:
            lines.add(words)
    text = _LABEL.sub("", "\n".join(kept).lstrip(), count=1)
    if text.strip().startswith("{"):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
        texts = [value[key] for key in _KEYS if isinstance(value, dict) and isinstance(value.get(key), str)]
        return without_controls(texts[0]) if len(texts) == 1 else text  # JSON can escape any character
    return text


def is_prompt(raw: str) -> bool:
    """Whether the reply repeats passages in the frames they were sent in."""
    return len(_FRAME.findall(raw)) >= FRAMES


def told_in(messages: Sequence[Mapping[str, Any]]) -> str:
    """The text of these messages that an answer must not repeat: the instructions and the passages' source lines."""
    sources = [line for each in messages[1:] for line in each["content"].splitlines() if line.startswith("Source: ")]
    return "\n".join([messages[0]["content"], *sources])


def without_echoes(answer: Answer, instructions: str, question: str) -> tuple[Answer, str]:
    """The answer without sentences that repeat it, the instructions or the question, and a note on them.

    ``raw`` does not change. The citations of a repeated sentence move to its first occurrence. An answer made only of
    echoes loses every sentence. The sentence that the corpus does not say is removed if the answer says anything else:
    it then concerns a part of the question, and the note says so.
    """
    instruction_words, asked = _words(instructions), _words(question)
    rules = _words("\n".join(line for line in instructions.splitlines() if not line.startswith("Source: ")))
    pieces = {_words(piece) for piece in _PIECES.split(instructions)}
    first: dict[str, int] = {}
    sentences = list(answer.sentences)
    echoed, again, silent = set[int](), set[int](), set[int]()
    for index, sentence in enumerate(answer.sentences):
        words = _words(sentence.text)
        is_told = words in pieces or (len(words.split()) >= COPIED_WORDS and words in instruction_words)
        is_told = is_told or _has_run_of(words, rules, asked) or _is_asked(sentence, words, asked)
        if words == SILENCE:
            silent.add(index)
        elif not words.strip() or words == asked or is_told or _is_remark(index, sentence):
            echoed.add(index)
        elif words in first:
            again.add(index)
            cited = {*sentences[first[words]].citations, *sentence.citations}
            sentences[first[words]] = replace(sentences[first[words]], citations=tuple(sorted(cited)))
        else:
            first[words] = index
    if not first and silent:
        silent.remove(min(silent))  # the answer says nothing else, so it stays
    if not (echoed or again or silent):
        return answer, ""
    kept = without(replace(answer, sentences=tuple(sentences)), echoed | again | silent)
    of_part = "The model says that the corpus does not answer a part of the question." if first and silent else ""
    return replace(kept, raw=answer.raw), " ".join(filter(None, (of_part, _said(len(echoed), len(again)))))


def without_unfinished(answer: Answer) -> tuple[Answer, str]:
    """The answer without a last sentence that was cut off ("Gold weighs about 1"), unless it is the only one."""
    if len(answer.sentences) < 2 or _WHOLE.search(answer.sentences[-1].text):
        return answer, ""
    kept = without(answer, {len(answer.sentences) - 1})
    return replace(kept, raw=answer.raw), "Its last sentence was cut off and is left out."


def _words(text: str) -> str:
    """The words in lower case, a space around each."""
    return f" {' '.join(_WORDS.findall(text.casefold()))} "


def _has_run_of(words: str, rules: str, asked: str) -> bool:
    """Whether `COPIED_WORDS` words in a row come from the rules and not from the question."""
    each = words.split()
    runs = (f" {' '.join(each[at : at + COPIED_WORDS])} " for at in range(len(each) - COPIED_WORDS + 1))
    return any(run in rules and run not in asked for run in runs)


def _is_asked(sentence: AnswerSentence, words: str, asked: str) -> bool:
    """Whether it is a question in nearly the same words as the one asked."""
    known = set(asked.split())
    each = words.split()
    return sentence.text.rstrip().endswith("?") and sum(word in known for word in each) >= ASKED_AGAIN * len(each)


def _is_remark(index: int, sentence: AnswerSentence) -> bool:
    """Whether it is about the task: "The question is: …", or at the beginning "Sure! Here is the answer:"."""
    if _ABOUT.match(sentence.text):
        return True
    return index <= 1 and not sentence.citations and bool(_REMARK.match(sentence.text.strip()))


def _said(n_echoed: int, n_again: int) -> str:
    parts: Sequence[str] = [
        f"{n_again} that repeat another" if n_again else "",
        f"{n_echoed} that repeat the question, the instructions or are about the task" if n_echoed else "",
    ]
    return f"Sentences of the model left out: {' and '.join(filter(None, parts))}." if any(parts) else ""

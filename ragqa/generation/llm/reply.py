"""Collects a language model's stream and turns it into an answer. Independent of any server."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from ragqa.english.words import language_of
from ragqa.generation.citations import parse_cited_text
from ragqa.generation.llm.cleanup import Repetition, told_in, unwrapped, without_echoes, without_unfinished
from ragqa.generation.prompts import Prompt
from ragqa.infra.cleaning import without_controls
from ragqa.types import Answer, AnswerSentence, Usage

_OPEN, _CLOSE = "<think>", "</think>"


class ThinkingFilter:
    """Passes an answer on piece by piece, without a block of thoughts at its very beginning.

    Some servers send a reasoning model's thoughts in the same text as the answer. Only a block that opens the text is
    removed; the same tags later on belong to the answer. It holds back only characters that it cannot judge yet.
    """

    def __init__(self) -> None:
        self._held = ""
        self._thinking = False
        self._passing = False
        self.has_thoughts = False

    def feed(self, piece: str) -> str:
        """The part of the text that may be shown now; empty while the model thinks."""
        if self._passing:
            return piece
        self._held += piece
        if not self._thinking:
            self._held = self._held.lstrip()
            if self._held.startswith(_OPEN):
                self._thinking = self.has_thoughts = True
                self._held = self._held[len(_OPEN) :]
            elif not _OPEN.startswith(self._held):
                return self._pass(self._held)
        if self._thinking:
            _, closed, answer = self._held.partition(_CLOSE)
            if closed:
                self._thinking, self._held = False, ""
                return self._pass(answer.lstrip())
            self._held = self._held[-len(_CLOSE) :]  # enough to notice a tag that arrives in two pieces
        return ""

    def finish(self) -> str:
        """Text still held back at the end: a beginning that only looked like a tag, never thoughts."""
        return "" if self._thinking or self._passing else self._pass(self._held)

    def _pass(self, text: str) -> str:
        self._passing, self._held = True, ""
        return text


MAX_SENTENCES = 3  # a longer answer is no refusal, whatever it begins with

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

    It has at most three sentences, the first says so, and none of the others cites a passage. An answer to a part of
    the question that names the parts left open is not a refusal.
    """
    if not 1 <= len(sentences) <= MAX_SENTENCES or any(sentence.citations for sentence in sentences[1:]):
        return False
    first = " ".join(sentences[0].text.split())
    return any(pattern.search(first) for pattern in _PATTERNS)


MAX_MODEL_CHARS = 200  # of the model's name that a server reports
MAX_REFUSAL_CHARS = 2_000
MAX_TOKENS = 10**9  # the highest count of a server that is believed
MAX_ANSWER_CHARS = 200_000  # of a server that never stops; more than 32,768 tokens, the highest setting, need


class Writer(Protocol):
    """The generator and model that an answer names as its author."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...


class Reply:
    """Collects the chunks of one stream. Parts of a chunk that do not follow the protocol count as absent.

    ``broke`` says why the stream broke, empty if it did not; ``left_out`` names request parameters that the server did
    not understand; ``progress`` says what happens before the text comes. The reader of the stream sets these.
    ``stopped`` is set by a caller who no longer waits; the request is then not retried. ``model`` is the name that the
    server reports, empty if it reports none.
    """

    def __init__(self, max_chars: int = 0, stopped: threading.Event | None = None) -> None:
        """``max_chars`` may end the reply before `MAX_ANSWER_CHARS`; 0 stands for no earlier end."""
        self.stopped = stopped or threading.Event()
        self.broke = ""
        self.left_out: tuple[str, ...] = ()
        self.progress = ""
        self.model = ""
        self._max_chars = max_chars
        self._pieces: list[str] = []
        self._n_chars = 0
        self._thinking = ThinkingFilter()
        self._repetition = Repetition()
        self._is_looping = False
        self._usage = Usage()
        self._finish_reason = ""  # as the server sent it; empty if it sent none
        self._refusal = ""
        self._beside = ""  # what the server sent besides text

    @property
    def raw(self) -> str:
        """The text so far, marks included, thoughts excluded."""
        return "".join(self._pieces)

    @property
    def is_too_long(self) -> bool:
        return self._n_chars > self._limit

    @property
    def is_over(self) -> bool:
        """Whether reading on is pointless: the reply is too long, or the model repeats itself."""
        return self.is_too_long or self._is_looping

    @property
    def n_chars(self) -> int:
        """Characters of the text so far."""
        return self._n_chars

    @property
    def usage(self) -> Usage:
        """The server's token counts so far."""
        return self._usage

    @property
    def _limit(self) -> int:
        return min(self._max_chars, MAX_ANSWER_CHARS) if self._max_chars else MAX_ANSWER_CHARS

    @property
    def is_nothing(self) -> bool:
        """Whether there is no text, no refusal and no finish reason: not even an empty answer."""
        return not (self.raw.strip() or self._refusal or self._finish_reason)

    @property
    def instead(self) -> str:
        """What was sent instead of an answer; "" if there is an answer or a reason for its absence."""
        if self.raw.strip() or self._refusal or self._finish_reason == "content_filter":
            return ""
        return self._beside or ("reasoning" if self._thinking.has_thoughts else "")

    def take(self, chunk: object) -> str:
        """The new text of this chunk, cleaned of control characters; often empty. Reasoning is not text."""
        self._usage = _usage(getattr(chunk, "usage", None)) or self._usage
        self.model = without_controls(_text(chunk, "model"))[:MAX_MODEL_CHARS].strip() or self.model
        choices = getattr(chunk, "choices", None)
        choice = choices[0] if isinstance(choices, list) and choices else None
        reason = getattr(choice, "finish_reason", None)
        if isinstance(reason, str) and reason:
            self._finish_reason = reason[:MAX_MODEL_CHARS]
        delta = getattr(choice, "delta", None)
        self._refusal = (self._refusal + without_controls(_text(delta, "refusal")))[:MAX_REFUSAL_CHARS]
        if getattr(delta, "tool_calls", None) or getattr(delta, "function_call", None):
            self._beside = "calls of tools"
        elif _text(delta, "reasoning_content") or _text(delta, "reasoning"):
            self._beside = self._beside or "reasoning"
        content = _text(delta, "content")[: self._limit + 1]
        return self._add(self._thinking.feed(without_controls(content))[: self._limit + 1 - self._n_chars])

    def finish(self) -> str:
        """Text that was held back until the stream ended; usually empty."""
        return self._add(self._thinking.finish())

    def _add(self, text: str) -> str:
        self._pieces.append(text)
        self._n_chars += len(text)
        self._is_looping = self._is_looping or self._repetition.add(text)
        return text

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values from which `restore` rebuilds this reply."""
        return {
            "raw": self.raw,
            "usage": [self._usage.prompt_tokens, self._usage.completion_tokens],
            "finish_reason": self._finish_reason,
            "refusal": self._refusal,
            "left_out": list(self.left_out),
            "model": self.model,
        }

    def restore(self, cached: Mapping[str, Any]) -> str:
        """Turns this into the reply whose `to_json` gave ``cached``, and returns its text."""
        self._usage = Usage(*cached["usage"])
        self._finish_reason, self._refusal = cached["finish_reason"], cached["refusal"]
        self.left_out = tuple(cached["left_out"])
        self.model = cached.get("model", "")  # unknown to earlier versions
        return self._add(cached["raw"])

    def answer(self, writer: Writer, prompt: Prompt, *, max_tokens: int, n_passages: int | None = None) -> Answer:
        """The answer with valid citations of passages 1 to ``n_passages`` (None: those in the prompt)."""
        frame = told_in(prompt.messages)
        cited = parse_cited_text(unwrapped(self.raw, frame), prompt.n_passages if n_passages is None else n_passages)
        answer = Answer(cited.text, cited.sentences, writer.name, self.model or writer.model, raw=self.raw)
        answer, left_out = without_echoes(answer, frame, prompt.asked)
        finish_reason, note = self._ending(max_tokens, is_empty=not answer.sentences)
        if finish_reason == "length":
            answer, cut = without_unfinished(answer)
            left_out = f"{cut} {left_out}".strip()
        is_refusal = reads_as_refusal(answer.sentences)
        notes = [note, left_out, prompt.note]
        if is_refusal:
            notes.append(REFUSAL_NOTE)
        if cited.rejected:
            marks = ", ".join(f"[{number}]" for number in cited.rejected[:10])
            notes.append(f"The model cited {marks}, but was sent passages 1 to {prompt.n_passages}; taken out.")
        elif answer.sentences and not is_refusal and not any(sentence.citations for sentence in answer.sentences):
            notes.append("The model cited no passage.")
        if answer.sentences and (language := language_of(answer.text)) != language_of(prompt.asked):
            notes.append(f"The model answered in another language than the question's ({language}).")
        if self.left_out:
            notes.append(f"Not understood by the server and left out of the request: {', '.join(self.left_out)}.")
        return replace(
            answer,
            usage=self._usage,
            finish_reason=finish_reason,
            rejected_citations=cited.rejected,
            note=" ".join(filter(None, notes)),
            is_refusal=is_refusal,
            prompts=(prompt.version,),
        )

    def _ending(self, max_tokens: int, *, is_empty: bool) -> tuple[str, str]:
        """Our finish reason, and a note on it."""
        reason = self._finish_reason
        refusal = f'The model declined: "{self._refusal}".' if self._refusal else ""
        limit = f"at the limit of {max_tokens:,} tokens; raise it in the settings"
        if self.broke:
            return "interrupted", f"The answer broke off; what had arrived is shown: {self.broke}."
        if is_empty and reason == "length":
            return "empty", f"The model wrote no answer: it stopped, still reasoning, {limit}."
        if is_empty and reason == "content_filter":
            return "empty", "The server's content filter withheld the answer. Word the question differently."
        if is_empty:
            return "empty", refusal or "The model wrote no answer. Ask again or choose another model."
        if self._is_looping and not self.is_too_long:
            return "length", "The answer was stopped where the model began to repeat itself."
        if self.is_too_long:
            return "length", f"The answer was stopped after {self._limit:,} characters."
        if reason == "length":
            return "length", f"The answer stops {limit} for the rest."
        if reason == "content_filter":
            return "interrupted", "The server's content filter stopped the answer here."
        if not reason:
            return "interrupted", "The server ended the stream without saying that the answer is complete."
        return "stop", refusal


def _text(part: object, name: str) -> str:
    value = getattr(part, name, None)
    return value if isinstance(value, str) else ""


def _usage(usage: Any) -> Usage | None:  # noqa: ANN401 - whatever the server sent
    """The counts, None if there are none; a count that is not a natural number is 0."""
    counts = [getattr(usage, name, 0) for name in ("prompt_tokens", "completion_tokens")]
    prompt, completion = (count if isinstance(count, int) and 0 < count <= MAX_TOKENS else 0 for count in counts)
    return Usage(prompt, completion) if prompt or completion else None

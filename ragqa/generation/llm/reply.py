"""What a language model's stream has said so far, and the answer it amounts to in the end. Knows no server."""

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
    taken out; the same words later on are the answer's own. Holds back at most the characters it cannot yet judge.
    """

    def __init__(self) -> None:
        self._held = ""
        self._thinking = False
        self._passing = False
        self.has_thoughts = False

    def feed(self, piece: str) -> str:
        """What of the text so far may be shown now; empty while the model thinks."""
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
        """What was still held back when the text ended: a beginning that only looked like a tag, never thoughts."""
        return "" if self._thinking or self._passing else self._pass(self._held)

    def _pass(self, text: str) -> str:
        self._passing, self._held = True, ""
        return text


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


MAX_MODEL_CHARS = 200  # of the name that a server reports
MAX_REFUSAL_CHARS = 2_000
MAX_TOKENS = 10**9  # that a server may claim to have counted
MAX_ANSWER_CHARS = 200_000  # a server that never stops is stopped here; above 32,768 tokens, the highest setting


class Writer(Protocol):
    """Who an answer is said to be by."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...


class Reply:
    """Collects the chunks of one stream. Parts of a chunk that are not what the protocol says count as absent.

    ``broke`` says why the stream broke, empty where it did not; ``left_out`` names parameters of the request that the
    server did not understand; ``progress`` says what is done before the text comes. All are set by whoever reads the
    stream; ``stopped`` by who waits for it no longer: it is not asked for again then. ``model`` is what the server says
    answers, empty where it does not say.
    """

    def __init__(self, max_chars: int = 0, stopped: threading.Event | None = None) -> None:
        """``max_chars`` end the reply earlier than `MAX_ANSWER_CHARS`; 0: not earlier."""
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
        self._finish_reason = ""  # as the server has it; empty: it never said
        self._refusal = ""
        self._beside = ""  # what came that is no text

    @property
    def raw(self) -> str:
        """The text so far, marks included, thoughts excluded."""
        return "".join(self._pieces)

    @property
    def is_too_long(self) -> bool:
        return self._n_chars > self._limit

    @property
    def is_over(self) -> bool:
        """Whether nothing more is worth reading: too long, or the model goes round in circles."""
        return self.is_too_long or self._is_looping

    @property
    def n_chars(self) -> int:
        """Characters of the text so far."""
        return self._n_chars

    @property
    def usage(self) -> Usage:
        """Tokens as the server counted them so far."""
        return self._usage

    @property
    def _limit(self) -> int:
        return min(self._max_chars, MAX_ANSWER_CHARS) if self._max_chars else MAX_ANSWER_CHARS

    @property
    def is_nothing(self) -> bool:
        """No text, no refusal and no word that this was all: not an answer, not even an empty one."""
        return not (self.raw.strip() or self._refusal or self._finish_reason)

    @property
    def instead(self) -> str:
        """What was sent in the place of an answer, "" where there is one, or a reason why there is none."""
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
        self._refusal = (self._refusal + _text(delta, "refusal"))[:MAX_REFUSAL_CHARS]
        if getattr(delta, "tool_calls", None) or getattr(delta, "function_call", None):
            self._beside = "calls of tools"
        elif _text(delta, "reasoning_content") or _text(delta, "reasoning"):
            self._beside = self._beside or "reasoning"
        content = _text(delta, "content")[: self._limit + 1]
        return self._add(self._thinking.feed(without_controls(content))[: self._limit + 1 - self._n_chars])

    def finish(self) -> str:
        """Text that had been held back until the stream ended; usually empty."""
        return self._add(self._thinking.finish())

    def _add(self, text: str) -> str:
        self._pieces.append(text)
        self._n_chars += len(text)
        self._is_looping = self._is_looping or self._repetition.add(text)
        return text

    def to_json(self) -> dict[str, Any]:
        """What `restore` needs to make this reply again, as plain JSON values."""
        return {
            "raw": self.raw,
            "usage": [self._usage.prompt_tokens, self._usage.completion_tokens],
            "finish_reason": self._finish_reason,
            "refusal": self._refusal,
            "left_out": list(self.left_out),
            "model": self.model,
        }

    def restore(self, cached: Mapping[str, Any]) -> str:
        """Becomes the reply whose `to_json` gave ``cached``, and gives its text."""
        self._usage = Usage(*cached["usage"])
        self._finish_reason, self._refusal = cached["finish_reason"], cached["refusal"]
        self.left_out = tuple(cached["left_out"])
        self.model = cached.get("model", "")  # unknown to earlier versions
        return self._add(cached["raw"])

    def answer(self, writer: Writer, prompt: Prompt, *, max_tokens: int, n_passages: int | None = None) -> Answer:
        """The answer with verified citations, of passages 1 to ``n_passages`` (None: those the prompt held)."""
        told = told_in(prompt.messages)
        cited = parse_cited_text(unwrapped(self.raw, told), prompt.n_passages if n_passages is None else n_passages)
        answer = Answer(cited.text, cited.sentences, writer.name, self.model or writer.model, raw=self.raw)
        answer, left_out = without_echoes(answer, told, prompt.asked)
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
        """Our finish reason and what to say about it."""
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
    """The counts, None where there are none; a count that is not a natural number is 0."""
    counts = [getattr(usage, name, 0) for name in ("prompt_tokens", "completion_tokens")]
    prompt, completion = (count if isinstance(count, int) and 0 < count <= MAX_TOKENS else 0 for count in counts)
    return Usage(prompt, completion) if prompt or completion else None

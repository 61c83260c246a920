"""What a language model's stream has said so far, and the answer it amounts to in the end. Knows no server."""

from __future__ import annotations

from typing import Any, Protocol

from ragqa.cleaning import without_controls
from ragqa.generation.citations import parse_cited_text
from ragqa.generation.prompts import Prompt
from ragqa.generation.thinking import ThinkingFilter
from ragqa.types import Answer, Usage

__all__ = ["MAX_ANSWER_CHARS", "Reply"]

MAX_ANSWER_CHARS = 200_000  # a server that never stops is stopped here; above 32,768 tokens, the highest setting


class _Writer(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...


class Reply:
    """Collects the chunks of one stream. Parts of a chunk that are not what the protocol says count as absent."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._n_chars = 0
        self._thinking = ThinkingFilter()
        self._usage = Usage()
        self._finish_reason = ""  # as the server has it; empty: it never said
        self._refusal = ""

    @property
    def raw(self) -> str:
        """The text so far, marks included, thoughts excluded."""
        return "".join(self._pieces)

    @property
    def is_too_long(self) -> bool:
        return self._n_chars > MAX_ANSWER_CHARS

    @property
    def is_nothing(self) -> bool:
        """No text, no refusal and no word that this was all: not an answer, not even an empty one."""
        return not (self.raw.strip() or self._refusal or self._finish_reason)

    def take(self, chunk: object) -> str:
        """The new text of this chunk, cleaned of control characters; often empty. Reasoning is not text."""
        self._usage = _usage(getattr(chunk, "usage", None)) or self._usage
        choices = getattr(chunk, "choices", None)
        choice = choices[0] if isinstance(choices, list) and choices else None
        reason = getattr(choice, "finish_reason", None)
        if isinstance(reason, str) and reason:
            self._finish_reason = reason
        delta = getattr(choice, "delta", None)
        self._refusal += _text(delta, "refusal")
        return self._add(self._thinking.feed(without_controls(_text(delta, "content"))))

    def finish(self) -> str:
        """Text that had been held back until the stream ended; usually empty."""
        return self._add(self._thinking.finish())

    def _add(self, text: str) -> str:
        self._pieces.append(text)
        self._n_chars += len(text)
        return text

    def answer(
        self, writer: _Writer, prompt: Prompt, *, broke: str, left_out: tuple[str, ...], max_tokens: int
    ) -> Answer:
        """The answer with verified citations. ``broke`` says why the stream broke, empty where it did not."""
        cited = parse_cited_text(self.raw, prompt.n_passages)
        finish_reason, note = self._ending(broke, max_tokens, is_empty=not cited.sentences)
        notes = [note, prompt.note]
        if cited.rejected:
            marks = ", ".join(f"[{number}]" for number in cited.rejected[:10])
            notes.append(f"The model cited {marks}, but was sent passages 1 to {prompt.n_passages}; taken out.")
        elif cited.sentences and not any(sentence.citations for sentence in cited.sentences):
            notes.append("The model cited no passage.")
        if left_out:
            notes.append(f"Not understood by the server and left out of the request: {', '.join(left_out)}.")
        return Answer(
            text=cited.text,
            sentences=cited.sentences,
            generator=writer.name,
            model=writer.model,
            raw=self.raw,
            usage=self._usage,
            finish_reason=finish_reason,
            rejected_citations=cited.rejected,
            note=" ".join(filter(None, notes)),
        )

    def _ending(self, broke: str, max_tokens: int, *, is_empty: bool) -> tuple[str, str]:
        """Our finish reason and what to say about it."""
        reason = self._finish_reason
        refusal = f'The model declined: "{self._refusal}".' if self._refusal else ""
        limit = f"at the limit of {max_tokens:,} tokens; raise it in the settings"
        if broke:
            return "interrupted", f"The answer broke off and what had arrived is kept: {broke}."
        if is_empty and reason == "length":
            return "empty", f"The model wrote no answer: it stopped, still reasoning, {limit}."
        if is_empty and reason == "content_filter":
            return "empty", "The server's content filter withheld the answer. Word the question differently."
        if is_empty:
            return "empty", refusal or "The model wrote no answer. Ask again or choose another model."
        if self.is_too_long:
            return "length", f"The answer was stopped after {MAX_ANSWER_CHARS:,} characters."
        if reason == "length":
            return "length", f"The answer stops {limit} for the rest."
        if reason == "content_filter":
            return "interrupted", "The server's content filter stopped the answer here."
        if not reason:
            return "interrupted", "The server ended the stream without saying that the answer is complete."
        return "stop", refusal


def _text(delta: object, name: str) -> str:
    value = getattr(delta, name, None)
    return value if isinstance(value, str) else ""


def _usage(usage: Any) -> Usage | None:  # noqa: ANN401 - whatever the server sent
    """The counts, None where there are none; a count that is not a natural number is 0."""
    counts = [getattr(usage, name, 0) for name in ("prompt_tokens", "completion_tokens")]
    prompt, completion = (count if isinstance(count, int) and count > 0 else 0 for count in counts)
    return Usage(prompt, completion) if prompt or completion else None

"""Keeps a reasoning model's inline thoughts (``<think>…</think>`` before the answer) out of the answer."""

from __future__ import annotations

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

    def feed(self, piece: str) -> str:
        """What of the text so far may be shown now; empty while the model thinks."""
        if self._passing:
            return piece
        self._held += piece
        if not self._thinking:
            self._held = self._held.lstrip()
            if self._held.startswith(_OPEN):
                self._thinking, self._held = True, self._held[len(_OPEN) :]
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

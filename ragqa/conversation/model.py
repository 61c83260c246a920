"""Rewrites a follow-up question with a language model: one short call, whose reply must be a question."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final

from ragqa.conversation.history import Turn
from ragqa.english.reading import read
from ragqa.errors import GenerationError
from ragqa.generation.llm.client import ChatClient
from ragqa.generation.llm.reply import Reply
from ragqa.generation.prompts import build_follow_up_prompt, load_prompt
from ragqa.infra.cleaning import without_controls, without_invisible
from ragqa.settings.config import GenerationConfig
from ragqa.settings.environment import api_key, prompt_folder
from ragqa.types.streams import returned

MAX_CHARS: Final = 500  # of the rewriting; a longer reply is cut off
MAX_TOKENS: Final = 200


def rewritten_by_model(asked: str, thread: Sequence[Turn], config: GenerationConfig) -> tuple[str, str]:
    """The question rewritten to stand alone, and the server's name of the model that wrote it.

    Raises GenerationError if the server fails or the reply is not a question on the subject, ConfigError and ModelError
    as `ChatClient` does.
    """
    prompt = build_follow_up_prompt(
        asked, [(turn.question, turn.answer) for turn in thread], load_prompt("follow_up", prompt_folder())
    )
    client = ChatClient(replace(config, max_tokens=MAX_TOKENS, temperature=0.0), api_key())
    reply = Reply(MAX_CHARS)
    with closing(client):
        returned(client.write(prompt.messages, reply, seed=config.seed))
    return _checked(reply.raw, asked, thread), client.model


def _checked(reply: str, asked: str, thread: Sequence[Turn]) -> str:
    """The only line of the reply. Raises GenerationError if it is not a question or has another subject."""
    lines = [line.strip(" \t\"'“”*") for line in without_invisible(without_controls(reply)).splitlines()]
    found = [" ".join(line.split()) for line in lines if line]
    said = read(" ".join([asked, *(f"{turn.question} {turn.answer}" for turn in thread)])).content
    is_question = len(found) == 1 and found[0].endswith("?") and len(found[0]) <= MAX_CHARS
    if not is_question or not read(found[0]).content & said:
        start = " ".join(reply.split())[:80]
        msg = f"expected one question on what was asked, on one line, found {start!r}; edit the rewriting or ask again"
        raise GenerationError(msg)
    return found[0]

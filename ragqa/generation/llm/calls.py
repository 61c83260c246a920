"""Runs the completions of one answer, a few at a time, and counts them against a budget."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Generator as Stream
from contextlib import closing
from contextvars import copy_context
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from ragqa.errors import GenerationError
from ragqa.generation.llm.client import ChatClient
from ragqa.generation.llm.reply import Reply
from ragqa.generation.prompts import Prompt
from ragqa.settings.config import GenerationConfig
from ragqa.types import Usage
from ragqa.types.events.generation import Token, Working

PIECES_SECONDS = 0.05  # how often new text of a streamed call is passed on
HEARTBEAT_SECONDS = 0.25  # how long a reader waits after pressing Stop
SILENT_SECONDS = 1.0  # the same, while waiting for a single call
CHARS_PER_TOKEN = 4  # roughly, for English with the usual tokenizers
LONGEST_TOKEN = 8  # characters; a server that ignores max_tokens is stopped at this many per token


def tokens_in(n_chars: int) -> int:
    """The approximate number of tokens in this many characters."""
    return -(-n_chars // CHARS_PER_TOKEN)


def _phase(phase: str, *replies: Reply) -> str:
    """The phase, with the progress of the first call for which a local model reports any."""
    progress = next((reply.progress for reply in replies if reply.progress), "")
    return f"{phase}; {progress[:1].lower()}{progress[1:]}" if progress else phase


@dataclass(frozen=True, slots=True)
class Call:
    """One completion to request; ``temperature`` None stands for the configured one."""

    prompt: Prompt
    temperature: float | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class CallResult:
    """The outcome of ``calls[index]``: the reply, complete or broken off, or the error."""

    index: int
    reply: Reply
    error: GenerationError | None = None


def in_thread(write: Callable[[], Iterator[str]], stopped: threading.Event) -> Stream[str | None, None, None]:
    """Yields the pieces as they come, and None each second without one, so that the reader can stop.

    ``write`` is called in a thread of its own. Closing this generator sets ``stopped``, which ends the writing.
    """
    done: SimpleQueue[str | BaseException | None] = SimpleQueue()

    def work() -> None:
        try:
            for piece in write():
                done.put(piece)
                if stopped.is_set():
                    break
        except BaseException as caught:  # as in `Calls`
            done.put(caught)
        done.put(None)

    threading.Thread(target=copy_context().run, args=(work,), name="ragqa-writing", daemon=True).start()
    try:
        while True:
            try:
                piece = done.get(timeout=SILENT_SECONDS)
            except Empty:
                yield None
                continue
            if isinstance(piece, BaseException):
                raise piece
            if piece is None:
                return
            yield piece
    finally:
        stopped.set()


class ModelGenerator:
    """The base of the generators that ask a language model. May be shared by threads."""

    def __init__(self, config: GenerationConfig, api_key: str | None) -> None:
        """Sends no request yet. Raises ConfigError as `ChatClient` does."""
        self.config, self.client = config, ChatClient(config, api_key)

    @property
    def model(self) -> str:
        return self.client.model

    def close(self) -> None:
        """Closes the open connections; the generator cannot be used afterwards."""
        self.client.close()


class Calls:
    """Counts and runs the calls of one answer. Belongs to one thread.

    A call counts when it is made, whatever its outcome; the client's retries after 429, 5xx or a failed connection
    belong to the same call.
    """

    def __init__(self, client: ChatClient, config: GenerationConfig) -> None:
        self.made = 0
        self.usage = Usage()
        self._client = client
        self._config = config
        self._n_chars = 0

    @property
    def left(self) -> int:
        """Calls that the budget still allows."""
        return self._config.max_calls - self.made

    def run(self, calls: Sequence[Call], phase: str) -> Iterator[CallResult | Working]:
        """Yields the outcome of each call as it arrives, in any order, and `Working` every quarter of a second.

        The first `left` calls are made, in order, ``parallel_calls`` at a time. After an error no further call is
        started, because the client has retried already. Closing this generator ends the running calls.
        """
        waiting = deque(enumerate(calls[: self.left]))
        under_way: dict[int, Reply] = {}
        done: SimpleQueue[tuple[int, BaseException | None]] = SimpleQueue()
        stopped = threading.Event()
        try:
            while waiting or under_way:
                while waiting and len(under_way) < self._config.parallel_calls:
                    index, call = waiting.popleft()
                    under_way[index] = Reply(LONGEST_TOKEN * self._config.max_tokens, stopped)
                    self.made += 1
                    self._begin(index, call, under_way[index], done)
                try:
                    index, error = done.get(timeout=HEARTBEAT_SECONDS)
                except Empty:
                    replies = under_way.values()
                    n_chars = self._n_chars + sum(reply.n_chars for reply in replies)
                    yield Working(_phase(phase, *replies), self.made, n_chars)
                    continue
                reply = under_way.pop(index)
                self._count(reply)
                if error is not None and not isinstance(error, GenerationError):
                    raise error
                if error is not None:
                    waiting.clear()
                yield CallResult(index, reply, error)
        finally:
            stopped.set()

    def stream(self, call: Call, phase: str) -> Stream[Token | Working, None, CallResult]:
        """Makes one call regardless of the budget: yields its text as it arrives and returns its outcome.

        While the server is silent, it yields `Working` every quarter of a second. Closing this generator ends the call.
        """
        stopped = threading.Event()
        reply = Reply(LONGEST_TOKEN * self._config.max_tokens, stopped)
        done: SimpleQueue[tuple[int, BaseException | None]] = SimpleQueue()
        self.made += 1
        self._begin(0, call, reply, done)
        shown, quiet, error, is_done = 0, 0.0, None, False
        try:
            while not is_done:
                try:
                    _, error = done.get(timeout=PIECES_SECONDS)
                    is_done = True
                except Empty:
                    quiet += PIECES_SECONDS
                text = reply.raw[shown:]
                if text:
                    shown, quiet = shown + len(text), 0.0
                    yield Token(text)
                elif quiet >= HEARTBEAT_SECONDS and not is_done:
                    quiet = 0.0
                    yield Working(_phase(phase, reply), self.made, self._n_chars)
        finally:
            stopped.set()
        self._count(reply)
        if error is not None and not isinstance(error, GenerationError):
            raise error
        return CallResult(0, reply, error)

    def _begin(self, index: int, call: Call, reply: Reply, done: SimpleQueue[tuple[int, BaseException | None]]) -> None:
        def work() -> None:
            error: BaseException | None = None
            try:
                pieces = self._client.write(call.prompt.messages, reply, temperature=call.temperature, seed=call.seed)
                with closing(pieces):
                    for _ in pieces:
                        if reply.stopped.is_set():
                            break
            except BaseException as caught:  # of any kind: the waiting thread must learn of it
                error = caught
            done.put((index, error))

        run = copy_context().run  # so that the thread sees the reply cache of this context
        # A daemon, so that a thread that waits for a silent server does not keep the process alive.
        threading.Thread(target=run, args=(work,), name=f"ragqa-call-{index}", daemon=True).start()

    def _count(self, reply: Reply) -> None:
        self._n_chars += reply.n_chars
        self.usage = Usage(
            self.usage.prompt_tokens + reply.usage.prompt_tokens,
            self.usage.completion_tokens + reply.usage.completion_tokens,
        )

"""Answers in the form of OpenAI's chat API, so that any front end for it can ask a corpus.

Each corpus is a model, `ragqa:NAME`. The text ends with the sources and one line on verdicts and scores; the whole
proof is in the field `ragqa` beside `choices`.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from ragqa.conversation import MOST_TURNS, Turn
from ragqa.errors import CorpusError, QuestionError
from ragqa.pipeline import MAX_QUESTION_CHARS, MAX_TEXT_CHARS
from ragqa.records.view import View
from ragqa.records.words import place
from ragqa.server.api.service import passage_row
from ragqa.types.scores import Verdict

PREFIX: Final = "ragqa:"
_BREAK: Final = "\n\n"
_SOURCES, _UNSCORED, _COUNTS = f"{_BREAK}Sources:\n", "Not scored", "Sentences: "
_ENDING: Final = re.compile(rf"(?:{_SOURCES}.*|{_BREAK}(?:{_UNSCORED}|{_COUNTS})[^\n]*)\Z", re.DOTALL)


def corpus_of(model: str, corpora: Sequence[str]) -> str:
    """The corpus of a model's name. Raises QuestionError."""
    name = model.removeprefix(PREFIX)
    if not model.startswith(PREFIX) or name not in corpora:
        known = ", ".join(PREFIX + corpus for corpus in corpora) or "none"
        raise QuestionError(f"expected a model of {known}, found {model[:60]!r}; GET /v1/models lists them")
    return name


def thread_of(messages: Sequence[tuple[str, str]]) -> tuple[str, tuple[Turn, ...]]:
    """The last question and the turns before it, from (role, text) pairs; longer texts are cut.

    Raises QuestionError without a question.
    """
    spoken = [(role, text) for role, text in messages if role in {"user", "assistant"}]
    if not spoken or spoken[-1][0] != "user":
        msg = "expected a last message of the role user, the question; found another; send the question last"
        raise QuestionError(msg)
    turns: list[Turn] = []
    for role, text in spoken[:-1]:
        if role == "user":
            turns.append(Turn(text[:MAX_QUESTION_CHARS]))
        elif turns:
            turns[-1] = Turn(turns[-1].question, _ENDING.sub("", text)[:MAX_TEXT_CHARS])
    return spoken[-1][1], tuple(turns[-MOST_TURNS:])


def ending(view: View) -> str:
    """The text after the answer: the passages that it cites, and one line on its verdicts."""
    answer, passages = view.answer, view.selection.passages if view.selection else ()
    if answer is None:
        return ""
    cited = sorted({n for sentence in answer.sentences for n in sentence.citations if n <= len(passages)})
    lines = [f"[{n}] {place(passages[n - 1])}" for n in cited]
    text = _SOURCES + "\n".join(lines) if lines else ""
    return text + _BREAK + trust(view)


def trust(view: View) -> str:
    """One line: the number of sentences with each verdict, and RePASs."""
    answer = view.answer
    if answer is None or answer.is_refusal or not view.scored:
        return _UNSCORED + (": nothing is answered." if answer and answer.is_refusal else ".")
    counts = Counter(one.verdict for one in view.verdicts)
    named = [f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]]
    repass = view.scored.of(view.config.scoring.mode).repass
    return f"{_COUNTS}{', '.join(named) or 'none'}. RePASs {repass.composite:.2f}."


def proof(view: View) -> dict[str, Any]:
    """The extension field: record, sentences with citations and verdicts, passages, RePASs."""
    answer, passages = view.answer, view.selection.passages if view.selection else ()
    judged = {one.index: asdict(one) for one in view.verdicts}
    scored = view.scored.of(view.config.scoring.mode).repass if view.scored else None
    return {
        "record_id": view.record_id,
        "asked": view.asked.text,
        "is_refusal": bool(answer and answer.is_refusal),
        "sentences": [
            {"text": sentence.text, "citations": sentence.citations, "verdict": judged.get(n)}
            for n, sentence in enumerate(answer.sentences if answer else ())
        ],
        "passages": [passage_row(passage, view.config.index) for passage in passages],
        "repass": asdict(scored) | {"composite": scored.composite} if scored else None,
    }


def completion(model: str, view: View, text: str) -> dict[str, Any]:
    """A complete `chat.completion`."""
    message = {"role": "assistant", "content": text}
    return _frame(model, view, "chat.completion") | {
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": _usage(view),
        "ragqa": proof(view),
    }


def chunk(model: str, view: View, text: str, *, last: bool = False) -> dict[str, Any]:
    """A `chat.completion.chunk`; the last one carries the proof."""
    delta = {"role": "assistant", "content": text}
    choice = {"index": 0, "delta": delta, "finish_reason": "stop" if last else None, "logprobs": None}
    return (
        _frame(model, view, "chat.completion.chunk") | {"choices": [choice]} | ({"ragqa": proof(view)} if last else {})
    )


def usage_chunk(model: str, view: View) -> dict[str, Any]:
    """The chunk after the last one, with the tokens that the answer took."""
    return _frame(model, view, "chat.completion.chunk") | {"choices": [], "usage": _usage(view)}


def _frame(model: str, view: View, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{view.record_id or 'ragqa'}", "object": kind, "created": int(time.time()), "model": model}


def _usage(view: View) -> dict[str, int]:
    usage = view.answer.usage if view.answer else None
    read, written = (usage.prompt_tokens or 0, usage.completion_tokens or 0) if usage else (0, 0)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def models(corpora: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The list that `GET /v1/models` gives."""
    return {"object": "list", "data": [_model(one) for one in corpora]}


def model(name: str, corpora: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One entry of `models`. Raises CorpusError."""
    known = {PREFIX + one["name"]: one for one in corpora}
    if name not in known:
        raise CorpusError(f"expected a model of {', '.join(known) or 'none'}, found {name[:60]!r}")
    return _model(known[name])


def _model(corpus: dict[str, Any]) -> dict[str, Any]:
    entry = {"id": PREFIX + corpus["name"], "object": "model", "created": 0, "owned_by": "ragqa"}
    return entry | {"title": corpus["title"]}

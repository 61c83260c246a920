"""Rewrites a follow-up question so that it stands alone, by rules or by a language model.

::

    found = follow_up("And for branches?", record_id, store)   # shown, and may be changed
    pipeline.run(Question(found.rewritten, follow_up=found))   # the record keeps both
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from ragqa.conversation.history import Turn
from ragqa.errors import RagqaError
from ragqa.infra.cleaning import without_controls
from ragqa.records.store import RecordStore
from ragqa.records.thread import records_back
from ragqa.settings.config import GenerationConfig
from ragqa.types import FollowUp

__all__ = ["MOST_TURNS", "Turn", "follow_up", "rewrite", "thread_of"]

READ_WITH = "Read together with the question before: {}"
MOST_TURNS = 4  # turns that a rewriting uses; each was itself rewritten, so the last one has most of the context


def follow_up(asked: str, record_id: str, records: RecordStore, config: GenerationConfig | None = None) -> FollowUp:
    """The question rewritten to stand alone after the record of this id. Raises RecordError if there is none."""
    return replace(rewrite(asked, thread_of(record_id, records), config), record_id=record_id)


def thread_of(record_id: str, records: RecordStore) -> tuple[Turn, ...]:
    """The last questions up to this record, with their answers, oldest first.

    The thread is shorter if an earlier record was deleted. Raises RecordError if this record does not exist.
    """
    records_of = islice(records_back(record_id, records), MOST_TURNS)
    turns = [Turn(one.question.text, "" if one.answer.is_refusal else one.answer.text) for one in records_of]
    return tuple(reversed(turns))


def rewrite(asked: str, thread: Sequence[Turn], config: GenerationConfig | None = None) -> FollowUp:
    """The question rewritten to stand alone, by a language model if the generator of ``config`` uses one, or by rules.

    If the model fails or its reply is not a question, the result is that of the rules, and its note says so.
    """
    asked = " ".join(without_controls(asked).split())
    thread = [Turn(without_controls(turn.question), without_controls(turn.answer)) for turn in thread]
    by_rules = replace(_by_rules(asked, thread), thread=thread[-1].gist if thread else "")
    if config is None or not thread or not config.asks_model:
        return by_rules
    from ragqa.conversation.model import rewritten_by_model

    try:
        text, by = rewritten_by_model(asked, thread, config)
    except RagqaError as error:
        return replace(by_rules, note=f"Rewritten by rules, as the language model did not: {error}")
    return replace(by_rules, rewritten=text, by=by, note="", context="")


def _by_rules(asked: str, thread: Sequence[Turn]) -> FollowUp:
    """The rewritten question; or, if that would add meaning, the original with the previous question as context."""
    from ragqa.conversation import rules  # modules that a question without a thread does not need
    from ragqa.conversation.checking import parses_back

    found = rules.rewritten(asked, thread)
    if not thread or parses_back(found, asked, thread):
        return FollowUp("", asked, found)
    return FollowUp("", asked, asked, note=READ_WITH.format(thread[-1].question), context=thread[-1].question)

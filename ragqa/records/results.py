"""The result of a record in a few words, for lists that do not open it. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from ragqa.types.scores import Verdict

POSSIBLY: Final = "Possibly answered"
RESULTS: Final = ("Answered", POSSIBLY, "Partly answered", "Not found", "Checked")
# The relevance from which an answer counts as sure. Of 160 answers to 257 questions about regulation, 108 of which it
# answers nowhere, 81 % were right in full from here on, and 44 % below (`tests.benchmarks.law`, third and later parts).
SURE: Final = 0.8
RESULT_FIELDS: Final = (  # the keys of a record's body that `result_words` needs
    ("question", "given"),
    ("answer", "is_refusal"),
    ("answer", "finish_reason"),
    ("answer", "not_found"),
    ("scored", "paper", "verdicts"),
    ("answer_relevance", "parts"),
    ("answer", "choices"),
)


def unsure(measured: Sequence[tuple[float, bool]]) -> float | None:
    """The lowest relevance if it is below `SURE`, else None; of each part the value, and whether a selector read it."""
    lowest = min((value for value, is_read in measured if is_read), default=1.0)
    return lowest if lowest < SURE else None


def result_words(
    given: str, is_refusal: str, reason: str, not_found: str, verdicts: str, relevances: str, choices: str = ""
) -> str:
    """The result of a record: one of `RESULTS`, of a checked text with its verdicts.

    The values are those of `RESULT_FIELDS` as text of either engine, "" for none.
    """
    answered, possibly, partly, none, checked = RESULTS
    if not given:
        if is_refusal in {"1", "true"} or reason == "empty":
            return none
        measured = [(one["value"], one.get("is_read", False)) for one in json.loads(relevances or "[]")]
        is_sure = unsure(measured) is None and '"' not in choices
        return partly if '"' in not_found else answered if is_sure else possibly
    said = [Verdict(one["verdict"]) for one in json.loads(verdicts or "[]")]
    return f"{checked}: {against_words(said) or 'every sentence supported'}" if said else checked


def against_words(verdicts: Sequence[Verdict]) -> str:
    """How many sentences are contradicted and not supported; "" if every one is supported."""
    against = sum(one is not Verdict.SUPPORTED for one in verdicts)
    refuted = sum(one not in {Verdict.SUPPORTED, Verdict.UNSUPPORTED, Verdict.NONE} for one in verdicts)
    counts = ((refuted, "contradicted"), (against - refuted, "not supported"))
    return ", ".join(f"{count} {how}" for count, how in counts if count)

"""The result of a record in a few words, for lists that do not open it. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from ragqa.types.scores import Verdict

RESULTS: Final = ("Answered", "Partly answered", "Not found", "Checked")
RESULT_FIELDS: Final = (  # the keys of a record's body that `result_words` needs
    ("question", "given"),
    ("answer", "is_refusal"),
    ("answer", "finish_reason"),
    ("answer", "not_found"),
    ("scored", "paper", "verdicts"),
)


def result_words(given: str, is_refusal: str, reason: str, not_found: str, verdicts: str) -> str:
    """The result of a record: one of `RESULTS`, of a checked text with its verdicts.

    The values are those of `RESULT_FIELDS` as text of either engine, "" for none.
    """
    answered, partly, none, checked = RESULTS
    if not given:
        return none if is_refusal in {"1", "true"} or reason == "empty" else partly if '"' in not_found else answered
    said = [Verdict(one["verdict"]) for one in json.loads(verdicts or "[]")]
    return f"{checked}: {against_words(said) or 'every sentence supported'}" if said else checked


def against_words(verdicts: Sequence[Verdict]) -> str:
    """How many sentences are contradicted and not supported; "" if every one is supported."""
    against = sum(one is not Verdict.SUPPORTED for one in verdicts)
    refuted = sum(one not in {Verdict.SUPPORTED, Verdict.UNSUPPORTED, Verdict.NONE} for one in verdicts)
    counts = ((refuted, "contradicted"), (against - refuted, "not supported"))
    return ", ".join(f"{count} {how}" for count, how in counts if count)

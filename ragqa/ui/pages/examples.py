"""Texts to check, three for each demonstration corpus: one that its passages support, contradict, do not speak of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ragqa.types.scores import Verdict


@dataclass(frozen=True, slots=True)
class CheckedExample:
    """A text with the question it answers, and what comes of its first sentence."""

    verdict: Verdict
    text: str
    question: str = ""


CHECKED_EXAMPLES: Final = {
    "rulebook": (
        CheckedExample(
            Verdict.SUPPORTED,
            "For each Critical Function we maintain a documented exit plan. The plan is tested at least every 24 "
            "months, and after each change of Service Provider.",
            "Is there an exit plan for outsourced functions?",
        ),
        CheckedExample(
            Verdict.CONTRADICTED,
            "We report a Data Breach to the Commission within 96 hours of becoming aware of it. If the breach is "
            "likely to cause a high risk, we tell the Data Subjects directly within five Business Days.",
            "How soon do you report a data breach?",
        ),
        CheckedExample(
            Verdict.UNSUPPORTED,
            "All of our vendors hold an international certificate for information security.",
        ),
    ),
    "encyclopedia": (
        CheckedExample(
            Verdict.SUPPORTED,
            "Lake Baikal is the deepest lake in the world, with a greatest depth of 1,642 metres. The only river that "
            "flows out of Lake Baikal is the Angara.",
        ),
        CheckedExample(
            Verdict.CONTRADICTED,
            "The Suez Canal opened on 17 November 1879. It has no locks, because it lies at sea level along its whole "
            "course.",
        ),
        CheckedExample(
            Verdict.UNSUPPORTED,
            "The Eiffel Tower is painted by hand every seven years. Its restaurant serves six hundred guests a day.",
        ),
    ),
}

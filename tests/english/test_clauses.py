"""The clauses of a sentence that says what somebody must do, each read by itself."""

import pytest

from ragqa.english.clauses import clauses

KEEP = "A firm must keep a log"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Ducks swim in ponds.", ["Ducks swim in ponds."]),
        ("", [""]),
        (f"{KEEP}.", [KEEP]),
        (f"{KEEP}, review it every year and tell its staff.",
         [KEEP, "A firm must review it every year", "A firm must tell its staff"]),
        (f"{KEEP}, and may appoint a clerk.", [KEEP, "A firm may appoint a clerk"]),
        (f"{KEEP} for five years, and for six on request.",
         [f"{KEEP} for five years", f"{KEEP} for five years for six on request"]),
        ("The report must describe the cause, the likely effects and the steps taken.",
         ["The report must describe the cause", "The report must describe the likely effects",
          "The report must describe the steps taken"]),
        ("If a client asks, and has paid, a firm must not wait, nor charge a fee.",
         ["If a client asks, and has paid, a firm must not wait",
          "If a client asks, and has paid, a firm must not charge a fee"]),
        (f"{KEEP} and a list, unless it is waived.", [KEEP, "A firm must keep a list, unless it is waived"]),
        ("A firm must judge its own or a client's case (and, on request, others) and act.",
         ["A firm must judge its own or a client's case (and, on request, others) and act"]),
    ],
)  # fmt: skip
def test_clauses(text, found):
    parts = clauses(text)
    assert [one.text for one in parts] == found
    assert all(text[one.span.start : one.span.end] == one.span.text for one in parts)

import pytest

from ragqa.english.reading import AskedDay, as_iso, asked_day


@pytest.mark.parametrize(
    ("question", "day", "rest"),
    [
        ("What is the limit as of 1 March 2024?", "2024-03-01", "What is the limit?"),
        ("What (as at 2024-03-01) is due?", "2024-03-01", "What is due?"),
        (
            "As of the year's end, who reports as on March 1st, 2024?",
            "2024-03-01",
            "As of the year's end, who reports?",
        ),
        ("Which capital was required on 31.12.2023?", "2023-12-31", "Which capital was required?"),
        ("On 3/4/2023, who had to act?", "2023-04-03", "Who had to act?"),
        ("Before 2022, what had firms to report?", "2021-12-31", "What had firms to report?"),
        ("What was in force before 1 March 2024, and why?", "2024-02-29", "What was in force, and why?"),
        ("As of 1 Mar 2024, what is the limit?", "2024-03-01", "What is the limit?"),
        ("What is the limit as at Sept. 3rd, 2024?", "2024-09-03", "What is the limit?"),
        ("On 5 may 2024, what was the limit?", "2024-05-05", "What was the limit?"),
        ("Who acts as of 1 ſeptember 2024?", "2024-09-01", "Who acts?"),  # a letter that a month's name matches
        ("What is the limit as of 31 February 2024?", "", "What is the limit?"),
    ],
)
def test_the_day_that_a_question_names(question, day, rest):
    asked = asked_day(question)
    assert asked is not None
    assert (asked.day, asked.rest) == (day, rest)


@pytest.mark.parametrize(
    "question",
    [
        "What applies to funds licensed before 2022?",  # what is asked about
        "Which reports due on 31 December 2023 may be late?",
        "How did the limit change from as of 1 March 2023 to as of 1 March 2024?",
        "What was due as of 2022?",
        "What is rule 3.1.2024?",
        "As of 1 March 2024?",
        "What applies as of 1 Marx 2024?",
        "",
    ],
)
def test_days_that_are_no_day_of_the_question(question):
    assert asked_day(question) is None


def test_a_day_is_given_as_it_was_written():
    assert asked_day("On 31.2.2024: who acts?") == AskedDay("31.2.2024", "", "Who acts?")
    assert [as_iso(text) for text in ("1 March 2024", "01/03/2024", "2024-03-01", "March")] == ["2024-03-01"] * 3 + [""]

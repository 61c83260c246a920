"""The questions, unanswerable questions and follow-ups that answers are measured on. See ORIGIN.md beside them."""

import re
from collections import Counter

import pytest

from ragqa.corpus.demo import DEMOS
from ragqa.corpus.formats import load_corpus
from ragqa.evaluation.benchmarks.expected_facts.facts import (
    FOLLOW_UPS,
    FURTHER_FOLLOW_UPS,
    QUESTIONS,
    UNANSWERABLE,
    FactOutcome,
    Facts,
    is_right_rewriting,
    judge,
    plain,
)
from ragqa.evaluation.benchmarks.expected_facts.facts import rows as rows_of
from ragqa.settings.config import IndexingConfig
from ragqa.types import Answer

KINDS = tuple("yes/no|number|date|who|list|comparison|two-part|definition|exception|vague".split("|"))
CASES = rows_of(QUESTIONS)
UNANSWERED = rows_of(UNANSWERABLE)
THREADS = rows_of(FOLLOW_UPS)
FURTHER_THREADS = rows_of(FURTHER_FOLLOW_UPS)
FIELDS = {
    QUESTIONS: ["id", "corpus", "kind", "part", "question", "documents", "facts", "wrong", "statement"],
    UNANSWERABLE: ["id", "corpus", "kind", "part", "question", "terms", "why"],
    FOLLOW_UPS: [
        *("id", "corpus", "kind", "part", "question", "answer", "follow_up", "standalone", "documents"),
        *("must", "must_not"),
    ],
}
FACTS = {case["id"]: Facts.of(case) for case in CASES}
ALL = {QUESTIONS: CASES, UNANSWERABLE: UNANSWERED, FOLLOW_UPS: THREADS}


@pytest.fixture(scope="module")
def texts():
    """The demonstration corpora's passages by corpus, document and id; an article's id names its document, too."""
    found = {}
    for name, demo in DEMOS.items():
        for passage in load_corpus(demo.source, demo.format, IndexingConfig().chunk_max_tokens).passages:
            own = passage.passage_id.removeprefix(f"{passage.document_id}:")
            place = passage.passage_id if name == "encyclopedia" else own
            found[name, passage.document_id, place] = passage.text
    return found


def _places(row):
    return [
        (row["corpus"], document["document_id"], passage_id)
        for document in row["documents"]
        for passage_id in document["passage_ids"]
    ]


def _judged(case, text):
    return judge(Answer(text, (), "", ""), FACTS[case["id"]])


@pytest.mark.parametrize("name", ALL)
def test_lines_have_their_fields_and_no_others_and_no_empty_ones(name):
    for row in ALL[name]:
        assert list(row) == FIELDS[name], row["id"]
        assert all(value for field, value in row.items() if field != "wrong"), row["id"]
        texts = (value for value in row.values() if isinstance(value, str))
        assert all(text == text.strip() for text in texts), row["id"]


@pytest.mark.parametrize(("name", "stem"), [(QUESTIONS, "answer"), (UNANSWERABLE, "none"), (FOLLOW_UPS, "follow")])
def test_ids_count_up_and_even_ones_are_sealed(name, stem):
    rows = ALL[name]
    assert [row["id"] for row in rows] == [f"{stem}-{number:03}" for number in range(1, len(rows) + 1)]
    assert [row["part"] for row in rows] == ["open", "sealed"] * (len(rows) // 2)


def test_as_many_of_each_kind_corpus_and_part_as_was_asked_for():
    counts = Counter((case["corpus"], case["kind"], case["part"]) for case in CASES)
    assert counts == {(corpus, kind, part): 3 for corpus in DEMOS for kind in KINDS for part in ("open", "sealed")}
    kinds = ("off topic", "near miss")
    assert Counter((row["corpus"], row["kind"]) for row in UNANSWERED) == {(c, k): 15 for c in DEMOS for k in kinds}
    assert Counter((row["kind"], row["part"]) for row in UNANSWERED) == {
        (kind, part): 15 for kind in kinds for part in ("open", "sealed")
    }
    assert Counter((row["corpus"], row["part"]) for row in THREADS) == {
        (corpus, part): 10 for corpus in DEMOS for part in ("open", "sealed")
    }


def test_no_question_occurs_twice_nor_among_those_that_the_page_offers():
    asked = [row["question"] for row in CASES + UNANSWERED + THREADS]
    asked += [row["standalone"] for row in THREADS if row["kind"] != "new topic"]
    asked += [row["follow_up"] for row in THREADS]
    asked += [gold.question.text for demo in DEMOS.values() for gold in demo.questions()]
    assert [text for text, count in Counter(text.casefold() for text in asked).items() if count > 1] == []


def test_documents_are_in_the_corpora_and_none_serves_both_parts(texts):
    for row in CASES + THREADS:
        assert set(_places(row)) <= texts.keys(), row["id"]
    used = {
        part: {place for case in CASES if case["part"] == part for place in _places(case)}
        for part in ("open", "sealed")
    }
    assert not used["open"] & used["sealed"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_statement_and_the_passages_say_every_fact_and_nothing_wrong(case, texts):
    assert _judged(case, case["statement"]).outcome is FactOutcome.FULL
    assert _judged(case, " ".join(texts[place] for place in _places(case))).outcome is FactOutcome.FULL


@pytest.mark.long
def test_no_other_passage_answers_nor_reads_as_wrong(texts):
    """A passage quoted as evidence must not make an answer wrong; one of another subject must not make it right."""
    read = {place: plain(text) for place, text in texts.items()}
    for case in CASES:
        facts, own = FACTS[case["id"]], _places(case)
        for place, text in read.items():
            if place[0] == case["corpus"] and place not in own:
                assert not all(any(way.search(text) for way in ways) for ways in facts.parts.values()), (
                    case["id"],
                    place,
                )
                assert not any(way.search(text) for way in facts.wrong), (case["id"], place)


@pytest.mark.long
def test_a_statement_answers_no_other_question_but_that_yes_is_yes():
    for case in CASES:
        others = [other for other in CASES if other is not case]
        fooled = [
            other["statement"] for other in others if _judged(case, other["statement"]).outcome is FactOutcome.FULL
        ]
        assert all(text.startswith(("Yes", "No")) and case["kind"] == "yes/no" for text in fooled), case["id"]


@pytest.mark.parametrize("case", [case for case in CASES if case["kind"] == "yes/no"], ids=lambda case: case["id"])
def test_the_other_polarity_is_wrong(case):
    answer, rest = case["statement"].split(":", 1)
    other = {"Yes": "No", "No": "Yes"}[answer]
    assert _judged(case, f"{other}.").outcome is FactOutcome.WRONG
    assert _judged(case, f"{other}:{rest}").outcome is FactOutcome.WRONG
    assert _judged(case, f"{answer}.").found[:1] == (case["facts"][0]["part"],)


@pytest.mark.parametrize(
    ("case_id", "text", "outcome"),
    [
        ("answer-003", "It cannot: liquid assets are without counting Client Money.", FactOutcome.FULL),
        ("answer-003", "Client Money may be counted.", FactOutcome.WRONG),
        ("answer-009", "At most 10:1.", FactOutcome.FULL),
        ("answer-009", "20 to 1", FactOutcome.NONE),
        ("answer-013", "By 31 January.", FactOutcome.FULL),
        ("answer-021", "You do: the firm pays for the report.", FactOutcome.FULL),
        ("answer-033", "Yes, 40 rather than 20 Business Days.", FactOutcome.FULL),
        ("answer-035", "Retail Clients: every quarter, not twice a year.", FactOutcome.FULL),
        ("answer-041", "- HMD 500\n- HMD 10,000", FactOutcome.FULL),
        ("answer-041", "HMD 500.", FactOutcome.PART),
        ("answer-061", "You cannot see it from the Moon.", FactOutcome.FULL),
        ("answer-091", "The Volga.", FactOutcome.FULL),
        ("answer-091", "The Danube is longer.", FactOutcome.WRONG),
        ("answer-095", "Uranium is denser.", FactOutcome.WRONG),
        ("answer-113", "Mercury.", FactOutcome.FULL),
        ("answer-113", "Mercury is the smallest planet of the Solar System.", FactOutcome.NONE),
    ],
)
def test_other_words_for_right_wrong_and_half_answers(case_id, text, outcome):
    assert _judged(next(case for case in CASES if case["id"] == case_id), text).outcome is outcome


@pytest.mark.long
def test_the_terms_of_a_near_miss_are_the_corpus_s_own_and_those_of_an_off_topic_question_are_not(texts):
    corpora = {
        name: plain(" ".join(text for place, text in texts.items() if place[0] == name)).casefold() for name in DEMOS
    }
    for row in UNANSWERED:
        for term in row["terms"]:
            word = rf"\b{re.escape(plain(term).casefold())}\b"
            assert re.search(word, plain(row["question"]).casefold()), row["id"]
            assert bool(re.search(word, corpora[row["corpus"]])) == (row["kind"] == "near miss"), (row["id"], term)


@pytest.mark.parametrize("thread", THREADS + FURTHER_THREADS, ids=lambda thread: thread["id"])
def test_only_the_standalone_question_passes(thread):
    assert 2 <= len(thread["must"]) <= 4
    assert is_right_rewriting(thread["standalone"], thread)
    assert not is_right_rewriting(thread["question"], thread)
    assert not is_right_rewriting(f"{thread['question']} {thread['follow_up']}", thread)
    if thread["kind"] != "new topic":
        assert not is_right_rewriting(thread["follow_up"], thread)


def test_follow_ups_are_of_all_kinds_in_both_parts():
    kinds = {"pronoun", "ellipsis", "and for", "condition", "new topic"}
    assert all(
        {row["kind"] for row in THREADS if row["part"] == part} >= kinds - {"condition"} for part in ("open", "sealed")
    )
    assert {row["kind"] for row in THREADS} == kinds

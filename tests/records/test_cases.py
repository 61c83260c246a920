"""Cases: events folded, sign-off by another person, what changed since, search; two writers, altered rows, copies."""

import multiprocessing
from dataclasses import replace

import pytest

from ragqa.errors import AccessError, QuestionError, RecordError
from ragqa.records.case_store import CaseStore
from ragqa.records.case_words import search, told
from ragqa.records.cases import CaseEvent, Seen, Signer, Step, added, day_of, done, words_of
from ragqa.records.reader import RecordReader
from ragqa.records.sign_off import changed_since, decided, sign_offs, submitted

ANN, BOB = Signer("ann@example.org", "https://id|ann"), Signer("bob@example.org", "https://id|bob")
SEEN = {
    "record:r1": Seen(
        "Who must act?", {"record": "a" * 64}, {"corpus": "rulebook"}, ("https://id|carl",), "A firm must."
    ),
    "document:policies/exit": Seen("Exit policy", {"document": "b" * 64}, text="We test the plan yearly."),
}


def look(refs):
    return {ref: SEEN[ref] for ref in refs if ref in SEEN}


@pytest.fixture
def store(place):
    return CaseStore(place)


def filled(store, by=ANN):
    """A case with both items, a note and a task."""
    case = store.begin("Outsourcing of the ledger", by)
    for ref in SEEN:
        case = store.append(case.case_id, lambda now, ref=ref: added(now, ref, by, look))
    case = store.append(case.case_id, lambda _: CaseEvent(Step.NOTED, by, text="Ask the vendor"))
    return store.append(case.case_id, lambda _: CaseEvent(Step.TASKED, by, text="Call", owner="Bob", due="2026-12-31"))


def submit(store, case, item, by=ANN, looked=SEEN):
    return store.append(case.case_id, lambda now: submitted(now, item, by, looked))


def decide(store, case, step, item, by=BOB, why="", looked=SEEN, **named):
    return store.append(case.case_id, lambda now: decided(now, step, item, by, looked, why, **named))


def test_a_case_is_what_its_events_say_and_is_read_back_as_it_was(store, place):
    case = filled(store)
    assert CaseStore(place).load(case.case_id) == case
    assert CaseStore(place).list() == (case,)
    assert [(one.number, one.ref) for one in case.items] == list(enumerate(SEEN, 1))
    assert (case.version, case.state(), case.tasks[0].made.due) == (5, "draft", "2026-12-31")
    case = store.append(case.case_id, lambda now: done(now, 1, BOB))
    assert case.tasks[0].done.by == BOB
    with pytest.raises(RecordError, match="no open task 1; open are: none"):
        store.append(case.case_id, lambda now: done(now, 1, BOB))
    with pytest.raises(RecordError, match="in case .* already"):
        added(case, "r1", ANN, look)
    with pytest.raises(RecordError, match="there is no 'record:r2' that you may see"):
        added(case, "r2", ANN, look)
    case = store.append(case.case_id, lambda now: CaseEvent(Step.REMOVED, ANN, item=1))
    assert [one.number for one in store.append(case.case_id, lambda now: added(now, "r1", ANN, look)).items] == [2, 3]
    with pytest.raises(RecordError, match="has no item 1; it has 2"):
        case.item(1)


def test_words_are_kept_plain_and_within_limits():
    assert words_of(" a\u202eb\x00c\n", "x") == "abc"
    for text in ("", " \u200b", "x" * 4001):
        with pytest.raises(QuestionError, match="expected 1 to 4,000 characters"):
            words_of(text, "a note")
    with pytest.raises(QuestionError, match="^a note is empty"):
        words_of(" ", "a note")
    assert (day_of(""), day_of(" 2026-01-31 ")) == ("", "2026-01-31")
    with pytest.raises(QuestionError, match=r"expected a day such as .*'31\.1\.'"):
        day_of("31.1.")


def test_another_person_decides_on_what_was_submitted_as_it_was(store):
    case = filled(store)
    with pytest.raises(RecordError, match="is draft; somebody has to submit it first"):
        decide(store, case, Step.APPROVED, 1)
    case = submit(store, case, 1)
    assert case.state(1) == "submitted"
    for author in (ANN, Signer("ANN@example.org"), Signer("carl@example.org", "https://id|carl")):
        with pytest.raises(AccessError, match="is an author of item 1"):
            decide(store, case, Step.APPROVED, 1, author)
    for step in (Step.RETURNED, Step.OVERRIDDEN):
        with pytest.raises(QuestionError, match="the reason for which"):
            decide(store, case, step, 1)
    with pytest.raises(QuestionError, match="4,000"):
        decide(store, case, Step.APPROVED, 1, why="x" * 5_000)
    case = decide(store, case, Step.RETURNED, 1, why="cite\u202e the rule")
    assert case.review[-1][1].text == "cite the rule"
    case = submit(store, case, 1)
    case = decide(store, case, Step.APPROVED, 1, submission=case.submission(1))
    approval = case.reviews(1)[-1][1]
    assert (case.state(1), case.state(), approval.by) == ("approved", "draft", BOB)
    assert (approval.parts, approval.versions) == (SEEN["record:r1"].parts, {"corpus": "rulebook"})
    with pytest.raises(RecordError, match="is approved; somebody has to submit it first"):
        decide(store, case, Step.OVERRIDDEN, 1, why="no")
    assert changed_since(case, 1, SEEN) == ()
    later = SEEN | {"record:r1": replace(SEEN["record:r1"], parts={"record": "c" * 64, "rules cited": "d"})}
    assert changed_since(case, 1, later) == ("record changed", "rules cited new")
    (mark,) = sign_offs([case], "record:r1", later)
    assert (mark.what, mark.submission.by, mark.decision.by) == ("Item 1 of case “Outsourcing of the ledger”", ANN, BOB)
    assert mark.changed == ("record changed", "rules cited new")


def test_nothing_is_approved_that_was_not_shown(store):
    case = submit(store, filled(store), 1)
    shown = case.submission(1)
    case = submit(store, case, 1)
    with pytest.raises(
        RecordError, match="is submitted; look at it again: it was submitted anew after you had opened it"
    ):
        decide(store, case, Step.APPROVED, 1, submission=shown)
    later = SEEN | {"record:r1": replace(SEEN["record:r1"], parts={"record": "c" * 64})}
    with pytest.raises(RecordError, match=r"has changed since it was submitted \(record changed\)"):
        decide(store, case, Step.APPROVED, 1, looked=later)
    with pytest.raises(RecordError, match="item 1 of case .* is gone or not yours to see"):
        decide(store, case, Step.APPROVED, 1, looked={})
    assert decide(store, case, Step.OVERRIDDEN, 1, why="known", looked=later).state(1) == "overridden"


def test_a_case_as_a_whole_is_signed_with_all_that_is_in_it(store):
    case = submit(store, filled(store), 0)
    adder = Signer("dora@example.org", "https://id|dora")
    with pytest.raises(AccessError):
        decide(store, case, Step.APPROVED, 0, ANN)
    case = decide(store, case, Step.APPROVED, 0)
    assert (case.state(), changed_since(case, 0, SEEN)) == ("approved", ())
    case = store.append(case.case_id, lambda _: CaseEvent(Step.NOTED, ANN, text="One more thing"))
    case = store.append(case.case_id, lambda now: done(now, 1, ANN))
    assert changed_since(case, 0, SEEN) == ("task 1 changed", "note 2 new")
    assert changed_since(case, 0, {}) == ("task 1 changed", "note 2 new")  # of what is hidden nothing is said
    with pytest.raises(RecordError, match="item 2 of case .* is gone or not yours to see"):
        submit(store, case, 0, looked={"record:r1": SEEN["record:r1"]})
    case = store.append(case.case_id, lambda _: CaseEvent(Step.REMOVED, ANN, item=2))
    case = store.append(case.case_id, lambda now: added(now, "document:policies/exit", adder, look))
    with pytest.raises(AccessError):
        decide(store, submit(store, case, 0), Step.APPROVED, 0, adder)
    with pytest.raises(RecordError, match="nothing to approve"):
        submitted(store.begin("Empty", ANN), 0, ANN, {})


def test_everything_is_found_by_words_and_what_is_hidden_is_not(store):
    case = submit(store, filled(store), 1)
    case = decide(store, case, Step.RETURNED, 1, why="Wrong regulator")
    for words in ("ledger", "VENDOR", "call bob 2026-12-31", "firm must", "yearly exit", "regulator", "ledger yearly"):
        assert [one.case for one in search([case], words, SEEN)] == [case], words
    (hit,) = search([case], "yearly", SEEN)
    assert hit.places == (("item 2", "Exit policy We test the plan yearly."),)
    assert not list(search([case], "yearly", {"record:r1": SEEN["record:r1"]}))
    assert not list(search([case], "ledger zebra", SEEN))


def test_json_says_what_is_not_proven_and_hides_what_is_not_theirs(store):
    case = decide(store, submit(store, filled(store, Signer("Ann")), 1, Signer("Ann")), Step.APPROVED, 1, Signer("Bob"))
    said = told(case, SEEN)
    review = said["items"][0]["review"]
    assert [(one["step"], one["by"]["name"], one["by"]["proven"]) for one in review] == [
        ("submitted", "Ann", False),
        ("approved", "Bob", False),
    ]
    assert review[1]["parts"] == SEEN["record:r1"].parts
    hidden = told(case, {})["items"][0]
    assert (hidden["ref"], hidden["title"]) == ("", "gone, or not yours to see")
    assert "parts" not in hidden["review"][0]
    assert not any(word in str(told(case, {})) for word in ("r1", "Who must act", "a" * 64))


def test_everybody_sees_their_own_and_what_is_shared_with_them(store):
    case, refused = filled(store), []

    def seen_by(who, *names, **named):
        reader = RecordReader(who, frozenset({who, *names}), frozenset(), refused.append, **named)
        return [one.case_id for one in store.seen_by(reader).list()]

    bob = RecordReader(BOB.id, frozenset({BOB.id, BOB.name, "role:analyst"}), frozenset(), refused.append)
    with pytest.raises(RecordError, match="no case"):
        store.seen_by(bob).load(case.case_id)
    assert refused == [case.case_id]
    assert (seen_by(ANN.id), seen_by("x", everything=True), seen_by(BOB.id)) == ([case.case_id], [case.case_id], [])
    store.append(case.case_id, lambda _: CaseEvent(Step.SHARED, ANN, text="role:analyst"))
    assert store.seen_by(bob).load(case.case_id).names == ("role:analyst",)
    store.append(case.case_id, lambda _: CaseEvent(Step.WITHDRAWN, ANN, text="role:analyst"))
    assert seen_by(BOB.id, "role:analyst") == []
    no_role = RecordReader(ANN.id, frozenset(), frozenset(), refused.append)
    assert store.seen_by(no_role).list() == ()


def _write(place, case_id, name, queue):
    for n in range(20):
        CaseStore(place).append(case_id, lambda _, n=n: CaseEvent(Step.NOTED, Signer(name), text=f"{name} {n}"))
    queue.put(name)


def test_two_people_at_once_lose_nothing(store, place):
    case = filled(store)
    work = multiprocessing.get_context("fork")
    queue = work.Queue()
    processes = [work.Process(target=_write, args=(place, case.case_id, name, queue)) for name in ("Ann", "Bob")]
    for process in processes:
        process.start()
    assert {queue.get(timeout=200) for _ in processes} == {"Ann", "Bob"}
    for process in processes:
        process.join()
    notes = [one.text for one in store.load(case.case_id).notes[1:]]
    assert sorted(notes) == sorted(f"{name} {n}" for name in ("Ann", "Bob") for n in range(20))
    assert [one for one in notes if one.startswith("Ann")] == [f"Ann {n}" for n in range(20)]


def test_of_two_who_decide_at_once_the_second_is_told(store):
    case, calls = submit(store, filled(store), 1), []

    def slow(now):
        calls.append(now.version)
        if len(calls) == 1:
            decide(store, case, Step.RETURNED, 1, Signer("Dora"), why="first")
        return decided(now, Step.APPROVED, 1, BOB, SEEN, "")

    with pytest.raises(RecordError, match="is returned"):
        store.append(case.case_id, slow)
    assert calls == [6, 7]


def test_an_altered_event_is_noticed(store):
    case = filled(store)
    with store._engine.transaction() as execute:
        execute("UPDATE case_events SET body = REPLACE(body, 'Ask the', 'Tell the') WHERE n = 4")
    with pytest.raises(RecordError, match="was altered: its event 4"):
        store.load(case.case_id)


def test_a_case_that_was_altered_does_not_hide_the_others_in_the_list(store):
    case, other = filled(store), store.begin("Another", ANN)
    with store._engine.transaction() as execute:
        execute("UPDATE case_events SET body = REPLACE(body, 'Ask the', 'Tell the') WHERE case_id = ?", (case.case_id,))
    problems = set()
    assert store.list(problems) == (other,)
    assert [case.case_id in one and "restore it" in one for one in problems] == [True]
    own = store.seen_by(RecordReader("eve", frozenset({"eve"}), frozenset(), lambda _: None))
    problems.clear()
    assert own.list(problems) == ()
    assert not problems


def test_cases_are_copied_once_and_what_went_on_there_stays(store, tmp_path):
    case, other = filled(store), CaseStore(tmp_path / "other.sqlite3")
    assert store.copy_to(other) == (5, ())
    assert store.copy_to(other) == (0, ())
    assert other.load(case.case_id) == case
    there = other.append(case.case_id, lambda _: CaseEvent(Step.NOTED, BOB, text="there"))
    store.append(case.case_id, lambda _: CaseEvent(Step.NOTED, BOB, text="here"))
    assert store.copy_to(other) == (0, (case.case_id,))
    assert other.load(case.case_id) == there

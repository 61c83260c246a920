"""Cases across roles: what each may do, twenty attempts at what they may not, and the log of all of it."""

import pytest

from ragqa.errors import AccessError, RagqaError
from ragqa.library.case_items import ItemLooker
from ragqa.records.case_store import CaseStore
from ragqa.records.case_words import search, told
from ragqa.records.cases import Step
from ragqa.records.store import RecordStore
from ragqa.server.access.audit import AuditLog
from ragqa.server.access.desk import CaseDesk
from ragqa.server.access.gate import Gate
from ragqa.server.access.policy import Act, Person, Policy, Role
from ragqa.settings.paths import Paths
from ragqa.types import Question
from ragqa.types.scores import Verdict
from tests.support.helpers import make_pipeline

SECRET = "pangolin"
PEOPLE = {
    "ann": Person("https://id|ann", Role.ANALYST, frozenset({"insurers"}), "ann@example.org"),
    "bob": Person("https://id|bob", Role.ANALYST, frozenset(), "bob@example.org"),
    "dora": Person("https://id|dora", Role.ANALYST, frozenset(), "dora@example.org"),
    "rita": Person("https://id|rita", Role.READER, frozenset(), "rita@example.org"),
    "carl": Person("https://id|carl", Role.CURATOR, frozenset(), "carl@example.org"),
    "root": Person("https://id|root", Role.ADMINISTRATOR, frozenset(), "root@example.org"),
    "eve": Person("https://id|eve", Role.NONE, frozenset(), "ann@example.org"),  # who claims Ann's address
    "mallory": Person("https://id|mallory", Role.ANALYST, frozenset(), "role:administrator"),
}


class World:
    """Ann's case, shared with Bob and Rita: a record of hers that Bob and Rita see, and one that nobody else sees."""

    def __init__(self, home):
        self.paths = Paths(home, home / "indexes")
        self.log = AuditLog(home / "audit")
        store = self.desk("ann").look.records
        self.shared, self.private = (self.asked(store, word) for word in ("aardvark", SECRET))
        for who in ("bob@example.org", "rita@example.org"):
            store.share(self.shared, who, shared=True)
        ann = self.desk("ann")
        self.case_id = ann.begin("Outsourcing").case_id
        for who in ("Bob@Example.org", "rita@example.org"):
            ann.share(self.case_id, who, shared=True)
        for record_id in (self.shared, self.private):
            ann.add(self.case_id, f"record:{record_id}")
        ann.note(self.case_id, "Ask the vendor")
        ann.task(self.case_id, "Call", "Bob", "2026-12-31")
        ann.submit(self.case_id, 1)

    def asked(self, store, word):
        return list(make_pipeline(records=store).run(Question(f"Who must feed the {word}?")))[-1].record_id

    def desk(self, who, name="", guarded=True):
        policy = Policy(corpora={"closed": frozenset({"insurers"})})
        gate = Gate(PEOPLE[who], policy, self.log) if guarded else Gate()
        records = gate.seeing(RecordStore(self.paths.records))
        return CaseDesk(
            gate,
            gate.seeing(CaseStore(self.paths.records)),
            ItemLooker(records, self.paths, lambda _: None),
            self.log,
            name,
        )

    def case(self):
        return self.desk("ann").store.load(self.case_id)

    def logged(self):
        return [
            (one["act"], one.get("what", one.get("wanted", one.get("of"))), one["who"]) for one in self.log.entries()
        ]


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


ATTEMPTS = {
    "a reader approves": ("rita", lambda desk, case: desk.decide(case, Step.APPROVED, 1)),
    "a reader returns": ("rita", lambda desk, case: desk.decide(case, Step.RETURNED, 1, "no")),
    "a reader overrides": ("rita", lambda desk, case: desk.decide(case, Step.OVERRIDDEN, 1, "no")),
    "a reader submits": ("rita", lambda desk, case: desk.submit(case, 1)),
    "a reader notes": ("rita", lambda desk, case: desk.note(case, "no")),
    "a reader ends a task": ("rita", lambda desk, case: desk.done(case, 1)),
    "a reader adds": ("rita", lambda desk, case: desk.add(case, "record:x")),
    "a reader shares": ("rita", lambda desk, case: desk.share(case, "rita@example.org", shared=True)),
    "a reader opens a case": ("rita", lambda desk, case: desk.begin("Mine")),
    "an author approves their own": ("ann", lambda desk, case: desk.decide(case, Step.APPROVED, 1)),
    "an author overrides their own": ("ann", lambda desk, case: desk.decide(case, Step.OVERRIDDEN, 1, "mine")),
    "a stranger reads the case": ("dora", lambda desk, case: desk.store.load(case)),
    "a stranger approves": ("dora", lambda desk, case: desk.decide(case, Step.APPROVED, 1)),
    "a stranger shares it with themselves": (
        "dora",
        lambda desk, case: desk.share(case, "dora@example.org", shared=True),
    ),
    "a curator reads the case": ("carl", lambda desk, case: desk.store.load(case)),
    "a person without a role": ("eve", lambda desk, case: desk.store.load(case)),
    "an address that says it is a role": ("mallory", lambda desk, case: desk.store.load(case)),
    "a private record submitted by who does not see it": ("bob", lambda desk, case: desk.submit(case, 2)),
    "a case approved unseen": ("bob", lambda desk, case: desk.submit(case)),
    "another's record added by its id": ("bob", None),
    "a wildcard for an id": ("bob", lambda desk, case: desk.store.load("%")),
    "SQL for an id": ("bob", lambda desk, case: desk.note("' OR 1=1 --", "no")),
    "an item by its number from elsewhere": ("bob", lambda desk, case: desk.decide(case, Step.APPROVED, 7)),
    "a submission that is over": ("bob", lambda desk, case: desk.decide(case, Step.APPROVED, 1, "", 3)),
}


def test_there_are_at_least_twenty():
    assert len(ATTEMPTS) >= 20


@pytest.mark.parametrize("how", ATTEMPTS)
def test_an_attempt_changes_nothing_and_is_in_the_log(world, how):
    who, attempt = ATTEMPTS[how]
    before, n_logged = world.case(), len(world.logged())
    attempt = attempt or (lambda desk, case: desk.add(desk.begin("Theirs").case_id, f"record:{world.private}"))
    with pytest.raises(RagqaError) as raised:
        attempt(world.desk(who), world.case_id)
    assert SECRET not in str(raised.value)
    assert world.case() == before
    acts = [act for act, _, by in world.logged()[n_logged:] if by == PEOPLE[who].id]
    assert {"refusal", "failure"} & set(acts)
    assert world.log.verify().broken is None


def test_a_name_that_is_typed_counts_for_nothing_where_people_sign_in(world):
    with pytest.raises(AccessError, match="is an author"):
        world.desk("ann", name="bob@example.org").decide(world.case_id, Step.APPROVED, 1)
    case = world.desk("bob", name="Somebody Else").decide(world.case_id, Step.APPROVED, 1)
    assert (case.reviews(1)[-1][1].by.name, case.reviews(1)[-1][1].by.is_proven) == ("bob@example.org", True)


def test_where_nobody_signs_in_a_name_is_kept_and_called_not_proven(world):
    desk = world.desk("root", "Ann@Example.org ", guarded=False)
    with pytest.raises(AccessError, match="another person"):
        desk.decide(world.case_id, Step.APPROVED, 1)
    case = world.desk("root", "Bob", guarded=False).decide(world.case_id, Step.APPROVED, 1)
    by = case.reviews(1)[-1][1].by
    assert (by.shown, by.is_proven) == ("Bob (name not proven)", False)
    (entry,) = (
        one
        for one in world.log.entries()
        if one["act"] == Act.REVIEW and one["who"] == "local" and "Bob" in one["name"]
    )
    assert entry["what"] == "approved"
    with pytest.raises(RagqaError, match="your name is empty: expected 1 to"):
        world.desk("root", " ", guarded=False).note(world.case_id, "x")


def test_a_private_record_does_not_leak_through_a_case(world):
    for who in ("bob", "rita"):
        desk = world.desk(who)
        case = desk.store.load(world.case_id)
        looked = desk.looked(case)
        said = str(told(case, looked))
        assert SECRET not in said
        assert world.private not in said
        assert world.shared in said
        assert not list(search([case], SECRET, looked))
        assert [one.case for one in search([case], "aardvark", looked)] == [case]
    assert [one.case for one in search([world.case()], SECRET, world.desk("ann").looked(world.case()))]


def test_a_case_is_shared_by_role(world):
    world.desk("ann").share(world.case_id, "role:analyst", shared=True)
    assert world.desk("dora").store.load(world.case_id).case_id == world.case_id
    assert world.desk("carl").store.list()
    world.desk("ann").share(world.case_id, "role:analyst", shared=False)
    assert world.desk("dora").store.list() == ()


def test_each_step_is_in_the_log_and_a_record_that_changes_says_so(world):
    bob = world.desk("bob")
    bob.decide(world.case_id, Step.APPROVED, 1, "as asked")
    steps = [what for act, what, _ in world.logged() if act in {"case", "review"}]
    assert steps == ["opened", *["shared"] * 2, *["added"] * 2, "noted", "task", "submitted", "approved"]
    (mark,) = bob.signed([f"record:{world.shared}"])
    assert (mark.decision.by.name, mark.submission.by.name, mark.changed) == ("bob@example.org", "ann@example.org", ())
    mine = world.desk("ann").look.records
    mine.comment(world.shared, 0, Verdict.CONTRADICTED, "no")
    (mark,) = bob.signed([f"record:{world.shared}"])
    assert mark.changed == ("record changed",)
    mine.set_note(world.shared, "a note is no change")
    assert bob.signed([f"record:{world.shared}"]) == (mark,)

"""Forty attempts to reach what is somebody else's: by address, by a forged widget, by a page's own function."""

import ast
import json
import shutil
import time
from contextlib import suppress
from html import unescape
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import ragqa.loading
import ragqa.ui.state.resources as resources
from ragqa.corpus.documents import Reader
from ragqa.errors import AccessError
from ragqa.evaluation.report import Row
from ragqa.index import build_index
from ragqa.infra.disk_cache import RecentResults
from ragqa.infra.journal import begun
from ragqa.lab.dataset.stages import SPLIT, Stages, as_lines
from ragqa.library.collection import make_collection
from ragqa.library.edits import SheetRow, Taken
from ragqa.library.gap_runs import GapFolder, GapRequest
from ragqa.library.jobs import Jobs
from ragqa.library.register_store import Handling, load
from ragqa.library.upload import take
from ragqa.records.case_store import CaseStore
from ragqa.records.store import RecordStore
from ragqa.server.access import gate
from ragqa.server.access.audit import AuditLog
from ragqa.settings.config import IndexingConfig
from ragqa.settings.paths import Paths
from ragqa.types import Question
from ragqa.ui import access
from ragqa.ui.pages import gaps, library_job
from ragqa.ui.pages.evaluation import results
from ragqa.ui.pages.evaluation.runs import EvaluationView
from ragqa.ui.pages.register import take_over
from ragqa.ui.shared import forget
from ragqa.ui.state.desk import case_desk
from ragqa.ui.state.run import Run
from tests.support.fakes import FakeEncoder, FakeNli, FakeObligations
from tests.support.helpers import make_pipeline
from tests.support.server import ROOT

pytestmark = pytest.mark.long

SECRET = "pangolin"  # in everything that is not for the one who tries
POLICY = """
[[people]]
email = "ann@example.org"
role = "analyst"
groups = ["insurers"]
[[people]]
email = "bob@example.org"
role = "analyst"
[[people]]
email = "carl@example.org"
role = "curator"
[[people]]
email = "rita@example.org"
role = "reader"
[[people]]
email = "root@example.org"
role = "administrator"
[corpora]
closed = ["insurers"]
"""


def claims(name, **changes):
    """What the provider says of a person; of "" nobody has signed in."""
    said = {"is_logged_in": True, "iss": "https://id", "sub": name, "iat": time.time() - 60}
    return {**said, "email": f"{name}@example.org", "email_verified": True, **changes} if name else {}


@pytest.fixture(scope="module")
def indexes(tmp_path_factory):
    """The corpus ``open``, which everybody reads, and ``closed``, with the secret in it."""
    folder = tmp_path_factory.mktemp("indexes")
    for name, word in (("open", "aardvark"), ("closed", SECRET)):
        source = folder / f"source-{name}"
        source.mkdir()
        (source / "rules.md").write_text(f"# Rules\n\nA firm must feed the {word} at once.\n\nA bank may wait.")
        build_index(name, source, indexes=folder, config=IndexingConfig(), encoder=FakeEncoder())
    return folder


@pytest.fixture(scope="module")
def lived_in(indexes, tmp_path_factory):
    """Home, ids and run: both corpora, both in the library too, records and a run of Ann's, a record of nobody's."""
    home = tmp_path_factory.mktemp("lived-in")
    (home / "indexes").mkdir()
    for name in ("open", "closed"):
        (home / "indexes" / name).symlink_to(indexes / name)
    (home / "access.toml").write_text(POLICY)
    with pytest.MonkeyPatch.context() as patch:
        move_to(home, patch)
        ids, run = settle(home)
        forget()
    return home, ids, run


def move_to(home, patch):
    """Makes this folder the server's home, its models small ones."""
    for name, value in {
        "HOME": home,
        "INDEXES": home / "indexes",
        "ACCESS": "on",
        "ACCESS_FILE": home / "access.toml",
        "INDEX": "open",
    }.items():
        patch.setenv(f"RAGQA_{name}", str(value))
    nli = FakeNli()
    models = ragqa.loading.Models(FakeEncoder(), nli, nli, FakeObligations())
    patch.setattr(resources, "_models_of", lambda *some: models)
    patch.setattr(resources, "warm_up", lambda config, paths: None)
    patch.setattr(gate, "_OPENED", RecentResults())  # records have the same ids in every copy


def settle(home):
    paths = Paths.from_env()
    for name in ("open", "closed"):
        collection = make_collection(name, paths.library, f"The {SECRET if name == 'closed' else 'aardvark'} files")
        (home / "waits.md").write_text(f"# {name}\n\nA firm must wait.")
        with Reader() as reader, (home / "waits.md").open("rb") as data:
            take(collection, "waits.md", data, reader)
    (paths.home / "evaluations" / "dataset-1").mkdir(parents=True)
    begun(paths.home / "evaluations" / "dataset-1", {"input": "closed"}, (), restart=False)
    row = {"id": "q", "question": f"Who must feed the {SECRET}?", "passages": ["x"]}
    Stages(paths.home / "evaluations" / "dataset-1").write(SPLIT, {}, as_lines([row]))
    question = Question(f"Who must feed the {SECRET}?")

    def asked(records, index="open"):
        config = ragqa.Config(index=index, generation=ragqa.Config().generation)
        return list(make_pipeline(config=config, records=records).run(question))[-1].record_id

    ids = {"nobodys": asked(RecordStore(paths.records))}
    with access.acting(as_("ann")):
        mine = resources.record_store(paths.records)
        ids |= {"ann": asked(mine), "ann closed": asked(mine, "closed")}
        mine.share(ids["ann closed"], "bob@example.org", shared=True)  # who may not read its corpus
        run = Run(question, ragqa.Config(index="open"), lambda: make_pipeline(records=mine), access.gate().person.id)
        run.wait(20)
        ids["run"] = run.id
        desk = case_desk(paths)
        own, shared = desk.begin(f"The {SECRET} case").case_id, desk.begin("A shared case").case_id
        desk.share(shared, "role:reader", shared=True)
        for case_id in (own, shared):
            desk.add(case_id, f"record:{ids['ann']}")
            desk.submit(case_id)
        ids |= {"case": own, "shared case": shared}
    return ids, run


@pytest.fixture
def world(lived_in, tmp_path, monkeypatch):
    """A server on a copy of that home, of this test alone."""
    home, ids, run = lived_in
    shutil.copytree(home, tmp_path, symlinks=True, dirs_exist_ok=True)
    move_to(tmp_path, monkeypatch)
    resources.runs().add(run)
    paths = Paths.from_env()
    yield SimpleNamespace(
        paths=paths, store=RecordStore(paths.records), log=AuditLog(tmp_path / "audit"), ids=dict(ids)
    )
    forget()


def as_(name, **changes):
    """The gate of this person, as the page makes it."""
    policy = access._policy()
    return access.Gate(policy.person(claims(name, **changes), time.time()) or access.NOBODY, policy, _log())


def _log():
    return AuditLog(Paths.from_env().home / "audit")


def _script(page, guarded):
    import streamlit as st

    from ragqa.errors import AccessError
    from ragqa.ui import access
    from ragqa.ui.pages import ask, library, reader
    from ragqa.ui.pages import compare as compare_page
    from ragqa.ui.pages import dataset as dataset_page
    from ragqa.ui.pages import gaps as gaps_page
    from ragqa.ui.pages import records as records_page
    from ragqa.ui.pages import register as register_page
    from ragqa.ui.pages import sweep as sweep_page
    from ragqa.ui.pages.evaluation import page as evaluation_page

    pages = {
        "ask": ask.ask_page,
        "check": ask.check_page,
        "compare": compare_page.compare_page,
        "sweep": sweep_page.sweep_page,
        "library": library.library_page,
        "read": reader.reader_page,
        "records": records_page.records_page,
        "register": register_page.register_page,
        "gaps": gaps_page.gaps_page,
        "evaluate": evaluation_page.evaluation_page,
        "dataset": dataset_page.dataset_page,
    }
    if guarded and not access.enter():
        st.stop()
    try:
        pages[page]()
    except AccessError as error:
        st.error(str(error))


def opened(page, who, query=None, state=None, guarded=True, **said):
    """This page for this person; ``guarded`` False: as if the page before all pages could be got round."""
    tester = AppTest.from_function(_script, default_timeout=30, kwargs={"page": page, "guarded": guarded})
    tester.user = claims(who, **said)
    for name, value in (query or {}).items():
        tester.query_params[name] = value
    for name, value in (state or {}).items():
        tester.session_state[name] = value
    return tester.run()


def told(at):
    """Everything that was sent to the browser."""
    return unescape("\n".join(str(getattr(one, "proto", one)) for one in _elements(at._tree)))


def _elements(block):
    for one in getattr(block, "children", {}).values():
        yield one
        yield from _elements(one)


def kept(world):
    """What must be as it was: documents, indexes and records."""
    files = {
        path.relative_to(world.paths.home): path.read_bytes()
        for path in world.paths.library.rglob("*")
        if path.is_file() and not path.name.endswith(".lock")
    }
    cases = CaseStore(world.paths.records).list()
    return files, [*sorted(one.name for one in world.paths.indexes.iterdir()), *cases], records(world)


def records(world):
    """Every record there is, with its corpus."""
    return {one.record_id: one.index for one in world.store.list(99)}


# Attempts: page, person, address (values may name an id of the world), what a forged message says of widgets. ------

ADDRESSES = {
    "no sign-in, ask": ("ask", "", {}),
    "no sign-in, a record": ("records", "", {"record": "ann"}),
    "no sign-in, a run": ("ask", "", {"run": "run"}),
    "no sign-in, a corpus": ("read", "", {"corpus": "open"}),
    "no sign-in, the library": ("library", "", {"corpus": "open"}),
    "a role of none": ("records", "eve", {"record": "ann"}),
    "another's record": ("records", "bob", {"record": "ann"}),
    "another's record, as a reader": ("records", "rita", {"record": "ann"}),
    "another's record, as a curator": ("records", "carl", {"record": "ann"}),
    "a record of before there was sign-in": ("records", "carl", {"record": "nobodys"}),
    "that record, as an analyst": ("records", "bob", {"record": "nobodys"}),
    "a shared record of a closed corpus": ("records", "bob", {"record": "ann closed"}),
    "a record to compare with": ("records", "bob", {"compare": "ann"}),
    "two records compared": ("compare", "bob", {"a": "ann", "b": "ann closed"}),
    "two records compared, as a reader": ("compare", "rita", {"a": "nobodys", "b": "ann"}),
    "an id with a wildcard": ("records", "bob", {"record": "%"}),
    "an id with SQL": ("records", "bob", {"record": "' OR 1=1 --"}),
    "another's case": ("records", "bob", {"case": "case"}),
    "another's case, as a curator": ("records", "carl", {"case": "case"}),
    "a shared case with another's record": ("records", "bob", {"case": "shared case"}),
    "the cases, as a reader": ("records", "rita", {"cases": "1"}),
    "another's run": ("ask", "bob", {"run": "run"}),
    "another's run, as a curator": ("ask", "carl", {"run": "run"}),
    "a closed corpus read": ("read", "bob", {"corpus": "closed"}),
    "a closed corpus searched": ("read", "carl", {"corpus": "closed", "find": "must"}),
    "a closed corpus by a document": ("read", "rita", {"corpus": "closed", "document": "rules.md"}),
    "a closed corpus's register": ("register", "bob", {"corpus": "closed"}),
    "a register as nobody": ("register", "", {"corpus": "open"}),
    "gaps of a closed corpus": ("gaps", "bob", {"corpus": "closed", "policies": "open"}),
    "gaps against a closed corpus": ("gaps", "bob", {"corpus": "open", "policies": "closed"}),
    "gaps as nobody": ("gaps", "", {"corpus": "open", "policies": "open"}),
    "a closed corpus by a path": ("read", "bob", {"corpus": "../indexes/closed"}),
    "a closed corpus asked": ("ask", "bob", {"q": "Who must act?", "corpus": "closed"}),
    "a closed corpus checked": ("check", "bob", {"text": "A firm must act.", "corpus": "closed"}),
    "a closed corpus of the library": ("library", "carl", {"corpus": "closed"}),
    "the library as an analyst": ("library", "bob", {"corpus": "open"}),
    "the library as a reader": ("library", "rita", {}),
    "a data set of a closed corpus": ("dataset", "bob", {"set": "dataset-1", "view": "Stages"}),
    "a data set to review": ("dataset", "bob", {"set": "dataset-1", "view": "Review"}),
    "data sets as a curator": ("dataset", "carl", {"set": "dataset-1"}),
    "evaluations as a curator": ("evaluate", "carl", {}),
    "evaluations by a guessed id": ("evaluate", "bob", {"run": "retrieval-1"}),
}
TOKENS = {
    "an expired sign-in": {"iat": 1_000_000.0},
    "a sign-in of the future": {"iat": 4_000_000_000.0},
    "a sign-in without a time": {"iat": None},
    "an address nobody verified": {"email_verified": False},
    "a flag that is no flag": {"is_logged_in": "true"},
    "no issuer": {"iss": ""},
}
FORGED = {
    "a corpus chosen": ("ask", "bob", {"corpus": "closed", "kept_corpus": "closed"}),
    "a corpus chosen and asked": ("ask", "bob", {"corpus": "closed", "question": "Who?", "ask_now": "run"}),
    "asked as a reader": ("ask", "rita", {"question": "Who must act?", "ask_now": "run"}),
    "checked as a reader": ("check", "rita", {"text": "A firm must act.", "ask_now": "checked"}),
    "records to compare": ("compare", "bob", {"compare_what": "Two stored answers", "compare_record_a": "ann"}),
    "both sides asked of a closed corpus": (
        "compare",
        "bob",
        {"compare_corpus_a": "closed", "compare_question": "Who?", "compare_ask": True},
    ),
    "a sweep over a closed corpus": ("sweep", "bob", {"sweep_corpus": "closed", "sweep_go": True}),
    "a corpus to read": ("read", "bob", {"read_corpus": "closed"}),
    "a deletion as an analyst": ("library", "bob", {"library_delete": True}),
    "a corpus of the list opened": ("library", "carl", {"open_closed": True}),
}


def resolved(world, told_of):
    return {name: world.ids.get(value, value) if isinstance(value, str) else value for name, value in told_of.items()}


def test_an_edited_stage_in_another_encoding_is_refused_and_loses_no_letter(world):
    file = world.paths.home / "evaluations" / "dataset-1" / SPLIT
    before = file.read_bytes()
    at = opened("dataset", "root", {"set": "dataset-1", "view": "Stages"})
    edited = before.decode().replace("feed", "gef\u00fcttert").encode("cp1252")
    at.file_uploader[0].upload(SPLIT, edited, "application/json").run()
    assert not at.exception
    assert "expected UTF-8" in told(at)
    assert file.read_bytes() == before


def test_a_stage_of_a_data_set_is_called_by_what_it_holds(world):
    at = opened("dataset", "root", {"set": "dataset-1", "view": "Stages"})
    assert at.radio(key="dataset_stage").options == ["The data set"]


@pytest.mark.parametrize("guarded", [True, False], ids=["", "past the page before all pages"])
@pytest.mark.parametrize("how", ADDRESSES)
def test_an_address_reaches_nothing(world, how, guarded):
    page, who, query = ADDRESSES[how]
    before = kept(world)
    at = opened(page, who, resolved(world, query), guarded=guarded)
    assert SECRET not in told(at)
    assert kept(world) == before


@pytest.mark.parametrize("guarded", [True, False], ids=["", "past the page before all pages"])
@pytest.mark.parametrize("how", TOKENS)
def test_a_sign_in_that_does_not_hold_reaches_nothing(world, how, guarded):
    for page, query in (("records", {"record": "ann"}), ("ask", {"run": "run"}), ("read", {"corpus": "closed"})):
        assert SECRET not in told(opened(page, "ann", resolved(world, query), guarded=guarded, **TOKENS[how]))


@pytest.mark.parametrize("how", FORGED)
def test_a_forged_message_reaches_nothing(world, how):
    page, who, state = FORGED[how]
    files, indexes, asked = kept(world)
    pressed = {name for name, value in state.items() if value is True}
    at = opened(page, who, state=resolved(world, {name: value for name, value in state.items() if value is not True}))
    for button in at.button:
        if button.key in pressed:
            button.click().run()
            break
    runs = [at.session_state[name] for name in ("run", "checked") if name in at.session_state]
    for run in (*runs, *at.session_state.get("compared", ())):
        run.wait(20)
    at.run()
    assert SECRET not in told(at)
    assert kept(world)[:2] == (files, indexes)
    new = [index for name, index in records(world).items() if name not in asked]
    assert set(new) <= {"open"}  # what is not offered is not asked; the first that is may be
    assert not new or who != "rita"


def test_a_reader_sees_a_register_and_notes_nothing(world):
    file = world.paths.registers / "open.jsonl"
    assert "1 in the register" in told(opened("register", "rita", {"corpus": "open"}))
    (row,) = load(file).rows
    for who, owner in (("rita", ""), ("bob", "Bob")):
        with access.acting(as_(who)):
            take_over("open", file, {row.obligation_id: SheetRow(Handling("Bob"), Handling())}, "")
        assert load(file).handling(row.obligation_id).owner == owner
    acts = [(one["act"], one["email"][:3]) for one in world.log.entries()]
    assert acts[-2:] == [("refusal", "rit"), ("register", "bob")]


def test_a_reader_starts_no_run_and_judges_no_row(world, monkeypatch):
    begun, taken = [], []
    monkeypatch.setattr(Jobs, "begin", lambda _, name, make: begun.append(name))
    monkeypatch.setattr(GapFolder, "take", lambda *_: taken.append(1) or Taken({}, 0, (), ()))
    for who, n in (("rita", 0), ("bob", 1)):
        with access.acting(as_(who)):
            both = gaps._Both("open", "open", world.paths)
            gaps._start(both, GapRequest())
            gaps._take(both, {}, "")
        assert (len(begun), len(taken)) == (n, n)
    with access.acting(as_("bob")), pytest.raises(AccessError):
        gaps._Both("open", "closed", world.paths)


def test_there_are_at_least_forty():
    assert len(ADDRESSES) + len(TOKENS) + len(FORGED) >= 40


# Who may, does ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "who", "query"),
    [
        ("records", "ann", {"record": "ann"}),
        ("records", "ann", {"record": "ann closed"}),
        ("records", "root", {"record": "nobodys"}),
        ("records", "ann", {"case": "case"}),
        ("records", "ann", {"case": "shared case"}),
        ("records", "root", {"cases": "1"}),
        ("ask", "ann", {"run": "run"}),
        ("ask", "root", {"run": "run"}),
        ("read", "ann", {"corpus": "closed", "find": "feed"}),
        ("compare", "ann", {"a": "ann", "b": "ann closed"}),
        ("library", "root", {"corpus": "closed"}),
    ],
)
def test_who_may_see_it_sees_it(world, page, who, query):
    """Without these the tests above would hold of a page that shows nothing."""
    assert SECRET in told(opened(page, who, resolved(world, query)))


def keys(at):
    return {button.key for button in at.button}


def test_a_case_is_decided_on_by_another_who_sees_what_is_in_it(world):
    case, decisions = {"case": world.ids["shared case"]}, {"case_approve", "case_return", "case_override"}
    forged = {"kept_case_name": "bob@example.org"}  # which counts where nobody signs in
    assert not decisions & keys(opened("records", "ann", case, forged))
    assert not {"case_submit", *decisions} & keys(opened("records", "rita", case))
    before = kept(world)
    at = opened("records", "bob", case)
    at.button(key="case_approve").click().run()
    assert "is gone or not yours to see" in told(at)
    assert kept(world) == before
    world.store.share(world.ids["ann"], "bob@example.org", shared=True)
    at.text_input(key="case_why").input("as the rule says").run()
    at.button(key="case_approve").click().run()
    (found,) = (one for one in CaseStore(world.paths.records).list() if one.case_id == case["case"])
    decision = found.reviews()[-1][1]
    assert (found.state(), decision.by.name, decision.text) == ("approved", "bob@example.org", "as the rule says")
    assert "bob@example.org" in told(opened("records", "rita", case))
    at = opened("records", "bob", case)
    at.text_area(key="case_note").input("Ask the vendor").run()
    at.button(key="case_noted").click().run()
    assert "changed since" in told(at)
    assert "note 1 new" in told(at)


def test_a_case_is_shared_with_the_records_in_it_that_are_ones_own_where_that_is_ticked(world):
    for ticked in (False, True):
        at = opened("records", "ann", {"case": world.ids["case"]})
        at.text_input(key="case_with").input("bob@example.org").run()
        at.checkbox(key="case_records").set_value(ticked).run()
        at.button(key="case_share").click().run()
        assert not at.exception
        case = opened("records", "bob", {"case": world.ids["case"]})
        assert (f"record:{world.ids['ann']}" in told(case)) is ticked


def test_who_has_a_case_already_gets_the_records_and_nobody_else(world):
    at = opened("records", "ann", {"case": world.ids["case"]})
    for who, ticked in (("bob@example.org", False), ("carl@example.org", False), (" Bob@example.org", True)):
        at.text_input(key="case_with").input(who).run()
        at.checkbox(key="case_records").set_value(ticked).run()
        at.button(key="case_share").click().run()
    assert world.store.shared_with(world.ids["ann"]) == ("bob@example.org",)


def test_a_record_goes_into_a_new_case_and_a_task_is_done(world):
    at = opened("records", "ann", {"record": world.ids["ann"]})
    at.text_input(key="case_title").input("Outsourcing *of* it").run()
    at.button(key="case_add_to").click().run()
    assert "case" in at.query_params
    at.text_input(key="case_task").input("Call").run()
    at.button(key="case_tasked").click().run()
    at.button(key="case_done_1").click().run()
    case = CaseStore(world.paths.records).list()[0]
    assert (case.title, case.items[0].ref, case.tasks[0].done.by.name) == (
        "Outsourcing *of* it",
        f"record:{world.ids['ann']}",
        "ann@example.org",
    )
    at = opened("records", "ann", {"cases": "1"})
    at.text_input(key="case_words").input("pangolin outsourcing").run()
    assert case.case_id in told(at)
    at.text_input(key="case_words").input("zebra").run()
    assert "No case has these words" in told(at)


def test_a_document_goes_into_a_case_and_the_reader_stays_at_it(world):
    at = opened("read", "ann", {"corpus": "open", "document": "rules"})
    at.text_input(key="case_title").input("What we read").run()
    at.button(key="case_add_to").click().run()
    case = CaseStore(world.paths.records).list()[0]
    assert at.query_params["corpus"] == "open"
    assert f"Added to [What we read](records?case={case.case_id})" in told(at)
    case = opened("records", "ann", {"case": case.case_id})
    assert "with the case" not in told(case)
    case.button(key="case_submit").click().run()
    assert "with the case" in told(case)  # the item waits with it


def test_a_record_is_shared_with_a_person_and_with_a_group_and_no_longer(world):
    name = world.ids["ann"]
    at = opened("records", "ann", {"record": name})
    at.text_input(key="share_with").set_value(" Bob@Example.org ")
    at.button(key="FormSubmitter:share-Share").click().run()
    assert SECRET in told(opened("records", "bob", {"record": name}))
    assert SECRET in told(opened("records", "bob"))  # in the list
    assert SECRET not in told(opened("records", "carl", {"record": name}))
    shared = opened("records", "bob", {"record": name})
    assert "share_with" not in [one.key for one in shared.text_input]  # it is not Bob's to share on
    with access.acting(as_("bob")), pytest.raises(ragqa.RagqaError):
        resources.record_store(world.paths.records).share(name, "rita@example.org", shared=True)
    next(one for one in at.button if one.key == "unshare_bob@example.org").click().run()
    assert SECRET not in told(opened("records", "bob", {"record": name}))
    with access.acting(as_("ann")):
        resources.record_store(world.paths.records).share(name, "group:insurers", shared=True)
    joined = POLICY.replace('role = "reader"', 'role = "reader"\ngroups = ["insurers"]')
    (world.paths.home / "access.toml").write_text(joined)
    assert SECRET in told(opened("records", "rita", {"record": name}))
    assert [one["shared"] for one in world.log.entries() if one["act"] == "share"] == [True, False]


def test_rights_taken_away_count_in_a_session_that_is_open(world):
    at = opened("library", "carl", {"corpus": "open"})
    before = kept(world)
    (world.paths.home / "access.toml").write_text(POLICY.replace("curator", "reader"))
    at.button(key="library_delete").click().run()
    assert kept(world) == before
    assert "There is no corpus" in told(at) or "does not allow" in told(at)
    (world.paths.home / "access.toml").write_text("role = [")
    assert SECRET not in told(opened("records", "ann", {"record": world.ids["ann"]}))
    assert "Access is denied" in told(opened("records", "ann"))


def test_a_refused_click_is_told_in_a_toast_without_markup(world):
    at = opened("records", "ann", {"record": world.ids["ann"]})
    at.button(key="record_keep").click()
    (world.paths.home / "access.toml").write_text(POLICY.replace("analyst", "reader"))
    at.run()
    assert not at.exception
    assert "does not allow" in at.toast[0].value

    def script():
        from ragqa.errors import RecordError
        from ragqa.ui import access

        with access.told():
            raise RecordError("[a link](https://example.org) & more")

    assert AppTest.from_function(script).run().toast[0].value.startswith(r"\[a link\]\(https")


def test_a_session_that_another_person_goes_on_with_begins_anew(world):
    at = opened("ask", "ann", {"run": world.ids["run"]})
    assert SECRET in told(at)
    at.user = claims("bob")
    at.run()
    assert SECRET not in told(at)
    assert at.session_state["who"].count("bob")
    assert "run" not in at.session_state


def test_what_draws_itself_again_asks_again(world):
    """Streamlit draws a fragment without the page around it: where a sign-in has ended it shows no more."""

    def script(run_id):
        import streamlit as st

        import ragqa.ui.state.resources as resources
        from ragqa.settings.config import Config
        from ragqa.settings.paths import Paths
        from ragqa.ui.pages.compare import _live
        from ragqa.ui.pages.workspace import draw_run

        run = resources.runs().find(run_id)
        _live(st.session_state.setdefault("pair", (run, run)))
        draw_run(run, Config(index="open"), Paths.from_env())

    for who, sees in (("ann", True), ("bob", False), ("", False)):
        tester = AppTest.from_function(script, default_timeout=30, kwargs={"run_id": world.ids["run"]})
        tester.user = claims(who)
        assert (SECRET in told(tester.run())) == sees


def test_results_of_gaps_and_benchmarks_that_draw_themselves_again_ask_again(world, monkeypatch):
    drawn, folder = [], SimpleNamespace(store=lambda job: SimpleNamespace(standing=lambda: SimpleNamespace(gaps=(1,))))
    both = SimpleNamespace(corpus="open", policies="closed", folder=folder, job=None)
    monkeypatch.setattr(gaps, "_read", lambda both, store: ())
    monkeypatch.setattr(gaps, "_results", lambda both, run: drawn.append("gaps"))
    monkeypatch.setattr(st, "rerun", Mock(side_effect=StopAsyncIteration))  # to the page, which is refused
    monkeypatch.setattr(results.EVALUATION, "latest", lambda *given: drawn.append("benchmark") or "x", raising=False)
    view = EvaluationView("b", {}, total=1, rows=(Row(1, "q", f"Who feeds the {SECRET}?", None),))
    run = SimpleNamespace(view=view, is_stopping=False, stop=lambda: None, benchmark=None)
    for who, sees in (("root", ["gaps", "benchmark"]), ("ann", ["gaps"]), ("bob", []), ("", [])):
        drawn.clear()
        with access.acting(as_(who)):
            gaps._tried(both)
            with suppress(StopAsyncIteration):
                results.draw_progress(run)
        assert drawn == sees, who


def test_who_may_no_longer_work_in_the_library_stops_no_job_there(world):
    stopped = []
    job = SimpleNamespace(stop=lambda: stopped.append(access.gate().person.name))
    for who in ("rita", "carl"):
        with access.acting(as_(who)):
            library_job._stop(job, access.Act.UPLOAD, "open")
    assert stopped == ["carl@example.org"]


OPENERS = {
    *("open_index", "index_info", "verify_index", "list_indexes", "RecordStore"),
    *("collection_of", "collections", "make_collection"),
    *(
        "take",
        "take_from_folder",
        "take_over",
        "export",
        "import_corpus",
        "delete",
        "deleted",
        "erase",
        "restore",
        "save_preset",
    ),
    *("follow_up", "assemble", "load_pipeline", "file_of"),
}


def test_a_module_of_the_page_that_opens_or_changes_something_asks_the_gate():
    for path in (ROOT / "ragqa" / "ui").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        taken = {name.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names}
        if taken & OPENERS - {"RecordStore"} or "RecordStore(" in path.read_text(encoding="utf-8"):
            assert taken & {"access", "resources"}, path  # resources asks, or the module does


def test_acts_and_refusals_are_in_the_log(world):
    at = opened("ask", "bob", {})
    at.text_area(key="question").set_value("What must a firm do?")
    next(button for button in at.button if button.label == "Ask").click().run()
    at.session_state["run"].wait(20)
    assert at.session_state["run"].view.record_id
    opened("records", "bob", {"record": world.ids["ann"]})
    at = opened("library", "carl", {"corpus": "open"})
    next(one for one in at.button if one.key == "library_delete").click().run()
    found = [(one["act"], one["email"][:4], one.get("corpus") or one.get("record")) for one in world.log.entries()]
    assert ("question", "bob@", "open") in found
    assert ("refusal", "bob@", world.ids["ann"]) in found
    assert ("sign-in", "carl", None) in found
    assert ("deletion", "carl", "open") in found
    assert "What must a firm do?" not in (world.paths.home / "audit" / "audit.jsonl").read_text()
    assert world.log.verify().broken is None


def test_who_opens_a_record_is_in_the_log_and_once(world):
    for _ in range(2):
        opened("records", "ann", {"record": world.ids["ann"]})
    opened("compare", "root", {"a": world.ids["ann"], "b": world.ids["nobodys"]})
    read = [(one["email"][:4], one["record"]) for one in world.log.entries() if one["act"] == "read"]
    assert read == [("ann@", world.ids["ann"]), ("root", world.ids["ann"]), ("root", world.ids["nobodys"])]


def test_signing_out_ends_every_copy_of_the_sign_in(world):
    at = opened("records", "ann", {"record": world.ids["ann"]})
    when = at.user["iat"]
    at.button(key="sign_out").click().run()
    assert [one["act"] for one in world.log.entries()][-1] == "sign-out"
    assert SECRET not in told(opened("records", "ann", {"record": world.ids["ann"]}, iat=when))
    assert SECRET in told(opened("records", "ann", {"record": world.ids["ann"]}, iat=when + 1))


@pytest.mark.parametrize(
    ("address", "switch", "asks", "warns"),
    [
        ("localhost", "", False, False),
        ("127.0.0.1", "", False, False),
        ("::1", "", False, False),
        ("127.0.0.1", "on", True, False),
        ("0.0.0.0", "", True, False),
        (None, "", True, False),
        ("192.168.0.7", "", True, False),
        ("localhost.example.org", "", True, False),
        ("unix:///run/ragqa.sock", "", True, False),
        ("0.0.0.0", "off", False, True),
        ("localhost", "off", False, False),
        ("0.0.0.0", "of", True, False),
    ],
)
def test_when_people_have_to_sign_in(world, monkeypatch, address, switch, asks, warns):
    monkeypatch.setattr(st, "get_option", lambda name: address if name == "server.address" else None)
    monkeypatch.setenv("RAGQA_ACCESS", switch)
    shown = told(opened("records", "", {"record": world.ids["ann"]}))
    assert (SECRET not in shown) == asks
    assert ("whoever reaches it may do everything" in shown) == warns


def test_without_sign_in_everything_is_as_before(world, monkeypatch):
    monkeypatch.setenv("RAGQA_ACCESS", "")
    shown = told(opened("records", ""))
    assert shown.count(SECRET) >= 3
    assert not (world.paths.home / "audit" / "audit.jsonl").exists() or not [
        one for one in world.log.entries() if one["act"] == "sign-in"
    ]
    at = opened("ask", "", {"run": world.ids["run"]})
    assert SECRET in told(at)
    assert "sign_out" not in [one.key for one in at.button]
    assert json.loads(json.dumps([one.label for one in at.button]))

"""Cases on the page History: the list, one case with its sign-off, and adding items from other pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import streamlit as st

from ragqa.english.words import cut
from ragqa.errors import RagqaError
from ragqa.records.case_words import search, title_of
from ragqa.records.cases import DRAFT, FORMS, LONGEST, LONGEST_NAME, CaseView, Step, words_of
from ragqa.records.sign_off import is_author
from ragqa.server.access.desk import CaseDesk
from ragqa.server.access.policy import Act
from ragqa.settings.paths import Paths
from ragqa.ui import access
from ragqa.ui.html.cases import case_html, cases_html
from ragqa.ui.html.library import plain_markdown
from ragqa.ui.html.render import notice_html
from ragqa.ui.pages.notices import draw_notices, error_kept
from ragqa.ui.state import resources
from ragqa.ui.state.desk import case_desk

_ALSO = "Show them the records in it that are mine"
_NAME, _SAID = "kept_case_name", "case_said"  # session keys: the typed name; why the last step failed
_ADDED = "case_added"  # session key: the case that an item was just added to, in Markdown
_NEW = "A new case"
SHOWN = 100  # cases listed
_DECISIONS = {"Approve": Step.APPROVED, "Return": Step.RETURNED, "Override": Step.OVERRIDDEN}


def draw_cases(paths: Paths) -> None:
    """The cases that the person may see, with a search, and a form for a new case."""
    desk = _desk(paths)
    draw_notices(_SAID)
    with st.container(horizontal=True, vertical_alignment="bottom", key="case_bar"):
        words = st.text_input("Words anywhere in a case", key="case_words", width=320)
        if access.gate().may(Act.CASE):
            with st.popover("New case"):
                _name()
                st.text_input("Title", key="case_title", max_chars=LONGEST_NAME)
                st.button("Open it", key="case_new", on_click=_step, args=(_begin,))
    problems: set[str] = set()
    cases = desk.store.list(problems)
    for one in sorted(problems):
        st.html(notice_html(one, "mixed"))
    looked = desk.looked(*(one for one in cases if words or one.review))
    found = list(search(cases, words, looked))
    if found:
        st.html(cases_html(found[:SHOWN], looked))
        st.caption(f"The {SHOWN} that were changed last; words find the others." if len(found) > SHOWN else "")
    elif cases:
        st.html(notice_html("No case has these words."))
    else:
        st.html(notice_html("No case is yours or shared with you. A case holds records, documents, notes and tasks."))


def draw_case(case_id: str, paths: Paths) -> None:
    """One case, and the steps that the person may take."""
    desk = _desk(paths)
    case = desk.store.load(case_id)
    looked = desk.looked(case)
    st.header(plain_markdown(case.title), anchor=False)
    shared = f", shared with {', '.join(map(plain_markdown, case.names))}" if case.names else ""
    opened = f"opened by {plain_markdown(case.opened.by.shown)}, {case.opened.at[:10]}"
    st.caption(f"[All cases](records?cases=1) · Case {case.case_id}, {opened}{shared}.")
    draw_notices(_SAID)
    st.html(case_html(case, looked))
    if not access.gate().may(Act.CASE):
        return
    _name()
    titles = {0: "The case"} | {one.number: f"{one.number}. {cut(title_of(one, looked), 70)}" for one in case.items}
    _sign_off(desk, case, titles)
    _tasks_and_notes(case)
    with st.container(horizontal=True, key="case_more"):
        if access.gate().audit:
            _sharing(case)
        with st.popover("Add an item"):
            st.text_input(FORMS, key="case_ref", max_chars=500)
            st.button("Add", key="case_add", on_click=_step, args=(_typed("add", "case_ref"), case.case_id))
        if case.items:
            with st.popover("Remove an item"):
                items = list(titles)[1:]
                st.selectbox("Item", items, format_func=titles.__getitem__, key=f"case_out_{len(items)}")
                out = (_typed("remove", f"case_out_{len(items)}"), case.case_id)
                st.button("Remove", key="case_remove", on_click=_step, args=out)


def draw_add(ref: str, paths: Paths) -> None:
    """A form that adds the item ``ref`` to a case; a record's page then shows the case, others a link to it."""
    if not access.gate().may(Act.CASE):
        return
    draw_notices(_SAID)
    with st.popover("Add to case"):
        titles = {"": _NEW} | {one.case_id: one.title for one in _desk(paths).store.list()}
        chosen = st.selectbox("Case", list(titles), format_func=titles.__getitem__, key="case_into")
        if not chosen:
            st.text_input("Title", key="case_title", max_chars=LONGEST_NAME)
        elif access.gate().audit:
            st.checkbox(_ALSO, True, key="case_records", help="To whom the case is shared with.")
        _name()
        st.button("Add", key="case_add_to", on_click=_step, args=(_add_to, chosen or "", ref))
    if _ADDED in st.session_state:
        st.caption(st.session_state.pop(_ADDED))


def _sign_off(desk: CaseDesk, case: CaseView, titles: dict[int, str]) -> None:
    st.markdown("### Submit and decide")
    with st.container(horizontal=True, vertical_alignment="bottom", key="case_sign"):
        item = st.selectbox("What", list(titles), format_func=titles.__getitem__, key="case_item", width=320) or 0
        st.text_input("Reason", key="case_why", max_chars=LONGEST, width=320)
        submission, is_own = case.submission(item), _is_author(desk, case, item)
        if is_own or not submission:
            label = "Submit again" if submission else "Submit"
            st.button(label, key="case_submit", on_click=_step, args=(_submit, case.case_id, item))
        else:
            for label, step in _DECISIONS.items():
                given = (_decide, case.case_id, step, item, submission)
                kind: Any = "primary" if step is Step.APPROVED else "secondary"
                st.button(label, key=f"case_{label.lower()}", type=kind, on_click=_step, args=given)
    if submission and is_own:
        st.caption("You are an author of it: another person approves, returns or overrides it.")
    elif case.state(item) == DRAFT:
        st.caption("Submitted, it waits for another person, who approves it as it is then, or gives a reason.")


def _tasks_and_notes(case: CaseView) -> None:
    with st.container(horizontal=True, key="case_write"):
        with st.popover("Add a note"):
            st.text_area("Note", key="case_note", max_chars=LONGEST)
            st.button("Keep", key="case_noted", on_click=_step, args=(_typed("note", "case_note"), case.case_id))
        with st.popover("Add a task"):
            st.text_input("What is to be done", key="case_task", max_chars=LONGEST)
            st.text_input("Owner", key="case_owner", max_chars=LONGEST_NAME)
            st.date_input("Due", None, key="case_due")
            st.button("Keep", key="case_tasked", on_click=_step, args=(_task, case.case_id))
        for task in (one for one in case.tasks if not one.done):
            given = (lambda desk, case_id, n: desk.done(case_id, n), case.case_id, task.number)
            st.button(f"Task {task.number} is done", key=f"case_done_{task.number}", on_click=_step, args=given)


def _sharing(case: CaseView) -> None:
    with st.popover(f"Shared with {len(case.names)}" if case.names else "Share"):
        st.text_input("An e-mail address, group:NAME or role:NAME", key="case_with", max_chars=LONGEST_NAME)
        st.button("Share", key="case_share", on_click=_step, args=(_share, case.case_id, "", True))
        for n, who in enumerate(case.names):
            given = (_share, case.case_id, who, False)
            st.button(f"No longer with {plain_markdown(who)}", key=f"case_unshare_{n}", on_click=_step, args=given)
        st.checkbox(_ALSO, True, key="case_records")
        st.caption("They see its other items only where they may see them anyway.")


def _is_author(desk: CaseDesk, case: CaseView, item: int) -> bool:
    try:
        return is_author(case, item, desk.signer)
    except RagqaError:  # no name is typed yet
        return False


def _desk(paths: Paths) -> CaseDesk:
    return case_desk(paths, str(st.session_state.get(_NAME, "")))


def _name() -> None:
    """A field for the person's name, without sign-in."""
    if not access.gate().audit:
        st.session_state["case_name"] = st.session_state.get(_NAME, "")
        words = "Stored with your steps, as a name that is not proven, because nobody signs in here."
        st.text_input("Your name", key="case_name", help=words, width=320, on_change=_keep_name)


def _keep_name() -> None:
    st.session_state[_NAME] = st.session_state["case_name"]


# Steps --------------------------------------------------------------------------------------------------------------


def _step(do: Callable[..., object], *given: object) -> None:
    """Takes a step at this person's desk; a failure is shown on the page."""
    st.session_state.pop(_SAID, None)
    with error_kept(_SAID):
        do(_desk(Paths.from_env()), *given)


def _typed(step: str, key: str) -> Callable[[CaseDesk, str], object]:
    """A step that takes the value of this field."""

    def do(desk: CaseDesk, case_id: str) -> object:
        value = st.session_state.get(key)
        done = getattr(desk, step)(case_id, value)
        if isinstance(value, str):
            st.session_state[key] = ""
        return done

    return do


def _begin(desk: CaseDesk) -> None:
    st.query_params.from_dict({"case": desk.begin(str(st.session_state.get("case_title", ""))).case_id})


def _add_to(desk: CaseDesk, case_id: str, ref: str) -> None:
    case_id = case_id or desk.begin(str(st.session_state.get("case_title", ""))).case_id
    case = desk.add(case_id, ref)
    _show_records(desk, case, case.names)
    if "record" in st.query_params:
        st.query_params.from_dict({"case": case_id})
    else:
        st.session_state[_ADDED] = f"Added to [{plain_markdown(case.title)}](records?case={case_id})."


def _show_records(desk: CaseDesk, case: CaseView, names: Sequence[str]) -> None:
    """Shares the person's own records in the case with these names, if that is ticked."""
    store, person = resources.record_store(Paths.from_env().records), desk.gate.person.id
    for ref, seen in desk.looked(case).items() if st.session_state.get("case_records") else ():
        record_id = ref.removeprefix("record:")
        for who in names if ref.startswith("record:") and person in seen.authors else ():
            with desk.gate.doing(Act.SHARE, record=record_id, names=[who], shared=True):
                store.share(record_id, who, shared=True)


def _task(desk: CaseDesk, case_id: str) -> None:
    due = st.session_state.get("case_due")
    text, owner = (str(st.session_state.get(key, "")) for key in ("case_task", "case_owner"))
    desk.task(case_id, text, owner, due.isoformat() if isinstance(due, date) else "")
    st.session_state["case_task"] = ""


def _share(desk: CaseDesk, case_id: str, who: str, shared: bool) -> None:
    who = words_of(who or str(st.session_state.get("case_with", "")), "whom to share with", LONGEST_NAME)
    case = desk.share(case_id, who, shared=shared)
    if shared:  # not with the last name, which is another's where this one had the case already
        _show_records(desk, case, [who if who in case.names else who.casefold()])


def _submit(desk: CaseDesk, case_id: str, item: int) -> None:
    desk.submit(case_id, item, str(st.session_state.get("case_why", "")))
    st.session_state["case_why"] = ""


def _decide(desk: CaseDesk, case_id: str, step: Step, item: int, submission: int) -> None:
    desk.decide(case_id, step, item, str(st.session_state.get("case_why", "")), submission)
    st.session_state["case_why"] = ""

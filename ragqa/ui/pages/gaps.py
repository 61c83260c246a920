"""The page Gaps: compares a register with policies in the background; people judge its rows by keyboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Final
from urllib.parse import urlencode

import streamlit as st

from ragqa.english.words import cut, quantity
from ragqa.index import Index
from ragqa.infra.cleaning import without_controls
from ragqa.library.edits import SheetRow
from ragqa.library.gap_memo import gap_memo
from ragqa.library.gap_opinions import GapOpinions
from ragqa.library.gap_rows import CONFIRMED, LABELS, Correction, GapRow, GapRun, Statement, chapter_of
from ragqa.library.gap_runs import GapFolder, GapJob, GapRequest, read_so_far, rows_left, versions_of
from ragqa.library.gap_search import WantedGaps, matching_gaps
from ragqa.library.gap_sheets import cited_names, write_gaps
from ragqa.library.gaps import GapStore, Policies, SecondReader
from ragqa.library.jobs import BackgroundJob
from ragqa.library.register_search import part_of, parties, rule_name
from ragqa.library.register_store import Register, up_to_date
from ragqa.loading import policy_scorer
from ragqa.pipeline import Pipeline, opinion_client
from ragqa.records.memo_files import memo_bytes
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.server.access.desk import CaseDesk
from ragqa.server.access.policy import Act
from ragqa.settings.config import Config, without_default_reranker
from ragqa.settings.environment import has_llm
from ragqa.settings.paths import Paths
from ragqa.types import Passage
from ragqa.types.scores import Strength
from ragqa.ui import access
from ragqa.ui.html.gaps import matrix_html, row_html, standing_html, unasked_html
from ragqa.ui.html.library import plain_markdown
from ragqa.ui.pages.cases import draw_add
from ragqa.ui.pages.library_job import draw_job
from ragqa.ui.pages.notices import draw_notices, error_kept, error_shown, keep_notices
from ragqa.ui.pages.register import LONGEST, draw_choice, draw_title
from ragqa.ui.pages.sheets import draw_sheets, taken_notices
from ragqa.ui.shared import shared
from ragqa.ui.state import resources
from ragqa.ui.state.desk import case_desk

PAGE: Final = 25  # rows at a time
_SAID, _OPEN, _COMMENT = "gaps_said", "gaps_open", "gaps_comment"
_VIEWS: Final = ("Rows", "Chapters and policies", "Statements without a rule")
_SNIPPET: Final = 110  # characters of a row in the list
_FILTERS: Final = ("chapter", "policy", "result")  # filters that an address can set


class _Both:
    """The rules and policies of this visit, and the gap run that compares them."""

    def __init__(self, corpus: str, policies: str, paths: Paths) -> None:
        """Raises as `resources.open_corpus` and `up_to_date`."""
        self.corpus, self.policies, self.paths = corpus, policies, paths
        self.index: Index = resources.open_corpus(policies, paths)
        self.rules: Index = resources.open_corpus(corpus, paths)
        self.register = _register(self.rules, corpus, paths)
        self.folder: GapFolder = resources.gap_folder(corpus, policies, paths)
        self.jobs, self.name = resources.library_jobs(paths), f"{corpus}/{policies}"

    @property
    def job(self) -> BackgroundJob | None:
        """The latest job, running or not."""
        return self.jobs.latest.get(self.name)

    def passage(self, passage_id: str) -> Passage | None:
        """The policies' passage with this id, or None."""
        place = self.index.position_of.get(passage_id)
        return None if place is None else self.index.passages[place]


def _register(index: Index, corpus: str, paths: Paths) -> Register:
    return up_to_date(paths.registers / f"{corpus}.jsonl", index.passages, index.manifest.corpus_sha256)


def gaps_page() -> None:
    """Draws the gaps of ``?corpus=NAME&policies=NAME``."""
    paths = Paths.from_env()
    corpus = draw_title("Gaps", paths)
    if not corpus:
        return
    with error_shown():
        _draw(corpus, paths)


def _draw(corpus: str, paths: Paths) -> None:
    draw_notices(_SAID)
    titles = resources.corpus_titles([one for one in resources.index_names(paths) if one != corpus], paths)
    names = list(titles)
    asked = st.query_params.get("policies", "")
    with st.container(horizontal=True, vertical_alignment="bottom", key="gaps_bar"):
        policies = st.selectbox(
            "Policies",
            names,
            index=names.index(asked) if asked in names else None,
            format_func=titles.__getitem__,
            placeholder="Choose a corpus of policies",
            key="gaps_policies",
            width=320,
            on_change=_chosen,
        )
        if not policies:
            st.caption(
                "Compares each duty of these rules with the policies: in conflict, partly, not found or covered."
            )
            return
        with st.spinner("Reading the obligations of this corpus (once for each version)"):
            both = _Both(corpus, policies, paths)
        busy = bool(both.job and both.job.view.running)
        if access.gate().may(Act.REGISTER, corpus) and not busy:
            _start_form(both)
    if both.job:
        draw_job(both.job, Act.REGISTER, corpus, busy=busy)
    st.fragment(partial(_tried, both))()


def _chosen() -> None:
    st.query_params["policies"] = st.session_state["gaps_policies"] or ""
    st.session_state.pop(_OPEN, None)


# A run --------------------------------------------------------------------------------------------------------------


def _start_form(both: _Both) -> None:
    """The form that starts a run on a part of the rules, and a button that continues an unfinished run."""
    asked, rows = both.folder.asked(), both.register.duties
    left = rows_left(both.folder.store(both.job), both.register, asked) if asked else []
    if asked and left:
        words = f"Go on: {quantity(len(left), 'row')} left"
        st.button(words, type="primary", key="gaps_on", on_click=_start, args=(both, asked))
    titles = {row.document_id: row.title or row.document_id for row in rows}
    with st.popover("Part of the rules"):
        documents = st.multiselect("Documents", list(titles), format_func=titles.__getitem__, key="gaps_documents")
        chapters = st.text_input("Rules that begin with", key="gaps_chapters", placeholder="3, 4.1 (empty: all)")
        config = Config.from_env()
        second = (has_llm() or bool(config.generation.local_model)) and st.checkbox(
            "Ask a language model about rows that the verifier is not sure of", key="gaps_second"
        )
    part = GapRequest(tuple(documents), tuple(chapters.replace(",", " ").split()), second=second)
    words = "Compare again what changed" if asked and not left else "Compare with the policies"
    st.button(
        words,
        type="secondary" if asked else "primary",
        key="gaps_start",
        disabled=not rows,
        on_click=_start,
        args=(both, part),
    )
    if asked and asked.policies != both.index.manifest.corpus_sha256:
        st.caption("The policies have changed since they were read; only rows that this touches are read again.")
    if asked and asked.rules not in ("", both.register.corpus):
        told = f"{quantity(len(left), 'row')}, new or changed" if left else "none"
        st.caption(f"The rules have changed since they were read. Left to be read: {told}.")


def _start(both: _Both, asked: GapRequest) -> None:
    corpus, policies, paths, name = both.corpus, both.policies, both.paths, both.name
    config = Config.from_env()
    generation = replace(config.generation, generator="none")
    config = without_default_reranker(replace(config, index=policies, generation=generation))
    asked = replace(asked, policies=both.index.manifest.corpus_sha256, rules=both.register.corpus)
    pipeline = partial(resources.pipeline, config, paths, Act.READ)

    def load() -> tuple[Register, Policies, RepassScorer, SecondReader | None]:
        found: Pipeline = pipeline()
        held_against = Policies(found.index.passages, found.search)
        second = GapOpinions(opinion_client(config)) if asked.second else None
        return (
            _register(resources.open_corpus(corpus, paths), corpus, paths),
            held_against,
            policy_scorer(found.models.scorer(config.scoring), paths),
            second,
        )

    with error_kept(_SAID):
        part_of(both.register.duties, asked.documents, asked.chapters)  # raises for unknown documents and chapters
        with access.gate().doing(Act.REGISTER, corpus, policies=policies):
            make = partial(GapJob, name, both.folder.folder, asked, both.jobs, access.bound(load))
            both.jobs.begin(name, make)


# What came of it ----------------------------------------------------------------------------------------------------


def _tried(both: _Both) -> None:
    with error_shown():
        for name in (both.corpus, both.policies):  # this is drawn again without the page around it
            access.gate().demand(Act.READ, name)
        store = both.folder.store(both.job)
        run = store.standing(*_read(both, store))
        if run.gaps:
            _results(both, run)
        elif not (both.job and both.job.view.running):
            st.caption("No row has been read yet: a run compares each obligation with the passages nearest to it.")


def _read(both: _Both, store: GapStore) -> tuple[tuple[GapRow, ...], tuple[Statement, ...]]:
    hashes = both.register.corpus, both.index.manifest.corpus_sha256
    statuses = hash(tuple((name, one.status) for name, one in both.register.handlings.items() if one.status))
    return _so_far(both.name, store.n_changed, id(store), hashes, statuses, store, both.register, both.index.passages)


@shared(most=4)
def _so_far(
    name: str,
    n_changed: int,
    which: int,
    hashes: tuple[str, str],
    statuses: int,
    _store: GapStore,
    _register: Register,
    _passages: Sequence[Passage],
) -> tuple[tuple[GapRow, ...], tuple[Statement, ...]]:
    return read_so_far(_store, _register, _passages)


def _results(both: _Both, run: GapRun) -> None:
    draw_notices(f"{_SAID}_row")
    st.html(standing_html(run, lambda label: _address(both, result=label)))
    with st.container(horizontal=True, vertical_alignment="center"):
        view = st.segmented_control("View", _VIEWS, default=_VIEWS[0], key="gaps_view", label_visibility="collapsed")
        draw_sheets(
            both.corpus,
            Correction,
            len(run.gaps),
            partial(write_gaps, run=run, policies=both.index.passages),
            lambda sheet, name: _take(both, sheet, name, files=[name]),
            name="gaps",
            said=f"{_SAID}_row",
        )
        st.download_button(
            "Memo (Word)",
            access.bound(partial(_memo, both, run, case_desk(both.paths))),  # made only after a click
            f"gaps-{both.corpus}.docx",
            key="gaps_memo",
            on_click="ignore",
        )
        draw_add(_item(both), both.paths)
    if view == _VIEWS[1]:
        st.html(matrix_html(run, lambda chapter, policy: _address(both, chapter=chapter, policy=policy)))
    elif view == _VIEWS[2]:
        st.html(unasked_html(run.unasked, both.policies, both.passage))
    else:
        _rows(both, run)


def _item(both: _Both) -> str:
    """The reference of this run as an item of a case."""
    return f"gaps:{both.corpus}/{both.policies}"


def _memo(both: _Both, run: GapRun, desk: CaseDesk) -> bytes:
    with access.gate().doing(Act.READ, both.corpus, memo=both.policies):
        titles = resources.corpus_titles([both.corpus, both.policies], both.paths)
        versions = versions_of(both.corpus, both.policies, (both.rules, both.index))
        signed = desk.signed([_item(both)])
        names = cited_names(both.index.passages)
        return memo_bytes(gap_memo(run, titles[both.corpus], titles[both.policies], versions, signed, names), ".docx")


def _address(both: _Both, **filters: str) -> str:
    return f"gaps?{urlencode({'corpus': both.corpus, 'policies': both.policies, **filters})}"


def _wanted(run: GapRun) -> WantedGaps:
    chapters = list(dict.fromkeys(chapter_of(gap.row) for gap in run.gaps))
    policies = list(dict.fromkeys(one.title for gap in islice(run.gaps, 2_000) for one in gap.readings))
    for name, known in zip(_FILTERS, (chapters, policies, LABELS), strict=True):
        asked = st.query_params.get(name, "")
        if asked in known:
            st.session_state.setdefault(f"gaps_{name}", asked)
    choice = partial(draw_choice, "gaps")
    with st.container(horizontal=True, vertical_alignment="bottom", key="gaps_filter"):
        words = st.text_input("Words or rule", key="gaps_words", width=200)
        return WantedGaps(
            words,
            choice("Result", LABELS),
            choice("Chapter", chapters, width=240),
            choice("Policy", policies, width=200),
            choice("Who", parties([gap.row for gap in run.gaps]), width=180, accept_new_options=True),
            choice("Strength", [str(one) for one in Strength if one is not Strength.NONE]),
        )


def _rows(both: _Both, run: GapRun) -> None:
    found = matching_gaps(run, _wanted(run))
    if not found:
        st.caption("No row matches")
        return
    places = {gap.row.obligation_id: place for place, gap in enumerate(found)}
    place = places.get(st.session_state.get(_OPEN, ""), 0)
    after = place // PAGE * PAGE
    shown = found[after : after + PAGE]
    ids = [gap.row.obligation_id for gap in shown]
    listed, opened = st.columns([2, 3], gap="medium")
    with opened:
        following = found[place + 1].row.obligation_id if place + 1 < len(found) else ""
        _row(both, run, found[place], following)
    with listed, st.container(key="gaps_list"):
        with st.container(horizontal=True, vertical_alignment="center"):
            for words, first in (("‹ Before", after - PAGE), ("Next ›", after + PAGE)):
                target = found[first].row.obligation_id if 0 <= first < len(found) else ""
                st.button(words, key=f"gaps_{words[0]}", disabled=not target, on_click=_open, args=(target,))
            st.caption(f"Rows {after + 1:,} to {after + len(shown):,} of {len(found):,}")
        st.session_state["gaps_row"] = ids[place - after]
        said = {gap.row.obligation_id: _line(run, gap) for gap in shown}
        with st.container(height=520, border=False):
            st.radio(
                "Rows",
                ids,
                key="gaps_row",
                format_func=said.__getitem__,
                on_change=lambda: _open(st.session_state["gaps_row"]),
                label_visibility="collapsed",
            )


def _line(run: GapRun, gap: GapRow) -> str:
    words = plain_markdown(f"{rule_name(gap.row)} {cut(gap.row.text, _SNIPPET)}")
    return f"{'✓ ' if run.correction(gap).said else ''}{run.label(gap)} · {words}"


def _open(obligation_id: str) -> None:
    st.session_state[_OPEN] = obligation_id


# One row ------------------------------------------------------------------------------------------------------------


def _row(both: _Both, run: GapRun, gap: GapRow, following: str) -> None:
    """The row with a button and key for each judgement; after a judgement the next row is shown."""
    st.html(
        row_html(gap, run, both.corpus, both.policies, both.passage, both.register.since_words(gap.row.obligation_id))
    )
    if not access.gate().may(Act.REGISTER, both.corpus):
        return
    said, key = run.correction(gap), f"{_COMMENT}_{gap.row.obligation_id}"
    with st.container(horizontal=True, key="gaps_keys"):
        for number, word in enumerate((CONFIRMED, *LABELS), start=1):
            now = replace(said, said=word)
            st.button(
                "Confirm" if word == CONFIRMED else word.capitalize(),
                key=f"gaps_say_{number}",
                shortcut=str(number),
                type="primary" if word == CONFIRMED else "secondary",
                on_click=_say,
                args=(both, gap, now, said, following),
            )
    st.text_input(
        "Comment",
        said.comment,
        key=key,
        max_chars=LONGEST,
        placeholder="Enter keeps it",
        on_change=_comment,
        args=(both, gap, said, key),
    )


def _comment(both: _Both, gap: GapRow, said: Correction, key: str) -> None:
    comment = " ".join(without_controls(str(st.session_state[key])).split())
    _say(both, gap, replace(said, comment=comment), said, gap.row.obligation_id)


def _say(both: _Both, gap: GapRow, now: Correction, before: Correction, following: str) -> None:
    name = gap.row.obligation_id
    _take(both, {name: SheetRow(now, before)}, "", row=name)
    _open(following or name)


def _take(both: _Both, sheet: Mapping[str, SheetRow[Correction]], name: str, **about: object) -> None:
    said = f"{_SAID}_row"
    with error_kept(said), access.gate().doing(Act.REGISTER, both.corpus, policies=both.policies, **about):
        taken = both.folder.take(sheet, both.register, both.job)
        keep_notices(said, *taken_notices(taken.words(name, both.register.rows), name))

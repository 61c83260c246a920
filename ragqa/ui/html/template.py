"""HTML from the files in ``templates/``: every value is escaped when it is inserted, so that none becomes markup.

A file holds macros, which `Templates` calls by name. Line breaks and indents of a file are not part of the HTML.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from ragqa.corpus.citing import cited_note, cited_number, short_name, title_words
from ragqa.english.words import cut, quantity
from ragqa.library.register_search import rule_name
from ragqa.records.words import place, with_names

_FOLDER: Final = Path(__file__).with_name("templates")
_AS_PYTHON_WRITES: Final = (("&#34;", "&quot;"), ("&#39;", "&#x27;"))  # as `html.escape` does


def text_html(value: str) -> str:
    """The text, escaped, with its line breaks as ``<br>``."""
    return escape(value).replace("\n", "<br>")


def number_html(value: float | None, digits: int = 3) -> str:
    """The number with these decimals; a dash for None."""
    return "–" if value is None else f"{value:.{digits}f}"


def _source(name: str) -> str:
    return re.sub(r"\s*\n\s*", "", (_FOLDER / name).read_text(encoding="utf-8"))


ENVIRONMENT: Final = Environment(autoescape=True, undefined=StrictUndefined, loader=FunctionLoader(_source))
ENVIRONMENT.globals |= {
    "quantity": quantity,
    "short_name": short_name,
    "place": place,
    "with_names": with_names,
    "rule_name": rule_name,
}
ENVIRONMENT.filters |= {
    "text": lambda value: Markup(text_html(str(value))),  # noqa: S704 - escaped by `text_html`
    "number": number_html,
    "quoted": quote,
    "cut": cut,
    "cited": cited_number,
    "titled": title_words,
    "noted": cited_note,
    "spaced": lambda value: " ".join(value.split()),
}


def shared(function: Callable[..., str]) -> Callable[..., str]:
    """Decorator: makes a function that gives HTML available to templates, where ``badge_html`` is ``badge``."""
    ENVIRONMENT.globals[function.__name__.removesuffix("_html")] = lambda *values: Markup(function(*values))  # noqa: S704
    return function


@cache
def _module(name: str) -> Any:  # noqa: ANN401 - a template's macros are its attributes
    return ENVIRONMENT.get_template(name).module


class Templates:
    """The macros of a file: ``Templates("cards.html").sentence(score)``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, macro: str) -> Callable[..., str]:
        def made(*values: Any, **named: Any) -> str:  # noqa: ANN401 - what the macro takes
            text = str(getattr(_module(self._name), macro)(*values, **named))
            for found, written in _AS_PYTHON_WRITES:
                text = text.replace(found, written)
            return text

        return made

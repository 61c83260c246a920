"""Writes the formulas of Word documents (Office MathML) on one line: "(a + b)/c", "x^2"."""

from __future__ import annotations

import re
from typing import Any, Final

from ragqa.corpus.documents.docx_numbering import W

M: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
FORMULAS: Final = frozenset(f"{M}{name}" for name in ("oMath", "oMathPara"))
_DELETED: Final = frozenset(f"{W}{name}" for name in ("del", "moveFrom"))
_JOINTS: Final = {"num": "", "den": "/", "sub": "_", "sup": "^", "lim": "_"}  # before a part, by its name
_BASED: Final = frozenset(f"{M}{name}" for name in ("sSup", "sSub", "sSubSup", "rad"))


def formula(element: Any) -> str:  # noqa: ANN401 - an lxml element
    """The formula in this element on one line, without what a tracked change deletes."""
    if element.tag == f"{M}t":
        return element.text or ""
    if not isinstance(element.tag, str) or element.tag in _DELETED:
        return ""
    name, parts = element.tag.removeprefix(M), [said for child in element if (said := formula(child))]
    if name == "d":
        between = _sign(element, "sepChr", "|").join(parts)
        return f"{_sign(element, 'begChr', '(')}{between}{_sign(element, 'endChr', ')')}"
    said = "".join(parts)
    if name in _JOINTS:
        return f"{_JOINTS[name]}{_grouped(said)}" if said else ""
    if name == "rad":
        return f"√{said}"
    if name == "nary":
        return f"{_sign(element, 'chr', '∫')}{said}"
    return _grouped(said) if element.getparent().tag in _BASED else said


def _sign(element: Any, name: str, otherwise: str) -> str:  # noqa: ANN401
    """The sign that the element's properties state."""
    found = next(element.iterfind(f"{M}*/{M}{name}"), None)
    return otherwise if found is None else found.get(f"{M}val") or ""


def _grouped(text: str) -> str:
    """The text, in brackets if it is more than a number or a word."""
    return text if re.fullmatch(r"[\w.,%]*|\([^()]*\)", text) else f"({text})"

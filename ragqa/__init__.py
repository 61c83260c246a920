"""ragqa: answers to regulatory and encyclopedic questions that prove themselves, sentence by sentence.

Reading order: README, then `ragqa.pipeline`, then `ragqa.types`, then the stage you care about. Importing this package
loads neither torch nor streamlit; names below are resolved on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragqa.config import Config as Config
    from ragqa.errors import RagqaError as RagqaError
    from ragqa.indexing import build_index as build_index
    from ragqa.indexing import open_index as open_index
    from ragqa.pipeline import Pipeline as Pipeline
    from ragqa.pipeline import load_pipeline as load_pipeline
    from ragqa.types import Answer as Answer
    from ragqa.types import Breakdown as Breakdown
    from ragqa.types import Passage as Passage
    from ragqa.types import Question as Question
    from ragqa.types import RePASs as RePASs

__version__ = "0.1.0"

_HOMES = {
    "Answer": "ragqa.types",
    "Config": "ragqa.config",
    "Breakdown": "ragqa.types",
    "Passage": "ragqa.types",
    "Pipeline": "ragqa.pipeline",
    "Question": "ragqa.types",
    "RagqaError": "ragqa.errors",
    "RePASs": "ragqa.types",
    "build_index": "ragqa.indexing",
    "load_pipeline": "ragqa.pipeline",
    "open_index": "ragqa.indexing",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the attribute may be any public name
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    msg = f"module 'ragqa' has no attribute {name!r}"
    raise AttributeError(msg)

"""What the stages of building share: how far it is, and the tokens of passages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ragqa.analysers import Analyser
from ragqa.types import Passage


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """``done`` of ``total`` of this stage are done: passages, vectors, scores, files; a stage ends at its total.

    ``note`` says more of how far it is, where there is more to say: while the corpus is read, nobody knows its size.
    ``message`` is to be told once: what became of a build that was stopped.
    """

    stage: str  # corpus, BM25, vectors, the name of a further ranking, files
    done: int
    total: int
    note: str = ""
    message: str = ""


def tokens_of(passages: Iterable[Passage], analyser: Analyser) -> Iterator[list[str]]:
    """The tokens of each passage, one after another, as this analyser reads it."""
    from ragqa.retrieval.analysis import analysed_text, tokenise

    return (tokenise(analysed_text(passage, analyser), analyser) for passage in passages)

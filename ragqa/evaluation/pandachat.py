"""PandaChat-RAG with an index of ours: question by question, what was retrieved, whether it is right, how long it took.

The command line and the page consume the same generator, `run_pandachat`. Closing it stops the run; a run in the same
folder (`ragqa.evaluation.pandachat_folder`) goes on with the next question and never ranks one again.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from collections.abc import Generator as Stream
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ragqa.config import FusionConfig, RetrievalConfig
from ragqa.corpus import load_corpus
from ragqa.corpus.pandachat import DocumentQuestion, load_pandachat_rows
from ragqa.errors import ConfigError
from ragqa.evaluation.pandachat_results import PandachatRow
from ragqa.evaluation.pandachat_submission import is_right, submission_json
from ragqa.fusion import fuse
from ragqa.indexing import Index
from ragqa.protocols import Rescorer, Retriever
from ragqa.retrieval import rank
from ragqa.types import Question, Ranking, ScoredPassage

if TYPE_CHECKING:
    from ragqa.evaluation.pandachat_folder import PandachatFolder

MAX_CHUNK_TOKENS: Final = 128  # words here; the benchmark's splitter counts 2.6 tokens (cl100k_base) to one of these
N_SOURCES: Final = 5  # chunks kept of a question, as most published submissions have
_WARM_UP: Final = "ogrevanje"  # ranked once before the first question: loading lazily is no question's time

Ranker = Callable[[str], Ranking]


def ranker_of(retrievers: Sequence[Retriever], retrieval: RetrievalConfig, fusion: FusionConfig) -> Ranker:
    """From a question's text to the fused ranking of its chunks, as the pipeline makes it before filtering.

    A retriever of weight 0, whose ranking would only be shown, is not asked, unless another one rescores what it finds.
    """
    weighted = tuple(retriever for retriever in retrievers if fusion.weights.get(retriever.name, 0) > 0)
    asked = retrievers if any(isinstance(retriever, Rescorer) for retriever in weighted) else weighted
    return lambda question: fuse(rank(asked, question, retrieval.top_k), fusion)


def check_index(index: Index, data: Path) -> None:
    """Raises ConfigError unless this index is one of the data set's ``text_without_Q`` in chunks of 128 tokens at most.

    Raises CorpusError where ``data`` cannot be read.
    """
    manifest = index.manifest
    again = f"build one with `ragqa index build NAME --source {data}`, or name another with --index"
    if manifest.chunk_max_tokens > MAX_CHUNK_TOKENS:
        msg = (
            f"index {manifest.name!r} has chunks of up to {manifest.chunk_max_tokens} tokens; expected at most "
            f"{MAX_CHUNK_TOKENS}, the benchmark's rule; {again}"
        )
        raise ConfigError(msg)
    if (
        manifest.format != "pandachat"
        or manifest.corpus_sha256 != load_corpus(data, "pandachat", manifest.chunk_max_tokens).sha256
    ):
        msg = f"index {manifest.name!r} was made from {manifest.source!r}; expected one of the texts of {data}; {again}"
        raise ConfigError(msg)


@dataclass(frozen=True, slots=True)
class PandachatOutcome:
    """What was retrieved for one question. ``number`` is its place in the file, from 1; ``seconds`` include encoding.

    ``kept`` says that it was read back from an earlier run.
    """

    number: int
    question: Question
    document: str
    hits: tuple[ScoredPassage, ...]
    seconds: float
    kept: bool = False

    @property
    def sources(self) -> tuple[str, ...]:
        """The document of each chunk, best first, duplicates kept."""
        return tuple(hit.passage.document_id for hit in self.hits)

    @property
    def milliseconds(self) -> float:
        return 1000 * self.seconds

    def right_at(self, k: int) -> bool:
        """Whether one of the first ``k`` chunks lies in the question's document, as `is_right`."""
        return is_right(self.document, self.sources, k)


@dataclass(frozen=True, slots=True)
class PandachatResult:
    """The outcomes of the questions asked, in the file's order; ``n_all`` is how many the data set has."""

    outcomes: tuple[PandachatOutcome, ...]
    n_all: int

    @property
    def seconds(self) -> float:
        """The mean of a question, what the benchmark calls time per question."""
        return statistics.fmean(outcome.seconds for outcome in self.outcomes)

    @property
    def median_milliseconds(self) -> float:
        return statistics.median(outcome.milliseconds for outcome in self.outcomes)

    def wrong_at(self, k: int) -> tuple[PandachatOutcome, ...]:
        """The questions whose document is not among the first ``k`` sources."""
        return tuple(outcome for outcome in self.outcomes if not outcome.right_at(k))

    def row(self, system: str, k: int) -> PandachatRow:
        """The results' row at ``k`` under this system name."""
        n_asked = len(self.outcomes)
        return PandachatRow(system, k, self.seconds, n_asked - len(self.wrong_at(k)), n_asked)

    def submission(self, system: str, data: Path) -> dict[str, Any]:
        """The submission of this run as an object for JSON; of the first questions alone where only they were asked."""
        items = load_pandachat_rows(data)[: len(self.outcomes)]
        return submission_json(system, self.seconds, items, [outcome.sources for outcome in self.outcomes])


def run_pandachat(
    index: Index,
    ranker: Ranker,
    questions: Sequence[DocumentQuestion],
    *,
    limit: int | None = None,
    n_sources: int = N_SOURCES,
    folder: PandachatFolder | None = None,
) -> Stream[PandachatOutcome, None, PandachatResult]:
    """Yields each question's outcome in the file's order, returns the result; the first ``limit`` questions only.

    An outcome is in ``folder`` before it is yielded; those that were there are yielded first of all where they stand,
    without ranking. Close the generator to stop. Raises ConfigError where no question is asked, RecordError where the
    folder cannot be written.
    """
    asked = list(enumerate(questions, start=1))[:limit]
    if not asked:
        msg = f"expected at least one question to ask, found {len(questions)} and a limit of {limit}; change them"
        raise ConfigError(msg)
    warm = False
    outcomes = []
    for number, item in asked:
        outcome = folder.outcome(number, item, index) if folder is not None else None
        if outcome is None:
            if not warm:
                ranker(_WARM_UP)
                warm = True
            began = time.perf_counter()
            hits = ranker(item.question.text).hits[:n_sources]
            seconds = time.perf_counter() - began
            (document,) = item.gold_documents
            outcome = PandachatOutcome(number, item.question, document, hits, seconds)
            if folder is not None:
                folder.keep(outcome)
        outcomes.append(outcome)
        yield outcome
    return PandachatResult(tuple(outcomes), len(questions))

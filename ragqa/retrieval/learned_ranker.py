"""A learned order of the best fused passages: LambdaMART (Burges 2010, MSR-TR-2010-82) over `ranking_features`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ragqa.errors import ModelError
from ragqa.models import EMBEDDED, check_model, resolve_model, shown_name
from ragqa.protocols import Corpus, Reranker
from ragqa.retrieval.ranking_features import RANKINGS, feature_names, ranking_features
from ragqa.types import ModelInfo, ScoredPassage

KIND: Final = "ranker"
RANKER_FILE: Final = "ranker.txt"  # LightGBM's own text format


def column_names() -> tuple[str, ...]:
    """The features as LightGBM names them, which takes no blanks."""
    return tuple(name.replace(" ", "_") for name in feature_names())


def is_ranker(name: str) -> bool:
    """Whether this is the name or the folder of a learned order, not of a cross-encoder."""
    if name not in EMBEDDED and not Path(name).expanduser().is_dir():
        return False
    return (resolve_model(name, "reranker") / RANKER_FILE).is_file()


class LearnedRanker(Reranker):
    """Trees over what the retrievers found. Nothing changes after construction: share it between threads."""

    def __init__(self, model: str) -> None:
        """The ranker of this embedded name or in this folder, checked and loaded. Raises ModelError."""
        folder = resolve_model(model, "reranker")
        fingerprint = check_model(folder, KIND)
        import lightgbm

        try:
            self._booster = lightgbm.Booster(model_file=folder / RANKER_FILE)
        except (OSError, ValueError, TypeError, lightgbm.basic.LightGBMError) as error:
            msg = (
                f"The ranker in {folder} cannot be read ({type(error).__name__}: {str(error)[:200]}); expected "
                f"{RANKER_FILE} as `ragqa train ranker` writes it. Train it again, or leave the reranker out."
            )
            raise ModelError(msg) from error
        if tuple(self._booster.feature_name()) != column_names():
            msg = (
                f"The ranker in {folder} was trained on other features than this version of ragqa computes; train it "
                "again with `ragqa train ranker`, or leave the reranker out."
            )
            raise ModelError(msg)
        self._info = ModelInfo(shown_name(model, folder), fingerprint, f"fp64, LightGBM {lightgbm.__version__}")

    @property
    def info(self) -> ModelInfo:
        """``precision`` names the arithmetic and the library that did it."""
        return self._info

    def score_hits(self, question: str, hits: Sequence[ScoredPassage], depth: int, corpus: Corpus) -> list[float]:
        """A score per hit of the best ``depth``, in their order. Raises ModelError where a ranking is missing."""
        lacking = [name for name in RANKINGS if hits and name not in {part.retriever for part in hits[0].parts}]
        if lacking:
            msg = (
                f"The reranker {self._info.name} reads the rankings {', '.join(RANKINGS)}; this index has no "
                f"{' and no '.join(lacking)}. Build the index with it, or leave the reranker out."
            )
            raise ModelError(msg)
        features = ranking_features(question, hits, depth, corpus)
        return [float(score) for score in self._booster.predict(features, num_threads=1)] if len(features) else []

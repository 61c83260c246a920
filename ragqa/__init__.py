"""ragqa: answers to regulatory and encyclopedic questions that prove themselves, sentence by sentence.

Reading order: README, then `ragqa.pipeline`, then `ragqa.types`, then the stage you care about. Importing this package
loads neither torch nor streamlit: the names below are resolved on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ragqa.plugins import former_names

if TYPE_CHECKING:
    from ragqa.conversation import follow_up as follow_up
    from ragqa.conversation import rewrite as rewrite
    from ragqa.conversation.history import Turn as Turn
    from ragqa.errors import RagqaError as RagqaError
    from ragqa.evaluation.metric import AnswerResult as AnswerResult
    from ragqa.evaluation.metric import score as score
    from ragqa.evaluation.metric import score_all as score_all
    from ragqa.index import build_index as build_index
    from ragqa.index import open_index as open_index
    from ragqa.pipeline import Pipeline as Pipeline
    from ragqa.pipeline import load_pipeline as load_pipeline
    from ragqa.plugins.protocols import Encoder as Encoder
    from ragqa.plugins.protocols import Generator as Generator
    from ragqa.plugins.protocols import NliModel as NliModel
    from ragqa.plugins.protocols import Reranker as Reranker
    from ragqa.plugins.protocols import Retriever as Retriever
    from ragqa.plugins.protocols import SearchingGenerator as SearchingGenerator
    from ragqa.records.store import RecordStore as RecordStore
    from ragqa.settings.config import Config as Config
    from ragqa.settings.config import FilteringConfig as FilteringConfig
    from ragqa.settings.config import FusionConfig as FusionConfig
    from ragqa.settings.config import GenerationConfig as GenerationConfig
    from ragqa.settings.config import RerankingConfig as RerankingConfig
    from ragqa.types import Answer as Answer
    from ragqa.types import AnswerSentence as AnswerSentence
    from ragqa.types import FollowUp as FollowUp
    from ragqa.types import ModelInfo as ModelInfo
    from ragqa.types import Passage as Passage
    from ragqa.types import Question as Question
    from ragqa.types import Ranking as Ranking
    from ragqa.types import ScoredPassage as ScoredPassage
    from ragqa.types.events.generation import Token as Token
    from ragqa.types.events.generation import Working as Working
    from ragqa.types.events.pipeline import Answered as Answered
    from ragqa.types.events.pipeline import Event as Event
    from ragqa.types.events.pipeline import Fused as Fused
    from ragqa.types.events.pipeline import Recorded as Recorded
    from ragqa.types.events.pipeline import Reranked as Reranked
    from ragqa.types.events.pipeline import Retrieved as Retrieved
    from ragqa.types.events.pipeline import Selected as Selected
    from ragqa.types.events.pipeline import Stored as Stored
    from ragqa.types.events.scoring import ObligationScored as ObligationScored
    from ragqa.types.events.scoring import Scored as Scored
    from ragqa.types.events.scoring import SentenceScored as SentenceScored
    from ragqa.types.scores import Breakdown as Breakdown
    from ragqa.types.scores import RePASs as RePASs

_NAMES = {
    "settings.config": "Config FilteringConfig FusionConfig GenerationConfig RerankingConfig",
    "errors": "RagqaError",
    "evaluation.metric": "AnswerResult score score_all",
    "types.events.generation": "Token Working",
    "types.events.pipeline": "Answered Event Fused Recorded Reranked Retrieved Selected Stored",
    "types.events.scoring": "ObligationScored Scored SentenceScored",
    "infra.version": "__version__",
    "index": "build_index open_index",
    "pipeline": "Pipeline load_pipeline",
    "plugins.protocols": "Encoder Generator NliModel Reranker Retriever SearchingGenerator",
    "records.store": "RecordStore",
    "conversation": "follow_up rewrite",
    "conversation.history": "Turn",
    "types.scores": "Breakdown RePASs",
    "types": "Answer AnswerSentence FollowUp ModelInfo Passage Question Ranking ScoredPassage",
}
_HOMES = {name: f"ragqa.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = [*_HOMES]
former_names.install()


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the attribute may be any public name
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'ragqa' has no attribute {name!r}")

"""Loads settings, pipelines and retrievers for benchmarks, and builds missing indexes.

A process that keeps its pipelines, such as the page, shares them with a run: ``with sharing(pipelines): …``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ragqa import loading
from ragqa.corpus.files import read_utf8
from ragqa.errors import ConfigError, CorpusError, IndexNotFoundError
from ragqa.evaluation.benchmark import Settings
from ragqa.generation.prompts import load_prompt
from ragqa.index import Index, build_events, index_info, open_index
from ragqa.infra.files import sha256_of
from ragqa.infra.journal import digest
from ragqa.pipeline import Pipeline, load_pipeline
from ragqa.plugins.protocols import Retriever
from ragqa.retrieval import retrievers_for
from ragqa.retrieval.ranking import fitting_fusion
from ragqa.settings.config import Config, FusionConfig, IndexingConfig, without_default_reranker
from ragqa.settings.environment import prompt_folder
from ragqa.settings.paths import Paths
from ragqa.settings.preset_files import find_preset
from ragqa.settings.presets import with_preset

Pipelines = Callable[[Config, Paths], Pipeline]

_shared: ContextVar[Pipelines | None] = ContextVar("ragqa_shared_pipelines", default=None)


@contextmanager
def sharing(pipelines: Pipelines) -> Iterator[None]:
    """Within this context, in this thread only, pipelines come from ``pipelines``, which may reuse existing ones."""
    token = _shared.set(pipelines)
    try:
        yield
    finally:
        _shared.reset(token)


def config_of(settings: Settings, paths: Paths, *, reranks: bool = True) -> Config:
    """The environment's settings, replaced by those of ``preset``, ``index`` and ``generator`` where given.

    With ``reranks`` False, the benchmark measures rankings before reranking and writes no answers. Raises ConfigError
    for an unknown preset or generator, or if the preset reranks all the same.
    """
    config = Config.from_env() if reranks else without_default_reranker(Config.from_env())
    if settings.get("preset"):
        config = replace(with_preset(config, find_preset(settings["preset"], paths.presets)), index=config.index)
    if config.reranking.model and not reranks:
        name = settings.get("preset") or "the environment"
        raise ConfigError(f"{name!r} reranks, and this benchmark measures rankings before that; choose another")
    generator = settings.get("generator") if reranks else "none"
    if generator:
        config = replace(config, generation=replace(config.generation, generator=generator))
    return replace(config, index=settings.get("index") or config.index)


def pipeline_for(config: Config, paths: Paths) -> Pipeline:
    """A pipeline that keeps no records, shared if possible. Raises as `ragqa.pipeline.load_pipeline`."""
    shared = _shared.get()
    if shared is not None:
        return replace(shared(config, paths), records=None)
    return load_pipeline(config, paths, recording=False)


def retrievers_of(
    config: Config, paths: Paths, *, every: bool = False
) -> tuple[Index, tuple[Retriever, ...], FusionConfig]:
    """The index, its retrievers and the fusion with their names: from a shared pipeline, else loaded without RePASs.

    With ``every``, other packages' retrievers that need no files are included even without a weight. Raises
    ConfigError, IndexingError, ModelError.
    """
    if _shared.get() is not None:
        pipeline = pipeline_for(config, paths)
        found = tuple(pipeline.retrievers)
        names = {one.name for one in found}
        added = loading.added_retrievers(pipeline.index) if every else ()
        return pipeline.index, (*found, *(one for one in added if one.name not in names)), pipeline.config.fusion
    index = open_index(config.index, paths.indexes)
    manifest = index.manifest
    fusion = fitting_fusion(config.fusion, manifest.retrievers, manifest.encoder, manifest.name)
    models = loading.load_further([ranking.option for ranking in manifest.rankings], paths)
    encoder = loading.load_encoder(manifest.encoder, paths=paths)
    of_index = retrievers_for(index, encoder, config.retrieval, models)
    return index, (*of_index, *loading.added_retrievers(index, None if every else fusion.weights)), fusion


def stamp_of(
    questions: Path,
    index: Index,
    sha256: str = "",
    **settings: Any,  # noqa: ANN401 - JSON values
) -> dict[str, Any]:
    """The `Task.stamp` of a run over these questions and this index, both by their content.

    ``sha256`` is that of the questions; by default the file is read for it. Raises CorpusError if it cannot be read.
    """
    manifest = index.manifest
    return {
        "input": questions.name,
        "input_sha256": sha256 or _sha256(questions),
        "index_sha256": digest({"files": [entry.sha256 for entry in manifest.files]}),
        "encoder": manifest.encoder,
        "encoder_fingerprint": manifest.encoder_fingerprint,
        "settings": settings,
    }


def _sha256(questions: Path) -> str:
    """The sha256 of the file's text, or of a packed file's bytes. Raises CorpusError if it cannot be read."""
    if not questions.name.lower().endswith(".gz"):
        return hashlib.sha256(read_utf8(questions, questions.name).encode()).hexdigest()
    try:
        return sha256_of(questions)
    except OSError as error:
        msg = f"{questions.name} cannot be read: {error.strerror or error}; check its permissions and try again"
        raise CorpusError(msg) from error


def answer_stamp_of(questions: Path, pipeline: Pipeline) -> dict[str, Any]:
    """As `stamp_of`, with everything that decides the pipeline's answers: generator and settings, models, prompts.

    Time-outs, retries and parallel calls are left out, so that a run may continue with other values of them. Raises
    CorpusError if the file cannot be read.
    """
    config = pipeline.config
    plain = asdict(replace(config, generation=config.generation.without_credentials()))
    later = [name for name in ("local_model", "quote_anyway") if not plain["generation"][name]]  # unknown before 0.3.0
    for name in ("timeout_seconds", "max_retries", "parallel_calls", *later):
        del plain["generation"][name]
    folder = prompt_folder()
    own = {file.stem: load_prompt(file.stem, folder).version.version for file in folder.glob("*.txt")} if folder else {}
    return stamp_of(questions, pipeline.index) | {
        "settings": plain,
        "models": {role: asdict(info) for role, info in pipeline.infos.items()},
        "prompts": str(folder or ""),
        **({"prompt_texts": own} if own else {}),
    }


def built(name: str, source: Path, paths: Paths, format: str) -> Iterator[str]:
    """Builds the index of this name with the default settings if it is missing; yields progress in words."""
    try:
        index_info(name, paths.indexes)
    except IndexNotFoundError:
        yield f"Building the index {name}: loading the encoder"
        config = IndexingConfig()
        encoder = loading.load_encoder(config.encoder, paths=paths)
        for step in build_events(name, source, indexes=paths.indexes, config=config, encoder=encoder, format=format):
            yield f"Building the index {name}: {step.stage}, {step.done:,} of {step.total:,}"

"""What a benchmark is and what a person asked of one. Pure: no streamlit, nothing loaded."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, Literal

from ragqa.config import Config
from ragqa.errors import ConfigError, CorpusError
from ragqa.evaluation.question_files import FileKind
from ragqa.paths import Paths
from ragqa.preset_files import find_preset

BenchmarkName = Literal["retrieval", "answers", "pandachat", "fanoutqa"]
RERANKING: Final[frozenset[BenchmarkName]] = frozenset({"answers", "fanoutqa"})  # the others measure what comes before


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One choice of the page. ``needs`` says which file is asked for.

    ``right`` says when a question counts as right, ``verdicts`` what one that does and one that does not are called.
    """

    name: BenchmarkName
    title: str
    description: str
    file_kind: FileKind
    needs: str
    right: str
    verdicts: tuple[str, str] = ("right", "wrong")


BENCHMARKS: Final[dict[str, Benchmark]] = {
    one.name: one
    for one in (
        Benchmark(
            "retrieval",
            "ObliQA retrieval",
            "Ranks passages for questions whose answering passages are known: Recall, MAP, nDCG and MRR of the fused "
            "ranking and of each ranking alone. Any file with gold passages will do.",
            "gold",
            "a JSON list in ObliQA's schema (QuestionID, Question, Passages), JSON lines of {question, "
            "gold_passage_ids}, or PandaChat's data set",
            "every gold passage is among the first ten",
        ),
        Benchmark(
            "answers",
            "Answers and RePASs (RIRAG)",
            "Answers each question through the pipeline of the page Ask, scores every answer with RePASs, and writes "
            "the shared task's file.",
            "asked",
            "a JSON list of {QuestionID, Question}; gold passages may stand beside",
            "every sentence is supported by a passage, none is contradicted, and every obligation is covered",
            ("no problem", "with problems"),
        ),
        Benchmark(
            "pandachat",
            "PandaChat-RAG-sl",
            "206 Slovenian questions: is the document that answers a question among the first chunks found?",
            "pandachat",
            "the data set's JSON file, a list of {query, answer, document, text, text_without_Q}",
            "the question's document is among the first two sources",
        ),
        Benchmark(
            "fanoutqa",
            "FanOutQA",
            "Questions that many Wikipedia pages answer together. Needs a language model, or a file of answers to "
            "check and score.",
            "fanoutqa",
            "fanout-final-dev.json or fanout-final-test.json",
            "every string of the reference stands in the answer",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that decides a run, as plain values; paths as texts. What a benchmark does not know stays empty.

    ``limit`` None asks every question. ``generations`` is a file of FanOutQA answers to score in place of asking.
    """

    benchmark: BenchmarkName
    questions: str
    index: str = ""
    preset: str = ""
    limit: int | None = None
    generator: str = ""
    setting: str = ""
    generations: str = ""
    pages: str = ""
    context: int = 0

    @property
    def words(self) -> str:
        """The request on one line, for headings and lists."""
        first = "" if self.limit is None else f"first {self.limit:,} questions"
        index = f"index {self.index}" if self.index else ""
        given = f"answers of {Path(self.generations).name}" if self.generations else ""
        parts = (Path(self.questions).name, index, self.preset, self.generator, self.setting, given, first)
        return ", ".join(part for part in parts if part)


def run_id_of(request: Request) -> str:
    """``"pandachat-3fa94c01b2"``: the same for the same questions and settings, however many are asked.

    Files count by their content. Raises CorpusError where one cannot be read.
    """
    plain = asdict(replace(request, limit=None))
    for name in ("questions", "generations"):
        if plain[name]:
            plain[name] = _sha256(Path(plain[name]))
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
    return f"{request.benchmark}-{digest[:10]}"


def config_of(request: Request, paths: Paths) -> Config:
    """The environment's settings with the request's in their place; a generator only where answers are wanted.

    Raises ConfigError where there is no such preset or generator, or the preset reranks where only rankings and their
    fusion are measured.
    """
    config = Config.from_env()
    if request.preset:
        preset = find_preset(request.preset, paths.presets)
        if preset.reranking.model and request.benchmark not in RERANKING:
            msg = (
                f"the preset {preset.name!r} reranks, and this benchmark measures rankings before that; choose "
                "another, or measure it with `ragqa eval retrieval --preset`"
            )
            raise ConfigError(msg)
        config = replace(
            config,
            retrieval=preset.retrieval,
            fusion=preset.fusion,
            reranking=preset.reranking,
            filtering=preset.filtering,
        )
    generation = replace(config.generation, generator=request.generator or "none")
    return replace(config, index=request.index, generation=generation)


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        msg = f"{path} cannot be read ({error.strerror or error}); choose another file"
        raise CorpusError(msg) from error

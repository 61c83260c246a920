"""What is measured of one answer, and over many. Pure: an answer and its scores in, numbers out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from ragqa.evaluation.readability import count_words, lix
from ragqa.evaluation.reference_files import figures_of
from ragqa.events.scoring import Scored
from ragqa.repass.attribution import copied_share
from ragqa.types import Answer, CitationStatus, Passage, Usage, Verdict

Values = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Measure:
    """A column: its key in `Values`, what it is called, and its decimals where shown."""

    key: str
    heading: str
    decimals: int = 3


MEASURES: tuple[Measure, ...] = (
    Measure("composite", "RePASs"),
    Measure("entailment", "E"),
    Measure("contradiction", "C"),
    Measure("obligation_coverage", "OC"),
    Measure("script_composite", "RePASs, script mode"),
    Measure("script_entailment", "E, script mode"),
    Measure("script_contradiction", "C, script mode"),
    Measure("script_obligation_coverage", "OC, script mode"),
    Measure("copied", "copied"),  # share of words in verbatim runs, `ragqa.repass.attribution`
    Measure("lix", "LIX", 1),
    Measure("words", "words", 0),
    Measure("sentences", "sentences", 1),
    Measure("supported", "supported"),  # share of sentences with E at the verdict threshold or above
    Measure("citations_kept", "citations kept"),  # share of sentences whose citations stand as written
    Measure("seconds", "seconds", 2),
    Measure("prompt_tokens", "tokens in", 0),
    Measure("completion_tokens", "tokens out", 0),
)


def measure(
    answer: Answer, passages: Sequence[Passage], scored: Scored, seconds: Mapping[str, float], usage: Usage
) -> dict[str, float | None]:
    """The value of every measure; None where it does not exist (readability and shares of an answer without sentences).

    ``seconds`` are those of each stage, ``usage`` what the server counted.
    """
    sentences = [sentence.text for sentence in answer.sentences]
    checks = scored.paper.citations
    supported = [score.verdict in (Verdict.SUPPORTED, Verdict.DISPUTED) for score in scored.paper.sentences]
    script = {f"script_{name}": value for name, value in asdict(figures_of(scored.script)).items()}
    return {
        **asdict(figures_of(scored.paper)),
        **script,
        "copied": copied_share(sentences, [passage.text for passage in passages]).share,
        "lix": lix(sentences),
        "words": float(count_words(answer.text)),
        "sentences": float(len(sentences)),
        "supported": sum(supported) / len(supported) if supported else None,
        "citations_kept": sum(c.status is CitationStatus.CONFIRMED for c in checks) / len(checks) if checks else None,
        "seconds": sum(seconds.values()),
        "prompt_tokens": float(usage.prompt_tokens),
        "completion_tokens": float(usage.completion_tokens),
    }


def sentence_rows(scored: Scored) -> list[dict[str, Any]]:
    """For each answer sentence, in mode ``paper``: its text, verdict, E, C, and what became of its citations."""
    return [
        {
            "text": score.sentence.text,
            "verdict": str(score.verdict),
            "entailment": score.entailment,
            "contradiction": score.contradiction,
            "citations": asdict(check),
        }
        for score, check in zip(scored.paper.sentences, scored.paper.citations, strict=True)
    ]


def means(rows: Iterable[Values]) -> dict[str, float | None]:
    """The mean of every measure over the answers that have it; None where none has."""
    all_rows = list(rows)
    found = {m.key: [value for row in all_rows if (value := row.get(m.key)) is not None] for m in MEASURES}
    return {key: fmean(values) if values else None for key, values in found.items()}

"""The measures of one answer, and their means over many. Pure: an answer and its scores in, numbers out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from ragqa.evaluation.answer_file import figures_of
from ragqa.evaluation.report import Column
from ragqa.scoring.repass.attribution import copied_share
from ragqa.types import Answer, Passage, Usage
from ragqa.types.events.pipeline import FIRST_WORDS
from ragqa.types.events.scoring import Scored
from ragqa.types.scores import CitationStatus, Verdict

Values = Mapping[str, float | None]
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")

MEASURES: tuple[Column, ...] = (
    Column("composite", "RePASs"),
    Column("entailment", "E"),
    Column("contradiction", "C"),
    Column("obligation_coverage", "OC"),
    Column("script_composite", "RePASs, script mode"),
    Column("script_entailment", "E, script mode"),
    Column("script_contradiction", "C, script mode"),
    Column("script_obligation_coverage", "OC, script mode"),
    Column("relevance", "relevance"),  # whether it answers the question, `ragqa.generation.relevance`
    Column("copied", "copied"),  # share of words in verbatim runs, `ragqa.scoring.repass.attribution`
    Column("lix", "LIX", 1),
    Column("words", "words", 0),
    Column("sentences", "sentences", 1),
    Column("supported", "supported"),  # share of sentences with E at the verdict threshold or above
    Column("citations_kept", "citations kept"),  # share of sentences whose written citations are confirmed
    Column("seconds", "seconds", 2),
    Column("prompt_tokens", "tokens in", 0),
    Column("completion_tokens", "tokens out", 0),
)


def measure(
    answer: Answer, passages: Sequence[Passage], scored: Scored, seconds: Mapping[str, float], usage: Usage
) -> dict[str, float | None]:
    """The value of every measure; None if it is undefined (readability and shares without sentences).

    ``seconds`` are those of each stage, ``usage`` the server's token counts.
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
        "words": float(len(answer.text.split())),
        "sentences": float(len(sentences)),
        "supported": sum(supported) / len(supported) if supported else None,
        "citations_kept": sum(c.status is CitationStatus.CONFIRMED for c in checks) / len(checks) if checks else None,
        "seconds": sum(spent for stage, spent in seconds.items() if stage != FIRST_WORDS),
        "prompt_tokens": float(usage.prompt_tokens),
        "completion_tokens": float(usage.completion_tokens),
    }


def lix(sentences: Sequence[str]) -> float | None:
    """LIX of these sentences: below 30 a child's book, 40 to 50 a newspaper, above 60 law; None without words.

    ``words / sentences + 100 * long words / words``, where long means seven letters or more (Björnsson 1968). Words
    consist of letters, so rule numbers and amounts do not count. LIX was chosen because it only counts letters and
    words. Flesch and similar measures count syllables, which the package estimates by rules that give "the" none, and
    they are for English only.
    """
    lines = [" ".join(words) for sentence in sentences if (words := _WORD.findall(sentence))]
    if not lines:
        return None
    import readability

    return float(readability.getmeasures(lines, lang="en")["readability grades"]["LIX"])


def sentence_rows(scored: Scored) -> list[dict[str, Any]]:
    """For each answer sentence, in mode ``paper``: its text, verdict, E, C, and its citation check."""
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
    """The mean of every measure over the answers that have it; None if none has."""
    all_rows = list(rows)
    found = {m.key: [value for row in all_rows if (value := row.get(m.key)) is not None] for m in MEASURES}
    return {key: fmean(values) if values else None for key, values in found.items()}

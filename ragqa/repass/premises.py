"""The source sentences of the kept passages, in both modes, each with the place it came from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from ragqa.sentences import split_sentences
from ragqa.types import Passage, Premise, ScoringMode


def source_premises(passages: Sequence[Passage], mode: ScoringMode, splitter: str = "nupunkt") -> tuple[Premise, ...]:
    """The sentences of these passages in reading order; none where all passages are blank.

    Mode ``paper`` splits each passage alone. Mode ``script`` joins the passages with one space and splits the whole, as
    RegNLP/RePASs ``scripts/evaluate_model.py`` does, so a passage without a full stop (a heading) runs into the next.
    """
    return (_split_alone if mode is ScoringMode.PAPER else _split_joined)(passages, splitter)


def _split_alone(passages: Sequence[Passage], splitter: str) -> tuple[Premise, ...]:
    return tuple(
        Premise(span.text, passage.passage_id, number, span.start, span.end)
        for number, passage in enumerate(passages)
        for span in split_sentences(passage.text, splitter)
    )


def _split_joined(passages: Sequence[Passage], splitter: str) -> tuple[Premise, ...]:
    """Sentences of the joined text, each placed in the passage where it begins.

    ``text`` is the whole sentence, as the model reads it; the offsets are clipped to that passage, so they select only
    the part of a running-on sentence that stands there.
    """
    starts = [0, *accumulate(len(passage.text) + 1 for passage in passages)]
    premises = []
    for span in split_sentences(" ".join(passage.text for passage in passages), splitter):
        number = bisect_right(starts, span.start) - 1
        text, start = passages[number].text, span.start - starts[number]
        end = start + len(text[start : span.end - starts[number]].rstrip())
        premises.append(Premise(span.text, passages[number].passage_id, number, start, end))
    return tuple(premises)

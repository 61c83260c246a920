"""Where the training pairs come from: labelled sets, sentences of documents, written answers with their sources."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ragqa.errors import CorpusError
from ragqa.sentences import split_sentences
from ragqa.training.nli_data import SET_SHARES, LabelledPair, hold_out, read_pairs, weighed
from ragqa.training.nli_made_pairs import made_pairs, quoting_pairs

_MARKS = re.compile(r"\s*(?:and )?\[#[^\]]*\]")  # citation marks such as [#SRC:…]
LONGEST_TEXT = 6_000  # characters of a passage that are split: tables and annexes beyond give no sentences


@dataclass(frozen=True, slots=True)
class NliSources:
    """Files to train on; only ``pairs`` must be given."""

    pairs: tuple[Path, ...]  # JSON lines of {premise, hypothesis, label, set}
    documents: tuple[Path, ...] = ()  # folders or files of passages: ObliQA documents, or JSON lines with a text
    answers: Path | None = None  # JSON list of {Answer, Passages}
    n_made: int = 40_000  # pairs made from the documents, shared equally among them
    n_quoting: int = 3_000  # at most, from the answers
    n_held_out: int = 1_500
    limit: int | None = None  # train on a random choice of so many of all these pairs
    seed: int = 1


def gather(sources: NliSources) -> tuple[list[LabelledPair], list[LabelledPair]]:
    """(pairs to train on, each as often as its set's share; pairs held out). Raises CorpusError."""
    read = [pair for path in sources.pairs for pair in read_pairs(path)]
    rest, held_out = hold_out(
        [pair for pair in read if pair.source.startswith("mnli")], sources.n_held_out, sources.seed
    )
    kept_out = {pair.premise for pair in held_out}
    others = [pair for pair in read if not pair.source.startswith("mnli") and pair.premise not in kept_out]
    train = weighed([*rest, *others], SET_SHARES, sources.seed)
    for path in sources.documents:
        train += made_pairs(_documents(path), sources.n_made // len(sources.documents), sources.seed)
    if sources.answers:
        train += quoting_pairs(_answers(sources.answers), sources.n_quoting, sources.seed)
    if sources.limit is not None and sources.limit < len(train):
        train = random.Random(sources.seed).sample(train, sources.limit)
    return train, held_out


def _documents(path: Path) -> list[list[str]]:
    """Sentences per document; a file of single articles gives groups of a hundred, so that they can be told apart."""
    if path.is_dir():
        files = sorted(path.glob("*.json"))
        return [[s for row in _rows(file) for s in _sentences(str(row.get("Passage", "")))] for file in files]
    sentences = [s for row in _rows(path) for s in _sentences(str(row.get("text", "")))]
    return [sentences[start : start + 100] for start in range(0, len(sentences), 100)]


def _answers(path: Path) -> list[tuple[Sequence[str], Sequence[str]]]:
    found: list[tuple[Sequence[str], Sequence[str]]] = []
    for row in _rows(path):
        passages = row.get("Passages")
        texts = [str(passage.get("Passage", "")) for passage in passages] if isinstance(passages, list) else []
        answer = _MARKS.sub("", str(row.get("Answer", "")))
        found.append((_sentences(answer), [sentence for text in texts for sentence in _sentences(text)]))
    return found


def _sentences(text: str) -> list[str]:
    return [span.text for span in split_sentences(text[:LONGEST_TEXT])]


def _rows(path: Path) -> list[dict[str, object]]:
    """The objects of a JSON list or of JSON lines."""
    try:
        text = path.read_text(encoding="utf-8")
        rows = json.loads(text) if text.lstrip().startswith("[") else [json.loads(x) for x in text.splitlines() if x]
    except (OSError, ValueError) as error:
        msg = f"cannot read {path}: {error}; expected a JSON list of objects, or one object per line"
        raise CorpusError(msg) from error
    return [row for row in rows if isinstance(row, dict)]

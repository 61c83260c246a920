"""Our own claims and questions about further passages of `RAGQA_DATA`, in the form of those in its `claims`.

The passages belong to others, so `data/written_claims.jsonl.gz` only names them by id and digest, and they are read
from `RAGQA_DATA`. The same holds for the sentences in `data/judged_sentences.jsonl.gz`, the nearest of a whole corpus,
with labels of how far they answer a question. Rules and policies in `data/written_gaps.jsonl.gz` are invented.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragqa.corpus.formats import load_corpus
from ragqa.corpus.jsonl import read_json_lines
from ragqa.corpus.obliqa import load_obliqa
from ragqa.corpus.questions import GoldQuestion
from ragqa.english.sentences import split_sentences
from ragqa.generation.direct.weighing import heading_above
from ragqa.lab.claims import Claim, ClaimedPassage, ClaimQuestion, Gap, fold_of
from ragqa.lab.labelled import DATA, rows_of
from ragqa.types import Passage, Question

WRITTEN = DATA / "written_claims.jsonl.gz"
JUDGED = DATA / "judged_sentences.jsonl.gz"
GAPS = DATA / "written_gaps.jsonl.gz"
LAW = DATA / "law_questions.jsonl.gz"
LONGEST_TEXT = 6_000  # characters of a passage that are split; tables and annexes beyond give no sentences
TEST_WRITERS = ("w42",)  # whose passages measure
TEST_GAPS = ("own:d:", "own:o:")  # ids of the rules that measure begin so
HOTPOT = "wikipedia/hotpotqa_a.jsonl"


@dataclass(frozen=True, slots=True)
class _Row:
    """The claims and questions about a passage, with its id and digest."""

    id: str
    corpus: str
    sha256: str
    writer: str
    claims: tuple[Claim, ...]
    questions: tuple[ClaimQuestion, ...]


@dataclass(frozen=True, slots=True)
class _JudgedRow:
    """A question and (passage, number of the sentence, its digest, label: 0 no answer, 1 a part, 2 the answer)."""

    question: str
    is_test: bool
    sentences: tuple[tuple[str, int, str, int], ...]


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """Our own question with sentences of a corpus: (sentence, its headings, how far it answers).

    "How far" is 0, .5 (a part of the answer) or 1.
    """

    question: str
    sentences: tuple[tuple[str, str, float], ...]


@dataclass(frozen=True, slots=True)
class _LawText:
    """A text of law: its name, its sentences below their headings, and questions about it.

    A question is (its text, positions of sentences, which of these answer).
    """

    id: str
    sentences: tuple[str, ...]
    questions: tuple[tuple[str, tuple[int, ...], tuple[float, ...]], ...]


@dataclass(frozen=True, slots=True)
class WrittenPassage:
    """A passage with six claims and four questions of our own, and the headings above it."""

    claimed: ClaimedPassage
    heading: str


def written_passages(data: Path, fold: int | None = None, *, is_test: bool = False) -> tuple[WrittenPassage, ...]:
    """The passages whose text is still in ``data`` (RAGQA_DATA), without those of the held-out fold, in file order.

    With ``is_test`` those that measure, which must not be trained on, else the others.

    A passage that is now split differently is left out, because the numbers of its sentences have changed. Raises
    CorpusError.
    """
    rows = [row for row in rows_of(WRITTEN, _Row) if (row.writer in TEST_WRITERS) is is_test]
    known = {source: dict(_texts(data, source)) for source in {_source_of(row.id) for row in rows}}
    found = []
    for row in rows:
        source = _source_of(row.id)
        heading, title, text = known[source].get(row.id, ("", "", ""))
        sentences = tuple(span.text for span in split_sentences(text))
        is_held_out = source == "adgm" and fold_of(row.id) == fold  # other sources share no document with claims
        if digest_of(sentences) == row.sha256 and not is_held_out:
            claimed = ClaimedPassage(row.id, row.corpus, sentences, row.writer, row.claims, row.questions, title)
            found.append(WrittenPassage(claimed, heading))
    return tuple(found)


def written_gold(data: Path, passages: Iterable[Passage]) -> list[GoldQuestion]:
    """Our own answered questions about these passages, found by their text, in file order. Raises CorpusError."""
    names: dict[str, set[str]] = {}
    for passage in passages:
        names.setdefault("".join(passage.text.split()), set()).add(passage.passage_id)
    return [
        GoldQuestion(Question(asked.text), frozenset(gold))
        for one in written_passages(data)
        if (gold := names.get("".join("".join(one.claimed.sentences).split())))
        for asked in one.claimed.questions
        if asked.answerable
    ]


def corpus_texts(data: Path, fold: int | None = None) -> tuple[tuple[str, ...], ...]:
    """The sentences of every passage of ObliQA and HotpotQA in ``data``, without those of the held-out fold."""
    return tuple(
        tuple(" ".join(span.text.split()) for span in split_sentences(text[:LONGEST_TEXT]))
        for source in ("adgm", "hotpot")
        for place, (_, _, text) in _texts(data, source)
        if not (source == "adgm" and fold_of(place) == fold)
    )


def judged_questions(data: Path, fold: int | None = None, *, is_test: bool = False) -> tuple[JudgedQuestion, ...]:
    """The questions for training, or for tests, with the sentences still in ``data`` (RAGQA_DATA), in file order.

    Sentences of the held-out fold are left out. Raises CorpusError.
    """
    rows = [row for row in rows_of(JUDGED, _JudgedRow) if row.is_test == is_test]
    sources = {_source_of(passage) for row in rows for passage, *_ in row.sentences}
    texts = {source: dict(_texts(data, source)) for source in sources}
    split: dict[str, tuple[str, list[str]]] = {}
    found = []
    for row in rows:
        sentences = []
        for passage, number, sha256, answers in row.sentences:
            source = _source_of(passage)
            if passage not in split:
                heading, _, text = texts[source].get(passage, ("", "", ""))
                split[passage] = heading, [" ".join(span.text.split()) for span in split_sentences(text)]
            heading, known = split[passage]
            is_held_out = source == "adgm" and fold_of(passage) == fold
            if number < len(known) and digest_of([known[number]]) == sha256 and not is_held_out:
                sentences.append((known[number], heading, answers / 2))
        if sentences:
            found.append(JudgedQuestion(row.question, tuple(sentences)))
    return tuple(found)


def law_questions() -> tuple[JudgedQuestion, ...]:
    """Our own questions about texts of law, each with some of its nearest sentences; these stand below their headings.

    Raises CorpusError.
    """
    return tuple(
        JudgedQuestion(question, tuple((law.sentences[n], "", label) for n, label in zip(places, labels, strict=True)))
        for law in rows_of(LAW, _LawText)
        for question, places, labels in law.questions
    )


def _source_of(passage_id: str) -> str:
    return passage_id.partition(":")[0]


def written_gaps(*, is_test: bool = False) -> tuple[Gap, ...]:
    """Invented rules split into parts, each with four passages of policies.

    With ``is_test`` those that measure, which must not be trained on, else the others.
    """
    return tuple(gap for gap in rows_of(GAPS, Gap) if gap.id.startswith(TEST_GAPS) is is_test)


def digest_of(sentences: Sequence[str]) -> str:
    """Identifies a passage by its sentences: sixteen digits of their sha256."""
    return hashlib.sha256("\n".join(sentences).encode()).hexdigest()[:16]


def _texts(data: Path, source: str) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """(id, (headings, title of an article, text)) of each passage of a source."""
    if source == "hotpot":
        for item in read_json_lines(data / HOTPOT, HOTPOT):
            title = str(item.values["title"])
            yield f"hotpot:{item.values['id']}", (title, title, str(item.values["text"]))
        return
    folder = data / "documents" / source
    passages = load_obliqa(data / "obliqa/documents") if source == "adgm" else load_corpus(folder, "documents").passages
    for one in passages:
        yield f"{source}:{one.passage_id}", (heading_above("", one.section), "", one.text)

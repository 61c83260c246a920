"""PandaChat-RAG's submission files: written, checked against the benchmark's schema, evaluated at any k.

::

    {"eval_scenario": "aqa-sl", "system": NAME, "time_per_question": SECONDS,
     "df": [{every column of the data set's item, "sources": [DOCUMENT, ...]}, ...]}

``sources`` holds one entry for each retrieved chunk, best first: the chunk's document. A document may occur several
times. As in `TajaKuzman/pandachat-rag-benchmark, evaluate.py`, a question is right at k if its document is among the
first k entries, duplicates counted, even if there are fewer than k; a system's figure is the number of right questions.
"""

from __future__ import annotations

import json
import math
from ast import literal_eval
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ragqa.corpus.files import JsonItem, describe, read_json
from ragqa.corpus.pandachat import DocumentQuestion
from ragqa.errors import ConfigError, CorpusError
from ragqa.infra.files import write_whole

SCENARIO: Final = "aqa-sl"  # attributed question answering, Slovenian: the benchmark's one scenario so far
N_QUESTIONS: Final = 206
RESULT_KEY: Final = ("eval_scenario", "system", "evaluated-top-k")  # identifies a row of ``results.json``; its figures:
SECONDS_EACH, N_RIGHT, PERCENT = "time_per_question (s)", "correct_retrieval_count", "correct_retrieval_per"
ROWS, SOURCES, SECONDS = "df", "sources", "time_per_question"
TEXTS: Final = ("answer", "text", "text_without_Q")
MARK: Final = "multi_questions_doc"  # "x" or nothing: NaN in the data set, null in submissions
MAX_LITERAL_CHARS: Final = 100_000  # of sources written as a string; five sources take 120
_AGAIN = "correct the file and try again"


@dataclass(frozen=True, slots=True)
class PandachatRow:
    """How many of ``n_questions`` a system got right with its first ``top_k`` sources.

    ``seconds`` is the mean of a question; None if the submission does not say.
    """

    system: str
    top_k: int
    seconds: float | None
    n_right: int
    n_questions: int = N_QUESTIONS

    @property
    def percent(self) -> float:
        """The right ones among all, in [0, 100]; 0 if there is no question."""
        return self.n_right / self.n_questions * 100 if self.n_questions else 0.0

    def as_json(self) -> dict[str, Any]:
        """The row with the names of the benchmark's ``results.json``."""
        return {
            "eval_scenario": SCENARIO,
            "system": self.system,
            "evaluated-top-k": self.top_k,
            SECONDS_EACH: self.seconds,
            N_RIGHT: self.n_right,
            PERCENT: self.percent,
        }


@dataclass(frozen=True, slots=True)
class Submission:
    """A checked submission: for each row its question, its document and the documents of its chunks, best first.

    ``seconds`` is the mean of a question, None if the file has null or NaN. ``payload`` is the file's object as it was
    read.
    """

    system: str
    seconds: float | None
    rows: tuple[tuple[str, str, tuple[str, ...]], ...]
    payload: Mapping[str, Any]


def is_right(document: str, sources: Sequence[str], k: int) -> bool:
    """Whether ``document`` is among the first ``k`` sources, duplicates counted. Raises ConfigError for k below 1."""
    if k < 1:
        raise ConfigError(f"k must be at least 1, got {k}; change it and try again")
    return document in sources[:k]


def evaluate_submission(
    submission: Submission, k: int, questions: Sequence[DocumentQuestion]
) -> tuple[PandachatRow, tuple[str, ...]]:
    """The submission's result at ``k`` over these questions, and which of them it has wrong, in order.

    ``questions`` must be among those that the submission was checked against. Raises ConfigError for k below 1.
    """
    sources = {query: found for query, _, found in submission.rows}
    wrong = tuple(
        asked.question.text
        for asked in questions
        if not any(is_right(document, sources[asked.question.text], k) for document in asked.gold_documents)
    )
    n_right = len(questions) - len(wrong)
    return PandachatRow(submission.system, k, submission.seconds, n_right, len(questions)), wrong


def read_submission(path: Path, questions: Sequence[DocumentQuestion], limit: int | None = None) -> Submission:
    """The submission in this file, checked against the questions of the data set.

    It must hold one row for each question, or at least for each of the first ``limit``, in any order, and no row for
    any other text. ``NaN`` is read; ``sources`` may be a list or, as pandas writes one into a CSV file, its text.
    Raises CorpusError that names the row and what is wrong with it.
    """
    name = path.name
    if not path.is_file():
        raise CorpusError(f"no file {path}; expected a submission, a JSON object with {ROWS!r}")
    payload = read_json(path, name)
    if not isinstance(payload, dict):
        msg = f"{name}: expected an object with 'eval_scenario', 'system', {SECONDS!r} and {ROWS!r}, found "
        raise CorpusError(msg + f"{describe(payload)}; {_AGAIN}")
    top = JsonItem(name, payload)
    scenario, system = top.line("eval_scenario"), top.line("system")
    if scenario != SCENARIO:
        msg = f"{name}: expected the scenario {SCENARIO!r} under 'eval_scenario', found {scenario[:40]!r}; {_AGAIN}"
        raise CorpusError(msg)
    gold = _gold(questions)
    known = frozenset(gold.values())
    rows = tuple(_row(row, gold, known) for row in top.items(ROWS))
    _check_count(name, [query for query, _, _ in rows], list(gold), limit)
    return Submission(system, _seconds(top), rows, payload)


def _gold(questions: Iterable[DocumentQuestion]) -> dict[str, str]:
    """The document of each question. Raises CorpusError if a question occurs twice: its row would be ambiguous."""
    gold: dict[str, str] = {}
    for asked in questions:
        (document,) = asked.gold_documents
        if asked.question.text in gold:
            msg = f"the data set asks {asked.question.text[:80]!r} twice; give every question a text of its own"
            raise CorpusError(msg)
        gold[asked.question.text] = document
    return gold


def _row(row: JsonItem, gold: Mapping[str, str], known: frozenset[str]) -> tuple[str, str, tuple[str, ...]]:
    query, document = row.line("query"), row.identifier("document")
    if query not in gold:
        msg = f"{row.place}: expected a question of the data set under 'query', found {query[:80]!r}; {_AGAIN}"
        raise CorpusError(msg)
    if document != gold[query]:
        msg = f"{row.place}: expected this question's document, {gold[query]!r}, found {document[:80]!r}; {_AGAIN}"
        raise CorpusError(msg)
    for column in TEXTS:
        row.text(column)
    if MARK not in row:
        raise CorpusError(f"{row.place}: expected {MARK!r}, null or 'x', found no such key; {_AGAIN}")
    sources = _sources(row)
    unknown = [source for source in sources if source not in known]
    if unknown:
        msg = f"{row.place}: expected documents of the data set under {SOURCES!r}, found {unknown[0][:80]!r}; {_AGAIN}"
        raise CorpusError(msg)
    return query, document, sources


def _sources(row: JsonItem) -> tuple[str, ...]:
    """The row's sources, from a list of texts or its written form."""
    value = row.values.get(SOURCES)
    if isinstance(value, str):
        value = _literal(value)
    if not isinstance(value, list | tuple):
        found = describe(row.values[SOURCES]) if SOURCES in row else "no such key"
        raise CorpusError(f"{row.place}: expected a list of documents under {SOURCES!r}, found {found}; {_AGAIN}")
    for source in value:
        if not isinstance(source, str):
            msg = f"{row.place}: expected texts in the list under {SOURCES!r}, found {describe(source)}; {_AGAIN}"
            raise CorpusError(msg)
    return tuple(value)


def _literal(text: str) -> object:
    """The Python value that ``text`` writes out; None if it cannot be read."""
    if len(text) > MAX_LITERAL_CHARS:
        return None
    try:
        return literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _seconds(top: JsonItem) -> float | None:
    """The seconds of a question; None for null and NaN, which pandas writes for a missing figure."""
    value = top.values.get(SECONDS)
    if SECONDS in top and (value is None or _is_nan(value)):
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
        found = describe(value) if SECONDS in top else "no such key"
        raise CorpusError(f"{top.place}: expected seconds, 0 or more, under {SECONDS!r}, found {found}; {_AGAIN}")
    return float(value)


def _check_count(name: str, found: Sequence[str], wanted: Sequence[str], limit: int | None) -> None:
    twice = [query for query, count in Counter(found).items() if count > 1]
    if twice:
        msg = f"{name}: expected one row for each question, found {Counter(found)[twice[0]]} for {twice[0][:80]!r}; "
        raise CorpusError(msg + _AGAIN)
    asked, answered = list(wanted[:limit]), frozenset(found)
    missing = [query for query in asked if query not in answered]
    if missing:
        raise CorpusError(
            f"{name}: expected a row for each of {len(asked):,} questions, found {len(found):,}; missing is "
            f"{missing[0][:80]!r}{f' and {len(missing) - 1:,} more' if len(missing) > 1 else ''}; {_AGAIN}"
        )


def submission_of(
    system: str, seconds: float, items: Sequence[Mapping[str, Any]], gold: Sequence[tuple[str, str, tuple[str, ...]]]
) -> Submission:
    """The submission of a run: the data set's ``items``, and in ``gold`` the question, document and sources of each."""
    sources = [found for _, _, found in gold]
    return Submission(system, seconds, tuple(gold), submission_json(system, seconds, items, sources))


def submission_json(
    system: str, seconds: float, items: Sequence[Mapping[str, Any]], sources: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """The submission as an object for JSON: the data set's ``items`` unchanged, each with its sources.

    ``NaN`` becomes null, as in the benchmark's own submissions.
    """
    rows = [_without_nan(item) | {SOURCES: list(found)} for item, found in zip(items, sources, strict=True)]
    return {"eval_scenario": SCENARIO, "system": system, SECONDS: seconds, ROWS: rows}


def submission_file_name(system: str) -> str:
    """The file's name, which the benchmark's script accepts: ``submission_*.json`` without ``results`` in it."""
    stem = "".join(c if c.isascii() and (c.isalnum() or c in "-.") else "-" for c in system).strip("-.") or "system"
    return f"submission_{stem.replace('results', 'result-s')}.json"


def write_submission(path: Path, submission: Mapping[str, Any]) -> None:
    """Writes the file in one step, in the benchmark's format: ASCII, two blanks a level."""
    write_whole(path, [json.dumps(submission, indent=2, allow_nan=False)])


def annotated(submission: Submission, ks: Iterable[int]) -> dict[str, Any]:
    """The submission with its evaluation added to each row, as in the benchmark's ``FILE_results.json``.

    ``sources-eval-K`` divides the first K sources into right and wrong ones, ``sources-correct-context-K`` is yes or
    no.
    """
    rows = [_without_nan(row) for row in submission.payload[ROWS]]
    for k in ks:
        for row, (_, document, sources) in zip(rows, submission.rows, strict=True):
            first = sources[:k]
            row[f"sources-eval-{k}"] = {
                "correct_source": [source for source in first if source == document],
                "incorrect_source": [source for source in first if source != document],
            }
            row[f"sources-correct-context-{k}"] = "yes" if is_right(document, sources, k) else "no"
    return _without_nan({**submission.payload, ROWS: rows})


def _without_nan(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: None if _is_nan(value) else value for key, value in values.items()}


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)

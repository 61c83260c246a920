"""`ragqa check`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ragqa.cli.ask import answer_all, with_preset
from ragqa.cli.benchmarks import NAMED_AT_MOST
from ragqa.cli.output import plain, stderr
from ragqa.corpus.answers import read_answers
from ragqa.corpus.documents import Reader
from ragqa.corpus.documents.kinds import kind_of
from ragqa.english.words import quantity
from ragqa.errors import QuestionError
from ragqa.settings.config import Config
from ragqa.types import Question
from ragqa.types.scores import ScoringMode


def check(
    file: Annotated[str, typer.Argument(help="Document, - for standard input, or answers as for `ragqa score`.")],
    question: Annotated[str, typer.Option(help="Question that the text answers; default: the file's own.")] = "",
    index: Annotated[str | None, typer.Option(help="Corpus, as listed by `ragqa index list`.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each whole record as JSON and nothing else.")] = False,
    preset: Annotated[str | None, typer.Option(help="Preset, by name or as a preset file.")] = None,
    mode: Annotated[ScoringMode | None, typer.Option(help="RePASs definition.")] = None,
) -> None:
    """Check a text or a document against a corpus: every sentence judged, obligations it misses, RePASs.

    A PDF, Word, HTML, XML, Excel, CSV or text file is read whole. Passages are retrieved for each sentence and for
    the whole text. Each answer in a file of answers (.json, .jsonl) is checked against the corpus, not against its
    own passages.
    """
    config = with_preset(Config.from_env(), preset)
    scoring = replace(config.scoring, mode=mode or config.scoring.mode)
    config = replace(config, index=index or config.index, scoring=scoring)
    answer_all(_texts(file, question), config, as_json=as_json)


def _texts(file: str, question: str) -> list[Question]:
    """The texts of the file. Raises QuestionError if it cannot be read or holds no answer, CorpusError as `score`."""
    path = Path(file)
    if path.suffix.lower() in {".json", ".jsonl"}:
        found = read_answers(path).items
        items = [item for item in found if not item.skipped]
        if not items:
            raise QuestionError(f"{path.name} holds no answer; expected a text in 'Answer' of at least one item")
        if empty := [f"{item.number:,}" for item in found if item.skipped]:
            more = ", …" if len(empty) > NAMED_AT_MOST else ""
            words = (
                f"skipped {quantity(len(empty), 'item')} without an answer: {', '.join(empty[:NAMED_AT_MOST])}{more}"
            )
            stderr().print(plain(words))
        return [Question(question or item.question, item.question_id, given=item.answer) for item in items]
    try:
        if file == "-" or kind_of(file) in {"text", ""}:
            text = sys.stdin.read() if file == "-" else path.read_text(encoding="utf-8-sig")
        else:
            with Reader() as reader:
                text = reader.text(path.read_bytes(), path.name)
    except OSError as error:
        msg = f"cannot read {file}: {error.strerror}; give a document, - or a file of answers"
        raise QuestionError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"cannot read {file} as UTF-8 text: {error}; give a document, - or a file of answers"
        raise QuestionError(msg) from error
    return [Question(question, given=text or " ")]

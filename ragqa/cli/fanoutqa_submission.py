"""`ragqa eval fanoutqa-submission`: what FanOutQA's leaderboard takes, checked and written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragqa.cli.fanoutqa_tables import checks_table
from ragqa.cli.output import stderr, stdout
from ragqa.tables import plain

REFUSED = 3


def submission(
    questions: Annotated[Path, typer.Option(help="fanout-final-test.json.")],
    metadata: Annotated[Path, typer.Option(help="The metadata file of the leaderboard's README.")],
    closed_book: Annotated[Path | None, typer.Option(help="Generations, or a folder of `ragqa eval fanoutqa`.")] = None,
    open_book: Annotated[Path | None, typer.Option(help="Likewise.")] = None,
    evidence_provided: Annotated[Path | None, typer.Option(help="Likewise.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the files of a pull request to the leaderboard below this folder.")
    ] = None,
) -> None:
    """Check generations and metadata against the leaderboard's rules; with --out, write what a pull request adds.

    Exit code 3 where a file breaks a rule; every problem is printed.
    """
    from ragqa.corpus.fanoutqa import load_fanoutqa
    from ragqa.corpus.files import read_json
    from ragqa.evaluation.fanoutqa_settings import Setting
    from ragqa.evaluation.fanoutqa_submission import (
        GENERATIONS,
        check_generations,
        check_metadata,
        read_generations,
        write_submission,
    )

    given = {
        Setting.CLOSED_BOOK: closed_book,
        Setting.OPEN_BOOK: open_book,
        Setting.EVIDENCE_PROVIDED: evidence_provided,
    }
    files = {name: _generations_file(path) for name, path in given.items() if path is not None}
    order = [question.question_id for question in load_fanoutqa(questions)]
    values = read_json(metadata, metadata.name)
    if isinstance(values, dict) and files:
        values = values | {key: files[name].name if name in files else None for name, key in GENERATIONS.items()}
    checks = [check_metadata(values, metadata.name), *(check_generations(file, set(order)) for file in files.values())]
    stdout().print(checks_table(checks))
    if not all(check.is_valid for check in checks):
        raise typer.Exit(REFUSED)
    if out is not None:
        answers = {name: read_generations(file) for name, file in files.items()}
        for path in write_submission(out, values, answers, order):
            stderr().print(plain(f"written: {path}"), soft_wrap=True)


def _generations_file(path: Path) -> Path:
    return path / "generations.jsonl" if path.is_dir() else path

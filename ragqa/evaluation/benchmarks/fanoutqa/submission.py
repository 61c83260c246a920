"""Checks and writes a submission to FanOutQA's leaderboard: a file of generations per setting and a metadata file.

The rules are those of its README and of the script that evaluates submissions (zhudotexe/fanoutqa,
leaderboard-submissions/hydrate.py): a line is {"id", "answer"}, both texts; metadata has the fields of `FIELDS` and no
others. This module also refuses what that script would score silently: unknown or repeated ids, more than 1% of the
questions without an answer, answers as long as documents.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ragqa.corpus.files import describe, read_json
from ragqa.errors import CorpusError
from ragqa.evaluation.benchmark import Command, Option, Settings
from ragqa.evaluation.benchmarks.fanoutqa.questions import WITHDRAWN, FanOutQuestion, load_fanoutqa
from ragqa.evaluation.benchmarks.fanoutqa.settings import LeaderboardSetting
from ragqa.evaluation.report import Comparison, Line, Report
from ragqa.infra.files import write_whole

JUDGED_CHARS = 4_000  # the judge reads no more of an answer
MAX_ANSWER_CHARS = 20_000  # the longest in the published files has 5,055; a longer text is no answer
MAX_MISSING_SHARE = 0.01
TYPES = ("FOUNDATION", "FINETUNE", "PROMPT", "OTHER")
GENERATIONS: Mapping[LeaderboardSetting, str] = {
    LeaderboardSetting.CLOSED_BOOK: "closedbook_generations",
    LeaderboardSetting.OPEN_BOOK: "openbook_generations",
    LeaderboardSetting.EVIDENCE_PROVIDED: "evidenceprovided_generations",
}
FIELDS: Mapping[str, str] = {
    "name": "a text",
    "authors": "a text",
    "url": "a text or null",
    "citation": "a text",
    "type": " | ".join(TYPES),
    "context": "a whole number above 0",
    "is_trained_for_function_calling": "true or false",
    "details": "a text or null",
    **dict.fromkeys(GENERATIONS.values(), "the name of a .jsonl file or null"),
}
_OPTIONAL = frozenset({"details"})
_NULLABLE = frozenset({"url", "details", *GENERATIONS.values()})
_TEMPLATE = ("The name of your model", "The list of authors", "A link to your model", "YOUR-SYSTEM-NAME", "Additional")
_FOLDER = "leaderboard-submissions"
SHOWN_PROBLEMS: Final = 50  # of one file


@dataclass(frozen=True, slots=True)
class SubmissionCheck:
    """The result of a check. With ``problems`` the file is refused; ``notes`` inform its sender. Both may be empty."""

    file: str
    n: int = 0
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_valid(self) -> bool:
        return not self.problems


def check_generations(path: Path, known: Collection[str]) -> SubmissionCheck:
    """Checks a file of generations against the ids of its questions. Raises CorpusError if it cannot be read."""
    problems: list[str] = []
    notes: list[str] = []
    answers: dict[str, int] = {}
    long = empty = withdrawn = 0
    for number, found in _lines(path):
        if isinstance(found, str):
            problems.append(found)
            continue
        name, answer = found
        if name in answers:
            problems.append(
                f"line {number}: id {name!r} has an answer in line {answers[name]} already; keep one of them"
            )
            continue
        if name in WITHDRAWN and name not in known:
            withdrawn += 1
            continue
        if name not in known:
            problems.append(
                f"line {number}: id {name!r} is no question of this set; check that the sets belong together"
            )
            continue
        if too_long := _too_long(number, name, answer):
            problems.append(too_long)
            continue
        answers[name] = number
        long += len(answer) > JUDGED_CHARS
        empty += not answer.strip()
    problems += _missing_problems(len(answers) - empty, len(known), broken=bool(problems))
    missing = len(known) - len(answers)
    if missing and not problems:
        notes.append(f"{missing:,} of {len(known):,} questions have no answer; each counts 0")
    if empty:
        notes.append(f"{empty:,} answers are empty; each counts 0")
    if long:
        notes.append(f"{long:,} answers are longer than {JUDGED_CHARS:,} characters; the judge reads no further")
    if withdrawn:
        notes.append(f"{withdrawn:,} answer is to a question that was withdrawn from the test set; it is not scored")
    return SubmissionCheck(path.name, len(answers), tuple(problems), tuple(notes))


def read_generations(path: Path) -> dict[str, str]:
    """The answers by id. Raises CorpusError at the first line that is no answer, is too long for one, or repeats an id.

    The lemmatiser takes a gigabyte for 100,000 characters and fails beyond a million.
    """
    answers: dict[str, str] = {}
    for number, found in _lines(path):
        problem = found if isinstance(found, str) else _too_long(number, *found)
        if not problem and found[0] in answers:
            problem = f"line {number}: id {found[0]!r} has an answer already; keep one of them"
        if problem:
            raise CorpusError(f"{path.name}, {problem}")
        answers[found[0]] = found[1]
    return answers


def answers_to(questions: Sequence[FanOutQuestion], path: Path) -> dict[str, str]:
    """The answers of this file, to be scored. Raises CorpusError if none answers one of these questions."""
    answers = read_generations(path)
    if answers and not answers.keys() & {question.question_id for question in questions}:
        msg = f"{path.name}: expected answers to these questions, found only others; name the file of theirs"
        raise CorpusError(msg)
    return answers


def check_metadata(values: object, name: str = "metadata") -> SubmissionCheck:
    """Checks a metadata object against the leaderboard's fields."""
    if not isinstance(values, dict):
        return SubmissionCheck(
            name, problems=(f"expected an object with the metadata's fields, found {describe(values)}",)
        )
    problems = [
        f"{key!r} is missing; expected {FIELDS[key]}" for key in FIELDS if key not in values and key not in _OPTIONAL
    ]
    problems += [f"{key!r} is no field of the metadata; remove it" for key in values if key not in FIELDS]
    problems += [problem for key in FIELDS if key in values for problem in _field_problems(key, values[key])]
    files = [values.get(key) for key in GENERATIONS.values()]
    if not problems and not any(files):
        problems.append("no setting has generations; name the file of at least one")
    unnamed = [str(setting) for setting, key in GENERATIONS.items() if values.get(key) is None]
    notes = (f"without generations, and so without a row: {', '.join(unnamed)}",) if unnamed and not problems else ()
    return SubmissionCheck(name, len(values), tuple(problems), notes)


def generation_lines(answers: Mapping[str, str], order: Sequence[str]) -> Iterator[str]:
    """The lines of a file of generations, in the order of the questions; empty answers are left out."""
    for name in order:
        if answers.get(name, "").strip():
            yield json.dumps({"id": name, "answer": answers[name]}, ensure_ascii=False) + "\n"


def write_submission(
    folder: Path,
    metadata: Mapping[str, Any],
    answers: Mapping[LeaderboardSetting, Mapping[str, str]],
    order: Sequence[str],
) -> tuple[Path, ...]:
    """Writes the files of a pull request to the leaderboard below ``folder`` and returns them.

    The files are named after ``metadata["name"]``, and their names are filled into the metadata. Raises CorpusError if
    metadata or generations break a rule, and then writes nothing.
    """
    stem = "".join(c if c.isalnum() or c in ".-_" else "-" for c in str(metadata.get("name", ""))).strip("-.").lower()
    files = {key: f"{stem}.jsonl" if setting in answers else None for setting, key in GENERATIONS.items()}
    whole = {**metadata, **files}
    checks = [check_metadata(whole, "metadata")]
    texts = {setting: "".join(generation_lines(found, order)) for setting, found in answers.items()}
    paths = {
        setting: folder / _FOLDER / f"{key.removesuffix('_generations')}-generations" / f"{stem}.jsonl"
        for setting, key in GENERATIONS.items()
        if setting in answers
    }
    checks += [
        SubmissionCheck(str(setting), problems=tuple(_missing_problems(text.count("\n"), len(order), broken=False)))
        for setting, text in texts.items()
    ]
    for check in checks:
        if not check.is_valid:
            raise CorpusError(f"{check.file}: {check.problems[0]}")
    described = folder / _FOLDER / "metadata" / f"{stem}.json"
    try:
        for path in (described, *paths.values()):
            path.parent.mkdir(parents=True, exist_ok=True)
        for setting, path in paths.items():
            write_whole(path, [texts[setting]])
        write_whole(described, [json.dumps(whole, indent=2, ensure_ascii=False) + "\n"])
    except OSError as error:
        msg = f"{folder} cannot be written ({error.strerror or error}); choose another folder and try again"
        raise CorpusError(msg) from error
    return (described, *paths.values())


def _check_submission(settings: Settings) -> tuple[Report, bool]:
    """The checks of `SUBMISSION`; writes the files if all are valid and a folder is named."""
    given = {setting: settings[setting.replace("-", "_")] for setting in LeaderboardSetting}
    paths = {setting: Path(path) for setting, path in given.items() if path}
    files = {setting: path / "generations.jsonl" if path.is_dir() else path for setting, path in paths.items()}
    order = [question.question_id for question in load_fanoutqa(Path(settings["questions"]))]
    metadata = Path(settings["metadata"])
    values = read_json(metadata, metadata.name)
    if isinstance(values, dict) and files:
        values = values | {key: files[name].name if name in files else None for name, key in GENERATIONS.items()}
    checks = [check_metadata(values, metadata.name), *(check_generations(file, set(order)) for file in files.values())]
    lines = tuple(Line(check.file, ("valid" if check.is_valid else "refused",)) for check in checks)
    notes = [f"{check.file}: {text}" for check in checks for text in (*check.problems[:SHOWN_PROBLEMS], *check.notes)]
    is_well = all(check.is_valid for check in checks)
    if is_well and settings["out"]:
        answers = {setting: read_generations(file) for setting, file in files.items()}
        notes += [f"written: {path}" for path in write_submission(Path(settings["out"]), values, answers, order)]
    return Report(
        comparisons=(Comparison(("verdict",), lines, title="Submission", first="file"),), notes=tuple(notes)
    ), is_well


SUBMISSION: Final = Command(
    "fanoutqa-submission",
    "Check generations and metadata against the leaderboard's rules; with --out, write what a pull request adds.\n\n"
    "Exit code 3 where a file breaks a rule; every problem is printed.",
    (
        Option("questions", "fanout-final-test.json.", "file"),
        Option("metadata", "The metadata file of the leaderboard's README.", "file"),
        Option("closed_book", "Generations, or a folder of `ragqa eval fanoutqa`.", "path"),
        Option("open_book", "Likewise.", "path"),
        Option("evidence_provided", "Likewise.", "path"),
        Option("out", "Write the files of a pull request to the leaderboard below this folder.", "path"),
    ),
    _check_submission,
)


def _lines(path: Path) -> Iterator[tuple[int, str | tuple[str, str]]]:
    """Each line's number with its id and answer, or with what is wrong with it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        msg = f"{path} cannot be read ({error.strerror or error}); name a file of generations, a JSON object a line"
        raise CorpusError(msg) from error
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if line.strip():
            yield number, _line(number, line)


def _line(number: int, line: bytes) -> str | tuple[str, str]:
    try:
        values = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        return f"line {number}: expected UTF-8, found other bytes; save the file as UTF-8"
    except (ValueError, RecursionError):
        shown = line[:40].decode("utf-8", "replace")
        return f"line {number}: expected a JSON object, found {shown!r}; write one a line"
    if not isinstance(values, dict):
        return f"line {number}: expected a JSON object, found {describe(values)}; write one {{id, answer}} a line"
    for key in ("id", "answer"):
        if not isinstance(values.get(key), str):
            found = describe(values[key]) if key in values else "none"
            return f"line {number}: expected a text under {key!r}, found {found}; correct the line"
    return values["id"], values["answer"]


def _too_long(number: int, name: str, answer: str) -> str:
    """What is wrong with an answer that is too long; empty if it is not."""
    if len(answer) <= MAX_ANSWER_CHARS:
        return ""
    return (
        f"line {number}: the answer to {name!r} has {len(answer):,} characters, at most {MAX_ANSWER_CHARS:,} are an "
        "answer; write the answer alone"
    )


def _missing_problems(n_answered: int, n_known: int, *, broken: bool) -> Iterator[str]:
    """The problem that too many answers are missing; none if lines are broken, since they explain what is missing."""
    missing = n_known - n_answered
    if missing > MAX_MISSING_SHARE * n_known and not broken:
        yield (
            f"{missing:,} of {n_known:,} questions have no answer, each would count 0; at most "
            f"{int(MAX_MISSING_SHARE * n_known):,} may be missing: run the command again, what was answered is stored"
        )


def _field_problems(key: str, value: object) -> Iterator[str]:
    if not _fits(key, value):
        yield f"{key!r} must be {FIELDS[key]}, found {describe(value)}"
    elif isinstance(value, str) and value.startswith(_TEMPLATE):
        yield f"{key!r} still is the template's text {value[:40]!r}; fill it in"


def _fits(key: str, value: object) -> bool:
    if value is None:
        return key in _NULLABLE
    if key == "context":
        return isinstance(value, int) and not isinstance(value, bool) and value > 0
    if key == "is_trained_for_function_calling":
        return isinstance(value, bool)
    if not isinstance(value, str) or not (value.strip() or key == "citation"):
        return False
    if key in GENERATIONS.values():
        return value.endswith(".jsonl") and not {"/", "\\"} & set(value)
    return key != "type" or value in TYPES

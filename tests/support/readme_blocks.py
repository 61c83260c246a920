"""The console and Python blocks of a README: found, run and compared.

A ```console block is commands, each a line ``$ .venv/bin/ragqa …`` (a last backslash continues it in the next line),
and below each the first lines of what it prints. Lines are compared loosely: white space, digits and lines of tables do
not count, ``…`` stands for anything, also for whole lines. A ```python block runs to its end without an error.

On the lines before a block, as comments of HTML, which no reader sees:

- ``<!-- from elsewhere: why -->`` it is not run,
- ``<!-- slow -->`` it is run with the slow tests,
- ``<!-- continues -->`` a Python block that continues the one before it.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

COMPARED = 8  # lines of each output
_BLOCK = re.compile(
    r"(?P<comments>(?:^<!--(?:(?!-->).)*-->[ \t]*\n\s*)*)"
    r"^```(?P<language>console|python)[^\n]*\n(?P<text>.*?)^```[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_COMMENT = re.compile(r"<!--\s*(.*?)\s*-->", re.DOTALL)
_PROGRAMS = ("ragqa", ".venv/bin/ragqa")


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int  # of its fence, counted from 1
    comments: tuple[str, ...] = ()

    @property
    def elsewhere(self) -> str:
        """Why it is not run; empty where it is."""
        found = [comment.partition(":")[2].strip() for comment in self.comments if comment.startswith("from elsewhere")]
        assert "" not in found, f"line {self.line}: say why: <!-- from elsewhere: reason -->"
        return " ".join(found)

    @property
    def slow(self) -> bool:
        return "slow" in self.comments

    @property
    def continues(self) -> bool:
        return "continues" in self.comments


@dataclass(frozen=True)
class Command:
    words: tuple[str, ...]
    printed: tuple[str, ...]


def blocks_of(text: str) -> tuple[Block, ...]:
    found = []
    for match in _BLOCK.finditer(text):
        comments = tuple(" ".join(comment.split()) for comment in _COMMENT.findall(match["comments"]))
        line = text.count("\n", 0, match.start("language")) + 1
        found.append(Block(match["language"], match["text"], line, comments))
    return tuple(found)


def commands_of(block: Block) -> tuple[Command, ...]:
    """Raises AssertionError where a line is not of this form, and so cannot be checked."""
    found: list[tuple[str, list[str]]] = []
    for line in block.text.replace("\\\n", "").splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            assert found, f"line {block.line}: a console block begins with `$ .venv/bin/ragqa …`, found {line!r}"
            found[-1][1].append(line)
    commands = tuple(Command(tuple(shlex.split(words, comments=True)), tuple(lines)) for words, lines in found)
    for command in commands:
        assert command.words[0] in _PROGRAMS, (
            f"line {block.line}: only ragqa is run here, found {command.words[0]!r}; "
            "precede the block by <!-- from elsewhere: reason -->"
        )
    return commands


def differs(printed: tuple[str, ...], found: str) -> str:
    """The first line that a README shows and the output has not, in their order; empty where it has them all."""
    rest = iter(filter(None, map(_plain, found.splitlines())))
    for line in [line for line in printed if _plain(line)][:COMPARED]:
        pattern = re.compile(".*".join(map(re.escape, _plain(line).split("…"))))
        if not any(pattern.fullmatch(other) for other in rest):
            return line
    return ""


def _plain(line: str) -> str:
    """Without the lines of tables, with one digit for any number, single spaces; only … where only points stand."""
    line = re.sub(r"[\u2500-\u257f]|(?<!\S)[+|=-]+(?!\S)", " ", line.replace("...", "…"))
    return " ".join(re.sub(r"\d+(?:[.,]\d+)*", "0", line).split())


def run_console(block: Block) -> None:
    """Runs the commands in this process. Raises AssertionError where one fails or prints something else."""
    from ragqa.cli import app

    for command in commands_of(block):
        result = CliRunner().invoke(app, list(command.words[1:]))
        said = f"line {block.line}: {shlex.join(command.words)}"
        assert result.exit_code == 0, f"{said} ended with {result.exit_code}: {result.output}{result.exception!r}"
        missing = differs(command.printed, result.output)
        assert not missing, f"{said} did not print {missing!r} but\n{result.output}"


def run_python(blocks: tuple[Block, ...], block: Block) -> None:
    """Runs the block in a namespace of its own, after those that it continues."""
    series = [block]
    for earlier in reversed([one for one in blocks if one.language == "python" and one.line < block.line]):
        if not series[0].continues:
            break
        series.insert(0, earlier)
    namespace: dict[str, object] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()):
        for one in series:
            exec(compile("\n" * one.line + one.text, "README.md", "exec"), namespace)


def readmes(root: Path) -> Iterator[Path]:
    """Every README of the repository: of its root and of its own folders."""
    yield root / "README.md"
    for folder in ("ragqa", "tests", "indexes", ".ci", ".github"):
        yield from sorted((root / folder).rglob("README.md"))

"""`ragqa serve | ask | check | score | tune | models | index | register | gaps | case | records | audit | keys | …`.

Exit codes: 0 done, 1 a bug in ragqa, 2 wrong usage or setting, 3 index, corpus or model, 4 no answer could be written,
5 answered but not scored, 6 records, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_group

from ragqa.errors import ConfigError, RagqaError
from ragqa.infra import logs
from ragqa.settings.environment import check_numbers
from ragqa.settings.paths import Paths, keep_private

__all__ = ["COMMANDS", "app", "load_command", "main"]

# Each command: its module here, the name of its function or application there, the first sentence of its help.
COMMANDS: Final = {
    "ask": ("ask", "ask", "Answer a question from a corpus and score the answer: passages, answer, RePASs."),
    "check": (
        "check",
        "check",
        "Check a text or a document against a corpus: every sentence judged, obligations it misses, RePASs.",
    ),
    "score": ("score", "score", "Scores answers written elsewhere against the passages they were written from."),
    "tune": (
        "tune",
        "tune",
        "Choose how passages are ranked and filtered: settings from one part of the questions, tested on the rest.",
    ),
    "licences": (
        "licences",
        "licences",
        "List the packages that this installation of ragqa needs, with the licences that they state.",
    ),
    "models": ("models", "app", "Models fetched onto this machine, and those of the configured server."),
    "index": ("index", "app", "Build and manage indexes."),
    "memo": (
        "memo",
        "memo",
        "Write a memo on stored answers: question, answer, verdicts, rules word for word, settings, a page for review.",
    ),
    "register": (
        "register",
        "obligations_of",
        "Register the obligations of a corpus: a row for each sentence or item that obliges, with who and by when.",
    ),
    "gaps": (
        "gaps",
        "gaps",
        "Compare a corpus's obligations with policies: covered, partly, conflicts, not found, with the words of both.",
    ),
    "records": ("records", "app", "Stored answers: list, show, export, copy, delete."),
    "case": ("case", "app", "Cases: items, notes, tasks; submit them, and decide on what others submit."),
    "audit": ("audit", "app", "The audit log: verify its chain, show its entries."),
    "keys": ("keys", "app", "Keys for programs that use the server."),
    "mcp": ("mcp", "mcp", "Serve ragqa's tools to an assistant over standard input and output (MCP)."),
    "serve": ("serve", "serve", "Open the page, in a browser on this machine or for others."),
    "eval": ("evaluate", "app", "Measure retrieval, answers, verdicts and models."),
    "dataset": ("dataset", "app", "Make a benchmark and training set of a corpus."),
    "train": ("train", "app", "Train the embedded models."),
}
LARGEST: Final = 2**31  # number that an option accepts: databases, seeds and array libraries take no more
_SETTINGS: Final[dict[str, Any]] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}


def load_command(name: str) -> Any:  # noqa: ANN401 - typer has its own copy of click
    """The command of this name, its module imported."""
    module, attribute, _ = COMMANDS[name]
    part = getattr(import_module(f"ragqa.cli.{module}"), attribute)
    parent = typer.Typer(**_SETTINGS)
    if isinstance(part, typer.Typer):
        parent.add_typer(part, name=name)
    else:
        parent.command(name)(part)
    return _bounded(get_group(parent).commands[name])


def _bounded(command: Any) -> Any:  # noqa: ANN401
    """The command and its subcommands, which now refuse numbers beyond `LARGEST`."""
    for one in getattr(command, "commands", {}).values():
        _bounded(one)
    if command.callback:
        flags = {each.name: each.opts[0] for each in command.params}
        command.callback = partial(_within_bounds, command.callback, flags)
    return command


def _within_bounds(callback: Any, flags: Mapping[str, str], /, **given: Any) -> Any:  # noqa: ANN401
    """Calls the command, with a private home. Raises ConfigError for a number beyond `LARGEST`, or nan."""
    for name, value in given.items():
        for one in value if isinstance(value, list | tuple) else [value]:
            if isinstance(one, int | float) and not abs(one) <= LARGEST:  # also refuses nan
                msg = f"{flags[name]}: expected a number of at most {LARGEST:,}, found {str(one)[:30]}; choose another"
                raise ConfigError(msg)
    with suppress(ConfigError):  # a command that stores nothing needs no home
        keep_private(Paths.from_env().home)
    return callback(**given)


class _Group(TyperGroup):
    """Lists the commands of the table without importing them; a command is loaded when it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401
        name, command, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name in COMMANDS else command, rest


app = typer.Typer(
    help="Ask a question, get a cited answer, see every sentence scored.", cls=_Group, no_args_is_help=True, **_SETTINGS
)
for _name, (_, _, _sentence) in COMMANDS.items():
    app.command(_name, help=_sentence)(lambda: None)


def _check_arguments(arguments: list[str]) -> None:
    """Raises ConfigError for an argument that is not valid UTF-8."""
    for argument in arguments:
        if any("\ud800" <= letter <= "\udfff" for letter in argument):
            raise ConfigError(f"expected arguments in UTF-8, found {argument[:60]!a}; type it again")


def _fail(error: RagqaError) -> None:
    from ragqa.cli.output import fail  # imported late: it loads rich

    fail(error)


def main() -> None:
    """The console script: every failure becomes one message on standard error and an exit code."""
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger().handlers[0].setLevel(logging.WARNING)  # bm25s sets its own logger to DEBUG
    try:
        logs.set_up()
        check_numbers()
        _check_arguments(sys.argv[1:])
        app(sys.argv[1:] or ["serve"])
    except RagqaError as error:
        _fail(error)
    except BrokenPipeError:  # the reader of our output has gone, as `ragqa ... | head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        where = repr(str(error.filename)[:80]) if error.filename is not None else "one of the system's"
        _fail(
            ConfigError(f"expected a file or folder that can be used, found {where} ({error.strerror}); name another")
        )
    except Exception as error:  # last resort: the user gets a message, the log gets the trace
        logging.getLogger(__name__).debug("unexpected failure", exc_info=True)
        sys.stderr.write(f"ragqa failed unexpectedly: {type(error).__name__}: {error}\n")
        sys.exit(1)

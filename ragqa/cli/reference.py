"""`REFERENCE.md`: parts, settings, environment variables and commands, written from registry, schema and typer.

``make reference`` writes it; a test fails if it is out of date.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ragqa.plugins import registry
from ragqa.settings.config import SETTINGS
from ragqa.settings.environment import environment_table
from ragqa.settings.schema import Place

FILE: Final = Path(__file__).parents[1] / "REFERENCE.md"


def reference() -> str:
    """The whole text, the same on every machine."""
    from ragqa.cli import COMMANDS, load_command  # only when called: commands import much

    lines = [
        "# Reference",
        "",
        "Written by `make reference`: edit the code, not this file.",
        "",
        "## Parts",
        "",
        *_parts(),
        "## Settings",
        "",
        _settings(),
        "## Environment variables",
        "",
        environment_table(),
        "## Commands",
        "",
        *(line for name in sorted(COMMANDS) for line in _commands(f"ragqa {name}", load_command(name))),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _parts() -> Iterator[str]:
    groups = (registry.GENERATORS, registry.RETRIEVERS, registry.ENCODERS, registry.RERANKERS, registry.NLI_MODELS)
    for group in (*groups, registry.CORPUS_FORMATS):
        yield from (
            f"### {group.removeprefix('ragqa.').replace('_', ' ').capitalize()}",
            "",
            registry.parts_table(group),
        )


def _settings() -> str:
    rows = []
    for one in SETTINGS:
        option = f"`--{(one.option or one.key).replace('_', '-')}`" if Place.OPTION in one.places else ""
        default = "" if one.default == "" else f"{one.default:g}" if one.low is not None else str(one.default)
        rows.append(
            (f"`{one.part}.{one.field}`", option, default, one.values, one.help.replace("|", "\\|"), one.source)
        )
    return registry.table(("setting", "option", "default", "values", "what it is", "where the default is from"), rows)


def _commands(name: str, command: Any) -> Iterator[str]:  # noqa: ANN401 - typer has its own copy of click
    if hasattr(command, "commands"):
        for part in sorted(command.commands):
            yield from _commands(f"{name} {part}", command.commands[part])
        return
    yield from (f"### `{name}`", "", " ".join((command.help or "").split()), "")
    rows = [row for row in (_row(one) for one in command.params) if row]
    if rows:
        yield from ("| option | meaning |", "|---|---|", *rows, "")


def _row(parameter: Any) -> str:  # noqa: ANN401
    help_text = " ".join((getattr(parameter, "help", "") or "").split()).replace("|", "\\|")
    if parameter.param_type_name == "argument":
        return f"| `{parameter.metavar or parameter.name.upper()}` | {help_text} |"
    if parameter.name == "help":
        return ""
    default = parameter.default
    shown = "" if default in (None, False, "", ()) or callable(default) else f" [{default}]"
    return f"| `{', '.join(parameter.opts)}` | {help_text}{shown} |"


if __name__ == "__main__":
    os.environ.pop("RAGQA_DATA", None)
    FILE.write_text(reference(), encoding="utf-8")

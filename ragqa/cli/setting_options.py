"""Settings as options of a command: one for each that `ragqa.settings.schema` places on the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from ragqa.settings.config import settings_at
from ragqa.settings.schema import Place, SettingSpec


def with_setting_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each setting in place of its ``**given``; None or False where not given."""
    own = inspect.signature(command, eval_str=True).parameters.values()
    fixed = [each for each in own if each.kind is not inspect.Parameter.VAR_KEYWORD]
    parameters = [*fixed, *map(_parameter, settings_at(Place.OPTION))]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def _parameter(setting: SettingSpec) -> inspect.Parameter:
    flag = f"--{(setting.option or setting.key).replace('_', '-')}"
    kind: Any = type(setting.default)
    if setting.choices:
        make: Any = StrEnum  # typer lists its values in ``--help``
        kind = make(f"{setting.key.title()}Choice", {str(name).upper(): str(name) for name in setting.choices})
    default = False if kind is bool else None
    kind = kind if kind is bool else kind | None
    annotation = Annotated[kind, typer.Option(flag, help=setting.brief)]
    return inspect.Parameter(setting.key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

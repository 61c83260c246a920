"""Builds a command's parameters from a benchmark's options, from settings or from the fields of a dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields
from typing import Annotated, Any, get_type_hints

Command = Callable[..., None]


def reshaped(command: Command, parameters: Iterable[inspect.Parameter]) -> Command:
    """The command with these parameters in the signature that typer reads; they are passed by name."""
    named = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    command.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in named}
    return command


def built(kind: type[Any], **options: Any) -> Callable[[Command], Command]:  # noqa: ANN401 - what typer.Option gives
    """Decorates a command that takes a dataclass ``kind``: each of its fields in ``options`` becomes an option.

    Types and defaults are those of the fields; a string field without a default is empty if its option is not given.
    """
    hints, defaults = get_type_hints(kind), {each.name: each.default for each in fields(kind)}
    made = []
    for name, option in options.items():
        hint: Any = hints[name]
        lacking = "" if hint is str else inspect.Parameter.empty
        default = lacking if defaults[name] is MISSING else defaults[name]
        annotation = Annotated[hint, option]
        made.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation))

    def shaped(command: Command) -> Command:
        parameters = inspect.signature(command, eval_str=True).parameters.values()
        (place,) = (each.name for each in parameters if each.annotation is kind)

        def called(**given: Any) -> None:  # noqa: ANN401 - typer passes what the options say
            own = {name: given.pop(name) for name in options}
            command(**given, **{place: kind(**own)})

        called.__name__, called.__doc__ = command.__name__, command.__doc__
        return reshaped(called, [one for each in parameters for one in (made if each.name == place else [each])])

    return shaped

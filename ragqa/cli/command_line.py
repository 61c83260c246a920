"""A command as it would be typed again: for model cards and preset files."""

from __future__ import annotations

import shlex
from collections.abc import Mapping


def command_line(command: str, options: Mapping[str, object]) -> str:
    """``ragqa tune --index=rulebook --step=0.05``, quoted for a shell, of ``command`` and its options by name.

    An option that is None or empty is left out, one with a tuple or list is repeated for each of its values.
    """
    given = []
    for name, value in options.items():
        values = value if isinstance(value, list | tuple) else () if value in (None, "") else (value,)
        given += [f"--{name}={one:.12g}" if isinstance(one, float) else f"--{name}={one}" for one in values]
    return shlex.join(["ragqa", *command.split(), *given])

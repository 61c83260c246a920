"""Values of stored JSON, checked by pydantic."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def adapter_of(kind: type[Any]) -> Any:  # noqa: ANN401 - pydantic is imported only where something is read
    """The `pydantic.TypeAdapter` of this type, made once."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)

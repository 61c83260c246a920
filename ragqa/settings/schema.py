"""The description of a setting, declared with its field and read wherever settings are chosen, shown or compared.

A field declared by `setting` is checked (`check`) and becomes an option of `ragqa ask`, a widget of the drawer, a part
of addresses and of the differences of two configurations, and a row of REFERENCE, except in places that it excludes.
`ragqa.settings.config.SETTINGS` lists all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date
from enum import Flag, auto
from functools import partial
from typing import Any, Final, Literal

from ragqa.errors import ConfigError
from ragqa.plugins import registry

Precision = Literal["auto", "fp32", "bf16"]
PRECISIONS: Final = {"auto": "auto", "fp32": "fp32", "bf16": "bf16"}


class Place(Flag):
    """Where a setting is visible, in addition to REFERENCE and preset files."""

    LIBRARY = 0
    OPTION = auto()
    PAGE = auto()  # the drawer and addresses
    DIFFERENCE = auto()
    ALL = OPTION | PAGE | DIFFERENCE


@dataclass(frozen=True, slots=True)
class SettingSpec:
    """One setting: a number in [``low``, ``high``], one of ``choices``, a name, or a bool."""

    name: str  # in messages
    help: str = ""  # the command line shows its first sentence
    source: str = ""  # of the default
    low: float | None = None
    high: float | None = None
    step: float = 0  # of its slider; 0: 1 for whole numbers, else 0.01
    usual: tuple[float, float] | None = None  # range of its slider, unless a preset file exceeds it
    choices: Mapping[str, str] = field(default_factory=dict)  # value to its label on the page
    group: str = ""  # group of the registry whose names are its values
    places: Place = Place.ALL
    key: str = ""  # unique among settings, used in addresses and widgets; empty: the field's name
    option: str = ""  # name on the command line; empty: the key
    label: str = ""  # name on the page; empty: `name`
    off: object = None  # the value that switches it off
    is_day: bool = False  # a text that is empty or a day, YYYY-MM-DD
    under: str = ""  # the key of a setting that decides whether this one has an effect
    when: Callable[[str], bool] | None = None  # for which values of that setting; None: for true ones
    part: str = ""  # field of `ragqa.settings.config.Config`
    field: str = ""
    default: Any = None

    @property
    def range(self) -> str:
        """``"1..20"`` of whole numbers, ``"[0, 1]"`` of others."""
        return f"{self.low}..{self.high}" if isinstance(self.low, int) else f"[{self.low:g}, {self.high:g}]"

    @property
    def values(self) -> str:
        """Its possible values in words: ``"0 to 1"``, ``"wsum or rrf"``; empty for a name."""
        if self.low is not None:
            return f"{self.low:g} to {self.high:g}"
        listed = registry.listed(self.group) if self.group else ""
        return " or ".join(", ".join(self.choices).rsplit(", ", 1)) or listed

    @property
    def brief(self) -> str:
        """Its help on the command line: the generators that read it, its first sentence, and its possible values."""
        parts = registry.ours(registry.GENERATORS) if self.is_of_generators else ()
        readers = ", ".join(part.name for part in parts if self.field in part.options)
        first = self.help.partition(". ")[0].removesuffix(".")
        told = f"{readers}: {first[:1].lower()}{first[1:]}" if readers else first
        values = f"{':' if self.choices or self.group else ','} {self.values}" if self.values else ""
        return f"{told}{values}."

    @property
    def is_name(self) -> bool:
        """Whether it is a free text, for which the page has widgets of its own."""
        return isinstance(self.default, str) and not self.choices

    @property
    def is_of_generators(self) -> bool:
        """Whether it has an effect only for the generators that name it in their options."""
        return self.under == "generator" and self.when is None

    def applies(self, values: Mapping[str, Any]) -> bool:
        """Whether it has an effect under these values, by key."""
        if self.is_of_generators:
            return registry.takes(values["generator"], self.field)
        return not self.under or (self.when or bool)(values[self.under])

    def text(self, value: Any) -> str:  # noqa: ANN401 - of as many types as there are settings
        """The value as the page shows it."""
        if self.off is not None and value == self.off:
            return "off"
        if isinstance(value, bool):
            return "yes" if value else "no"
        if self.group:
            return registry.label(str(value), self.group)
        return self.choices.get(value) or (f"{value:.2f}" if isinstance(value, float) else str(value))

    def check(self, value: Any) -> None:  # noqa: ANN401
        """Raises ConfigError for a number out of range, or a value that is not a choice."""
        if self.low is not None and self.high is not None:
            check(self.low <= value <= self.high, self.name, f"in {self.range}", value)
        if self.choices:
            check(value in self.choices, self.name, self.values, value)
        if self.is_day:
            check(not value or is_day(value), self.name, "a day as YYYY-MM-DD, or empty", value)


def ranking_label(name: str) -> str:
    """The name of a ranking in texts."""
    return registry.label(name)


def is_day(value: object) -> bool:
    """Whether this is a day as YYYY-MM-DD; a page may be sent any value."""
    try:
        return isinstance(value, str) and date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def setting(default: Any, name: str, /, low: float | None = None, high: float | None = None, **rest: Any) -> Any:  # noqa: ANN401
    """A field with this default, declared as a `SettingSpec`, whose further fields are ``rest``."""
    return field(default=default, metadata={"setting": SettingSpec(name, low=low, high=high, **rest)})


library = partial(setting, places=Place.LIBRARY)
compared = partial(setting, places=Place.DIFFERENCE)


def declared(settings: type, part: str = "") -> tuple[SettingSpec, ...]:
    """The settings of this class, in order, each with its key, label, field and default."""
    return tuple(
        replace(
            one,
            key=one.key or each.name,
            label=one.label or f"{one.name[:1].upper()}{one.name[1:]}",
            usual=one.usual or (None if one.low is None or one.high is None else (one.low, one.high)),
            step=one.step or (1 if isinstance(one.low, int) else 0.01),
            part=part,
            field=each.name,
            default=each.default,
        )
        for each in fields(settings)
        for one in (each.metadata.get("setting"),)
        if one
    )


class Checked:
    """A class of settings whose fields are checked when an instance is created."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check_all(self)


def check_all(settings: Any) -> None:  # noqa: ANN401 - any class of settings
    """Raises ConfigError for the first field with an invalid value."""
    for each in fields(settings):
        if "setting" in each.metadata:
            each.metadata["setting"].check(getattr(settings, each.name))


def check(condition: bool, name: str, expected: str, found: object) -> None:
    """Raises ConfigError with the expected and the found value unless the condition holds."""
    if not condition:
        raise ConfigError(f"{name} must be {expected}, got {found!r}; change the setting and try again")

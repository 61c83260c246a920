"""Addresses that ask something again: question or text, corpus, preset and changed settings. Pure.

Examples: ``ask?q=…&corpus=rulebook&preset=RIRAG .70/.20&threshold=0.55`` and ``check?text=…&q=…``. Settings have the
names of `ragqa.ui.state.settings_values`. An address cannot name servers, keys or files, which visitors may not choose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlencode

from ragqa.errors import ConfigError
from ragqa.pipeline import MAX_QUESTION_CHARS
from ragqa.plugins import registry
from ragqa.settings.config import Config
from ragqa.settings.presets import Preset
from ragqa.settings.schema import SettingSpec, is_day
from ragqa.types import Question
from ragqa.ui.state.settings_values import ON_PAGE, first_values, preset_values, values_of, weight_values

RUN, RECORD = "run", "record"  # parameters of other addresses, which `link_of` ignores
QUESTION, TEXT, CORPUS, PRESET = "q", "text", "corpus", "preset"
LONGEST_NAME: Final = 200
DIGITS: Final = 6  # decimals of a weight, so that weights and shares can be converted back and forth
_SETTINGS: Final = {one.key: one for one in ON_PAGE}
_WEIGHT: Final = "weight_"
_SHARE: Final = SettingSpec("weight", low=0.0, high=1.0)
_AGAIN: Final = "correct the address, or ask again on the page"


@dataclass(frozen=True, slots=True)
class Link:
    """The content of an address. ``changed`` are setting values by name, as in the settings panel."""

    question: str = ""
    text: str = ""
    corpus: str = ""
    preset: str = ""
    changed: Mapping[str, Any] = field(default_factory=dict)


def query_of(link: Link) -> dict[str, str]:
    """The parameters of the link's address, in a fixed order."""
    named = ((QUESTION, link.question), (TEXT, link.text), (CORPUS, link.corpus), (PRESET, link.preset))
    return {name: value for name, value in named if value} | {
        name: _written(value) for name, value in sorted(link.changed.items())
    }


def address_of(link: Link) -> str:
    """The link's address, relative to any page of ragqa; "" where the text is too long for an address."""
    if len(link.text) > MAX_QUESTION_CHARS:
        return ""
    return f"{'check' if link.text else 'ask'}?{urlencode(query_of(link), quote_via=quote)}"


def link_of(query: Mapping[str, str]) -> Link:
    """The link of these parameters. Raises ConfigError, which names the first invalid one and what was expected."""
    rest = {name: value for name, value in query.items() if name not in {RUN, RECORD}}
    texts = {name: rest.pop(name, "") for name in (QUESTION, TEXT, CORPUS, PRESET)}
    for name, most in ((QUESTION, MAX_QUESTION_CHARS), (TEXT, MAX_QUESTION_CHARS), (CORPUS, 80), (PRESET, 80)):
        if len(texts[name]) > most:
            raise _wrong(name, f"at most {most:,} characters", f"{len(texts[name]):,}")
    changed = {name: _read(name, value) for name, value in rest.items()}
    return Link(texts[QUESTION], texts[TEXT], texts[CORPUS], texts[PRESET], changed)


def link_to(
    asked: Question, config: Config, presets: Sequence[Preset], defaults: Config, rankings: Sequence[str], encoder: str
) -> Link:
    """The link that asks this again with these settings, as differences from the nearest preset.

    ``rankings`` and ``encoder`` are those of the index, ``defaults`` the settings of the environment. Settings that are
    not on the page are left out.
    """
    found = _rounded(values_of(config, rankings))
    best: tuple[int, Preset, dict[str, Any]] | None = None
    for preset in presets:
        base = base_values(preset, defaults, rankings, encoder)
        changed = {name: value for name, value in found.items() if value != base.get(name) and _counts(name, found)}
        moved = {_WEIGHT if name.startswith(_WEIGHT) else name for name in changed}  # one weight moves all shares
        distance = len(moved) + (preset.retrieval != config.retrieval) * len(found)
        if best is None or distance < best[0]:
            best = (distance, preset, changed)
    if best is None:
        msg = "there is no preset to compare with; expected at least one"
        raise ConfigError(msg)
    return Link(asked.text, asked.given, config.index, best[1].name, best[2])


def base_values(preset: Preset, defaults: Config, rankings: Sequence[str], encoder: str) -> dict[str, Any]:
    """The values of a settings panel on which only this preset was chosen."""
    values = first_values(preset, defaults) | preset_values(preset) | weight_values(preset, rankings, encoder)
    weights = {name: value for name, value in values.items() if name.startswith(_WEIGHT)}
    total = math.fsum(weights.values())
    shares = {name: (value / total if total else 1.0 / len(weights)) for name, value in weights.items()}
    return _rounded(values | shares)


def _rounded(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with rounded weights that still sum to 1, so that reading them back gives the same weights."""
    whole = 10**DIGITS
    shares = {name: round(value * whole) for name, value in values.items() if name.startswith(_WEIGHT)}
    if shares:
        shares[max(shares, key=lambda name: shares[name])] += whole - sum(shares.values())
    return {**values, **{name: share / whole for name, share in shares.items()}}


def _counts(name: str, values: Mapping[str, Any]) -> bool:
    """Whether this value has an effect; the depth without a reranker, for example, has none.

    Values of the filter always count, because the threshold also decides on passages that are read with a kept one.
    """
    setting = _SETTINGS.get(name)
    return setting is None or setting.part == "filtering" or setting.applies(values)


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return repr(value) if isinstance(value, float) else str(value)


def _read(name: str, value: str) -> Any:  # noqa: ANN401 - of as many types as there are settings
    if name.startswith(_WEIGHT) and registry.is_ranking_name(name.removeprefix(_WEIGHT)):
        return _number(name, value, _SHARE)
    if name not in _SETTINGS:
        raise _wrong(name, f"one of {', '.join((QUESTION, TEXT, CORPUS, PRESET, *_SETTINGS))}", "")
    setting = _SETTINGS[name]
    if setting.low is not None:
        return _number(name, value, setting)
    choices = ("yes", "no") if isinstance(setting.default, bool) else tuple(map(str, setting.choices))
    if choices:
        if value not in choices:
            raise _wrong(name, " or ".join(choices), value)
        return value == "yes" if isinstance(setting.default, bool) else value
    if len(value) > LONGEST_NAME or not (value.isprintable() or not value):
        raise _wrong(name, f"a name of at most {LONGEST_NAME} characters", value)
    if setting.is_day and value and not is_day(value):
        raise _wrong(name, "a day as YYYY-MM-DD", value)
    if name == "generator" and not registry.is_known(registry.GENERATORS, value):
        raise _wrong(name, registry.listed(registry.GENERATORS), value)
    return value


def _number(name: str, value: str, setting: SettingSpec) -> float | int:
    whole = isinstance(setting.low, int)
    expected = setting.range if whole else f"a number in {setting.range}"
    try:
        if len(value) > 25 or not value.isascii() or "_" in value:
            raise ValueError(value)
        number = int(value) if whole else float(value)
        setting.check(number)  # NaN is outside every range
    except (ValueError, ConfigError) as error:
        raise _wrong(name, expected, value) from error
    return number


def _wrong(name: str, expected: str, found: str) -> ConfigError:
    shown = f", found {found[:60]!r}" if found else ""
    return ConfigError(f"The address says {name[:60]!r}: expected {expected}{shown}; {_AGAIN}.")

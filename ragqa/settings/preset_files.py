"""Presets as JSON files, written by `ragqa tune --write` or by users, and validated like any outside text.

A file holds ``format``, ``name``, ``explanation``, and any of ``index``, ``retrieval``, ``fusion``, ``reranking``,
``filtering`` (fields as in `ragqa.settings.config`; omitted ones have their default) and ``evidence``, which is for
readers only and has no effect.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, Final

from ragqa.errors import ConfigError
from ragqa.plugins import registry
from ragqa.settings.config import RerankingConfig
from ragqa.settings.paths import expanded
from ragqa.settings.presets import FORMER_NAMES, PRESETS, Preset

PRESET_FORMAT: Final = "ragqa preset 1"
MAX_BYTES: Final = 1_000_000  # a file with the evidence of five folds takes 5 kB
LONGEST_NAME, LONGEST_EXPLANATION = 80, 600  # characters
MOST_SAVED: Final = 200  # files in a folder that the page writes to
_AGAIN = "correct it, or write it again with `ragqa tune --write`"


def preset_text(preset: Preset, evidence: Mapping[str, Any]) -> str:
    """The preset as the text of a file that `read_preset` reads; ``evidence`` is anything JSON can hold."""
    whole = {"format": PRESET_FORMAT} | asdict(preset) | {"evidence": dict(evidence)}
    if preset.reranking == RerankingConfig():
        del whole["reranking"]  # so that an older ragqa without rerankers can read the file
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def check_name(name: str) -> None:
    """Raises ConfigError if ragqa itself uses this name, or it is not one line of 1 to 80 characters."""
    if not (name.strip() and len(name) <= LONGEST_NAME and name.isprintable()):
        msg = f"a preset's name must be one line of 1 to {LONGEST_NAME} characters, got {name[:100]!r}; choose another"
        raise ConfigError(msg)
    rankings = {part.key for part in registry.ours(registry.RETRIEVERS)}
    if name in {"fused", *rankings, *FORMER_NAMES, *(preset.name for preset in PRESETS)}:
        raise ConfigError(f"the name {name!r} belongs to a bundled preset or ranking; choose another")


def read_preset(file: Path) -> Preset:
    """The preset in this file. Raises ConfigError, naming the file, if it is missing or not as described above."""
    try:
        return _parsed(_object(file))
    except ConfigError as error:
        raise ConfigError(f"preset file {file}: {error}") from error


def save_preset(preset: Preset, folder: Path) -> Path:
    """Writes the preset to a new file in this folder, created if missing; returns the file.

    Raises ConfigError if ragqa itself or another file there uses the name, the folder already holds `MOST_SAVED` files,
    or the file cannot be written.
    """
    check_name(preset.name)
    own, _ = presets_in(folder)
    if preset.name in {one.name for one in own}:
        raise ConfigError(f"there is a preset {preset.name!r} already; choose another name")
    stem = re.sub(r"[^a-z0-9]+", "-", preset.name.lower()).strip("-") or "preset"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = {path.name for path in folder.iterdir()}
        if len(taken) >= MOST_SAVED:
            raise ConfigError(f"{folder} holds {len(taken)} files already; remove some of them first")
        numbered = (f"{stem}.json", *(f"{stem}-{number}.json" for number in range(2, MOST_SAVED + 2)))
        file = folder / next(name for name in numbered if name not in taken)
        with file.open("x", encoding="utf-8") as stream:
            stream.write(preset_text(preset, {}))
    except OSError as error:
        msg = f"the preset cannot be written to {folder}: {error.strerror}; check its permissions"
        raise ConfigError(msg) from error
    return file


def find_preset(name: str, folder: Path, *, is_remote: bool = False) -> Preset:
    """The preset of this name: a bundled one, a file ``*.json``, or one in ``folder`` by its name.

    ``is_remote``: the name is of somebody who may not read files of this machine, and means no file.
    Raises ConfigError if there is none, or if the file cannot be read.
    """
    for preset in PRESETS:
        if preset.name == FORMER_NAMES.get(name, name):
            return preset
    if name.endswith(".json") and not is_remote:
        return read_preset(expanded(name, "preset file"))
    own, problems = presets_in(folder)
    for preset in own:
        if preset.name == name:
            return preset
    names = ", ".join(repr(preset.name) for preset in (*PRESETS, *own))
    if is_remote:
        raise ConfigError(f"unknown preset {name[:100]!r}; choose one of {names}")
    unread = f" ({len(problems)} files in {folder} could not be read)" if problems else ""
    raise ConfigError(f"unknown preset {name!r}; choose one of {names}, or name a preset file, FILE.json{unread}")


def presets_in(folder: Path) -> tuple[tuple[Preset, ...], tuple[str, ...]]:
    """The presets in the files ``*.json`` of this folder, by file name, and one line on each file with a problem.

    Names are unique: a second file with the same name is a problem. A missing folder holds no presets.
    """
    found: dict[str, Preset] = {}
    problems = []
    try:
        files = sorted(path for path in folder.glob("*.json") if path.is_file() or path.is_symlink())
    except OSError as error:
        return (), (f"presets in {folder} cannot be listed: {error.strerror}; check its permissions",)
    for file in files:
        try:
            preset = read_preset(file)
            if preset.name in found:
                msg = f"preset file {file}: another file has the name {preset.name!r} too; give one of them another"
                raise ConfigError(msg)
            found[preset.name] = preset
        except ConfigError as error:
            problems.append(str(error))
    return tuple(found.values()), tuple(problems)


def _object(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            msg = f"expected at most {MAX_BYTES:,} bytes, found more; name a file that `ragqa tune --write` wrote"
            raise ConfigError(msg)
        found = json.loads(content.decode("utf-8"))
    except OSError as error:
        raise ConfigError(f"expected a file that can be read, found: {error.strerror}; check its name") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"expected JSON in UTF-8, found something else ({str(error)[:100]}); {_AGAIN}") from error
    if not isinstance(found, dict) or found.get("format") != PRESET_FORMAT:
        raise ConfigError(f"expected an object whose 'format' is {PRESET_FORMAT!r}, found none; {_AGAIN}")
    return found


def _parsed(found: dict[str, Any]) -> Preset:
    from pydantic import TypeAdapter, ValidationError  # takes 80 ms, needed only to read preset files

    given = {key: value for key, value in found.items() if key not in {"format", "evidence"}}
    _check_keys(given)
    try:
        preset = TypeAdapter(Preset).validate_json(json.dumps(given), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise ConfigError(f"expected other content at {where}: {first['msg']}; {_AGAIN}") from error
    check_name(preset.name)
    if len(preset.explanation) > LONGEST_EXPLANATION or not preset.explanation.isprintable():
        msg = f"expected an explanation of one line, at most {LONGEST_EXPLANATION} characters, found another; {_AGAIN}"
        raise ConfigError(msg)
    unknown = sorted(name for name in preset.fusion.weights if not registry.is_ranking_name(name))
    if unknown:
        msg = f"expected weights of {registry.listed(registry.RETRIEVERS)}, found one of {unknown[0]!r}; {_AGAIN}"
        raise ConfigError(msg)
    return preset


def _check_keys(given: Mapping[str, Any]) -> None:
    """Raises ConfigError for an unknown key: a misspelt setting would silently keep its default."""
    plain = Preset("", "")
    known: dict[str, set[str]] = {"": {field.name for field in fields(plain)}}
    for field in fields(plain):
        part = getattr(plain, field.name)
        if is_dataclass(part):
            known[field.name] = {inner.name for inner in fields(part)}
    places = [("", given), *((key, given[key]) for key in known if isinstance(given.get(key), dict))]
    for place, found in places:
        for key in found:
            if key not in known[place]:
                inside = f"in {place!r}" if place else "in the file"
                msg = f"expected only {', '.join(sorted(known[place]))} {inside}, found {key[:60]!r}; {_AGAIN}"
                raise ConfigError(msg)

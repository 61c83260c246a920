"""`ragqa licences`: the packages that this installation needs, with their licences; ``--sbom`` as CycloneDX JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Annotated, Any
from uuid import NAMESPACE_URL, uuid5

import typer

from ragqa.cli.output import plain, stderr
from ragqa.models import EMBEDDED

_WANTED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^]]*)\])?")
_EXTRA = re.compile(r"extra\s*==\s*[\"']([^\"']+)[\"']")
_OURS = "ragqa"
_NOT_SHIPPED = {"dev"}  # an extra for those who work on ragqa


@dataclass(frozen=True, slots=True)
class Component:
    """An installed distribution. ``licence`` is an SPDX expression if ``is_expression``; empty: it states none."""

    name: str
    version: str
    licence: str
    is_expression: bool
    home: str
    needs: tuple[str, ...]

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"


def licences(sbom: Annotated[Path | None, typer.Option(help="File to write as CycloneDX 1.6 JSON.")] = None) -> None:
    """List the packages that this installation of ragqa needs, with the licences that they state."""
    parts = parts_of(_OURS)
    if sbom:
        sbom.write_text(json.dumps(bill(parts), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        stderr().print(plain(f"wrote {sbom}: {len(parts)} packages, {len(EMBEDDED)} models"))
        return
    for one in parts.values():
        typer.echo(f"{one.name}\t{one.version}\t{one.licence or 'not stated'}\t{one.home}")


def parts_of(name: str) -> dict[str, Component]:
    """The distribution and its installed requirements, direct and indirect, by name; itself first."""
    found: dict[str, Component] = {}
    waiting = [(name, frozenset[str]())]
    seen = set()
    while waiting:
        at = waiting.pop(0)
        try:
            one = distribution(at[0])
        except PackageNotFoundError:
            continue  # for another system, or of an extra that is not installed
        if at in seen:
            continue
        seen.add(at)
        extras = at[1]
        if at[0] == _OURS:
            extras = frozenset(one.metadata.get_all("Provides-Extra") or ()) - _NOT_SHIPPED
        wanted = list(_wanted(one, extras))
        needs = {*(known.needs if (known := found.get(at[0])) else ()), *(need for need, _ in wanted if _is_here(need))}
        found[at[0]] = _part(one, at[0], tuple(sorted(needs - {at[0]})))
        waiting += wanted
    first = found.pop(name)
    return {name: first, **dict(sorted(found.items()))}


def _wanted(one: Distribution, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    for line in one.requires or ():
        requirement, _, marker = line.partition(";")
        asked = _WANTED.match(requirement)
        if asked and set(_EXTRA.findall(marker)) <= extras:
            more = frozenset(filter(None, (extra.strip() for extra in (asked[2] or "").split(","))))
            yield re.sub(r"[-_.]+", "-", asked[1]).lower(), more


def _is_here(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _part(one: Distribution, name: str, needs: tuple[str, ...]) -> Component:
    metadata = one.metadata
    expression = _said(one, "License-Expression")
    classified = [
        line.rpartition(" :: ")[2] for line in metadata.get_all("Classifier") or () if line.startswith("License")
    ]
    free_text = _said(one, "License").strip().partition("\n")[0][:100]
    pairs = [line.split(", ", 1) for line in metadata.get_all("Project-URL") or () if ", " in line]
    urls = {name.strip().lower(): url for name, url in pairs}
    named = (
        urls[name] for name in ("homepage", "home", "repository", "source", "source code", "github") if name in urls
    )
    home = next(named, "") or _said(one, "Home-page") or next(iter(urls.values()), "")
    return Component(name, one.version, expression or ", ".join(classified) or free_text, bool(expression), home, needs)


def _said(one: Distribution, name: str) -> str:
    return next(iter(one.metadata.get_all(name) or ()), "")


def bill(parts: dict[str, Component]) -> dict[str, Any]:
    """The parts as a CycloneDX bill of materials; the same parts give the same bill."""
    ours, *rest = parts.values()
    models = [
        {"type": "machine-learning-model", "bom-ref": f"model:{name}", "name": name, "version": ours.version}
        for name in EMBEDDED
    ]
    needs: list[dict[str, Any]] = [
        {"ref": one.purl, "dependsOn": [parts[name].purl for name in one.needs]} for one in parts.values()
    ]
    needs[0]["dependsOn"] += [model["bom-ref"] for model in models]
    body = {
        "metadata": {"component": _component(ours, "application")},
        "components": [*(_component(one, "library") for one in rest), *models],
        "dependencies": needs,
    }
    number = uuid5(NAMESPACE_URL, json.dumps(body, sort_keys=True))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{number}", "version": 1}
    return head | body


def _component(one: Component, kind: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": kind,
        "bom-ref": one.purl,
        "name": one.name,
        "version": one.version,
        "purl": one.purl,
    }
    if one.licence:
        made["licenses"] = [{"expression": one.licence} if one.is_expression else {"license": {"name": one.licence}}]
    if one.home:
        made["externalReferences"] = [{"type": "website", "url": one.home}]
    return made

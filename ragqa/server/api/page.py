"""The OpenAPI document as an HTML page, without scripts and without external files."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any, Final

_STYLE: Final = (
    "body{font:16px/1.5 system-ui;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "td,th{text-align:left;padding:.15rem 1rem .15rem 0;vertical-align:top}h2{margin:2rem 0 0;font-size:1.1rem}"
)
_COUNTED: Final = {"Length": " characters", "Items": " items", "imum": ""}  # suffixes of min and max, and their units


def described(document: dict[str, Any]) -> str:
    """The page: each endpoint with its description and the fields of its request."""
    base = document["servers"][0]["url"]
    parts = [
        f"<h2><code>{method.upper()} {escape(base + path)}</code></h2><p>{escape(about.get('description', ''))}</p>"
        + _table(list(_fields(about, document)))
        for path, methods in document["paths"].items()
        for method, about in methods.items()
    ]
    title = escape(f"{document['info']['title']} {document['info']['version']} for programs")
    words = "Bodies are JSON; where people sign in, each request has <code>Authorization: Bearer KEY</code>."
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f'<h1>{title}</h1><p>{words} The same for machines: <a href="openapi.json">openapi.json</a>.</p>'
        + "".join(parts)
        + "</html>"
    )


def _fields(about: dict[str, Any], document: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Name, place and kind of each field of a request."""
    for one in about.get("parameters", ()):
        yield one["name"], one["in"], _kind(one["schema"], needed=one.get("required", False))
    for one in about.get("requestBody", {}).get("content", {}).values():
        body = document["components"]["schemas"][one["schema"]["$ref"].rpartition("/")[2]]
        for name, schema in body["properties"].items():
            yield name, "body", _kind(schema, needed=name in body.get("required", ()))


def _kind(schema: dict[str, Any], *, needed: bool) -> str:
    kinds = [one.get("type", "object") for one in schema.get("anyOf", (schema,))]
    kind = f"{kinds[0]} of {schema['items'].get('type', 'object')}" if "items" in schema else " or ".join(kinds)
    bounds = [
        f"{schema.get('min' + name, 0):,} to {schema['max' + name]:,}{unit}"
        for name, unit in _COUNTED.items()
        if "max" + name in schema
    ]
    return ", ".join([kind, *bounds, *(["needed"] if needed else [])])


def _table(rows: list[tuple[str, str, str]]) -> str:
    cells = "".join(
        f"<tr><td><code>{escape(name)}</code><td>{escape(place)}<td>{escape(kind)}" for name, place, kind in rows
    )
    return f"<table><tr><th>field<th>in<th>what{cells}</table>" if rows else ""

"""`ragqa mcp`: the tools of `ragqa.server.api` for an assistant that starts this program."""

from __future__ import annotations

from ragqa.errors import ConfigError


def mcp() -> None:
    """Serve ragqa's tools to an assistant over standard input and output (MCP). Needs the extra `mcp`."""
    try:
        from ragqa.server.api.tools import tools_server
    except ImportError as error:
        raise ConfigError(f"expected the package mcp, found none ({error}); install ragqa[mcp]") from error
    from ragqa.server.api.local import LocalBackend

    tools_server(LocalBackend()).run("stdio")

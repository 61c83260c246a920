"""`ragqa serve`, and `ragqa` alone: the page, from wherever ragqa is installed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

# app.py; Streamlit looks for its settings beside the script
APPLICATION: Final = Path(__file__).parents[1] / "ui" / "served" / "app.py"
_ANY: Final = {"0.0.0.0", "::"}  # noqa: S104 - compared with, not bound to


def serve(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the page.")] = 8501,
    address: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for others too.")] = "localhost",
    host: Annotated[
        list[str] | None,
        typer.Option(help="Host name by which others open the page; repeatable."),
    ] = None,
) -> None:
    """Open the page, in a browser on this machine or for others."""
    names = [name for name in (*(host or ()), address, "localhost") if name not in _ANY]
    options = ["--server.port", str(port), "--server.address", address, "--browser.serverAddress", names[0]]
    for name in dict.fromkeys([*names, "127.0.0.1", "::1"]):
        options += ["--server.allowedHosts", name]
    shown = f"[{names[0]}]" if ":" in names[0] else names[0]
    typer.echo(f"The page: http://{shown}:{port} (Ctrl-C ends it)", err=True)
    # -P: a streamlit.py of the folder in which ragqa is called is not run; a checkout may be that folder
    safe = [] if Path.cwd() == APPLICATION.parents[3] else ["-P"]
    os.execv(sys.executable, [sys.executable, *safe, "-m", "streamlit", "run", str(APPLICATION), *options])  # noqa: S606

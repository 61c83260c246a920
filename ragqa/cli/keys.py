"""`ragqa keys make | list | revoke`: keys for programs that use a server where people sign in."""

from __future__ import annotations

from typing import Annotated

import typer

from ragqa.server.access.audit import audit_log
from ragqa.server.access.policy import Act, Role
from ragqa.server.api.keys import KeyStore
from ragqa.settings.paths import Paths

app = typer.Typer(help="Keys for programs that use the server.", no_args_is_help=True)


@app.command()
def make(
    person: Annotated[str, typer.Argument(help="Person for whom the key acts: an e-mail address, or issuer|subject.")],
    role: Annotated[str, typer.Option(help="reader, analyst, curator or administrator.")] = "analyst",
    group: Annotated[list[str] | None, typer.Option(help="Group whose corpora the key may read; repeatable.")] = None,
) -> None:
    """Make a key; its secret is printed once and kept nowhere."""
    chosen = Role.__members__.get(role.upper(), Role.NONE)
    key, secret = KeyStore(Paths.from_env().home).make(person, chosen, tuple(group or ()))
    _log(key.id, key.person, f"made, {key.role}")
    typer.echo(f"key {key.id} for {key.person}, {key.role}")
    typer.echo(secret)


@app.command(name="list")
def list_keys() -> None:
    """List the keys, without their secrets."""
    for key in KeyStore(Paths.from_env().home).entries():
        state = f"revoked {key.revoked}" if key.revoked else "valid"
        typer.echo(f"{key.id}  {key.person}  {key.role}  {','.join(key.groups) or '-'}  made {key.created}  {state}")


@app.command()
def revoke(key_id: Annotated[str, typer.Argument(help="Key id, as listed by `ragqa keys list`.")]) -> None:
    """End a key at once."""
    key = KeyStore(Paths.from_env().home).revoke(key_id)
    _log(key.id, key.person, "revoked")
    typer.echo(f"key {key.id} of {key.person}: revoked")


def _log(key_id: str, person: str, what: str) -> None:
    audit_log(Paths.from_env().home).append(Act.KEY, "command line", key=key_id, person=person, what=what)

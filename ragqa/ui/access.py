"""The person at the page: sign-in by Streamlit's OpenID Connect, and the `Gate` that the whole page asks."""

from __future__ import annotations

import ipaddress
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import streamlit as st
from starlette.datastructures import Headers

from ragqa.errors import AccessError, ConfigError, RagqaError
from ragqa.infra import logs
from ragqa.server.access.audit import audit_log
from ragqa.server.access.gate import Gate
from ragqa.server.access.policy import NOBODY, Act, Policy, Role, read_policy
from ragqa.server.api.keys import KeyStore
from ragqa.settings.paths import Paths
from ragqa.ui.html.library import plain_markdown
from ragqa.ui.html.render import notice_html

_logger = logging.getLogger(__name__)
_P = ParamSpec("_P")
_T = TypeVar("_T")

_ACTING: ContextVar[Gate | None] = ContextVar("ragqa_gate", default=None)  # the gate of a thread without a session
_WHO = "who"  # the person and rights that a session was opened with
UNGUARDED = (
    "RAGQA_ACCESS is off, and this page is served to other addresses: whoever reaches it may do everything, "
    "and nothing is logged."
)
_seen: set[str] = set()  # sign-ins that were logged
_ended: set[str] = set()  # sign-ins that were ended by signing out, so that a copied cookie is useless


def is_guarded() -> bool:
    """Whether people have to sign in: as RAGQA_ACCESS says, else on any address that other machines can reach."""
    switch = os.environ.get("RAGQA_ACCESS", "").strip().lower()
    if switch not in {"", "on", "off"}:
        msg = f"RAGQA_ACCESS: expected on or off, found {switch[:20]!r}; correct it and start again"
        raise ConfigError(msg)
    return switch == "on" or (switch != "off" and _is_served_to_others())


def is_open_to_all() -> bool:
    """Whether sign-in was switched off explicitly: RAGQA_ACCESS=off."""
    return os.environ.get("RAGQA_ACCESS", "").strip().lower() == "off"


def serves_programs() -> bool:
    """Whether /v1 is served: as RAGQA_API says, else only to this machine and without sign-in. Raises ConfigError."""
    switch = os.environ.get("RAGQA_API", "").strip().lower()
    if switch not in {"", "on", "off"}:
        msg = f"RAGQA_API: expected on or off, found {switch[:20]!r}; correct it and start again"
        raise ConfigError(msg)
    return switch == "on" or (switch == "" and not is_guarded() and not _is_served_to_others())


def gate_of_key(headers: Headers) -> Gate:
    """The gate of the owner of a request's key; an open gate without sign-in. Raises AccessError, ConfigError."""
    if not is_guarded():
        return Gate()
    policy, audit = _policy(), audit_log(Paths.from_env().home)
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    try:
        person = KeyStore(Paths.from_env().home).person(secret.strip() if scheme.lower() == "bearer" else "")
    except AccessError:
        Gate(NOBODY, policy, audit).log(Act.REFUSAL, wanted=Act.KEY)
        raise
    return Gate(person, policy, audit)


def gate() -> Gate:
    """The gate of this session's person; made anew each time, so that a changed policy takes effect at once."""
    acting = _ACTING.get()
    if acting:
        return acting
    if not is_guarded():
        return Gate()
    return gate_of(_claims())


@contextmanager
def told() -> Iterator[None]:
    """Around `Gate.doing` in a callback: tells a failure in a toast, because Streamlit would show its traceback."""
    try:
        yield
    except RagqaError as error:
        st.toast(plain_markdown(str(error)))


def gate_of(claims: dict[str, Any]) -> Gate:
    """The gate of the person with these claims. Raises ConfigError."""
    policy = _policy()
    person = None if _sign_in(claims) in _ended else policy.person(claims, time.time())
    return Gate(person or NOBODY, policy, audit_log(Paths.from_env().home))


@contextmanager
def acting(as_: Gate) -> Iterator[None]:
    """Within the block `gate` gives this gate: for threads, which have no session."""
    token = _ACTING.set(as_)
    try:
        yield
    finally:
        _ACTING.reset(token)


def bound(do: Callable[_P, _T]) -> Callable[_P, _T]:
    """``do`` for use in another thread, on behalf of the person who is at the page now."""
    now = gate()

    def as_now(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        with acting(now):
            return do(*args, **kwargs)

    return as_now


def enter() -> bool:
    """Whether the page may be drawn; else it draws the sign-in or the reason. Call it before anything is drawn."""
    try:
        logs.set_up()
        if not is_guarded():
            if _is_served_to_others():
                _warn_once()
                st.html(notice_html(UNGUARDED, "bad"))
            return True
        found = gate()
    except RagqaError as error:  # with an unreadable policy nobody has access
        _logger.error("%s", error)
        st.html(notice_html("Access is denied: the server's log says what is wrong with its settings.", "bad"))
        return False
    person = found.person
    opened = repr((person, sorted(found.policy.hidden(person))))
    if st.session_state.get(_WHO, opened) != opened:  # the person or their rights have changed in this session
        st.session_state.clear()
    st.session_state[_WHO] = opened
    if person.id and _sign_in(_claims()) not in _seen:
        _seen.add(_sign_in(_claims()))
        found.log(Act.SIGN_IN, role=person.role.name.lower())
    if not person.id:
        _draw_sign_in()
    elif person.role is Role.NONE:
        words = f"You are signed in as {person.name}, and have no role here; ask an administrator for one."
        st.html(notice_html(words, "mixed"))
        _draw_sign_out(found)
    else:
        _draw_sign_out(found)
        return True
    return False


def check_settings() -> None:
    """Raises ConfigError where the policy cannot be read, because then nobody would have access."""
    if is_guarded():
        _policy()


def _policy() -> Policy:
    path = os.environ.get("RAGQA_ACCESS_FILE", "")
    if not path:
        return Policy()
    policy = read_policy(Path(path).expanduser())
    policy.check_issuers(len(_providers()), path)
    return policy


def _claims() -> dict[str, Any]:
    return dict(st.user.to_dict())


def _sign_in(claims: dict[str, Any]) -> str:
    """A key that identifies one sign-in."""
    return "|".join(str(claims.get(name, "")) for name in ("iss", "sub", "iat", "nonce"))


def _is_served_to_others() -> bool:
    address = str(st.get_option("server.address") or "")
    try:
        return address != "localhost" and not ipaddress.ip_address(address).is_loopback
    except ValueError:
        return True  # a host name, or all addresses


@cache
def _warn_once() -> None:
    _logger.warning(UNGUARDED)


def _providers() -> list[str | None]:
    """The providers in ``[auth]`` of secrets.toml; None stands for one without a name."""
    try:
        told: dict[str, Any] = st.secrets.get("auth", {})
    except FileNotFoundError:
        return []
    named: list[str | None] = [name for name, one in told.items() if hasattr(one, "get") and one.get("client_id")]
    return [None, *named] if told.get("client_id") else named


def _draw_sign_in() -> None:
    st.html('<div class="rq-brand"><h1>ragqa</h1><p>Sign in to ask, to check and to read.</p></div>')
    providers = _providers()
    if not providers:
        words = (
            "This page asks people to sign in, and cannot: expected [auth] in .streamlit/secrets.toml with a provider "
            "of OpenID Connect, found none. See ragqa/server/access/README.md; RAGQA_ACCESS=off gives everybody access."
        )
        st.html(notice_html(words, "bad"))
    if _claims().get("is_logged_in"):
        st.html(notice_html("Your sign-in has ended. Sign in again to go on.", "mixed"))
    for name in providers:
        words = f"Sign in with {name}" if name else "Sign in"
        st.button(words, key=f"sign_in_{name or ''}", type="primary", on_click=st.login, args=(name,))


def _draw_sign_out(found: Gate) -> None:
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center", key="signed_in"):
        st.text(f"{found.person.name}, {found.person.role.name.lower()}", width="content")
        st.button("Sign out", key="sign_out", type="tertiary", on_click=_sign_out, args=(found,))


def _sign_out(found: Gate) -> None:
    found.log(Act.SIGN_OUT)
    _ended.add(_sign_in(_claims()))
    st.session_state.clear()
    st.logout()

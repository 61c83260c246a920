"""A real sign-in at a real provider of OpenID Connect on this machine, and cookies that somebody tampered with."""

import json
import re
import subprocess
import sys
import time
from importlib.util import find_spec

import pytest

from ragqa.server.access.audit import AuditLog
from tests.support.guarded import POLICY, SECRET, served, signed
from tests.support.lying_provider import LyingProvider, with_other_claims, without_signature
from tests.support.server import free_port, wait_until_healthy
from tests.support.visitor import Visitor

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not (find_spec("authlib") and find_spec("oidc_provider_mock")), reason="no OpenID: pip install -e .[dev]"
    ),
]


@pytest.fixture(scope="module")
def provider():
    """A provider in a process of its own: its library is deprecated in parts, and says so as it works."""
    port = free_port()
    command = [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", str(port)]
    for name in ("ann", "carl", "mallory", "eve"):
        said = {"sub": name, "email": f"{name}@example.org", "email_verified": name != "mallory"}
        command += ["--user-claims", json.dumps(said)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://localhost:{port}"
    try:
        wait_until_healthy(address, process, path="/.well-known/openid-configuration")
        yield address
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture(scope="module")
def site(provider, tmp_path_factory):
    with served(provider, tmp_path_factory.mktemp("home")) as found:
        yield found


@pytest.fixture
def visitor(site):
    made = Visitor(site[0])
    yield made
    made.close()


def acts(site):
    return [(one["act"], one.get("email", "")) for one in AuditLog(site[1] / "audit").entries()]


def test_nobody_sees_more_than_the_way_in(visitor):
    for page, query in (("", ""), ("read", "corpus=rulebook"), ("library", ""), ("ask", "q=Who%3F"), ("evaluate", "")):
        with visitor.opened(page, query) as session:
            assert set(session.widgets) == {"sign_in_"}
            assert "rulebook" not in session.text


def test_signing_in_and_out_through_the_provider(visitor, site):
    visitor.sign_in("ann")
    copied = visitor.cookies
    with visitor.opened("read", "corpus=rulebook") as session:
        assert "ann@example.org, analyst" in session.text
        assert "rulebook" in session.text
        session.press("sign_out")
    assert acts(site)[-2:] == [("sign-in", "ann@example.org"), ("sign-out", "ann@example.org")]
    with visitor.opened("read", "corpus=rulebook", copied) as session:  # by then the browser has deleted it
        assert set(session.widgets) == {"sign_in_"}


@pytest.mark.parametrize("name", ["eve", "mallory"])
def test_who_has_no_role_or_an_address_nobody_verified_sees_nothing(visitor, site, name):
    visitor.sign_in(name)
    with visitor.opened("read", "corpus=rulebook") as session:
        assert "have no role here" in session.text
        assert set(session.widgets) == {"signed_in", "sign_out"}


def changed(text, place):
    return text[:place] + ("A" if text[place] != "A" else "B") + text[place:][1:]


def tampered(cookie, claims):
    """Cookies that must open nothing, by what was done to them."""
    return {
        "cut short": cookie[:-4],
        "a character of the signature": changed(cookie, -12),
        "a character of the claims": changed(cookie, 20),
        "empty": "",
        "claims without a signature": json.dumps(claims),
        "signed by another secret": signed(claims, "another secret that is as long as the first one"),
        "signed, of another site": signed({**claims, "origin": "http://example.org"}),
        "signed, expired": signed({**claims, "iat": time.time() - 13 * 3600}),
        "signed, not signed in": signed({**claims, "is_logged_in": False}),
        "signed, nobody": signed({"origin": claims["origin"], "is_logged_in": True}),
    }


def test_cookies_that_were_tampered_with_open_nothing(visitor, site):
    visitor.sign_in("carl")
    claims = {
        "is_logged_in": True,
        "origin": site[0],
        "iss": "https://id",
        "sub": "x",
        "iat": time.time(),
        "email": "carl@example.org",
        "email_verified": True,
    }
    with visitor.opened("library", "", {**visitor.cookies, "_streamlit_user": signed(claims)}) as session:
        assert "library_title" in session.widgets  # what the secret signs is believed
    for how, cookie in tampered(visitor.cookies["_streamlit_user"], claims).items():
        with visitor.opened("library", "", {**visitor.cookies, "_streamlit_user": cookie}) as session:
            assert set(session.widgets) == {"sign_in_"}, how
    without = {name: value for name, value in visitor.cookies.items() if name != "_streamlit_xsrf"}
    with visitor.opened("library", "", without) as session:
        assert set(session.widgets) == {"sign_in_"}


@pytest.fixture(scope="module")
def liar(tmp_path_factory):
    """A provider whose tokens a test makes, and the address of a server that asks it."""
    with LyingProvider() as provider, served(provider.issuer, tmp_path_factory.mktemp("home")) as (address, _):
        yield provider, address


LIES = {
    "expired": {"change": lambda told: {**told, "iat": told["iat"] - 7200, "exp": told["exp"] - 3600}},
    "without an end": {"change": lambda told: {name: value for name, value in told.items() if name != "exp"}},
    "of the future": {"change": lambda told: {**told, "iat": told["iat"] + 3600, "exp": told["exp"] + 3600}},
    "for another client": {"change": lambda told: {**told, "aud": "another"}},
    "of another issuer": {"change": lambda told: {**told, "iss": "http://example.org"}},
    "of another sign-in": {"change": lambda told: {**told, "nonce": "another"}},
    "without a subject": {"change": lambda told: {**told, "sub": ""}},
    "signed by another key": {"by_another_key": True},
    "with another signature": {"spoil": lambda token: changed(token, -30)},
    "without a signature": {"spoil": without_signature},
    "with other claims": {"spoil": with_other_claims},
    "no token": {"spoil": lambda token: "a.b.c"},
}


@pytest.mark.parametrize("how", ["true", *LIES])
def test_a_token_that_is_expired_altered_or_for_another_opens_nothing(liar, how):
    provider, address = liar
    truth = {"change": dict, "spoil": str, "by_another_key": False}
    for name, value in (truth | LIES.get(how, {})).items():
        setattr(provider, name, value)
    visitor = Visitor(address)
    try:
        with visitor.opened() as session:
            session.press("sign_in_")
            assert visitor.http.get(session.redirect).status_code == 200
        with visitor.opened("read", "corpus=rulebook") as session:
            assert (set(session.widgets) != {"sign_in_"}) == (how == "true"), how
    finally:
        visitor.close()


def test_a_code_of_another_sign_in_is_not_taken(visitor, site):
    came = visitor.http.get("/oauth2callback", params={"code": "guessed", "state": "guessed"})
    assert came.status_code == 200
    assert "_streamlit_user" not in visitor.cookies


def test_each_role_has_its_pages(visitor, site):
    visitor.sign_in("carl")
    with visitor.opened() as session:
        assert pages_of(session) >= {"check", "sweep", "library", "read"}
        assert not pages_of(session) & {"evaluate", "audit"}
    (site[1] / "access.toml").write_text(POLICY.replace('"curator"', '"reader"'))
    with visitor.opened() as session:
        assert pages_of(session) == {"compare", "gaps", "read", "records", "register"}
        assert "Choose" in session.text or "read_corpus" in session.widgets
    (site[1] / "access.toml").write_text(POLICY.replace('"curator"', '"administrator"'))
    AuditLog(site[1] / "audit").append("question", "cli:ann")  # beside the sign-in: more than one entry
    with visitor.opened("audit") as session:
        assert pages_of(session) >= {"evaluate", "audit"}
        assert "entries, whole" in session.text
    (site[1] / "access.toml").write_text(POLICY)


def pages_of(session):
    return set(re.findall(r'url_pathname: "([^"]*)"', session.text))


def test_forged_messages_of_somebody_signed_in_do_nothing(visitor, site):
    """Widgets of pages that are not theirs, values no list offers, buttons that were not drawn."""
    other = Visitor(site[0])
    other.sign_in("carl")
    with other.opened("library") as session:
        known = dict(session.widgets)
    other.close()
    visitor.sign_in("ann")
    with visitor.opened("library") as session:
        assert "library_title" not in session.widgets
        known.pop("sign_out")
        for name in known.values():
            session.run(**{name: ("trigger_value", True)})
            session.run(**{name: ("string_value", "../../etc/passwd")})
        assert "library_title" not in session.widgets
    assert not (site[1] / "library").exists()
    with visitor.opened("read") as session:
        came = session.run(**{session.widgets["read_corpus"]: ("string_value", "../../etc")})
        assert "Traceback" not in came
    assert AuditLog(site[1] / "audit").verify().broken is None
    log = (site[1] / "server.log").read_text() + (site[1] / "audit" / "audit.jsonl").read_text()
    assert SECRET not in log

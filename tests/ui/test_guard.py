"""Who reaches the page's server at all: hosts and origins."""

import socket
import time
from contextlib import contextmanager
from threading import Thread

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from ragqa.ui import access, serving
from ragqa.ui.guard import Guard, _refused, is_allowed
from tests.support.raw import handshake, sent
from tests.support.server import running_app

LOCAL = ("localhost", "127.0.0.1", "::1")
ELSEWHERE = ("evil.example", "evil.example:8501", "localhost.evil.example", "127.0.0.1.evil.example:80", "0.0.0.0", "")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8501", "127.0.0.1:1", "[::1]:8501", "localhost."])
def test_a_host_of_the_list_is_let_in_at_any_port(host):
    assert is_allowed(host, LOCAL)


@pytest.mark.parametrize(
    "host", [*ELSEWHERE, "localhost@evil.example", "localhost/x", "localhost:port", "localhost:99999", "[::1", "a b"]
)
def test_any_other_host_is_not(host):
    assert not is_allowed(host, LOCAL)


def test_a_star_stands_for_what_is_below_a_name():
    assert is_allowed("a.example.org:443", ("*.example.org",))
    assert not is_allowed("example.org", ("*.example.org",))
    assert not is_allowed("aexample.org", ("*.example.org",))
    assert is_allowed("whatever", ("*",))
    assert not is_allowed("", ("*",))


@pytest.mark.long
@pytest.mark.parametrize("host", ["evil.example", "evil.example:8501"])
def test_a_site_whose_name_was_pointed_here_reads_and_opens_nothing(address, host):
    assert handshake(address, host, Origin=f"http://{host}") == 403
    for path in ("/", "/_stcore/health", "/_stcore/host-config", "/metrics", "/media/x.pdf", "/static/x.js"):
        status, said = sent(address, path, host=host)
        assert status == 403, path
        assert "make serve HOSTS" in said
    for path in ("/healthz", "/readyz"):
        assert sent(address, path, host=host)[0] in {200, 503}


@pytest.mark.long
def test_the_page_itself_is_opened(address):
    own = address.removeprefix("http://")
    assert handshake(address, Origin=address) == 101
    assert handshake(address) == 101  # a client that is no browser
    assert sent(address, "/", host=own.replace("127.0.0.1", "localhost"))[0] == 200


@contextmanager
def silent_proxy():
    """The address of a proxy that answers nothing, and how often it was asked."""
    asked = []

    def listen(listener):
        while True:
            try:
                asked.append(listener.accept()[0])
            except OSError:
                return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=listen, args=(listener,), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
        listener.shutdown(socket.SHUT_RDWR)
    for one in asked:
        one.close()


@pytest.mark.long
def test_a_foreign_origin_holds_nobody_up_and_has_nobody_outside_asked(tmp_path):
    with silent_proxy() as (proxy, asked):
        every = dict.fromkeys(("http_proxy", "https_proxy"), proxy)
        with running_app(tmp_path, options=("--server.address", "0.0.0.0"), **every) as address:
            assert not asked  # for a greeting that says how the machine is reached
            longest = 0.0
            waits = Thread(target=lambda: [handshake(address, Origin="http://evil.example") for _ in range(2)])
            waits.start()
            while waits.is_alive():
                began = time.monotonic()
                sent(address, "/_stcore/health")
                longest = max(longest, time.monotonic() - began)
            assert not asked
            assert longest < 0.9
            for foreign in ("http://evil.example", "null", "", address + ":1", "http://localhost:3000"):
                assert handshake(address, Origin=foreign) == 403, foreign


@pytest.mark.long
def test_another_site_changes_nothing(address):
    for method in ("PUT", "POST", "DELETE"):
        status, said = sent(address, "/_stcore/upload_file/a/b", method=method, Origin="http://evil.example")
        assert status == 403
        assert "evil.example" in said
    assert sent(address, "/_stcore/health", Origin="http://evil.example")[0] == 200


@pytest.fixture
def site(monkeypatch):
    """A server of this machine behind the guard, as far as its headers and routes go."""
    for name in ("RAGQA_ACCESS", "RAGQA_METRICS_TOKEN", "RAGQA_ACCESS_FILE"):
        monkeypatch.delenv(name, raising=False)
    metrics = Route("/_stcore/metrics", lambda _: PlainTextResponse("figures"))
    monkeypatch.setattr(access, "_is_served_to_others", lambda: False)
    return TestClient(Guard(Starlette(routes=[*serving.routes(), metrics])), base_url="http://localhost")


def test_nothing_may_be_framed_guessed_at_or_loaded_from_elsewhere(site):
    for found in (site.get("/healthz"), site.get("/none"), site.get("/healthz", headers={"Host": "evil.example"})):
        policy = found.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "http" not in policy
        assert "*" not in policy
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize("name", ["X-Forwarded-For", "X-Forwarded-Proto", "Forwarded"])
def test_a_proxy_before_a_server_without_a_sign_in_is_refused_in_words(site, monkeypatch, name):
    for switch, expected in (("", 403), ("on", 401), ("off", 200)):
        monkeypatch.setenv("RAGQA_ACCESS", switch)
        assert site.get("/metrics", headers={name: "10.0.0.1"}).status_code == expected
    monkeypatch.setenv("RAGQA_ACCESS", "")
    assert "RAGQA_ACCESS=on" in site.get("/metrics", headers={name: "10.0.0.1"}).text
    assert site.get("/healthz", headers={name: "10.0.0.1"}).status_code == 200


def test_streamlits_own_figures_are_told_as_ragqas(site, monkeypatch):
    assert site.get("/_stcore/metrics").text == "figures"
    monkeypatch.setenv("RAGQA_ACCESS", "on")
    assert site.get("/_stcore/metrics").status_code == 401
    monkeypatch.setenv("RAGQA_METRICS_TOKEN", "right")
    assert site.get("/_stcore/metrics", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert site.get("/_stcore/metrics", headers={"Authorization": "Bearer right"}).text == "figures"


@pytest.mark.parametrize("path", ["/v1/models", "/v1", "/mcp"])
@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"X-Forwarded-For": "10.0.0.1"}, {"Origin": "http://evil.example"}]
)
def test_a_program_is_refused_by_a_problem_in_words(site, path, headers):
    found = site.post(path, headers=headers)
    assert (found.status_code, found.headers["content-type"]) == (403, "application/problem+json")
    assert found.json()["detail"].startswith("expected a request")
    assert found.headers["x-content-type-options"] == "nosniff"
    assert site.post("/v1x", headers=headers).headers["content-type"].startswith("text/plain")


def test_a_server_whose_policy_is_missing_is_not_ready(site, monkeypatch, tmp_path):
    monkeypatch.setenv("RAGQA_ACCESS", "on")
    monkeypatch.setenv("RAGQA_ACCESS_FILE", str(tmp_path / "none.toml"))
    found = site.get("/readyz")
    assert (found.status_code, found.text) == (503, "not ready: the settings, see the log\n")


def test_a_refusal_needs_no_slash_in_the_path():
    assert _refused("*", 403, "no").status_code == 403
    assert _refused("/v1/ask", 403, "no").media_type == "application/problem+json"

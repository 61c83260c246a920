"""Who reaches the page's server at all: hosts and origins."""

import socket
import time
from contextlib import contextmanager
from threading import Thread

import pytest

from ragqa.ui.guard import is_allowed
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

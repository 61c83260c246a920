"""Who reaches the page's server at all: hosts and origins."""

import pytest

from ragqa.ui.guard import is_allowed
from tests.support.raw import handshake, sent

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

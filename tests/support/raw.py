"""Requests as no browser and no library would send them."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit


def sent(
    address: str, path: str, *, method: str = "GET", body: bytes = b"", host: str = "", **headers: str
) -> tuple[int, str]:
    """Status and text of the answer to a request for ``host``; `_` in a header's name stands for `-`."""
    place = urlsplit(address)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in {"Host": host or place.netloc, **headers}.items():
            connection.putheader(name.replace("_", "-"), value)
        if body:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body or None)
        reply = connection.getresponse()
        return reply.status, "" if reply.status == 101 else reply.read().decode("utf-8", "replace")
    finally:
        connection.close()


def handshake(address: str, host: str = "", **headers: str) -> int:
    """The status that a websocket to the page is answered with: 101 where it is opened."""
    wanted = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec_WebSocket_Key": "c2l4dGVlbiBieXRlcyAhIQ==",
        "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Protocol": "streamlit",
    }
    return sent(address, "/_stcore/stream", host=host, **wanted, **headers)[0]

"""Files that browsers send: from whom they are taken, and how many are held."""

import time
from types import SimpleNamespace

import pytest
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from ragqa.ui import uploads
from tests.support.guarded import signed
from tests.support.raw import handshake, sent
from tests.support.server import running_app
from tests.support.visitor import Visitor

MB = bytes(2**20)


def upload(session="a", length=2**20, **headers):
    told = {"content-length": str(length), **headers}
    raw = [(name.encode(), value.encode()) for name, value in told.items()]
    return {"type": "http", "method": "PUT", "path": f"/_stcore/upload_file/{session}/1", "headers": raw}


@pytest.fixture
def manager(monkeypatch):
    made = MemoryUploadedFileManager("/_stcore/upload_file")
    monkeypatch.setattr(uploads, "_manager", lambda: made)
    monkeypatch.setattr(uploads.Runtime, "exists", lambda: True)
    monkeypatch.setenv("RAGQA_ACCESS", "off")
    monkeypatch.setenv("RAGQA_UPLOADS_MB", "3")
    return made


def put(manager, session, name, content=MB):
    manager.add_file(session, UploadedFileRec(name, name, "text/plain", content))


def test_what_is_held_and_on_its_way_counts_for_session_and_server(manager, monkeypatch):
    found = uploads.Uploads()
    assert found.refusal(upload()) == (0, "")
    put(manager, "a", "1")
    with found.arriving(upload()):
        assert found.refusal(upload()) == (0, "")
        assert found.refusal(upload(length=2**20 + 1))[0] == 413
        assert found.refusal(upload("b"))[0] == 0
        assert found.refusal(upload("b", 2**20 + 1))[0] == 503
    assert found.refusal(upload("b", 2**20 + 1))[0] == 0
    monkeypatch.setattr(uploads, "SESSION_FILES", 1)
    assert "1 files" in found.refusal(upload())[1]


@pytest.mark.parametrize("length", ["", "-1", "x", "1e3", "9" * 13])
def test_a_file_without_a_length_is_not_taken(manager, length):
    assert uploads.Uploads().refusal(upload(length=length))[0] == 411


def test_files_that_nobody_took_go_after_half_an_hour(manager):
    found = uploads.Uploads()
    put(manager, "a", "old")
    assert found.drop_idle(0.0) == 0
    put(manager, "a", "new")
    assert found.drop_idle(1_000.0) == 0
    assert found.drop_idle(uploads.IDLE_SECONDS + 1) == 1
    assert list(manager.file_storage["a"]) == ["new"]


def test_a_page_lets_go_of_what_it_took(manager, monkeypatch):
    put(manager, "a", "1")
    monkeypatch.setattr(uploads, "get_script_run_ctx", lambda: SimpleNamespace(session_id="a"))
    with uploads.used_once([SimpleNamespace(file_id="1")]):
        assert manager.file_storage["a"]
    assert not manager.file_storage["a"]


@pytest.mark.long
def test_nobody_uploads_before_signing_in(guarded):
    visitor = Visitor(guarded)
    with visitor.opened() as session:
        statuses = [session.send_file("a.pdf", 20 * MB)[0] for _ in range(6)]
        assert statuses == [403] * 6
        claims = {"is_logged_in": True, "origin": guarded, "iss": "i", "sub": "s", "iat": time.time()}
        claims |= {"email": "carl@example.org", "email_verified": True}
        for changes, expected in (
            ({}, 204),
            ({"iat": time.time() - 13 * 3600}, 403),
            ({"email": "eve@example.org"}, 403),
            ({"is_logged_in": False}, 403),
        ):
            cookie = {**visitor.cookies, "_streamlit_user": signed({**claims, **changes})}
            assert session.send_file("a.pdf", MB, cookie)[0] == expected, changes
        forged = {**visitor.cookies, "_streamlit_user": signed(claims, "another secret of the same length as it")}
        assert session.send_file("a.pdf", MB, forged)[0] == 403
    visitor.close()


@pytest.mark.long
def test_a_session_holds_so_much_and_an_address_so_many_pages(tmp_path):
    with running_app(tmp_path, RAGQA_UPLOADS_MB="50", RAGQA_SESSIONS_PER_ADDRESS="3") as address:
        visitor = Visitor(address)
        with visitor.opened() as session:
            assert [session.send_file("a.pdf", 20 * MB)[0] for _ in range(6)] == [204, 204, 413, 413, 413, 413]
            with visitor.opened(), visitor.opened():
                assert handshake(address) == 403
        until = time.monotonic() + 20
        while handshake(address) == 403:
            assert time.monotonic() < until
            time.sleep(0.1)
        assert sent(address, "/healthz")[0] == 200
        visitor.close()

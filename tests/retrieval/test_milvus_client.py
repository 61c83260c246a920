"""What the client of Milvus says of a server's own words."""

import pytest

from ragqa.errors import IndexingError
from ragqa.retrieval.milvus.client import Milvus

pymilvus = pytest.importorskip("pymilvus")


def test_the_servers_words_are_one_line_without_the_token(monkeypatch):
    class Client:
        def __init__(self, **given):
            raise pymilvus.MilvusException(message=f"no \x1b[31muser\n{given['token']}")

    monkeypatch.setattr(pymilvus, "MilvusClient", Client)
    monkeypatch.setenv("RAGQA_MILVUS_TOKEN", "root:s3cret")
    with pytest.raises(IndexingError) as found:
        Milvus("http://127.0.0.1:19530", "").check("Flat")
    assert "does not answer: no [31muser [key]; see that" in str(found.value)

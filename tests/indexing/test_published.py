"""An index whose corpus is in Milvus: the same answers as from its folder, and what a server that goes away leaves."""

import pytest

import ragqa.retrieval.milvus
from ragqa.config import IndexingConfig, RetrievalConfig
from ragqa.errors import ConfigError, IndexingError
from ragqa.indexing import build_index, delete_index, open_index, verify_index
from ragqa.indexing.published import publish_events
from ragqa.manifest import PASSAGES
from ragqa.retrieval import retrievers_for
from ragqa.retrieval.milvus import Milvus, check_address, row_of
from ragqa.streams import returned
from tests.support.fakes import FakeEncoder, passage

pytestmark = pytest.mark.long
QUESTIONS = ("When must a bank report a loss?", "Records of the branch", "a a a", "nothing of this")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    for number in range(12):
        lines = [f"Branch {number} must report loss {n} to bank {n % 3} in writing; é{n}." for n in range(number + 2)]
        (folder / f"{number}.md").write_text(f"# Rules {number}\n\n" + "\n\n".join(lines) + "\n")
    (folder / "long.md").write_text("# Long\n\n" + "reportable " * 12_000 + "\n")
    return folder


@pytest.fixture
def indexes(tmp_path, source):
    config = IndexingConfig(chunk_max_tokens=20_000)
    build_index("demo", source, indexes=tmp_path, config=config, encoder=FakeEncoder(), format="text")
    return tmp_path


def publish(indexes, uri, **others):
    return returned(publish_events(open_index("demo", indexes), uri, indexes, **others))


def found(index):
    retrievers = retrievers_for(index, FakeEncoder(), RetrievalConfig())
    return [[r.retrieve(question, 7) for r in retrievers] for question in QUESTIONS]


def soon(milvus, do):
    """What it gives once the client has noticed that the server is back: it looks a little later each time."""
    for _ in range(100):
        try:
            return do()
        except IndexingError:
            milvus.wait()
    return do()


def test_it_finds_and_shows_what_the_folder_does(milvus, indexes):
    folder = open_index("demo", indexes)
    manifest = publish(indexes, milvus.uri)
    index = open_index("demo", indexes)
    assert not (index.folder / PASSAGES).exists()
    assert manifest.retrievers == folder.manifest.retrievers == ("bm25", "context", "dense")
    for ours, theirs in zip(found(folder), found(index), strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert [hit.passage for hit in one.hits] == [hit.passage for hit in other.hits]
            assert [hit.score for hit in one.hits] == pytest.approx([hit.score for hit in other.hits], rel=1e-5)
    assert tuple(index.passages) == tuple(folder.passages)
    assert index.passages[3:5] == folder.passages[3:5]
    for one in folder.passages[:4]:
        assert index.neighbours(one) == folder.neighbours(one)
        assert index.position_of[one.passage_id] == folder.position_of[one.passage_id]
    assert index.bm25s.rarities(["report", "no"]) == folder.bm25s.rarities(["report", "no"])
    assert verify_index("demo", indexes) == manifest
    document = folder.passages[5].document_id
    within = index.passages.milvus.search("dense", FakeEncoder().encode_query("loss")[0].tolist(), 9, [document])
    assert within
    assert {one.document_id for _, _, one in within} == {document}
    delete_index("demo", indexes)
    with pytest.raises(IndexingError, match="does not answer"):
        index.passages.milvus.count()


def test_a_server_that_is_killed_is_told_of_and_serves_again(milvus, indexes):
    publish(indexes, milvus.uri)
    index = open_index("demo", indexes)
    before = found(index)
    milvus.kill()
    with pytest.raises(IndexingError, match=r"Milvus at http://127.0.0.1:\d+.* does not answer"):
        found(index)
    with pytest.raises(IndexingError, match="does not answer"):
        open_index("demo", indexes)
    milvus.start()
    assert soon(milvus, lambda: found(index)) == before
    delete_index("demo", indexes)


@pytest.mark.parametrize("rebuilt", [False, True])
def test_a_server_that_is_killed_while_rows_are_written_leaves_the_index_as_it_was(
    milvus, indexes, source, rebuilt, monkeypatch
):
    monkeypatch.setattr(ragqa.retrieval.milvus, "ROWS_AT_ONCE", 5)
    engine = soon(milvus, lambda: publish(indexes, milvus.uri)).engine if rebuilt else None
    if rebuilt:
        config = IndexingConfig(chunk_max_tokens=20_000)
        build_index("demo", source, indexes=indexes, config=config, encoder=FakeEncoder(), format="text")
    index = open_index("demo", indexes)
    events = publish_events(index, milvus.uri, indexes, engine)
    while not next(events).done:
        pass
    milvus.kill()
    with pytest.raises(IndexingError, match="does not answer"):
        returned(events)
    assert found(open_index("demo", indexes)) == found(index)
    milvus.start()
    manifest = soon(milvus, lambda: publish(indexes, milvus.uri, before=engine))
    assert verify_index("demo", indexes) == manifest
    if engine:
        with pytest.raises(IndexingError, match="does not answer"):
            Milvus(engine.uri, engine.collection).count()
    delete_index("demo", indexes)


@pytest.mark.parametrize("uri", ["", "db.sqlite", "localhost:19530", "http://u:s3cret@h:1", "http://h?token=s3cret"])
def test_an_address_without_host_or_with_a_login_is_refused_and_not_repeated(uri):
    with pytest.raises(ConfigError, match="RAGQA_MILVUS_TOKEN") as told:
        check_address(uri)
    assert "s3cret" not in str(told.value)


def test_a_passage_that_is_longer_than_milvus_keeps_is_named():
    with pytest.raises(IndexingError, match=r"'1:1' has 2,000,\d+ characters.*cut it in two"):
        row_of(0, passage("1:1", "x" * 2_000_000), hidden=False, fields={})

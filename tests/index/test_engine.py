"""An index whose corpus is in Milvus: the same answers as from its folder, and what a server that goes away leaves."""

import json
import shutil
from dataclasses import asdict
from functools import partial

import numpy as np
import pytest

import ragqa.retrieval.milvus.client
from ragqa.errors import ConfigError, IndexingError, IndexMismatchError
from ragqa.fusion import fuse
from ragqa.index import build_events, delete_index, open_index, verify_index
from ragqa.index.folders import JOURNAL
from ragqa.index.manifest import PASSAGES, STARTED
from ragqa.library import parse_cache
from ragqa.library.collection import make_collection
from ragqa.library.transfer import delete, deleted, erase
from ragqa.library.update import MAX_TOKENS, index_events
from ragqa.library.upload import take
from ragqa.retrieval import rank, retrievers_for
from ragqa.retrieval.learned_ranker import ranking_features
from ragqa.retrieval.milvus.client import Milvus, check_address
from ragqa.retrieval.milvus.corpus import MilvusPassages, row_of
from ragqa.settings.config import FusionConfig, IndexingConfig, RetrievalConfig
from ragqa.types.streams import returned
from tests.support.fakes import FakeEncoder, passage
from tests.support.fuzzed import Inside

pytestmark = pytest.mark.long
QUESTIONS = (
    "When must a bank report a loss?",
    "Records of the branch",
    "a a a",
    "nothing of this",
    "ferry branch loss",
)
CONFIG = IndexingConfig(chunk_max_tokens=20_000)


def write(folder, number, n_rules, extra=""):
    rules = [f"Branch {number} must report loss {n} to bank {n % 3} in writing; é{n}{extra}." for n in range(n_rules)]
    lines = [f"## Rule {n}\n\n{rule}" for n, rule in enumerate(rules)]
    (folder / f"{number}.md").write_text(f"# Rules {number}\n\n" + "\n\n".join(lines) + "\n")


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    for number in range(12):
        write(folder, number, number + 2)
    (folder / "long.md").write_text("# Long\n\n" + "reportable " * 12_000 + "\n")
    return folder


@pytest.fixture
def build(tmp_path, source):
    """Builds the index of what is in the source now, in Milvus where an address is given."""
    options = {"config": CONFIG, "encoder": FakeEncoder(), "format": "text", "indexes": tmp_path / "indexes"}
    return lambda uri="", **others: returned(build_events("demo", source, **{**options, "uri": uri, **others}))


@pytest.fixture
def indexes(tmp_path):
    return tmp_path / "indexes"


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


def assert_same(index, folder):
    """Whatever is asked, the one in the engine answers as the one in files does; by words to the last bit."""
    for ours, theirs in zip(found(folder), found(index), strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert [hit.passage for hit in one.hits] == [hit.passage for hit in other.hits]
            scores = [hit.score for hit in one.hits]
            exact = pytest.approx(scores, rel=1e-5) if one.retriever == "dense" else scores
            assert [hit.score for hit in other.hits] == exact
    assert tuple(index.passages) == tuple(folder.passages)
    assert index.passages[3:5] == folder.passages[3:5]
    for one in folder.passages[:4]:
        assert index.neighbours(one) == folder.neighbours(one)
        assert index.position_of[one.passage_id] == folder.position_of[one.passage_id]
    assert index.bm25s.rarities(["report", "no"]) == folder.bm25s.rarities(["report", "no"])
    for question in QUESTIONS:
        hits = fuse(rank(retrievers_for(folder, FakeEncoder(), RetrievalConfig()), question, 7), FusionConfig()).hits
        features = [ranking_features(question, hits, 7, one) for one in (index, folder)]
        assert np.array_equal(*features)
    ours, theirs = (one.vectors.reconstruct_n(0, len(folder.passages)) for one in (index, folder))
    assert np.array_equal(ours, theirs)


def test_it_finds_and_shows_what_the_folder_does(milvus, build, indexes, tmp_path):
    plain = build(indexes=tmp_path / "plain")
    manifest = soon(milvus, partial(build, milvus.uri))
    index = open_index("demo", indexes)
    assert not (index.folder / PASSAGES).exists()
    assert manifest.retrievers == plain.retrievers == ("bm25", "context", "dense")
    assert_same(index, open_index("demo", tmp_path / "plain"))
    assert verify_index("demo", indexes) == manifest
    delete_index("demo", indexes)
    assert not index.passages.milvus.exists()


def test_what_a_killed_build_had_written_is_deleted_with_the_index(milvus, build, indexes):
    engine = soon(milvus, partial(build, milvus.uri)).engine
    killed = indexes / ".building-demo-1"
    killed.mkdir()
    (killed / JOURNAL).write_text("{}")
    (killed / STARTED).write_text(json.dumps(asdict(engine) | {"collection": "ragqa_killed"}))
    Milvus(milvus.uri, "ragqa_killed").create(8, "Flat", ("bm25",))
    delete_index("demo", indexes)
    assert not {engine.collection, "ragqa_killed"} & set(collections(milvus))


def test_a_collection_that_cannot_be_deleted_is_named(milvus, build, indexes, caplog):
    engine = soon(milvus, partial(build, milvus.uri)).engine
    milvus.kill()
    delete_index("demo", indexes)
    milvus.start()
    assert engine.collection in caplog.text
    soon(milvus, Milvus(engine.uri, engine.collection).drop)


def change(step, source):
    """What becomes of the documents, step by step; how many passages are new or stand beside a new one."""
    if step == "one more":
        write(source, 20, 3, " by ferry")
        return 3
    if step == "longer":
        write(source, 3, 7)
        return 2 + CONFIG.context_passages  # two more, and those that are read with them
    if step == "other words":
        write(source, 7, 9, " ferry")
        return 9
    if step == "gone":
        (source / "5.md").unlink()
        return 0
    write(source, 5, 7)  # again
    return 7


def test_an_update_sends_what_is_new_and_finds_what_an_index_built_anew_does(milvus, build, indexes, source, tmp_path):
    (source / "long.md").unlink()  # each new passage would move the average length by a twentieth
    collection = soon(milvus, partial(build, milvus.uri)).engine.collection
    before, n_rows = None, build(milvus.uri).engine.next_row
    for generation, step in enumerate(("one more", "longer", "other words", "gone", "again"), start=3):
        earlier, seen = before, open_index("demo", indexes)
        before = seen, found(seen)
        n_new = change(step, source)
        manifest = build(milvus.uri)
        assert (manifest.engine.collection, manifest.engine.generation) == (collection, generation), step
        assert manifest.engine.next_row - n_rows == n_new, step
        n_rows = manifest.engine.next_row
        plain = tmp_path / step
        build(indexes=plain)
        assert_same(open_index("demo", indexes), open_index("demo", plain))
        assert verify_index("demo", indexes) == manifest
        assert found(before[0]) == before[1], step  # one that was open goes on with what it held
        if earlier:
            earlier[0].passages._looked = float("-inf")  # it is looked after every few seconds
            with pytest.raises(IndexMismatchError, match="updated twice"):
                found(earlier[0])
    delete_index("demo", indexes)


def test_too_much_that_is_new_makes_a_collection_of_its_own(milvus, build, indexes, source, tmp_path):
    first = soon(milvus, partial(build, milvus.uri)).engine
    write(source, 30, 4, " and tell the harbour master of everything that was on board of the ferry" * 40)
    second = build(milvus.uri).engine
    assert second.collection != first.collection
    assert not Milvus(first.uri, first.collection).exists()
    build(indexes=tmp_path / "plain")
    assert_same(open_index("demo", indexes), open_index("demo", tmp_path / "plain"))
    build()
    assert open_index("demo", indexes).manifest.engine is None
    assert not Milvus(second.uri, second.collection).exists()


class CountingEncoder(FakeEncoder):
    def __init__(self):
        self.n_texts = 0

    def encode(self, texts):
        self.n_texts += len(texts)
        return super().encode(texts)


class Cut:
    """From the request of this number on, nothing comes through, whatever is tried: as where a process is killed."""

    def __init__(self, monkeypatch):
        self._ask, self.left = Milvus._ask, float("inf")
        monkeypatch.setattr(Milvus, "_ask", lambda collection, do: self(collection, do))

    def __call__(self, collection, do):
        self.left -= 1
        if self.left < 0:
            msg = "cut off"
            raise IndexingError(msg)
        return self._ask(collection, do)


def told(do):
    """What it fails with; empty where it does not."""
    try:
        do()
    except IndexingError as error:
        return str(error)
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["new", "update"])
def test_cut_off_at_any_request_it_is_the_old_one_and_goes_on(milvus, build, indexes, source, monkeypatch, kind):
    monkeypatch.setattr(ragqa.retrieval.milvus.client, "ROWS_AT_ONCE", 30 if kind == "new" else 3)
    for name in ("long", *range(6, 12)):
        (source / f"{name}.md").unlink()
    soon(milvus, partial(build, milvus.uri))
    others, cut, n_cuts = set(collections(milvus)) - {engine_in(indexes).collection}, Cut(monkeypatch), 0
    while True:
        index, engine = open_index("demo", indexes), engine_in(indexes)
        before, n_rows = found(index), len(index.passages)
        if kind == "new":
            for number in range(6):
                write(source, number, number + 2, f" {n_cuts} times")
        else:
            write(source, 4, 5 + n_cuts % 4, f" {n_cuts} times")
        cut.left = n_cuts
        said = told(partial(build, milvus.uri))
        cut.left = float("inf")
        if not said:
            break
        assert said == "cut off"
        assert found(index) == before, n_cuts
        again = open_index("demo", indexes)
        assert found(again) == before, n_cuts
        assert len(again.passages) == n_rows
        build(milvus.uri)
        assert verify_index("demo", indexes).n_passages == len(open_index("demo", indexes).passages)
        n_cuts += 1
    assert n_cuts >= 5
    left = set(collections(milvus)) - others - {engine_in(indexes).collection}
    assert left == ({engine.collection} if kind == "new" else set())  # what is cut off last is removing that
    delete_index("demo", indexes)


def collections(milvus):
    return Milvus(milvus.uri, "")._ask(lambda client: client.list_collections())


def engine_in(indexes):
    return open_index("demo", indexes).manifest.engine


def test_a_corpus_of_the_library_stays_in_the_engine_and_encodes_what_is_new(milvus, tmp_path):
    collection, indexes = make_collection("ferries", tmp_path / "library"), tmp_path / "indexes"
    reader = Inside()

    def put(name, text, replaces=None):
        path = tmp_path / name
        path.write_text(text)
        with path.open("rb") as data:
            take(collection, name, data, reader, replaces)
        for one in collection.read().staged:
            parse_cache.read(collection, one, reader, MAX_TOKENS)

    def index(uri=""):
        encoder = CountingEncoder()
        return soon(milvus, lambda: returned(index_events(collection, indexes, lambda: encoder, uri=uri))), encoder

    rules = "\n\n".join(f"## {n}\n\nFerry {n} must keep a record of crossings and {n} boats." for n in range(20))
    put("a.md", f"# Ferries\n\n{rules}\n")
    put("b.md", "# Boats\n\nA boat must be painted white.\n")
    first, _ = index(milvus.uri)
    put("b.md", "# Boats\n\nA boat must be painted blue.\n")
    then, encoder = index()
    assert then.engine.collection == first.engine.collection
    assert encoder.n_texts == 1
    texts = [one.text for one in open_index("ferries", indexes).passages]
    assert any("blue" in text for text in texts)
    assert not any("white" in text for text in texts)
    collection.set_removed("b", removed=True)
    last, _ = index()
    assert last.engine.next_row == then.engine.next_row
    assert not any("boat must" in one.text.lower() for one in open_index("ferries", indexes).passages)
    verify_index("ferries", indexes)
    rows = open_index("ferries", indexes).passages.milvus
    delete(collection, indexes)
    assert rows.exists()  # it can be had again
    erase(deleted(tmp_path / "library")[0].key, tmp_path / "library")
    assert not rows.exists()


def test_a_server_that_is_killed_is_told_of_and_serves_again(milvus, build, indexes):
    soon(milvus, partial(build, milvus.uri))
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


@pytest.mark.parametrize("changes", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_server_that_is_killed_while_rows_are_written_leaves_the_index_as_it_was(
    milvus, build, indexes, source, tmp_path, changes, monkeypatch
):
    monkeypatch.setattr(ragqa.retrieval.milvus.client, "ROWS_AT_ONCE", 2)
    soon(milvus, partial(build, milvus.uri) if changes else build)
    before = found(open_index("demo", indexes))
    write(source, 40, 9)
    options = {"config": CONFIG, "encoder": FakeEncoder(), "format": "text", "indexes": indexes, "uri": milvus.uri}
    events = build_events("demo", source, **options)
    while not ((step := next(events)).stage == "milvus" and step.done):
        pass
    milvus.kill()
    with pytest.raises(IndexingError, match="does not answer"):
        returned(events)
    milvus.start()
    assert soon(milvus, lambda: found(open_index("demo", indexes))) == before
    manifest = soon(milvus, partial(build, milvus.uri))
    build(indexes=tmp_path / "plain")
    assert_same(open_index("demo", indexes), open_index("demo", tmp_path / "plain"))
    assert verify_index("demo", indexes) == manifest
    delete_index("demo", indexes)


def test_rows_that_are_gone_from_the_server_are_missed(milvus, build, indexes, tmp_path):
    manifest = soon(milvus, partial(build, milvus.uri))
    index = open_index("demo", indexes)
    assert isinstance(index.passages, MilvusPassages)
    index.passages.milvus.delete([1])
    with pytest.raises(IndexMismatchError, match=r"holds 91 rows; the index has at least 92;.*ragqa index build"):
        open_index("demo", indexes)
    again = build(milvus.uri)
    assert again.engine.collection != manifest.engine.collection
    verify_index("demo", indexes)
    shutil.copytree(indexes, tmp_path / "copied")
    delete_index("demo", indexes)
    with pytest.raises(IndexingError, match="does not answer"):
        open_index("demo", tmp_path / "copied")


@pytest.mark.parametrize("uri", ["", "db.sqlite", "localhost:19530", "http://u:s3cret@h:1", "http://h?token=s3cret"])
def test_an_address_without_host_or_with_a_login_is_refused_and_not_repeated(uri):
    with pytest.raises(ConfigError, match="RAGQA_MILVUS_TOKEN") as told:
        check_address(uri)
    assert "s3cret" not in str(told.value)


def test_a_passage_that_is_longer_than_milvus_keeps_is_named():
    with pytest.raises(IndexingError, match=r"'1:1' has 2,000,\d+ characters.*cut it in two"):
        row_of(0, 1, passage("1:1", "x" * 2_000_000), hidden=False, fields={})

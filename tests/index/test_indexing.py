"""Index folders: what is in them, what is refused, and that nothing is lost whatever happens while building."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ragqa.corpus.streams import LoadedStream
from ragqa.english.words import ANALYSERS
from ragqa.errors import (
    ConfigError,
    CorpusError,
    IndexingError,
    IndexLockedError,
    IndexMismatchError,
    IndexNotFoundError,
    ModelError,
)
from ragqa.index import (
    BuildProgress,
    build_events,
    build_index,
    delete_index,
    folders,
    index_info,
    index_names,
    list_indexes,
    open_index,
    verify_index,
)
from ragqa.index import build as build_module
from ragqa.index.manifest import MANIFEST, describe_files, index_files, read_manifest, write_manifest
from ragqa.retrieval import retrievers_for
from ragqa.settings.config import IndexingConfig, RetrievalConfig
from ragqa.settings.paths import PROJECT_INDEXES, Paths
from ragqa.types import ModelInfo, Passage
from tests.support.effort import effort
from tests.support.fakes import FakeEncoder, passage

OLD = (passage("1:1", "A firm keeps records."), passage("1:2", "A firm keeps money apart."), passage("2:1", "Lakes."))
NEW = (passage("9:1", "Everything is new."), passage("9:2", "Nothing is old."))

INDEX_FILES = index_files(3)


def in_memory(passages: tuple[Passage, ...], format: str = "obliqa", sha256: str = "c" * 64) -> LoadedStream:
    return LoadedStream(format, "rows", passages, sha256)


@pytest.fixture
def corpora(monkeypatch):
    """Sources by the last part of their path; `open_stream` finds them here."""
    found = {"old": in_memory(OLD), "new": in_memory(NEW), "empty": in_memory(())}
    calls = []

    def open_stream(source, format, chunk_max_tokens):
        calls.append((source, format, chunk_max_tokens))
        return replace(found[source.name], name=source.name)

    monkeypatch.setattr("ragqa.index.build.open_stream", open_stream)
    found["calls"] = calls
    return found


@pytest.fixture
def indexes(tmp_path, corpora):
    return tmp_path / "indexes"


def build(indexes, source="old", name="demo", encoder=None, **config):
    return build_index(
        name,
        Path("somewhere") / source,
        indexes=indexes,
        config=IndexingConfig(**config),
        encoder=encoder or FakeEncoder(),
    )


def ids(index):
    return [passage.passage_id for passage in index.passages]


def hidden(indexes):
    return sorted(path.name for path in indexes.iterdir() if path.name.startswith(".") and path.suffix != ".lock")


class FailingEncoder(FakeEncoder):
    def __init__(self, error=None):
        self.error = error or ModelError("out of order")

    def encode(self, texts):
        raise self.error


class TestBuild:
    def test_manifest_says_everything(self, indexes, corpora):
        manifest = build(indexes, bm25_k1=1.5, bm25_b=0.5, chunk_max_tokens=64)
        assert manifest == index_info("demo", indexes) == open_index("demo", indexes).manifest
        assert (manifest.name, manifest.source, manifest.format) == ("demo", "old", "obliqa")
        assert manifest.corpus_sha256 == "c" * 64
        assert (manifest.n_documents, manifest.n_passages, manifest.dimension) == (2, 3, 64)
        assert (manifest.bm25_k1, manifest.bm25_b, manifest.chunk_max_tokens) == (1.5, 0.5, 64)
        assert (manifest.encoder, manifest.encoder_fingerprint, manifest.encoder_precision) == (
            "fake-encoder",
            "0" * 64,
            "fp32",
        )
        assert manifest.indexed_text == "text"
        assert manifest.analyser == ANALYSERS["regulation"]
        assert {"bm25s", "faiss-cpu", "sentence-transformers"} <= set(manifest.libraries)
        assert manifest.created.endswith("+00:00")
        assert [entry.path for entry in manifest.files] == list(INDEX_FILES)
        assert manifest.size_bytes == sum((indexes / "demo" / path).stat().st_size for path in INDEX_FILES)
        assert corpora["calls"] == [(Path("somewhere/old"), None, 64)]

    def test_nothing_else_is_left(self, indexes):
        build(indexes)
        built = {str(path.relative_to(indexes / "demo")) for path in (indexes / "demo").rglob("*") if path.is_file()}
        assert built == {*INDEX_FILES, MANIFEST}
        assert hidden(indexes) == []

    def test_passages_come_back_as_they_were(self, indexes, corpora):
        odd = (
            passage("a:1", 'Line\u2028one\u0085"two"\\\n\t\x00\x1f 😀 \u202eabc \u200e ñ'),
            Passage("a:2", "a", "text", title="Título", section="A > B", number="2.1(a)", start=3, end=9),
        )
        corpora["old"] = in_memory(odd)
        build(indexes)
        assert tuple(open_index("demo", indexes).passages) == odd

    def test_text_corpora_are_indexed_with_title_and_section(self, indexes, corpora):
        chunk = passage("a:1", "It is 1,642 metres deep.", title="Lake Baikal", section="Size")
        corpora["old"] = in_memory((chunk, passage("b:1", "Nothing.")), format="text")
        assert build(indexes).indexed_text == "title-section-text"
        index = open_index("demo", indexes)
        for backend in ("bm25s", "rank_bm25"):
            lexical, _, dense = retrievers_for(index, FakeEncoder(), RetrievalConfig(bm25_backend=backend))
            assert [hit.passage for hit in lexical.retrieve("Baikal size", 5).hits] == [chunk]
        best = dense.retrieve("Lake Baikal. Size. It is 1,642 metres deep.", 1).hits[0]
        assert best.passage == chunk
        assert best.score == pytest.approx(1.0)

    def test_equal_texts_tie_exactly_and_are_encoded_once(self, indexes, corpora):
        asked = []

        class Encoder(FakeEncoder):
            def encode(self, texts):
                asked.extend(texts)
                return super().encode(texts)

        corpora["old"] = in_memory(
            tuple(passage(name, text) for name, text in (("b", "x y"), ("c", "z"), ("a", "x y")))
        )
        build(indexes, encoder=Encoder())
        assert asked == ["x y", "z"]
        dense = retrievers_for(open_index("demo", indexes), FakeEncoder(), RetrievalConfig())[-1]
        first, second, _ = dense.retrieve("x y", 3).hits
        assert (first.passage.passage_id, second.passage.passage_id) == ("a", "b")
        assert first.score == second.score

    def test_progress_reaches_its_totals_in_order(self, indexes, corpora):
        corpora["old"] = in_memory(tuple(passage(f"{n:04}", f"text {n}") for n in range(600)))
        events = list(
            build_events("demo", Path("old"), indexes=indexes, config=IndexingConfig(), encoder=FakeEncoder())
        )
        assert list(dict.fromkeys(event.stage for event in events)) == ["corpus", "BM25", "vectors", "files"]
        assert [event for event in events if event.stage == "vectors"] == [
            BuildProgress("vectors", done, 600) for done in (0, 512, 600)
        ]
        for stage in ("corpus", "BM25", "vectors", "files"):
            done = [event.done for event in events if event.stage == stage]
            total = {event.total for event in events if event.stage == stage}
            assert done[0] == 0
            assert done == sorted(done)
            assert {done[-1]} == total

    def test_rebuilding_gives_the_same_files(self, indexes):
        one, two = build(indexes, name="one"), build(indexes, name="two")
        assert one.files == two.files
        assert replace(one, name="x", created="") == replace(two, name="x", created="")

    def test_rebuilding_replaces(self, indexes):
        build(indexes)
        build(indexes, "new")
        assert ids(open_index("demo", indexes)) == ["9:1", "9:2"]
        assert hidden(indexes) == []

    def test_a_corpus_of_stop_words(self, indexes, corpora):
        corpora["old"] = in_memory((passage("a", "the of"), passage("b", "?.")))
        build(indexes)
        lexical, _, dense = retrievers_for(open_index("demo", indexes), FakeEncoder(), RetrievalConfig())
        assert lexical.retrieve("rule", 5).hits == ()
        assert len(dense.retrieve("rule", 5).hits) == 2


class TestRefusedInput:
    @pytest.mark.parametrize(
        "name",
        ["", ".", "..", "../up", "a/b", "/abs", "Demo", "-demo", "_demo", "d\n", "dé", "a" * 65, "demo ", "a\x00", "~"],
    )
    @pytest.mark.parametrize("action", [build, open_index, index_info, verify_index, delete_index])
    def test_names(self, indexes, name, action):
        indexes.mkdir()
        with pytest.raises(ConfigError, match="expected an index name of 1 to 64"):
            action(indexes, name=name) if action is build else action(name, indexes)
        assert list(indexes.iterdir()) == []

    @pytest.mark.parametrize("name", ["a", "0", "adgm-2024_v2", "a" * 64])
    def test_good_names(self, indexes, name):
        build(indexes, name=name)
        assert open_index(name, indexes).name == name

    def test_empty_corpus(self, indexes):
        with pytest.raises(CorpusError, match="expected passages in somewhere/empty, found none"):
            build(indexes, "empty")
        assert list_indexes(indexes) == ()

    def test_two_passages_with_one_id(self, indexes, corpora):
        corpora["old"] = in_memory((*OLD, OLD[0]))
        with pytest.raises(CorpusError, match="found '1:1' twice"):
            build(indexes)

    def test_half_a_character(self, indexes, corpora):
        corpora["old"] = in_memory((passage("1:1", "bad \ud800 text"),))
        with pytest.raises(CorpusError, match="lone surrogate. in passage '1:1'"):
            build(indexes)
        assert hidden(indexes) == []

    @pytest.mark.parametrize("vectors", [np.zeros((3, 4)), np.ones((2, 4)) / 2, np.full((3, 4), np.nan)])
    def test_an_encoder_that_makes_no_unit_vectors(self, indexes, vectors):
        encoder = FakeEncoder()
        encoder.encode = lambda texts: vectors
        with pytest.raises(ModelError, match="expected 3 vectors of length 1"):
            build(indexes, encoder=encoder)

    def test_what_is_no_index_is_never_replaced_nor_deleted(self, indexes):
        (indexes / "thesis").mkdir(parents=True)
        (indexes / "thesis" / "chapter1.tex").write_text("years of work")
        (indexes / "notes").write_text("a file")
        for name in ("thesis", "notes"):
            with pytest.raises(IndexingError, match="no part of an index .* is left alone"):
                build(indexes, name=name, encoder=FailingEncoder())  # said before the minutes of encoding
        with pytest.raises(IndexingError, match="left alone"):
            delete_index("thesis", indexes)
        assert (indexes / "thesis" / "chapter1.tex").read_text() == "years of work"
        assert (indexes / "notes").read_text() == "a file"
        assert list_indexes(indexes) == ()

    def test_indexes_is_a_file(self, tmp_path, indexes):
        indexes.write_text("not a folder")
        with pytest.raises(IndexingError, match="cannot be written.*RAGQA_INDEXES"):
            build(indexes)

    def test_disk_full(self, indexes, monkeypatch):
        build(indexes)

        def full(*_):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("ragqa.index.build.write_lookups", full)
            with pytest.raises(IndexingError, match="No space left on device; make room and run the same command"):
                build(indexes, "new")
        assert ids(open_index("demo", indexes)) == ["1:1", "1:2", "2:1"]
        assert hidden(indexes) == [f".building-demo-{os.getpid()}"]
        build(indexes, "new")
        assert ids(open_index("demo", indexes)) == ["9:1", "9:2"]
        assert hidden(indexes) == []


class Crash(BaseException):
    """The process is gone: nothing after this runs, as far as the test can arrange it."""


def crash_in(monkeypatch, function, nth):
    """Makes the ``nth`` call (from 0) of a function of `os` or `shutil` raise `Crash` instead of doing its work.

    Calls count from when the new index is whole and takes its place.
    """
    module, _, attribute = function.partition(".")
    module = {"os": os, "shutil": shutil}[module]
    real, real_replace, calls, started = getattr(module, attribute), build_module.replace, [], []

    def crashing(*args, **kwargs):
        if started:
            calls.append(args)
        if len(calls) == nth + 1:
            raise Crash
        return real(*args, **kwargs)

    monkeypatch.setattr(build_module, "replace", lambda *args: started.append(1) or real_replace(*args))
    monkeypatch.setattr(module, attribute, crashing)


class TestCrash:
    """After a crash at any step the old or the new index opens, and the next build clears up."""

    STEPS = [("os.replace", n) for n in range(3)] + [("os.fsync", n) for n in (0, 5, 9)] + [("shutil.rmtree", 0)]

    @pytest.mark.parametrize(("function", "nth"), STEPS)
    @pytest.mark.long
    def test_while_replacing(self, indexes, monkeypatch, function, nth):
        build(indexes)
        with monkeypatch.context() as patch:
            crash_in(patch, function, nth)
            if function != "shutil.rmtree":
                patch.setattr(shutil, "rmtree", lambda *_, **__: None)  # a dead process clears up nothing
            with pytest.raises(Crash):
                build(indexes, "new")
        expected = ["1:1", "1:2", "2:1"] if (function, nth) in self.STEPS[:2] + self.STEPS[3:6] else ["9:1", "9:2"]
        assert [entry.name for entry in list_indexes(indexes)] == ["demo"]
        assert ids(open_index("demo", indexes)) == expected
        assert verify_index("demo", indexes)
        build(indexes, "new")
        assert ids(open_index("demo", indexes)) == ["9:1", "9:2"]
        assert hidden(indexes) == []

    def test_steps_above_are_all_there_are(self, indexes, monkeypatch):
        """`replace` renames three times; were there a fourth, the list of steps would be short of it."""
        build(indexes)
        renamed, real = [], os.replace
        monkeypatch.setattr(
            os, "replace", lambda *args: renamed.append([Path(arg).name for arg in args]) or real(*args)
        )
        build(indexes, "new")
        assert [names for names in renamed if names != [".journal.json.new", "journal.json"]] == [
            ["demo", ".old-demo"],
            ["index", "demo"],
            [".old-demo", f".trash-demo-{os.getpid()}"],
        ]

    def test_between_the_two_renames(self, indexes):
        build(indexes)
        (indexes / "demo").rename(indexes / ".old-demo")
        assert [entry.name for entry in list_indexes(indexes)] == ["demo"]
        assert ids(open_index("demo", indexes)) == ["1:1", "1:2", "2:1"]
        assert (indexes / "demo").is_dir()
        assert hidden(indexes) == []

    def test_between_the_two_renames_where_nothing_may_be_written(self, indexes, monkeypatch):
        build(indexes)
        (indexes / "demo").rename(indexes / ".old-demo")

        def refuse(*_):
            raise IndexingError("cannot be written")

        monkeypatch.setattr(folders, "exclusive", refuse)
        index = open_index("demo", indexes)
        assert (index.name, ids(index)) == ("demo", ["1:1", "1:2", "2:1"])

    @pytest.mark.long
    def test_a_reader_waits_for_a_living_builder(self, indexes):
        build(indexes)
        with folders.exclusive("demo", indexes):
            (indexes / "demo").rename(indexes / ".old-demo")
            timer = threading.Timer(0.2, lambda: (indexes / ".old-demo").rename(indexes / "demo"))
            timer.start()
            assert ids(open_index("demo", indexes)) == ["1:1", "1:2", "2:1"]
            timer.join()

    def test_a_reader_does_not_wait_for_ever(self, indexes, monkeypatch):
        build(indexes)
        monkeypatch.setattr(folders, "_SWAP_SECONDS", 0.05)
        with folders.exclusive("demo", indexes):
            (indexes / "demo").rename(indexes / ".old-demo")
            with pytest.raises(IndexLockedError):
                open_index("demo", indexes)

    def test_second_rename_refused_puts_the_old_back(self, indexes, monkeypatch):
        build(indexes)
        real = os.replace

        def refusing(source, target):
            if Path(source).name == "index":
                raise OSError(13, "Permission denied")
            real(source, target)

        monkeypatch.setattr(os, "replace", refusing)
        with pytest.raises(IndexingError, match="Permission denied"):
            build(indexes, "new")
        assert ids(open_index("demo", indexes)) == ["1:1", "1:2", "2:1"]
        assert hidden(indexes) == [f".building-demo-{os.getpid()}"]

    @pytest.mark.parametrize("error", [ModelError("out of order"), RuntimeError("no memory"), KeyboardInterrupt()])
    @pytest.mark.long
    def test_the_encoder_fails(self, indexes, error):
        build(indexes)
        with pytest.raises(type(error)):
            build(indexes, "new", encoder=FailingEncoder(error))
        assert ids(open_index("demo", indexes)) == ["1:1", "1:2", "2:1"]
        assert hidden(indexes) == [f".building-demo-{os.getpid()}"]
        build(indexes, "new")
        assert ids(open_index("demo", indexes)) == ["9:1", "9:2"]
        assert hidden(indexes) == []

    def test_the_reader_of_progress_stops(self, indexes):
        build(indexes)
        building = build_events("demo", Path("new"), indexes=indexes, config=IndexingConfig(), encoder=FakeEncoder())
        next(event for event in building if event.stage == "vectors")
        building.close()
        assert ids(open_index("demo", indexes)) == ["1:1", "1:2", "2:1"]
        assert hidden(indexes) == [f".building-demo-{os.getpid()}"]
        build(indexes, "new")
        assert hidden(indexes) == []

    @pytest.mark.long
    def test_killed(self, indexes):
        """kill -9 in the middle of encoding, in a process of its own."""
        build(indexes)
        script = textwrap.dedent("""
            import sys, time
            from pathlib import Path
            import ragqa.index.build
            from ragqa.settings.config import IndexingConfig
            from ragqa.corpus.streams import LoadedStream
            from ragqa.index import build_index
            from tests.support.fakes import FakeEncoder, passage

            class Slow(FakeEncoder):
                def encode(self, texts):
                    print("encoding", flush=True)
                    time.sleep(60)

            corpus = LoadedStream("obliqa", "new", (passage("9:1"),), "")
            ragqa.index.build.open_stream = lambda *_: corpus
            build_index("demo", Path("new"), indexes=Path(sys.argv[1]), config=IndexingConfig(), encoder=Slow())
        """)
        root = Path(__file__).resolve().parents[2]
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(indexes)], cwd=root, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout.readline() == "encoding\n"
        with pytest.raises(IndexLockedError, match=f"being built or deleted by process {process.pid}; wait"):
            build(indexes, "new")
        assert ids(open_index("demo", indexes)) == ["1:1", "1:2", "2:1"]
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        process.stdout.close()
        assert hidden(indexes) == [f".building-demo-{process.pid}"]
        assert ids(open_index("demo", indexes)) == ["1:1", "1:2", "2:1"]
        build(indexes, "new")
        assert hidden(indexes) == []
        assert ids(open_index("demo", indexes)) == ["9:1", "9:2"]

    def test_leftovers_of_another_index_are_not_touched(self, indexes):
        indexes.mkdir()
        (indexes / ".building-demo-b-12").mkdir()
        (indexes / ".trash-demo-b-12").mkdir()
        (indexes / ".building-demo-99999").mkdir()
        build(indexes)
        assert hidden(indexes) == [".building-demo-b-12", ".trash-demo-b-12"]

    def test_what_cannot_be_removed_is_left_for_the_next_build(self, indexes, monkeypatch, caplog):
        build(indexes)

        def refuse(*_, **__):
            raise OSError(39, "Directory not empty")

        with monkeypatch.context() as patch:
            patch.setattr(shutil, "rmtree", refuse)
            build(indexes, "new")
        assert "could not be removed" in caplog.text
        assert hidden(indexes) == [f".building-demo-{os.getpid()}", f".trash-demo-{os.getpid()}"]
        build(indexes, "new")
        assert hidden(indexes) == []


class TestLock:
    def test_two_builders(self, indexes):
        first = build_events("demo", Path("old"), indexes=indexes, config=IndexingConfig(), encoder=FakeEncoder())
        next(first)
        for action in (lambda: build(indexes, "new"), lambda: delete_index("demo", indexes)):
            with pytest.raises(IndexingError):
                action()
        build(indexes, "new", name="other")
        assert len(list(first)) > 1
        assert ids(open_index("demo", indexes)) == ["1:1", "1:2", "2:1"]

    def test_message_names_the_process(self, indexes):
        first = build_events("demo", Path("old"), indexes=indexes, config=IndexingConfig(), encoder=FakeEncoder())
        next(first)
        with pytest.raises(IndexLockedError, match=f"'demo' is being built or deleted by process {os.getpid()}; wait"):
            build(indexes)
        first.close()

    def test_reading_needs_no_lock(self, indexes):
        build(indexes)
        with folders.exclusive("demo", indexes):
            assert open_index("demo", indexes).name == "demo"
            assert verify_index("demo", indexes).name == "demo"
            with pytest.raises(IndexLockedError, match="by another process"):
                delete_index("demo", indexes)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-1])


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.fixture(scope="module")
def built_once(tmp_path_factory):
    """Indexes as `build` leaves them, to copy and damage."""
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragqa.index.build.open_stream", lambda *_, **__: replace(in_memory(OLD), name="old"))
        build(folder)
    return folder


class TestRefusedIndex:
    @pytest.mark.parametrize("path", [*INDEX_FILES, MANIFEST])
    @pytest.mark.parametrize("damage", [truncate, flip, Path.unlink, lambda path: path.write_bytes(b"")])
    @pytest.mark.parametrize("action", [open_index, verify_index])
    @pytest.mark.long
    def test_damage_says_what_to_run(self, indexes, built_once, path, damage, action):
        shutil.copytree(built_once, indexes)
        damage(indexes / "demo" / path)
        if path == MANIFEST and damage is truncate:  # the last byte is the line end
            assert action("demo", indexes)
            return
        known = "" if path == MANIFEST else " --encoder fake-encoder"
        with pytest.raises(IndexMismatchError, match=f"`ragqa index build demo --source PATH{known}`") as caught:
            action("demo", indexes)
        assert Path(path).name in str(caught.value)

    def test_verify_names_everything(self, indexes):
        build(indexes)
        for path in INDEX_FILES[:3]:
            flip(indexes / "demo" / path)
        with pytest.raises(IndexMismatchError) as caught:
            verify_index("demo", indexes)
        assert all(path in str(caught.value) for path in INDEX_FILES[:3])
        assert "made from 'old'" in str(caught.value)

    def test_open_hashes_up_to_its_budget_verify_everything(self, indexes, monkeypatch):
        build(indexes)
        monkeypatch.setattr("ragqa.index.HASHED_AT_OPEN", 1000)
        flip(indexes / "demo" / "dense.faiss")
        assert open_index("demo", indexes)
        with pytest.raises(IndexMismatchError, match=r"dense\.faiss was changed after the index was built \(sha256"):
            verify_index("demo", indexes)

    def reseal(self, indexes, **changes):
        """Someone who knows the format changes a file and writes a fitting manifest."""
        folder = indexes / "demo"
        write_manifest(replace(read_manifest(folder), files=describe_files(folder, 3), **changes), folder)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"n_passages": 4}, "holds 3 passages, 3 vectors of 64 numbers and BM25 scores of 3 passages; expected 4"),
            ({"dimension": 65}, "expected 3 and 65"),
            ({"analyser": "other"}, "analyser"),
            ({"analysis_version": 1}, "its text was analysed by version 1, expected version 2"),
            ({"schema_version": 2}, "expected an index of schema version 3, found version 2"),
            ({"n_passages": "3"}, "is not a manifest of schema version 3: n_passages: Input should be a valid integer"),
            ({"indexed_text": "all"}, "indexed_text"),
        ],
    )
    @pytest.mark.long
    def test_a_manifest_that_does_not_fit(self, indexes, changes, message):
        build(indexes)
        self.reseal(indexes, **changes)
        with pytest.raises(IndexMismatchError, match=message):
            open_index("demo", indexes)

    def test_a_manifest_with_other_files(self, indexes):
        build(indexes)
        folder = indexes / "demo"
        manifest = read_manifest(folder)
        entry = replace(manifest.files[0], path="../../etc/passwd")
        write_manifest(replace(manifest, files=(entry, *manifest.files[1:])), folder)
        with pytest.raises(IndexMismatchError, match="lists 16 files, expected exactly bm25/"):
            open_index("demo", indexes)

    @pytest.mark.parametrize("text", ["", "[]", "null", "{", "\x00", "[" * 100_000])
    @pytest.mark.long
    def test_no_manifest_at_all(self, indexes, text):
        build(indexes)
        (indexes / "demo" / MANIFEST).write_text(text)
        with pytest.raises(IndexMismatchError, match="manifest.json"):
            open_index("demo", indexes)
        [entry] = list_indexes(indexes)
        assert (entry.name, entry.manifest) == ("demo", None)
        assert "`ragqa index build demo --source PATH`" in entry.problem

    @pytest.mark.parametrize("line", ['{"passage_id": 7, "document_id": "d", "text": ""}', "{}", "rubbish"])
    def test_passages_that_are_none(self, indexes, line):
        build(indexes)
        (indexes / "demo" / "passages.jsonl").write_text(line + "\n")
        np.save(indexes / "demo" / "passages.offsets.npy", np.array([0, len(line) + 1]))
        self.reseal(indexes)
        with pytest.raises(IndexMismatchError, match=r"passages\.jsonl does not hold one passage a line"):
            open_index("demo", indexes)

    def test_numbered_items_stand_behind_the_passages_and_are_found_by_their_id(self, indexes, corpora):
        text = "Keep:\n(a)\tlamps;\n(b)\toil."
        corpora["old"] = in_memory(
            (replace(OLD[0], passage_id="a, b:1", text=text, number="1", items="10 16 1.(a)\n21 25 1.(b)"), *OLD[1:])
        )
        build(indexes)
        index = open_index("demo", indexes)
        lines = [json.loads(line) for line in (indexes / "demo" / "passages.jsonl").read_text().splitlines()]
        assert [(one["passage_id"], one["number"], one["text"]) for one in lines[3:]] == [
            ("a, b:1@1.(a)", "1.(a)", "lamps;"),
            ("a, b:1@1.(b)", "1.(b)", "oil."),
        ]
        assert len(index.passages) == len(list(index.passages)) == 3
        assert index.passage("a, b:1@1.(b)").text == "oil."
        assert index.passage("1:2") == OLD[1]
        assert index.passage("a, b:1@1.(c)") is index.passage("9:9@1") is None
        assert verify_index("demo", indexes).n_passages == 3

    def test_lines_behind_the_passages_that_are_no_items(self, indexes):
        build(indexes)
        path = indexes / "demo" / "passages.jsonl"
        path.write_text(path.read_text() + path.read_text().splitlines(keepends=True)[-1])
        self.reseal(indexes)
        with pytest.raises(IndexMismatchError, match=r"bytes, which is not what passages\.offsets\.npy says"):
            open_index("demo", indexes)

    def test_one_passage_too_few(self, indexes):
        build(indexes)
        path = indexes / "demo" / "passages.jsonl"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
        self.reseal(indexes)
        with pytest.raises(IndexMismatchError, match=r"bytes, which is not what passages\.offsets\.npy says"):
            open_index("demo", indexes)
        np.save(indexes / "demo" / "passages.offsets.npy", np.load(indexes / "demo" / "passages.offsets.npy")[:-1])
        self.reseal(indexes)
        with pytest.raises(IndexMismatchError, match="holds 2 passages, 3 vectors"):
            open_index("demo", indexes)

    def test_only_verify_looks_at_every_id_and_vector(self, indexes, corpora):
        from ragqa.retrieval.dense import write_vectors

        build(indexes)
        folder = indexes / "demo"
        path = folder / "passages.jsonl"
        path.write_text(path.read_text().replace('"1:2"', '"1:1"'))
        write_vectors(np.zeros((3, 64), dtype=np.float32), folder / "dense.faiss")
        self.reseal(indexes)
        open_index("demo", indexes)
        with pytest.raises(IndexMismatchError, match="two passages have the same id; dense.faiss holds vectors that"):
            verify_index("demo", indexes)

    def test_another_encoder(self, indexes):
        build(indexes)
        index = open_index("demo", indexes)
        stranger = FakeEncoder()
        stranger.info = ModelInfo("fake-encoder", "f" * 64)
        message = "made with the encoder fake-encoder .sha256 0{64}.*load that encoder, or rebuild it with `ragqa index"
        with pytest.raises(IndexMismatchError, match=message):
            retrievers_for(index, stranger, RetrievalConfig())

    def test_the_rebuild_command_makes_the_same_index_again(self, indexes):
        build(indexes, analyser="characters")
        (indexes / "demo" / "passages.jsonl").write_text("")
        command = "ragqa index build demo --source PATH --encoder fake-encoder --analyser characters"
        with pytest.raises(IndexMismatchError, match=f"rebuild it with `{command}` .it was made from 'old'."):
            open_index("demo", indexes)

    def test_not_found_names_what_there_is(self, indexes):
        with pytest.raises(IndexNotFoundError, match="none yet"):
            open_index("demo", indexes)
        build(indexes, name="here")
        with pytest.raises(IndexNotFoundError, match=r"no index 'demo' in .*there are: here.*ragqa index build demo"):
            open_index("demo", indexes)

    def test_not_found_names_the_users_own_folder_and_not_the_bundled_one(self, indexes, monkeypatch, tmp_path):
        bundled = tmp_path / "bundled"
        build(bundled, name="shipped")
        build(indexes, name="here")
        monkeypatch.setattr("ragqa.index.folders.behind", lambda folder: bundled if folder == indexes else None)
        assert open_index("shipped", indexes).manifest.n_passages
        with pytest.raises(IndexNotFoundError) as raised:
            open_index("demo", indexes)
        assert f"in {indexes}" in str(raised.value)
        assert "here" in str(raised.value)


class TestOpen:
    def test_retrievers(self, indexes):
        build(indexes)
        index = open_index("demo", indexes)
        for backend in ("bm25s", "rank_bm25"):
            lexical, _, dense = retrievers_for(index, FakeEncoder(), RetrievalConfig(bm25_backend=backend))
            assert (lexical.name, dense.name) == ("bm25", "dense")
            assert [hit.passage.passage_id for hit in lexical.retrieve("separate money", 5).hits] == ["1:2"]
            assert dense.retrieve("A firm keeps records.", 5).hits[0].passage == OLD[0]

    def test_retrievers_share_what_the_index_holds(self, indexes):
        build(indexes)
        index = open_index("demo", indexes)
        config = RetrievalConfig(bm25_backend="rank_bm25")
        assert retrievers_for(index, FakeEncoder(), config)[0] is retrievers_for(index, FakeEncoder(), config)[0]

    def test_an_open_index_survives_its_replacement(self, indexes):
        build(indexes)
        lexical, _, dense = retrievers_for(open_index("demo", indexes), FakeEncoder(), RetrievalConfig())
        build(indexes, "new")
        delete_index("demo", indexes)
        assert [hit.passage.passage_id for hit in lexical.retrieve("money", 5).hits] == ["1:2"]
        assert dense.retrieve("A firm keeps records.", 5).hits[0].passage == OLD[0]

    def test_replaced_while_being_opened(self, indexes, monkeypatch):
        from ragqa import index as indexing

        build(indexes)
        real, opened = indexing._load, []

        def load(folder):
            if not opened:
                opened.append(real(folder))
                build(indexes, "new")
                return opened[0]
            return real(folder)

        monkeypatch.setattr(indexing, "_load", load)
        assert ids(open_index("demo", indexes)) == ["9:1", "9:2"]

    def test_deleted_while_being_opened(self, indexes, monkeypatch):
        from ragqa import index as indexing

        build(indexes)
        real = indexing._load

        def load(folder):
            delete_index("demo", indexes)
            return real(folder)

        monkeypatch.setattr(indexing, "_load", load)
        with pytest.raises(IndexNotFoundError):
            open_index("demo", indexes)

    def test_a_copied_folder_opens_under_its_new_name(self, indexes):
        build(indexes)
        shutil.copytree(indexes / "demo", indexes / "copy")
        index = open_index("copy", indexes)
        assert (index.name, index.manifest.name) == ("copy", "demo")

    def test_opening_takes_no_longer_for_more_passages(self, indexes, corpora):
        work = []
        for count in (30, 3000):
            rows = tuple(passage(f"{n:05}", f"rule {n} binds firm {n % 97}") for n in range(count))
            corpora["old"] = in_memory(rows)
            build(indexes)
            work.append(effort(lambda: open_index("demo", indexes)))
        assert work[1] < 5 * work[0]


class TestListAndDelete:
    def test_list_is_sorted_and_leaves_out_what_is_no_index(self, indexes):
        assert list_indexes(indexes) == ()
        for name in ("zebra", "ant"):
            build(indexes, name=name)
        (indexes / "photos").mkdir()
        (indexes / "README.md").write_text("")
        (indexes / ".trash-x-1").mkdir()
        assert [entry.name for entry in list_indexes(indexes)] == ["ant", "zebra"]
        assert all(entry.manifest and entry.problem == "" for entry in list_indexes(indexes))

    def test_delete(self, indexes):
        build(indexes)
        delete_index("demo", indexes)
        assert list_indexes(indexes) == ()
        assert list(indexes.iterdir()) == []
        with pytest.raises(IndexNotFoundError):
            delete_index("demo", indexes)

    def test_delete_a_damaged_index(self, indexes):
        build(indexes)
        (indexes / "demo" / MANIFEST).unlink()
        delete_index("demo", indexes)
        assert list_indexes(indexes) == ()

    def test_delete_does_not_bring_an_older_one_back(self, indexes):
        build(indexes)
        shutil.copytree(indexes / "demo", indexes / ".old-demo")
        delete_index("demo", indexes)
        with pytest.raises(IndexNotFoundError):
            open_index("demo", indexes)

    def test_delete_after_a_crash_between_the_two_renames(self, indexes):
        build(indexes)
        (indexes / "demo").rename(indexes / ".old-demo")
        delete_index("demo", indexes)
        assert list_indexes(indexes) == ()

    def test_delete_refused_by_the_system(self, indexes, monkeypatch):
        build(indexes)

        def refuse(*_):
            raise OSError(13, "Permission denied")

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", refuse)
            with pytest.raises(IndexingError, match="could not be deleted.*Permission denied"):
                delete_index("demo", indexes)
        assert open_index("demo", indexes)

    def test_a_linked_index_loses_the_link_only(self, indexes, tmp_path):
        build(indexes)
        (indexes / "demo").rename(tmp_path / "elsewhere")
        (indexes / "demo").symlink_to(tmp_path / "elsewhere")
        assert ids(open_index("demo", indexes)) == ["1:1", "1:2", "2:1"]
        build(indexes, "new")
        assert ids(open_index("demo", indexes)) == ["9:1", "9:2"]
        assert (tmp_path / "elsewhere" / MANIFEST).is_file()


def test_manifest_is_plain_json_without_paths_of_this_machine(indexes):
    build(indexes)
    text = (indexes / "demo" / MANIFEST).read_text()
    assert json.loads(text)["digest"]
    assert str(Path.cwd()) not in text
    assert str(indexes) not in text


class TestRealCorpora:
    """With `ragqa.corpus` as it is."""

    def test_obliqa(self, tmp_path):
        (tmp_path / "rules").mkdir()
        items = [
            {"ID": "a", "DocumentID": 1, "PassageID": "1.1", "Passage": "A dealer keeps client money apart."},
            {"ID": "b", "DocumentID": 1, "PassageID": "1.2", "Passage": "  "},
            {"ID": "c", "DocumentID": 1, "PassageID": "1.3", "Passage": "A dealer keeps records for six years."},
        ]
        (tmp_path / "rules" / "1.json").write_text(json.dumps(items))
        indexes, config = tmp_path / "indexes", IndexingConfig()
        manifest = build_index(
            "rules", tmp_path / "rules", indexes=indexes, config=config, encoder=FakeEncoder(), format="obliqa"
        )
        assert (manifest.format, manifest.indexed_text, manifest.source) == ("obliqa", "text", "rules")
        assert [p.number for p in open_index("rules", indexes).passages] == ["1.1", "1.3"]

    def test_text(self, tmp_path):
        (tmp_path / "articles").mkdir()
        (tmp_path / "articles" / "baikal.md").write_text("# Lake Baikal\n\n## Size\n\nIt is the deepest of them all.\n")
        manifest = build_index(
            "lakes", tmp_path / "articles", indexes=tmp_path, config=IndexingConfig(), encoder=FakeEncoder()
        )
        assert (manifest.format, manifest.indexed_text) == ("text", "title-section-text")
        lexical, *_ = retrievers_for(open_index("lakes", tmp_path), FakeEncoder(), RetrievalConfig())
        assert len(lexical.retrieve("Baikal", 5).hits) == 1

    def test_no_source(self, tmp_path):
        with pytest.raises(CorpusError, match="does not exist"):
            build_index(
                "x", tmp_path / "nowhere", indexes=tmp_path / "i", config=IndexingConfig(), encoder=FakeEncoder()
            )
        assert list_indexes(tmp_path / "i") == ()


@pytest.mark.model
def test_rebuild_with_the_real_encoder_gives_the_same_vectors(indexes):
    from ragqa.retrieval.encoder import SentenceTransformerEncoder

    encoder = SentenceTransformerEncoder()
    vectors = []
    for name in ("one", "two"):
        build(indexes, name=name, encoder=encoder)
        index = open_index(name, indexes)
        vectors.append(index.vectors.reconstruct_n(0, index.vectors.ntotal))
        lexical, _, dense = retrievers_for(index, encoder, RetrievalConfig())
        assert dense.retrieve("Where must money be kept?", 1).hits[0].passage.passage_id == "1:2"
        assert lexical.retrieve("Where must money be kept?", 1).hits[0].passage.passage_id == "1:2"
    assert vectors[0] == pytest.approx(vectors[1], abs=1e-5)
    assert (indexes / "one" / "passages.jsonl").read_bytes() == (indexes / "two" / "passages.jsonl").read_bytes()


def test_what_is_built_lies_in_the_home_and_the_checkouts_indexes_are_behind_it(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    indexes = Paths.from_env().indexes
    assert indexes == tmp_path / "indexes"
    assert {"rulebook", "encyclopedia"} <= set(index_names(indexes))
    assert open_index("rulebook", indexes).folder == PROJECT_INDEXES / "rulebook"
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Notes\n\nA firm must keep its notes for two years.\n")
    build_index("rulebook", tmp_path / "notes", indexes=indexes, config=IndexingConfig(), encoder=FakeEncoder())
    assert open_index("rulebook", indexes).folder == indexes / "rulebook"  # one's own stands before it
    delete_index("rulebook", indexes)
    assert open_index("rulebook", indexes).folder == PROJECT_INDEXES / "rulebook"
    monkeypatch.setenv("RAGQA_INDEXES", str(tmp_path / "elsewhere"))
    assert index_names(Paths.from_env().indexes) == []


@pytest.mark.parametrize("value", [10**30, -1, 1e308, float("inf"), float("nan")], ids=str)
@pytest.mark.parametrize(
    "name",
    ["n_passages", "n_documents", "dimension", "search_effort", "context_passages", "chunk_max_tokens", "bm25_k1"],
)
def test_extreme_numbers_in_a_manifest_with_a_digest_that_fits_have_their_sentence(tmp_path, name, value):
    folder = tmp_path / "mine"
    shutil.copytree(PROJECT_INDEXES / "encyclopedia", folder)
    fields = json.loads((folder / "manifest.json").read_text())
    del fields["digest"]
    fields[name] = value
    fields["digest"] = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(fields))
    with pytest.raises(IndexMismatchError, match="manifest.json"):
        open_index("mine", tmp_path)
    (entry,) = list_indexes(tmp_path)
    assert entry.manifest is None
    assert entry.problem


def test_a_passage_that_is_only_counted_is_no_article(tmp_path):
    (source := tmp_path / "in").mkdir()
    (source / "Constitution.txt").write_text(
        "\n\n".join(
            f"{one} are kept in the store of the tower, as many as the keeper needs." for one in ("Oils", "Lamps")
        )
    )
    config = IndexingConfig(encoder="none", chunk_max_tokens=16)
    build_index("counted", source, indexes=tmp_path / "indexes", config=config, encoder=None)
    index = open_index("counted", tmp_path / "indexes")
    assert index.asked_by_number("What does Article 2 of the Constitution say?") == ()
    assert [one.number for one in index.passages] == ["1", "2"]

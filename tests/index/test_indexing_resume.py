"""A build in portions: the same index however it is cut, and resumed wherever it was stopped."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import ragqa.index.build
from ragqa.cli import app
from ragqa.corpus.formats import load_corpus
from ragqa.corpus.streams import LoadedStream, corpus_sha256
from ragqa.errors import ConfigError, CorpusError, IndexingError, IndexNotFoundError, ModelError
from ragqa.index import (
    build_events,
    build_index,
    delete_index,
    encoded,
    index_info,
    list_indexes,
    open_index,
    passage_arrays,
    portions,
    verify_index,
)
from ragqa.index import passages as index_passages
from ragqa.index.journal import BuildJournal
from ragqa.index.manifest import MANIFEST
from ragqa.retrieval import analysis, bm25, dense
from ragqa.settings.config import IndexingConfig
from ragqa.types import ModelInfo
from tests.support.fakes import FakeEncoder, passage

pytestmark = pytest.mark.long

WORDS = [
    "firm",
    "must",
    "keep",
    "money",
    "apart",
    "record",
    "report",
    "loss",
    "rule",
    "client",
    "audit",
    "each",
    "year",
    "dealer",
]


def text(start, step, n_words):
    return " ".join(WORDS[(start + step * k * k) % len(WORDS)] for k in range(n_words)).capitalize() + "."


def article(number, n_passages):
    """Passages of one document, some of the same text as others', with ids that do not sort in their order."""
    return tuple(
        passage(
            f"{(number * 37) % 100:02}:{9 - n % 10}{n}",
            " ".join(WORDS[(number * 7 + n * k * k) % len(WORDS)] for k in range(2 + (number + n) % 5)).capitalize()
            + ".",
            document_id=f"d{number}",
            title=f"Title {number % 9}",
        )
        for n in range(n_passages)
    )


ARTICLES = {number: article(number, 1 + number * number % 6) for number in range(27) if number % 4}  # with gaps
ROWS = tuple(row for rows in ARTICLES.values() for row in rows)


class FakeStream:
    """A `PassageStream` of these articles that remembers from where it was read."""

    name = "stream"

    def __init__(self, articles=ARTICLES, identity="1" * 64, format="jsonl", fail_at=None):
        self.format = format
        self.starts, self.read = [], []
        self._articles, self._identity, self._fail_at = articles, identity, fail_at

    def identity(self):
        return self._identity

    def articles(self, start=0):
        self.starts.append(start)
        for number, rows in self._articles.items():
            if number == self._fail_at:
                raise Crash
            if number >= start:
                self.read.append(number)
                yield number, rows


class Crash(BaseException):
    """The process is gone: nothing after this runs, as far as the test can arrange it."""


class OtherEncoder(FakeEncoder):
    info = ModelInfo("other", "7" * 64)
    dimension = 32


@pytest.fixture
def indexes(tmp_path):
    return tmp_path / "indexes"


@pytest.fixture(autouse=True)
def small_portions(monkeypatch):
    cut_small(monkeypatch)


def cut_small(monkeypatch):
    """Portions, blocks and batches of a few, so that 20 articles are many of each."""
    monkeypatch.setattr(portions, "PORTION_PASSAGES", 12)
    monkeypatch.setattr(encoded, "ENCODED_AT_ONCE", 10)
    monkeypatch.setattr(bm25, "BLOCK_TOKENS", 100)
    monkeypatch.setattr(bm25, "BLOCK_SCORES", 500)
    monkeypatch.setattr(dense, "ADDED_AT_ONCE", 16)


WRITING = ["fsync", "replace", "save", "savez", "_taken"]  # what changes something on disk
CRASHED = {"rankings": ("document", "dense:other")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The files of an index whose build nothing disturbed, and how often it called what writes."""
    calls = []
    with pytest.MonkeyPatch.context() as patch:
        cut_small(patch)
        for function in WRITING:
            watch(patch, function, calls.append)
        folder = tmp_path_factory.mktemp("undisturbed")
        build(folder, **CRASHED)
    return files(folder / "demo"), Counter(calls)


def build(indexes, stream=None, name="demo", encoder=None, rankings=(), **config):
    models = {ranking: OtherEncoder() for ranking in rankings if ranking.startswith("dense:")}
    lexical = config.get("encoder_name") == "none"
    config.pop("encoder_name", None)
    return build_index(
        name,
        stream or FakeStream(),
        indexes=indexes,
        config=IndexingConfig(rankings=rankings, **({"encoder": "none"} if lexical else {}), **config),
        encoder=None if lexical else encoder or FakeEncoder(),
        models=models,
    )


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != MANIFEST}


def plain(manifest):
    return replace(manifest, name="", created="", source="")


def left(indexes):
    return sorted(path.name for path in indexes.iterdir() if path.name.startswith(".building"))


class TestOneWay:
    """The same index, byte for byte, from a stream in portions and from a corpus in memory in one."""

    @pytest.mark.parametrize("analyser", ["english", "regulation", "characters"])
    @pytest.mark.parametrize("rankings", [(), ("document", "dense:other")])
    def test_however_it_is_cut(self, indexes, monkeypatch, analyser, rankings):
        manifest = build(indexes, name="cut", analyser=analyser, rankings=rankings)
        for module, name in ((portions, "PORTION_PASSAGES"), (encoded, "ENCODED_AT_ONCE")):
            monkeypatch.setattr(module, name, 10**6)
        for name in ("BLOCK_TOKENS", "BLOCK_SCORES"):
            monkeypatch.setattr(bm25, name, 10**7)
        whole = build(indexes, name="whole", analyser=analyser, rankings=rankings)
        corpus = LoadedStream("jsonl", "rows", ROWS, corpus_sha256(ROWS))
        in_memory = build(indexes, corpus, "memory", analyser=analyser, rankings=rankings)
        assert plain(manifest) == plain(whole) == plain(in_memory)
        assert files(indexes / "cut") == files(indexes / "whole") == files(indexes / "memory")
        assert tuple(open_index("cut", indexes).passages) == ROWS
        assert verify_index("cut", indexes) == manifest
        assert (manifest.n_documents, manifest.n_passages) == (len(ARTICLES), len(ROWS))
        assert manifest.corpus_sha256 == corpus_sha256(ROWS)

    def test_json_lines_are_read_as_a_stream_and_as_a_corpus(self, indexes, tmp_path):
        texts = [f"A firm must keep record {n}. " * (n % 7 + 1) for n in range(30)]
        lines = [{"id": f"{n}", "title": f"T{n}", "text": text} for n, text in enumerate(texts)]
        (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, lines)))
        one = build(indexes, tmp_path / "rows.jsonl", "one", chunk_max_tokens=16)
        corpus = load_corpus(tmp_path / "rows.jsonl", "jsonl", 16)
        whole = LoadedStream("jsonl", "rows.jsonl", corpus.passages, corpus.sha256)
        two = build(indexes, whole, "two", chunk_max_tokens=16)
        assert one.n_passages > 40
        assert plain(one) == plain(two)
        assert (one.source, files(indexes / "one")) == (two.source, files(indexes / "two"))

    def test_documents_whose_passages_are_mixed_stay_together(self, indexes, monkeypatch):
        rows = [passage(f"{n:03}", f"Rule {n} of {n % 7}.", document_id=f"d{n % 3 + n // 20}") for n in range(90)]
        corpus = LoadedStream("obliqa", "rows", tuple(rows), "5" * 64)
        build(indexes, corpus, "cut", rankings=("document",))
        monkeypatch.setattr(portions, "PORTION_PASSAGES", 1000)
        build(indexes, corpus, "whole", rankings=("document",))
        assert files(indexes / "cut") == files(indexes / "whole")

    def test_headings_are_hidden_unless_all_passages_are(self, indexes):
        rows = {n: (passage(f"{n}", "General" if n < 60 else "A firm must keep records."),) for n in range(62)}
        build(indexes, FakeStream(rows), analyser="regulation")
        assert np.flatnonzero(~open_index("demo", indexes).hidden).tolist() == [60, 61]
        build(indexes, FakeStream({n: rows[n] for n in range(60)}), analyser="regulation")
        assert not open_index("demo", indexes).hidden.any()

    def test_ids_of_any_letters_are_ordered_as_python_orders_them(self, indexes):
        names = ["b", "a\nb", "a", 'a"', "é", "ab", "Z", "\U0001f600", "\ufb00", "a\\", " ", "0", "00"]
        rows = {n: (passage(name, f"Rule {n}.", document_id=str(n)),) for n, name in enumerate(names * 1)}
        build(indexes, FakeStream(rows))
        index = open_index("demo", indexes)
        assert [names[n] for n in np.argsort(index.order)] == sorted(names)
        assert [index.position_of[name] for name in names] == list(range(len(names)))

    def test_progress_says_how_much_was_read(self, indexes):
        steps = build_events("demo", FakeStream(), indexes=indexes, config=IndexingConfig(), encoder=FakeEncoder())
        notes = [step.note for step in steps if step.stage == "corpus" and step.note]
        assert re.fullmatch(r"\d articles, \d+ passages", notes[0])
        assert len(notes) > 3


class TestGoingOn:
    def test_what_was_read_is_not_read_again(self, indexes):
        with pytest.raises(Crash):
            build(indexes, FakeStream(fail_at=17))
        assert left(indexes) == [f".building-demo-{os.getpid()}"]
        stream = FakeStream()
        steps = list(build_events("demo", stream, indexes=indexes, config=IndexingConfig(), encoder=FakeEncoder()))
        [said] = [step.message for step in steps if step.message]
        [start] = stream.starts
        assert 10 < start <= 22
        assert stream.read == [number for number in ARTICLES if number >= start]
        done = [number for number in ARTICLES if number < start]
        assert said == f"resuming after article {len(done)} ({sum(len(ARTICLES[n]) for n in done)} passages)"
        assert left(indexes) == []
        build(indexes, name="whole")
        assert files(indexes / "demo") == files(indexes / "whole")

    def test_what_was_encoded_is_not_encoded_again(self, indexes):
        asked = []

        class Encoder(FakeEncoder):
            def __init__(self, most):
                self.most = most

            def encode(self, texts):
                if len(asked) + len(texts) > self.most:
                    raise ModelError("out of order")
                asked.extend(texts)
                return super().encode(texts)

        with pytest.raises(ModelError):
            build(indexes, encoder=Encoder(25))
        assert len(asked) == 20
        stream = FakeStream()
        with pytest.raises(ModelError):
            build(indexes, stream, encoder=Encoder(41))
        assert len(asked) == 40
        steps = build_events("demo", stream, indexes=indexes, config=IndexingConfig(), encoder=Encoder(10**6))
        said = [(step.stage, step.done, step.message) for step in steps]
        assert said[1] == ("corpus", 0, f"resuming after all {len(ROWS)} passages and 40 vectors")
        assert next(done for stage, done, _ in said if stage == "vectors") == 40
        assert stream.read == []
        assert len(asked) == len(set(asked)) == len({row.text + row.title for row in ROWS})
        build(indexes, name="whole")
        assert files(indexes / "demo") == files(indexes / "whole")

    @pytest.mark.parametrize("function", WRITING)
    def test_after_a_crash_at_some_calls(self, indexes, monkeypatch, undisturbed, function):
        self.crash_at_calls(indexes, monkeypatch, undisturbed, function, 2)

    @pytest.mark.slow
    @pytest.mark.parametrize("function", WRITING)
    def test_after_a_crash_at_any_call(self, indexes, monkeypatch, undisturbed, function):
        self.crash_at_calls(indexes, monkeypatch, undisturbed, function, 10**6)

    def crash_at_calls(self, indexes, monkeypatch, undisturbed, function, n_tried):
        """Whatever a process that dies there leaves, the next build makes the same index of it."""
        expected, calls = undisturbed
        assert calls[function] > 3
        for nth in {*range(0, calls[function], max(1, calls[function] // n_tried)), calls[function] - 1}:
            with monkeypatch.context() as patch:
                crash_in(patch, function, nth)
                with pytest.raises(Crash):
                    build(indexes, **CRASHED)
            for path in indexes.glob(".building-*/*.vectors"):
                path.write_bytes(path.read_bytes() + b"half a row")
            for path in indexes.glob(".building-*/index/passages.jsonl"):
                path.write_bytes(path.read_bytes() + b'{"passage_id": "ha')
            build(indexes, **CRASHED)
            assert files(indexes / "demo") == expected, nth
            assert left(indexes) == []
            delete_index("demo", indexes)

    @pytest.mark.slow
    def test_killed_again_and_again(self, indexes, tmp_path):
        """kill -9 of a process of its own, each time a little later, until one lives to the end."""
        script = textwrap.dedent("""
            import sys, time
            from pathlib import Path
            from tests.index import test_indexing_resume as here
            from ragqa.index import encoded, portions

            portions.PORTION_PASSAGES, encoded.ENCODED_AT_ONCE = 7, 10

            class Slow(here.FakeStream):
                def articles(self, start=0):
                    for item in super().articles(start):
                        time.sleep(0.01)
                        yield item

            print("ready", flush=True)
            here.build(Path(sys.argv[1]), Slow())
        """)
        root, deaths = Path(__file__).resolve().parents[2], 0
        while not list_indexes(indexes):
            process = subprocess.Popen([sys.executable, "-c", script, str(indexes)], cwd=root, stdout=subprocess.PIPE)
            assert process.stdout.readline() == b"ready\n"
            try:
                process.wait(0.15 + 0.15 * deaths)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                deaths += 1
            else:
                assert process.returncode == 0
            process.stdout.close()
            assert deaths < 60
        assert deaths > 0
        assert left(indexes) == []
        build(indexes, name="whole")
        assert files(indexes / "demo") == files(indexes / "whole")

    def test_the_index_before_answers_meanwhile(self, indexes):
        build(indexes, FakeStream({1: (passage("1:1", "Lakes are deep."),)}))
        with pytest.raises(Crash):
            build(indexes, FakeStream(fail_at=17))
        assert [row.passage_id for row in open_index("demo", indexes).passages] == ["1:1"]
        assert verify_index("demo", indexes)


def crash_in(monkeypatch, function, nth):
    """Makes the ``nth`` call, from 0, raise `Crash` instead of doing its work."""
    calls = []

    def crash(name):
        calls.append(name)
        if len(calls) == nth + 1:
            raise Crash

    watch(monkeypatch, function, crash)


def watch(monkeypatch, function, told):
    """Calls ``told`` before each call of a function that changes what is on disk."""
    module = {"fsync": os, "replace": os, "_taken": dense}.get(function, np)
    real = getattr(module, function)
    monkeypatch.setattr(module, function, lambda *args, **kwargs: told(function) or real(*args, **kwargs))

    def test_on_the_command_line(self, indexes, tmp_path, monkeypatch):
        rows = [{"id": f"{n}", "title": f"T{n}", "text": f"A firm must keep record {n}."} for n in range(40)]
        (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
        monkeypatch.setenv("RAGQA_INDEXES", str(indexes))
        monkeypatch.setenv("COLUMNS", "200")
        command = ["index", "build", "demo", "--source", str(tmp_path / "rows.jsonl"), "--encoder", "none"]
        with monkeypatch.context() as patch:
            crash_in(patch, "savez", 2)
            assert isinstance(CliRunner().invoke(app, command).exception, Crash)
        result = CliRunner().invoke(app, command)
        assert result.exception is None, result.exception
        assert "resuming after article 24 (24 passages)" in result.stderr
        assert "index demo: 40 passages of 40 documents" in result.stdout


class TestStartingAnew:
    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"stream": FakeStream(identity="2" * 64)}, "another source"),
            ({"stream": FakeStream(format="pandachat")}, "another source and analyser"),
            ({"chunk_max_tokens": 64}, "another source"),
            ({"analyser": "characters"}, "another analyser"),
            ({"bm25_k1": 1.5}, "another BM25 setting"),
            ({"context_passages": 1}, "another BM25 setting"),
            ({"encoder": OtherEncoder()}, "another encoder"),
            ({"encoder_name": "none"}, "another encoder"),
            ({"vectors": "SQ8"}, "another kind of vectors"),
            ({"rankings": ("document",)}, "another further ranking"),
        ],
    )
    def test_with_another_setting(self, indexes, monkeypatch, changes, said):
        with pytest.raises(Crash):
            build(indexes, FakeStream(fail_at=17))
        told = []
        real = ragqa.index.build.resume
        monkeypatch.setattr(ragqa.index.build, "resume", lambda *args: told.append(real(*args)) or told[-1])
        build(indexes, **changes)
        assert told[0][1] == f"starting over: the stopped build was made with {said}"
        assert left(indexes) == []
        again = {"stream": FakeStream(format=changes["stream"].format)} if "stream" in changes else changes
        build(indexes, name="whole", **again)
        assert files(indexes / "demo") == files(indexes / "whole")

    def test_with_another_library(self, indexes, monkeypatch):
        with pytest.raises(Crash):
            build(indexes, FakeStream(fail_at=17))
        monkeypatch.setattr(ragqa.index.build, "LIBRARIES", ("numpy",))
        stream = FakeStream()
        build(indexes, stream)
        assert stream.starts == [0]

    @pytest.mark.parametrize("text", ["", "[]", "{", "null", "{}", '{"version": 0}', "\x00"])
    def test_where_the_journal_is_none(self, indexes, text):
        with pytest.raises(Crash):
            build(indexes, FakeStream(fail_at=17))
        [folder] = indexes.glob(".building-*")
        (folder / "journal.json").write_text(text)
        stream = FakeStream()
        steps = list(build_events("demo", stream, indexes=indexes, config=IndexingConfig(), encoder=FakeEncoder()))
        assert stream.starts == [0]
        assert [step.message for step in steps if step.message] == [
            "starting over: the stopped build cannot be resumed"
        ]

    def test_after_the_index_was_put_in_its_place(self, indexes, monkeypatch):
        """The process dies before it says so: there is a journal of everything, and no index beside it."""
        with monkeypatch.context() as patch:
            patch.setattr(BuildJournal, "discard", lambda self: (_ for _ in ()).throw(Crash))
            with pytest.raises(Crash):
                build(indexes)
        assert verify_index("demo", indexes)
        assert len(left(indexes)) == 1
        stream = FakeStream()
        build(indexes, stream)
        assert stream.starts == [0]
        assert left(indexes) == []

    def test_only_the_latest_of_several_is_kept(self, indexes):
        with pytest.raises(Crash):
            build(indexes, FakeStream(fail_at=17))
        (indexes / ".building-demo-1").mkdir()
        (indexes / ".building-demo-1" / "journal.json").write_text("{}")
        os.utime(indexes / ".building-demo-1", (1, 1))
        stream = FakeStream()
        build(indexes, stream)
        assert stream.starts[0] > 0
        assert left(indexes) == []


class TestNothingIsKept:
    """Where the same command would fail again."""

    def test_two_passages_with_one_id_in_portions_far_apart(self, indexes):
        again = {**ARTICLES, 99: (passage(ROWS[0].passage_id, "Other."),)}
        with pytest.raises(CorpusError, match=f"in stream to have its own id, found '{ROWS[0].passage_id}' twice"):
            build(indexes, FakeStream(again))
        assert left(indexes) == []

    def test_two_ids_with_one_key_are_two(self, indexes, monkeypatch):

        real = analysis.keys_of
        for module in (analysis, passage_arrays, portions, index_passages):
            monkeypatch.setattr(module, "keys_of", lambda texts: real(texts) % 16)
        rows = {n: (passage(f"{n:03}", f"Rule {n}."),) for n in range(60)}
        build(indexes, FakeStream(rows), analyser="english")
        index = open_index("demo", indexes)
        assert [index.position_of[f"{n:03}"] for n in range(60)] == list(range(60))

    def test_half_a_character(self, indexes):
        with pytest.raises(CorpusError, match="lone surrogate. in passage 'x'"):
            build(indexes, FakeStream({**ARTICLES, 99: (passage("x", "bad \ud800"),)}))
        assert left(indexes) == []

    def test_too_few_passages_for_the_kind_of_vectors(self, indexes):
        with pytest.raises(ConfigError, match="need at least"):
            build(indexes, vectors="IVF64,SQ8")
        assert left(indexes) == []

    def test_no_passage(self, indexes):
        with pytest.raises(CorpusError, match="expected passages in stream, found none"):
            build(indexes, FakeStream({}))
        assert left(indexes) == []

    def test_a_document_in_two_places(self, indexes):
        rows = {n: (passage(f"{n}", f"Rule {n}.", document_id="d" if n in {0, 30} else f"d{n}"),) for n in range(40)}
        assert build(indexes, FakeStream(rows)).n_documents == 39
        with pytest.raises(CorpusError, match="passages of a document together, found 'd' in two places"):
            build(indexes, FakeStream(rows), rankings=("document",))


class TestDelete:
    def test_a_stopped_build_alone(self, indexes):
        with pytest.raises(Crash):
            build(indexes, FakeStream(fail_at=17))
        with pytest.raises(IndexNotFoundError):
            index_info("demo", indexes)
        delete_index("demo", indexes)
        assert left(indexes) == []
        with pytest.raises(IndexNotFoundError):
            delete_index("demo", indexes)

    def test_with_the_index(self, indexes):
        build(indexes)
        with pytest.raises(Crash):
            build(indexes, FakeStream(fail_at=17))
        with pytest.raises(Crash):
            build(indexes, FakeStream(fail_at=17), name="demo-2")
        delete_index("demo", indexes)
        assert left(indexes) == [f".building-demo-2-{os.getpid()}"]
        assert list_indexes(indexes) == ()


class TestParts:
    def test_distinct_rows_as_a_dict_numbers_them(self):
        random = np.random.default_rng(1)
        for n in (0, 1, 2, 50, 400):
            digests = random.integers(0, 5, size=(n, 2)).astype(np.uint64)
            numbers, firsts = {}, []
            expected = []
            for place, row in enumerate(map(tuple, digests.tolist())):
                if row not in numbers:
                    firsts.append(place)
                expected.append(numbers.setdefault(row, len(numbers)))
            rows, found = encoded.distinct_rows(digests)
            assert (rows.tolist(), found.tolist()) == (expected, firsts)

    def test_rows_of_a_file(self, tmp_path):
        rows = np.arange(40, dtype=np.float32).reshape(10, 4)
        (tmp_path / "v").write_bytes(rows.tobytes())
        file = encoded.VectorFile(tmp_path / "v", 10, 4)
        for wanted in ([0], [9, 0, 0, 1, 2, 9, 4], [], list(range(10))):
            assert np.array_equal(file[np.array(wanted, dtype=np.int64)], rows[wanted])

    def test_the_journal_is_on_disk_before_it_takes_its_place(self, tmp_path, monkeypatch):
        happened = []
        watch(monkeypatch, "fsync", happened.append)
        watch(monkeypatch, "replace", happened.append)
        BuildJournal(tmp_path, {}).save()
        assert happened == ["fsync", "replace", "fsync"]


def test_what_cannot_be_written_says_that_it_can_be_gone_on_with(indexes, monkeypatch):
    real, calls = np.savez, []

    def full(*args, **kwargs):
        calls.append(1)
        if len(calls) == 4:
            raise OSError(28, "No space left on device")
        real(*args, **kwargs)

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(IndexingError, match="No space left on device; make room and run the same command again, which"):
        build(indexes)
    stream = FakeStream()
    build(indexes, stream)
    assert stream.starts[0] > 0


@pytest.mark.slow
def test_memory_does_not_grow_with_the_corpus(indexes, monkeypatch):
    """Python's own memory, arrays of NumPy among it; `tests.benchmarks.growth` measures the whole process."""
    import tracemalloc

    monkeypatch.setattr(portions, "PORTION_PASSAGES", 200)
    monkeypatch.setattr(bm25, "BLOCK_SCORES", 20_000)
    peaks = []
    for size in (1_000, 4_000):
        words = "x y z " * 100
        rows = {n: (passage(f"{n:05}", f"Rule {n % 211} binds firm {n % 197} {words}"),) for n in range(size)}
        tracemalloc.start()
        build(indexes, FakeStream(rows))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 3_000 * 150  # bytes a passage, of a text of 620 and vectors of 256

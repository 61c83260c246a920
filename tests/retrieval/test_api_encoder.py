"""Embedding APIs: what is sent, what is believed, what is kept on disk, and that the key stays where it belongs."""

import hashlib
import json
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from typer.testing import CliRunner

import ragqa.loading
from ragqa.cli import app
from ragqa.errors import ConfigError, IndexMismatchError, ModelError
from ragqa.index import open_index
from ragqa.infra import http as http_client
from ragqa.loading import load_encoder
from ragqa.plugins.protocols import Encoder
from ragqa.plugins.registry import is_api_name
from ragqa.retrieval import api_encoder
from ragqa.retrieval.api_encoder import CHARS_PER_REQUEST, TEXTS_PER_REQUEST, ApiEncoder, VectorCache
from ragqa.retrieval.dense import check_unit_rows
from ragqa.settings.paths import Paths
from tests.support.api_clients import KEY, TEXTS, refused
from tests.support.embedding_server import DIMENSION, EmbeddingServer, altered, cut_json, status, vector_of, vectors
from tests.support.fakes import FakeNli, FakeObligations
from tests.support.helpers import reprs_within

pytestmark = pytest.mark.usefixtures("slept")


@pytest.fixture
def encoder_of(client_of):
    """Makes encoders that ask this server, and closes them."""
    return lambda server, name="openai:test", cache=None, key=KEY: client_of(ApiEncoder, server, name, key, cache=cache)


def failure(encoder, texts=TEXTS, kind=ModelError) -> str:
    return refused(lambda: encoder.encode(texts), kind)


def expected(texts):
    return np.array([vector_of(text) for text in texts], dtype=np.float32)


def set_item(number, **fields):
    return lambda body: body["data"][number].update(fields)


class TestVectors:
    def test_rows_are_unit_float32_read_only_and_in_order(self, encoder_of):
        with EmbeddingServer(vectors(scale=7.5)) as server:
            encoder: Encoder = encoder_of(server)
            found = encoder.encode(TEXTS)
        assert found.dtype == np.float32
        assert found.shape == (3, DIMENSION)
        assert not found.flags.writeable
        np.testing.assert_allclose(found, expected(TEXTS), atol=1e-6)
        check_unit_rows(found, 3, "test")

    def test_items_out_of_order_are_put_in_order(self, encoder_of):
        with EmbeddingServer(vectors(backwards=True)) as server:
            np.testing.assert_allclose(encoder_of(server).encode(TEXTS), expected(TEXTS), atol=1e-6)

    def test_a_question_is_one_row_and_is_remembered(self, encoder_of):
        with EmbeddingServer() as server:
            encoder = encoder_of(server)
            found = [encoder.encode_query("Who audits?") for _ in range(3)]
            assert server.sent == [["Who audits?"]]
        assert found[0].shape == (1, DIMENSION)
        assert found[0].dtype == np.float32
        assert not found[0].flags.writeable
        np.testing.assert_allclose(found[2], expected(["Who audits?"]), atol=1e-6)

    def test_no_text_asks_nobody(self, encoder_of):
        with EmbeddingServer() as server:
            encoder = encoder_of(server)
            assert encoder.encode([]).shape == (0, 0)
            encoder.encode(["one"])
            assert encoder.encode([]).shape == (0, DIMENSION)
            assert len(server.requests) == 1

    def test_a_lone_surrogate_can_be_sent(self, encoder_of, tmp_path):
        with EmbeddingServer() as server:
            encoder_of(server, cache=tmp_path / "v").encode(["a\ud800b"])
            assert server.sent == [["a?b"]]

    def test_very_small_and_very_large_numbers(self, encoder_of):
        with EmbeddingServer(vectors(scale=1e-30), vectors(scale=1e30)) as server:
            encoder = encoder_of(server)
            np.testing.assert_allclose(encoder.encode(["a"]), expected(["a"]), atol=1e-6)
            np.testing.assert_allclose(encoder.encode(["b"]), expected(["b"]), atol=1e-6)


class TestRequests:
    def test_openai(self, encoder_of):
        with EmbeddingServer() as server:
            encoder = encoder_of(server, "openai:nomic-embed-text:latest")
            encoder.encode(["a"])
            encoder.encode_query("q")
            requests = server.requests
        assert [request.body for request in requests] == [
            {"model": "nomic-embed-text:latest", "input": [text], "encoding_format": "float"} for text in ("a", "q")
        ]
        assert {request.path for request in requests} == {"/v1/embeddings"}
        assert {request.headers["authorization"] for request in requests} == {f"Bearer {KEY}"}

    def test_voyage_is_told_what_a_text_is_for(self, encoder_of):
        with EmbeddingServer() as server:
            encoder = encoder_of(server, "voyage:voyage-3.5")
            encoder.encode(["a"])
            encoder.encode_query("a")
            bodies = [request.body for request in server.requests]
        assert bodies == [{"model": "voyage-3.5", "input": ["a"], "input_type": role} for role in ("document", "query")]

    def test_the_key_is_in_one_header_and_nowhere_else(self, encoder_of):
        with EmbeddingServer() as server:
            encoder_of(server).encode(TEXTS)
            (request,) = server.requests
        assert [name for name, value in request.headers.items() if KEY in value] == ["authorization"]
        assert KEY[:9] not in request.path + json.dumps(request.body)

    def test_a_server_of_ones_own_needs_no_key(self, encoder_of):
        with EmbeddingServer() as server:
            encoder_of(server, key="").encode(["a"])
            assert "authorization" not in server.requests[0].headers

    def test_a_key_read_from_a_file_loses_its_line_feed(self, encoder_of):
        with EmbeddingServer() as server:
            encoder_of(server, key=KEY + "\n").encode(["a"])
            assert server.requests[0].key == KEY

    def test_each_provider_has_its_own_variables(self):
        with EmbeddingServer() as server:
            environ = {"VOYAGE_API_KEY": KEY, "VOYAGE_BASE_URL": server.base_url + "/", "OPENAI_API_KEY": "other"}
            encoder = ApiEncoder("voyage:m", environ=environ)
            encoder.encode(["a"])
            encoder.close()
            assert [(request.key, request.path) for request in server.requests] == [(KEY, "/v1/embeddings")]

    def test_the_environment_of_the_process_where_none_is_given(self, monkeypatch):
        with EmbeddingServer() as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            monkeypatch.setenv("OPENAI_API_KEY", "of-the-process")
            encoder = ApiEncoder("openai:m")
            encoder.encode(["a"])
            encoder.close()
            assert server.requests[0].key == "of-the-process"

    def test_an_environment_that_is_given_is_the_only_one(self, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        encoder = ApiEncoder("openai:m", environ={})
        assert "set OPENAI_API_KEY" in failure(encoder, kind=ConfigError)
        encoder.close()


class TestBatches:
    def test_by_number_of_texts(self, encoder_of):
        texts = [f"text {n}" for n in range(2 * TEXTS_PER_REQUEST + 1)]
        with EmbeddingServer() as server:
            found = encoder_of(server).encode(texts)
            assert [len(sent) for sent in server.sent] == [128, 128, 1]
            assert [text for sent in server.sent for text in sent] == texts
        np.testing.assert_allclose(found, expected(texts), atol=1e-6)

    def test_by_characters(self, encoder_of):
        texts = [f"{n:02}" + "x" * 39_998 for n in range(7)]
        with EmbeddingServer() as server:
            encoder_of(server).encode(texts)
            assert [len(sent) for sent in server.sent] == [3, 3, 1]
            assert all(sum(map(len, sent)) <= CHARS_PER_REQUEST for sent in server.sent)


class TestAnswersAreChecked:
    @pytest.mark.parametrize(
        ("behaviour", "found"),
        [
            (cut_json(), "not JSON"),
            (altered(set_item(1, embedding="AAAA")), "not a list of numbers"),
            (altered(lambda body: body["data"][1].pop("embedding")), "not a list of numbers"),
            (altered(set_item(1, embedding=["1.0"] * DIMENSION)), "not a list of numbers"),
            (altered(set_item(1, embedding=[True] * DIMENSION)), "not a list of numbers"),
            (altered(set_item(1, embedding=[[1.0]] * DIMENSION)), "not a list of numbers"),
            (altered(set_item(1, embedding=[None] * DIMENSION)), "not a list of numbers"),
            (altered(set_item(1, embedding=vector_of("a", 8))), "embeddings of 8 and 16 numbers"),
            (altered(lambda body: [item.update(embedding=[]) for item in body["data"]]), "embeddings of 0 numbers"),
            (altered(set_item(1, embedding=[float("nan")] * DIMENSION)), "zero or not finite"),
            (altered(set_item(1, embedding=[float("inf")] * DIMENSION)), "zero or not finite"),
            (altered(set_item(1, embedding=[1e300] * DIMENSION)), "zero or not finite"),
            (altered(set_item(1, embedding=[10**400] * DIMENSION)), "zero or not finite"),
            (altered(set_item(1, embedding=[0] * DIMENSION)), "zero or not finite"),
        ],
    )
    def test_a_bad_answer_is_refused_at_once_and_not_kept(self, encoder_of, slept, tmp_path, behaviour, found):
        file = tmp_path / "vectors.sqlite3"
        with EmbeddingServer(behaviour, vectors()) as server:
            encoder = encoder_of(server, cache=file)
            message = failure(encoder)
            assert found in message
            assert "check that OPENAI_BASE_URL names a server of embeddings" in message
            assert len(server.requests) == 1
            assert slept == []
            np.testing.assert_allclose(encoder.encode(TEXTS), expected(TEXTS), atol=1e-6)
            assert server.sent == [TEXTS, TEXTS]

    def test_another_dimension_later(self, encoder_of, tmp_path):
        file = tmp_path / "vectors.sqlite3"
        with EmbeddingServer(vectors(), vectors(8)) as server:
            encoder = encoder_of(server, cache=file)
            encoder.encode(["a"])
            message = failure(encoder, ["b"])
            assert len(VectorCache(file).known([key_of(server, "a"), key_of(server, "b")])) == 1
        assert "expected vectors of 16 numbers from openai:test as before, found 8" in message
        assert f"delete {file}" in message

    def test_another_dimension_than_the_kept_ones(self, encoder_of, tmp_path):
        with EmbeddingServer(vectors(), vectors(8)) as server:
            encoder_of(server, cache=tmp_path / "v").encode(["a"])
            assert "of 16 numbers" in failure(encoder_of(server, cache=tmp_path / "v"), ["a", "b"])


def test_neither_key_nor_text_is_in_the_cache(encoder_of, tmp_path):
    with EmbeddingServer() as server:
        encoder = encoder_of(server, cache=tmp_path / "v")
        encoder.encode(TEXTS)
        encoder.encode_query("q")
        assert not any(KEY[:9] in text for text in reprs_within(encoder))
        files = list(tmp_path.iterdir())
        assert tmp_path / "v" in files
        stored = b"".join(file.read_bytes() for file in files)
    assert KEY[:9].encode() not in stored
    assert not any(text.encode() in stored for text in TEXTS)


class TestNamesAndSettings:
    def test_which_names_are_ours(self):
        assert is_api_name("openai:m")
        assert is_api_name("voyage:m")
        assert not any(map(is_api_name, ["all-MiniLM-L6-v2", "org/model", "./openai", "cohere:m", "C:\\models"]))

    @pytest.mark.parametrize(
        "url",
        [
            "ftp://host/v1", "host:80", "http://", "http://user:secret@host/v1", "http://h/v1?key=secret",
            "http://h/#secret", "http://h:0/", "http://h:99999/", "http://[::1", "http://h/a b", "http://h/\n",
        ],
    )  # fmt: skip
    def test_addresses_that_cannot_work(self, url):
        with pytest.raises(ConfigError, match="OPENAI_BASE_URL must be an address") as caught:
            ApiEncoder("openai:m", environ={"OPENAI_BASE_URL": url})
        assert "secret" not in str(caught.value)

    @pytest.mark.parametrize("key", ["a b", "schlüssel", "a\nb", "a\x00b"])
    def test_keys_that_cannot_work(self, key):
        with pytest.raises(ConfigError, match="VOYAGE_API_KEY must be printable ASCII") as caught:
            ApiEncoder("voyage:m", environ={"VOYAGE_API_KEY": key})
        assert key not in str(caught.value)

    def test_info(self):
        encoder = ApiEncoder("openai:text-embedding-3-large", environ={})
        parts = ["openai", "https://api.openai.com/v1", "text-embedding-3-large"]
        assert encoder.info.name == "openai:text-embedding-3-large"
        assert encoder.info.precision == "api"
        assert encoder.info.fingerprint == hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        encoder.close()

    def test_the_fingerprint_knows_provider_address_and_model_but_not_the_key(self):
        def fingerprint(name="openai:m", url="http://h/v1", key=""):
            environ = {"OPENAI_BASE_URL": url, "VOYAGE_BASE_URL": url, "OPENAI_API_KEY": key}
            encoder = ApiEncoder(name, environ=environ)
            encoder.close()
            return encoder.info.fingerprint

        assert fingerprint() == fingerprint(key="other") == fingerprint(url="http://h/v1/")
        others = [fingerprint(), fingerprint("voyage:m"), fingerprint("openai:n"), fingerprint(url="http://i/v1")]
        assert len(set(others)) == 4

    @pytest.mark.parametrize("name", ["openai:m", "voyage:m"])
    def test_a_public_server_without_a_key_is_not_asked(self, name):
        encoder = ApiEncoder(name, environ={})
        message = failure(encoder, kind=ConfigError)
        assert f"set {name[:6].upper()}_API_KEY" in message
        encoder.close()

    def test_importing_loads_no_client(self):
        code = (
            "import sys, ragqa.retrieval.api_encoder\n"
            "heavy = {'httpx', 'httpx2', 'openai', 'torch', 'faiss', 'openvino'}\n"
            "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True)


def key_of(server, text, role="document", name="openai:test"):
    provider, _, model = name.partition(":")
    return hashlib.sha256(json.dumps([provider, server.base_url, model, role, text]).encode()).digest()


class TestCache:
    @pytest.fixture
    def file(self, tmp_path):
        return tmp_path / "new" / "vectors.sqlite3"

    def test_a_second_run_asks_nobody(self, encoder_of, file):
        with EmbeddingServer() as server:
            first = encoder_of(server, cache=file).encode(TEXTS)
            query = encoder_of(server, cache=file).encode_query("q")
            n_requests = len(server.requests)
            again = encoder_of(server, cache=file, key="")  # and needs no key
            assert again.encode(TEXTS[::-1]).tobytes() == first[::-1].tobytes()
            assert again.encode_query("q").tobytes() == query.tobytes()
            assert len(server.requests) == n_requests == 2
            assert not again.encode(TEXTS).flags.writeable

    def test_only_new_texts_are_sent(self, encoder_of, file):
        with EmbeddingServer() as server:
            encoder_of(server, cache=file).encode(["a", "b"])
            found = encoder_of(server, cache=file).encode(["c", "a", "d", "b"])
            assert server.sent == [["a", "b"], ["c", "d"]]
        np.testing.assert_allclose(found, expected("cadb"), atol=1e-6)

    def test_without_a_file_nothing_is_kept(self, encoder_of):
        with EmbeddingServer() as server:
            encoder = encoder_of(server)
            encoder.encode(["a"])
            encoder.encode(["a"])
            assert len(server.requests) == 2

    def test_interrupted_half_way_finished_batches_are_kept(self, encoder_of, file):
        texts = [f"text {n}" for n in range(300)]
        with EmbeddingServer(vectors(), vectors(), status(401), vectors()) as server:
            failure(encoder_of(server, cache=file), texts)
            found = encoder_of(server, cache=file).encode(texts)
            assert [len(sent) for sent in server.sent] == [128, 128, 44, 44]
        np.testing.assert_allclose(found, expected(texts), atol=1e-6)

    def test_ctrl_c_too(self, encoder_of, file, monkeypatch):
        def interrupt(_seconds):
            raise KeyboardInterrupt

        monkeypatch.setattr(http_client, "_sleep", interrupt)
        texts = [f"text {n}" for n in range(200)]
        with EmbeddingServer(vectors(), status(500), vectors()) as server:
            with pytest.raises(KeyboardInterrupt):
                encoder_of(server, cache=file).encode(texts)
            encoder_of(server, cache=file).encode(texts)
            assert [len(sent) for sent in server.sent] == [128, 72, 72]

    def test_role_model_provider_and_address_have_vectors_of_their_own(self, encoder_of, file):
        with EmbeddingServer() as server, EmbeddingServer() as other:
            encoder_of(server, "voyage:m", file).encode(["a"])
            encoder_of(server, "voyage:m", file).encode_query("a")
            encoder_of(server, "voyage:n", file).encode(["a"])
            encoder_of(server, "openai:m", file).encode(["a"])
            encoder_of(other, "voyage:m", file).encode(["a"])
            assert (len(server.requests), len(other.requests)) == (4, 1)

    def test_the_file_holds_hashes_and_float32_and_its_version(self, encoder_of, file):
        with EmbeddingServer() as server:
            found = encoder_of(server, cache=file).encode(["a"])
            key = key_of(server, "a")
        connection = sqlite3.connect(file)
        assert connection.execute("SELECT key, vector FROM vectors").fetchall() == [(key, found[0].tobytes())]
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA user_version").fetchone() == (api_encoder.SCHEMA_VERSION,)
        connection.close()

    def test_the_oldest_leave_first(self, file):
        cache = VectorCache(file, max_vectors=10)
        for n in range(25):
            cache.add({bytes([n]): expected([str(n)])[0]})
        assert sorted(cache.known([bytes([n]) for n in range(25)])) == [bytes([n]) for n in range(15, 25)]
        assert count(file) == 10
        cache.close()

    @pytest.mark.parametrize(
        "stored",
        [b"", b"abc", "text", 5, np.zeros(4, "<f4").tobytes(), np.full(4, np.nan, "<f4").tobytes(),
         np.full(4, 3e38, "<f4").tobytes(), np.ones(4, "<f4").tobytes()],
    )  # fmt: skip
    def test_a_row_that_holds_no_unit_vector_is_asked_for_again(self, encoder_of, file, stored):
        with EmbeddingServer() as server:
            encoder_of(server, cache=file).encode(["a"])
            connection = sqlite3.connect(file)
            connection.execute("UPDATE vectors SET vector = ?", (stored,))
            connection.commit()
            connection.close()
            for _ in range(2):
                found = encoder_of(server, cache=file).encode(["a"])
                np.testing.assert_allclose(found, expected(["a"]), atol=1e-6)
            assert len(server.requests) == 2

    def test_a_file_that_cannot_be_opened_is_not_fatal(self, encoder_of, tmp_path, caplog):
        (tmp_path / "folder").mkdir()
        with EmbeddingServer() as server:
            encoder = encoder_of(server, cache=tmp_path / "folder")
            for _ in range(2):
                np.testing.assert_allclose(encoder.encode(TEXTS), expected(TEXTS), atol=1e-6)
        assert caplog.text.count("encoding continues without it") == 1


def count(file) -> int:
    connection = sqlite3.connect(file)
    (found,) = connection.execute("SELECT count(*) FROM vectors").fetchone()
    connection.close()
    return found


class TestSharing:
    def test_threads_share_one_encoder(self, encoder_of, tmp_path):
        jobs = [[f"{n}", f"{n + 1}", *[f"job {n} text {k}" for k in range(150)], "common"] for n in range(12)]
        with EmbeddingServer(vectors(backwards=True, seconds=0.01)) as server:
            encoder = encoder_of(server, cache=tmp_path / "v")
            start = threading.Barrier(len(jobs))

            def work(texts):
                start.wait()
                return encoder.encode(texts), encoder.encode_query(texts[0])

            with ThreadPoolExecutor(len(jobs)) as pool:
                results = list(pool.map(work, jobs))
            for texts, (found, query) in zip(jobs, results, strict=True):
                np.testing.assert_allclose(found, expected(texts), atol=1e-6)
                np.testing.assert_allclose(query, expected(texts[:1]), atol=1e-6)
            n_requests = len(server.requests)
            encoder.encode([text for texts in jobs for text in texts])
            assert len(server.requests) == n_requests

    def test_a_question_does_not_wait_for_a_long_job(self, encoder_of):
        held, asked = threading.Event(), threading.Event()

        def behave(exchange):
            if exchange.request.body["input"] == ["long"]:
                asked.set()
                assert held.wait(10)
            vectors()(exchange)

        with EmbeddingServer(behave) as server:
            encoder = encoder_of(server)
            with ThreadPoolExecutor(1) as pool:
                job = pool.submit(encoder.encode, ["long"])
                assert asked.wait(10)
                assert encoder.encode_query("short").shape == (1, DIMENSION)
                assert not job.done()
                held.set()
                assert job.result().shape == (1, DIMENSION)


class TestCommandLine:
    """Through `ragqa.loading.load_encoder`, with the process's environment."""

    SENTENCES = ("A firm must report suspicious conduct within two days.", "It must name its source.")
    RULES = (" ".join(SENTENCES), "Records must be kept for six years.")

    @pytest.fixture
    def call(self, monkeypatch, tmp_path):
        """Runs a command against this server; gives its output, or raises what it raised."""
        rows = [{"ID": n, "DocumentID": 1, "PassageID": f"1.{n}", "Passage": text} for n, text in enumerate(self.RULES)]
        (tmp_path / "rules").mkdir()
        (tmp_path / "rules" / "1.json").write_text(json.dumps(rows))
        monkeypatch.setenv("RAGQA_INDEXES", str(tmp_path / "indexes"))
        monkeypatch.setenv("COLUMNS", "200")

        def run(server, *arguments):
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            monkeypatch.setenv("OPENAI_API_KEY", KEY)
            result = CliRunner().invoke(app, list(arguments))
            assert KEY[:9] not in result.output
            if result.exception:
                raise result.exception
            return result.stdout

        return run

    @pytest.fixture
    def build(self, tmp_path):
        return ("index", "build", "mine", "--source", str(tmp_path / "rules"), "--encoder", "openai:test")

    def test_an_index_is_built_and_asked(self, call, build):
        with EmbeddingServer() as server:
            assert "index mine: 2 passages of 1 documents" in call(server, *build)
            index = open_index("mine", Paths.from_env().indexes)
            encoder = load_encoder("openai:test")
            index.check_encoder(encoder.info)
            encoder.close()
            manifest = index.manifest
            assert manifest.encoder_fingerprint == encoder.info.fingerprint
            assert (manifest.encoder, manifest.encoder_precision) == ("openai:test", "api")
            assert manifest.dimension == DIMENSION
            assert len(server.requests) == 1
            assert all(text in sent for text, sent in zip(self.RULES, server.sent[0], strict=True))
            asked = "Which conduct must a firm report?"
            ask = ("ask", asked, "--index", "mine", "--generator", "none")
            assert "A firm must report suspicious conduct" in call(server, *ask)
            assert server.sent[1:] == [[asked]]
            assert Paths.from_env().vector_cache.is_file()
            call(server, *ask)  # both question and passages are kept by now
            call(server, *build)
            assert len(server.requests) == 2

    def test_the_extractive_generator_sends_the_sentences_of_the_passages_it_may_quote(self, call, build, monkeypatch):
        nli = FakeNli()
        monkeypatch.setattr(ragqa.loading, "load_nli", lambda *_: nli)
        monkeypatch.setattr(ragqa.loading, "load_obligations", lambda scoring: FakeObligations())
        options = ("--generator", "extractive", "--threshold", "0", "--max-drop", "1")
        with EmbeddingServer() as server:
            call(server, *build)
            assert "RePASs" in call(server, "ask", "Which conduct?", "--index", "mine", *options)
            assert server.sent[1:] == [["Which conduct?"], list(self.SENTENCES)]  # the third is a passage, and kept

    def test_eval_keeps_vectors_too(self, call, build, tmp_path):
        gold = [{"DocumentID": 1, "PassageID": "1.0", "Passage": ""}]
        file = tmp_path / "questions.json"
        file.write_text(json.dumps([{"QuestionID": "q", "Question": "report what?", "Passages": gold}]))
        with EmbeddingServer() as server:
            call(server, *build)
            evaluate = ("eval", "retrieval", "--index", "mine", "--questions", str(file), "--json")
            assert json.loads(call(server, *evaluate))["encoder"] == "openai:test"
            call(server, "ask", "report what?", "--index", "mine", "--generator", "none")
            assert len(server.requests) == 2

    def test_an_index_asks_the_server_it_was_built_with(self, call, build):
        with EmbeddingServer() as server, EmbeddingServer() as other:
            call(server, *build)
            with pytest.raises(IndexMismatchError, match="was made with the encoder openai:test"):
                call(other, "ask", "Who?", "--index", "mine", "--generator", "none")
            assert other.requests == []

    def test_a_build_that_fails_leaves_no_index_and_can_be_repeated(self, call, build):
        with EmbeddingServer(status(401, "no: {key}"), vectors()) as server:
            with pytest.raises(ModelError, match="check OPENAI_API_KEY"):
                call(server, *build)
            assert list(Paths.from_env().indexes.glob("mine*")) == []
            call(server, *build)

"""Rerankers behind an API: what is sent, what is believed, that the key stays where it belongs, and the presets."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import ragqa.loading
import ragqa.pipeline
from ragqa.cli import app
from ragqa.errors import ConfigError, ModelError
from ragqa.evaluation.loading import config_of
from ragqa.infra.http import missing_key
from ragqa.loading import load_reranker
from ragqa.plugins.protocols import Reranker
from ragqa.retrieval.api_reranker import CHARS_PER_REQUEST, ApiReranker
from ragqa.settings.config import RerankingConfig
from ragqa.settings.preset_files import find_preset, preset_text, read_preset
from ragqa.settings.presets import PRESETS
from tests.support.api_clients import KEY, QUESTION, TEXTS, refused
from tests.support.embedding_server import EmbeddingServer, score_of, scores, status, vectors
from tests.support.fakes import FakeEncoder, fake_models

pytestmark = pytest.mark.usefixtures("slept")


@pytest.fixture
def reranker_of(client_of):
    """Makes rerankers that ask this server, and closes them."""
    return lambda server, name="voyage:rerank-2", key=KEY: client_of(ApiReranker, server, name, key)


def failure(reranker, texts=TEXTS, kind=ModelError) -> str:
    return refused(lambda: reranker.score(QUESTION, texts), kind)


def expected(texts, question=QUESTION):
    return [score_of(question, text) for text in texts]


class TestScores:
    @pytest.mark.parametrize(("name", "listed"), [("voyage:rerank-2", "data"), ("openai:bge", "results")])
    def test_in_the_order_of_the_texts_whatever_the_server_s(self, reranker_of, name, listed):
        with EmbeddingServer(scores(listed)) as server:
            reranker: Reranker = reranker_of(server, name)
            assert reranker.score(QUESTION, TEXTS) == expected(TEXTS)
            assert reranker.score(QUESTION, TEXTS[::-1]) == expected(TEXTS[::-1])

    def test_no_text_asks_nobody(self, reranker_of):
        with EmbeddingServer() as server:
            assert reranker_of(server).score(QUESTION, []) == []
            assert server.requests == []

    def test_scores_of_any_scale_and_whole_numbers(self, reranker_of):
        change = lambda body: [item.update(relevance_score=-7 * item["index"]) for item in body["results"]]  # noqa: E731
        with EmbeddingServer(scores("results", change)) as server:
            assert reranker_of(server).score(QUESTION, TEXTS) == [0.0, -7.0, -14.0]


class TestRequests:
    def test_voyage_is_told_that_it_may_cut(self, reranker_of):
        with EmbeddingServer() as server:
            reranker_of(server, "voyage:rerank-2-lite").score(QUESTION, TEXTS)
            (request,) = server.requests
        assert request.path == "/v1/rerank"
        assert request.body == {"model": "rerank-2-lite", "query": QUESTION, "documents": TEXTS, "truncation": True}
        assert [name for name, value in request.headers.items() if KEY in value] == ["authorization"]
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert KEY[:9] not in json.dumps(request.body)

    def test_others_get_what_all_of_them_know(self, reranker_of):
        with EmbeddingServer() as server:
            reranker_of(server, "openai:BAAI/bge-reranker-v2-m3", key="").score(QUESTION, TEXTS)
            (request,) = server.requests
        assert request.body == {"model": "BAAI/bge-reranker-v2-m3", "query": QUESTION, "documents": TEXTS}
        assert "authorization" not in request.headers

    @pytest.mark.parametrize(("name", "sizes"), [("voyage:m", [1000, 1000, 1]), ("openai:m", [32] * 62 + [17])])
    def test_batches_by_number(self, reranker_of, name, sizes):
        texts = [f"text {n}" for n in range(2001)]
        with EmbeddingServer() as server:
            assert reranker_of(server, name).score(QUESTION, texts) == expected(texts)
            assert [len(sent) for sent in server.sent] == sizes

    def test_batches_by_characters_with_the_question_once_per_text(self, reranker_of):
        question = "q" * 50_000
        texts = [f"{n}" + "x" * 49_999 for n in range(7)]
        with EmbeddingServer() as server:
            assert reranker_of(server).score(question, texts) == expected(texts, question)
            assert [len(sent) for sent in server.sent] == [3, 3, 1]
            assert all(sum(len(question) + len(text) for text in sent) <= CHARS_PER_REQUEST for sent in server.sent)


class TestRetries:
    def test_a_batch_that_was_scored_is_not_sent_again(self, reranker_of):
        texts = [f"text {n}" for n in range(40)]
        with EmbeddingServer(scores(), status(503), scores()) as server:
            assert reranker_of(server, "openai:m").score(QUESTION, texts) == expected(texts)
            assert [len(sent) for sent in server.sent] == [32, 8, 8]


def set_item(number, **fields):
    return scores("data", lambda body: body["data"][number].update(fields))


def spoilt(change):
    return scores("data", change)


class TestAnswersAreChecked:
    @pytest.mark.parametrize(
        ("behaviour", "found"),
        [
            (scores("scores"), "without a list called data or results"),
            (spoilt(lambda body: body["data"][1].pop("relevance_score")), "relevance_score that is not a number"),
            (set_item(1, relevance_score="0.5"), "relevance_score that is not a number"),
            (set_item(1, relevance_score=True), "relevance_score that is not a number"),
            (set_item(1, relevance_score=[0.5]), "relevance_score that is not a number"),
            (set_item(1, relevance_score=float("nan")), "relevance_score that is not finite"),
            (set_item(1, relevance_score=float("-inf")), "relevance_score that is not finite"),
            (set_item(1, relevance_score=10**400), "relevance_score that is not finite"),
        ],
    )
    def test_a_bad_answer_is_refused_at_once(self, reranker_of, slept, behaviour, found):
        with EmbeddingServer(behaviour, scores()) as server:
            reranker = reranker_of(server)
            message = failure(reranker)
            assert found in message
            assert "check that VOYAGE_BASE_URL names a server of rerankers" in message
            assert len(server.requests) == 1
            assert slept == []
            assert reranker.score(QUESTION, TEXTS) == expected(TEXTS)


class TestNamesAndSettings:
    def test_info_names_the_api_and_where_it_is(self, reranker_of):
        with EmbeddingServer() as server, EmbeddingServer() as other:
            info = reranker_of(server).info
            assert (info.name, info.precision, len(info.fingerprint)) == ("voyage:rerank-2", "api", 64)
            assert reranker_of(server).info == info
            others = {reranker_of(server, "voyage:rerank-2-lite").info, reranker_of(other).info}
            assert len({info.fingerprint, *(one.fingerprint for one in others)}) == 3

    def test_a_key_that_is_missing_is_named_and_nobody_is_asked(self):
        reranker = ApiReranker("voyage:rerank-2", environ={})
        message = failure(reranker, kind=ConfigError)
        assert message.startswith("https://api.voyageai.com/v1 wants a key, found none; set VOYAGE_API_KEY")
        reranker.close()

    @pytest.mark.parametrize("key", ["", KEY])
    def test_openai_itself_has_none(self, key):
        with pytest.raises(ConfigError, match="openai:m: expected OPENAI_BASE_URL to be .*leave the reranker out"):
            ApiReranker("openai:m", environ={"OPENAI_API_KEY": key})

    def test_which_variable_is_missing(self):
        assert missing_key("voyage:m", {}) == missing_key("voyage:m", {"VOYAGE_API_KEY": " "}) == "VOYAGE_API_KEY"
        assert missing_key("voyage:m", {"VOYAGE_API_KEY": KEY}) == missing_key("some/model", {}) == ""
        assert missing_key("voyage:m", {"VOYAGE_BASE_URL": "http://127.0.0.1:8000/v1"}) == ""

    def test_loading_dispatches_and_asks_nobody(self, monkeypatch):
        monkeypatch.setenv("VOYAGE_API_KEY", KEY)
        reranker = load_reranker("voyage:rerank-2")
        assert isinstance(reranker, ApiReranker)
        reranker.close()

    def test_threads_share_one(self, reranker_of):
        jobs = [[f"job {n} text {k}" for k in range(70)] for n in range(8)]
        start = threading.Barrier(len(jobs))
        with EmbeddingServer() as server:
            reranker = reranker_of(server, "openai:m")

            def work(texts):
                start.wait()
                return reranker.score(QUESTION, texts)

            with ThreadPoolExecutor(len(jobs)) as pool:
                assert list(pool.map(work, jobs)) == [expected(texts) for texts in jobs]


# PRESETS =============================================================================================================

LAW, FINANCE = "dense:voyage:voyage-law-2", "dense:voyage:voyage-finance-2"
FINAL = next(preset for preset in PRESETS if preset.name == "AUEB final")
RULES = [f"Rule {n}: a firm must report conduct of kind {n}." for n in range(8)]


def test_aueb_s_system_as_published():
    assert FINAL.fusion.weights == {"bm25": 0.25, LAW: 0.2, FINANCE: pytest.approx(0.55)}  # table 2
    assert FINAL.reranking == RerankingConfig("voyage:rerank-2", depth=50, weight=1.0)  # 3.3, figure 1
    found = [p for p in PRESETS if p.reranking.model and p.name.startswith("AUEB")]
    filters = {(p.filtering.threshold, p.filtering.max_drop) for p in found}
    assert filters == {(0.7, 0.2), (0.75, 0.05), (0.8, 0.05), (0.85, 0.15), (0.9, 0.1)}  # table 3
    assert all(replace(p, name="", explanation="", filtering=FINAL.filtering) == replace(FINAL, name="", explanation="")
               for p in found)  # fmt: skip


def test_a_preset_file_holds_reranking_only_where_there_is_any(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text(preset_text(replace(FINAL, name="mine"), {}))
    assert read_preset(file) == replace(FINAL, name="mine")
    assert find_preset(str(file), tmp_path).reranking.depth == 50
    written = json.loads(file.read_text())
    for change, message in (({"weight": 2.0}, "rerank weight"), ({"dept": 3}, "in 'reranking', found 'dept'")):
        file.write_text(json.dumps(written | {"reranking": change}))
        with pytest.raises(ConfigError, match=message):
            read_preset(file)
    assert "reranking" not in json.loads(preset_text(PRESETS[1], {}))


@pytest.fixture
def rules(monkeypatch, tmp_path):
    """An index with AUEB's three rankings at a server, and how a command is called; the scoring models are made up."""
    loaded = fake_models()
    monkeypatch.setattr(ragqa.pipeline, "load_models", lambda encoder, scoring, paths=None: loaded)
    load_encoder = ragqa.loading.load_encoder
    chosen = lambda name, *rest, **more: load_encoder(name, *rest, **more) if ":" in name else FakeEncoder()  # noqa: E731
    for module in (ragqa.loading,):
        monkeypatch.setattr(module, "load_encoder", chosen)
    monkeypatch.setenv("RAGQA_INDEXES", str(tmp_path / "indexes"))
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("VOYAGE_API_KEY", KEY)
    rows = [{"ID": n, "DocumentID": 1, "PassageID": f"1.{n}", "Passage": text} for n, text in enumerate(RULES)]
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "1.json").write_text(json.dumps(rows))

    def call(server, *arguments):
        monkeypatch.setenv("VOYAGE_BASE_URL", server.base_url)
        result = CliRunner().invoke(app, list(arguments))
        assert KEY[:9] not in result.output + str(result.exception)
        if result.exception:
            raise result.exception
        return result.stdout

    also = ("--also", LAW, "--also", FINANCE)
    with EmbeddingServer() as server:
        call(server, "index", "build", "rules", "--source", str(tmp_path / "rules"), *also)
        yield call, server


def test_ask_reranks_as_the_preset_says_and_the_record_keeps_it(rules):
    call, server = rules
    server.requests.clear()
    record = json.loads(call(server, "ask", QUESTION, "--index", "rules", "--preset", "AUEB final", "--json"))
    (request,) = [request for request in server.requests if request.path.endswith("/rerank")]
    assert request.body["model"] == "rerank-2"
    assert sorted(request.body["documents"]) == sorted(RULES)
    assert record["reranking"] == {"model": "voyage:rerank-2", "depth": 50, "weight": 1.0}
    model = record["models"]["reranker"]
    assert (model["name"], model["precision"]) == ("voyage:rerank-2", "api")
    by_score = sorted(range(8), key=lambda n: -score_of(QUESTION, RULES[n]))
    assert [entry["passage_id"] for entry in record["candidates"]] == [f"1:1.{n}" for n in by_score]
    assert dict(record["reranker_scores"])["1:1.3"] == score_of(QUESTION, RULES[3])
    assert KEY[:9] not in json.dumps(record)


@pytest.mark.long
def test_options_go_before_the_preset(rules):
    call, server = rules
    ask = ("ask", QUESTION, "--index", "rules", "--preset", "AUEB final", "--json")
    record = json.loads(call(server, *ask, "--reranker", "voyage:rerank-2-lite", "--rerank-depth", "3"))
    assert record["reranking"] == {"model": "voyage:rerank-2-lite", "depth": 3, "weight": 1.0}
    assert len(server.requests[-1].body["documents"]) == 3
    assert json.loads(call(server, *ask, "--reranker", ""))["reranker_scores"] == []


def test_eval_retrieval_measures_a_preset_with_its_reranker_and_before_it(rules, tmp_path):
    call, server = rules
    best = max(range(8), key=lambda n: score_of(QUESTION, RULES[n]))
    gold = [{"DocumentID": 1, "PassageID": f"1.{best}", "Passage": ""}]
    file = tmp_path / "questions.json"
    file.write_text(json.dumps([{"QuestionID": "q", "Question": QUESTION, "Passages": gold}]))
    arguments = ("eval", "retrieval", "--index", "rules", "--questions", str(file), "--preset", "AUEB final")
    before = "AUEB final, before reranking"
    report = json.loads(call(server, *arguments, "--baseline", before, "--json"))
    assert report["measures"]["AUEB final"]["RR@10"] == 1.0
    assert set(report["measures"]) > {before, "fused", "AUEB final"}
    assert before in {*(c["name"] for c in report["comparisons"]), before}
    n_requests = len(server.requests)
    again = json.loads(call(server, *arguments, "--baseline", "AUEB final", "--json"))
    assert again["measures"] == report["measures"]
    assert len(server.requests) == n_requests, "scores are kept"
    for further in (("--fan-out",), ("--reranker", "voyage:rerank-2-lite")):
        with pytest.raises(ConfigError, match=f"is reranked already.*name '{before}'"):
            call(server, *arguments, "--baseline", "AUEB final", *further)
    with pytest.raises(ConfigError, match="--baseline must be one of .*'AUEB final', got 'nobody'"):
        call(server, *arguments, "--baseline", "nobody")


def test_a_server_that_fails_is_explained(rules):
    call, server = rules

    def refuse(exchange):
        (status(401, "no: {key}") if exchange.request.path.endswith("/rerank") else vectors())(exchange)

    server.script = (refuse,)
    with pytest.raises(ModelError, match=r"HTTP 401 \(no: \[key\]\).*check VOYAGE_API_KEY, or leave the reranker out"):
        call(server, "ask", QUESTION, "--index", "rules", "--preset", "AUEB final")


def test_benchmarks_that_do_not_rerank_refuse_such_a_preset(tmp_path, monkeypatch):
    from ragqa.settings.paths import Paths

    paths = Paths(tmp_path)
    asked = {"index": "rules", "preset": "AUEB final"}
    assert config_of(asked, paths).reranking == FINAL.reranking
    with pytest.raises(ConfigError, match="'AUEB final' reranks"):
        config_of(asked, paths, reranks=False)


# THE PAGE ============================================================================================================


@pytest.fixture
def panel(monkeypatch, tmp_path):
    from streamlit.testing.v1 import AppTest

    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    for name in ("VOYAGE_API_KEY", "VOYAGE_BASE_URL"):
        monkeypatch.delenv(name, raising=False)

    def page():
        import streamlit as st

        from ragqa.settings.config import Config
        from ragqa.ui.pages.settings import settings_panel

        rankings = ("bm25", "dense", "dense:voyage:voyage-finance-2")
        st.session_state["found"] = settings_panel("rules", Config(), rankings, "voyage:voyage-law-2")

    return AppTest.from_function(page, default_timeout=30)


def test_the_page_applies_a_preset_s_reranker_and_the_next_preset_takes_it_away(panel, monkeypatch):
    monkeypatch.setenv("VOYAGE_API_KEY", KEY)
    at = panel.run()
    at.selectbox(key="preset").select("AUEB final").run()
    assert not at.exception
    monkeypatch.delenv("VOYAGE_API_KEY")  # without it the preset is not offered anew; what was chosen stays
    at.run()
    assert at.session_state["found"].reranking == FINAL.reranking
    assert at.selectbox(key="set_reranker").value == "voyage:rerank-2"
    (warning,) = at.warning
    assert "VOYAGE\\_API\\_KEY" in warning.value or "VOYAGE_API_KEY" in warning.value
    assert not any("Changed since" in html.proto.body for html in at.get("html"))
    at.slider(key="set_rerank_depth").set_value(20).run()
    assert any("Changed since" in html.proto.body for html in at.get("html"))
    monkeypatch.setenv("VOYAGE_API_KEY", KEY)
    at.run()
    assert not at.warning
    at.selectbox(key="preset").select("BM25 only").run()
    assert not at.exception
    assert at.session_state["found"].reranking.model == ""
    assert not any("Changed since" in html.proto.body for html in at.get("html"))
    at.selectbox(key="preset").select("AUEB final .70/.20").run()
    assert at.session_state["found"].reranking == FINAL.reranking


@pytest.mark.parametrize("depth", [1, 7, 1000])
def test_the_page_takes_any_depth_of_a_preset_file(panel, tmp_path, depth):
    (tmp_path / "presets").mkdir()
    mine = replace(FINAL, name="mine", reranking=RerankingConfig("./folder", depth, 0.33))
    (tmp_path / "presets" / "mine.json").write_text(preset_text(mine, {}))
    at = panel.run()
    at.selectbox(key="preset").select("mine").run()
    at.run()
    assert not at.exception
    assert at.session_state["found"].reranking == mine.reranking

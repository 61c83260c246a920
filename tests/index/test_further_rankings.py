"""Indexes with further rankings: built, opened, asked, measured; what is missing is said with what would add it."""

import json

import pytest
from typer.testing import CliRunner

import ragqa.loading
import ragqa.pipeline
from ragqa.cli import app
from ragqa.errors import ConfigError, IndexingError, IndexMismatchError, ModelError
from ragqa.fusion import fuse
from ragqa.index import build_events, build_index, index_info, open_index, verify_index
from ragqa.index.manifest import rebuild_hint
from ragqa.infra import http as http_client
from ragqa.loading import load_further
from ragqa.pipeline import assemble
from ragqa.retrieval import rank, retrievers_for
from ragqa.retrieval.ranking import also_option, check_rankings, fitting_weights, missing_rankings
from ragqa.settings.config import Config, FusionConfig, IndexingConfig, RetrievalConfig
from ragqa.types import ModelInfo, Question
from tests.support.embedding_server import EmbeddingServer, reset, status, vectors
from tests.support.fakes import FakeEncoder, fake_models

pytestmark = pytest.mark.long

RULES = {
    1: ["A firm must keep client money apart.", "Records must be kept for six years.", "A loss must be reported."],
    2: ["A dealer must tell the regulator about a loss.", "Complaints are kept in writing.", "Client money is money."],
}
QUESTION = "When must a firm report a loss of client money?"
NAMES = ("bm25", "context", "dense", "document", "splade", "late", "dense:other", "dense:voyage:voyage-law-2")


class OtherEncoder(FakeEncoder):
    info = ModelInfo("other", "7" * 64)
    dimension = 32


@pytest.fixture(scope="session")
def models(splade_model, late_model):
    """Those of every kind, by retriever."""
    local = load_further([f"splade:{splade_model}", "document", f"late:{late_model}"])
    return local | {"dense:other": OtherEncoder(), "dense:voyage:voyage-law-2": FakeEncoder()}


@pytest.fixture(scope="session")
def rankings(splade_model, late_model):
    return ("document", f"splade:{splade_model}", f"late:{late_model}", "dense:other", "dense:voyage:voyage-law-2")


def write_rules(folder):
    folder.mkdir()
    for document, texts in RULES.items():
        rows = [
            {"ID": f"{document}{n}", "DocumentID": document, "PassageID": f"{n}.1", "Passage": text}
            for n, text in enumerate(texts, start=1)
        ]
        (folder / f"{document}.json").write_text(json.dumps(rows))
    return folder


def build(tmp_path, rankings, models, name="rules"):
    source = tmp_path / "rules"
    config = IndexingConfig(rankings=rankings)
    return build_index(
        name,
        source if source.is_dir() else write_rules(source),
        indexes=tmp_path / "indexes",
        config=config,
        encoder=FakeEncoder(),
        models=models,
    )


@pytest.fixture(scope="session")
def built(tmp_path_factory, rankings, models):
    folder = tmp_path_factory.mktemp("built")
    build(folder, rankings, models)
    return folder / "indexes"


class TestIndex:
    def test_the_manifest_names_rankings_models_and_files(self, built, splade_model):
        manifest = verify_index("rules", built)
        assert manifest.retrievers == NAMES
        assert [one.folder for one in manifest.rankings] == ["document", "splade", "late", "dense-1", "dense-2"]
        assert manifest.rankings[0].model == manifest.rankings[0].fingerprint == ""
        assert manifest.rankings[1].model == str(splade_model)
        assert manifest.rankings[3].fingerprint == "7" * 64
        assert {"further/late/vectors.f16", "further/dense-2/vectors.faiss"} <= {one.path for one in manifest.files}
        on_disk = {str(path.relative_to(built / "rules")) for path in (built / "rules").rglob("*") if path.is_file()}
        assert on_disk == {one.path for one in manifest.files} | {"manifest.json"}

    def test_every_retriever_finds_and_every_ranking_is_fused(self, built, models):
        index = open_index("rules", built)
        found = rank(retrievers_for(index, FakeEncoder(), RetrievalConfig(), models), QUESTION, 10)
        assert tuple(ranking.retriever for ranking in found) == NAMES
        assert all(ranking.hits for ranking in found)
        assert [ranking.retriever for ranking in found if not ranking.finds] == ["document"]
        fused = fuse(found, FusionConfig.of("wsum", **dict.fromkeys(NAMES, 1.0)))
        assert tuple(part.retriever for part in fused.hits[0].parts) == NAMES
        assert 0 < fused.hits[0].score <= 1

    def test_equal_encoders_rank_alike_under_two_names(self, built, models):
        index = open_index("rules", built)
        found = rank(retrievers_for(index, FakeEncoder(), RetrievalConfig(), models), QUESTION, 10)
        assert found[2].hits == found[-1].hits

    def test_it_answers_after_its_folder_is_gone(self, tmp_path, rankings, models):
        build(tmp_path, rankings, models)
        index = open_index("rules", tmp_path / "indexes")
        retrievers = retrievers_for(index, FakeEncoder(), RetrievalConfig(), models)
        build(tmp_path, ("document",), {})
        assert all(ranking.hits for ranking in rank(retrievers, QUESTION, 10))
        assert index_info("rules", tmp_path / "indexes").retrievers == (*NAMES[:3], "document")

    def test_progress_names_each_ranking(self, tmp_path, rankings, models):
        steps = build_events(
            "rules",
            write_rules(tmp_path / "rules"),
            indexes=tmp_path / "indexes",
            config=IndexingConfig(rankings=rankings),
            encoder=FakeEncoder(),
            models=models,
        )
        last = {event.stage: (event.done, event.total) for event in steps}
        assert list(last) == ["corpus", "BM25", "vectors", *NAMES[3:], "files"]
        assert all(done == total > 0 for done, total in last.values())

    @pytest.mark.parametrize("wrong", [{}, {"splade": OtherEncoder()}])
    def test_a_model_that_is_missing_or_another(self, built, models, wrong):
        index = open_index("rules", built)
        some = {name: model for name, model in models.items() if name != "splade"} | wrong
        with pytest.raises(IndexMismatchError, match="'splade' of index 'rules' was made with .*--also splade:"):
            retrievers_for(index, FakeEncoder(), RetrievalConfig(), some)

    def test_building_without_a_model(self, tmp_path, models):
        with pytest.raises(IndexingError, match="expected a model for the ranking 'dense:other'.*load_further"):
            build(tmp_path, ("dense:other",), {})
        assert not (tmp_path / "indexes" / "rules").exists()

    @pytest.mark.parametrize("path", ["document/documents.json", "splade/data.npy", "late/offsets.npy"])
    def test_a_damaged_file_is_named(self, tmp_path, rankings, models, path):
        build(tmp_path, rankings, models)
        file = tmp_path / "indexes" / "rules" / "further" / path
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(IndexMismatchError, match=f"further/{path} was changed"):
            open_index("rules", tmp_path / "indexes")

    def test_the_command_that_builds_it_again(self, built, splade_model):
        hint = rebuild_hint("rules", index_info("rules", built))
        assert f"--also document --also splade:{splade_model} --also late:" in hint
        assert "--also dense:other --also dense:voyage:voyage-law-2`" in hint

    def test_an_index_without_further_rankings_is_as_it_was(self, tmp_path):
        assert build(tmp_path, (), {}).retrievers == ("bm25", "context", "dense")
        assert not (tmp_path / "indexes" / "rules" / "further").exists()


@pytest.mark.parametrize(
    "rankings",
    [
        ("words",),
        ("splade",),
        ("late:",),
        ("document:x",),
        ("dense: ",),
        ("document", "document"),
        ("splade:a", "splade:b"),
        ("dense:a", "dense:a"),
        ("dense:all-MiniLM-L6-v2",),
    ],
)
def test_rankings_that_cannot_be(rankings):
    with pytest.raises(ConfigError, match=r"must be document, splade:MODEL, late:MODEL or dense:ENCODER, each once"):
        IndexingConfig(rankings=rankings)


class TestNames:
    def test_the_first_encoder_is_called_dense(self):
        weights = {"bm25": 0.25, "dense:voyage:law": 0.2, "dense:voyage:finance": 0.55}
        assert fitting_weights(weights, "voyage:law") == {"bm25": 0.25, "dense": 0.2, "dense:voyage:finance": 0.55}
        assert fitting_weights({"dense": 0.5, "dense:x": 0.5}, "x") == {"dense": 1.0}

    def test_what_is_missing_and_what_adds_it(self):
        weights = {"bm25": 0.5, "context": 0.1, "splade": 0.2, "dense:x": 0.2, "late": 0.0}
        assert missing_rankings(weights, ("bm25", "dense")) == ("splade", "dense:x")
        assert [also_option(name) for name in ("splade", "dense:x", "document")] == [
            "--also splade:MODEL",
            "--also dense:x",
            "--also document",
        ]
        with pytest.raises(ConfigError, match="`ragqa index build r --source PATH --also splade:MODEL --also dense:x`"):
            check_rankings(weights, ("bm25", "dense"), "r")
        with pytest.raises(ConfigError, match="'bm52' is no ranking; give weights to those of index 'r': bm25, dense"):
            check_rankings({"bm52": 1.0, "splade": 0.0}, ("bm25", "dense"), "r")


class TestPipeline:
    def pipeline(self, built, models, **weights):
        loaded = fake_models(further=models)
        return assemble(Config(fusion=FusionConfig.of(**weights)), open_index("rules", built), loaded)

    def test_a_question_is_answered_and_its_record_names_the_models(self, built, models, tmp_path):
        from ragqa.records.store import RecordStore

        pipeline = self.pipeline(built, models, bm25=9, document=1)
        store = RecordStore(tmp_path / "records.sqlite3")
        object.__setattr__(pipeline, "records", store)
        *_, recorded = pipeline.run(Question(QUESTION))
        record = store.load(recorded.record_id)
        assert {"splade", "late", "dense:other"} <= record.models.keys()
        document = next(ranking for ranking in record.ranked if ranking.retriever == "document")
        assert not document.finds
        assert document.bounds is not None
        again = fuse(record.ranked, record.fusion)
        assert {hit.passage.passage_id: hit.score for hit in again.hits} == {
            entry.passage_id: entry.score for entry in record.candidates
        }

    def test_weights_are_fitted_to_the_index(self, built, models):
        assert self.pipeline(built, models, **{"dense:fake-encoder": 1}).config.fusion.weights == {"dense": 1.0}
        with pytest.raises(ConfigError, match="--also dense:openai:x"):
            self.pipeline(built, models, **{"dense:openai:x": 1})

    def test_models_by_name(self, tmp_path):
        assert load_further(()) == load_further(("document",)) == {}
        for ranking in ("splade:nowhere/none", "late:nowhere/none", "dense:nowhere/none"):
            with pytest.raises(ModelError, match="nowhere/none"):
                load_further((ranking,))


class TestCommands:
    @pytest.fixture
    def call(self, monkeypatch, tmp_path):
        """Runs a command; gives its output, or the exception."""
        monkeypatch.setenv("RAGQA_INDEXES", str(tmp_path / "indexes"))
        monkeypatch.setenv("COLUMNS", "200")
        loaded = fake_models()
        monkeypatch.setattr(ragqa.pipeline, "load_models", lambda encoder, scoring, paths=None: loaded)
        encoders = {"other": OtherEncoder()}
        monkeypatch.setattr(
            ragqa.loading, "load_encoder", lambda name, precision="auto", paths=None: encoders.get(name, FakeEncoder())
        )
        write_rules(tmp_path / "rules")

        def run(*arguments):
            result = CliRunner().invoke(app, list(arguments))
            return result.stdout if result.exit_code == 0 else result.exception

        return run

    def test_an_index_is_built_shown_asked_measured_and_tuned(self, call, tmp_path, splade_model):
        also = ("--also", "document", "--also", f"splade:{splade_model}", "--also", "dense:other")
        assert "index rules: 6 passages" in call("index", "build", "rules", "--source", str(tmp_path / "rules"), *also)
        info = " ".join(call("index", "info", "rules").split())
        assert "bm25, context, dense, document, splade, dense:other" in info
        assert "no model, in further/document" in info
        question = ("ask", QUESTION, "--index", "rules", "--generator", "none")
        heading = call(*question, "--weight", "bm25=0.9", "--weight", "document=0.1").split("decision")[0]
        assert "SPLADE" in heading
        assert "other" in heading
        gold = [
            {
                "QuestionID": str(n),
                "Question": text,
                "Passages": [{"DocumentID": document, "PassageID": f"{n}.1", "Passage": ""}],
            }
            for document, texts in RULES.items()
            for n, text in enumerate(texts, start=1)
        ]
        (tmp_path / "gold.json").write_text(json.dumps(gold))
        measure = ("eval", "retrieval", "--index", "rules", "--questions", str(tmp_path / "gold.json"), "--json")
        for _ in range(2):  # then from the cache
            measures = json.loads(call(*measure, "--preset", "RIRAG BM25 + documents"))["measures"]
            names = ["bm25", "context", "dense", "document", "splade", "dense:other", "fused", "RIRAG BM25 + documents"]
            assert list(measures) == names
        assert measures["bm25"]["Success@1"] == measures["RIRAG BM25 + documents"]["Success@1"] == 1.0
        tuning = ("tune", "--index", "rules", "--questions", str(tmp_path / "gold.json"), "--folds", "3")
        best = json.loads(call(*tuning, "--step", "0.25", "--depth", "50", "--json"))
        assert best["n_candidates"] == 127  # weights of six rankings in quarters, and reciprocal ranks

    def test_a_preset_that_needs_more_says_what_adds_it(self, call, tmp_path):
        call("index", "build", "rules", "--source", str(tmp_path / "rules"))
        preset = ("--preset", "AUEB BM25 + VL2 + VF2")
        (tmp_path / "gold.json").write_text("[]")
        measure = ("eval", "retrieval", "--index", "rules", "--questions", str(tmp_path / "gold.json"))
        for command in (("ask", QUESTION, "--index", "rules"), measure):
            error = call(*command, *preset)
            assert isinstance(error, ConfigError)
            wanted = "--also dense:voyage:voyage-law-2 --also dense:voyage:voyage-finance-2"
            assert f"`ragqa index build rules --source PATH {wanted}`" in str(error)

    def test_a_ranking_that_cannot_be(self, call, tmp_path):
        error = call("index", "build", "rules", "--source", str(tmp_path / "rules"), "--also", "words")
        assert isinstance(error, ConfigError)


def test_the_page_asks_with_the_models_of_further_rankings(built, models, monkeypatch, splade_model, late_model):
    from dataclasses import replace

    from ragqa.settings.paths import Paths
    from ragqa.ui.state import resources

    loaded, asked = fake_models(), []
    monkeypatch.setattr(resources, "_models", lambda *arguments: loaded)
    monkeypatch.setattr(ragqa.loading, "load_further", lambda rankings, paths: asked.append(rankings) or models)
    paths = replace(Paths.from_env(), indexes=built)
    assert resources.rankings_of("rules", paths) == (NAMES, "fake-encoder")
    assert resources.rankings_of("nowhere", paths) == (("bm25", "context", "dense"), "")
    for _ in range(2):
        pipeline = resources.pipeline(Config(index="rules"), paths)
        assert tuple(retriever.name for retriever in pipeline.retrievers) == NAMES
    options = ("document", f"splade:{splade_model}", f"late:{late_model}", "dense:other", "dense:voyage:voyage-law-2")
    assert asked == [options]  # loaded once


def test_the_fusion_of_aueb_with_two_embedding_models_at_a_server_that_fails_at_times(monkeypatch, tmp_path):
    """As a user would: nothing but the models of the answer's scores is made up, and the server is real."""
    loaded = fake_models()
    monkeypatch.setattr(ragqa.pipeline, "load_models", lambda encoder, scoring, paths=None: loaded)
    load_encoder = ragqa.loading.load_encoder
    monkeypatch.setattr(
        ragqa.loading,
        "load_encoder",
        lambda name, precision="auto", paths=None: (
            load_encoder(name, precision, paths) if ":" in name else FakeEncoder()
        ),
    )
    monkeypatch.setattr(http_client, "_sleep", lambda seconds: None)
    law, finance = "voyage:voyage-law-2", "voyage:voyage-finance-2"
    faults = (status(429, retry_after="0"), reset(), vectors())
    with EmbeddingServer(*faults, *faults, *faults) as server:
        monkeypatch.setenv("VOYAGE_BASE_URL", server.base_url)
        monkeypatch.setenv("RAGQA_INDEXES", str(tmp_path / "indexes"))
        also = ("--also", f"dense:{law}", "--also", f"dense:{finance}")
        source = str(write_rules(tmp_path / "rules"))
        result = CliRunner().invoke(app, ["index", "build", "rules", "--source", source, *also])
        assert result.exit_code == 0, result.exception
        ask = ["ask", QUESTION, "--index", "rules", "--preset", "AUEB BM25 + VL2 + VF2", "--json"]
        result = CliRunner().invoke(app, ask)
        assert result.exit_code == 0, result.exception
        models_asked = [request.body["model"] for request in server.requests]
        assert models_asked == [law[7:]] * 3 + [finance[7:]] * 3 + [law[7:]] * 3 + [finance[7:]]
    record = json.loads(result.stdout)
    assert record["fusion"]["weights"] == {"bm25": 0.25, f"dense:{law}": 0.2, f"dense:{finance}": 0.55}
    assert [ranking["retriever"] for ranking in record["rankings"]] == [*NAMES[:3], f"dense:{law}", f"dense:{finance}"]
    assert record["candidates"]

"""An index without vectors: built, opened, asked; what needs vectors says so."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import ragqa.loading
from ragqa.cli import app
from ragqa.english.words import analyser_named
from ragqa.errors import ConfigError, IndexMismatchError
from ragqa.index import build_index, index_info, open_index, verify_index
from ragqa.index.manifest import DENSE, CorpusEngine, rebuild_hint
from ragqa.pipeline import assemble
from ragqa.retrieval import rank, retrievers_for
from ragqa.retrieval.ranking import also_option, fitting_fusion, missing_rankings
from ragqa.settings.config import Config, FusionConfig, GenerationConfig, IndexingConfig, RetrievalConfig
from ragqa.settings.presets import PRESETS
from ragqa.types import Question
from tests.support.fakes import FakeEncoder, fake_models

RULES = ["A firm must keep client money apart.", "Records must be kept for six years.", "A loss must be reported."]
QUESTION = "When must a firm report a loss of client money?"
WEIGHTS = FusionConfig().weights


@pytest.fixture
def built(tmp_path):
    source = tmp_path / "rules"
    source.mkdir()
    items = [{"ID": str(n), "DocumentID": 1, "PassageID": f"1.{n}", "Passage": text} for n, text in enumerate(RULES)]
    (source / "1.json").write_text(json.dumps(items))
    build_index("rules", source, indexes=tmp_path / "indexes", config=IndexingConfig(encoder="none"), encoder=None)
    return tmp_path / "indexes"


class TestIndex:
    def test_the_manifest_says_so(self, built):
        manifest = verify_index("rules", built)
        assert not manifest.has_vectors
        assert (manifest.encoder, manifest.encoder_fingerprint, manifest.encoder_precision) == ("none", "", "")
        assert (manifest.vectors, manifest.dimension, manifest.search_effort) == ("", 0, 0)
        assert manifest.retrievers == ("bm25", "context")
        assert DENSE not in {entry.path for entry in manifest.files}
        assert not (built / "rules" / DENSE).exists()
        assert rebuild_hint("rules", manifest).startswith(
            "rebuild it with `ragqa index build rules --source PATH --encoder none`"
        )

    def test_the_command_that_rebuilds_it_has_the_options_it_was_built_with(self, built):
        engine = CorpusEngine("milvus", "http://localhost:19530", "ragqa_rules_1", 1, 9)
        manifest = replace(verify_index("rules", built), format="pdf", chunk_max_tokens=64, engine=engine)
        wanted = "--format pdf --encoder none --chunk-max-tokens 64 --engine milvus --uri http://localhost:19530`"
        assert wanted in rebuild_hint("rules", replace(manifest, analyser=analyser_named("", "pdf")))

    def test_it_ranks_by_words(self, built):
        index = open_index("rules", built)
        found = rank(retrievers_for(index, FakeEncoder(), RetrievalConfig()), QUESTION, 10)
        assert [ranking.retriever for ranking in found] == ["bm25", "context"]
        assert all(ranking.hits for ranking in found)

    def test_whoever_needs_its_vectors_is_told(self, built):
        with pytest.raises(IndexMismatchError, match="'rules' has no vectors .*without --encoder none"):
            open_index("rules", built).check_encoder(FakeEncoder().info)

    def test_vectors_are_added_by_building_it_again(self, built):
        build_index("rules", built.parent / "rules", indexes=built, config=IndexingConfig(), encoder=FakeEncoder())
        assert index_info("rules", built).retrievers == ("bm25", "context", "dense")

    def test_a_file_of_vectors_that_should_not_be_there_changes_nothing(self, built):
        (built / "rules" / DENSE).write_bytes(b"?")
        assert open_index("rules", built).vectors is None

    @pytest.mark.parametrize("changes", [{"vectors": "SQ8"}, {"rankings": ("dense:none",)}])
    def test_settings_that_contradict_each_other(self, changes):
        with pytest.raises(ConfigError):
            IndexingConfig(**{"encoder": "none", **changes})


class TestFusion:
    def test_default_weights_are_shared_by_the_others(self):
        found = fitting_fusion(FusionConfig(), ("bm25", "context"), "none", "rules")
        assert found.weights == pytest.approx({"bm25": 0.45 / 0.7, "context": 0.25 / 0.7})
        assert fitting_fusion(FusionConfig("rrf"), ("bm25", "context"), "none", "rules").method == "rrf"
        with_vectors = fitting_fusion(FusionConfig(), ("bm25", "context", "dense"), "m", "rules")
        assert with_vectors == FusionConfig()

    @pytest.mark.parametrize("weights", [{"dense": 1.0}, {"bm25": 0.6, "dense": 0.4}])
    def test_a_weight_that_somebody_chose_is_refused(self, weights):
        message = (
            "weight to dense, index 'rules' has only bm25, context, and no vectors; build it with .*--encoder all-Min"
        )
        with pytest.raises(ConfigError, match=message):
            fitting_fusion(FusionConfig(weights=weights), ("bm25", "context"), "none", "rules")

    def test_a_preset_of_words_alone_is_taken_as_it_is(self):
        [words] = [preset.fusion for preset in PRESETS if preset.name == "BM25 only"]
        assert fitting_fusion(words, ("bm25", "context"), "none", "rules") == words
        assert missing_rankings(WEIGHTS, ("bm25", "context")) == ("dense",)
        assert also_option("dense") == "--encoder all-MiniLM-L6-v2"


class TestPipeline:
    def test_it_answers(self, built):
        config = Config(index="rules", generation=GenerationConfig(generator="extractive"))
        pipeline = assemble(config, open_index("rules", built), fake_models())
        assert sum(pipeline.config.fusion.weights.values()) == pytest.approx(1)
        events = list(pipeline.run(Question(QUESTION)))
        names = [type(event).__name__ for event in events]
        assert names[:3] == ["Retrieved", "Fused", "Selected"]
        assert {"Answered", "Scored"} <= set(names)
        selected = events[2].selection
        assert selected.kept[0].relevance == 1.0
        assert "dense" not in {part.retriever for part in selected.kept[0].hit.parts}

    def test_dense_alone_is_refused(self, built):
        config = Config(index="rules", fusion=FusionConfig.of(dense=1))
        with pytest.raises(ConfigError, match="and no vectors"):
            assemble(config, open_index("rules", built), fake_models())


class TestCommandLine:
    @pytest.fixture(autouse=True)
    def places(self, built, tmp_path, monkeypatch):
        monkeypatch.setenv("RAGQA_INDEXES", str(built))
        monkeypatch.setenv("RAGQA_HOME", str(tmp_path / "home"))

    def test_build_loads_no_encoder(self, built, monkeypatch):
        monkeypatch.setattr(ragqa.loading, "load_encoder", None)
        command = ["index", "build", "again", "--source", str(built.parent / "rules"), "--encoder", "none"]
        result = CliRunner().invoke(app, command)
        assert result.exception is None, result.exception
        assert "3 passages of 1 documents" in result.stdout
        assert "no vectors: lexical only" in " ".join(result.stdout.split())
        assert "rankings" in (shown := CliRunner().invoke(app, ["index", "info", "again"]).stdout)
        assert "bm25, context" in shown

    def test_ask_says_so(self, monkeypatch):
        monkeypatch.setattr(ragqa.pipeline, "load_models", lambda *_: fake_models())
        result = CliRunner().invoke(app, ["ask", QUESTION, "--index", "rules", "--generator", "none"])
        assert result.exception is None, result.exception
        assert "no vectors in this index: lexical only" in result.stderr
        assert "cosine" not in result.stdout
        refused = CliRunner().invoke(app, ["ask", QUESTION, "--index", "rules", "--weight", "dense=1"])
        assert isinstance(refused.exception, ConfigError)


@pytest.mark.model
def test_what_quotes_compares_by_the_embedded_encoder():
    assert ragqa.loading.load_encoder("none").info.name == IndexingConfig().encoder

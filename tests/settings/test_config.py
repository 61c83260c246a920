import pytest

from ragqa.errors import ConfigError
from ragqa.settings.config import (
    Config,
    FilteringConfig,
    FusionConfig,
    GenerationConfig,
    IndexingConfig,
    RetrievalConfig,
    ScoringConfig,
)
from ragqa.settings.environment import api_key, has_llm, prompt_folder
from ragqa.settings.paths import Paths
from ragqa.settings.presets import PRESETS


@pytest.mark.parametrize(
    ("part", "setting", "message"),
    [
        (FilteringConfig, {"threshold": 1.2}, r"threshold must be in \[0, 1\], got 1.2"),
        (FilteringConfig, {"max_drop": -0.1}, "max drop must be"),
        (FilteringConfig, {"top_k": 0}, r"top-k must be in 1\.\.100, got 0"),
        (FusionConfig, {"method": "sum"}, "fusion method must be wsum or rrf, got 'sum'"),
        (FusionConfig, {"weights": {"bm25": float("nan")}}, "fusion weights must be"),
        (FusionConfig, {"weights": {"bm25": 0.5, "dense": 0.4}}, "sum to 1"),
        (FusionConfig, {"weights": {"bm25": 1.7e308, "dense": 1.7e308}}, "fusion weights must be"),
        (RetrievalConfig, {"top_k": 100_000}, "retrieval top-k"),
        (RetrievalConfig, {"bm25_backend": "lucene"}, "bm25s or rank_bm25"),
        (GenerationConfig, {"generator": "gpt"}, "fan-out-llm or none"),
        (GenerationConfig, {"timeout_seconds": 0}, "time-out"),
        (GenerationConfig, {"max_sentences": 0}, "most sentences"),
        (GenerationConfig, {"temperature": 3}, "temperature"),
        (GenerationConfig, {"max_tokens": 0}, "most tokens"),
        (GenerationConfig, {"max_retries": 99}, "retries"),
        (GenerationConfig, {"seed": -1}, "seed"),
        (GenerationConfig, {"tries": 0}, "tries"),
        (GenerationConfig, {"candidates": 0}, "candidates"),
        (GenerationConfig, {"rounds": 11}, "rounds"),
        (GenerationConfig, {"candidate_temperature": 2.1}, "candidate temperature"),
        (GenerationConfig, {"max_calls": 0}, "most calls"),
        (GenerationConfig, {"parallel_calls": 17}, "parallel calls"),
        (ScoringConfig, {"mode": "other"}, "paper or script"),
        (ScoringConfig, {"coverage_threshold": 2}, "coverage threshold"),
        (ScoringConfig, {"verdict_threshold": -1}, "verdict threshold"),
        (IndexingConfig, {"bm25_k1": 0}, "BM25 k1"),
        (IndexingConfig, {"bm25_b": 2}, "BM25 b"),
        (IndexingConfig, {"chunk_max_tokens": 1}, "chunk size"),
    ],
)
def test_every_range_is_checked(part, setting, message):
    with pytest.raises(ConfigError, match=message):
        part(**setting)


def test_weights_sum_to_1():
    assert FusionConfig.of(bm25=3, dense=1, context=0).weights == {"bm25": 0.75, "dense": 0.25}
    with pytest.raises(ConfigError, match="shares must be"):
        FusionConfig.of(bm25=0)


@pytest.mark.parametrize("shares", [(1e308, 1e308), (float("inf"), -float("inf")), (float("nan"), 1.0)])
def test_shares_whose_sum_is_no_number_are_refused(shares):
    with pytest.raises(ConfigError, match="shares must be"):
        FusionConfig.of(**dict(zip(("bm25", "dense"), shares, strict=True)))


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://host:1/v1", "http://host:1/v1"),
        ("http://u:secret@host/v1?key=secret", "http://host/v1"),
        ("http://u:sec@ret@[::1]:1/v1", "http://[::1]:1/v1"),
        ("http://host/v1?mail=a@b", "http://host/v1"),
        ("http://host:1/v1?mail=a@b", "http://host:1/v1"),
        ("http://host/v1/@me", "http://host/v1/@me"),
        ("u:secret@host/v1", "host/v1"),  # no scheme: no request is made, but the record is stored
        ("secret@host", "host"),
        ("https:/u:secret@host/v1", "https:/host/v1"),
        ("http://u:sec/ret@host/v1", "http://host/v1"),
        ("http://u:#secret@host/v1", "http://host/v1"),
        ("http://u:secret@[::1/v1", "http://[::1/v1"),
        ("", ""),
    ],
)
def test_a_stored_address_has_no_login(address, shown):
    assert GenerationConfig(base_url=address).without_credentials().base_url == shown


def test_environment_chooses_the_language_model_and_the_places(tmp_path):
    env = {
        "OPENAI_API_KEY": "sk-secret",
        "RAGQA_MODEL": "m1",
        "OPENAI_BASE_URL": "http://localhost:1/v1",
        "RAGQA_INDEX": "adgm",
        "RAGQA_HOME": str(tmp_path / "home"),
        "RAGQA_INDEXES": str(tmp_path / "indexes"),
    }
    config, paths = Config.from_env(env), Paths.from_env(env)
    assert (config.generation.generator, config.generation.model) == ("llm", "m1")
    assert (config.index, config.generation.base_url) == ("adgm", "http://localhost:1/v1")
    assert paths.records == tmp_path / "home" / "records.sqlite3"
    assert paths.indexes == tmp_path / "indexes"
    assert api_key(env) == "sk-secret"
    assert "sk-secret" not in repr(config)


def test_without_a_key_the_direct_generator_is_chosen():
    assert Config.from_env({}).generation.generator == "direct"
    assert (has_llm({}), api_key({})) == (False, None)
    assert Paths.from_env({}).indexes.name == "indexes"


def test_presets_are_named_once_and_explained():
    assert len({preset.name for preset in PRESETS}) == len(PRESETS)
    assert all(preset.explanation.endswith(".") for preset in PRESETS)
    rirag = next(preset for preset in PRESETS if preset.name == "RIRAG .70/.20")
    assert (rirag.filtering.threshold, rirag.filtering.max_drop, rirag.filtering.top_k) == (0.7, 0.2, 10)


@pytest.mark.parametrize("variable", ["RAGQA_HOME", "RAGQA_INDEXES", "RAGQA_RECORDS", "RAGQA_PROMPTS"])
def test_a_folder_of_nobody_is_refused_by_the_name_of_its_variable(variable):
    env = {variable: "~nobody-here/folder"}
    with pytest.raises(ConfigError, match=f"{variable}: expected a path, found '~nobody-here/folder'"):
        prompt_folder(env) or Paths.from_env(env).records

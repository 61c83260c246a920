"""Presets as files: written, read again, found by name, refused with a reason, and shown on the page."""

import json
from dataclasses import replace

import pytest

from ragqa.errors import ConfigError
from ragqa.settings.config import FilteringConfig, FusionConfig, RetrievalConfig
from ragqa.settings.preset_files import PRESET_FORMAT, find_preset, preset_text, presets_in, read_preset
from ragqa.settings.presets import PRESETS, Preset

MINE = Preset(
    "mine",
    "What was found.",
    RetrievalConfig(top_k=50),
    FusionConfig.of(bm25=1, dense=3),
    FilteringConfig(0.35, 1.0, 40),
    "adgm",
)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(preset_text(MINE, {"p": 0.5}))
    return path


def test_a_preset_comes_back_as_it_was_written(file):
    assert read_preset(file) == MINE
    for preset in PRESETS:
        file.write_text(preset_text(replace(preset, name="mine"), {}))
        assert read_preset(file) == replace(preset, name="mine")


def test_what_is_left_out_is_the_default(file):
    file.write_text(json.dumps({"format": PRESET_FORMAT, "name": "a", "explanation": "b", "fusion": {"method": "rrf"}}))
    assert read_preset(file) == Preset("a", "b", fusion=FusionConfig("rrf"))


def changed(**changes):
    return json.dumps(json.loads(preset_text(MINE, {})) | changes)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "expected JSON in UTF-8"),
        ("{", "expected JSON in UTF-8"),
        ("[" * 100_000, "expected JSON in UTF-8"),
        (b"\xff\xfe", "expected JSON in UTF-8"),
        ("[]", "whose 'format' is"),
        ("{}", "whose 'format' is"),
        (changed(format="ragqa preset 9"), "whose 'format' is"),
        (changed(weights=1), "expected only explanation, filtering, .* in the file, found 'weights'"),
        (changed(filtering={"thresold": 0.5}), "in 'filtering', found 'thresold'"),
        (changed(filtering={"threshold": "0.5"}), "at filtering.threshold"),
        (changed(filtering={"threshold": 7}), r"threshold must be in \[0, 1\], got 7"),
        (changed(filtering={"top_k": True}), "at filtering.top_k"),
        (changed(filtering=[]), "at filtering"),
        (changed(retrieval={"top_k": 0}), "retrieval top-k must be in 1..1000"),
        (changed(fusion={"weights": {"bm25": 0.5}}), "sum to 1"),
        (changed(fusion={"weights": {"bm25": float("nan")}}), "fusion"),
        (changed(fusion={"weights": {"bm52": 1.0}}), "expected weights of bm25, .*found one of 'bm52'"),
        (changed(name=3), "at name"),
        (changed(name=" "), "one line of 1 to 80 characters"),
        (changed(name="a\nb"), "one line of 1 to 80 characters"),
        (changed(name="BM25 only"), "belongs to a bundled preset"),
        (changed(explanation="x" * 1000), "an explanation of one line"),
        (" " * 1_000_001, "at most 1,000,000 bytes"),
    ],
)
def test_what_is_no_preset_is_refused_with_the_file_named(file, content, message):
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError, match=f"(?s)preset file .*mine.json: .*{message}"):
        read_preset(file)
    assert presets_in(file.parent)[0] == ()
    assert len(presets_in(file.parent)[1]) == 1


def test_a_preset_is_found_by_its_name_or_its_file(file, tmp_path):
    assert find_preset("BM25 only", tmp_path).name == "BM25 only"
    assert find_preset("mine", tmp_path) == MINE
    assert find_preset(str(file), tmp_path / "nowhere") == MINE
    with pytest.raises(ConfigError, match="cannot|can be read, found: No such file"):
        find_preset(str(tmp_path / "no.json"), tmp_path)
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(ConfigError, match=r"unknown preset 'other'; choose one of .*'mine'.*\(1 files in"):
        find_preset("other", tmp_path)


def test_a_file_of_nobody_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="preset file: expected a path, found '~nobody-here/x.json'"):
        find_preset("~nobody-here/x.json", tmp_path)


def test_a_folder_gives_what_can_be_read_and_says_what_cannot(file, tmp_path):
    assert presets_in(tmp_path / "nowhere") == ((), ())
    (tmp_path / "z.json").write_text(preset_text(MINE, {}))
    (tmp_path / "a.json").write_text("no")
    (tmp_path / "b.json").mkdir()
    (tmp_path / "notes.txt").write_text("no")
    found, problems = presets_in(tmp_path)
    assert found == (MINE,)
    assert [problem.split(": ")[0].rsplit("/", 1)[1] for problem in problems] == ["a.json", "z.json"]
    assert "another file has the name 'mine' too" in problems[1]


# THE PAGE ============================================================================================================


@pytest.fixture
def panel(monkeypatch, tmp_path):
    """The settings panel alone, with a folder of presets."""
    from streamlit.testing.v1 import AppTest

    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    (tmp_path / "presets").mkdir()

    def page():
        import streamlit as st

        from ragqa.settings.config import Config
        from ragqa.ui.pages.settings import settings_panel

        rankings = st.session_state.get("rankings", ("bm25", "context", "dense"))
        st.session_state["found"] = settings_panel("rules", Config(), rankings, "voyage:voyage-law-2")

    return AppTest.from_function(page, default_timeout=30), tmp_path / "presets"


@pytest.mark.long
def test_the_page_offers_presets_of_the_folder_after_its_own(panel):
    at, folder = panel
    text = "Found ![x](http://tracker.example/x.png) <b>good</b>."
    (folder / "mine.json").write_text(preset_text(replace(MINE, explanation=text), {}))
    (folder / "bad.json").write_text("{")
    at.run()
    assert not at.exception
    options = at.selectbox(key="preset").options
    assert options.index("dense only") < options.index("mine")
    assert not any("ColBERTv2" in option for option in options)  # of a ranking that this index has not
    (warning,) = at.warning
    assert "bad" in warning.value
    at.selectbox(key="preset").select("mine").run()
    assert not at.exception
    found = at.session_state["found"]
    assert (found.retrieval, found.filtering) == (MINE.retrieval, MINE.filtering)
    assert found.fusion.weights == {"bm25": 0.25, "dense": 0.75}
    captions = [caption.value for caption in at.caption]
    assert not any("![x](http" in caption or "<b>" in caption for caption in captions)
    assert any(
        "http\\:\N{WORD JOINER}//tracker.example" in caption and "Changed" not in caption for caption in captions
    )


def notices(at):
    return [one.proto.body for one in at.get("html") if "rq-notice" in one.proto.body]


@pytest.mark.long
def test_a_preset_whose_file_is_gone_gives_way_to_the_first(panel):
    at, folder = panel
    (folder / "mine.json").write_text(preset_text(MINE, {}))
    at.run()
    at.selectbox(key="preset").select("mine").run()
    (folder / "mine.json").unlink()
    at.run()
    assert not at.exception
    assert at.selectbox(key="preset").value == PRESETS[0].name


def sliders(at):
    return [slider.key for slider in at.slider if slider.key.startswith("set_weight_")]


def test_a_slider_for_each_ranking_that_the_index_has(panel):
    at, _ = panel
    at.run()
    assert sliders(at) == ["set_weight_bm25", "set_weight_context", "set_weight_dense"]
    assert not at.warning
    at.session_state["rankings"] = ("bm25", "dense", "document", "dense:openai:text-embedding-3-large")
    at.run()
    assert not at.exception
    assert sliders(at)[2:] == ["set_weight_document", "set_weight_dense:openai:text-embedding-3-large"]
    assert at.session_state["found"].fusion.weights == pytest.approx({"bm25": 0.6, "dense": 0.4})
    at.selectbox(key="preset").select("RIRAG BM25 + documents").run()
    assert at.session_state["found"].fusion.weights == {"bm25": 0.9, "document": 0.1}
    at.session_state["rankings"] = ("bm25", "context", "dense")
    at.run()
    assert not at.exception
    assert at.session_state["found"].fusion.weights == {"bm25": 1.0}


def test_a_preset_that_needs_more_says_how_to_add_it_and_an_index_of_its_encoder_has_it(panel):
    at, _ = panel
    at.session_state["chosen_preset"] = "AUEB BM25 + VL2 + VF2"  # as an address may, though it is not offered
    at.run()
    assert not at.exception
    (notice,) = notices(at)
    assert "--also dense:voyage:voyage-finance-2" in notice
    assert "law" not in notice  # the index was made with that encoder
    assert at.session_state["found"].fusion.weights == pytest.approx({"bm25": 0.25 / 0.45, "dense": 0.2 / 0.45})
    at.session_state["rankings"] = ("bm25", "dense", "dense:voyage:voyage-finance-2")
    at.run()
    at.selectbox(key="preset").select("dense only").run()
    at.selectbox(key="preset").select("AUEB BM25 + VL2 + VF2").run()
    assert not notices(at)
    expected = {"bm25": 0.25, "dense": 0.2, "dense:voyage:voyage-finance-2": 0.55}
    assert at.session_state["found"].fusion.weights == pytest.approx(expected)

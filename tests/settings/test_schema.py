"""A setting is declared once: what reads it has one more setting where a field, and nothing else, was added."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import ragqa
from ragqa.settings.config import SETTINGS, Config, values_by_key, with_values
from ragqa.settings.schema import is_day

FIELD = """    least_words: int = setting(
        4, "least words", 1, 50, help="Words a kept passage has at least.", source="a test"
    )
"""
BEFORE = "    method: FilterMethod = setting("
LOOKS = """
import dataclasses, json, sys
from pathlib import Path

from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

import ragqa.cli.ask
from ragqa.cli import app
from ragqa.cli.reference import reference
from ragqa.settings.config import Config, with_values
from ragqa.settings.preset_files import find_preset, read_preset, save_preset
from ragqa.settings.presets import PRESETS, Preset
from ragqa.types import Question
from ragqa.ui.state.address import link_of, link_to, query_of
from ragqa.records.differences import differences

asked = []
ragqa.cli.ask.answer_all = lambda questions, config, **_: asked.append(config.filtering.least_words)
for given in ([], ["--least-words", "7"]):
    assert CliRunner().invoke(app, ["ask", "Who?", *given]).exit_code == 0
moved = with_values(Config(), {"least_words": 7})
saved = save_preset(Preset.of("mine", "Mine.", moved), Path("presets"))
saved.with_name("old.json").write_text(saved.read_text().replace('"least_words": 7,', "").replace("mine", "old"))
link = link_to(Question("Who?"), moved, PRESETS, Config(), ("bm25",), "")

def drawer():
    import streamlit as st

    from ragqa.settings.config import Config
    from ragqa.ui.pages.settings import settings_panel

    st.session_state["now"] = settings_panel("rulebook", Config()).filtering.least_words

page = AppTest.from_function(drawer, default_timeout=60).run()
assert not page.exception, page.exception
slider = page.slider(key="set_least_words").set_value(9)
page.run()
print(json.dumps({
    "command line": asked,
    "preset file": [one.filtering.least_words for one in (read_preset(saved), find_preset("old", Path("presets")))],
    "address": [query_of(link)["least_words"], link_of(query_of(link)).changed["least_words"]],
    "differences": [row.words for row in differences(Config(), moved)],
    "drawer": [slider.label, slider.min, slider.max, slider.help, page.session_state["now"]],
    "reference": [line for line in reference().splitlines() if "least" in line and "words" in line],
}))
"""


@pytest.mark.long
def test_a_setting_added_in_one_class_is_everywhere(tmp_path):
    package = tmp_path / "ragqa"
    package.mkdir()
    for entry in Path(ragqa.__file__).parent.iterdir():
        if entry.name not in {"settings", "__pycache__"}:
            (package / entry.name).symlink_to(entry)
    (package / "settings").mkdir()
    for file in (Path(ragqa.__file__).parent / "settings").glob("*.py"):
        (package / "settings" / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    config = package / "settings" / "config.py"
    config.write_text(config.read_text(encoding="utf-8").replace(BEFORE, FIELD + BEFORE), encoding="utf-8")
    (tmp_path / "looks.py").write_text(LOOKS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "looks.py"], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"PYTHONPATH": str(tmp_path), "RAGQA_HOME": str(tmp_path / "home"), "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["command line"] == [4, 7]
    assert seen["preset file"] == [7, 4]
    assert seen["address"] == ["7", 7]
    assert seen["differences"] == ["Least words 4 → 7"]
    assert seen["drawer"] == ["Least words", 1, 50, "Words a kept passage has at least.", 9]
    assert seen["reference"] == [
        "| `filtering.least_words` | `--least-words` | 4 | 1 to 50 | Words a kept passage has at least. | a test |",
        "| `--least-words` | Words a kept passage has at least, 1 to 50. |",
    ]


def test_keys_are_unique_and_values_go_there_and_back():
    assert len({one.key for one in SETTINGS}) == len(SETTINGS)
    assert with_values(Config(), values_by_key(Config())) == Config()
    assert all(one.help for one in SETTINGS)


def test_a_day_is_written_as_such_whatever_a_page_is_sent():
    assert is_day("2026-02-28")
    assert not any(map(is_day, ("2026-02-30", "20260228", "", None, 7, b"2026-02-28", ["2026-02-28"])))

"""The examples in the READMEs of the rooms run as they stand, and calls print what they say."""

import doctest
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import ragqa
from ragqa.cli import app
from ragqa.corpus.streams import PassageStream
from ragqa.filtering import select
from ragqa.fusion import fuse
from ragqa.index import build_index, open_index
from ragqa.settings.config import FilteringConfig, FusionConfig, IndexingConfig
from ragqa.types import Question, Ranking, ScoredPassage
from ragqa.types.streams import returned
from tests.support.fakes import passage

ROOMS = ("corpus", "index", "generation", "ui")
CALLS = ("conversation", "evaluation", "library", "models", "records", "retrieval", "server/api")
PACKAGE = Path(ragqa.__file__).parent


def example(room):
    (code,) = re.findall(r"```python\n(.*?)```", (PACKAGE / room / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    names = {"__name__": f"example_{room}"}
    exec(compile(code, f"{room}/README.md", "exec"), names)
    return names


def test_a_corpus_format_of_your_own_is_indexed(tmp_path):
    source = tmp_path / "lakes.csv"
    source.write_text("id,title,text\n1,Orl,Lake Orl is deep.\n2,Bim,\n3,Bim,Lake Bim is small.\n")
    stream = example("corpus")["CsvStream"](source)
    assert isinstance(stream, PassageStream)
    manifest = build_index("lakes", stream, indexes=tmp_path, config=IndexingConfig(encoder="none"), encoder=None)
    assert (manifest.format, manifest.source, manifest.n_passages) == ("csv", "lakes.csv", 2)
    assert [passage.text for passage in open_index("lakes", tmp_path).passages][1] == "Lake Bim is small."


def test_an_index_without_vectors_is_built_from_python(tmp_path):
    (tmp_path / "a.md").write_text("# Orl\n\nLake Orl is deep.\n")
    index = example("index")["lexical_index"]("lakes", tmp_path, tmp_path / "indexes")
    assert [passage.text for passage in index.passages] == ["Lake Orl is deep."]


def test_a_generator_of_your_own_writes_a_cited_answer():
    generator = example("generation")["FirstSentences"]()
    tokens = []
    passages = [passage("a", "Act within 4.54 days. It may wait."), passage("b", "The moon is green.")]
    passages.append(replace(passages[0], passage_id="c", text=""))
    answer = returned(generator.stream(Question("What?"), passages), tokens.append)
    assert "".join(token.text for token in tokens) == "Act within 4.54 days. [1] The moon is green. [2] "
    assert [sentence.citations for sentence in answer.sentences] == [(1,), (2,)]
    for nothing in ([], passages[2:]):  # no passage, none with text
        assert returned(generator.stream(Question("What?"), nothing)).finish_reason == "empty"


def test_a_panel_of_your_own_escapes_what_it_shows():
    ranking = Ranking("bm25", (ScoredPassage(passage("<b>", "text", document_id="<b>"), 1.0),))
    html = example("ui")["titles_html"](select(fuse((ranking,), FusionConfig()), FilteringConfig()))
    assert "<b>" not in html


@pytest.mark.parametrize("room", ROOMS)
def test_modules_and_commands_named_in_a_room_exist(room):
    text = (PACKAGE / room / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    for name in re.findall(r"`([a-z_/]+\.py)`", text):
        assert any((base / name).is_file() for base in (PACKAGE / room, PACKAGE.parent)), name
    for command in set(re.findall(r"(?:`|bin/)ragqa ((?:index )?[a-z]+)", text)):
        assert CliRunner().invoke(app, [*command.split(), "--help"]).exit_code == 0, command


@pytest.mark.model
@pytest.mark.parametrize("room", CALLS)
def test_a_call_gives_what_its_room_says(room, tmp_path, monkeypatch):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    text = (PACKAGE / room / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```pycon\n(.*?)```", text, re.DOTALL)
    said = []
    runner = doctest.DocTestRunner()
    runner.run(doctest.DocTestParser().get_doctest(block, {}, room, None, 0), out=said.append)
    assert runner.failures == 0, "".join(said)
    assert runner.tries > 1

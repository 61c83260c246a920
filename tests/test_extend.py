"""Parts of one's own: in a program of twelve lines, and from another installed package by its entry points."""

import json
import os
import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from ragqa.cli import COMMANDS, app, load_command
from ragqa.errors import ConfigError
from ragqa.loading import load_encoder, load_further, load_nli, load_reranker
from ragqa.pipeline import load_pipeline
from ragqa.plugins import registry
from ragqa.records.record import AnswerRecord
from ragqa.settings.config import Config, FusionConfig, GenerationConfig
from ragqa.settings.environment import ENVIRONMENT, environment_table
from ragqa.settings.paths import Paths
from ragqa.types import Ranking
from tests.support.server import ROOT

PROGRAM = """
from ragqa import Answered, Config, FusionConfig, Question, Ranking, ScoredPassage, load_pipeline

class Titles:
    name = "titles"
    def __init__(self, index): self.passages = index.passages
    def retrieve(self, question, top_k):
        hits = [ScoredPassage(p, float(sum(word in p.title for word in question.split()))) for p in self.passages]
        return Ranking(self.name, Ranking.of(self.name, [hit for hit in hits if hit.score]).hits[:top_k])
pipeline = load_pipeline(Config(fusion=FusionConfig.of(bm25=3, titles=1)), retrievers=[Titles])
for event in pipeline.run(Question("What must a firm keep records of?")):
    if isinstance(event, Answered): print(event.answer.text)
"""
PACKAGE = '''
from ragqa import Answer, AnswerSentence, ModelInfo, Ranking, ScoredPassage, Token


class Titles:
    """Passages whose title shares words with the question."""

    name, label = "titles", "Titles"

    def __init__(self, index):
        self.passages = index.passages

    def retrieve(self, question, top_k):
        words = question.casefold().split()
        hits = [ScoredPassage(p, float(sum(word in p.title.casefold() for word in words))) for p in self.passages]
        return Ranking(self.name, Ranking.of(self.name, [hit for hit in hits if hit.score]).hits[:top_k])


class Lengths:
    """Short passages first; their lengths are in a file."""

    name = "lengths"

    def __init__(self, index, folder):
        self.passages = index.passages
        self.lengths = [int(line) for line in (folder / "lengths.txt").read_text().splitlines()]

    @staticmethod
    def write(folder, passages):
        lines = [f"{len(passage.text)}\\n" for passage in passages]
        (folder / "lengths.txt").write_text("".join(lines))
        yield len(lines), len(lines)

    def retrieve(self, question, top_k):
        hits = [ScoredPassage(p, 1 / (1 + n)) for p, n in zip(self.passages, self.lengths, strict=True)]
        return Ranking(self.name, Ranking.of(self.name, hits).hits[:top_k])


class Echo:
    """The beginning of the best passage."""

    name, model, label, options = "echo", "", "echo, the best passage", ("max_calls",)

    def stream(self, question, passages):
        text = passages[0].text.split(".")[0] + "."
        yield Token(text)
        return Answer(text, (AnswerSentence(text, 0, len(text), (1,)),), self.name, self.model, raw=f"{text} [1]")


class Backwards:
    """The worst first."""

    info = ModelInfo("backwards", "")

    def score_hits(self, question, hits, depth, corpus):
        return [float(n) for n, hit in enumerate(hits[:depth]) if corpus.text_of(hit.passage)]


class Nothing:
    info = ModelInfo("nothing", "")

    def __init__(self, name):
        self.name = name

    def predict(self, pairs):
        return []

    def encode(self, texts):
        return []

    def encode_query(self, text):
        return []


def needy(fuel):
    return fuel
'''
ENTRY_POINTS = """
[ragqa.retrievers]
titles = mine_parts:Titles
lengths = mine_parts:Lengths
bm25 = mine_parts:Titles
gone = mine_nowhere:Titles

[ragqa.generators]
echo = mine_parts:Echo
needy = mine_parts:needy
silent = mine_parts:Nothing

[ragqa.rerankers]
backwards = mine_parts:Backwards

[ragqa.encoders]
blank = mine_parts:Nothing

[ragqa.nli_models]
blank = mine_parts:Nothing

[ragqa.corpus_formats]
lines = mine_formats:lines
"""
FORMATS = '''
from ragqa import Passage


def lines(source, chunk_max_tokens):
    """A passage a line."""
    texts = source.read_text().splitlines()
    return [Passage(f"1:{n}", "1", text, title="Lines") for n, text in enumerate(texts, start=1)]
'''


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """A folder as `pip install --target` would leave it, with the package mine-parts 1.2 in it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "mine_parts.py").write_text(PACKAGE)
    (folder / "mine_formats.py").write_text(FORMATS)
    info = folder / "mine_parts-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine-parts\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


@pytest.fixture
def installed(site, monkeypatch):
    """The package is installed in this process, whose commands are imported before: their help names parts for good."""
    for name in COMMANDS:
        load_command(name)
    monkeypatch.syspath_prepend(str(site))
    registry.refresh()
    yield
    monkeypatch.undo()
    registry.refresh()


def ran(site, home, *arguments, code=0):
    """The command in a process of its own, with the package on its path: what it wrote to both outputs."""
    command = [sys.executable, "-c", "from ragqa.cli import main; main()", *arguments]
    path = os.pathsep.join([str(site), str(ROOT)])
    env = {**os.environ, "PYTHONPATH": path, "RAGQA_HOME": str(home), "COLUMNS": "300"}
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


@pytest.mark.model
def test_a_program_of_twelve_lines_adds_a_retriever(tmp_path):
    assert len([line for line in PROGRAM.splitlines() if line.strip()]) <= 12
    env = {**os.environ, "PYTHONPATH": str(ROOT), "RAGQA_HOME": str(tmp_path)}
    out = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True).stdout
    assert "record" in out


@pytest.mark.model
def test_parts_of_a_package_answer_by_name_and_the_record_says_whose_they_are(site, tmp_path):
    out, err = ran(
        site, tmp_path, "ask", "What must a firm keep records of?", "--json", "--weight", "bm25=0.7", "--weight",
        "titles=0.3", "--generator", "echo", "--reranker", "backwards",
    )  # fmt: skip
    record = AnswerRecord.from_json(out)  # in this process the package is not installed
    assert record.generation.generator == record.answer.generator == "echo"
    assert record.fusion.weights == {"bm25": 0.7, "titles": 0.3}
    assert "titles" in [entry.retriever for entry in record.rankings if entry.hits]
    assert record.models["titles"].name == record.models["generator"].name == "mine-parts 1.2"
    assert record.models["reranker"].name == "backwards"
    assert record.scored is not None
    assert "'bm25' (mine_parts:Titles) of the package mine-parts has the name of a built-in part" in err
    assert AnswerRecord.from_json(record.to_json()) == record


def test_help_names_them(site, tmp_path):
    out, _ = ran(site, tmp_path, "ask", "--help")
    text = " ".join(out.split())
    assert "titles" in text.split("--weight")[1]
    assert "echo" in text.split("--generator")[1].split("--model")[0]
    assert "backwards" in text.split("--reranker")[1].split("--rerank-depth")[0]


@pytest.mark.model
def test_a_retrieval_evaluation_has_a_row_for_it_and_a_broken_one_stops_nothing(site, tmp_path):
    questions = ROOT / "ragqa" / "corpus" / "demo" / "rulebook" / "questions_1.json"
    out, err = ran(site, tmp_path, "eval", "retrieval", "--questions", str(questions), "--limit", "3", "--json")
    assert {"bm25", "titles", "fused"} <= json.loads(out)["measures"].keys()
    assert err.count("the retriever 'gone' (mine_nowhere:Titles) of the package mine-parts cannot be imported") == 1


@pytest.mark.model
@pytest.mark.usefixtures("installed")
def test_one_with_files_joins_an_index(tmp_path, monkeypatch):
    source = tmp_path / "rules.txt"
    source.write_text("A firm must keep records.\n\nA branch need not.\n")
    folder = tmp_path / "indexes"
    monkeypatch.setenv("RAGQA_INDEXES", str(folder))

    def run(*arguments):
        return CliRunner().invoke(app, arguments, catch_exceptions=True)

    build = ("index", "build", "rules", "--source", str(source), "--encoder", "none")
    assert run(*build, "--also", "lengths").exit_code == 0
    assert (folder / "rules" / "further" / "lengths" / "lengths.txt").is_file()
    assert run("index", "verify", "rules").exit_code == 0
    ask = ("ask", "Who must keep records?", "--index", "rules", "--generator", "none", "--weight", "lengths=1")
    assert json.loads(run(*ask, "--json").stdout)["kept"]
    assert run(*build, "--format", "lines").exit_code == 0  # of the package, too
    assert "--format must be one of obliqa, " in str(run(*build, "--format", "scrolls").exception)
    assert "the ranking 'titles' has no files" in str(run(*build, "--also", "titles").exception)
    assert run(*build).exit_code == 0
    assert "--also lengths" in str(run(*ask).exception)


@pytest.mark.model
def test_the_page_has_its_slider_and_its_generator(installed):
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    assert not at.exception
    assert "Titles weight" in [slider.label for slider in at.slider]
    assert "Lengths weight" not in [slider.label for slider in at.slider]  # this index has no files of it
    assert "echo, the best passage" in at.radio(key="set_generator").options
    assert "backwards" in at.selectbox(key="set_reranker").options
    assert any("gone" in warning.value for warning in at.warning)
    at.radio(key="set_generator").set_value("echo").run()
    assert at.slider(key="set_max_calls").value == 30


def test_only_what_is_allowed_can_be_loaded_on_the_page(monkeypatch):
    monkeypatch.setenv("RAGQA_PAGE_MODELS", "some/reranker, ./mine")
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    offered = at.selectbox(key="set_reranker").options
    one = "Learning to rank, one rulebook"
    own = ["Learning to rank", one, f"{one}, large", "Cross-encoder"]
    assert offered[:7] == ["off", *own, "some/reranker", "./mine"]
    forged = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    forged.session_state["set_reranker"] = "stranger/model"
    forged.run()
    assert not forged.exception
    assert forged.session_state["settings"]["reranker"] == ""


@pytest.mark.usefixtures("installed")
class TestErrorsNameThePackage:
    def test_a_broken_one(self):
        with pytest.raises(ConfigError, match="'gone' .mine_nowhere:Titles. of the package mine-parts cannot be imp"):
            registry.find(registry.RETRIEVERS, "gone")
        assert [part.name for part in registry.parts(registry.RETRIEVERS) if part.package] == ["lengths", "titles"]
        assert len(registry.problems(registry.RETRIEVERS)) == 2

    def test_one_that_asks_for_what_there_is_not(self):
        with pytest.raises(ConfigError, match="'needy' of the package mine-parts cannot be made.*of name, config;"):
            registry.make(registry.GENERATORS, "needy", config=GenerationConfig())

    def test_one_that_cannot_do_what_its_kind_does(self):
        with pytest.raises(ConfigError, match="'silent' of the package mine-parts has no method 'stream'"):
            registry.make(registry.GENERATORS, "silent")

    def test_names_of_ragqa_stay_ragqa_s(self):
        assert registry.find(registry.RETRIEVERS, "bm25").package == ""
        assert registry.names(registry.RETRIEVERS).count("bm25") == 1

    def test_settings_take_the_name_while_the_package_is_there(self, monkeypatch):
        assert GenerationConfig(generator="echo").generator == "echo"
        with pytest.raises(ConfigError, match="direct, .*echo"):
            GenerationConfig(generator="ech")

    def test_models_are_made_by_name(self):
        assert load_encoder("blank").info.name == "nothing"
        assert load_reranker("backwards").info.name == "backwards"
        assert load_nli("blank").info.name == "nothing"
        with pytest.raises(ConfigError, match="has no files"):
            load_further(["titles"])


def test_without_the_package_its_names_are_none():
    with pytest.raises(ConfigError, match="generator must be direct, .*got 'echo'"):
        GenerationConfig(generator="echo")
    assert registry.entry_points_of(registry.BENCHMARKS) == {}


def test_what_a_thread_still_looked_for_is_nobody_s_after_a_refresh(monkeypatch):
    def slow(group):
        registry.refresh()
        return [EntryPoint("slow", "mine_parts:Echo", group)]

    monkeypatch.setattr(registry, "entry_points", slow)
    registry.refresh()  # of what another test looked for
    assert list(registry.entry_points_of(registry.RETRIEVERS)) == ["slow"]
    monkeypatch.undo()
    assert registry.entry_points_of(registry.RETRIEVERS) == {}


def test_a_package_that_goes_while_a_thread_asks_for_its_part_is_found_or_is_none(monkeypatch):
    point = EntryPoint("gone", "json:dumps", registry.GENERATORS)
    known = [{"gone": point}]
    monkeypatch.setattr(registry, "entry_points_of", lambda _: known.pop() if known else {})
    assert registry.find(registry.GENERATORS, "gone").name == "gone"
    assert registry.find(registry.GENERATORS, "gone") is None


def test_every_part_of_ragqa_is_found_where_the_registry_says():
    for group in (registry.GENERATORS, registry.RETRIEVERS, registry.CORPUS_FORMATS, registry.RERANKERS):
        for part in registry.ours(group):
            module, _, name = str(part.maker).partition(":")
            assert not module or callable(getattr(import_module(module), name)), part
            assert part.explanation.endswith(".")
        table = registry.parts_table(group)
        assert all(f"| `{part.name}` |" in table for part in registry.ours(group))


@pytest.mark.model
def test_a_retriever_of_one_s_own_needs_a_weight_and_a_name(tmp_path):
    class Mine:
        name = "mine"

        def retrieve(self, question, top_k):
            return Ranking(self.name, ())

    with pytest.raises(ConfigError, match="'mine' needs a name of its own and a weight"):
        load_pipeline(paths=Paths(tmp_path), recording=False, retrievers=[Mine()])
    with pytest.raises(ConfigError, match="'theirs' is no ranking"):
        load_pipeline(Config(fusion=FusionConfig.of(theirs=1)), Paths(tmp_path))


def test_the_environment_is_in_one_table():
    sources = [path.read_text("utf-8") for path in (ROOT / "ragqa").rglob("*.py")]
    pattern = r'"((?:RAGQA|OPENAI|VOYAGE|FANOUTQA|OMP|HF)_[A-Z_]+)"'
    read = {name for text in sources for name in re.findall(pattern, text)}
    assert read == {variable.name for variable in ENVIRONMENT}
    assert all(f"| `{name}` |" in environment_table() for name in read)

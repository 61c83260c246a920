"""Offline by construction: no hub, no key, no home folder of the person who runs the tests."""

import functools
import gc
import itertools
import os
import sys
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import pytest
from hypothesis import settings

settings.register_profile("patient", deadline=None)  # a busy machine fails no test
settings.register_profile("quick", max_examples=10, deadline=None)  # make quick
settings.load_profile("patient")
KEPT = {
    "RAGQA_DATA",
    "RAGQA_SCREENSHOTS",
    "RAGQA_HOSTILE",
    "RAGQA_LOCAL_TEST_MODEL",
}  # what a person sets for the tests
DATA = Path(os.environ.get("RAGQA_DATA", Path(__file__).resolve().parents[1].parent / "shared" / "data"))


# After so many visits a line is no longer counted. Slipcover says 50, and each time looks through every function there
# is: 12 of 84 seconds of the processor in a seventh of the tests, for lines that cost milliseconds.
MOST_VISITS = 10_000
if coverage := getattr(sys.modules.get("slipcover.pytest_plugin"), "_slipcover_instance", None):  # in `make test`
    coverage.d_miss_threshold = MOST_VISITS


def pytest_configure(config):
    """Each worker says which lines there are of what it did not read; the one that waits for them need not, too."""
    if getattr(config.option, "numprocesses", None) and "slipcover" in sys.modules:
        sys.modules["slipcover"].Slipcover._add_unseen_source_files = lambda self, source: None


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Modules and tests stay to the end: looking for garbage among them took a quarter of the time of reading them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items):
    """Tests with a browser first: they take longest, and the last ones to run should be short."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is None)


@pytest.fixture(scope="session")
def homes(tmp_path_factory):
    """Fresh folders, one a call; a counter is quicker than looking which numbers are taken."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(scope="session", autouse=True)
def _made_once():
    """What typer and streamlit make again for each command and page in a process, though one process runs one."""
    import typer.testing
    from streamlit.components.v2 import manifest_scanner  # each page reads the metadata of every installed package

    typer.testing._get_command = functools.cache(typer.testing._get_command)
    manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)


@pytest.fixture(scope="session", autouse=True)
def _compiled_once():
    """A process compiles each model that ships once, whoever loads it again: a second of the processor each time.

    Not those that a test makes, nor where a test has put something into the place of what compiles.
    """
    from ragqa.models import inference
    from ragqa.models.inference import bert_graph

    shipped, known = Path(inference.__file__).parents[1], {}

    def compiled(self, folder, shape, precision, weights=None, streams=1):
        key = (folder, shape, precision, streams, bert_graph._openvino, bert_graph._build_graph)
        if key not in known or weights is not None:
            own(self, folder, shape, precision, weights, streams)
            if weights is None and folder.parent == shipped:
                known[key] = dict(vars(self))
        else:
            vars(self).update(known[key])

    own = bert_graph.OpenVinoEngine.__init__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bert_graph.OpenVinoEngine, "__init__", compiled)
        yield


@pytest.fixture(scope="session", autouse=True)
def _nothing_waits_for_the_disk():
    """No test takes the power away, so nothing has to be on disk for good: half the time of building an index.

    A test that looks when files are written sees each call all the same, and processes of their own do wait.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch, homes):
    for name in [name for name in os.environ if name.startswith(("OPENAI_", "VOYAGE_", "RAGQA_")) and name not in KEPT]:
        monkeypatch.delenv(name)
    home = next(homes)
    home.mkdir()
    monkeypatch.setenv("RAGQA_HOME", str(home))


@pytest.fixture
def ended(monkeypatch, capsys):
    """What ``ragqa`` with these arguments prints, as ``out`` and ``err``, where it ends with this code."""
    from ragqa.cli import main

    def run(*arguments, code=0):
        monkeypatch.setattr("sys.argv", ["ragqa", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        assert (end.value.code or 0) == code
        return capsys.readouterr()

    return run


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not DATA.is_dir():
        pytest.skip(f"no shared data at {DATA}: set RAGQA_DATA to the folder that holds it")
    return DATA


@pytest.fixture(scope="session")
def splade_model(tmp_path_factory) -> Path:
    from tests.support.tiny_models import write_splade

    return write_splade(tmp_path_factory.mktemp("models") / "splade")


@pytest.fixture(scope="session")
def late_model(tmp_path_factory) -> Path:
    from tests.support.tiny_models import write_late

    return write_late(tmp_path_factory.mktemp("models") / "late")


@pytest.fixture(scope="session")
def postgres():
    """A server of this session's own; skipped where none is installed."""
    from tests.support.postgres import PostgresServer, programs

    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'ragqa[postgresql]'")
    if programs() is None:
        pytest.skip("no PostgreSQL server is installed: apt-get install postgresql")
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def place(request, tmp_path):
    """Where records are kept: a file, or a server's database."""
    if request.param == "sqlite":
        return tmp_path / "deep" / "records.sqlite3"
    return request.getfixturevalue("postgres").new_database()


@pytest.fixture(scope="session")
def milvus():
    """A server of this session's own; skipped where milvus-lite is not installed."""
    from tests.support.milvus import MilvusServer

    for library in ("pymilvus", "milvus_lite"):
        pytest.importorskip(library, reason=f"{library} is not installed: pip install 'ragqa[dev]'")
    server = MilvusServer()
    yield server
    server.remove()

"""The rooms and the direction of imports, as DESIGN says and README draws."""

import ast
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import ragqa
from ragqa.evaluation.catalogue import benchmarks

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "ragqa"
MODULES = sorted(path for path in PACKAGE.rglob("*.py"))

# Lower may not import higher; stages (one level) may not import each other.
LEVELS = {
    "errors": 0,
    "types": 0,
    "english": 1,
    "infra": 1,
    "plugins": 2,
    "settings": 3,
    "corpus": 4,
    "filtering": 4,
    "fusion": 4,
    "models": 4,
    "retrieval": 5,
    "scoring": 5,
    "generation": 6,
    "index": 6,
    "loading": 7,
    "records": 7,
    "conversation": 8,
    "library": 8,
    "pipeline": 8,
    "server": 9,
    "evaluation": 9,
    "lab": 10,
    "cli": 11,
    "ui": 11,
    "__main__": 12,
}
# Each outside library in the rooms named, nowhere else.
HOMES = {
    "streamlit": {"ui", "app"},
    "starlette": {"ui", "server"},
    "fastapi": {"server"},
    "mcp": {"server"},
    "opentelemetry": {"records"},
    **{library: {"evaluation"} for library in ("deepeval", "phoenix", "inspect_ai", "ragas")},
    **{library: {"server"} for library in ("langchain_core", "llama_index")},
    "altair": {"ui"},
    "pandas": {"ui"},
    "jinja2": {"ui"},
    "markupsafe": {"ui"},
    "openai": {"generation"},
    "xllamacpp": {"generation"},
    "httpx2": {"corpus", "infra", "generation"},
    "html_to_markdown": {"corpus"},
    "libzim": {"corpus"},
    **{library: {"corpus"} for library in ("lxml", "pypdfium2", "pdfplumber")},
    "docx": {"corpus", "records"},
    "openpyxl": {"corpus", "records", "infra"},
    "faiss": {"retrieval"},
    "bm25s": {"retrieval"},
    "rank_bm25": {"retrieval", "evaluation"},
    "fanoutqa": {"evaluation"},
    "rouge_score": {"evaluation"},
    "bleurt": {"evaluation"},
    "spacy": {"evaluation"},
    "ftfy": {"evaluation"},
    "sentence_transformers": {"retrieval"},
    "torch": {"models", "retrieval", "lab"},
    "transformers": {"models", "lab"},
    "tokenizers": {"models"},
    "openvino": {"models"},
    "huggingface_hub": {"models", "retrieval"},
    "nltk": {"english"},
    "sklearn": {"lab"},
    "lightgbm": {"retrieval", "lab"},
    "ir_measures": {"evaluation"},
    "scipy": {"evaluation", "retrieval"},
    "readability": {"evaluation"},
    "nupunkt": {"english"},
    "py3langid": {"english"},
    "typer": {"cli"},
    "filelock": {"infra"},
    "rich": {"cli"},
    "sqlite3": {"infra", "records"},
    "pymilvus": {"retrieval"},
    "grpc": {"retrieval"},
    "psycopg": {"records"},
}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def imported_modules(path: Path) -> set[str]:
    names = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path}: imports are absolute"
    return names


def test_imports_point_one_way():
    for path in MODULES:
        room = room_of(path)
        if room == "__init__":
            continue
        assert room in LEVELS, f"room {room!r} is not on the map: name its level here and in README"
        for name in imported_modules(path):
            parts = name.split(".")
            if parts[0] != "ragqa" or len(parts) < 2 or parts[1] in {"__version__", room}:
                continue
            assert LEVELS[parts[1]] < LEVELS[room], f"{path}: {room} may not import {name}"


def test_only_the_command_line_trains_and_tunes():
    rooms = ("ragqa.lab.training", "ragqa.lab.tuning")
    users = {room_of(path) for path in MODULES if any(name.startswith(rooms) for name in imported_modules(path))}
    assert users == {"lab", "cli"}


def test_the_top_level_is_short():
    assert len([entry for entry in PACKAGE.iterdir() if entry.name != "__pycache__"]) <= 28
    assert all(isinstance(level, int) for level in LEVELS.values())


def test_no_module_is_long():
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in MODULES}
    assert {path: n for path, n in lines.items() if n > 400} == {}


def test_outside_libraries_stay_in_their_rooms():
    scripts = (ROOT / "app.py",)
    for path in (*MODULES, *scripts):
        room = path.stem if path in scripts else room_of(path)
        for name in imported_modules(path):
            library = name.split(".")[0]
            assert room in HOMES.get(library, {room}), f"{path}: {library} belongs in {HOMES[library]}"


def own_ways_to_disk(tree: ast.AST) -> set[str]:
    """Calls that sync, rename or lock files, which belong to `ragqa.infra.files`."""
    return {
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (
            node.func.attr in {"fsync", "fdatasync", "flock", "lockf", "renames", "mkstemp"}
            or (isinstance(node.func.value, ast.Name) and node.func.value.id == "os" and node.func.attr == "replace")
            or (node.func.attr in {"replace", "rename"} and len(node.args) == 1 and not node.keywords)
        )
    }


def test_a_way_to_disk_is_seen():
    code = "os.fsync(1); os.replace(a, b); a.replace(b); a.rename(b); fcntl.flock(a, b)"
    assert own_ways_to_disk(ast.parse(code)) == {"fsync", "replace", "rename", "flock"}
    assert own_ways_to_disk(ast.parse("'a'.replace('b', 'c'); replace(a, b=1); a.replace(tzinfo=b)")) == set()


def test_only_infra_syncs_renames_and_locks_files():
    found = {path: own_ways_to_disk(ast.parse(path.read_text(encoding="utf-8"))) for path in MODULES}
    assert {path: calls for path, calls in found.items() if calls and room_of(path) != "infra"} == {}


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def module_graph() -> dict[str, set[str]]:
    """Which module imports which, inside functions too; ``from a import b`` is of module ``a.b`` where there is one."""
    names = {module_name(path) for path in MODULES}
    graph = {}
    for path in MODULES:
        imported = imported_modules(path) & names
        # `from ragqa.a import b`, b a module: the package a is named only as the way there, unless more is taken of it.
        taken = {
            node.module
            for node in nodes(path)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if f"{node.module}.{alias.name}" not in names
        } | {alias.name for node in nodes(path) if isinstance(node, ast.Import) for alias in node.names}
        packages = {name for name in imported if any(other.startswith(f"{name}.") for other in imported)}
        graph[module_name(path)] = {name for name in imported if name not in packages or name in taken}
    return graph


def edges() -> set[tuple[str, str]]:
    """Edges between rooms, the entries of `ragqa/`: a module of the one imports a module of the other."""
    rooms = {module_name(path): room_of(path) for path in MODULES}
    pairs = {(rooms[module], rooms[other]) for module, others in module_graph().items() for other in others}
    return {(room, other) for room, other in pairs if room != other}


def test_rooms_know_few_other_rooms():
    assert len(edges()) <= 200


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """The sets of modules each of which reaches every other (strongly connected components of more than one)."""
    reached = {}
    for start in graph:
        seen, waiting = set(), [start]
        while waiting:
            new = graph[waiting.pop()] - seen
            seen |= new
            waiting += new
        reached[start] = seen
    return {
        frozenset(other for other in seen if start in reached[other])
        for start, seen in reached.items()
        if start in seen
    }


def test_a_circle_is_seen():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == {frozenset("bc")}


def test_no_modules_import_each_other_in_a_circle():
    assert {tuple(sorted(circle)) for circle in circles(module_graph())} == set()


# What takes long to load, and what only some need: imported inside the function that uses it.
HEAVY = {
    *("torch", "transformers", "sentence_transformers", "openvino", "faiss", "bm25s", "scipy", "sklearn", "lightgbm"),
    *("pandas", "altair", "streamlit", "openai", "httpx2", "fanoutqa", "spacy", "ir_measures", "huggingface_hub"),
    *("libzim", "nltk", "nupunkt", "html_to_markdown", "xllamacpp"),
    *("lxml", "docx", "openpyxl", "pypdfium2", "pdfplumber"),
}
LIGHT_ROOMS = ("retrieval", "scoring", "models", "infra")


def test_a_module_of_these_rooms_loads_no_heavy_library():
    names = [module_name(path) for path in MODULES if room_of(path) in LIGHT_ROOMS]
    assert names
    code = f"import importlib, sys\nfor name in {names}: importlib.import_module(name)\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert HEAVY & set(loaded) == set()


@pytest.mark.long
def test_no_pickle_and_no_print():
    for path in [*MODULES, ROOT / "app.py"]:
        names = {name.split(".")[0] for name in imported_modules(path)}
        assert not names & {"pickle", "joblib", "dill", "marshal", "shelve"}, path


def test_public_names_are_pinned():
    assert sorted(ragqa.__all__) == [
        "Answer",
        "AnswerResult",
        "AnswerSentence",
        "Answered",
        "Breakdown",
        "Config",
        "Encoder",
        "Event",
        "FilteringConfig",
        "FollowUp",
        "Fused",
        "FusionConfig",
        "GenerationConfig",
        "Generator",
        "ModelInfo",
        "NliModel",
        "ObligationScored",
        "Passage",
        "Pipeline",
        "Question",
        "RagqaError",
        "Ranking",
        "RePASs",
        "RecordStore",
        "Recorded",
        "Reranked",
        "Reranker",
        "RerankingConfig",
        "Retrieved",
        "Retriever",
        "Scored",
        "ScoredPassage",
        "SearchingGenerator",
        "Selected",
        "SentenceScored",
        "Stored",
        "Token",
        "Turn",
        "Working",
        "__version__",
        "build_index",
        "follow_up",
        "load_pipeline",
        "open_index",
        "rewrite",
        "score",
        "score_all",
    ]
    assert all(getattr(ragqa, name) is not None for name in ragqa.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ragqa.nothing  # noqa: B018


HEAVY = {
    *("torch", "transformers", "sentence_transformers", "openvino", "faiss", "bm25s", "lightgbm", "sklearn", "scipy"),
    *("streamlit", "pandas", "altair", "openai", "httpx2", "ir_measures", "huggingface_hub", "nupunkt", "nltk"),
    *("spacy", "fanoutqa", "libzim", "html_to_markdown", "xllamacpp"),
    *("lxml", "docx", "openpyxl", "pypdfium2", "pdfplumber"),
}
ENGINES = {"pymilvus", "grpc", "psycopg"}  # of who sets an address


@pytest.mark.parametrize("module", ["ragqa", "ragqa.cli"])
def test_importing_loads_no_heavy_library(module):
    code = f"import sys, {module}; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert module in loaded
    assert not (HEAVY | ENGINES) & set(loaded)


def test_help_loads_no_heavy_library():
    code = (
        "import sys\nfrom ragqa.cli import app\n"
        "try: app(['--help'])\nfinally: print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage" in done.stdout
    assert not (HEAVY | ENGINES) & set(done.stderr.split())
    assert len(own_modules(done.stderr)) <= 40


def own_modules(names: str) -> set[str]:
    return {name for name in names.split() if name.split(".")[0] == "ragqa"}


@pytest.mark.model
@pytest.mark.long
def test_a_question_by_default_loads_no_engine_and_few_modules_and_installing_wants_none():
    code = (
        "import sys\nfrom ragqa.cli import app\n"
        "try: app(['ask', 'When must a firm report a loss?', '--index', 'rulebook'])\n"
        "finally: print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "record " in done.stdout
    assert "faiss" in done.stderr.split()
    assert len(own_modules(done.stderr)) <= 150
    assert not ENGINES & set(done.stderr.split())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = " ".join(project["dependencies"])
    assert not any(name in wanted for name in ("milvus", "grpc", "psycopg"))


def test_the_page_names_no_benchmark():
    """Neither by import nor in a string: whatever a folder of `ragqa.evaluation.benchmarks` adds appears by itself."""
    names = set(benchmarks())
    for path in (PACKAGE / "ui").rglob("*.py"):
        imported = {
            name.split(".")[3] for name in imported_modules(path) if name.startswith("ragqa.evaluation.benchmarks.")
        }
        assert not imported & names, path
        if path.parent.name == "evaluation":
            texts = {node.value for node in nodes(path) if isinstance(node, ast.Constant)}
            assert not texts & names, path


def test_one_module_knows_what_looks_like_a_key():
    homes = {path.name for path in MODULES if "Bearer\\s" in path.read_text(encoding="utf-8")}
    assert homes == {"cleaning.py"}

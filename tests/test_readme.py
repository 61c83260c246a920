"""What README promises is there: its commands, variables, files and rooms; the blocks of every README run."""

import re
from itertools import pairwise

import pytest
from typer.testing import CliRunner

from ragqa.cli import app
from ragqa.cli.reference import FILE, reference
from tests.support.readme_blocks import Block, blocks_of, commands_of, differs, readmes, run_console, run_python
from tests.support.server import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [README, *(path.read_text("utf-8") for path in (ROOT / "ragqa").rglob("README.md"))]


def test_readme_is_ten_kilobytes_at_most():
    assert len(README.encode()) <= 10_000


def test_every_room_on_the_map_exists_and_every_room_is_on_the_map():
    named = set(re.findall(r"`(?:[^`]*, )?ragqa/([a-z_]+(?:/|\.py))`", README.split("## Read on")[1]))
    rooms = {f"{path.name}/" for path in (ROOT / "ragqa").iterdir() if path.is_dir() and path.name != "__pycache__"}
    modules = {path.name for path in (ROOT / "ragqa").glob("*.py")} - {"__init__.py", "__main__.py"}
    assert named == rooms | modules


def test_the_reference_is_what_the_code_says():
    """Written by `python -m ragqa.cli.reference`: parts, environment variables, commands."""
    changed = sorted({*FILE.read_text(encoding="utf-8").splitlines()} ^ {*reference().splitlines()})
    assert not changed, f"ragqa/REFERENCE.md is not what the code says; write it again: make reference; {changed[:6]}"
    assert FILE.read_text(encoding="utf-8") == reference()


def test_every_environment_variable_is_documented_and_read():
    name = r"((?:RAGQA|OPENAI|VOYAGE)_[A-Z_]+)"
    tables = FILE.read_text("utf-8") + (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    documented = set(re.findall(rf"^\| `{name}`", tables, re.MULTILINE))
    sources = [*(ROOT / "ragqa").rglob("*.py"), ROOT / "tests" / "conftest.py"]
    read = {found for path in sources for found in re.findall(f'"{name}"', path.read_text("utf-8"))}
    assert documented == read


COMMAND = r"(?:`|bin/)ragqa ((?:(?:index|records|eval|train|dataset) )?[a-z][a-z-]+)"
COMMANDS = sorted({found for text in DOCUMENTS for found in re.findall(COMMAND, text)})
TARGETS = sorted(
    {found for text in DOCUMENTS for found in re.findall(r"(?:`|^)make ([a-z][a-z-]*[a-z])(?![a-z-])", text, re.M)}
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_readme_has_a_help_page(command):
    result = CliRunner().invoke(app, [*command.split(), "--help"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("target", TARGETS)
def test_every_make_target_of_readme_exists(target):
    assert re.search(rf"^{target}:.*##", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


def test_every_linked_file_exists():
    for file in readmes(ROOT):
        for link in re.findall(r"\]\((?!http|#)([^)#]+)(?:#[^)]*)?\)", file.read_text(encoding="utf-8")):
            assert (file.parent / link).is_file(), f"{file}: {link}"


# The blocks of every README -------------------------------------------------------------------------------------------


def all_blocks():
    for file in readmes(ROOT):
        blocks = blocks_of(file.read_text(encoding="utf-8"))
        for block in blocks:
            marks = [pytest.mark.model, *([pytest.mark.slow] if block.slow else [])]
            name = f"{file.relative_to(ROOT)}:{block.line}"
            yield pytest.param(blocks, block, id=name, marks=() if block.elsewhere else marks)


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """The current folder: the repository's folders can be read in it, what is written stays in it."""
    for name in ("ragqa", "tests", "app.py", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.mark.parametrize(("blocks", "block"), list(all_blocks()))
def test_a_block_runs_and_prints_what_is_shown(blocks, block, workplace):
    if block.elsewhere:
        return
    if block.language == "console":
        run_console(block)
    else:
        run_python(blocks, block)


SAMPLE = """
# A room

<!-- from elsewhere: needs a server -->
```console
$ curl http://127.0.0.1
```

Text between.

<!-- slow -->

<!-- from elsewhere:
     of two lines -->
```python
raise SystemExit
```

```console
$ .venv/bin/ragqa models \\
    --help
Usage: … models
...
  --help
$ ragqa --version
ragqa 9.9
```

```python
a = 1
```

<!-- continues -->
```python
assert a == 1
```

```sh
not a block
```
"""


def test_blocks_are_found_with_what_is_said_of_them():
    server, slow, commands, one, two = blocks_of(SAMPLE)
    assert [block.language for block in (server, slow, commands, one, two)] == [
        "console", "python", "console", "python", "python",
    ]  # fmt: skip
    assert all(SAMPLE.splitlines()[block.line - 1].startswith("```") for block in blocks_of(SAMPLE))
    assert (server.elsewhere, server.slow) == ("needs a server", False)
    assert (slow.elsewhere, slow.slow) == ("of two lines", True)
    assert (commands.elsewhere, commands.slow) == ("", False)
    assert [block.continues for block in (one, two)] == [False, True]
    assert [command.words for command in commands_of(commands)] == [
        (".venv/bin/ragqa", "models", "--help"), ("ragqa", "--version"),
    ]  # fmt: skip
    assert commands_of(commands)[0].printed == ("Usage: … models", "...", "  --help")


def test_a_block_that_cannot_be_checked_is_refused():
    with pytest.raises(AssertionError, match=r"only ragqa is run here, found 'curl'.*from elsewhere"):
        commands_of(Block("console", "$ curl x\n", 3))
    with pytest.raises(AssertionError, match="line 3: a console block begins with"):
        commands_of(Block("console", "ragqa ask\n", 3))
    with pytest.raises(AssertionError, match="say why"):
        _ = Block("python", "", 3, ("from elsewhere:",)).elsewhere


def test_outputs_are_compared_loosely_but_in_order():
    found = "┏━━━┓\n┃ 12 │ kept ┃\nRePASs  0.713 of 4,000 pairs\nlast"
    assert differs(("12 kept", "RePASs 0.5 of 3 pairs"), found) == ""
    assert differs(("| 1 | kept |", "…", "last"), found) == ""
    assert differs(("RePASs … pairs",), found) == ""
    assert differs(("last", "1 kept"), found) == "1 kept"
    assert differs(("RePASs 0.7 of 4 pair",), found) == "RePASs 0.7 of 4 pair"
    assert differs((), "") == ""


@pytest.mark.long
def test_python_blocks_run_and_stand_alone_unless_they_continue(workplace):
    blocks = tuple(block for block in blocks_of(SAMPLE) if block.language == "python")
    for block in blocks[1:]:
        run_python(blocks, block)
    alone = Block("python", "assert a == 1\n", 99)
    with pytest.raises(AssertionError, match="NameError: name 'a' is not defined"):
        run_python((*blocks, alone), alone)


@pytest.mark.long
def test_commands_run_and_are_compared(workplace):
    run_console(Block("console", "$ .venv/bin/ragqa index list --help\n Usage: …\n", 1))
    with pytest.raises(AssertionError, match="did not print 'Nothing of the kind'"):
        run_console(Block("console", "$ ragqa index list --help\nNothing of the kind\n", 1))
    with pytest.raises(AssertionError, match="ended with"):
        run_console(Block("console", "$ ragqa index info nowhere\n", 1))


def test_every_readme_is_looked_at():
    found = list(readmes(ROOT))
    assert found[0] == ROOT / "README.md"
    assert set((ROOT / "ragqa").rglob("README.md")) <= set(found)
    assert all(one != other for one, other in pairwise(found))

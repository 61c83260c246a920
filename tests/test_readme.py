"""What README promises is there: its commands, variables, files and rooms."""

import re

import pytest
from typer.testing import CliRunner

from ragqa.cli import app
from tests.support.server import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_room_on_the_map_exists_and_every_room_is_on_the_map():
    named = set(re.findall(r"`ragqa/([a-z_]+(?:/|\.py))`", README.split("## The map")[1]))
    rooms = {f"{path.name}/" for path in (ROOT / "ragqa").iterdir() if path.is_dir() and path.name != "__pycache__"}
    modules = {path.name for path in (ROOT / "ragqa").glob("*.py")} - {"__init__.py"}
    assert named == rooms | modules


def test_every_environment_variable_is_documented_and_read():
    name = r"((?:RAGQA|OPENAI|VOYAGE)_[A-Z_]+)"
    documented = set(re.findall(f"`{name}`", README))
    sources = [*(ROOT / "ragqa").rglob("*.py"), ROOT / "tests" / "conftest.py"]
    read = {found for path in sources for found in re.findall(f'"{name}"', path.read_text("utf-8"))}
    assert documented == read


COMMANDS = sorted(set(re.findall(r"(?:`|bin/)ragqa ((?:index |records |eval |train )?[a-z]+)", README)))
TARGETS = sorted(set(re.findall(r"(?:`|^)make ([a-z]+)", README, re.MULTILINE)))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_readme_has_a_help_page(command):
    result = CliRunner().invoke(app, [*command.split(), "--help"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("target", TARGETS)
def test_every_make_target_of_readme_exists(target):
    assert re.search(rf"^{target}:.*##", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


def test_every_linked_file_exists():
    for link in re.findall(r"\]\((?!http)([^)]+)\)", README):
        assert (ROOT / link).is_file(), link

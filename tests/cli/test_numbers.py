"""Numbers that nothing can count with: of every numeric option, and of every variable that is one."""

import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from ragqa.cli import COMMANDS, LARGEST, app, load_command
from ragqa.errors import ConfigError, RecordError
from ragqa.retrieval.milvus.client import check_address
from ragqa.server.access.anchor import note
from ragqa.settings.environment import ENVIRONMENT, check_numbers, whole_number

WHOLE, BROKEN = ("99999999999999999999", "-99999999999999999999"), ("nan", "inf", "-inf", "1e400")
NUMBERS = [one.name for one in ENVIRONMENT if one.least is not None]


def numeric_options(path, command):
    """Of this command and those below: (its words, itself, the option's flag, whether it is whole)."""
    for name, one in getattr(command, "commands", {}).items():
        yield from numeric_options((*path, name), one)
    for parameter in command.params:
        kind = re.findall(r"int|float", str(parameter.type_descriptor.annotation))
        if kind and parameter.opts[0].startswith("--"):
            yield path, command, parameter.opts[0], kind == ["int"]


@pytest.mark.long
def test_no_numeric_option_takes_what_nothing_can_count_with():
    found = [each for name in COMMANDS for each in numeric_options((name,), load_command(name))]
    assert len(found) > 80
    for path, command, flag, is_whole in found:
        needed = [part for one in command.params if one.required and one.opts[0] != flag for part in _given(one)]
        for value in WHOLE if is_whole else WHOLE + BROKEN:
            with pytest.raises((ConfigError, typer.BadParameter)) as refused:
                command.main([*needed, f"{flag}={value}"], standalone_mode=False)
            told = getattr(refused.value, "format_message", refused.value.__str__)()
            assert flag in told, (path, value, told)


def _given(parameter):
    path = str(Path(__file__).parent) if "folder" in parameter.name else __file__
    return [parameter.opts[0], path] if parameter.opts[0].startswith("-") else [path]


@pytest.mark.parametrize("command", ["records list --limit", "audit show --limit"])
def test_the_largest_number_is_one(command, tmp_path, monkeypatch):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    assert CliRunner().invoke(app, [*command.split(), str(LARGEST)]).exit_code == 0


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("wrong", ["-1", "many", "1.5", "9999999", "٣", "1e3", "0x10", "1_000", "nan"])
def test_a_variable_that_is_no_number_ends_any_command(name, wrong, monkeypatch, ended):
    monkeypatch.setenv(name, wrong)
    assert f"{name}: expected a whole number from" in ended("records", "list", code=2).err


def test_variables_are_numbers_within_their_bounds(monkeypatch):
    for one in ENVIRONMENT:
        if one.least is not None and one.default:
            monkeypatch.setenv(one.name, f" {one.least} ")
            assert whole_number(one.name) == one.least
            monkeypatch.setenv(one.name, " ")
            assert whole_number(one.name) == int(one.default)
    check_numbers()


@pytest.mark.parametrize("port", ["99999999", "-1", "abc"])
def test_a_port_that_is_none_is_said(port):
    with pytest.raises(RecordError, match="RAGQA_AUDIT_ANCHOR: expected a place"):
        note(f"syslog:localhost:{port}", 1, "hash")
    with pytest.raises(ConfigError, match="expected --uri"):
        check_address(f"http://localhost:{port}")
